"""`semcast sweep`: grids of simulations on Spark, resumable, beside the paper's numbers."""

import argparse
import json
import os
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import TYPE_CHECKING

import msgspec
from rich.console import Console
from rich.progress import BarColumn, Progress, TaskID, TextColumn, TimeRemainingColumn
from rich.table import Table

from semcast.cli.arguments import duration
from semcast.cli.errors import UsageError
from semcast.cli.spark import add_spark_options, spark_failures, start_spark
from semcast.core.ids import SECOND
from semcast.pipeline.data import VARIABLE, data_folder
from semcast.pipeline.paths import is_remote, local_path
from semcast.pipeline.sweep.bundled import spec_paths
from semcast.pipeline.sweep.spec import Spec, SpecError, read_spec

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

    from semcast.pipeline.sweep.sweep import Summary

SHOWN = 5
"""Cells without figures that are shown; all are in the table."""


def add_parser(verbs: "argparse._SubParsersAction[argparse.ArgumentParser]") -> None:
    """Declare the verb."""
    parser = verbs.add_parser(
        "sweep",
        help="run many simulations with different parameters (Spark)",
        description="Run one simulation for each combination of parameters in SPEC, and write a table of the"
        " results."
        " Simulations that have a result are not repeated. Exits with 1 if one fails.",
    )
    parser.add_argument(
        "specs",
        nargs="+",
        metavar="SPEC",
        help="a TOML file, the name of one of the papers' experiments (f2), or all of these (all)",
    )
    parser.add_argument(
        "--out", default="out/sweep", help="folder or URI of the results (default: %(default)s)"
    )
    add_spark_options(parser)
    parser.add_argument(
        "--jobs", type=int, help="simulations at a time on this machine (default: one per core)"
    )
    parser.add_argument(
        "--timeout", default="60s", help="time limit of one simulation (default: %(default)s)"
    )
    parser.add_argument("--limit", type=int, help="run at most this many simulations of each spec")
    parser.add_argument("--retry", action="store_true", help="repeat the simulations that failed")
    parser.add_argument("--fresh", action="store_true", help="discard the results of earlier sweeps")
    parser.add_argument("--json", action="store_true", help="print JSON")
    parser.set_defaults(run=run)


def run(args: argparse.Namespace) -> int:
    """Sweep; 1 if a cell gave no figures."""
    specs = _asked(args.specs)
    timeout = duration(args.timeout) / SECOND
    if timeout <= 0:
        raise UsageError("--timeout must be above 0")
    if args.limit is not None and args.limit < 1:
        raise UsageError("--limit must be at least 1")
    master = _master(args)
    out = local_path(args.out)
    with spark_failures():
        summaries = sweep_specs(
            start_spark("semcast sweep", args, master=master, rows_hint=len(specs)),
            specs,
            out,
            timeout=timeout,
            limit=args.limit,
            retry=args.retry,
            fresh=args.fresh,
        )
    if args.json:
        print(json.dumps(msgspec.to_builtins(summaries), indent=2))
    else:
        console = Console()
        for summary in summaries:
            _show(console, summary)
    return 1 if any(summary.failures for summary in summaries) else 0


def _asked(words: Sequence[str]) -> list[Spec]:
    """What the command line names; UsageError if a spec replays a recording and no folder is set."""
    try:
        specs = read_specs([path for word in words for path in spec_paths(word)])
    except SpecError as error:
        raise UsageError(str(error)) from error
    for spec in specs:
        if spec.needs_recordings and data_folder() is None:
            raise UsageError(f"{spec.name} replays a recording: set {VARIABLE} to the folder of recordings")
    return specs


def read_specs(paths: Sequence[Path]) -> list[Spec]:
    """Read specs; UsageError for one that is none, or two of one name."""
    try:
        specs = [read_spec(path) for path in paths]
    except SpecError as error:
        raise UsageError(str(error)) from error
    names = [spec.name for spec in specs]
    for name in names:
        if names.count(name) > 1:
            raise UsageError(f"two specs are named {name}: their results would mix")
    return specs


def _master(args: argparse.Namespace) -> str | None:
    master: str | None = args.master
    if args.jobs is None:
        return master
    if master is not None:
        raise UsageError("--jobs is for this machine: leave it or --master out")
    if args.jobs < 1:
        raise UsageError("--jobs must be at least 1")
    return f"local[{args.jobs}]"


def sweep_specs(
    spark: "SparkSession",
    specs: Sequence[Spec],
    out: Path | str,
    *,
    timeout: float,
    limit: int | None = None,
    retry: bool = False,
    fresh: bool = False,
) -> list["Summary"]:
    """Run one sweep after the other, with progress on stderr."""
    from semcast.pipeline.sweep.store import StoreError  # noqa: PLC0415
    from semcast.pipeline.sweep.sweep import run_sweep, store_of  # noqa: PLC0415

    columns = (TextColumn("{task.description}"), BarColumn(), TextColumn("{task.percentage:>3.0f} %"))
    summaries: list[Summary] = []
    console = Console(stderr=True)
    with Progress(*columns, TimeRemainingColumn(), console=console, transient=True) as progress:
        for spec in specs:
            task = progress.add_task(spec.name, total=len(spec.cells))
            if fresh:
                store_of(spark, spec, out).clear()
            try:
                summary = run_sweep(
                    spark,
                    spec,
                    out,
                    timeout=timeout,
                    limit=limit,
                    retry=retry,
                    progress=_reporter(progress, task),
                )
            except StoreError as error:
                raise UsageError(str(error)) from error
            summaries.append(summary)
            if not console.is_terminal:  # a file has no bar: the end of each sweep tells how far it is
                done = f"{len(summaries)} of {len(specs)}"
                console.print(f"{done}: {spec.name}, {summary.ran} simulations in {summary.seconds:.1f} s")
    return summaries


def _reporter(progress: Progress, task: TaskID) -> Callable[[float, int], None]:
    return lambda done, total: progress.update(task, completed=done, total=total)


def _show(console: Console, summary: "Summary") -> None:
    console.print(f"[bold]{summary.name}[/bold] {summary.title}", highlight=False)
    counts = (
        f"{summary.cells} cells: {summary.before} recorded before, "
        f"{summary.ran} run in {summary.seconds:.1f} s, {len(summary.failures)} without figures"
    )
    left = f", {summary.left} left by --limit" if summary.left else ""
    where = summary.table if is_remote(summary.table) else os.path.relpath(summary.table)
    console.print(f"{counts}{left}; {where}", highlight=False)
    for failure in summary.failures[:SHOWN]:
        console.print(f"  {failure.status}: {failure.parameters}: {failure.error}", style="red", markup=False)
    if summary.paper:
        table = Table("what", "paper", "ours")
        for number in summary.paper:
            ours = "-" if number.ours is None else f"{number.ours:.4g}"
            table.add_row(number.what, f"{number.paper:.4g}", ours)
        console.print(table)
