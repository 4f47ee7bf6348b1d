"""A family that is not part of the package, live."""

import asyncio
import json
from pathlib import Path
from typing import Any

import pytest
import tests.toy
from tests.families.test_toy import command

import semcast
from semcast.bench.case import Case
from semcast.bench.families import FAMILIES
from semcast.bench.measuring import free_addresses
from semcast.history import read_history
from semcast.specs import check

assert "toy" in FAMILIES, f"{tests.toy.__name__} registers it"


async def _talk(folder: Path) -> list[bytes]:
    members = [f"m{rank}={at}" for rank, at in enumerate(free_addresses(2))]
    shared: dict[str, Any] = {"stack": "toy", "members": members, "multicast": False, "record": str(folder)}
    heard: list[bytes] = []
    first, second = (semcast.join("toys", name=name, **shared) for name in ("m0", "m1"))
    async with first as one, second as two:
        await one.send_many([b"%d" % number for number in range(200)])
        await one.send_items([("bid", b"last"), ("ask", b"very last")])
        async for event in two:
            if isinstance(event, semcast.Message):
                heard.append(event.payload)
                if event.payload == b"very last":
                    break
        with pytest.raises(ValueError, match="no safe order in toy"):
            await one.send(b"x", order="safe")
    return heard


def test_programs_join_a_group_of_toys(tmp_path: Path) -> None:
    heard = asyncio.run(_talk(tmp_path))
    assert heard == [*(b"%d" % number for number in range(200)), b"last", b"very last"]
    verdicts = check(read_history(tmp_path))
    assert {verdict.status.value for verdict in verdicts} <= {"holds", "unknown"}


def test_it_can_be_measured() -> None:
    printed = command("bench", "--stack", "toy", "--messages", "2000", "--members", "2", "--json")
    figures = json.loads(printed)
    assert [each["delivered"] for each in figures["members"]] == [2001, 2001]
    with pytest.raises(ValueError, match="for vsync, and this is toy"):
        FAMILIES.of("toy").check(Case(stack="toy", order="fifo", uniform=True))
