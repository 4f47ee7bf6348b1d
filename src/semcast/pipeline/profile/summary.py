"""What a profile says of a stream, worked out on the driver from what was counted."""

import math
from bisect import bisect_right
from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from itertools import accumulate

from semcast.models import Empirical, Throughput, throughput


@dataclass(frozen=True, slots=True)
class Bin:
    """So many messages have a distance from `low` to `high`."""

    low: int
    high: int
    n: int


@dataclass(frozen=True, slots=True)
class Distances:
    """How far messages are from the one that makes them obsolete, over all messages of a stream.

    It answers as a distribution of the models does. R_N is exact where N is the end of a bin, which every
    N below 2048 is; inside of a wider bin it leaves that bin out.
    """

    messages: int
    bins: tuple[Bin, ...]

    @property
    def obsolete(self) -> int:
        """How many become obsolete."""
        return sum(each.n for each in self.bins)

    def empirical(self) -> Empirical:
        """As a distribution of the models."""
        return Empirical({0: self.messages - self.obsolete} | {each.high: each.n for each in self.bins})

    def place(self, rank: int) -> tuple[Bin, int]:
        """The bin of the element number `rank` of the sorted distances, and its number in there."""
        upto = list(accumulate(each.n for each in self.bins))
        index = bisect_right(upto, rank)
        return self.bins[index], rank - (upto[index] - self.bins[index].n)

    def rank_for(self, purge: float) -> int | None:
        """The number of the distance that brings R_N to `purge`; None if nothing does."""
        count = max(1, math.ceil(purge * self.messages))
        while count > 1 and (count - 1) / self.messages >= purge:
            count -= 1
        while count / self.messages < purge:
            count += 1
        return count - 1 if count <= self.obsolete else None


@dataclass(frozen=True, slots=True)
class Items:
    """How updates spread over items."""

    keys: int
    updates: int
    keys_for_half: int
    """The fewest keys that take half of the updates."""

    top_share: float
    """Of the updates, what the key takes that is written most."""

    top10_share: float
    frequency: dict[int, int]
    """Updates of a key -> how many keys have so many."""

    top: tuple[tuple[str, int], ...]
    """The keys that are written most, and how often."""


@dataclass(frozen=True, slots=True)
class Sizes:
    """How large bursts are."""

    bursts: int
    mean: float
    median: int
    p90: int
    largest: int
    counts: dict[int, int]
    """Messages in a burst -> how many bursts have so many."""


@dataclass(frozen=True, slots=True)
class StreamProfile:
    """All of it."""

    stream: str
    messages: int
    """Rows, and commits if there are groups."""

    commits: int
    kinds: dict[str, int]
    bytes: int
    seconds: float
    distances: Distances
    d_median: int | None
    d_p90: int | None
    d_max: int | None
    items: Items
    bursts: Sizes
    purge: float
    """The share of messages that one wants purged."""

    buffer: int | None
    """The smallest N, and the smallest k, with R_N of at least that; None if no N is enough."""

    @property
    def never_obsolete_share(self) -> float:
        """Of all messages."""
        return 1 - self.distances.obsolete / self.messages

    def purge_ratio(self, n: int) -> float:
        """R_N."""
        return self.distances.empirical().purge_ratio(n)

    def predicted(self, ts: float, tr: float, n: int) -> Throughput:
        """T and T' with a buffer of `n`, a sender at `ts` and a slow receiver at `tr` messages a second."""
        return throughput(ts, tr, self.purge_ratio(n))


def as_dict(profile: StreamProfile, buffers: Sequence[int] = (10, 20, 30)) -> dict[str, object]:
    """As JSON has it, with the names that the reference profiles of recordings use."""
    distances, items, bursts = profile.distances, profile.items, profile.bursts
    empirical = distances.empirical()
    ratios = {n: empirical.purge_ratio(n) for n in buffers}
    obsolete_share = distances.obsolete / distances.messages
    return {
        "stream": profile.stream,
        "messages": profile.messages,
        "commits": profile.commits,
        "kinds": profile.kinds,
        "bytes": profile.bytes,
        "seconds": round(profile.seconds, 6),
        "made_obsolete": distances.obsolete,
        "never_obsolete_share": profile.never_obsolete_share,
        "D_median": profile.d_median,
        "D_p90": profile.d_p90,
        "D_max": profile.d_max,
        **{f"R{n}": ratio for n, ratio in ratios.items()},
        **{f"P_D_le_{n}": ratio / obsolete_share if obsolete_share else 0.0 for n, ratio in ratios.items()},
        "keys": items.keys,
        "keys_for_half": items.keys_for_half,
        "top_key_share": items.top_share,
        "top10_keys_share": items.top10_share,
        "top_keys": [{"key": key, "updates": updates} for key, updates in items.top],
        "item_frequency": [{"updates": updates, "keys": keys} for updates, keys in items.frequency.items()],
        "bursts": {
            "count": bursts.bursts,
            "mean": bursts.mean,
            "median": bursts.median,
            "p90": bursts.p90,
            "max": bursts.largest,
        },
        "purge": profile.purge,
        "N": profile.buffer,
        "k": profile.buffer,
        "histogram": [
            {"low": each.low, "high": each.high, "messages": each.n, "R": empirical.purge_ratio(each.high)}
            for each in distances.bins
        ],
    }


def items_of(frequency: Mapping[int, int], top: Sequence[tuple[str, int]]) -> Items:
    """From how many keys have how many updates.

    >>> items_of({3: 1, 1: 2}, [("a", 3)]).keys_for_half
    1
    """
    updates = sum(count * keys for count, keys in frequency.items())
    return Items(
        keys=sum(frequency.values()),
        updates=updates,
        keys_for_half=_keys_for_half(frequency, updates),
        top_share=_of_top(frequency, 1) / updates if updates else 0.0,
        top10_share=_of_top(frequency, 10) / updates if updates else 0.0,
        frequency=dict(sorted(frequency.items())),
        top=tuple(top),
    )


def sizes_of(counts: Counter[int]) -> Sizes:
    """From how many bursts have how many messages."""
    bursts = counts.total()
    ordered = sorted(counts.items())
    return Sizes(
        bursts=bursts,
        mean=sum(size * n for size, n in ordered) / bursts,
        median=element(ordered, bursts // 2),
        p90=element(ordered, int(0.9 * bursts)),
        largest=ordered[-1][0],
        counts=dict(ordered),
    )


def _keys_for_half(frequency: Mapping[int, int], updates: int) -> int:
    missing, keys = updates / 2, 0
    for count, having in sorted(frequency.items(), reverse=True):
        if count * having >= missing:
            return keys + math.ceil(missing / count)
        missing -= count * having
        keys += having
    return keys


def _of_top(frequency: Mapping[int, int], keys: int) -> int:
    """How many updates go to the so many keys that are written most."""
    taken = 0
    for count, having in sorted(frequency.items(), reverse=True):
        taken += count * min(having, keys)
        keys -= min(having, keys)
    return taken


def element(ordered: Sequence[tuple[int, int]], rank: int) -> int:
    """The element number `rank` of a sorted list, which is given as (value, how often)."""
    upto = list(accumulate(n for _, n in ordered))
    return ordered[bisect_right(upto, rank)][0]
