"""Several loggers: what they share, promise each other, and decide (ours; Sun 2000 has one)."""

from functools import partial

import pytest
from tests.protocols.severallab import LOGGERS, SHORT, Several

from semcast.core import Frame, MemberId
from semcast.core.ids import MILLISECOND, SECOND
from semcast.lab.disk import Disk
from semcast.protocols.gossip import Logger, Member, Protocol, Retention
from semcast.protocols.gossip.data import Data
from semcast.protocols.gossip.frames import (
    Closed,
    Gossip,
    Heard,
    Holding,
    Join,
    Past,
    Promise,
    Seek,
    Share,
    Shared,
    Sought,
)
from semcast.sim.mutants import MUTANTS


def mutant(name: str) -> type[Logger]:
    return MUTANTS["rpbcast"][name].logger


def test_both_log_what_either_hears() -> None:
    lab = Several()
    lab.run(SHORT)
    assert (lab.home("p"), lab.home("q")) == ("k", "l")
    heal = lab.stop(Data, source="p", dest="l")
    lab.seats["p"].multicast(b"1")
    lab.flow()
    heal()
    lab.run(SHORT)
    assert [note.seq for note in lab.notes("k", "log")] == [1]
    assert [note.seq for note in lab.notes("l", "log")] == [1]


def test_two_words_of_one_logger_are_not_those_of_two() -> None:
    """log_acks counts loggers; the mutant counts words."""
    kind = MUTANTS["rpbcast"]["counts-one-logger-twice"].stack
    for each in (Member, kind):
        assert each is not None
        assert issubclass(each, Member)
        lab = Several(each, log_acks=2)
        lab.run(SHORT)
        lab.seats["l"].crash()
        lab.seats["p"].multicast(b"1")
        lab.run(SHORT)
        assert bool(lab.notes("p", "letgo")) is (each is not Member)


def test_a_session_begins_when_enough_loggers_have_it() -> None:
    for logger in (Logger, mutant("confirm-before-replicated")):
        lab = Several(logger=logger, log_acks=2)
        lab.stop(Shared)
        lab.run(SHORT)
        began = lab.seats["p"].stack.phase() == "operational"
        assert began is (logger is not Logger)
        lab.carries = lambda *_: True
        lab.run(SHORT)
        assert lab.seats["p"].stack.phase() == "operational"


def test_a_row_that_comes_in_two_ways_is_recorded_when_it_is_on_disk() -> None:
    """source 716222: k shares a row, and l, before that is on its disk, is given it by a search, too."""
    lab = Several(log_acks=2)
    lab.run(SHORT)
    lab.seats["r"].crash()
    lab.seats["l"].sync_after = 10 * MILLISECOND
    recorded: list[bool] = []

    def carries(source: str, _dest: str, frame: Frame) -> bool:
        if isinstance(frame, Shared) and frame.serial == 900:
            recorded.append(any(note.members == (newcomer,) for note in lab.notes("l", "admit")))
        return source != "l" or not isinstance(frame, Seek)

    lab.carries = carries
    newcomer, k, seat = MemberId("r", 1), MemberId("k"), lab.seats["l"]
    seat.hear(newcomer, Join(2, "new", at_most_once=False, at=0, log=0, filter="", again=True))
    seat.hear(k, Share(900, newcomer, 3, again=True, over=False, through=[]))
    lab.run(5 * MILLISECOND)
    seat.hear(k, Sought(newcomer, newcomer, 3, 0, 1, []))
    lab.run(SHORT)
    assert recorded == [True]


def test_an_admission_that_takes_long_is_waited_for() -> None:
    """Gateway 40002: what the loggers need for it is longer than three reports.

    Each session went from one logger to the other for ever, and each attempt ended the one before.
    """
    lab = Several(log_acks=2, latency=45 * MILLISECOND)
    lab.run(2 * SECOND)
    assert [lab.seats[name].stack.phase() for name in "pqr"] == ["operational"] * 3


def test_nothing_is_collected_that_a_session_of_another_logger_needs() -> None:
    for logger in (Logger, mutant("collects-own-sessions-only")):
        lab = Several(logger=logger, retention=Retention.STABLE)
        lab.run(SECOND)
        lab.seats["q"].reads = False
        lab.seats["p"].multicast(b"1")
        lab.run(SECOND)
        assert bool(lab.notes("k", "collect")) is (logger is not Logger)
        lab.seats["q"].reads = True
        lab.seats["q"].run()
        lab.run(SECOND)
        assert lab.notes("k", "collect")
        assert lab.notes("l", "collect") or logger is not Logger


def test_a_session_whose_logger_is_gone_moves_with_its_position() -> None:
    lab = Several()
    lab.run(SHORT)
    lab.seats["q"].multicast(b"1")
    lab.run(SHORT)
    lab.seats["l"].crash()
    lab.run(SECOND)
    assert lab.home("q") == "k"
    lab.restart("q")
    lab.run(100 * MILLISECOND)
    assert lab.seats["q"].stack.phase() == "joining", "l may know more of its session"
    lab.restart("l")
    lab.run(SECOND)
    lab.seats["p"].multicast(b"2")
    lab.run(SHORT)
    assert lab.got("q") == [b"2"], "the first one was acknowledged"


@pytest.mark.parametrize("kind", [None, "confirms-what-it-has-heard-of"])
def test_a_logger_that_was_down_says_where_a_session_goes_on_in_streams_it_has_not_heard_of(
    kind: str | None,
) -> None:
    """chaos 1611, again: l had acknowledged what r took while k was down, and r began anew at k."""
    lab = Several(logger=Logger if kind is None else mutant(kind), homes={"r": "k"}, retention=Retention.LIVE)
    lab.run(SHORT)
    lab.seats["k"].crash()
    lab.restart("q")
    lab.run(SECOND)
    lab.seats["q"].multicast(b"1")
    lab.run(SHORT)
    assert lab.home("r") == "l"
    assert lab.got("r") == [b"1"]
    lab.seats["r"].crash()
    lab.carries = lambda _source, dest, frame: dest != "k" or isinstance(frame, Join | Sought)
    lab.restart("k")
    lab.restart("r")
    lab.run(100 * MILLISECOND)
    assert lab.seats["r"].stack.phase() == "operational"
    lab.carries = lambda *_: True
    lab.run(SECOND)
    assert (lab.got("r") == []) is (kind is None)


def test_one_logger_closes_streams_and_asks_the_other_first() -> None:
    """Only q, which is at home at l, has what p sent last; the mutant closes at both, differently."""
    for logger in (Logger, mutant("closes-twice-differently")):
        lab = Several(logger=logger)
        lab.run(SHORT)
        lab.carries = lambda source, dest, _frame: source != "p" or dest == "q"
        lab.seats["p"].multicast(b"1")
        lab.flow()
        lab.carries = lambda source, dest, _frame: {source, dest} != {"k", "l"} and "p" not in (source, dest)
        lab.fail("p")
        lab.run(SHORT)
        assert bool(lab.notes("k", "closed")) is (logger is not Logger), "l cannot be asked"
        lab.carries = lambda *_: True
        lab.run(SECOND)
        ends = {note.seq for name in LOGGERS for note in lab.notes(name, "closed")}
        assert ends == ({1} if logger is Logger else {0, 1})
        if logger is Logger:
            assert lab.got("r") == [b"1"]


@pytest.mark.parametrize("kind", [None, "closed-before-synced"])
def test_the_end_of_a_stream_is_on_disk_before_it_is_said(kind: str | None) -> None:
    """k decides: else it could crash, and close the stream again, with another end."""
    lab = Several(logger=mutant(kind) if kind else Logger)
    lab.run(SHORT)
    lab.seats["p"].multicast(b"1")
    lab.run(SHORT)
    said: list[Frame] = []

    def carries(source: str, dest: str, frame: Frame) -> bool:
        if isinstance(frame, Holding) and dest == "k":  # what others have of it: then k concludes
            lab.seats["k"].sync_after = None
        if isinstance(frame, Closed) and source == "k":
            said.append(frame)
        return True

    lab.carries = carries
    lab.fail("p")
    lab.run(SECOND)
    assert bool(said) is (kind is not None)
    lab.carries = lambda *_: True
    lab.seats["k"].sync_after = 0
    lab.seats["k"].finish_sync()
    lab.run(SECOND)
    assert [note.seq for note in lab.notes("l", "closed")] == [1]


def test_what_was_on_a_lost_disk_counts_as_logged_no_more() -> None:
    """Two of three loggers must have a message; the mutant counts a disk that is lost."""
    kind = MUTANTS["rpbcast"]["counts-lost-disks"].stack
    assert kind is not None
    assert issubclass(kind, Member)
    for each in (Member, kind):
        logged, p = each.desk_kind.logged_kind(2), MemberId("p")
        logged.learn(MemberId("k", 1), [(p, 10)])
        logged.learn(MemberId("l", 1), [(p, 8)])
        logged.learn(MemberId("k", 5), [(p, 3)])
        logged.learn(MemberId("l", 1), [(p, 10)])
        assert logged.upto(p) == (3 if each is Member else 10)


def test_a_lost_disk_does_not_close_a_stream_again() -> None:
    """k closed it, and lost its disk; l knows how it ended."""
    lab = Several()
    lab.run(SHORT)
    lab.seats["p"].multicast(b"1", b"2")
    lab.run(SHORT)
    lab.fail("p")
    lab.run(SECOND)
    assert [note.seq for note in lab.notes("l", "closed")] == [2]
    lab.seats["k"].crash()
    lab.disks["k"] = Disk()
    lab.stop(Past)
    lab.restart("k")
    lab.run(SHORT)
    assert lab.seats["k"].stack.phase() == "joining", "it knows nothing of what is past"
    lab.carries = lambda *_: True
    lab.run(SECOND)
    assert lab.seats["k"].stack.phase() == "operational"
    stack = lab.seats["k"].stack
    assert isinstance(stack, Logger)
    assert stack.books.streams[MemberId("p")].last == 2
    assert sorted(stack.books.streams[MemberId("p")].messages) == [1, 2]


def test_a_new_log_is_told_what_is_past_once_that_is_on_disk() -> None:
    """Else k could crash, and not know any more what it told l, which believes it."""
    lab = Several()
    lab.run(SHORT)
    lab.lose_disk("l")
    lab.seats["k"].sync_after = None
    lab.seats["p"].multicast(b"1")
    lab.restart("l")
    lab.run(SHORT)
    assert lab.seats["l"].stack.phase() == "joining"
    lab.seats["k"].sync_after = 0
    lab.seats["k"].finish_sync()
    lab.run(SHORT)
    assert lab.seats["l"].stack.phase() == "operational"


def test_a_session_that_another_logger_hears_is_not_ended() -> None:
    """q reports to l alone: k, which decides, ends sessions only that no logger hears."""
    lab = Several(inactive=SECOND)
    lab.run(SHORT)
    lab.stop(source="q", dest="k")
    lab.run(4 * SECOND)
    assert not lab.notes("k", "dismissed")
    lab.carries = lambda *_: True
    lab.seats["q"].crash()
    lab.run(3 * SECOND)
    assert [note.members for note in lab.notes("k", "dismissed")] == [(MemberId("q"),)]


def test_what_a_lost_disk_had_promised_counts_no_more() -> None:
    """Else something would leave that this log alone replaces, or that a session needs."""
    lab = Several()
    lab.run(SHORT)
    lab.seats["p"].multicast(b"1")
    lab.run(SHORT)
    k, p = lab.seats["k"].stack, MemberId("p")
    assert isinstance(k, Logger)
    assert (k.colleagues.stable(p), k.colleagues.logged(p), k.colleagues.holders(p, 1)) == (1, 1, 1)
    lab.seats["k"].hear(MemberId("l", 7), Promise(8, 1, []))
    assert (k.colleagues.stable(p), k.colleagues.logged(p), k.colleagues.holders(p, 1)) == (0, 0, 0)
    lab.seats["k"].hear(MemberId("l"), Promise(1, 9, [(p, 1, 1)]))
    assert k.colleagues.logged(p) == 0, "of the former log, and late"


@pytest.mark.parametrize("kind", [None, "leaves-ends-in-part"])
def test_the_rest_of_a_stream_that_ended_is_found_or_given_up_after_a_disk_is_lost(kind: str | None) -> None:
    """k closed it, and lost its disk before l had copied all: r has the second message, nobody the third."""
    lab = Several(logger=mutant(kind) if kind else Logger, homes={"r": "k"}, gc_rounds=1000)
    lab.run(SHORT)
    lab.seats["p"].multicast(b"1")
    lab.run(SHORT)
    for payload, heard in (b"2", "kr"), (b"3", "k"):
        lab.carries = partial(_carries_data, heard)
        lab.seats["p"].multicast(payload)
        lab.run(SHORT)
    lab.fail("p")
    lab.run(SECOND)
    assert [note.seq for note in lab.notes("l", "closed")] == [3]
    assert lab.got("r") == [b"1", b"2"]
    lab.lose_disk("k")
    lab.carries = lambda *_: True
    lab.restart("k")
    lab.run(100 * MILLISECOND)
    stack = lab.seats["k"].stack
    assert isinstance(stack, Logger)
    stream, r = stack.books.streams[MemberId("p")], MemberId("r")
    takes = [not stack.ending.refuses(stream, r, seq) for seq in (2, 3, 4)]
    assert takes == ([True, True, False] if kind is None else [False] * 3), "until it is concluded"
    lab.run(2 * SECOND)
    assert all(stack.ending.refuses(stream, r, seq) for seq in (2, 3, 4))
    for name in "qr":
        assert lab.got(name) == ([b"1", b"2"] if name == "r" or kind is None else [b"1"])
        assert [note.seq for note in lab.notes(name, "lost")] == ([3] if kind is None else [])


def _carries_data(dests: str, source: str, dest: str, frame: Frame) -> bool:
    return not isinstance(frame, Data) or (source == "p" and dest in dests)


@pytest.mark.parametrize("kind", [None, "new-log-asks-nobody"])
def test_a_new_log_says_what_there_is_of_a_stream_once_sessions_had_time_to_report(kind: str | None) -> None:
    """l alone had the message on disk, and q delivered it: k must not close the stream without it."""
    logger = mutant(kind) if kind else Logger
    lab = Several(logger=logger, homes={"p": "l", "r": "k"}, gc_rounds=1000)
    lab.run(SHORT)
    there = {"l", "p", "q"}
    lab.carries = lambda source, dest, _frame: (source in there) == (dest in there)
    lab.seats["p"].multicast(b"1")
    lab.run(SHORT)
    assert lab.got("q") == [b"1"]
    lab.fail("p")
    lab.lose_disk("l")
    lab.run(SHORT)
    lab.carries = lambda source, dest, frame: (source, dest) != ("q", "l") or not isinstance(frame, Gossip)
    lab.restart("l")
    lab.run(SECOND)
    ends = {note.seq for name in LOGGERS for note in lab.notes(name, "closed")}
    assert ends == ({1} if kind is None else {0})
    assert lab.got("r") == ([b"1"] if kind is None else [])


def test_what_was_said_of_the_end_is_asked_for_again() -> None:
    lab = Several()
    lab.run(SHORT)
    lab.seats["p"].multicast(b"1")
    lab.run(SHORT)
    lost: list[Frame] = []

    def carries(_source: str, dest: str, frame: Frame) -> bool:
        if isinstance(frame, Closed) and dest == "l" and not lost:
            lost.append(frame)
            return False
        return True

    lab.carries = carries
    lab.fail("p")
    lab.run(SECOND)
    assert lost
    assert [note.seq for note in lab.notes("l", "closed")] == [1]


def test_a_leaver_is_forgotten_by_all_loggers() -> None:
    lab = Several(retention=Retention.STABLE)
    lab.run(SECOND)
    lab.seats["q"].handover.leave()
    lab.seats["q"].run()
    lab.run(SECOND)
    lab.seats["p"].multicast(b"1")
    lab.run(SECOND)
    assert lab.notes("k", "collect")
    assert lab.notes("l", "collect")


def test_rows_that_were_not_shared_are_shared_again() -> None:
    lab = Several()
    heal = lab.stop(Share)
    lab.run(SHORT)
    heal()
    lab.run(SHORT)
    for name in LOGGERS:
        stack = lab.seats[name].stack
        assert isinstance(stack, Logger)
        assert {row.member.name for row in stack.books.rows.all()} == {"p", "q", "r"}


@pytest.mark.parametrize("name", LOGGERS)
def test_messages_are_logged_while_a_logger_is_away(name: str) -> None:
    lab = Several()
    lab.run(SHORT)
    lab.seats[name].crash()
    for number in range(5):
        assert lab.seats["p"].multicast(b"%d" % number) == 1
        lab.run(50 * MILLISECOND)
    lab.run(SHORT)
    assert lab.notes("p", "letgo")
    lab.restart(name)
    lab.run(SECOND)
    assert sum(note.count for note in lab.notes(name, "log")) == 5


def test_who_is_heard_by_another_logger_alone_is_not_silent() -> None:
    """LBRM: q and r send nothing, and report to l, not to k, which decides."""
    for heard in (True, False):
        lab = Several(protocol=Protocol.LBRM, silence=SHORT)
        lab.run(SHORT)
        if not heard:
            lab.stop(Heard)
        lab.run(2 * SECOND)
        assert not lab.notes("k", "closed"), "as long as l has not said whom it hears, nobody is silent"
        assert {lab.seats[name].stack.phase() for name in "pqr"} == {"operational"}
    lab.carries = lambda *_: True
    lab.seats["q"].crash()
    lab.run(SHORT // 2)
    assert not lab.notes("k", "closed")
    lab.run(2 * SHORT)
    assert [note.sender for note in lab.notes("k", "closed")] == [MemberId("q")]


def test_a_restart_at_another_logger_ends_the_former_stream() -> None:
    """Only l hears q, before and after: k learns from it that there is another one."""
    lab = Several(protocol=Protocol.LBRM, silence=SHORT)
    lab.run(SHORT)
    lab.restart("q")
    lab.run(SHORT)
    assert [note.sender for note in lab.notes("k", "closed")] == [MemberId("q")]
    lab.run(2 * SECOND)
    assert lab.seats["q"].stack.phase() == "operational"
    assert len(lab.notes("k", "closed")) == 1
