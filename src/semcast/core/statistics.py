"""Counters every stack keeps."""

import msgspec


class Statistics(msgspec.Struct):
    """Plain counters: cheap to bump, easy to export. All count messages unless they say frames."""

    sent: int = 0
    delivered: int = 0
    purged_delivery: int = 0
    purged_retransmission: int = 0
    skipped: int = 0
    duplicates: int = 0
    refused: int = 0
    requested: int = 0
    retransmitted: int = 0
    request_timeouts: int = 0
    blocked: int = 0
    control_frames: int = 0
    malformed: int = 0
    """Frames dropped because no correct peer sends them."""
    stale: int = 0
    """Frames dropped because they come too late, or twice."""
    token_hops: int = 0
    """How far the token of the current configuration has come, as far as this member knows."""
    refused_members: int = 0
    """Frames of members with other settings, where all must have the same."""
