"""Causal domains on the command line: flags that choose a policy."""

import argparse

import msgspec

from semcast.cli.errors import UsageError
from semcast.cli.families.record import FAMILIES, Family, Flags
from semcast.protocols.isis import Policy
from semcast.sim.isis_programs import Act, IsisPlan
from semcast.sim.isis_scenario import IsisVariant, draw_isis
from semcast.sim.scenario import Fixed, Scenario


def _add_run(parser: argparse.ArgumentParser) -> None:
    """`--policy` is declared with the ring, which has one, too."""
    parser.add_argument(
        "--resilience",
        help="isis: members that must have a message before its effects leave: safe, all, or a number",
    )
    parser.add_argument(
        "--clients",
        action=argparse.BooleanOptionalAction,
        help="isis: whether groups have clients; without it the seed draws that",
    )


def _add_swarm(parser: argparse.ArgumentParser) -> None:
    parser.add_argument("--policy", help="isis: how causal order between groups is kept")
    parser.add_argument(
        "--lazy",
        action="store_true",
        default=None,
        help="isis: programs read slowly, and little may be on its way to them",
    )
    _add_run(parser)


def variant(args: argparse.Namespace) -> IsisVariant:
    """What is fixed in a swarm."""
    known = [policy.value for policy in Policy]
    if args.policy not in (None, *known):
        raise UsageError(f"--policy {args.policy}: of isis there are {', '.join(known)}")
    policy = None if args.policy is None else Policy(args.policy)
    lazy = bool(getattr(args, "lazy", None))
    return IsisVariant(policy=policy, resilience=args.resilience, clients=args.clients, lazy=lazy)


def _scenario(args: argparse.Namespace, scenario: Scenario) -> Scenario:
    """For one run: groups, programs and what they send as this seed draws them, without its faults."""
    drawn = draw_isis(scenario.seed, variant(args))
    plan = drawn.settings
    assert isinstance(plan, IsisPlan)
    calm = msgspec.structs.replace(plan, slow=())
    acts = tuple(fault for fault in drawn.faults if isinstance(fault, Act))
    return msgspec.structs.replace(
        scenario, size=drawn.size, settings=calm, traffic=(), faults=acts, duration=drawn.duration
    )


def again(fixed: Fixed) -> str:
    """What to type to get this variant again."""
    assert isinstance(fixed, IsisVariant)
    policy = "" if fixed.policy is None else f" --policy {fixed.policy.value}"
    clients = {None: "", True: " --clients", False: " --no-clients"}[fixed.clients]
    resilience = "" if fixed.resilience is None else f" --resilience {fixed.resilience}"
    return policy + resilience + clients + (" --lazy" if fixed.lazy else "")


FAMILIES.register(
    Family(
        name="isis",
        run=Flags(("resilience", "clients"), _add_run),
        scenario=_scenario,
        swarm=Flags(("policy", "resilience", "clients", "lazy"), _add_swarm),
        fixed=variant,
        again=again,
    )
)
