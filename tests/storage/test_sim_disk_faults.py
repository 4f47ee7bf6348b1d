"""Faults of simulated disks, total crashes, and ambushes on syncs: each happens, and nothing told is lost."""

from collections.abc import Sequence
from itertools import pairwise
from random import Random

import pytest
from tests.storage.keepers import Keeping

from semcast.core import MemberId, Outbox, Stack
from semcast.core.ids import MILLISECOND, SECOND, Nanos
from semcast.core.outbox import Run, Sync, Trim
from semcast.sim.ambushes import caught_by
from semcast.sim.cluster import Cluster
from semcast.sim.disks import HostDisk, Synced
from semcast.sim.faults import (
    Ambush,
    AnyFault,
    BitRot,
    Crash,
    CrashAll,
    DiskFull,
    DiskLost,
    DiskStall,
    Recover,
    ends_at,
)
from semcast.sim.injector import FaultInjector
from semcast.sim.networks import Conditions, SwitchedNetwork
from semcast.sim.programs import Programs
from semcast.sim.scheduler import Scheduler
from semcast.sim.workloads import Source, constant, plain

MS = MILLISECOND


class Watched(Keeping):
    """Notes when its syncs were done; is in a phase of its own now and then."""

    def __init__(self, me: MemberId, out: Outbox) -> None:
        super().__init__(me, out)
        self.synced_at: list[Nanos] = []

    def on_synced(self, now: Nanos, ticket: int) -> None:
        super().on_synced(now, ticket)
        self.synced_at.append(now)

    def phases(self) -> tuple[str, ...]:
        return ("operational", "even" if len(self.kept) % 2 == 0 else "odd")


class Ran:
    """A cluster of members that each keep what they are told, after a second."""

    def __init__(self, seed: int, *faults: AnyFault, size: int = 1) -> None:
        self.stacks: dict[MemberId, Watched] = {}
        scheduler = Scheduler()
        network = SwitchedNetwork(scheduler, Random(1), size, Conditions(), bandwidth=10**9, latency=1000)

        def build(me: MemberId, _members: Sequence[MemberId], _rng: Random, out: Outbox) -> Stack:
            self.stacks[me] = Watched(me, out)
            return self.stacks[me]

        def source(_number: int, _member: MemberId) -> Source:
            return Source(constant(1000.0), plain(), 1000)

        self.cluster = Cluster(
            scheduler,
            network,
            build,
            size=size,
            rng=Random(seed),
            programs=Programs(
                sources={number: source(number, MemberId(f"p{number}")) for number in range(size)},
                again=source,
                observe=False,
            ),
            disks=True,
        )
        self.cluster.schedule(faults)
        self.cluster.start()
        self.cluster.run(SECOND)

    def of(self, number: int) -> list[Watched]:
        """The incarnations of one member."""
        found = [stack for me, stack in self.stacks.items() if me.name == f"p{number}"]
        return sorted(found, key=lambda stack: stack._me)

    def check(self) -> None:
        """What a process acknowledged, its next one has."""
        for number in range(len(self.cluster.hosts)):
            starts = self.of(number)
            for before, after in pairwise(starts):
                assert after.recovered is not None
                assert after.recovered[: before.acknowledged] == before.kept[: before.acknowledged]
                assert after.recovered == before.kept[: len(after.recovered)], "no hole"


@pytest.mark.parametrize("seed", range(4))
def test_while_a_disk_stalls_nothing_is_synced_and_then_all_of_it(seed: int) -> None:
    ran = Ran(seed, DiskStall(300 * MS, 200 * MS, 0))
    [stack] = ran.of(0)
    assert not [at for at in stack.synced_at if 300 * MS <= at < 500 * MS]
    assert [at for at in stack.synced_at if at > 501 * MS]
    assert stack.acknowledged > 800


@pytest.mark.parametrize("seed", range(6))
def test_a_process_whose_disk_is_full_ends_and_has_lost_nothing_it_told(seed: int) -> None:
    ran = Ran(seed, DiskFull(300 * MS, 200 * MS, 0), Recover(420 * MS, 0), Recover(700 * MS, 0))
    first, second, third = ran.of(0)
    assert not [at for at in first.synced_at if at > 400 * MS]
    assert second.acknowledged == len(second.recovered or ()), "it told nobody anything more"
    assert third.acknowledged > first.acknowledged
    ran.check()


def test_a_disk_that_is_full_while_nobody_writes_harms_nobody() -> None:
    ran = Ran(1, DiskFull(1, 1, 0))
    assert len(ran.of(0)) == 1
    assert ran.of(0)[0].acknowledged > 900


def test_a_disk_that_is_lost_is_empty_and_its_process_ends() -> None:
    ran = Ran(1, DiskLost(400 * MS, 0), Recover(500 * MS, 0))
    first, second = ran.of(0)
    assert first.acknowledged > 300
    assert second.recovered == []
    assert not [at for at in first.synced_at if at > 400 * MS]


def test_nobody_starts_on_a_disk_that_lost_what_was_synced(monkeypatch: pytest.MonkeyPatch) -> None:
    """Where a record had just replaced all others there is nothing yet whose damage could be noticed."""
    hit: list[bool] = []
    rot = HostDisk.rot

    def note(disk: HostDisk) -> bool:
        hit.append(rot(disk))
        return hit[-1]

    monkeypatch.setattr(HostDisk, "rot", note)
    faults = (BitRot(405 * MS, 0), Crash(405 * MS + 1, 0, 0), Recover(410 * MS, 0))
    for seed in range(10):
        ran = Ran(seed, *faults)
        assert ran.cluster.hosts[0].crashed == hit[-1]
        assert len(ran.of(0)) == 1 + (not hit[-1])
        if hit[-1]:
            ran = Ran(seed, *faults, Recover(500 * MS, 0, with_disk=False))
            assert [stack.recovered for stack in ran.of(0)] == [[], []], "an operator gave it an empty one"
    assert sum(hit) > 8


@pytest.mark.parametrize("seed", range(6))
def test_the_power_fails_and_nobody_has_lost_what_it_told(seed: int) -> None:
    back = [Recover((450 + 10 * number) * MS, number) for number in range(3)]
    ran = Ran(seed, CrashAll(400 * MS, 5 * MS), *back, size=3)
    for number in range(3):
        first, second = ran.of(number)
        assert first.acknowledged > 100
        assert not [at for at in first.synced_at if at > 405 * MS]
        assert second.acknowledged > first.acknowledged
    ran.check()


@pytest.mark.parametrize("seed", range(12))
def test_an_ambush_strikes_while_a_sync_is_under_way(seed: int) -> None:
    caught: list[tuple[int, bool]] = []

    strike = FaultInjector._strike

    def note(injector: FaultInjector, ambush: Ambush, numbers: list[int]) -> None:
        caught.extend((number, injector._disks[number].syncing) for number in numbers)
        strike(injector, ambush, numbers)

    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(FaultInjector, "_strike", note)
        ran = Ran(seed, Ambush(300 * MS, "", None, syncing=True, back_after=20 * MS), size=3)
    assert [syncing for _, syncing in caught] == [True] * len(caught)
    crashed = [number for number in range(3) if len(ran.of(number)) == 2]
    assert crashed == [caught[0][0]]
    ran.check()


@pytest.mark.parametrize("phase", ["even", "odd"])
def test_an_ambush_waits_for_a_state_of_the_machine_on_top_of_a_stack(phase: str) -> None:
    ambush = Ambush(300 * MS, phase, None, closely=True, everybody=True, back_after=50 * MS)
    ran = Ran(3, ambush, size=3)
    crashed = [number for number in range(3) if len(ran.of(number)) == 2]
    assert crashed
    for number in crashed:
        assert len(ran.of(number)[0].kept) % 2 == (phase == "odd")
    ran.check()


def test_an_ambush_on_syncs_and_the_same_seed_give_the_same_run() -> None:
    def kept() -> list[int]:
        ran = Ran(5, Ambush(300 * MS, "", None, syncing=True, back_after=20 * MS), size=3)
        return [len(stack.kept) for stack in ran.stacks.values()]

    assert kept() == kept()


def test_whom_an_ambush_catches() -> None:
    some = [("operational", "un"), ("operational", "no"), ()]
    every = [("operational", "un")] * 3
    nobody, one = [False] * 3, [False, True, False]
    assert caught_by(Ambush(0, "un", None), some, some, nobody) == [0]
    assert caught_by(Ambush(0, "", None), some, some, nobody) == [0, 1]
    assert caught_by(Ambush(0, "", None, syncing=True), some, some, one) == [1]
    assert caught_by(Ambush(0, "un", None, syncing=True), some, some, one) == []
    assert caught_by(Ambush(0, "un", None), every, every, nobody) == [], "others have to be elsewhere"
    assert caught_by(Ambush(0, "un", None, everybody=True), every, every, nobody) == [0, 1, 2]


def test_when_faults_are_over() -> None:
    assert ends_at(CrashAll(5, 10, 3)) == 18
    assert ends_at(DiskStall(5, 10, 0)) == ends_at(DiskFull(5, 10, 0)) == 15
    assert ends_at(DiskLost(5, 0)) == ends_at(BitRot(5, 0)) == 5
    assert ends_at(Ambush(5, "x", None, patience=10, back_after=7)) == 22


def test_a_crash_may_leave_a_later_page_without_an_earlier_one() -> None:
    """Then everything from the gap on is cut off: of a hundred records any number may be left."""
    left = set()
    for seed in range(200):
        disk = HostDisk(Scheduler(), Random(seed))
        disk.attach(_ignore)
        written = [b"%03d" % number + bytes(20) for number in range(100)]
        disk.write([Run(written)])
        disk.crash()
        found = disk.attach(_ignore)
        assert found == written[: len(found)]
        left.add(len(found))
    assert {0, 100} < left
    assert len(left) > 40


def test_records_are_trimmed_in_portions_and_those_behind_are_read_by_position() -> None:
    kinds = set()
    for seed in range(20):
        scheduler = Scheduler()
        disk = HostDisk(scheduler, Random(seed))
        disk.attach(_ignore)
        written = [b"%03d" % number for number in range(100)]
        disk.write([Run(written), Sync(1)])
        scheduler.run(SECOND)
        disk.write([Trim(60), Sync(2), b"more"])
        scheduler.run(2 * SECOND)
        assert disk.first <= 60
        assert disk.first > 0
        assert disk.read(70, 9) == written[70:73]
        assert disk.read(99, 100) == [b"099", b"more"], "it was synced with the rest"
        kinds.add(disk.first)
        disk.crash()
        assert disk.attach(_ignore)[: 100 - disk.first] == written[disk.first :]
    assert len(kinds) == 3


def _ignore(_synced: Synced) -> None:
    """Nobody waits."""
