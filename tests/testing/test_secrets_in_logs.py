"""What no log may ever have: payloads and keys."""

import asyncio
import logging
import re
from pathlib import Path

import pytest

import semcast
from semcast.cli.main import main
from semcast.testing import World, swarm, trouble


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
                    await group.send(b"TOP SECRET PAYLOAD", item="x")
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
    for secret in [*secrets, "TOP SECRET"]:
        assert secret not in caplog.text
