"""Situations that other group-communication systems learned to test, met on purpose by virtual synchrony.

Each run is checked against everything that is promised, and must show that the situation really came about.
"""

from collections.abc import Sequence

import msgspec
import pytest

from semcast.core.ids import MICROSECOND, MILLISECOND, SECOND
from semcast.history import Event, History, Kind
from semcast.protocols.vsync import (
    Agreement,
    DetectorSettings,
    Engine,
    Flush,
    Order,
    VirtualSynchrony,
    VsyncSettings,
)
from semcast.sim.cluster import Cluster
from semcast.sim.faults import Ambush, AnyFault, Crash, Cut, Leave, Loss, Partition, Recover, Sleep
from semcast.sim.mutants import Mutant
from semcast.sim.scenario import Scenario, Traffic
from semcast.sim.simulate import build
from semcast.sim.swarm import violated
from semcast.specs import check

MS = MILLISECOND
SETTINGS = VsyncSettings(
    minimum=3,
    state=True,
    buffer_messages=40,
    detector=DetectorSettings(
        heartbeat=20 * MS, timeout_initial=200 * MS, timeout_min=60 * MS, timeout_max=SECOND, margin=40 * MS
    ),
    resend=10 * MS,
    hello=40 * MS,
)
ALL = (0, 1, 2, 3)


def traffic(
    senders: Sequence[int] = ALL, rate: float = 40.0, count: int = 60, size: int = 0
) -> tuple[Traffic, ...]:
    return tuple(
        Traffic(sender, "items", "poisson", rate, count, r=0.5, d=3, size=size) for sender in senders
    )


BASE = Scenario(
    seed=7,
    stack="vsync",
    size=4,
    latency=600 * MICROSECOND,
    vsync=SETTINGS,
    traffic=traffic(),
    duration=2 * SECOND,
)
VARIANTS = [
    pytest.param({"order": Order.FIFO}, id="fifo"),
    pytest.param({"order": Order.CAUSAL, "flush": Flush.ALL}, id="causal"),
    pytest.param({"order": Order.TOTAL, "engine": Engine.TOKEN, "uniform": True}, id="token"),
    pytest.param({"order": Order.TOTAL, "engine": Engine.CONSENSUS, "flush": Flush.ALL}, id="consensus"),
]


def base(*faults: AnyFault, vsync: dict[str, object] | None = None, **changes: object) -> Scenario:
    settings = msgspec.structs.replace(SETTINGS, **(vsync or {}))
    return msgspec.structs.replace(BASE, faults=faults, vsync=settings, uniform=settings.uniform, **changes)


class Run:
    """What came of a run."""

    def __init__(self, cluster: Cluster, history: History) -> None:
        self.cluster = cluster
        self.history = history

    def installed(self) -> dict[int, frozenset[str]]:
        """Every view that anybody installed."""
        return {
            event.view or 0: frozenset(map(str, event.members or ()))
            for event in self.history.events
            if event.kind is Kind.VIEW
        }

    def views(self, number: int) -> list[Event]:
        member = self.cluster.hosts[number].member
        return [event for event in self.history.of(member) if event.kind is Kind.VIEW]

    def stack(self, number: int) -> VirtualSynchrony:
        stack = self.cluster.hosts[number].stack
        assert isinstance(stack, VirtualSynchrony)
        return stack

    def last(self) -> frozenset[str]:
        installed = self.installed()
        return installed[max(installed)]


def run(scenario: Scenario) -> Run:
    """Run, heal, wait; everything that is promised holds, and all who are there end in one view."""
    cluster = build(scenario, Mutant())
    cluster.schedule(scenario.faults)
    cluster.start()
    cluster.run(scenario.duration)
    cluster.heal()
    assert cluster.settle(60 * SECOND)
    history = cluster.finish(quiesced=True)
    assert not [str(verdict) for verdict in violated(check(history))]
    return Run(cluster, history)


def together(scenario: Scenario) -> Run:
    """And all who are there end in one view, and can send."""
    ran = run(scenario)
    there = {host.member for host in ran.cluster.hosts if not host.crashed}
    for host in ran.cluster.hosts:
        if not host.crashed:
            assert host.view is not None
            assert set(host.view.members) == there
            assert not host.waiting
    return ran


def names(*numbers: int, again: Sequence[int] = ()) -> frozenset[str]:
    return frozenset([f"p{number}" for number in numbers] + [f"p{number}#1" for number in again])


# Founding and joining


@pytest.mark.parametrize("variant", VARIANTS)
def test_all_start_at_the_same_moment(variant: dict[str, object]) -> None:
    ran = together(base(vsync=variant, duration=800 * MS))
    assert ran.installed() == {1: names(*ALL)}


def test_all_start_while_much_is_lost() -> None:
    ran = together(base(loss=0.3, duration=1500 * MS, traffic=traffic(rate=20.0, count=15)))
    assert {member.split("#")[0] for member in ran.last()} == names(*ALL)


def test_fewer_than_the_minimum_found_nothing() -> None:
    ran = run(base(Partition(0, 1500 * MS, ((0, 1), (2, 3))), duration=1400 * MS, traffic=()))
    first = min(event.at for event in ran.history.events if event.kind is Kind.VIEW)
    assert first >= 1500 * MS


def test_a_crash_and_an_immediate_restart_under_the_same_name() -> None:
    ran = together(base(Crash(500 * MS, 2, detected_after=0), Recover(501 * MS, 2)))
    assert ran.last() == names(0, 1, 3, again=[2])


def test_several_come_back_at_once_and_are_given_the_state() -> None:
    crashes = [Crash(400 * MS, 3, detected_after=0), Crash(800 * MS, 2, detected_after=0)]
    ran = together(base(*crashes, Recover(1200 * MS, 2), Recover(1200 * MS, 3)))
    assert ran.last() == names(0, 1, again=[2, 3])
    at_views = [event for event in ran.history.events if event.kind is Kind.APPLY and event.view is not None]
    assert {str(event.process) for event in at_views} >= {"p2#1", "p3#1"}


def test_the_provider_of_the_state_crashes() -> None:
    faults = (
        Crash(300 * MS, 3, detected_after=0),
        Recover(800 * MS, 3),
        Ambush(800 * MS, "operational", None),
    )
    big = traffic(senders=(1,), rate=200.0, count=60, size=1000)
    ran = run(base(*faults, traffic=big, size=5))
    assert "p3#1" in ran.last()


# Leaving


@pytest.mark.parametrize("variant", VARIANTS)
@pytest.mark.parametrize("who", [0, 3])
def test_a_voluntary_leave(variant: dict[str, object], who: int) -> None:
    ran = together(base(Leave(700 * MS, who), vsync=variant))
    assert ran.installed()[2] == names(*ALL) - names(who)


def test_two_leave_at_once_and_one_stays() -> None:
    ran = together(base(Leave(600 * MS, 0), Leave(600 * MS, 1), Leave(1200 * MS, 3)))
    assert ran.last() == names(2)


def test_a_leave_while_a_view_is_being_installed() -> None:
    ran = together(base(Crash(500 * MS, 1, detected_after=0), Leave(600 * MS, 2), size=5))
    assert ran.last() == names(0, 3, 4)


# Failures


@pytest.mark.parametrize("variant", VARIANTS)
@pytest.mark.parametrize("who", [0, 2])
def test_a_crash(variant: dict[str, object], who: int) -> None:
    ran = together(base(Crash(700 * MS, who, detected_after=0), vsync=variant))
    assert ran.last() == names(*ALL) - names(who)


@pytest.mark.parametrize("variant", VARIANTS)
def test_a_crash_with_last_words_that_reach_one(variant: dict[str, object]) -> None:
    words = Cut(650 * MS, 50 * MS, (1,), (0, 3))
    together(base(words, Crash(700 * MS, 1, detected_after=0), vsync=variant, traffic=traffic(rate=200.0)))


@pytest.mark.parametrize("phase", ["flushing", "operational"])
def test_a_crash_in_the_middle_of_a_change(phase: str) -> None:
    together(base(Crash(600 * MS, 4, detected_after=0), Ambush(601 * MS, phase, None), size=5))


def test_a_member_that_was_frozen_comes_back_as_another() -> None:
    ran = together(base(Sleep(500 * MS, 2, 900 * MS), traffic=traffic(senders=(0, 2), rate=100.0)))
    assert ran.last() == names(0, 1, 3, again=[2])


# Partitions


@pytest.mark.parametrize("variant", VARIANTS)
def test_a_minority_is_blocked_and_comes_back(variant: dict[str, object]) -> None:
    ran = together(base(Partition(500 * MS, 900 * MS, ((0,), (1, 2, 3))), vsync=variant))
    assert ran.last() == names(1, 2, 3, again=[0])
    assert frozenset(["p0"]) not in ran.installed().values()


def test_of_two_equal_halves_that_with_the_first_member_goes_on() -> None:
    ran = together(base(Partition(500 * MS, 900 * MS, ((0, 1), (2, 3)))))
    assert names(0, 1) in ran.installed().values()
    assert names(2, 3) not in ran.installed().values()
    assert ran.last() == names(0, 1, again=[2, 3])


def test_a_complete_split() -> None:
    """Nobody goes on alone; when they meet, two with the first among them need not wait for the rest."""
    ran = together(base(Partition(500 * MS, 900 * MS, ((0,), (1,), (2,), (3,)))))
    assert all(len(members) > 1 for members in ran.installed().values())


def test_a_link_that_works_one_way_only() -> None:
    """The last two hear each other no more, though the others hear both: the later one gives way."""
    ran = together(base(Cut(500 * MS, 1200 * MS, (2,), (3,)), Cut(500 * MS, 1200 * MS, (3,), (2,))))
    assert names(0, 1, 2) in ran.installed().values()


@pytest.mark.parametrize("seed", [3, 7, 11])
@pytest.mark.parametrize("flush", list(Flush))
def test_one_that_hears_nobody_does_not_hold_up_the_others(flush: Flush, seed: int) -> None:
    """It suspects everybody and calls them to a round of its own, where they waited for it for ever."""
    deaf = Cut(500 * MS, 1500 * MS, (0, 1, 2), (3,))
    busy = traffic(senders=(0, 1), rate=100.0, count=120)
    ran = together(base(deaf, vsync={"flush": flush}, traffic=busy, seed=seed))
    assert names(0, 1, 2) in ran.installed().values()


def test_repeated_flapping() -> None:
    faults = [Partition(start * MS, 150 * MS, ((0,), (1, 2, 3))) for start in range(300, 1800, 300)]
    together(base(*faults))


# Messages


@pytest.mark.parametrize("variant", VARIANTS)
def test_large_messages_under_loss(variant: dict[str, object]) -> None:
    settings = {**variant, "frame_bytes": 250}
    big = traffic(senders=(0, 1), rate=30.0, count=25, size=1500)
    ran = together(base(Loss(300 * MS, 300 * MS, 0.3), vsync=settings, traffic=big))
    assert sum(ran.stack(number).stats.retransmitted for number in ALL)


@pytest.mark.parametrize("variant", VARIANTS)
def test_a_member_that_lost_a_whole_window_soon_has_it(variant: dict[str, object]) -> None:
    """Nothing reaches it for a while that is too short to be suspected."""
    patient = DetectorSettings(heartbeat=20 * MS, timeout_initial=SECOND, timeout_min=SECOND)
    settings = {**variant, "buffer_messages": 2048, "fair": True, "detector": patient}
    deaf = Cut(200 * MS, 200 * MS, (0, 1, 2), (3,))
    many = (Traffic(0, "plain", "constant", 4000.0, 1400),)
    ran = together(base(deaf, vsync=settings, traffic=many, duration=1500 * MS))
    assert ran.installed() == {1: names(*ALL)}
    lost = ran.stack(3).stats.requested
    again = sum(ran.stack(number).stats.retransmitted for number in ALL)
    assert lost > 500
    assert again < 2 * lost
    at_last = {str(e.process): e.at for e in ran.history.events if e.kind is Kind.DELIVER}
    assert at_last["p3"] - at_last["p1"] < 50 * MS


def test_a_slow_application_is_purged_for_and_nobody_waits() -> None:
    many = (Traffic(0, "items", "constant", 200.0, 300, r=1.0, d=3),)
    ran = together(base(traffic=many, app_delays={3: 20 * MS}))
    assert ran.stack(3).stats.purged_delivery > 0
    assert ran.installed() == {1: names(*ALL)}


@pytest.mark.parametrize("limit", [{"expel_after": 300 * MS}, {"expel_when_full": True}])
def test_who_delays_stability_for_too_long_is_expelled(limit: dict[str, object]) -> None:
    many = (Traffic(0, "plain", "constant", 200.0, 300),)
    settings: dict[str, object] = {"buffer_messages": 20, **limit}
    ran = run(base(vsync=settings, traffic=many, app_delays={3: 200 * MS}))
    assert names(0, 1, 2) in ran.installed().values()


# A fail-stop oracle instead of a failure detector (Birman et al. 1991, 4.1 and 5.5)


@pytest.mark.parametrize("flush", list(Flush))
@pytest.mark.parametrize("order", list(Order))
def test_with_an_oracle_all_but_one_may_crash(order: Order, flush: Flush) -> None:
    """Views that are interrupted by the next failure, the coordinator's among them, give way to it."""
    settings: dict[str, object] = {"agreement": Agreement.ORACLE, "order": order, "flush": flush}
    crashes = [Crash((600 + 2 * member) * MS, member, detected_after=5 * MS) for member in (0, 1, 3)]
    ran = together(base(*crashes, vsync=settings))
    assert ran.last() == names(2)


def test_with_an_oracle_nobody_is_put_out_for_being_slow_or_cut_off() -> None:
    settings: dict[str, object] = {"agreement": Agreement.ORACLE}
    ran = together(
        base(Sleep(400 * MS, 1, 600 * MS), Partition(1000 * MS, 500 * MS, ((0,), (1, 2, 3))), vsync=settings)
    )
    assert ran.installed() == {1: names(*ALL)}


def test_with_an_oracle_members_leave_and_come_back() -> None:
    settings: dict[str, object] = {"agreement": Agreement.ORACLE}
    faults = (Leave(500 * MS, 3), Crash(900 * MS, 0, detected_after=20 * MS), Recover(1200 * MS, 0))
    ran = together(base(*faults, vsync=settings))
    assert ran.last() == names(1, 2, again=[0])


# The life of a group


@pytest.mark.parametrize("victims", [(0, 1, 2), (1, 2, 3)])
def test_a_majority_that_restarts_is_let_in_by_who_is_left(victims: tuple[int, ...]) -> None:
    """With the same `minimum`: they found no second group, and the view is re-formed."""
    faults: list[AnyFault] = [Crash(600 * MS, victim, detected_after=0) for victim in victims]
    faults += [Recover(650 * MS, victim) for victim in victims]
    left = next(number for number in ALL if number not in victims)
    ran = together(base(*faults, vsync={"state": True}))
    assert ran.last() == names(left, again=list(victims))
    assert max(ran.installed()) > 1_000_000


def test_a_rolling_restart() -> None:
    faults = [
        fault for n in ALL for fault in (Crash((600 + 700 * n) * MS, n, 0), Recover((610 + 700 * n) * MS, n))
    ]
    ran = together(base(*faults, vsync={"state": True}))
    assert ran.last() == names(again=list(ALL))


@pytest.mark.parametrize("seed", range(6))
def test_one_of_two_leaves_on_a_network_that_loses(seed: int) -> None:
    busy = traffic(senders=(1,), rate=20.0)
    ran = together(base(Leave(700 * MS, 0), size=2, loss=0.2, seed=seed, vsync={"minimum": 2}, traffic=busy))
    assert ran.last() == names(1)
