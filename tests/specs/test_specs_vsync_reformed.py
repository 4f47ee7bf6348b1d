"""Re-formed views: what they excuse, and what they do not."""

from semcast.core import MemberId
from semcast.core.events import Sent
from semcast.core.messages import batch_of
from semcast.core.views import View
from semcast.history import History, Recorder, RunInfo
from semcast.specs import Status, check

A, B, C = (MemberId(name) for name in "abc")
B1, C1 = MemberId("b", 1), MemberId("c", 1)
W = 1_000_000


def recorded(*, dead: bool = True, synchronous: bool = True, reformed: int | None = 1) -> History:
    """b and c deliver something in view 1 and are gone; a goes on with their next incarnations."""
    info = RunInfo.one("run", "g", "vsync", None, (A, B, C), None, uniform=True, quiesced=False)
    recorder = Recorder(info)
    first = View(1, (A, B, C))
    for member in (A, B, C):
        recorder.view(0, member, first)
    batch = batch_of(B, 1, [b"x"])
    recorder.sent(1, B, Sent(batch, 1))
    for member in (B, C) if synchronous else (A, B, C):
        recorder.deliver(2, member, batch)
    recorder.crash(3, B)
    if dead:
        recorder.crash(3, C)
    view = View(W, (A, B1, C1), reformed=reformed)
    for member in (A, B1, C1):
        recorder.view(9, member, view)
    if not dead:
        recorder.crash(20, C)
    return recorder.close(quiesced=True)


def violated(history: History) -> set[str]:
    return {verdict.property for verdict in check(history) if verdict.status is Status.VIOLATED}


def test_what_the_dead_delivered_is_not_owed_by_who_goes_on() -> None:
    assert violated(recorded()) == set()


def test_without_the_mark_it_is() -> None:
    assert violated(recorded(reformed=None)) == {"vs_semantic_uniform_agreement"}


def test_nobody_who_lives_is_left_behind() -> None:
    assert violated(recorded(dead=False)) == {"vs_primary_partition"}


def test_the_dead_may_have_gone_on_before() -> None:
    """b and c went on to view 2, which a was in as well and never heard of."""

    def recorded(reformed: int | None) -> History:
        info = RunInfo.one("run", "g", "vsync", None, (A, B, C), None, uniform=True, quiesced=False)
        recorder = Recorder(info)
        for member in (A, B, C):
            recorder.view(0, member, View(1, (A, B, C)))
        batch = batch_of(B, 1, [b"x"])
        recorder.sent(1, B, Sent(batch, 1))
        for member in (B, C):
            recorder.deliver(2, member, batch)
            recorder.view(3, member, View(2, (A, B, C)))
            recorder.crash(4, member)
        for member in (A, B1, C1):
            recorder.view(9, member, View(W, (A, B1, C1), reformed=reformed))
        return recorder.close(quiesced=True)

    assert violated(recorded(1)) == set()
    assert "vs_semantic_uniform_agreement" in violated(recorded(None))
