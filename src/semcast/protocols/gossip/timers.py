"""What a member waits for."""

from semcast.core.outbox import Timer


class GossipTimer(Timer):
    """One of each."""

    ROUND = "round"
    HEARTBEAT = "heartbeat"
    REPORT = "report"
    RATE = "rate"
    PRESENCE = "presence"
