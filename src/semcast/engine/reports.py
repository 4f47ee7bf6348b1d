"""What a server says to the program: answers, receipts, and how it stands."""

import asyncio
from collections.abc import Mapping

import msgspec

from semcast.engine.outcomes import Outcome
from semcast.engine.requesting import Seen
from semcast.engine.service import ActionError
from semcast.engine.waiting import Waiter
from semcast.replication.stack import Replication
from semcast.replication.states import State


class Answer(msgspec.Struct, frozen=True):
    """The answer to a query."""

    result: bytes
    position: int
    """All actions up to it show."""
    seen: Seen = ""
    """What shows besides and has no place yet: to be given with what is asked because of it."""


class Status(msgspec.Struct, frozen=True):
    """How a server stands."""

    server: str
    state: str
    """`reg-prim` in a primary; elsewhere what it is doing: `non-prim`, `exchange-states`, `out`, ..."""
    primary: bool
    position: int
    """Actions that are applied here."""
    line: int
    """Green actions that are known here."""
    reds: int
    """Runs of actions without a place."""
    white: int
    """The position up to which all servers have everything on their disks."""
    view: tuple[str, ...]
    """Servers within reach."""
    servers: Mapping[str, int]
    """All servers of the group, and their weights."""
    strangers: tuple[str, ...]
    """Servers that want to be let in."""
    alarm: str
    """What whoever runs the servers should look at: a promise that was broken, a clock or a version that does
    not fit, another group of the same name."""
    forgotten: tuple[str, ...] = ()
    """Servers that an operator gave up (`semcast serve --forget`)."""


class Receipt:
    """An action that is on this server's disk and will be executed exactly once."""

    def __init__(self, waiter: Waiter) -> None:
        self._waiter = waiter

    async def ordered(self) -> Outcome:
        """Wait until it is ordered and executed here."""
        return raised((await asyncio.shield(self._waiter.future))[0])


def raised(outcome: Outcome) -> Outcome:
    """The same, unless the service refused: then that is raised."""
    if outcome.error:
        raise ActionError(outcome.error)
    return outcome


def status_of(stack: Replication, position: int) -> Status:
    """How a server stands whose service has done the actions up to a position."""
    machine, books = stack.machine, stack.books
    return Status(
        server=str(books.server),
        state=machine.state.value,
        primary=machine.state is State.REG_PRIM,
        position=position,
        line=books.colours.line,
        reds=len(books.colours.reds),
        white=machine.white,
        view=tuple(sorted(member.name for member in stack.view().members)),
        servers={server.name: weight for server, weight in books.members.weighted()},
        strangers=tuple(sorted(stack.strangers)),
        alarm=machine.trouble,
    )
