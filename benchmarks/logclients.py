"""Clients of JetStream and of Redis streams that keep many messages under way, with sockets alone.

Both protocols are lines of text, so no library stands between the measurement and the server.
"""

import json
import socket
from collections.abc import Callable
from types import TracebackType
from typing import Self

WINDOW = 1_000
"""Messages that are under way before an answer is waited for."""
_STREAM, _SUBJECT, _INBOX, _REPLAY = "LOG", "log", "answers", "replay"


class Client:
    """A connection that writes requests and reads lines and blocks of bytes."""

    def __init__(self, port: int) -> None:
        self.socket = socket.create_connection(("127.0.0.1", port), timeout=60)
        self.socket.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
        self._file = self.socket.makefile("rb", buffering=1 << 20)

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self._file.close()
        self.socket.close()

    def line(self) -> bytes:
        """The next line."""
        found = self._file.readline()
        if not found:
            raise ConnectionError("the server closed the connection")
        return found

    def block(self, size: int) -> bytes:
        """The next bytes."""
        found: bytes = self._file.read(size)
        return found

    def repeat(self, request: bytes, count: int, answer: Callable[[], object]) -> None:
        """Send a request so many times, and read the answer to each; no more than a window is under way."""
        under_way = 0
        for first in range(0, count, WINDOW // 4):
            several = min(WINDOW // 4, count - first)
            self.socket.sendall(request * several)
            under_way += several
            while under_way >= WINDOW:
                answer()
                under_way -= 1
        for _ in range(under_way):
            answer()


class JetStream(Client):
    """A stream in files, as a client of NATS sees it."""

    def __init__(self, port: int) -> None:
        super().__init__(port)
        self.line()  # INFO
        self.socket.sendall(b'CONNECT {"verbose":false}\r\n')
        self.socket.sendall(f"SUB {_INBOX} 1\r\nSUB {_REPLAY} 2\r\n".encode())
        self.ask(
            f"$JS.API.STREAM.CREATE.{_STREAM}",
            {"name": _STREAM, "subjects": [_SUBJECT], "storage": "file", "retention": "limits"},
        )

    def ask(self, subject: str, request: object) -> None:
        """Ask the server for something, and wait for its answer."""
        self._publish(subject, json.dumps(request).encode())
        answer = json.loads(self._message())
        if "error" in answer:
            raise ValueError(f"{subject}: {answer['error']}")

    def publish(self, count: int, size: int) -> None:
        """Publish so many messages; every one is acknowledged."""
        one = f"PUB {_SUBJECT} {_INBOX} {size}\r\n".encode() + bytes(size) + b"\r\n"
        self.repeat(one, count, self._message)

    def replay(self, count: int) -> None:
        """Read the stream from its beginning."""
        consumer = {"deliver_subject": _REPLAY, "deliver_policy": "all", "ack_policy": "none"}
        request = json.dumps({"stream_name": _STREAM, "config": consumer}).encode()
        self._publish(f"$JS.API.CONSUMER.CREATE.{_STREAM}", request)
        for _ in range(count + 1):  # with the answer
            self._message()

    def _publish(self, subject: str, payload: bytes) -> None:
        self.socket.sendall(
            b"PUB %s %s %d\r\n%s\r\n" % (subject.encode(), _INBOX.encode(), len(payload), payload)
        )

    def _message(self) -> bytes:
        while True:
            line = self.line()
            if line.startswith((b"MSG", b"HMSG")):
                return self.block(int(line.split()[-1]) + 2)
            if line.startswith(b"PING"):
                self.socket.sendall(b"PONG\r\n")
            elif line.startswith(b"-ERR"):
                raise ValueError(line.decode())


class RedisStream(Client):
    """A stream of Redis."""

    def publish(self, count: int, size: int) -> None:
        """Add so many messages; every one is answered."""
        self.repeat(_command(b"XADD", b"log", b"*", b"p", bytes(size)), count, self._answer)

    def replay(self, count: int) -> None:
        """Read the stream from its beginning."""
        after, found = b"-", 0
        while found < count:
            self.socket.sendall(_command(b"XRANGE", b"log", after, b"+", b"COUNT", b"1000"))
            entries = self._answer()
            assert isinstance(entries, list)
            assert entries
            found += len(entries)
            after = b"(" + entries[-1][0]

    def _answer(self) -> object:
        line = self.line()
        kind, rest = line[:1], line[1:-2]
        if kind == b"$":
            return self.block(int(rest) + 2)[:-2]
        if kind == b"*":
            return [self._answer() for _ in range(int(rest))]
        if kind == b"-":
            raise ValueError(rest.decode())
        return rest


def _command(*words: bytes) -> bytes:
    return b"*%d\r\n" % len(words) + b"".join(b"$%d\r\n%s\r\n" % (len(word), word) for word in words)
