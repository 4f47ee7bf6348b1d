"""What can be set of the gossip family. Defaults are those of the paper's table 7.1, where it has one."""

import enum
from typing import Literal

import msgspec

from semcast.core.ids import MILLISECOND, SECOND, Nanos
from semcast.obsolescence import Purging

_TWO_DAYS: Nanos = 2 * 24 * 3600 * SECOND


class Protocol(enum.Enum):
    """Who repairs what the multicast lost."""

    LBRM = "lbrm"
    """The logger alone (chapter 3, and the variable heartbeat of 1.3)."""
    PBCAST = "pbcast"
    """Peers, by pushed digests; what they have forgotten is lost (1.3, 7.4)."""
    RPBCAST = "rpbcast"
    """Peers, by negative gossip; then the logger (chapter 4)."""


class Choice(enum.Enum):
    """How gossip chooses its target."""

    UNIFORM = "uniform"
    LINEAR = "linear"
    QUADRATIC = "quadratic"


class Retention(enum.Enum):
    """What a logger keeps."""

    LIVE = "live"
    """What nothing has replaced, whoever acknowledged it."""
    STABLE = "stable"
    """What not every session has acknowledged (5.2)."""
    LIMITS = "limits"
    """So many messages of a stream, whoever needs them."""


MAX_FILTER = 64
MAX_REGION = 64
MAX_SPONSORS = 16
StartMode = Literal["new", "all", "compacted", "acknowledged", "position", "time"]
"""See `starting.py`."""


class GossipSettings(msgspec.Struct, frozen=True, kw_only=True):
    """Of members and loggers; all have the same."""

    protocol: Protocol = Protocol.RPBCAST
    loggers: tuple[str, ...] = ()
    """Names of the members that are loggers, where they are known beforehand: nobody else is one then."""
    log_acks: int = 1
    """How many loggers must have a message on disk before it counts as logged; the same for a new session."""
    home: str = ""
    """The logger that a session would rather have, because it is near; any, without."""
    region: str = ""
    """Where this one is: who has a region would rather have a logger and peers of it."""
    durable: bool = False
    """Whether there are loggers though none is named: who is one says so. Without any: pbcast's promise."""
    presence: Nanos = 0
    """How often members say that they are there; 0 where membership is the list that all begin with."""
    sponsors: int = 3
    """Members that must take in who joins where no logger does (5.3, k): so many less one may crash. 0 for
    nobody: who joins begins with what it hears, or waits for a logger."""
    join_rounds: int = 5
    """Rounds after which, without loggers, who joins makes do with fewer sponsors, and who leaves goes."""
    gossip_period: Nanos = 250 * MILLISECOND
    gc_rounds: int = 10
    """GCLIMIT: rounds after which a message is forgotten, if it is logged or there is no logger."""
    gossip_rounds: int = 10
    """Rounds in which peers are asked for a message; then the logger is, or it is given up."""
    gossip_messages: int = 8192
    """Messages that are kept for others at most, the oldest leave first; what is not logged stays."""
    choice: Choice = Choice.LINEAR
    eager: bool = True
    """Whether a gap is asked for at once, and not only at the next round (4.1)."""
    heartbeat_least: Nanos = 250 * MILLISECOND
    heartbeat_most: Nanos = 32 * SECOND
    resend: Nanos = 250 * MILLISECOND
    """How long a sender waits for a logger before it sends it a message again."""
    repairs_per_second: int = 1000
    report: Nanos = 2500 * MILLISECOND
    """How often a session reports to its logger. It counts as away after three in vain."""
    window: int = 256
    """Messages beyond what is logged that a sender sends."""
    window_bytes: int = 1 << 21
    """Bytes of these: as much as a logger's machine keeps while it syncs. The last frame may exceed it."""
    frame_bytes: int = 1200
    """Bytes of messages that one frame carries; one alone may be larger."""
    paced: bool = True
    """Whether a sender slows down when most receivers cannot follow; without a logger it does not."""
    hold: int = 1024
    """Messages, of all streams together, that wait for others before them; others are asked for later. A
    group that loses much at high rates needs room for what comes until a gap is filled."""
    queue_messages: int = 1024
    """Messages that wait for the program; beyond that, what is logged is left to the log."""
    reserve_messages: int = 4096
    """Own messages beyond that, while the program waits to send."""
    purging: Purging = Purging.LAZY
    start: StartMode = "all"
    """Where a session begins that its logger does not know: with what comes, with what there is, ..."""
    start_at: int = 0
    """The position, or the time of day in nanoseconds, to begin with."""
    start_log: int = 0
    """The log that the position is of; 0 for whichever there is."""
    filter: str = ""
    """Of messages about an item, the program is given those whose item begins with it."""
    stays: bool = False
    """Whether the session goes on when its member leaves, for the next one of that name."""
    explicit: bool = False
    """Whether the program says itself what it is through with, and not by taking it."""
    at_most_once: bool = False
    """Whether a session that comes back after a crash begins anew, instead of where it had acknowledged."""
    retention: Retention = Retention.LIVE
    log_messages: int = 1 << 20
    """Messages of a stream that a logger keeps at most under `limits`."""
    log_bytes: int = 0
    """Bytes of messages that a logger keeps at most, whoever needs them; 0 for no bound."""
    log_age: Nanos = 0
    """How long a logger keeps messages, whoever needs them; 0 for no bound."""
    log_cache: int = 1 << 24
    """Bytes of messages that a logger has in memory, though they are on disk; what is not synced is there
    besides."""
    publish_keys: int = 4096
    """Keys of published batches that a logger knows again; half of them may be the last of their owners."""
    stage_bytes: int = 1 << 26
    """Bytes of batches that are on their way in pieces, and not published yet."""
    stage_age: Nanos = 600 * SECOND
    """How long a logger keeps pieces of a batch of which it hears nothing more."""
    compact: bool = True
    """Whether a logger drops what a logged message replaces."""
    receipts: int = 1024
    """Of each stream, how many messages that were replaced a logger remembers with what replaced them. Of
    older ones it knows only that they were."""
    rewrite_records: int = 4096
    """Records of no use that a log has before it is written anew; four times as many under load."""
    rewrite_bytes: int = 1 << 26
    """The same in bytes."""
    inactive: Nanos = _TWO_DAYS
    """How long a logger keeps a session that does not report."""
    silence: Nanos = _TWO_DAYS
    """How long a logger waits for a sender that says nothing, before it closes its stream."""

    def __post_init__(self) -> None:
        counts = (self.gc_rounds, self.gossip_rounds, self.gossip_messages, self.window, self.hold)
        log = (self.log_messages, self.publish_keys, self.stage_bytes, self.stage_age)
        sizes = (self.frame_bytes, self.window_bytes)
        if min(*counts, *log, *sizes, self.queue_messages, self.repairs_per_second) < 1:
            raise ValueError("rounds, windows and bounds must be at least 1")
        if (
            min(
                self.gossip_period,
                self.heartbeat_least,
                self.resend,
                self.report,
                self.inactive,
                self.silence,
            )
            < 1
        ):
            raise ValueError("periods must be above 0")
        if min(self.log_bytes, self.log_age, self.receipts) < 0:
            raise ValueError("log_bytes, log_age and receipts must not be below 0")
        if len(self.filter) > MAX_FILTER:
            raise ValueError(f"a filter has {MAX_FILTER} characters at most")
        if self.start_at < 0:
            raise ValueError("start_at must not be below 0")
        if self.heartbeat_most < self.heartbeat_least:
            raise ValueError("heartbeat_most must not be below heartbeat_least")
        if self.purging is Purging.HELD:
            raise ValueError("purging=held is for retransmission buffers; choose eager, lazy or off")
        if not 0 <= self.sponsors <= MAX_SPONSORS:
            raise ValueError(f"sponsors {self.sponsors}: from 0 to {MAX_SPONSORS}")
        if self.join_rounds < 1:
            raise ValueError(f"join_rounds {self.join_rounds}: at least 1")
        if len(self.region) > MAX_REGION:
            raise ValueError(f"a region has {MAX_REGION} characters at most")
        if self.region and not self.presence:
            raise ValueError("members tell each other their regions: give a presence period")
        if self.presence < 0:
            raise ValueError("presence must not be below 0")
        if self.durable and not self.loggers and not self.presence:
            raise ValueError("loggers that are not named must be found: give a presence period")
        if self.protocol is Protocol.PBCAST and self.logs:
            raise ValueError("pbcast has no logger: choose rpbcast or lbrm")
        if self.protocol is Protocol.LBRM and not self.logs:
            raise ValueError("lbrm needs a logger: name it in loggers, say durable, or choose rpbcast")
        if len(set(self.loggers)) < len(self.loggers):
            raise ValueError("loggers must have different names")
        if self.log_acks < 1 or (self.loggers and self.log_acks > len(self.loggers)):
            raise ValueError("log_acks must be at least 1, and at most as many as there are loggers")

    @property
    def keeping(self) -> str:
        """What a logger keeps, in a word for each rule, for the history."""
        rules = [self.retention.value]
        if self.compact:
            rules.append("compacted")
        if (self.log_bytes or self.log_age) and self.retention is not Retention.LIMITS:
            rules.append(Retention.LIMITS.value)
        if self.inactive < _TWO_DAYS:
            rules.append("inactive")
        return "+".join(rules)

    @property
    def sponsored(self) -> bool:
        """Whether members take each other in: where they find each other."""
        return bool(self.presence and self.sponsors)

    @property
    def logs(self) -> bool:
        """Whether the group has loggers."""
        return self.durable or bool(self.loggers)
