"""A server outside of the group: it asks around, pulls from one, hands in its reds, and comes back.

Nobody inside waits for it. Everything is asked for again after a while, and after two silences of somebody
else. Where the actions that it lacks are forgotten, it is given a snapshot and the actions behind that.
"""

from collections.abc import Callable

import msgspec

from semcast.core.ids import MemberId, Nanos
from semcast.core.outbox import Outbox
from semcast.replication import pull, snapshots
from semcast.replication.actions import Run
from semcast.replication.frames import LOOK, SNAPSHOT, TAIL, HandedIn, Offered, Piece, Wanted
from semcast.replication.machine import Machine
from semcast.replication.parcels import Download, Parcels
from semcast.replication.strangers import foundation

_SILENCES = 2
_LONELY = 10
"""Questions that nobody inside answers, after which a server goes back by itself: nobody may be inside."""


class Outside:
    """The way back of one server.

    Args:
        machine: of the server.
        out: for frames.
        parcels: for what it hands in.
        back: called once it has all it needs, on its disk.
        rebased: called with own runs that are green in the snapshot that it goes on from.
        has_room: whether the service can be given more; if not, nothing is asked for, and it does not come
            back.
    """

    def __init__(
        self,
        machine: Machine,
        out: Outbox,
        parcels: Parcels,
        back: Callable[[], None],
        rebased: Callable[[list[Run]], None],
        has_room: Callable[[], bool],
    ) -> None:
        self._machine = machine
        self._out = out
        self._parcels = parcels
        self._back = back
        self._rebased = rebased
        self._has_room = has_room
        self._donor: MemberId | None = None
        self._silences = 0
        self._unheard = 0  # questions to all since somebody inside said something
        self._runs: list[Run] = []
        self._position = machine.books.colours.line
        self._what = TAIL
        self._download: Download | None = None
        self._writing = False  # what was pulled is on its way to the disk
        self._handed = 0, b""  # the parcel that was handed in last

    def ask(self) -> None:
        """Again and again, until it is over."""
        if self._writing or not self._has_room():
            return
        self._silences += 1
        if self._donor is not None and self._silences > _SILENCES:
            self._forget_donor()
        if self._download is not None:
            self._download.again()
        else:
            self._ask()

    def _forget_donor(self) -> None:
        self._donor = self._download = None
        self._runs, self._position = [], self._machine.books.colours.line

    def _go_back_unasked(self) -> None:
        """All servers may have gone outside at once: those of a group that exists meet inside again.

        Nobody who enters can do harm: the exchange finds who is behind, and sends it back out here.
        """
        self._writing = True  # nothing more is asked for
        self._machine.journal.sync(self._back)

    def _ask(self) -> None:
        if self._donor is None:
            self._unheard += 1
            if self._unheard > _LONELY and self._machine.books.prim.index:
                self._go_back_unasked()
                return
        machine, what = self._machine, LOOK if self._donor is None else self._what
        group = foundation(machine.books.members.founders)
        wanted = Wanted(machine.server, self._position, what, group)
        if self._donor is None:
            self._out.announce(wanted)
        else:
            self._out.send(self._donor, wanted)

    def on_offered(self, source: MemberId, offered: Offered) -> None:
        """Somebody has something, or what was asked for of it."""
        offer = offered.offer
        if self._writing or self._download is not None:
            return
        if not pull.may_enter(self._machine, offer) or not offer.takes:
            return
        if self._is_given_up(source) or not pull.follows(self._machine, offer):
            return
        self._unheard = 0
        if self._donor is None:
            self._donor, self._what = source, TAIL
        elif self._donor != source:
            return
        self._silences = 0
        lacking = offer.founded and offer.start > self._position
        if offered.parcel and offered.what == self._what:
            window = self._machine.settings.pull_window
            self._download = Download(self._out, source, offered.parcel, offered.size, window)
        elif offered.what == LOOK or lacking != (self._what == SNAPSHOT):
            self._what = SNAPSHOT if lacking else TAIL
            self._ask()

    def _is_given_up(self, source: MemberId) -> bool:
        """An operator told this server that the other is gone: it goes on without whatever that has."""
        known = self._machine.books.prim
        return known.whole and source.name in {server.name for server in known.forgot}

    def on_piece(self, now: Nanos, source: MemberId, piece: Piece) -> None:
        """Some of what was asked for."""
        if self._download is None or self._writing:
            return
        self._silences = 0
        whole = self._download.on_piece(source, piece)
        if whole is None:
            return
        self._download = None
        try:
            if self._what == SNAPSHOT:
                self._go_on_from(snapshots.decode(whole))
            else:
                self._go_on_with(now, pull.read_tail(whole))
        except (msgspec.DecodeError, UnicodeDecodeError):
            self._machine.stats.malformed += 1
            self._forget_donor()

    def _go_on_from(self, snapshot: snapshots.Snapshot) -> None:
        if snapshot.start > self._machine.books.colours.line:
            overtaken = pull.rebase(self._machine, snapshot)
            self._runs, self._position = [], snapshot.start
            self._rebased(overtaken)
        self._what = TAIL
        self._ask()

    def _go_on_with(self, now: Nanos, tail: pull.Tail) -> None:
        if tail.position != self._position:
            return  # of an earlier question
        self._runs += tail.runs
        self._position += sum([len(run.actions) for run in tail.runs])
        if tail.image.prim.index and tail.image.line > self._position:
            self._ask()
        else:
            self._take(now, tail.image)

    def _take(self, now: Nanos, image: pull.Image) -> None:
        """All is here: write it, then hand in reds or come back."""
        machine = self._machine
        pull.take(machine, self._runs, image)
        self._runs, self._position, self._writing = [], machine.books.colours.line, True

        def written() -> None:
            self._writing = False
            if not self._has_room():
                return  # it asks again, for what comes meanwhile, once there is some
            lacking = machine.lacking(image.cut)
            if sum([len(run.actions) for run in lacking]) <= machine.settings.exchange_limit:
                self._writing = True  # nothing more is asked for
                self._back()
            elif self._donor is not None:
                self._hand_in(now, self._donor, _some(lacking, machine.settings.pull_bytes))

        machine.journal.sync(written)

    def _hand_in(self, now: Nanos, donor: MemberId, runs: list[Run]) -> None:
        """The same parcel as long as it is the same: the other may be fetching it."""
        data = msgspec.msgpack.encode(runs)
        parcel, before = self._handed
        if data != before or not self._parcels.keeps(now, parcel):
            parcel = self._parcels.add(now, data)
            self._handed = parcel, data
        self._out.send(donor, HandedIn(parcel, len(data)))


def _some(runs: list[Run], most: int) -> list[Run]:
    taken: list[Run] = []
    for run in runs:
        if taken and most < 0:
            break
        taken.append(run)
        most -= sum(map(len, run.actions))
    return taken
