"""Who is refused may have a session all the same: of a logger that was asked before, and was slow."""

import pytest
from tests.protocols.severallab import Several

from semcast.core import Frame
from semcast.core.events import Left
from semcast.core.ids import MILLISECOND, SECOND
from semcast.protocols.gossip import Logger, Member, Protocol, Retention
from semcast.protocols.gossip.frames import Join, Leave, Share
from semcast.sim.mutants import MUTANTS


def refused(kind: type[Member] = Member, *lost: type[Frame]) -> Several:
    """k admits r, which hears nothing of it; l refuses r, since it has promised not to need what p sent.

    l does not hear r before, and after that nothing of what is to be `lost`.
    """
    lab = Several(
        kind,
        homes={"p": "l", "r": "k"},
        protocol=Protocol.LBRM,
        retention=Retention.STABLE,
        start="position",
    )

    late: list[type[Frame]] = [Join]

    def carries(source: str, dest: str, frame: Frame) -> bool:
        if source == "r" and dest == "l" and isinstance(frame, tuple(late)):
            return False
        return source != "k" or (dest != "r" and not isinstance(frame, Share))

    lab.carries = carries
    lab.run(50 * MILLISECOND)
    lab.seats["p"].multicast(b"1")
    lab.run(SECOND)
    late[:] = lost
    lab.run(3 * SECOND)
    return lab


def causes(lab: Several) -> list[str]:
    return [each.cause for each in lab.seats["r"].events if isinstance(each, Left)]


def sessions(lab: Several, name: str) -> list[str]:
    stack = lab.seats[name].stack
    assert isinstance(stack, Logger)
    return [row.member.name for row in stack.books.rows.all()]


@pytest.mark.parametrize("mutant", [None, "leaves-its-session-behind"])
def test_who_is_refused_leaves_no_session_behind(mutant: str | None) -> None:
    """source 715046: nobody used it, and all logs kept everything for it, until it was inactive for days."""
    kind = Member if mutant is None else MUTANTS["rpbcast"][mutant].stack
    assert kind is not None
    assert issubclass(kind, Member)
    lab = refused(kind)
    [cause] = causes(lab)
    assert "position 0" in cause
    assert ("r" in sessions(lab, "k")) is (mutant is not None)
    lab.carries = lambda *_: True
    lab.run(SECOND)
    for name in "kl":
        assert ("r" in sessions(lab, name)) is (mutant is not None)
        assert bool(lab.notes(name, "collect")) is (mutant is None)


def test_another_logger_may_have_to_end_it() -> None:
    """The one that refused is gone before it is asked: the next one ends the session, and gives no other."""
    lab = refused(Member, Leave)
    assert not causes(lab)
    lab.seats["l"].crash()
    asked: list[str] = []

    def carries(source: str, dest: str, frame: Frame) -> bool:
        asked.extend([dest] if source == "r" and isinstance(frame, Join) else [])
        return True

    lab.carries = carries
    lab.run(SECOND)
    assert not asked
    assert "position 0" in causes(lab)[0]
    assert "r" not in sessions(lab, "k")


def test_it_sends_nothing_while_it_waits_to_leave() -> None:
    lab = refused(Member, Leave)
    assert not causes(lab)
    assert not lab.seats["r"].multicast(b"2")
    lab.carries = lambda *_: True
    lab.run(SECOND)
    assert causes(lab)
    assert lab.got("q") == [b"1"]
