"""The profile of a trace: has it obsolescence, and which buffers does it need (Pereira 2000, section 4.5).

The definitions are those of the model (Pereira 2002, 5.1.1): D is the distance between a message and the next
one that makes it obsolete, R_N the share of all messages with D of at most N.
"""

from collections import Counter, defaultdict
from collections.abc import Iterator
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass, field

from pyspark.sql import DataFrame
from pyspark.sql import functions as fn

from semcast.pipeline.frames import keep
from semcast.pipeline.profile import distances, segments
from semcast.pipeline.profile.commits import commit_distances
from semcast.pipeline.profile.partial import PIECE, Cut
from semcast.pipeline.profile.positions import positioned, spans
from semcast.pipeline.profile.runs import CHUNK, Runs, find_runs
from semcast.pipeline.profile.summary import Bin, Distances, StreamProfile, element, items_of, sizes_of
from semcast.pipeline.profile.validate import StreamFacts, Trace
from semcast.pipeline.session import partitions_for


@dataclass(frozen=True, slots=True)
class Settings:
    """What to work out, and how the work is cut (on which nothing depends)."""

    purge: float = 0.5
    """The share of messages that one wants purged."""

    gap: float = 0.0
    """Messages no further apart than so many seconds are one burst."""

    groups: str | None = None
    """The column, `ts` or `group`, whose equal values make messages one operation."""

    partitions: int | None = None
    piece: int = PIECE
    chunk: int = CHUNK


@dataclass(frozen=True, slots=True)
class Profile:
    """The profiles of all streams, and the tables in Spark that they were read off."""

    streams: tuple[StreamProfile, ...]
    distances: DataFrame
    """(stream, distance, n)"""

    items: DataFrame
    """(stream, key, updates)"""


def profile(trace: Trace, settings: Settings | None = None) -> tuple[StreamProfile, ...]:
    """Profile every stream of a trace."""
    with profiled(trace, settings) as done:
        return done.streams


@contextmanager
def profiled(trace: Trace, settings: Settings | None = None) -> Iterator[Profile]:
    """Profile every stream of a trace, and keep the tables for as long as the context is open."""
    settings = settings or Settings()
    with ExitStack() as kept:
        partitions = settings.partitions or partitions_for(sum(facts.messages for facts in trace.streams))
        folded = segments.fold_trace(trace, Cut(settings.gap, settings.piece, partitions), kept)
        joined = keep(segments.joined(folded), kept)
        items = segments.items(joined)
        if settings.groups is None:
            operations = dict[str, Runs]()
            found = segments.distances(joined)
        else:
            operations, between = _between_operations(
                trace, settings.groups, partitions, settings.chunk, kept
            )
            found = keep(between, kept)
        counted = _counted(trace, items, operations)
        _bin(found, counted)
        exact = _exact(found, counted, settings.purge)
        bursts = segments.bursts(folded)
        streams = tuple(
            _stream(facts, counted[facts.stream], exact[facts.stream], bursts[facts.stream], settings)
            for facts in trace.streams
        )
        yield Profile(streams, found, items)


@dataclass(slots=True)
class _Counted:
    """What was counted of one stream."""

    distances: Distances
    commits: int
    frequency: dict[int, int] = field(default_factory=dict)
    top: list[tuple[str, int]] = field(default_factory=list)

    def ranks(self, purge: float) -> dict[str, int | None]:
        """Which elements of the sorted distances have a name."""
        m = self.distances.obsolete
        if m == 0:
            return {"median": None, "p90": None, "max": None, "purge": None}
        return {"median": m // 2, "p90": int(0.9 * m), "max": m - 1, "purge": self.distances.rank_for(purge)}


def _between_operations(
    trace: Trace, groups: str, partitions: int, chunk: int, kept: ExitStack
) -> tuple[dict[str, Runs], DataFrame]:
    """The operations of each stream, and the distances to their commits."""
    rows = positioned(trace, partitions, kept).withColumn("mark", fn.col(groups))
    operations = find_runs(rows.select("stream", "at", "mark"), spans(trace), chunk=chunk)
    return operations, commit_distances(rows, operations, partitions, chunk=chunk)


def _counted(trace: Trace, items: DataFrame, operations: dict[str, Runs]) -> dict[str, _Counted]:
    """How many keys have how many updates, and which have most: both are few."""
    counted = {}
    for facts in trace.streams:
        commits = operations[facts.stream].sizes.total() if operations else 0
        counted[facts.stream] = _Counted(Distances(facts.messages + commits, ()), commits)
    for row in distances.frequencies(items).collect():
        counted[row["stream"]].frequency[row["updates"]] = row["keys"]
    for row in distances.top_items(items).collect():
        counted[row["stream"]].top.append((row["key"], row["updates"]))
    return counted


def _bin(found: DataFrame, counted: dict[str, _Counted]) -> None:
    """Put the bins of distances where they belong."""
    bins = defaultdict(list)
    for row in distances.bins(found).toArrow().to_pylist():
        bins[row["stream"]].append(Bin(row["low"], row["high"], row["n"]))
    for stream, of_stream in counted.items():
        ordered = sorted(bins[stream], key=lambda each: each.low)
        of_stream.distances = Distances(of_stream.distances.messages, tuple(ordered))


def _exact(counts: DataFrame, counted: dict[str, _Counted], purge: float) -> dict[str, dict[str, int | None]]:
    """The distances behind the names, looked up in Spark where a bin holds several."""
    places = {
        (stream, name): None if rank is None else of_stream.distances.place(rank)
        for stream, of_stream in counted.items()
        for name, rank in of_stream.ranks(purge).items()
    }
    wide = {
        (stream, place[0].low, place[0].high)
        for (stream, _), place in places.items()
        if place is not None and place[0].low < place[0].high
    }
    inside = defaultdict(list)
    if wide:
        for row in distances.inside_bins(counts, sorted(wide)).collect():
            inside[row["stream"]].append((row["distance"], row["n"]))
    found: dict[str, dict[str, int | None]] = {stream: {} for stream in counted}
    for (stream, name), place in places.items():
        found[stream][name] = None if place is None else _pick(place[0], place[1], inside[stream])
    return found


def _pick(bin_: Bin, rank: int, inside: list[tuple[int, int]]) -> int:
    if bin_.low == bin_.high:
        return bin_.low
    return element(sorted((value, n) for value, n in inside if bin_.low <= value <= bin_.high), rank)


def _stream(
    facts: StreamFacts,
    counted: _Counted,
    exact: dict[str, int | None],
    bursts: Counter[int],
    settings: Settings,
) -> StreamProfile:
    return StreamProfile(
        stream=facts.stream,
        messages=counted.distances.messages,
        commits=counted.commits,
        kinds=facts.kinds,
        bytes=facts.bytes,
        seconds=facts.ended - facts.began,
        distances=counted.distances,
        d_median=exact["median"],
        d_p90=exact["p90"],
        d_max=exact["max"],
        items=items_of(counted.frequency, sorted(counted.top, key=lambda item: (-item[1], item[0]))),
        bursts=sizes_of(bursts),
        purge=settings.purge,
        buffer=exact["purge"],
    )
