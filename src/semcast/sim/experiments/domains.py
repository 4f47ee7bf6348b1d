"""W1: what messages carry in a domain of many overlapping groups (Birman et al. 1991, 6.3 to 6.7).

Counted by a model without a protocol (`semcast.models.stamps`): everybody has a message before the next one
is sent, which makes stamps as large as they get.
"""

from semcast.models.stamps import FlurryTraffic, count_stamps
from semcast.models.structures import Policy, Structure, domain
from semcast.sim.experiments.cells import CellError, Parameters, Result


class StructureCell(Parameters, frozen=True):
    """Groups of one size that overlap, and flurries of messages in one after the other."""

    structure: Structure = "tree"
    policy: Policy = "full"
    groups: int = 16
    size: int = 4
    locality: float = 0.95
    """The chance that the next message is in the same group."""
    messages: int = 6000
    settled: int = 0
    """So many messages of the domain later it is known that all of a group have one; 0 for never (6.4)."""


def w1(cell: StructureCell) -> Result:
    """Fields of a message, how many say nothing of other groups, and how far news of a group travels."""
    try:
        members = domain(cell.structure, cell.groups, cell.size)
    except ValueError as error:
        raise CellError(str(error)) from error
    if not 0 <= cell.locality < 1:
        raise CellError("locality: at least 0, and below 1")
    traffic = FlurryTraffic(members, cell.messages, cell.locality, cell.seed, cell.settled)
    found = count_stamps(traffic, cell.policy)
    return {
        "own": found.own / found.messages,
        "others": found.others / found.messages,
        "groups_said": found.groups / found.messages,
        "most": found.most,
        "bare": found.bare / found.messages,
        "changes": found.changes / found.messages,
        "rate_1": found.rate(1),
        "rate_2": found.rate(2),
        "rate_3": found.rate(3),
        "flurry": 1 / (1 - cell.locality),
    }
