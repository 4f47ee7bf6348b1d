"""`make bench`: every benchmark, printed as a table and written to benchmarks/RESULTS.md.

Each row stands beside a floor measured in the same run; on a shared machine only the ratio means anything.
"""

import argparse
import importlib
import os
import platform
import sys
from collections.abc import Iterable
from datetime import UTC, datetime
from pathlib import Path

from rich.console import Console
from rich.table import Table

from benchmarks.rows import Row

GROUPS = (
    "buffers",
    "simulation",
    "scale",
    "ring",
    "vsync",
    "live",
    "calls",
    "gossip",
    "storage",
    "engine",
    "daemon",
    "isis",
    "profile",
    "journals",
    "verify",
    "sweep",
    "streaming",
)
BY_NAME = ("compiled",)
"""Groups that need something made first, and run only when they are named."""
RESULTS = Path(__file__).with_name("RESULTS.md")


def main() -> int:
    parser = argparse.ArgumentParser(prog="python -m benchmarks")
    parser.add_argument(
        "groups", nargs="*", default=GROUPS, help=f"which ones: {', '.join(GROUPS + BY_NAME)}"
    )
    parser.add_argument("--write", action="store_true", help="write RESULTS.md")
    args = parser.parse_args()
    console = Console(width=110)
    measured: list[tuple[str, list[Row]]] = []
    for group in args.groups:
        if group not in GROUPS + BY_NAME:
            parser.error(f"no group {group!r}; there are {', '.join(GROUPS + BY_NAME)}")
        console.print(f"{group} ...", style="dim")
        rows = importlib.import_module(f"benchmarks.{group}").run()
        measured.append((group, rows))
        console.print(_table(group, rows))
    if args.write:
        before = RESULTS.read_text(encoding="utf8") if RESULTS.exists() else ""
        RESULTS.write_text(_page(measured, before), encoding="utf8")
        console.print(f"written to {RESULTS.name}")
    return 0


def _cells(row: Row) -> tuple[str, ...]:
    return row.name, _number(row.value), _number(row.floor), row.unit, f"{row.ratio:.2f}", row.target


def _number(value: float) -> str:
    return f"{value:,.0f}" if abs(value) >= 100 else f"{value:.2f}"


def _table(group: str, rows: Iterable[Row]) -> Table:
    table = Table(title=group)
    for column in ("what / floor", "value", "floor", "unit", "ratio", "target"):
        table.add_column(column, justify="left" if column in ("what / floor", "unit", "target") else "right")
    for row in rows:
        table.add_row(*_cells(row))
    return table


def _page(measured: list[tuple[str, list[Row]]], before: str) -> str:
    """The results; groups that were not measured keep what was written before."""
    lines = [
        "# Benchmark results",
        "",
        f"{platform.system()} {platform.machine()}, {os.cpu_count()} cores, CPython "
        f"{platform.python_version()}. Written by `make bench`.",
        "The machine is shared and its clock noisy: only ratios inside one run mean anything, and the",
        "floor of a row was measured in the same run.",
        "",
    ]
    parts = [part.partition("\n") for part in before.split("\n## ")[1:]]
    sections = {group: text.strip() for group, _, text in parts}
    today = datetime.now(UTC).date().isoformat()
    for group, rows in measured:
        table = [
            f"Measured on {today}.",
            "",
            "| what / floor | value | floor | unit | ratio | target |",
            "|---|--:|--:|---|--:|---|",
        ]
        sections[group] = "\n".join([*table, *("| " + " | ".join(_cells(row)) + " |" for row in rows)])
    for group in GROUPS + BY_NAME:
        if group in sections:
            lines += [f"## {group}", "", sections[group], ""]
    return "\n".join(lines)


if __name__ == "__main__":
    sys.exit(main())
