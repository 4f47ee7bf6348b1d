"""Members that are away, and say so or do not (Sun 2000, 5.3: the states that it leaves out)."""

import pytest
from tests.protocols.gossiplab import GossipLab
from tests.protocols.severallab import Several

from semcast.core import MemberId
from semcast.core.events import Away, Back
from semcast.core.ids import MILLISECOND, SECOND
from semcast.lab.seat import Seat
from semcast.protocols.gossip import Logger, Member, Retention
from semcast.protocols.gossip.frames import Gossip, Inquire, Report
from semcast.sim.mutants import MUTANTS

PRESENCE = 50 * MILLISECOND


def go(seat: Seat) -> None:
    seat.call(lambda stack, now: stack.disconnect(now) if isinstance(stack, Member) else None)


def come_back(seat: Seat) -> None:
    seat.call(lambda stack, now: stack.reconnect(now) if isinstance(stack, Member) else None)


def test_who_says_that_it_goes_is_asked_nothing_and_owed_everything() -> None:
    lab = GossipLab(presence=PRESENCE, retention=Retention.STABLE)
    lab.run(SECOND)
    go(lab.seats["r"])
    lab.run(20 * MILLISECOND)
    assert MemberId("r") not in lab.seats["p"].stack.view().members
    assert any(isinstance(event, Away) for event in lab.seats["r"].events)
    said: list[object] = []

    def carries(source: str, dest: str, frame: object) -> bool:
        if "r" in (source, dest):
            said.append(frame)
        return "r" not in (source, dest)

    lab.carries = carries
    lab.seats["p"].multicast(b"1", b"2")
    lab.run(SECOND)
    assert not any(isinstance(frame, Gossip | Report) for frame in said)
    assert not lab.notes("log", "collect"), "r has not got them"
    lab.carries = lambda *_: True
    come_back(lab.seats["r"])
    lab.run(SECOND)
    assert lab.got("r") == [b"1", b"2"]
    assert any(isinstance(event, Back) for event in lab.seats["r"].events)
    assert MemberId("r") in lab.seats["p"].stack.view().members
    assert lab.notes("log", "collect")


def test_a_stream_is_closed_without_who_said_that_it_goes() -> None:
    """Its logger does not wait until the lease is over."""
    lab = GossipLab(presence=PRESENCE, report=5 * SECOND)
    lab.run(SECOND)
    go(lab.seats["r"])
    lab.run(20 * MILLISECOND)
    asked: list[str] = []

    def carries(_source: str, dest: str, frame: object) -> bool:
        if isinstance(frame, Inquire):
            asked.append(dest)
        return dest != "r"

    lab.carries = carries
    lab.crash("p")
    lab.run(SECOND)
    assert "q" in asked
    assert "r" not in asked


def cut_off(lab: GossipLab, *parts: str) -> None:
    """Members hear each other in these parts only, each a word of names."""
    groups = [set(part.split()) for part in parts]
    lab.carries = lambda source, dest, _frame: any({source, dest} <= group for group in groups)


@pytest.mark.parametrize("logger", [Logger, MUTANTS["rpbcast"]["closes-while-cut-off"].logger])
def test_a_logger_that_hears_nobody_closes_nothing(logger: type[Logger]) -> None:
    """rpbcast 1071: q has what a sender sent before it crashed, and the logger, cut off, did not ask it."""
    lab = GossipLab(logger=logger)
    lab.run(SECOND)
    cut_off(lab, "p q", "r", "log")
    lab.seats["p"].multicast(b"1")
    lab.run(100 * MILLISECOND)
    lab.crash("p")
    lab.run(20 * lab.settings.report)
    assert bool(lab.notes("log", "closed")) is (logger is not Logger)
    cut_off(lab, "q r log")
    lab.run(20 * lab.settings.report)
    assert lab.notes("log", "closed")
    assert lab.got("q") == [b"1"]
    assert bool(lab.got("r")) is (logger is Logger)


@pytest.mark.parametrize("logger", [Logger, MUTANTS["rpbcast"]["closes-while-cut-off"].logger])
def test_a_logger_that_heard_nobody_takes_nobody_for_silent(logger: type[Logger]) -> None:
    """The sender was there all the time: its stream goes on."""
    lab = GossipLab(logger=logger, silence=SECOND, inactive=SECOND)
    lab.run(SECOND)
    cut_off(lab, "p q r", "log")
    lab.seats["p"].multicast(b"1")
    lab.run(5 * SECOND)
    cut_off(lab, "p q r log")
    lab.run(5 * SECOND)
    stack = lab.seats["p"].stack
    assert isinstance(stack, Member)
    assert (stack.phase() == "operational" and stack.sender.logged == 1) is (logger is Logger)


@pytest.mark.parametrize("logger", [Logger, MUTANTS["sessions"]["expects-the-dead"].logger])
def test_a_dead_session_does_not_make_its_logger_deaf(logger: type[Logger]) -> None:
    """Sessions 540147: k has the session of p alone, and hears q and r only when they gossip with it."""
    lab = Several(logger=logger, report=20 * MILLISECOND, gossip_period=20 * MILLISECOND, inactive=SECOND)
    lab.run(SECOND)
    assert (lab.home("p"), lab.home("q"), lab.home("r")) == ("k", "l", "l")
    gone = lab.seats["p"].member
    lab.seats["p"].crash()
    lab.run(900 * MILLISECOND)
    assert not lab.notes("k", "dismissed"), "p has time to come back"
    lab.run(5 * SECOND)
    for name in lab.loggers:
        ended = [note.members for note in lab.notes(name, "dismissed")]
        assert ended == ([(gone,)] if logger is Logger else [])


def test_a_logger_that_is_cut_off_waits_for_who_was_heard_to_the_last() -> None:
    """p was dead by then, and counts as silent from the beginning again; q and r are there."""
    lab = Several(silence=SECOND, inactive=SECOND, homes=dict.fromkeys("pqr", "k"))
    lab.run(SECOND)
    lab.seats["p"].crash()
    lab.run(SECOND // 2)
    lab.carries = lambda source, dest, _frame: "k" not in (source, dest)
    lab.run(SECOND)
    assert not lab.notes("k", "dismissed")
    lab.carries = lambda *_: True
    lab.run(4 * SECOND)
    assert [note.members for note in lab.notes("k", "dismissed")] == [(MemberId("p"),)]


def test_one_that_is_there_is_enough_to_close_a_stream() -> None:
    """Who is cut off may be away for days: others are not to wait for it."""
    lab = GossipLab()
    lab.run(SECOND)
    lab.seats["p"].multicast(b"1")
    cut_off(lab, "p r", "q log")
    lab.crash("p")
    lab.run(20 * lab.settings.report)
    assert lab.notes("log", "closed")


def test_what_is_owed_to_who_is_away_is_not_collected() -> None:
    """And the mutant that forgets whoever does not report."""
    mutant: type[Logger] = MUTANTS["rpbcast"]["disconnected-forgotten"].logger
    for logger in (Logger, mutant):
        lab = GossipLab(logger=logger, retention=Retention.STABLE)
        lab.run(SECOND)
        go(lab.seats["r"])
        lab.carries = lambda source, dest, _frame: "r" not in (source, dest)
        lab.seats["p"].multicast(b"1")
        lab.run(SECOND)
        lab.carries = lambda *_: True
        come_back(lab.seats["r"])
        lab.run(SECOND)
        assert lab.got("r") == ([b"1"] if logger is Logger else [])


def test_what_is_sent_while_away_is_logged_afterwards() -> None:
    lab = GossipLab()
    lab.run(SECOND)
    go(lab.seats["p"])
    lab.carries = lambda source, dest, _frame: "p" not in (source, dest)
    lab.seats["p"].multicast(b"1")
    lab.run(SECOND)
    lab.carries = lambda *_: True
    come_back(lab.seats["p"])
    lab.run(SECOND)
    assert lab.got("q") == [b"1"]
    assert lab.notes("p", "letgo")


def test_who_finds_no_logger_is_told_so_and_again_when_there_is_one() -> None:
    lab = GossipLab(names=("p", "r"), known=(), loggers=(), durable=True, presence=PRESENCE)
    lab.run(SECOND)
    events = lab.seats["r"].events
    assert [type(each) for each in events if isinstance(each, Away | Back)] == [Away]
    assert lab.seats["r"].stack.phase() == "joining"
    lab.place(MemberId("log")).start()
    lab.run(SECOND)
    assert [type(each) for each in events if isinstance(each, Away | Back)] == [Away, Back]
    assert lab.seats["r"].stack.phase() == "operational"


def test_without_loggers_nobody_is_away() -> None:
    lab = GossipLab(loggers=())
    lab.run(SECOND)
    go(lab.seats["r"])
    come_back(lab.seats["r"])
    lab.run(SECOND)
    assert not any(isinstance(event, Away) for event in lab.seats["r"].events)
