"""What the buffer simulation is given and what it reports (Pereira 2002, section 5.1.2)."""

import enum
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from itertools import repeat
from math import inf, isfinite
from random import Random
from typing import Protocol

from semcast.core.ids import SECOND, Nanos
from semcast.models.distance import Key
from semcast.obsolescence import Purging


class ModelTraffic(Protocol):
    """Decides which messages are related: those with the same key."""

    def keys(self, rng: Random) -> Iterator[Key]:
        """The key of each message in turn."""


@dataclass(frozen=True, slots=True)
class Replay:
    """The keys of a recorded trace, once."""

    trace: Sequence[Key]

    def keys(self, rng: Random) -> Iterator[Key]:  # noqa: ARG002 (a trace needs no luck)
        """The key of each message in turn."""
        return iter(self.trace)


class Intervals(enum.Enum):
    """How the sender spaces its messages."""

    CONSTANT = "constant"
    EXPONENTIAL = "exponential"


@dataclass(frozen=True, slots=True)
class Scenario:
    """One sender, a fast receiver that never shows, and a slow one behind a buffer.

    The sender makes a message every 1/`ts` seconds. Where it finds no room it waits, and the next
    interval starts when that message is in; with `backlog`, intervals go on and messages wait in line.
    The slow receiver spends 1/`tr` seconds on each message that it takes. `n` is the capacity of the
    buffer; with `sender_n` there is another one at the sender that feeds it. A message makes earlier
    ones with its key obsolete, those up to `k` back, and may be used for that once it has been in the
    buffer for `safety_delay` seconds.
    """

    ts: float
    tr: float
    n: int
    k: int | None = None
    purging: Purging = Purging.EAGER
    intervals: Intervals = Intervals.CONSTANT
    backlog: bool = False
    sender_n: int = 0
    safety_delay: float = 0.0

    def __post_init__(self) -> None:
        if not all(rate > 0 and isfinite(rate) for rate in (self.ts, self.tr)):
            raise ValueError(f"rates are positive: ts={self.ts}, tr={self.tr}")
        if self.n < 1 or self.sender_n < 0:
            raise ValueError(f"a buffer holds at least 1 message: n={self.n}, sender_n={self.sender_n}")
        if self.k is not None and self.k < 0:
            raise ValueError(f"k counts messages, it is not negative: {self.k}")
        if not 0 <= self.safety_delay < inf:
            raise ValueError(f"a safety delay is not negative: {self.safety_delay}")
        if self.purging is Purging.HELD:
            raise ValueError("held purging is eager purging with a safety delay here")

    @property
    def reach(self) -> int:
        """How far back a message makes others obsolete."""
        if self.purging is Purging.OFF:
            return 0
        return 1 << 62 if self.k is None else self.k

    @property
    def service(self) -> Nanos:
        """Time the slow receiver spends on a message."""
        return max(1, round(SECOND / self.tr))

    def gaps(self, rng: Random) -> Iterator[Nanos]:
        """The intervals of the sender, without end."""
        if self.intervals is Intervals.CONSTANT:
            return repeat(max(1, round(SECOND / self.ts)))
        return _exponential(rng, self.ts / SECOND)


def _exponential(rng: Random, rate: float) -> Iterator[Nanos]:
    draw = rng.expovariate
    while True:
        yield round(draw(rate))


@dataclass(slots=True)
class Tally:
    """Sums over the measured part of a run, in messages and nanoseconds."""

    began: Nanos = 0
    ended: Nanos = 0
    produced: int = 0
    consumed: int = 0
    purged: int = 0
    peak: int = 0
    stay: Nanos = 0
    """Time spent in the buffer by all messages together, inside the measured part."""
    delay: Nanos = 0
    delay_max: Nanos = 0
    latency: Nanos = 0
    latency_max: Nanos = 0
    conveyed: int = 0
    """Messages consumed, and those purged that a consumed one stands for."""
    waiting: int = 0
    blocked: Nanos = 0


@dataclass(frozen=True, slots=True)
class BufferRun:
    """The outcome of a simulation, times in seconds, after its warm-up."""

    produced: int
    consumed: int
    purged: int
    purge_ratio: float
    """Messages purged for each one produced."""
    throughput: float
    """T: messages a second that leave the sender."""
    consumed_throughput: float
    """T': messages a second that the slow receiver takes."""
    mean_occupancy: float
    max_occupancy: int
    mean_queue_delay: float
    max_queue_delay: float
    mean_semantic_latency: float
    """From sending m to taking m, or the message that replaced it (Pereira 2000, section 5.3)."""
    max_semantic_latency: float
    waiting: int
    """Messages in the buffer at the end, and those purged that they stand for: no latency known yet."""
    blocked_time: float
    """Time for which the sender could not send what it had to send."""
    duration: float

    @classmethod
    def of(cls, tally: Tally) -> "BufferRun":
        """From sums to figures."""
        duration = max(1, tally.ended - tally.began)
        consumed = max(1, tally.consumed)
        return cls(
            produced=tally.produced,
            consumed=tally.consumed,
            purged=tally.purged,
            purge_ratio=tally.purged / max(1, tally.produced),
            throughput=tally.produced * SECOND / duration,
            consumed_throughput=tally.consumed * SECOND / duration,
            mean_occupancy=tally.stay / duration,
            max_occupancy=tally.peak,
            mean_queue_delay=tally.delay / consumed / SECOND,
            max_queue_delay=tally.delay_max / SECOND,
            mean_semantic_latency=tally.latency / max(1, tally.conveyed) / SECOND,
            max_semantic_latency=tally.latency_max / SECOND,
            waiting=tally.waiting,
            blocked_time=tally.blocked / SECOND,
            duration=duration / SECOND,
        )
