"""Programs in a domain without a daemon: one order over all groups."""

import asyncio
from pathlib import Path
from secrets import token_hex

import pytest

import semcast
from semcast.core.events import Left
from semcast.history import read_history
from semcast.specs import check


async def _hear(floor: semcast.Domain, count: int) -> list[tuple[str, semcast.DomainEvent]]:
    """The next events."""
    heard: list[tuple[str, semcast.DomainEvent]] = []
    async with asyncio.timeout(20):
        async for item in floor:
            heard.append(item)
            if len(heard) == count:
                break
    return heard


def _payloads(heard: list[tuple[str, semcast.DomainEvent]]) -> list[tuple[str, bytes]]:
    return [(group, event.payload) for group, event in heard if isinstance(event, semcast.Message)]


def test_one_order_over_groups_open_sends_and_private_messages() -> None:
    async def talk() -> None:
        name = f"floor-{token_hex(4)}"
        async with semcast.domain(name, name="ann") as one, semcast.domain(name, name="bob") as two:
            assert (one.member.name, two.member.name) == ("ann", "bob")
            quotes, orders = await one.join("quotes"), await two.join("orders")
            both = await two.join("quotes")
            assert (await quotes.wait_for(2, 10)).members == (one.member, two.member)
            assert orders.members() == (two.member,)
            await one.send("orders", b"from outside")
            await quotes.send(b"first")
            await one.cast(["orders", "quotes"], b"once")
            await one.send_to(two.member, b"between us")
            await one.send("quotes", b"last", confirm="safe")
            heard = await _hear(two, 7)
            assert _payloads(heard) == [
                ("orders", b"from outside"),
                ("quotes", b"first"),
                ("orders", b"once"),
                ("", b"between us"),
                ("quotes", b"last"),
            ]
            places = [event.order for _, event in heard if isinstance(event, semcast.Message)]
            assert places == sorted(places, key=lambda place: place or 0)
            assert len({event.id for _, event in heard if isinstance(event, semcast.Message)}) == 5
            [once] = [
                each for _, each in heard if isinstance(each, semcast.DomainMessage) and each.groups[1:]
            ]
            assert once.groups == ("orders", "quotes")
            await both.leave()
            assert (await _hear(two, 1))[0] == ("quotes", Left("asked to"))
            with pytest.raises(semcast.GroupClosedError, match="this program left it"):
                await both.send(b"too late")
            await two.join("quotes")

    asyncio.run(talk())


def test_an_iterator_of_a_group_is_a_filter() -> None:
    async def talk() -> list[bytes]:
        async with semcast.domain(f"floor-{token_hex(4)}") as floor:
            first, _ = await floor.join("a"), await floor.join("b")
            for number in range(10):
                await floor.send("ab"[number % 2], b"%d" % number)
            await floor.flush()
            heard: list[bytes] = []
            async with asyncio.timeout(10):
                async for event in first:
                    if isinstance(event, semcast.Message):
                        heard.append(event.payload)
                    if heard[4:]:
                        break
            return heard

    assert asyncio.run(talk()) == [b"0", b"2", b"4", b"6", b"8"]


def test_a_recording_of_a_domain_is_judged_by_its_own_properties(tmp_path: Path) -> None:
    async def talk() -> None:
        name = f"floor-{token_hex(4)}"
        one = semcast.domain(name, name="ann", record=str(tmp_path))
        two = semcast.domain(name, name="bob", record=str(tmp_path))
        async with one, two:
            strict = await one.join("strict", flavour="vs")
            async with await two.join("strict", flavour="vs") as other:
                await strict.wait_for(2, 10)
                await strict.send_many([b"%d" % number for number in range(100)])
                await other.send(b"x", confirm="safe")
                await two.send_to(one.member, b"private", timeout=5)
            await strict.send(b"alone", confirm="safe")

    asyncio.run(talk())
    verdicts = {verdict.property: verdict.status.value for verdict in check(read_history(tmp_path))}
    assert {name for name in verdicts if name.startswith("lw_")} >= {"lw_order", "lw_settled", "lw_private"}
    assert set(verdicts.values()) <= {"holds", "unknown"}, verdicts


def test_what_makes_no_sense_is_refused() -> None:
    async def talk() -> None:
        with pytest.raises(semcast.ConfigurationError, match="engine 'best': choose ordered or causal"):
            semcast.domain("floor", engine="best")
        with pytest.raises(semcast.ConfigurationError, match=r"by semcast\.domain"):
            semcast.join("floor", stack="lightweight")
        with pytest.raises(semcast.ConfigurationError, match="policy block is not available in a domain"):
            semcast.domain("floor", policy="block")
        with pytest.raises(semcast.ConfigurationError, match="only clients of daemons have an @"):
            semcast.domain("floor", name="ann@home")
        floor = semcast.domain(f"floor-{token_hex(4)}")
        with pytest.raises(semcast.GroupError, match="not open"):
            await floor.join("a")
        async with floor:
            await floor.join("a")
            with pytest.raises(semcast.GroupError, match="already"):
                await floor.join("a")
            with pytest.raises(semcast.ConfigurationError, match="1 to 128 characters"):
                await floor.send("", b"x")
            with pytest.raises(semcast.GroupError, match="at most 1048576"):
                await floor.send("a", bytes(2 << 20))
        with pytest.raises(semcast.GroupClosedError, match="closed"):
            await floor.send("a", b"x")

    asyncio.run(talk())
