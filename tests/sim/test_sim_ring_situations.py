"""Situations that other group-communication systems learned to test, met on purpose by the ring.

Each run is checked against every EVS specification, must come to rest in one view of all who are there,
and must show that the situation really came about.
"""

from collections.abc import Callable, Sequence
from itertools import pairwise
from unittest.mock import patch

import msgspec
import pytest

from semcast.core.handover import Command
from semcast.core.ids import MICROSECOND, MILLISECOND, SECOND, MemberId, Nanos
from semcast.core.stack import Stack
from semcast.history import History
from semcast.history.events import Event
from semcast.history.schema import Kind
from semcast.protocols.ring import Cause, Ring, RingSettings, SlowPolicy, State
from semcast.sim.cluster import Cluster
from semcast.sim.faults import Ambush, AnyFault, Crash, Cut, Delay, Loss, Partition, Recover, Sleep
from semcast.sim.hosts import Host
from semcast.sim.injector import FaultInjector
from semcast.sim.mutants import Mutant
from semcast.sim.scenario import Scenario, Traffic
from semcast.sim.simulate import build
from semcast.sim.swarm import violated
from semcast.specs import check

MS = MILLISECOND
SETTINGS = RingSettings(window=64, visit=16, packet_bytes=300)
ALL = (0, 1, 2, 3)


def traffic(
    senders: Sequence[int] = ALL, rate: float = 40.0, count: int = 70, size: int = 0
) -> tuple[Traffic, ...]:
    """Some items, some plain messages, each third safe."""
    return tuple(
        Traffic(sender, "items", "poisson", rate, count, r=0.5, d=3, size=size, safe_every=3)
        for sender in senders
    )


BASE = Scenario(
    seed=11,
    stack="ring",
    size=4,
    latency=600 * MICROSECOND,
    ring=SETTINGS,
    traffic=traffic(),
    duration=2 * SECOND,
)
QUIET = msgspec.structs.replace(BASE, traffic=())


def base(*faults: AnyFault, **changes: object) -> Scenario:
    return msgspec.structs.replace(BASE, faults=faults, **changes)


class Run:
    """What came of a run."""

    def __init__(self, cluster: Cluster, history: History, delivered: int) -> None:
        self.cluster = cluster
        self.history = history
        self.hosts = cluster.hosts
        self.stacks = [ring_of(host) for host in cluster.hosts]
        self.delivered_in_trouble = delivered
        """Messages delivered anywhere before everything healed."""

    def views(self, number: int) -> list[Event]:
        return [event for event in self.history.of(self.hosts[number].member) if event.kind is Kind.VIEW]

    def installed(self) -> set[frozenset[int]]:
        """Every membership that anybody installed, by numbers."""
        return {numbers(event.members or ()) for event in self.history.events if event.kind is Kind.VIEW}

    def order(self, number: int) -> list[tuple[MemberId | None, int]]:
        """Messages in the order one member delivered them."""
        return [
            (event.sender, seq)
            for event in self.history.of(self.hosts[number].member)
            if event.kind is Kind.DELIVER
            for seq in range(event.seq, event.last + 1)
        ]

    def high_water(self) -> int:
        return max(event.count for event in self.history.events if event.kind is Kind.BUFFER)

    def last(self, kind: Kind) -> Nanos:
        return max(event.at for event in self.history.events if event.kind is kind)


def numbers(members: Sequence[MemberId]) -> frozenset[int]:
    return frozenset(int(member.name[1:]) for member in members)


def in_common(run: Run) -> list[tuple[MemberId | None, int]]:
    """What everybody delivered, which is in the same order everywhere."""
    orders = [run.order(number) for number in range(len(run.hosts))]
    common = set.intersection(*map(set, orders))
    first, *others = [[each for each in order if each in common] for order in orders]
    assert all(other == first for other in others)
    return first


def ring_of(host: Host) -> Ring:
    assert isinstance(host.stack, Ring)
    return host.stack


def play(scenario: Scenario, plan: Callable[[Cluster], None] = lambda _: None) -> Run:
    """Run with faults, heal, settle, and check all there is to check."""
    cluster = build(scenario, Mutant())
    cluster.schedule(scenario.faults)
    plan(cluster)
    cluster.start()
    cluster.run(scenario.duration)
    delivered = sum(host.stack.stats.delivered for host in cluster.hosts)
    cluster.heal()
    assert cluster.settle(60 * SECOND), "the healed group comes to rest"
    history = cluster.finish(quiesced=True)
    assert [str(verdict) for verdict in violated(check(history))] == []
    here = [host for host in cluster.hosts if not host.crashed]
    assert [host.member for host in here if host.waiting] == [], "nobody waits to send for ever"
    for host in here:
        assert host.view is not None
        assert {*host.view.members} == {other.member for other in here}, "all are together again"
        assert host.view == here[0].view
    for process in history.processes:
        ids = [event.view for event in history.of(process) if event.kind is Kind.VIEW]
        assert all(a is not None and b is not None and a < b for a, b in pairwise(ids))
    for host in cluster.hosts:
        stack = ring_of(host)
        assert stack.buffered() <= scenario.ring.bound()
    return Run(cluster, history, delivered)


# Start and join


@pytest.mark.parametrize("size", [2, 3, 8, 16])
def test_all_start_at_once_and_are_soon_in_one_view(size: int) -> None:
    run = play(msgspec.structs.replace(QUIET, size=size, duration=SECOND))
    assert run.last(Kind.VIEW) < 600 * MS
    assert all(len(run.views(number)) <= 3 for number in range(size)), "alone, then (almost) at once all"


@pytest.mark.parametrize("loss", [0.0, 0.1])
@pytest.mark.parametrize("sending", [False, True])
def test_join_one_by_one(loss: float, sending: bool) -> None:
    """Three are not there at first and start one after the other."""
    faults: list[AnyFault] = [Crash(0, number, 0) for number in (1, 2, 3)]
    faults += [Recover(number * 500 * MS, number) for number in (1, 2, 3)]
    run = play(base(*faults, loss=loss, traffic=traffic() if sending else ()))
    if not loss:
        assert run.installed() >= {frozenset(range(size)) for size in (1, 2, 3, 4)}


def test_two_join_at_once() -> None:
    faults = [fault for number in (2, 3) for fault in (Crash(0, number, 0), Recover(700 * MS, number))]
    run = play(base(*faults))
    assert run.installed() >= {frozenset({0, 1}), frozenset(ALL)}


def test_a_join_whose_answer_is_delayed_past_the_retry() -> None:
    late = Delay(690 * MS, 500 * MS, 3, 90 * MS)
    run = play(base(Crash(0, 3, 0), Recover(700 * MS, 3), late))
    assert frozenset({0, 1, 2}) in run.installed()
    assert run.views(0)[-1].at > 800 * MS


def test_a_member_is_cut_off_while_another_joins() -> None:
    run = play(base(Crash(0, 3, 0), Recover(700 * MS, 3), Partition(700 * MS, 900 * MS, ((0, 1, 3), (2,)))))
    assert frozenset({0, 1, 3}) in run.installed()


# Splits and merges

SPLITS: dict[str, tuple[Scenario, list[set[int]]]] = {
    "two equal halves": (
        base(Partition(400 * MS, 900 * MS, ((0, 1), (2, 3)))),
        [{0, 1}, {2, 3}],
    ),
    "one is cut off": (
        base(Partition(400 * MS, 900 * MS, ((0, 1, 2), (3,)))),
        [{0, 1, 2}, {3}],
    ),
    "the representative is cut off": (
        base(Partition(400 * MS, 900 * MS, ((0,), (1, 2, 3)))),
        [{1, 2, 3}, {0}],
    ),
    "complete split into singletons": (
        base(Partition(400 * MS, 900 * MS, ((0,), (1,), (2,), (3,)))),
        [{0}, {1}, {2}, {3}],
    ),
    "three-way split with different pairs merging first": (
        base(
            Partition(400 * MS, 700 * MS, ((0, 1), (2, 3), (4, 5))),
            Partition(1101 * MS, 900 * MS, ((0, 1, 4, 5), (2, 3))),
            Partition(2002 * MS, 900 * MS, ((0, 1), (2, 3, 4, 5))),
            size=6,
            traffic=traffic(range(6), count=100),
            duration=3 * SECOND,
        ),
        [{0, 1}, {2, 3}, {4, 5}, {0, 1, 4, 5}, {2, 3, 4, 5}],
    ),
    "halves that cross": (
        base(
            Partition(400 * MS, 700 * MS, ((0, 1), (2, 3))), Partition(1101 * MS, 800 * MS, ((0, 2), (1, 3)))
        ),
        [{0, 1}, {2, 3}, {0, 2}, {1, 3}],
    ),
    "idle rings still find each other": (
        base(Partition(400 * MS, 3 * SECOND, ((0, 1), (2, 3))), traffic=(), duration=4 * SECOND),
        [{0, 1}, {2, 3}],
    ),
    "a split before the first view": (
        base(Partition(0, SECOND, ((0, 1), (2, 3)))),
        [{0, 1}, {2, 3}],
    ),
}


@pytest.mark.parametrize("name", SPLITS)
def test_split_and_merge(name: str) -> None:
    scenario, expected = SPLITS[name]
    run = play(scenario)
    assert run.installed() >= {frozenset(each) for each in expected}
    assert run.delivered_in_trouble > 0 or not scenario.traffic


def test_one_split_right_after_the_other() -> None:
    """At the same instant, as the swarm draws it when it flaps without a pause."""
    halves = Partition(400 * MS, 700 * MS, ((0, 1), (2, 3))), Partition(1100 * MS, 800 * MS, ((0, 2), (1, 3)))
    assert frozenset({0, 2}) in play(base(*halves)).installed()


@pytest.mark.parametrize("loss", [0.05, 0.2])
def test_split_and_merge_under_loss(loss: float) -> None:
    run = play(base(Partition(400 * MS, 1000 * MS, ((0, 1), (2, 3))), loss=loss))
    assert any(view <= {0, 1} for view in run.installed())
    assert any(view <= {2, 3} for view in run.installed())


def test_a_merge_is_one_event_with_the_same_content_everywhere() -> None:
    run = play(base(Partition(400 * MS, 900 * MS, ((0, 1), (2, 3)))))
    for number in ALL:
        views = run.views(number)
        mine = frozenset({0, 1} if number < 2 else {2, 3})
        assert [numbers(view.members or ()) for view in views[-2:]] == [mine, frozenset(ALL)]
        between = [
            event
            for event in run.history.of(run.hosts[number].member)
            if event.kind is Kind.TRANSITIONAL and views[-2].index < event.index < views[-1].index
        ]
        assert [numbers(event.members or ()) for event in between] == [mine]
    assert len({(run.views(number)[-1].view, run.views(number)[-1].members) for number in ALL}) == 1


def test_a_hears_b_and_c_who_do_not_hear_each_other() -> None:
    run = play(
        base(
            Cut(400 * MS, 1200 * MS, (1,), (2,)),
            Cut(400 * MS, 1200 * MS, (2,), (1,)),
            size=3,
            traffic=traffic((0, 1, 2)),
        )
    )
    apart = [view for view in run.installed() if view in ({0, 1}, {0, 2})]
    assert apart, "the ring breaks, and at least one of them goes on with A"


@pytest.mark.parametrize(
    ("sources", "dests"), [((0,), (1,)), ((1,), (0,)), ((3,), (0, 1, 2)), ((0, 1, 2), (3,)), ((0, 1), (2, 3))]
)
def test_one_way_links(sources: tuple[int, ...], dests: tuple[int, ...]) -> None:
    run = play(base(Cut(400 * MS, 1000 * MS, sources, dests)))
    broke = run.views(dests[0])[-1].at > 400 * MS
    assert broke or run.stacks[dests[0]].stats.requested > 0, "it mattered"


@pytest.mark.parametrize("phase", ["gather", "commit", "form", "evs"])
def test_a_merge_interrupted_by_another_split(phase: str) -> None:
    with struck() as strikes:
        run = play(
            base(
                Partition(400 * MS, 700 * MS, ((0, 1), (2, 3))),
                Ambush(1100 * MS, phase, 500 * MS),
                duration=3 * SECOND,
            )
        )
    assert len(strikes) == 1
    assert run.installed() >= {frozenset({0, 1}), frozenset({2, 3})}


@pytest.mark.parametrize(("length", "pause"), [(40, 40), (120, 100), (350, 60)])
def test_repeated_flapping(length: int, pause: int) -> None:
    flaps = [
        Partition(
            (400 + at * (length + pause)) * MS, length * MS, ((0, 1), (2, 3)) if at % 2 else ((0, 2), (1, 3))
        )
        for at in range(1600 // (length + pause))
    ]
    run = play(base(*flaps))
    if length > 300:
        assert len(run.installed()) > 5


# Frozen members


@pytest.mark.parametrize("member", [0, 2])
@pytest.mark.parametrize("length", [310, 800])
def test_a_member_frozen_for_longer_than_the_timeout(member: int, length: int) -> None:
    """The representative, who holds the token of an idle ring, or another; for just too long, or for long."""
    run = play(base(Sleep(500 * MS, member, length * MS), duration=3 * SECOND))
    moves = [stack.standing.moves[State.OPERATIONAL, Cause.TOKEN_LOST] for stack in run.stacks]
    assert sum(moves) > 0
    if length == 800:
        assert frozenset({*ALL} - {member}) in run.installed()


def test_everybody_frozen_at_once() -> None:
    play(base(*(Sleep((500 + member) * MS, member, 700 * MS) for member in ALL)))


def test_a_short_pause_is_no_failure() -> None:
    run = play(base(Sleep(500 * MS, 2, 150 * MS)))
    assert all(view.at < 500 * MS for view in run.views(0))


# Crashes


class struck:  # noqa: N801
    """Notes the ambushes that found somebody."""

    def __enter__(self) -> list[list[int]]:
        strikes: list[list[int]] = []
        strike = FaultInjector._strike

        def note(injector: FaultInjector, ambush: Ambush, caught: list[int]) -> None:
            strikes.append(caught)
            strike(injector, ambush, caught)

        self._patch = patch.object(FaultInjector, "_strike", note)
        self._patch.start()
        return strikes

    def __exit__(self, *_: object) -> None:
        self._patch.stop()


PHASES = ("gather", "commit", "form", "evs", "installed")


@pytest.mark.parametrize("seed", [1, 2])
@pytest.mark.parametrize("lasting", [None, 350 * MS])
@pytest.mark.parametrize("phase", PHASES)
def test_crash_or_partition_in_every_phase_of_a_view_change(
    phase: str, lasting: Nanos | None, seed: int
) -> None:
    with struck() as strikes:
        run = play(
            base(
                Partition(400 * MS, 500 * MS, ((0, 1), (2, 3, 4))),
                Ambush((410 if seed == 1 else 890) * MS, phase, lasting),
                size=5,
                seed=seed,
                traffic=traffic(range(5), count=60),
                duration=2500 * MS,
            )
        )
    assert len(strikes) == 1, "somebody was caught in that phase"
    assert len(run.history.gone) == (lasting is None)


@pytest.mark.parametrize("phase", PHASES)
def test_one_crash_after_the_other_in_the_same_phase(phase: str) -> None:
    with struck() as strikes:
        run = play(
            base(
                Crash(400 * MS, 4, 0),
                Ambush(500 * MS, phase, None),
                Ambush(900 * MS, phase, None),
                size=5,
                traffic=traffic(range(5), count=60),
                duration=2500 * MS,
            )
        )
    assert len(run.history.gone) == 1 + len(strikes) >= 2


@pytest.mark.parametrize("victim", ALL)
def test_crash_with_unacknowledged_messages(victim: int) -> None:
    """Its last packets reach only some."""
    others = tuple(number for number in ALL if number != victim)
    run = play(
        base(
            Cut(580 * MS, 20 * MS, (victim,), others[:2]),
            Crash(600 * MS, victim, 0),
            traffic=traffic(rate=200.0, count=160),
        )
    )
    assert frozenset(others) in run.installed()


def test_crash_of_the_representative_and_of_the_next_right_after() -> None:
    run = play(base(Crash(500 * MS, 0, 0), Crash(900 * MS, 1, 0)))
    assert frozenset({2, 3}) in run.installed()


@pytest.mark.parametrize("pause", [1, 50, 400])
@pytest.mark.parametrize("victim", [0, 2])
def test_crash_and_restart_under_the_same_name(victim: int, pause: int) -> None:
    run = play(base(Crash(500 * MS, victim, 0), Recover((500 + pause) * MS, victim)))
    assert run.hosts[victim].member.incarnation == 1
    last = run.views(1)[-1].members or ()
    assert run.hosts[victim].member in last


def test_everybody_crashes_and_comes_back() -> None:
    faults: list[AnyFault] = []
    for number in ALL:
        faults += [Crash((500 + 20 * number) * MS, number, 0), Recover((600 + 30 * number) * MS, number)]
    run = play(base(*faults))
    assert {host.member.incarnation for host in run.hosts} == {1}
    ids = [event.view for event in run.history.events if event.kind is Kind.VIEW and event.sender is not None]
    names = {
        (event.view, event.sender): event.members for event in run.history.events if event.kind is Kind.VIEW
    }
    assert all(
        names[event.view, event.sender] == event.members
        for event in run.history.events
        if event.kind is Kind.VIEW
    ), "a name is given once"
    assert ids


# Leaving


def leave(host: Host) -> None:
    """Its application sends nothing more."""
    host.application.writer.stop()
    host.leave()


def leaves(at: Nanos, *who: int) -> Callable[[Cluster], None]:
    def plan(cluster: Cluster) -> None:
        for number in who:
            cluster.scheduler.at(at, leave, cluster.hosts[number])

    return plan


@pytest.mark.parametrize("loss", [0.0, 0.1])
@pytest.mark.parametrize("sending", [False, True])
@pytest.mark.parametrize("leaver", [0, 2])
def test_voluntary_leave(leaver: int, sending: bool, loss: float) -> None:
    run = play(base(traffic=traffic() if sending else (), loss=loss), leaves(800 * MS, leaver))
    assert run.stacks[leaver].state is State.LEFT
    rest = frozenset({*ALL} - {leaver})
    assert rest in run.installed()
    if not loss:
        [at] = [view.at for view in run.views(1) if numbers(view.members or ()) == rest]
        assert at < 800 * MS + SETTINGS.token_loss, "sooner than by a timeout"


def test_the_last_messages_of_a_leaver_arrive() -> None:
    def last_words(host: Host) -> None:
        host.call(multicasts(ring_of(host), [b"%d" % number for number in range(50)]))
        leave(host)

    def plan(cluster: Cluster) -> None:
        for host in cluster.hosts:
            host.application.reader.replicas = None  # these payloads are no records
        cluster.scheduler.at(800 * MS, last_words, cluster.hosts[2])

    run = play(base(traffic=(), loss=0.05), plan)
    left = run.hosts[2].member
    assert [len([1 for sender, _ in run.order(number) if sender == left]) for number in (0, 1, 3)] == [50] * 3


def multicasts(stack: Ring, payloads: Sequence[bytes], *, safe: bool = False) -> Command:
    def call(_stack: Stack, now: Nanos) -> None:
        assert stack.multicast(now, payloads, safe=safe) == len(payloads)

    return call


def test_two_leave_at_once() -> None:
    run = play(BASE, leaves(800 * MS, 0, 3))
    assert frozenset({1, 2}) in run.installed()


@pytest.mark.parametrize("sending", [False, True])
def test_everybody_leaves_at_once(sending: bool) -> None:
    run = play(BASE if sending else QUIET, leaves(800 * MS, *ALL))
    assert all(stack.state is State.LEFT for stack in run.stacks)


def test_all_but_one_leave_one_by_one() -> None:
    def plan(cluster: Cluster) -> None:
        for number in (0, 1, 2):
            leaves((600 + 400 * number) * MS, number)(cluster)

    run = play(BASE, plan)
    assert run.installed() >= {frozenset({1, 2, 3}), frozenset({2, 3}), frozenset({3})}


@pytest.mark.parametrize("phase", [State.GATHER, State.COMMIT, State.FORM, State.EVS])
def test_a_leave_while_a_view_is_being_installed(phase: State) -> None:
    """Somebody who is in the middle of a view change is asked to leave, and does."""
    gone: list[int] = []

    def watch(cluster: Cluster) -> None:
        for number, host in enumerate(cluster.hosts):
            if ring_of(host).state is phase and not gone:
                gone.append(number)
                leave(host)
        if not gone:
            cluster.scheduler.at(cluster.scheduler.now + 20 * MICROSECOND, watch, cluster)

    def plan(cluster: Cluster) -> None:
        cluster.scheduler.at(700 * MS, watch, cluster)

    run = play(base(Partition(400 * MS, 500 * MS, ((0, 1), (2, 3)))), plan)
    assert run.stacks[gone[0]].state is State.LEFT


def test_a_leave_while_partitioned() -> None:
    run = play(base(Partition(400 * MS, 900 * MS, ((0, 1), (2, 3)))), leaves(1000 * MS, 1, 2))
    assert run.installed() >= {frozenset({0}), frozenset({3}), frozenset({0, 3})}


# Slow applications

SLOW = {2: 10 * MS}
NARROW = RingSettings(window=16, visit=8, packet_bytes=20, queue_messages=20, send_messages=40)


def fast_items(count: int = 600) -> tuple[Traffic, ...]:
    return (Traffic(0, "items", "constant", 500.0, count, r=1.0, d=5),)


def slow(policy: SlowPolicy, sent: tuple[Traffic, ...]) -> Run:
    """One application takes a fifth of what comes."""
    ring = msgspec.structs.replace(NARROW, policy=policy, leave_after=300 * MS)
    return play(base(ring=ring, traffic=sent, app_delays=SLOW, latency=MS, duration=2500 * MS))


def test_a_slow_application_purges_and_the_ring_keeps_its_speed() -> None:
    run = slow(SlowPolicy.PURGE, fast_items())
    assert run.stacks[2].stats.purged_delivery > 300
    assert run.stacks[0].stats.blocked == 0
    assert run.last(Kind.MULTICAST) < 1300 * MS, "600 messages at 500 a second"
    delivered = [len(run.order(number)) for number in ALL]
    assert delivered[2] < 300
    assert delivered[1] > 450


@pytest.mark.parametrize(
    ("policy", "sent"),
    [
        (SlowPolicy.BLOCK, fast_items(300)),
        (SlowPolicy.PURGE, (Traffic(0, "plain", "constant", 500.0, 300),)),
    ],
)
def test_a_slow_application_that_may_not_purge_slows_the_group(
    policy: SlowPolicy, sent: tuple[Traffic, ...]
) -> None:
    run = slow(policy, sent)
    assert run.stacks[2].stats.purged_delivery == 0
    assert run.stacks[0].stats.blocked > 0
    assert run.last(Kind.MULTICAST) > 2000 * MS, "not much before the application can take them"
    assert [len(run.order(number)) for number in ALL] == [300] * 4
    assert run.high_water() < 300


def test_an_application_that_stops_reading_has_to_leave() -> None:
    ring = msgspec.structs.replace(NARROW, policy=SlowPolicy.LEAVE, leave_after=300 * MS)
    sent = (Traffic(0, "plain", "constant", 500.0, 600),)
    run = play(base(ring=ring, traffic=sent, app_delays={2: 60 * SECOND}, latency=MS, duration=2500 * MS))
    stack = run.stacks[2]
    assert stack.state is State.LEFT
    assert stack.operation.leaving.cause == "the application has not kept up for 300 ms"
    assert run.history.gone == (run.hosts[2].member,)
    assert len(run.order(1)) == 600
    assert run.last(Kind.MULTICAST) < 2200 * MS, "the others did not wait for long"


def test_who_is_asked_to_leave_when_slow_stays_when_it_can_purge() -> None:
    run = slow(SlowPolicy.LEAVE, fast_items())
    assert not run.history.gone
    assert run.stacks[2].stats.purged_delivery > 300


def test_a_sender_blocked_by_a_member_that_crashes() -> None:
    ring = msgspec.structs.replace(NARROW, policy=SlowPolicy.BLOCK, window=16)
    run = play(
        base(
            Crash(1200 * MS, 2, 0),
            ring=ring,
            traffic=(Traffic(0, "plain", "constant", 500.0, 400),),
            app_delays={2: 400 * MS},
        )
    )
    assert run.stacks[0].stats.blocked > 0
    assert [len(run.order(number)) for number in (0, 1, 3)] == [400] * 3


def test_a_sender_blocked_by_flow_control_when_a_view_change_comes() -> None:
    ring = RingSettings(window=4, visit=4, visit_least=1, packet_bytes=60, send_messages=3)
    run = play(
        base(
            Partition(600 * MS, 600 * MS, ((0, 1), (2, 3))),
            ring=ring,
            latency=2 * MS,
            traffic=traffic(rate=300.0, count=200),
        )
    )
    assert all(stack.stats.blocked > 0 for stack in run.stacks)
    assert run.installed() >= {frozenset({0, 1}), frozenset({2, 3})}


# Delivery


def test_sixteen_members_at_twenty_per_cent_loss_go_round() -> None:
    """Tokens that are not sent again until they arrive would never come back to their sender."""
    run = play(
        base(size=16, loss=0.2, traffic=traffic(range(0, 16, 4), rate=20.0, count=30), duration=3 * SECOND)
    )
    full = [view.at for view in run.views(0) if len(view.members or ()) == 16]
    assert full[0] < 2 * SECOND, "formed while it was lossy"
    assert run.delivered_in_trouble > 16 * 30


def test_an_idle_ring_does_not_spin() -> None:
    cluster = build(QUIET, Mutant())
    cluster.start()
    cluster.run(2 * SECOND)
    assert {len(host.view.members) for host in cluster.hosts if host.view} == {4}
    before = cluster.network.packets
    cluster.run(7 * SECOND)
    a_second = (cluster.network.packets - before) / 5
    assert a_second < 400, "a ring that spins sends many thousands"
    assert a_second > 4, "but it says that it is here"


def test_an_idle_ring_gives_the_token_at_once_to_who_wants_it() -> None:
    def plan(cluster: Cluster) -> None:
        for host in cluster.hosts:
            host.application.reader.replicas = None
        for number in ALL:
            host = cluster.hosts[number]
            at = SECOND + 313 * MS * number
            cluster.scheduler.at(at, host.call, multicasts(ring_of(host), [b"now"]))

    run = play(msgspec.structs.replace(QUIET, duration=3 * SECOND), plan)
    sent = sorted(event.at for event in run.history.events if event.kind is Kind.MULTICAST)
    waits = [at - (SECOND + 313 * MS * number) for number, at in enumerate(sent)]
    assert len(waits) == 4
    assert max(waits) < 5 * MS, "much less than the token is held"


LARGE = 300
"""Bytes that packets of these messages have, and tokens have not."""
LOST: dict[str, tuple[AnyFault, ...]] = {
    "the first message": (Loss(495 * MS, 60 * MS, 1.0, 1, above=LARGE),),
    "the last message": (Loss(995 * MS, 60 * MS, 1.0, 1, above=LARGE),),
    "the last message and what would reveal it": (
        Loss(995 * MS, 60 * MS, 1.0, 1, above=LARGE),
        Cut(1000 * MS + 400 * MICROSECOND, 120 * MS, (1,), (0, 2, 3)),
    ),
    "acknowledgements": (Cut(450 * MS, 200 * MS, (2,), (1,)),),
}


@pytest.mark.parametrize("name", LOST)
def test_lost(name: str) -> None:
    """Two messages, at 500 ms and 1 s; nothing comes after them that would show a gap."""
    run = play(base(*LOST[name], traffic=(Traffic(1, "plain", "constant", 2.0, 2, size=400),)))
    assert [run.order(number) for number in ALL] == [[(run.hosts[1].member, 1), (run.hosts[1].member, 2)]] * 4
    if name != "acknowledgements":
        assert sum(stack.stats.retransmitted for stack in run.stacks) > 0
    assert sum(stack.stats.retransmitted for stack in run.stacks) < 1000, "and not without end"


@pytest.mark.parametrize(
    "changes",
    [
        {"duplication": 1.0},
        {"jitter": 5 * MS},
        {"loss": 0.3},
        {"duplication": 0.5, "jitter": 3 * MS, "loss": 0.1},
        {"latency": 5 * MS},
        {"network": "shared"},
        {"ring": msgspec.structs.replace(SETTINGS, accelerated=0)},
    ],
    ids=str,
)
def test_whatever_the_network_does(changes: dict[str, object]) -> None:
    run = play(base(**changes))
    assert run.views(0)
    if "loss" not in changes and "jitter" not in changes:
        assert len(in_common(run)) > 150


def test_correct_members_take_each_other_seriously() -> None:
    run = play(base(duplication=1.0))
    assert [stack.stats.malformed for stack in run.stacks] == [0] * 4


def test_gaps_of_every_length() -> None:
    gaps = [Cut((400 + at * 60) * MS, 2 * at * MS, (0,), (3,)) for at in range(1, 12)]
    run = play(
        base(
            *gaps,
            traffic=(Traffic(0, "plain", "constant", 1000.0, 1000),),
            ring=RingSettings(packet_bytes=20),
        )
    )
    assert run.stacks[3].stats.requested > 5
    assert len(run.order(3)) == 1000


def test_a_member_misses_hundreds_of_packets() -> None:
    """More than a token can ask for one by one, less than the timeout: the window holds the others up."""
    run = play(
        base(
            Loss(400 * MS, 200 * MS, 0.9, 3, above=200),
            traffic=(Traffic(0, "plain", "constant", 2000.0, 1500, size=200),),
            ring=RingSettings(packet_bytes=250),
        )
    )
    assert len(run.order(3)) == 1500


@pytest.mark.parametrize("safe", [False, True])
def test_empty_payloads(safe: bool) -> None:
    def plan(cluster: Cluster) -> None:
        for host in cluster.hosts:
            host.application.reader.replicas = None
            for at in (5 * MS, 500 * MS, 501 * MS):  # also before the first view of all
                send = multicasts(ring_of(host), [b"", b"", b"x", b""], safe=safe)
                cluster.scheduler.at(at, host.call, send)

    run = play(base(Partition(499 * MS, 400 * MS, ((0, 1), (2, 3))), traffic=(), loss=0.05), plan)
    assert all(stack.stats.sent == 12 for stack in run.stacks)


@pytest.mark.parametrize("loss", [0.0, 0.15])
@pytest.mark.parametrize("split", [False, True])
def test_messages_in_many_fragments(loss: float, split: bool) -> None:
    faults = [Partition(500 * MS, 500 * MS, ((0, 1), (2, 3)))] if split else []
    run = play(
        base(
            *faults,
            loss=loss,
            traffic=(
                Traffic(0, "items", "constant", 40.0, 40, size=9000, safe_every=2),
                Traffic(2, "plain", "constant", 200.0, 200),
            ),
            ring=msgspec.structs.replace(SETTINGS, packet_bytes=700),
        )
    )
    if not split and not loss:
        assert [len(run.order(number)) + run.stacks[number].stats.purged_delivery for number in ALL] == [
            240
        ] * 4


@pytest.mark.parametrize("size", [299, 300, 301, 600, 601, 1384, 1400])
def test_payloads_around_the_limits_of_packets_and_datagrams(size: int) -> None:
    run = play(
        base(loss=0.05, traffic=(Traffic(0, "plain", "bursts", 200.0, 40, size=size),), duration=SECOND)
    )
    assert len(run.order(0)) == 40


def test_thousands_of_messages_from_everybody_in_the_same_order() -> None:
    run = play(
        base(
            traffic=tuple(Traffic(number, "plain", "poisson", 1500.0, 1300) for number in ALL),
            loss=0.01,
            ring=RingSettings(),
        )
    )
    full = min(view.at for view in run.views(0) if len(view.members or ()) == 4)
    assert len(run.views(0)) == len([view for view in run.views(0) if view.at <= full]), "nothing broke"
    assert len(in_common(run)) > 4500


def test_messages_sent_before_the_first_view_of_all() -> None:
    run = play(base(traffic=traffic(rate=500.0, count=100)))
    first = min(view.at for view in run.views(0) if len(view.members or ()) > 1)
    assert first > 20 * MS, "some were sent earlier than that"
    for number in ALL:
        assert run.stacks[number].stats.sent == 100
        assert len(run.order(number)) + run.stacks[number].stats.purged_delivery == 400


# Memory


def test_memory_is_bounded_while_partitioned() -> None:
    """Thousands of messages pass on each side, and nothing of that is kept for the other."""
    run = play(
        base(
            Partition(300 * MS, 1700 * MS, ((0, 1), (2, 3))),
            traffic=tuple(Traffic(number, "plain", "constant", 700.0, 1200) for number in ALL),
        )
    )
    assert run.installed() >= {frozenset({0, 1}), frozenset({2, 3})}
    assert run.high_water() < 600
    for stack in run.stacks:
        assert len(stack.order.store) == 0
        assert len(stack.formation.agreement.proposals) <= 4
        assert len(stack.formation.agreement.reps) <= 4


def test_memory_is_bounded_while_alone_and_flapping() -> None:
    alone = [Partition((300 + 400 * at) * MS, 350 * MS, ((0,), (1,), (2, 3))) for at in range(4)]
    run = play(base(*alone, traffic=tuple(Traffic(n, "plain", "constant", 500.0, 800) for n in ALL)))
    assert run.high_water() < 500
    assert all(len(stack.operation.left) == len(stack.operation.outlet.rest) == 0 for stack in run.stacks)
