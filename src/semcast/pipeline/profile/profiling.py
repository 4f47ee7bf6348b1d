"""The profile of a trace: has it obsolescence, and which buffers does it need (Pereira 2000, section 4.5).

The definitions are those of the model (Pereira 2002, 5.1.1): D is the distance between a message and the next
one that makes it obsolete, R_N the share of all messages with D of at most N.
"""

from collections import Counter, defaultdict
from collections.abc import Iterator
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass, field

from pyspark.sql import DataFrame, SparkSession
from pyspark.sql import functions as fn
from pyspark.sql.pandas.types import from_arrow_schema

from semcast.pipeline.failures import failures, reason
from semcast.pipeline.frames import keep
from semcast.pipeline.profile.commits import commit_distances
from semcast.pipeline.profile.merge import COUNTED, MERGED, TOP, bin_high, picking, summing, unpacking
from semcast.pipeline.profile.operations import CHUNK, Runs, find_runs
from semcast.pipeline.profile.partial import DISTANCES, SEGMENT, Cut, unpacked
from semcast.pipeline.profile.positions import positioned, spans
from semcast.pipeline.profile.read import Trace
from semcast.pipeline.profile.segments import Scan, bursts, merged, rows, scan
from semcast.pipeline.profile.sources import TraceError
from semcast.pipeline.profile.summary import Bin, Distances, StreamProfile, element, items_of, sizes_of
from semcast.pipeline.profile.validate import BadRows, StreamFacts
from semcast.pipeline.session import at_once, partitions_for

_SPLITS = 64
"""Into so many pieces at least Spark cuts files, down to 4 MiB, however many executors there are at the time:
what one pass counts in the blocks of a file must be true in the next."""

_SPLITTING = "spark.sql.files.minPartitionNum"


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
    segment: int = SEGMENT
    chunk: int = CHUNK


@dataclass(frozen=True, slots=True)
class Profile:
    """The profiles of all streams, and the packed tables in Spark that they were read off."""

    streams: tuple[StreamProfile, ...]
    bad: BadRows
    merged: DataFrame
    """What was counted of items, and of distances unless there are operations."""

    between: DataFrame
    """What was counted of distances."""

    def distances(self) -> DataFrame:
        """As (stream, distance, n)."""
        unfolded = self.between.select("distances").mapInArrow(unpacking("distances"), _DISTANCES)
        counted = unfolded.groupBy("stream", fn.col("value").alias("distance")).agg(fn.sum("n").alias("n"))
        return counted.select("stream", "distance", "n")

    def items(self) -> DataFrame:
        """As (stream, key, updates)."""
        unfolded = self.merged.select("items").mapInArrow(unpacking("items"), _COUNTED)
        return unfolded.select("stream", "key", fn.col("n").alias("updates"))


_DISTANCES, _COUNTED, _MERGED = (from_arrow_schema(schema) for schema in (DISTANCES, COUNTED, MERGED))


def profile(trace: Trace, settings: Settings | None = None) -> tuple[StreamProfile, ...]:
    """Profile every stream of a trace; TraceError if it cannot be read or too many rows are bad."""
    with profiled(trace, settings) as done:
        return done.streams


@contextmanager
def profiled(trace: Trace, settings: Settings | None = None) -> Iterator[Profile]:
    """Profile every stream of a trace, and keep the tables for as long as the context is open."""
    settings = settings or Settings()
    with ExitStack() as kept:
        kept.enter_context(_fixed_splits(trace.spark))
        if trace.in_place and settings.groups is None:
            # Spark itself moves only a few packed rows: compiling plans costs more than it saves.
            kept.enter_context(at_once(trace.spark))
        shares = settings.partitions or partitions_for(_about(trace))
        found = scan(trace, Cut(settings.gap, settings.segment, shares), kept)
        try:
            done = _profile(trace, found, settings, kept)
        except failures() as error:
            raise TraceError(f"cannot be profiled: {reason(error)}") from error
        yield done


def _profile(trace: Trace, found: Scan, settings: Settings, kept: ExitStack) -> Profile:
    items = keep(merged(found), kept)
    operations = dict[str, Runs]()
    between = items
    if settings.groups is not None:
        operations, commits = _between_operations(trace, found, settings, kept)
        between = keep(commits.mapInArrow(summing(), _MERGED), kept)
    counted = _counted(found, items, between, operations)
    _compare(found, counted, operations)
    exact = _exact(between, counted, settings.purge)
    of_bursts = bursts(found)
    streams = tuple(
        _stream(facts, counted[facts.stream], exact[facts.stream], of_bursts[facts.stream], settings)
        for facts in found.streams
    )
    return Profile(streams, found.bad, items, between)


def _about(trace: Trace) -> int | None:
    """How many rows there are, if that is known."""
    groups = [table.row_groups for table in trace.tables]
    return None if None in groups else sum(each.rows for each in groups if each is not None)


@contextmanager
def _fixed_splits(spark: SparkSession) -> Iterator[None]:
    if spark.conf.get(_SPLITTING, None) is not None:
        yield
        return
    spark.conf.set(_SPLITTING, str(_SPLITS))
    try:
        yield
    finally:
        spark.conf.unset(_SPLITTING)


@dataclass(slots=True)
class _Counted:
    """What was counted of one stream."""

    distances: Distances
    commits: int
    frequency: Counter[int] = field(default_factory=Counter)
    top: list[tuple[str, int]] = field(default_factory=list)

    def ranks(self, purge: float) -> dict[str, int | None]:
        """Which elements of the sorted distances have a name."""
        m = self.distances.obsolete
        if m == 0:
            return {"median": None, "p90": None, "max": None, "purge": None}
        return {"median": m // 2, "p90": int(0.9 * m), "max": m - 1, "purge": self.distances.rank_for(purge)}


def _between_operations(
    trace: Trace, found: Scan, settings: Settings, kept: ExitStack
) -> tuple[dict[str, Runs], DataFrame]:
    """The operations of each stream, and the distances to their commits."""
    assert settings.groups is not None
    good = rows(trace, found, group=settings.groups == "group")
    slow = any(table.text for table in trace.tables)
    placed = positioned(good, found, slow=slow, kept=kept)
    marked = placed.withColumn("mark", fn.col(settings.groups))
    operations = find_runs(marked.select("stream", "at", "mark"), spans(found), chunk=settings.chunk)
    for facts in found.streams:
        there = sum(size * n for size, n in operations[facts.stream].sizes.items())
        _same(facts.stream, "rows", facts.messages, there)
    distances, seen = commit_distances(marked, operations, found.cut.shares, kept, chunk=settings.chunk)
    for facts in found.streams:
        _same(facts.stream, "updates", facts.kinds.get("update", 0), seen.get(facts.stream, 0))
    return operations, distances


def _counted(
    found: Scan, items: DataFrame, between: DataFrame, operations: dict[str, Runs]
) -> dict[str, _Counted]:
    """How many keys have how many updates, which have most, and the distances in bins: all are few."""
    told = items.select("frequency", "top", "bins").collect()
    bins: defaultdict[str, Counter[int]] = defaultdict(Counter)
    for row in between.select("bins").collect() if operations else told:
        for each in unpacked(bytes(row["bins"])).to_pylist():
            bins[each["stream"]][each["value"]] += each["n"]
    counted = {}
    for facts in found.streams:
        commits = operations[facts.stream].sizes.total() if operations else 0
        ordered = tuple(Bin(low, bin_high(low), n) for low, n in sorted(bins[facts.stream].items()))
        counted[facts.stream] = _Counted(Distances(facts.messages + commits, ordered), commits)
    for row in told:
        for each in unpacked(bytes(row["frequency"])).to_pylist():
            counted[each["stream"]].frequency[each["value"]] += each["n"]
        for each in unpacked(bytes(row["top"])).to_pylist():
            counted[each["stream"]].top.append((each["key"], each["n"]))
    return counted


def _compare(found: Scan, counted: dict[str, _Counted], operations: dict[str, Runs]) -> None:
    """TraceError if merging saw other updates than reading."""
    for facts in found.streams:
        mine = counted[facts.stream]
        updates = sum(count * keys for count, keys in mine.frequency.items())
        _same(facts.stream, "updates", facts.kinds.get("update", 0), updates)
        if not operations:
            _same(facts.stream, "distances", updates - sum(mine.frequency.values()), mine.distances.obsolete)


def _same(stream: str, what: str, first: int, second: int) -> None:
    if first != second:
        raise TraceError(f"stream {stream}: {first} {what} were there at first, then {second}")


def _exact(
    between: DataFrame, counted: dict[str, _Counted], purge: float
) -> dict[str, dict[str, int | None]]:
    """The distances behind the names, looked up in Spark where a bin holds several."""
    places = {
        (stream, name): None if rank is None else of_stream.distances.place(rank)
        for stream, of_stream in counted.items()
        for name, rank in of_stream.ranks(purge).items()
    }
    wide = defaultdict(list)
    for (stream, _), place in places.items():
        if place is not None and place[0].low < place[0].high:
            wide[stream].append(place[0].low)
    inside: defaultdict[str, Counter[int]] = defaultdict(Counter)
    if wide:
        picked = between.select("distances").mapInArrow(picking(dict(wide)), _DISTANCES)
        for row in picked.collect():
            inside[row["stream"]][row["value"]] += row["n"]
    found: dict[str, dict[str, int | None]] = {stream: {} for stream in counted}
    for (stream, name), place in places.items():
        found[stream][name] = None if place is None else _pick(place[0], place[1], inside[stream])
    return found


def _pick(bin_: Bin, rank: int, inside: Counter[int]) -> int:
    if bin_.low == bin_.high:
        return bin_.low
    return element(sorted((value, n) for value, n in inside.items() if bin_.low <= value <= bin_.high), rank)


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
        items=items_of(counted.frequency, sorted(counted.top, key=lambda item: (-item[1], item[0]))[:TOP]),
        bursts=sizes_of(bursts),
        purge=settings.purge,
        buffer=exact["purge"],
    )
