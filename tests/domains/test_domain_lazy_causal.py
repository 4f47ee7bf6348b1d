"""Lazy programs in a causal domain: they answer while they read, never read, restart at once, come first."""

import asyncio
from secrets import token_hex

import pytest

import semcast
from semcast.core import MemberId, Outbox
from semcast.domains.causal import CausalLink
from semcast.protocols.isis.notes import Notes
from semcast.protocols.isis.program import CHANGES, Letter, Program

ASKS = 300


def _domain(name: str, who: str) -> semcast.Domain:
    return semcast.domain(name, engine="causal", name=who)


def test_programs_that_answer_while_they_read_all_get_their_answers() -> None:
    async def ask(group: semcast.LightGroup) -> None:
        for _ in range(ASKS):
            await group.send(b"ask")

    async def program(name: str, who: str) -> int:
        async with _domain(name, who) as floor:
            group = await floor.join("all")
            await group.wait_for(2, 20)
            asking = asyncio.create_task(ask(group))
            answers = ended = 0
            async for _, event in floor:
                if not isinstance(event, semcast.Message) or event.sender == floor.member:
                    continue
                if event.payload == b"ask":
                    await group.send(b"answer", confirm="delivered" if answers % 50 == 0 else None)
                answers += event.payload == b"answer"
                if answers == ASKS and not ended:
                    ended = 1
                    await group.send(b"end")
                if event.payload == b"end":
                    break
            await asking
            return answers

    async def run() -> list[int]:
        name = f"floor-{token_hex(4)}"
        async with asyncio.timeout(40):
            return list(await asyncio.gather(program(name, "ann"), program(name, "bob")))

    assert asyncio.run(run()) == [ASKS, ASKS]


def test_a_program_that_only_sends_holds_nobody_up() -> None:
    async def run() -> None:
        name = f"floor-{token_hex(4)}"
        async with asyncio.timeout(40), _domain(name, "mute") as mute, _domain(name, "other") as other:
            group, reader = await mute.join("all"), await other.join("all")
            await group.wait_for(2)
            member = mute.member

            async def read() -> int:
                count = 0
                async for event in reader:
                    count += isinstance(event, semcast.Message)
                    if count == 2 * 1000:
                        break
                return count

            reading = asyncio.create_task(read())
            for number in range(1000):
                await group.send(b"%d" % number)
                await reader.send(b"%d" % number)
            assert await reading == 2000
            assert mute.member == member, "it was never put out"

    asyncio.run(run())


def test_a_program_that_leaves_at_once_comes_back_under_its_name() -> None:
    async def run() -> None:
        name = f"floor-{token_hex(4)}"
        async with asyncio.timeout(40), _domain(name, "ann") as ann:
            there = await ann.join("all")
            members = set()
            for _ in range(3):
                async with _domain(name, "bob") as bob:
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


def test_a_client_without_servers_waits_and_goes_on_in_other_groups() -> None:
    async def run() -> None:
        name = f"floor-{token_hex(4)}"
        async with asyncio.timeout(40), _domain(name, "desk") as desk:
            with pytest.raises(TimeoutError):
                await desk.join("orders", kind="client-server", role="client", timeout=0.5)
            own = await desk.join("risk")
            await own.send(b"nothing held", confirm="safe")
            async with _domain(name, "exchange") as exchange:
                await exchange.join("orders", kind="client-server", role="server")
                orders = await desk.join("orders", kind="client-server", role="client")
                await orders.send(b"buy", confirm="safe")
            await own.send(b"bought", confirm="safe", timeout=5)

    asyncio.run(run())


@pytest.mark.parametrize("policy", ["conservative", "full", "blocks", "epochs"])
def test_who_changes_the_group_all_the_time_is_not_far_ahead_of_what_has_left(policy: str) -> None:
    """Each change takes a round: a flush behind thousands of them, or closing, would take many seconds."""

    async def run() -> None:
        name = f"floor-{token_hex(4)}"
        floors = [semcast.domain(name, engine="causal", policy=policy, name=who) for who in ("ann", "bob")]
        async with asyncio.timeout(60), floors[0] as ann, floors[1] as bob:
            joined = [(await floor.join("a"), await floor.join("b")) for floor in (ann, bob)]
            for group in joined[0]:
                await group.wait_for(2)
            link = ann._desk.link
            assert isinstance(link, CausalLink)
            program = link._session
            assert isinstance(program, Program)
            most = 0
            for number in range(400):
                await joined[0][number % 2].send(b"%d" % number)
                most = max(most, len(link._asked) + program.changes)
            assert most <= 2 * CHANGES, most
            await ann.flush()
            assert program.changes == 0

    asyncio.run(run())


def test_programs_hear_of_room_once_half_of_what_waited_has_left() -> None:
    program = Program(MemberId("p"), 1000, 1000, Notes(MemberId("p"), Outbox(), wanted=False))
    credit = []
    for _ in range(CHANGES + 1):  # the last one was asked for before it knew
        program.wish(Letter("", program.number(1), MemberId("q"), b""))
        credit.append(bool(program.credit))
    assert credit == [True] * CHANGES + [False]
    credit = []
    for _ in range(CHANGES // 2):
        program.drop()
        credit.append(bool(program.credit))
    assert credit == [False] * (CHANGES // 2 - 1) + [True]
