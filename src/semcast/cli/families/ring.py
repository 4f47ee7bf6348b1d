"""The ring on the command line."""

import argparse

import msgspec

from semcast.cli.errors import UsageError
from semcast.cli.families.record import FAMILIES, Family, Flags
from semcast.protocols.ring import RingSettings, SlowPolicy
from semcast.sim.scenario import Scenario


def _add_run(parser: argparse.ArgumentParser) -> None:
    parser.add_argument(
        "--policy",
        help="ring: what to do when the application is too slow; isis: how causal order between groups is"
        " kept",
    )
    parser.add_argument(
        "--safe-every", type=int, metavar="N", help="ring: send each N-th message with order safe"
    )


def _scenario(args: argparse.Namespace, scenario: Scenario) -> Scenario:
    every = args.safe_every or 0
    if every < 0:
        raise UsageError(f"--safe-every {every}: at least 0")
    traffic = tuple(msgspec.structs.replace(each, safe_every=every) for each in scenario.traffic)
    known = [policy.value for policy in SlowPolicy]
    if args.policy not in (None, *known):
        raise UsageError(f"--policy {args.policy}: of the ring there are {', '.join(known)}")
    settings = RingSettings(queue_messages=args.buffer, policy=SlowPolicy(args.policy or "purge"))
    return msgspec.structs.replace(scenario, traffic=traffic, ring=settings)


FAMILIES.register(Family(name="ring", run=Flags(("safe_every",), _add_run), scenario=_scenario))
