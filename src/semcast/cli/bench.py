"""`semcast bench`: how fast a group is on this host, with real processes."""

import argparse
import json
import tempfile
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import msgspec
from rich.console import Console
from rich.table import Table

from semcast.bench import Case, Figures, measure
from semcast.bench.compare import Missing, Standing, compare
from semcast.bench.families import FAMILIES
from semcast.bench.measuring import BenchError
from semcast.cli.errors import UsageError


def add_parser(verbs: "argparse._SubParsersAction[argparse.ArgumentParser]") -> None:
    """Declare the verb."""
    parser = verbs.add_parser(
        "bench",
        help="measure throughput and latency of a group on this host",
        description="Start a group of processes on this host, send messages, and print how many arrive a"
        " second and"
        " how long they take.",
    )
    parser.add_argument("--members", type=int, default=3, help="number of processes (default: 3)")
    parser.add_argument("--senders", type=int, default=1, help="number of members that send (default: 1)")
    parser.add_argument("--size", type=int, default=64, help="payload size in bytes")
    parser.add_argument("--messages", type=int, default=500_000, help="messages per sender (default: 500000)")
    parser.add_argument("--stack", choices=FAMILIES.names(), default="ring", help="default: ring")
    orders = dict.fromkeys(order for family in FAMILIES for order in family.orders)
    parser.add_argument("--order", choices=orders, help="message order (default: agreed for ring, else fifo)")
    parser.add_argument(
        "--engine", choices=("token", "consensus"), default="", help="vsync: how a total order is decided"
    )
    parser.add_argument(
        "--uniform", action="store_true", help="vsync: deliver a message only once a majority has it"
    )
    parser.add_argument("--items", type=int, default=0, help="make messages updates of this many items")
    parser.add_argument(
        "--rate", type=float, default=0.0, help="messages per second and sender; 0 for as fast as possible"
    )
    parser.add_argument(
        "--reading",
        choices=("batches", "single", "blocking"),
        default="batches",
        help="how programs read: lists, one message at a time, or semcast.blocking (default: batches)",
    )
    parser.add_argument(
        "--sleeping", type=float, default=0.0, help="milliseconds the last member sleeps for each message"
    )
    parser.add_argument(
        "--datagram", type=int, default=0, help="largest datagram in bytes; 0 for the default"
    )
    parser.add_argument(
        "--fanout",
        choices=("unicast", "multicast"),
        default="unicast",
        help="how datagrams reach all members (default: unicast)",
    )
    parser.add_argument("--key-file", default="", help="encrypt with this keyring")
    parser.add_argument("--record", action="store_true", help="record all events, as record= does")
    parser.add_argument(
        "--compare",
        action="store_true",
        help="instead, measure three members beside a hand-written TCP hub, and beside pyzmq where it is"
        " installed; every message is stamped and unpacked",
    )
    parser.add_argument(
        "--seconds", type=float, default=1.5, help="with --compare: length of a measurement (default: 1.5)"
    )
    parser.add_argument(
        "--runs", type=int, default=1, help="with --compare: take the median of so many runs (default: 1)"
    )
    parser.add_argument("--json", action="store_true", help="print JSON")
    parser.set_defaults(run=run)


def run(args: argparse.Namespace) -> int:
    """Measure one case and show it, or compare."""
    if args.compare:
        return _run_comparison(args)
    if args.members < 1 or not 1 <= args.senders <= args.members:
        raise UsageError(f"--senders {args.senders}: between 1 and the {args.members} members")
    if args.messages < args.senders or args.size < 1 or args.items < 0 or args.rate < 0:
        raise UsageError("--messages, --size, --items and --rate must be positive")
    family = FAMILIES.of(args.stack)
    order = args.order or family.orders[0]
    if order not in family.orders:
        raise UsageError(f"--order {order}: {args.stack} has {', '.join(family.orders)}")
    if args.reading == "blocking" and (args.items or args.rate or args.sleeping or order == "safe"):
        raise UsageError("--reading blocking: only plain messages are sent then, as fast as they are taken")
    with tempfile.TemporaryDirectory(prefix="semcast-bench-") as folder:
        case = Case(
            members=args.members,
            senders=args.senders,
            size=args.size,
            count=args.messages,
            stack=args.stack,
            order=order,
            engine=args.engine,
            uniform=args.uniform,
            items=args.items,
            rate=args.rate,
            reading=args.reading,
            sleeping=args.sleeping,
            datagram=args.datagram,
            fanout=args.fanout,
            key_file=str(Path(args.key_file).resolve()) if args.key_file else "",
            record=folder if args.record else "",
        )
        try:
            family.check(case)
            figures = measure(case)
        except ValueError as error:
            raise UsageError(str(error)) from error
        except BenchError as error:
            Console(stderr=True).print(f"semcast bench: {error}", style="red")
            return 1
    if args.json:
        members: list[dict[str, Any]] = [
            {**msgspec.to_builtins(each), "rate": round(each.rate, 1)} for each in figures
        ]
        print(json.dumps({"case": msgspec.to_builtins(case), "members": members}, indent=2))
    else:
        Console().print(_table(case, figures))
    return 0


def _run_comparison(args: argparse.Namespace) -> int:
    if args.seconds <= 0 or args.runs < 1:
        raise UsageError("--seconds and --runs must be positive")
    try:
        found = compare(args.seconds, args.runs)
    except BenchError as error:
        Console(stderr=True).print(f"semcast bench: {error}", style="red")
        return 1
    if args.json:
        print(json.dumps([msgspec.to_builtins(each) for each in found], indent=2))
    else:
        Console().print(comparison(found))
    return 0


def comparison(found: Sequence[Standing | Missing]) -> Table:
    """Each beside the first of them, as a ratio."""
    table = Table(title="3 members on this host; messages/s at the slowest (ratio to the first)")
    columns = ("", "order", "64 B", "1 KiB", "three senders 1 KiB", "p50 / p99 us at 1,000/s", "CPU us, 64 B")
    for column in columns:
        table.add_column(column, justify="left" if column in ("", "order") else "right")
    first = found[0]
    for each in found:
        if isinstance(each, Missing) or isinstance(first, Missing):
            table.add_row(each.label, f"not installed: {each.package}" if isinstance(each, Missing) else "")
            continue
        rates = zip(
            (each.small, each.large, each.three), (first.small, first.large, first.three), strict=True
        )
        table.add_row(
            each.label + ("" if each.whole else " (lost messages)"),
            each.order,
            *[f"{rate:,.0f} ({rate / floor:.2f})" for rate, floor in rates],
            f"{each.p50_us:,.0f} / {each.p99_us:,.0f} ({each.p50_us / first.p50_us:.2f})",
            f"{each.cpu_us:.1f}",
        )
    return table


def _table(case: Case, figures: list[Figures]) -> Table:
    order = " ".join(filter(None, [case.order, case.engine, "uniform" * case.uniform]))
    what = f"{case.size} B, {case.stack}, {order}" + (f", {case.items} items" if case.items else "")
    table = Table(title=f"{case.members} members, {case.senders} sending, {what}")
    for column in ("member", "messages/s", "delivered", "purged", "cpu s", "MB", "p50 ms", "p99 ms"):
        table.add_column(column, justify="right")
    for each in figures:
        latency = each.latency_ms
        table.add_row(
            f"m{each.member}",
            f"{each.rate:,.0f}",
            f"{each.delivered:,}",
            f"{each.purged:,}",
            f"{each.cpu:.2f}",
            f"{each.memory_mb:.0f}",
            f"{latency[0]:.2f}" if latency else "-",
            f"{latency[1]:.2f}" if latency else "-",
        )
    return table
