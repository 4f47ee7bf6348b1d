"""X7 and X8: gossip in large groups against the models of Sun 2000, section 4.2.

X7 lets messages reach a share of a group, and counts rounds of pull until everybody has them. X8 is the
statistic about pbcast (`pbcast_bimodal`): over many runs, the share of messages that some members got and
some did not is no larger than the model of push says, and three standard deviations. It is a statement about
a swarm of runs, and no verdict on any one.
"""

from math import comb, sqrt
from random import Random
from statistics import fmean

from semcast.core.ids import MILLISECOND, SECOND, Nanos
from semcast.models.convergence import Epidemic, contact_loss, simulated_rounds, unfinished
from semcast.protocols.gossip import Choice, GossipSettings, Protocol
from semcast.sim.cluster import Cluster
from semcast.sim.experiments.cells import Parameters, Result
from semcast.sim.experiments.gossiping import Watch, watched
from semcast.sim.hosts import CpuModel
from semcast.sim.networks import Conditions, SwitchedNetwork
from semcast.sim.programs import Programs
from semcast.sim.scheduler import Scheduler
from semcast.sim.workloads import Source, plain

PERIOD: Nanos = 250 * MILLISECOND
_NEVER = 10_000
"""Rounds in which nobody forgets or gives up."""
_SENT_AT: Nanos = SECOND


class CrowdCell(Parameters, frozen=True):
    """X7: each of some messages reaches a share `reach` of n members."""

    n: int = 100
    reach: float = 0.5
    messages: int = 10
    runs: int = 20


class BimodalCell(Parameters, frozen=True):
    """X8: pbcast between n members that lose so much, and give what they have for so many rounds."""

    n: int = 18
    loss: float = 0.2
    rounds: int = 3
    messages: int = 20
    runs: int = 20


def x7(cell: CrowdCell) -> Result:
    """Rounds until everybody has a message: real members, and the model (mean of some runs)."""
    settings = GossipSettings(
        choice=Choice.UNIFORM, eager=False, gc_rounds=_NEVER, gossip_rounds=_NEVER, heartbeat_least=PERIOD
    )
    group, watch = _group(cell.seed, cell.n, settings, cell.messages)
    group.network.conditions.loss = 1 - cell.reach
    group.start()
    group.run(_SENT_AT + PERIOD // 2)  # the multicast is through, and nobody has heard that it lacks anything
    group.network.conditions.loss = 0.0
    lacking = [cell.n - 1 - left for left in watch.lacking.values()]
    group.run(_SENT_AT + PERIOD)  # now everybody has
    rounds = 0
    while watch.lacking and rounds < _NEVER:
        group.run(group.scheduler.now + PERIOD)
        rounds += 1
    rng = Random(cell.seed)
    n0 = 1 + round(fmean(lacking)) if lacking else cell.n
    epidemic = Epidemic(cell.n, n0, "pull", itself=False)
    took = [-(-(each - PERIOD) // PERIOD) for each in watch.took]
    late = [each for each in took if each > 0]
    return {
        "reached": n0,
        "rounds": fmean(late) if late else 0.0,
        "rounds_most": max(took, default=0),
        "model_rounds": fmean(simulated_rounds(epidemic, rng) for _ in range(cell.runs)),
        "datagrams_per_member_and_round": sum(host.stats.datagrams_out for host in group.hosts)
        / cell.n
        / (group.scheduler.now / PERIOD),
    }


def x8(cell: BimodalCell) -> Result:
    """The share of messages that neither all nor only their senders have, against the model."""
    limit = cell.rounds + 1  # what is offered in the last round is forgotten before anybody can ask for it
    settings = GossipSettings(
        protocol=Protocol.PBCAST, choice=Choice.UNIFORM, gc_rounds=limit, gossip_rounds=limit
    )
    sent = partial = alone = 0
    for run in range(cell.runs):
        group, watch = _group(cell.seed * _NEVER + run, cell.n, settings, cell.messages)
        group.network.conditions.loss = cell.loss
        group.start()
        group.run(_SENT_AT + (4 * cell.rounds + 8) * PERIOD)
        sent += len(watch.sent)
        nobody = sum(left == cell.n - 1 for left in watch.lacking.values())
        alone += nobody
        partial += len(watch.lacking) - nobody
    expected = _unfinished(cell)
    share = partial / max(sent, 1)
    bound = expected + 3 * sqrt(expected * (1 - expected) / max(sent, 1))
    return {
        "sent": sent,
        "partial_share": share,
        "alone_share": alone / max(sent, 1),
        "model_share": expected,
        "model_bound": bound,
        "within": int(share <= bound),
    }


def _unfinished(cell: BimodalCell) -> float:
    """Somebody lacks a message after these rounds of push, however many the multicast reached."""
    others, loss = cell.n - 1, contact_loss(cell.loss, 3)
    total = 0.0
    for reached in range(others):
        chance = comb(others, reached) * (1 - cell.loss) ** reached * cell.loss ** (others - reached)
        epidemic = Epidemic(cell.n, reached + 1, "push", loss, itself=False)
        total += chance * unfinished(epidemic, cell.rounds)
    return total


def _group(seed: int, n: int, settings: GossipSettings, messages: int) -> tuple[Cluster, Watch]:
    """Members on one switch; some of them send one message each, at the same moment."""
    scheduler, seeds = Scheduler(), Random(f"crowd/{seed}")
    watch = Watch(scheduler, n - 1)
    member = watched(watch)
    network = SwitchedNetwork(scheduler, Random(seeds.getrandbits(64)), n, Conditions())
    group = Cluster(
        scheduler,
        network,
        lambda me, members, rng, out: member(me, members, settings, rng, out),
        size=n,
        rng=Random(seeds.getrandbits(64)),
        programs=Programs(
            sources={each: Source(iter((_SENT_AT,)), plain(), size=100) for each in range(min(messages, n))},
            observe=False,
        ),
        cpu=CpuModel(0, 0),
        announces=True,
    )
    return group, watch
