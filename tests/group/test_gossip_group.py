"""Gossip and loggers, live: programs on loopback, and what they are told."""

import asyncio
import tempfile
import time
import uuid
from pathlib import Path
from typing import Any

import pytest

import semcast
from semcast.core.events import Left
from semcast.core.ids import SECOND
from semcast.core.stack import Stack
from semcast.group.families.gossip import gossip_settings
from semcast.group.settings import resolve

PATIENCE = 10.0


def settings(name: str, **more: Any) -> dict[str, Any]:
    return {"stack": "gossip", "name": name, **more}


async def take(group: semcast.Group, count: int) -> list[bytes]:
    """So many messages."""
    found: list[bytes] = []
    async with asyncio.timeout(PATIENCE):
        async for event in group:
            if isinstance(event, semcast.Message):
                found.append(event.payload)
                if len(found) == count:
                    break
    return found


def test_what_is_sent_arrives_in_order_and_is_logged(tmp_path: Path) -> None:
    async def main() -> None:
        name = f"gossip {uuid.uuid4().hex}"
        sent = [b"%d" % number for number in range(50)]
        async with (
            semcast.join(name, data=str(tmp_path), logger=True, **settings("log")),
            semcast.join(name, **settings("a")) as a,
            semcast.join(name, start="all", **settings("b")) as b,
        ):
            for payload in sent[:-1]:
                await a.send(payload)
            last = await a.send(sent[-1], logged=True, timeout=PATIENCE)
            assert last == semcast.MessageId(a.member, len(sent))
            assert await take(b, len(sent)) == sent

    asyncio.run(main())


def test_without_a_logger_nothing_is_logged(caplog: pytest.LogCaptureFixture) -> None:
    async def main() -> None:
        async with semcast.join(f"gossip {uuid.uuid4().hex}", **settings("a")) as a:
            assert "pbcast's promise" in a.stats().promise
            assert "pbcast's promise" in caplog.text
            with pytest.raises(semcast.UnconfirmedError, match="no logger"):
                await a.send(b"x", logged=True)

    asyncio.run(main())


def test_only_a_logger_logs() -> None:
    async def main() -> None:
        async with semcast.join(f"ring {uuid.uuid4().hex}") as ring:
            with pytest.raises(semcast.ConfigurationError, match="stack ring has delivered and"):
                await ring.send(b"x", logged=True)

    asyncio.run(main())


@pytest.mark.parametrize(
    ("given", "told"),
    [
        ({"protocol": "tcp"}, "protocol 'tcp': choose one of lbrm, pbcast, rpbcast"),
        ({"retention": "some"}, "retention 'some': choose one of live, stable, limits"),
        ({"policy": "leave"}, "policy = leave is not available"),
        ({"protocol": "pbcast", "durable": True}, "has no loggers"),
        ({"sponsors": 17}, "sponsors 17: from 0 to 16"),
        ({"log_messages": 5}, "log_messages needs retention = limits; log_bytes and log_age do not"),
        ({"log_messages": 5, "retention": "stable"}, "log_messages needs retention = limits"),
        ({"log_bytes": "many"}, "'many' is not a size"),
        ({"log_age": "long"}, "log_age = 'long' is not a duration"),
    ],
)
def test_settings_that_make_no_sense_are_refused(given: dict[str, Any], told: str) -> None:
    async def main() -> None:
        with pytest.raises(semcast.ConfigurationError, match=told):
            semcast.join("g", stack="gossip", **given)

    asyncio.run(main())


@pytest.mark.parametrize("retention", ["live", "stable", "limits"])
def test_bytes_and_age_bound_every_retention(retention: str) -> None:
    given = resolve({"stack": "gossip", "retention": retention, "log_bytes": "1kB", "log_age": "60m"})
    chosen = gossip_settings(given, 1400)
    assert (chosen.retention.value, chosen.log_bytes, chosen.log_age) == (retention, 1000, 3600 * SECOND)


def test_a_logger_that_comes_later_is_used() -> None:
    """What is sent before it is there has pbcast's promise; who sends goes on as another incarnation."""

    async def main(folder: Path) -> None:
        name = f"gossip {uuid.uuid4().hex}"
        async with semcast.join(name, **settings("a")) as a:
            with pytest.raises(semcast.UnconfirmedError):
                await a.send(b"1", logged=True)
            former = a.member
            async with semcast.join(name, data=str(folder), logger=True, **settings("log")):
                async with asyncio.timeout(PATIENCE):
                    async for event in a:
                        if isinstance(event, semcast.Rejoining):
                            break
                sent = await a.send(b"2", logged=True, timeout=PATIENCE)
            assert sent.sender == a.member != former

    with tempfile.TemporaryDirectory() as folder:
        asyncio.run(main(Path(folder)))


def test_who_has_read_that_it_rejoins_sends_as_the_new_one() -> None:
    """Also if nothing else of the program has run since: here its loop does not."""

    def put_out(stack: Stack, _now: int) -> None:
        stack.out.deliver(Left("the test says so", again=True))

    async def main() -> None:
        async with semcast.join(f"gossip {uuid.uuid4().hex}", **settings("a")) as a:
            former = a.member
            a.command(put_out)
            told: list[Any] = []
            until = time.monotonic() + PATIENCE
            while not told and time.monotonic() < until:
                told = [each for each in a.poll() if isinstance(each, semcast.Rejoining)]
            assert [each.former for each in told] == [former]
            assert a.member == told[0].member
            assert a.try_send(b"1") == semcast.MessageId(told[0].member, 1)

    asyncio.run(main())


def test_who_answers_what_it_reads_catches_up_with_a_whole_log(tmp_path: Path) -> None:
    """Many streams, much of which was replaced; it is never away, and neither its answers nor it wait."""
    lives, each = 5, 400

    async def main() -> None:
        name = f"gossip {uuid.uuid4().hex}"
        async with semcast.join(name, data=str(tmp_path), logger=True, **settings("log")):
            for _ in range(lives):
                async with semcast.join(name, receive=False, durable=True, **settings("p")) as p:
                    for number in range(each - 1):
                        await p.send(b"%d" % number, item=f"item {number % 5}" if number % 2 else None)
                    await p.send(b"last", logged=True, timeout=PATIENCE)
            more = settings("r", start="all", durable=True, queue_messages=64)
            async with semcast.join(name, **more) as r:
                asked = ends = 0
                async with asyncio.timeout(2 * PATIENCE):
                    async for event in r:
                        assert not isinstance(event, semcast.Away)
                        if isinstance(event, semcast.Message) and event.sender.name == "p":
                            asked += not event.annotation
                            ends += event.payload == b"last"
                            await r.send(b"answer to " + event.payload)
                            if ends == lives:
                                break
                assert asked == lives * (each // 2 + 1)
                await r.send(b"done", logged=True, timeout=PATIENCE)

    asyncio.run(main())


def test_who_closes_after_the_only_logger_has_left_does_not_wait_for_it(tmp_path: Path) -> None:
    """Nobody is there to say farewell. Its session stays on the logger's disk, as after a crash."""

    async def main() -> None:
        name = f"gossip {uuid.uuid4().hex}"
        async with semcast.join(name, data=str(tmp_path), logger=True, **settings("log")) as log:
            a = await semcast.join(name, **settings("a")).__aenter__()
            await a.send(b"1", logged=True, timeout=PATIENCE)
            await log.close()
            async with asyncio.timeout(PATIENCE):
                while log.member in a.members():
                    await asyncio.sleep(0.01)
            async with asyncio.timeout(1.5):
                await a.close()

    asyncio.run(main())
