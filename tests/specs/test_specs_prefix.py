"""Properties that the beginning of a run can break: judged event by event, in agreement with the checkers."""

from itertools import count
from random import Random

import msgspec
import pytest
from tests.pipeline.histories import plain
from tests.pipeline.rings import rings
from tests.pipeline.views import views

from semcast.core.certificates import Place
from semcast.core.ids import MemberId
from semcast.history.events import Event, GroupInfo, History
from semcast.history.schema import GONE, TOTAL, Kind
from semcast.specs import Status, check
from semcast.specs.prefix import Alarm, GroupWatch

PLACES = {"ring_certificate", "evs_6_3_agreed"}
"""Places of messages on a ring that do not fit: which property of order that breaks depends on the rest."""
ORDERS = ("evs_6_1_order_respects_precedence", "evs_6_2_same_moment")
A, B, C = MemberId("a"), MemberId("b"), MemberId("c")


def watched(history: History, seed: int) -> list[Alarm]:
    """What is said while the run is recorded, in looks of a few events of each process."""
    rng = Random(seed)
    watch = GroupWatch(history.info.only)
    found: list[Alarm] = []
    left = {process: list(history.of(process)) for process in history.processes}
    while any(left.values()):
        for process, rows in left.items():
            some = rng.randrange(1, 20)
            found += watch.feed(rows[:some])
            del rows[:some]
            last = history.of(process)[-1:]
            if not rows and process not in history.info.cut_off and any(e.kind in GONE for e in last):
                watch.ended(process)
        found += watch.settle()
    return found


def test_alarms_agree_with_the_checkers() -> None:
    """On hundreds of histories, broken in all ways.

    What is reported early the checkers report, too; and where a message comes behind a later one, both do.
    """
    caught: set[str] = set()
    for number, history in enumerate([*plain(), *rings(), *views(range(40))]):
        for alone in history.by_group():
            alarms = {alarm.property for alarm in watched(alone, number)}
            fifo = [name for name in GroupWatch(alone.info.only).judged if name == "fifo_delivery"]
            names = None if alarms else fifo  # the others need not be asked
            broken = {each.property for each in check(alone, names) if each.status is Status.VIOLATED}
            if alarms & PLACES:
                assert broken & {*PLACES, *ORDERS}, (number, alarms)
            assert alarms - PLACES <= broken, (number, alarms)
            assert ("fifo_delivery" in broken) <= ("fifo_delivery" in alarms), number
            caught |= alarms
    assert {"integrity", "fifo_delivery", "nothing_after_crash", "vs_view_agreement", *PLACES} <= caught


class Script:
    """Events of a run, one by one."""

    def __init__(self, stack: str, order: str = "fifo", *, uniform: bool = False) -> None:
        self.watch = GroupWatch(GroupInfo("g", stack, (), None, uniform, order))
        self._index = count()

    def __call__(self, process: MemberId, kind: Kind, **fields: object) -> list[str]:
        event = Event(process, next(self._index), 0, kind, "g")
        return [str(each) for each in self.watch.feed([msgspec.structs.replace(event, **fields)])]

    def deliver(self, who: MemberId, sender: MemberId, seq: int, many: int = 1, **more: object) -> list[str]:
        return self(who, Kind.DELIVER, sender=sender, seq=seq, count=many, **more)

    def settle(self) -> list[str]:
        return [each.property for each in self.watch.settle()]


def test_contents_are_compared_once_both_sides_are_there() -> None:
    script = Script("s-rm")
    script.deliver(B, A, 1, 2, size=6, crc=5)
    assert script.settle() == []
    script(A, Kind.MULTICAST, sender=A, seq=1, count=2, size=6, crc=5)
    script(A, Kind.MULTICAST, sender=A, seq=3, count=1, size=3, crc=7)
    assert script.settle() == []
    script.deliver(B, A, 3, 1, size=3, crc=8)
    assert script.settle() == ["integrity"]
    assert script.settle() == [], "it is told once"


def test_what_nobody_multicast_is_told_when_its_sender_has_ended() -> None:
    script = Script("s-rm")
    script(A, Kind.MULTICAST, sender=A, seq=1, count=1)
    script.deliver(B, A, 1, 3)
    assert script.settle() == [], "its recording may be behind"
    script.watch.ended(A)
    assert script.settle() == ["integrity"]


def test_positions_are_compared_however_rows_are_cut() -> None:
    script = Script("ring")

    def at(packet: int, index: int) -> Place:
        return Place(4, A, packet, index)

    assert script.deliver(A, A, 1, 3, ring=at(7, 0)) == []
    assert script.deliver(B, A, 1, 1, ring=at(7, 0)) == []
    assert script.deliver(B, A, 2, 4, ring=at(7, 1)) == []
    assert script.deliver(C, A, 1, 4, ring=at(7, 0)) == []
    [said] = script.deliver(C, B, 1, 1, ring=at(7, 4))
    assert "b has (a,5) and c has (b,1) at position" in said
    [said] = script.deliver(A, C, 1, 1, ring=at(6, 0))
    assert "a delivered position" in said


@pytest.mark.parametrize("fate", ["goes on", "crashes"])
def test_who_crashes_may_have_been_ahead(fate: str) -> None:
    script = Script("vsync", TOTAL)
    for process in (A, B):
        assert script(process, Kind.VIEW, view=1, members=(A, B)) == []
    script.deliver(A, A, 1, order=0)
    script.deliver(B, B, 1, order=0)
    assert (script.settle(), script.watch.suspected) == ([], 1)
    script(B, Kind.VIEW, view=2, members=(B,) if fate == "crashes" else (A, B))
    if fate == "crashes":
        script(A, Kind.CRASH)
        assert (script.settle(), script.watch.suspected) == ([], 0)
    else:
        script(A, Kind.VIEW, view=2, members=(A, B))
        assert script.settle() == ["total_order"]


def test_memory_is_bounded() -> None:
    """However long a run is, and however far behind one of its members."""
    script = Script("vsync", TOTAL)
    for number in range(60_000):
        script(A, Kind.MULTICAST, sender=A, seq=number + 1, count=1, size=1, crc=1)
        script.deliver(B, A, number + 1, size=1, crc=1, order=number)
        if number % 1000 == 0:
            script.deliver(C, A, number // 1000 + 1, size=1, crc=1, order=number // 1000)
            script.settle()
    assert script.watch.size() < 40_000
