"""What no log may ever have: payloads and keys. And that a log which had one would be noticed."""

import asyncio
import logging
import re
from pathlib import Path
from typing import Any

import pytest

import semcast
from semcast.cli.main import main
from semcast.core.handover import Handover
from semcast.core.outgoing import Outgoing
from semcast.testing import World, swarm, trouble

PAYLOAD = b"TOP SECRET PAYLOAD"


@swarm(seeds=2, hosts=3, loss=0.02)
def test_no_payload_and_no_key_is_logged(
    world: World, caplog: pytest.LogCaptureFixture, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    """At any level, also while members are expelled and come back, and strangers without the key speak."""
    keys = tmp_path / f"keys-{world.seed}.toml"
    assert main(["keygen", str(keys)]) == 0
    capsys.readouterr()

    async def member(name: str, sealed: bool) -> None:
        key = str(keys) if sealed else ""
        async with semcast.join("g", name=name, insecure=not sealed, key_file=key) as group:

            async def speak() -> None:
                while True:
                    await group.send(PAYLOAD, item="x")
                    await asyncio.sleep(0.5)

            speaking = asyncio.create_task(speak())
            async for _ in group:
                pass
            speaking.cancel()

    with caplog.at_level(logging.DEBUG):
        for host in world.hosts:
            world.start(host, member, host, True)
        world.start("a", member, "stranger", False)
        trouble(world, 20, ["partition", "loss", "pause"])
        world.sleep(5)
    secrets = re.findall(r'secret = "([^"]+)"', keys.read_text())
    assert secrets
    assert "not sealed" in caplog.text, "something was worth a log"
    assert not leaked(caplog.text, secrets)


def leaked(text: str, secrets: list[str]) -> list[str]:
    """What a text has of what it must not have."""
    return [secret for secret in [*secrets, PAYLOAD.decode()] if secret in text]


def orders(world: World, keys: Path) -> None:
    """A publisher, a logger that is killed, and a subscriber, all with a key."""
    sealed: dict[str, Any] = {"stack": "gossip", "key_file": str(keys)}

    async def log() -> None:
        async with semcast.join("g", name="log", logger=True, receive=False, data="store", **sealed):
            await asyncio.Event().wait()

    async def publish() -> None:
        async with semcast.join("g", name="p", receive=False, **sealed) as group:
            while True:
                await group.send(PAYLOAD, item="x")
                await asyncio.sleep(0.2)

    async def read() -> None:
        async with semcast.subscribe("g", durable="desk", start="all", key_file=str(keys)) as log:
            async for _ in log:
                pass

    async def stranger() -> None:
        async with semcast.join("g", stack="gossip", name="stranger", insecure=True):
            await asyncio.Event().wait()

    for host, program in zip(world.hosts, (log, publish, read), strict=True):
        world.start(host, program)
    world.start(world.hosts[1], stranger)
    world.sleep(5)
    world.crash(world.hosts[0])
    world.sleep(5)
    world.restart(world.hosts[0])
    world.sleep(5)


@pytest.mark.parametrize("planted", [False, True])
def test_no_payload_and_no_key_is_logged_where_there_is_a_logger(
    planted: bool,
    caplog: pytest.LogCaptureFixture,
    tmp_path: Path,
    capsys: pytest.CaptureFixture[str],
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    """With a leak that is planted on purpose it is."""
    keys = tmp_path / "keys.toml"
    assert main(["keygen", str(keys)]) == 0
    capsys.readouterr()
    honest = Handover.head

    def tells(handover: Handover) -> Outgoing:
        outgoing = honest(handover)
        logging.getLogger("semcast.group").debug("sends %r", outgoing.payloads)
        return outgoing

    if planted:
        monkeypatch.setattr(Handover, "head", tells)
    with caplog.at_level(logging.DEBUG):
        orders(World(seed=3, hosts=3, loss=0.02), keys)
    secrets = re.findall(r'secret = "([^"]+)"', keys.read_text())
    assert "not sealed" in caplog.text, "something was worth a log"
    assert leaked(caplog.text, secrets) == ([PAYLOAD.decode()] if planted else [])
