"""`semcast verify`: recorded histories of any size against what their stacks promise, on Spark."""

import argparse
import json
from pathlib import Path
from typing import TYPE_CHECKING

from rich.console import Console
from rich.markup import escape
from rich.table import Table

from semcast.cli.arguments import check_folder
from semcast.cli.check import cut_off
from semcast.cli.errors import UsageError
from semcast.cli.spark import add_spark_options, spark_failures, start_spark
from semcast.history import HistoryError, converted
from semcast.pipeline.paths import is_remote, local_path
from semcast.pipeline.staging import staged
from semcast.specs import IN_MEMORY, PROPERTIES, Status

if TYPE_CHECKING:
    from semcast.pipeline.verify import Offence, Report, Verdict

_COLOURS = {Status.HOLDS: "green", Status.VIOLATED: "bold red", Status.UNKNOWN: "yellow"}


def add_parser(subparsers: "argparse._SubParsersAction[argparse.ArgumentParser]") -> None:
    """Add the verb to the program."""
    parser = subparsers.add_parser(
        "verify",
        help="check recorded histories of any size (Spark)",
        description="Check recorded histories of any size. Exits with 1 if a property is violated, and with"
        " --strict also if one is unknown.",
    )
    parser.add_argument(
        "paths", nargs="+", metavar="HISTORY", help="a history file, a journal, a folder, or a URI"
    )
    parser.add_argument(
        "--property",
        dest="properties",
        metavar="NAME",
        action="append",
        help="check only this property; may be repeated (default: all that the stack promises)",
    )
    parser.add_argument("--out", metavar="DIR", help="write all violations to this folder, as Parquet")
    parser.add_argument(
        "--stage",
        metavar="DIR",
        help="folder for temporary copies of journals and of histories at URIs; on a cluster, a folder that"
        " all machines share (default: the temporary folder)",
    )
    parser.add_argument(
        "--strict", action="store_true", help="treat a property with verdict unknown as violated"
    )
    parser.add_argument("--json", action="store_true", help="print JSON")
    add_spark_options(parser)
    parser.add_argument(
        "--max-sample",
        type=int,
        default=10,
        metavar="N",
        help="violations to show per property (default: 10)",
    )
    parser.add_argument(
        "--allow-missing",
        action="store_true",
        help="accept members without a recording, as if they had done nothing",
    )
    parser.set_defaults(run=run)


def run(args: argparse.Namespace) -> int:
    """Verify and print; 0 if nothing is violated, 1 if something is, or with `--strict` unknown."""
    _check(args)
    with spark_failures():
        report = _report(args)
    if args.json:
        print(json.dumps(_as_json(report), indent=2))
    else:
        _show(report)
    return 1 if _violated(report) or (args.strict and _unknown(report)) else 0


def _check(args: argparse.Namespace) -> None:
    known = PROPERTIES | IN_MEMORY
    for name in args.properties or ():
        if name not in known:
            raise UsageError(f"no such property: {name}; choose from {', '.join(known)}")
    if args.max_sample < 1:
        raise UsageError("--max-sample must be at least 1")
    check_folder("--out", args.out)
    if args.stage is not None and not Path(args.stage).is_dir():
        raise UsageError(f"--stage {args.stage}: no such folder")


def _report(args: argparse.Namespace) -> "Report":
    from semcast.pipeline.session import seen_by_executors  # noqa: PLC0415
    from semcast.pipeline.verify import (  # noqa: PLC0415
        Options,
        fits_here,
        survey,
        verify,
        verify_here,
        wanted_properties,
    )

    options = Options(args.properties, args.max_sample, args.allow_missing, args.out)
    try:
        with (
            staged(args.stage) as folder,
            Console(stderr=True).status("reading") as status,
        ):
            recorded = survey(converted(_brought(args, folder), folder))
            wanted_properties(recorded.runs, args.properties)
            if args.master is None and fits_here(recorded, options):
                return verify_here(recorded, options)
            status.update("starting Spark")
            spark = start_spark("semcast verify", args, rows_hint=recorded.rows)
            if recorded.rows > options.small_rows:
                seen_by_executors(spark, recorded.files)
            return verify(spark, recorded, options, lambda step: status.update(f"verifying: {step}"))
    except HistoryError as error:
        raise UsageError(str(error)) from error


def _brought(args: argparse.Namespace, folder: Path) -> list[Path]:
    """Where the histories are on this machine; those at URIs are brought to a folder first."""
    from semcast.pipeline.fetching import fetch  # noqa: PLC0415

    found = []
    for number, name in enumerate(map(local_path, args.paths)):
        if is_remote(name):
            inside = folder / f"from-{number}"
            fetch(start_spark("semcast verify", args), name, inside)
            found.append(inside)
        else:
            found.append(Path(name))
    return found


def _violated(report: "Report") -> list["Verdict"]:
    return [verdict for verdict in report.verdicts if verdict.status is Status.VIOLATED]


def _unknown(report: "Report") -> list["Verdict"]:
    return [verdict for verdict in report.verdicts if verdict.status is Status.UNKNOWN]


def _show(report: "Report") -> None:
    """A line for each run and property, then what is wrong, with its events."""
    console = Console()
    table = Table("run")
    table.add_column("property", no_wrap=True)
    table.add_column("verdict", no_wrap=True)
    table.add_column("cases", justify="right")
    table.add_column("because")
    for verdict in report.verdicts:
        status = f"[{_COLOURS[verdict.status]}]{verdict.status.value}"
        cases = str(verdict.count) if verdict.count else ""
        because = verdict.detail if verdict.status is Status.UNKNOWN else verdict.note
        table.add_row(escape(verdict.run), verdict.property, status, cases, because)
    console.print(table)
    for line in cut_off(report.runs.items()):
        console.print(line, highlight=False, markup=False, soft_wrap=True)
    for verdict in _violated(report):
        lines = [f"{verdict.run}: {verdict.property}: violated, cases: {verdict.count}"]
        lines += [f"    {offence}{_event(offence)}" for offence in verdict.sample]
        console.print("\n".join(lines), highlight=False, markup=False, soft_wrap=True)


def _event(offence: "Offence") -> str:
    return f"  <- {offence.event}" if offence.event else ""


def _as_json(report: "Report") -> dict[str, object]:
    return {
        "runs": [
            {
                "run": run,
                "stack": info.only.stack,
                "cut_off": [str(member) for member in info.cut_off],
                "verdicts": [_verdict_json(verdict) for verdict in report.verdicts if verdict.run == run],
            }
            for run, info in report.runs.items()
        ],
        "events": report.events,
        "violated": len(_violated(report)),
        "unknown": len(_unknown(report)),
    }


def _verdict_json(verdict: "Verdict") -> dict[str, object]:
    return {
        "property": verdict.property,
        "status": verdict.status.value,
        "count": verdict.count,
        "detail": verdict.detail,
        "note": verdict.note,
        "offending": [_offence_json(offence) for offence in verdict.sample],
    }


def _offence_json(offence: "Offence") -> dict[str, object]:
    message = offence.message
    return {
        "process": str(offence.process),
        "sender": None if message is None else str(message.sender),
        "seq": None if message is None else message.seq,
        "reason": offence.reason,
        "event": None
        if offence.index is None
        else {
            "process": str(offence.at_process),
            "index": offence.index,
            "at_ns": offence.at,
            "kind": offence.kind,
        },
    }
