"""A client of a Semcast daemon in plain Python: nothing but the standard library.

The reference for other languages (docs/client-protocol.md). It blocks, reads frames one by one, and gives
back credit. `python semcast_client.py SOCKET GROUP TEXT...` joins a group, sends, and prints what comes.
"""

import socket
import struct
import sys
from collections.abc import Callable, Iterator
from contextlib import suppress
from typing import Any

HELLO, WELCOME, JOIN, LEAVE, ERROR, CAST, DELIVER, PRIVATE = 1, 2, 3, 4, 6, 7, 8, 9
VIEW, TRANSITIONAL, TAKEN, PLACED, CREDITS, READY, BLOCK, PURGED, BYE = 11, 12, 13, 14, 15, 16, 17, 18, 20
LEFT, OUT_OF, UNDELIVERABLE, DELIVER_PRIVATE = 23, 24, 25, 26
NUMBERED = {DELIVER, VIEW, TRANSITIONAL, PLACED, BLOCK, PURGED, LEFT, OUT_OF, UNDELIVERABLE, DELIVER_PRIVATE}
OVERHEAD = 256
CALLS = "\0calls"
"""The second group of what belongs to calls, in which nobody is (semcast_calls.py)."""


def pack(value: Any) -> bytes:
    """One value as msgpack; only what the protocol needs."""
    match value:
        case None:
            return b"\xc0"
        case bool():
            return b"\xc3" if value else b"\xc2"
        case int() if 0 <= value < 128:
            return bytes([value])
        case int():
            return struct.pack(">BQ", 0xCF, value)
        case float():
            return struct.pack(">Bd", 0xCB, value)
        case str():
            data = value.encode()
            return struct.pack(">BI", 0xDB, len(data)) + data
        case bytes():
            return struct.pack(">BI", 0xC6, len(value)) + value
        case _:
            return struct.pack(">BI", 0xDD, len(value)) + b"".join(map(pack, value))


def unpack(data: bytes, at: int = 0) -> tuple[Any, int]:
    """One value, and where the next begins."""
    head = data[at]
    at += 1
    if head < 0x80 or head >= 0xE0:
        return (head if head < 0x80 else head - 256), at
    if 0x90 <= head < 0xA0:
        return unpack_array(data, at, head & 0x0F)
    if 0xA0 <= head < 0xC0:
        return data[at : at + (head & 0x1F)].decode(), at + (head & 0x1F)
    if head in (0xC0, 0xC2, 0xC3):
        return {0xC0: None, 0xC2: False, 0xC3: True}[head], at
    form = {
        0xCA: ">f", 0xCB: ">d", 0xCC: ">B", 0xCD: ">H", 0xCE: ">I", 0xCF: ">Q", 0xD0: ">b", 0xD1: ">h",
        0xD2: ">i", 0xD3: ">q", 0xC4: ">B", 0xC5: ">H", 0xC6: ">I", 0xD9: ">B", 0xDA: ">H", 0xDB: ">I",
        0xDC: ">H", 0xDD: ">I",
    }[head]  # fmt: skip
    (number,) = struct.unpack_from(form, data, at)
    at += struct.calcsize(form)
    if head in (0xC4, 0xC5, 0xC6):
        return data[at : at + number], at + number
    if head in (0xD9, 0xDA, 0xDB):
        return data[at : at + number].decode(), at + number
    return unpack_array(data, at, number) if head in (0xDC, 0xDD) else (number, at)


def unpack_array(data: bytes, at: int, count: int) -> tuple[list[Any], int]:
    """So many values."""
    found = []
    for _ in range(count):
        value, at = unpack(data, at)
        found.append(value)
    return found, at


def is_call(frame: list[Any]) -> bool:
    """Whether a frame is a `deliver` that belongs to calls: not for the program."""
    return bool(frame[0] == DELIVER and frame[1][1:] == [CALLS])


class SemcastError(Exception):
    """The daemon refused something, or is gone."""


class Client:
    """One session: `path` of a Unix socket, or an address and a token."""

    def __init__(self, where: str | tuple[str, int], name: str = "", token: str = "") -> None:
        if isinstance(where, str):
            self.socket = socket.socket(socket.AF_UNIX, socket.SOCK_STREAM)
            self.socket.connect(where)
        else:
            self.socket = socket.create_connection(where)
        self.data = bytearray()
        self.watch: Callable[[list[Any]], None] = lambda _frame: None
        self.seq = self.told = self.taken = self.placed = 0
        self.pending: list[list[Any]] = []
        self.say(HELLO, 1, name, token)
        welcome: list[Any] = self.read() or [ERROR, "the daemon says nothing"]
        kind, *rest = welcome
        if kind != WELCOME:
            raise SemcastError(rest[-1])
        (
            _,
            self.member,
            self.daemon,
            self.domain,
            self.daemons,
            self.messages,
            self.bytes,
            self.run_bytes,
            *_,
        ) = rest

    def say(self, *frame: Any) -> int:
        """Send a frame; returns what it costs."""
        body = pack(frame)
        self.socket.sendall(struct.pack(">I", len(body)) + body)
        return len(body) + OVERHEAD

    def answer(self, *frame: Any) -> None:
        """Send a frame about what was heard. A daemon that has left takes none: its last words follow."""
        with suppress(BrokenPipeError, ConnectionResetError):
            self.say(*frame)

    def read(self, timeout: float | None = None) -> list[Any] | None:
        """The next frame; None if it does not come in so many seconds."""
        self.socket.settimeout(timeout)
        while len(self.data) < 4 or len(self.data) < 4 + int.from_bytes(self.data[:4], "big"):
            try:
                more = self.socket.recv(1 << 16)
            except TimeoutError:
                return None
            if not more:
                raise SemcastError("the daemon closed the connection")
            self.data += more
        end = 4 + int.from_bytes(self.data[:4], "big")
        frame: list[Any] = unpack(bytes(self.data[4:end]))[0]
        del self.data[:end]
        return frame

    def request(self, kind: int, count: int, *rest: Any) -> int:
        """Ask for something, once there is credit; returns its number."""
        while self.messages < count or self.bytes <= 0:
            self.keep()
        first, self.seq = self.seq + 1, self.seq + count
        self.messages -= count
        try:
            self.bytes -= self.say(kind, first, *rest)
        except (BrokenPipeError, ConnectionResetError):
            while True:
                self.keep()  # up to why the daemon left, which it raises
        return first

    def join(self, group: str, flavour: str = "evs") -> int:
        """Be in a group: a view comes."""
        return self.request(JOIN, 1, group, flavour)

    def leave(self, group: str) -> int:
        """Be in it no more."""
        return self.request(LEAVE, 1, group)

    def cast(
        self, groups: list[str], payloads: list[bytes], items: list[str] | None = None, level: str = "agreed"
    ) -> int:
        """Send messages to groups."""
        return self.request(CAST, len(payloads), groups, level, payloads, items)

    def send_to(self, member: list[Any], payload: bytes) -> int:
        """Send a message to one session."""
        return self.request(PRIVATE, 1, member, payload)

    def hear(self, timeout: float | None = None) -> list[Any] | None:
        """The next frame; None if none comes. Credit, places and ends of views are dealt with."""
        while True:
            frame = self.read(timeout)
            if frame is None:
                return None
            kind = frame[0]
            if kind == CREDITS:
                self.messages += frame[1]
                self.bytes += frame[2]
                return frame
            if kind in NUMBERED:
                self.told += 1
                if self.told - self.taken >= 64 or kind == PLACED:
                    self.taken = self.told
                    self.answer(TAKEN, self.taken)
            if kind == PLACED:
                self.placed = frame[1]
            elif kind == BLOCK:
                self.answer(READY, frame[1], frame[2])
            elif kind == LEFT:
                raise SemcastError(frame[1])
            if kind != BLOCK:
                self.watch(frame)
                return frame

    def keep(self) -> None:
        """Hear something, for `events`."""
        frame = self.hear()
        if frame is not None:
            self.pending.append(frame)

    def events(self) -> Iterator[list[Any]]:
        """What comes, in the order of the daemons."""
        while True:
            if not self.pending:
                self.keep()
            frame = self.pending.pop(0)
            if frame[0] not in (CREDITS, PLACED) and not is_call(frame):
                yield frame

    def settle(self) -> None:
        """Wait until everything that was asked for has its place."""
        while self.placed < self.seq:
            self.keep()

    def close(self) -> None:
        """Be gone."""
        self.answer(BYE)
        self.socket.close()


def main() -> None:
    """Join a group, send, and print what comes."""
    client = Client(sys.argv[1])
    client.join(sys.argv[2])
    for text in sys.argv[3:]:
        client.cast([sys.argv[2]], [text.encode()])
    for frame in client.events():
        print(frame, flush=True)


if __name__ == "__main__":
    main()
