"""Situations that other group-communication systems learned to test, each met on purpose, then fully checked.

The names follow the list the project keeps of them; membership changes wait for the stacks that have them.
"""

import msgspec
import pytest

from semcast.core.ids import MILLISECOND, SECOND
from semcast.obsolescence import Purging
from semcast.sim.faults import Crash, Cut, Delay, Loss, Partition, Sleep
from semcast.sim.scenario import Scenario, Traffic
from semcast.sim.swarm import Finding, examine

ALL = (0, 1, 2, 3)
ONE_SENDER = (Traffic(0, "items", "constant", 100.0, 50, r=0.5, d=3),)
EVERYBODY = tuple(Traffic(sender, "items", "bursts", 200.0, 60, r=0.5, d=3) for sender in ALL)
BASE = Scenario(seed=11, stack="s-rm", size=4, buffer=20, traffic=ONE_SENDER, duration=SECOND)

SITUATIONS: dict[str, Scenario] = {
    "the first message is lost": msgspec.structs.replace(
        BASE, faults=(Cut(5 * MILLISECOND, 8 * MILLISECOND, (0,), (1, 2, 3)),)
    ),
    "the last message is lost": msgspec.structs.replace(
        BASE, faults=(Cut(495 * MILLISECOND, 10 * MILLISECOND, (0,), (1, 2, 3)),)
    ),
    "the last message and what would reveal it are lost": msgspec.structs.replace(
        BASE, faults=(Cut(495 * MILLISECOND, 300 * MILLISECOND, (0,), (1, 2, 3)),)
    ),
    "acknowledgements are lost": msgspec.structs.replace(
        BASE, faults=(Cut(0, 600 * MILLISECOND, (1, 2, 3), (0,)),)
    ),
    "everything comes twice": msgspec.structs.replace(BASE, duplication=1.0, traffic=EVERYBODY),
    "nothing comes in order": msgspec.structs.replace(BASE, jitter=50 * MILLISECOND, traffic=EVERYBODY),
    "half of everything is lost": msgspec.structs.replace(BASE, loss=0.5, traffic=EVERYBODY),
    "a member misses hundreds of messages": msgspec.structs.replace(
        BASE,
        buffer=500,
        traffic=(Traffic(0, "plain", "constant", 500.0, 400),),
        faults=(Partition(0, 800 * MILLISECOND, ((0, 1, 2), (3,))),),
    ),
    "gaps of every length": msgspec.structs.replace(
        BASE,
        buffer=200,
        traffic=(Traffic(0, "plain", "constant", 500.0, 200),),
        faults=tuple(Cut(at * 37 * MILLISECOND, at * MILLISECOND, (0,), (3,)) for at in range(1, 12)),
    ),
    "the window is full on both sides": msgspec.structs.replace(
        BASE, buffer=8, window=8, traffic=EVERYBODY, app_delays={3: 5 * MILLISECOND}
    ),
    "a buffer with a slot for each sender and no more": msgspec.structs.replace(
        BASE, buffer=4, traffic=EVERYBODY, app_delays={1: 2 * MILLISECOND}
    ),
    "the sender is blocked by a member that crashes": msgspec.structs.replace(
        BASE,
        buffer=6,
        app_delays={3: 300 * MILLISECOND},
        faults=(Crash(400 * MILLISECOND, 3, 200 * MILLISECOND),),
    ),
    "the crashed sender had unacknowledged messages": msgspec.structs.replace(
        BASE,
        faults=(
            Cut(380 * MILLISECOND, 20 * MILLISECOND, (0,), (1, 2)),
            Crash(400 * MILLISECOND, 0, 50 * MILLISECOND),
        ),
    ),
    "a member sleeps for long and then speaks": msgspec.structs.replace(
        BASE, traffic=EVERYBODY, faults=(Sleep(100 * MILLISECOND, 2, 800 * MILLISECOND),)
    ),
    "the sender sleeps": msgspec.structs.replace(
        BASE, faults=(Sleep(100 * MILLISECOND, 0, 500 * MILLISECOND),)
    ),
    "one-way links": msgspec.structs.replace(
        BASE,
        traffic=EVERYBODY,
        faults=(
            Cut(50 * MILLISECOND, 400 * MILLISECOND, (0,), (1,)),
            Cut(50 * MILLISECOND, 400 * MILLISECOND, (2,), (3,)),
        ),
    ),
    "two equal halves and a merge": msgspec.structs.replace(
        BASE, traffic=EVERYBODY, faults=(Partition(100 * MILLISECOND, 500 * MILLISECOND, ((0, 1), (2, 3))),)
    ),
    "complete split into singletons": msgspec.structs.replace(
        BASE,
        traffic=EVERYBODY,
        faults=(Partition(100 * MILLISECOND, 500 * MILLISECOND, ((0,), (1,), (2,), (3,))),),
    ),
    "A hears B and C, B and C do not hear each other": msgspec.structs.replace(
        BASE,
        traffic=EVERYBODY,
        faults=(
            Cut(50 * MILLISECOND, 600 * MILLISECOND, (1,), (2,)),
            Cut(50 * MILLISECOND, 600 * MILLISECOND, (2,), (1,)),
        ),
    ),
    "repeated flapping": msgspec.structs.replace(
        BASE,
        traffic=EVERYBODY,
        faults=tuple(
            Partition(at * 80 * MILLISECOND, 40 * MILLISECOND, ((0, 1), (2, 3))) for at in range(1, 11)
        ),
    ),
    "a delayed member": msgspec.structs.replace(
        BASE, traffic=EVERYBODY, faults=(Delay(0, 900 * MILLISECOND, 1, 80 * MILLISECOND),)
    ),
    "uniform and lazy with everybody sending": msgspec.structs.replace(
        BASE,
        traffic=EVERYBODY,
        uniform=True,
        purging=Purging.LAZY,
        buffer=8,
        app_delays={2: 3 * MILLISECOND},
        faults=(Crash(300 * MILLISECOND, 1, 100 * MILLISECOND),),
    ),
    "payloads that fill a datagram": msgspec.structs.replace(
        BASE, loss=0.1, traffic=(Traffic(0, "items", "bursts", 200.0, 60, size=1390),)
    ),
    "payloads larger than a datagram": msgspec.structs.replace(
        BASE, loss=0.1, traffic=(Traffic(0, "items", "constant", 100.0, 30, size=20_000),)
    ),
    "loss to and from the sender alone": msgspec.structs.replace(
        BASE, faults=(Loss(0, 900 * MILLISECOND, 0.7, member=0),)
    ),
}


@pytest.mark.parametrize("name", SITUATIONS)
@pytest.mark.parametrize("stack", ["s-rm", "reliable"])
def test_situation(name: str, stack: str) -> None:
    finding = examine(of_stack(SITUATIONS[name], stack))
    assert finding.clean, finding.broken


def of_stack(scenario: Scenario, stack: str) -> Scenario:
    if stack == "s-rm":
        return scenario
    traffic = tuple(msgspec.structs.replace(t, content="plain") for t in scenario.traffic)
    return msgspec.structs.replace(scenario, stack=stack, traffic=traffic)


def run(name: str) -> Finding:
    return examine(SITUATIONS[name])


def test_a_lost_acknowledgement_does_not_cause_endless_retransmission() -> None:
    sender = run("acknowledgements are lost").outcome.stacks[0]
    assert sender.retransmitted <= 2 * 3 * sender.sent


def test_without_a_verdict_on_the_crashed_member_the_sender_blocks_and_nothing_is_lost() -> None:
    never = 10_000 * SECOND
    scenario = msgspec.structs.replace(
        BASE,
        buffer=6,
        traffic=(Traffic(0, "plain", "constant", 100.0, 50),),
        faults=(Crash(50 * MILLISECOND, 3, never),),
    )
    finding = examine(scenario)
    assert finding.broken == ["liveness: p0 cannot send for ever"]
    delivered = {stats.delivered for stats in finding.outcome.stacks[:3]}
    assert len(delivered) == 1, "everything that was accepted arrived at everybody alive"


def test_thousands_of_messages_from_everybody_arrive_everywhere() -> None:
    traffic = tuple(Traffic(sender, "plain", "poisson", 500.0, 1000) for sender in ALL)
    scenario = msgspec.structs.replace(BASE, loss=0.02, buffer=200, traffic=traffic, duration=2 * SECOND)
    finding = examine(scenario)
    assert finding.clean, finding.broken
    assert [stats.delivered for stats in finding.outcome.stacks] == [4000] * 4


def test_gossip_in_vain_slows_down() -> None:
    """Where members hurry, and a program takes its time, nothing new is known for long."""
    slow = msgspec.structs.replace(
        BASE,
        buffer=4,
        gossip_busy=2 * MILLISECOND,
        app_delays={3: 300 * MILLISECOND},
        traffic=(Traffic(0, "plain", "constant", 100.0, 12),),
    )
    finding = examine(slow)
    assert finding.clean, finding.broken
    frames = sum(stack.control_frames for stack in finding.outcome.stacks)
    assert frames < 700 * finding.outcome.ended / SECOND, "the ordinary pace is 400 a second, in a hurry 6000"
