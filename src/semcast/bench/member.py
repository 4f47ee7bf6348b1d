"""One member of a benchmark: `python -m semcast.bench.member GROUP NUMBER CASE` prints its figures."""

import asyncio
import resource
import struct
import sys
import time
from collections.abc import Sequence
from typing import Any

import msgspec

import semcast
from semcast import Message
from semcast.bench import threads
from semcast.bench.case import Case
from semcast.bench.families import FAMILIES, Joined
from semcast.bench.measuring import Figures
from semcast.core.messages import Batch
from semcast.extensions import load_families

_STAMP = struct.Struct("<d")
_LAST = threads.LAST
AT_ONCE = threads.AT_ONCE


class Bench:
    """Sends its share, and counts what comes until everybody's last message has."""

    def __init__(self, number: int, case: Case, group: Joined) -> None:
        self._number = number
        self._case = case
        self._group = group
        self._sends = number < case.senders
        self._sleep = case.sleeping / 1000 if number == case.members - 1 else 0.0
        self._delivered = 0
        self._ended = 0
        self._complete = False  # everybody was here
        self._first = self._last = 0.0
        self._sent_last = 0.0
        self._latencies: list[float] = []
        self._sender: asyncio.Task[None] | None = None

    async def run(self) -> Figures:
        """Until all senders have ended."""
        before = time.process_time()
        reading = self._read_single() if self._case.reading == "single" else self._read_batches()
        await reading
        if self._sender is not None:
            await self._sender
        used = time.process_time() - before
        usage = resource.getrusage(resource.RUSAGE_SELF)
        ranked = sorted(self._latencies)
        purged = self._group.stats().stack.purged_delivery if isinstance(self._group, semcast.Group) else 0
        await asyncio.sleep(0.5)  # let the slower ones have the last messages before this one leaves
        return Figures(
            member=self._number,
            delivered=self._delivered,
            purged=purged,
            seconds=self._last - self._first,
            cpu=used,
            memory_mb=usage.ru_maxrss / 1024,
            latency_ms=(1e3 * ranked[len(ranked) // 2], 1e3 * ranked[len(ranked) * 99 // 100])
            if ranked
            else None,
            fresh_after=self._last - self._sent_last if self._sent_last else None,
        )

    async def _read_batches(self) -> None:
        async for deliveries in self._group.batches():
            for each in deliveries:
                self._take(each)
            if self._ended == self._case.senders:
                return

    async def _read_single(self) -> None:
        marked = bool(self._case.rate or self._sleep)  # otherwise only the first and the last matter
        async for event in self._group:
            if isinstance(event, Message):
                payload = event.payload
                if marked or not self._delivered or payload.startswith(_LAST, _STAMP.size):
                    self._count([payload])
                    if self._ended == self._case.senders:
                        return
                else:
                    self._delivered += 1
            elif isinstance(event, semcast.ViewChange):
                self._on_view(event)
                if self._ended == self._case.senders:
                    return

    def _take(self, each: semcast.GroupDelivery | semcast.DomainEvent) -> None:
        if isinstance(each, Batch):
            self._count(each.payloads)
        elif isinstance(each, semcast.ViewChange):
            self._on_view(each)

    def _on_view(self, change: semcast.ViewChange) -> None:
        size = len(change.view.members)
        self._complete = self._complete or size == self._case.members
        if size == self._case.members and self._sends and self._sender is None:
            self._sender = asyncio.create_task(self._send())
        elif self._complete and size == 1 < self._case.members:
            self._ended = self._case.senders  # the others have left: what is missing here is lost

    def _count(self, payloads: Sequence[bytes]) -> None:
        now = time.perf_counter()
        if not self._delivered:
            self._first = now
        self._delivered += len(payloads)
        self._last = now
        if self._sleep:
            time.sleep(self._sleep * len(payloads))
        if self._case.rate:
            self._latencies += [now - _STAMP.unpack_from(payload)[0] for payload in payloads]
        if payloads[-1].startswith(_LAST, _STAMP.size):
            self._ended += 1
            self._sent_last = _STAMP.unpack_from(payloads[-1])[0]

    async def _send(self) -> None:
        case = self._case
        count = case.count // case.senders
        if case.rate:
            await self._send_steadily(count)
        elif case.items:
            assert isinstance(self._group, semcast.Group)
            filler = bytes(max(case.size, _STAMP.size))
            names = [f"item {number}" for number in range(case.items)]
            for start in range(0, count, AT_ONCE):
                chosen = [names[place % case.items] for place in range(start, min(start + AT_ONCE, count))]
                await self._group.send_items([(name, filler) for name in chosen])
        else:
            payloads = [bytes(max(case.size, _STAMP.size))] * AT_ONCE
            for start in range(0, count, AT_ONCE):
                await self._group.send_many(payloads[: count - start], order=self._order())
        await self._group.send(_STAMP.pack(time.perf_counter()) + _LAST, order=self._order())

    async def _send_steadily(self, count: int) -> None:
        filler = bytes(max(0, self._case.size - _STAMP.size))
        started = time.perf_counter()
        for number in range(count):
            due = started + number / self._case.rate
            if due > time.perf_counter():
                await asyncio.sleep(due - time.perf_counter())
            await self._group.send(_STAMP.pack(time.perf_counter()) + filler, order=self._order())

    def _order(self) -> semcast.Order:
        return "safe" if self._case.order == "safe" else "agreed"


def settings_of(number: str, case: Case) -> dict[str, Any]:
    """How a member joins."""
    return {
        "stack": case.stack,
        **FAMILIES.of(case.stack).settings(case),
        "name": f"m{number}",
        "queue_messages": 100_000,
        "send_messages": 5_000,
        "datagram": case.datagram,
        "fanout": case.fanout,
        "key_file": case.key_file,
        "record": case.record,
    }


async def run(group: str, number: str, case: Case) -> Figures:
    """Join, and measure."""
    async with FAMILIES.of(case.stack).enter(group, settings_of(number, case)) as joined:
        return await Bench(int(number), case, joined).run()


def main() -> None:
    """Join, run, print."""
    group, number, work = sys.argv[1:]
    case = msgspec.json.decode(work, type=Case)
    load_families()
    if case.reading == "blocking":
        figures = threads.run(group, int(number), case, settings_of(number, case))
    else:
        figures = asyncio.run(run(group, number, case))
    sys.stdout.buffer.write(msgspec.json.encode(figures))


if __name__ == "__main__":
    main()
