"""The verbs that meet a live group: real processes on loopback, each test in a group of its own."""

import json
import os
import pty
import queue
import signal
import subprocess
import sys
import threading
import time
from collections.abc import Callable, Iterator
from contextlib import suppress
from pathlib import Path
from secrets import token_hex
from typing import Any

import pytest

from semcast import blocking
from semcast.cli.main import main

PATIENCE = 20.0
"""Seconds after which something will not come any more."""
COMMAND = [sys.executable, "-m", "semcast.cli.main"]


class Program:
    """A command that runs, and its lines as they come."""

    def __init__(self, *arguments: str) -> None:
        self._process = subprocess.Popen(
            [*COMMAND, *arguments], stdin=subprocess.DEVNULL, stdout=subprocess.PIPE, stderr=subprocess.STDOUT
        )
        self._lines: queue.SimpleQueue[str | None] = queue.SimpleQueue()
        self.printed: list[str] = []
        self._reader = threading.Thread(target=self._read)
        self._reader.start()

    def _read(self) -> None:
        assert self._process.stdout is not None
        for line in self._process.stdout:
            self._lines.put(line.decode().rstrip("\n"))
        self._lines.put(None)

    def until(self, wanted: Callable[[str], bool]) -> str:
        """The first line from now on that is wanted."""
        deadline = time.monotonic() + PATIENCE
        while True:
            try:
                line = self._lines.get(timeout=max(0.01, deadline - time.monotonic()))
            except queue.Empty:
                pytest.fail(f"waited in vain; it printed {self.printed}")
            if line is None:
                pytest.fail(f"it ended; it printed {self.printed}")
            self.printed.append(line)
            if wanted(line):
                return line

    def ends(self) -> int:
        """Its exit code; what it printed is complete then."""
        code = self._process.wait(PATIENCE)
        self._reader.join()
        while (line := self._lines.get()) is not None:
            self.printed.append(line)
        return code

    def interrupt(self) -> None:
        self._process.send_signal(signal.SIGINT)

    def stop(self) -> None:
        self._process.kill()
        self._process.wait()
        self._reader.join()
        assert self._process.stdout is not None
        self._process.stdout.close()


Start = Callable[..., Program]


@pytest.fixture
def start() -> Iterator[Start]:
    programs: list[Program] = []

    def begin(*arguments: str) -> Program:
        programs.append(Program(*arguments))
        return programs[-1]

    yield begin
    for program in programs:
        program.stop()


@pytest.fixture
def group() -> str:
    return f"test-{token_hex(6)}"


@pytest.fixture(autouse=True)
def _no_configuration(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    monkeypatch.chdir(tmp_path)
    for name in [name for name in os.environ if name.startswith("SEMCAST_")]:
        monkeypatch.delenv(name)


def with_members(count: int) -> Callable[[str], bool]:
    """A line of `tail --json --views` that says that so many are there."""

    def wanted(line: str) -> bool:
        event = json.loads(line)
        return event["event"] == "view" and len(event["view"]["members"]) == count

    return wanted


def printed_json(capsys: pytest.CaptureFixture[str]) -> Any:
    return json.loads(capsys.readouterr().out)


def test_what_is_sent_is_tailed(start: Start, group: str, capsys: pytest.CaptureFixture[str]) -> None:
    tail = start("tail", group, "--json", "--views", "--count", "2", "--name", "reader")
    tail.until(with_members(1))
    assert main(["send", group, "hello", "wörld", "--name", "writer", "--json"]) == 0
    report = printed_json(capsys)
    assert (report["sent"], report["members"], report["order"]) == (2, 2, "agreed")
    assert tail.ends() == 0
    events = [json.loads(line) for line in tail.printed]
    messages = [event for event in events if event["event"] == "message"]
    assert [message["text"] for message in messages] == ["hello", "wörld"]
    assert [message["seq"] for message in messages] == [1, 2]
    assert {message["sender"]["name"] for message in messages} == {"writer"}
    joined = {who["name"] for event in events if event["event"] == "view" for who in event["joined"]}
    assert joined == {"reader", "writer"}


def test_what_is_sent_by_gossip_is_in_the_log(
    start: Start, group: str, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    assert main(["send", group, "--stack", "gossip", "--wait-members", "1", "early"]) == 1
    assert "there is no logger" in capsys.readouterr().err
    start("logger", str(tmp_path / "log"), "--group", group)
    assert main(["send", group, "--stack", "gossip", "--timeout", "30s", "hello", "you"]) == 0
    assert capsys.readouterr().out == f"sent 2 messages to {group} (logged)\n"


def test_who_reads_a_log_is_no_member_to_wait_for(
    start: Start, group: str, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    """A query in Spark, say: it is never in a view with others."""
    start("logger", str(tmp_path / "log"), "--group", group)
    with blocking.log(group, timeout=PATIENCE) as log:
        assert main(["members", group, "--json"]) == 0
        phases = sorted(each["phase"] for each in printed_json(capsys)["members"])
        assert phases == ["client", "operational"]
        assert main(["send", group, "--stack", "gossip", "--timeout", "30s", "hello"]) == 0
        assert capsys.readouterr().out == f"sent 1 message to {group} (logged)\n"
        assert log.ends().next == 1


def test_the_text_may_come_behind_options(group: str, capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["send", group, "--item", "IBM", "--wait-members", "1", "101", "102", "--json"]) == 0
    assert printed_json(capsys)["sent"] == 2


def test_lines_of_the_input_become_messages(start: Start, group: str) -> None:
    tail = start("tail", group, "--views", "--count", "3")
    tail.until(lambda line: line.startswith("-- view"))
    lines = b"one\ntwo\x1b[2J\n\xff\x00"
    command = [*COMMAND, "send", group, "--safe", "--name", "w"]
    sent = subprocess.run(command, input=lines, capture_output=True, timeout=PATIENCE, check=False)
    assert sent.returncode == 0, sent.stderr
    assert sent.stdout.decode() == f"sent 3 messages to {group} (1 other)\n"
    assert tail.ends() == 0
    messages = [line.split(" ", 1)[1] for line in tail.printed if line.startswith("w#")]
    assert messages == ["1: one", r"2: two\x1b[2J", "3: 0xff00"]


def test_an_item_is_shown_and_replaces_what_came_before(start: Start, group: str) -> None:
    tail = start("tail", group, "--json", "--views")
    tail.until(with_members(1))
    assert main(["send", group, *map(str, range(50)), "--item", "IBM"]) == 0
    last = tail.until(lambda line: json.loads(line).get("seq") == 50)
    assert (json.loads(last)["item"], json.loads(last)["text"]) == ("IBM", "49")


def test_members_lists_who_is_there_and_joins_nobody(
    start: Start, group: str, capsys: pytest.CaptureFixture[str]
) -> None:
    first = start("tail", group, "--json", "--views", "--name", "a")
    second = start("tail", group, "--json", "--views", "--name", "b")
    first.until(with_members(2))
    second.until(with_members(2))
    assert main(["members", group, "--json"]) == 0
    found = printed_json(capsys)["members"]
    assert [each["member"]["name"] for each in found] == ["a", "b"]
    assert {each["phase"] for each in found} == {"operational"}
    assert [each["view"]["members"] for each in found] == [2, 2]
    assert found[0]["view"] == found[1]["view"]
    second.interrupt()
    assert second.ends() == 0
    change = json.loads(first.until(with_members(1)))
    assert [who["name"] for who in change["left"]] == ["b"]
    assert change["failed"] == []
    assert main(["members", group]) == 0
    shown = capsys.readouterr().out
    assert "operational" in shown
    assert " b " not in shown
    events = [json.loads(line) for line in first.printed]
    assert {who["name"] for event in events for who in event["view"]["members"]} == {"a", "b"}


def test_top_shows_rates_and_queues(start: Start, group: str, capsys: pytest.CaptureFixture[str]) -> None:
    tail = start("tail", group, "--json", "--views", "--name", "reader")
    tail.until(with_members(1))
    assert main(["send", group, "x"]) == 0
    capsys.readouterr()
    assert main(["top", group, "--json"]) == 0
    [found] = [each for each in printed_json(capsys)["members"] if each["member"]["name"] == "reader"]
    assert found["delivered"] == 1
    assert set(found["per_second"]) == {"sent", "delivered", "purged", "retransmitted"}
    assert found["per_second"]["sent"] == 0
    assert main(["top", group, "--once"]) == 0
    shown = capsys.readouterr().out
    assert "reader" in shown
    assert "queued" in shown


def test_top_draws_until_interrupted(start: Start, group: str) -> None:
    somebody = start("tail", group, "--json", "--views", "--name", "somebody")
    somebody.until(with_members(1))
    ours, theirs = pty.openpty()
    terminal = {**os.environ, "TERM": "xterm", "COLUMNS": "120"}
    top = subprocess.Popen([*COMMAND, "top", group], stdin=theirs, stdout=theirs, stderr=theirs, env=terminal)
    os.close(theirs)
    try:
        watchdog = threading.Timer(PATIENCE, top.kill)
        watchdog.start()
        drawn = b""
        while b"somebody" not in drawn:
            drawn += os.read(ours, 4096)  # fails when the watchdog has ended it
        top.send_signal(signal.SIGINT)
        with suppress(OSError):  # how a terminal says that nobody is at the other end
            while os.read(ours, 4096):
                pass
        assert top.wait(PATIENCE) == 0
    finally:
        watchdog.cancel()
        top.kill()
        top.wait()
        os.close(ours)


def test_nobody_there_is_said_in_one_line(group: str, capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["members", group, "--wait", "50ms"]) == 1
    said = capsys.readouterr()
    assert said.out == ""
    assert said.err == f"nobody in '{group}' announced itself within 50ms\n"
    assert main(["members", group, "--wait", "50ms", "--json"]) == 1
    assert printed_json(capsys)["members"] == []
    assert main(["send", group, "x", "--timeout", "300ms"]) == 1
    assert "nobody else is in" in capsys.readouterr().err


def test_a_message_that_is_too_large_is_refused(group: str) -> None:
    huge = b"x" * ((1 << 24) + 1)
    command = [*COMMAND, "send", group, "--wait-members", "1"]
    sent = subprocess.run(command, input=huge, capture_output=True, timeout=PATIENCE, check=False)
    assert sent.returncode == 1
    assert b"bytes" in sent.stderr
    assert sent.stderr.count(b"\n") == 1


def test_who_closes_the_output_of_tail_ends_it(group: str) -> None:
    reading, writing = os.pipe()
    command = [*COMMAND, "tail", group, "--json", "--views"]
    tail = subprocess.Popen(command, stdout=writing, stderr=subprocess.PIPE)
    os.close(writing)
    try:
        assert b"view" in os.read(reading, 4096)
        os.close(reading)
        main(["send", group, "x", "--wait-members", "1"])
        _, said = tail.communicate(timeout=PATIENCE)
        assert (tail.returncode, said) == (0, b"")
    finally:
        tail.kill()
        tail.wait()


def test_who_wants_no_company_may_send_alone(group: str, capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["send", group, "x", "y", "--wait-members", "1", "--json"]) == 0
    assert printed_json(capsys)["sent"] == 2


def test_a_sender_without_input_can_be_interrupted(start: Start, group: str) -> None:
    tail = start("tail", group, "--json", "--views")
    tail.until(with_members(1))
    reading, writing = os.pipe()
    process = subprocess.Popen([*COMMAND, "send", group], stdin=reading, stderr=subprocess.PIPE)
    os.close(reading)
    try:
        tail.until(with_members(2))
        os.write(writing, b"first\nsecond")
        tail.until(lambda line: json.loads(line).get("text") == "first")
        process.send_signal(signal.SIGINT)
        _, said = process.communicate(timeout=PATIENCE)
        assert process.returncode == 130
        assert said == b"interrupted\n"
        assert json.loads(tail.until(with_members(1)))["failed"] == []
    finally:
        os.close(writing)
        process.kill()
        process.wait()


def test_a_sealed_group_is_for_those_who_have_the_key(
    start: Start, group: str, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    key = str(tmp_path / "key")
    here = ("--bind", "127.0.0.1:0")
    assert main(["keygen", key]) == 0
    tail = start("tail", group, "--json", "--views", "--count", "1", "--name", "a", "--key-file", key, *here)
    tail.until(with_members(1))
    capsys.readouterr()
    assert main(["members", group]) == 1
    assert "sealed" in capsys.readouterr().err
    assert main(["members", group, "--key-file", key, "--json", *here]) == 0
    assert [each["member"]["name"] for each in printed_json(capsys)["members"]] == ["a"]
    assert main(["send", group, "hush", "--key-file", key, *here]) == 0
    assert tail.ends() == 0


def test_a_program_s_own_settings_are_not_ours(
    start: Start, group: str, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    """`semcast.toml` may give the program a port, a name, a recording and metrics."""
    record = tmp_path / "recorded"
    (tmp_path / "semcast.toml").write_text(
        f'[group]\nname = "server"\nbind = "127.0.0.1:1"\nmetrics = "127.0.0.1:1"\nrecord = "{record}"\n',
        encoding="utf8",
    )
    assert main(["send", group, "x", "--wait-members", "1", "--json"]) == 0
    assert printed_json(capsys)["member"]["name"].startswith("send-")
    assert not record.exists()


def test_without_a_meeting_point_members_tell_their_peers(
    start: Start, group: str, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setenv("SEMCAST_MULTICAST", "false")
    port = 30_000 + int(token_hex(2), 16) % 2_000  # below those that are handed out to everybody
    start("tail", group, "--name", "a", "--peer", f"127.0.0.1:{port}")
    deadline = time.monotonic() + PATIENCE
    while main(["members", group, "--json", "--bind", f"127.0.0.1:{port}"]) == 1:
        capsys.readouterr()
        assert time.monotonic() < deadline
    assert [each["member"]["name"] for each in printed_json(capsys)["members"]] == ["a"]


@pytest.mark.parametrize(
    ("arguments", "says"),
    [
        (["members", "g", "--wait", "soon"], "not a duration"),
        (["members", "g", "--bind", "nowhere"], "not an address"),
        (["members", "g", "--bind", "192.0.2.1:0"], "needs a key"),
        (["members", ""], "needs a name"),
        (["top", "g", "--once", "--peer", "x"], "not an address"),
        (["top", "g", "--once", "--key-file", "missing"], "missing"),
        (["send", "g", "x", "--wait-members", "0"], "--wait-members"),
        (["send", "g", "x", "--item", ""], "--item"),
        (["send", "g", "x", "--timeout", "1"], "not a duration"),
        (["send", "", "x"], "needs a name"),
        (["tail", "g", "--count", "0"], "--count"),
        (["tail", "g", "--key-file", "missing"], "missing"),
    ],
)
def test_what_went_wrong_is_said_in_one_line(
    arguments: list[str], says: str, capsys: pytest.CaptureFixture[str]
) -> None:
    assert main(arguments) == 2
    error = capsys.readouterr().err
    assert says in error
    assert error.count("\n") == 1
