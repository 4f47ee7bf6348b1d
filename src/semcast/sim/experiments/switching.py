"""W2, W7: what it costs to change the group, and to have one order over groups (Birman et al. 1991, 6).

Some processes are in all groups and send one run of messages after the other; with a chance `changes` the
next run goes to another group. Everything else is the protocol's: processors cost `cpu_us` a datagram, so
that what everybody must receive counts, too. The same programs run on the causal engine, under each of its
policies, and on the ordered one: lightweight groups over a ring of all processes.
"""

from collections.abc import Iterable, Sequence
from random import Random
from statistics import median
from typing import Literal

from semcast.core.ids import MICROSECOND, MILLISECOND, SECOND, MemberId, Nanos
from semcast.core.outbox import Outbox, Timer
from semcast.core.stack import Stack
from semcast.protocols.isis import Isis, IsisSettings, Policy
from semcast.protocols.lightweight import LightweightSettings
from semcast.protocols.lightweight.events import Delivered
from semcast.protocols.lightweight.stack import Below, Lightweight
from semcast.protocols.ring import Ring, RingSettings
from semcast.protocols.vsync import VsyncSettings
from semcast.sim.cluster import Cluster
from semcast.sim.experiments.cells import CellError, Parameters, Result
from semcast.sim.hosts import CpuModel
from semcast.sim.networks import Conditions, SwitchedNetwork
from semcast.sim.programs import Programs
from semcast.sim.scheduler import Scheduler

FOUNDED: Nanos = 2 * SECOND
WARM: Nanos = SECOND // 10
_PAYLOAD = bytes(56)


class SwitchCell(Parameters, frozen=True):
    """Groups that have some processes in common, which send."""

    engine: Literal["conservative", "full", "blocks", "epochs", "ordered"] = "conservative"
    resilience: str = "safe"
    """Where stamps are carried, who must have the causes of a message that changes the group."""
    groups: int = 2
    size: int = 3
    """Members of a group."""
    shared: int = 1
    """Processes that are in all groups, and send."""
    senders: Literal["shared", "all"] = "shared"
    """Whether those in one group only send, too."""
    order: Literal["agreed", "domain"] = "agreed"
    """Of the causal engine: whether messages have a place in the one order of the domain (W7)."""
    changes: float = 1.0
    run: int = 1
    rate: float = 0.0
    """Runs a second of each; 0 for as many as it may."""
    latency_ms: float = 1.0
    cpu_us: float = 10.0
    ack_ms: float = 1.0
    """How long acknowledgements of the causal engine wait for others."""
    measured_s: float = 0.2


def w2(cell: SwitchCell) -> Result:
    """Messages a second, the time from a program's wish to other programs, and datagrams a message."""
    if not 1 <= cell.shared <= cell.size:
        raise CellError("shared: 1 to all members of a group")
    talkers: list[Talking] = []
    cluster = cluster_of(cell, talkers)
    cluster.start()
    cluster.run(FOUNDED + WARM)
    for each in talkers:
        each.talk.count()
    datagrams = sum(host.stats.datagrams_out for host in cluster.hosts)
    cluster.run(FOUNDED + WARM + round(cell.measured_s * SECOND))
    datagrams = sum(host.stats.datagrams_out for host in cluster.hosts) - datagrams
    sent = sum(each.talk.own for each in talkers)
    delays = sorted(delay for each in talkers for delay in each.talk.delays)
    if not delays or not sent:
        raise CellError("nothing was delivered while it was measured")
    return {
        "rate_s": sent / cell.measured_s,
        "delay_ms": median(delays) / MILLISECOND,
        "delay_99_ms": delays[len(delays) * 99 // 100] / MILLISECOND,
        "datagrams": datagrams / sent,
        "messages": sent,
    }


class Talk:
    """What the program of one process says next, and what it was told.

    Args:
        cell: of the experiment.
        groups: that it is in.
        sends: whether it is one of those who send.
        rng: chance.
    """

    def __init__(self, cell: SwitchCell, groups: Sequence[str], rng: Random, *, sends: bool) -> None:
        self.groups = groups
        self.ordered = cell.order == "domain"
        self._cell = cell
        self._rng = rng
        self._sends = sends
        self._group = rng.choice(groups)
        self._due: Nanos = FOUNDED + rng.randrange(MILLISECOND)
        self.own = 0
        """Own messages that came back, since they are counted."""
        self.delays: list[Nanos] = []

    def count(self) -> None:
        """From now on."""
        self.own = 0
        self.delays = []

    def due(self, now: Nanos) -> bool:
        """Whether something is to be said."""
        return self._sends and now >= self._due

    def next(self, now: Nanos) -> tuple[str, list[bytes]]:
        """The next run, and its group."""
        if len(self.groups) > 1 and self._rng.random() < self._cell.changes:
            self._group = self._rng.choice([each for each in self.groups if each != self._group])
        wanted = now
        if self._cell.rate:
            wanted = self._due
            self._due += round(SECOND / self._cell.rate)
        return self._group, [wanted.to_bytes(8, "big") + _PAYLOAD] * self._cell.run

    def at(self) -> Nanos:
        """When."""
        return self._due

    def hear(self, now: Nanos, me: MemberId, events: Iterable[object]) -> None:
        """What the program is told."""
        for event in events:
            if isinstance(event, Delivered):
                if event.sender == me:
                    self.own += len(event.payloads)
                else:
                    self.delays += [now - int.from_bytes(each[:8], "big") for each in event.payloads]


class TalkTimer(Timer):
    """When a program has something to say."""

    TALK = "talk"


class CausalTalker(Isis):
    """A process of a causal domain, with such a program."""

    def __init__(
        self, me: MemberId, settings: IsisSettings, rng: Random, out: Outbox, talk: Talk, size: int
    ) -> None:
        super().__init__(me, settings, rng, out)
        self.talk = talk
        self._size = size
        self._busy = False

    def start(self, now: Nanos) -> None:
        """Be in all its groups."""
        super().start(now)
        for group in self.talk.groups:
            self.join(now, group, self._size)
        self.settle(now)
        self.out.set_timer(TalkTimer.TALK, self.talk.at())

    def on_timer(self, now: Nanos, timer: Timer) -> None:
        """Its own, or one of the domain."""
        if timer is TalkTimer.TALK:
            self.settle(now)
            self.out.set_timer(TalkTimer.TALK, max(self.talk.at(), now + MILLISECOND))
        else:
            super().on_timer(now, timer)

    def settle(self, now: Nanos) -> None:
        """The program reads, and has one run waiting whenever it may."""
        if self._busy:
            return
        self._busy = True
        super().settle(now)
        moved = True
        while moved:
            events = self.program.take()
            self.talk.hear(now, self.me, events)
            moved = bool(events)
            if self.talk.due(now) and not self.program.wishes:
                group, payloads = self.talk.next(now)
                self.cast(group, payloads, ordered=self.talk.ordered)
                moved = True
            if moved:
                super().settle(now)
            moved = moved and (not self.program.wishes or bool(len(self.program)))
        self._busy = False


class OrderedTalker(Lightweight):
    """A daemon of lightweight groups in the process of such a program."""

    def __init__(
        self,
        me: MemberId,
        settings: LightweightSettings,
        below: Below,
        rng: Random,
        out: Outbox,
        talk: Talk,
    ) -> None:
        super().__init__(me, settings, below, rng, out)
        self.talk = talk
        self._busy = False
        self._session = self.machine.requests.connect_host(1)

    def start(self, now: Nanos) -> None:
        """Be in all its groups."""
        for group in self.talk.groups:
            self.machine.requests.join(self._session, group)
        super().start(now)
        self.out.set_timer(TalkTimer.TALK, self.talk.at())

    def on_timer(self, now: Nanos, timer: Timer) -> None:
        """Its own, or one of the daemon."""
        if timer is TalkTimer.TALK:
            self.settle(now)
            self.out.set_timer(TalkTimer.TALK, max(self.talk.at(), now + MILLISECOND))
        else:
            super().on_timer(now, timer)

    def settle(self, now: Nanos) -> None:
        """The program reads, and has one run waiting whenever it may."""
        if self._busy:
            return
        self._busy = True
        super().settle(now)
        session, moved = self._session, True
        while moved:
            events = session.take()
            self.talk.hear(now, session.client, events)
            moved = bool(events)
            if self.talk.due(now) and not session.unsent[0]:
                group, payloads = self.talk.next(now)
                self.machine.requests.cast(session, (group,), payloads)
                moved = True
            if moved:
                super().settle(now)
            moved = moved and (not session.unsent[0] or bool(len(session)))
        self._busy = False


Talking = CausalTalker | OrderedTalker


def cluster_of(cell: SwitchCell, talkers: list[Talking]) -> Cluster:
    """The processes of a cell; puts them into a list as they are built."""
    scheduler, seeds = Scheduler(), Random(cell.seed)
    private = cell.size - cell.shared
    size = cell.shared + cell.groups * private
    names = [f"g{number}" for number in range(cell.groups)]
    network = SwitchedNetwork(
        scheduler,
        Random(seeds.getrandbits(64)),
        size,
        Conditions(),
        bandwidth=1_000_000_000,
        latency=round(cell.latency_ms * MILLISECOND),
    )

    def build(me: MemberId, members: Sequence[MemberId], rng: Random, out: Outbox) -> Stack:
        number = members.index(me)
        everywhere = number < cell.shared
        mine = names if everywhere else [names[(number - cell.shared) // private]]
        sends = everywhere or cell.senders == "all"
        talk = Talk(cell, mine, Random(rng.getrandbits(64)), sends=sends)
        talker = _talker(cell, me, rng, out, talk)
        talkers.append(talker)
        return talker

    return Cluster(
        scheduler,
        network,
        build,
        size=size,
        rng=Random(seeds.getrandbits(64)),
        programs=Programs(observe=False),
        cpu=CpuModel(round(cell.cpu_us * MICROSECOND), round(cell.cpu_us * MICROSECOND)),
        announces=True,
    )


def _talker(cell: SwitchCell, me: MemberId, rng: Random, out: Outbox, talk: Talk) -> Talking:
    if cell.engine == "ordered":

        def below(member: MemberId, chance: Random, outbox: Outbox) -> Stack:
            return Ring(member, RingSettings(), chance, outbox)

        return OrderedTalker(me, LightweightSettings(), below, rng, out, talk)
    settings = IsisSettings(
        policy=Policy(cell.engine),
        resilience=cell.resilience,
        structure=(tuple(f"g{number}" for number in range(cell.groups)),),
        vsync=VsyncSettings(ack_delay=round(cell.ack_ms * MILLISECOND)),
    )
    return CausalTalker(me, settings, rng, out, talk, cell.size)
