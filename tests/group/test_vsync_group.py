"""Agreed views for programs: several members in one process, over real sockets."""

import asyncio
import json
import logging
from collections.abc import AsyncIterator, Awaitable, Callable
from contextlib import asynccontextmanager
from pathlib import Path
from typing import Any
from uuid import uuid4

import pytest

import semcast
from semcast.core.messages import Batch
from semcast.group.errors import GroupClosedError
from semcast.group.settings import resolve
from semcast.history import read_history
from semcast.specs import Status, check

ORDERS: dict[str, dict[str, Any]] = {
    "fifo": {},
    "causal": {"order": "causal"},
    "token": {"order": "total"},
    "consensus": {"order": "total", "engine": "consensus"},
    "uniform": {"order": "total", "uniform": True},
    "flush": {"flush": "all", "uniform": True},
}


def run(test: Callable[[str], Awaitable[None]]) -> None:
    asyncio.run(asyncio.wait_for(test(f"vsync-{uuid4().hex[:8]}"), 50))


def judge(folder: Path) -> None:
    history = read_history(folder)
    assert history.info.cut_off == ()
    violated = [str(verdict) for verdict in check(history) if verdict.status is Status.VIOLATED]
    assert not violated, "\n".join(violated)


@asynccontextmanager
async def members(group: str, names: str, **settings: Any) -> AsyncIterator[list[semcast.Group]]:
    """Members that see each other."""
    chosen = {"stack": "vsync", "minimum": len(names) // 2 + 1, "token_loss": "2s", **settings}
    groups = [semcast.join(group, name=name, **chosen) for name in names]
    await asyncio.gather(*(each.__aenter__() for each in groups))
    try:
        await asyncio.gather(*(until_view(each, names) for each in groups))
        yield groups
    finally:
        await asyncio.gather(*(each.close() for each in groups))


async def until_view(group: semcast.Group, names: str) -> semcast.ViewChange:
    async for event in group:
        if isinstance(event, semcast.ViewChange) and sorted(m.name for m in event.view.members) == sorted(
            names
        ):
            return event
    raise AssertionError("ended")


async def until(group: semcast.Group, kind: type[Any]) -> Any:
    async for event in group:
        if isinstance(event, kind):
            return event
    raise AssertionError("ended")


async def read(group: semcast.Group, ends: int) -> list[bytes]:
    """Messages until so many said that they are the last."""
    got: list[bytes] = []
    async for event in group:
        if isinstance(event, semcast.Message):
            got.append(event.payload)
            ends -= event.payload.startswith(b"end")
            if not ends:
                break
    return got


@pytest.mark.parametrize("order", ORDERS)
def test_three_members_in_every_order(tmp_path: Path, order: str) -> None:
    async def test(name: str) -> None:
        async with members(name, "abc", record=str(tmp_path), record_run="r", **ORDERS[order]) as groups:
            for group in groups:
                await group.send_many([b"%s %d" % (group.member.name.encode(), n) for n in range(300)])
                await group.send(bytes(100_000))
                await group.send(b"end")
            got = await asyncio.gather(*(read(group, 3) for group in groups))
            for each in got:
                assert len(each) == 3 * 302
                assert [p for p in each if p.startswith(b"a ")] == [b"a %d" % n for n in range(300)]
            if "total" in ORDERS[order].values():
                assert got[0] == got[1] == got[2]
            assert groups[0].stats().phase == "operational"

    run(test)
    history = read_history(tmp_path)
    assert history.info.only.order == ORDERS[order].get("order", "fifo")
    assert history.info.only.uniform == ORDERS[order].get("uniform", False)
    judge(tmp_path)


def test_one_founds_the_group_and_others_join_and_leave() -> None:
    async def test(name: str) -> None:
        async with semcast.join(name, name="a", stack="vsync", bootstrap=True) as a:
            assert (await until_view(a, "a")).view.id == 1
            async with semcast.join(name, name="b", stack="vsync") as b:
                change = await until_view(a, "ab")
                assert [member.name for member in change.joined] == ["b"]
                await until_view(b, "ab")
                await b.send(b"hello")
                assert (await until(a, semcast.Message)).sender == b.member
            change = await until_view(a, "a")
            assert [member.name for member in change.left] == ["b"]
            assert change.failed == ()

    run(test)


def test_who_only_joins_waits_for_a_group_and_can_be_cancelled() -> None:
    async def test(name: str) -> None:
        joining = asyncio.create_task(semcast.join(name, stack="vsync").__aenter__())
        done, _ = await asyncio.wait([joining], timeout=0.5)
        assert not done
        joining.cancel()
        with pytest.raises(asyncio.CancelledError):
            await joining

    run(test)


def test_members_that_know_only_one_address() -> None:
    async def test(name: str) -> None:
        alone: dict[str, Any] = {"stack": "vsync", "multicast": False, "token_loss": "2s"}
        async with semcast.join(name, name="a", bootstrap=True, **alone) as a:
            peers = [":".join(map(str, a.address))]
            async with (
                semcast.join(name, name="b", peers=peers, **alone) as b,
                semcast.join(name, name="c", peers=peers, **alone) as c,
            ):
                await asyncio.gather(*(until_view(each, "abc") for each in (a, b, c)))
                await c.send(b"end")
                assert await asyncio.gather(*(read(each, 1) for each in (a, b))) == [[b"end"], [b"end"]]

    run(test)


def test_a_member_that_is_set_differently_is_refused_and_both_sides_say_why(
    caplog: pytest.LogCaptureFixture,
) -> None:
    """It heard nobody, and after five seconds the log asked whether others run with the same settings."""

    async def test(name: str) -> None:
        async with semcast.join(name, name="a", stack="vsync", bootstrap=True, order="total"):
            with pytest.raises(GroupClosedError, match="order is fifo here and total there"):
                await semcast.join(name, name="b", stack="vsync")

    with caplog.at_level(logging.WARNING, "semcast.group"):
        run(test)
    told = [record.message for record in caplog.records if "is not let in" in record.message]
    assert len(told) == 1
    assert "order is total here and fifo there" in told[0]


# Items: ids count what was handed over, whatever numbers the stack gives


@pytest.mark.parametrize("order", ["fifo", "token", "consensus"])
def test_several_items_at_once_replace_what_they_should(tmp_path: Path, order: str) -> None:
    """Large messages take several numbers, and so does a token holder's word: nothing else is replaced."""

    async def test(name: str) -> None:
        settings = {"record": str(tmp_path), "record_run": "r", **ORDERS[order]}
        async with members(name, "ab", **settings) as (a, b):
            kept = []
            for number in range(60):
                kept.append(b"keep %d" % number)
                await a.send(kept[-1])
                await a.send(bytes(70_000) if number % 10 == 0 else b"both", items=["x", "y"])
                first = await a.send(b"x", item="x")
                await a.send(b"y", items=["y"])
                await a.send(b"instead", obsoletes=[first])
            await a.send(b"end")
            for got in await asyncio.gather(read(a, 1), read(b, 1)):
                assert [p for p in got if p.startswith(b"keep")] == kept

    run(test)
    judge(tmp_path)


# State


class Ledger:
    """A state that shows what was applied, and in which order."""

    def __init__(self) -> None:
        self.entries: list[str] = []
        self.exports = 0
        self.restored = 0

    def export(self) -> bytes:
        self.exports += 1
        return json.dumps(self.entries).encode()

    def restore(self, state: bytes) -> None:
        self.restored += 1
        self.entries = json.loads(state)


async def follow(group: semcast.Group, ledger: Ledger, *, lists: bool) -> list[str]:
    """Apply messages until the ends of both; returns the state at the beginning of each view."""
    at_views: list[str] = []

    def ended() -> bool:
        return {"end", "end of b"} <= set(ledger.entries[-2:])

    def apply(each: object) -> None:
        if isinstance(each, semcast.Message):
            ledger.entries.append(each.payload.decode())
        elif isinstance(each, semcast.ViewChange):
            at_views.append(f"{each.view.id}: {len(ledger.entries)}")

    if lists:
        async for deliveries in group.batches():
            for each in deliveries:
                await asyncio.sleep(0)
                for one in each.messages() if isinstance(each, Batch) else [each]:
                    apply(one)
            if ended():
                break
    else:
        async for event in group:
            await asyncio.sleep(0)
            apply(event)
            if ended():
                break
    return at_views


@pytest.mark.parametrize("lists", [False, True], ids=["single", "batches"])
@pytest.mark.parametrize("order", ["fifo", "token"])
def test_a_joiner_gets_the_state_at_its_first_view(tmp_path: Path, order: str, lists: bool) -> None:
    """While messages flow: the state and what comes after it make up what the others have."""

    async def test(name: str) -> None:
        settings = {
            "stack": "vsync",
            "token_loss": "2s",
            "record": str(tmp_path),
            "record_run": "r",
            **ORDERS[order],
        }
        first, second = Ledger(), Ledger()
        async with semcast.join(name, name="a", bootstrap=True, state=first, **settings) as a:
            following = asyncio.create_task(follow(a, first, lists=lists))
            enough = asyncio.Event()

            async def send() -> int:
                number = 0
                while not enough.is_set():
                    number += 10
                    await a.send_many([b"%d" % each for each in range(number, number + 10)])
                    await asyncio.sleep(0.001)
                await a.send(b"end")
                return number + 2

            sending = asyncio.create_task(send())
            async with semcast.join(name, name="b", state=second, **settings) as b:
                other = asyncio.create_task(follow(b, second, lists=lists))
                while not second.restored or len(second.entries) < len(first.entries) // 2:
                    await asyncio.sleep(0.01)
                enough.set()
                sent = await sending
                while "end" not in second.entries:
                    await asyncio.sleep(0.01)
                await b.send(b"end of b")
                views, theirs = await asyncio.gather(following, other)
            assert first.exports == second.restored == 1
            assert second.exports == first.restored == 0
            assert len(theirs) == 1
            assert theirs[0] in views
            if order == "token":
                assert first.entries == second.entries
            assert sorted(first.entries) == sorted(second.entries)
            assert len(first.entries) == sent

    run(test)
    judge(tmp_path)


class Moody(Ledger):
    def export(self) -> bytes:
        self.exports += 1
        if self.exports == 1:
            raise ZeroDivisionError("a bug of the application")
        return b"[]"


def test_a_hook_that_raises_is_called_again() -> None:
    async def test(name: str) -> None:
        moody, second = Moody(), Ledger()
        async with (
            semcast.join(name, name="a", stack="vsync", bootstrap=True, state=moody) as a,
            semcast.join(name, name="b", stack="vsync", state=second) as b,
        ):
            reading = asyncio.create_task(until_view(b, "ab"))
            with pytest.raises(ZeroDivisionError):
                await until(a, semcast.Message)
            assert not reading.done()
            also = asyncio.create_task(until(a, semcast.Message))
            await reading
            assert (moody.exports, second.restored) == (2, 1)
            await b.send(b"x")
            await also

    run(test)


def test_a_hook_that_raises_while_nobody_reads_is_told_to_who_reads_later() -> None:
    async def test(name: str) -> None:
        moody, second = Moody(), Ledger()
        async with (
            semcast.join(name, name="a", stack="vsync", bootstrap=True, state=moody) as a,
            semcast.join(name, name="b", stack="vsync", state=second) as b,
        ):
            reading = asyncio.create_task(until_view(b, "ab"))
            while not moody.exports:
                await asyncio.sleep(0.02)
            with pytest.raises(ZeroDivisionError):
                await until(a, semcast.Message)
            also = asyncio.create_task(until(a, semcast.Message))
            await reading
            assert (moody.exports, second.restored) == (2, 1)
            await b.send(b"x")
            await also

    run(test)


def test_who_has_no_hooks_is_never_asked_for_the_state() -> None:
    """A bystander goes through all views, also as the first of them, and joiners ask somebody else."""

    async def test(name: str) -> None:
        settings: dict[str, Any] = {"stack": "vsync", "token_loss": "2s"}
        first, second = Ledger(), Ledger()
        first.entries = ["something"]
        async with semcast.join(name, name="s", bootstrap=True, **settings) as bystander:
            watching = asyncio.create_task(until_view(bystander, "ast"))
            async with semcast.join(name, name="a", state=first, **settings) as a:
                reading = asyncio.create_task(read(a, 1))
                async with semcast.join(name, name="t", state=second, **settings) as t:
                    await until_view(t, "ast")
                    assert second.entries == ["something"]
                    await t.send(b"end")
                    await asyncio.gather(watching, reading)

    run(test)


def test_a_program_that_never_reads_hands_over_the_state_it_has() -> None:
    """The joiner once waited until the first member left, and was then told that the state was lost."""

    async def test(name: str) -> None:
        first, second = Ledger(), Ledger()
        first.entries = ["something"]
        async with (
            semcast.join(name, name="a", stack="vsync", bootstrap=True, state=first),
            semcast.join(name, name="b", stack="vsync", state=second) as b,
        ):
            await until_view(b, "ab")
            assert second.entries == ["something"]

    run(test)


def test_a_joiner_that_waits_for_what_was_not_read_is_told_of(
    caplog: pytest.LogCaptureFixture, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("semcast.group.inbox._UNREAD_LONG", 1)

    async def test(name: str) -> None:
        first, second = Ledger(), Ledger()
        async with semcast.join(name, name="a", stack="vsync", bootstrap=True, state=first) as a:
            await a.send(b"unread")
            async with semcast.join(name, name="b", stack="vsync", state=second) as b:
                joined = asyncio.create_task(until_view(b, "ab"))
                while "a joiner waits for the state of a" not in caplog.text:
                    await asyncio.sleep(0.05)
                reading = asyncio.create_task(follow_one(a, first))
                await joined
                assert second.entries == ["unread"]
                reading.cancel()

    with caplog.at_level(logging.WARNING, "semcast"):
        run(test)


async def follow_one(group: semcast.Group, ledger: Ledger) -> None:
    async for event in group:
        if isinstance(event, semcast.Message):
            ledger.entries.append(event.payload.decode())


def test_a_state_must_be_bytes_and_needs_views() -> None:
    class Wrong(Ledger):
        def export(self) -> bytes:
            return "text"  # type: ignore[return-value]

    async def test(name: str) -> None:
        with pytest.raises(semcast.ConfigurationError, match="vsync"):
            semcast.join(name, state=Ledger())
        with pytest.raises(semcast.ConfigurationError, match="export"):
            semcast.join(name, stack="vsync", bootstrap=True, state=lambda: b"")  # type: ignore[call-overload]
        async with semcast.join(name, name="a", stack="vsync", bootstrap=True, state=Wrong()) as a:
            joining = asyncio.create_task(
                semcast.join(name, name="b", stack="vsync", state=Ledger()).__aenter__()
            )
            with pytest.raises(TypeError, match="bytes"):
                await until(a, semcast.Message)
            await (await joining).close()

    run(test)


# Settings


@pytest.mark.parametrize(
    ("wrong", "words"),
    [
        ({"stack": "totem"}, "choose from gossip, .*ring, lightweight, replication, s-rm"),
        ({"order": "total"}, "order is for stack vsync"),
        ({"stack": "vsync", "order": "agreed"}, "fifo, causal, total"),
        ({"stack": "vsync", "engine": "token"}, "order = total"),
        ({"stack": "vsync", "order": "total", "engine": "magic"}, "token, consensus"),
        ({"stack": "vsync", "flush": "some"}, "coordinator, all"),
        ({"stack": "vsync", "minimum": -1}, "minimum"),
        ({"stack": "vsync", "bootstrap": True, "minimum": 3}, "minimum"),
        ({"stack": "vsync", "expel_after": "soon"}, "not a duration"),
        ({"expel_after": "1s"}, "expel_after is for stack vsync"),
        ({"expel_when_full": True}, "expel_when_full is for stack vsync"),
        ({"stack": "vsync", "buffer_messages": 3}, "at least 64"),
    ],
    ids=lambda value: value if isinstance(value, str) else "-".join(value),
)
def test_settings_that_make_no_sense(wrong: dict[str, Any], words: str) -> None:
    with pytest.raises(semcast.ConfigurationError, match=words):
        resolve(wrong)


def test_there_is_no_safe_order_and_items_are_short() -> None:
    async def test(name: str) -> None:
        async with semcast.join(name, stack="vsync", bootstrap=True, datagram=1400) as a:
            with pytest.raises(ValueError, match="uniform"):
                await a.send(b"x", order="safe")
            with pytest.raises(ValueError, match="item of 250 bytes"):
                await a.send(b"x", item="x" * 250)

    run(test)
