"""`semcast watch`: the recordings of a group that runs, judged every few seconds."""

import argparse
import json
import sys
import time
from pathlib import Path
from typing import TYPE_CHECKING

import msgspec

from semcast.cli.errors import UsageError
from semcast.core.ids import SECOND
from semcast.group.errors import ConfigurationError
from semcast.group.settings import parse_duration, resolve
from semcast.history import HistoryError
from semcast.history.files import needs_pyarrow
from semcast.history.journal import SUFFIX

_SILENT = 30.0
"""Seconds without an event that are worth a word: a process that was killed never ends its recording."""
_OFTEN = 0.01
"""Seconds between two looks, at least."""

if TYPE_CHECKING:
    from semcast.cli.watching import FolderLook, Watched


def add_parser(subparsers: "argparse._SubParsersAction[argparse.ArgumentParser]") -> None:
    """Add the verb to the program."""
    parser = subparsers.add_parser(
        "watch",
        help="check the recordings of a group while it runs",
        description="Read the journals that members write (join(record=DIR)) while the group runs, and report"
        " violations that no later event can repair. Exits with 1 at the first violation, with 0 when all"
        " recordings have ended. semcast check tests all properties after the group has ended.",
    )
    parser.add_argument(
        "what",
        metavar="DIR|GROUP",
        help="folder of recordings, or a group recorded in the folder of the setting record",
    )
    parser.add_argument("--every", default="2s", metavar="TIME", help="time between two checks (default: 2s)")
    parser.add_argument("--for", dest="limit", metavar="TIME", help="exit with 0 after this time")
    parser.add_argument("--keep-going", action="store_true", help="continue after a violation")
    parser.add_argument("--json", action="store_true", help="print events as JSON lines")
    parser.set_defaults(run=run)


def run(args: argparse.Namespace) -> int:
    """Look until something is broken, or nobody writes any more."""
    with needs_pyarrow():
        from semcast.cli.watching import Folder  # noqa: PLC0415
    try:
        every = parse_duration(args.every, "--every") / SECOND
        limit = None if args.limit is None else parse_duration(args.limit, "--for") / SECOND
        if every < _OFTEN:
            raise UsageError(f"--every {args.every}: {_OFTEN * 1000:.0f}ms at least")
        path, group = _folder(args.what)
    except ConfigurationError as error:
        raise UsageError(str(error)) from error
    folder = Folder(path, group)
    say = _Json() if args.json else _Text()
    end = None if limit is None else time.monotonic() + limit
    broken = 0
    waiting = False
    try:
        while True:
            for found in folder.look():
                broken += 1
                say.violation(found)
            look = folder.told()
            say.progress(look)
            if not look.processes and not waiting:
                waiting = True
                print(f"semcast watch: {_nothing_there(path, group)}; waiting for some", file=sys.stderr)
            if broken and not args.keep_going:
                break
            over = look.processes > 0 and look.running == 0 and look.unread == 0
            if over or (end is not None and time.monotonic() >= end):
                break
            time.sleep(every if end is None else max(0.0, min(every, end - time.monotonic())))
    except HistoryError as error:
        raise UsageError(str(error)) from error
    except KeyboardInterrupt:
        look = folder.told()
    if not look.processes:
        raise UsageError(f"{_nothing_there(path, group)}: nothing was checked")
    say.end(look, broken)
    return 1 if broken else 0


def _nothing_there(path: Path, group: str) -> str:
    """That there are no recordings to follow, and what may be wrong."""
    whose = f" of group {group}" if group else ""
    if any(path.glob("*.parquet")):
        return f"{path}: no recordings{whose} that are still written, only histories: semcast check {path}"
    if group and any(path.glob(f"*{SUFFIX}")):
        return f"{path}: no recordings{whose}, only of other groups"
    return f"{path}: no recordings{whose}: programs write them with join(..., record={str(path)!r})"


def _folder(what: str) -> tuple[Path, str]:
    path = Path(what)
    if path.is_dir():
        return path, ""
    if path.is_file():
        raise UsageError(f"{what}: a file; name its folder, {path.parent}")
    record = resolve({}).record
    if record and Path(record).is_dir():
        return Path(record), what
    raise UsageError(
        f"{what}: no such folder; a group is found by its name where record= is set, in semcast.toml or"
        " SEMCAST_RECORD, to a folder that is there"
    )


class _Text:
    """For people: one line that changes, and what is broken."""

    def __init__(self) -> None:
        self._live = sys.stdout.isatty()
        self._checked: tuple[str, ...] = ()
        self._silent = False

    def violation(self, found: "Watched") -> None:
        """At once."""
        self._clear()
        print(f"{found.run}[{found.group}]: violated: {found.alarm}", flush=True)

    def progress(self, look: "FolderLook") -> None:
        """What was judged so far; where nobody looks, only when there is something new."""
        if look.judged != self._checked:
            self._checked = look.judged
            self._clear()
            print(f"checking {', '.join(look.judged)}", flush=True)
        suspected = f", {look.suspected} suspected" if look.suspected else ""
        silent = f", silent for {look.silent:.0f} s" if look.running and look.silent >= _SILENT else ""
        text = (
            f"{look.events:,} events of {look.processes} processes ({look.running} running{silent}),"
            f" judged {look.lag:.1f} s after they were recorded, {look.unread:,} bytes to read{suspected}"
        )
        if self._live:
            print(f"\r\033[K{text}", end="", flush=True)
        elif look.new or (silent and not self._silent):
            print(text, flush=True)
        self._silent = bool(silent)

    def end(self, look: "FolderLook", broken: int) -> None:
        """What came of it."""
        self._clear()
        if broken:
            print(f"{broken} violations in {look.events:,} events")
        elif look.judged:
            print(f"{look.events:,} events: nothing broken so far of {', '.join(look.judged)}")
        else:
            print(f"{look.events:,} events: nothing that the beginning of a run can break")

    def _clear(self) -> None:
        if self._live:
            print("\r\033[K", end="")


class _Json:
    """A line for each thing that happens."""

    def violation(self, found: "Watched") -> None:
        """At once."""
        alarm = found.alarm
        self._say(
            {
                "event": "violation",
                "run": found.run,
                "group": found.group,
                "property": alarm.property,
                "detail": alarm.detail,
                "events": [str(event) for event in alarm.events],
            }
        )

    def progress(self, look: "FolderLook") -> None:
        """After each look."""
        self._say({"event": "progress", **msgspec.to_builtins(look)})

    def end(self, look: "FolderLook", broken: int) -> None:
        """What came of it."""
        self._say({"event": "end", "violations": broken, **msgspec.to_builtins(look)})

    def _say(self, what: dict[str, object]) -> None:
        print(json.dumps(what), flush=True)
