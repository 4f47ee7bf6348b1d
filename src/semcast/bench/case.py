"""What to measure, as data that members are given."""

import msgspec


class Case(msgspec.Struct, frozen=True, kw_only=True):
    """What to measure."""

    members: int = 3
    senders: int = 1
    size: int = 64
    count: int = 500_000
    """Messages of all senders together."""
    stack: str = "ring"
    order: str = "agreed"
    """ring: `agreed` or `safe`; vsync: `fifo`, `causal` or `total`; s-rm: `fifo`; replication: `disk` or
    `memory`."""
    engine: str = ""
    """vsync, total: `token` or `consensus`."""
    uniform: bool = False
    """vsync: deliver only what survives."""
    items: int = 0
    """Messages are updates of so many items; 0 for messages that never become obsolete."""
    rate: float = 0.0
    """Messages a second of each sender; 0 for as fast as the group takes them."""
    reading: str = "batches"
    """How the applications read: `batches`, `single`, or `blocking`: one by one, without asyncio."""
    sleeping: float = 0.0
    """Milliseconds for which the last member's application blocks with each message."""
    datagram: int = 0
    key_file: str = ""
    record: str = ""
    fanout: str = "unicast"
    """`unicast` or `multicast`."""
    addresses: tuple[str, ...] = ()
    """Where members are known beforehand (s-rm): where each member is; chosen where none are given."""
