"""Agreed views with disks: what is promised is remembered, and what the dead knew makes others wait."""

import pytest
from tests.protocols.vsync.test_vsync_life import STATE, Stateful, kill, restart, state_of, view_of
from tests.protocols.vsync.vsynclab import MS, Lab, Node

from semcast.core import Batch, Frame, MemberId
from semcast.core.events import Delivery, Left
from semcast.core.ids import SECOND
from semcast.lab import Disk
from semcast.protocols.vsync import Order, VsyncSettings
from semcast.protocols.vsync.consensus_frames import Ack
from semcast.protocols.vsync.detector import FailureDetector
from semcast.protocols.vsync.frames import Accept, Accepted, Hello, Prepare, Promise, Welcome


def with_disks(names: str = "abc", sync: int = 0) -> Lab:
    """A group whose members have disks, and the state."""
    lab = Lab()
    for name in names:
        lab.disks[name] = Disk()
        node = lab.add(name, kind=Stateful, minimum=len(names) // 2 + 1, state=True)
        node.seat.sync_after = sync
    lab.run(SECOND)
    lab.nodes[names[0]].multicast(*STATE)
    lab.run(100 * MS)
    return lab


def crash(lab: Lab, *names: str) -> None:
    for name in names:
        lab.nodes[name].seat.crash()


@pytest.mark.parametrize("sync", [0, 5 * MS, 30 * MS])
def test_a_group_with_slow_disks_works_as_any_other(sync: int) -> None:
    lab = with_disks(sync=sync)
    assert set(lab.phases().values()) == {"operational"}
    crash(lab, "b")
    lab.run(SECOND)
    assert view_of(lab.nodes["a"]) == {"a", "c"}
    restart(lab, "b")
    lab.run(SECOND)
    assert view_of(lab.nodes["b"]) == {"a", "b#1", "c"}
    assert state_of(lab.nodes["b"]) == STATE


def test_who_enters_a_view_late_because_of_its_disk_is_not_put_out() -> None:
    """It lives, though it is not heard in the view: its disk takes longer than it may be silent."""
    lab = with_disks()
    lab.run(3 * SECOND)
    a, c = lab.nodes["a"], lab.nodes["c"]
    c.seat.sync_after = 120 * MS
    detector = a.stack._detector
    assert isinstance(detector, FailureDetector)
    assert detector.timeout(c.member) < 100 * MS
    lab.disks["d"] = Disk()
    lab.add("d", kind=Stateful, minimum=0, state=True)
    lab.run(2 * SECOND)
    assert [event for event in c.events if isinstance(event, Left)] == []
    assert a.views == c.views == [["a", "b", "c"], ["a", "b", "c", "d"]]


def test_who_never_comes_to_a_view_is_put_out_of_it() -> None:
    lab = with_disks()
    c = lab.nodes["c"]
    c.seat.sync_after = None
    lab.disks["d"] = Disk()
    lab.add("d", kind=Stateful, minimum=0, state=True)
    lab.run(2 * SECOND)
    assert view_of(lab.nodes["a"]) == view_of(lab.nodes["d"]) == {"a", "b", "d"}


@pytest.mark.parametrize("joiner_dies", [False, True])
def test_a_lone_member_leaves_while_it_writes_down_its_next_view(joiner_dies: bool) -> None:
    """It hands the group over to who joins; leaving at once ended the process with an error."""
    lab = with_disks("a")
    a = lab.nodes["a"]
    a.seat.sync_after = None
    lab.disks["d"] = Disk()
    d = lab.add("d", kind=Stateful, minimum=0, state=True)
    lab.run(200 * MS)
    assert a.stack.phase() == "flushing"
    a.leave()
    lab.run(100 * MS)
    assert a.stack.phase() == "flushing"
    if joiner_dies:
        crash(lab, "d")
    a.seat.sync_after = 0
    a.seat.finish_sync()
    lab.run(3 * SECOND)
    assert a.stack.phase() == "left"
    assert joiner_dies or (view_of(d) == {"d"} and state_of(d) == STATE)


def test_nothing_is_promised_before_it_is_on_the_disk() -> None:
    lab = Lab()
    said: list[str] = []

    def note(source: str, _dest: str, frame: Frame) -> bool:
        if source == "b" and isinstance(frame, Promise | Accepted):
            said.append(type(frame).__name__)
        return False

    lab.lost = note
    for name in "ab":
        lab.disks[name] = Disk()
        lab.add(name, minimum=2)
    b = lab.nodes["b"]
    b.seat.sync_after = None
    lab.run(500 * MS)
    assert said == []
    assert not lab.nodes["a"].views
    while not lab.nodes["a"].views:
        if lab.disks["b"].syncing:
            b.seat.finish_sync()
        lab.run(MS)
    assert {*said} == {"Promise", "Accepted"}


def test_who_agrees_to_a_view_says_so_once_that_is_on_the_disk() -> None:
    lab = with_disks()
    b, c = lab.nodes["b"], lab.nodes["c"]
    acked: list[str] = []

    def note(source: str, _dest: str, frame: Frame) -> bool:
        if isinstance(frame, Ack):
            acked.append(source)
        return False

    lab.lost = note
    b.seat.sync_after = c.seat.sync_after = None
    lab.add("d", kind=Stateful, minimum=0, state=True)
    lab.run(SECOND)
    assert acked == []
    assert lab.nodes["a"].stack.view().id == 1
    b.seat.finish_sync()
    lab.run(50 * MS)
    assert "b" in acked
    assert lab.nodes["a"].stack.view().id == 2


def test_all_crash_and_the_group_goes_on_and_says_that_the_state_is_lost() -> None:
    lab = with_disks()
    crash(lab, *"abc")
    lab.run(SECOND)
    restart(lab, "a", "b")
    lab.run(3 * SECOND)
    assert lab.phases() == {"a": "joining", "b": "joining"}, "c may have what nobody else has"
    held = lab.nodes["a"].stack.held_back()
    assert held is not None
    assert str(held.by) == "c"
    restart(lab, "c")
    lab.run(3 * SECOND)
    views = {node.stack.view() for node in lab.nodes.values()}
    assert len(views) == 1
    view = views.pop()
    assert (view.id, view.reformed) == (1_000_000, 1)
    for node in lab.nodes.values():
        assert isinstance(node, Stateful)
        assert [lost.view for lost in node.lost] == [1_000_000]
        assert node.multicast(b"x")


def test_all_crash_again_while_they_agree_on_the_view_after_the_last() -> None:
    """What they accepted names incarnations that are gone: it counts as a view, and another follows."""
    lab = with_disks()
    crash(lab, *"abc")
    lab.run(SECOND)
    lab.lost = lambda _source, _dest, frame: isinstance(frame, Accepted)
    restart(lab, *"abc")
    lab.run(SECOND)
    assert set(lab.phases().values()) == {"joining"}
    crash(lab, *"abc")
    lab.run(SECOND)
    lab.lost = lambda _source, _dest, _frame: False
    restart(lab, *"abc", incarnation=2)
    lab.run(5 * SECOND)
    views = {node.stack.view() for node in lab.nodes.values()}
    assert len(views) == 1
    assert {str(member) for member in views.pop().members} == {"a#2", "b#2", "c#2"}


def test_many_who_crashed_at_once_agree_though_their_disks_are_slow() -> None:
    """An attempt takes two syncs of everybody: those who try meanwhile must give it the time."""
    names = "abcdefghijkl"
    lab = with_disks(names)
    crash(lab, *names)
    lab.run(SECOND)
    for name in names:
        lab.add(name, 1, kind=Stateful, minimum=7, state=True).seat.sync_after = 80 * MS
    lab.run(15 * SECOND)
    assert set(lab.phases().values()) == {"operational"}
    assert len({node.stack.view() for node in lab.nodes.values()}) == 1


def test_who_promised_is_in_the_view_that_is_founded_however_long_its_disk_took() -> None:
    """Seed 316: the first view had fewer members than found a group; when they left, the rest waited."""
    lab = Lab()
    asked: list[str] = []

    def lost(source: str, _dest: str, frame: Frame) -> bool:
        if isinstance(frame, Prepare):
            asked.append(source)
        return isinstance(frame, Hello) and (source == "a" or bool(asked))  # so b does not try itself

    lab.lost = lost
    lab.disks["b"] = Disk()
    a, b = lab.add("a", minimum=2), lab.add("b", minimum=2)
    b.seat.sync_after = 250 * MS
    lab.run(10 * SECOND)
    assert a.views[0] == ["a", "b"]


class Unwelcomed:
    """View 3 lets a#1 in; it has not heard so when the others crash, who come back and know view 3."""

    def __init__(self) -> None:
        self.lab = lab = with_disks()
        self.welcomes: list[Welcome] = []  # that were sent to a#1
        self.said: list[Frame] = []  # by a#1, or the one after it
        self.withheld: tuple[type[Frame], ...] = (Welcome,)  # from a#1
        lab.lost = self._lost
        crash(lab, "a")
        lab.run(SECOND)
        restart(lab, "a")
        while not self.welcomes:
            lab.run(MS)
        crash(lab, "b", "c")
        assert lab.nodes["a"].stack.phase() == "joining"

    def _lost(self, source: str, dest: str, frame: Frame) -> bool:
        if isinstance(frame, Welcome) and dest == "a":
            self.welcomes.append(frame)
        if source == "a":
            self.said.append(frame)
        return (dest == "a" and isinstance(frame, self.withheld)) or (
            source == "a" and isinstance(frame, Prepare)
        )

    def welcome_late(self) -> None:
        """What a member of view 3 sent before it crashed arrives."""
        self.lab.nodes["a"].hear(MemberId("b"), self.welcomes[0])

    def one_group(self) -> bool:
        views = {node.stack.view() for node in self.lab.nodes.values() if node.alive}
        return len(views) == 1 and set(self.lab.phases().values()) == {"operational"}


def test_who_writes_down_its_entry_into_a_view_takes_no_part_in_founding_the_next() -> None:
    """A promise says that nobody is in the last view; who is about to be in it says nothing."""
    late = Unwelcomed()
    lab, a = late.lab, late.lab.nodes["a"]
    a.seat.sync_after = None
    late.welcome_late()
    late.said.clear()
    restart(lab, "b", "c")
    lab.run(SECOND)
    assert a.stack.phase() == "joining"
    assert late.said == [], "neither that it is in no view, nor a promise"
    a.seat.sync_after = 0
    a.seat.finish_sync()
    lab.run(MS)
    assert view_of(a) == {"b", "c", "a#1"}
    assert not any(isinstance(frame, Promise | Accepted) for frame in late.said)
    late.withheld = ()
    lab.run(5 * SECOND)
    assert late.one_group()
    assert view_of(a) == {"a#1", "b#1", "c#1"}


def test_who_promised_what_comes_after_a_view_never_enters_it_though_a_welcome_comes_late() -> None:
    """Else it would be in the view, and the others in one after it that they agreed on with its promise."""
    late = Unwelcomed()
    lab, a = late.lab, late.lab.nodes["a"]
    late.withheld = (Welcome, Accept)
    restart(lab, "b", "c")
    lab.run(600 * MS)
    a.seat.sync_after = None
    late.welcome_late()
    late.withheld = ()
    lab.run(500 * MS)
    a.seat.sync_after = 0
    if lab.disks["a"].syncing:
        a.seat.finish_sync()
    lab.run(MS)
    promised = any(isinstance(frame, Promise | Accepted) for frame in late.said)
    assert not (promised and view_of(a) == {"b", "c", "a#1"})


def test_who_is_let_into_a_view_of_the_dead_comes_back_as_another() -> None:
    """Nobody is left to welcome it, and it cannot vouch that it never enters: its successor can."""
    late = Unwelcomed()
    lab, a = late.lab, late.lab.nodes["a"]
    restart(lab, "b", "c")
    lab.run(600 * MS)
    assert Left("put out: nobody is left in its view", again=True) in a.events
    assert not any(isinstance(frame, Promise) for frame in late.said)
    late.withheld = ()
    restart(lab, "a", incarnation=2)
    lab.run(3 * SECOND)
    assert late.one_group()
    assert view_of(lab.nodes["a"]) == {"a#2", "b#1", "c#1"}


def test_a_file_that_tells_of_a_later_view_makes_a_survivor_wait_for_who_was_in_it() -> None:
    """c is cut off in view 1; a and b let d in, and crash: c alone does not know of view 2 and of d."""
    lab = with_disks()
    lab.lost = lambda source, dest, _frame: "c" in (source, dest)
    lab.run(SECOND)
    lab.disks["d"] = Disk()
    lab.add("d", kind=Stateful, minimum=0, state=True)
    lab.run(SECOND)
    assert view_of(lab.nodes["d"]) == {"a", "b", "d"}
    lab.nodes["d"].multicast(b"later")
    lab.run(100 * MS)
    crash(lab, "a", "b")
    lab.lost = lambda source, dest, _frame: "d" in (source, dest)
    restart(lab, "a", "b")
    lab.run(3 * SECOND)
    assert lab.nodes["c"].stack.phase() == "minority", "d may have what nobody else has"
    lab.lost = lambda _source, _dest, _frame: False
    lab.run(5 * SECOND)
    living = [lab.nodes[name] for name in "abd"]
    assert {frozenset(view_of(node)) >= {"a#1", "b#1", "d"} for node in living} == {True}
    assert {tuple(state_of(node)) for node in living} == {(*STATE, b"later")}


def test_a_lone_member_that_restarts_goes_on_alone() -> None:
    lab = with_disks("a")
    kill(lab, "a")
    restart(lab, "a", minimum=1)
    lab.run(2 * SECOND)
    a = lab.nodes["a"]
    assert isinstance(a, Stateful)
    assert a.stack.view().reformed == 1
    assert len(a.lost) == 1


class Placed(Node):
    """Remembers positions in the total order."""

    def __init__(self, lab: Lab, member: MemberId, given: VsyncSettings) -> None:
        self.positions: list[int] = []
        super().__init__(lab, member, given)

    def on_delivery(self, each: Delivery) -> None:
        super().on_delivery(each)
        if isinstance(each, Batch):
            assert each.order is not None
            self.positions += range(each.order, each.order + len(each.payloads))


def test_no_position_of_the_total_order_belongs_to_two_messages_though_the_state_is_lost() -> None:
    """Found by `semcast chaos`: after such a re-formation positions began at 1 again."""
    lab = Lab()
    found: list[list[int]] = []
    for incarnation in range(2):
        nodes = []
        for name in "abc":
            lab.disks.setdefault(name, Disk())
            nodes.append(lab.add(name, incarnation, kind=Placed, minimum=2, order=Order.TOTAL))
        lab.run(3 * SECOND)
        nodes[0].multicast(b"1", b"2", b"3")
        lab.run(SECOND)
        for node in nodes:
            assert isinstance(node, Placed)
            found.append(node.positions)
        crash(lab, *"abc")
    assert nodes[0].stack.view().reformed == 1
    assert found == [[1, 2, 3]] * 3 + [[(1 << 32) + 1, (1 << 32) + 2, (1 << 32) + 3]] * 3


def test_survivors_do_not_use_positions_again_that_the_dead_may_have_used() -> None:
    """Found by `semcast chaos`: a majority goes on, delivers, and dies; the rest is re-formed behind it."""
    lab = Lab()
    for name in "abc":
        lab.disks[name] = Disk()
        lab.add(name, kind=Placed, minimum=2, order=Order.TOTAL)
    lab.run(SECOND)
    dead, survivor = lab.nodes["a"], lab.nodes["c"]
    lab.lost = lambda source, dest, _frame: (source == "c") != (dest == "c")
    lab.run(SECOND)
    dead.multicast(b"1", b"2")
    lab.run(SECOND)
    crash(lab, "a", "b")
    lab.lost = lambda _source, _dest, _frame: False
    for name in "ab":
        lab.add(name, 1, kind=Placed, minimum=2, order=Order.TOTAL)
    lab.run(5 * SECOND)
    assert survivor.stack.view().id >= 1_000_000
    survivor.multicast(b"3")
    lab.run(SECOND)
    assert isinstance(dead, Placed)
    assert isinstance(survivor, Placed)
    assert dead.positions == [1, 2]
    assert survivor.positions == [(1 << 32) + 1]
