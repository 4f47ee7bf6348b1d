"""Checkers in tasks: each is given a part of a run, and the rows of its outline that belong to every part.

A part is chosen so that no row of another one matters to what is judged in it.
"""

import pickle
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass
from functools import lru_cache

import msgspec
import pyarrow as pa
import pyarrow.compute as pc
from pyspark.sql import Column, DataFrame
from pyspark.sql import functions as fn

from semcast.core.ids import MemberId
from semcast.history import Event, History, RunInfo
from semcast.history.columns import SCHEMA
from semcast.history.decoding import decode, rows_of
from semcast.pipeline.verify.forms import Findings, Given
from semcast.pipeline.verify.violations import known_violations, told_by
from semcast.specs import Status, Verdict

MOST = 500_000
"""Rows that one task may hold."""

_TOLD = pa.schema([("run", pa.string()), ("task", pa.string()), ("verdict", pa.binary())])
_SPARK = "run string, task string, verdict binary"


Checker = Callable[[History], Verdict]


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
    told = rows.groupBy("run", "task", "part").applyInArrow(_judging(tasks, packed), _SPARK).collect()
    for run, task, verdict in told:
        name = tasks[task].property
        if verdict is None:
            found.doubts[run, name] = "a part of the run has too many rows for one task"
            continue
        judged: Verdict = pickle.loads(verdict)  # noqa: S301 (bytes that our own tasks made)
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


def _judging(
    tasks: Mapping[str, Task], packed: Mapping[tuple[str, str], bytes]
) -> Callable[[pa.Table], pa.Table]:
    """Outlines travel packed: a worker knows the kinds of rows only when it has loaded their modules."""

    def judge(table: pa.Table) -> pa.Table:
        run, name = table.column("run")[0].as_py(), table.column("task")[0].as_py()
        if table.num_rows > MOST:
            return pa.table([[run], [name], [None]], schema=_TOLD)
        task = tasks[name]
        info, outline = _unpacked(packed[run, name])
        events = in_order(table.select(SCHEMA.names))
        if task.own:
            processes = {event.process for event in events}
            outline = [event for event in outline if event.process in processes]
        rows = {(event.process, event.index): event for event in (*outline, *events)}
        history = History(info, sorted(rows.values(), key=lambda event: event.index))
        return pa.table([[run], [name], [pickle.dumps(task.checker(history))]], schema=_TOLD)

    return judge


@lru_cache(maxsize=8)
def _unpacked(packed: bytes) -> tuple[RunInfo, Sequence[Event]]:
    found: tuple[RunInfo, Sequence[Event]] = pickle.loads(packed)  # noqa: S301 (our own)
    return found
