"""`semcast check`: recorded histories against the properties that their stacks promise."""

import argparse
import json
from collections.abc import Iterable, Iterator
from pathlib import Path

from rich.console import Console
from rich.markup import escape
from rich.table import Table

from semcast.cli.errors import UsageError
from semcast.history import Event, History, HistoryError, RunInfo, read_histories
from semcast.specs import IN_MEMORY, PROPERTIES, Status, Verdict, check

_COLOURS = {Status.HOLDS: "green", Status.VIOLATED: "bold red", Status.UNKNOWN: "yellow"}

_Judged = list[tuple[str, History, list[Verdict]]]
"""By the name of the run, or of one of its groups."""


def add_parser(subparsers: "argparse._SubParsersAction[argparse.ArgumentParser]") -> None:
    """Add the verb to the program."""
    parser = subparsers.add_parser(
        "check",
        help="check recorded histories against the promised properties",
        description="Check recorded histories in memory. Exits with 1 if a property is violated, and with"
        " --strict also if one is unknown.",
    )
    parser.add_argument("path", metavar="DIR", type=Path, help="a folder of histories, or one file")
    parser.add_argument(
        "--property",
        dest="properties",
        metavar="NAME",
        action="append",
        help="check this property only; may be repeated (default: all that the stack promises)",
    )
    parser.add_argument(
        "--strict", action="store_true", help="treat a property with verdict unknown as violated"
    )
    parser.add_argument("--json", action="store_true", help="print JSON")
    parser.set_defaults(run=run)


def run(args: argparse.Namespace) -> int:
    """Check and print; 0 if nothing is violated, 1 if something is, or with `--strict` unknown."""
    judged = _judge(args.path, args.properties)
    if args.json:
        print(json.dumps(_as_json(judged), indent=2))
    else:
        _print(judged)
    return 1 if _violations(judged) or (args.strict and _unknown(judged)) else 0


def _judge(path: Path, properties: list[str] | None) -> _Judged:
    for name in properties or ():
        if name not in PROPERTIES and name not in IN_MEMORY:
            raise UsageError(f"no such property: {name}; choose from {', '.join([*PROPERTIES, *IN_MEMORY])}")
    try:
        return [
            (name, alone, _check(name, alone, properties))
            for history in read_histories(path)
            for name, alone in zip(history.info.apart(), history.by_group(), strict=True)
        ]
    except HistoryError as error:
        raise UsageError(str(error)) from error


def _check(name: str, history: History, properties: list[str] | None) -> list[Verdict]:
    try:
        return check(history, properties)
    except ValueError as error:
        raise UsageError(f"run {name}: {error}; name some with --property") from error


def _violations(judged: _Judged) -> list[tuple[str, Verdict]]:
    return _having(judged, Status.VIOLATED)


def _unknown(judged: _Judged) -> list[tuple[str, Verdict]]:
    return _having(judged, Status.UNKNOWN)


def _having(judged: _Judged, status: Status) -> list[tuple[str, Verdict]]:
    return [
        (name, verdict) for name, _, verdicts in judged for verdict in verdicts if verdict.status is status
    ]


def cut_off(runs: Iterable[tuple[str, RunInfo]]) -> Iterator[str]:
    """A sentence about each run with recordings that are cut off, as those of processes that were killed."""
    for name, info in runs:
        if info.cut_off:
            who = ", ".join(map(str, info.cut_off))
            yield f"{name}: cut off: the recordings of {who}. What they lack is unknown."


def _print(judged: _Judged) -> None:
    """A line for each run and property, then what is wrong, with its events."""
    console = Console()
    table = Table("run")
    table.add_column("property", no_wrap=True)
    table.add_column("verdict", no_wrap=True)
    table.add_column("cases", justify="right")
    table.add_column("because")
    for name, _, verdicts in judged:
        for verdict in verdicts:
            status = f"[{_COLOURS[verdict.status]}]{verdict.status.value}"
            cases = str(verdict.count) if verdict.count else ""
            because = verdict.detail if verdict.status is Status.UNKNOWN else verdict.note
            table.add_row(escape(name), verdict.property, status, cases, because)
    console.print(table)
    for line in cut_off((name, history.info) for name, history, _ in judged):
        console.print(line, highlight=False, markup=False, soft_wrap=True)
    for name, verdict in _violations(judged):
        console.print(f"{name}: {verdict}", highlight=False, markup=False, soft_wrap=True)


def _as_json(judged: _Judged) -> dict[str, object]:
    return {
        "runs": [
            {
                "run": name,
                "stack": history.info.only.stack,
                "events": len(history.events),
                "cut_off": [str(member) for member in history.info.cut_off],
                "verdicts": [_verdict_json(verdict) for verdict in verdicts],
            }
            for name, history, verdicts in judged
        ],
        "violated": len(_violations(judged)),
        "unknown": len(_unknown(judged)),
    }


def _verdict_json(verdict: Verdict) -> dict[str, object]:
    return {
        "property": verdict.property,
        "status": verdict.status.value,
        "count": verdict.count,
        "detail": verdict.detail,
        "note": verdict.note,
        "offending": [_event_json(event) for event in verdict.offending],
    }


def _event_json(event: Event) -> dict[str, object]:
    sender = event.sender
    return {
        "process": event.process.name,
        "incarnation": event.process.incarnation,
        "index": event.index,
        "at_ns": event.at,
        "kind": event.kind.value,
        "sender": None if sender is None else sender.name,
        "sender_incarnation": None if sender is None else sender.incarnation,
        "seq": event.seq,
        "count": event.count,
    }
