"""S-RM, S-SRM and the reliable baseline on the command line."""

import argparse

import msgspec

from semcast.cli.families.record import FAMILIES, Family
from semcast.sim.scenario import Scenario


def _plain(_args: argparse.Namespace, scenario: Scenario) -> Scenario:
    """The baseline knows nothing of obsolescence."""
    traffic = tuple(msgspec.structs.replace(each, content="plain") for each in scenario.traffic)
    return msgspec.structs.replace(scenario, traffic=traffic)


FAMILIES.register(Family(name="s-rm"))
FAMILIES.register(Family(name="s-srm"))
FAMILIES.register(Family(name="reliable", scenario=_plain))
