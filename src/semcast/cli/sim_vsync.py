"""The flags of `semcast sim` that choose among the kinds of virtual synchrony."""

import argparse

from semcast.cli.errors import UsageError
from semcast.obsolescence import Purging
from semcast.protocols.vsync import Engine, Flush, Order, VsyncSettings
from semcast.sim.vsync_scenario import Variant


def add_flags(parser: argparse.ArgumentParser) -> None:
    """Declare them; what is not given is left to `settings` or drawn."""
    group = parser.add_argument_group("virtual synchrony (--stack vsync)")
    group.add_argument("--order", choices=[order.value for order in Order], help="inside a view")
    group.add_argument(
        "--engine", choices=[engine.value for engine in Engine], help="who decides on the total order"
    )
    group.add_argument(
        "--flush", choices=[flush.value for flush in Flush], help="who is told when the view changes"
    )


def settings(args: argparse.Namespace) -> VsyncSettings:
    """For one run; a majority founds the group."""
    chosen = variant(args)
    if args.stack == "vsync" and args.buffer < args.members:
        raise UsageError(
            f"--buffer {args.buffer}: with {args.members} members, at least one message for each"
        )
    return VsyncSettings(
        order=chosen.order or Order.FIFO,
        engine=chosen.engine or Engine.TOKEN,
        flush=chosen.flush or Flush.COORDINATOR,
        uniform=args.uniform,
        minimum=args.members // 2 + 1,
        purging=Purging(args.purging),
        buffer_messages=args.buffer,
    )


def variant(args: argparse.Namespace) -> Variant:
    """What is fixed in a swarm; UsageError where that makes no sense."""
    if args.stack != "vsync":
        for name in ("order", "engine", "flush"):
            if getattr(args, name) is not None:
                raise UsageError(f"--{name} {getattr(args, name)}: for --stack vsync, not {args.stack}")
    if args.engine is not None and args.order != Order.TOTAL:
        raise UsageError(f"--engine {args.engine}: only --order total has an engine")
    return Variant(
        order=None if args.order is None else Order(args.order),
        engine=None if args.engine is None else Engine(args.engine),
        flush=None if args.flush is None else Flush(args.flush),
        uniform=args.uniform,
    )


def flags(chosen: Variant) -> str:
    """What to type to get this variant again."""
    named = (("order", chosen.order), ("engine", chosen.engine), ("flush", chosen.flush))
    words = [f" --{name} {value.value}" for name, value in named if value is not None]
    if chosen.uniform is not None:
        words.append(" --uniform" if chosen.uniform else " --no-uniform")
    return "".join(words)
