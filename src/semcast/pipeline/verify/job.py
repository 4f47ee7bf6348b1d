"""The job behind `semcast verify`: reads histories, calls the transforms, gathers what they found."""

from collections.abc import Callable, Mapping, Sequence
from contextlib import ExitStack
from dataclasses import dataclass
from pathlib import Path

from pyspark.errors import PySparkException
from pyspark.sql import DataFrame, Row, SparkSession
from pyspark.sql import functions as fn

from semcast.history import HistoryError, Kind, RunInfo
from semcast.pipeline.sources import local_path
from semcast.pipeline.verify import cover, ledger, order, relation, samples, states
from semcast.pipeline.verify.events import events_of, malformed, of_kind, read_rows
from semcast.pipeline.verify.files import Recorded
from semcast.pipeline.verify.roster import roster_of, roster_table
from semcast.pipeline.verify.totals import census, pairs, totals
from semcast.pipeline.verify.verdicts import Evidence, Verdict, judge
from semcast.pipeline.verify.violations import VIOLATIONS, counts, together
from semcast.specs import PROPERTIES, properties_for

Progress = Callable[[str], None]


@dataclass(frozen=True, slots=True)
class Options:
    """How to verify."""

    properties: Sequence[str] | None = None
    """By default those that the stack of each run promises."""

    max_sample: int = 10
    allow_missing: bool = False
    out: Path | None = None


@dataclass(frozen=True, slots=True)
class Report:
    """What came of it."""

    runs: Mapping[str, RunInfo]
    events: int
    verdicts: list[Verdict]


def verify(
    spark: SparkSession, recorded: Recorded, options: Options, progress: Progress = lambda _: None
) -> Report:
    """Judge every run; raises HistoryError where the histories are not what they should be."""
    wanted = wanted_properties(recorded.runs, options.properties)
    with ExitStack() as stack:
        try:
            verdicts = _Job(spark, recorded, options, wanted, progress, stack).run()
        except PySparkException as error:
            line = str(error).strip().partition("\n")[0]
            raise HistoryError(f"Spark could not read the histories: {line}") from error
    return Report(recorded.runs, recorded.rows, verdicts)


def wanted_properties(runs: Mapping[str, RunInfo], properties: Sequence[str] | None) -> dict[str, list[str]]:
    """What to check of each run."""
    for name in properties or ():
        if name not in PROPERTIES:
            raise HistoryError(f"no such property: {name}; there are {', '.join(PROPERTIES)}")
    wanted = {}
    for run, info in runs.items():
        try:
            wanted[run] = list(dict.fromkeys(properties)) if properties else properties_for(info)
        except ValueError as error:
            raise HistoryError(f"run {run}: {error}; name some with --property") from error
    return wanted


class _Job:
    """One verification: the tables that several steps share, and the steps."""

    def __init__(
        self,
        spark: SparkSession,
        recorded: Recorded,
        options: Options,
        wanted: dict[str, list[str]],
        progress: Progress,
        stack: ExitStack,
    ) -> None:
        self._spark = spark
        self._recorded = recorded
        self._options = options
        self._wanted = wanted
        self._names = {name for names in wanted.values() for name in names}
        self._progress = progress
        self._stack = stack
        self._rows = read_rows(spark, recorded.files)
        self._events = events_of(self._rows)
        self._evidence = Evidence(recorded.runs)

    def run(self) -> list[Verdict]:
        self._progress("counting")
        sums = self._keep(totals(self._events))
        roster = self._roster(sums)
        self._evidence.buffers = _runs(sums.where(fn.col("kind") == Kind.BUFFER.value))
        found = [
            *self._order(),
            *self._relation(),
            *self._contents(self._keep(pairs(sums, roster))),
            *self._buffers(),
            *self._states(roster),
        ]
        return self._judge(self._keep(self._judged(found)))

    def _keep(self, frame: DataFrame) -> DataFrame:
        kept = frame.persist()
        self._stack.callback(kept.unpersist)
        return kept

    def _wants(self, prefix: str) -> bool:
        return any(name.startswith(prefix) for name in self._names)

    def _roster(self, sums: DataFrame) -> DataFrame:
        there = census(sums).collect()
        if not there:
            raise HistoryError("no events: nothing was verified")
        if any(row["malformed"] for row in there):
            worst = (
                malformed(self._rows).agg(fn.min(fn.struct("file", "row", "problem")).alias("worst")).first()
            )
            assert worst is not None
            file, row, problem = worst["worst"]
            raise HistoryError(f"{local_path(file)}: row {row}: {problem}")
        roster = roster_of(self._recorded.runs, there, allow_missing=self._options.allow_missing)
        return self._keep(roster_table(self._spark, roster))

    def _order(self) -> list[DataFrame]:
        self._progress("order")
        kinds = [Kind.MULTICAST, Kind.DELIVER] if "fifo_delivery" in self._names else [Kind.MULTICAST]
        rows = of_kind(self._events, *kinds)
        streams = self._keep(order.disordered(order.pieces(order.steps(rows))))
        if streams.isEmpty():
            return []
        late = self._keep(order.behind(rows, streams))
        self._check_multicasts(late)
        return [order.fifo_violations(late)]

    def _check_multicasts(self, late: DataFrame) -> None:
        wrong = late.where(fn.col("kind") == Kind.MULTICAST.value).orderBy("run", "process", "index").first()
        if wrong is not None:
            name = wrong["sender"]["name"]
            raise HistoryError(
                f"run {wrong['run']}: multicast of ({name},{wrong['seq']}) after {wrong['highest']}: "
                "the numbers of a sender must grow"
            )

    def _relation(self) -> list[DataFrame]:
        """Circles; also where only what rests on the relation is wanted."""
        if not self._wants("semantic_") and "relation_is_order" not in self._names:
            return []
        self._progress("obsolescence relation")
        notes = relation.annotated(self._events)
        circles = self._keep(relation.order_violations(notes, relation.positions(self._events, notes)))
        self._evidence.circular = _runs(circles)
        return [circles] if self._evidence.circular else []

    def _contents(self, both: DataFrame) -> list[DataFrame]:
        """Integrity and the semantic properties, for the processes that differ from what was multicast."""
        if not self._wants("semantic_") and "integrity" not in self._names:
            return []
        self._progress("who delivered what")
        if both.where("not same").isEmpty():
            return []
        delivered = self._keep(ledger.delivered_spans(self._events, both))
        multicast = ledger.multicast_spans(self._events, both)
        somewhere = ledger.somewhere_spans(delivered, multicast, both)
        book = self._keep(ledger.ledger(delivered, somewhere, both))
        found = [ledger.integrity_violations(book)]
        if self._wants("semantic_"):
            self._progress("replacements")
            missing = self._keep(ledger.lacking(book, both))
            left = ledger.unpaid(missing, self._covered(missing))
            found.append(ledger.semantic_violations(left, both))
        return found

    def _covered(self, missing: DataFrame) -> DataFrame:
        notes = self._keep(relation.annotated(self._events))
        points = self._keep(cover.lacking_points(missing.where("multicast"), notes))
        chains = relation.chains(notes)
        listed = relation.listed_edges(notes, relation.positions(self._events, notes))
        at_once = self._keep(cover.covered_at_once(points, chains, listed))
        return at_once.union(cover.covered_through_others(points, at_once, chains, listed))

    def _buffers(self) -> list[DataFrame]:
        if "buffer_bound" not in self._names:
            return []
        limits = [(run, info.buffer_limit) for run, info in self._recorded.runs.items()]
        table = self._spark.createDataFrame(limits, "run string, buffer_limit long")
        return [states.buffer_violations(self._events, table.where("buffer_limit is not null"))]

    def _states(self, roster: DataFrame) -> list[DataFrame]:
        if not self._wants("same_state"):
            return []
        self._progress("states")
        final = self._keep(states.final_states(self._events, roster))
        told = states.state_evidence(final, roster).collect()
        self._evidence.states = {(row["run"], row["property"]) for row in told}
        return [states.state_violations(final, roster)]

    def _judged(self, found: list[DataFrame]) -> DataFrame:
        """The violations of what is wanted and can be told."""
        judged = [
            (run, name)
            for run, names in self._wanted.items()
            for name in names
            if not self._evidence.unknown(run, name)
        ]
        table = self._spark.createDataFrame(judged, "run string, property string")
        nothing = self._spark.createDataFrame([], VIOLATIONS)
        return together([nothing, *found]).join(fn.broadcast(table), ["run", "property"], "left_semi")

    def _judge(self, found: DataFrame) -> list[Verdict]:
        self._progress("verdicts")
        numbers = counts(found).collect()
        examples: list[Row] = []
        if numbers:
            self._progress("examples")
            few = self._keep(samples.sample(found, self._options.max_sample))
            examples = samples.with_events(few, self._events).collect()
        if self._options.out is not None:
            _write(found, self._options.out)
        return judge(self._evidence, self._wanted, numbers, examples)


def _write(found: DataFrame, out: Path) -> None:
    """All violations, in the column names of histories."""
    table = found.select(
        "run",
        "property",
        fn.col("process.name").alias("process"),
        fn.col("process.incarnation").alias("incarnation"),
        "index",
        fn.col("sender.name").alias("sender"),
        fn.col("sender.incarnation").alias("sender_incarnation"),
        fn.col("first").alias("seq"),
        (fn.col("last") - fn.col("first") + 1).alias("count"),
        "times",
        "reason",
    )
    table.write.mode("overwrite").parquet(str(out / "violations"))


def _runs(frame: DataFrame) -> set[str]:
    return {row["run"] for row in frame.select("run").distinct().collect()}
