"""`semcast report`: the command line. The work is done in `reporting`, which needs the extra `pipeline`."""

import argparse
import os
from pathlib import Path

from semcast.cli.errors import UsageError


def add_parser(verbs: "argparse._SubParsersAction[argparse.ArgumentParser]") -> None:
    """Declare the verb."""
    parser = verbs.add_parser(
        "report",
        help="write an HTML page with the papers' figures beside ours",
        description="Write an HTML page that compares the papers' figures and tables with the results of"
        " `semcast sweep` and with profiles of recorded traffic.",
    )
    parser.add_argument(
        "--out", type=Path, default=Path("out/report.html"), help="file to write (default: %(default)s)"
    )
    parser.add_argument(
        "--results",
        type=Path,
        default=Path("out/sweep"),
        help="results of semcast sweep (default: %(default)s)",
    )
    parser.add_argument("--specs", type=Path, help="the folder of specs (default: the papers' experiments)")
    parser.add_argument(
        "--data",
        type=Path,
        default=os.environ.get("SEMCAST_TRACES"),
        help="the folder of recordings to profile (default: SEMCAST_TRACES; none if it is not set)",
    )
    parser.add_argument(
        "--bench",
        type=Path,
        default=Path("benchmarks/RESULTS.md"),
        help="results of python -m benchmarks --write, for what is measured live (default: %(default)s)",
    )
    parser.add_argument(
        "--no-data", action="store_true", help="do not profile recordings; Spark is not needed then"
    )
    parser.add_argument(
        "--run",
        action="store_true",
        dest="sweep",
        help="first run all simulations without a result, those that failed or took too long among them",
    )
    parser.add_argument(
        "--timeout",
        default="10m",
        help="with --run: time limit of one simulation (default: %(default)s)",
    )
    parser.add_argument("--json", action="store_true", help="print the results as JSON")
    parser.set_defaults(run=run)


def run(args: argparse.Namespace) -> int:
    """Write the page."""
    try:
        from semcast.cli.reporting import write_report  # noqa: PLC0415 (needs the extra)
    except ImportError as error:
        raise UsageError(f"{error}: install semcast[pipeline]") from error
    return write_report(args)
