"""What a group writes into the log."""

import asyncio
import logging
from collections.abc import Callable
from pathlib import Path
from secrets import token_hex
from types import SimpleNamespace
from typing import Any, cast

import pytest

import semcast
from semcast.core.events import Away, Left, Minority
from semcast.core.ids import MemberId
from semcast.core.views import View
from semcast.group.logs import GroupLog, NetworkLog
from semcast.net.keyfile import new_key, save_keyring
from semcast.net.sockets import SocketStatistics
from semcast.wire.keyring import Cipher, Keyring

SECRET = b"nobody reads this"


class Ear(logging.Handler):
    """Waits for a line."""

    def __init__(self, wanted: str) -> None:
        super().__init__()
        self._wanted = wanted
        self.heard: Callable[[], object] = lambda: None
        self.lines: list[str] = []

    def emit(self, record: logging.LogRecord) -> None:
        if self._wanted in record.getMessage():
            self.lines.append(record.getMessage())
            self.heard()


@pytest.mark.parametrize(
    ("settings", "advice"),
    [
        ({"minimum": 3}, "do others run"),
        ({"stack": "vsync"}, "set minimum= at all members"),
        ({"stack": "vsync", "minimum": 2}, "do 2 founders run"),
    ],
)
def test_who_waits_to_be_let_in_says_so(
    caplog: pytest.LogCaptureFixture, monkeypatch: pytest.MonkeyPatch, settings: dict[str, Any], advice: str
) -> None:
    monkeypatch.setattr("semcast.group.group._SETTLE_PATIENCE", 0.5)

    async def test() -> None:
        with pytest.raises(TimeoutError):
            async with asyncio.timeout(1), semcast.join(f"logs-{token_hex(4)}", name="a", **settings):
                pass

    with caplog.at_level(logging.WARNING, "semcast"):
        asyncio.run(test())
    lines = [record.getMessage() for record in caplog.records]
    assert any(
        "a#" in line and "has waited for 0.5 s" in line and "nobody" in line and advice in line
        for line in lines
    ), lines


def test_joining_views_and_leaving_are_told(caplog: pytest.LogCaptureFixture) -> None:
    name = f"logs-{token_hex(4)}"

    async def test() -> None:
        async with asyncio.timeout(20):
            waiting = semcast.join(name, name="a", minimum=2)
            entering = asyncio.ensure_future(waiting.__aenter__())
            async with semcast.join(name, name="b") as b:
                await entering
                await b.send(SECRET, item="secret item", confirm="safe")
            async for event in waiting:
                if isinstance(event, semcast.ViewChange) and event.left:
                    break
            await waiting.close()

    with caplog.at_level(logging.DEBUG, "semcast"):
        asyncio.run(test())
    lines = [record.getMessage() for record in caplog.records if record.name == "semcast.group"]
    assert any(line.startswith(f"{name}: a#") and " joins (ring) at 127.0.0.1 port" in line for line in lines)
    assert any("of 2: a, b" in line and "joined" in line for line in lines)
    assert any("(left b)" in line for line in lines)
    assert any("left: asked to" in line for line in lines)
    assert not any("secret" in line or SECRET.decode() in line for line in lines)
    assert all(record.levelno <= logging.INFO for record in caplog.records if record.name == "semcast.group")


def test_trouble_is_a_warning(caplog: pytest.LogCaptureFixture) -> None:
    a, b = MemberId("a", 1), MemberId("b\n", 1)
    log = GroupLog("g", a)
    with caplog.at_level(logging.INFO, "semcast"):
        log.on_deliveries(0, [semcast.ViewChange(View(7, (a,), representative=a), failed=(b,))])
        log.on_events(0, [Minority(1, 2), Left("put out: too slow", again=True)])
        log.on_renewal(0, MemberId("a", 2))
    assert [record.levelname for record in caplog.records] == ["WARNING"] * 4
    assert [record.getMessage() for record in caplog.records] == [
        "g: view 7@a#1 of 1: a (failed b\\n)",
        "g: a is cut off from the majority: 1 can be reached, 2 are needed; it waits",
        "g: a#1 left: put out: too slow",
        "g: a#1 comes back as a#2",
    ]


def test_a_logger_that_does_not_answer_is_told_once_in_a_while(caplog: pytest.LogCaptureFixture) -> None:
    log = GroupLog("g", MemberId("a", 1))
    for _ in range(3):
        log.on_events(0, [Away()])
    assert [record.getMessage() for record in caplog.records] == [
        "g: no logger answers a#1; it goes on when one does: does `semcast logger` run?"
    ]


def test_who_has_another_key_is_told(tmp_path: Path) -> None:
    name = f"logs-{token_hex(4)}"
    for file in ("one", "other"):
        key = new_key(Cipher.AES_256_GCM)
        save_keyring(tmp_path / file, Keyring([key], key.id), replace=False)

    async def test() -> None:
        loop, told = asyncio.get_running_loop(), asyncio.Event()
        ear.heard = lambda: loop.call_soon_threadsafe(told.set)
        one, other = (
            semcast.join(name, name=file, bind="127.0.0.1:0", key_file=str(tmp_path / file))
            for file in ("one", "other")
        )
        async with asyncio.timeout(20), one, other:
            await told.wait()

    ear = Ear("sealed with an unknown key")
    logging.getLogger("semcast.network").addHandler(ear)
    try:
        asyncio.run(test())
    finally:
        logging.getLogger("semcast.network").removeHandler(ear)
    assert all(line.startswith(f"{name}: ") for line in ear.lines), ear.lines


def test_a_second_process_of_one_name_is_refused_by_the_ring_and_both_sides_say_so(
    caplog: pytest.LogCaptureFixture,
) -> None:
    name = f"logs-{token_hex(4)}"

    async def test() -> None:
        async with (
            asyncio.timeout(20),
            semcast.join(name, name="a") as a,
            semcast.join(name, name="b", minimum=2),
        ):
            with pytest.raises(semcast.GroupClosedError, match="a living member is called a"):
                await semcast.join(name, name="a")
            await a.wait_for(2, timeout=5)

    with caplog.at_level(logging.WARNING, "semcast.group"):
        asyncio.run(test())
    assert any("is not let in: a#" in record.getMessage() for record in caplog.records)


def test_members_of_one_name_that_met_all_the_same_are_named_with_their_addresses(
    caplog: pytest.LogCaptureFixture,
) -> None:
    class Hub:
        speaks_first = True
        stats = SimpleNamespace(malformed={})

        def malformed(self) -> dict[str, int]:
            return {}

        def traffic(self) -> SocketStatistics:
            return SocketStatistics()

        def whereabouts(self) -> list[tuple[MemberId, tuple[str, int] | None]]:
            first, second = MemberId("a", 1), MemberId("a", 2)
            return [(first, ("127.0.0.1", 1)), (second, ("127.0.0.1", 2)), (MemberId("b"), None)]

    log = NetworkLog("g", cast("Any", Hub()))
    with caplog.at_level(logging.WARNING, "semcast.network"):
        log.look()
        log.look()
    assert [record.getMessage() for record in caplog.records] == [
        "g: several members are called a, at 127.0.0.1:1 and 127.0.0.1:2: a name stands for one process"
    ]
