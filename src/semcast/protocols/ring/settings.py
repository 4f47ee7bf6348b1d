"""What can be set about a ring."""

import enum

import msgspec

from semcast.core.ids import MILLISECOND, Nanos
from semcast.protocols.ring.frames import Terms
from semcast.wire.limits import MAX_HOLES, MAX_MESSAGE, MAX_PAYLOAD

OVERHEAD = 64
"""Bytes that a message in the reserve counts for besides its payload."""

VERSION = 2
"""Of the protocol: members of different ones do not form a ring."""
REACH = 4
"""Windows beyond what it has contiguously that a member accepts packets from; twice as many beyond what
it knows everybody to have, and so many it keeps at most."""


CALM_MOST = 5
"""Times `calm` that a newcomer waits, at most, while others come."""


class SlowPolicy(enum.Enum):
    """What a member does when its application does not keep up."""

    BLOCK = "block"
    """Purge nothing; hold the group back when the queue is full."""
    PURGE = "purge"
    """Purge what is obsolete; hold the group back when what is left fills the queue."""
    LEAVE = "leave"
    """Purge what is obsolete; leave the group when what is left has filled the queue for too long."""


class RingSettings(msgspec.Struct, frozen=True, kw_only=True):
    """The same at all members, except what concerns one application: queues and policy.

    What must be the same is said to others (`terms`); who differs there is refused.
    """

    packet_bytes: int = 1300
    """Payload bytes in a packet, at most; larger messages are cut into fragments."""
    max_message: int = MAX_MESSAGE
    window: int = 512
    """Packets under way in the whole ring: sent, and not known to have reached everybody. In a ring with more
    members than this it is one for each, so that everybody who has something can send in every rotation."""
    visit: int = 64
    """Packets a member sends while it has the token, at most; the limit in force adapts below it."""
    visit_least: int = 4
    adaptive: bool = True
    """Whether the limits follow loss; otherwise they are as given."""
    accelerated: int = 16
    """Packets of a visit that may leave after the token; 0 for the ring as published."""

    queue_messages: int = 1024
    """Messages that wait for the application."""
    queue_bytes: int = 64 << 20
    """Bytes of these; what comes last may exceed it, whatever its size."""
    reserve_bytes: int = 64 << 20
    """What may wait besides while the application waits in `send`; 64 bytes of each message are overhead."""
    send_messages: int = 1024
    """Messages that wait for the token."""
    send_bytes: int = 1 << 22
    lag: Nanos = 50 * MILLISECOND
    """How long something may wait for the application before what is obsolete is purged."""
    policy: SlowPolicy = SlowPolicy.PURGE
    leave_after: Nanos = 1000 * MILLISECOND
    """How long a full queue is put up with under the policy to leave."""

    minimum: int = 1
    """Members that must have been in a configuration together before this one sends anything."""

    token_loss: Nanos = 300 * MILLISECOND
    """A ring is lost after so long without a sign of life, or after two rotations that take longer."""
    retransmit: Nanos = 10 * MILLISECOND
    """A token is sent again after so long without a sign of life."""
    hold: Nanos = 50 * MILLISECOND
    """How long the token of an idle ring is held."""
    linger: Nanos = 0
    """How long a member with little to send keeps the token of a ring that is idle otherwise, to send more as
    it comes; 0 for the ring as published."""
    gather: Nanos = 30 * MILLISECOND
    search: Nanos = 0
    """How long a member that starts looks for others before it works alone, if longer than it gathers."""
    calm: Nanos = 100 * MILLISECOND
    """A working ring waits for further newcomers until none has come for so long; the first waits for
    `CALM_MOST` times that, at most."""
    join: Nanos = 20 * MILLISECOND
    """How often a proposal is repeated."""
    commit: Nanos = 120 * MILLISECOND
    presence: Nanos = 200 * MILLISECOND

    def __post_init__(self) -> None:
        if not 1 <= self.visit_least <= self.visit <= self.window <= MAX_HOLES // 8:
            raise ValueError(
                f"1 <= visit_least ({self.visit_least}) <= visit ({self.visit}) <= window ({self.window})"
                f" <= {MAX_HOLES // 8} is needed"
            )
        if not 1 <= self.packet_bytes <= MAX_PAYLOAD:
            raise ValueError(f"packet_bytes {self.packet_bytes}: between 1 and {MAX_PAYLOAD}")
        if not max(self.retransmit, self.hold, self.linger) < self.token_loss:
            raise ValueError("retransmit, hold and linger must be shorter than token_loss")
        if not self.join < self.commit:
            raise ValueError("join must be shorter than commit")
        if self.max_message > MAX_MESSAGE:
            raise ValueError(f"max_message {self.max_message}: at most {MAX_MESSAGE}")
        positive = (
            "queue_messages",
            "queue_bytes",
            "send_messages",
            "send_bytes",
            "max_message",
            "minimum",
            "gather",
            "calm",
            "presence",
            "hold",
        )
        for name in positive:
            if getattr(self, name) < 1:
                raise ValueError(f"{name} must be at least 1")
        if self.reserve_bytes < 0:
            raise ValueError("reserve_bytes must not be negative")

    def window_of(self, size: int) -> int:
        """The window of a ring with so many members."""
        return max(self.window, size)

    def terms(self) -> Terms:
        """What all members must have set alike."""
        return Terms(VERSION, self.window, self.packet_bytes, self.max_message)

    def bound(self, size: int = 1) -> int:
        """No member of a group of this size ever holds more: messages in queues, and packets kept for others.

        A change of configuration hands over at once what waited for its turn: as many packets as a member
        keeps, each as full of the smallest messages as it can be.
        """
        kept = 2 * REACH * self.window_of(size)
        waiting = self.queue_messages + -(-self.reserve_bytes // OVERHEAD) + self.send_messages
        return waiting + kept + kept * (self.packet_bytes // 3 + 1)
