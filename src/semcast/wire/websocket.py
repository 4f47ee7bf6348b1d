"""The server's side of WebSockets (RFC 6455), as far as a daemon needs it. Pure: bytes in, bytes out.

Deviations: no extensions, no fragments from this side, one subprotocol or none, HTTP/1.1 only. What a client
sends is bounded before it is kept.
"""

from base64 import b64decode, b64encode
from binascii import Error as Base64Error
from collections.abc import Mapping
from hashlib import sha1

import msgspec

_GUID = b"258EAFA5-E914-47DA-95CA-C5AB0DC85B11"
MAX_HEAD = 8192
"""Bytes of an HTTP request, at most: it has no body."""
TEXT, BINARY, CLOSE, PING, PONG = 0x1, 0x2, 0x8, 0x9, 0xA
_CONTINUATION = 0x0
_KEY_BYTES = 16
_SHORT, _LONG = 126, 127
_MAX_CONTROL = 125


class WebSocketError(ValueError):
    """The other side does not keep to the protocol; the code is for a close frame."""

    def __init__(self, code: int, text: str) -> None:
        super().__init__(text)
        self.code = code


class HttpRequest(msgspec.Struct, frozen=True):
    """The head of a request."""

    method: str
    path: str
    """Without what comes behind a question mark."""
    headers: Mapping[str, str]
    """With names in lower case."""

    @property
    def upgrades(self) -> bool:
        """Whether it asks for a WebSocket."""
        wants = self.headers.get("upgrade", "").lower() == "websocket"
        words = [word.strip().lower() for word in self.headers.get("connection", "").split(",")]
        return wants and "upgrade" in words


def parse_request(head: bytes) -> HttpRequest:
    r"""The head of a request, up to its empty line. Raises WebSocketError.

    >>> parse_request(b"GET /a?b HTTP/1.1\r\nHost: x\r\n\r\n").path
    '/a'
    """
    try:
        first, *lines = head.decode("ascii").split("\r\n")[:-2]
        method, target, version = first.split(" ")
    except (UnicodeDecodeError, ValueError):
        raise WebSocketError(1002, "not a request of HTTP") from None
    if version != "HTTP/1.1" or not target.startswith("/"):
        raise WebSocketError(1002, "not a request of HTTP/1.1")
    headers: dict[str, str] = {}
    for line in lines:
        name, colon, value = line.partition(":")
        name = name.lower()
        if not colon or not name or name != name.strip():
            raise WebSocketError(1002, "not a header")
        headers[name] = f"{headers[name]}, {value.strip()}" if name in headers else value.strip()
    return HttpRequest(method, target.partition("?")[0], headers)


def accept(request: HttpRequest, subprotocol: str = "") -> bytes:
    """The answer that opens a WebSocket. Raises WebSocketError where the request is not complete."""
    key = request.headers.get("sec-websocket-key", "")
    try:
        whole = len(b64decode(key, validate=True)) == _KEY_BYTES
    except (Base64Error, ValueError):
        whole = False
    if request.method != "GET" or not whole or request.headers.get("sec-websocket-version") != "13":
        raise WebSocketError(1002, "not a request for a WebSocket of version 13")
    proof = b64encode(sha1(key.encode() + _GUID, usedforsecurity=False).digest()).decode()
    chosen = f"Sec-WebSocket-Protocol: {subprotocol}\r\n" if subprotocol else ""
    return (
        "HTTP/1.1 101 Switching Protocols\r\nUpgrade: websocket\r\nConnection: Upgrade\r\n"
        f"Sec-WebSocket-Accept: {proof}\r\n{chosen}\r\n"
    ).encode()


def offered(request: HttpRequest) -> list[str]:
    """The subprotocols that a client would speak, the best first."""
    return [
        word.strip() for word in request.headers.get("sec-websocket-protocol", "").split(",") if word.strip()
    ]


def frame(kind: int, body: bytes) -> bytes:
    r"""One frame of a server: whole, not masked.

    >>> frame(TEXT, b"hi")
    b'\x81\x02hi'
    """
    size = len(body)
    if size < _SHORT:
        head = bytes((0x80 | kind, size))
    elif size < 1 << 16:
        head = bytes((0x80 | kind, _SHORT)) + size.to_bytes(2, "big")
    else:
        head = bytes((0x80 | kind, _LONG)) + size.to_bytes(8, "big")
    return head + body


class Messages:
    """Finds the messages in what a client sends.

    Args:
        most: bytes of a message.
    """

    def __init__(self, most: int) -> None:
        self.most = most
        self._buffer = bytearray()
        self._need = 2
        self._kind = 0  # of the message that is not complete
        self._parts: list[bytes] = []
        self._size = 0  # bytes of these

    def feed(self, data: bytes) -> list[tuple[int, bytes]]:
        """Messages and control frames that are complete now. Raises WebSocketError."""
        buffer = self._buffer
        buffer += data
        found: list[tuple[int, bytes]] = []
        while len(buffer) >= self._need:
            frame_ = self._next(buffer)
            if frame_ is None:
                break
            whole = self._put_together(*frame_)
            if whole is not None:
                found.append(whole)
        return found

    def _next(self, buffer: bytearray) -> tuple[bool, int, bytes] | None:
        """The first frame, if it is there: whether it is the last of its message, its kind, its body."""
        last, kind, size = bool(buffer[0] & 0x80), buffer[0] & 0x0F, buffer[1] & 0x7F
        if buffer[0] & 0x70 or not buffer[1] & 0x80:
            raise WebSocketError(1002, "a frame that is not masked, or has reserved bits")
        start = 2
        if size >= _SHORT:
            length = 2 if size == _SHORT else 8
            start += length
            if len(buffer) < start:
                self._need = start
                return None
            size = int.from_bytes(buffer[2:start], "big")
        self._check(kind, size, last=last)
        self._need = start + 4 + size
        if len(buffer) < self._need:
            return None
        mask, body = bytes(buffer[start : start + 4]), bytes(buffer[start + 4 : self._need])
        del buffer[: self._need]
        self._need = 2
        return last, kind, _unmasked(mask, body)

    def _check(self, kind: int, size: int, *, last: bool) -> None:
        if kind & 0x8:
            if size > _MAX_CONTROL or not last or kind > PONG:
                raise WebSocketError(1002, "no such control frame")
            return
        if kind > BINARY or (kind == _CONTINUATION) != bool(self._kind):
            raise WebSocketError(1002, "a frame that does not go on with the message before it")
        if self._size + size > self.most:
            raise WebSocketError(1009, f"a message of more than {self.most} bytes")

    def _put_together(self, last: bool, kind: int, body: bytes) -> tuple[int, bytes] | None:
        if kind & 0x8:
            return kind, body
        self._kind = kind or self._kind
        self._parts.append(body)
        self._size += len(body)
        if not last:
            if len(self._parts) > self.most // 2 + 64:
                raise WebSocketError(1009, "a message of too many frames")
            return None
        kind, whole = self._kind, b"".join(self._parts)
        self._kind, self._size = 0, 0
        self._parts.clear()
        return kind, whole


def _unmasked(mask: bytes, body: bytes) -> bytes:
    """All at once, as large numbers: a loop over bytes would be slow."""
    size = len(body)
    if not size:
        return b""
    key = (mask * (size // 4 + 1))[:size]
    return (int.from_bytes(body, "big") ^ int.from_bytes(key, "big")).to_bytes(size, "big")
