"""Rule 9 of `docs/flow-control.md`: changes of view and programs that stopped, or that wait for a state."""

from random import Random

from tests.protocols.vsync.vsyncflowlab import Program, ProgramLab
from tests.protocols.vsync.vsynclab import MS

from semcast.core import MemberId
from semcast.core.events import Left
from semcast.core.ids import SECOND
from semcast.core.outgoing import Outgoing
from semcast.protocols.vsync import VirtualSynchrony
from semcast.protocols.vsync.readership import UNREAD
from semcast.sim.mutants.programs import ViewsUncounted

Kind = type[VirtualSynchrony]


def renewed(node: Program) -> None:
    """It comes back as another incarnation if the others go on without it."""
    node.seat.turn._renew = lambda member: (MemberId(member.name, member.incarnation + 1), Random(1))


def two_changes(kind: Kind = VirtualSynchrony) -> ProgramLab:
    """c stopped. A crash brings it more than it may have; then somebody joins."""
    lab = ProgramLab(kind, names="abcd", reserve_bytes=0, buffer_messages=5)
    renewed(lab["c"])
    lab["c"].seat.reads = False
    lab["a"].to_publish = 60
    lab.work(1500)
    assert lab["c"].stack.queued() == 1
    lab["d"].alive = False
    lab.work(1500)
    assert lab["a"].views[-1] == ["a", "b", "c"]
    assert lab["c"].stack.queued() > 1
    lab.join("e")
    lab.work(1000)
    return lab


def test_the_others_go_on_without_a_stopped_program_for_which_more_waits_than_may() -> None:
    lab = two_changes()
    a, c = lab["a"], lab["c"]
    assert a.views[-1] == ["a", "b", "e"]
    assert [event.cause for event in c.events if isinstance(event, Left)] == [f"put out: {UNREAD}"]
    assert lab.stuck() == [], "nobody waits for it any more"


def test_it_comes_back_once_its_program_reads_and_not_before() -> None:
    lab = two_changes()
    a, c = lab["a"], lab["c"]
    lab.run(5 * SECOND)
    assert a.views[-1] == ["a", "b", "e"]
    held = c.seat.stack.held_back()
    assert held is not None
    assert (held.by, held.why) == (c.seat.member, UNREAD)
    c.seat.reads = True
    lab.run(SECOND)
    assert a.views[-1] == ["a", "b", "e", "c#1"]


def test_a_program_that_waits_in_send_goes_on_whatever_waits_for_it() -> None:
    """It is told to read first (rule 4), which is enough."""
    lab = ProgramLab(names="abcd", reserve_bytes=0, buffer_messages=5)
    c = lab["c"]
    c.seat.reads = False
    lab["a"].to_publish = 60
    lab.work(300)
    c.seat.handover.wait(reading=True)
    lab["d"].alive = False
    lab.work(1500)
    lab.join("e")
    lab.work(1500)
    assert lab["a"].views[-1] == ["a", "b", "c", "e"]


def test_they_stay_where_too_few_would_be_left() -> None:
    """b, c, d and e stopped: without them a has no majority."""
    lab = ProgramLab(names="abcdefg", reserve_bytes=0, buffer_messages=8)
    for name in "bcde":
        lab[name].seat.reads = False
    lab["a"].to_publish = 60
    lab.work(1500)
    lab["f"].alive = False
    lab.work(1500)
    assert lab["b"].stack._readership.overfull(lab.now)
    lab["g"].leave()
    lab.work(500)
    assert lab["a"].views[-1] == ["a", "b", "c", "d", "e"]


# Those who wait for the state


def with_state(kind: Kind = VirtualSynchrony, names: str = "abc", **given: int) -> ProgramLab:
    lab = ProgramLab(kind, names=names, state=True, **given)
    for name in names:
        lab[name].state = name.encode()
    return lab


def provider_stopped(kind: Kind = VirtualSynchrony) -> ProgramLab:
    """a is asked for the state, and does not read; b would."""
    lab = with_state(kind)
    lab["a"].seat.reads = False
    lab.join("d").state = b"none"
    lab.work(4000)
    return lab


def test_a_provider_that_stopped_is_replaced() -> None:
    lab = provider_stopped()
    assert lab["d"].state == b"b"
    assert lab["d"].views == [["a", "b", "c", "d"]]


def test_where_all_stopped_who_reads_first_is_asked_and_views_do_not_change_meanwhile() -> None:
    lab = with_state()
    for name in "abc":
        lab[name].seat.reads = False
    lab.join("d").state = b"none"
    lab.work(10_000)
    assert lab["d"].state == b"none"
    assert lab["d"].stack.view().id <= 5, "one change for each who found out that it had stopped"
    before = lab["d"].stack.view().id
    lab["c"].seat.reads = True
    lab.work(1000)
    assert lab["d"].state == b"c"
    assert lab["d"].stack.view().id == before + 1


def unequal_reserves(kind: Kind = VirtualSynchrony) -> ProgramLab:
    """a's program waits in `send` for room that d has none of; d waits for the state of just that program."""
    lab = with_state(kind, names="ab", buffer_messages=4, reserve_bytes=1 << 20)
    lab["b"].seat.reads = False
    a = lab["a"]
    lab.given["reserve_bytes"] = 0
    a.seat.reads = False
    d = lab.join("d")
    d.state = b"none"
    while d.stack.view().id < 2:
        lab.work(1)
    for _ in range(20):
        a.seat.send_or_wait(Outgoing([b"x"]))
    a.seat.reads = True
    lab["b"].seat.reads = True
    lab.work(8000)
    return lab


def test_who_waits_for_a_state_gives_up_when_its_reserve_is_full() -> None:
    lab = unequal_reserves()
    assert lab.stuck() == []
    assert lab["d"].state in (b"a", b"b")
    assert lab["d"].views == [["a", "b", "d"]]


# Views that nobody takes


class Careless(Program):
    """Views do not count for its hand-over."""

    handover_kind = ViewsUncounted


def many_views(kind: type[Program]) -> tuple[int, bool]:
    """x sends and never reads again, while y comes and goes: how many lists lie in its mailbox at the end.

    And whether it is still in the group.
    """
    lab = ProgramLab(names="abc", reserve_bytes=0, queue_messages=8, buffer_messages=8)
    x = lab.join("x", kind=kind)
    lab.run(SECOND)
    x.seat.reads = False
    for number in range(12):
        y = lab.nodes["y"] = lab.add("y", number + 1, kind=Program, **{**lab.given, "minimum": 0})
        for _ in range(20):
            x.multicast(b"x")
            lab.run(40 * MS)
        y.leave()
        lab.run(300 * MS)
    mailbox = x.seat.handover.mailbox
    return len(mailbox.lists), x.stack.phase() != "left"


def test_views_that_a_program_does_not_take_are_bounded_though_it_sends() -> None:
    lists, stays = many_views(Program)
    assert lists <= 8 + 4
    assert not stays, "the others went on without it"


def test_views_that_do_not_count_pile_up() -> None:
    lists, stays = many_views(Careless)
    assert lists > 8 + 4
    assert stays
