"""`semcast dashboard`: live groups, sealed or not, recorded ones, and what is refused."""

import asyncio
import json
import os
import re
import socket
import subprocess
import sys
import time
import urllib.request
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from secrets import token_hex
from typing import Any

import pytest

import semcast
from semcast.cli.main import main
from semcast.dashboard.feed import Feed
from semcast.dashboard.watching import watch
from semcast.group.observing import observe
from semcast.group.settings import resolve

_PATIENCE = 60


@contextmanager
def served(*words: str) -> Iterator[str]:
    """The address of a dashboard, while it runs."""
    command = [sys.executable, "-m", "semcast", "dashboard", *words, "--listen", "127.0.0.1:0", "--json"]
    process = subprocess.Popen(command, stdout=subprocess.PIPE, text=True)
    try:
        assert process.stdout is not None
        yield json.loads(process.stdout.readline())["address"]
    finally:
        process.terminate()
        assert process.wait(_PATIENCE) == 0
        assert process.stdout is not None
        process.stdout.close()


def state(address: str) -> dict[str, Any]:
    with urllib.request.urlopen(address + "state", timeout=10) as answer:  # noqa: S310
        found: dict[str, Any] = json.load(answer)
        return found


def until(address: str, ready: Any) -> dict[str, Any]:
    deadline = time.monotonic() + _PATIENCE
    while True:
        found = state(address)
        if found["groups"] and ready(found):
            return found
        assert time.monotonic() < deadline, found
        time.sleep(0.2)


def _seen(told: dict[str, Any]) -> list[int]:
    return [len(group["members"]) for group in told["groups"]]


@pytest.mark.parametrize("sealed", [False, True], ids=["open", "sealed"])
def test_a_live_group_and_another_that_nobody_is_in(tmp_path: Path, sealed: bool) -> None:
    name, key = f"test-{token_hex(6)}", tmp_path / "key.toml"
    other = tmp_path / "other.toml"
    for path in (key, other):
        assert main(["keygen", str(path)]) == 0
    settings: dict[str, Any] = {"key_file": str(key), "bind": "127.0.0.1:0"} if sealed else {}
    words = ("--key-file", str(key), "--bind", "127.0.0.1:0") if sealed else ()

    async def scenario() -> None:
        async with (
            semcast.join(name, name="ann", **settings) as one,
            semcast.join(name, name="bob", **settings),
        ):
            await one.wait_for(2)
            await asyncio.to_thread(look)

    def look() -> None:
        with served(name, f"{name}-nobody", *words) as address:
            found = until(address, lambda told: _seen(told) == [2, 0] and told["groups"][1]["problem"])
            groups = {group["group"]: group for group in found["groups"]}
            assert [view["members"] for view in groups[name]["views"]] == [["ann", "bob"]]
            assert "no member has announced itself" in groups[f"{name}-nobody"]["problem"]
            for secret in re.findall(r'"([^"]{16,})"', key.read_text()):
                assert secret not in json.dumps(found), "no key is ever on the page"
        if sealed:
            wrong = ("--key-file", str(other), "--bind", "127.0.0.1:0")
            with served(name, *wrong) as address:
                found = until(address, lambda told: "key" in told["groups"][0]["problem"])
                assert found["groups"][0]["members"] == []

    asyncio.run(scenario())


def test_who_watches_sends_nothing_and_is_in_no_view() -> None:
    name = f"watched-{token_hex(4)}"

    async def scenario() -> None:
        async with semcast.join(name, name="a") as group:
            before = group.view
            with observe(name, resolve({})) as observer:
                feed = Feed({"replay": ""})
                watching = asyncio.create_task(watch(feed, [(name, observer)]))
                async with asyncio.timeout(20):
                    while not observer.members():
                        await asyncio.sleep(0.1)
                watching.cancel()
                await asyncio.wait([watching])
                sent = observer._endpoint.stats.datagrams_out
                assert sent == 0
            assert group.view == before

    asyncio.run(scenario())


def test_a_recorded_run_is_played(tmp_path: Path) -> None:
    async def record() -> None:
        async with (
            semcast.join("recorded", name="ann", record=str(tmp_path), bind="127.0.0.1:0") as one,
            semcast.join("recorded", name="bob", record=str(tmp_path), bind="127.0.0.1:0"),
        ):
            await one.wait_for(2)
            await one.send(b"hello")
            await asyncio.sleep(1.2)  # of recorded time, which is what is played

    asyncio.run(record())
    with served("--replay", str(tmp_path), "--speed", "100") as address:
        found = until(address, lambda told: told["groups"][0]["progress"] == 1)
        assert found["about"]["replay"] == tmp_path.name
        [group] = found["groups"]
        seen = [sorted(sample["members"]) for sample in group["history"]]
        assert ["ann", "bob"] in seen


@pytest.mark.parametrize(
    ("words", "match"),
    [
        ([], "name one or more groups to watch, or a folder to --replay"),
        (["g", "--replay", "here"], "name one or more groups to watch, or a folder to --replay"),
        (["--replay", "/nonexistent"], "no such file or folder"),
        (["g", "--listen", "everywhere"], "--listen: 'everywhere' is not an address"),
        (["g", "--listen", "0.0.0.0:8080"], "everybody who reaches it could watch"),
        (["x" * 300], "the name of a group has 300 bytes"),
        (["g", "--key-file", "/nonexistent"], "key_file"),
    ],
)
def test_what_cannot_be_shown_is_refused(
    words: list[str], match: str, capsys: pytest.CaptureFixture[str]
) -> None:
    assert main(["dashboard", *words]) == 2
    assert match in capsys.readouterr().err


def test_a_port_in_use_is_named(capsys: pytest.CaptureFixture[str]) -> None:
    with socket.create_server(("127.0.0.1", 0)) as taken:
        place = f"127.0.0.1:{taken.getsockname()[1]}"
        assert main(["dashboard", f"test-{os.getpid()}", "--listen", place]) == 2
    assert f"--listen: {place}: Address already in use" in capsys.readouterr().err
