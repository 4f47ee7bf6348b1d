"""`semcast pipeline package`: the package as Spark sends it to executors."""

import argparse
from pathlib import Path

from semcast.cli.errors import UsageError
from semcast.pipeline.package import write_package, write_script


def add_parser(verbs: "argparse._SubParsersAction[argparse.ArgumentParser]") -> None:
    """Declare the verb."""
    parser = verbs.add_parser(
        "pipeline",
        help="package semcast for a Spark cluster",
        description="Prepare semcast for a Spark cluster.",
    )
    parts = parser.add_subparsers(dest="part", required=True, metavar="PART")
    package = parts.add_parser(
        "package",
        help="write the package as an archive for --py-files",
        description="Write the package as OUT.zip, and beside it OUT_submit.py, the program for"
        " spark-submit: spark-submit --py-files OUT.zip OUT_submit.py verify HISTORY.",
    )
    package.add_argument("out", type=Path, metavar="OUT.zip", help="archive to write")
    package.set_defaults(run=run)


def run(args: argparse.Namespace) -> int:
    """Write both."""
    out: Path = args.out
    if out.suffix != ".zip":
        raise UsageError(f"{out}: Spark knows archives by their ending, .zip")
    try:
        out.parent.mkdir(parents=True, exist_ok=True)
        files = write_package(out)
        program = write_script(out)
    except OSError as error:
        raise UsageError(f"{out}: cannot be written: {error}") from error
    print(f"{out}: {files} files; {program} is the program for spark-submit")
    return 0
