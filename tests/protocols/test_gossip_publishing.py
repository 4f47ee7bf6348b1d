"""Batches that a logger takes from programs that are no members: once for each key."""

from typing import Any

import pytest
from tests.protocols.gossiplab import GossipLab
from tests.protocols.severallab import Several

from semcast.core import Item, MemberId
from semcast.core.annotations import Enumeration
from semcast.core.events import Answered, Lost
from semcast.core.ids import MILLISECOND, SECOND
from semcast.lab import Lab
from semcast.lab.disk import Disk
from semcast.protocols.gossip import Logger, Retention
from semcast.protocols.gossip.data import Data
from semcast.sim.mutants import MUTANTS

SHORT = 300 * MILLISECOND


def publish(
    lab: Lab, key: bytes, *payloads: bytes, ticket: int = 1, item: str | None = None, at: str = "log"
) -> None:
    def command(stack: Any, now: int) -> None:
        assert isinstance(stack, Logger)
        annotation = None if item is None else Item(item)
        stack.publish(now, key, payloads, [annotation] * len(payloads), ticket)

    lab.seats[at].call(command)


def answers(lab: Lab, at: str = "log") -> list[tuple[int, str, int]]:
    found = [each for each in lab.seats[at].events if isinstance(each, Answered)]
    return [(each.ticket, each.level, each.position) for each in found]


def test_a_batch_is_logged_and_reaches_everybody() -> None:
    lab = GossipLab()
    lab.run(SHORT)
    lab.seats["p"].multicast(b"0")
    lab.run(SHORT)
    publish(lab, b"k", b"1", b"2", ticket=7)
    lab.run(SHORT)
    assert answers(lab) == [(7, "logged", 1)]
    for name in ("p", "q", "r"):
        assert lab.got(name) == [b"0", b"1", b"2"]


def test_what_was_lost_on_the_way_comes_from_the_log() -> None:
    lab = GossipLab()
    lab.run(SHORT)
    heal = lab.stop(Data, source="log")
    publish(lab, b"k", b"1")
    lab.flow()
    heal()
    lab.run(SECOND)
    assert lab.got("q") == [b"1"]


@pytest.mark.parametrize("spare", [0, 4096])
@pytest.mark.parametrize("mutant", [None, "keys-forgotten"])
def test_a_key_is_logged_once(mutant: str | None, spare: int) -> None:
    """Also if its publisher repeats it after a crash; and the mutant that forgets."""
    kind = MUTANTS["rpbcast"][mutant].logger if mutant else Logger
    lab = GossipLab(logger=kind, rewrite_records=spare)
    lab.run(SHORT)
    publish(lab, b"k", b"1", b"2")
    publish(lab, b"k", b"1", b"2")
    lab.run(SHORT)
    assert answers(lab) == [(1, "logged", 0), (1, "known", 0)]
    lab.restart("log")
    lab.run(SECOND)
    publish(lab, b"k", b"1", b"2", ticket=3)
    lab.run(SECOND)
    assert (answers(lab) == [(3, "known", 0)]) is (mutant is None)
    assert lab.got("q") == [b"1", b"2"] * (1 if mutant is None else 2)


def test_a_batch_that_was_not_synced_is_not_there_at_all() -> None:
    """Key and messages are one record: who repeats it has it logged once."""
    lab = GossipLab()
    lab.run(SHORT)
    lab.seats["log"].sync_after = None
    publish(lab, b"k", b"1", b"2")
    lab.run(SHORT)
    assert not answers(lab)
    assert lab.got("q") == []
    lab.seats["log"].crash()
    lab.restart("log")
    lab.run(SECOND)
    publish(lab, b"k", b"1", b"2")
    lab.run(SECOND)
    assert [level for _, level, _ in answers(lab)] == ["logged"]
    assert lab.got("q") == [b"1", b"2"]


def test_only_the_newest_keys_are_known() -> None:
    lab = GossipLab(publish_keys=2)
    lab.run(SHORT)
    for key in (b"a", b"b", b"c", b"b", b"a"):
        publish(lab, key, key)
        lab.run(20 * MILLISECOND)
    assert [level for _, level, _ in answers(lab)] == ["logged", "logged", "logged", "known", "logged"]


@pytest.mark.parametrize("mutant", [None, "last-keys-forgotten"])
def test_the_last_key_of_an_owner_outlives_those_of_others(mutant: str | None) -> None:
    """A query was away while others published more than a logger remembers; also after a restart."""
    logger = MUTANTS["gateway"][mutant].logger if mutant else Logger
    lab = GossipLab(logger=logger, publish_keys=4)
    lab.run(SHORT)
    for key in (b"q/1", b"q/2", *(b"r/%d" % number for number in range(9)), b"k", b"l"):
        publish(lab, key, key)
        lab.run(20 * MILLISECOND)
    lab.seats["log"].crash()
    lab.restart("log")
    lab.run(SECOND)
    for key in (b"q/2", b"r/8", b"l", b"q/1"):
        publish(lab, key, key)
        lab.run(20 * MILLISECOND)
    known = [level for _, level, _ in answers(lab)[-4:]]
    assert known == ["known" if mutant is None else "logged", "known", "known", "logged"]


def test_published_updates_replace_each_other() -> None:
    lab = GossipLab(retention=Retention.LIVE)
    lab.run(SHORT)
    publish(lab, b"k", b"1", b"2", b"3", item="x")
    lab.run(SHORT)
    stack = lab.seats["log"].stack
    assert isinstance(stack, Logger)
    assert [entry.batch.payloads for entry in stack.reading.read(0, 9).entries] == [[b"3"]]


@pytest.mark.parametrize("mutant", [None, "published-on-one-disk"])
def test_a_batch_is_logged_when_as_many_loggers_as_set_have_it(mutant: str | None) -> None:
    """With log_acks=2 the own disk is not enough, nor after a restart; the mutant is content with it."""
    lab = Several(logger=MUTANTS["rpbcast"][mutant].logger if mutant else Logger, log_acks=2)
    lab.run(SHORT)
    lab.seats["l"].crash()
    publish(lab, b"k", b"1", b"2", at="k")
    lab.run(SHORT)
    publish(lab, b"k", b"1", b"2", ticket=2, at="k")  # nobody answered: it asks again
    lab.run(SHORT)
    unanswered = [(1, "again", 0)]
    assert (answers(lab, "k") == unanswered) is (mutant is None)
    lab.restart("k")
    lab.run(SHORT)
    publish(lab, b"k", b"1", b"2", ticket=3, at="k")
    lab.run(SHORT)
    assert (answers(lab, "k") == []) is (mutant is None)
    lab.restart("l")
    lab.run(SECOND)
    assert answers(lab, "k") == [(3, "known", 0)]
    assert [note.seq for note in lab.notes("l", "log")] == [1]
    assert lab.got("p") == [b"1", b"2"]


def test_with_both_loggers_there_a_batch_is_answered_without_waiting_for_a_round() -> None:
    lab = Several(log_acks=2, gossip_period=10 * SECOND)
    lab.run(30 * SECOND)
    publish(lab, b"k", b"1", at="k")
    lab.run(5 * MILLISECOND)
    assert answers(lab, "k") == [(1, "logged", 0)]


def test_who_waits_for_a_logger_that_is_forgotten_is_answered() -> None:
    lab = Several(loggers=("j", "k", "l"), log_acks=2)
    lab.run(SHORT)
    for name in ("j", "l"):
        lab.seats[name].crash()
    publish(lab, b"k", b"1", at="k")
    lab.run(SHORT)
    lab.seats["k"].call(lambda stack, now: stack.forget(now, "l"))  # type: ignore[attr-defined]
    lab.run(SHORT)
    assert answers(lab, "k") == []
    lab.restart("j")
    lab.run(SECOND)
    assert ("logged", 0) in [(level, position) for _, level, position in answers(lab, "k")]


def test_the_stream_of_a_logger_is_never_closed_while_it_is_there() -> None:
    lab = GossipLab(silence=SECOND)
    lab.run(SHORT)
    publish(lab, b"a", b"1")
    lab.run(5 * SECOND)
    publish(lab, b"b", b"2")
    lab.run(SHORT)
    assert lab.got("q") == [b"1", b"2"]


@pytest.mark.parametrize("rounds", [1000, 1])
def test_what_a_logger_published_on_a_disk_that_is_lost_comes_from_who_has_it(rounds: int) -> None:
    """r has only heard of it. The new log closes the stream of the former one, as that of any other sender.

    Where the others have forgotten it, since it was logged, r is told that it is lost.
    """
    lab = GossipLab(gc_rounds=rounds)
    lab.run(SECOND)
    lab.carries = lambda source, dest, frame: not (isinstance(frame, Data) and dest == "r")
    publish(lab, b"k", b"1", b"2")
    lab.run(50 * MILLISECOND)
    lab.seats["log"].crash()
    lab.disk = Disk()
    lab.carries = lambda *_: True
    lab.restart("log")
    lab.run(2 * SECOND)
    assert lab.got("q") == [b"1", b"2"]
    assert lab.got("r") == ([b"1", b"2"] if rounds > 1 else [])
    assert lab.lost("r") == ([] if rounds > 1 else [Lost(MemberId("log"), 1, 2, "abandoned")])


def test_batches_that_cannot_be_logged_are_refused() -> None:
    lab = GossipLab()
    lab.run(SHORT)
    with pytest.raises(ValueError, match="a key has 1 to 256 bytes"):
        publish(lab, b"", b"1")
    with pytest.raises(ValueError, match="a batch has 1 to 4096 messages"):
        publish(lab, b"k")
    with pytest.raises(ValueError, match="payload of 2000000 bytes: at most 60000"):
        publish(lab, b"k", bytes(2_000_000))
    stack = lab.seats["log"].stack
    assert isinstance(stack, Logger)
    with pytest.raises(ValueError, match="a batch names items"):
        stack.publish(lab.now, b"k", [b"1"], [Enumeration(())])
