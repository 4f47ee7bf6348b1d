"""What a stack confirmed is compared with what happened: histories written by hand."""

from collections.abc import Callable

import pytest

from semcast.core import Item, MemberId, MessageId, View
from semcast.core.events import Purged
from semcast.core.messages import batch_of
from semcast.history import History, Recorder, RunInfo
from semcast.specs import Status, check
from semcast.specs.confirmed import confirmed

A, B = MEMBERS = MemberId("a"), MemberId("b")
BOTH, ALONE = View(1, MEMBERS), View(2, (A,))
FIRST = batch_of(A, 1, [b"x"])


def history(steps: Callable[[Recorder], None], *, quiesced: bool = True, stack: str = "ring") -> History:
    recorder = Recorder(RunInfo.one("run", "g", stack, None, MEMBERS, None, uniform=False, quiesced=quiesced))
    for member in MEMBERS:
        recorder.view(0, member, BOTH)
    recorder.multicast(0, A, FIRST)
    steps(recorder)
    return recorder.close(quiesced=quiesced)


def claim(recorder: Recorder, *, safe: bool = False, view: View = BOTH) -> None:
    recorder.confirmed(1, A, MessageId(A, 1), view, safe=safe)


def both_deliver(recorder: Recorder) -> None:
    claim(recorder, safe=True)
    recorder.deliver(2, A, FIRST)
    recorder.deliver(2, B, FIRST)


def replaced(recorder: Recorder) -> None:
    claim(recorder, safe=True)
    for member in MEMBERS:
        recorder.purge(2, member, Purged(MessageId(A, 1), MessageId(A, 2)))


def other_is_gone(recorder: Recorder) -> None:
    claim(recorder, safe=True)
    recorder.deliver(2, A, FIRST)
    recorder.crash(3, B)


def gone_itself(recorder: Recorder) -> None:
    claim(recorder)
    recorder.crash(2, A)


def after_the_view_by_all(recorder: Recorder) -> None:
    claim(recorder)
    recorder.transitional(2, A, BOTH)
    recorder.deliver(2, A, FIRST)


@pytest.mark.parametrize(
    "steps",
    [both_deliver, replaced, other_is_gone, gone_itself, after_the_view_by_all],
    ids=lambda s: s.__name__,
)
def test_sound(steps: Callable[[Recorder], None]) -> None:
    assert confirmed(history(steps)).status is Status.HOLDS


def never(recorder: Recorder) -> None:
    claim(recorder)


def in_another_view(recorder: Recorder) -> None:
    claim(recorder)
    recorder.view(2, A, ALONE)
    recorder.deliver(3, A, FIRST)


def after_the_view_by_some(recorder: Recorder) -> None:
    claim(recorder)
    recorder.transitional(2, A, View(1, (A,)))
    recorder.deliver(2, A, FIRST)


def not_by_all(recorder: Recorder) -> None:
    claim(recorder, safe=True)
    recorder.deliver(2, A, FIRST)


def went_on_without_it(recorder: Recorder) -> None:
    claim(recorder)
    recorder.view(2, A, ALONE)
    recorder.crash(3, A)


def other_went_on_without_it(recorder: Recorder) -> None:
    """Who leaves later is not excused: it came to the next view."""
    claim(recorder, safe=True)
    recorder.deliver(2, A, FIRST)
    recorder.view(2, B, View(2, (B,)))
    recorder.left(3, B)


def after_the_view_by_some_who_left_later(recorder: Recorder) -> None:
    after_the_view_by_some(recorder)
    recorder.view(3, B, View(2, (B,)))
    recorder.left(4, B)


@pytest.mark.parametrize(
    "steps",
    [
        never,
        other_went_on_without_it,
        after_the_view_by_some_who_left_later,
        in_another_view,
        after_the_view_by_some,
        not_by_all,
        went_on_without_it,
    ],
    ids=lambda s: s.__name__,
)
def test_broken(steps: Callable[[Recorder], None]) -> None:
    verdict = confirmed(history(steps))
    assert verdict.status is Status.VIOLATED
    assert [str(event) for event in verdict.offending] == ["a[2] at 1 ns: confirmed (a,1)"]


def test_who_begins_with_the_state_of_a_later_view_has_what_came_before() -> None:
    """Its program waited for the state in the view of the message, and got that of the next instead."""
    joiner = MemberId("c")
    three, following = View(2, (A, B, joiner)), View(3, (A, B, joiner))
    for stated in (True, False):

        def steps(recorder: Recorder, stated: bool = stated) -> None:
            for member in MEMBERS:
                recorder.view(1, member, three)
                recorder.deliver(2, member, FIRST)
            claim(recorder, safe=True, view=three)
            for member in three.members:
                recorder.view(3, member, following)
            if stated:
                recorder.apply(3, joiner, A, "digest", 3)

        verdict = confirmed(history(steps))
        assert verdict.status is (Status.HOLDS if stated else Status.VIOLATED)


@pytest.mark.parametrize("survives", [False, True])
def test_a_state_that_is_lost_with_all_who_had_it_is_not_owed(survives: bool) -> None:
    """c waits for the state of a and b, who crash one after the other, so its program begins anew."""
    joiner, late = MemberId("c"), MemberId("d")
    three = View(2, (A, B, joiner))
    following = View(3, (B, joiner) if survives else (joiner, late))

    def steps(recorder: Recorder) -> None:
        for member in MEMBERS:
            recorder.view(1, member, three)
            recorder.deliver(2, member, FIRST)
        claim(recorder, safe=True, view=three)
        for member in (A,) if survives else MEMBERS:
            recorder.crash(3, member)
        for member in following.members:
            recorder.view(4, member, following)

    assert confirmed(history(steps)).status is (Status.VIOLATED if survives else Status.HOLDS)


def test_whose_group_was_re_formed_without_a_view_cannot_have_what_was_delivered_there() -> None:
    """b was cut off when a and c agreed on view 2 with it; both died, and b went on from view 1."""
    late, back = MemberId("c"), MemberId("a", 1)
    unknown, reformed = View(2, (A, B, late)), View(3, (B, back), reformed=1)

    def bereft(recorder: Recorder, following: View, *, seen: bool) -> None:
        recorder.view(1, A, unknown)
        claim(recorder, safe=True, view=unknown)
        recorder.deliver(2, A, FIRST)
        if seen:
            recorder.view(2, B, unknown)
        for member in (A, late):
            recorder.crash(3, member)
        recorder.view(4, B, following)

    def status(following: View, *, seen: bool = False) -> Status:
        return confirmed(history(lambda told: bereft(told, following, seen=seen), stack="vsync")).status

    assert status(reformed) is Status.HOLDS
    assert status(reformed, seen=True) is Status.VIOLATED, "who was in the view had to have it all"
    assert status(View(3, (B, back), reformed=2)) is Status.VIOLATED, "it follows the view of the message"
    assert status(View(3, (B, back))) is Status.VIOLATED, "nothing was re-formed"


def test_a_program_may_wait_for_ever_in_a_view_that_cannot_end() -> None:
    """Of three members two are dead: the task that reads waits for an answer that nobody can give."""
    third = MemberId("c")
    three = View(2, (A, B, third))

    def steps(recorder: Recorder, dead: tuple[MemberId, ...]) -> None:
        for member in three.members:
            recorder.view(1, member, three)
        claim(recorder, view=three)
        for member in dead:
            recorder.crash(3, member)

    def status(*dead: MemberId, stack: str = "vsync") -> Status:
        return confirmed(history(lambda told: steps(told, dead), stack=stack)).status

    assert status(B, third) is Status.HOLDS
    assert status(third) is Status.VIOLATED, "the other two can end the view"
    assert status(B, third, stack="ring") is Status.VIOLATED, "on a ring anybody goes on alone"


def test_what_comes_later_stands_for_what_it_replaced() -> None:
    """b was never told of the first: only that the second is there instead."""

    def steps(recorder: Recorder) -> None:
        old, new = batch_of(A, 2, [b"y"], Item("i")), batch_of(A, 3, [b"z"], Item("i"))
        for batch in (old, new):
            recorder.multicast(1, A, batch)
            recorder.deliver(1, A, batch)
        recorder.confirmed(1, A, MessageId(A, 2), BOTH, safe=True)
        recorder.deliver(2, B, new)

    assert confirmed(history(steps)).status is Status.HOLDS


@pytest.mark.parametrize("steps", [never, not_by_all], ids=lambda s: s.__name__)
def test_what_may_have_come_after_the_end_is_not_known(steps: Callable[[Recorder], None]) -> None:
    assert confirmed(history(steps, quiesced=False)).status is Status.UNKNOWN


@pytest.mark.parametrize("steps", [both_deliver, replaced, other_is_gone], ids=lambda s: s.__name__)
def test_a_run_need_not_be_over_where_nothing_is_missing(steps: Callable[[Recorder], None]) -> None:
    assert confirmed(history(steps, quiesced=False)).status is Status.HOLDS


@pytest.mark.parametrize(
    "steps", [in_another_view, went_on_without_it, other_went_on_without_it], ids=lambda s: s.__name__
)
def test_what_is_wrong_before_the_end_is_wrong(steps: Callable[[Recorder], None]) -> None:
    assert confirmed(history(steps, quiesced=False)).status is Status.VIOLATED


def test_a_history_with_such_rows_is_judged_by_them() -> None:
    assert "confirmed" in {verdict.property for verdict in check(history(both_deliver))}
    assert "confirmed" not in {verdict.property for verdict in check(history(lambda _: None))}
