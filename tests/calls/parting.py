"""Histories of a caller that is given a reply, and not what comes before it."""

from collections.abc import Iterator

from semcast.core.events import Note
from semcast.core.ids import MemberId
from semcast.history import History, Recorder, RunInfo
from semcast.history.schema import CAUSAL, TOTAL

A, B = MemberId("a"), MemberId("b")


def reply_without_cause(run: str, *, leaves: bool, told: bool = False, order: str = CAUSAL) -> History:
    """B sends a message and answers; A may be told of the message after the reply, and may leave then."""
    info = RunInfo.one(run, "g", "calls", 1, (A, B), None, uniform=False, quiesced=False, order=order)
    recorder = Recorder(info)
    view = Note("call-view", view=1, level="view", members=(A, B))
    for member in (A, B):
        recorder.note(0, member, view)
    recorder.note(1, A, Note("call-made", seq=1, count=1, level="all", digest="all"))
    recorder.note(2, B, Note("call-asked", A, 1, 1, view=1, digest="all"))
    recorder.note(3, B, Note("call-sent", B, 1, 1))
    recorder.note(4, B, Note("call-said", A, 1, 1, level="reply"))
    recorder.note(5, A, Note("call-came", seq=1, count=1, members=(B,)))
    if told:
        recorder.note(6, A, Note("call-told", B, 1, 1))
    if leaves:
        recorder.left(7, A)
    return recorder.close(quiesced=False)


def cases() -> Iterator[tuple[History, bool]]:
    """All of them, and whether they are sound."""
    yield reply_without_cause("stays", leaves=False), False
    yield reply_without_cause("leaves", leaves=True), True
    yield reply_without_cause("is told later", leaves=True, told=True), False
    yield reply_without_cause("of one order", leaves=True, order=TOTAL), False
