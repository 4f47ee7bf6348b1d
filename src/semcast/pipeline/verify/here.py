"""Few rows are judged by this process alone, by the checkers in memory: Spark would take longer to start."""

from collections.abc import Iterable
from pathlib import Path

import pyarrow as pa

from semcast.history import History, HistoryError
from semcast.history.reader import read_files
from semcast.pipeline.paths import is_remote, local_path
from semcast.pipeline.verify.files import Recorded
from semcast.pipeline.verify.job import Options, Report, wanted_properties
from semcast.pipeline.verify.roster import check_nobody_missing
from semcast.pipeline.verify.verdicts import Verdict, as_violation, in_memory
from semcast.pipeline.verify.violations import OUTPUT, output_row
from semcast.pipeline.writing import write_here
from semcast.specs import check

HERE_ROWS = 50_000
"""So many rows of all runs together are judged here."""


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
        verdicts += [in_memory(run, each, options.max_sample) for each in check(history, wanted[run])]
    if options.out is not None:
        _write([each for each in verdicts if each.count], Path(local_path(str(options.out))) / "violations")
    return Report(recorded.runs, recorded.rows, verdicts)


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
