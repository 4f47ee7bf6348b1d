"""W6: calls in a causal domain (Birman et al. 1991, 7.2 and section 8): all of a group answer the caller.

One process calls the others, one call after the other, and they answer at once: alone to the caller, as in
the paper, or to all of the group. It asks all at once, or each of them in turn. Processors cost `cpu_us` a
datagram.
"""

from collections.abc import Sequence
from random import Random
from statistics import mean
from typing import Literal

from semcast.core.events import ViewChange
from semcast.core.ids import MICROSECOND, MILLISECOND, SECOND, MemberId, Nanos
from semcast.core.outbox import Outbox, Timer
from semcast.core.stack import Stack
from semcast.patterns.calls import ALL, Calls, Done, Run, read
from semcast.protocols.clients.permissions import CALLS
from semcast.protocols.isis import Isis, IsisSettings
from semcast.protocols.lightweight.events import Delivered, GroupView
from semcast.protocols.lightweight.ids import plain_view
from semcast.protocols.vsync import VsyncSettings
from semcast.sim.cluster import Cluster
from semcast.sim.experiments.cells import CellError, Parameters, Result
from semcast.sim.hosts import CpuModel
from semcast.sim.networks import Conditions, SwitchedNetwork
from semcast.sim.programs import Programs
from semcast.sim.scheduler import Scheduler

FOUNDED: Nanos = 2 * SECOND
_GROUP = "g"


class AskCell(Parameters, frozen=True):
    """One process that calls so many others."""

    destinations: int = 1
    answers: Literal["direct", "multicast"] = "direct"
    asked: Literal["all", "each"] = "all"
    """All in one call, or each in a call of its own, one after the other."""
    latency_ms: float = 1.0
    cpu_us: float = 100.0
    measured_s: float = 1.0


def w6(cell: AskCell) -> Result:
    """The time until all have answered, and datagrams for it."""
    if cell.destinations < 1:
        raise CellError("destinations: at least 1")
    askers: list[Asker] = []
    cluster = _cluster(cell, askers)
    cluster.start()
    cluster.run(FOUNDED)
    caller = askers[0]
    before = sum(host.stats.datagrams_out for host in cluster.hosts)
    cluster.run(FOUNDED + round(cell.measured_s * SECOND))
    datagrams = sum(host.stats.datagrams_out for host in cluster.hosts) - before
    if not caller.times:
        raise CellError("nobody answered while it was measured")
    rounds = len(caller.times)
    return {"call_ms": mean(caller.times) / MILLISECOND, "datagrams": datagrams / rounds, "calls": rounds}


class AskTimer(Timer):
    """When the first call is made."""

    BEGIN = "begin"


class Asker(Isis):
    """A process whose program calls, or answers at once.

    Args:
        me: who this is.
        cell: of the experiment.
        rng: chance.
        out: what it wants from the world.
        calls: whether it is the one who calls.
    """

    def __init__(self, me: MemberId, cell: AskCell, rng: Random, out: Outbox, *, calls: bool) -> None:
        super().__init__(me, IsisSettings(vsync=VsyncSettings(ack_delay=MILLISECOND)), rng, out)
        self._cell = cell
        self._machine = Calls(me)
        self._machine.direct = cell.answers == "direct"
        self._machine.serves = not calls
        self._calls = calls
        self._began: Nanos = 0
        self._unasked: list[MemberId] = []
        self._busy = False
        self.times: list[Nanos] = []
        """Of rounds in which all have answered."""

    def start(self, now: Nanos) -> None:
        """Be in the group."""
        super().start(now)
        self.join(now, _GROUP, self._cell.destinations + 1)
        self.settle(now)
        if self._calls:
            self.out.set_timer(AskTimer.BEGIN, FOUNDED)

    def on_timer(self, now: Nanos, timer: Timer) -> None:
        """Begin to call, or a timer of the domain."""
        if timer is AskTimer.BEGIN:
            self._call(now)
            self.settle(now)
        else:
            super().on_timer(now, timer)

    def settle(self, now: Nanos) -> None:
        """The program reads and answers until nothing more comes of it."""
        if self._busy:
            return
        self._busy = True
        super().settle(now)
        while self._read(now) | self._send():
            super().settle(now)
        self._busy = False

    def _call(self, now: Nanos) -> None:
        """All, or the next of those who were not asked in this round."""
        if not self._unasked:
            self._began = now
            view = self._machine.view
            assert view is not None
            self._unasked = [member for member in view.members if member != self.me]
        if self._cell.asked == "all":
            self._unasked = []
            self._machine.call(now, b"", "all", ALL)
        else:
            self._machine.call(now, b"", "first", self._unasked.pop())

    def _read(self, now: Nanos) -> bool:
        machine, events = self._machine, self.program.take()
        for event in events:
            if isinstance(event, GroupView):
                machine.on_delivery(now, ViewChange(plain_view(event.id, event.members)))
            elif isinstance(event, Delivered) and event.groups == (_GROUP, CALLS):
                for payload in event.payloads:
                    machine.on_envelope(now, event.sender, read(payload))
        for effect in machine.take_effects():
            if isinstance(effect, Run):
                machine.answer(effect.request.key, b"")
            elif isinstance(effect, Done):
                if not self._unasked:
                    self.times.append(now - self._began)
                self._call(now)
        return bool(events)

    def _send(self) -> bool:
        machine = self._machine
        sent = bool(machine.letters or machine.outgoing)
        while machine.letters:
            to, payload = machine.letters.popleft()
            self.send_to(to, payload, _GROUP, marked=True)
        while machine.outgoing:
            self.cast(_GROUP, [machine.outgoing.popleft()], marked=True)
        return sent


def _cluster(cell: AskCell, askers: list[Asker]) -> Cluster:
    scheduler, seeds, size = Scheduler(), Random(cell.seed), cell.destinations + 1
    latency, cpu = round(cell.latency_ms * MILLISECOND), round(cell.cpu_us * MICROSECOND)
    network = SwitchedNetwork(
        scheduler, Random(seeds.getrandbits(64)), size, Conditions(), bandwidth=1_000_000_000, latency=latency
    )

    def build(me: MemberId, members: Sequence[MemberId], rng: Random, out: Outbox) -> Stack:
        asker = Asker(me, cell, rng, out, calls=members.index(me) == 0)
        askers.append(asker)
        return asker

    return Cluster(
        scheduler,
        network,
        build,
        size=size,
        rng=Random(seeds.getrandbits(64)),
        programs=Programs(observe=False),
        cpu=CpuModel(cpu, cpu),
        announces=True,
    )
