"""A server that is told to leave while it enters: whatever it is doing, it is gone soon, and its folder free.

What it was doing is in its log, or was nobody's business yet: nothing is lost, and it can start again.
"""

import asyncio
import os
import threading
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from tests.engine.services import Counter
from tests.engine.test_engine import play

import semcast
from semcast.engine.offline import stopped
from semcast.replication.stack import Replication
from semcast.replication.states import State

SOON = 8.0
"""Seconds: three for the others to hear of it, three for what was delivered, and some on a busy machine."""
GROUP = f"leaving {os.getpid()}"


def server(folder: Path, name: str, *founders: str, service: Any = None, **given: Any) -> semcast.Replica:
    settings: dict[str, Any] = {"founders": founders} if founders else {"newcomer": True}
    return semcast.replicate(
        GROUP, service or Counter(), name=name, data=str(folder), **{**settings, **given}
    )


def stack(replica: semcast.Replica) -> Replication:
    found = replica.group.stack
    assert isinstance(found, Replication)
    return found


async def leave(folder: Path, replica: semcast.Replica, entering: "asyncio.Task[Any]") -> None:
    """As a program that is told to stop does."""
    assert not entering.done(), entering
    began = time.monotonic()
    entering.cancel()
    await asyncio.gather(entering, return_exceptions=True)
    await replica.close()
    assert time.monotonic() - began < SOON
    with stopped(folder, GROUP, replica.group.member.name) as found:
        assert found.books.server is not None


async def until(true: Callable[[], bool]) -> None:
    while not true():
        await asyncio.sleep(0.002)


class Slow(Counter):
    """Takes its time for each action, once it is told to."""

    seconds = 0.0

    def apply(self, action: bytes, context: semcast.Context) -> bytes:
        time.sleep(self.seconds)
        return super().apply(action, context)


class Gate:
    """Syncs of a disk wait before it while it is shut."""

    def __init__(self, replica: semcast.Replica) -> None:
        self._open = threading.Event()
        self.waits = False
        assert replica.group.disk is not None
        replica.group.disk.before_sync = self._pass

    def _pass(self) -> None:
        self.waits = True
        self._open.wait()

    def open(self) -> None:
        self._open.set()


def entered(replica: semcast.Replica) -> "asyncio.Task[Any]":
    return asyncio.create_task(replica.__aenter__())


def test_while_it_has_only_begun(tmp_path: Path) -> None:
    async def scenario() -> None:
        a = server(tmp_path, "a", "a", "b", "c")
        entering = entered(a)
        await asyncio.sleep(0)
        entering.cancel()
        await asyncio.gather(entering, return_exceptions=True)
        await a.close()
        with stopped(tmp_path, GROUP, "a"):
            pass

    play(scenario)


@pytest.mark.parametrize("found", [("a", "b", "c"), ()], ids=["founders", "newcomer"])
def test_while_it_waits_for_others(tmp_path: Path, found: tuple[str, ...]) -> None:
    async def scenario() -> None:
        a = server(tmp_path, "a", *found)
        entering = entered(a)
        waits = State.NON_PRIM if found else State.OUT
        await until(lambda: stack(a).machine.state is waits)
        await leave(tmp_path, a, entering)

    play(scenario)


def test_while_its_first_sync_is_under_way(tmp_path: Path) -> None:
    async def scenario() -> None:
        a = server(tmp_path, "a", "a")
        gate = Gate(a)
        entering = entered(a)
        await until(lambda: gate.waits)
        asyncio.get_running_loop().call_later(0.2, gate.open)
        await leave(tmp_path, a, entering)

    play(scenario)


@pytest.mark.parametrize(
    ("where", "withheld"),
    [(State.EXCHANGE_STATES, "exchanging.withhold_state"), (State.CONSTRUCT, "primaries.withhold_cpc")],
)
def test_in_the_middle_of_an_exchange(tmp_path: Path, where: State, withheld: str) -> None:
    """The other has a disk that never comes to an end: both wait for it."""

    async def scenario() -> None:
        a, b = server(tmp_path, "a", "a", "b"), server(tmp_path, "b", "a", "b")
        part, _, method = withheld.partition(".")
        setattr(getattr(stack(b).machine, part), method, lambda _tell: None)
        entering = [entered(each) for each in (a, b)]
        await until(lambda: all(stack(each).machine.state is where for each in (a, b)))
        await until(lambda: len(stack(a).view().members) == 2)
        await leave(tmp_path, a, entering[0])
        await leave(tmp_path, b, entering[1])

    play(scenario)


def test_while_its_service_takes_what_the_log_has(tmp_path: Path) -> None:
    """However long that takes: what is not done now is done when it starts again."""

    async def scenario() -> None:
        count = 600
        async with server(tmp_path, "a", "a") as a:
            await a.update_many([b"1"] * count)
        slow = Slow()
        slow.seconds = 0.05
        again = server(tmp_path, "a", "a", service=slow)
        entering = entered(again)
        await until(lambda: len(slow.history) > 2)
        await leave(tmp_path, again, entering)
        assert len(slow.history) < count / 2, "it did not wait for all of it"
        async with server(tmp_path, "a", "a") as a:
            assert (await a.query(b"")).result == str(count).encode()

    play(scenario)


def test_while_it_pulls_a_snapshot_from_one_that_says_nothing_any_more(tmp_path: Path) -> None:
    async def scenario() -> None:
        founder = server(tmp_path, "a", "a", trim_every=10, retention=0)
        async with founder as a:
            for _ in range(3):
                await a.update_many([b"1"] * 20)
            late = server(tmp_path, "d")
            entering = entered(late)
            await until(lambda: "d" in stack(a).strangers)
            await a.add("d")
            await until(lambda: stack(late)._outside is not None)
        await leave(tmp_path, late, entering)

    play(scenario)


def test_who_asks_for_something_of_a_server_that_has_ended_is_told_so(tmp_path: Path) -> None:
    async def scenario() -> None:
        a = server(tmp_path, "a", "a")
        await a
        a.group.command(lambda _stack, _now: 1 / 0)  # type: ignore[arg-type]
        asking = asyncio.create_task(a.in_turn(lambda found: found.machine.limit))
        await asyncio.wait([asking], timeout=5)
        with pytest.raises(semcast.GroupError):
            await asking
        with pytest.raises(semcast.GroupError):
            await a.in_turn(lambda found: found.machine.limit)
        with pytest.raises(semcast.GroupError, match="division by zero"):
            await a.close()

    play(scenario)
