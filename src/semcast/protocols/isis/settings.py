"""What can be set about a causal domain."""

import enum

import msgspec

from semcast.core.ids import MICROSECOND, SECOND, Nanos
from semcast.protocols.isis.structure import Structure
from semcast.protocols.vsync.settings import Order, VsyncSettings

MAX_GROUP = 128
"""Bytes of the name of a group."""
MAX_FOREIGN = 64
"""Groups that a stamp speaks of, at most: with more, sending waits until some of them are settled."""
ACK_DELAY = 250 * MICROSECOND
"""A program that changes the group waits for a round of acknowledgements, so they do not wait for long."""
_PLENTY = 1 << 40
"""Nothing that is within credit is ever refused, so queues inside of groups have no bound of their own."""

_BETWEEN_LIVES = SECOND // 10
"""In a group that is left by all and founded anew, views change less often than that, taken together."""


class Policy(enum.StrEnum):
    """How causal order is kept between groups (Birman, Schiper, Stephenson 1991, 6.3 to 6.7)."""

    CONSERVATIVE = "conservative"
    """A process changes the group only when all of the other groups have what it sent and delivered there."""
    FULL = "full"
    """Messages carry the vector times of all other groups that their sender knows of, where these changed."""
    BLOCKS = "blocks"
    """The same, of groups from which something may come back to their sender's by another way."""
    EPOCHS = "epochs"
    """Messages carry the times of their sender's groups, and an epoch: earlier ones are given out first."""


class IsisSettings(msgspec.Struct, frozen=True, kw_only=True):
    """Of one domain. Policy and resilience must be the same at all its processes."""

    policy: Policy = Policy.CONSERVATIVE
    resilience: str = "safe"
    """Who must have the causes of a message before a process sends it in another group: `safe` (so many that
    any majority has one of them), `all`, or a number f for f + 1 members, the sender among them. Under the
    conservative policy all, whatever it says."""
    structure: str | tuple[tuple[str, ...], ...] = "any"
    """Under the policy `blocks`, how groups overlap: `any`, `acyclic`, or the sets of groups that one process
    may be in together. A join that contradicts it is refused. The same at all processes."""
    credit: int = 256
    """Messages of one sender in one group that the program of some member has not taken, at most."""
    send_messages: int = 256
    """Requests of the program that wait to be sent, at most."""
    send_bytes: int = 1 << 20
    """And their bytes; the last one may exceed it."""
    run_bytes: int = 1 << 20
    """Bytes of messages in one request."""
    memberships: int = 1024
    """Groups that the program may be in."""
    beacon: Nanos = 0
    """How often the first member of a group says to all of the domain that it is there; 0 for never."""
    origin: Nanos | None = None
    """What to add to `now` so that it is the time at all processes; None where that is not known.
    A group that all have left, and somebody joins, has higher views then: old stamps name none of them."""
    stamp_age: Nanos = SECOND
    """A stamp of a group that this process is not in is asked about when it is as old as this."""
    vsync: VsyncSettings = VsyncSettings(ack_delay=ACK_DELAY)
    """Of each group. The order is causal whatever it says, and queues are bounded by credit alone."""
    notes: bool = False
    """Whether the history is told of everything."""

    def __post_init__(self) -> None:
        for name in ("credit", "send_messages", "send_bytes", "run_bytes", "memberships", "stamp_age"):
            if getattr(self, name) < 1:
                raise ValueError(f"{name} must be at least 1")
        Structure(self.structure)
        if self.resilience not in ("safe", "all") and not self.resilience.isdecimal():
            raise ValueError(f"resilience {self.resilience!r}: there are safe, all, or a number of failures")

    def first_view(self, now: Nanos) -> int:
        """The number of the view with which a group begins.

        >>> IsisSettings().first_view(5 * SECOND), IsisSettings(origin=SECOND).first_view(5 * SECOND)
        (1, 61)
        """
        return 1 if self.origin is None else 1 + max(0, now + self.origin) // _BETWEEN_LIVES

    def of_group(self, minimum: int) -> VsyncSettings:
        """Of a group that so many found together."""
        return msgspec.structs.replace(
            self.vsync,
            order=Order.CAUSAL,
            minimum=minimum,
            prompt=True,
            queue_messages=_PLENTY,
            queue_bytes=_PLENTY,
            reserve_bytes=0,
            state=False,
        )
