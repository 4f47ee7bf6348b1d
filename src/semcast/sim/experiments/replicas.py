"""Q1 and Q2: replication servers (Amir 1995, chapters 6 and 7), simulated with disks.

Q1 measures what an action costs: how long until it is green everywhere, which must not depend on disks; how
many syncs; and how many messages of servers about what they know, which must be none where nothing changes.
Q2 measures when clients of both sides of a partition are answered, level by level. Seeds of the swarm say
whether the properties hold.
"""

from collections import Counter
from collections.abc import Mapping, Sequence
from random import Random
from statistics import fmean
from typing import Literal

from semcast.core.ids import MILLISECOND, SECOND, MemberId, Nanos
from semcast.core.outbox import Outbox
from semcast.core.stack import Stack
from semcast.history import History, RunInfo
from semcast.protocols.ring import Ring, RingSettings
from semcast.replication.journal import Journal, Then
from semcast.replication.machine import Machine
from semcast.replication.messages import Actions, Cpc, Said, State
from semcast.replication.settings import ReplicationSettings
from semcast.replication.stack import Replication
from semcast.sim.cluster import GROUP, Cluster, member_names
from semcast.sim.experiments.cells import CellError, Parameters, Result
from semcast.sim.faults import AnyFault, Partition
from semcast.sim.hosts import CpuModel
from semcast.sim.networks import Conditions, SwitchedNetwork
from semcast.sim.programs import Programs
from semcast.sim.replication_deeds import Ask, LookDeed
from semcast.sim.scheduler import Scheduler
from semcast.sim.swarm import report
from semcast.sim.workloads import Source, constant, plain

FOUNDED: Nanos = 3 * SECOND
"""All servers are in one primary by then."""
APART: Nanos = FOUNDED + SECOND
"""A partition begins, where there is one."""
TOGETHER: Nanos = APART + 4 * SECOND
OVER: Nanos = TOGETHER + 3 * SECOND


class ReplicasCell(Parameters, frozen=True):
    """Servers that are asked for `rate` actions a second each; with `faults`, a seed of the swarm instead."""

    servers: int = 3
    rate: float = 200.0
    sync_ms: float = 0.5
    change: Literal["none", "partition"] = "none"
    faults: int = 0


class LevelsCell(Parameters, frozen=True):
    """A client asks at one level, on either side of a partition of three servers."""

    level: Literal["strict", "queued", "session", "weak", "dirty"] = "strict"
    sync_ms: float = 0.5


def q1(cell: ReplicasCell) -> Result:
    """What actions cost, or whether a seed of the swarm is clean."""
    if cell.faults:
        broken = report(cell.seed, "replication", None).broken
        return {"broken": len(broken)}
    group, heard = _cluster(cell.seed, cell.servers, cell.sync_ms, cell.rate)
    faults: list[AnyFault] = []
    if cell.change == "partition":
        sides = tuple(range(cell.servers - 1)), (cell.servers - 1,)
        faults = [Partition(APART, TOGETHER - APART, sides)]
    group.schedule(faults)
    group.start()
    group.run(FOUNDED)
    if any(host.stack.phase() != "operational" for host in group.hosts):
        raise CellError(f"servers {cell.servers}: they did not found the group in time")
    heard.clear()
    group.run(OVER)
    actions = heard["actions"]
    times = _times(group.finish(quiesced=False), FOUNDED, APART)
    return {
        "actions": actions,
        "states": heard[State.__name__],
        "cpcs": heard[Cpc.__name__],
        "syncs_per_action": heard["syncs"] / max(actions, 1),
        "green_ms": times["green"],
        "reply_ms": times["reply"],
        "broken": 0,
    }


def q2(cell: LevelsCell) -> Result:
    """Milliseconds until a client is answered in the primary, and elsewhere; -1 where it has to wait."""
    group, _ = _cluster(cell.seed, 3, cell.sync_ms, 0.0)
    asked = APART + 2 * SECOND
    group.schedule([Partition(APART, TOGETHER - APART, ((0, 1), (2,))), *_asking(cell.level, asked)])
    group.start()
    group.run(OVER)
    waits = _answers(group.finish(quiesced=False), group.members, asked)
    inside, outside = (waits.get((member, cell.level)) for member in (0, 2))
    healed = TOGETHER - asked
    return {
        "primary_ms": _shown(inside, healed),
        "minority_ms": _shown(outside, healed),
        "done_after_heal": int(outside is not None and outside >= healed),
    }


def _asking(level: str, at: Nanos) -> Sequence[AnyFault]:
    if level in ("strict", "queued"):
        return [Ask(at, member, f"client {member}", 1, level) for member in (0, 2)]
    return [LookDeed(at, member, f"client {member}", level) for member in (0, 2)]


def _shown(waited: Nanos | None, healed: Nanos) -> float:
    return -1.0 if waited is None or waited >= healed else waited / MILLISECOND


def _cluster(seed: int, servers: int, sync_ms: float, rate: float) -> tuple[Cluster, Counter[str]]:
    scheduler, seeds, heard = Scheduler(), Random(seed), Counter[str]()
    members = member_names(servers)
    settings = ReplicationSettings(names=tuple(member.name for member in members), notes=True)

    def below(me: MemberId, rng: Random, out: Outbox) -> Stack:
        return Ring(me, RingSettings(), rng, out)

    def build(me: MemberId, _members: Sequence[MemberId], rng: Random, out: Outbox) -> Stack:
        return Replication(me, settings, below, rng, out, machine=_counting(heard), state=True)

    info = RunInfo.one("replicas", GROUP, "replication", seed, members, None, uniform=False, quiesced=False)
    network = SwitchedNetwork(scheduler, Random(seeds.getrandbits(64)), servers, Conditions())
    sources = {
        number: Source(constant(rate), plain(), size=64, safe_every=1)
        for number in range(servers if rate else 0)
    }
    group = Cluster(
        scheduler,
        network,
        build,
        size=servers,
        rng=Random(seeds.getrandbits(64)),
        programs=Programs(sources=sources, transfers=True, goes_on=True),
        cpu=CpuModel(0, 0),
        record=info,
        disks=True,
    )
    group.set_sync_time(round(sync_ms * MILLISECOND))
    return group, heard


def _counting(heard: Counter[str]) -> type[Machine]:
    """Servers that tell what they say, and how often they sync."""

    class CountingJournal(Journal):
        def sync(self, then: Then | None = None) -> None:
            heard["syncs"] += 1
            super().sync(then)

    class CountingMachine(Machine):
        journal_kind = CountingJournal

        def say(self, message: Said, *, safe: bool = False) -> None:
            heard[type(message).__name__] += 1
            if isinstance(message, Actions):
                heard["actions"] += len(message.run.actions)
            super().say(message, safe=safe)

    return CountingMachine


def _times(history: History, first: Nanos, last: Nanos) -> Mapping[str, float]:
    """Mean milliseconds from a request to green at a server, and to its answer."""
    asked: dict[tuple[MemberId, int], Nanos] = {}
    waits: dict[str, list[float]] = {"green": [], "reply": []}
    for event in sorted(history.events, key=lambda each: each.at):
        kind, sender = event.kind.value, event.sender
        if sender is None:
            continue
        for index in range(event.seq, event.seq + max(event.count, 1)):
            at = asked.get((sender, index))
            if kind == "request" and first <= event.at < last:
                asked[sender, index] = event.at
            elif at is not None and kind == "colour" and event.level == "green":
                waits["green"].append((event.at - at) / MILLISECOND)
            elif at is not None and kind == "reply":
                waits["reply"].append((event.at - at) / MILLISECOND)
    return {what: fmean(found) if found else -1.0 for what, found in waits.items()}


def _answers(history: History, members: Sequence[MemberId], asked: Nanos) -> dict[tuple[int, str], Nanos]:
    """How long the first answer at each level took, by the number of the server's host."""
    numbers = {member.name: number for number, member in enumerate(members)}
    found: dict[tuple[int, str], Nanos] = {}
    for event in history.events:
        if event.kind.value == "reply" and event.at >= asked and event.level is not None:
            key = numbers[event.process.name], event.level
            found[key] = min(found.get(key, event.at - asked), event.at - asked)
    return found
