"""What a log keeps: by age, by bytes, by count, and no more than it must."""

from itertools import pairwise

import pytest
from tests.protocols.gossiplab import GossipLab

from semcast.core.annotations import Enumeration
from semcast.core.ids import MILLISECOND, SECOND, MemberId, MessageId
from semcast.core.messages import batch_of
from semcast.core.outbox import Sync
from semcast.protocols.gossip import Logger, Retention
from semcast.protocols.gossip.log import LogStream
from semcast.sim.mutants import MUTANTS

SHORT = 300 * MILLISECOND


def logger_of(lab: GossipLab) -> Logger:
    stack = lab.seats["log"].stack
    assert isinstance(stack, Logger)
    return stack


def kept(lab: GossipLab) -> list[bytes]:
    reading = logger_of(lab).reading
    return [entry.batch.payloads[0] for entry in reading.read(reading.ends().first, 1 << 40).entries]


def late(lab: GossipLab) -> None:
    lab.restart("r")
    lab.run(SECOND)


@pytest.mark.parametrize("retention", Retention)
def test_what_is_too_old_leaves_with_a_receipt(retention: Retention) -> None:
    lab = GossipLab(log_age=SECOND, retention=retention)
    lab.crash("r", told=False)
    lab.run(SHORT)
    lab.seats["p"].multicast(b"1", b"2")
    lab.run(SECOND)
    lab.seats["p"].multicast(b"3")
    lab.run(SHORT)
    assert kept(lab)[-1:] == [b"3"]
    late(lab)
    assert lab.got("r")[-1:] == [b"3"]
    assert sum(note.count for note in lab.notes("r", "lost")) == 3 - len(lab.got("r"))
    lab.run(SECOND)
    assert kept(lab) == []


@pytest.mark.parametrize("bound", ["rewrite_records", "rewrite_bytes"])
def test_a_log_that_is_never_quiet_is_written_anew_all_the_same(bound: str) -> None:
    """Under load a sync is always under way: what comes waits, else the log would grow for ever."""
    records, size = (100, 1 << 30) if bound == "rewrite_records" else (1 << 30, 100)
    lab = GossipLab(rewrite_records=records, rewrite_bytes=size, gossip_period=50 * MILLISECOND)
    lab.run(SHORT)
    lab.seats["log"].sync_after = 3 * MILLISECOND
    lengths = []
    for number in range(1000):
        lab.update("p", b"%04d" % number)
        lab.run(2 * MILLISECOND)
        journal = logger_of(lab).journal
        lengths.append(journal.length if bound == "rewrite_records" else journal.bytes // 10)
    assert max(lengths) < 1000
    assert sum(1 for before, after in pairwise(lengths) if after < before) > 1
    lab.run(SECOND)
    assert kept(lab) == [b"0999"]
    assert lab.got("q")[-1] == b"0999"
    lab.restart("log")
    lab.run(SECOND)
    assert kept(lab) == [b"0999"]


def test_a_log_of_small_messages_is_not_written_anew_again_and_again() -> None:
    """Its records take far more than what they say."""
    lab = GossipLab(rewrite_bytes=100, rewrite_records=1 << 30)
    lab.run(SHORT)
    written = []
    for number in range(400):
        lab.seats["p"].multicast(b"%d" % (number % 10))
        lab.run(10 * MILLISECOND)
        written.append(logger_of(lab).journal.anew)
    assert len(set(written)) < 20
    lab.run(SECOND)
    assert logger_of(lab).journal.anew == written[-1]
    assert len(kept(lab)) == 400


def test_nothing_leaves_before_it_is_on_disk() -> None:
    """Its sender may send it again after a crash: who asked would have been told that it expired."""
    lab = GossipLab(log_bytes=10)
    lab.run(SHORT)
    lab.seats["log"].sync_after = None
    for number in range(5):
        lab.seats["p"].multicast(b"%04d" % number)
        lab.run(20 * MILLISECOND)
    assert not lab.notes("log", "collect")
    lab.seats["log"].sync_after = 0
    lab.seats["log"].finish_sync()
    lab.run(SHORT)
    assert kept(lab) == [b"0003", b"0004"]


def test_of_what_is_too_much_the_oldest_leave() -> None:
    lab = GossipLab(log_bytes=10)
    lab.run(SHORT)
    for number in range(5):
        lab.seats["p"].multicast(b"%04d" % number)
        lab.seats["q"].multicast(b"%04d" % (10 + number))
        lab.run(20 * MILLISECOND)
    assert kept(lab) == [b"0004", b"0014"]
    ends = logger_of(lab).reading.ends()
    assert (ends.first, ends.next) == (8, 10)
    assert sum(stream.size for stream in logger_of(lab).books.streams.values()) == 8
    lab.restart("log")
    lab.run(SHORT)
    assert kept(lab) == [b"0004", b"0014"]


def test_a_live_log_is_bounded_by_its_live_set() -> None:
    """Also one that crashed before it had written down what was replaced."""
    lab = GossipLab(retention=Retention.LIVE)
    lab.run(SHORT)
    for number in range(50):
        lab.update("p", b"%d" % number, "ab"[number % 2])
        lab.run(5 * MILLISECOND)
    lab.run(SHORT)
    assert kept(lab) == [b"48", b"49"]
    lab.seats["log"].sync_after = None
    lab.update("p", b"50", "a")
    lab.run(5 * MILLISECOND)
    lab.seats["log"].finish_sync()
    lab.seats["log"].crash()
    lab.restart("log")
    lab.run(SHORT)
    assert kept(lab) == [b"49", b"50"]


def test_what_is_named_before_it_comes_leaves_when_it_is_there() -> None:
    """Out of order: the one that replaces it came first."""
    p = MemberId("p")
    stream = LogStream(p)
    stream.store(batch_of(p, 2, [b"new"], Enumeration((MessageId(p, 1),))))
    stream.store(batch_of(p, 1, [b"old"], Enumeration(())))
    assert stream.obsolete(1, 2) == [(1, 2)]


@pytest.mark.parametrize("logger", [Logger, MUTANTS["sessions"]["replaced-by-itself"].logger])
def test_what_is_on_disk_twice_replaces_nothing(logger: type[Logger]) -> None:
    """Sessions 560110: the crash came when all was written anew, and before the old records were given up."""
    lab = GossipLab(logger=logger, start="all")
    lab.run(SHORT)
    lab.update("p", b"1")
    lab.update("p", b"2")
    lab.run(SHORT)
    lab.seats["log"].crash()
    lab.disk.write([*lab.disk.records(), Sync(0)])
    lab.disk.begin()
    lab.disk.finish()
    lab.restart("log")
    lab.run(SHORT)
    assert kept(lab) == ([b"2"] if logger is Logger else [])
