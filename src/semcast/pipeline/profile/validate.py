"""What the first pass over a trace says of it: which rows are bad, and which streams there are."""

from collections import defaultdict
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from itertools import pairwise

from semcast.pipeline.profile.partial import KINDS, MOST_STREAMS, SAMPLE, Part, Segment
from semcast.pipeline.profile.scan import ORDINAL_BITS, Block, Counted
from semcast.pipeline.profile.sources import Format, Source, TraceError


@dataclass(frozen=True, slots=True)
class BadRow:
    """Where a row is, and why it cannot be used."""

    file: str | None
    line: int | None
    problem: str

    def __str__(self) -> str:
        if self.file is None:
            return self.problem
        unit = "row" if self.file.lower().endswith(Format.PARQUET.value) else "line"
        return f"{self.file}: {unit} {self.line}: {self.problem}"


@dataclass(frozen=True, slots=True)
class BadRows:
    """How many rows were left out, and the first of them."""

    count: int = 0
    sample: tuple[BadRow, ...] = ()


@dataclass(frozen=True, slots=True)
class StreamSegment:
    """The messages of a stream in one segment, in the order of the stream."""

    number: int
    """The segment."""

    first: int
    last: int
    """Their numbers; without those, they count in the order of the files."""

    part: Part


@dataclass(frozen=True, slots=True)
class StreamFacts:
    """What one pass over the rows of a stream tells."""

    stream: str
    stretches: tuple[StreamSegment, ...]
    """In order; see `in_order`."""

    first: int
    last: int
    kinds: dict[str, int]
    bytes: int
    began: float
    ended: float

    @property
    def messages(self) -> int:
        """Rows, of every kind."""
        return sum(self.kinds.values())

    @property
    def in_order(self) -> bool:
        """Whether no two segments overlap, and no number is there twice."""
        return not any(each.part.copies for each in self.stretches) and all(
            before.last < after.first for before, after in pairwise(self.stretches)
        )

    @property
    def dense(self) -> bool:
        """Whether numbers count the messages without a gap."""
        return self.last - self.first + 1 == self.messages


def blocks_of(segments: Iterable[Segment]) -> dict[Block, Counted]:
    """How many rows each block has, and which line it begins with."""
    rows: defaultdict[str | None, defaultdict[int, int]] = defaultdict(lambda: defaultdict(int))
    for segment in sorted(segments, key=lambda segment: segment.start):
        assert segment.file is None or segment.start == rows[segment.file][segment.block]
        rows[segment.file][segment.block] += segment.rows
    blocks = {}
    for file, of_file in rows.items():
        line = 1
        for block, count in sorted(of_file.items()):
            blocks[file, block] = Counted(line, count)
            line += count
    return blocks


def check_files(segments: Iterable[Segment], sources: Iterable[Source]) -> None:
    """TraceError if a file of text, or a folder of Parquet files, holds no rows."""
    filled: defaultdict[str | None, int] = defaultdict(int)
    for segment in segments:
        filled[segment.file] += segment.rows - segment.empty
    roots: defaultdict[str, int] = defaultdict(int)
    for source in sources:
        roots[source.root if source.format is Format.PARQUET else source.path] += filled[source.path]
    for name, rows in roots.items():
        if not rows:
            raise TraceError(f"{name} holds no rows")


def bad_rows(segments: Iterable[Segment], blocks: Mapping[Block, Counted]) -> BadRows:
    """How many rows are bad, and the first of them."""
    bad = [segment for segment in segments if segment.bad]
    sample = []
    for segment in bad:
        for each in segment.sample:
            if segment.file is None:
                sample.append(BadRow(each.file, None if each.file is None else each.place, each.problem))
            else:
                line = blocks[segment.file, segment.block].line + each.place
                sample.append(BadRow(segment.file, line, each.problem))
    sample.sort(key=lambda row: (row.file or "", row.line or 0, row.problem))
    return BadRows(sum(segment.bad for segment in bad), tuple(sample[:SAMPLE]))


def refuse(bad: BadRows, max_bad: int) -> None:
    """TraceError if there are more bad rows than allowed."""
    if bad.count <= max_bad:
        return
    rows = "1 bad row" if bad.count == 1 else f"{bad.count} bad rows"
    more = [f"and {bad.count - len(bad.sample)} more"] if bad.count > len(bad.sample) else []
    shown = "".join(f"\n  {row}" for row in [*bad.sample, *more])
    raise TraceError(f"{rows}, more than the {max_bad} allowed (--max-bad):{shown}")


def streams_of(
    segments: Sequence[Segment], blocks: Mapping[Block, Counted], sources: Sequence[Source]
) -> tuple[StreamFacts, ...]:
    """The streams, by name."""
    ordinals = {source.path: source.ordinal for source in sources}
    if any(segment.streams > MOST_STREAMS for segment in segments):
        raise _too_many_streams()
    found: defaultdict[str, list[StreamSegment]] = defaultdict(list)
    numbered: dict[str, bool] = {}
    for segment in segments:
        shift = 0
        if not segment.numbered:
            file = ordinals[segment.file or ""] << ORDINAL_BITS
            shift = file + blocks[segment.file, segment.block].line
        for part in segment.parts:
            if numbered.setdefault(part.stream, segment.numbered) != segment.numbered:
                raise TraceError(f"stream {part.stream}: some of its rows have a seq, others have none")
            found[part.stream].append(
                StreamSegment(segment.number, part.first + shift, part.last + shift, part)
            )
    if len(found) > MOST_STREAMS:
        raise _too_many_streams()
    return tuple(_stream_facts(name, found[name]) for name in sorted(found))


def _too_many_streams() -> TraceError:
    return TraceError(
        f"more than {MOST_STREAMS} streams: is this the column that names the stream (--stream)?"
    )


def _stream_facts(name: str, stretches: list[StreamSegment]) -> StreamFacts:
    ordered = sorted(stretches, key=lambda each: (each.first, each.last))
    parts = [each.part for each in ordered]
    kinds = {kind: sum(part.kinds[place] for part in parts) for place, kind in enumerate(KINDS)}
    return StreamFacts(
        name,
        tuple(ordered),
        first=ordered[0].first,
        last=max(each.last for each in ordered),
        kinds={kind: kinds[kind] for kind in sorted(kinds) if kinds[kind]},
        bytes=sum(part.bytes for part in parts),
        began=min(part.earliest for part in parts),
        ended=max(part.latest for part in parts),
    )
