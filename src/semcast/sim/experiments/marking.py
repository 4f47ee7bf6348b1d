"""W8: how many markers an increment of the epoch costs, by how many groups meet (Birman et al. 1991, 6.7).

The programs of W2 under the policy `epochs`: one process in all groups changes the group with every message,
and so raises its epoch with every message. The paper fears "a cascade of group flushes"; here it is markers.
"""

from semcast.core.ids import SECOND
from semcast.protocols.isis.epochs import Epochs
from semcast.sim.experiments.cells import CellError, Parameters, Result
from semcast.sim.experiments.switching import FOUNDED, WARM, CausalTalker, SwitchCell, Talking, cluster_of


class MarkCell(Parameters, frozen=True):
    """Groups that have some processes in common, which send."""

    groups: int = 2
    """That the shared processes are in, each the neighbour of all others."""
    size: int = 3
    shared: int = 1
    rate: float = 50.0
    """Messages a second of each shared process."""
    latency_ms: float = 1.0
    measured_s: float = 1.0


def w8(cell: MarkCell) -> Result:
    """Markers, each to one member, for an increment; and the time from a program's wish to other programs."""
    if not 1 <= cell.shared <= cell.size or cell.groups < 2:
        raise CellError("groups: at least 2; shared: 1 to all members of a group")
    switching = SwitchCell(
        engine="epochs",
        resilience="0",
        groups=cell.groups,
        size=cell.size,
        shared=cell.shared,
        rate=cell.rate,
        latency_ms=cell.latency_ms,
        measured_s=cell.measured_s,
        seed=cell.seed,
    )
    talkers: list[Talking] = []
    cluster = cluster_of(switching, talkers)
    cluster.start()
    cluster.run(FOUNDED + WARM)
    policies = [_policy(each) for each in talkers]
    for each in talkers:
        each.talk.count()
    rises, markers = sum(each.rises for each in policies), sum(each.markers for each in policies)
    cluster.run(FOUNDED + WARM + round(cell.measured_s * SECOND))
    rises = sum(each.rises for each in policies) - rises
    markers = sum(each.markers for each in policies) - markers
    delays = sorted(delay for each in talkers for delay in each.talk.delays)
    if not rises or not delays:
        raise CellError("rate: no epoch was raised while it was measured")
    return {
        "markers": markers / rises,
        "processes": len(talkers),
        "members": cell.groups * (cell.size - 1),
        "delay_ms": delays[len(delays) // 2] / 1e6,
        "rises": rises,
    }


def _policy(talker: Talking) -> Epochs:
    assert isinstance(talker, CausalTalker)
    assert isinstance(talker.policy, Epochs)
    return talker.policy
