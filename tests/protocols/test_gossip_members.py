"""Who is there: members that find each other, and loggers that say what they are (Sun 2000, 5.3)."""

from random import Random
from typing import Any

import pytest
from tests.protocols.gossiplab import NAMES, GossipLab
from tests.protocols.severallab import SHORT, Several

from semcast.core import MemberId, Outbox
from semcast.core.events import ViewChange
from semcast.core.ids import MILLISECOND, SECOND
from semcast.lab import Keeper
from semcast.lab.seat import Seat
from semcast.protocols.gossip import GossipSettings, Logger, Member, Protocol
from semcast.protocols.gossip.frames import Members, Presence, Standing
from semcast.protocols.gossip.members import Roster
from semcast.protocols.gossip.peers import Peers

PRESENCE = 50 * MILLISECOND
EVERYBODY = tuple(sorted(MemberId(name) for name in NAMES))


class Strangers(GossipLab):
    """Members that begin with nobody but themselves."""

    def __init__(self, **given: Any) -> None:
        durable = given.get("protocol") is not Protocol.PBCAST
        super().__init__(
            **{"loggers": (), "durable": durable, "presence": PRESENCE, **given}, names=NAMES, known=()
        )

    def view(self, name: str) -> tuple[MemberId, ...]:
        """Who is there, as a member has it."""
        return self.seats[name].stack.view().members

    def told(self, name: str) -> list[ViewChange]:
        """The views that a program was given after the first."""
        application = self.seats[name].application
        assert isinstance(application, Keeper)
        return [each for each in application.taken if isinstance(each, ViewChange)]


def stack_of(seat: Seat) -> Member:
    assert isinstance(seat.stack, Member)
    return seat.stack


def test_strangers_find_each_other_and_their_logger() -> None:
    lab = Strangers()
    assert lab.view("p") == (MemberId("p"),)
    lab.run(SECOND)
    assert {lab.view(name) for name in NAMES} == {EVERYBODY}
    assert stack_of(lab.seats["p"]).session.logger == MemberId("log")
    lab.seats["p"].multicast(b"1")
    lab.run(SECOND)
    assert lab.got("q") == lab.got("r") == [b"1"]
    assert lab.notes("p", "letgo")


def test_without_a_logger_strangers_find_each_other() -> None:
    for protocol in (Protocol.PBCAST, Protocol.RPBCAST):
        lab = GossipLab(loggers=(), protocol=protocol, presence=PRESENCE, known=())
        lab.run(SECOND)
        lab.seats["p"].multicast(b"1")
        lab.run(SECOND)
        assert lab.got("q") == lab.got("r") == [b"1"]


def test_nobody_is_admitted_before_there_is_a_logger() -> None:
    lab = Strangers()
    lab.seats["log"].crash()
    lab.run(SECOND)
    assert lab.seats["p"].stack.phase() == "joining"
    lab.restart("log")
    lab.run(SECOND)
    assert lab.seats["p"].stack.phase() == "operational"


def test_who_was_not_heard_is_known_by_gossip() -> None:
    """r never hears p, and knows it all the same."""
    lab = Strangers()
    lab.carries = lambda source, dest, _frame: (source, dest) != ("p", "r")
    lab.run(SECOND)
    assert MemberId("p") in lab.view("r")


def test_the_silent_are_forgotten_as_targets_and_still_owed() -> None:
    lab = Strangers()
    lab.run(SECOND)
    lab.carries = lambda source, dest, _frame: "r" not in (source, dest)
    lab.seats["p"].multicast(b"1")
    lab.run(SECOND)
    assert lab.view("p") == tuple(member for member in EVERYBODY if member.name != "r")
    assert [change.failed for change in lab.told("p")][-1] == (MemberId("r"),)
    lab.carries = lambda *_: True
    lab.run(SECOND)
    assert lab.view("p") == EVERYBODY
    assert lab.got("r") == [b"1"]


def test_hearsay_keeps_nobody_alive() -> None:
    """Entries grow old on their way."""
    settings = GossipSettings(presence=PRESENCE, durable=True)
    roster = Roster(MemberId("a"), (), settings, Peers((), settings.choice, Random(0)))
    roster.start(0)
    roster.learn(0, [(MemberId("z"), Standing.MEMBER, 100)])
    assert MemberId("z") in roster.view().members
    roster.look(PRESENCE)
    [told] = roster.lists(PRESENCE)
    assert {member: age for member, _, age in told.known}[MemberId("z")] == 150
    roster.learn(PRESENCE, [(MemberId("y"), Standing.MEMBER, 200)])
    roster.look(2 * PRESENCE)
    assert roster.view().members == (MemberId("a"),)


def test_who_says_goodbye_is_gone_at_once_and_for_all() -> None:
    lab = Strangers()
    lab.run(SECOND)
    lab.carries = lambda source, dest, frame: not (isinstance(frame, Presence) and dest == "r")
    lab.seats["p"].handover.leave()
    lab.seats["p"].run()
    lab.run(60 * MILLISECOND)
    assert MemberId("p") not in lab.view("q")
    assert lab.told("q")[-1].left == (MemberId("p"),)
    lab.run(100 * MILLISECOND)
    assert MemberId("p") not in lab.view("r"), "q knows it, and says so"


def test_another_incarnation_takes_the_place_of_the_one_before() -> None:
    lab = Strangers()
    lab.run(SECOND)
    lab.restart("r")
    lab.run(SECOND)
    [change] = lab.told("p")[-1:]
    assert change.joined == (MemberId("r", 1),)
    assert change.left == (MemberId("r"),)
    lab.restart("log")
    lab.run(SECOND)
    assert stack_of(lab.seats["p"]).session.logger == MemberId("log", 1)


def test_a_name_that_is_set_decides_who_is_a_logger() -> None:
    """Whoever else says so is not believed."""
    lab = Strangers(loggers=("log",))
    lab.run(SECOND)
    lab.seats["p"].hear(MemberId("q"), Presence(Standing.LOGGER))
    assert set(stack_of(lab.seats["p"]).roster.loggers()) == {"log"}


def test_nobody_makes_a_member_know_too_many() -> None:
    settings = GossipSettings(presence=PRESENCE)
    roster = Roster(MemberId("a"), (), settings, Peers((), settings.choice, Random(0)))
    for number in range(100):
        roster.learn(0, [(MemberId(f"{number}.{each}"), Standing.MEMBER, 0) for each in range(100)])
    assert len(roster.view().members) == 8192
    assert not roster.heard(0, MemberId("z"))
    assert len(roster.lists(0)) == 4


def test_a_view_waits_for_own_messages_that_name_the_one_before() -> None:
    lab = Strangers()
    lab.run(SECOND)
    lab.seats["p"].reads = False
    lab.seats["p"].multicast(b"1")
    before = len(lab.told("p"))
    lab.restart("r")
    lab.run(SECOND)
    lab.seats["p"].reads = True
    lab.seats["p"].run()
    lab.run(SECOND)
    assert len(lab.told("p")) > before
    application = lab.seats["p"].application
    assert isinstance(application, Keeper)
    taken = application.taken
    assert taken.index(lab.told("p")[-1]) > [getattr(each, "payloads", None) for each in taken].index([b"1"])


def test_strangers_need_a_presence_period() -> None:
    me, settings = MemberId("a"), GossipSettings()
    with pytest.raises(ValueError, match="fixed"):
        Member(me, (), settings, Random(0), Outbox())
    with pytest.raises(ValueError, match="presence"):
        GossipSettings(durable=True)
    with pytest.raises(ValueError, match="durable"):
        Logger(me, (me,), settings, Random(0), Outbox())


def test_lists_fit_into_any_frame() -> None:
    settings = GossipSettings(presence=PRESENCE)
    roster = Roster(MemberId("a"), (), settings, Peers((), settings.choice, Random(0)))
    roster.learn(0, [(MemberId(f"{number}".ljust(64, "-")), Standing.MEMBER, 0) for number in range(200)])
    assert all(isinstance(part, Members) and len(part.known) < 12 for part in roster.lists(0))


def test_a_logger_that_is_stopped_says_so() -> None:
    """Members go to another one at once, and not when three reports were in vain."""
    lab = Several(presence=SECOND, report=SECOND)
    lab.run(3 * SECOND)
    q = lab.seats["q"]
    assert isinstance(q.stack, Member)
    assert q.stack.session.logger == MemberId("l")
    assert not q.stack.leaves_unheard()
    for name, left in (("l", "k"), ("k", None)):
        lab.seats[name].call(lambda stack, now: stack.leave(now))
        lab.run(SHORT)
        if left is not None:
            assert q.stack.session.logger == MemberId(left)
        assert q.stack.leaves_unheard() is (left is None)
