"""The index of some runs: processes, senders, stays and segments by number, and the tables folded by them.

Every judgement about messages starts here. The rows about messages are read once, and folded (`folds.py`).
"""

from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from functools import cached_property
from pathlib import Path

import numpy as np
import pyarrow as pa
from pyspark.sql import Column, DataFrame, Row, SparkSession
from pyspark.sql import functions as fn
from pyspark.sql.pandas.types import from_arrow_schema

from semcast.history import Kind, RunInfo
from semcast.pipeline.frames import FLAG, MEMBER, TEXT, WHOLE, small_frame
from semcast.pipeline.verify.batches import ROWS, over_batches, over_files, read_here, tasks_for
from semcast.pipeline.verify.counting import Total
from semcast.pipeline.verify.events import annotated
from semcast.pipeline.verify.folds import COLUMNS as FOLDED
from semcast.pipeline.verify.folds import (
    CONTENTS,
    DELIVERED,
    FORWARDS,
    GROWING,
    INDEX,
    INDEX_BITS,
    OWN,
    PRINT,
    SENT,
    SENT_SAFE,
    STEPS,
    Fold,
    Ints,
    folding,
    longs,
)
from semcast.pipeline.verify.stays import CHANGES, Segment, Stays, Who, changes, skeletons
from semcast.pipeline.verify.totals import census, check_all_read, rows_of_kind
from semcast.pipeline.verify.violations import COLUMNS, offence

_SEGMENT = dict.fromkeys(("segment", "who", "stay", "inside"), WHOLE) | {"outside": FLAG}

Keep = Callable[[DataFrame], DataFrame]
"""Works a table out, once."""


class RunIndex:
    """Some runs by stays. Processes, senders and stays have numbers, the same in all tables."""

    def __init__(
        self,
        spark: SparkSession,
        events: DataFrame,
        totals: Sequence[Total],
        infos: Mapping[str, RunInfo],
        keep: Keep,
        files: Sequence[Path],
        *,
        few: bool = False,
    ) -> None:
        """Rows about messages are read from files; where they are few, by the driver."""
        self.spark = spark
        self.events = events
        self.totals = totals
        self.infos = infos
        self.keep = keep
        self._files = files
        self.in_one_task = few
        """Whether there are so few rows that one task has them all."""
        self.stays = Stays(skeletons(infos, self._changes()))

    def _changes(self) -> list[Row]:
        """The rows that say who is where; most runs of plain multicast have none."""
        if not self.with_kinds(*CHANGES):
            return []
        rows = changes(self.events).collect()
        check_all_read("views and crashes", self.totals, CHANGES, len(rows))
        return rows

    def with_kinds(self, *kinds: Kind) -> set[str]:
        """The runs with rows of any of these kinds."""
        values = {kind.value for kind in kinds}
        return {each.run for each in self.totals if each.kind in values}

    @cached_property
    def buffers(self) -> DataFrame:
        """How full buffers were."""
        return self._all_of(Kind.BUFFER)

    @cached_property
    def states(self) -> DataFrame:
        """The states of applications."""
        return self._all_of(Kind.APPLY)

    @cached_property
    def receipts(self) -> DataFrame:
        """What was purged, and because of what."""
        return self._all_of(Kind.PURGE)

    def _all_of(self, kind: Kind) -> DataFrame:
        return rows_of_kind(self.events, self.totals, kind, self.keep)

    @cached_property
    def sizes(self) -> Mapping[Who, int]:
        """How many rows each process has."""
        return {who: life.rows for who, life in census(self.totals).items()}

    @property
    def nowhere(self) -> set[str]:
        """The runs in which no configuration was recorded."""
        return {run for run, known in self.stays.runs.items() if not known.stays}

    @cached_property
    def everybody(self) -> list[Who]:
        """Who does something, whose messages are there, or who is said to be a member."""
        people: set[Who] = {(each.run, each.process) for each in self.totals}
        people.update((each.run, each.sender) for each in self.totals if each.sender is not None)
        for run, known in self.stays.runs.items():
            people.update((run, process) for process in known.lives)
            people.update((run, member) for stay in known.stays for member in stay.members)
        return sorted(people)

    @cached_property
    def numbers(self) -> dict[Who, int]:
        """Their numbers."""
        return {who: number for number, who in enumerate(self.everybody)}

    @cached_property
    def people(self) -> DataFrame:
        """The same as a table: (run, member, who)."""
        rows = [(run, (who.name, who.incarnation), n) for n, (run, who) in enumerate(self.everybody)]
        return small_frame(self.spark, {"run": TEXT, "member": MEMBER, "who": WHOLE}, rows)

    @cached_property
    def annotated(self) -> DataFrame:
        """The messages that say something about obsolescence: (run, sender, seq, note)."""
        return self.keep(annotated(self.events))

    @cached_property
    def segments(self) -> list[Segment]:
        """What the rows of each process are cut into, process by process and in their order."""
        return self.stays.segments(self.everybody)

    @cached_property
    def delivered(self) -> DataFrame:
        """Spans of what was delivered.

        (segment, what, view, author, first, last, who, stay, inside, outside)

        `stay` and `inside`, the number of its view, are null before the first view; `outside` is so there,
        and after a crash.
        """
        return self._spans(DELIVERED)

    @cached_property
    def sent(self) -> DataFrame:
        """Spans of what was sent; `view` is the number it was sent with, below 0 if there was none."""
        return self._spans(SENT)

    @cached_property
    def safe(self) -> DataFrame:
        """Of what was sent, what was sent as safe, once more."""
        return self._spans(SENT_SAFE)

    @cached_property
    def steps(self) -> DataFrame:
        """Of each segment its first delivery, if any, and its latest time: (segment, first, at)."""
        rows = self._moves.where(fn.col("what") == STEPS).groupBy("segment")
        told = rows.agg(fn.min("first").alias("first"), fn.max("last").alias("at"))
        return told.select("segment", fn.when(fn.col("first") < INDEX, fn.col("first")).alias("first"), "at")

    @cached_property
    def forwards(self) -> DataFrame:
        """Stretches in which streams go forwards: (who, sent, author, begin, end, first, last)."""
        rows = self._moves.where(fn.col("what") == FORWARDS)
        return rows.select("who", fn.col("mark").alias("sent"), "author", "begin", "end", "first", "last")

    @cached_property
    def growing(self) -> DataFrame:
        """Stretches in which positions grow: (segment, who, begin, end, first, last)."""
        rows = self._moves.where(fn.col("what") == GROWING)
        return rows.select("segment", "who", "begin", "end", "first", "last")

    @cached_property
    def own(self) -> DataFrame:
        """What processes did with their own messages, stretch by stretch: (who, begin, end, first, last)."""
        rows = self._moves.where(fn.col("what") == OWN)
        return rows.select("who", "begin", "end", "first", "last")

    @cached_property
    def contents(self) -> DataFrame:
        """CRC and size of what was sent and delivered: (who, author, sent, begin, end, crc, size)."""
        rows = self._moves.where(fn.col("what") == CONTENTS)
        values = [
            fn.col(old).alias(new) for old, new in (("mark", "sent"), ("first", "crc"), ("last", "size"))
        ]
        return rows.select("who", "author", "begin", "end", *values)

    @cached_property
    def prints(self) -> DataFrame:
        """How many messages were delivered in a segment, how many without a position, with fingerprints.

        (segment, author, sent, count, without, messages, positions); `sent` is 1 for what was sent, `ON_RING`
        for what was delivered at positions of a ring.
        """
        rows = self._moves.where(fn.col("what") == PRINT).withColumnRenamed("mark", "sent")
        return rows.groupBy("segment", "author", "sent").agg(
            fn.sum("begin").alias("count"),
            fn.sum("end").alias("without"),
            fn.sum("first").alias("messages"),
            fn.sum("last").alias("positions"),
        )

    def _spans(self, what: int) -> DataFrame:
        rows = self._moves.where(fn.col("what") == what).withColumnRenamed("mark", "view")
        columns = ("segment", "what", "view", "author", "first", "last", "who", "stay", "inside", "outside")
        return rows.select(*columns)

    def over_messages(
        self, fold: Fold, schema: pa.Schema, *, in_order: bool = False, vectors: bool = False
    ) -> DataFrame:
        """What a function makes of all rows about messages, in batches with the columns of `folds.Rows`.

        With `in_order`, the rows of each process come one after the other; vector times, which take long to
        read, are there only with `vectors`.
        """
        if in_order:
            rows = self._over(iter, ROWS, vectors=vectors)
            who = fn.shiftright("place", INDEX_BITS)
            tasks = 2 if self.in_one_task else tasks_for(self.spark, len(self.everybody))
            apart = rows.repartition(tasks, who)
            return apart.sortWithinPartitions("place").mapInArrow(fold, from_arrow_schema(schema))
        return self._over(fold, schema, vectors=vectors)

    def _over(self, fold: Fold, schema: pa.Schema, *, vectors: bool) -> DataFrame:
        if self.in_one_task:
            return over_batches(self.spark, iter(self._batches), fold, schema)
        return over_files(self.spark, self._files, self.infos, self.numbers, fold, schema, vectors=vectors)

    @cached_property
    def _batches(self) -> list[pa.RecordBatch]:
        """Of few rows all about messages: to open files again and again is most of the work."""
        return read_here(self._files, self.infos, self.numbers)

    def apply(
        self, rows: DataFrame, key: str, work: Callable[[pa.Table], pa.Table], schema: pa.Schema
    ) -> DataFrame:
        """What a function makes of all rows with the same key."""
        return rows.groupBy(key).applyInArrow(work, from_arrow_schema(schema))

    @cached_property
    def starts(self) -> Ints:
        """The places where segments begin."""
        places = [(self.numbers[segment.who] << INDEX_BITS) + segment.first for segment in self.segments]
        return np.array(places, np.int64)

    @cached_property
    def _moves(self) -> DataFrame:
        table = small_frame(self.spark, _SEGMENT, self._segment_rows())
        folded = self.over_messages(folding(self.starts), longs(*FOLDED))
        moves = self.keep(folded.join(fn.broadcast(table), "segment"))
        read = moves.where(fn.col("what") == STEPS).agg(fn.sum("begin")).collect()[0][0] or 0
        check_all_read("messages", self.totals, (Kind.MULTICAST, Kind.DELIVER), read)
        return moves

    def _segment_rows(self) -> Iterator[tuple[int | bool | None, ...]]:
        for number, segment in enumerate(self.segments):
            yield number, self.numbers[segment.who], segment.stay, segment.view, segment.outside

    def table(self, rows: Iterable[tuple[int | None, ...]], *columns: str) -> DataFrame:
        """A small table of numbers."""
        return small_frame(self.spark, dict.fromkeys(columns, WHOLE), rows)

    def of_senders(self, rows: DataFrame) -> DataFrame:
        """Rows (debtor, author, first, last) with run and sender."""
        authors = self.people.select("run", fn.col("member").alias("sender"), fn.col("who").alias("author"))
        return rows.join(fn.broadcast(authors), "author").select("debtor", "run", "sender", "first", "last")

    def by_name(self, spans: DataFrame) -> DataFrame:
        """Spans with who and author as (run, process, sender, first, last)."""
        return self._with_names(spans).select("run", "process", "sender", "first", "last")

    def streams(self, rows: DataFrame) -> DataFrame:
        """Rows (who, sent, author) as (run, process, kind, sender)."""
        kind = fn.when(fn.col("sent") == 1, Kind.MULTICAST.value).otherwise(Kind.DELIVER.value)
        return self._with_names(rows).select("run", "process", kind.alias("kind"), "sender")

    def named(self, found: DataFrame) -> DataFrame:
        """Violations with members instead of numbers."""
        return self._with_names(found).select(*COLUMNS)

    def _with_names(self, rows: DataFrame) -> DataFrame:
        """Rows with who and author, which may be null, also with run, process and sender."""
        process = self.people.select("run", fn.col("member").alias("process"), "who")
        sender = self.people.select(fn.col("member").alias("sender"), fn.col("who").alias("author"))
        return rows.join(fn.broadcast(process), "who").join(fn.broadcast(sender), "author", "left")


def numbered_violations(
    rows: DataFrame,
    name: str | Column,
    reason: str | Column,
    *,
    times: Column | None = None,
    index: Column | None = None,
) -> DataFrame:
    """Rows with who, author, first and last as violations of one property, still in numbers."""
    return rows.select("who", "author", *offence(name, reason, times, index))


def with_number(rows: DataFrame, people: DataFrame, column: str) -> DataFrame:
    """With `who`, the number of the member in a column."""
    return _joined(rows, people.select(_key("member"), "who"), column)


def with_author(rows: DataFrame, people: DataFrame) -> DataFrame:
    """With `author`, the number of the sender."""
    return _joined(rows, people.select(_key("member"), fn.col("who").alias("author")), "sender")


def _joined(rows: DataFrame, numbers: DataFrame, column: str) -> DataFrame:
    """By a hash of run and member: Spark finds a number far sooner than names."""
    return rows.join(fn.broadcast(numbers), _key(column) == fn.col("key")).drop("key")


def _key(member: str) -> Column:
    return fn.xxhash64("run", member).alias("key")
