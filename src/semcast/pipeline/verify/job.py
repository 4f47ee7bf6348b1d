"""The job behind `semcast verify`: reads histories, calls the transforms, gathers what they found."""

from collections.abc import Callable, Mapping, Sequence
from contextlib import ExitStack
from dataclasses import dataclass
from pathlib import Path

from pyspark.sql import DataFrame, Row, SparkSession
from pyspark.sql import functions as fn

from semcast.history import HistoryError, Kind, RunInfo
from semcast.history.decoding import Columns, decode
from semcast.history.schema import SCHEMA
from semcast.history.wellformed import problem
from semcast.pipeline.frames import TEXT, WHOLE, brought, keep, settled, small_frame
from semcast.pipeline.paths import local_path
from semcast.pipeline.session import SMALL_ROWS, at_once, unconstrained
from semcast.pipeline.verify import (
    contents,
    cover,
    evs,
    ledger,
    memory,
    order,
    relation,
    samples,
    states,
    tails,
)
from semcast.pipeline.verify.events import (
    added_kinds,
    by_group,
    events_of,
    held_rows,
    malformed,
    of_kind,
    read_rows,
)
from semcast.pipeline.verify.files import Recorded
from semcast.pipeline.verify.large import Given, judge_large
from semcast.pipeline.verify.properties import FORMS, Form, Need, named, needs
from semcast.pipeline.verify.roster import roster_of, roster_table
from semcast.pipeline.verify.scene import Scene
from semcast.pipeline.verify.totals import census, pairs, totals
from semcast.pipeline.verify.verdicts import (
    Evidence,
    Verdict,
    as_violation,
    from_memory,
    in_memory,
    judge,
    message,
)
from semcast.pipeline.verify.violations import counts, known_violations, output, together
from semcast.pipeline.writing import write_table
from semcast.specs import PROPERTIES, properties_for
from semcast.specs.contents import not_compared

Progress = Callable[[str], None]


@dataclass(frozen=True, slots=True)
class Options:
    """How to verify."""

    properties: Sequence[str] | None = None
    """By default those that the stack of each run promises."""

    max_sample: int = 10
    allow_missing: bool = False
    out: str | Path | None = None
    """A folder, or the URI of one."""

    memory_rows: int = 500_000
    """The most rows of a run that one task may hold to judge what needs all of them at once."""

    small_rows: int = SMALL_ROWS
    """Up to so many rows of all runs together, everything is one task, and the driver holds the tables."""


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
    small = recorded.rows <= options.small_rows
    with at_once(spark) if small else unconstrained(spark), ExitStack() as kept:
        verdicts = _Job(spark, recorded, options, wanted, progress, kept, small=small).run()
    return Report(recorded.runs, recorded.rows, verdicts)


def wanted_properties(runs: Mapping[str, RunInfo], properties: Sequence[str] | None) -> dict[str, list[str]]:
    """What to check of each run."""
    for name in properties or ():
        if name not in PROPERTIES:
            raise HistoryError(f"no such property: {name}; there are {', '.join(PROPERTIES)}")
    wanted = {}
    for run, info in runs.items():
        try:
            wanted[run] = list(dict.fromkeys(properties)) if properties else properties_for(info.only)
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
        kept: ExitStack,
        *,
        small: bool,
    ) -> None:
        self._spark = spark
        self._recorded = recorded
        self._options = options
        self._wanted = wanted
        self._progress = progress
        self._small = small
        rows = (held_rows if small else read_rows)(spark, recorded.files)
        self._rows = by_group(rows, recorded.runs)
        events = events_of(self._rows)
        self._events = keep(events.repartition(1), kept) if small else events
        self._evidence = Evidence(recorded.runs)
        self._tails: DataFrame | None = None
        self._scenes: dict[frozenset[str], Scene] = {}

    def run(self) -> list[Verdict]:
        self._progress("counting")
        sums = self._keep(totals(self._rows))
        there = census(sums).collect()
        self._divide(there)
        roster = self._roster(there)
        self._check_added(sums)
        self._evidence.buffers = {row["run"] for row in there if row["buffers"]}
        self._look_at_tails(sums)
        self._positions = self._places({row["run"] for row in there if row["total"]})
        found = [
            *self._order(sums),
            *self._relation({row["run"] for row in there if row["odd"]}),
            *self._contents(sums, roster),
            *self._after_crash({row["run"] for row in there if row["undead"]}),
            *self._buffers(),
            *self._states(roster),
            *self._synchrony(sums),
            *self._large(sums),
            *self._in_memory(),
        ]
        return self._judge(self._keep(self._judged(found)))

    def _divide(self, there: list[Row]) -> None:
        """By what the properties of each run are judged: forms, forms for large runs, or in memory."""
        sizes = dict.fromkeys(self._wanted, 0)
        for row in there:
            sizes[row["run"]] = sizes.get(row["run"], 0) + row["rows"]
        others = {run: [name for name in names if name not in FORMS] for run, names in self._wanted.items()}
        most = self._options.memory_rows
        self._small_runs = {run: names for run, names in others.items() if names and sizes[run] <= most}
        self._large_runs = {run: names for run, names in others.items() if names and sizes[run] > most}
        formed = {name for names in self._wanted.values() for name in names if name in FORMS}
        self._formed = formed
        self._names = formed.union(*self._large_runs.values())

    def _keep(self, frame: DataFrame) -> DataFrame:
        """Compute it now, and once: what builds on it starts from the rows, not from how they came about."""
        return brought(frame) if self._small else settled(frame)

    def _wants(self, *forms: Form) -> bool:
        return not self._names.isdisjoint(named(*forms))

    def _of_runs(self, runs: set[str], rows: DataFrame | None = None) -> DataFrame:
        """The events of some runs, or other rows."""
        rows = self._events if rows is None else rows
        if len(runs) == len(self._recorded.runs):
            return rows
        names = small_frame(self._spark, {"run": TEXT}, [(run,) for run in sorted(runs)])
        return rows.join(fn.broadcast(names), "run", "left_semi")

    def _roster(self, there: list[Row]) -> DataFrame:
        if not there:
            raise HistoryError("no events: nothing was verified")
        if any(row["malformed"] for row in there):
            worst = (
                malformed(read_rows(self._spark, self._recorded.files))
                .agg(fn.min(fn.struct("file", "row", "problem")).alias("worst"))
                .first()
            )
            assert worst is not None
            file, row, problem = worst["worst"]
            raise HistoryError(f"{local_path(file)}: row {row}: {problem}")
        roster = roster_of(self._recorded.runs, there, allow_missing=self._options.allow_missing)
        return roster_table(self._spark, roster)

    def _check_added(self, sums: DataFrame) -> None:
        """What a family says of its own rows, which are few."""
        if added_kinds(sums).isEmpty():
            return
        for row in added_kinds(self._rows).toLocalIterator():
            event = decode(Columns(**{name: row.asDict(recursive=True)[name] for name in SCHEMA.names}))
            fault = problem(event)
            if fault is not None:
                raise HistoryError(f"run {row['run']}: row {event.index} of {event.process}: {fault}")

    def _places(self, runs: set[str]) -> DataFrame:
        """Where annotated messages stand in the total order, in the runs whose annotations speak of that."""
        if not runs:
            return small_frame(self._spark, relation.POSITIONS, [])
        events = self._of_runs(runs)
        return self._keep(relation.positions(events, relation.annotated(events)))

    def _look_at_tails(self, sums: DataFrame) -> None:
        """What senders may have sent after their recording was cut off."""
        runs = {run for run, info in self._recorded.runs.items() if info.cut_off}
        if runs:
            self._tails = self._keep(tails.tails(tails.cut_off(self._spark, self._recorded.runs), sums))
            told = tails.untold(self._of_runs(runs), self._tails).collect()
            self._evidence.untold = {row["run"]: message(row) for row in told}

    def _order(self, sums: DataFrame) -> list[DataFrame]:
        self._progress("order")
        scene = self._scene(sums, self._recorded.runs)
        streams = self._keep(scene.streams(order.disordered(scene.forwards)))
        if streams.isEmpty():
            return []
        late = self._keep(order.behind(of_kind(self._events, Kind.MULTICAST, Kind.DELIVER), streams))
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

    def _relation(self, odd: set[str]) -> list[DataFrame]:
        """Circles; also where only what rests on the relation is wanted."""
        rests = self._wants(Form.RELATION) or any(needs(name, Need.RELATION) for name in self._names)
        if not odd or not rests:
            return []
        self._progress("obsolescence relation")
        notes = self._keep(relation.annotated(self._of_runs(odd)))
        circles = self._keep(relation.order_violations(notes, self._positions))
        self._evidence.circular = {row["run"] for row in circles.select("run").distinct().collect()}
        return [circles]

    def _contents(self, sums: DataFrame, roster: DataFrame) -> list[DataFrame]:
        """Integrity and the semantic properties, for the processes that differ from what was multicast."""
        asked = self._formed.intersection(named(Form.CONTENTS))
        if not asked:
            return []
        semantic = asked != {"integrity"}
        both = self._keep(pairs(sums, roster))
        found = self._payloads(sums, both) if "integrity" in self._formed else []
        if both.where("not same").isEmpty():
            return found
        self._progress("who delivered what")
        scene = self._scene(sums, self._recorded.runs)
        delivered = self._keep(ledger.delivered_spans(scene.by_name(scene.delivered), both))
        multicast = ledger.multicast_spans(scene.by_name(scene.sent), both)
        somewhere = self._keep(ledger.somewhere_spans(delivered, multicast, both))
        book = self._keep(ledger.ledger(delivered, somewhere, both))
        found.append(ledger.integrity_violations(book, self._tails))
        if semantic:
            self._progress("replacements")
            found.append(
                ledger.semantic_violations(self._unpaid(self._keep(ledger.lacking(book, both))), both)
            )
        return found

    def _payloads(self, sums: DataFrame, both: DataFrame) -> list[DataFrame]:
        """Whether what was delivered contains what was multicast."""
        scene = self._scene(sums, self._recorded.runs)
        delivered = contents.deliveries(both).collect()
        unsure = contents.unsure(scene, delivered)
        if not unsure:
            return []
        self._progress("contents")
        lined_up = self._keep(contents.lined_up(scene, unsure))
        for run, messages in contents.not_compared(scene, unsure, lined_up).items():
            self._evidence.notes[run, "integrity"] = not_compared(messages)
        return [contents.violations(scene, lined_up)]

    def _unpaid(self, missing: DataFrame) -> DataFrame:
        notes = self._keep(relation.annotated(self._events))
        points = self._keep(cover.lacking_points(missing.where("multicast"), notes))
        if points.isEmpty():
            return missing
        chains = self._keep(cover.relevant_chains(relation.chains(notes), points))
        listed = self._keep(cover.relevant_edges(relation.listed_edges(notes, self._positions), points))
        at_once = self._keep(cover.covered_at_once(points, chains, listed))
        rest = self._keep(cover.covered_through_others(points, at_once, chains, listed))
        return self._keep(ledger.unpaid(missing, at_once.union(rest)))

    def _after_crash(self, runs: set[str]) -> list[DataFrame]:
        if not runs or not self._wants(Form.CRASHES):
            return []
        return [states.crash_violations(self._of_runs(runs))]

    def _buffers(self) -> list[DataFrame]:
        if not self._wants(Form.BUFFERS):
            return []
        infos = self._recorded.runs.items()
        limits = [(run, info.only.buffer_limit) for run, info in infos if info.only.buffer_limit is not None]
        table = small_frame(self._spark, {"run": TEXT, "buffer_limit": WHOLE}, limits)
        return [states.buffer_violations(self._events, table)]

    def _states(self, roster: DataFrame) -> list[DataFrame]:
        if not self._wants(Form.STATES):
            return []
        self._progress("states")
        final = self._keep(states.final_states(self._events, roster))
        told = states.state_evidence(final, roster).collect()
        self._evidence.states = {(row["run"], row["property"]) for row in told}
        return [states.state_violations(final, roster)]

    def _synchrony(self, sums: DataFrame) -> list[DataFrame]:
        """Extended virtual synchrony, as far as it is about who has what where."""
        runs = {
            run: self._recorded.runs[run]
            for run, names in self._wanted.items()
            if not set(named(Form.CONFIGURATIONS)).isdisjoint(names)
        }
        if not runs:
            return []
        self._progress("configurations")
        scene = self._scene(sums, runs)
        self._evidence.nowhere |= scene.nowhere
        if len(scene.nowhere) == len(runs):
            return []
        return [evs.Synchrony(scene).found(self._positions, self._tails)]

    def _scene(self, sums: DataFrame, runs: Mapping[str, RunInfo]) -> Scene:
        """The scene of some runs; mostly they are all, and then there is one for everything."""
        names = frozenset(runs)
        if names not in self._scenes:
            events, totals = self._of_runs(set(names)), self._of_runs(set(names), sums)
            files = self._recorded.files
            scene = Scene(self._spark, events, totals, runs, self._keep, files, few=self._small)
            self._scenes[names] = scene
        return self._scenes[names]

    def _large(self, sums: DataFrame) -> list[DataFrame]:
        """What has a form for runs that are too large for memory."""
        runs = {run: self._recorded.runs[run] for run in self._large_runs}
        if not runs:
            return []
        self._progress("the order of everything")
        scene = self._scene(sums, runs)
        self._evidence.nowhere |= scene.nowhere
        evidence = self._evidence
        given = Given(
            scene, self._rows, self._positions, self._tails, evidence.circular, set(evidence.untold)
        )
        found = judge_large(given, {run: self._large_runs[run] for run in runs.keys() - scene.nowhere})
        evidence.untellable.update(found.unknown)
        evidence.doubts.update(found.doubts)
        told = [in_memory(run, verdict, self._options.max_sample) for run, verdict in found.verdicts]
        evidence.in_memory.update(((each.run, each.property), each) for each in told)
        broken = [as_violation(each) for each in told if each.count]
        return [*found.violations, known_violations(self._spark, broken)]

    def _in_memory(self) -> list[DataFrame]:
        """What has no form of its own here, mostly because it is about the order of everything."""
        small = self._small_runs
        if not small:
            return []
        self._progress("in memory, run by run")
        rows = memory.verdicts(self._of_runs(set(small), self._rows), self._recorded.runs, small)
        told = [from_memory(row) for row in rows]
        self._evidence.in_memory.update(((each.run, each.property), each) for each in told)
        return [known_violations(self._spark, [as_violation(each) for each in told if each.count])]

    def _judged(self, found: list[DataFrame]) -> DataFrame:
        """The violations of what is wanted and can be told."""
        judged = [
            (run, name)
            for run, names in self._wanted.items()
            for name in names
            if not self._evidence.unknown(run, name)
        ]
        table = small_frame(self._spark, {"run": TEXT, "property": TEXT}, judged)
        return together([known_violations(self._spark), *found]).join(
            fn.broadcast(table), ["run", "property"], "left_semi"
        )

    def _judge(self, found: DataFrame) -> list[Verdict]:
        self._progress("verdicts")
        numbers = counts(found).collect()
        examples: list[Row] = []
        if numbers:
            self._progress("examples")
            few = self._keep(samples.sample(found, self._options.max_sample))
            examples = samples.with_events(few, self._events).collect()
        if self._options.out is not None:
            write_table(output(found), f"{self._options.out}/violations")
        return judge(self._evidence, self._wanted, numbers, examples)
