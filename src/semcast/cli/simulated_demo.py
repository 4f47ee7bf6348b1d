"""`semcast demo --simulated`: one slow receiver drags a reliable group down, and a semantic one not."""

import argparse
import json
from pathlib import Path

import msgspec
from rich.console import Console
from rich.live import Live
from rich.table import Table

from semcast.cli.errors import UsageError
from semcast.core.ids import MILLISECOND
from semcast.models import Frd, throughput
from semcast.sim.slow_receiver import SlowReceiver, Throughput, measure

DELAYS_MS = (5, 10, 15, 20, 25, 30, 40)
STACKS = ("reliable", "s-rm")


class Point(msgspec.Struct, frozen=True):
    """One delay, both protocols, and what the model says."""

    delay_ms: int
    reliable: Throughput
    semantic: Throughput
    model: float


def run(args: argparse.Namespace) -> int:
    """Simulate, show, draw; 0 only if the difference is there."""
    console = Console(stderr=args.json, highlight=False)
    console.print(
        "A sender at 100 messages a second, a fast receiver, and one whose application\n"
        "needs time for each message. Half of the messages overwrite the value of one\n"
        "item; every buffer holds 20 messages. The same protocol code in virtual time:\n"
        "first knowing nothing of obsolescence, then using it.\n"
    )
    points = _measure(console)
    chart = _draw(points, args.out)
    if args.json:
        print(json.dumps({"points": msgspec.to_builtins(points), "chart": str(chart) if chart else None}))
    at_20 = next(point for point in points if point.delay_ms == 20)
    held = at_20.semantic.sent >= 95 and at_20.reliable.sent <= 55
    console.print(
        f"\nWith a receiver that takes 20 ms the reliable group runs at "
        f"{at_20.reliable.sent:.0f} messages\na second, the semantic one at "
        f"{at_20.semantic.sent:.0f}. The slow member got {at_20.semantic.delivered_slow:.0f} a second\n"
        "and skipped only what was obsolete."
    )
    console.print(f"Chart: {chart}" if chart else "No chart: install semcast[pipeline] for matplotlib.")
    return 0 if held else 1


def _measure(console: Console) -> list[Point]:
    purge_ratio = Frd(r=0.5, d=1).purge_ratio(20)
    points: list[Point] = []
    with Live(_table(points), console=console, refresh_per_second=4) as live:
        for delay in DELAYS_MS:
            reliable, semantic = (measure(SlowReceiver(stack, delay * MILLISECOND)) for stack in STACKS)
            model = throughput(100.0, 1000.0 / delay, purge_ratio).sent
            points.append(Point(delay, reliable, semantic, model))
            live.update(_table(points))
    return points


def _table(points: list[Point]) -> Table:
    table = Table(title="Messages a second the sender gets rid of")
    for column in (
        "slow receiver takes",
        "reliable",
        "semantic",
        "model",
        "fast member gets",
        "slow member gets",
    ):
        table.add_column(column, justify="right")
    for point in points:
        table.add_row(
            f"{point.delay_ms} ms",
            f"{point.reliable.sent:.1f}",
            f"[bold]{point.semantic.sent:.1f}[/bold]",
            f"{point.model:.1f}",
            f"{point.semantic.delivered_fast:.1f}",
            f"{point.semantic.delivered_slow:.1f}",
        )
    return table


def _draw(points: list[Point], folder: Path) -> Path | None:
    try:
        from matplotlib.figure import Figure  # noqa: PLC0415 - an extra
    except ImportError:
        return None
    figure = Figure(figsize=(7, 4.2), layout="constrained")
    axes = figure.subplots()
    delays = [point.delay_ms for point in points]
    axes.plot(delays, [point.semantic.sent for point in points], marker="o", label="semantic (S-RM)")
    axes.plot(delays, [point.reliable.sent for point in points], marker="s", label="reliable")
    axes.plot(delays, [point.model for point in points], linestyle=":", color="grey", label="model, r=0.5")
    axes.set_xlabel("time the slow receiver takes for a message (ms)")
    axes.set_ylabel("messages a second at the sender")
    axes.set_ylim(0, 110)
    axes.legend()
    axes.grid(alpha=0.3)
    try:
        folder.mkdir(parents=True, exist_ok=True)
        path = folder / "slow-receiver.png"
        figure.savefig(path, dpi=120)
    except OSError as error:
        raise UsageError(f"--out {folder}: {error.strerror}") from error
    return path
