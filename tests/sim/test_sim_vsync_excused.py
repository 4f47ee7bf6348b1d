"""When a group with agreed views may wait for ever, and when not: histories written by hand."""

from collections.abc import Callable

import pytest

from semcast.core import MemberId, View
from semcast.history import Recorder, RunInfo
from semcast.sim.families.vsync import excused

A, B, C = MEMBERS = tuple(MemberId(name) for name in "abc")
A1, B1, C1 = (MemberId(name, 1) for name in "abc")
FIRST = View(1, MEMBERS)


def begin(recorder: Recorder, *members: MemberId, view: View = FIRST) -> None:
    for member in members:
        recorder.view(1, member, view)


def a_majority_crashed(recorder: Recorder) -> None:
    begin(recorder, *MEMBERS)
    recorder.crash(2, B)
    recorder.crash(2, C)
    recorder.recover(3, B1)


def all_left_but_one_that_crashed(recorder: Recorder) -> None:
    begin(recorder, *MEMBERS)
    recorder.crash(2, C)
    recorder.left(3, A)
    recorder.left(3, B)
    recorder.recover(4, B1)


def the_last_one_left(recorder: Recorder) -> None:
    begin(recorder, *MEMBERS)
    begin(recorder, A, view=View(2, (A,)))
    recorder.left(2, B)
    recorder.left(2, C)
    recorder.recover(2, B1)
    recorder.left(3, A)


def one_left_before_it_was_in_a_view(recorder: Recorder) -> None:
    begin(recorder, A, B)
    recorder.left(2, C)
    recorder.crash(2, B)


def who_let_others_in_crashed_before_its_partner_heard_of_it(recorder: Recorder) -> None:
    begin(recorder, A, B, view=View(1, (A, B)))
    begin(recorder, A, C, view=View(2, (A, B, C)))
    recorder.crash(2, A)


@pytest.mark.parametrize(
    "steps",
    [
        a_majority_crashed,
        all_left_but_one_that_crashed,
        the_last_one_left,
        one_left_before_it_was_in_a_view,
        who_let_others_in_crashed_before_its_partner_heard_of_it,
    ],
    ids=lambda steps: steps.__name__,
)
def test_who_lives_waits_rightly(steps: Callable[[Recorder], None]) -> None:
    assert judged(steps)


def a_minority_crashed(recorder: Recorder) -> None:
    begin(recorder, *MEMBERS)
    recorder.crash(2, C)


def all_crashed_and_are_back(recorder: Recorder) -> None:
    begin(recorder, *MEMBERS)
    for old, new in ((A, A1), (B, B1), (C, C1)):
        recorder.crash(2, old)
        recorder.recover(3, new)


def one_left_and_all_others_were_put_out(recorder: Recorder) -> None:
    begin(recorder, *MEMBERS)
    recorder.left(2, A)
    for old, new in ((B, B1), (C, C1)):
        recorder.left(2, old)
        recorder.recover(3, new)


def some_left(recorder: Recorder) -> None:
    begin(recorder, *MEMBERS)
    recorder.left(2, A)
    recorder.left(2, B)


@pytest.mark.parametrize(
    "steps",
    [a_minority_crashed, all_crashed_and_are_back, one_left_and_all_others_were_put_out, some_left],
    ids=lambda steps: steps.__name__,
)
def test_who_lives_has_to_go_on(steps: Callable[[Recorder], None]) -> None:
    assert not judged(steps)


def judged(steps: Callable[[Recorder], None]) -> bool:
    info = RunInfo.one("run", "g", "vsync", None, MEMBERS, None, uniform=False, quiesced=True)
    recorder = Recorder(info)
    steps(recorder)
    return excused(recorder.close(quiesced=True))
