"""Programs of the daemon's benchmark, each a process: `python -m benchmarks.daemonclients PROGRAM ARGUMENTS`.

Each says one line of JSON when it is ready, goes on when it is given a line, and says what it found.
"""

import asyncio
import json
import selectors
import socket
import sys
import time
from collections.abc import AsyncIterator, Callable
from typing import Any

import semcast
from semcast.core.messages import Batch, Message
from semcast.protocols.clients.caller import Caller
from semcast.protocols.clients.codec import Stream, framed

PAYLOAD = bytes(64)


def say(**what: Any) -> None:
    """A line for the benchmark."""
    print(json.dumps(what), flush=True)


async def told() -> None:
    """Wait for a line of the benchmark."""
    await asyncio.to_thread(sys.stdin.readline)


async def member(where: str, through: str, members: str, count: str, run: str) -> None:
    """Send and receive so many messages each: a member of a ring, or a client of a daemon."""
    if through == "direct":
        group: Any = semcast.join(where, queue_messages=16_384)
    else:
        group = await (await semcast.connect(where)).join("bench")
    async with group:
        await group.wait_for(int(members), 30)
        say(ready=True)
        await told()
        began, used = time.perf_counter(), time.process_time()
        total = int(count) * int(members)
        await asyncio.gather(_send(group, int(count), int(run)), _receive(group.batches(), total))
        say(seconds=time.perf_counter() - began, cpu=time.process_time() - used)
        await told()


async def latency(where: str, through: str, members: str, count: str) -> None:
    """A thousand messages a second: how long until each is delivered to its own sender."""
    if through == "direct":
        group: Any = semcast.join(where)
    else:
        group = await (await semcast.connect(where)).join("bench")
    async with group:
        await group.wait_for(int(members), 30)
        me = group.member
        say(ready=True)
        await told()
        sending = asyncio.create_task(_tick(group, int(count)))
        found: list[float] = []
        async for event in group:
            if isinstance(event, Message) and event.id.sender == me:
                found.append(time.perf_counter() - float(event.payload))
                if len(found) == int(count):
                    break
        await sending
        found.sort()
        say(median=found[len(found) // 2] * 1e6, late=found[len(found) * 99 // 100] * 1e6)
        await told()


async def _tick(group: Any, count: int) -> None:
    for _ in range(count):
        await group.send(repr(time.perf_counter()).encode())
        await asyncio.sleep(0.001)


async def _send(group: Any, count: int, run: int) -> None:
    for _ in range(count // run):
        await group.send_many([PAYLOAD] * run)


async def _receive(lists: AsyncIterator[Any], total: int) -> None:
    async for deliveries in lists:
        for each in deliveries:
            if isinstance(each, Batch):
                total -= len(each.payloads)
        if total <= 0:
            return


class Plain:
    """A client at a socket, without a loop of its own."""

    def __init__(self, where: str, window: int = 65_536) -> None:
        self.caller = Caller(window=window)
        self.stream = Stream(1 << 24)
        self.socket = socket.socket(socket.AF_UNIX, socket.SOCK_STREAM)
        self.socket.connect(where)
        self.caller.connect()
        self.flush()
        while not self.caller.connected:
            self.read()

    def read(self) -> None:
        """What came."""
        self.caller.receive(self.stream.feed(self.socket.recv(1 << 18)))

    def flush(self) -> None:
        """Send what there is to send."""
        bodies, self.caller.out = self.caller.out, []
        if bodies:
            self.socket.sendall(b"".join(map(framed, bodies)))

    def until_placed(self) -> None:
        """Wait until everything has its place."""
        while self.caller.placed < self.caller.seq:
            self.read()
            self.caller.take()
            self.caller.say_taken()
            self.flush()


def audience(where: str, clients: str) -> None:
    """Clients that read everything and keep nothing."""
    readers = [Plain(where) for _ in range(int(clients))]
    for reader in readers:
        reader.caller.join("fan")
        reader.flush()
        reader.until_placed()
    say(ready=True)
    watch = selectors.DefaultSelector()
    for reader in readers:
        watch.register(reader.socket, selectors.EVENT_READ, reader)
    while True:
        for key, _ in watch.select():
            reader = key.data
            reader.read()
            reader.caller.take()
            reader.caller.say_taken()
            reader.flush()


def publisher(where: str, count: str, run: str) -> None:
    """Send so many messages to the audience, in runs, and wait until they have their place."""
    client = Plain(where)
    say(ready=True)
    sys.stdin.readline()
    began = time.perf_counter()
    for _ in range(int(count) // int(run)):
        while not client.caller.room_for(int(run)):
            client.read()
            client.caller.take()
        client.caller.cast(("fan",), [PAYLOAD] * int(run))
        client.flush()
    client.until_placed()
    say(seconds=time.perf_counter() - began)


def settler(where: str, count: str) -> None:
    """Be in so many groups, and stay."""
    client = Plain(where)
    for number in range(int(count)):
        client.caller.join(f"other {number}")
        if number % 500 == 0:
            client.flush()
            client.until_placed()
    client.flush()
    client.until_placed()
    say(ready=True)
    sys.stdin.readline()


def joiner(where: str, count: str, clients: str) -> None:
    """Join so many groups, each with one of so many clients, as fast as credit allows."""
    joiners = [Plain(where) for _ in range(int(clients))]
    say(ready=True)
    sys.stdin.readline()
    began = time.perf_counter()
    for number in range(int(count)):
        client = joiners[number // 100 % len(joiners)]
        while not client.caller.room_for(1):
            client.read()
            client.caller.take()
            client.caller.say_taken()
            client.flush()
        client.caller.join(f"group {number}")
        if number % 100 == 99:
            client.flush()
    for client in joiners:
        client.flush()
        client.until_placed()
    say(seconds=time.perf_counter() - began)


def main() -> None:
    """Run one program."""
    name, *arguments = sys.argv[1:]
    if name in ("member", "latency"):
        asyncio.run(member(*arguments) if name == "member" else latency(*arguments))
    else:
        programs: dict[str, Callable[..., None]] = {
            "audience": audience,
            "publisher": publisher,
            "joiner": joiner,
            "settler": settler,
        }
        programs[name](*arguments)


if __name__ == "__main__":
    main()
