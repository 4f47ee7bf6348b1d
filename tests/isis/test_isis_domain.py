"""Causal domains as programs use them: `semcast.domain(..., engine="causal")`."""

import asyncio
from pathlib import Path
from secrets import token_hex
from typing import Any

import pytest

import semcast
from semcast.history import read_history
from semcast.specs import check
from semcast.specs.verdict import Status

PATIENCE = 60


async def _program(name: str, domain: str, record: str, policy: str, count: int) -> list[tuple[str, bytes]]:
    """Answers in one group what it hears in the other."""
    async with semcast.domain(domain, engine="causal", policy=policy, name=name, record=record) as floor:
        asks, answers = await floor.join("asks"), await floor.join("answers")
        await asks.wait_for(3, PATIENCE)
        await answers.wait_for(3, PATIENCE)
        for number in range(count):
            await asks.send(f"{name}{number}".encode())
        heard: list[tuple[str, bytes]] = []
        replies = 0
        async for group, event in floor:
            if isinstance(event, semcast.Message):
                heard.append((group, event.payload))
                replies += group == "answers"
                if group == "asks" and event.sender != floor.member:
                    await answers.send(name.encode() + b" to " + event.payload)
            if replies == 6 * count:
                break
        await floor.flush(PATIENCE)
        return heard


@pytest.mark.parametrize("policy", ["conservative", "full"])
def test_nobody_hears_an_answer_before_what_it_answers(policy: str, tmp_path: Path) -> None:
    async def run() -> list[list[tuple[str, bytes]]]:
        domain = f"floor-{token_hex(4)}"
        record = str(tmp_path)
        async with asyncio.timeout(2 * PATIENCE):
            return list(
                await asyncio.gather(*(_program(name, domain, record, policy, 5) for name in ("a", "b", "c")))
            )

    for heard in asyncio.run(run()):
        for place, (group, payload) in enumerate(heard):
            if group == "answers":
                assert ("asks", payload.rpartition(b" ")[2]) in heard[:place]
    history = read_history(tmp_path)
    verdicts = {verdict.property: verdict for verdict in check(history)}
    assert verdicts["domain_causal_delivery"].status is Status.HOLDS
    assert not [verdict for verdict in verdicts.values() if verdict.status is Status.VIOLATED]


def test_a_message_has_one_number_in_the_domain_and_only_members_send() -> None:
    async def run() -> None:
        async with semcast.domain(f"floor-{token_hex(4)}", engine="causal") as floor:
            one, other = await floor.join("one"), await floor.join("other")
            sent = [await group.send(bytes([place])) for place, group in enumerate([one, other, other, one])]
            large = await one.send(b"x" * 5000, confirm="delivered")
            last = await one.send(b"last")
            heard = []
            async for _, event in floor:
                if isinstance(event, semcast.Message):
                    heard.append(event.id)
                    if event.payload == b"last":
                        break
            assert heard == [*sent, large, last]
            with pytest.raises(semcast.GroupError, match="only members send to 'elsewhere'"):
                await floor.send("elsewhere", b"")
            with pytest.raises(semcast.GroupError, match="a message is for one group, not 2"):
                await floor.cast(["one", "other"], b"")
            await one.leave()
            with pytest.raises(semcast.GroupError):
                await one.send(b"late")

    asyncio.run(run())


async def _whisperer(name: str, domain: str, record: str) -> list[tuple[str, bytes]]:
    """Answers alone whoever asks the group, in the loop that reads."""
    async with semcast.domain(domain, engine="causal", name=name, record=record) as floor:
        asks = await floor.join("asks")
        await asks.wait_for(3, PATIENCE)
        await asks.send(name.encode())
        heard: list[tuple[str, bytes]] = []
        async for group, event in floor:
            if isinstance(event, semcast.Message):
                heard.append((group, event.payload))
                if group and event.sender != floor.member:
                    await floor.send_to(event.sender, b"to " + event.payload + b"." * 5000)
            if len(heard) == 5:
                break
        await floor.flush(PATIENCE)
        return heard


def test_a_message_to_one_program_arrives_there_alone(tmp_path: Path) -> None:
    async def run() -> list[list[tuple[str, bytes]]]:
        domain = f"floor-{token_hex(4)}"
        async with asyncio.timeout(PATIENCE):
            return list(
                await asyncio.gather(*(_whisperer(name, domain, str(tmp_path)) for name in ("a", "b", "c")))
            )

    for name, heard in zip(("a", "b", "c"), asyncio.run(run()), strict=True):
        alone = [payload for group, payload in heard if not group]
        assert alone == 2 * [b"to " + name.encode() + b"." * 5000]
    verdicts = check(read_history(tmp_path))
    assert not [verdict for verdict in verdicts if verdict.status is Status.VIOLATED]


async def _shopkeeper(name: str, domain: str, record: str) -> dict[str, bytes]:
    """Answers calls without ever reading, and says something to another group before it answers."""
    byes, all_done = set(), asyncio.Event()
    async with semcast.domain(domain, engine="causal", name=name, record=record) as floor:
        shop = await floor.join("shop")

        @shop.on_call
        async def sell(request: semcast.CallRequest) -> bytes:
            await floor.send("yard", b"sold " + request.payload)
            if request.payload == b"bye":
                byes.add(request.caller)
                if len(byes) == 3:
                    all_done.set()
            return name.encode() + b" sold " + request.payload

        await shop.wait_for(3, PATIENCE)
        yard = await floor.join("yard")  # who is there answers calls
        await yard.wait_for(3, PATIENCE)
        every = await shop.call(b"bread " + name.encode(), replies="all", timeout=PATIENCE)
        one = await shop.call(b"tea", to="one", timeout=PATIENCE)
        assert len(one.replies) == 1
        await floor.flush(PATIENCE)
        await shop.call(b"bye", replies="all", timeout=PATIENCE)
        await all_done.wait()  # who leaves earlier answers no more, and is missing in the yard
        return {member.name: reply for member, reply in every.replies.items()}


def test_calls_are_answered_with_messages_to_the_caller_alone(tmp_path: Path) -> None:
    async def run() -> list[dict[str, bytes]]:
        domain = f"floor-{token_hex(4)}"
        async with asyncio.timeout(2 * PATIENCE):
            return list(
                await asyncio.gather(*(_shopkeeper(name, domain, str(tmp_path)) for name in ("a", "b", "c")))
            )

    for name, replies in zip(("a", "b", "c"), asyncio.run(run()), strict=True):
        assert replies == {each: f"{each} sold bread {name}".encode() for each in ("a", "b", "c")}
    history = read_history(tmp_path)
    verdicts = {verdict.property: verdict for verdict in check(history)}
    assert verdicts["domain_causal_delivery"].status is Status.HOLDS
    assert not [verdict for verdict in verdicts.values() if verdict.status is Status.VIOLATED]


async def _orderly(name: str, domain: str, record: str, count: int) -> list[bytes]:
    """Sends in two groups in turn, and reads what all have sent."""
    async with semcast.domain(domain, engine="causal", name=name, record=record) as floor:
        groups = [await floor.join("one"), await floor.join("two")]
        for group in groups:
            await group.wait_for(3, PATIENCE)
        for number in range(count):
            await groups[number % 2].send(f"{name}{number}".encode(), order="domain")
        heard: list[bytes] = []
        async for _, event in floor:
            if isinstance(event, semcast.Message):
                heard.append(event.payload)
            if len(heard) == 3 * count:
                break
        await floor.flush(PATIENCE)
        return heard


def test_ordered_messages_of_two_groups_are_given_in_one_order(tmp_path: Path) -> None:
    async def run() -> list[list[bytes]]:
        domain = f"floor-{token_hex(4)}"
        async with asyncio.timeout(2 * PATIENCE):
            return list(
                await asyncio.gather(*(_orderly(name, domain, str(tmp_path), 6) for name in ("a", "b", "c")))
            )

    first, *others = asyncio.run(run())
    assert [first] * 2 == others
    verdicts = {verdict.property: verdict for verdict in check(read_history(tmp_path))}
    assert verdicts["domain_total_order"].status is Status.HOLDS
    assert not [verdict for verdict in verdicts.values() if verdict.status is Status.VIOLATED]


def test_what_cannot_be_set_is_said() -> None:
    async def run(**settings: Any) -> None:
        async with semcast.domain("floor", **settings):
            pass

    for settings, why in (
        ({"engine": "casual"}, "choose ordered or causal"),
        ({"engine": "causal", "policy": "purge"}, "between groups there are conservative, full"),
        ({"engine": "causal", "resilience": "some"}, "safe, all, or a number"),
        ({"engine": "causal", "stack": "ring"}, "not available for domains"),
    ):
        with pytest.raises(semcast.ConfigurationError, match=why):
            asyncio.run(run(**settings))


def test_a_join_that_contradicts_the_structure_is_refused_and_does_no_harm() -> None:
    async def run() -> None:
        async with semcast.domain(
            f"floor-{token_hex(4)}",
            engine="causal",
            name="a",
            policy="blocks",
            structure=[["quotes", "orders"]],
        ) as floor:
            quotes, _ = await floor.join("quotes"), await floor.join("orders")
            with pytest.raises(semcast.GroupError, match="nobody may be in 'quotes' and 'risk' together"):
                await floor.join("risk")
            await quotes.send(b"101")
            await floor.flush(PATIENCE)

    asyncio.run(run())


@pytest.mark.parametrize(
    ("settings", "error"),
    [
        ({"policy": "bloks"}, "conservative, full, blocks, epochs"),
        ({"policy": "blocks", "structure": "round"}, "there are any, acyclic, or sets of groups"),
        ({"policy": "epochs", "structure": "acyclic"}, "structure says something with policy blocks only"),
    ],
)
def test_policies_that_there_are_not(settings: dict[str, Any], error: str) -> None:
    with pytest.raises(semcast.ConfigurationError, match=error):
        semcast.domain("floor", engine="causal", **settings)
