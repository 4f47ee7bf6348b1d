"""One member in a process of its own: `python -m tests.live.lab.member '{"group": ..., "settings": {...}}'`.

It obeys its standard input and tells what happens on its standard output, a JSON object a line either way.
Commands carry a number, `id`, and are answered by a `done` with the same number when they are. Every message
but a mark begins with a digest of the rest, so that the receiver can tell whether it is what was sent.
"""

import asyncio
import hashlib
import itertools
import json
import random
import resource
import sys
import threading
import time
from collections.abc import Callable, Coroutine
from typing import Any

import semcast

Line = dict[str, Any]

MARK = b"mark:"
_DIGEST = 8
_PAUSE = 0.005
_CHUNK = 64


def say(event: str, **about: Any) -> None:
    print(json.dumps({"event": event, **about}), flush=True)


def sealed(body: bytes) -> bytes:
    """A message of which damage shows."""
    return hashlib.blake2b(body, digest_size=_DIGEST).digest() + body


def sound(payload: bytes) -> bool:
    return hashlib.blake2b(payload[_DIGEST:], digest_size=_DIGEST).digest() == payload[:_DIGEST]


class Tally:
    """The state of this application: how many messages came, and a sum over them in whatever order."""

    def __init__(self) -> None:
        self.count = 0
        self.sum = 0

    def add(self, message: semcast.Message) -> None:
        digest = hashlib.blake2b(repr(message.id).encode() + message.payload, digest_size=_DIGEST).digest()
        self.count += 1
        self.sum = (self.sum + int.from_bytes(digest, "big")) % (1 << 64)

    def export(self) -> bytes:
        return json.dumps([self.count, self.sum]).encode()

    def restore(self, state: bytes) -> None:
        self.count, self.sum = json.loads(state)
        say("restored", state=[self.count, self.sum])


class Member:
    """A group, what was delivered, and the commands."""

    def __init__(self, order: Line) -> None:
        self._order = order
        self._group: semcast.Group
        self._number = itertools.count(1)
        self._sent = 0
        self._delivered = 0
        self._corrupt = 0
        self._digest = hashlib.blake2b(digest_size=8)
        self._tally = Tally()
        self._nap = float(order.get("nap", 0.0))
        self._echo_to = ""
        self._traffic: asyncio.Task[None] | None = None
        self._busy: set[asyncio.Task[None]] = set()
        self._commands: dict[str, Callable[[Line], Coroutine[Any, Any, Line]]] = {
            "send": self._on_send,
            "traffic": self._on_traffic,
            "quiet": self._on_quiet,
            "mark": self._on_mark,
            "nap": self._on_nap,
            "echo": self._on_echo,
            "stats": self._on_stats,
        }

    async def run(self) -> None:
        """Until told to leave, or until the group ends it."""
        offset = float(self._order.get("clock_offset", 0.0))
        if offset:
            _turn_the_clock(round(offset * 1e9))
        state = self._tally if self._order.get("state") else None
        async with semcast.join(self._order["group"], state=state, **self._order["settings"]) as self._group:
            say("joined", member=[self._group.member.name, self._group.member.incarnation])
            reading = asyncio.create_task(self._read())
            obeying = asyncio.create_task(self._obey())
            await asyncio.wait([reading, obeying], return_when=asyncio.FIRST_COMPLETED)
            tasks = [reading, obeying, *self._busy, *([self._traffic] if self._traffic else [])]
            if not reading.done():
                tasks.remove(reading)  # it reads on while the group closes
            for task in tasks:
                task.cancel()
            for result in await asyncio.gather(*tasks, return_exceptions=True):
                if isinstance(result, Exception):
                    say("error", kind=type(result).__name__, text=str(result))
        reading.cancel()
        await asyncio.gather(reading, return_exceptions=True)
        say("left", delivered=self._delivered, corrupt=self._corrupt)

    async def _obey(self) -> None:
        reader = asyncio.StreamReader()
        await asyncio.get_running_loop().connect_read_pipe(
            lambda: asyncio.StreamReaderProtocol(reader), sys.stdin
        )
        while line := await reader.readline():
            command: Line = json.loads(line)
            if command["do"] == "leave":
                return
            task = asyncio.create_task(self._answer(command))
            self._busy.add(task)
            task.add_done_callback(self._busy.discard)

    async def _answer(self, command: Line) -> None:
        try:
            answer = await self._commands[command["do"]](command)
        except (semcast.GroupError, ValueError) as error:
            answer = {"error": type(error).__name__, "text": str(error)}
        say("done", id=command["id"], **answer)

    # Receiving

    async def _read(self) -> None:
        async for event in self._group:
            if isinstance(event, semcast.Message):
                await self._on_message(event)
            elif isinstance(event, semcast.Minority):
                say("minority", reachable=event.reachable, needed=event.needed)
            elif isinstance(event, semcast.Rejoining):
                lost = [each.seq for each in event.unsettled]
                incarnations = [event.former.incarnation, event.member.incarnation]
                say("rejoining", incarnations=incarnations, cause=event.cause, unsettled=lost)
            elif isinstance(event, semcast.Skipped):
                say("skipped", count=event.count)
            elif isinstance(event, semcast.Merged):
                say("merged", count=event.count)
            elif isinstance(event, semcast.StateLost):
                say("state lost", number=event.view, cause=event.cause)
            elif isinstance(event, semcast.Lost | semcast.Away | semcast.Back | semcast.PrivateMessage):
                say(type(event).__name__.lower())
            else:
                names = [member.name for member in event.view.members]
                kind = "view" if isinstance(event, semcast.ViewChange) else "transitional"
                about = {
                    "incarnations": [member.incarnation for member in event.view.members],
                    "state": [self._tally.count, self._tally.sum],
                }
                say(kind, number=event.view.id, members=names, delivered=self._delivered, **about)

    async def _on_message(self, message: semcast.Message) -> None:
        self._delivered += 1
        self._tally.add(message)
        payload = message.payload
        self._digest.update(repr(message.id).encode() + payload[:_DIGEST])
        if payload.startswith(MARK):
            text = payload[len(MARK) :].decode()
            say("mark", mark=text, delivered=self._delivered, digest=self._digest.hexdigest())
        elif not sound(payload):
            self._corrupt += 1
            say("corrupt", id=str(message.id))
        elif self._echo_to == message.sender.name:
            await self._send_one(16, None, "agreed")
        if self._nap:
            time.sleep(self._nap)

    # Commands

    async def _send_one(self, size: int, item: str | None, order: semcast.group.Order) -> None:
        body = b"%d:" % next(self._number)
        body += random.randbytes(max(0, size - len(body) - _DIGEST))
        await self._group.send(sealed(body), item=item, order=order)
        self._sent += 1

    async def _on_send(self, command: Line) -> Line:
        items, size = command.get("items", 0), command.get("size", 16)
        for number in range(command.get("count", 1)):
            item = f"item {number % items}" if items else None
            await self._send_one(size, item, command.get("order", "agreed"))
        return {"sent": self._sent}

    async def _on_traffic(self, command: Line) -> Line:
        """Send until told to be quiet; every few messages a safe one."""
        self._traffic = asyncio.create_task(self._keep_sending(command))
        return {}

    async def _keep_sending(self, command: Line) -> None:
        items, size, rate = command.get("items", 0), command.get("size", 64), command.get("rate", 1000)
        safe = command.get("safe", 0 if self._group.settings.stack == "vsync" else 10)
        for number in itertools.count():
            item = f"item {number % items}" if items and number % 3 else None
            order: semcast.group.Order = "safe" if safe and number % safe == 0 else "agreed"
            await self._send_one(size, item, order)
            if number % max(1, round(rate * _PAUSE)) == 0:
                await asyncio.sleep(_PAUSE)

    async def _on_quiet(self, command: Line) -> Line:
        if self._traffic is not None:
            self._traffic.cancel()
            await asyncio.gather(self._traffic, return_exceptions=True)
            self._traffic = None
        return {"sent": self._sent}

    async def _on_mark(self, command: Line) -> Line:
        await self._group.send(MARK + command["text"].encode())
        return {}

    async def _on_nap(self, command: Line) -> Line:
        self._nap = command["seconds"]
        return {}

    async def _on_echo(self, command: Line) -> Line:
        """Answer every message of one member from the handler."""
        self._echo_to = command["to"]
        return {}

    async def _on_stats(self, command: Line) -> Line:
        stats = self._group.stats()
        usage = resource.getrusage(resource.RUSAGE_SELF)
        return {
            "phase": stats.phase,
            "sent": self._sent,
            "delivered": self._delivered,
            "corrupt": self._corrupt,
            "purged": stats.stack.purged_delivery,
            "retransmitted": stats.stack.retransmitted,
            "malformed": stats.malformed,
            "malformed_frames": stats.stack.malformed,
            "stale": stats.stack.stale,
            "duplicates": stats.stack.duplicates,
            "waiting": stats.waiting_to_send,
            "buffered": stats.buffered,
            "datagrams_in": stats.network.datagrams_in,
            "kernel_drops": stats.network.kernel_drops,
            "kept_out": stats.network.kept_out,
            "send_errors": stats.network.send_errors,
            "address": list(self._group.address),
            "rss_kb": _resident_kb(),
            "peak_kb": usage.ru_maxrss,
            "threads": sorted(thread.name for thread in threading.enumerate()),
        }


def _resident_kb() -> int:
    with open("/proc/self/status", encoding="ascii") as status:
        return next(int(line.split()[1]) for line in status if line.startswith("VmRSS"))


def _turn_the_clock(offset: int) -> None:
    """The wall clock of this process is wrong."""
    true = time.time_ns
    time.time_ns = lambda: true() + offset


def main() -> None:
    """Run the member that the argument describes."""
    asyncio.run(Member(json.loads(sys.argv[1])).run())


if __name__ == "__main__":
    main()
