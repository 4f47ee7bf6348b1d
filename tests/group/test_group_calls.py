"""Calls in live groups: several members in one process, over real sockets."""

import asyncio
import threading
from collections.abc import AsyncIterator, Awaitable, Callable
from contextlib import AsyncExitStack, asynccontextmanager
from typing import Any
from uuid import uuid4

import pytest

import semcast
from semcast import blocking

STACKS: dict[str, dict[str, Any]] = {
    "ring": {"stack": "ring"},
    "fifo": {"stack": "vsync"},
    "causal": {"stack": "vsync", "order": "causal"},
    "total": {"stack": "vsync", "order": "total"},
}


def run(test: Callable[[str], Awaitable[None]]) -> None:
    asyncio.run(asyncio.wait_for(test(f"calls-{uuid4().hex[:8]}"), 50))


@asynccontextmanager
async def members(group: str, names: str, **settings: Any) -> AsyncIterator[list[semcast.Group]]:
    chosen = {"stack": "ring", "token_loss": "2s", "minimum": len(names) // 2 + 1, **settings}
    groups = [semcast.join(group, name=name, **chosen) for name in names]
    await asyncio.gather(*(each.__aenter__() for each in groups))
    try:
        await asyncio.gather(*(each.wait_for(len(names), 20) for each in groups))
        yield groups
    finally:
        await asyncio.gather(*(each.close() for each in groups))


def named(found: dict[semcast.MemberId, bytes]) -> dict[str, bytes]:
    return {member.name: payload for member, payload in found.items()}


def echo(group: semcast.Group) -> None:
    @group.on_call
    def answer(request: semcast.CallRequest) -> bytes:
        return group.member.name.encode() + request.payload


@pytest.mark.parametrize("stack", STACKS)
def test_members_answer(stack: str) -> None:
    async def test(name: str) -> None:
        async with members(name, "abc", **STACKS[stack]) as groups:
            for group in groups:
                echo(group)
            a, b, c = groups
            everybody = await a.call(b"?")
            assert named(everybody.replies) == {"a": b"a?", "b": b"b?", "c": b"c?"}
            assert len((await b.call(b"?", replies="first")).replies) == 1
            assert len((await b.call(b"?", replies="majority")).replies) == 2
            assert len((await b.call(b"?", replies=3)).replies) == 3
            assert named((await c.call(b"?", to=a.member)).replies) == {"a": b"a?"}
            had = [(await c.call(b"", to="one")).result for _ in range(6)]
            assert len(had) == 6
            if stack != "total":  # there others may take positions in between
                assert sorted(had) == [b"a", b"a", b"b", b"b", b"c", b"c"]
            assert (await a.call(b"?", replies=4)).outcome == "too few"

    run(test)


def test_what_goes_wrong_in_a_handler_is_told() -> None:
    async def test(name: str) -> None:
        async with members(name, "ab") as (a, b):

            @a.on_call
            async def fails(request: semcast.CallRequest) -> bytes:
                raise ValueError("no " + request.payload.decode())

            @b.on_call  # type: ignore[type-var]
            def text(request: semcast.CallRequest) -> str:
                return "text"

            answer = await a.call(b"way")
            assert answer.complete
            assert answer.errors[a.member] == "ValueError: no way"
            assert answer.errors[b.member] == "TypeError: a reply is bytes, not str"
            with pytest.raises(LookupError, match="no way"):
                _ = answer.result

    run(test)


def test_a_program_that_only_calls_says_that_it_answers_nothing() -> None:
    async def test(name: str) -> None:
        async with members(name, "ab") as (a, b):
            echo(b)
            answer = await a.call(b"?")
            assert named(answer.replies) == {"b": b"b?"}
            assert answer.abstained == (a.member,)
            assert (await a.call(b"?", to="one")).result == b"b?"

    run(test)


def test_a_program_that_called_before_is_not_waited_for() -> None:
    """It neither iterates nor answers calls, and says so."""

    async def test(name: str) -> None:
        async with members(name, "ab") as (a, b):
            echo(b)
            assert (await a.call(b"?")).complete
            answer = await b.call(b"?", timeout=None)
            assert (named(answer.replies), answer.abstained) == ({"b": b"b?"}, (a.member,))

    run(test)


def test_a_handler_that_never_answers() -> None:
    async def test(name: str) -> None:
        cancelled = asyncio.Event()

        async with members(name, "ab") as (a, b):
            echo(a)

            @b.on_call
            async def never(request: semcast.CallRequest) -> bytes:
                try:
                    await asyncio.sleep(3600)
                except asyncio.CancelledError:
                    cancelled.set()
                    raise
                return b""

            answer = await a.call(b"?", timeout=0.3)
            assert (answer.outcome, answer.missing, answer.departed) == ("timeout", (b.member,), ())
            await asyncio.wait_for(cancelled.wait(), 10)
            assert (await a.call(b"?", replies="first")).complete

    run(test)


def test_handlers_call_each_other_and_themselves() -> None:
    async def test(name: str) -> None:
        async with members(name, "abc") as groups:
            for group in groups:

                @group.on_call
                async def sums(request: semcast.CallRequest, group: semcast.Group = group) -> bytes:
                    depth = int(request.payload)
                    if not depth:
                        return b"1"
                    deeper = await group.call(str(depth - 1).encode())
                    assert deeper.complete
                    return str(sum(map(int, deeper.replies.values()))).encode()

            answers = await asyncio.gather(*(group.call(b"2") for group in groups))
            for answer in answers:
                assert list(answer.replies.values()) == [b"9", b"9", b"9"]

    run(test)


def test_who_reads_may_call_in_its_loop() -> None:
    """And what it has not read by then comes afterwards, in order."""

    async def test(name: str) -> None:
        async with members(name, "ab") as (a, b):
            echo(b)
            await b.send_many([b"%d" % number for number in range(20)])
            seen: list[bytes] = []
            async for event in a:
                if isinstance(event, semcast.Message):
                    seen.append(event.payload)
                    if len(seen) % 5 == 1:
                        assert (await a.call(event.payload)).complete
                    if len(seen) == 20:
                        break
            assert seen == [b"%d" % number for number in range(20)]

    run(test)


def test_who_calls_and_never_reads_enough_is_told() -> None:
    async def test(name: str) -> None:
        async with members(name, "ab", queue_messages=10) as (a, b):

            @b.on_call
            async def talks(request: semcast.CallRequest) -> bytes:
                for _ in range(40):
                    await b.send(b"x")
                return b"done"

            async for event in a:
                if isinstance(event, semcast.ViewChange):
                    break
            with pytest.raises(semcast.BacklogError, match="waits for answers"):
                await a.call(b"?")

    run(test)


def test_what_a_program_never_read_is_skipped_while_it_calls() -> None:
    async def test(name: str) -> None:
        async with members(name, "ab", queue_messages=10) as (a, b):
            echo(b)
            for round_ in range(5):
                for _ in range(10):
                    await b.send(b"x")
                assert (await a.call(b"%d" % round_)).complete
            await b.send(b"last")
            skipped = 0
            async for event in a:
                if isinstance(event, semcast.Skipped):
                    skipped += event.count
                elif isinstance(event, semcast.Message) and event.payload == b"last":
                    break
            assert skipped > 0
            assert a.stats().skipped == skipped

    run(test)


def test_a_request_has_its_place_among_messages() -> None:
    """A plain handler runs when its program has dealt with all that comes before, also if it is slow."""

    async def test(name: str) -> None:
        async with members(name, "ab") as (a, b):
            count = 0

            @b.on_call
            def counted(request: semcast.CallRequest) -> bytes:
                return str(count).encode()

            async def read() -> None:
                nonlocal count
                async for event in b:
                    if isinstance(event, semcast.Message):
                        await asyncio.sleep(0.001)
                        count += 1

            reader = asyncio.create_task(read())
            for number in range(1, 30):
                await a.send(b"+")
                assert (await a.call(b"?")).result == str(number).encode()
            reader.cancel()

    run(test)


def test_a_program_that_left_its_loop_still_answers() -> None:
    async def test(name: str) -> None:
        async with members(name, "ab") as (a, b):
            echo(b)
            await a.send(b"1")
            async for event in b:
                if isinstance(event, semcast.Message):
                    break
            assert (await a.call(b"?")).complete
            await a.send(b"2")
            assert (await a.call(b"?")).complete
            async for event in b:
                if isinstance(event, semcast.Message):
                    assert event.payload == b"2"
                    break

    run(test)


def test_a_member_that_leaves_departs_and_its_own_calls_end() -> None:
    async def test(name: str) -> None:
        async with members(name, "abc") as (a, b, c):
            echo(a)
            asked = asyncio.Event()

            @c.on_call
            async def never(request: semcast.CallRequest) -> bytes:
                asked.set()
                await asyncio.sleep(3600)
                return b""

            echo(b)
            call = asyncio.create_task(a.call(b"?"))
            own = asyncio.create_task(c.call(b"?"))
            await asked.wait()
            await c.close()
            answer = await call
            assert (answer.outcome, answer.departed, answer.missing) == ("complete", (c.member,), ())
            with pytest.raises(semcast.GroupClosedError):
                await own

    run(test)


def test_thousands_of_calls_at_once() -> None:
    async def test(name: str) -> None:
        async with members(name, "abc") as groups:
            for group in groups:
                echo(group)
            calls = [
                group.call(b"%d" % number, replies="majority", timeout=None)
                for group in groups[:2]
                for number in range(1500)
            ]
            answers = await asyncio.gather(*calls)
            assert all(answer.complete for answer in answers)
            assert groups[0]._desk._machine.under_way()[0] == 0

    run(test)


def test_private_messages() -> None:
    async def test(name: str) -> None:
        async with members(name, "abc") as (a, b, c):
            await a.send(b"1")
            await a.send_to(b.member, b"psst")
            await a.send(b"2")
            seen: dict[str, list[bytes]] = {}
            for group in (b, c):
                async for event in group:
                    if isinstance(event, semcast.Message | semcast.PrivateMessage):
                        assert event.sender == a.member
                        seen.setdefault(group.member.name, []).append(event.payload)
                        if event.payload == b"2":
                            break
            assert seen == {"b": [b"1", b"psst", b"2"], "c": [b"1", b"2"]}
            with pytest.raises(semcast.GroupError, match="is not in view"):
                await b.send_to(semcast.MemberId("nobody"), b"")

    run(test)


def test_a_call_that_is_cancelled_leaves_nothing_behind() -> None:
    async def test(name: str) -> None:
        async with members(name, "ab") as (a, b):
            with pytest.raises(TimeoutError):
                await asyncio.wait_for(a.call(b"?", to=b.member, timeout=None), 0.2)
            assert a._desk._machine.under_way() == (0, 0)

    run(test)


def test_what_makes_no_sense_is_refused() -> None:
    async def test(name: str) -> None:
        async with members(name, "ab") as (a, _b):
            with pytest.raises(TypeError, match="payload of type str"):
                await a.call("text")  # type: ignore[arg-type]
            with pytest.raises(ValueError, match="replies='some'"):
                await a.call(b"", replies="some")  # type: ignore[arg-type]
            with pytest.raises(ValueError, match="timeout 0"):
                await a.call(b"", timeout=0)
            with pytest.raises(ValueError, match="to 'b'"):
                await a.call(b"", to="b")  # type: ignore[arg-type]
            with pytest.raises(ValueError, match="one member is asked"):
                await a.call(b"", to="one", replies="majority")
            with pytest.raises(ValueError, match="request of"):
                await a.call(bytes(a.largest))
            with pytest.raises(TypeError, match="on_call takes a function"):
                a.on_call(b"no")  # type: ignore[type-var]
            echo(a)
            with pytest.raises(semcast.CallError, match="answered here already"):
                echo(a)
        with pytest.raises(semcast.GroupClosedError):
            await a.call(b"")

    run(test)


@pytest.mark.parametrize("stack", ["s-rm", "gossip"])
def test_stacks_without_views_have_no_calls(stack: str) -> None:
    async def test(name: str) -> None:
        fixed: dict[str, Any] = (
            {"members": ["a=127.0.0.1:47811", "b=127.0.0.1:47812"]} if stack == "s-rm" else {}
        )
        group = semcast.join(name, name="a", stack=stack, **fixed)
        try:
            with pytest.raises(semcast.ConfigurationError, match="calls need stack ring or vsync"):
                await group.call(b"")
            with pytest.raises(semcast.ConfigurationError, match="calls need stack ring or vsync"):
                echo(group)
        finally:
            group.discard()

    run(test)


def test_who_iterates_with_state_must_not_wait_for_answers() -> None:
    class State:
        def export(self) -> bytes:
            return b""

        def restore(self, state: bytes) -> None:
            """Nothing."""

    async def test(name: str) -> None:
        async with semcast.join(name, stack="vsync", minimum=1, state=State()) as group:
            echo(group)
            async for _ in group:
                with pytest.raises(semcast.BacklogError, match="call from another task"):
                    await group.call(b"?")
                break

    run(test)


class Count:
    """A state: a number."""

    def __init__(self, number: int = 0) -> None:
        self.number = number

    def export(self) -> bytes:
        return b"%d" % self.number

    def restore(self, state: bytes) -> None:
        self.number = int(state)


def counted(name: str, member: str, state: Count, **more: Any) -> semcast.Group:
    settings: dict[str, Any] = {"stack": "vsync", "order": "total", "minimum": 2, **more}
    group: semcast.Group = semcast.join(name, name=member, state=state, **settings)
    return group


async def count(group: semcast.Group, state: Count, upto: int) -> None:
    async for event in group:
        state.number += isinstance(event, semcast.Message)
        if state.number == upto:
            return


def test_who_never_iterates_with_state_and_answers_calls_holds_nobody_up() -> None:
    """It once read for its calls until its queue was full, and then the group stood still.

    It has no state, so it hands none over; when it iterates at last, it is given that of the group.
    """

    async def test(name: str) -> None:
        many, states = 6000, [Count(), Count(), Count()]
        idle, busy = (
            counted(name, who, states[place], queue_messages=64) for place, who in enumerate(("idle", "busy"))
        )
        async with AsyncExitStack() as stack:
            await asyncio.gather(*(stack.enter_async_context(group) for group in (idle, busy)))
            echo(idle)
            all_read = asyncio.create_task(count(busy, states[1], many + 2))
            for _ in range(many // 100):
                await busy.send_many([b"x" * 1000] * 100)
            assert (await busy.call(b"?", to=idle.member)).result == b"idle?"
            late = await stack.enter_async_context(counted(name, "late", states[2]))
            await late.wait_for(3, 20)
            reading = asyncio.create_task(count(late, states[2], many + 1))
            await busy.send(b"!")
            await reading
            states[0].number = -many  # what it makes of messages is not the state
            reading = asyncio.create_task(count(idle, states[0], many + 2))
            while states[0].number < many:  # it is given the state of the group
                await asyncio.sleep(0.05)
            await busy.send(b"!")
            await asyncio.gather(reading, all_read)

    run(test)


def test_who_only_answers_calls_hands_over_what_they_made_of_its_state() -> None:
    async def test(name: str) -> None:
        states = [Count(), Count(), Count()]
        first = [counted(name, who, state) for who, state in zip("ab", states, strict=False)]
        async with AsyncExitStack() as stack:
            await asyncio.gather(*(stack.enter_async_context(group) for group in first))
            for group, state in zip(first, states, strict=False):
                adds(group, state)
            for _ in range(3):
                assert (await first[0].call(b"+")).complete
            late = counted(name, "c", states[2])
            adds(late, states[2])
            await stack.enter_async_context(late)
            await late.wait_for(3, 20)
            assert (await first[0].call(b"+")).complete
            assert [state.number for state in states] == [4, 4, 4]

    run(test)


def adds(group: semcast.Group, state: Count) -> None:
    @group.on_call
    def add(request: semcast.CallRequest) -> bytes:
        state.number += 1
        return b"%d" % state.number


def test_threads_call_and_answer() -> None:
    name = f"calls-{uuid4().hex[:8]}"
    with blocking.join(name, name="a") as a, blocking.join(name, name="b") as b:
        a.wait_for(2, 20)
        b.wait_for(2, 20)
        threads: set[int] = set()

        def nested(group: blocking.BlockingGroup) -> None:
            @group.on_call
            def answer(request: semcast.CallRequest) -> bytes:
                threads.add(threading.get_ident())
                depth = int(request.payload)
                if depth < 0:
                    raise ValueError("below zero")
                if not depth:
                    return b"1"
                deeper = group.call(str(depth - 1).encode())
                return str(sum(map(int, deeper.replies.values()))).encode()

        nested(a)
        nested(b)
        answer = a.call(b"3")
        assert list(answer.replies.values()) == [b"8", b"8"]
        assert set(a.call(b"-1").errors.values()) == {"ValueError: below zero"}
        assert threading.get_ident() not in threads
        b.send_to(a.member, b"psst")
        for event in a.events(timeout=10):
            if isinstance(event, semcast.PrivateMessage):
                assert (event.payload, a.call(b"0").complete) == (b"psst", True)
                break
        assert (b.call(b"0", to="one")).result == b"1"


def test_handlers_of_threads_run_one_at_a_time_and_in_order() -> None:
    name = f"calls-{uuid4().hex[:8]}"
    with blocking.join(name, name="a") as group:
        done: list[int] = []
        inside = threading.Lock()

        @group.on_call
        def answer(request: semcast.CallRequest) -> bytes:
            assert inside.acquire(blocking=False), "another one runs"
            done.append(int(request.payload))
            inside.release()
            return b""

        def calls(first: int) -> None:
            for number in range(first, first + 20):
                assert group.call(str(number).encode()).complete

        threads = [threading.Thread(target=calls, args=(first,)) for first in (0, 100, 200)]
        for thread in threads:
            thread.start()
        for thread in threads:
            thread.join()
        for first in (0, 100, 200):
            assert [number for number in done if first <= number < first + 100] == list(
                range(first, first + 20)
            )
