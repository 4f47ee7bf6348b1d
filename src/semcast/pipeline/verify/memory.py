"""Runs that are small enough are judged by the checkers in memory.

Few rows of all runs together are judged by this process alone: Spark would take longer to start. On Spark,
runs of which one task can hold all rows are judged so by every property that has no form as good as that.
"""

import pickle
from collections.abc import Callable, Iterable, Mapping, Sequence
from pathlib import Path

import pyarrow as pa
from pyspark.sql import DataFrame

from semcast import specs
from semcast.history import History, HistoryError, RunInfo
from semcast.history.columns import SCHEMA
from semcast.history.decoding import decode, rows_of
from semcast.history.reader import read_files
from semcast.pipeline.paths import is_remote, local_path
from semcast.pipeline.session import slots
from semcast.pipeline.verify.events import Recorded
from semcast.pipeline.verify.forms import wanted_properties
from semcast.pipeline.verify.totals import check_nobody_missing
from semcast.pipeline.verify.verdicts import (
    NOTHING_RECORDED,
    Options,
    Report,
    Verdict,
    as_violation,
    in_memory,
)
from semcast.pipeline.verify.violations import OUTPUT, output_row
from semcast.pipeline.writing import write_here
from semcast.specs import Status, check

HERE_ROWS = 50_000
"""So many rows of all runs together are judged here."""

_TOLD = pa.schema([("run", pa.string()), ("verdicts", pa.binary())])


def fits_here(recorded: Recorded, options: Options) -> bool:
    """Whether these histories need no Spark."""
    out = None if options.out is None else local_path(str(options.out))
    return recorded.rows <= HERE_ROWS and (out is None or not is_remote(out))


def verify_here(recorded: Recorded, options: Options) -> Report:
    """The same as `verify`, in memory; raises HistoryError where histories are not what they should be."""
    wanted = wanted_properties(recorded.runs, options.properties)
    histories = _histories(recorded)
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
    rows: DataFrame, infos: Mapping[str, RunInfo], names: Mapping[str, Sequence[str]], most: int
) -> list[Verdict]:
    """The verdicts on these properties of the runs of these rows, each run in one task."""
    wanted = {run: (infos[run], tuple(names[run])) for run in names}
    tasks = min(len(names), slots(rows.sparkSession))
    apart = rows.select(*SCHEMA.names).repartition(tasks, "run").groupBy("run")
    found = apart.applyInArrow(_judging(wanted), "run string, verdicts binary").collect()
    # What is loaded are bytes that our own tasks made.
    return [in_memory(run, each, most) for run, told in found for each in pickle.loads(told)]  # noqa: S301


def _judging(wanted: Mapping[str, tuple[RunInfo, Sequence[str]]]) -> Callable[[pa.Table], pa.Table]:
    def judge(table: pa.Table) -> pa.Table:
        run = table.column("run")[0].as_py()
        info, names = wanted[run]
        events = sorted(map(decode, rows_of(table)), key=lambda event: event.index)
        found = check(History(info, events), names)
        return pa.table([[run], [pickle.dumps(found)]], schema=_TOLD)

    return judge
