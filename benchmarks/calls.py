"""Calls: live between three processes, beside plain messages; and simulated, to 1 to 7 members.

Live: two processes answer, this one asks, and answers, too. The floor of a call's time is that of a message
until its sender has it in its place (`confirm="delivered"`); the floor of calls a second, messages a second
that are sent one by one. Simulated (Birman et al. 1991, tables II and III): the time of a call to n others,
which all reply, beside one to one other; and one call to seven beside seven calls to one, in the same group.
"""

import asyncio
import json
import statistics
import subprocess
import sys
import time
from collections.abc import Awaitable, Callable
from typing import Any
from uuid import uuid4

import semcast
from benchmarks.rows import Row, against
from semcast.core.ids import MICROSECOND, MILLISECOND, SECOND
from semcast.history import History
from semcast.sim.calling import CallsSettings, PlaceCall
from semcast.sim.scenario import Scenario
from semcast.sim.simulate import simulate
from semcast.specs.calls.story import story_of

PAYLOAD = b"x" * 64
ROUNDS = 400
AT_ONCE = 256
CALLS = 5000
STACKS: dict[str, dict[str, Any]] = {
    "ring": {},
    "vsync total": {"stack": "vsync", "order": "total", "minimum": 2},
}

ANSWERS = """
import asyncio, json, sys
import semcast

async def main():
    settings = json.loads(sys.argv[3])
    async with semcast.join(sys.argv[1], name=sys.argv[2], **settings) as group:
        @group.on_call
        def answer(request):
            return request.payload
        async for _ in group:
            pass

asyncio.run(main())
"""


def run() -> list[Row]:
    rows: list[Row] = []
    for name, settings in STACKS.items():
        rows += asyncio.run(_live(name, settings))
    return rows + _simulated()


async def _live(stack: str, settings: dict[str, Any]) -> list[Row]:
    name = f"bench-calls-{uuid4().hex[:8]}"
    command = [sys.executable, "-c", ANSWERS, name]
    others = [subprocess.Popen([*command, each, json.dumps(settings)]) for each in ("b", "c")]  # noqa: S603
    try:
        async with semcast.join(name, name="a", **settings) as group:
            group.on_call(lambda request: request.payload)
            await group.wait_for(3, 30)
            return await _rows(stack, group)
    finally:
        for other in others:
            other.kill()
            other.wait()


async def _rows(stack: str, group: semcast.Group) -> list[Row]:
    async def plain() -> None:
        await group.send(PAYLOAD, confirm="delivered")

    floor = await _median(plain)
    rows = []
    for replies in ("first", "majority", "all"):

        async def call(replies: Any = replies) -> None:
            answer = await group.call(PAYLOAD, replies=replies)
            assert answer.complete

        value = await _median(call)
        rows.append(against(f"{stack}, 3 processes: call, {replies} / send", value, "us, median", floor, ""))
    sends = await _sends(group)
    rows.append(against(f"{stack}: calls, all reply / sends", await _calls(group), "calls/s", sends, ""))
    return rows


async def _median(act: Callable[[], Awaitable[None]]) -> float:
    taken = []
    for _ in range(ROUNDS):
        began = time.perf_counter()
        await act()
        taken.append(time.perf_counter() - began)
    return statistics.median(taken) * 1e6


async def _sends(group: semcast.Group) -> float:
    began = time.perf_counter()
    for _ in range(CALLS * 4):
        await group.send(PAYLOAD)
    await group.send(PAYLOAD, confirm="delivered")
    return CALLS * 4 / (time.perf_counter() - began)


async def _calls(group: semcast.Group) -> float:
    """With so many under way all the time."""
    left = CALLS

    async def caller() -> None:
        nonlocal left
        while left > 0:
            left -= 1
            answer = await group.call(PAYLOAD, timeout=60)
            assert answer.complete

    began = time.perf_counter()
    await asyncio.gather(*(caller() for _ in range(AT_ONCE)))
    return CALLS / (time.perf_counter() - began)


def _simulated() -> list[Row]:
    one = _simulated_call(1)
    rows = [
        against(f"simulated ring: call to {count} / to 1", _simulated_call(count), "us, median", one, "")
        for count in (2, 3, 4, 5, 6, 7)
    ]
    seven = 7 * _simulated_call(7, to=1)
    rows.append(against("simulated ring: call to 7 / 7 calls to 1", _simulated_call(7), "us", seven, "< 1"))
    return rows


def _simulated_call(others: int, to: int | None = None) -> float:
    """Microseconds of a call to so many others, in the middle, on a switched network of 100 Mbit/s."""
    calls = tuple(
        PlaceCall(SECOND + number * 10 * MILLISECOND, 0, replies="all" if to is None else "first", to=to)
        for number in range(50)
    )
    scenario = Scenario(
        seed=1,
        stack="calls",
        size=others + 1,
        settings=CallsSettings(idle=(0,)),
        cpu=10 * MICROSECOND,
        faults=calls,
        duration=2 * SECOND,
    )
    return statistics.median(_times(simulate(scenario).history)) / MICROSECOND


def _times(history: History) -> list[int]:
    calls = [call for member in story_of(history).members.values() for call in member.calls.values()]
    assert all(call.returned is not None and call.returned.level == "complete" for call in calls)
    return [call.returned.at - call.made.at for call in calls if call.returned is not None]
