"""Streams that are over: none is mixed up with a new one, and what is remembered of them is bounded."""

import pytest
from tests.protocols.gossiplab import GossipLab
from tests.protocols.severallab import Several

from semcast.core import Frame, MemberId
from semcast.core.ids import MILLISECOND, SECOND
from semcast.protocols.gossip import Logger, Member, Retention, books, ended
from semcast.protocols.gossip.admission import closed
from semcast.protocols.gossip.ended import Ended
from semcast.protocols.gossip.frames import Closed, Logged, Report

SHORT = 60 * MILLISECOND


def logger_of(lab: GossipLab) -> Logger:
    stack = lab.seats["log"].stack
    assert isinstance(stack, Logger)
    return stack


def member_of(lab: GossipLab, name: str) -> Member:
    stack = lab.seats[name].stack
    assert isinstance(stack, Member)
    return stack


def come_and_go(lab: GossipLab, names: list[str], *, sends: bool) -> None:
    """One after the other joins, sends or does not, and leaves."""
    for name in names:
        seat = lab.place(MemberId(name))
        seat.start()
        lab.run(SHORT)
        if sends:
            seat.multicast(b"1")
        seat.call(lambda stack, now: stack.leave(now))
        lab.run(2 * SHORT)
        assert seat.stack.phase() == "left"
        del lab.seats[name]
    lab.run(SECOND)


def reported(lab: GossipLab, name: str) -> list[MemberId]:
    """The streams that the reports of a member name, from now on for a second."""
    found: list[MemberId] = []

    def carries(source: str, _dest: str, frame: Frame) -> bool:
        if source == name and isinstance(frame, Report):
            found.extend(stream for stream, _, _ in frame.through)
        return True

    lab.carries = carries
    lab.run(SECOND)
    return found


def test_the_first_to_end_are_forgotten(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(ended, "_MOST", 3)
    over = Ended()
    for number in range(5):
        over.add(MemberId("p", number), number)
    assert [(stream.incarnation, last) for stream, last in over.entries()] == [(2, 2), (3, 3), (4, 4)]
    assert MemberId("p", 1) not in over


@pytest.mark.parametrize("sends", [False, True])
def test_members_that_came_and_went_are_forgotten(monkeypatch: pytest.MonkeyPatch, *, sends: bool) -> None:
    """By the logger, on its disk too, and by the other members."""
    monkeypatch.setattr(ended, "_MOST", 4)
    monkeypatch.setattr("semcast.protocols.gossip.departing._STRANGERS", 4)
    lab = GossipLab(presence=20 * MILLISECOND, retention=Retention.STABLE)
    come_and_go(lab, [f"x{number}" for number in range(16)], sends=sends)
    log, p = logger_of(lab), member_of(lab, "p")
    assert len(log.books.ended) == len(p.receiver.ended) == 4
    assert len(log.departing._newest) <= len(log.books.streams) + len(log.books.rows) + 2 * 4
    assert not any(stream.name.startswith("x") for stream in p.desk.logged.numbers)
    assert len(lab.got("p")) == (16 if sends else 0)
    assert not [name for name in "pqr" if lab.lost(name)]


@pytest.mark.parametrize("retention", [Retention.STABLE, Retention.LIVE])
def test_nobody_talks_about_streams_that_all_are_through_with(retention: Retention) -> None:
    """A member that was told again of an end reminded the logger, which told it again, and so for ever."""
    lab = GossipLab(retention=retention)
    lab.run(SHORT)
    lab.seats["p"].multicast(b"1")
    lab.run(SHORT)
    lab.restart("p")
    lab.run(SECOND)
    assert MemberId("p") not in reported(lab, "q")


def test_a_reminder_reaches_a_logger_that_lacks_it() -> None:
    """q is through with all of a stream, and the logger lost that with what it had not synced."""
    lab = GossipLab(retention=Retention.STABLE)
    lab.run(SHORT)
    lab.seats["p"].multicast(b"1")
    lab.run(SHORT)
    lab.restart("p")
    lab.run(SECOND)
    log = logger_of(lab)
    assert MemberId("p") in log.books.ended
    q = member_of(lab, "q")
    q.from_logger._on_closed(lab.now, MemberId("log"), Closed(MemberId("p"), 1, []))
    assert MemberId("p") in reported(lab, "q")
    assert MemberId("p") not in reported(lab, "q"), "once is enough"


def test_a_publisher_may_start_again_and_again(monkeypatch: pytest.MonkeyPatch) -> None:
    """A log that keeps what nothing replaced has the streams of all its lives; those are over, and no limit.

    After the 64th, nothing more of that name was logged.
    """
    monkeypatch.setattr(books, "_OPEN", 4)
    lab = GossipLab(retention=Retention.LIVE)
    lab.run(SHORT)
    for number in range(10):
        lab.seats["p"].multicast(b"%d" % number)
        lab.run(2 * SHORT)
        lab.restart("p")
        lab.run(2 * SHORT)
    lab.run(SECOND)
    assert logger_of(lab).books.stored() == 10
    assert lab.got("q") == [b"%d" % number for number in range(10)]


def test_who_made_up_streams_has_a_limit(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(books, "_OPEN", 4)
    lab = GossipLab()
    lab.run(SHORT)
    log = logger_of(lab)
    for number in range(100, 110):
        log.books.open(MemberId("p", number))
    assert sum(1 for stream in log.books.streams if stream.name == "p") == 4


def test_a_logger_publishes_however_many_streams_there_are(monkeypatch: pytest.MonkeyPatch) -> None:
    """Members that fill its log with streams do not end it."""
    monkeypatch.setattr(books, "_MOST", 2)
    lab = GossipLab()
    lab.run(SHORT)
    log = logger_of(lab)
    for number in range(4):
        log.books.open(MemberId(f"x{number}"))
    log.publish(lab.now, b"key", [b"1"], [None])
    lab.run(SECOND)
    assert lab.got("q") == [b"1"]


def test_a_session_that_was_away_gets_all_lives_of_a_publisher() -> None:
    """Also if it hears of the latest first: an end says nothing about what came before it."""
    lab = GossipLab(retention=Retention.STABLE)
    lab.run(SHORT)
    lab.carries = lambda source, dest, _frame: "r" not in (source, dest)
    for number in range(12):
        lab.seats["p"].multicast(b"%d" % number)
        lab.run(2 * SHORT)
        lab.restart("p")
        lab.run(2 * SHORT)
    lab.run(SECOND)
    first = [MemberId("p", number) for number in range(2)]

    def tells_of_later_ones(_source: str, dest: str, frame: Frame) -> bool:
        early = isinstance(frame, Logged) and any(stream in first for stream, _ in frame.upto)
        return dest != "r" or not (early or (isinstance(frame, Closed) and frame.sender in first))

    lab.carries = tells_of_later_ones
    r, log = member_of(lab, "r"), logger_of(lab)
    for number in range(2, 12):
        stream = log.books.streams[MemberId("p", number)]
        r.from_logger._on_closed(lab.now, MemberId("log"), closed(stream))
    lab.run(SECOND)
    lab.carries = lambda *_: True
    lab.run(SECOND)
    assert sorted(lab.got("r"), key=int) == [b"%d" % number for number in range(12)]


def test_a_log_is_not_written_anew_for_what_it_must_remember() -> None:
    """Ends of streams and keys of batches are of use: a log of nothing else is as short as can be."""
    lab = GossipLab(retention=Retention.STABLE, rewrite_records=8)
    lab.run(SHORT)
    log = logger_of(lab)
    for number in range(24):
        log.publish(lab.now, b"%d" % number, [b"1"], [None])
        lab.run(SHORT)
    lab.run(SECOND)
    assert not log.books.stored()
    written = log.journal.next
    lab.run(SECOND)
    assert log.journal.next == written


def test_loggers_forget_what_they_promised_of_streams_that_are_over(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("semcast.protocols.gossip.colleagues._SPARE", 2)
    lab = Several(retention=Retention.STABLE)
    lab.run(SHORT)
    for _ in range(6):
        lab.seats["p"].multicast(b"1")
        lab.run(5 * SHORT)
        lab.restart("p")
    lab.run(SECOND)
    stack = lab.seats["k"].stack
    assert isinstance(stack, Logger)
    assert len(stack.books.ended) == 6
    most = len(stack.books.streams) + 2
    assert len(stack.colleagues._promised) <= most
    assert len(stack.colleagues._others["l"].promises) <= most
