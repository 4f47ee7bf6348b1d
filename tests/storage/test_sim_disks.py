"""Simulated disks: every crash leaves a prefix with all that was acknowledged, and a seed tells which."""

from collections.abc import Sequence
from random import Random

import msgspec
import pytest
from tests.storage.keepers import Keeping

from semcast.core import MemberId, Outbox, Stack
from semcast.core.ids import MILLISECOND, SECOND
from semcast.core.outbox import Sync
from semcast.sim.cluster import Cluster
from semcast.sim.disks import HostDisk, Synced
from semcast.sim.families import FAMILIES
from semcast.sim.faults import Crash, Leave, Recover
from semcast.sim.networks import Conditions, SwitchedNetwork
from semcast.sim.programs import Programs
from semcast.sim.scheduler import Scheduler
from semcast.sim.workloads import Source, constant, plain


class Seen(msgspec.Struct):
    """What came of a run, at each start of the member."""

    acknowledged: list[int]
    recovered: list[list[str] | None]
    tickets: list[list[int]]


def run(seed: int, *faults: Crash | Recover | Leave, disks: bool = True) -> Seen:
    scheduler, rng = Scheduler(), Random(seed)
    network = SwitchedNetwork(scheduler, Random(1), 1, Conditions(), bandwidth=10**9, latency=1000)
    stacks: list[Keeping] = []

    def build(me: MemberId, _members: Sequence[MemberId], _rng: Random, out: Outbox) -> Stack:
        stacks.append(Keeping(me, out))
        return stacks[-1]

    def source(_number: int, member: MemberId) -> Source | None:
        return Source(constant(1000.0), plain(), 1000) if disks else None

    sources = {0: first} if (first := source(0, MemberId("p0"))) else {}
    cluster = Cluster(
        scheduler,
        network,
        build,
        size=1,
        rng=rng,
        programs=Programs(sources=sources, again=source, observe=False),
        disks=disks,
    )
    cluster.schedule(faults)
    cluster.start()
    cluster.run(SECOND)
    return Seen(
        [stack.acknowledged for stack in stacks],
        [stack.recovered for stack in stacks],
        [stack.tickets for stack in stacks],
    )


def crashes(*times: int) -> list[Crash | Recover]:
    found: list[Crash | Recover] = []
    for at in times:
        found += [Crash(at * MILLISECOND, 0, 0), Recover((at + 3) * MILLISECOND, 0)]
    return found


@pytest.mark.parametrize("seed", range(12))
def test_what_was_acknowledged_survives_every_crash(seed: int) -> None:
    rng = Random(seed)
    seen = run(seed, *crashes(*sorted(rng.sample(range(20, 900, 10), 6))))
    assert len(seen.recovered) == 7
    for told, found in zip(seen.acknowledged, seen.recovered[1:], strict=False):
        assert found is not None
        assert len(found) >= told
    assert any(seen.tickets)


def test_a_run_depends_on_nothing_but_its_seed() -> None:
    faults = crashes(100, 300, 555)
    assert run(5, *faults) == run(5, *faults)
    assert len({str(run(seed, *faults)) for seed in range(8)}) > 3, "not one run for all seeds"


def test_a_crash_leaves_all_or_nothing_or_a_part_of_what_was_not_synced() -> None:
    kinds = set()
    for seed in range(60):
        scheduler = Scheduler()
        disk = HostDisk(scheduler, Random(seed))
        disk.attach(lambda _synced: None)
        disk.write([b"a", b"b", b"c", b"d"])
        disk.crash()
        kinds.add(len(disk.attach(lambda _synced: None)))
    assert kinds == {0, 1, 2, 3, 4}


def test_a_process_may_come_back_without_its_disk() -> None:
    seen = run(1, Crash(400 * MILLISECOND, 0, 0), Recover(410 * MILLISECOND, 0, with_disk=False))
    assert seen.acknowledged[0] > 0
    assert seen.recovered == [[], []]


def test_where_hosts_have_none_nobody_recovers() -> None:
    assert run(1, *crashes(100), disks=False).recovered == [None, None]
    assert not FAMILIES.of("ring").disk(FAMILIES.of("ring").draw(1, None))


def test_who_leaves_and_comes_back_is_not_told_of_the_syncs_of_before() -> None:
    """The process ends at once, its disk goes on: what was asked for there is nobody's business any more."""
    for seed in range(6):
        seen = run(seed, Leave(300 * MILLISECOND, 0), Recover(300 * MILLISECOND + 1000, 0))
        assert [found is not None for found in seen.recovered] == [True, True]
        assert seen.tickets[1][0] == 1, "its own first"


def test_records_that_come_during_a_sync_share_the_next() -> None:
    scheduler, told = Scheduler(), list[Synced]()
    disk = HostDisk(scheduler, Random(3))
    disk.attach(told.append)
    for number in range(5):
        disk.write([b"record", Sync(number)])
    scheduler.run(SECOND)
    assert told == [Synced([0]), Synced([1, 2, 3, 4])]
