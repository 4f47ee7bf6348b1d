"""What can be set about a replication server."""

import enum

import msgspec

from semcast.core.ids import MILLISECOND, SECOND, Nanos


class Durability(enum.Enum):
    """When an action that is green is given to the service, and answered."""

    DISK = "disk"
    """Once its place in the order is on the disk here."""
    MEMORY = "memory"
    """At once: safe unless all servers of a primary fail within a sync."""


class ReplicationSettings(msgspec.Struct, frozen=True):
    """What servers have set; only `names` must be alike, and only where they found a group."""

    names: tuple[str, ...] = ()
    """The servers that found the group, all of them; none for one that joins later."""
    durability: Durability = Durability.DISK
    exchange_limit: int = 10_000
    """A server that lacks more actions than that, or has more reds, is brought up to date outside."""
    window: int = 4
    """Own runs that may be under way; what is asked meanwhile is one run."""
    run_bytes: int = 48_000
    """Bytes of actions in a run, about."""
    buffer: int = 4096
    """Requests that may wait."""
    line_every: int = 10_000
    """Actions after which a server says how far its disk is, if it has nothing else to say."""
    trim_every: int = 0
    """Actions that can be forgotten are, when there are so many; 0 for never."""
    snapshots: bool = False
    """Whether the state of the service is written into the log, so that it can be trimmed. A service that
    keeps its state on the disk itself says so (`Replication.collect`)."""
    retention: int = 100_000
    """Actions that are kept for servers that lack them; who lacks more is given a snapshot. White ones are
    not kept."""
    backlog: int = 1 << 26
    """Bytes of green actions that may wait for the service. A server with more leaves the group until its
    service has caught up; with a quarter of that, its own clients wait."""
    patience: Nanos = 2 * SECOND
    """A server whose disk takes longer for a sync leaves the group until it is done: nobody waits for it."""
    pull_every: Nanos = 100 * MILLISECOND
    """How often a server outside asks."""
    pull_bytes: int = 1 << 20
    """Bytes of actions in an answer."""
    pull_window: int = 1 << 19
    """Bytes that a server outside asks for at a time."""
    piece_bytes: int = 1000
    """Bytes in one frame."""
    notes: bool = False
    """Whether the history is told of colours, primaries and replies."""

    def __post_init__(self) -> None:
        for name in (
            "exchange_limit",
            "window",
            "run_bytes",
            "buffer",
            "line_every",
            "backlog",
            "patience",
            "pull_every",
            "pull_bytes",
            "pull_window",
            "piece_bytes",
        ):
            if getattr(self, name) < 1:
                raise ValueError(f"{name} must be at least 1")
        if len(set(self.names)) != len(self.names):
            raise ValueError(f"names {', '.join(self.names)}: each once")
