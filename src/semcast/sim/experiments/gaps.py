"""W5: who must have the causes of a message, what that costs, and what crashes tear (Birman et al., 6.5).

A process of group g says something there and then something in group h, whose other members are not in g. For
a while only some members of g can hear it, and the moment somebody in h is given the second message, an enemy
who sees everything crashes as many processes of g as it may: those that have the first message, or are about
to. If it is gone with them, h has the effect of something that g will never have: a gap.
"""

from collections.abc import Sequence
from random import Random
from statistics import median

from semcast.core.ids import MICROSECOND, MILLISECOND, SECOND, MemberId, Nanos
from semcast.core.outbox import Outbox
from semcast.core.stack import Stack
from semcast.history import RunInfo
from semcast.history.schema import CAUSAL
from semcast.protocols.isis import Isis, IsisSettings, Policy
from semcast.protocols.lightweight.events import Delivered
from semcast.protocols.vsync import DetectorSettings, VsyncSettings
from semcast.sim.cluster import GROUP, Cluster, member_names
from semcast.sim.experiments.cells import CellError, Parameters, Result
from semcast.sim.faults import Crash, Cut
from semcast.sim.hosts import CpuModel
from semcast.sim.networks import Conditions, SwitchedNetwork
from semcast.sim.programs import Programs
from semcast.sim.scheduler import Scheduler
from semcast.specs.domains.causal import no_causal_gap

OUTSIDE = 2
"""Members of the other group that are not in the first one."""
FOUNDED: Nanos = 1 * SECOND
_STEP: Nanos = 100 * MICROSECOND
_DEAF: Nanos = 60 * MILLISECOND
_AFTER: Nanos = 3 * SECOND


class GapCell(Parameters, frozen=True):
    """Many runs with one effect each."""

    resilience: str = "safe"
    size: int = 7
    """Members of the group of the cause."""
    crashes: int = 1
    runs: int = 100
    latency_ms: float = 1.0
    jitter_ms: float = 4.0
    """Up to so much more for each packet: members acknowledge at different times."""


def w5(cell: GapCell) -> Result:
    """The share of runs with a gap, and the time from the wish to send to the program outside.

    Gaps are *broken* promises where no more processes crashed than `resilience` says.
    """
    if not 0 <= cell.crashes <= (cell.size - 1) // 2:
        raise CellError("crashes: so few that a majority is left")
    if cell.runs < 1:
        raise CellError("runs: at least 1")
    if cell.resilience.isdecimal() and int(cell.resilience) >= cell.size:
        raise CellError("resilience: fewer than there are members")
    seeds = Random(cell.seed)
    found = [_Run(cell, seeds.getrandbits(64)) for _ in range(cell.runs)]
    delays = [run.delay() for run in found]
    torn = [run.attack() for run in found]
    return {
        "delay_ms": median(delays) / MILLISECOND,
        "delay_99_ms": sorted(delays)[len(delays) * 99 // 100] / MILLISECOND,
        "gaps": sum(torn) / len(torn),
        "broken": sum(run.broken() for run in found) / len(found),
        "early": sum(run.early for run in found) / len(found),
    }


class Speaker(Isis):
    """A process whose program reads, and says what it is told to."""

    def __init__(
        self, me: MemberId, settings: IsisSettings, rng: Random, out: Outbox, groups: dict[str, int]
    ) -> None:
        super().__init__(me, settings, rng, out)
        self.heard: dict[bytes, Nanos] = {}
        """What it was given, and when."""
        self._groups = groups

    def start(self, now: Nanos) -> None:
        """Be in its groups."""
        super().start(now)
        for group, minimum in self._groups.items():
            self.join(now, group, minimum)
        self.settle(now)

    def settle(self, now: Nanos) -> None:
        """Its program reads at once."""
        super().settle(now)
        while events := self.program.take():
            for event in events:
                if isinstance(event, Delivered):
                    self.heard.update(dict.fromkeys(map(bytes, event.payloads), now))
            super().settle(now)


class _Run:
    """One domain: process 0 is in both groups."""

    def __init__(self, cell: GapCell, seed: int) -> None:
        self._cell = cell
        self._rng = Random(seed)
        self.early = False
        """Whether the effect was given while not all could hear of its cause."""
        scheduler, size = Scheduler(), cell.size + OUTSIDE
        self._processes: list[Speaker] = []
        conditions = Conditions(jitter=round(cell.jitter_ms * MILLISECOND))
        self._cluster = Cluster(
            scheduler,
            SwitchedNetwork(
                scheduler,
                Random(self._rng.getrandbits(64)),
                size,
                conditions,
                bandwidth=1_000_000_000,
                latency=round(cell.latency_ms * MILLISECOND),
            ),
            self._build,
            size=size,
            rng=Random(self._rng.getrandbits(64)),
            programs=Programs(observe=False),
            cpu=CpuModel(0, 0),
            record=RunInfo.one(
                "w5",
                GROUP,
                "isis",
                cell.seed,
                member_names(size),
                None,
                uniform=False,
                quiesced=False,
                order=CAUSAL,
            ),
            announces=True,
        )
        self._cluster.start()
        self._cluster.run(FOUNDED)
        if any(seat.entered is None for each in self._processes for seat in each.seats.values()):
            raise CellError("a group was not founded in time")

    def _build(self, me: MemberId, members: Sequence[MemberId], rng: Random, out: Outbox) -> Stack:
        number, size = members.index(me), self._cell.size
        groups = {"g": size} if number < size else {}
        if number == 0 or number >= size:
            groups["h"] = OUTSIDE + 1
        detector = DetectorSettings(
            heartbeat=20 * MILLISECOND, timeout_initial=300 * MILLISECOND, timeout_max=SECOND
        )
        settings = IsisSettings(
            policy=Policy.FULL,
            resilience=self._cell.resilience,
            notes=True,
            vsync=VsyncSettings(detector=detector, ack_delay=250 * MICROSECOND),
        )
        self._processes.append(Speaker(me, settings, rng, out, groups))
        return self._processes[-1]

    def delay(self) -> Nanos:
        """From the wish to send an effect until a program outside is given it, without trouble."""
        return self._speak(b"before", b"after", FOUNDED + SECOND) - FOUNDED

    def _speak(self, cause: bytes, effect: bytes, until: Nanos) -> Nanos:
        """Say both; returns when the effect is given, or the last moment."""
        cluster = self._cluster

        def say(_stack: Stack, now: Nanos) -> None:
            speaker = self._processes[0]
            speaker.cast("g", [cause])
            speaker.cast("h", [effect])
            speaker.settle(now)

        cluster.hosts[0].call(say)
        outside = self._processes[self._cell.size :]
        while not any(effect in each.heard for each in outside) and cluster.scheduler.now < until:
            cluster.run(cluster.scheduler.now + _STEP)
        return min((each.heard[effect] for each in outside if effect in each.heard), default=until)

    def attack(self) -> bool:
        """Whether the enemy tears a gap."""
        cell, cluster = self._cell, self._cluster
        now = cluster.scheduler.now
        others = list(range(1, cell.size))
        hear = self._rng.sample(others, self._rng.randrange(cell.size))
        deaf = tuple(place for place in others if place not in hear)
        cluster.schedule([Cut(now, _DEAF, (0,), deaf)])
        cluster.run(now + 1)
        self._speak(b"cause", b"effect", now + _DEAF)
        now = cluster.scheduler.now
        outside = self._processes[cell.size :]
        self.early = any(b"effect" in each.heard for each in outside)
        victims = [0, *hear][: cell.crashes] if self.early else []
        cluster.schedule([Crash(now, place, 0) for place in victims])
        cluster.run(now + _AFTER)
        left = [self._processes[place] for place in range(cell.size) if place not in victims]
        return self.early and not any(b"cause" in each.heard for each in left)

    def broken(self) -> bool:
        """Whether there is a gap with no more crashes than `resilience` says, by what was recorded."""
        return no_causal_gap(self._cluster.finish(quiesced=True)).count > 0
