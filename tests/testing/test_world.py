"""Programs under the simulator: they run unchanged, faults do what they say, and one seed is one run."""

import asyncio
import os
import random
import re
import subprocess
import sys
import time
import uuid
from collections.abc import Callable, Sequence
from itertools import count
from pathlib import Path
from typing import Any

import pytest
from tests.testing.programs import answering, asking, chat, counter

import semcast
from semcast import blocking
from semcast.core.events import Delivery
from semcast.core.messages import Batch
from semcast.history import Kind
from semcast.specs import Status
from semcast.testing import Process, World, WorldError, trouble
from semcast.testing.scribe import Scribe

ROOT = Path(__file__).parents[2]


def test_programs_run_unchanged_and_take_no_real_time() -> None:
    world = World(seed=1)
    said: list[tuple[str, bytes]] = []
    began = time.process_time()
    for host in world.hosts:
        world.start(host, chat, host, 3, said, 600)
    world.wait()
    taken = time.process_time() - began
    heard = {name: [what for who, what in said if who == name] for name in "abc"}
    assert len(heard["a"]) == 30
    assert heard["a"] == heard["b"] == heard["c"], "a ring has one order"
    assert world.now > 600
    assert taken < 60, "ten minutes of group time, on however slow a machine"
    assert {verdict.status for verdict in world.check(at_rest=True)} <= {Status.HOLDS, Status.UNKNOWN}


def test_a_dictionary_and_calls() -> None:
    world = World(seed=2)
    counts = [world.start(host, counter, host, 5) for host in world.hosts]
    world.wait()
    assert [process.result() for process in counts] == [{"a": 4, "b": 4, "c": 4}] * 3
    for host in "bc":
        world.start(host, answering, host, 30)
    assert world.run(asking, 3) == [b"b:who?", b"c:who?"]
    world.check()


STACKS: list[dict[str, Any]] = [{"stack": "vsync", "minimum": 2}, {"stack": "ring"}, {"stack": "gossip"}]


@pytest.mark.parametrize("how", STACKS, ids=str)
def test_stacks(how: dict[str, Any]) -> None:
    got: list[bytes] = []

    async def member(name: str) -> None:
        async with semcast.join("g", name=name, **how) as group:
            await group.wait_for(3)
            await group.send(name.encode())
            async for event in group:
                if isinstance(event, semcast.Message):
                    got.append(event.payload)

    world = World(seed=3, loss=0.05)
    for host in world.hosts:
        world.start(host, member, host)
    world.sleep(20)
    assert sorted(got) == sorted([b"a", b"b", b"c"] * 3)
    world.check(at_rest=True)


def test_a_fixed_list_of_members_by_the_names_of_hosts() -> None:
    members = tuple(f"{name}={name}:5000" for name in "abc")
    got: list[bytes] = []

    async def member(name: str) -> None:
        async with semcast.join("g", name=name, stack="s-rm", members=members) as group:
            await group.send(b"42", item="answer")
            async for event in group:
                if isinstance(event, semcast.Message):
                    got.append(event.payload)

    world = World(seed=4)
    for host in world.hosts:
        world.start(host, member, host)
    world.sleep(5)
    assert len(got) == 9
    world.check(at_rest=True)


def test_a_sealed_group(tmp_path: Path) -> None:
    key = tmp_path / "key.toml"
    subprocess.run([sys.executable, "-m", "semcast", "keygen", str(key)], check=True, capture_output=True)

    async def member(name: str) -> int:
        async with semcast.join("g", name=name, key_file=str(key)) as group:
            view = await group.wait_for(3)
            await asyncio.sleep(5)
            return len(view.members)

    world = World(seed=5)
    started = [world.start(host, member, host) for host in world.hosts]
    world.wait()
    assert [process.result() for process in started] == [3, 3, 3]


# Faults


def views(world: World) -> dict[str, list[int]]:
    """How many members the views had that each member was in, in order."""
    found: dict[str, list[int]] = {}
    for event in (event for history in world.histories() for event in history.events):
        if event.kind is Kind.VIEW:
            found.setdefault(event.process.name, []).append(len(event.members or ()))
    return found


async def stay(name: str) -> None:
    async with semcast.join("g", name=name) as group:
        async for _ in group:
            pass


def settled(*, hosts: int = 3, seed: int = 6) -> World:
    world = World(seed=seed, hosts=hosts)
    for host in world.hosts:
        world.start(host, stay, host)
    world.sleep(3)
    return world


def test_a_partition_and_its_end() -> None:
    world = settled()
    world.partition({"a"}, {"b", "c"})
    world.sleep(5)
    assert {name: sizes[-1] for name, sizes in views(world).items()} == {"a": 1, "b": 2, "c": 2}
    world.heal()
    world.sleep(5)
    assert {name: sizes[-1] for name, sizes in views(world).items()} == {"a": 3, "b": 3, "c": 3}
    world.check(at_rest=True)


def test_a_crash_a_restart_and_a_stop() -> None:
    world = settled()
    crashed = next(process for process in world.processes if process.host.name == "a")
    world.crash("a")
    world.sleep(5)
    assert crashed.crashed
    with pytest.raises(WorldError, match="crashed: it has no result"):
        crashed.result()
    assert views(world)["b"][-1] == 2
    world.restart("a")
    world.sleep(5)
    assert {sizes[-1] for sizes in views(world).values()} == {3}
    world.stop("b")
    world.sleep(1)
    assert views(world)["c"][-1] == 2, "who is told to end leaves, and nobody has to find out"
    world.check()
    crashes = [event.process.name for event in world.histories()[0].events if event.kind is Kind.CRASH]
    assert crashes == ["a"]


def test_a_pause() -> None:
    world = settled()
    world.pause("c")
    world.sleep(10)
    assert views(world)["a"][-1] == 2
    world.resume("c")
    world.sleep(10)
    assert {sizes[-1] for sizes in views(world).values()} == {3}
    world.check(at_rest=True)


def test_what_is_on_disk_outlives_a_crash_of_everybody() -> None:
    views: dict[str, list[tuple[int, int]]] = {"a": [], "b": [], "c": []}

    async def member(name: str) -> None:
        async with semcast.join("g", name=name, stack="vsync", minimum=2, data="kept") as group:
            async for event in group:
                if isinstance(event, semcast.ViewChange):
                    views[name].append((event.view.id, len(event.view.members)))

    for seed in range(5):
        with World(seed=seed) as world:
            for host in world.hosts:
                world.start(host, member, host)
            world.sleep(5)
            assert {seen[-1][1] for seen in views.values()} == {3}
            before = max(seen[-1][0] for seen in views.values())
            world.crash()
            for host in world.hosts:
                world.restart(host)
            world.sleep(20)
            assert {seen[-1][1] for seen in views.values()} == {3}
            assert min(seen[-1][0] for seen in views.values()) > before, "it is the same group, which goes on"
            world.check()


def test_a_disk_is_of_one_process_at_a_time() -> None:
    async def member() -> None:
        async with semcast.join("g", name="a", stack="vsync", minimum=1, data="kept"):
            await asyncio.sleep(10)

    world = World(seed=21)
    world.start("a", member)
    world.sleep(2)
    world.start("a", member)
    with pytest.raises(semcast.ConfigurationError, match="another process of this host uses it"):
        world.sleep(2)


def test_signals_are_what_a_program_makes_of_them() -> None:
    async def member() -> str:
        async with semcast.join("g") as group:
            group.leave_on_signals()
            async for _ in group:
                pass
        return "in good order"

    world = World(seed=7)
    process = world.start("a", member)
    world.sleep(2)
    world.stop()
    world.wait()
    assert process.result() == "in good order"


def test_a_slow_program_gets_the_latest_and_stops_nobody() -> None:
    def run(slowness: float) -> tuple[int, bytes]:
        got: list[bytes] = []

        async def reader() -> None:
            async with semcast.join("g", name="reader", queue_messages=4) as group:
                async for event in group:
                    if isinstance(event, semcast.Message):
                        got.append(event.payload)

        async def writer() -> None:
            async with semcast.join("g", name="writer") as group:
                await group.wait_for(2)
                for number in range(1000):
                    await group.send(b"%d" % number, item="x")
                    await asyncio.sleep(0.001)
                await asyncio.sleep(30)

        world = World(seed=8, hosts=["r", "w"])
        world.slow("r", slowness)
        world.start("r", reader)
        world.wait(world.start("w", writer))
        world.check()
        return len(got), got[-1]

    assert run(0.0) == (1000, b"999")
    count, last = run(0.05)
    assert count < 900, "most of them were obsolete"
    assert last == b"999"


def test_several_processes_on_one_host_have_ports_of_their_own() -> None:
    world = World(seed=9, hosts=1)
    for name in "xyz":
        world.start("a", stay, name)
    world.sleep(3)
    assert {sizes[-1] for sizes in views(world).values()} == {3}


# One seed, one run


def busy(seed: int) -> list[str]:
    world = World(seed=seed, hosts=3, loss=0.02, jitter=0.001)
    said: list[tuple[str, bytes]] = []
    drawn: list[str] = []

    async def draw() -> None:
        for _ in range(3):
            await asyncio.wait({asyncio.create_task(asyncio.sleep(random.random())) for _ in range(5)})
            drawn.append(f"{random.random()} {uuid.uuid4()} {time.monotonic()} {time.time()}")

    for host in world.hosts:
        world.start(host, chat, host, 3, said)
        world.start(host, draw)
    world.sleep(1)
    trouble(world, 20)
    world.sleep(20)
    world.check()
    return [*world.trace(), *map(str, said), *drawn]


def test_one_seed_is_one_run_and_another_seed_another() -> None:
    first = busy(11)
    assert busy(11) == first
    assert busy(12) != first


def test_hashes_of_names_decide_nothing() -> None:
    code = "from tests.testing.test_world import busy; print(*busy(13), sep=chr(10))"
    printed = [
        subprocess.run(
            [sys.executable, "-c", code],
            cwd=ROOT,
            env={**os.environ, "PYTHONHASHSEED": seed, "SEMCAST_STACK": stack},
            check=True,
            capture_output=True,
            text=True,
        ).stdout
        for seed, stack in (("0", "ring"), ("1", "vsync"), ("77", "gossip"))
    ]
    assert len(printed[0].splitlines()) > 100
    assert printed[0] == printed[1] == printed[2], "nor do settings of the environment"


def test_chance_from_elsewhere_would_be_seen(monkeypatch: pytest.MonkeyPatch) -> None:
    numbers = count()  # goes on from one run to the next
    monkeypatch.setattr(Process, "chance", lambda _process: random.Random(next(numbers)))
    assert busy(11) != busy(11)


def test_what_was_not_delivered_as_promised_is_found(monkeypatch: pytest.MonkeyPatch) -> None:
    """A member that hides one message from its program, and delivers those after it."""
    honest = Scribe.on_deliveries
    hidden: list[object] = []

    def hides(scribe: Scribe, now: int, deliveries: Sequence[Delivery]) -> None:
        if scribe.member.name == "b" and not hidden:
            hidden.extend(each for each in deliveries if isinstance(each, Batch))
            deliveries = [each for each in deliveries if not isinstance(each, Batch)]
        honest(scribe, now, deliveries)

    monkeypatch.setattr(Scribe, "on_deliveries", hides)
    world = World(seed=1)
    said: list[tuple[str, bytes]] = []
    for host in world.hosts:
        world.start(host, chat, host, 3, said, 20)
    world.wait()
    assert hidden
    with pytest.raises(AssertionError, match="violated") as caught:
        world.check(at_rest=True)
    assert any("World(seed=1)" in note for note in caught.value.__notes__)


def test_clocks_and_chance_are_real_again_afterwards() -> None:
    before, state = time.monotonic(), random.getstate()
    settled()
    assert abs(time.monotonic() - before) < 600
    assert random.getstate() == state
    assert time.sleep.__module__ == "time"


# What cannot be


def fails(program: Callable[[], Any], match: str, kind: type[BaseException] = WorldError) -> None:
    world = World(seed=17)
    world.start("a", program)
    with pytest.raises(kind, match=match) as caught:
        world.wait()
    assert any("World(seed=17)" in note for note in caught.value.__notes__)


def test_a_program_that_blocks_or_needs_the_real_world_is_told() -> None:
    async def sleeps() -> None:
        time.sleep(1)

    async def connects() -> None:
        await asyncio.open_connection("127.0.0.1", 80)

    async def sleeps_in_a_thread() -> None:
        await asyncio.to_thread(time.sleep, 1)

    async def starts() -> None:
        await asyncio.create_subprocess_exec("true")

    async def blocks() -> None:
        blocking.join("g")

    async def writes() -> None:
        await semcast.join("g", record="here")

    async def serves() -> None:
        await semcast.join("g", metrics="127.0.0.1:0")

    async def strays() -> None:
        await semcast.join("g", peers=("nowhere.example:5000",))

    fails(sleeps, "time.sleep stops the whole world")
    fails(sleeps_in_a_thread, "time.sleep stops the whole world")
    fails(connects, "no TCP connections")
    fails(starts, "no child processes")
    fails(blocks, "needs threads", semcast.GroupError)
    fails(writes, "records by itself", semcast.ConfigurationError)
    fails(serves, "no TCP servers")
    fails(strays, "no host 'nowhere.example'", semcast.ConfigurationError)


def test_what_a_program_raises_is_raised_and_says_where() -> None:
    async def program() -> None:
        await asyncio.sleep(3)
        raise ValueError("mine")

    world = World(seed=18)
    world.start("b", program)
    with pytest.raises(ValueError, match="mine") as caught:
        world.sleep(10)
    [note] = caught.value.__notes__
    assert re.fullmatch(r"raised in process 1 on b after 3.0000\d\d s in World\(seed=18\)", note)


def test_waiting_in_vain_says_who_waits_where() -> None:
    async def program() -> None:
        await asyncio.Event().wait()

    world = World(seed=19)
    world.start("a", program)
    with pytest.raises(WorldError, match=r"process 1 on a: it waits in program, test_world.py:\d+"):
        world.wait(timeout=5)


@pytest.mark.parametrize(
    ("act", "match"),
    [
        (lambda world: world.crash("z"), "no host 'z', only a, b, c"),
        (lambda world: world.partition({"a"}, {"a", "b"}), "on two sides"),
        (lambda world: world.restart("a"), "nothing ever ran on a"),
        (lambda world: world.start("a", time.time), "no `async def`"),
        (lambda world: trouble(world, 1, ["fire"]), "faults fire: choose from partition"),  # type: ignore[list-item]
        (lambda world: World(hosts=0), "at least one"),
        (lambda world: World(hosts=["a", "a"]), "all different"),
        (lambda world: world.until(lambda: False, timeout=1), "not so after 1 s"),
    ],
)
def test_mistakes_of_a_test_are_named(act: Callable[[World], Any], match: str) -> None:
    with pytest.raises(WorldError, match=match):
        act(World(seed=20))
