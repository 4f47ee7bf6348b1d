"""Members that work with a logger if there is one, and without if there is none."""

from collections.abc import Sequence
from random import Random

from tests.protocols.gossiplab import GossipLab

from semcast.core import MemberId, Outbox
from semcast.core.events import Left, Unblocked
from semcast.core.ids import MILLISECOND, SECOND
from semcast.protocols.gossip import GossipSettings, Member, Seeker

SEARCH = 200 * MILLISECOND
PRESENCE = 50 * MILLISECOND


class ShortSeeker(Seeker):
    """With the arguments of any member."""

    def __init__(
        self, me: MemberId, members: Sequence[MemberId], settings: GossipSettings, rng: Random, out: Outbox
    ) -> None:
        super().__init__(me, members, settings, SEARCH, rng, out)


def lab_of(*names: str) -> GossipLab:
    return GossipLab(ShortSeeker, loggers=(), durable=True, presence=PRESENCE, names=names, known=())


def stack_of(lab: GossipLab, name: str) -> Member:
    stack = lab.seats[name].stack
    assert isinstance(stack, Member)
    return stack


def test_with_a_logger_everything_is_logged() -> None:
    lab = lab_of("p", "q", "log")
    lab.run(SECOND)
    assert stack_of(lab, "p").settings.logs
    lab.seats["p"].multicast(b"1")
    lab.run(SECOND)
    assert lab.got("q") == [b"1"]
    assert lab.notes("p", "letgo")


def test_without_a_logger_nothing_waits() -> None:
    lab = lab_of("p", "q")
    lab.run(SEARCH // 2)
    assert lab.seats["p"].stack.phase() == "joining"
    lab.run(SECOND)
    assert lab.seats["p"].stack.phase() == "operational"
    lab.seats["p"].multicast(*(b"%d" % number for number in range(2 * lab.settings.window)))
    lab.run(SECOND)
    assert len(lab.got("p")) == 2 * lab.settings.window
    assert lab.got("q") == lab.got("p")


def test_who_still_looks_for_a_logger_is_counted_by_nobody() -> None:
    """A program that waits for others and then sends would lose what comes before they listen."""
    lab = lab_of("p", "q")
    lab.run(SECOND)
    lab.seats["q"].stack.leave(lab.now)
    lab.run(SECOND)
    q = lab.restart("q")
    lab.run(SEARCH // 2)
    assert q.stack.phase() == "joining"
    assert [member.name for member in lab.seats["p"].stack.view().members] == ["p"]
    lab.run(SEARCH)
    assert len(lab.seats["p"].stack.view().members) == 2
    lab.seats["p"].multicast(b"1", b"2")
    lab.run(SECOND)
    assert lab.got("q") == [b"1", b"2"]


def test_nothing_leaves_before_it_is_known_whether_it_is_logged() -> None:
    lab = lab_of("p", "q")
    assert lab.seats["p"].multicast(b"1") == 0
    lab.run(SECOND)
    assert any(isinstance(each, Unblocked) for each in lab.seats["p"].events)
    assert lab.seats["p"].multicast(b"1") == 1


def test_who_finds_a_logger_sends_as_soon_as_it_is_admitted() -> None:
    """Not when it would have given up looking for one."""
    lab = lab_of("q", "log")
    lab.run(SECOND)
    seat = lab.place(MemberId("p"))
    seat.start()
    assert seat.multicast(b"1") == 0
    lab.run(SEARCH // 4)
    assert any(isinstance(each, Unblocked) for each in seat.events)
    assert seat.multicast(b"1") == 1


def test_who_goes_on_because_a_logger_came_knows_that_logger() -> None:
    """It need not look for it: the period in which others say that they are there is longer than that."""
    lab = GossipLab(ShortSeeker, loggers=(), durable=True, presence=SECOND, names=("q",), known=())
    former = lab.add(MemberId("p"), Seeker(MemberId("p"), (), lab.settings, SEARCH, Random(1), Outbox()))
    former.start()
    lab.run(SECOND)
    lab.place(MemberId("log")).start()
    while not any(isinstance(each, Left) for each in former.events):
        lab.run(MILLISECOND)
    former.crash()
    next_one = former.stack.successor(MemberId("p", 1), Random(1), Outbox())
    assert next_one is not None
    seat = lab.add(MemberId("p", 1), next_one)
    seat.start()
    lab.run(5 * MILLISECOND)
    assert seat.stack.phase() == "operational"
    assert seat.multicast(b"1") == 1
    lab.run(SECOND)
    assert lab.notes("p", "letgo")
