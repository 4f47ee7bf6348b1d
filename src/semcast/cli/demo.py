"""`semcast demo`: five processes on this host, one of them slow; first without obsolescence, then with it."""

import argparse
import asyncio
import json
import os
import signal
import tempfile
import time
from collections.abc import AsyncIterator, Sequence
from contextlib import asynccontextmanager
from pathlib import Path
from typing import Any

from rich.console import Console
from rich.live import Live
from rich.table import Table

from semcast.cli import simulated_demo
from semcast.cli.judging import Judgement, judge
from semcast.demo.poster import Facts, poster
from semcast.demo.supervisor import DemoError, DemoGroup, Process
from semcast.demo.tape import Tape
from semcast.extras import MissingExtraError
from semcast.group.settings import resolve
from semcast.history.journal import record_crash

MEMBERS = 5
RATE = 1500
SLOW_MS = 10
SECONDS = 6.0
_APART = 1.0


def add_parser(verbs: "argparse._SubParsersAction[argparse.ArgumentParser]") -> None:
    """Declare the verb."""
    parser = verbs.add_parser(
        "demo",
        help="run a group of five processes with one slow member, and check it",
        description="Start five processes that share a table; one of them is slow. Run them with plain"
        " reliability, then"
        " with obsolescence; kill one and restart it; check the recordings; write a picture of the run. A"
        " dashboard"
        " shows the group meanwhile.",
    )
    parser.add_argument(
        "which",
        nargs="?",
        choices=("replication", "logger"),
        help="another demo: replication (a replicated database during a partition) or logger (a message log"
        " with subscribers that crash, disconnect or come late)",
    )
    parser.add_argument(
        "--simulated", action="store_true", help="simulate it in virtual time, for several delays"
    )
    parser.add_argument("--seconds", type=float, default=SECONDS, help="duration of each of the two runs")
    parser.add_argument("--out", type=Path, default=Path("out"), help="folder for the picture of the run")
    parser.add_argument("--json", action="store_true", help="print JSON")
    parser.set_defaults(run=run)


def run(args: argparse.Namespace) -> int:
    """Run the demo; 0 only if everything held."""
    signal.signal(signal.SIGTERM, lambda *_: signal.raise_signal(signal.SIGINT))  # nothing is left behind
    if args.which == "logger":
        from semcast.cli import logger_demo  # noqa: PLC0415 (only where it is asked for)

        return logger_demo.run(args)
    if args.which is not None:
        from semcast.cli import replication_demo  # noqa: PLC0415 (the extra may be missing)

        return replication_demo.run(args)
    if args.simulated:
        return simulated_demo.run(args)
    console = Console(stderr=args.json, highlight=False)
    try:
        result = asyncio.run(_demo(console, args.seconds, args.out))
    except DemoError as error:
        console.print(f"demo: {error}", style="red")
        return 1
    if args.json:
        print(json.dumps(result, indent=2))
    return 0 if result["held"] else 1


async def _demo(console: Console, seconds: float, out: Path) -> dict[str, Any]:
    console.print(
        f"{MEMBERS} processes on this host keep a table of prices in common. p0 sends {RATE}\n"
        f"quotes a second; the application of p{MEMBERS - 1} blocks for {SLOW_MS} ms with each.\n"
    )
    with tempfile.TemporaryDirectory(prefix="semcast-demo-") as folder:
        records = [Path(folder) / "plain", Path(folder) / "semantic"]
        async with _watched(console, [_name("block"), _name("purge")]):
            plain, first = await _run(console, "plain reliability", "block", seconds, records[0])
            semantic, second = await _run(console, "with obsolescence", "purge", seconds, records[1])
        judged = _verify(console, records)
    faster = semantic["rate"] / max(plain["rate"], 1.0)
    console.print("\nquotes a second at the fast members")
    for title, rate in (("plain reliability", plain["rate"]), ("with obsolescence", semantic["rate"])):
        console.print(f"  {title:18} {'█' * max(1, round(50 * rate / RATE))} {rate:.0f}")
    console.print(
        f"\nReliable: the fast members got {plain['rate']:.0f} quotes a second, as the slow one does.\n"
        f"With obsolescence: {semantic['rate']:.0f} a second, {faster:.0f} times as many. The slow one\n"
        f"skipped {semantic['purged']} quotes that newer ones had replaced, and was\n"
        f"{semantic['stale_ms']} ms behind at the most."
    )
    picture = poster(
        first,
        second,
        Facts(
            offered=RATE,
            slow_ms=SLOW_MS,
            plain=plain["rate"],
            semantic=semantic["rate"],
            skipped=semantic["purged"],
            stale_ms=semantic["stale_ms"],
            hold=judged.hold if judged is not None and not judged.broken else 0,
            events=judged.events if judged is not None else 0,
        ),
    )
    held = (judged is None or not judged.broken) and faster > 2
    shown = _save(console, out, picture)
    return {
        "plain": plain,
        "semantic": semantic,
        "faster": round(faster, 1),
        "held": held,
        "picture": shown,
    }


def _save(console: Console, out: Path, picture: str) -> str | None:
    """Write the picture of the run; where it is, if it could be written."""
    path = out / "demo.svg"
    try:
        out.mkdir(parents=True, exist_ok=True)
        path.write_text(picture, encoding="utf8")
    except OSError as error:
        console.print(f"\nThe picture of this run was not written: {path}: {error.strerror}", markup=False)
        return None
    where = path.absolute()
    console.print(
        f"\nA picture of this run, to look at and to share: {where.as_uri()}", markup=False, soft_wrap=True
    )
    return str(where)


def _name(policy: str) -> str:
    """Of the group of a run."""
    return f"demo-{os.getpid()}-{policy}"


@asynccontextmanager
async def _watched(console: Console, groups: Sequence[str]) -> AsyncIterator[None]:
    """With the dashboard, where it can be served."""
    try:
        from semcast.dashboard.serving import dashboard  # noqa: PLC0415 (the extra may be missing)
    except ImportError:
        console.print("To watch it in a browser as well: pip install 'semcast[server]'\n", markup=False)
        yield
        return
    async with dashboard(groups, resolve({})) as address:
        console.print(f"Watch it in a browser, while it runs: {address}\n")
        yield


async def _run(
    console: Console, title: str, policy: str, seconds: float, record: Path
) -> tuple[dict[str, Any], Tape]:
    record.mkdir(parents=True)
    name = _name(policy)
    processes = [
        Process(
            name,
            f"p{number}",
            policy=policy,
            rate=RATE,
            delay=SLOW_MS if number == MEMBERS - 1 else 0,
            record=str(record),
        )
        for number in range(MEMBERS)
    ]
    group = DemoGroup(processes)
    await group.start()
    tape = Tape(processes)
    recording = asyncio.create_task(tape.record())
    try:
        result = await _watch(console, title, group, seconds)
        if policy == "purge":
            await _crash_and_return(console, group, record, tape)
        recording.cancel()
        await processes[0].tell("stop")
        await group.until(group.agreed, 30, "come to the same table")
        console.print(f"  all {MEMBERS} tables are the same, {processes[0].report['items']} prices each")
    finally:
        recording.cancel()
        await group.stop()
    return result, tape


async def _watch(console: Console, title: str, group: DemoGroup, seconds: float) -> dict[str, Any]:
    """Show a live table while quotes flow."""
    sender, slow = group.processes[0], group.processes[-1]
    await sender.tell("go")
    started = time.monotonic()
    before = group.processes[1].report["delivered"]
    stale = 0
    with Live(console=console, refresh_per_second=4, transient=False) as live:
        while time.monotonic() - started < seconds:
            await asyncio.sleep(0.25)
            if time.monotonic() - started > 2.0:
                stale = max(stale, slow.report.get("stale_ms") or 0)
            live.update(_table(title, group))
    console.print()
    rate = (group.processes[1].report["delivered"] - before) / (time.monotonic() - started)
    return {"rate": round(rate, 1), "purged": slow.report["purged"], "stale_ms": stale}


async def _crash_and_return(console: Console, group: DemoGroup, record: Path, tape: Tape) -> None:
    """Kill one with SIGKILL while quotes flow; it comes back and gets the state."""
    victim = group.processes[2]
    console.print(f"  kill -9 {victim.name} ...")
    tape.mark(victim, "kill -9")
    await victim.kill()
    record_crash(record, victim.name)
    others = [process for process in group.processes if process is not victim]
    started = time.monotonic()
    await group.until(
        lambda: all(process.report.get("view") == MEMBERS - 1 for process in others), 15, "notice the crash"
    )
    console.print(
        f"  the others go on without it after {time.monotonic() - started:.1f} s; it starts again ..."
    )
    await asyncio.sleep(_APART)  # so that the picture shows its absence
    started = time.monotonic()
    tape.mark(victim, "starts again")
    await victim.start()
    await group.until(lambda: group.together() and bool(victim.report.get("items")), 15, "take it back")
    console.print(
        f"  {victim.name} is back after {time.monotonic() - started:.1f} s"
        f" with {victim.report['items']} prices from the others"
    )
    await asyncio.sleep(_APART)


def _verify(console: Console, folders: Sequence[Path]) -> Judgement | None:
    """Judge what the members recorded; None where that cannot be done here."""
    try:
        judged = judge(console, folders)
    except MissingExtraError as error:
        console.print(f"\nThe recordings were not checked: {error}", markup=False)
        return None
    console.print(
        f"\n{judged.events} recorded events judged {judged.where}: {judged.hold} properties hold,"
        f" {len(judged.broken)} are broken"
    )
    for words in judged.broken:
        console.print(words, style="red", markup=False)
    return judged


def _table(title: str, group: DemoGroup) -> Table:
    table = Table(title=title)
    for column in ("member", "delivered/s", "queue", "purged", "behind (ms)", "view of"):
        table.add_column(column, justify="left" if column == "member" else "right")
    for number, process in enumerate(group.processes):
        report = process.report
        label = process.name + (" sends" if number == 0 else " slow" if number == MEMBERS - 1 else "")
        table.add_row(
            label,
            f"{process.rate:.0f}",
            str(report.get("queue", "-")),
            str(report.get("purged", "-")),
            str(report.get("stale_ms") if report.get("stale_ms") is not None else "-"),
            str(report.get("view", "-")),
        )
    return table
