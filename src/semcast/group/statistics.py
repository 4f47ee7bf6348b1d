"""What a member of a live group tells about itself."""

import msgspec

from semcast.core.ids import MemberId
from semcast.core.statistics import Statistics
from semcast.core.views import View
from semcast.group.flow import HeldUp
from semcast.net.keyfile import SealingStatistics
from semcast.net.sockets import SocketStatistics
from semcast.patterns.calls import CallCounts


class GroupStatistics(msgspec.Struct, frozen=True):
    """A snapshot of the counters and queues of a member."""

    member: MemberId
    view: View | None
    stack: Statistics
    network: SocketStatistics
    malformed: dict[str, int]
    waiting_to_send: int
    buffered: int
    sealing: SealingStatistics | None = None
    """Where datagrams are sealed."""
    phase: str = ""
    """What the stack is doing; `minority` where it is cut off from the majority, and nothing is sent."""
    held_back: HeldUp | None = None
    """Who or what keeps this member from sending, if anything does."""
    promise: str = ""
    """What the group cannot promise as it is now; empty where all is well."""
    backlog_errors: int = 0
    """Calls that raised `BacklogError`."""
    skipped: int = 0
    """Messages that were dropped because this program did not iterate before its queue was full."""
    calls: CallCounts | None = None
    """Calls of this member, and of others that it answered."""
