"""A frame carries a run of messages, and a run is what is kept, held, repaired and written."""

from tests.protocols.gossiplab import GossipLab

from semcast.core.ids import MILLISECOND, SECOND, MemberId
from semcast.core.messages import batch_of
from semcast.protocols.gossip import Logger, Member
from semcast.protocols.gossip.data import Data
from semcast.protocols.gossip.records import Placed, Stored, StoredRun, decode
from semcast.protocols.gossip.streamruns import StreamRuns
from semcast.wire.annotations import WireItem
from semcast.wire.limits import MAX_SEQ

P = MemberId("p")
SHORT = 300 * MILLISECOND
MANY = [b"%05d" % number for number in range(100)]


def test_a_frame_is_filled() -> None:
    lab = GossipLab(frame_bytes=80)
    lab.run(SHORT)
    lab.seats["p"].multicast(*MANY)
    frames = [letter.frames[0] for letter in lab.wire if letter.dest == "q"]
    counts = [len(frame.payloads) for frame in frames if isinstance(frame, Data)]
    assert counts == [10] * 10
    lab.run(SHORT)
    assert lab.got("q") == lab.got("r") == MANY


def test_an_update_among_plain_messages_stays_in_its_place() -> None:
    lab = GossipLab()
    lab.run(SHORT)
    lab.seats["p"].multicast(*MANY[:10])
    lab.update("p", b"update")
    lab.seats["p"].multicast(*MANY[10:])
    lab.run(SHORT)
    assert lab.got("q") == [*MANY[:10], b"update", *MANY[10:]]


def test_what_a_frame_brings_twice_is_taken_once() -> None:
    """From 4 to 6, then from 1 to 9: what was missing on both sides of it is taken."""
    lab = GossipLab(eager=False)
    lab.run(SHORT)
    q = lab.seats["q"]
    q.hear(P, Data(P, 4, MANY[3:6]))
    assert not lab.got("q")
    q.hear(P, Data(P, 1, MANY[:9]))
    assert lab.got("q") == MANY[:9]
    assert q.stack.stats.duplicates == 3


def test_a_queue_takes_a_part_of_a_run() -> None:
    lab = GossipLab(queue_messages=7, hold=50)
    lab.run(SHORT)
    q = lab.seats["q"]
    q.reads = False
    lab.seats["p"].multicast(*MANY[:20])
    lab.run(SHORT)
    assert isinstance(q.stack, Member)
    assert (q.stack.receiver.queue.messages, q.stack.receiver.held()) == (7, 13)
    q.reads = True
    q.run()
    lab.run(SHORT)
    assert lab.got("q") == MANY[:20]


def test_lost_runs_are_repaired_as_runs() -> None:
    """By peers, in as many frames as they came in."""
    lab = GossipLab(frame_bytes=80)
    lab.run(SHORT)
    heal = lab.stop(Data, source="p", dest="q")
    lab.seats["p"].multicast(*MANY)
    lab.flow()
    heal()
    repairs: list[int] = []

    def carries(_source: str, dest: str, frame: object) -> bool:
        if dest == "q" and isinstance(frame, Data):
            repairs.append(len(frame.payloads))
        return True

    lab.carries = carries
    lab.run(SECOND)
    assert lab.got("q") == MANY
    assert len(repairs) <= 20, "ten, or twice that if two were asked"


def test_a_logger_writes_a_run_as_one_record_and_finds_it_again() -> None:
    lab = GossipLab()
    lab.run(SHORT)
    lab.seats["r"].crash()
    lab.seats["p"].multicast(*MANY)
    lab.run(SHORT)
    records = [decode(data) for data in lab.disk.records()]
    assert sum(isinstance(each, Stored) for each in records) == 0
    assert sum(isinstance(each, StoredRun) for each in records) <= 2
    assert sum(isinstance(each, Placed) for each in records) <= 2
    lab.restart("log")
    lab.run(SHORT)
    log = lab.seats["log"].stack
    assert isinstance(log, Logger)
    assert log.books.streams[P].logged == len(MANY)
    assert log.books.streams[P].size == sum(map(len, MANY))
    lab.restart("r")
    lab.run(SECOND)
    assert lab.got("r") == MANY


def test_a_window_has_bytes_too() -> None:
    lab = GossipLab(window=1000, window_bytes=100, frame_bytes=50)
    lab.run(SHORT)
    heal = lab.stop(Data, dest="log")
    assert lab.seats["p"].multicast(*MANY) == 24, (
        "messages of 5 bytes: three frames of six, and the one that exceeds"
    )
    heal()
    lab.run(SHORT)
    assert lab.seats["p"].multicast(*MANY[24:]) == 24
    lab.run(SHORT)
    assert lab.got("q") == MANY[:48]


def test_runs_that_nobody_sends_are_dropped_and_counted() -> None:
    lab = GossipLab()
    lab.run(SHORT)
    for name in ("q", "log"):
        seat = lab.seats[name]
        before = seat.stack.stats.malformed
        seat.hear(P, Data(P, 1, [b"x", b"y"], WireItem("a")))
        seat.hear(P, Data(P, MAX_SEQ, [b"x", b"y"]))
        assert seat.stack.stats.malformed == before + 2
    assert not lab.got("q")


def test_nothing_is_between_two_numbers_of_which_the_second_is_below_the_first() -> None:
    """rpbcast 20141: of a run of which some is logged, a logger asked for the rest."""
    runs = StreamRuns()
    runs.add(batch_of(MemberId("p"), 1, [b"a", b"b", b"c", b"d"]))
    assert runs.between(3, 2) == []


def test_runs_leave_in_any_order_and_their_numbers_may_come_again() -> None:
    runs = StreamRuns()
    for first in range(1, 1001, 10):
        runs.add(batch_of(P, first, [b"."] * 10))
    for first in range(1, 1001, 20):
        assert runs.remove(first) is not None
    assert runs.remove(1) is None
    assert len(runs) == 500
    assert [(each.first, each.last) for each in runs.between(15, 52)] == [(15, 20), (31, 40), (51, 52)]
    runs.add(batch_of(P, 1, [b"."] * 3))
    runs.add(batch_of(P, 4, [b"."] * 7))
    assert runs.spans()[:2] == [(1, 20), (31, 40)]
