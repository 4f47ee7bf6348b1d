"""What can be set about lightweight groups, and what cannot."""

import msgspec

from semcast.core.ids import SECOND, Nanos

MAX_GROUP = 128
"""Bytes of the name of a group."""
MAX_CLIENTS = 1 << 14
"""Clients of one daemon. As with the next one, all daemons ignore what goes beyond."""
MAX_MEMBERSHIPS = 1 << 14
"""Groups that one client is in."""
MAX_TARGETS = 256
"""Groups that one message is for."""
MAX_RUN = 1 << 14
"""Messages of one client that travel as one."""
MAX_ITEM = 256
"""Characters of the item that a message is about."""
MAX_CENSUS = 1 << 14
"""Clients, memberships and groups in one part of a census."""
MAX_PARTS = 1 << 14
"""Parts of a census."""
BURST = 8
"""What may wait for a client for a moment, as a multiple of its bounds: a turn delivers many messages."""


class LightweightSettings(msgspec.Struct, frozen=True, kw_only=True):
    """Of one daemon; they need not be the same everywhere."""

    clients: int = 4096
    """Local clients, at most."""
    memberships: int = 4096
    """Groups that a local client may be in or ask to be in."""
    queue_messages: int = 4096
    """Events that wait for a client. Beyond it, obsolete messages are dropped; see `leave_after`."""
    queue_bytes: int = 16 << 20
    """And bytes of messages in them."""
    leave_after: Nanos = 5 * SECOND
    """A client that has more than that for so long is put out: nobody waits for it. At once if it has
    `BURST` times as much."""
    send_messages: int = 256
    """Messages and other requests of a client that wait for the ring: its credit."""
    send_bytes: int = 1 << 20
    """And their bytes; the last one may exceed it."""
    run_bytes: int = 1 << 20
    """Bytes of messages that are sent as one run."""
    quantum: int = 16_384
    """Bytes that a client sends before it is the turn of the next."""
    window: int = 256
    """Requests of this daemon that are with the ring and not delivered yet."""
    census_bytes: int = 32_768
    """Bytes in one part of a census, about."""
    flush_timeout: Nanos = 5 * SECOND
    """A client that does not answer a `Block` for so long is put out."""
    notes: bool = False
    """Whether the history is told of everything."""

    def __post_init__(self) -> None:
        for name in self.__struct_fields__:
            if name != "notes" and getattr(self, name) < 1:
                raise ValueError(f"{name} must be at least 1")
        if self.clients > MAX_CLIENTS or self.memberships > MAX_MEMBERSHIPS:
            raise ValueError(f"at most {MAX_CLIENTS} clients, each in {MAX_MEMBERSHIPS} groups")
