"""The verbs that meet a live group, where views are agreed on."""

import asyncio
import json
import subprocess
import sys
from typing import Any
from uuid import uuid4

import pytest

import semcast
from semcast.cli.main import main

COMMAND = [sys.executable, "-m", "semcast.cli.main"]


async def command(*arguments: str) -> tuple[int, str]:
    process = await asyncio.create_subprocess_exec(
        *COMMAND, *arguments, stdin=subprocess.DEVNULL, stdout=subprocess.PIPE, stderr=subprocess.STDOUT
    )
    try:
        output, _ = await asyncio.wait_for(process.communicate(), 40)
    finally:
        if process.returncode is None:
            process.kill()
    assert process.returncode is not None
    return process.returncode, output.decode()


async def collect(group: semcast.Group, got: list[bytes]) -> None:
    async for event in group:
        if isinstance(event, semcast.Message):
            got.append(event.payload)


@pytest.mark.parametrize("order", [[], ["--order", "total"], ["--order", "total", "--uniform"]], ids="-".join)
def test_send_tail_members_and_top(order: list[str]) -> None:
    async def test() -> None:
        name = f"cli-{uuid4().hex[:8]}"
        settings: dict[str, Any] = {
            "stack": "vsync",
            "bootstrap": True,
            "name": "program",
            "token_loss": "2s",
        }
        settings |= {"order": order[1], "uniform": len(order) > 2} if order else {}
        got: list[bytes] = []
        async with semcast.join(name, **settings) as group:
            reading = asyncio.create_task(collect(group, got))
            tailing = asyncio.create_task(
                command("tail", name, "--stack", "vsync", *order, "--count", "3", "--views")
            )
            while group.view is None or len(group.view.members) < 2:
                await asyncio.sleep(0.02)
            texts = ["one", "x" * 60_000, "three"]
            code, said = await command("send", "--stack", "vsync", *order, name, *texts)
            assert code == 0, said
            assert said.startswith("sent 3 messages")
            code, said = await tailing
            assert code == 0, said
            assert "one" in said
            assert "-- view " in said
            code, said = await command("members", name, "--json")
            [member] = json.loads(said)["members"]
            assert (member["phase"], member["member"]["name"]) == ("operational", "program")
            code, said = await command("top", name, "--once")
            assert code == 0
            assert "program" in said
            assert got == [text.encode() for text in texts]
            reading.cancel()

    asyncio.run(test())


def test_send_where_there_is_no_group(capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["send", "--stack", "vsync", "--timeout", "500ms", f"cli-{uuid4().hex[:8]}", "x"]) == 1
    assert "there is no group" in capsys.readouterr().err


@pytest.mark.parametrize(
    "wrong",
    [
        ["--stack", "vsync", "--order", "agreed"],
        ["--order", "total"],
        ["--engine", "token", "--stack", "vsync"],
        ["--uniform"],
        ["--compare", "--seconds", "0"],
    ],
    ids="-".join,
)
def test_bench_refuses_what_makes_no_sense(wrong: list[str]) -> None:
    assert main(["bench", *wrong]) == 2


def test_bench_runs(capsys: pytest.CaptureFixture[str]) -> None:
    code = main(
        ["bench", "--stack", "vsync", "--order", "total", "--messages", "3000", "--senders", "2", "--json"]
    )
    assert code == 0
    members = json.loads(capsys.readouterr().out)["members"]
    assert [member["delivered"] for member in members] == [3002] * 3


def test_bench_compares_with_a_hub(capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["bench", "--compare", "--seconds", "0.4", "--json"]) == 0
    hub, zmq, *rings = json.loads(capsys.readouterr().out)
    assert [ring["label"].startswith("Semcast ring") for ring in rings] == [True] * 3
    for each in (hub, *rings, *([zmq] if "small" in zmq else [])):
        assert each["whole"], each["label"]
        assert min(each["small"], each["large"], each["three"], each["p50_us"]) > 0, each["label"]
