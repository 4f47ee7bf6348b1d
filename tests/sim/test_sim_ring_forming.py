"""A ring that forms and stays formed: an MTU, dead links, newcomers, settings that differ, large groups."""

from random import Random

import pytest

from semcast.core import MemberId
from semcast.core.ids import MILLISECOND, SECOND, Nanos
from semcast.protocols.backoff import CAP
from semcast.protocols.ring import Cause, Ring, RingSettings, State
from semcast.sim.cluster import Cluster
from semcast.sim.faults import AnyFault, Crash, Cut
from semcast.sim.mutants import MUTANTS, Mutant
from semcast.sim.scenario import Scenario, Traffic
from semcast.sim.simulate import build
from semcast.sim.swarm import examine

MS = MILLISECOND
FORMATION = 1 * SECOND
"""What it takes to form a ring, at most, once everybody hears everybody."""


def started(scenario: Scenario, faults: tuple[AnyFault, ...] = (), mutant: Mutant | None = None) -> Cluster:
    cluster = build(scenario, mutant or Mutant())
    cluster.schedule(faults)
    cluster.start(scenario.late)
    return cluster


def rings(cluster: Cluster) -> list[Ring]:
    found = [host.stack for host in cluster.hosts]
    assert all(isinstance(ring, Ring) for ring in found)
    return [ring for ring in found if isinstance(ring, Ring)]


def together(cluster: Cluster, *, within: Nanos) -> Nanos | None:
    """How long it takes until all are in one configuration; None if longer."""
    began = cluster.scheduler.now
    while cluster.scheduler.now < began + within:
        cluster.run(cluster.scheduler.now + 10 * MS)
        living = [ring for ring in rings(cluster) if ring.state is not State.LEFT]
        confs = {ring.order.conf for ring in living if ring.state is State.OPERATIONAL}
        if len(confs) == 1 and all(len(ring.order.members) == len(living) for ring in living):
            return cluster.scheduler.now - began
    return None


def installed(ring: Ring) -> int:
    """How many configurations it has installed."""
    return ring.standing.moves[State.EVS, Cause.RECOVERED]


# Any MTU


@pytest.mark.parametrize(("size", "loss"), [(11, 0.0), (22, 0.0), (32, 0.0), (16, 0.05)])
def test_rings_of_any_size_and_names_form_over_the_smallest_mtu(size: int, loss: float) -> None:
    settings = RingSettings(packet_bytes=900)
    scenario = Scenario(seed=1, stack="ring", size=size, mtu=1280, name_bytes=60, loss=loss, ring=settings)
    cluster = started(scenario)
    assert together(cluster, within=2 * SECOND) is not None
    assert cluster.network.oversized == 0


def test_a_ring_that_takes_a_piece_for_the_whole_does_not_form() -> None:
    settings = RingSettings(packet_bytes=900)
    scenario = Scenario(seed=1, stack="ring", size=16, mtu=1280, name_bytes=60, ring=settings)
    cluster = started(scenario, mutant=MUTANTS["ring"]["piece-taken-for-the-whole"])
    assert together(cluster, within=3 * SECOND) is None


def test_32_members_that_all_send_get_everything() -> None:
    traffic = tuple(
        Traffic(sender, content="plain", arrivals="constant", rate=50.0, count=40, size=200)
        for sender in range(32)
    )
    settings = RingSettings(packet_bytes=900)
    scenario = Scenario(
        seed=1, stack="ring", size=32, mtu=1280, name_bytes=60, ring=settings, traffic=traffic
    )
    found = examine(scenario)
    assert found.broken == []
    assert {stats.delivered for stats in found.outcome.stacks} == {32 * 40}


# Links that stay dead

LONG = 20 * SECOND
DEAD = {
    "one way, to the highest": (3, [(1, 2)]),
    "both ways": (3, [(1, 2), (2, 1)]),
    "one way, from the lowest": (3, [(0, 1)]),
    "back to the lowest": (5, [(4, 0)]),
    "of five": (5, [(3, 4)]),
    "of eight, both ways": (8, [(6, 7), (7, 6)]),
    "one that hears nobody": (4, [(0, 3), (1, 3), (2, 3)]),
    "one that nobody hears": (4, [(3, 0), (3, 1), (3, 2)]),
}


def shares(cluster: Cluster, until: Nanos) -> list[float]:
    """The share of time in which each member was in a working ring of several."""
    count, usable = 0, [0] * len(cluster.hosts)
    while cluster.scheduler.now < until:
        cluster.run(cluster.scheduler.now + 5 * MS)
        count += 1
        for number, ring in enumerate(rings(cluster)):
            usable[number] += ring.operation.alive and len(ring.order.members) > 1
    return [each / count for each in usable]


@pytest.mark.parametrize("name", DEAD)
def test_a_link_that_stays_dead_costs_the_others_little(name: str) -> None:
    size, links = DEAD[name]
    cuts = tuple(Cut(2 * SECOND, LONG, (source,), (dest,)) for source, dest in links)
    cluster = started(Scenario(seed=1, stack="ring", size=size), cuts)
    cluster.run(3 * SECOND)
    found = shares(cluster, 2 * SECOND + LONG)
    assert sum(share > 0.95 for share in found) >= size - 1
    assert all(installed(ring) < 14 for ring in rings(cluster))
    assert together(cluster, within=CAP + FORMATION) is not None


def test_a_back_off_without_a_cap_is_caught() -> None:
    """The healed group must find itself again within the cap."""
    size, links = DEAD["both ways"]
    cuts = tuple(Cut(2 * SECOND, 38 * SECOND, (source,), (dest,)) for source, dest in links)
    for mutant, bound in (("", True), ("backoff-without-cap", False)):
        found = MUTANTS["ring"][mutant] if mutant else None
        cluster = started(Scenario(seed=1, stack="ring", size=size), cuts, found)
        cluster.run(40 * SECOND)
        assert (together(cluster, within=CAP + FORMATION) is not None) is bound


# Newcomers


@pytest.mark.parametrize("joiners", [1, 3, 8])
@pytest.mark.parametrize("skew", [0, 100, 400])
@pytest.mark.parametrize("seed", range(3))
def test_newcomers_beside_a_working_ring_cause_two_views_at_most(seed: int, skew: int, joiners: int) -> None:
    rng = Random(seed)
    late = {4 + number: 2 * SECOND + rng.randint(0, skew) * MS for number in range(joiners)}
    cluster = started(Scenario(seed=seed, stack="ring", size=4 + joiners, late=late))
    cluster.run(2 * SECOND - 1)
    before = [installed(ring) for ring in rings(cluster)]
    sizes = [set[int]() for _ in cluster.hosts]
    while cluster.scheduler.now < 6 * SECOND:
        cluster.run(cluster.scheduler.now + 1 * MS)
        for ring, seen in zip(rings(cluster), sizes, strict=True):
            seen.add(len(ring.order.members))
    assert all(len(ring.order.members) == 4 + joiners for ring in rings(cluster))
    for ring, past in zip(rings(cluster), before, strict=True):
        assert installed(ring) - past <= 2
    assert all(min(seen) == 4 for seen in sizes[:4]), "nobody alive is called failed"


def test_newcomers_that_vanish_do_not_break_the_ring() -> None:
    late = dict.fromkeys((4, 5), 2 * SECOND)
    faults = (Crash(2 * SECOND + 90 * MS, 5, detected_after=0),)
    cluster = started(Scenario(seed=1, stack="ring", size=6, late=late), faults)
    cluster.run(6 * SECOND)
    for ring in rings(cluster)[:5]:
        assert len(ring.order.members) == 5
        assert ring.standing.moves[State.OPERATIONAL, Cause.TOKEN_LOST] == 0


# Settings that differ


def differing(mutant: Mutant | None = None) -> Cluster:
    settings = RingSettings(window=64, visit=8)
    scenario = Scenario(
        seed=1, stack="ring", size=4, ring=settings, misfits=(3,), late={3: SECOND}, duration=3 * SECOND
    )
    cluster = started(scenario, mutant=mutant)
    cluster.run(3 * SECOND)
    return cluster


def test_a_newcomer_with_other_settings_is_refused_and_told() -> None:
    cluster = differing()
    *members, misfit = rings(cluster)
    assert misfit.state is State.LEFT
    assert misfit.operation.leaving.cause is not None
    assert "window is 32 here and 64 there" in misfit.operation.leaving.cause
    assert all(len(ring.order.members) == 3 for ring in members)
    assert members[0].stats.refused_members > 0
    assert all(installed(ring) == 1 for ring in members)


def test_a_ring_that_ignores_the_terms_is_caught() -> None:
    cluster = differing(MUTANTS["ring"]["terms-ignored"])
    mixed = {MemberId("p0"), MemberId("p3")}
    assert any(mixed <= {*ring.order.members} for ring in rings(cluster))


# A minimum


def test_nobody_is_there_before_enough_are() -> None:
    traffic = (Traffic(0, content="plain", arrivals="constant", rate=100.0, count=10),)
    late = {1: 500 * MS, 2: 1000 * MS}
    settings = RingSettings(minimum=3)
    scenario = Scenario(
        seed=1, stack="ring", size=3, ring=settings, late=late, traffic=traffic, duration=2 * SECOND
    )
    cluster = started(scenario)
    cluster.run(990 * MS)
    assert [ring.phase() for ring in rings(cluster)[:2]] == ["gather", "gather"]
    assert rings(cluster)[0].stats.sent == 0
    found = examine(scenario)
    assert found.broken == []
    assert [stats.delivered for stats in found.outcome.stacks] == [10, 10, 10]


def test_a_minimum_that_was_reached_once_is_forgotten() -> None:
    scenario = Scenario(seed=1, stack="ring", size=3, ring=RingSettings(minimum=3))
    cluster = started(scenario, (Crash(SECOND, 1, detected_after=0), Crash(SECOND, 2, detected_after=0)))
    cluster.run(3 * SECOND)
    ring = rings(cluster)[0]
    assert len(ring.order.members) == 1
    assert ring.phase() == "operational"
