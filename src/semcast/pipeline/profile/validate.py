"""A first look at every row: which are bad, which streams there are, and whether their numbers are dense.

A stream is dense if its `seq` are first, first + 1, ..., last, each once. Counting shows most that are not;
for the rest, the xor of hashes of the numbers is compared with that of the numbers as they should be. An
unequal multiset of the same size has some number an even number of times, so that chance alone, 2^-128
with two hashes of 64 bits, could make the two agree.
"""

from collections.abc import Iterable
from dataclasses import dataclass
from itertools import groupby

from pyspark.sql import Column, DataFrame, Row, Window, WindowSpec
from pyspark.sql import functions as fn

from semcast.pipeline.frames import TEXT, WHOLE, small_frame
from semcast.pipeline.paths import local_path
from semcast.pipeline.profile.readers import reading
from semcast.pipeline.profile.sources import Format, TraceError

SAMPLE = 10
"""How many bad rows are shown."""

_MOST_STREAMS = 10_000
_SLICE = 1 << 16
"""How many numbers of a dense stream are made by one row."""


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
        return f"{local_path(self.file)}: {unit} {self.line}: {self.problem}"


@dataclass(frozen=True, slots=True)
class BadRows:
    """How many rows were left out, and the first of them."""

    count: int = 0
    sample: tuple[BadRow, ...] = ()


@dataclass(frozen=True, slots=True)
class StreamFacts:
    """What one pass over the rows of a stream tells."""

    stream: str
    first: int
    last: int
    kinds: dict[str, int]
    bytes: int
    began: float
    ended: float
    hashes: tuple[int, int]

    @property
    def messages(self) -> int:
        """Rows, of every kind."""
        return sum(self.kinds.values())


@dataclass(frozen=True, slots=True)
class Trace:
    """Rows that were checked."""

    blocks: DataFrame
    """The rows, and `block`: which piece of which file each comes from, null if that is not known."""

    streams: tuple[StreamFacts, ...]
    dense: bool
    """Whether in every stream `seq` counts the messages without a gap."""

    bad: BadRows

    slow: bool = False
    """Whether rows cost so much to read that who needs them twice should keep them."""

    @property
    def rows(self) -> DataFrame:
        """The columns of the schema, and `group` where it was asked for."""
        return self.blocks.drop("block")


def survey(
    judged: DataFrame, *, located: DataFrame, max_bad: int, expected: int | None = None, slow: bool = False
) -> Trace:
    """Check rows with the columns of the schema, and `block`, `file`, `line`, `nothing`, `good`, `problem`.

    Args:
        judged: the rows. `nothing` marks what is no row, `good` one that is good as far as it alone goes.
        located: the same, with file and line known.
        max_bad: how many rows may be bad.
        expected: how many rows there are, if that is known.
        slow: whether they cost much to read.
    """
    streams, bad_count, seen = _facts(judged)
    if expected is not None and seen != expected:
        raise TraceError(
            f"{expected} lines were there at first, then {seen}: the files changed while being read"
        )
    bad = BadRows(bad_count, _sample(located) if bad_count else ())
    _refuse(bad, max_bad)
    whole = bad_count == 0 and seen == sum(facts.messages for facts in streams)
    good = judged if whole else judged.where("good")
    loose = _loose(judged, streams)
    if loose:
        located = located.where("good")
        copies = _copies(located, loose)
        if copies.count:
            bad = BadRows(bad.count + copies.count, (bad.sample + copies.sample)[:SAMPLE])
            _refuse(bad, max_bad)
            good = _without_copies(located)
            streams, _, _ = _facts(good)
    if not streams:
        raise TraceError("no rows" if not bad.count else f"no rows but bad ones: {bad.sample[0]}")
    blocks = good.drop("file", "line", "nothing", "good", "problem")
    return Trace(blocks, streams, dense=not loose, bad=bad, slow=slow)


def _refuse(bad: BadRows, max_bad: int) -> None:
    if bad.count <= max_bad:
        return
    rows = "1 bad row" if bad.count == 1 else f"{bad.count} bad rows"
    more = [f"and {bad.count - len(bad.sample)} more"] if bad.count > len(bad.sample) else []
    shown = "".join(f"\n  {row}" for row in [*bad.sample, *more])
    raise TraceError(f"{rows}, more than the {max_bad} allowed (--max-bad):{shown}")


def _facts(judged: DataFrame) -> tuple[tuple[StreamFacts, ...], int, int]:
    """The streams, the number of bad rows, and the number of all rows."""
    counted = judged.groupBy(
        fn.when(fn.col("good"), fn.col("stream")).alias("stream"),
        fn.when(fn.col("good"), fn.col("kind")).alias("kind"),
        (~fn.col("good") & ~fn.col("nothing")).alias("bad"),
    ).agg(
        fn.count("*").alias("n"),
        fn.min("seq").alias("first"),
        fn.max("seq").alias("last"),
        fn.sum(fn.col("bytes").cast("double")).alias("bytes"),
        fn.min("ts").alias("began"),
        fn.max("ts").alias("ended"),
        *_hashes(),
    )
    rows = reading(counted.limit(_MOST_STREAMS + 1))
    if len(rows) > _MOST_STREAMS:
        raise TraceError(
            f"more than {_MOST_STREAMS} streams: is this the column that names the stream (--stream)?"
        )
    named = sorted((row for row in rows if row["stream"] is not None), key=_stream)
    streams = tuple(_stream_facts(name, list(mine)) for name, mine in groupby(named, _stream))
    return streams, sum(row["n"] for row in rows if row["bad"]), sum(row["n"] for row in rows)


def _stream(row: Row) -> str:
    return str(row["stream"])


def _hashes() -> list[Column]:
    return [
        fn.bit_xor(fn.xxhash64("seq")).alias("hash_a"),
        fn.bit_xor(fn.xxhash64("seq", fn.lit(1))).alias("hash_b"),
    ]


def _stream_facts(name: str, rows: list[Row]) -> StreamFacts:
    hash_a = hash_b = 0
    for row in rows:
        hash_a ^= row["hash_a"]
        hash_b ^= row["hash_b"]
    return StreamFacts(
        name,
        first=min(row["first"] for row in rows),
        last=max(row["last"] for row in rows),
        kinds={row["kind"]: row["n"] for row in sorted(rows, key=lambda row: str(row["kind"]))},
        bytes=int(sum(row["bytes"] for row in rows)),
        began=min(row["began"] for row in rows),
        ended=max(row["ended"] for row in rows),
        hashes=(hash_a, hash_b),
    )


def _loose(frame: DataFrame, streams: Iterable[StreamFacts]) -> list[str]:
    """The streams that are not dense."""
    loose = [facts.stream for facts in streams if facts.last - facts.first + 1 != facts.messages]
    counted = [facts for facts in streams if facts.stream not in loose]
    slices = [
        (facts.stream, low, min(low + _SLICE - 1, facts.last))
        for facts in counted
        for low in range(facts.first, facts.last + 1, _SLICE)
    ]
    if not slices:
        return loose
    numbers = (
        small_frame(frame.sparkSession, {"stream": TEXT, "low": WHOLE, "high": WHOLE}, slices)
        .select("stream", fn.explode(fn.sequence("low", "high")).alias("seq"))
        .groupBy("stream")
        .agg(*_hashes())
    )
    due = {row["stream"]: (row["hash_a"], row["hash_b"]) for row in numbers.collect()}
    return loose + [facts.stream for facts in counted if facts.hashes != due[facts.stream]]


def _sample(judged: DataFrame) -> tuple[BadRow, ...]:
    bad = judged.where(~fn.col("good") & ~fn.col("nothing")).select("file", "line", "problem")
    return tuple(BadRow(*row) for row in bad.orderBy("file", "line", "problem").limit(SAMPLE).collect())


def _copies(good: DataFrame, loose: list[str]) -> BadRows:
    """Rows whose number an earlier row of their stream has."""
    suspects = good.where(fn.col("stream").isin(loose))
    counted = suspects.groupBy("stream", "seq").agg(fn.count("*").alias("n")).where("n > 1")
    copies = counted.agg(fn.coalesce(fn.sum(fn.col("n") - 1), fn.lit(0))).collect()[0][0]
    if not copies:
        return BadRows()
    problem = fn.format_string("seq %d is in stream %s already", "seq", "stream")
    some = counted.orderBy("stream", "seq").limit(SAMPLE).select("stream", "seq")
    sample = (
        suspects.join(fn.broadcast(some), ["stream", "seq"])
        .withColumn("nth", fn.row_number().over(_same_number()))
        .where("nth > 1")
        .select("file", "line", problem.alias("problem"))
        .orderBy("file", "line", "problem")
        .limit(SAMPLE)
    )
    return BadRows(copies, tuple(BadRow(*row) for row in sample.collect()))


def _without_copies(good: DataFrame) -> DataFrame:
    """The first row of each number, in the order of the files; they do not lie as in the files any more."""
    first = good.withColumn("nth", fn.row_number().over(_same_number())).where("nth = 1").drop("nth")
    return first.withColumn("block", fn.lit(None).cast("long"))


def _same_number() -> WindowSpec:
    return Window.partitionBy("stream", "seq").orderBy("file", "line", "key", "kind", "ts", "bytes")
