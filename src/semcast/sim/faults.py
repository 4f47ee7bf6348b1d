"""Faults: what goes wrong, when, and for how long. A schedule of them is data, so it can be printed."""

import msgspec

from semcast.core.ids import Nanos


class Fault(msgspec.Struct, frozen=True, tag_field="fault"):
    """Base: everything happens at a time."""

    at: Nanos


class Crash(Fault, frozen=True, tag="crash"):
    """The process is gone. `detected_after` later the others are told."""

    member: int
    detected_after: Nanos


class Recover(Fault, frozen=True, tag="recover"):
    """A crashed process starts again, as a new incarnation."""

    member: int


class Sleep(Fault, frozen=True, tag="sleep"):
    """The process is not scheduled for a while; what arrives waits in its socket."""

    member: int
    duration: Nanos


class Loss(Fault, frozen=True, tag="loss"):
    """Packets are lost everywhere, or (`member` given) to and from one member."""

    duration: Nanos
    rate: float
    member: int | None = None


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
    """Packets to and from one member take longer."""

    duration: Nanos
    member: int
    extra: Nanos


AnyFault = Crash | Recover | Sleep | Loss | Cut | Partition | SlowLink | Delay


def ends_at(fault: AnyFault) -> Nanos:
    """When it is over, or, for a crash, known to the others."""
    if isinstance(fault, Crash):
        return fault.at + fault.detected_after
    return fault.at if isinstance(fault, Recover) else fault.at + fault.duration


def pairs(fault: Cut | Partition) -> list[tuple[int, int]]:
    """The one-way connections a fault cuts."""
    if isinstance(fault, Cut):
        return [(a, b) for a in fault.sources for b in fault.dests if a != b]
    side = {member: index for index, group in enumerate(fault.groups) for member in group}
    return [(a, b) for a in side for b in side if side[a] != side[b]]
