"""The layers of the package, drawn from the contract that `make check` enforces."""

import tomllib
from pathlib import Path

from semcast.demo.svg import AMBER, BLUE, GREEN, SOFT, VIOLET, Canvas

ROOT = Path(__file__).parents[2]
WHAT = {
    "cli": "one file per command",
    "bench": "benchmarks",
    "chaos": "fault injection",
    "dashboard": "a live page",
    "demo": "demonstrations",
    "pipeline": "jobs on Spark",
    "server": "database over HTTP",
    "daemon": "groups for local clients",
    "domains": "many groups, one order",
    "engine": "replicated services",
    "logger": "logs on disk",
    "sim": "simulator",
    "group": "public API: join()",
    "testing": "your program, simulated",
    "net": "UDP, the live driver",
    "storage": "disks",
    "sql": "SQLite",
    "replication": "replication servers",
    "protocols": "protocol state machines",
    "patterns": "application patterns",
    "lab": "groups in memory, for tests",
    "wire": "datagrams, encryption",
    "obsolescence": "what replaces what; purging",
    "core": "ids, messages, views, turns",
}
PURE = {"replication", "protocols", "patterns", "lab", "wire", "obsolescence", "core"}
DRIVERS = {"sim", "net", "storage", "sql", "group", "testing"}
WIDTH, ROW = 900, 46


def layers() -> str:
    """One row per layer; an import may only go down."""
    with (ROOT / "pyproject.toml").open("rb") as file:
        contracts = tomllib.load(file)["tool"]["importlinter"]["contracts"]
    rows = [
        [name.strip().removeprefix("semcast.") for name in row.strip("()").split("|")]
        for contract in contracts
        if contract["type"] == "layers"
        for row in contract["layers"]
    ]
    canvas = Canvas(WIDTH, 66 + ROW * len(rows) + 34, "The layers of the package")
    canvas.text(
        24, 30, "Layers: a package imports only what lies below it", size=15, anchor="start", bold=True
    )
    for number, row in enumerate(rows):
        top = 48 + ROW * number
        width = (WIDTH - 48 - 10 * (len(row) - 1)) / len(row)
        for column, name in enumerate(row):
            left = 24 + column * (width + 10)
            colour = GREEN if name in PURE else BLUE if name in DRIVERS else VIOLET
            canvas.box(left, top, width, ROW - 10, colour)
            canvas.text(left + width / 2, top + 16, name, bold=True)
            canvas.text(left + width / 2, top + 30, WHAT[name], size=11, colour=SOFT)
    bottom = 48 + ROW * len(rows) + 18
    legend = ((GREEN, "pure: no clock, socket, file or thread"), (BLUE, "drivers and API"), (VIOLET, "tools"))
    for number, (colour, words) in enumerate(legend):
        left = 24 + (0, 290, 450)[number]
        canvas.box(left, bottom - 10, 14, 12, colour, 2)
        canvas.text(left + 22, bottom, words, size=12, anchor="start", colour=SOFT)
    canvas.text(WIDTH - 24, bottom, "beside all: specs, history, models", size=12, anchor="end", colour=AMBER)
    return canvas.render()
