"""`semcast sim run` and `semcast sim swarm`."""

import argparse
import json
import os
from pathlib import Path
from typing import Any

from rich.console import Console
from rich.progress import MofNCompleteColumn, Progress, TextColumn, TimeRemainingColumn
from rich.table import Table

from semcast.cli.arguments import duration, seed_range
from semcast.cli.errors import UsageError
from semcast.cli.families import FAMILIES as FLAGS
from semcast.cli.families import Family, refuse_strange
from semcast.core.ids import SECOND
from semcast.history import require_pyarrow, write_history
from semcast.obsolescence import Purging
from semcast.sim.families import FAMILIES
from semcast.sim.scenario import Fixed, Scenario, Traffic
from semcast.sim.simulate import RunOutcome, simulate
from semcast.sim.swarm import SeedReport, hunt, patrol
from semcast.sim.traces import TraceError, read_trace
from semcast.specs import Status, check

CONTENTS = ("items", "bitmaps", "enumerated", "operations", "stocks", "plain")


def add_parser(verbs: "argparse._SubParsersAction[argparse.ArgumentParser]") -> None:
    """Declare the verb."""
    parser = verbs.add_parser(
        "sim",
        help="simulate a group in virtual time",
        description="Run the real protocol code in virtual time, on a simulated network, and check what"
        " happened.",
    )
    kinds = parser.add_subparsers(dest="sim", required=True, metavar="run|swarm")
    _add_run(
        kinds.add_parser(
            "run",
            help="simulate one group and print its figures",
            description="Simulate one group. Exits with 1 if a property is violated, or if the group does"
            " not become"
            " quiet. Durations are written as 20us, 5ms or 2s.",
        )
    )
    _add_swarm(
        kinds.add_parser(
            "swarm",
            help="simulate many random scenarios with faults, and check each",
            description="Simulate one random scenario for each seed and check it. Then run deliberately"
            " broken"
            " variants of the stack (mutants) until the checks catch each. Exits with 1 if a seed fails or a"
            " mutant is not"
            " caught.",
        )
    )


def _add_run(parser: argparse.ArgumentParser) -> None:
    parser.add_argument(
        "--stack", choices=FAMILIES.names(), default="s-rm", help="protocol stack (default: s-rm)"
    )
    parser.add_argument("--members", type=int, default=5, help="number of members (default: 5)")
    parser.add_argument("--senders", type=int, default=1, help="number of members that send")
    parser.add_argument("--content", choices=CONTENTS, default="items", help="kind of messages")
    parser.add_argument("--trace", type=Path, help="replay this recorded traffic (CSV, may be gzipped)")
    parser.add_argument(
        "--arrivals",
        choices=("constant", "poisson", "bursts"),
        default="constant",
        help="when messages are sent (default: constant)",
    )
    parser.add_argument("--rate", type=float, default=100.0, help="messages per second and sender")
    parser.add_argument("--messages", type=int, default=1000, help="messages per sender")
    parser.add_argument("-r", type=float, default=0.5, help="share of messages that overwrite an item")
    parser.add_argument("-d", type=int, default=5, help="number of items that are overwritten")
    parser.add_argument("-k", type=int, default=64, help="window of k-enumeration, in messages")
    parser.add_argument("--size", type=int, default=0, help="minimum payload size in bytes")
    parser.add_argument("--slow", default="0ms", help="time the last member needs for each message")
    parser.add_argument(
        "--network",
        choices=("switched", "shared", "routed"),
        default="switched",
        help="kind of network (default: switched)",
    )
    parser.add_argument("--latency", default="20us", help="latency of a packet (default: 20us)")
    parser.add_argument("--loss", type=float, default=0.0, help="share of packets lost, at each receiver")
    parser.add_argument(
        "--link-loss",
        type=float,
        default=0.0,
        help="share of packets lost on each link, for all receivers behind it",
    )
    parser.add_argument("--duplication", type=float, default=0.0, help="share of packets that arrive twice")
    parser.add_argument("--jitter", default="0ms", help="largest additional latency of a packet")
    parser.add_argument("--buffer", type=int, default=40, help="size of buffers, in messages (default: 40)")
    parser.add_argument(
        "--purging",
        choices=("eager", "lazy"),
        default="eager",
        help="purge obsolete messages at once, or only when a buffer is full (default: eager)",
    )
    parser.add_argument(
        "--uniform", action="store_true", help="deliver a message only once it is safe (uniform agreement)"
    )
    for family in FLAGS:
        family.run.declare(parser)
    parser.add_argument("--seed", type=int, default=0, help="decides everything random (default: 0)")
    parser.add_argument(
        "--record", type=Path, metavar="DIR", help="write the recorded history to this folder"
    )
    parser.add_argument("--json", action="store_true", help="print JSON")
    parser.set_defaults(run=run_one)


def _add_swarm(parser: argparse.ArgumentParser) -> None:
    parser.add_argument(
        "--stack", choices=FAMILIES.names(), default="s-rm", help="protocol stack (default: s-rm)"
    )
    parser.add_argument("--seeds", default="0..200", help="range A..B, or a single seed")
    parser.add_argument(
        "--mutant", metavar="NAME", help="run this deliberately broken variant of the stack instead"
    )
    parser.add_argument(
        "--no-mutants", action="store_true", help="do not check afterwards that broken variants are caught"
    )
    for family in FLAGS:
        family.swarm.declare(parser)
    parser.add_argument(
        "--jobs", type=int, default=os.cpu_count() or 1, help="processes (default: one per core)"
    )
    parser.add_argument("--json", action="store_true", help="print JSON")
    parser.set_defaults(run=run_swarm)


# run


def run_one(args: argparse.Namespace) -> int:
    """Simulate one group."""
    if args.record is not None:
        require_pyarrow()
    scenario = _scenario(args)
    try:
        outcome = simulate(scenario)
    except (ValueError, TraceError) as error:
        raise UsageError(str(error)) from error
    verdicts = check(outcome.history)
    if args.record is not None:
        args.record.mkdir(parents=True, exist_ok=True)
        write_history(outcome.history, args.record / "history.parquet")
    held = all(verdict.status is not Status.VIOLATED for verdict in verdicts) and not outcome.stuck
    if args.json:
        figures = {
            "stack": scenario.stack,
            "seed": scenario.seed,
            "virtual_seconds": outcome.ended / SECOND,
            "members": _member_figures(outcome),
            "properties": {verdict.property: verdict.status.value for verdict in verdicts},
            "settled": outcome.settled,
        }
        print(json.dumps(figures, indent=2))
    else:
        _show_run(scenario, outcome, [str(verdict) for verdict in verdicts])
    return 0 if held and outcome.settled else 1


def _scenario(args: argparse.Namespace) -> Scenario:
    if args.members < 1:
        raise UsageError(f"--members {args.members}: a group has at least one")
    if not 1 <= args.senders <= args.members:
        raise UsageError(f"--senders {args.senders}: there are {args.members} members")
    if args.rate <= 0 or args.messages < 1:
        raise UsageError("--rate and --messages must be above 0")
    for name in ("loss", "link-loss", "duplication", "r"):
        share = getattr(args, name.replace("-", "_"))
        if not 0 <= share <= 1:
            raise UsageError(f"--{name} {share}: a share between 0 and 1")
    if args.d < 1 or args.k < 1 or args.size < 0:
        raise UsageError("-d and -k must be at least 1, --size at least 0")
    if args.buffer < 1:
        raise UsageError("--buffer must be at least 1")
    refuse_strange(args, lambda family: family.run)
    if args.trace is not None:
        try:
            read_trace(args.trace, most=1)
        except TraceError as error:
            raise UsageError(str(error)) from error
    traffic = tuple(
        Traffic(
            sender,
            content=args.content,
            arrivals=args.arrivals,
            rate=args.rate,
            count=args.messages,
            r=args.r,
            d=args.d,
            k=args.k,
            size=args.size,
            trace=None if args.trace is None else str(args.trace),
        )
        for sender in range(args.senders)
    )
    slow = duration(args.slow)
    scenario = Scenario(
        seed=args.seed,
        stack=args.stack,
        size=args.members,
        network=args.network,
        latency=duration(args.latency),
        loss=args.loss,
        link_loss=args.link_loss,
        duplication=args.duplication,
        jitter=duration(args.jitter),
        buffer=args.buffer,
        purging=Purging(args.purging),
        uniform=args.uniform,
        traffic=traffic,
        app_delays={args.members - 1: slow} if slow else {},
        duration=int(args.messages / args.rate * SECOND),
    )
    return flags_of(args.stack).scenario(args, scenario)


def flags_of(stack: str) -> Family:
    """What is special about a stack on the command line, if anything is."""
    return FLAGS.of(stack) if stack in FLAGS else Family(name=stack)


def _member_figures(outcome: RunOutcome) -> list[dict[str, Any]]:
    figures = []
    for member, stats, host in zip(
        outcome.history.info.only.members, outcome.stacks, outcome.hosts, strict=True
    ):
        span = (host.sent_at[-1] - host.sent_at[0]) / SECOND if len(host.sent_at) > 1 else 0.0
        figures.append(
            {
                "member": str(member),
                "sent": stats.sent,
                "per_second": round((len(host.sent_at) - 1) / span, 2) if span else 0.0,
                "delivered": stats.delivered,
                "purged": stats.purged_delivery,
                "skipped": stats.skipped,
                "purged_for_others": stats.purged_retransmission,
                "resent": stats.retransmitted,
                "blocked_s": round(host.blocked_time / SECOND, 3),
            }
        )
    return figures


def _show_run(scenario: Scenario, outcome: RunOutcome, verdicts: list[str]) -> None:
    console = Console()
    table = Table(
        title=f"{scenario.stack}, seed {scenario.seed}, {outcome.ended / SECOND:.1f} virtual seconds"
    )
    rows = _member_figures(outcome)
    for column in rows[0]:
        table.add_column(column.replace("_", " "), justify="left" if column == "member" else "right")
    for row in rows:
        table.add_row(*map(str, row.values()))
    console.print(table)
    for verdict in verdicts:
        console.print(verdict, highlight=False, markup=False)
    if not outcome.settled:
        console.print("liveness: the group did not come to rest", style="red")


# swarm


def run_swarm(args: argparse.Namespace) -> int:
    """Run many seeds; then see that every mutant of the stack is caught by them."""
    seeds = seed_range(args.seeds)
    mutants = FAMILIES.of(args.stack).mutants
    if args.mutant is not None and args.mutant not in mutants:
        known = ", ".join(mutants) or "none"
        raise UsageError(f"--mutant {args.mutant}: not one of {args.stack}, which has {known}")
    refuse_strange(args, lambda family: family.swarm)
    fixed = flags_of(args.stack).fixed(args)
    reports = _patrol(args, seeds, fixed)
    broken = [report for report in reports if report.broken]
    caught: dict[str, SeedReport | None] = {}
    if args.mutant is None and not args.no_mutants and not broken:
        caught = _hunt(args, seeds, fixed, {report.seed: report.steps for report in reports})
    missed = [name for name, report in caught.items() if report is None]
    if args.json:
        document = {
            "stack": args.stack,
            "mutant": args.mutant,
            "fixed": _again(args.stack, fixed).strip(),
            "seeds": [seeds.start, seeds.stop],
            "broken": {report.seed: report.broken for report in broken},
            "mutants": {name: None if report is None else report.seed for name, report in caught.items()},
        }
        print(json.dumps(document, indent=2))
    else:
        _show_swarm(args, fixed, len(reports), broken, caught)
    return 1 if broken or missed else 0


def _again(stack: str, fixed: Fixed | None) -> str:
    """What to type to have the same fixed again."""
    return "" if fixed is None else flags_of(stack).again(fixed)


def _progress(console: Console) -> Progress:
    columns = (TextColumn("{task.description}"), MofNCompleteColumn(), TimeRemainingColumn())
    return Progress(*columns, console=console, transient=True)


def _patrol(args: argparse.Namespace, seeds: range, fixed: Fixed | None) -> list[SeedReport]:
    reports = []
    with _progress(Console(stderr=True)) as progress:
        task = progress.add_task(f"{args.stack} seeds", total=len(seeds))
        for report in patrol(args.stack, seeds, args.mutant, fixed, jobs=args.jobs):
            progress.advance(task)
            reports.append(report)
    return reports


def _hunt(
    args: argparse.Namespace, seeds: range, fixed: Fixed | None, steps: dict[int, int]
) -> dict[str, SeedReport | None]:
    caught: dict[str, SeedReport | None] = {}
    with _progress(Console(stderr=True)) as progress:
        family = FAMILIES.of(args.stack)
        mutants = [name for name, mutant in family.mutants.items() if mutant.by_chance]
        task = progress.add_task(f"mutants: {', '.join(mutants[:1])}", total=len(mutants))
        for name, report in hunt(args.stack, seeds, mutants, fixed, jobs=args.jobs, steps=steps):
            caught[name] = report
            following = mutants[len(caught) : len(caught) + 1]
            progress.update(task, advance=1, description=f"mutants: {', '.join(following)}")
    return caught


def _how(found: SeedReport) -> str:
    """What a table says besides the seed."""
    return ", does not end" if found.broken[0].startswith("does not end") else ""


def _show_swarm(
    args: argparse.Namespace,
    fixed: Fixed | None,
    count: int,
    broken: list[SeedReport],
    caught: dict[str, SeedReport | None],
) -> None:
    console = Console(highlight=False)
    what = args.stack if args.mutant is None else f"{args.stack} as mutant {args.mutant}"
    console.print(f"{what}: {count} seeds, {len(broken)} with violations")
    for report in broken:
        again = f"semcast sim swarm --stack {args.stack} --seeds {report.seed}{_again(args.stack, fixed)}"
        again += "" if args.mutant is None else f" --mutant {args.mutant}"
        console.print(f"seed {report.seed} (again: {again})", style="red")
        console.print(report.scenario, markup=False)
        for line in report.broken:
            console.print(f"  {line}", markup=False)
    if caught:
        table = Table(title="Broken on purpose")
        table.add_column("mutant")
        table.add_column("caught at seed", justify="right")
        for name, found in caught.items():
            table.add_row(name, "NOT CAUGHT" if found is None else f"{found.seed}{_how(found)}")
        console.print(table)
