"""A server outside of the group: it asks around, pulls from one, hands in its reds, and comes back.

Nobody inside waits for it. Everything is asked for again after a while, and after two silences of somebody
else.
"""

from collections.abc import Callable

from semcast.core.ids import MemberId
from semcast.core.outbox import Outbox
from semcast.replication import pull
from semcast.replication.actions import Run
from semcast.replication.frames import HandedIn, Offered, Wanted
from semcast.replication.machine import Machine

_SILENCES = 2


class Outside:
    """The way back of one server.

    Args:
        machine: of the server.
        out: for frames.
        back: called once it has all it needs, on its disk.
    """

    def __init__(self, machine: Machine, out: Outbox, back: Callable[[], None]) -> None:
        self._machine = machine
        self._out = out
        self._back = back
        self._donor: MemberId | None = None
        self._silences = 0
        self._runs: list[Run] = []
        self._position = machine.books.colours.line
        self._writing = False  # what was pulled is on its way to the disk

    def ask(self) -> None:
        """Again and again, until it is over."""
        if self._writing:
            return
        self._silences += 1
        if self._donor is not None and self._silences > _SILENCES:
            self._donor = None
            self._runs, self._position = [], self._machine.books.colours.line
        self._ask()

    def _ask(self) -> None:
        wanted = Wanted(self._machine.server, self._position, self._donor is not None)
        if self._donor is None:
            self._out.announce(wanted)
        else:
            self._out.send(self._donor, wanted)

    def on_offered(self, source: MemberId, offered: Offered) -> None:
        """Somebody has something, or what follows of it."""
        machine, image = self._machine, offered.image
        if self._writing or not pull.may_enter(machine, image) or not image.takes:
            return
        if image.prim.index and image.start > self._position:
            return  # the actions that follow are not kept there any more
        if self._donor is None:
            self._donor = source
        elif self._donor != source or offered.position != self._position:
            return
        self._silences = 0
        self._runs += offered.runs
        self._position += sum([len(run.actions) for run in offered.runs])
        if image.prim.index and image.line > self._position:
            self._ask()
        else:
            self._take(image)

    def _take(self, image: pull.Image) -> None:
        """All is here: write it, then hand in reds or come back."""
        machine = self._machine
        pull.take(machine, self._runs, image)
        self._runs, self._position, self._writing = [], machine.books.colours.line, True

        def written() -> None:
            self._writing = False
            lacking = machine.lacking(image.cut)
            if sum([len(run.actions) for run in lacking]) <= machine.settings.exchange_limit:
                self._writing = True  # nothing more is asked for
                self._back()
            elif self._donor is not None:
                self._out.send(self._donor, HandedIn(_some(lacking, machine.settings.pull_bytes)))

        machine.journal.sync(written)


def on_wanted(machine: Machine, out: Outbox, source: MemberId, wanted: Wanted) -> None:
    """A server inside answers one outside."""
    image = pull.image(machine, wanted.server)
    if not image.takes or machine.server == wanted.server:
        return
    runs = []
    if wanted.directly and image.start <= wanted.position:
        runs = pull.tail(machine, wanted.position, image.line, machine.settings.pull_bytes)
    out.send(source, Offered(image, wanted.position, runs))


def _some(runs: list[Run], most: int) -> list[Run]:
    taken: list[Run] = []
    for run in runs:
        if taken and most < 0:
            break
        taken.append(run)
        most -= sum(map(len, run.actions))
    return taken
