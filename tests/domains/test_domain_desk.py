"""A program and its domain, over a link that does as it is told."""

import asyncio
import gc
from collections.abc import Awaitable, Callable, Coroutine
from typing import Any

import msgspec
import pytest
from tests.domains.fake import OTHER, FakeLink, installed, message, view_id

import semcast
from semcast.core.events import Left
from semcast.core.ids import MemberId, MessageId
from semcast.domains.link import CastRequest, JoinRequest, LeaveRequest, PrivateRequest, ReadyRequest
from semcast.protocols.lightweight.events import Block, LeftGroup, Placed, Replaced
from semcast.protocols.lightweight.events import Undeliverable as NobodyThere

ME, AGAIN = MemberId("me", 1), MemberId("me", 2)
QUEUE = 8


def play(
    scenario: Callable[[FakeLink, semcast.Domain], Coroutine[Any, Any, None]], link: FakeLink | None = None
) -> FakeLink:
    """A program in group `a` of a domain."""
    link = link or FakeLink()

    async def run() -> None:
        async with asyncio.timeout(10), semcast.Domain("floor", link, queue=QUEUE) as floor:
            await scenario(link, floor)

    asyncio.run(run())
    assert link.closed
    return link


async def joined(
    link: FakeLink, floor: semcast.Domain, group: str = "a", *, vs: bool = False
) -> semcast.LightGroup:
    joining = asyncio.create_task(floor.join(group, flavour="vs" if vs else "evs"))
    await asyncio.sleep(0)
    link.tell(installed(group, 1, ME, vs=vs))
    return await joining


async def started(work: Awaitable[Any]) -> "asyncio.Task[Any]":
    """A task that has come to where it waits."""

    async def run() -> Any:
        return await work

    task = asyncio.create_task(run())
    for _ in range(3):
        await asyncio.sleep(0)
    assert not task.done()
    return task


async def take(floor: semcast.Domain, count: int) -> list[tuple[str, semcast.DomainEvent]]:
    got: list[tuple[str, semcast.DomainEvent]] = []
    async for item in floor:
        got.append(item)
        if len(got) == count:
            break
    return got


def test_who_is_put_out_comes_back_as_one_and_hears_what_is_unsettled() -> None:
    async def scenario(link: FakeLink, floor: semcast.Domain) -> None:
        group = await joined(link, floor)
        other = await joined(link, floor, "b")
        leaving = await started(other.leave())
        await group.send_many([b"1", b"2", b"3"])
        await floor.send_to(OTHER, b"private")
        link.tell(Placed(5))
        confirmed = await started(group.send(b"4", confirm="safe"))
        link.put_out("it was too slow")
        with pytest.raises(semcast.UnconfirmedError, match="put out"):
            await confirmed
        await leaving
        assert link.submitted[-1] == JoinRequest("a")
        assert group.view is None
        sending = await started(group.send(b"5"))
        link.tell(installed("a", 9, AGAIN))
        assert await sending == MessageId(AGAIN, 2)
        heard = await take(floor, 4)
        unsettled = tuple(MessageId(ME, seq) for seq in (6, 7, 8))
        assert heard[2] == ("", semcast.Rejoining(ME, AGAIN, "it was too slow", unsettled))
        assert isinstance(heard[3][1], semcast.ViewChange)
        assert floor.member == AGAIN
        assert [each.name for each in floor.groups()] == ["a"]

    play(scenario)


@pytest.mark.filterwarnings("error")
def test_who_waits_for_a_place_is_told_that_the_domain_was_closed_and_nothing_is_left_over() -> None:
    """asyncio complained of an exception that nobody looked at."""
    complaints: list[dict[str, Any]] = []

    async def scenario(link: FakeLink, floor: semcast.Domain) -> None:
        asyncio.get_running_loop().set_exception_handler(lambda _, about: complaints.append(about))
        await joined(link, floor)
        waiting = await started(floor.send("a", b"1", confirm="safe"))
        given_up = await started(floor.flush())
        late = await started(floor.send("a", b"2", confirm="safe"))
        given_up.cancel()
        with pytest.raises(TimeoutError):
            await floor.flush(timeout=0.001)
        await floor.close()
        for task in (waiting, late):
            with pytest.raises(semcast.UnconfirmedError, match="closed before that was known"):
                await task
        del waiting, late, given_up
        gc.collect()
        await asyncio.sleep(0)

    play(scenario)
    gc.collect()
    assert complaints == []


def test_who_cannot_come_back_is_told() -> None:
    async def scenario(link: FakeLink, floor: semcast.Domain) -> None:
        group = await joined(link, floor)
        link.refuses, link.room = True, 0
        sending = await started(group.send(b"x"))
        link.put_out()
        with pytest.raises(semcast.GroupClosedError, match="nobody lets this program in"):
            await sending
        with pytest.raises(semcast.GroupClosedError, match="nobody lets this program in"):
            await take(floor, 2)
        await group.leave()

    play(scenario)


def test_sending_waits_while_a_view_ends() -> None:
    async def scenario(link: FakeLink, floor: semcast.Domain) -> None:
        group = await joined(link, floor, vs=True)
        await group.send(b"before")
        link.tell(Block("a", view_id(1)))
        sending = await started(group.send(b"after"))
        await floor.cast(["a", "b"], b"to several: not as a member")
        link.tell(installed("a", 2, ME, OTHER, vs=True))
        await sending
        assert link.submitted[1:] == [
            CastRequest(("a",), [b"before"], view_id(1)),
            ReadyRequest("a", view_id(1)),
            CastRequest(("a", "b"), [b"to several: not as a member"]),
            CastRequest(("a",), [b"after"], view_id(2)),
        ]

    play(scenario)


def test_no_more_is_taken_than_the_program_reads() -> None:
    async def scenario(link: FakeLink, floor: semcast.Domain) -> None:
        group = await joined(link, floor)
        reading = await started(take(floor, 3))
        link.tell(message("a", 1), message("a", 2))
        await reading
        link.tell(*(message("a", number) for number in range(3, 40)))
        assert link.untaken == 37 - QUEUE - 1
        assert len(await take(floor, 37)) == 37
        assert group.members() == (ME,)

    play(scenario)


def test_who_waits_while_it_reads_is_told_to_read() -> None:
    """What it waits for may stand behind what it does not read: there is a reserve, and it has an end."""

    async def scenario(link: FakeLink, floor: semcast.Domain) -> None:
        group = await joined(link, floor)

        async def answer() -> list[str]:
            outcomes = []
            async for _, event in floor:
                if isinstance(event, semcast.Message):
                    try:
                        await group.send(b"answer", confirm="safe")
                        outcomes.append("sent")
                    except semcast.BacklogError:
                        outcomes.append("backlog")
                    if len(outcomes) == 2:
                        break
            return outcomes

        answering = await started(answer())
        link.tell(*(message("a", number) for number in range(1, 3 * QUEUE)))
        await asyncio.sleep(0)
        link.tell(Placed(2))  # behind more than it would take otherwise
        await asyncio.sleep(0)
        await asyncio.sleep(0)
        link.tell(*(message("a", number) for number in range(3 * QUEUE, 20 * QUEUE)))
        assert await answering == ["sent", "backlog"]

    play(scenario)


def answering(group: semcast.LightGroup, floor: semcast.Domain) -> Coroutine[Any, Any, str]:
    """A program that answers the first message from the loop in which it reads."""

    async def answer() -> str:
        async for _, event in floor:
            if isinstance(event, semcast.Message):
                try:
                    await group.send(b"answer")
                except semcast.BacklogError:
                    return "backlog"
                return "sent"
        raise AssertionError

    return answer()


def test_who_answers_while_it_reads_waits_for_room_however_much_it_has_not_read() -> None:
    """Its daemon gives room, whether it reads or not. One that stood still for 5 s had ended programs."""

    async def scenario(link: FakeLink, floor: semcast.Domain) -> None:
        group = await joined(link, floor)
        link.room = 0
        outcome = await started(answering(group, floor))
        link.tell(*(message("a", number) for number in range(1, 20 * QUEUE)))
        for _ in range(5):
            await asyncio.sleep(0)
        assert link.untaken
        assert not outcome.done()
        link.give_room(10)
        assert await outcome == "sent"

    play(scenario)


def test_who_was_put_out_while_it_waited_for_room_reads_on() -> None:
    """That it was stands behind what it has not read."""

    async def scenario(link: FakeLink, floor: semcast.Domain) -> None:
        group = await joined(link, floor)
        link.room = 0
        outcome = await started(answering(group, floor))
        link.tell(*(message("a", number) for number in range(1, 20 * QUEUE)))
        await asyncio.sleep(0)
        link.put_out()
        assert await outcome == "backlog"

    play(scenario)


def test_who_holds_up_all_others_has_to_read_before_it_can_send() -> None:
    """With the policy `block` its daemon takes nothing, from it either, until it reads."""

    async def scenario(link: FakeLink, floor: semcast.Domain) -> None:
        group = await joined(link, floor)
        link.room = 0
        outcome = await started(answering(group, floor))
        link.tell(*(message("a", number) for number in range(1, 20 * QUEUE)))
        assert await outcome == "backlog"

    link = FakeLink()
    link.holds = True
    play(scenario, link)


def test_a_program_that_only_sends_is_given_nothing() -> None:
    async def scenario(link: FakeLink, floor: semcast.Domain) -> None:
        group = await joined(link, floor)
        link.tell(*(message("a", number) for number in range(1, 100)))
        assert link.untaken
        async with asyncio.timeout(5):
            while link.untaken:
                await asyncio.sleep(0.01)
        await group.send(b"still sends")
        link.tell(message("a", 100))
        assert link.untaken == 0
        first, second, *_ = await take(floor, 2)
        assert first == ("", semcast.Skipped(100))
        assert isinstance(second[1], semcast.DomainView)
        link.tell(message("a", 101))
        [(_, last)] = await take(floor, 1)
        assert isinstance(last, semcast.Message)
        assert last.payload == b"101"

    play(scenario)


def test_a_loop_that_was_left_holds_up_nobody_who_reads_elsewhere() -> None:
    async def scenario(link: FakeLink, floor: semcast.Domain) -> None:
        group = await joined(link, floor)
        await take(floor, 1)
        got: list[bytes] = []

        async def read() -> None:
            async for event in group:
                if isinstance(event, semcast.Message):
                    got.append(event.payload)
                    if event.payload == b"99":
                        return

        reading = await started(read())
        link.tell(*(message("a", number) for number in range(1, 100)))
        await reading
        assert got == [b"%d" % number for number in range(1, 100)]
        [(_, skipped)] = await take(floor, 1)
        assert isinstance(skipped, semcast.Skipped)

    play(scenario)


def test_a_group_that_was_left_ends_its_iterator_and_can_be_joined_again() -> None:
    async def scenario(link: FakeLink, floor: semcast.Domain) -> None:
        group = await joined(link, floor)

        async def read() -> list[semcast.DomainEvent]:
            return [event async for event in group]

        reading = await started(read())
        leaving = await started(group.leave())
        link.tell(message("a", 1), LeftGroup("a"))
        await leaving
        assert [type(event) for event in await reading] == [semcast.DomainView, semcast.DomainMessage, Left]
        assert link.submitted[-1] == LeaveRequest("a")
        assert (await joined(link, floor)).members() == (ME,)

    play(scenario)


def test_a_private_message_to_nobody_comes_back() -> None:
    async def scenario(link: FakeLink, floor: semcast.Domain) -> None:
        sent = await floor.send_to(OTHER, b"hello")
        assert link.submitted == [PrivateRequest(OTHER, b"hello")]
        link.tell(NobodyThere(1, OTHER))
        assert await take(floor, 1) == [("", semcast.Undeliverable(sent, OTHER))]

    play(scenario)


def test_what_a_message_is_about_goes_along() -> None:
    async def scenario(link: FakeLink, floor: semcast.Domain) -> None:
        group = await joined(link, floor)
        await group.send(b"1", item="bid")
        await group.send_items([("bid", b"2"), ("ask", b"3")])
        assert link.submitted[1:] == [
            CastRequest(("a",), [b"1"], items=["bid"]),
            CastRequest(("a",), [b"2", b"3"], items=["bid", "ask"]),
        ]
        receipt = Replaced(OTHER, ("a",), 1, 2, 2, 4)
        link.tell(receipt, msgspec.structs.replace(message("a", 3, 2), items=["bid", ""]))
        heard = [event for _, event in await take(floor, 3)][1:]
        assert [event.annotation for event in heard if isinstance(event, semcast.Message)] == [
            semcast.Item("bid"),
            None,
        ]
        assert (floor.receipts(), floor.receipts()) == ([receipt], [])
        with pytest.raises(semcast.ConfigurationError, match="at most"):
            await group.send(b"x", item="i" * 1000)

    play(scenario)


def test_who_waits_for_room_says_how_much_was_sent() -> None:
    async def scenario(link: FakeLink, floor: semcast.Domain) -> None:
        group = await joined(link, floor)
        link.room = 150
        with pytest.raises(semcast.SendTimeoutError) as error:
            await group.send_many([b"x"] * 250, timeout=0.05)
        assert error.value.accepted == 100
        sending = await started(group.send_many([b"x"] * 100))
        link.give_room(100)
        assert await sending == MessageId(ME, 201)
        with pytest.raises(TimeoutError, match=r"me#1 after 0\.01 s"):
            await group.wait_for(2, 0.01)

    play(scenario)


def test_a_join_that_is_given_up_is_taken_back() -> None:
    async def scenario(link: FakeLink, floor: semcast.Domain) -> None:
        with pytest.raises(TimeoutError):
            await floor.join("a", timeout=0.01)
        assert link.submitted == [JoinRequest("a"), LeaveRequest("a")]
        link.tell(installed("a", 1, ME), LeftGroup("a"))
        assert not floor.groups()
        await joined(link, floor)

    play(scenario)


def test_who_comes_back_while_a_join_waits_for_room_asks_once() -> None:
    """Live: the second request was refused, and the program was in a group of which it did not know."""

    async def scenario(link: FakeLink, floor: semcast.Domain) -> None:
        link.room = 0
        joining = await started(floor.join("a"))
        assert link.submitted == []
        link.put_out()
        for _ in range(10):
            await asyncio.sleep(0)
        link.give_room(10)
        for _ in range(10):
            await asyncio.sleep(0)
        assert link.submitted == [JoinRequest("a")]
        link.tell(installed("a", 1, AGAIN))
        assert (await joining).name == "a"

    play(scenario)


def test_a_domain_that_nobody_lets_in_can_be_closed() -> None:
    """`close` waited for ever for the end of a domain that had never begun."""

    async def run() -> None:
        link = FakeLink()
        link.refuses = True
        floor = semcast.Domain("floor", link)
        async with asyncio.timeout(10):
            with pytest.raises(semcast.GroupError, match="nobody lets this program in"):
                await floor
            await floor.close()
        assert link.closed

    asyncio.run(run())
