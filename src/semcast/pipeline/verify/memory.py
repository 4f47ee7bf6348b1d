"""What the checkers in memory judge: small histories here, small runs and parts of runs in tasks.

Few rows of all runs together are judged by this process alone: Spark would take longer to start. On Spark,
runs of which one task can hold all rows are judged so by every property that has no form as good as that. Of
others a task is given a part, and the rows of the outline of the run that belong to every part; a part is
chosen so that no row of another one matters to what is judged in it.
"""

import pickle
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass
from functools import lru_cache
from pathlib import Path

import msgspec
import pyarrow as pa
import pyarrow.compute as pc
from pyspark.sql import Column, DataFrame
from pyspark.sql import functions as fn

from semcast import specs
from semcast.core.ids import MemberId
from semcast.history import Event, History, HistoryError, RunInfo
from semcast.history.columns import SCHEMA
from semcast.history.decoding import decode, rows_of
from semcast.history.reader import read_files
from semcast.pipeline.paths import is_remote, local_path
from semcast.pipeline.session import slots
from semcast.pipeline.verify.events import Recorded
from semcast.pipeline.verify.forms import Findings, Given, wanted_properties
from semcast.pipeline.verify.totals import check_nobody_missing
from semcast.pipeline.verify.verdicts import (
    NOTHING_RECORDED,
    Options,
    Report,
    Verdict,
    as_violation,
    in_memory,
)
from semcast.pipeline.verify.violations import OUTPUT, known_violations, output_row, told_by
from semcast.pipeline.writing import write_here
from semcast.specs import Status, check

HERE_ROWS = 50_000
"""So many rows of all runs together are judged here."""

_TOLD = pa.schema([("run", pa.string()), ("rows", pa.int64()), ("verdicts", pa.binary())])


def fits_here(recorded: Recorded, options: Options) -> bool:
    """Whether these histories need no Spark."""
    out = None if options.out is None else local_path(str(options.out))
    return recorded.rows <= HERE_ROWS and (out is None or not is_remote(out))


def verify_here(recorded: Recorded, options: Options) -> Report:
    """The same as `verify`, in memory; raises HistoryError where histories are not what they should be."""
    wanted = wanted_properties(recorded.runs, options.properties)
    histories = _histories(recorded)
    recorded.check_unchanged()
    verdicts: list[Verdict] = []
    for run, info in recorded.runs.items():
        history = histories[run]
        there = {process for process in history.processes if history.of(process)}
        check_nobody_missing(run, info, there, allow_missing=options.allow_missing)
        # Without names, what was confirmed is judged besides what is promised.
        names = wanted[run] if options.properties else None
        found = check(history, names) if history.events else map(_untold, wanted[run])
        verdicts += [in_memory(run, each, options.max_sample) for each in found]
    if options.out is not None:
        _write([each for each in verdicts if each.count], Path(local_path(str(options.out))) / "violations")
    return Report(recorded.runs, recorded.rows, verdicts)


def _untold(name: str) -> specs.Verdict:
    return specs.Verdict(name, Status.UNKNOWN, detail=NOTHING_RECORDED)


def _histories(recorded: Recorded) -> dict[str, History]:
    """By the names that verdicts call runs and their groups."""
    found: dict[str, History] = {}
    for history in read_files(recorded.files):
        groups = history.by_group()
        found.update(zip(history.info.apart(), groups, strict=True))
    if not found:
        raise HistoryError("no events: nothing was verified")
    return found


def _write(broken: Iterable[Verdict], folder: Path) -> None:
    rows = [output_row(as_violation(each)) for each in broken]
    write_here(pa.Table.from_pylist(rows, schema=OUTPUT), folder)


def judge_in_tasks(
    rows: DataFrame,
    infos: Mapping[str, RunInfo],
    names: Mapping[str, Sequence[str]],
    sizes: Mapping[str, int],
    most: int,
) -> list[Verdict]:
    """The verdicts on these properties of the runs of these rows, each run in one task.

    Raises:
        HistoryError: a run has another number of rows than it had at first (`sizes`).
    """
    wanted = {run: (infos[run], tuple(names[run])) for run in names}
    tasks = min(len(names), slots(rows.sparkSession))
    apart = rows.select(*SCHEMA.names).repartition(tasks, "run").groupBy("run")
    found = apart.applyInArrow(_judging(wanted), "run string, rows long, verdicts binary").collect()
    read = {run: size for run, size, _ in found}
    for run in names:
        if read.get(run, 0) != sizes[run]:
            raise HistoryError(f"run {run}: {sizes[run]} rows were there at first, then {read.get(run, 0)}")
    # What is loaded are bytes that our own tasks made.
    return [in_memory(run, each, most) for run, _, told in found for each in pickle.loads(told)]  # noqa: S301


def _judging(wanted: Mapping[str, tuple[RunInfo, Sequence[str]]]) -> Callable[[pa.Table], pa.Table]:
    def judge(table: pa.Table) -> pa.Table:
        run = table.column("run")[0].as_py()
        info, names = wanted[run]
        found = check(History(info, in_order(table)), names)
        return pa.table([[run], [table.num_rows], [pickle.dumps(found)]], schema=_TOLD)

    return judge


MOST = 500_000
"""Rows that one task may hold."""

_PART_TOLD = pa.schema([("run", pa.string()), ("task", pa.string()), ("verdict", pa.binary())])
_PART_SPARK = "run string, task string, verdict binary"


Checker = Callable[[History], specs.Verdict]


@dataclass(frozen=True, slots=True)
class Task:
    """What is asked of each part."""

    property: str
    checker: Checker
    own: bool = False
    """Whether of the outline only rows of the process whose part it is matter."""


Beside = Mapping[tuple[str, str], Sequence[Event]]
"""By run and task, the rows of the outline that belong to every part."""


def outlines(given: Given, runs: Iterable[str], chosen: Column) -> dict[str, History] | None:
    """Of each run a history of the chosen rows, with all processes as members; None if they are too many."""
    names = list(runs)
    rows = given.rows.where(fn.col("run").isin(names) & chosen).select(*SCHEMA.names)
    if rows.limit(MOST + 1).count() > MOST:
        return None
    table = rows.toArrow()
    return {run: history_of(given, run, table.filter(pc.equal(table["run"], run))) for run in names}


def history_of(given: Given, run: str, table: pa.Table) -> History:
    """Some rows of a run, in which all processes are members: those without a row were there, too."""
    people = tuple(each.process for each in given.roster if each.run == run)
    return History(_with_members(given.run_index.infos[run], people), in_order(table))


def in_order(table: pa.Table) -> list[Event]:
    """Rows as events, in the order of each process, none twice."""
    events = {(event.process, event.index): event for event in map(decode, rows_of(table))}
    return sorted(events.values(), key=lambda event: event.index)


def _with_members(info: RunInfo, people: tuple[MemberId, ...]) -> RunInfo:
    return msgspec.structs.replace(info, groups=(msgspec.structs.replace(info.only, members=people),))


def judge_in_parts(
    given: Given, rows: DataFrame, tasks: Mapping[str, Task], known: Mapping[str, History], beside: Beside
) -> Findings:
    """What checkers say of rows with `task` and `part` beside the columns of histories.

    What cannot be told of one part may still be broken in another.
    """
    found = Findings()
    packed = _packed(known, beside)
    broken = []
    told = (
        rows.groupBy("run", "task", "part").applyInArrow(_judging_part(tasks, packed), _PART_SPARK).collect()
    )
    for run, task, verdict in told:
        name = tasks[task].property
        if verdict is None:
            found.doubts[run, name] = "a part of the run has too many rows for one task"
            continue
        judged: specs.Verdict = pickle.loads(verdict)  # noqa: S301 (bytes that our own tasks made)
        if judged.status is Status.UNKNOWN:
            found.doubts[run, name] = judged.detail
        elif judged.count:
            broken.append(told_by(run, judged))
    found.violations.append(known_violations(given.run_index.spark, broken))
    return found


def _packed(known: Mapping[str, History], beside: Beside) -> dict[tuple[str, str], bytes]:
    """By run and task, what travels to tasks: once, where several tasks of a run have the same outline."""
    once: dict[tuple[str, int], bytes] = {}
    for (run, _), events in beside.items():
        if (run, id(events)) not in once:
            once[run, id(events)] = pickle.dumps((known[run].info, list(events)))
    return {(run, task): once[run, id(events)] for (run, task), events in beside.items()}


def _judging_part(
    tasks: Mapping[str, Task], packed: Mapping[tuple[str, str], bytes]
) -> Callable[[pa.Table], pa.Table]:
    """Outlines travel packed: a worker knows the kinds of rows only when it has loaded their modules."""

    def judge(table: pa.Table) -> pa.Table:
        run, name = table.column("run")[0].as_py(), table.column("task")[0].as_py()
        if table.num_rows > MOST:
            return pa.table([[run], [name], [None]], schema=_PART_TOLD)
        task = tasks[name]
        info, outline = _unpacked(packed[run, name])
        events = in_order(table.select(SCHEMA.names))
        if task.own:
            processes = {event.process for event in events}
            outline = [event for event in outline if event.process in processes]
        rows = {(event.process, event.index): event for event in (*outline, *events)}
        history = History(info, sorted(rows.values(), key=lambda event: event.index))
        return pa.table([[run], [name], [pickle.dumps(task.checker(history))]], schema=_PART_TOLD)

    return judge


@lru_cache(maxsize=8)
def _unpacked(packed: bytes) -> tuple[RunInfo, Sequence[Event]]:
    found: tuple[RunInfo, Sequence[Event]] = pickle.loads(packed)  # noqa: S301 (our own)
    return found
