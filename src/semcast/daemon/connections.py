"""Connections of clients: bytes between a socket and the frames of the client protocol."""

import socket
import ssl
from collections.abc import Sequence
from typing import Protocol

from semcast.daemon.pages import Pages
from semcast.protocols.clients.codec import Format, Malformed, Stream, all_framed
from semcast.protocols.clients.guests import Link
from semcast.wire import websocket
from semcast.wire.websocket import HttpRequest, Messages, WebSocketError

READ = 1 << 16
"""Bytes that are read from a client before it is the turn of the next."""
_JSON = "semcast-client.json.1"
_MSGPACK = "semcast-client.1"
"""Subprotocols of WebSockets; RFC 6455 allows no slash there."""


class Layer(Protocol):
    """How frames are written on a connection."""

    def receive(self, data: bytes) -> list[bytes]:
        """Bodies of frames. Raises Malformed."""

    def written(self, bodies: Sequence[bytes]) -> bytes:
        """Frames, and what the layer has to say itself."""

    def ended(self) -> bytes:
        """What is said at the end."""


class StreamLayer:
    """Length and body, one after the other."""

    def __init__(self, most: int) -> None:
        self.stream = Stream(most)

    def receive(self, data: bytes) -> list[bytes]:
        """Bodies of frames."""
        return self.stream.feed(data)

    def written(self, bodies: Sequence[bytes]) -> bytes:
        """Frames."""
        return all_framed(bodies)

    def ended(self) -> bytes:
        """Nothing."""
        return b""


class WebLayer:
    """HTTP, until the client asks for a WebSocket. Other requests are for pages.

    Args:
        link: whose format the client chooses.
        most: bytes of a frame.
        origins: pages that may connect, besides those from here; `*` for any.
        pages: what is served.
        secure: whether browsers come over TLS.
    """

    def __init__(
        self, link: Link, most: int, origins: frozenset[str], pages: Pages | None, *, secure: bool
    ) -> None:
        self._link = link
        self._origins = origins
        self._pages = pages
        self._scheme = "https" if secure else "http"
        self._head = bytearray()
        self._open = False
        self._messages = Messages(most)
        self._say = bytearray()  # of the layer itself

    def receive(self, data: bytes) -> list[bytes]:
        """Bodies of frames."""
        try:
            if not self._open:
                self._head += data
                data = self._shake_hands()
                if not self._open:
                    return []
            return self._bodies(data)
        except WebSocketError as error:
            if self._open:
                self._say += websocket.frame(websocket.CLOSE, error.code.to_bytes(2, "big"))
            raise Malformed(str(error)) from None

    def _bodies(self, data: bytes) -> list[bytes]:
        found = []
        wanted = websocket.TEXT if self._link.form is Format.JSON else websocket.BINARY
        for kind, body in self._messages.feed(data):
            if kind == wanted:
                found.append(body)
            elif kind == websocket.PING:
                self._say += websocket.frame(websocket.PONG, body)
            elif kind == websocket.CLOSE:
                self._say += websocket.frame(websocket.CLOSE, body[:2])
                self._link.over = self._link.over or "it closed the connection"
            elif kind != websocket.PONG:
                raise WebSocketError(1003, "text where there should be bytes, or the other way round")
        return found

    def _shake_hands(self) -> bytes:
        """The first request; returns what comes behind it."""
        end = self._head.find(b"\r\n\r\n")
        if end < 0:
            if len(self._head) > websocket.MAX_HEAD:
                raise WebSocketError(1002, "a request that does not end")
            return b""
        request = websocket.parse_request(bytes(self._head[: end + 4]))
        rest = bytes(self._head[end + 4 :])
        if not request.upgrades:
            self._say += self._page(request)
            self._link.over = "it was given a page"
            return b""
        self._upgrade(request)
        return rest

    def _upgrade(self, request: HttpRequest) -> None:
        if request.path != "/v1":
            self._refuse("404 Not Found")
        elif not self._origin_allowed(request):
            self._refuse("403 Forbidden")
        else:
            offered = websocket.offered(request)
            chosen = next((each for each in offered if each in (_MSGPACK, _JSON)), "")
            if offered and not chosen:
                self._refuse("400 Bad Request")
                return
            self._link.form = Format.JSON if chosen == _JSON else Format.MSGPACK
            self._say += websocket.accept(request, chosen)
            self._open = True

    def _refuse(self, status: str) -> None:
        self._say += f"HTTP/1.1 {status}\r\nContent-Length: 0\r\nConnection: close\r\n\r\n".encode()
        self._link.over = status

    def _origin_allowed(self, request: HttpRequest) -> bool:
        """A browser says whose page it shows. Other programs say nothing, and need a token anyway."""
        origin = request.headers.get("origin")
        if origin is None or "*" in self._origins or origin in self._origins:
            return True
        return origin == f"{self._scheme}://{request.headers.get('host', '')}" and self._pages is not None

    def _page(self, request: HttpRequest) -> bytes:
        if self._pages is None:
            return b"HTTP/1.1 426 Upgrade Required\r\nContent-Length: 0\r\nConnection: close\r\n\r\n"
        return self._pages.answer(request)

    def written(self, bodies: Sequence[bytes]) -> bytes:
        """Frames, behind what the layer has to say itself."""
        kind = websocket.TEXT if self._link.form is Format.JSON else websocket.BINARY
        said = bytes(self._say)
        self._say.clear()
        if not self._open:
            return said
        return said + b"".join([websocket.frame(kind, body) for body in bodies])

    def ended(self) -> bytes:
        """A close frame."""
        return websocket.frame(websocket.CLOSE, (1000).to_bytes(2, "big")) if self._open else b""


class Tls:
    """Seals a connection, without a socket of its own."""

    def __init__(self, context: ssl.SSLContext) -> None:
        self._in, self._out = ssl.MemoryBIO(), ssl.MemoryBIO()
        self._tls = context.wrap_bio(self._in, self._out, server_side=True)
        self._ready = False
        self._early = bytearray()  # to be said once hands are shaken

    def opened(self, data: bytes) -> bytes:
        """What a client said. Raises ssl.SSLError."""
        self._in.write(data)
        found = bytearray()
        try:
            if not self._ready:
                self._tls.do_handshake()
                self._ready = True
            while True:
                plain = self._tls.read(READ)
                if not plain:
                    break
                found += plain
        except ssl.SSLWantReadError:
            pass
        return bytes(found)

    def sealed(self, data: bytes) -> bytes:
        """What a client is told, with what TLS has to say itself."""
        self._early += data
        if self._ready and self._early:
            self._tls.write(self._early)
            self._early.clear()
        return self._out.read()


class Connection:
    """One client at a socket."""

    def __init__(self, sock: socket.socket, link: Link, layer: Layer, tls: Tls | None = None) -> None:
        self.socket = sock
        self.link = link
        self._layer = layer
        self._tls = tls
        self._unsent: bytes | memoryview = b""
        self.waits = False
        """Whether it waits until the socket takes more."""

    def fileno(self) -> int:
        """Of its socket."""
        return self.socket.fileno()

    def read(self) -> list[bytes] | None:
        """Bodies of frames that came; None at the end. Raises OSError, Malformed."""
        try:
            data = self.socket.recv(READ)
        except (BlockingIOError, InterruptedError):
            return []
        if not data:
            return None
        if self._tls is not None:
            data = self._tls.opened(data)
        return self._layer.receive(data)

    def write(self) -> bool:
        """Send what there is to send, as far as the socket takes it; returns whether it took all."""
        link = self.link
        bodies, link.out = link.out, []
        data = self._layer.written(bodies)
        if link.over:
            data += self._layer.ended()
        if self._tls is not None:
            data = self._tls.sealed(data)
        unsent = bytes(self._unsent) + data if self._unsent else data
        sent = 0
        if unsent:
            try:
                sent = self.socket.send(unsent)
            except (BlockingIOError, InterruptedError):
                sent = 0
        self._unsent = memoryview(unsent)[sent:] if sent < len(unsent) else b""
        link.backlog = len(self._unsent)
        return not link.backlog
