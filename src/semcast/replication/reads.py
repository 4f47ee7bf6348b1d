"""What a read shows (section 7): a line in the global order, and perhaps the reds behind it.

Only what is on the disk here: what a client saw and wrote because of must not vanish in a crash.
"""

from collections.abc import Callable
from typing import NamedTuple

from semcast.replication.actions import Run, RunId
from semcast.replication.creation import Cut
from semcast.replication.machine import Machine
from semcast.replication.states import State

WEAK, SESSION, DIRTY = "weak", "session", "dirty"


class Shown(NamedTuple):
    """What a client sees: all green actions up to a line, then these reds."""

    line: int
    reds: list[Run]

    @property
    def cut(self) -> Cut:
        """What goes with the client to other servers: it saw these without a place."""
        return tuple({run.creator: run.last for run in self.reds}.items())


class DirtyRead:
    """A dirty read that has to show all that this server answered before.

    Args:
        machine: of the server.
        act: called with what it shows.
    """

    def __init__(self, machine: Machine, act: Callable[[], None]) -> None:
        self.act = act
        self._creator, self._upto = machine.books.creator, machine.answerable_own
        self._line: int | None = None  # once all of it was delivered: how far the order had come

    def due(self, machine: Machine) -> bool:
        """Whether all of it would show now."""
        if self._line is None and self._delivered(machine):
            self._line = machine.books.colours.line
        return self._line is not None and machine.limit >= self._line

    def _delivered(self, machine: Machine) -> bool:
        colours, durable = machine.books.colours, machine.journal.durable.arrivals
        if any(self._is_meant(run) for run in machine.books.ongoing):
            return False
        return all(colours.arrived[run] <= durable for run in colours.reds if self._is_meant(run))

    def _is_meant(self, run: RunId) -> bool:
        return run[0] == self._creator and run[1] <= self._upto


class ReadQueue:
    """Answers reads at one server."""

    def __init__(self, machine: Machine) -> None:
        self._machine = machine

    def read(self, level: str, client: str = "", position: int = 0) -> Shown | None:
        """What a client is shown; None if it has to wait.

        For a session `position` is the last that the client was answered.
        """
        machine = self._machine
        if level == SESSION and not self.may_answer(position):
            return None
        shown = Shown(machine.limit, self.reds() if level == DIRTY else [])
        machine.notes.read(level, client, shown.line, shown.reds)
        return shown

    def may_answer(self, position: int) -> bool:
        """Whether a session may be shown the green line: in a primary, with its own writes."""
        return self._machine.state is State.REG_PRIM and self._machine.limit >= position

    def reds(self) -> list[Run]:
        """The reds on the disk, in red order; in a primary a dirty read shows none."""
        machine = self._machine
        if machine.state is State.REG_PRIM:
            return []
        colours, durable = machine.books.colours, machine.journal.durable.arrivals
        return [run for run in colours.in_red_order() if colours.arrived[run.id] <= durable]
