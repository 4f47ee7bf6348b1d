"""A sender goes as fast as most receivers can follow; a slow minority does not slow it."""

import pytest
from tests.protocols.gossiplab import GossipLab

from semcast.core.ids import MILLISECOND, SECOND
from semcast.protocols.gossip import Member
from semcast.protocols.gossip.rate import Rate
from semcast.sim.mutants import MUTANTS

PERIOD = 100 * MILLISECOND


def send(rate: Rate, rounds: int, opinions: dict[str, int], kind: int = 100, others: int = 0) -> None:
    """So many rounds, of 100 messages each, in which members lack so many of them; of these, or of more."""
    for _ in range(rounds):
        number = rate._round + 1
        for name, lacks in opinions.items():
            rate.heard(name, lacks, number * kind)
        rate.on_round(number * PERIOD, number * kind, others or len(opinions))


def test_most_receivers_slow_a_sender_down() -> None:
    rate = Rate(PERIOD, on=True)
    send(rate, 4, {"a": 0, "b": 0, "c": 0})
    assert not rate.limit
    send(rate, 1, {"a": 400, "b": 400, "c": 0})
    assert rate.limit is not None
    assert 400 <= rate.limit <= 600, "half of 1000 a second"
    before = rate.limit
    send(rate, 1, {"a": 0, "b": 0, "c": 0})
    assert before < rate.limit <= before + before // 8 + 1


def test_a_minority_does_not() -> None:
    rate = Rate(PERIOD, on=True)
    send(rate, 20, {"a": 400, "b": 0, "c": 0})
    assert rate.limit is None


def test_nor_does_one_that_is_all_that_was_heard() -> None:
    rate = Rate(PERIOD, on=True)
    send(rate, 20, {"a": 400}, others=3)
    assert rate.limit is None
    send(rate, 1, {"a": 400, "b": 400}, others=3)
    assert rate.limit is not None


def test_losses_that_are_repaired_do_not() -> None:
    rate = Rate(PERIOD, on=True)
    send(rate, 20, {"a": 20, "b": 20, "c": 20})
    assert rate.limit is None


def test_a_rate_that_nobody_needs_is_given_up() -> None:
    rate = Rate(PERIOD, on=True)
    send(rate, 5, {"a": 400, "b": 400})
    send(rate, 200, {"a": 0, "b": 0}, kind=1)
    assert rate.limit is None


def test_messages_are_spread_over_a_round() -> None:
    rate = Rate(PERIOD, on=True)
    send(rate, 5, {"a": 400, "b": 400})
    assert rate.limit is not None
    now = sent = 0
    for now in range(SECOND, 2 * SECOND, 10 * MILLISECOND):
        while rate.room(now):
            rate.sent(1)
            sent += 1
    assert rate.limit * 0.8 <= sent <= rate.limit * 1.3
    assert rate.room(now) == 0


@pytest.mark.parametrize("mutant", [None, "one-slows-all"])
def test_one_receiver_that_lacks_everything_slows_nobody(mutant: str | None) -> None:
    """And the mutant that listens to whoever complains."""
    kind = MUTANTS["rpbcast"][mutant].stack if mutant else Member
    lab = GossipLab(kind, eager=False)  # type: ignore[arg-type]
    lab.run(SECOND)
    lab.carries = lambda source, dest, frame: dest != "r" or type(frame).__name__ != "Data" or source == "log"
    for _ in range(20):
        lab.seats["p"].multicast(*[b"."] * 10)
        lab.run(10 * MILLISECOND)
    slowed = any(note.level == "rate" for note in lab.notes("p", "blocked"))
    stack = lab.seats["p"].stack
    assert isinstance(stack, Member)
    assert (slowed or stack.rate.limit is not None) is (mutant is not None)


def test_without_a_logger_there_is_no_rate() -> None:
    lab = GossipLab(loggers=())
    stack = lab.seats["p"].stack
    assert isinstance(stack, Member)
    send(stack.rate, 5, {"q": 400, "r": 400})
    assert stack.rate.limit is None


def test_programs_that_do_not_read_slow_a_sender_down_if_they_are_most() -> None:
    """They ask for nothing, having no room, and still tell what they lack."""
    lab = GossipLab(queue_messages=10, hold=10, window=1000, gossip_rounds=100)
    lab.run(SECOND)
    lab.seats["q"].reads = lab.seats["r"].reads = False
    for _ in range(50):
        lab.seats["p"].multicast(*[b"."] * 10)
        lab.run(10 * MILLISECOND)
    assert any(note.level == "rate" for note in lab.notes("p", "blocked"))
