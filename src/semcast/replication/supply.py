"""What a server inside does for those outside: it tells how it stands, gives actions and snapshots away."""

from collections.abc import Callable

import msgspec

from semcast.core.ids import MemberId, Nanos
from semcast.core.outbox import Outbox
from semcast.replication import pull, snapshots
from semcast.replication.frames import SNAPSHOT, TAIL, HandedIn, Offered, Piece, Wanted
from semcast.replication.ids import Server
from semcast.replication.machine import Machine
from semcast.replication.parcels import Download, Parcels
from semcast.replication.snapshots import KeptState

_MOST = 8
"""Servers outside that are served at a time."""


class Supply:
    """Of one server.

    Args:
        machine: of the server.
        out: for frames.
        parcels: where it keeps what it gives away.
        want_state: called when the state of the service is needed; `on_state` is given it.
    """

    def __init__(
        self, machine: Machine, out: Outbox, parcels: Parcels, want_state: Callable[[], None]
    ) -> None:
        self._machine = machine
        self._out = out
        self._parcels = parcels
        self._want_state = want_state
        self._fresh: KeptState | None = None  # what the service was when it was asked last
        self._snapshot = 0, 0, 0  # the parcel with the last one, its bytes, and where it begins
        self._downloads: dict[MemberId, Download] = {}

    def on_wanted(self, now: Nanos, source: MemberId, wanted: Wanted) -> None:
        """Tell who asks how this server stands, with what it wants, if it is here."""
        machine = self._machine
        offer = pull.offer(machine, wanted.server)
        if not offer.takes or machine.server == wanted.server:
            return
        if wanted.what == SNAPSHOT:
            self._on_snapshot_wanted(now, source, wanted.server)
        elif wanted.what == TAIL and offer.start <= wanted.position:
            image = pull.image(machine, wanted.server)
            runs = pull.tail(machine, wanted.position, image.line, machine.settings.pull_bytes)
            data = msgspec.msgpack.encode(pull.Tail(image, wanted.position, runs))
            self._out.send(source, Offered(offer, TAIL, self._parcels.add(now, data), len(data)))
        else:
            self._out.send(source, Offered(offer, wanted.what))

    def _on_snapshot_wanted(self, now: Nanos, source: MemberId, server: Server) -> None:
        """A state is given away once all actions in it are on the disk here."""
        if not self._is_there(now):
            state = self._machine.books.state or self._fresh
            if state is None or state.position < self._machine.books.colours.start:
                self._want_state()
                return
            if state.position > self._machine.image().line:
                return
            self._pack(now, state)
        self._offer_snapshot(source, server)

    def on_state(self, state: KeptState) -> None:
        """The state that was asked for; who wants it asks again."""
        self._fresh = state

    def _pack(self, now: Nanos, state: KeptState) -> None:
        self._fresh = None
        books = self._machine.books
        data = snapshots.encode(books.snapshot(state))
        self._snapshot = self._parcels.add(now, data), len(data), books.colours.start

    def _is_there(self, now: Nanos) -> bool:
        """Whether the last snapshot is still kept, with the actions behind it."""
        parcel, _, start = self._snapshot
        return self._parcels.keeps(now, parcel) and start == self._machine.books.colours.start

    def _offer_snapshot(self, source: MemberId, server: Server) -> None:
        parcel, size, _ = self._snapshot
        self._out.send(source, Offered(pull.offer(self._machine, server), SNAPSHOT, parcel, size))

    def busy(self, now: Nanos) -> bool:
        """Whether somebody fetches a snapshot: the actions behind it are not forgotten meanwhile."""
        return self._parcels.keeps(now, self._snapshot[0])

    def on_handed_in(self, source: MemberId, handed: HandedIn) -> None:
        """Reds of one who has too many: fetch them, and go on with that if they are on their way already."""
        known = self._downloads.get(source)
        if known is not None and known.parcel == handed.parcel:
            known.again()
        elif source in self._downloads or len(self._downloads) < _MOST:
            window = self._machine.settings.pull_window
            self._downloads[source] = Download(self._out, source, handed.parcel, handed.size, window)

    def on_piece(self, source: MemberId, piece: Piece) -> None:
        """Some of them; all are multicast together."""
        download = self._downloads.get(source)
        whole = None if download is None else download.on_piece(source, piece)
        if whole is not None:
            del self._downloads[source]
            try:
                pull.hand_in(self._machine, pull.read_runs(whole))
            except (msgspec.DecodeError, UnicodeDecodeError):
                self._machine.stats.malformed += 1
