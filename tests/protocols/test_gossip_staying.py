"""Sessions that go on when their member stops, and names that two have at once."""

from tests.protocols.gossiplab import GossipLab

from semcast.core import MemberId
from semcast.core.events import Left
from semcast.core.ids import MILLISECOND, SECOND
from semcast.protocols.gossip.frames import Idle


def left(lab: GossipLab, name: str) -> list[str]:
    return [each.cause for each in lab.seats[name].events if isinstance(each, Left)]


def test_a_session_that_stays_is_owed_what_comes() -> None:
    lab = GossipLab(stays=True)
    lab.run(SECOND)
    lab.seats["q"].call(lambda stack, now: stack.leave(now))
    lab.run(SECOND)
    assert left(lab, "q") == ["asked to"]
    assert lab.notes("q", "detached")
    lab.seats["p"].multicast(b"1")
    lab.run(SECOND)
    lab.seats["q"].crash()
    lab.restart("q")
    lab.run(SECOND)
    assert lab.got("q") == [b"1"]


def test_who_began_first_yields_to_who_has_its_name() -> None:
    lab = GossipLab()
    lab.run(SECOND)
    lab.seats["q"].hear(MemberId("q", 7), Idle(0))
    assert left(lab, "q") == ["q#7 has the same name, and began later: a name stands for one process"]
    assert lab.notes("q", "detached"), "its session goes on, with the other"


def test_a_late_word_of_a_former_incarnation_changes_nothing() -> None:
    lab = GossipLab()
    lab.run(SECOND)
    lab.restart("q").hear(MemberId("q"), Idle(0))
    lab.run(SECOND)
    assert left(lab, "q") == []


def test_what_was_acknowledged_last_counts_for_who_comes_next() -> None:
    """Though the disk has yet to sync it when the next incarnation asks to be admitted."""
    lab = GossipLab(stays=True, report=10 * SECOND)
    lab.run(SECOND)
    lab.seats["p"].multicast(b"1")
    lab.run(SECOND)
    assert lab.got("q") == [b"1"]
    lab.seats["log"].sync_after = 50 * MILLISECOND
    lab.seats["q"].call(lambda stack, now: stack.leave(now))
    lab.run(MILLISECOND)
    lab.seats["q"].crash()
    lab.restart("q")
    lab.run(SECOND)
    assert lab.got("q") == []
