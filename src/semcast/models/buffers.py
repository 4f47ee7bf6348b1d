"""The buffer simulation of Pereira 2002, section 5.1.2: how well purging works, without any protocol.

`simulate` runs any scenario. The ordinary one (a single buffer, eager or no purging, no safety delay)
has a loop of its own that handles each message once; the others go through `semcast.models.sections`.
Time is in integer nanoseconds. What falls on the same instant happens in this order: the receiver takes,
messages become safe, the sender sends.
"""

from collections import OrderedDict
from collections.abc import Iterator
from itertools import islice
from math import inf
from random import Random

from semcast.core.ids import SECOND, Nanos
from semcast.models.distance import Key
from semcast.models.scenario import BufferRun, ModelTraffic, Scenario, Tally
from semcast.models.sections import Sections
from semcast.obsolescence import Purging


def simulate(
    scenario: Scenario,
    traffic: ModelTraffic,
    messages: int = 100_000,
    warmup: int = 10_000,
    seed: int | Random = 0,
) -> BufferRun:
    """Let the sender send `warmup` messages, then measure while it sends `messages` more.

    >>> from semcast.models import Frd, Purging, Scenario
    >>> reliable = Scenario(ts=100, tr=50, n=20, purging=Purging.OFF)
    >>> simulate(reliable, Frd(r=0.5, d=1), messages=1000, warmup=100).throughput
    50.0
    """
    if messages < 1 or warmup < 0:
        raise ValueError(f"nothing to measure: messages={messages}, warmup={warmup}")
    gaps, keys = _sources(scenario, traffic, seed)
    buffer: SingleBuffer | Sections
    if scenario.purging is Purging.LAZY or scenario.sender_n or scenario.safety_delay:
        buffer = Sections(scenario, gaps, keys)
    else:
        buffer = SingleBuffer(scenario, gaps, keys)
    buffer.run(warmup)
    return BufferRun.of(buffer.run(messages))


def longest_stop(
    scenario: Scenario,
    traffic: ModelTraffic,
    trials: int = 1000,
    seed: int | Random = 0,
    most: int = 100_000,
) -> float:
    """The mean time, in seconds, for which a receiver that kept up can stop before the sender blocks.

    Each trial starts with an empty buffer, purged eagerly, just after the receiver took a message.
    Infinite where some trial never fills the buffer within `most` messages.
    """
    gaps, keys = _sources(scenario, traffic, seed)
    total = 0
    for _ in range(trials):
        latest: dict[Key, int] = {}
        held = 0
        for seq, (gap, key) in enumerate(islice(zip(gaps, keys, strict=False), most)):
            total += gap
            if key is None or key not in latest or seq - latest[key] > scenario.reach:
                held += 1
            if held > scenario.n:
                break
            latest[key] = seq
        else:
            return inf
    return total / trials / SECOND


def _sources(
    scenario: Scenario, traffic: ModelTraffic, seed: int | Random
) -> tuple[Iterator[Nanos], Iterator[Key]]:
    rng = seed if isinstance(seed, Random) else Random(seed)
    return scenario.gaps(Random(rng.getrandbits(64))), traffic.keys(Random(rng.getrandbits(64)))


class SingleBuffer:
    """The ordinary scenario. Before each message is sent, the receiver takes what it had time for.

    Of the messages with one key, only the latest here can be in reach: whatever was in reach of that
    one is gone.
    """

    def __init__(self, scenario: Scenario, gaps: Iterator[Nanos], keys: Iterator[Key]) -> None:
        self._scenario = scenario
        self._stream = zip(gaps, keys, strict=False)
        # seq -> when it entered; how many messages it stands for; the sum and the first of their send times.
        self._queue: OrderedDict[int, tuple[Nanos, int, Nanos, Nanos]] = OrderedDict()
        self._latest: dict[Key, int] = {}
        self._seq = 0
        self._due = 0
        self._now = 0
        self._free_at = 0

    def run(self, messages: int) -> Tally:
        """Send that many messages; returns what happened meanwhile."""
        n, reach, service = self._scenario.n, self._scenario.reach, self._scenario.service
        backlog, queue, latest = self._scenario.backlog, self._queue, self._latest
        seq, due, now, free_at = self._seq, self._due, self._now, self._free_at
        tally = self._open()
        # Conditional expressions instead of max(): a call costs more than the rest of its line.
        delay = delay_max = latency = latency_max = stay = 0
        peak = len(queue)
        for gap, key in islice(self._stream, messages):
            due = sent = due + gap if backlog else now + gap
            offered = now = sent if sent > now else now
            seq += 1
            old = latest.get(key, 0)
            if seq - old > reach:
                old = 0
            while True:
                while queue and free_at <= now:
                    entered, stands_for, sum_sent, first_sent = queue.popitem(last=False)[1]
                    stayed, oldest = free_at - entered, free_at - first_sent
                    delay += stayed
                    delay_max = stayed if stayed > delay_max else delay_max
                    latency += stands_for * free_at - sum_sent
                    latency_max = oldest if oldest > latency_max else latency_max
                    free_at += service
                if len(queue) < n or old in queue:
                    break
                now = free_at
            tally.blocked += now - offered
            if key is not None:
                latest[key] = seq
            victim = queue.pop(old, None)
            if victim is not None:
                tally.purged += 1
                stay += now - victim[0]
                queue[seq] = (now, victim[1] + 1, victim[2] + sent, victim[3])
            elif free_at > now:
                queue[seq] = (now, 1, sent, sent)
                peak = len(queue) if len(queue) > peak else peak
            else:
                free_at = now + service  # the receiver is idle and takes it at once
        tally.produced, tally.peak = seq - self._seq, peak
        tally.delay, tally.delay_max = delay, delay_max
        tally.latency, tally.latency_max = latency, latency_max
        tally.stay += delay + stay
        self._seq, self._due, self._now, self._free_at = seq, due, now, free_at
        return self._close(tally)

    def _open(self) -> Tally:
        """What is here now gets counted as a whole when it leaves: the part before is not ours."""
        held = self._queue.values()
        return Tally(
            began=self._now,
            stay=sum(entry[0] - self._now for entry in held),
            consumed=len(held),
            conveyed=sum(entry[1] for entry in held),
        )

    def _close(self, tally: Tally) -> Tally:
        held = self._queue.values()
        tally.ended = self._now
        tally.stay += sum(self._now - entry[0] for entry in held)
        tally.waiting = sum(entry[1] for entry in held)
        tally.consumed += tally.produced - tally.purged - len(held)
        tally.conveyed += tally.produced - tally.waiting
        return tally
