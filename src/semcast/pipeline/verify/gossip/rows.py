"""The rows of gossip runs by number; what single rows and their moments tell, and what tasks are given.

Single rows tell of starts, waiting senders, what a sender forgot before it was logged, what came back into a
log, and what was collected too early. The checkers judge the rest themselves, a logger, a stream or a range
of a stream in one task: positions of a log by the rows of its logger, the others by those of a stream and by
the outline of the run. No row of another log, or of another stream, is looked at. Where each message is
judged by itself, streams are cut into ranges, so that one of any length can be judged.
"""

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property, reduce

from pyspark.sql import Column, DataFrame, Window
from pyspark.sql import functions as fn

from semcast.core.ids import MemberId
from semcast.history.columns import SCHEMA
from semcast.history.schema import Kind
from semcast.pipeline.frames import united
from semcast.pipeline.verify import replacements
from semcast.pipeline.verify.events import of_kind
from semcast.pipeline.verify.folds import INDEX_BITS
from semcast.pipeline.verify.forms import Findings, Given
from semcast.pipeline.verify.gossip.outline import Outline
from semcast.pipeline.verify.memory import Checker, Task, judge_in_parts
from semcast.pipeline.verify.obligations import chunked, overlay, without
from semcast.pipeline.verify.run_index import RunIndex, numbered_violations, with_author, with_number
from semcast.specs.gossip.again import gossip_again
from semcast.specs.gossip.filtering import gossip_filter
from semcast.specs.gossip.kinds import (
    ASSURED,
    BLOCKED,
    CLOSED,
    COLLECT,
    KEPT,
    LETGO,
    LOG,
    LOGGER,
    LOST,
    OPENED,
    PLACED,
    STABLE,
    THROUGH,
)
from semcast.specs.gossip.logs import (
    gossip_chains,
    gossip_closed,
    gossip_compacted,
    gossip_durable,
    gossip_logged,
)
from semcast.specs.gossip.positions import gossip_positions
from semcast.specs.gossip.starting import gossip_beginning

_SPAN = ("debtor", "author", "first", "last")
_BIN = 64
_SETTLED = (Kind.DELIVER, Kind.PURGE, LOST)


class GossipRows:
    """The rows about messages, with processes and senders by number, and the small tables beside them."""

    def __init__(self, run_index: RunIndex, known: dict[str, Outline], positions: DataFrame) -> None:
        self.run_index = run_index
        self.known = known
        self.positions = positions
        """As in `Given`."""

    def number(self, run: str, process: MemberId) -> int:
        """Of a process."""
        return self.run_index.numbers[run, process]

    def streams(self, run: str) -> list[MemberId]:
        """All senders of a run: everybody who has a number might be one."""
        return [who for of, who in self.run_index.everybody if of == run]

    def of(self, *kinds: Kind) -> DataFrame:
        """Rows of some kinds: (who, author, kind, level, members, index, at_ns, first, last)."""
        events = [self.run_index.receipts] if Kind.PURGE in kinds else []
        others = [kind for kind in kinds if kind is not Kind.PURGE]
        if others:
            events.append(of_kind(self.run_index.events, *others))
        rows = with_number(united(events), self.run_index.people, "process")
        columns = ("kind", "level", "members", "index", "at_ns", fn.col("seq").alias("first"), "last")
        return with_author(rows, self.run_index.people).select("who", "author", *columns)

    @cached_property
    def delivered(self) -> DataFrame:
        """Spans of what was delivered: (who, author, first, last)."""
        return self.run_index.delivered.select("who", *_SPAN[1:])

    @cached_property
    def sent(self) -> DataFrame:
        """Spans of what was multicast: (author, first, last)."""
        return self.run_index.sent.select(*_SPAN[1:])

    @cached_property
    def logs(self) -> dict[tuple[str, int], int]:
        """The logs of all runs, by number."""
        cases = [(run, place) for run, each in self.known.items() for place in range(len(each.ledger.logs))]
        return {case: number for number, case in enumerate(cases)}

    @cached_property
    def in_logs(self) -> DataFrame:
        """What loggers did to their logs: (log, lost, rank, who, author, kind, index, at_ns, first, last)."""
        table = [
            (
                self.number(run, part.process),
                part.first,
                part.last,
                part.rank,
                self.logs[run, part.log],
                int(each.ledger.logs[part.log].gone),
            )
            for run, each in self.known.items()
            for part in each.log_parts()
        ]
        parts = self.run_index.table(table, "who", "from", "upto", "rank", "log", "lost")
        rows = self.of(LOG, KEPT, COLLECT).join(fn.broadcast(parts), "who")
        inside = rows.where(fn.col("index").between(fn.col("from"), fn.col("upto")))
        return inside.drop("from", "upto", "level", "members")

    @cached_property
    def kept(self) -> DataFrame:
        """What was ever logged on a disk that was not lost: (author, first, last)."""
        logged = self.in_logs.where((fn.col("kind") != COLLECT.value) & (fn.col("lost") == 0))
        return self.run_index.keep(anybody(logged))


def anybody(rows: DataFrame) -> DataFrame:
    """What is in any of these spans: (author, first, last)."""
    spans = chunked(rows.select(*_SPAN[1:], fn.lit(1).alias("there")))
    return overlay(spans, ["author", "chunk"], ["there"]).select(*_SPAN[1:])


def place_in_log(name: str) -> Column:
    """Where a row stands among all of its logger, whose incarnations follow each other."""
    return (fn.shiftleft("rank", INDEX_BITS) + fn.col("index")).alias(name)


def _in_runs(rows: GossipRows, runs: list[str]) -> DataFrame:
    """The processes of some runs: (who)."""
    numbers = [(number,) for number, (run, _) in enumerate(rows.run_index.everybody) if run in set(runs)]
    return fn.broadcast(rows.run_index.table(numbers, "who"))


def _not_started(rows: GossipRows, name: str, runs: list[str]) -> DataFrame:
    """Deliveries at or before the start of their session in the stream, or without one."""
    starts = [
        (rows.number(run, process), rows.number(run, stream), start.index, start.seq)
        for run in runs
        for (process, stream), start in rows.known[run].starts().items()
    ]
    table = fn.broadcast(rows.run_index.table(starts, "who", "author", "since", "begin"))
    delivered = rows.of(Kind.DELIVER).join(_in_runs(rows, runs), "who", "left_semi")
    known = delivered.join(table, ["who", "author"], "left")
    early = (
        fn.col("since").isNull() | (fn.col("index") < fn.col("since")) | (fn.col("first") <= fn.col("begin"))
    )
    wrong = known.where(early).withColumn("last", fn.col("first"))
    return numbered_violations(wrong, name, "was delivered without a start before it", index=fn.col("index"))


def _waiting(rows: GossipRows, name: str, runs: list[str]) -> DataFrame:
    """Senders that wait for loggers though they have let go all that they sent."""
    blocked = with_number(of_kind(rows.run_index.events, BLOCKED), rows.run_index.people, "process")
    blocked = blocked.where(fn.col("level") == LOGGER).join(_in_runs(rows, runs), "who", "left_semi")
    moves = rows.of(Kind.MULTICAST, LETGO).join(blocked.select("who").distinct(), "who", "left_semi")
    columns = ("who", "index", "kind", "last")
    before = Window.partitionBy("who").orderBy("index").rowsBetween(Window.unboundedPreceding, 0)
    sent, gone = (
        fn.coalesce(fn.max(fn.when(fn.col("kind") == kind.value, fn.col("last"))).over(before), fn.lit(0))
        for kind in (Kind.MULTICAST, LETGO)
    )
    known = moves.select(*columns).union(blocked.select(*columns))
    marked = known.select(*columns, sent.alias("sent"), gone.alias("gone"))
    wrong = marked.where((fn.col("kind") == BLOCKED.value) & (fn.col("sent") <= fn.col("gone")))
    cases = wrong.select("who", "index", fn.lit(None).cast("long").alias("author"), *_nothing())
    return numbered_violations(cases, name, "waits though all it sent is logged", index=fn.col("index"))


def _nothing() -> list[Column]:
    return [fn.lit(0).alias("first"), fn.lit(0).alias("last")]


def _by_then(asked: DataFrame, done: DataFrame, same: list[str]) -> DataFrame:
    """What of rows (debtor, author, at_ns, first, last) lies in other rows that are not later."""
    one = chunked(asked, chunk=_BIN)
    other = chunked(done, chunk=_BIN).withColumnsRenamed({"at_ns": "when", "first": "from", "last": "upto"})
    first, last = fn.greatest("first", "from"), fn.least("last", "upto")
    return (
        one.join(other, [*same, "chunk"])
        .where("when <= at_ns")
        .select("debtor", "author", first.alias("first"), last.alias("last"))
        .where("first <= last")
    )


def _logged_again(rows: GossipRows, name: str, runs: list[str]) -> DataFrame:
    """Rows in which a logger takes in what it had collected."""
    known = rows.in_logs.join(_in_runs(rows, runs), "who", "left_semi")
    taken = chunked(known.where(fn.col("kind") == LOG.value), chunk=_BIN)
    dropped = chunked(known.where(fn.col("kind") == COLLECT.value), chunk=_BIN).select(
        "log",
        "author",
        "chunk",
        fn.col("first").alias("from"),
        fn.col("last").alias("upto"),
        place_in_log("dropped"),
    )
    meet = (fn.col("first") <= fn.col("upto")) & (fn.col("from") <= fn.col("last"))
    both = taken.select("*", place_in_log("taken")).join(dropped, ["log", "author", "chunk"])
    again = both.where(meet & (fn.col("dropped") < fn.col("taken")))
    cases = again.groupBy("who", "author", "index").agg(fn.min("first").alias("first"))
    wrong = cases.withColumn("last", fn.col("first"))
    return numbered_violations(
        wrong, name, "was taken in again after it was collected", index=fn.col("index")
    )


def _collected_early(rows: GossipRows, name: str, runs: list[str]) -> DataFrame:
    """What was collected as stable before every session that started before it had it.

    A debtor is a row of a logger and a session. What a session purged it has: that the replacement comes is
    for the others to see.
    """
    run_index = rows.run_index
    sessions, owed = _sessions_of(rows, runs)
    table = fn.broadcast(run_index.table(owed, "session", "author", "begin", "since", "until"))
    collected = (
        rows.of(COLLECT).where(fn.col("level") == STABLE).join(_in_runs(rows, runs), "who", "left_semi")
    )
    then = (fn.col("since") <= fn.col("at_ns")) & (fn.col("at_ns") < fn.col("until"))
    begun = collected.join(table, "author").where(then)
    cases = begun.groupBy("who", "index", "at_ns", "author", "last", "first", "session").agg(
        fn.min("begin").alias("begin")
    )
    first = fn.greatest(fn.col("first"), fn.col("begin") + 1)
    debtor = fn.xxhash64("who", "index", "session").alias("debtor")
    asked = cases.select("who", "index", "at_ns", "author", "session", debtor, first.alias("first"), "last")
    asked = run_index.keep(asked.where("first <= last"))
    members = fn.broadcast(run_index.table(sessions, "who", "session"))
    sent = rows.sent.groupBy("author").agg(fn.max("last").alias("highest"))
    had = rows.of(*_SETTLED).join(members, "who").join(fn.broadcast(sent), "author")
    had = had.select("session", "author", "at_ns", "first", fn.least("last", "highest").alias("last"))
    had = had.where("first <= last")
    columns = ("debtor", "session", "author", "at_ns", "first", "last")
    lacking = run_index.keep(without(asked, _by_then(asked.select(*columns), had, ["session", "author"])))
    if not lacking.isEmpty():
        late = asked.join(lacking.select("debtor").distinct(), "debtor", "left_semi")
        late = late.select("debtor", "session", fn.col("at_ns").alias("until")).distinct()
        held = had.join(fn.broadcast(late), "session").where("at_ns <= until").select(*_SPAN)
        covered = replacements.covered(run_index, lacking, held, rows.positions)
        if covered is not None:
            seq = fn.col("seq")
            lacking = without(lacking, covered.select(*_SPAN[:2], seq.alias("first"), seq.alias("last")))
    wrong = lacking.join(asked.select("debtor", "who", "index").distinct(), "debtor")
    return numbered_violations(wrong, name, "was collected before a session had it", index=fn.col("index"))


def _sessions_of(rows: GossipRows, runs: list[str]) -> tuple[list[tuple[int, ...]], list[tuple[int, ...]]]:
    """Sessions of all runs by number: the processes of each, and what it is owed when."""
    members: list[tuple[int, ...]] = []
    owed: list[tuple[int, ...]] = []
    before = 0
    for run in runs:
        known = rows.known[run]
        sessions = known.ledger.sessions
        for place, session in enumerate(sessions):
            members += [(rows.number(run, each.process), before + place) for each in session.incarnations]
        owed += [
            (before + each.session, rows.number(run, each.stream), each.begin, each.since, each.until)
            for each in known.owed()
        ]
        before += len(sessions)
    return members, owed


ByRows = Callable[[GossipRows, str, list[str]], DataFrame]
BY_ROWS: tuple[tuple[str, ByRows], ...] = (
    ("gossip_start", _not_started),
    ("gossip_progress", _waiting),
    ("gossip_collected", _logged_again),
    ("gossip_collection", _collected_early),
)
"""Properties, and what breaks them in single rows of some runs."""


_RANGE = 1 << 14
"""So many messages of a stream are judged in one task, where each is judged by itself."""


@dataclass(frozen=True, slots=True)
class Parts:
    """A checker, and the rows that it gets: of a logger, or of a stream with the outline of the run."""

    checker: Checker
    kinds: tuple[Kind, ...]
    by_stream: bool = True
    by_message: bool = False
    """Whether no message of a stream matters to another."""


BY_PARTS: dict[str, Parts] = {
    "gossip_positions": Parts(gossip_positions, (OPENED, LOG, PLACED), by_stream=False),
    "gossip_logged": Parts(gossip_logged, (Kind.MULTICAST, LOG, KEPT), by_message=True),
    "gossip_durable": Parts(gossip_durable, (LOG, KEPT, COLLECT, LETGO), by_message=True),
    "gossip_closed": Parts(gossip_closed, (CLOSED,)),
    "gossip_filter": Parts(gossip_filter, (Kind.MULTICAST, Kind.DELIVER, LOST), by_message=True),
    "gossip_beginning": Parts(gossip_beginning, (Kind.MULTICAST, LOG, PLACED, COLLECT), by_message=True),
    "gossip_again": Parts(gossip_again, (Kind.MULTICAST, Kind.DELIVER, LOG, KEPT, LOST, THROUGH, ASSURED)),
    "gossip_chains": Parts(gossip_chains, (Kind.MULTICAST, LOG, KEPT, COLLECT)),
    "gossip_compacted": Parts(gossip_compacted, (Kind.MULTICAST, LOG, KEPT, COLLECT)),
}


_TASKS = {name: Task(name, each.checker) for name, each in BY_PARTS.items()}


def judge_parts(given: Given, known: Mapping[str, Outline], runs: Mapping[str, Sequence[str]]) -> Findings:
    """What is judged so, of these runs by property."""
    asked = {name: each for name, each in BY_PARTS.items() if name in runs}
    if not asked:
        return Findings()
    rows = reduce(DataFrame.union, [_parts(given, name, runs[name], each) for name, each in asked.items()])
    histories = {run: outline.history for run, outline in known.items()}
    beside = {
        (run, name): histories[run].events if each.by_stream else ()
        for name, each in asked.items()
        for run in runs[name]
    }
    return judge_in_parts(given, rows, _TASKS, histories, beside)


def _parts(given: Given, name: str, runs: Sequence[str], parts: Parts) -> DataFrame:
    """The rows of some kinds, with the task that they are for and the part that they belong to."""
    chosen = fn.col("run").isin(*runs) & fn.col("kind").isin(*(kind.value for kind in parts.kinds))
    rows = given.rows.where(chosen).select(*SCHEMA.names)
    by = ["sender", "sender_incarnation"] if parts.by_stream else ["process"]
    if parts.by_message:
        rows, by = _in_ranges(rows), [*by, "chunk"]
    part = fn.concat_ws("#", *by).alias("part")
    return rows.select(*SCHEMA.names, fn.lit(name).alias("task"), part)


def _in_ranges(rows: DataFrame) -> DataFrame:
    """Rows about several messages, cut where ranges end: with `chunk`, the number of the range."""
    spans = rows.withColumns({"first": fn.col("seq"), "last": fn.col("seq") + fn.col("count") - 1})
    cut = chunked(spans, chunk=_RANGE)
    off = fn.col("first") - fn.col("seq")
    return cut.withColumns(
        {
            "seq": fn.col("first"),
            "count": fn.col("last") - fn.col("first") + 1,
            "order": fn.col("order") + off,
            "annotation": fn.when(off == 0, fn.col("annotation")),  # it is about the first message
        }
    )
