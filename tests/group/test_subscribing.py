"""Subscriptions: what a group logs, for programs that come and go."""

import asyncio
import time
import uuid
from collections.abc import AsyncIterator, Awaitable, Callable
from contextlib import asynccontextmanager
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

import pytest

import semcast
from semcast import blocking
from semcast.core.events import Left
from semcast.protocols.gossip import Member

PATIENCE = 10.0


class Desk:
    """A group with a logger and somebody who sends."""

    def __init__(self, name: str, publisher: semcast.Group) -> None:
        self.name = name
        self.publisher = publisher

    async def send(self, *payloads: bytes, item: str | None = None) -> None:
        for payload in payloads:
            await self.publisher.send(payload, item=item, logged=True, timeout=PATIENCE)

    def subscribe(self, **how: Any) -> semcast.Subscription:
        return semcast.subscribe(self.name, **how)


@asynccontextmanager
async def opened(folder: Path) -> AsyncIterator[Desk]:
    name = f"log {uuid.uuid4().hex}"
    logger = semcast.join(name, stack="gossip", name="log", logger=True, data=str(folder), receive=False)
    async with logger, semcast.join(name, stack="gossip", name="p", receive=False) as publisher:
        yield Desk(name, publisher)


async def take(subscription: semcast.Subscription, count: int, *, ack: bool = False) -> list[bytes]:
    found: list[bytes] = []
    async with asyncio.timeout(PATIENCE):
        async for batch in subscription:
            found += [message.payload for message in batch]
            if ack:
                await batch.ack()
            if len(found) >= count:
                break
    return found


def run(folder: Path, story: Callable[[Desk], Awaitable[None]]) -> None:
    async def main() -> None:
        async with opened(folder) as desk:
            await story(desk)

    asyncio.run(main())


def test_what_comes(tmp_path: Path) -> None:
    async def story(desk: Desk) -> None:
        await desk.send(b"before")
        async with desk.subscribe() as new, desk.subscribe(start="all") as everything:
            await desk.send(b"after")
            assert await take(new, 1) == [b"after"]
            assert await take(everything, 2) == [b"before", b"after"]

    run(tmp_path, story)


def test_a_durable_subscription_goes_on_where_it_was(tmp_path: Path) -> None:
    async def story(desk: Desk) -> None:
        async with desk.subscribe(durable="desk-7", start="all", ack="explicit") as first:
            await desk.send(b"1", b"2")
            assert await take(first, 2, ack=True) == [b"1", b"2"]
        await desk.send(b"3", b"4")
        async with desk.subscribe(durable="desk-7", start="acknowledged", ack="explicit") as second:
            assert await take(second, 2) == [b"3", b"4"]
        async with desk.subscribe(durable="desk-7", ack="explicit") as third:
            assert await take(third, 2, ack=True) == [b"3", b"4"], "nobody has acknowledged them"

    run(tmp_path, story)


def test_what_was_dealt_with_is_acknowledged_without_a_word(tmp_path: Path) -> None:
    async def story(desk: Desk) -> None:
        async with desk.subscribe(durable="desk-7", start="all") as first:
            await desk.send(b"1")
            found = []
            async with asyncio.timeout(PATIENCE):
                async for batch in first:
                    found += [message.payload for message in batch]
                    if found == [b"1"]:
                        await desk.send(b"2")
                    else:
                        break  # in the middle of it
        assert found == [b"1", b"2"]
        async with desk.subscribe(durable="desk-7") as second:
            assert await take(second, 1) == [b"2"]

    run(tmp_path, story)


def test_who_joins_late_reads_what_still_matters(tmp_path: Path) -> None:
    async def story(desk: Desk) -> None:
        for number in range(20):
            await desk.send(b"%d" % number, item="price")
        await desk.send(b"trade")
        async with desk.subscribe(start="compacted") as late:
            assert await take(late, 2) == [b"19", b"trade"]

    run(tmp_path, story)


def test_a_position_and_a_time(tmp_path: Path) -> None:
    async def story(desk: Desk) -> None:
        await desk.send(b"0", b"1")
        await asyncio.sleep(0.05)
        moment = time.time()
        await desk.send(b"2", b"3")
        async with (
            desk.subscribe(start=1) as position,
            desk.subscribe(start=moment) as seconds,
            desk.subscribe(start=datetime.fromtimestamp(moment, UTC)) as date,
        ):
            assert await take(position, 3) == [b"1", b"2", b"3"]
            assert await take(seconds, 2) == [b"2", b"3"]
            assert await take(date, 2) == [b"2", b"3"]

    run(tmp_path, story)


def test_only_what_is_wanted(tmp_path: Path) -> None:
    async def story(desk: Desk) -> None:
        async with (
            desk.subscribe(start="all", filter="eu.") as some,
            desk.subscribe(start="all", filter=["us.", "eu."]) as several,
            desk.subscribe(start="all", filter=lambda message: message.payload > b"1") as large,
        ):
            await desk.send(b"1", item="us.ibm")
            await desk.send(b"2", item="eu.sap")
            await desk.send(b"3")
            assert await take(some, 2) == [b"2", b"3"], "what is about no item is for all"
            assert await take(several, 3) == [b"1", b"2", b"3"]
            assert await take(large, 2) == [b"2", b"3"]

    run(tmp_path, story)


def test_a_program_that_takes_its_time_to_begin_misses_nothing(tmp_path: Path) -> None:
    async def story(desk: Desk) -> None:
        async with desk.subscribe(start="all", queue_messages=4) as slow:
            for number in range(40):
                await desk.publisher.send(b"%d" % number)
            await asyncio.sleep(0.5)
            assert await take(slow, 40) == [b"%d" % number for number in range(40)]

    run(tmp_path, story)


@pytest.mark.parametrize(
    ("how", "told"),
    [
        ({"durable": "unknown", "start": "acknowledged"}, "session 'unknown' is not known here"),
        ({"start": 99}, "99"),
    ],
)
def test_what_the_logger_refuses_is_told(tmp_path: Path, how: dict[str, Any], told: str) -> None:
    async def story(desk: Desk) -> None:
        with pytest.raises(semcast.GroupClosedError, match=told):
            async with desk.subscribe(**how):
                raise AssertionError

    run(tmp_path, story)


@pytest.mark.parametrize(
    ("how", "told"),
    [
        ({"start": "yesterday"}, "start 'yesterday': choose new, all"),
        ({"start": -1}, "a position is 0 or more"),
        ({"start": True}, "a position is 0 or more"),
        ({"ack": "never"}, "ack 'never': choose auto or explicit"),
        ({"stack": "ring"}, "stack is not for subscriptions"),
        ({"name": "x"}, "durable= names the session"),
        ({"durable": "x" * 300}, "name of 300 bytes"),
    ],
)
def test_what_makes_no_sense_is_refused(how: dict[str, Any], told: str) -> None:
    async def main() -> None:
        with pytest.raises(semcast.ConfigurationError, match=told):
            semcast.subscribe("g", **how)

    asyncio.run(main())


def test_a_name_stands_for_one_process(tmp_path: Path) -> None:
    """Who began first is told so; they do not take the session from each other for ever."""

    async def story(desk: Desk) -> None:
        first = desk.subscribe(durable="desk-7", start="all")
        async with first, desk.subscribe(durable="desk-7") as second:
            with pytest.raises(semcast.GroupClosedError, match="a name stands for one process"):
                await take(first, 1)
            await desk.send(b"1")
            assert await take(second, 1) == [b"1"]

    run(tmp_path, story)


def test_programs_without_asyncio_subscribe_too(tmp_path: Path) -> None:
    name = f"log {uuid.uuid4().hex}"
    given: dict[str, Any] = {"stack": "gossip", "receive": False}
    with (
        blocking.join(name, name="log", logger=True, data=str(tmp_path), **given),
        blocking.join(name, name="p", **given) as publisher,
    ):
        for number in range(3):
            publisher.send(b"%d" % number, logged=True, timeout=PATIENCE)
        with blocking.subscribe(name, durable="desk-7", start="all", ack="explicit") as first:
            batch = next(first.batches(PATIENCE))
            found = [message.payload for message in batch]
            batch.ack()
        with blocking.subscribe(name, durable="desk-7", ack="explicit") as second:
            for rest in second.batches(1.0 if len(found) == 3 else PATIENCE):
                found += [message.payload for message in rest]
                rest.ack()
                if len(found) == 3:
                    break
        assert found == [b"0", b"1", b"2"]


def test_streams_that_are_over_are_acknowledged_once(tmp_path: Path) -> None:
    """A publisher that left is forgotten when all of it was acknowledged; that may be said again."""

    async def story(desk: Desk) -> None:
        async with desk.subscribe(durable="desk-7", start="all", ack="explicit") as reader:
            await desk.send(b"1")
            reading = aiter(reader)
            async with asyncio.timeout(PATIENCE):
                first = await anext(reading)
                await first.ack()
                await desk.publisher.close()
                stack = reader.group.stack
                assert isinstance(stack, Member)
                while desk.publisher.member in stack.receiver.streams:
                    await asyncio.sleep(0.05)
                assert stack.receiver.ended.last(desk.publisher.member) == 1
                said = stack.acknowledging.said
                await first.ack()
                assert stack.acknowledging.said == said == 1, "a logger need not be told again"
            assert [message.payload for message in first] == [b"1"]
        async with desk.subscribe(durable="desk-7", start="all", ack="explicit") as reader:
            with pytest.raises(TimeoutError):
                async with asyncio.timeout(0.5):
                    await anext(aiter(reader))

    run(tmp_path, story)


def test_who_goes_on_as_another_incarnation_is_told_what_comes_again(tmp_path: Path) -> None:
    """Also while it waits for an acknowledgement, and reads nothing; and where it has an old batch yet."""

    def put_out(stack: Any, _now: int) -> None:
        stack.out.deliver(Left("put out by the test", again=True))

    async def story(desk: Desk) -> None:
        async with desk.subscribe(durable="desk-7", start="all", ack="explicit") as reader:
            await desk.send(b"1")
            async with asyncio.timeout(PATIENCE):
                old = await anext(aiter(reader))
                reader.group.command(_leave_unanswered)
                waiting = asyncio.ensure_future(old.ack())
                await asyncio.sleep(0)
                reader.group.command(put_out)
                with pytest.raises(semcast.UnconfirmedError, match="it comes again"):
                    await waiting
                with pytest.raises(semcast.UnconfirmedError, match="it comes again"):
                    await old.ack()
            assert await take(reader, 1, ack=True) == [b"1"]

    run(tmp_path, story)


def test_who_has_lost_its_session_to_another_waits_for_no_acknowledgement(tmp_path: Path) -> None:
    async def story(desk: Desk) -> None:
        async with desk.subscribe(durable="desk-7", start="all", ack="explicit") as first:
            await desk.send(b"1")
            async with asyncio.timeout(PATIENCE):
                batch = await anext(aiter(first))
                first.group.command(_leave_unanswered)
                waiting = asyncio.ensure_future(batch.ack())
                async with desk.subscribe(durable="desk-7", ack="explicit") as second:
                    with pytest.raises(semcast.GroupClosedError, match="has the same name"):
                        await waiting
                    with pytest.raises(semcast.GroupClosedError, match="has the same name"):
                        await batch.ack()
                    assert await take(second, 1, ack=True) == [b"1"]

    run(tmp_path, story)


def _leave_unanswered(stack: Any, _now: int) -> None:
    """No acknowledgement reaches a logger from now on."""
    stack.acknowledging.acknowledge = lambda *_: None


@pytest.mark.parametrize(
    "how",
    [
        {"start": float("nan")},
        {"start": float("inf")},
        {"start": 1 << 70},
        {"filter": ["a", 3]},
        {"filter": 3},
        {"loggers": ("log", "log")},
        {"loggers": ("log", "")},
        {"loggers": ("x" * 65,)},
    ],
    ids=str,
)
def test_what_cannot_be_is_refused_at_once(how: dict[str, Any]) -> None:
    async def main() -> None:
        with pytest.raises(semcast.ConfigurationError, match=r"start|filter|logger|name"):
            semcast.subscribe("prices", **how)

    asyncio.run(main())
