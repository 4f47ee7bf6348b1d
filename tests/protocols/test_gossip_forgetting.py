"""A logger that never comes back, and the others that go on without it (ours: `semcast log forget`)."""

import pytest
from tests.protocols.severallab import LOGGERS, SHORT, Several

from semcast.core import MemberId
from semcast.core.events import Answered, Left
from semcast.core.ids import MILLISECOND, SECOND
from semcast.protocols.gossip import Logger, Member, Protocol, Retention
from semcast.protocols.gossip.data import Data
from semcast.protocols.gossip.frames import Disown, Disowned
from semcast.sim.mutants import MUTANTS


def mutant(name: str) -> type[Logger]:
    return MUTANTS["rpbcast"][name].logger


def forget(lab: Several, by: str, name: str, ticket: int = 0) -> None:
    def do(stack: object, now: int) -> None:
        assert isinstance(stack, Logger)
        stack.forget(now, name, ticket)

    lab.seats[by].call(do)
    lab.flow()


def refused(lab: Several, by: str, name: str) -> str:
    stack = lab.seats[by].stack
    assert isinstance(stack, Logger)
    with pytest.raises(ValueError, match=r".") as found:
        stack.forget(0, name)
    return str(found.value)


def test_collection_goes_on_without_a_forgotten_logger() -> None:
    for logger in (Logger, mutant("forgotten-awaited")):
        lab = Several(logger=logger, retention=Retention.STABLE)
        lab.run(SECOND)
        lab.seats["l"].crash()
        lab.run(SECOND)
        lab.seats["p"].multicast(b"1")
        lab.run(SECOND)
        assert not lab.notes("k", "collect"), "l may need it"
        forget(lab, "k", "l")
        lab.run(SECOND)
        assert bool(lab.notes("k", "collect")) is (logger is Logger)


def test_sessions_of_a_forgotten_logger_have_time_to_come() -> None:
    """q is at home at l, reads nothing, and k never heard of its session: nothing is collected before."""
    lab = Several(retention=Retention.STABLE)
    lab.carries = lambda source, dest, _frame: {source, dest} != {"k", "l"}
    lab.run(SECOND)
    lab.seats["q"].reads = False
    lab.seats["p"].multicast(b"1")
    lab.run(SHORT)
    lab.carries = lambda *_: True
    lab.seats["l"].crash()
    forget(lab, "k", "l")
    lab.run(SECOND)
    assert lab.home("q") == "k"
    assert not lab.notes("k", "collect")
    lab.seats["q"].reads = True
    lab.seats["q"].run()
    lab.run(SECOND)
    assert lab.got("q") == [b"1"]
    assert lab.notes("k", "collect")


def test_members_remind_a_new_log_of_who_is_forgotten() -> None:
    """lbrm 20098: k alone had on disk that l is forgotten, and lost it; l comes back, believed by nobody."""
    lab = Several()
    lab.run(SHORT)
    lab.seats["l"].crash()
    forget(lab, "k", "l")
    lab.run(SHORT)
    lab.lose_disk("k")
    lab.restart("l")
    lab.restart("k")
    lab.run(2 * SECOND)
    assert [note.members for note in lab.notes("k", "forgot")] == [(MemberId("l"),)]
    assert lab.seats["l"].stack.phase() == "left"
    assert lab.home("q") == "k"
    lab.seats["p"].multicast(b"1")
    lab.run(SECOND)
    assert lab.notes("p", "letgo")
    assert lab.got("q") == [b"1"]


def test_a_log_that_is_not_new_forgets_nobody_on_the_word_of_a_member() -> None:
    lab = Several()
    lab.run(2 * SECOND)
    lab.seats["k"].call(lambda stack, now: stack.on_frame(now, MemberId("p"), Disown(["l"])))
    lab.run(SHORT)
    assert not lab.notes("k", "forgot")


def test_who_decided_is_forgotten_and_another_decides() -> None:
    """k froze the stream of p at l, and crashed; r alone, which was at home at k, has what p sent last."""
    lab = Several(homes={"r": "k"})
    lab.run(SHORT)
    lab.carries = lambda source, dest, _frame: source != "p" or dest == "r"
    lab.seats["p"].multicast(b"1")
    lab.flow()
    lab.carries = lambda source, dest, _frame: {source, dest} != {"k", "r"} and "p" not in (source, dest)
    lab.fail("p")
    lab.run(100 * MILLISECOND)
    lab.seats["k"].crash()
    lab.run(SHORT)
    assert not lab.notes("l", "closed")
    forget(lab, "l", "k")
    lab.run(SECOND)
    assert [note.seq for note in lab.notes("l", "closed")] == [1]
    assert lab.got("q") == [b"1"]


@pytest.mark.parametrize("forgotten", [True, False])
@pytest.mark.parametrize("kind", [None, "first-answer-stands"])
def test_who_held_something_is_asked_again(kind: str | None, forgotten: bool) -> None:
    """rpbcast 161218: q said that it has the message, and let go of it, as l had it on disk; l is lost."""
    lab = Several(logger=mutant(kind) if kind else Logger, homes={"q": "k"})
    lab.run(SHORT)
    lab.carries = lambda _source, dest, frame: not (isinstance(frame, Data) and dest in ("k", "r"))
    lab.seats["p"].multicast(b"1")
    lab.flow()
    lab.fail("p")
    lab.run(30 * MILLISECOND)
    assert [note.seq for note in lab.notes("l", "log")] == [1]
    lab.run(SHORT)
    assert not lab.notes("k", "closed"), "l has it, and k does not"
    lab.lose_disk("l")
    if forgotten:
        forget(lab, "k", "l")
    else:
        lab.restart("l")
    lab.carries = lambda *_: True
    lab.run(2 * SECOND)
    assert [note.seq for note in lab.notes("k", "closed")] == ([1] if kind is None else [])
    assert lab.got("q") == [b"1"]
    assert lab.got("r") == []
    lost = [(note.seq, note.level) for note in lab.notes("r", "lost")]
    assert lost == ([(1, "abandoned")] if kind is None else [])


def test_a_session_comes_back_without_the_word_of_a_forgotten_logger() -> None:
    lab = Several()
    lab.run(SHORT)
    lab.seats["l"].crash()
    lab.run(SECOND)
    lab.restart("q")
    lab.run(SHORT)
    assert lab.seats["q"].stack.phase() == "joining", "l may know more of its session"
    forget(lab, "k", "l")
    lab.run(SHORT)
    assert lab.seats["q"].stack.phase() == "operational"


def test_the_forgotten_one_is_refused_for_ever() -> None:
    for logger in (Logger, mutant("forgotten-comes-back")):
        lab = Several(logger=logger)
        lab.run(SHORT)
        lab.seats["l"].crash()
        lab.run(SHORT)
        forget(lab, "k", "l", 7)
        assert Answered(7, "forgotten") in lab.seats["k"].events
        lab.restart("k")
        lab.restart("l")
        lab.run(SHORT)
        ends = [each.cause for each in lab.seats["l"].events if isinstance(each, Left)]
        if logger is Logger:
            assert "k goes on without l: it was forgotten (semcast log forget)" in ends[0]
        else:
            assert not ends


def test_what_only_a_forgotten_logger_has_is_not_logged() -> None:
    """l comes back and acknowledges before anybody tells it: p does not count that."""
    lab = Several()
    lab.run(SHORT)
    lab.seats["l"].crash()
    lab.run(SECOND)
    forget(lab, "k", "l")
    lab.run(SHORT)
    lab.carries = lambda source, dest, _frame: "k" not in (source, dest)
    lab.restart("l")
    lab.run(50 * MILLISECOND)
    lab.seats["p"].multicast(b"1")
    lab.run(SHORT)
    assert lab.notes("l", "log")
    assert not lab.notes("p", "letgo")
    lab.carries = lambda *_: True
    lab.run(SECOND)
    assert lab.notes("p", "letgo")
    assert lab.notes("k", "log")
    assert lab.seats["l"].stack.phase() == "left"


def test_all_that_are_left_have_it_on_disk() -> None:
    """j tells k; the mutant tells nobody."""
    for logger in (Logger, mutant("forgets-alone")):
        lab = Several(logger=logger, loggers=("j", *LOGGERS))
        lab.run(SHORT)
        lab.seats["l"].crash()
        lab.run(SHORT)
        heal = lab.stop(Disowned)
        forget(lab, "j", "l", 7)
        lab.run(SHORT)
        assert Answered(7, "forgotten") not in lab.seats["j"].events, "k has not said that it knows"
        heal()
        lab.run(SHORT)
        assert (Answered(7, "forgotten") in lab.seats["j"].events) is (logger is Logger)
        lab.restart("k")
        stack = lab.seats["k"].stack
        assert isinstance(stack, Logger)
        assert list(stack.books.forgotten) == (["l"] if logger is Logger else [])


def test_a_lost_disk_learns_again_who_is_forgotten() -> None:
    lab = Several(loggers=("j", *LOGGERS))
    lab.run(SHORT)
    lab.seats["l"].crash()
    lab.run(SHORT)
    forget(lab, "j", "l")
    lab.run(SHORT)
    lab.lose_disk("k")
    lab.restart("k")
    lab.run(SECOND)
    stack = lab.seats["k"].stack
    assert isinstance(stack, Logger)
    assert stack.phase() == "operational"
    assert list(stack.books.forgotten) == ["l"]


def test_what_cannot_be_forgotten_is_said() -> None:
    lab = Several(log_acks=2, presence=20 * MILLISECOND)
    lab.run(SHORT)
    assert "itself" in refused(lab, "k", "k")
    assert "no other logger 'x': there are l" in refused(lab, "k", "x")
    assert "l is there: stop it first" in refused(lab, "k", "l")
    lab.seats["l"].crash()
    lab.run(SECOND)
    assert "log_acks is 2, and only 1 would be left" in refused(lab, "k", "l")


def test_members_choose_no_forgotten_logger() -> None:
    lab = Several()
    lab.run(SHORT)
    lab.seats["k"].crash()
    forget(lab, "l", "k")
    lab.run(50 * MILLISECOND)
    stack = lab.seats["p"].stack
    assert isinstance(stack, Member)
    assert not stack.roster.is_logger(MemberId("k"))
    assert lab.home("p") == "l"


@pytest.mark.parametrize("name", ["k", "l"])
def test_a_dead_session_of_a_forgotten_logger_ends(name: str) -> None:
    """q is gone for good, and with it its home: whoever is left ends its session, in its time."""
    left = "l" if name == "k" else "k"
    lab = Several(homes=dict.fromkeys("qr", name), retention=Retention.STABLE, inactive=SECOND)
    lab.run(SHORT)
    lab.seats["q"].crash()
    lab.seats[name].crash()
    lab.seats["p"].multicast(b"1")
    lab.run(3 * SECOND)
    forget(lab, left, name)
    lab.run(SECOND // 2)
    assert not lab.notes(left, "collect"), "q has time to come"
    lab.run(SECOND)
    assert lab.notes(left, "collect")
    assert lab.got("r") == [b"1"]
    assert lab.seats["r"].stack.phase() == "operational"


def test_who_is_at_home_elsewhere_keeps_its_session() -> None:
    """j decides, and hears nothing of q and r but what k says; q reads nothing, and must get it."""
    lab = Several(
        loggers=("j", *LOGGERS),
        homes={"p": "j", "q": "k", "r": "k"},
        protocol=Protocol.LBRM,
        retention=Retention.STABLE,
        inactive=SECOND,
    )
    lab.run(SHORT)
    lab.seats["q"].reads = False
    lab.seats["l"].crash()
    forget(lab, "j", "l")
    lab.seats["p"].multicast(b"1")
    lab.run(4 * SECOND)
    assert not lab.notes("j", "collect")
    lab.seats["q"].reads = True
    lab.seats["q"].run()
    lab.run(SECOND)
    assert lab.got("q") == [b"1"]
    assert lab.notes("j", "collect")
