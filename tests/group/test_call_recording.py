"""Calls of live groups, recorded: `semcast check` judges what really happened."""

import asyncio
import json
import os
from contextlib import AsyncExitStack
from pathlib import Path
from typing import Any

import pytest

import semcast
from semcast.cli.main import main
from semcast.core.events import Note, Skipped, ViewChange
from semcast.core.ids import MemberId
from semcast.core.messages import batch_of
from semcast.core.views import View
from semcast.group.call_journal import CallJournal, calls_of
from semcast.history import History, read_histories
from semcast.history.schema import KINDS
from semcast.specs import CALLS, Status, check
from semcast.specs.calls.kinds import MISSED, SENT, TOLD

A, B = MemberId("a"), MemberId("b")
PATIENCE = 30.0


def recorded(folder: Path) -> dict[str, History]:
    found = [alone for history in read_histories(folder) for alone in history.by_group()]
    return {history.info.only.name: history for history in found}


async def talk(folder: Path, name: str, **settings: Any) -> None:
    """Three members that send, call, answer, and talk before they answer."""
    async with asyncio.timeout(PATIENCE), AsyncExitStack() as stack:
        joining = [semcast.join(name, name=each, record=str(folder), **settings) for each in "abc"]
        groups = await asyncio.gather(*map(stack.enter_async_context, joining))
        for group in groups:

            async def answer(request: semcast.CallRequest, group: semcast.Group = group) -> bytes:
                if request.payload == b"fail":
                    raise ValueError("no")
                await group.send(b"about " + request.payload)
                return request.payload

            group.on_call(answer)
        for group in groups:
            await group.wait_for(3)
        for place in range(6):
            await groups[place % 3].send_many([b"x"] * 10)
            kinds: list[dict[str, Any]] = [
                {},
                {"replies": "majority"},
                {"to": "one"},
                {"to": groups[1].member},
            ]
            for kind in kinds:
                found = await groups[place % 3].call(b"?", **kind)
                assert found.complete
        assert (await groups[0].call(b"fail")).errors
        with pytest.raises(TimeoutError):
            async with asyncio.timeout(0.000001):
                await groups[0].call(b"?")


@pytest.mark.parametrize(
    "settings", [{}, {"stack": "vsync", "minimum": 2}, {"stack": "vsync", "minimum": 2, "order": "causal"}]
)
def test_calls_of_a_live_group_are_judged(
    tmp_path: Path, settings: dict[str, Any], capsys: pytest.CaptureFixture[str]
) -> None:
    name = f"calls {os.getpid()} {tmp_path.name}"
    asyncio.run(talk(tmp_path, name, **settings))
    assert main(["check", str(tmp_path), "--json"]) == 0
    verdicts = [each for run in json.loads(capsys.readouterr().out)["runs"] for each in run["verdicts"]]
    judged = {each["property"]: each["status"] for each in verdicts}
    assert {judged[each] for each in CALLS} == {"holds"}, judged
    calls = recorded(tmp_path)[calls_of(name)]
    kinds = {event.kind for event in calls.events}
    missing = {kind for kind in KINDS.values() if kind.value.startswith("call-")} - kinds
    assert {kind.value for kind in missing} <= {
        "call-departed",
        "call-missed",
        *([SENT.value] if settings else []),
    }
    assert calls.info.only.order == ("total" if not settings else settings.get("order", "fifo"))


def test_a_group_without_calls_has_no_journal_of_them(tmp_path: Path) -> None:
    async def alone() -> None:
        async with semcast.join(f"alone {os.getpid()}", name="a", record=str(tmp_path)) as group:
            await group.send(b"1")
            await group.wait_for(1)

    asyncio.run(alone())
    assert len(list(tmp_path.glob("*.journal"))) == 1


def rows(folder: Path) -> list[str]:
    [history] = read_histories(folder)
    return [f"{each.kind.value} {each.sender} {each.seq}+{each.count}" for each in history.events]


def test_a_journal_begins_with_what_came_before_the_first_call(tmp_path: Path) -> None:
    journal = CallJournal(tmp_path, "run", "g", A, order="total", clock=lambda: 7)
    journal.deliver(Note("call-view", A, view=1, level="view", members=(A,)))
    journal.heard(batch_of(B, 1, [b"old"]))
    journal.deliver(Note("call-view", A, view=2, level="view", members=(A, B)))
    journal.heard(batch_of(B, 2, [b"x", b"y"]))
    journal.sent(1, 3)
    journal.flush()
    assert list(tmp_path.iterdir()) == []
    journal.deliver(Note("call-made", seq=1, count=1, level="all", digest="all"))
    journal.heard(batch_of(B, 4, [b"z"]))
    journal.heard(batch_of(B, 5, [b"z"]))
    journal.flush()
    journal.close()
    assert rows(tmp_path) == [
        "call-told b 1+3",
        "call-told a 1+3",
        "call-view a 0+0",
        "call-made None 1+1",
        "call-told b 4+2",
        "left None 0+0",
    ]


@pytest.mark.parametrize("called", [True, False])
def test_who_was_skipped_is_not_blamed_for_what_it_did_not_read(tmp_path: Path, called: bool) -> None:
    journal = CallJournal(tmp_path, "run", "g", A, order="total", clock=lambda: 7)
    view = View(1, (A, B))
    told = Note("call-view", view=1, level="view", members=(A, B))

    def skip() -> None:
        journal.deliver(told)
        journal.heard(Skipped(9))
        journal.heard(ViewChange(view))
        journal.deliver(told)

    def call() -> None:
        journal.deliver(Note("call-made", seq=1, count=1, level="all", digest="all"))

    for deed in (call, skip) if called else (skip, call):
        deed()
    journal.deliver(Note("call-came", seq=1, count=1, members=(B,)))
    journal.close()
    other = CallJournal(tmp_path, "run", "g", B, order="total", clock=lambda: 7)
    other.deliver(Note("call-view", view=1, level="view", members=(A, B)))
    other.deliver(Note("call-asked", A, 1, 1, view=1, digest="all"))
    other.heard(batch_of(B, 1, [b"x"]))
    other.deliver(Note("call-said", A, 1, 1, level="reply"))
    other.close()
    [history] = read_histories(tmp_path)
    assert {event.kind for event in history.events} >= {MISSED, TOLD}
    [verdict] = check(history, ["causal_reply"])
    assert verdict.status is Status.HOLDS, verdict


def test_a_full_disk_ends_the_recording_and_nothing_else(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    journal = CallJournal(tmp_path, "run", "g", A, order="total", clock=lambda: 7)
    journal.deliver(Note("call-view", view=1, level="view", members=(A, B)))
    journal.deliver(Note("call-made", seq=1, count=1, level="all", digest="all"))
    journal.flush()

    def full(_fd: int, _data: object) -> int:
        raise OSError(28, "No space left on device")

    monkeypatch.setattr("os.write", full)
    journal.deliver(Note("call-came", seq=1, count=1, members=(B,)))
    journal.flush()
    monkeypatch.undo()
    journal.deliver(Note("call-made", seq=2, count=1, level="all", digest="all"))
    journal.close()
    assert "recorded no more" in caplog.text
    [history] = read_histories(tmp_path)
    assert history.info.cut_off == (A,)
    assert [each.kind.value for each in history.events] == ["call-view", "call-made"]


def test_a_journal_that_cannot_be_made_is_done_without(
    tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    (tmp_path / "file").touch()
    journal = CallJournal(tmp_path / "file", "run", "g", A, order="total")
    journal.deliver(Note("call-made", seq=1, count=1, level="all", digest="all"))
    journal.flush()
    journal.close()
    assert "recorded no more" in caplog.text
    assert [each.name for each in tmp_path.iterdir()] == ["file"]


def test_a_reply_that_overtakes_its_cause_is_found_in_runs(tmp_path: Path) -> None:
    """What is recorded live are runs of messages; each that is missing counts."""
    journal = CallJournal(tmp_path, "run", "g", A, order="total", clock=lambda: 7)
    journal.deliver(Note("call-view", view=1, level="view", members=(A, B)))
    journal.deliver(Note("call-made", seq=1, count=1, level="all", digest="all"))
    journal.heard(batch_of(B, 1, [b"x"]))
    journal.deliver(Note("call-came", seq=1, count=1, members=(B,)))
    journal.close()
    other = CallJournal(tmp_path, "run", "g", B, order="total", clock=lambda: 7)
    other.deliver(Note("call-view", view=1, level="view", members=(A, B)))
    other.deliver(Note("call-asked", A, 1, 1, view=1, digest="all"))
    other.sent(1, 3)
    other.deliver(Note("call-said", A, 1, 1, level="reply"))
    other.close()
    [history] = read_histories(tmp_path)
    [verdict] = check(history, ["causal_reply"])
    assert (verdict.status, verdict.count) == (Status.VIOLATED, 2)


def test_what_nobody_recorded_is_unknown(tmp_path: Path) -> None:
    journal = CallJournal(tmp_path, "run", "g", A, order="total", clock=lambda: 7)
    journal.deliver(Note("call-view", view=1, level="view", members=(A, B)))
    journal.deliver(Note("call-made", seq=1, count=1, level="first", digest="all"))
    journal.deliver(Note("call-heard", seq=1, count=1, level="reply", members=(B,)))
    journal.close()
    [history] = read_histories(tmp_path)
    [verdict] = check(history, ["call_replies"])
    assert verdict.status is Status.UNKNOWN
