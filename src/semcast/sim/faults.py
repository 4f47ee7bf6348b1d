"""Faults: what goes wrong, when, and for how long. A schedule of them is data, so it can be printed."""

from collections.abc import Sequence

import msgspec

from semcast.core.ids import SECOND, Nanos
from semcast.core.stack import Stack


class Fault(msgspec.Struct, frozen=True, tag_field="fault"):
    """Base: everything happens at a time."""

    at: Nanos


class Crash(Fault, frozen=True, tag="crash"):
    """The process is gone. `detected_after` later the others are told."""

    member: int
    detected_after: Nanos


class Recover(Fault, frozen=True, tag="recover"):
    """A crashed process starts again, as a new incarnation; not on a disk that lost what was synced."""

    member: int
    with_disk: bool = True
    """Whether with what its disk kept, where it has one; else on an empty one."""


class CrashAll(Fault, frozen=True, tag="crash-all"):
    """The power fails: all processes are gone, each at a drawn moment of a window."""

    window: Nanos
    detected_after: Nanos = 0


class DiskStall(Fault, frozen=True, tag="disk-stall"):
    """No sync of a member's disk is done for a while."""

    duration: Nanos
    member: int


class DiskFull(Fault, frozen=True, tag="disk-full"):
    """A member's disk takes no records for a while: the process that writes one ends, as live ones do."""

    duration: Nanos
    member: int


class DiskLost(Fault, frozen=True, tag="disk-lost"):
    """A member's disk breaks, and its process ends. There is an empty one when it starts again."""

    member: int


class BitRot(Fault, frozen=True, tag="bit-rot"):
    """A byte changes of what a member's disk has synced. Its next process notices, and does not start.

    Only where that can be noticed: see `Disk.rot`.
    """

    member: int


class DiskCopied(Fault, frozen=True, tag="disk-copied"):
    """Somebody copies what a member's disk has synced."""

    member: int


class DiskPutBack(Fault, frozen=True, tag="disk-put-back"):
    """The process of a member ends, and the copy is put in the place of all that was written since."""

    member: int


class Offline(Fault, frozen=True):
    """A process ends, and an operator writes to its disk what only its family understands."""

    member: int

    def do(self, records: Sequence[bytes]) -> Sequence[bytes]:
        """Given what is there, what comes behind it."""
        raise NotImplementedError


LEAVE_PATIENCE = 3 * SECOND
"""How long a process that leaves waits for that, as live ones do; then it ends."""


class Leave(Fault, frozen=True, tag="leave"):
    """The process leaves the group, and ends, if need be without a farewell."""

    member: int


class Sleep(Fault, frozen=True, tag="sleep"):
    """The process is not scheduled for a while; what arrives waits in its socket."""

    member: int
    duration: Nanos


class Disconnect(Fault, frozen=True, tag="disconnect"):
    """A member's machine is away from now on: its links are down, and its process runs on."""

    member: int
    notice: Nanos | None = None
    """So long before the links go down the program says that to its stack; None if it does not know."""


class Reconnect(Fault, frozen=True, tag="reconnect"):
    """Its links are up again."""

    member: int
    announced: bool = False
    """Whether the program says that to its stack."""


class Loss(Fault, frozen=True, tag="loss"):
    """Packets are lost everywhere, or to and from one `member` if they are larger than `above` bytes."""

    duration: Nanos
    rate: float
    member: int | None = None
    above: int = 0


class LinkLoss(Fault, frozen=True, tag="link-loss"):
    """Packets are lost on every link, for all members behind it."""

    duration: Nanos
    rate: float


class LinkDown(Fault, frozen=True, tag="link-down"):
    """Nothing passes a wire between two nodes of a routed network. Nobody finds another way."""

    duration: Nanos
    nodes: tuple[int, int]


class Cut(Fault, frozen=True, tag="cut"):
    """Nothing passes from each `source` to each `dest`. One way: the other direction still works."""

    duration: Nanos
    sources: tuple[int, ...]
    dests: tuple[int, ...]


class Partition(Fault, frozen=True, tag="partition"):
    """Members in different groups do not hear each other."""

    duration: Nanos
    groups: tuple[tuple[int, ...], ...]


class SlowLink(Fault, frozen=True, tag="slow-link"):
    """The link of one member has another bandwidth (bits a second), then `normal` again."""

    duration: Nanos
    member: int
    bandwidth: int
    normal: int


class Delay(Fault, frozen=True, tag="delay"):
    """Packets to and from one member take longer, if larger than `above` bytes."""

    duration: Nanos
    member: int
    extra: Nanos
    above: int = 0


class Ambush(Fault, frozen=True, tag="ambush"):
    """From `at` on, wait for a member to enter a phase while others are in another; then strike.

    With a `duration`, those who are in it are cut off from the others for so long; without, the first of
    them crashes. The phase "installed" is that of members who are through while others are still in "evs".
    """

    phase: str
    """One of those that `Stack.phases` tells; "" for any."""
    duration: Nanos | None
    patience: Nanos = 3 * SECOND
    """How long to wait for it."""
    syncing: bool = False
    """Only members count whose disk has a sync under way."""
    closely: bool = False
    """Look after every turn, and not now and then. So it is where a sync is waited for."""
    everybody: bool = False
    """All who are in the phase crash, not only the first; they may be all there are."""
    back_after: Nanos | None = None
    """So long after their crash they start again, with their disks."""


class Deed(Fault, frozen=True):
    """Something that a member is told to do, which only its family understands."""

    member: int

    def do(self, stacks: Sequence[Stack], now: Nanos) -> None:
        """At the moment when it happens; the stacks are those of all members."""
        raise NotImplementedError


AnyFault = (
    Crash
    | CrashAll
    | Recover
    | Leave
    | Sleep
    | Disconnect
    | Reconnect
    | Loss
    | LinkLoss
    | LinkDown
    | Cut
    | Partition
    | SlowLink
    | Delay
    | DiskStall
    | DiskFull
    | DiskLost
    | BitRot
    | DiskCopied
    | DiskPutBack
    | Offline
    | Ambush
    | Deed
)


def ends_at(fault: AnyFault) -> Nanos:
    """When it is over, or, for a crash, known to the others."""
    if isinstance(fault, Crash):
        return fault.at + fault.detected_after
    if isinstance(fault, CrashAll):
        return fault.at + fault.window + fault.detected_after
    if isinstance(fault, Ambush):
        return fault.at + fault.patience + (fault.duration or 0) + (fault.back_after or 0)
    if isinstance(fault, Leave):
        return fault.at + LEAVE_PATIENCE
    if isinstance(fault, Disconnect):
        return fault.at + (fault.notice or 0)
    if isinstance(fault, Recover | Reconnect | DiskLost | BitRot | DiskCopied | DiskPutBack | Offline | Deed):
        return fault.at
    return fault.at + fault.duration


def pairs(fault: Cut | Partition) -> list[tuple[int, int]]:
    """The one-way connections a fault cuts."""
    if isinstance(fault, Cut):
        return [(a, b) for a in fault.sources for b in fault.dests if a != b]
    side = {member: index for index, group in enumerate(fault.groups) for member in group}
    return [(a, b) for a in side for b in side if side[a] != side[b]]
