"""`semcast watch`: recordings of a group that runs."""

import json
import threading
import time
import uuid
from pathlib import Path
from typing import Any

import pytest

from semcast import blocking
from semcast.cli.main import main
from semcast.core.ids import MemberId
from semcast.history.events import HistoryError, RunInfo
from semcast.history.following import Following
from semcast.history.journal import DeliveredRow, JournalWriter, SentRow, record_crash

A, B = MemberId("a"), MemberId("b")
INFO = RunInfo.one("run", "g", "s-rm", None, (A, B), None, uniform=False, quiesced=False)


def lines(capsys: pytest.CaptureFixture[str]) -> list[dict[str, Any]]:
    return [json.loads(line) for line in capsys.readouterr().out.splitlines()]


def test_a_group_is_judged_while_it_runs(
    tmp_path: Path, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    name = f"watched {uuid.uuid4().hex}"
    given: dict[str, Any] = {"stack": "ring", "record": str(tmp_path)}
    with (
        blocking.join(name, name="a", **given) as a,
        blocking.join(name, name="b", receive=False, **given) as b,
    ):
        b.wait_for(2, timeout=30)
        for number in range(500):
            b.send(b"%d" % number)
        got = 0
        for event in a.events(timeout=30):
            got += hasattr(event, "payload")
            if got == 500:
                break
        time.sleep(0.5)
        assert main(["watch", str(tmp_path), "--for", "100ms", "--every", "50ms", "--json"]) == 0
        last = lines(capsys)[-1]
        assert (last["event"], last["violations"], last["running"]) == ("end", 0, 2)
        assert last["events"] > 0
        assert {"integrity", "fifo_delivery", "evs_6_3_agreed"} <= set(last["judged"])
        monkeypatch.setenv("SEMCAST_RECORD", str(tmp_path))
        assert main(["watch", name, "--for", "50ms", "--json"]) == 0
        assert lines(capsys)[-1]["processes"] == 2
        assert main(["watch", "another group", "--for", "50ms", "--json"]) == 2
        assert "no recordings of group another group, only of other groups" in capsys.readouterr().err
    assert main(["watch", str(tmp_path), "--every", "50ms"]) == 0, "all recordings are over"
    assert "nothing broken so far of" in capsys.readouterr().out


def test_a_violation_is_reported_while_others_go_on(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    """By somebody who looked before it happened."""
    a, b = JournalWriter(tmp_path, A, INFO), JournalWriter(tmp_path, B, INFO)
    a.append(time.time_ns(), [SentRow(1, 5, 5, None, False)])
    b.append(time.time_ns(), [DeliveredRow(A, 1, 5, 5, None, None)])
    codes: list[int] = []
    watch = threading.Thread(
        target=lambda: codes.append(main(["watch", str(tmp_path), "--every", "50ms", "--json"]))
    )
    watch.start()
    time.sleep(0.4)
    a.append(time.time_ns(), [SentRow(6, 1, 1, None, False)])
    b.append(time.time_ns(), [DeliveredRow(A, 6, 1, 1, None, None), DeliveredRow(A, 6, 1, 1, None, None)])
    watch.join(30)
    found = lines(capsys)
    assert codes == [1]
    [violation] = [each for each in found if each["event"] == "violation"]
    assert (violation["property"], violation["detail"]) == ("integrity", "b delivered (a,6) again")
    looks = [each for each in found if each["event"] == "progress"]
    assert looks[0]["events"] == 2
    assert looks[-1]["lag"] < 20
    assert main(["watch", str(tmp_path), "--keep-going", "--for", "10ms"]) == 1
    assert "run[g]: violated: integrity: b delivered (a,6) again" in capsys.readouterr().out


def test_what_is_asked_wrongly_is_said(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["watch", str(tmp_path / "nowhere")]) == 2
    assert "no such folder; a group is found by its name where record= is set" in capsys.readouterr().err
    assert main(["watch", str(tmp_path), "--every", "often"]) == 2
    assert "--every = 'often' is not a duration" in capsys.readouterr().err
    assert main(["watch", str(tmp_path), "--every", "0s"]) == 2
    assert "--every 0s: 10ms at least" in capsys.readouterr().err
    (tmp_path / "a@0.journal").write_bytes(b"nonsense, and more of it")
    assert main(["watch", str(tmp_path)]) == 2


def test_a_folder_without_recordings_is_not_called_sound(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    """Who watches the wrong folder is told so at once, and not that nothing is broken."""
    assert main(["watch", str(tmp_path), "--for", "10ms"]) == 2
    said = capsys.readouterr()
    assert "no recordings: programs write them with join(..., record=" in said.err
    assert "nothing was checked" in said.err
    assert "broken" not in said.out
    assert main(["watch", str(tmp_path), "--for", "10ms", "--json"]) == 2
    capsys.readouterr()
    (tmp_path / "run.parquet").write_bytes(b"")
    assert main(["watch", str(tmp_path), "--for", "10ms"]) == 2
    assert f"only histories: semcast check {tmp_path}" in capsys.readouterr().err
    assert main(["watch", str(tmp_path / "run.parquet")]) == 2
    assert f"a file; name its folder, {tmp_path}" in capsys.readouterr().err


def test_a_journal_is_followed_through_torn_ends(tmp_path: Path) -> None:
    writer = JournalWriter(tmp_path, A, INFO)
    [file] = tmp_path.glob("*.journal")
    for number in range(1, 4):
        writer.append(number, [SentRow(number, 1, 1, None, False)])
    whole = file.read_bytes()
    torn = tmp_path / "torn"
    torn.mkdir()
    followed = Following(torn / file.name)
    events = []
    for end in [*range(0, len(whole), 7), len(whole)]:
        followed.path.write_bytes(whole[:end])
        events += [event for some in followed.read() for event in some]
    assert [(event.index, event.seq) for event in events] == [(0, 1), (1, 2), (2, 3)]
    assert (followed.ended, followed.unread()) == (False, 0)
    record_crash(torn, A)
    assert [event.kind.value for some in followed.read() for event in some] == ["crash"]
    assert followed.ended
    assert list(followed.read()) == []
    damaged = bytearray(whole)
    damaged[-1] ^= 1
    file.write_bytes(damaged)
    with pytest.raises(HistoryError, match="damaged at byte"):
        list(Following(file).read())
