"""Settings of virtual synchrony."""

import enum

import msgspec

from semcast.core.ids import MILLISECOND, Nanos
from semcast.obsolescence import Purging
from semcast.protocols.semantic import Settings
from semcast.protocols.vsync.detector import DetectorSettings
from semcast.protocols.vsync.frames import Terms
from semcast.wire.limits import MAX_MEMBERS, MAX_PAYLOAD


class Order(enum.StrEnum):
    """In which order messages are delivered inside a view."""

    FIFO = "fifo"
    CAUSAL = "causal"
    TOTAL = "total"


class Engine(enum.StrEnum):
    """Who decides on the total order."""

    TOKEN = "token"  # noqa: S105
    """The holder of a token (Birman et al. 1991, 5.2)."""
    CONSENSUS = "consensus"
    """Everybody, batch by batch (Pereira 2002, 4.6)."""


class Flush(enum.StrEnum):
    """Who tells whom what it has when the view changes."""

    ALL = "all"
    """Everybody tells everybody: n^2 frames, and nobody to wait for."""
    COORDINATOR = "coordinator"
    """Everybody tells the coordinator: 2n frames."""


class Agreement(enum.StrEnum):
    """How it is agreed who is in the next view."""

    CONSENSUS = "consensus"
    """By a majority; whoever is suspected wrongly is put out at worst."""
    ORACLE = "oracle"
    """By all live members, as a perfect failure detector says (`member_failed`; Birman et al. 1991, 4.1)."""


class Reform(enum.StrEnum):
    """When the survivors of a view that lost its majority go on."""

    AUTOMATIC = "automatic"
    """As soon as all others are known to be dead: each is back under its name, as another incarnation."""
    MANUAL = "manual"
    """When they are told to (`reform`)."""


VERSION = 1
"""Of the protocol: members of different ones are not in one group."""


class VsyncSettings(msgspec.Struct, frozen=True, kw_only=True):
    """What must be the same at all members is said to others (`terms`); who differs there is refused."""

    order: Order = Order.FIFO
    engine: Engine = Engine.TOKEN
    flush: Flush = Flush.COORDINATOR
    agreement: Agreement = Agreement.CONSENSUS
    uniform: bool = False
    """Deliver only what survives whichever minority crashes (4.5)."""
    minimum: int = 0
    """How many members found the group together; 0 for one that only joins.

    More than half of all who may found it, or there may be two groups.
    """
    reform: Reform = Reform.AUTOMATIC
    state: bool = False
    """Whether who joins is given the state of the application."""
    purging: Purging = Purging.EAGER
    buffer_messages: int = 1024
    """Most messages that one member keeps for others: those that are not stable in its view."""
    buffer_bytes: int = 32 << 20
    """Most bytes of these."""
    queue_messages: int = 0
    """Q: most messages that wait for a program which does not wait itself, whatever view they are of.

    0 for `buffer_messages`. A change of view may exceed it.
    """
    queue_bytes: int = 0
    """Most bytes of these, but for what comes last; 0 for `buffer_bytes`."""
    reserve_bytes: int = 64 << 20
    """R: what is received beyond that while the program waits to send, 64 bytes extra for each message."""
    lag: Nanos = 0
    """How long something may wait for a program before what is obsolete there makes room; 0: no time."""
    window: int = 4096
    fair: bool = False
    """Whether who sends leaves room in all buffers for others who do (`Shares`)."""
    window_bytes: int = 0
    """Bytes of all senders together that may not be everywhere yet; 0 for what the buffers hold."""
    repair_bytes: int = 1 << 18
    """Bytes that may be asked for at a time, and that one request is answered with."""
    frame_bytes: int = 1300
    detector: DetectorSettings = DetectorSettings()
    request_delay: Nanos = 1 * MILLISECOND
    rto_min: Nanos = 2 * MILLISECOND
    """How soon somebody is asked again, at the earliest."""
    ack_delay: Nanos = 1 * MILLISECOND
    """How long a member that is waited for may keep quiet about what it has received."""
    prompt: bool = False
    """Whether members say after `ack_delay` what came, also where nobody is known to wait for it."""
    resend: Nanos = 20 * MILLISECOND
    """How often what a view change waits for is sent again."""
    hello: Nanos = 100 * MILLISECOND
    """How often a member in no view looks for one."""
    greeting: Nanos = 0
    """How long nothing is sent in a view to those who joined with it and were not heard there, at most.

    Who joins may hear of its view a little later, and what was sent before would have to be repaired.
    """
    linger: Nanos = 0
    """How long who wants to leave stays for others to have what it has, at most."""
    expel_after: Nanos = 0
    """A member that lacks what the others have had for so long is expelled (5.4.3); 0 for never."""
    expel_when_full: bool = False
    """Whether one that holds up stability is expelled as soon as the buffers are full of that."""
    leave_after: Nanos = 0
    """A member leaves whose program has stopped for so long with its queue full; 0 for never."""

    def stream(self) -> Settings:
        """The settings of dissemination inside a view."""
        return Settings(
            buffer_messages=self.buffer_messages,
            buffer_bytes=self.buffer_bytes,
            queue_messages=self.queue_messages,
            queue_bytes=self.queue_bytes,
            reserve_bytes=self.reserve_bytes,
            max_message=min(self.frame_bytes, MAX_PAYLOAD),  # larger ones are cut
            purging=self.purging,
            uniform=self.uniform and self.order is not Order.TOTAL,
            window=max(self.window, self.buffer_messages),
            gossip_period=self.detector.heartbeat,
            request_delay=self.request_delay,
            rto_min=self.rto_min,
            frame_bytes=self.frame_bytes,
            repair_bytes=self.repair_bytes,
        )

    def terms(self) -> Terms:
        """What all members must have set alike."""
        return Terms(
            VERSION,
            self.order.value,
            self.engine.value if self.order is Order.TOTAL else "",
            self.flush.value,
            self.agreement.value,
            self.uniform,
            self.frame_bytes,
            self.buffer_messages,
            self.window,
        )

    def most_members(self) -> int:
        """The largest group that the buffers are large enough for."""
        return min(MAX_MEMBERS, self.buffer_messages, self.buffer_bytes // min(self.frame_bytes, MAX_PAYLOAD))

    def check(self) -> None:
        """Raise ValueError for what cannot work."""
        self.detector.check()
        if self.minimum < 0:
            raise ValueError(f"minimum={self.minimum}: 0 or more members found a group")
        if min(self.resend, self.hello, self.rto_min) <= 0:
            raise ValueError("resend, hello and rto_min must be above 0")
        for name in (
            "ack_delay",
            "greeting",
            "linger",
            "expel_after",
            "leave_after",
            "lag",
            "window_bytes",
            "queue_messages",
            "queue_bytes",
            "reserve_bytes",
        ):
            if getattr(self, name) < 0:
                raise ValueError(f"{name}={getattr(self, name)} must not be below 0")
