"""LBRM, pbcast and rpbcast with a logger, in swarms. Its mutants are hunted with those of all stacks."""

import pytest

from semcast.history import Kind
from semcast.protocols.gossip import GossipSettings, Protocol
from semcast.sim.scenario import Scenario, Traffic
from semcast.sim.simulate import simulate
from semcast.sim.swarm import examine, patrol
from semcast.specs import Status, check

STACKS = [protocol.value for protocol in Protocol]


@pytest.mark.parametrize("stack", STACKS)
def test_the_swarm_finds_nothing(stack: str) -> None:
    for report in patrol(stack, range(8)):
        assert not report.broken, f"seed {report.seed}: {report.broken} {report.scenario}"


@pytest.mark.parametrize(
    ("stack", "seed"),
    [
        *(("lbrm", seed) for seed in (16, 20, 52, 86, 107, 114, 121, 235, 20098, 30004, 30041, 40819)),
        *(
            ("rpbcast", seed)
            for seed in (4, 24, 61, 242, 1071, 20085, 20141, 20227, 20276, 40453, 40811, 40861)
        ),
    ],
)
def test_seeds_that_once_failed(stack: str, seed: int) -> None:
    """16: a stream was dropped while a session was away. 20: fenced. 86, 61: rows lost with a disk.

    52: a session that began at a time was owed what had been collected before it came.
    107: at most once, and nobody knew that there had been a session. 114: a restart took what confirmed the
    incarnation before for its own. 121: who wants to leave is owed nothing.
    235: a logger closed the streams of members that talked to another one alone, for ever anew.
    4: two loggers told each other for ever that a stream was over. 24: a session moved, and its new logger
    did not know that it was through with a stream that was over. 242: a new log waited for ever for what had
    replaced a message, and had expired. 1071: a logger that was cut off closed a crashed sender's stream.
    20085: a session left where only a logger heard it that the other had forgotten: the other cannot know.
    20098: who was forgotten was on one disk alone, and that was lost (no longer drawn). 20141: a logger asked
    for what came after what is logged, in the middle of a run, and the sender raised. 20227: an operator was
    refused by a logger that had just started, and did not ask again. 20276: a stream that a sponsor named in
    its second answer only was said to begin too early. 30004: with log_acks=3 a sponsor was never told that
    all loggers know whom it took in, and acknowledged nothing. 30041: who had caught up from the log asked
    nobody for what was sent meanwhile. 40453, 40819: the disk of a logger that had published was lost, and
    nobody ever said what became of its stream. 40811: a program was refused, and left, and the same question,
    asked again meanwhile, made a session that nobody used. 40861: a sponsor told one logger of a member that
    reported to another; the first one ended its session.
    """
    [report] = patrol(stack, range(seed, seed + 1))
    assert not report.broken, report.broken


@pytest.mark.parametrize("stack", STACKS)
def test_everybody_has_everything_on_a_network_that_loses(stack: str) -> None:
    traffic = tuple(Traffic(sender, "plain", "constant", 100.0, 60) for sender in range(4))
    finding = examine(Scenario(1, stack, 6, loss=0.05, traffic=traffic))
    assert finding.clean, finding.broken
    delivered = [stats.delivered for stats in finding.outcome.stacks]
    assert all(count == 240 for count in delivered[:5])
    assert not any(event.kind.value == "lost" for event in finding.outcome.history.events)


def test_without_a_logger_nothing_waits_and_what_is_lost_is_told() -> None:
    settings = GossipSettings(gossip_rounds=1, gc_rounds=1, eager=False)
    traffic = (Traffic(0, "plain", "constant", 200.0, 200),)
    outcome = simulate(Scenario(3, "rpbcast", 5, loss=0.3, traffic=traffic, settings=settings))
    assert outcome.settled
    assert not outcome.stuck
    verdicts = {verdict.property: verdict.status for verdict in check(outcome.history)}
    assert Status.VIOLATED not in verdicts.values()
    assert verdicts["gossip_delivery"] is Status.UNKNOWN
    assert any(event.kind.value == "lost" for event in outcome.history.events)
    assert sum(1 for event in outcome.history.events if event.kind is Kind.MULTICAST)


@pytest.mark.parametrize("stack", STACKS)
def test_control_frames_fit_into_any_network(stack: str) -> None:
    """1280 bytes, with names as long as they get."""
    traffic = tuple(Traffic(sender, "items", "bursts", 100.0, 40) for sender in range(12))
    settings = GossipSettings(
        protocol=Protocol(stack), loggers=() if stack == "pbcast" else ("p15".ljust(64, "-"),)
    )
    outcome = simulate(
        Scenario(5, stack, 16, loss=0.1, traffic=traffic, mtu=1308, name_bytes=64, settings=settings)
    )
    assert outcome.oversized == 0
    assert outcome.settled
