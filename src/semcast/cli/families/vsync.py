"""Virtual synchrony on the command line: flags that choose among its kinds."""

import argparse

import msgspec

from semcast.cli.errors import UsageError
from semcast.cli.families.record import FAMILIES, Family, Flags
from semcast.obsolescence import Purging
from semcast.protocols.vsync import Engine, Flush, Order, VsyncSettings
from semcast.sim.scenario import Fixed, Scenario
from semcast.sim.vsync_scenario import Variant


def _add_run(parser: argparse.ArgumentParser) -> None:
    """What is not given is left to `_scenario` or drawn."""
    group = parser.add_argument_group("virtual synchrony (--stack vsync)")
    group.add_argument("--order", choices=[order.value for order in Order], help="message order")
    group.add_argument(
        "--engine", choices=[engine.value for engine in Engine], help="how a total order is decided"
    )
    group.add_argument(
        "--flush", choices=[flush.value for flush in Flush], help="who announces a view change"
    )


def _add_swarm(parser: argparse.ArgumentParser) -> None:
    _add_run(parser)
    parser.add_argument(
        "--uniform",
        action=argparse.BooleanOptionalAction,
        help="vsync: deliver a message only once a majority has it",
    )


def _add_live(parser: argparse.ArgumentParser) -> None:
    parser.add_argument(
        "--order", choices=("fifo", "causal", "total"), help="vsync: message order of the group"
    )
    parser.add_argument(
        "--engine", choices=("token", "consensus"), help="vsync: how its total order is decided"
    )
    parser.add_argument(
        "--uniform", action="store_true", default=None, help="vsync: the group has uniform = true"
    )


def _scenario(args: argparse.Namespace, scenario: Scenario) -> Scenario:
    """For one run; a majority founds the group."""
    chosen = variant(args)
    if args.buffer < args.members:
        raise UsageError(
            f"--buffer {args.buffer}: with {args.members} members, at least one message for each"
        )
    settings = VsyncSettings(
        order=chosen.order or Order.FIFO,
        engine=chosen.engine or Engine.TOKEN,
        flush=chosen.flush or Flush.COORDINATOR,
        uniform=args.uniform,
        minimum=args.members // 2 + 1,
        purging=Purging(args.purging),
        buffer_messages=args.buffer,
    )
    return msgspec.structs.replace(scenario, vsync=settings)


def variant(args: argparse.Namespace) -> Variant:
    """What is fixed in a swarm; UsageError where that makes no sense."""
    if args.engine is not None and args.order != Order.TOTAL:
        raise UsageError(f"--engine {args.engine}: only --order total has an engine")
    return Variant(
        order=None if args.order is None else Order(args.order),
        engine=None if args.engine is None else Engine(args.engine),
        flush=None if args.flush is None else Flush(args.flush),
        uniform=args.uniform,
    )


def again(fixed: Fixed) -> str:
    """What to type to get this variant again."""
    assert isinstance(fixed, Variant)
    named = (("order", fixed.order), ("engine", fixed.engine), ("flush", fixed.flush))
    words = [f" --{name} {value.value}" for name, value in named if value is not None]
    if fixed.uniform is not None:
        words.append(" --uniform" if fixed.uniform else " --no-uniform")
    return "".join(words)


FAMILIES.register(
    Family(
        name="vsync",
        run=Flags(("order", "engine", "flush"), _add_run),
        scenario=_scenario,
        swarm=Flags(("order", "engine", "flush", "uniform"), _add_swarm),
        fixed=variant,
        again=again,
        live=Flags(("order", "engine", "uniform"), _add_live),
    )
)
