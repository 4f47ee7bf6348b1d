"""Causal domains: what many groups cost beside one, in memory, on a simulated network, and live.

Rates in memory are of processor time; those of the simulator are virtual time, the same on every machine;
live ones are of the wall clock, so what else runs beside shows in both numbers of a ratio.
"""

import asyncio
import time
from collections.abc import Callable, Sequence
from multiprocessing import get_context
from random import Random
from secrets import token_hex

import msgspec

import semcast
from benchmarks.ring import AT_ONCE, PAYLOAD
from benchmarks.rows import Row, against
from benchmarks.vsync import KINDS
from semcast.core import MemberId, Outbox
from semcast.core.outbox import Frame
from semcast.core.stack import Stack
from semcast.protocols.isis import Isis, IsisSettings
from semcast.protocols.vsync import VirtualSynchrony
from semcast.sim.experiments.domains import StructureCell, w1
from semcast.sim.experiments.switching import SwitchCell, w2

MESSAGES = 30_000
ROUNDS = 3
LIVE_SECONDS = 3.0
GROUPS = 10
SETTLED = 1000
"""So many messages of the domain later stamps are settled: a second, where it has 1,000 a second."""


def run() -> list[Row]:
    unit = "messages/s"
    causal = max(_rate(_vsync, Ferry) for _ in range(ROUNDS))
    one_group = max(_rate(_domain, DomainFerry) for _ in range(ROUNDS))
    alone = _switching("conservative", changes=0.0)
    round_trip = 500.0  # messages a second, one for each two trips of a millisecond
    rows = [
        against("in memory, one group of 3 / vsync causal", one_group, unit, causal, ">= 0.9"),
        against(
            "1 ms, conservative, each changes the group / one a round",
            _switching("conservative"),
            unit,
            round_trip,
            ">= 0.7",
        ),
        against(
            "1 ms, conservative, in runs of 64 / 20,000",
            _switching("conservative", run=64),
            unit,
            20_000,
            ">= 1",
        ),
    ]
    for engine in ("full", "blocks", "epochs"):
        for resilience in ("safe", "0"):
            value = _switching(engine, resilience=resilience)
            target = ">= 0.7" if engine == "blocks" else ""
            rows.append(
                against(f"1 ms, {engine}, resilience {resilience} / single group", value, unit, alone, target)
            )
    for structure in ("tree", "cycle", "grid"):
        for policy in ("full", "blocks", "epochs", "conservative"):
            cell = StructureCell(
                structure=structure, policy=policy, groups=64, locality=0.95, settled=SETTLED
            )
            name = f"fields of 64 groups, {structure}, {policy}, settled after {SETTLED} / 1.3"
            rows.append(against(name, float(w1(cell)["others"]), "fields/message", 1.3, "<= 1"))
    one, many = _live(1), _live(GROUPS)
    rows.append(against(f"live, 3 processes in {GROUPS} groups / in one", many, unit, one, ">= 0.5"))
    return rows


# In memory


def _vsync(member: MemberId, number: int) -> Stack:
    return VirtualSynchrony(member, KINDS["causal"], Random(number), Outbox())


def _domain(member: MemberId, number: int) -> Stack:
    settings = IsisSettings(credit=1 << 16, send_messages=1 << 16, send_bytes=1 << 30, vsync=KINDS["causal"])
    return Isis(member, settings, Random(number), Outbox())


def _rate(make: Callable[[MemberId, int], Stack], kind: type["Ferry"]) -> float:
    """Messages a second of processor time, given to all three programs; all of them send."""
    members = [MemberId(f"p{number}") for number in range(3)]
    ferry = kind({member: make(member, number) for number, member in enumerate(members)})
    ferry.form()
    started = time.process_time()
    ferry.spread(MESSAGES)
    return MESSAGES / (time.process_time() - started)


class Ferry:
    """Carries frames between stacks at once; time passes where nobody has anything to say."""

    def __init__(self, stacks: dict[MemberId, Stack]) -> None:
        self._stacks = stacks
        self._timers: dict[tuple[MemberId, object], int] = {}
        self._now = 0
        self._taken = dict.fromkeys(self._stacks, 0)

    def form(self) -> None:
        """All are in one group."""
        for stack in self._stacks.values():
            self._begin(stack)
        while not all(map(self._there, self._stacks.values())):
            self._carry()
            self._pass_time()

    def spread(self, messages: int) -> None:
        """All send until so many came to everybody."""
        payloads, sent = [PAYLOAD] * AT_ONCE, 0
        while min(self._taken.values()) < messages:
            for stack in self._stacks.values():
                if sent >= messages:
                    break
                sent += self._send(stack, payloads)
            if not self._carry():
                self._pass_time()

    def _carry(self) -> bool:
        moved = False
        mail: dict[tuple[MemberId, MemberId], list[Frame]] = {}
        for me, stack in self._stacks.items():
            self._taken[me] += sum(len(getattr(each, "payloads", ())) for each in self._take(stack))
            out = stack.out
            for timer, at in out.timers:
                self._timers.pop((me, timer), None)
                if at is not None:
                    self._timers[me, timer] = at
            for dest, frame in out.sends:
                others: Sequence[MemberId] = [each for each in self._stacks if each != me]
                if isinstance(dest, MemberId | tuple):
                    others = (dest,) if isinstance(dest, MemberId) else dest
                for other in others:
                    mail.setdefault((me, other), []).append(frame)
            out.timers, out.sends, out.events = [], [], []
        for (source, dest), frames in mail.items():
            self._stacks[dest].on_frames(self._now, source, frames)
            moved = True
        return moved

    def _pass_time(self) -> None:
        if self._timers:
            (me, timer), at = min(self._timers.items(), key=lambda item: item[1])
            del self._timers[me, timer]
            self._now = max(self._now, at)
            self._stacks[me].on_timer(self._now, timer)  # type: ignore[arg-type]

    # What a program does with its stack

    def _begin(self, stack: Stack) -> None:
        stack.start(self._now)

    def _there(self, stack: Stack) -> bool:
        return len(stack.view().members) == 3

    def _send(self, stack: Stack, payloads: list[bytes]) -> int:
        return stack.multicast(self._now, payloads)

    def _take(self, stack: Stack) -> Sequence[object]:
        return stack.deliver(self._now, 1 << 16)


class DomainFerry(Ferry):
    """The same between processes of a domain that are in one group."""

    def _begin(self, stack: Stack) -> None:
        super()._begin(stack)
        domain = _domain_of(stack)
        domain.join(self._now, "group", 3)
        domain.settle(self._now)

    def _there(self, stack: Stack) -> bool:
        entered = _domain_of(stack).seats["group"].entered
        return entered is not None and len(entered.members) == 3

    def _send(self, stack: Stack, payloads: list[bytes]) -> int:
        domain = _domain_of(stack)
        if domain.program.credit < AT_ONCE:
            return 0
        domain.cast("group", payloads)
        domain.settle(self._now)
        return AT_ONCE

    def _take(self, stack: Stack) -> Sequence[object]:
        domain = _domain_of(stack)
        events = domain.program.take()
        domain.settle(self._now)
        return events


def _domain_of(stack: Stack) -> Isis:
    assert isinstance(stack, Isis)
    return stack


# On a simulated network


def _switching(engine: str, *, changes: float = 1.0, run: int = 1, resilience: str = "safe") -> float:
    cell = SwitchCell(changes=changes, run=run, resilience=resilience, ack_ms=0.25, measured_s=0.1)
    return float(w2(msgspec.structs.replace(cell, engine=engine))["rate_s"])


# Live


def _live(groups: int) -> float:
    """Messages a second that each of three processes is given, all sending to one group after the other."""
    context, name = get_context("spawn"), f"bench-{token_hex(4)}"
    with context.Pool(3) as pool:
        return min(pool.starmap(_process, [(name, f"p{number}", groups) for number in range(3)]))


def _process(domain: str, name: str, groups: int) -> float:
    return asyncio.run(_member(domain, name, groups))


async def _member(domain: str, name: str, groups: int) -> float:
    async with semcast.domain(domain, engine="causal", name=name, minimum=3) as mine:
        joined = [await mine.join(f"g{number}") for number in range(groups)]
        for group in joined:
            await group.wait_for(3, 30)
        given = 0

        async def read() -> None:
            nonlocal given
            async for _, event in mine:
                given += isinstance(event, semcast.Message)

        async def send() -> None:
            while True:
                for group in joined:
                    for _ in range(8):
                        await group.send_many([PAYLOAD] * 64)

        tasks = [asyncio.create_task(read()), asyncio.create_task(send())]
        await asyncio.sleep(1.0)
        before, began = given, time.perf_counter()
        await asyncio.sleep(LIVE_SECONDS)
        rate = (given - before) / (time.perf_counter() - began)
        await asyncio.sleep(1.0)
        for task in tasks:
            task.cancel()
        return rate
