"""`semcast model stock` and `semcast model frd`: what purging will do, before anything is deployed.

The formulas of Pereira 2002, section 5.1.1, for a stream of trades or for f_{r,d}; with `--simulate`, the
buffer simulation beside them, just past saturation and under heavier loads.
"""

import argparse
import json
from collections.abc import Iterator
from dataclasses import asdict, dataclass
from math import isfinite

from rich.console import Console
from rich.table import Table

from semcast.cli.errors import UsageError
from semcast.models import (
    Frd,
    Intervals,
    Scenario,
    Stock,
    StockClass,
    simulate,
    throughput,
    tolerated_delay,
    tolerated_rate,
)

LOADS = (0.98, 0.8, 0.5)
"""Receiver rates to simulate, as shares of the lowest one that the model finds tolerable."""

WARMUP = 10_000


@dataclass(frozen=True, slots=True)
class Prediction:
    """What the formulas say about one buffer size. Rates are a second, times in milliseconds."""

    n: int
    purge_ratio: float
    tolerated_rate: float
    tolerated_delay_ms: float | None
    extra_delay_percent: float | None
    tr: float | None
    throughput: float | None
    consumed: float | None


@dataclass(frozen=True, slots=True)
class Measurement:
    """One simulated buffer, and by how much it differs from the formulas."""

    n: int
    k: int | None
    tr: float
    load: float
    model_ratio: float
    purge_ratio: float
    difference: float
    model_throughput: float
    throughput: float
    mean_occupancy: float
    queue_delay_ms: float


def add_parser(subparsers: "argparse._SubParsersAction[argparse.ArgumentParser]") -> None:
    """Declare the verb."""
    parser = subparsers.add_parser(
        "model",
        help="predict how much of a kind of traffic can be skipped",
        description="Calculate, without a simulation, which share of messages a buffer can purge, and how"
        " slow a receiver may be.",
    )
    kinds = parser.add_subparsers(dest="model", required=True, metavar="stock|frd")
    stock = kinds.add_parser("stock", help="classes of items, some updated more often than others")
    stock.add_argument(
        "--classes",
        default="25:0.5,100:0.4,750:0.1",
        help="items:share of the updates for each class (default: %(default)s)",
    )
    frd = kinds.add_parser("frd", help="a share r of messages overwrites one of d items")
    frd.add_argument("--r", type=float, required=True, help="share of messages that overwrite an item")
    frd.add_argument("--d", type=int, required=True, help="number of items that are overwritten")
    for kind in (stock, frd):
        kind.add_argument("--buffer", required=True, metavar="N,...", help="buffer sizes, in messages")
        kind.add_argument("--ts", type=float, default=100.0, help="messages a second (default: 100)")
        kind.add_argument("--tr", type=float, help="messages a second that the slow receiver takes")
        kind.add_argument("--k", type=int, help="how far back a message makes others obsolete")
        kind.add_argument("--simulate", action="store_true", help="simulate the buffers, too")
        kind.add_argument("--messages", type=int, default=100_000, help="messages to simulate")
        kind.add_argument("--seed", type=int, default=0, help="seed of --simulate (default: 0)")
        kind.add_argument("--json", action="store_true", help="print JSON")
    parser.set_defaults(run=run)


def run(args: argparse.Namespace) -> int:
    """Predict, simulate if asked to, and print."""
    try:
        model = Frd(args.r, args.d) if args.model == "frd" else Stock(_classes(args.classes))
        sizes = _sizes(args.buffer)
        _check(args)
        predictions = [_predict(model, n, args) for n in sizes]
        measurements = [m for n in sizes for m in _measure(model, n, args)] if args.simulate else []
    except ValueError as error:
        raise UsageError(str(error)) from error
    if args.json:
        document = {
            "model": {"kind": args.model, **asdict(model)},
            "ts": args.ts,
            "k": args.k,
            "predictions": [asdict(row) for row in predictions],
            "simulated": [asdict(row) for row in measurements],
        }
        print(json.dumps(document, indent=2))
    else:
        _print(predictions, measurements)
    return 0


def _sizes(text: str) -> list[int]:
    try:
        sizes = [int(part) for part in text.split(",")]
    except ValueError:
        raise UsageError(f"--buffer {text}: write sizes such as 10,20,30") from None
    if min(sizes) < 1:
        raise UsageError(f"--buffer {text}: a buffer holds at least 1 message")
    return sizes


def _classes(text: str) -> tuple[StockClass, ...]:
    try:
        pairs = [part.split(":") for part in text.split(",")]
        return tuple(StockClass(int(items), float(share)) for items, share in pairs)
    except ValueError:
        raise UsageError(f"--classes {text}: write items:share, such as 25:0.5,100:0.4,750:0.1") from None


def _check(args: argparse.Namespace) -> None:
    for name, rate in (("--ts", args.ts), ("--tr", args.tr)):
        if rate is not None and not (rate > 0 and isfinite(rate)):
            raise UsageError(f"{name} {rate:g}: a rate is more than 0 messages a second")
    for name, count in (("--k", args.k), ("--messages", args.messages)):
        if count is not None and count < 1:
            raise UsageError(f"{name} {count}: at least 1")


def _purge_ratio(model: Frd | Stock, n: int, k: int | None) -> float:
    return model.purge_ratio(n if k is None else min(n, k))


def _predict(model: Frd | Stock, n: int, args: argparse.Namespace) -> Prediction:
    ratio = _purge_ratio(model, n, args.k)
    delay = tolerated_delay(args.ts, ratio)
    bounded = isfinite(delay)
    rates = None if args.tr is None else throughput(args.ts, args.tr, ratio)
    return Prediction(
        n=n,
        purge_ratio=ratio,
        tolerated_rate=tolerated_rate(args.ts, ratio),
        tolerated_delay_ms=delay * 1000 if bounded else None,
        extra_delay_percent=(delay * args.ts - 1) * 100 if bounded else None,
        tr=args.tr,
        throughput=None if rates is None else rates.sent,
        consumed=None if rates is None else rates.consumed,
    )


def _measure(model: Frd | Stock, n: int, args: argparse.Namespace) -> Iterator[Measurement]:
    """Simulate with the reach that the model assumes (k = N) and without a limit, unless one is given."""
    ratio = _purge_ratio(model, n, args.k)
    lowest = tolerated_rate(args.ts, ratio)
    rates = [args.tr] if args.tr is not None else [share * lowest for share in LOADS if lowest > 0]
    for tr in rates:
        expected = throughput(args.ts, tr, ratio)
        for k in (n, None) if args.k is None else (args.k,):
            scenario = Scenario(args.ts, tr, n, k, intervals=Intervals.EXPONENTIAL, backlog=True)
            found = simulate(scenario, model, args.messages, WARMUP, args.seed)
            model_ratio = 1 - expected.consumed / expected.sent
            yield Measurement(
                n=n,
                k=k,
                tr=tr,
                load=lowest / tr,
                model_ratio=model_ratio,
                purge_ratio=found.purge_ratio,
                difference=found.purge_ratio - model_ratio,
                model_throughput=expected.sent,
                throughput=found.throughput,
                mean_occupancy=found.mean_occupancy,
                queue_delay_ms=found.mean_queue_delay * 1000,
            )


def _print(predictions: list[Prediction], measurements: list[Measurement]) -> None:
    console = Console()
    table = _table("The model", "N", "R_N", "slowest receiver, msg/s", "longest delay, ms", "extra, %")
    with_rates = predictions[0].tr is not None
    for header in ("Tr", "T", "T'") if with_rates else ():
        table.add_column(header, justify="right")
    for p in predictions:
        cells = [str(p.n), f"{p.purge_ratio:.3f}", f"{p.tolerated_rate:.2f}"]
        cells += [_number(p.tolerated_delay_ms, 2), _number(p.extra_delay_percent, 1)]
        cells += [_number(value, 2) for value in (p.tr, p.throughput, p.consumed)] if with_rates else []
        table.add_row(*cells)
    console.print(table)
    if not measurements:
        return
    rates = ("N", "k", "Tr", "load")
    ratios = ("model", "simulated", "difference")
    figures = ("T model", "T", "held", "queued, ms")
    table = _table("The simulation: messages purged for each one sent", *rates, *ratios, *figures)
    for m in measurements:
        table.add_row(
            str(m.n),
            "any" if m.k is None else str(m.k),
            *(f"{value:.2f}" for value in (m.tr, m.load)),
            *(f"{value:.3f}" for value in (m.model_ratio, m.purge_ratio)),
            f"{m.difference:+.3f}",
            *(f"{value:.2f}" for value in (m.model_throughput, m.throughput, m.mean_occupancy)),
            f"{m.queue_delay_ms:.1f}",
        )
    console.print(table)


def _table(title: str, *headers: str) -> Table:
    table = Table(title=title, title_justify="left")
    for header in headers:
        table.add_column(header, justify="right")
    return table


def _number(value: float | None, digits: int) -> str:
    return "any" if value is None else f"{value:.{digits}f}"
