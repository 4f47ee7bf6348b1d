"""A log that is read by position: dense, stable, and refused beyond its ends."""

import pytest
from tests.protocols.gossiplab import GossipLab

from semcast.core.ids import MILLISECOND, SECOND, MemberId
from semcast.protocols.gossip import Logger, Retention
from semcast.protocols.gossip.data import Data
from semcast.protocols.gossip.positions import Positions
from semcast.protocols.gossip.reading import OffsetError
from semcast.sim.mutants import MUTANTS

SHORT = 300 * MILLISECOND


def logger_of(lab: GossipLab) -> Logger:
    stack = lab.seats["log"].stack
    assert isinstance(stack, Logger)
    return stack


def read(lab: GossipLab, lo: int = 0, hi: int = 1 << 40) -> list[tuple[int, bytes]]:
    page = logger_of(lab).reading.read(lo, hi)
    return [(entry.position, entry.batch.payloads[0]) for entry in page.entries]


def test_positions_are_dense_and_in_the_order_of_each_stream() -> None:
    """Also where messages come out of order."""
    lab = GossipLab()
    lab.run(SHORT)
    lab.stop(Data, source="p", dest="log")
    lab.seats["p"].multicast(b"1")
    lab.flow()
    lab.carries = lambda *_: True
    lab.seats["p"].multicast(b"2")
    lab.seats["q"].multicast(b"a", b"b")
    lab.run(SHORT)
    found = read(lab)
    assert [position for position, _ in found] == [0, 1, 2, 3]
    assert [payload for _, payload in found if payload in (b"1", b"2")] == [b"1", b"2"]
    ends = logger_of(lab).reading.ends()
    assert (ends.first, ends.next) == (0, 4)


def test_what_is_not_synced_has_no_position() -> None:
    lab = GossipLab()
    lab.run(SHORT)
    lab.seats["log"].sync_after = None
    lab.seats["p"].multicast(b"1")
    lab.run(SHORT)
    assert logger_of(lab).reading.ends().next == 0
    assert read(lab) == []


@pytest.mark.parametrize("spare", [0, 4096])
@pytest.mark.parametrize("mutant", [None, "positions-given-anew"])
def test_compaction_and_restarts_change_no_position(spare: int, mutant: str | None) -> None:
    """And the mutant that numbers anew what is left."""
    lab = GossipLab(rewrite_records=spare, logger=MUTANTS["rpbcast"][mutant].logger if mutant else Logger)
    lab.run(SHORT)
    for number in range(5):
        lab.update("p", b"%d" % number)
        lab.run(20 * MILLISECOND)
    lab.seats["q"].multicast(b"kept")
    lab.run(20 * MILLISECOND)
    for number in range(5, 7):
        lab.update("p", b"%d" % number)
        lab.run(20 * MILLISECOND)
    lab.run(SHORT)
    before = read(lab)
    lab.restart("log")
    lab.run(SHORT)
    lab.update("p", b"7")
    lab.run(SHORT)
    lab.restart("log")
    lab.run(SHORT)
    lab.update("p", b"8")
    lab.run(SHORT)
    assert before == [(5, b"kept"), (7, b"6")]
    assert (read(lab) == [(5, b"kept"), (9, b"8")]) is (mutant is None)


@pytest.mark.parametrize("mutant", [None, "positions-reused"])
def test_no_position_is_given_twice(mutant: str | None) -> None:
    """What had the last one was collected, and the log written anew."""
    lab = GossipLab(
        retention=Retention.STABLE,
        rewrite_records=0,
        logger=MUTANTS["rpbcast"][mutant].logger if mutant else Logger,
    )
    lab.run(SECOND)
    lab.seats["p"].multicast(b"1", b"2")
    lab.run(SECOND)
    lab.restart("log")
    lab.run(SECOND)
    lab.seats["p"].multicast(b"3")
    lab.run(50 * MILLISECOND)
    assert logger_of(lab).reading.ends().next == (3 if mutant is None else 1)


def test_a_page_has_its_credit_and_says_where_to_go_on() -> None:
    lab = GossipLab()
    lab.run(SHORT)
    lab.seats["p"].multicast(*[b"x" * 10] * 10)
    lab.run(SHORT)
    reading = logger_of(lab).reading
    page = reading.read(2, 9, most=3)
    assert ([entry.position for entry in page.entries], page.next, page.trimmed) == ([2, 3, 4], 5, 0)
    page = reading.read(page.next, 9, size=15)
    assert ([entry.position for entry in page.entries], page.next) == ([5, 6], 7)
    assert reading.read(7, 9).next == 9
    assert reading.read(10, 99).entries == []


def test_only_items_that_are_asked_for_are_read() -> None:
    lab = GossipLab()
    lab.run(SHORT)
    lab.update("p", b"1", "truck/1")
    lab.update("p", b"2", "ship/1")
    lab.seats["p"].multicast(b"event")
    lab.run(SHORT)
    page = logger_of(lab).reading.read(0, 9, prefix="truck/")
    assert [entry.batch.payloads[0] for entry in page.entries] == [b"1", b"event"]


def test_positions_beyond_either_end_are_refused() -> None:
    lab = GossipLab(retention=Retention.STABLE)
    lab.run(SECOND)
    reading = logger_of(lab).reading
    lab.seats["p"].multicast(b"1", b"2")
    lab.run(SECOND)
    ends = reading.ends()
    assert (ends.first, ends.next) == (2, 2)
    with pytest.raises(OffsetError, match="position 3 is beyond the end of the log, which is 2"):
        reading.read(3, 9)
    with pytest.raises(OffsetError, match="position 1 was trimmed: the log begins at 2"):
        reading.read(1, 9)
    with pytest.raises(OffsetError, match="of log 7, and this is log 1"):
        reading.read(2, 9, log=7)


def test_messages_are_found_by_time() -> None:
    lab = GossipLab()
    logger_of(lab).placing.epoch = 1000 * SECOND
    lab.run(SHORT)
    lab.seats["p"].multicast(b"1", b"2")
    lab.run(SHORT)
    between = lab.now + 1000 * SECOND
    lab.seats["p"].multicast(b"3")
    lab.run(SHORT)
    reading = logger_of(lab).reading
    assert (reading.at_time(0), reading.at_time(between), reading.at_time(1 << 62)) == (0, 2, 3)


def test_a_clock_that_goes_back_does_not_take_the_index_with_it() -> None:
    positions, p = Positions(), MemberId("p")
    positions.place(p, [(1, 3)], 200)
    positions.place(p, [(4, 4)], 100)
    assert (positions.at_time(150), positions.at_time(200), positions.at_time(201)) == (0, 0, 4)
    assert positions.times() == (200, 200)


def test_positions_take_memory_for_what_is_there() -> None:
    """A log that is compacted for ever keeps a few runs."""
    positions, p = Positions(), MemberId("p")
    for seq in range(1, 5001):
        positions.place(p, [(seq, seq)], seq)
        positions.left(1)
        positions.tidy(lambda _sender, number, seq=seq: number == seq, 1)  # type: ignore[misc]
    assert len(list(positions.runs())) < 1100
    assert positions.next == 5000


def test_trimmed_positions_are_told_apart_from_replaced_ones() -> None:
    lab = GossipLab(retention=Retention.LIMITS, log_messages=2)
    lab.run(SHORT)
    for item in ("x", "x", "y", "z"):
        lab.update("p", item.encode(), item)
        lab.run(20 * MILLISECOND)
    page = logger_of(lab).reading.read(0, 9)
    assert ([entry.position for entry in page.entries], page.trimmed) == ([2, 3], 1)
