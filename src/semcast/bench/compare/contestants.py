"""Those who are compared: each joins, hands what comes to a counter, and sends what a task wants.

The hub is what a developer writes in an afternoon: a process that relays what a client says to all of them.
"""

import asyncio
import socket
import struct
import threading
import time
from collections.abc import Callable, Coroutine, Sequence
from typing import Any, Protocol

import semcast
from semcast.bench.compare.work import AT_ONCE, HOST, STAMP, Counter, Task, stamped
from semcast.core.messages import Batch

_LENGTH = struct.Struct("<I")
_READ = 1 << 18
_START = 20.0


class Contestant(Protocol):
    """One member of a group of whatever kind."""

    def send(self, payload: bytes) -> None:
        """One message, at once."""

    def work(self, task: Task) -> None:
        """Send what the task wants."""


class Threaded:
    """One whose calls block: it sends in one thread, and reads in another."""

    def __init__(self, me: int) -> None:
        self._me = me

    def send(self, payload: bytes) -> None:
        """One message, at once."""
        raise NotImplementedError

    def send_list(self, payloads: Sequence[bytes]) -> None:
        """Several, in the way that is fastest here."""
        for payload in payloads:
            self.send(payload)

    def work(self, task: Task) -> None:
        """Send what the task wants."""
        padding, number, due = bytes(task.size - STAMP.size), 0, task.begin
        while (now := time.monotonic_ns()) < task.end:
            if not task.rate:
                numbers = range(number, number + AT_ONCE)
                self.send_list([stamped(task.number, self._me, each, padding) for each in numbers])
                number += AT_ONCE
            elif now < due:
                time.sleep((due - now) / 1e9)
            else:
                self.send(stamped(task.number, self._me, number, padding))
                number += 1
                due += 1_000_000_000 // task.rate


class HubClient(Threaded):
    """Of the hub: frames with their length in front, 64 in one write."""

    def __init__(self, me: int, counter: Counter, ports: Sequence[int]) -> None:
        super().__init__(me)
        self._socket = _connected(ports[-1])
        self._socket.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
        threading.Thread(target=self._read, args=(counter,), daemon=True).start()

    def send(self, payload: bytes) -> None:
        """One message, at once."""
        self._socket.sendall(_LENGTH.pack(len(payload)) + payload)

    def send_list(self, payloads: Sequence[bytes]) -> None:
        """In one write."""
        self._socket.sendall(b"".join([_LENGTH.pack(len(each)) + each for each in payloads]))

    def _read(self, counter: Counter) -> None:
        rest, length_at, head = b"", _LENGTH.unpack_from, _LENGTH.size
        while data := self._socket.recv(_READ):
            rest = rest + data if rest else data
            start, end = 0, len(rest)
            while end - start >= head:
                stop = start + head + length_at(rest, start)[0]
                if stop > end:
                    break
                counter.take(rest[start + head : stop])
                start = stop
            rest = rest[start:]


def serve_hub(port: int) -> None:
    """The hub itself, until it is killed."""
    clients: set[asyncio.StreamWriter] = set()

    async def relay(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        clients.add(writer)
        rest = b""
        while data := await reader.read(_READ):
            rest += data
            end = _whole(rest)
            for client in clients:
                client.write(rest[:end])
            rest = rest[end:]
        clients.discard(writer)

    async def serve() -> None:
        server = await asyncio.start_server(relay, HOST, port)
        await server.serve_forever()

    asyncio.run(serve())


def _whole(data: bytes) -> int:
    """Where the last whole frame ends."""
    start, head = 0, _LENGTH.size
    while len(data) - start >= head:
        stop = start + head + _LENGTH.unpack_from(data, start)[0]
        if stop > len(data):
            break
        start = stop
    return start


class Zmq(Threaded):
    """pyzmq: one XPUB socket that does not drop for each member, to which all others subscribe."""

    def __init__(self, me: int, counter: Counter, ports: Sequence[int]) -> None:
        import zmq  # noqa: PLC0415 (only where it is installed)

        super().__init__(me)
        context = zmq.Context()
        self._out = context.socket(zmq.XPUB)
        self._out.setsockopt(zmq.XPUB_NODROP, 1)
        self._out.bind(f"tcp://{HOST}:{ports[me]}")
        inbox = context.socket(zmq.SUB)
        inbox.setsockopt(zmq.SUBSCRIBE, b"")
        for port in ports[:-1]:
            inbox.connect(f"tcp://{HOST}:{port}")
        threading.Thread(target=self._read, args=(inbox.recv, counter), daemon=True).start()

    def send(self, payload: bytes) -> None:
        """One message, at once."""
        self._out.send(payload)

    def _read(self, receive: Callable[[], bytes], counter: Counter) -> None:
        while True:
            counter.take(receive())


class Ring:
    """Semcast: lists of messages in, lists out."""

    order: semcast.Order = "agreed"

    def __init__(self, me: int, counter: Counter, ports: Sequence[int]) -> None:
        self._me = me
        self._counter = counter
        self._loop = asyncio.new_event_loop()
        threading.Thread(target=self._loop.run_forever, daemon=True).start()
        self._group: semcast.Group = self._call(self._join(f"compare-{ports[-1]}"))

    async def _join(self, name: str) -> semcast.Group:
        group = await semcast.join(name, name=f"m{self._me}", stack="ring")
        self._reading = asyncio.create_task(self.read(group))
        return group

    def _call(self, work: Coroutine[Any, Any, Any]) -> Any:
        return asyncio.run_coroutine_threadsafe(work, self._loop).result(_START)

    async def read(self, group: semcast.Group) -> None:
        """All that comes."""
        async for deliveries in group.batches():
            take = self._counter.take
            for each in deliveries:
                if type(each) is Batch:
                    for payload in each.payloads:
                        take(payload)

    def send(self, payload: bytes) -> None:
        """One message, at once."""
        self._call(self._group.send(payload, order=self.order))

    def work(self, task: Task) -> None:
        """Send what the task wants, on the loop that reads, too."""
        working = asyncio.run_coroutine_threadsafe(self._work(task), self._loop)
        working.result()

    async def _work(self, task: Task) -> None:
        padding, number, due = bytes(task.size - STAMP.size), 0, task.begin
        while (now := time.monotonic_ns()) < task.end:
            if not task.rate:
                await self.send_list(task.number, number, padding)
                number += AT_ONCE
                await asyncio.sleep(0)
            elif now < due:
                await asyncio.sleep((due - now) / 1e9)
            else:
                message = stamped(task.number, self._me, number, padding)
                await self._group.send(message, order=self.order)
                number += 1
                due += 1_000_000_000 // task.rate

    async def send_list(self, task: int, number: int, padding: bytes) -> None:
        """The next messages, from this number on."""
        numbers = range(number, number + AT_ONCE)
        messages = [stamped(task, self._me, each, padding) for each in numbers]
        await self._group.send_many(messages, order=self.order)


class SafeRing(Ring):
    """The same, each message delivered once everybody has it."""

    order = "safe"


class SingleRing(Ring):
    """One message a call, one event a step: what the README shows."""

    async def read(self, group: semcast.Group) -> None:
        """All that comes."""
        async for event in group:
            if type(event) is semcast.Message:
                self._counter.take(event.payload)

    async def send_list(self, task: int, number: int, padding: bytes) -> None:
        """The next messages, from this number on."""
        for each in range(number, number + AT_ONCE):
            await self._group.send(stamped(task, self._me, each, padding))


def _connected(port: int) -> socket.socket:
    """To a server that may be about to start."""
    deadline = time.monotonic() + _START
    while True:
        try:
            return socket.create_connection((HOST, port))
        except OSError:
            if time.monotonic() > deadline:
                raise
            time.sleep(0.05)
