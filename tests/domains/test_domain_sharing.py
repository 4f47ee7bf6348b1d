"""`join(..., domain=)`: groups of one program share a domain; and all of it without asyncio."""

import asyncio
import threading
from collections.abc import AsyncIterator
from concurrent.futures import ThreadPoolExecutor
from itertools import islice
from secrets import token_hex

import pytest

import semcast
from semcast import blocking
from semcast.domains.sharing import DomainJoin


def _threads() -> list[str]:
    return sorted(thread.name for thread in threading.enumerate() if thread.name.startswith("semcast"))


def test_twenty_groups_of_a_program_are_one_member_and_one_thread() -> None:
    async def talk() -> None:
        name, before = f"floor-{token_hex(4)}", _threads()
        joins = [semcast.join(f"g{number}", domain=name) for number in range(20)]
        groups = await asyncio.gather(*(_entered(each) for each in joins))
        assert len({group.member for group in groups}) == 1
        assert len(_threads()) == len(before) + 1
        await groups[0].send(b"hello", confirm="safe")
        heard = [event async for event in _first(groups[0], 2)]
        assert isinstance(heard[1], semcast.Message)
        assert groups[1].members() == (groups[0].member,)
        for group in groups:
            await group.close()
        assert _threads() == before

    asyncio.run(talk())


async def _entered(join: DomainJoin) -> semcast.LightGroup:
    return await join


async def _first(group: semcast.LightGroup, count: int) -> AsyncIterator[semcast.DomainEvent]:
    async for event in group:
        yield event
        count -= 1
        if not count:
            return


def test_a_second_member_of_a_group_is_another_member_of_the_domain() -> None:
    async def talk() -> None:
        name = f"floor-{token_hex(4)}"
        async with semcast.join("a", domain=name) as one, semcast.join("a", domain=name) as two:
            assert one.member != two.member
            await one.wait_for(2, 10)
            async with semcast.join("b", domain=name) as other:
                assert other.member == one.member

    asyncio.run(talk())


def test_one_domain_has_one_set_of_settings() -> None:
    async def talk() -> None:
        name = f"floor-{token_hex(4)}"
        async with semcast.join("a", domain=name, name="ann") as one:
            with pytest.raises(semcast.ConfigurationError, match="other settings"):
                await semcast.join("b", domain=name, name="bob")
            async with semcast.join("b", domain=name) as two:
                assert two.member == one.member

    asyncio.run(talk())


def test_an_exception_in_one_group_ends_that_one() -> None:
    async def talk() -> None:
        name = f"floor-{token_hex(4)}"
        async with semcast.join("a", domain=name) as one:
            with pytest.raises(ZeroDivisionError):
                async with semcast.join("b", domain=name):
                    _ = 1 // 0
            await one.send(b"still here", confirm="delivered")
            assert [group.name for group in one.domain.groups()] == ["a"]

    asyncio.run(talk())


def test_threads_use_a_domain() -> None:
    name = f"floor-{token_hex(4)}"
    with blocking.domain(name, name="ann") as floor, blocking.domain(name, name="bob") as other:
        with floor.join("a") as one:
            two = other.join("a", timeout=10)
            assert len(one.wait_for(2, 10).members) == 2
            two.send(b"from bob", confirm="safe")
            other.send("a", b"again")
            other.cast(["a", "b"], b"to both")
            heard = [
                event.payload for event in islice(one.events(5), 5) if isinstance(event, semcast.Message)
            ]
            assert heard == [b"from bob", b"again", b"to both"]
            floor.send_to(other.member, b"between us")
            one.send_many([b"1", b"2"], confirm="safe")
        places = [(group, type(event).__name__) for group, event in other.events(0.3)]
        assert places[-4:] == [
            ("", "PrivateMessage"),
            ("a", "DomainMessage"),
            ("a", "DomainMessage"),
            ("a", "DomainView"),
        ]
    assert not _threads()


def test_threads_share_a_domain() -> None:
    name = f"floor-{token_hex(4)}"
    both = threading.Barrier(2, timeout=20)

    def work(group: str) -> semcast.MemberId:
        with blocking.join(group, domain=name) as joined:
            both.wait()
            joined.send(b"x", confirm="safe")
            member = joined.member
            both.wait()
        return member

    with ThreadPoolExecutor(2) as pool:
        assert len(set(pool.map(work, ["a", "b"]))) == 1
    assert not _threads()
