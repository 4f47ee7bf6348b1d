"""What a logger keeps of what it has not any more: bounded, also for a session that never comes back."""

import pytest
from tests.protocols.gossiplab import GossipLab
from tests.protocols.severallab import SHORT, Several

from semcast.core import Item, MemberId
from semcast.core.ids import MILLISECOND, SECOND
from semcast.core.messages import batch_of
from semcast.protocols.gossip import Logger, Retention
from semcast.protocols.gossip.frames import Notice
from semcast.protocols.gossip.log import LogStream
from semcast.protocols.gossip.records import decode
from semcast.sim.mutants import MUTANTS

ITEMS = 5
UPDATES = 2000
P = MemberId("p")


def stream_of(lab: GossipLab | Several, logger: str) -> LogStream:
    stack = lab.seats[logger].stack
    assert isinstance(stack, Logger)
    return stack.books.streams[P]


def update_often(lab: GossipLab | Several) -> None:
    for number in range(UPDATES):
        lab.seats["p"].multicast(b"%d" % number, annotation=Item(f"item {number % ITEMS}"))
        if number % 100 == 0:
            lab.run(50 * MILLISECOND)
    lab.run(SECOND)


def after_long(mutant: str | None) -> GossipLab:
    """r is away while very much is replaced."""
    kind = MUTANTS["rpbcast"][mutant].logger if mutant else Logger
    lab = GossipLab(logger=kind, window=1000, receipts=64, rewrite_records=20)
    lab.run(SHORT)
    lab.seats["r"].crash()
    update_often(lab)
    return lab


@pytest.mark.parametrize("mutant", [None, "receipts-kept-for-ever"])
def test_receipts_for_a_session_that_never_comes_back_do_not_grow(mutant: str | None) -> None:
    """Neither in memory nor on disk; the mutant keeps one for each message that left."""
    lab = after_long(mutant)
    stream = stream_of(lab, "log")
    assert len(stream.messages) == ITEMS
    assert (len(stream.receipts) <= 64) is (mutant is None)
    sizes = sum(len(data) for data in lab.disk.records())
    assert (sizes < 8_000) is (mutant is None)


def test_who_comes_back_after_all_is_told_of_everything() -> None:
    """Also by a logger that has started again meanwhile."""
    lab = after_long(None)
    lab.restart("log")
    lab.run(SHORT)
    assert len(stream_of(lab, "log").receipts) <= 64
    lab.restart("r")
    lab.run(SECOND)
    assert len(lab.got("r")) == ITEMS
    assert lab.purged("r") == list(range(1, UPDATES - ITEMS + 1))
    assert not lab.lost("r")


def test_a_new_log_takes_over_what_nobody_remembers_in_one_step() -> None:
    lab = Several(window=1000, receipts=10, retention=Retention.LIVE)
    lab.run(SHORT)
    lab.seats["r"].crash()
    update_often(lab)
    lab.lose_disk("l")
    lab.restart("l")
    lab.run(3 * SECOND)
    stream = stream_of(lab, "l")
    assert sorted(stream.messages) == sorted(stream_of(lab, "k").messages)
    assert stream.logged == UPDATES
    assert len(stream.receipts) <= 10
    kinds = [type(decode(data)).__name__ for data in lab.disks["l"].records()]
    assert kinds.count("Replaced") < 20
    lab.restart("r")
    lab.run(SECOND)
    assert len(lab.got("r")) == ITEMS


@pytest.mark.parametrize("mutant", [None, "expired-counts-as-replaced"])
def test_what_expired_was_not_replaced(mutant: str | None) -> None:
    """However old it is; the mutant says that it was."""
    lab = GossipLab(
        logger=MUTANTS["rpbcast"][mutant].logger if mutant else Logger,
        retention=Retention.LIMITS,
        log_messages=20,
        receipts=4,
        window=1000,
    )
    lab.run(SHORT)
    lab.seats["r"].crash()
    for number in range(100):
        lab.seats["p"].multicast(b"event")
        lab.update("p", b"%d" % number)
    lab.run(SECOND)
    lab.restart("r")
    lab.run(SECOND)
    events = [seq for each in lab.lost("r") for seq in range(each.first, each.last + 1) if seq % 2]
    assert (events == list(range(1, 163, 2))) is (mutant is None)


def test_spans_of_what_expired_do_not_grow_either() -> None:
    """One for each message between others that were replaced, up to some hundreds; then they are joined."""
    stream = LogStream(P)
    for seq in range(1, 4001, 2):
        stream.receipts[seq + 1] = 5000
        stream.expire([(seq, seq)])
        stream.advance()
    assert stream.contiguous == 4000
    assert len(stream.expired) <= 512
    assert all(seq in stream.expired for seq in range(1, 4001, 2))
    far = LogStream(P)
    far.expire([(seq, seq) for seq in range(11, 3000, 2)])
    assert 12 not in far.expired, "what may still come does not count as expired"


def test_receipts_beyond_a_gap_do_not_merge() -> None:
    """What is not here below them may still be missing."""
    stream = LogStream(P)
    stream.store(batch_of(P, 1, [b"1"], None))
    stream.logged = stream.contiguous
    for seq in range(5, 55):
        stream.replace(seq, 60)
    assert stream.crowded(10) == 1
    stream.merge(stream.crowded(10))
    assert stream.missing(54) == [(2, 4)]


@pytest.mark.parametrize("first", [3, 4])
def test_a_notice_of_another_logger_settles_nothing_before_it(first: int) -> None:
    lab = Several()
    lab.run(SHORT)
    stack = lab.seats["k"].stack
    assert isinstance(stack, Logger)
    stream = stack.books.open(P)
    assert stream is not None
    stream.store(batch_of(P, 1, [b"1"], None))
    stream.store(batch_of(P, 2, [b"2"], None))
    stream.known = 9
    stack.on_frame(lab.now, MemberId("l"), Notice(P, [(first, 8, 0)]))
    assert stream.missing() == ([(9, 9)] if first == 3 else [(3, 3), (9, 9)])
