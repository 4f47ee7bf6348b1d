"""What a simulated host counts."""

import msgspec

from semcast.core.ids import Nanos


class HostStatistics(msgspec.Struct):
    """What a host did."""

    busy: Nanos = 0
    turns: int = 0
    datagrams_in: int = 0
    datagrams_out: int = 0
    bytes_out: int = 0
    overflowed: int = 0
    malformed: int = 0
    blocked_since: Nanos | None = None
    blocked_time: Nanos = 0
    read: int = 0
    """Messages that the application took."""
    queued: int = 0
    """Messages that waited for the application in its stack, at most."""
    queued_bytes: int = 0
    """And bytes."""
    sent_at: list[Nanos] = msgspec.field(default_factory=list)
