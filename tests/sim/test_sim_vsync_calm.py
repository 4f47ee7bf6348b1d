"""A member whose program does not read makes the others neither repeat messages nor agree on nothing."""

from collections import Counter

import pytest

from semcast.core.ids import MICROSECOND, MILLISECOND, SECOND, Nanos
from semcast.core.outbox import Dest, Frame
from semcast.protocols.vsync import Engine, Order, VsyncSettings
from semcast.protocols.vsync.consensus_frames import Proposal
from semcast.sim.habits import Habit
from semcast.sim.hosts import Host
from semcast.sim.mutants import Mutant
from semcast.sim.scenario import Scenario, Traffic
from semcast.sim.simulate import build, simulate
from semcast.sim.swarm import scenario_of

COUNT = 60


def scenario(order: Order, reader: Habit) -> Scenario:
    """The first of three programs has a queue of one message, and no reserve."""
    return Scenario(
        seed=1,
        stack="vsync",
        size=3,
        latency=100 * MICROSECOND,
        vsync=VsyncSettings(
            order=order,
            engine=Engine.CONSENSUS,
            minimum=3,
            buffer_messages=8,
            queue_messages=1,
            reserve_bytes=0,
        ),
        bursts=scenario_of("vsync", 0).bursts,
        traffic=(Traffic(1, "plain", "constant", 200.0, COUNT),),
        habits={0: reader},
        duration=1 * SECOND,
    )


def test_what_finds_no_room_is_not_asked_for_again_at_once() -> None:
    """Seed 139 of the swarm: 233 messages were sent 100,000 times again, to programs that had stopped."""
    outcome = simulate(scenario(Order.FIFO, Habit(stops_after=0)))
    assert outcome.settled
    assert sum(stack.delivered for stack in outcome.stacks) == 3 * COUNT
    assert sum(stack.retransmitted for stack in outcome.stacks) < COUNT


class Frames:
    """Counts what simulated hosts send, by type."""

    def __init__(self, monkeypatch: pytest.MonkeyPatch) -> None:
        self.sent: Counter[type[Frame]] = Counter()
        send = Host.send

        def counting(host: Host, now: Nanos, sends: list[tuple[Dest, Frame]]) -> None:
            self.sent.update(type(frame) for _, frame in sends)
            send(host, now, sends)

        monkeypatch.setattr(Host, "send", counting)


def test_nothing_new_is_not_decided_on(monkeypatch: pytest.MonkeyPatch) -> None:
    """Seed 166: a coordinator that could not take in what others had let them decide to order nothing."""
    frames = Frames(monkeypatch)
    cluster = build(scenario(Order.TOTAL, Habit(pause=300 * MILLISECOND)), Mutant())
    cluster.start()
    cluster.run(1 * SECOND)
    cluster.heal()
    assert cluster.settle(60 * SECOND)
    assert sum(host.stack.stats.delivered for host in cluster.hosts) == 3 * COUNT
    assert frames.sent[Proposal] < 2 * COUNT
