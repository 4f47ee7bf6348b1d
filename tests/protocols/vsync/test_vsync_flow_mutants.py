"""Each rule of flow control that the model needs, left out: somebody stands still, or D has no bound.

The scripts use the smallest queues and buffers there are; nothing is wrong in them without the mistake.
"""

from collections.abc import Callable

import pytest
from tests.protocols.vsync.test_vsync_programs import ONE, ORDERS, formula
from tests.protocols.vsync.test_vsync_readership import provider_stopped, two_changes, unequal_reserves
from tests.protocols.vsync.vsyncflowlab import Program, ProgramLab
from tests.protocols.vsync.vsynclab import MS

from semcast.core import Frame, Item
from semcast.core.events import Left
from semcast.protocols.semantic.frames import Data
from semcast.protocols.vsync import VirtualSynchrony
from semcast.protocols.vsync.frames import InView
from semcast.sim.mutants import MUTANTS, vsync_flow

Kind = type[VirtualSynchrony]


def answering(kind: Kind, order: str, answers: int = 3, published: int = 30) -> ProgramLab:
    """a publishes, and b and c answer from their handlers."""
    lab = ProgramLab(kind, reserve_bytes=1 << 20, **ORDERS[order])
    lab["a"].to_publish = published
    for name in "bc":
        lab[name].answers = answers
    lab.work(1500)
    return lab


def everybody_goes_on(kind: Kind) -> bool:
    return not answering(kind, "fifo").stuck()


def everybody_goes_on_in_total_order(kind: Kind) -> bool:
    return not answering(kind, "token").stuck()


def the_reserve_is_bounded(kind: Kind) -> bool:
    """However much is published: D stays within the formula."""
    lab = answering(kind, "fifo", answers=1, published=120)
    most = 1 + formula(2, 1, 3 * 4) // ONE
    return all(lab[name].most_queued <= most for name in "abc")


def obsolete(kind: Kind, order: str) -> ProgramLab:
    """c stopped, and a sends updates of one item."""
    lab = ProgramLab(kind, **ORDERS[order])
    lab["c"].seat.reads = False
    lab["a"].annotation = Item("x")
    lab["a"].to_publish = 100
    lab.work(1000)
    return lab


def what_is_obsolete_holds_nobody_back(kind: Kind) -> bool:
    return not obsolete(kind, "fifo").stuck()


def commands_hold_nobody_back(kind: Kind) -> bool:
    return not obsolete(kind, "token").stuck()


def who_waits_stays(kind: Kind) -> bool:
    """What c sends is lost, so that it waits in its handler, and its queue fills."""
    lab = ProgramLab(kind, leave_after=200 * MS, reserve_bytes=1 << 20)
    c: Program = lab["c"]
    c.answers = 5

    def lost(source: str, _dest: str, frame: Frame) -> bool:
        return source == "c" and isinstance(frame, InView) and isinstance(frame.frame, Data)

    lab.lost = lost
    lab["a"].to_publish = 5
    lab.work(800)
    assert c.seat.waits
    lab.lost = lambda _source, _dest, _frame: False
    lab.work(1000)
    return not [event for event in c.events if isinstance(event, Left)]


def programs_that_stopped_hold_nobody_back_through_changes(kind: Kind) -> bool:
    return not two_changes(kind).stuck()


def a_state_comes_though_its_provider_stopped(kind: Kind) -> bool:
    return provider_stopped(kind)["d"].state == b"b"


def a_state_comes_though_its_provider_waits_for_room(kind: Kind) -> bool:
    return not unequal_reserves(kind).stuck()


def large(kind: Kind, *, item: str | None = None) -> ProgramLab:
    """c stopped, a sends messages of 500 bytes, and the queue has room for many, but not for their bytes."""
    lab = ProgramLab(kind, queue_messages=1000, queue_bytes=1100, reserve_bytes=0, buffer_messages=30)
    lab["c"].seat.reads = False
    lab["a"].padding = bytes(500)
    lab["a"].annotation = None if item is None else Item(item)
    lab["a"].to_publish = 60
    lab.work(1500)
    return lab


def bytes_are_bounded(kind: Kind) -> bool:
    lab = large(kind)
    return lab["c"].most_queued <= 3 and lab.stuck() == ["a"]


CASES: dict[str, Callable[[Kind], bool]] = {
    "one-account": everybody_goes_on,
    "unplaced-takes-room": everybody_goes_on_in_total_order,
    "no-reserve": everybody_goes_on,
    "bytes-uncounted": bytes_are_bounded,
    "no-slots": everybody_goes_on,
    "nobody-exempt": everybody_goes_on,
    "stop-when-full": what_is_obsolete_holds_nobody_back,
    "nobody-stops": the_reserve_is_bounded,
    "stop-not-heard": the_reserve_is_bounded,
    "commands-in-queue": commands_hold_nobody_back,
    "leaves-while-waiting": who_waits_stays,
    "overfull-goes-on": programs_that_stopped_hold_nobody_back_through_changes,
    "never-gives-up": a_state_comes_though_its_provider_waits_for_room,
    "provider-awaited": a_state_comes_though_its_provider_stopped,
}
"""By mutant: what does not hold with it."""


@pytest.mark.parametrize("script", list(dict.fromkeys(CASES.values())))
def test_the_rules_are_enough(script: Callable[[Kind], bool]) -> None:
    assert script(VirtualSynchrony)


@pytest.mark.parametrize("name", CASES)
def test_each_rule_is_needed(name: str) -> None:
    kind = MUTANTS["vsync"][name].stack
    assert kind is not None
    assert issubclass(kind, VirtualSynchrony)
    assert not CASES[name](kind)


def test_what_is_obsolete_and_as_large_holds_nobody_back() -> None:
    lab = large(VirtualSynchrony, item="x")
    assert not lab.stuck()
    assert lab["c"].most_queued <= 3


def test_who_reads_again_gets_all_that_was_too_large_for_its_queue() -> None:
    lab = large(VirtualSynchrony)
    lab["c"].seat.reads = True
    lab.work(3000)
    assert not lab.stuck()
    assert len(lab["c"].messages) == 60


def test_a_message_larger_than_any_bound_goes_through() -> None:
    lab = ProgramLab(VirtualSynchrony, queue_bytes=1, reserve_bytes=0, queue_messages=9, buffer_messages=60)
    lab["a"].padding = bytes(5000)
    lab["a"].to_publish = 5
    for name in "bc":
        lab[name].answers = 1
    lab.work(2000)
    assert not lab.stuck()
    assert len([text for text in lab["c"].messages if len(text[2]) > 5000]) == 5


def test_who_never_iterated_is_skipped_once_bytes_fill_its_queue() -> None:
    lab = ProgramLab(VirtualSynchrony, queue_messages=1000, queue_bytes=1000, buffer_messages=30)
    lab["c"].never_reads()
    lab["a"].padding = bytes(500)
    lab["a"].to_publish = 60
    lab.work(2000)
    assert not lab.stuck()
    assert lab["c"].seat.handover.reading.skipping


def test_no_rule_is_without_a_test() -> None:
    broken = {name for name, each in MUTANTS["vsync"].items() if each.stack and _is_about_flow(each.stack)}
    assert broken == set(CASES)


def _is_about_flow(kind: type[object]) -> bool:
    return kind.__module__ == vsync_flow.__name__
