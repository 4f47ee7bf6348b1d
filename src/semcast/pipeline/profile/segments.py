"""A trace in segments that follow each other: folded where they lie (`partial.py`), merged where they meet.

Files are mostly in order already, so that nothing has to be sorted: the driver looks whether the segments of
each stream lie one after the other, and then knows how many messages stand before each. If they do not, or if
numbers are there twice, rows are sorted over contiguous partitions and folded again.
"""

from collections import Counter, defaultdict
from collections.abc import Iterable, Sequence
from contextlib import ExitStack
from dataclasses import dataclass, replace
from functools import reduce

import pyarrow as pa
from pyspark.sql import DataFrame, Window
from pyspark.sql import functions as fn
from pyspark.sql.pandas.types import from_arrow_schema

from semcast.pipeline.failures import failures, reason
from semcast.pipeline.frames import keep
from semcast.pipeline.profile.merge import MERGED, merging
from semcast.pipeline.profile.partial import PARTIAL, SAMPLE, Cut, Segment, decoded
from semcast.pipeline.profile.read import FileRows, Trace
from semcast.pipeline.profile.rowgroups import reading
from semcast.pipeline.profile.scan import ROW, Block, Counted, folding_sorted, numbering, scanning
from semcast.pipeline.profile.sources import TraceError
from semcast.pipeline.profile.validate import (
    BadRows,
    StreamFacts,
    StreamSegment,
    bad_rows,
    blocks_of,
    check_files,
    refuse,
    streams_of,
)

_PARTIAL, _MERGED = from_arrow_schema(PARTIAL), from_arrow_schema(MERGED)
_PLACED = [pa.field("file", pa.string()), pa.field("line", pa.int64())]
_SCANNED = ("file", "block", "stream", "seq", "ts", "key", "bytes", "kind", "blank", "good", "problem")


@dataclass(frozen=True, slots=True)
class Scan:
    """What a pass over the rows found, every one of which was checked."""

    partials: DataFrame
    """The rows of `PARTIAL`."""

    streams: tuple[StreamFacts, ...]
    bad: BadRows
    blocks: dict[Block, Counted]
    cut: Cut
    copies: int = 0
    """How many rows were left out since their number is that of an earlier row."""

    @property
    def dense(self) -> bool:
        """Whether in every stream numbers count the messages without a gap."""
        return all(facts.dense for facts in self.streams)


def scan(trace: Trace, cut: Cut, kept: ExitStack) -> Scan:
    """Read, check and fold every row.

    Raises:
        TraceError: rows cannot be read, or more than `max_bad` are bad.
    """
    partials, segments = _fold(trace, cut, kept, row_groups=True)
    if any(segment.bad > len(segment.sample) == 0 for segment in segments):
        # Row groups with bad rows: Spark's reader says what is wrong with them, and where.
        partials, segments = _fold(trace, cut, kept, row_groups=False)
    check_files(segments, trace.sources)
    blocks = blocks_of(segments)
    bad = bad_rows(segments, blocks)
    refuse(bad, trace.max_bad)
    found = Scan(partials, streams_of(segments, blocks, trace.sources), bad, blocks, cut)
    if not all(facts.in_order for facts in found.streams):
        found = _sorted(trace, found, kept)
    if not found.streams:
        raise TraceError("no rows" if not bad.count else f"no rows but bad ones: {bad.sample[0]}")
    return found


def merged(scan: Scan) -> DataFrame:
    """The rows of `MERGED`."""
    before: defaultdict[int, dict[str, int]] = defaultdict(dict)
    for facts in scan.streams:
        messages = 0
        for each in facts.stretches:
            assert facts.stream not in before[each.number], "two segments have one number"
            before[each.number][facts.stream] = messages
            messages += each.part.n
    shares = scan.partials.where("share is not null").repartition(scan.cut.shares, "share")
    return shares.select("number", "items", "distances").mapInArrow(merging(dict(before)), _MERGED)


def bursts(scan: Scan) -> dict[str, Counter[int]]:
    """For each stream, how many bursts have how many messages."""
    return {facts.stream: _bursts(facts.stretches, scan.cut.gap) for facts in scan.streams}


def rows(trace: Trace, scan: Scan, *, group: bool = False) -> DataFrame:
    """The good rows, in the columns of the schema, and `group` if asked for."""
    columns = [*ROW, *([pa.field("group", pa.string())] if group else [])]
    found = _located(trace.tables, scan.blocks, pa.schema([*columns, *_PLACED]))
    if scan.copies:
        nth = fn.row_number().over(Window.partitionBy("stream", "seq").orderBy(*_FIRST))
        found = found.withColumn("nth", nth).where("nth = 1")
    return found.select(*(field.name for field in columns))


_FIRST = ("file", "line", "key", "kind", "ts", "bytes")
"""The order in which the first of several rows with the same number is the one that counts."""


def _fold(trace: Trace, cut: Cut, kept: ExitStack, *, row_groups: bool) -> tuple[DataFrame, list[Segment]]:
    frames = []
    before = 0
    for table in trace.tables:
        if row_groups and table.row_groups is not None:
            tasks, read = reading(table.row_groups, cut, before)
            before += tasks
            numbers = trace.spark.range(0, tasks, 1, max(1, tasks))
            frames.append(numbers.mapInArrow(read, _PARTIAL))
        else:
            judged = table.judged()
            columns = [name for name in _SCANNED if name in judged.columns]
            frames.append(judged.select(*columns).mapInArrow(scanning(table.layout, cut), _PARTIAL))
    partials = keep(_together(frames), kept)
    return partials, _segments(partials)


def _segments(partials: DataFrame) -> list[Segment]:
    told = partials.where("share is null").select("segment")
    try:
        return [decoded(bytes(row["segment"])) for row in told.collect()]
    except failures() as error:
        raise TraceError(f"cannot be read: {reason(error)}") from error


def _sorted(trace: Trace, found: Scan, kept: ExitStack) -> Scan:
    """Fold rows with numbers once more, sorted by them; of equal numbers the first row counts."""
    cut = found.cut
    tables = [table for table in trace.tables if table.layout.numbered]
    ordered = (
        _located(tables, found.blocks, pa.schema([*ROW, *_PLACED]))
        .repartitionByRange(cut.shares, "stream", "seq")
        .sortWithinPartitions("stream", "seq", *_FIRST)
    )
    again = ordered.mapInArrow(folding_sorted(cut), _PARTIAL)
    partials = keep(again.union(found.partials.where("not numbered")), kept)
    segments = _segments(partials)
    copies = bad_rows([each for each in segments if each.numbered], {})
    bad = BadRows(found.bad.count + copies.count, (*found.bad.sample, *copies.sample)[:SAMPLE])
    refuse(bad, trace.max_bad)
    streams = streams_of(segments, found.blocks, trace.sources)
    _compare(found.streams, streams, copies.count)
    return replace(found, partials=partials, streams=streams, bad=bad, copies=copies.count)


def _compare(before: Iterable[StreamFacts], after: Iterable[StreamFacts], copies: int) -> None:
    """TraceError if sorting has lost or found a row."""
    first, second = ({facts.stream: facts.messages for facts in each} for each in (before, after))
    same = first.keys() == second.keys() and all(second[name] <= first[name] for name in first)
    if not same or sum(first.values()) - copies != sum(second.values()):
        raise TraceError(
            f"{sum(first.values())} rows were there at first, then {sum(second.values()) + copies}:"
            " the files changed while being read"
        )
    assert all(facts.in_order for facts in after)


def _located(tables: Iterable[FileRows], blocks: dict[Block, Counted], schema: pa.Schema) -> DataFrame:
    """The good rows with `file` and `line`, where those are known."""
    return _together([_located_table(table, blocks, schema) for table in tables])


def _located_table(table: FileRows, blocks: dict[Block, Counted], schema: pa.Schema) -> DataFrame:
    judged = table.judged()
    if table.text or table.layout.streams is not None or not table.layout.numbered:
        files = {source.path for source in table.sources}
        mine = {block: counted for block, counted in blocks.items() if block[0] in files}
        scanned = judged.select(*(name for name in judged.columns if name != "problem"))
        number = numbering(table.layout, mine if table.text else None, schema)
        return scanned.mapInArrow(number, from_arrow_schema(schema))
    if "line" not in judged.columns:
        judged = judged.withColumn("line", fn.lit(None).cast("long"))
    return judged.where("good").select(*schema.names)


def _bursts(stretches: Sequence[StreamSegment], gap: float) -> Counter[int]:
    """Those inside of segments, and those that touch an edge."""
    counts = Counter[int]()
    size = 0
    for number, part in enumerate(each.part for each in stretches):
        counts.update(part.bursts)
        if number and abs(part.began - stretches[number - 1].part.ended) > gap:
            counts[size] += 1
            size = 0
        size += part.head
        if part.head < part.n:
            counts[size] += 1
            size = part.tail
    counts[size] += 1
    return counts


def _together(frames: list[DataFrame]) -> DataFrame:
    return reduce(DataFrame.union, frames)
