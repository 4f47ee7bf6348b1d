"""Calls in groups of a domain."""

import asyncio
from secrets import token_hex

import pytest
from tests.domains.fake import OTHER, RING, FakeLink, installed

import semcast
from semcast import blocking
from semcast.domains.domain import Domain
from semcast.patterns.calls import ALL
from semcast.patterns.calls.envelope import Ask, encode
from semcast.protocols.clients.permissions import CALLS
from semcast.protocols.lightweight.events import Delivered
from semcast.protocols.lightweight.ids import Epoch, Position


def test_members_of_a_light_group_answer_calls() -> None:
    async def talk() -> None:
        name = f"floor-{token_hex(4)}"
        async with (
            asyncio.timeout(30),
            semcast.domain(name, name="ann") as one,
            semcast.domain(name, name="bob") as two,
        ):
            ann, bob = await one.join("shop"), await two.join("shop")
            await ann.wait_for(2)

            @bob.on_call
            async def sell(request: semcast.CallRequest) -> bytes:
                if request.payload == b"nothing":
                    raise ValueError("out of stock")
                await asyncio.sleep(0)
                return b"sold " + request.payload

            answer = await ann.call(b"bread", replies="first")
            assert answer.replies == {two.member: b"sold bread"}
            answer = await ann.call(b"nothing", to=two.member)
            assert "out of stock" in str(answer.errors[two.member])
            assert (await ann.call(b"milk", to="one")).replies == {two.member: b"sold milk"}
            await ann.send(b"behind the calls", confirm="safe")
            async for _, event in two:
                if isinstance(event, semcast.Message):
                    assert event.payload == b"behind the calls", "programs do not see what calls send"
                    break

    asyncio.run(talk())


def test_a_call_from_what_one_reads_and_one_whose_member_leaves() -> None:
    async def talk() -> None:
        name = f"floor-{token_hex(4)}"
        async with asyncio.timeout(30), semcast.domain(name) as one, semcast.domain(name) as two:
            ann, bob = await one.join("shop"), await two.join("shop")
            await ann.wait_for(2)
            bob.on_call(lambda request: request.payload * 2)
            await bob.send(b"ask me")
            async for _, event in one:
                if isinstance(event, semcast.Message):
                    assert (await ann.call(b"x", replies="first")).replies == {two.member: b"xx"}
                    break
            never = asyncio.Event()
            other = await two.join("slow")
            mine = await one.join("slow")
            await mine.wait_for(2)

            @other.on_call
            async def wait(_request: semcast.CallRequest) -> bytes:
                await never.wait()
                return b""

            calling = asyncio.create_task(mine.call(b"?", to=two.member))
            await asyncio.sleep(0.1)
            await other.leave()
            assert (await calling).departed == (two.member,)
            with pytest.raises(semcast.GroupClosedError):
                await other.call(b"!")

    asyncio.run(talk())


def test_threads_call_and_answer() -> None:
    name = f"floor-{token_hex(4)}"
    with blocking.domain(name) as one, blocking.domain(name) as two:
        ann, bob = one.join("shop"), two.join("shop")
        ann.wait_for(2, 10)
        bob.on_call(lambda request: request.payload.upper())
        assert list(ann.call(b"loud", replies="first").replies.values()) == [b"LOUD"]


def test_a_request_that_comes_with_the_first_view_is_answered() -> None:
    """The program learns later than the domain that it is in the group, and then sets its handler."""

    async def talk() -> list[bytes]:
        link = FakeLink()
        asked = []
        async with Domain("floor", link) as floor:
            ask = encode(Ask(1, ALL, 0, b"bread"))
            run = Delivered(OTHER, 1, ("shop", CALLS), Position(Epoch(1, False, RING), 1), [ask], len(ask))
            views = [installed("shop", number, OTHER, floor.member) for number in (1, 2)]
            asyncio.get_running_loop().call_soon(lambda: link.tell(views[0], run, views[1]))
            shop = await floor.join("shop")
            shop.on_call(lambda request: asked.append(request.payload))
            await asyncio.sleep(0)
            assert shop._calls is not None
            assert shop._calls.desk.counts.abstained == 0
        return asked

    assert asyncio.run(talk()) == [b"bread"]
