"""V4: what it takes to change a view (Birman et al. 1991, 5.5): frames against n, and network delays.

Buffers are empty, so that nothing has to be fetched. One member crashes or leaves; time counts from the first
suspicion, or the wish to leave, until the last of those who go on has the next view.
"""

from collections import Counter
from random import Random
from typing import Literal

from semcast.core.events import ViewChange as Installed
from semcast.core.ids import MILLISECOND, SECOND, MemberId, Nanos
from semcast.core.outbox import Outbox
from semcast.protocols.vsync import Flush, VirtualSynchrony, VsyncSettings
from semcast.protocols.vsync.consensus_frames import ConsensusFrame
from semcast.protocols.vsync.frames import Init, Pred, Welcome
from semcast.sim.cluster import Cluster
from semcast.sim.experiments.cells import CellError, Parameters, Result
from semcast.sim.faults import Crash, Leave
from semcast.sim.hosts import CpuModel
from semcast.sim.networks import Conditions, Packet, SwitchedNetwork
from semcast.sim.programs import Programs
from semcast.sim.scheduler import Scheduler
from semcast.sim.stacks import vsync
from semcast.wire import Datagram

HAPPENS: Nanos = 2 * SECOND
OVER: Nanos = 6 * SECOND


class FlushCell(Parameters, frozen=True):
    """A group of `members`, of whom one goes: the last one, or the one of rank 0, who coordinates."""

    members: int = 8
    flush: Literal["all", "coordinator"] = "coordinator"
    reason: Literal["crash", "leave"] = "crash"
    victim: Literal["last", "coordinator"] = "last"
    latency_ms: float = 1.0


def v4(cell: FlushCell) -> Result:
    """Frames to exchange what everybody has and to agree, and the delays of the network it took."""
    if cell.members < 3:
        raise CellError("members: at least 3, or there is no majority after a crash")
    latency = round(cell.latency_ms * MILLISECOND)
    scheduler = Scheduler()
    seeds = Random(cell.seed)
    network = CountingNetwork(scheduler, Random(seeds.getrandbits(64)), cell.members, latency)
    group = Cluster(
        scheduler,
        network,
        vsync(VsyncSettings(flush=Flush(cell.flush), minimum=cell.members), Observed),
        size=cell.members,
        rng=Random(seeds.getrandbits(64)),
        programs=Programs(observe=False),
        cpu=CpuModel(0, 0),
        announces=True,
    )
    victim = 0 if cell.victim == "coordinator" else cell.members - 1
    group.schedule([Crash(HAPPENS, victim, 0) if cell.reason == "crash" else Leave(HAPPENS, victim)])
    group.start()
    group.run(HAPPENS - 1)
    network.counted.clear()
    group.run(OVER)
    going_on = [_observed(host.stack) for host in group.hosts if host.number != victim]
    if any(len(each.view().members) != cell.members - 1 for each in going_on):
        raise CellError("the view did not change as it should have")
    begun = HAPPENS if cell.reason == "leave" else min(each.suspected_at for each in going_on)
    through = max(each.installed_at for each in going_on)
    counted = network.counted
    return {
        "exchange": counted["exchange"],
        "agreement": counted["agreement"],
        "frames": counted["exchange"] + counted["agreement"],
        "exchange_per_member": counted["exchange"] / cell.members,
        "agreement_per_member": counted["agreement"] / cell.members,
        "delays": (through - begun) / latency,
    }


class CountingNetwork(SwitchedNetwork):
    """Counts frames about the change of a view: one for each destination. Its wires are fast."""

    def __init__(self, scheduler: Scheduler, rng: Random, hosts: int, latency: Nanos) -> None:
        super().__init__(scheduler, rng, hosts, Conditions(), bandwidth=10**12, latency=latency)
        self.counted: Counter[str] = Counter()

    def _route(self, at: Nanos, packet: Packet, dest: int | None) -> None:
        assert isinstance(packet.decoded, Datagram)
        for frame in packet.decoded.frames:
            if isinstance(frame, Init | Pred):
                self.counted["exchange"] += self._count(dest)
            elif isinstance(frame, ConsensusFrame):
                self.counted["agreement"] += self._count(dest)
        super()._route(at, packet, dest)


class Observed(VirtualSynchrony):
    """Remembers when it suspected somebody last, and when its last view began."""

    def __init__(self, me: MemberId, settings: VsyncSettings, rng: Random, out: Outbox) -> None:
        super().__init__(me, settings, rng, out)
        self.suspected_at: Nanos = 0
        self.installed_at: Nanos = 0

    def _begin(self, now: Nanos, welcome: Welcome, event: Installed) -> None:
        super()._begin(now, welcome, event)
        self.installed_at = now

    def _check(self, now: Nanos) -> None:
        before = self._suspicions()
        super()._check(now)
        if self._suspicions() > before:
            self.suspected_at = now

    def _suspicions(self) -> int:
        return 0 if self.stream is None else sum(map(self._detector.suspects, self.stream.members))


def _observed(stack: object) -> Observed:
    assert isinstance(stack, Observed)
    return stack
