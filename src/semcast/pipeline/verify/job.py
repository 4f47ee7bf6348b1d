"""The job behind `semcast verify`: reads histories, asks the forms, gathers what they found."""

from collections.abc import Callable, Mapping
from contextlib import ExitStack

from pyspark.sql import DataFrame, Row, SparkSession
from pyspark.sql import functions as fn

from semcast.history import HistoryError, Kind
from semcast.history.columns import SCHEMA
from semcast.history.schema import KINDS
from semcast.pipeline.frames import TEXT, brought, keep, settled, small_frame
from semcast.pipeline.paths import local_path
from semcast.pipeline.session import at_once, in_one_process, unconstrained
from semcast.pipeline.verify import memory, reliable, replacements
from semcast.pipeline.verify.calls import judge_calls
from semcast.pipeline.verify.causal import judge_causal
from semcast.pipeline.verify.configurations import judge_configurations
from semcast.pipeline.verify.confirmed import NAME as CONFIRMED
from semcast.pipeline.verify.confirmed import judge_confirmed
from semcast.pipeline.verify.counting import totals
from semcast.pipeline.verify.domains import judge_domains
from semcast.pipeline.verify.events import (
    Recorded,
    added_kinds,
    annotated,
    by_group,
    events_of,
    faults_by,
    held_rows,
    malformed,
    read_rows,
)
from semcast.pipeline.verify.forms import (
    FORMS,
    Form,
    Given,
    Judge,
    Need,
    Wanted,
    named,
    needs,
    wanted_properties,
)
from semcast.pipeline.verify.gossip.judge import judge_gossip
from semcast.pipeline.verify.lightweight.judge import judge_lightweight
from semcast.pipeline.verify.replication.judge import judge_replication
from semcast.pipeline.verify.ring import judge_ring, judge_total_order
from semcast.pipeline.verify.run_index import RunIndex
from semcast.pipeline.verify.stays import Who
from semcast.pipeline.verify.totals import (
    Life,
    Participant,
    census,
    roster_of,
    rows_of_kind,
    tails_of,
    untold,
)
from semcast.pipeline.verify.verdicts import (
    Evidence,
    Options,
    Report,
    Verdict,
    as_violation,
    in_memory,
    judge,
)
from semcast.pipeline.verify.views import judge_views
from semcast.pipeline.verify.violations import (
    counts,
    known_violations,
    output,
    sample,
    together,
    with_events,
)
from semcast.pipeline.writing import write_table

Progress = Callable[[str], None]

_JUDGES: dict[Form, Judge] = {
    Form.CONTENTS: reliable.judge_deliveries,
    Form.CRASHES: reliable.judge_crashes,
    Form.BUFFERS: reliable.judge_buffers,
    Form.STATES: reliable.judge_states,
    Form.CONFIGURATIONS: judge_configurations,
    Form.CAUSAL: judge_causal,
    Form.VIEWS: judge_views,
    Form.POSITIONS: judge_total_order,
    Form.RING: judge_ring,
    Form.CONFIRMED: judge_confirmed,
    Form.REPLICATION: judge_replication,
    Form.GOSSIP: judge_gossip,
    Form.LIGHTWEIGHT: judge_lightweight,
    Form.CALLS: judge_calls,
    Form.DOMAINS: judge_domains,
}
_OF_ALL = (Form.CONTENTS, Form.CRASHES, Form.BUFFERS, Form.STATES)
"""Forms that look at all runs at once."""

_ABOUT_VIEWS = (Form.CONFIGURATIONS, Form.CAUSAL, Form.VIEWS, Form.POSITIONS, Form.RING)
"""Forms that say nothing of runs without configurations."""
_NO_FORM = "judged in memory only, and the run is too large for that"


def verify(
    spark: SparkSession, recorded: Recorded, options: Options, progress: Progress = lambda _: None
) -> Report:
    """Judge every run; raises HistoryError where the histories are not what they should be."""
    wanted = wanted_properties(recorded.runs, options.properties)
    small = recorded.rows <= options.small_rows
    with at_once(spark) if small else unconstrained(spark), ExitStack() as kept:
        verdicts = _Job(spark, recorded, options, wanted, progress, kept, small=small).run()
    recorded.check_unchanged()
    return Report(recorded.runs, recorded.rows, verdicts)


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
        rows = by_group((held_rows if small else read_rows)(spark, recorded.files), recorded.runs)
        self._rows = self._begin_at(rows.coalesce(1), kept) if small else rows
        events = events_of(self._rows)
        self._events = self._begin_at(events, kept) if small else events
        self._evidence = Evidence(recorded.runs)
        self._given_of: dict[frozenset[str], Given] = {}

    def run(self) -> list[Verdict]:
        self._progress("counting")
        files, runs = self._recorded.files, self._recorded.runs
        self._totals = totals(self._spark, files, runs, here=self._small)
        there = census(self._totals)
        self._roster = self._checked(there)
        self._check_added()
        self._add_confirmed()
        self._sizes = dict.fromkeys(self._wanted, 0)
        for (run, _), life in there.items():
            self._sizes[run] += life.rows
        self._evidence.empty = {run for run, size in self._sizes.items() if not size}
        held = {run for run, size in self._sizes.items() if size <= self._options.memory_rows}
        self._tails = tails_of(runs, self._totals)
        if self._tails:
            concerned = self._of_runs({run for run, _ in self._tails})
            self._evidence.untold = untold(self._spark, concerned, self._tails, self._totals)
        self._positions = self._places({each.run for each in self._totals if each.total})
        found = [
            *self._relation({each.run for each in self._totals if each.odd}, held),
            *self._by_forms(held, {run for (run, _), life in there.items() if life.undead}),
            *self._in_memory(held),
        ]
        return self._judge(self._keep(self._judged(found)))

    def _begin_at(self, rows: DataFrame, kept: ExitStack) -> DataFrame:
        """Few rows, which plans have in many places.

        What the driver holds would be worked on while each is made, and of what Spark caches each repeats how
        it came about; but a lost executor does not take that with it.
        """
        return settled(rows) if in_one_process(self._spark) else keep(rows, kept)

    def _keep(self, frame: DataFrame) -> DataFrame:
        """Compute it now, and once: what builds on it starts from the rows, not from how they came about."""
        return brought(frame) if self._small else settled(frame)

    def _of_runs(self, runs: set[str], rows: DataFrame | None = None) -> DataFrame:
        """The events of some runs, or other rows."""
        rows = self._events if rows is None else rows
        if len(runs) == len(self._recorded.runs):
            return rows
        names = small_frame(self._spark, {"run": TEXT}, [(run,) for run in sorted(runs)])
        return rows.join(fn.broadcast(names), "run", "left_semi")

    # What must be true before anything is judged

    def _checked(self, there: Mapping[Who, Life]) -> list[Participant]:
        if not there:
            raise HistoryError("no events: nothing was verified")
        if any(each.doubtful for each in self._totals):
            wrong = malformed(read_rows(self._spark, self._recorded.files))
            worst = wrong.agg(fn.min(fn.struct("file", "row", "problem")).alias("worst")).collect()[0][0]
            if worst is not None:
                file, row, problem = worst
                raise HistoryError(f"{local_path(file)}: row {row}: {problem}")
        return roster_of(self._recorded.runs, there, allow_missing=self._options.allow_missing)

    def _check_added(self) -> None:
        """What a family says of its own rows."""
        if not any(KINDS[each.kind].columns is not None for each in self._totals):
            return
        rows = added_kinds(self._rows).select(*SCHEMA.names)
        wrong = rows.mapInArrow(faults_by(KINDS.values()), "problem string").first()
        if wrong is not None:
            raise HistoryError(wrong["problem"])

    def _add_confirmed(self) -> None:
        """Where stacks confirmed something, that is judged, too."""
        if self._options.properties is None:
            told = {each.run for each in self._totals if each.kind == Kind.CONFIRMED.value}
            for run in sorted(told):
                self._wanted[run].append(CONFIRMED)

    # What the forms start from

    def _places(self, runs: set[str]) -> DataFrame:
        """Where annotated messages stand in the total order, in the runs whose annotations speak of that."""
        if not runs:
            return small_frame(self._spark, replacements.POSITIONS, [])
        events = self._of_runs(runs)
        sums = [each for each in self._totals if each.run in runs]
        purges = rows_of_kind(events, sums, Kind.PURGE, self._keep)
        return self._keep(replacements.positions(events, purges, annotated(events)))

    def _relation(self, odd: set[str], held: set[str]) -> list[DataFrame]:
        """Circles; also where only what rests on the relation is wanted."""
        asked = {
            run
            for run, names in self._wanted.items()
            for name in names
            if name in FORMS or run not in held
            if name in named(Form.RELATION, Form.GOSSIP) or needs(name, Need.RELATION)
        }
        if not odd & asked:
            return []
        self._progress("obsolescence relation")
        notes = self._keep(annotated(self._of_runs(odd)))
        circles = self._keep(replacements.order_violations(notes, self._positions))
        self._evidence.circular = {row["run"] for row in circles.select("run").distinct().collect()}
        return [circles]

    def _given(self, runs: set[str]) -> Given:
        """What is known of some runs; mostly they are all, and then it is worked out once."""
        names = frozenset(runs)
        if names not in self._given_of:
            events = self._of_runs(runs)
            sums = [each for each in self._totals if each.run in runs]
            infos = {run: info for run, info in self._recorded.runs.items() if run in runs}
            run_index = RunIndex(
                self._spark, events, sums, infos, self._keep, self._recorded.files, few=self._small
            )
            self._given_of[names] = Given(
                run_index,
                self._of_runs(runs, self._rows),
                [each for each in self._roster if each.run in runs],
                self._positions,
                {who: tail for who, tail in self._tails.items() if who[0] in runs},
                self._evidence.circular,
                set(self._evidence.untold),
            )
        return self._given_of[names]

    # The judgements

    def _by_forms(self, held: set[str], undead: set[str]) -> list[DataFrame]:
        findings = self._evidence.findings
        self._progress(Form.ORDER.value)
        findings.add(reliable.judge_order(self._given(set(self._wanted)), self._wanted))
        large = {run for run, names in self._wanted.items() if run not in held and set(names) - set(FORMS)}
        for form in (Form.RELATION, Form.ORDER):
            self._look_at(self._asked(form, held))
        for form, judges in _JUDGES.items():
            wanted = self._asked(form, held)
            self._look_at(wanted)
            if form is Form.CRASHES:
                wanted = {run: names for run, names in wanted.items() if run in undead}
            if wanted:
                self._progress(form.value)
                # Forms share an index where they can, for each reads the files once.
                of_any = set(wanted) if form is Form.CONFIGURATIONS else large
                given = self._given(set(self._wanted) if form in _OF_ALL else of_any)
                if form in _ABOUT_VIEWS:
                    nowhere = given.run_index.nowhere
                    self._evidence.nowhere |= nowhere
                    wanted = {run: names for run, names in wanted.items() if run not in nowhere}
                if wanted:
                    findings.add(judges(given, wanted))
        for run, names in self._asked(Form.NONE, held).items():
            findings.unknown.update({(run, name): _NO_FORM for name in names})
        told = [in_memory(run, verdict, self._options.max_sample) for run, verdict in findings.verdicts]
        return [*findings.violations, self._remember(told)]

    def _look_at(self, wanted: Wanted) -> None:
        self._evidence.looked_at.update((run, name) for run, names in wanted.items() for name in names)

    def _asked(self, form: Form, held: set[str]) -> Wanted:
        """What a form is asked for; where memory does as well, it is not asked."""
        known = named(form)
        wanted = {
            run: [name for name in names if name in known and (name in FORMS or run not in held)]
            for run, names in self._wanted.items()
        }
        return {run: names for run, names in wanted.items() if names}

    def _in_memory(self, held: set[str]) -> list[DataFrame]:
        """What memory judges as well as any form, of runs that it can hold."""
        names = {run: [name for name in self._wanted[run] if name not in FORMS] for run in held}
        asked = {run: some for run, some in names.items() if some}
        if not asked:
            return []
        self._progress("in memory, run by run")
        rows = self._of_runs(set(asked), self._rows)
        runs, most = self._recorded.runs, self._options.max_sample
        told = memory.judge_in_tasks(rows, runs, asked, self._sizes, most)
        return [self._remember(told)]

    def _remember(self, told: list[Verdict]) -> DataFrame:
        """Verdicts from memory are final; their cases are violations like others."""
        self._evidence.in_memory.update(((each.run, each.property), each) for each in told)
        return known_violations(self._spark, [as_violation(each) for each in told if each.count])

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
            few = self._keep(sample(found, self._options.max_sample))
            examples = with_events(few, self._events).collect()
        if self._options.out is not None:
            write_table(output(found), f"{self._options.out}/violations")
        return judge(self._evidence, self._wanted, numbers, examples)
