"""Members that are away: nothing passes their links, while their processes run on."""

from collections.abc import Callable

import msgspec

from semcast.core.ids import Nanos
from semcast.core.stack import Stack
from semcast.sim.faults import AnyFault, Disconnect, Reconnect

Tell = Callable[[Stack, Nanos], None]
"""How the program of a member tells its stack something."""


def _nothing(_stack: Stack, _now: Nanos) -> None:
    """Most stacks are told nothing: they notice, or do not care."""


class Absence(msgspec.Struct, frozen=True):
    """What a program says to its stack that knows when its machine is away."""

    goes: Tell = _nothing
    """Before its links go down."""
    returns: Tell = _nothing
    """Once they are up again."""


UNTOLD = Absence()
"""Nobody says anything."""


def absence(
    at: Nanos, duration: Nanos, member: int, *, notice: Nanos | None = None
) -> tuple[AnyFault, AnyFault]:
    """A member is away for a while; with `notice` its program says so, so long before and when it is back."""
    back = at + (notice or 0) + duration
    return Disconnect(at, member, notice), Reconnect(back, member, announced=notice is not None)
