"""Programs as people write them: they answer while they read, never read, start twice, restart at once."""

import asyncio
from secrets import token_hex

import pytest

import semcast

ASKS = 300


def test_programs_that_answer_while_they_read_all_get_their_answers() -> None:
    """Both send much, and send from the middle of what they read: nobody waits for the other for ever."""

    async def program(name: str, domain: str) -> int:
        async with semcast.domain(domain, name=name) as floor:
            group = await floor.join("all")
            await group.wait_for(2, 20)
            asking = asyncio.create_task(_ask(group))
            answers = ended = 0
            async for _, event in floor:
                if not isinstance(event, semcast.Message):
                    continue
                if event.payload == b"ask" and event.sender != floor.member:
                    await group.send(b"answer", confirm="delivered" if answers % 50 == 0 else None)
                answers += event.payload == b"answer" and event.sender != floor.member
                if answers == ASKS and not ended:
                    ended = 1
                    await group.send(b"end")
                if event.payload == b"end" and event.sender != floor.member:
                    break
            await asking
            return answers

    async def run() -> list[int]:
        domain = f"floor-{token_hex(4)}"
        async with asyncio.timeout(40):
            return list(await asyncio.gather(program("ann", domain), program("bob", domain)))

    assert asyncio.run(run()) == [ASKS, ASKS]


async def _ask(group: semcast.LightGroup) -> None:
    for _ in range(ASKS):
        await group.send(b"ask")


def test_a_program_that_only_sends_holds_nobody_up() -> None:
    async def run() -> None:
        domain = f"floor-{token_hex(4)}"
        async with (
            asyncio.timeout(40),
            semcast.domain(domain, queue_messages=50) as mute,
            semcast.domain(domain) as other,
        ):
            group, reader = await mute.join("all"), await other.join("all")
            await group.wait_for(2)
            member = mute.member

            async def read() -> int:
                count = 0
                async for event in reader:
                    count += isinstance(event, semcast.Message)
                    if count == 2 * 3000:
                        break
                return count

            reading = asyncio.create_task(read())
            for number in range(3000):
                await group.send(b"%d" % number)
                await reader.send(b"%d" % number)
            assert await reading == 6000
            await group.send(b"still here", confirm="safe")
            assert mute.member == member, "it was never put out"

    asyncio.run(run())


def test_a_program_that_leaves_at_once_comes_back_under_its_name() -> None:
    async def run() -> None:
        domain = f"floor-{token_hex(4)}"
        async with asyncio.timeout(40), semcast.domain(domain, name="ann") as ann:
            there = await ann.join("all")
            members = set()
            for _ in range(3):
                async with semcast.domain(domain, name="bob") as bob:
                    group = await bob.join("all")
                    await there.wait_for(2)
                    members.add(bob.member)
                    await group.send(b"sent and gone")
            payloads = []
            async for event in there:
                if isinstance(event, semcast.Message):
                    payloads.append(event.payload)
                    if len(payloads) == 3:
                        break
            assert payloads == [b"sent and gone"] * 3
            assert len(members) == 3

    asyncio.run(run())


def test_a_domain_is_entered_once() -> None:
    async def run() -> None:
        floor = semcast.domain(f"floor-{token_hex(4)}")
        async with floor:
            with pytest.raises(semcast.GroupError, match="entered before"):
                await floor
        await floor.close()
        with pytest.raises(semcast.GroupError, match="entered before"):
            await floor

    asyncio.run(run())


def test_who_is_cancelled_leaves_nothing_behind() -> None:
    async def run() -> None:
        domain = f"floor-{token_hex(4)}"

        async def enter() -> None:
            async with semcast.domain(domain) as floor:
                await floor.join("a")
                await asyncio.sleep(60)

        for pause in (0.0, 0.05, 0.4):
            task = asyncio.create_task(enter())
            await asyncio.sleep(pause)
            task.cancel()
            with pytest.raises(asyncio.CancelledError):
                await task
        assert asyncio.all_tasks() == {asyncio.current_task()}

    asyncio.run(run())
