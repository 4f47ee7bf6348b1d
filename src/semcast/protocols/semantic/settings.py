"""Settings of the semantic protocols. Defaults are those of the prototype (Pereira 2002, 5.3.3)."""

import msgspec

from semcast.core.ids import MILLISECOND, Nanos
from semcast.obsolescence import Purging
from semcast.protocols.semantic.frames import Terms
from semcast.wire.limits import MAX_PAYLOAD

VERSION = 1
"""Of the protocol: members of different ones do not hear each other."""


class Settings(msgspec.Struct, frozen=True):
    """S-RM. `purging=OFF` makes it plain FIFO reliable multicast."""

    buffer_messages: int = 40
    """Most messages that one member keeps for others: those that are not stable."""
    buffer_bytes: int = 8 << 20
    """Most bytes of these."""
    queue_messages: int = 0
    """Q: most messages that wait for a program which does not wait itself; 0 for `buffer_messages`."""
    queue_bytes: int = 0
    """Most bytes of these, but for what comes last; 0 for `buffer_bytes`."""
    reserve_bytes: int = 64 << 20
    """R: what is received beyond that while the program waits to send, 64 bytes extra for each message."""
    max_message: int = MAX_PAYLOAD
    purging: Purging = Purging.EAGER
    uniform: bool = False
    """Deliver only what is safe (4.5)."""
    senders: tuple[int, ...] | None = None
    """Ranks that multicast; None for everybody. Each keeps one slot of every buffer to itself."""
    window: int = 4096
    """How far a sender may run ahead of stability, purged messages included."""
    gossip_period: Nanos = 30 * MILLISECOND
    gossip_busy: Nanos = 0
    """The period while something here is not stable; 0 for no other one."""
    gossip_fanout: int = 3
    request_delay: Nanos = 1 * MILLISECOND
    """How long a gap may be mere reordering."""
    rto_initial: Nanos = 50 * MILLISECOND
    rto_min: Nanos = 2 * MILLISECOND
    rto_max: Nanos = 1000 * MILLISECOND
    frame_bytes: int = 1300
    """Payload bytes of a batch put in one frame; a larger message has a frame of its own."""
    repair_bytes: int = 1 << 18
    """Bytes that may be asked for at a time, and that one request is answered with."""
    hopeful: bool = False
    """Whether to ask for what is likely to fit, going by the size of the last messages; otherwise only for
    what fits even if all are as large as they can be."""

    def queue(self) -> int:
        """Q."""
        return self.queue_messages or self.buffer_messages

    def queue_size(self) -> int:
        """Q in bytes."""
        return self.queue_bytes or self.buffer_bytes

    def terms(self) -> Terms:
        """What all members must have set alike."""
        return Terms(VERSION, self.uniform, self.max_message, self.window)

    def repair_frames(self) -> int:
        """Frames that may be asked for at a time."""
        return max(self.repair_bytes // self.frame_bytes, 4)

    def check(self, members: int) -> None:
        """Raise ValueError where these settings cannot work for a group of this size."""
        senders = members if self.senders is None else len(self.senders)
        if self.buffer_messages < senders:
            raise ValueError(f"buffer_messages={self.buffer_messages}: {senders} senders need a slot each")
        if self.buffer_bytes < senders * self.max_message:
            raise ValueError(
                f"buffer_bytes={self.buffer_bytes}: {senders} senders need room for a message of "
                f"{self.max_message} bytes each"
            )
        if self.senders is not None and any(not 0 <= rank < members for rank in self.senders):
            raise ValueError(f"senders={self.senders}: ranks go from 0 to {members - 1}")
        if not 1 <= self.max_message <= MAX_PAYLOAD:
            raise ValueError(f"max_message={self.max_message}: 1 to {MAX_PAYLOAD} bytes")
        if min(self.queue_messages, self.queue_bytes, self.reserve_bytes) < 0:
            raise ValueError("queue_messages, queue_bytes and reserve_bytes must not be below 0")
        if self.window < self.buffer_messages:
            raise ValueError(f"window={self.window}: must not be below buffer_messages")
        if not 0 <= self.gossip_busy <= self.gossip_period or self.gossip_period <= 0:
            raise ValueError("gossip needs a period above 0, and none longer while there is something to say")
        if self.gossip_fanout < 1:
            raise ValueError("gossip needs a fanout of at least 1")
        if self.purging is Purging.HELD:
            raise ValueError("purging=held is for retransmission buffers; choose eager, lazy or off")


class ChannelSettings(msgspec.Struct, frozen=True):
    """S-SRM over window-based channels (appendix B)."""

    buffer_messages: int = 40
    """Most messages in each buffer: one towards each destination, one for delivery."""
    reserve_messages: int = 1024
    """Messages that wait for delivery beyond that, while the program waits to send."""
    purging: Purging = Purging.EAGER
    window: int = 32
    """How far beyond the oldest unacknowledged message a channel sends."""
    span: int = 4096
    """How far a sender may run ahead of a destination, purged messages included."""
    rto_initial: Nanos = 50 * MILLISECOND
    rto_min: Nanos = 2 * MILLISECOND
    rto_max: Nanos = 1000 * MILLISECOND

    def check(self) -> None:
        """Raise ValueError where these settings cannot work."""
        if self.buffer_messages < 1 or self.window < 1:
            raise ValueError("buffer_messages and window must be at least 1")
        if self.reserve_messages < 0:
            raise ValueError(f"reserve_messages={self.reserve_messages}: must not be below 0")
        if self.span < self.window:
            raise ValueError(f"span={self.span}: must not be below window")
        if self.purging is Purging.HELD:
            raise ValueError("purging=held is for retransmission buffers; choose eager, lazy or off")
