"""The toy on the command line: a flag of its own."""

import argparse

import msgspec
from tests.toy.stack import ToySettings

from semcast.cli.arguments import duration
from semcast.cli.families import FAMILIES, Family, Flags
from semcast.sim.scenario import Scenario


def _add_run(parser: argparse.ArgumentParser) -> None:
    parser.add_argument("--said-again", metavar="TIME", help="toy: after how long (default: 20ms)")


def _scenario(args: argparse.Namespace, scenario: Scenario) -> Scenario:
    settings = ToySettings(most=args.buffer, again=duration(args.said_again or "20ms"))
    return msgspec.structs.replace(scenario, settings=settings)


def _add_live(parser: argparse.ArgumentParser) -> None:
    parser.add_argument("--said-again", metavar="TIME", help="of a group of toys")


FAMILIES.register(
    Family(
        name="toy",
        run=Flags(("said_again",), _add_run),
        scenario=_scenario,
        live=Flags(("said_again",), _add_live),
    )
)
