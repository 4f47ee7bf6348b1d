"""The engine with live servers in one process: levels, sessions, exactly once, procedures, bad input."""

import asyncio
import os
from collections.abc import AsyncIterator, Awaitable, Callable
from contextlib import AsyncExitStack, asynccontextmanager
from pathlib import Path
from typing import Any

import pytest
from tests.engine.services import Counter

import semcast
from semcast import blocking
from semcast.engine.errors import RefusedError
from semcast.replication.backlog import Backlog
from semcast.replication.stack import Replication

NAMES = ("a", "b", "c")
GROUP = f"counter {os.getpid()}"
"""Of this run of the tests: others may run on this machine."""


def server(folder: Path, name: str, **given: Any) -> semcast.Replica:
    settings: dict[str, Any] = {"founders": NAMES, "data": str(folder), "name": name, **given}
    return semcast.replicate(GROUP, settings.pop("service", None) or Counter(), **settings)


@asynccontextmanager
async def three(folder: Path, **given: Any) -> AsyncIterator[list[semcast.Replica]]:
    async with AsyncExitStack() as stack:
        servers = [server(folder, name, **given) for name in NAMES]
        await asyncio.gather(*(each.__aenter__() for each in servers))
        for each in servers:
            stack.push_async_exit(each)
        yield servers


def play(scenario: Callable[[], Awaitable[None]]) -> None:
    async def run() -> None:
        async with asyncio.timeout(60):
            await scenario()

    asyncio.run(run())


async def total(replica: semcast.Replica, **level: Any) -> int:
    return int((await replica.query(b"", **level)).result)


def test_updates_and_reads_of_all_levels(tmp_path: Path) -> None:
    async def scenario() -> None:
        async with three(tmp_path) as (a, b, c):
            outcome = await a.update(b"5")
            assert (outcome.position, outcome.result) == (1, b"5")
            for level in ("queued", "timestamped", "commutative"):
                receipt = await b.update(b"1", level=level)
                await receipt.ordered()
            assert await total(c, level="linear") == 8
            assert await total(c) == await total(c, level="weak") == await total(c, level="dirty") == 8
            many = await c.update_many([b"1", b"-100", b"1"])
            assert [each.error for each in many] == ["", "below zero", ""]
            assert await total(a, position=many[-1].position) == 10

    play(scenario)


def test_what_the_service_refuses_is_an_outcome_and_changes_nothing(tmp_path: Path) -> None:
    async def scenario() -> None:
        async with three(tmp_path) as (a, _b, _c):
            with pytest.raises(semcast.ActionError, match="below zero"):
                await a.update(b"-1")
            receipt = await a.update(b"-1", level="queued")
            with pytest.raises(semcast.ActionError, match="below zero"):
                await receipt.ordered()
            assert await total(a, level="linear") == 0

    play(scenario)


def test_a_request_with_a_number_is_done_once_wherever_it_is_asked(tmp_path: Path) -> None:
    async def scenario() -> None:
        async with three(tmp_path) as (a, b, c):
            first = await a.update(b"5", client="till", number=1)
            both = await asyncio.gather(
                *(each.update(b"5", client="till", number=1) for each in (a, b, c, b, c))
            )
            assert set(both) == {first}
            at_once = await asyncio.gather(
                *(each.update(b"7", client="till", number=2) for each in (a, b, c))
            )
            assert len(set(at_once)) == 1
            assert await total(a, level="linear") == 12
            await c.update(b"1", client="till", number=3, floor=3)
            with pytest.raises(semcast.ForgottenError, match="request 1 of till"):
                await c.update(b"5", client="till", number=1)

    play(scenario)


def test_a_session_sees_its_writes_and_goes_on_at_another_server(tmp_path: Path) -> None:
    async def scenario() -> None:
        async with three(tmp_path) as (a, b, _c):
            session = a.session()
            await session.update(b"5")
            await session.update(b"1", level="queued")
            assert int((await session.query(b"")).result) == 6
            await session.query(b"", level="dirty")
            with pytest.raises(semcast.ActionError):
                await session.update(b"-100")
            elsewhere = b.session(token=session.token)
            assert int((await elsewhere.query(b"")).result) == 6
            await elsewhere.update(b"1")
            assert int((await elsewhere.query(b"", level="linear")).result) == 7
            with pytest.raises(semcast.RequestError, match="token: this is not the token"):
                b.session(token="no")  # noqa: S106
            with pytest.raises(semcast.RequestError, match="number 99"):
                await elsewhere.update(b"1", number=99)

    play(scenario)


def test_interactive_actions_and_procedures(tmp_path: Path) -> None:
    def double(service: Counter, body: bytes, context: semcast.Context) -> bytes:
        assert context.rng().random() < 1
        return service.apply(str(service.total * int(body)).encode(), context)

    async def scenario() -> None:
        procedures = [semcast.Procedure("times", 1, double)]
        async with three(tmp_path, procedures=procedures) as (a, b, c):
            await a.update(b"5")
            seen = (await b.query(b"", level="linear")).result
            await b.update(b"1", expect=[(b"", seen)])
            with pytest.raises(semcast.ActionError, match="expectation failed"):
                await c.update(b"1", expect=[(b"", seen)])
            outcome = await c.call("times", b"2")
            assert isinstance(outcome, semcast.Outcome)
            assert outcome.result == b"18"
            with pytest.raises(semcast.RequestError, match="procedure 'no': choose from times"):
                await c.call("no")

    play(scenario)


def test_a_server_without_the_version_of_a_procedure_stops_and_goes_on_when_it_has_it(tmp_path: Path) -> None:
    def one(service: Counter, _body: bytes, context: semcast.Context) -> bytes:
        return service.apply(b"1", context)

    old, new = semcast.Procedure("one", 1, one), semcast.Procedure("one", 2, one)

    async def scenario() -> None:
        behind = server(tmp_path, "c", procedures=[old])
        a, b = (server(tmp_path, name, procedures=[old, new]) for name in "ab")
        await asyncio.gather(a, b, behind)
        await a.call("one")
        with pytest.raises(semcast.ReplicaError, match=r"calls 'one' version 2, which this program"):
            await behind.query(b"", level="session", position=1000)
        with pytest.raises(semcast.ReplicaError, match="version 2"):
            await behind.close()
        async with server(tmp_path, "c", procedures=[new]) as updated:
            assert await total(updated, level="weak") == 1
        await a.close()
        await b.close()

    play(scenario)


def test_a_service_with_a_bug_stops_its_server_and_all_who_wait_are_told(tmp_path: Path) -> None:
    async def scenario() -> None:
        replica = await server(tmp_path, "a", founders=["a"])
        with pytest.raises(semcast.ReplicaError, match=r"cannot go on: RuntimeError.*a bug"):
            await replica.update(b"break")
        with pytest.raises(semcast.ReplicaError, match="cannot go on"):
            await replica.update(b"1")
        with pytest.raises(semcast.ReplicaError, match="cannot go on"):
            await replica.close()

    play(scenario)


def test_a_minority_takes_work_shows_it_to_dirty_reads_only_and_loses_nothing(tmp_path: Path) -> None:
    async def scenario() -> None:
        a, b, c = (server(tmp_path, name) for name in NAMES)
        await asyncio.gather(a, b, c)
        await a.update(b"5")
        await asyncio.gather(a.close(), b.close())
        while c.status().primary:
            await asyncio.sleep(0.01)
        alone = await c.update(b"1", level="queued")
        answer = await c.query(b"history", level="dirty")
        assert answer.result == b"5 1"
        assert answer.seen
        assert (await c.query(b"history", level="weak")).result == b"5"
        with pytest.raises(TimeoutError, match="a primary"):
            await c.query(b"", timeout=0.2)
        with pytest.raises(TimeoutError, match="the outcome"):
            await c.update(b"2", timeout=0.2)
        again = await c.update(b"3", level="commutative", seen=answer.seen)
        assert (await c.query(b"history", level="dirty")).result == b"5 1 2 3"
        async with server(tmp_path, "a") as back:
            assert (await alone.ordered()).result == b"6"
            assert (await again.ordered()).result == b"11"
            assert await total(back, level="linear") == 11
        await c.close()

    play(scenario)


def test_the_laziest_program_updates_ends_and_starts_again_at_once(tmp_path: Path) -> None:
    """It never reads, and never waits for anything but its updates."""

    async def once(count: int) -> list[int]:
        async with server(tmp_path, "a", founders=["a"]) as replica:
            return [(await replica.update(b"1")).position for _ in range(count)]

    assert asyncio.run(once(3)) == [1, 2, 3]
    assert asyncio.run(once(3)) == [4, 5, 6]
    assert asyncio.run(once(1)) == [7]


def test_two_processes_cannot_share_a_folder(tmp_path: Path) -> None:
    async def scenario() -> None:
        async with server(tmp_path, "a", founders=["a"]):
            with pytest.raises(semcast.ConfigurationError, match="is in use by process"):
                server(tmp_path, "a", founders=["a"])

    play(scenario)


@pytest.mark.parametrize(
    ("given", "words"),
    [
        ({"founders": ()}, "founders: name all servers"),
        ({"founders": ("b", "c")}, "'a' is not among them"),
        ({"founders": ("a", "a")}, "a name is listed twice"),
        ({"data": ""}, "data: a replication server needs a folder"),
        ({"name": ""}, "data needs a name"),
        ({"durability": "often"}, "durability 'often': choose disk or memory"),
        ({"newcomer": True}, "newcomer and founders exclude each other"),
        ({"stack": "ring"}, "stack cannot be set for a replicated service"),
        ({"foo": 1}, "no such setting: foo"),
        ({"service": object()}, "service object has no method apply"),
    ],
)
def test_settings_that_make_no_sense_are_named(tmp_path: Path, given: dict[str, Any], words: str) -> None:
    async def make() -> None:
        server(tmp_path, **{"name": "a", **given})

    with pytest.raises(semcast.GroupError, match=words):
        asyncio.run(make())


@pytest.mark.parametrize(
    ("ask", "error", "words"),
    [
        (lambda r: r.update("5"), TypeError, "action of type str"),
        (lambda r: r.update(b"5", level="fast"), semcast.RequestError, "level 'fast': updates are strict"),
        (lambda r: r.query(b"", level="strict"), semcast.RequestError, "level 'strict': reads are linear"),
        (lambda r: r.query(""), TypeError, "question of type str"),
        (lambda r: r.update(b"5", client="k"), semcast.RequestError, "client and number must be given"),
        (lambda r: r.update(b"5", number=1), semcast.RequestError, "client and number must be given"),
        (lambda r: r.update(b"5", client="k", number=-1), semcast.RequestError, "number -1"),
        (lambda r: r.update(b"5", client="k", number=1, floor=2), semcast.RequestError, "floor 2"),
        (lambda r: r.update(b"5", client="k" * 65, number=1), semcast.RequestError, "client of 65"),
        (lambda r: r.update(b"5", seen="x"), semcast.RequestError, "seen: this is not what a dirty read"),
        (lambda r: r.update(b"5", expect=[b""]), semcast.RequestError, "expect b''"),
        (lambda r: r.update(bytes(1 << 25)), semcast.RequestError, "action of 33554432 bytes: at most"),
        (lambda r: r.remove("x"), semcast.RequestError, "server 'x': the servers of counter .* are a"),
        (lambda r: r.add("x"), semcast.RequestError, "server 'x': it does not ask to be let in; nobody"),
        (lambda r: r.weigh("a", -1), semcast.RequestError, "weight -1"),
    ],
)
def test_requests_that_make_no_sense_are_named(
    tmp_path: Path, ask: Callable[[Any], Awaitable[Any]], error: type[Exception], words: str
) -> None:
    async def scenario() -> None:
        async with server(tmp_path, "a", founders=["a"]) as replica:
            with pytest.raises(error, match=words):
                await ask(replica)
            assert (await replica.update(b"1")).position == 1

    play(scenario)


def test_a_newcomer_is_let_in_and_one_that_is_removed_ends(tmp_path: Path) -> None:
    async def scenario() -> None:
        async with three(tmp_path) as (a, b, c):
            await a.update(b"5")
            d = server(tmp_path, "d", founders=(), newcomer=True)
            entering = asyncio.ensure_future(d.__aenter__())
            while "d" not in a.status().strangers:
                await asyncio.sleep(0.01)
            await a.add("d", weight=2, timeout=20)
            await entering
            assert await total(d, level="weak") == 5
            assert a.status().servers == {"a": 1, "b": 1, "c": 1, "d": 2}
            assert await total(d, level="linear") == 5
            await b.remove("c", timeout=20)
            while not c.group._seat.left:
                await asyncio.sleep(0.01)
            await a.weigh("d", 1, timeout=20)
            assert a.status().servers == {"a": 1, "b": 1, "d": 1}
            assert (await d.update(b"1")).result == b"6"
            await d.close()

    play(scenario)


def test_blocking_programs_have_the_same_calls(tmp_path: Path) -> None:
    given: dict[str, Any] = {"name": "a", "founders": ["a"], "data": str(tmp_path)}
    with blocking.replicate(GROUP, Counter(), **given) as replica:
        done = replica.update(b"5")
        assert isinstance(done, semcast.Outcome)
        receipt = replica.update(b"1", level="queued")
        assert not isinstance(receipt, semcast.Outcome)
        assert receipt.ordered().result == b"6"
        assert replica.query(b"", level="linear").result == b"6"
        session = replica.session()
        session.update(b"1")
        assert session.query(b"").result == b"7"
        assert [each.result for each in replica.update_many([b"1", b"1"])] == [b"8", b"9"]
        assert replica.status().primary
    with pytest.raises(semcast.GroupClosedError, match="not open"):
        replica.query(b"")


def test_a_server_whose_clock_does_not_fit_refuses_writes_and_answers_reads(
    tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    async def scenario() -> None:
        servers = [server(tmp_path, name) for name in NAMES]
        wrong = servers[1].group.stack
        assert isinstance(wrong, Replication)
        clock = wrong.vitals.wall
        wrong.vitals.wall = lambda: clock() + 3_600_000
        await asyncio.gather(*(each.__aenter__() for each in servers))
        try:
            outcome = await servers[0].update(b"5")
            for ask in (servers[1].update(b"1"), servers[1].update_many([b"1"])):
                with pytest.raises(RefusedError, match="3600 s ahead"):
                    await ask
            assert await total(servers[1], position=outcome.position) == 5
            assert "3600 s ahead" in servers[1].status().alarm
        finally:
            await asyncio.gather(*(each.close() for each in servers))

    play(scenario)
    assert "3600 s ahead" in caplog.text


def test_who_was_away_for_long_catches_up_before_it_comes_back_also_with_little_room(tmp_path: Path) -> None:
    """It is given more than may wait for a service: the program has to do it before the server is inside."""

    async def scenario() -> None:
        async with AsyncExitStack() as stack:
            servers = [server(tmp_path, name) for name in NAMES]
            await asyncio.gather(*(each.__aenter__() for each in servers))
            for each in servers[:2]:
                stack.push_async_exit(each)
            await servers[2].close()
            outcomes = await servers[0].update_many([b"1"] * 12_000)
            late = server(tmp_path, "c")
            machine = late.group.stack
            assert isinstance(machine, Replication)
            machine._backlog = Backlog(20_000)
            async with late:
                assert await total(late, position=outcomes[-1].position) == 12_000

    play(scenario)
