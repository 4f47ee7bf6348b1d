"""Serves the application over HTTP/1.1, with TLS where there is a certificate, until it is told to stop."""

import asyncio
import socket
import ssl
from collections.abc import Iterator
from contextlib import contextmanager

import msgspec
import uvicorn
from starlette.types import ASGIApp

from semcast.net.addresses import AddressError, split_address
from semcast.server.addresses import is_local
from semcast.server.connections import Connection
from semcast.server.limits import Limits

PORT = 7420
_HEAD = 1 << 16
"""Bytes of the head of a request."""
_GRACE = 10
"""Seconds for what is under way when the server is told to stop."""


class ServingError(Exception):
    """The server cannot be reached as it was told to; says what to change."""


class ServerAddress(msgspec.Struct, frozen=True):
    """Where a server is to be reached."""

    listen: str = f"127.0.0.1:{PORT}"
    certificate: str = ""
    """A PEM file with the certificate and those between it and its root; empty for no TLS."""
    key: str = ""
    insecure: bool = False
    """Listen beyond this host without TLS, or without tokens."""

    def check(self, *, tokens: bool) -> None:
        """Raise unless the place makes sense."""
        try:
            host, _ = split_address(self.listen, any_port=True)
        except AddressError as error:
            raise ServingError(f"listen: {error}") from error
        if bool(self.certificate) != bool(self.key):
            raise ServingError("TLS needs both, the certificate and its key")
        if is_local(host) or self.insecure:
            return
        if not tokens:
            raise ServingError(
                f"{self.listen} can be reached from other hosts, and everybody there could change all of it: "
                "give a file of tokens, or say that it may be insecure"
            )
        if not self.certificate:
            raise ServingError(
                f"{self.listen} can be reached from other hosts, and tokens would travel in the open: give a "
                "certificate and its key, or say that it may be insecure"
            )


class _Uvicorn(uvicorn.Server):
    """Signals are the program's business: the database has to be closed in good order, too."""

    @contextmanager
    def capture_signals(self) -> Iterator[None]:
        yield


class HttpServer:
    """One server; `async with HttpServer(...) as server`.

    Args:
        served: the application.
        place: where.
        limits: of connections.
        reserved: the socket for it, if there is one already (`reserve`).
    """

    def __init__(
        self,
        served: ASGIApp,
        place: ServerAddress,
        limits: Limits | None = None,
        reserved: socket.socket | None = None,
    ) -> None:
        limits = limits or Limits()
        self._place = place
        self._socket = reserved
        self._task: asyncio.Task[None] | None = None
        config = uvicorn.Config(
            served,
            http=Connection,
            ws="none",
            lifespan="off",
            interface="asgi3",
            log_config=None,
            access_log=False,
            proxy_headers=False,
            server_header=False,
            limit_concurrency=limits.connections,
            h11_max_incomplete_event_size=_HEAD,
            timeout_keep_alive=60,
            timeout_graceful_shutdown=_GRACE,
            ssl_certfile=place.certificate or None,
            ssl_keyfile=place.key or None,
        )
        try:
            config.load()
        except (OSError, ssl.SSLError) as error:
            what = f"{place.certificate}, {place.key}"
            raise ServingError(f"{what}: not a certificate and its key: {error}") from error
        if config.ssl is not None:
            config.ssl.minimum_version = ssl.TLSVersion.TLSv1_2
        self._server = _Uvicorn(config)

    @property
    def address(self) -> str:
        """Where it is reached."""
        assert self._socket is not None
        host, port = self._socket.getsockname()[:2]
        return f"[{host}]:{port}" if ":" in host else f"{host}:{port}"

    async def __aenter__(self) -> "HttpServer":
        self._socket = self._socket or reserve(self._place.listen)
        self._socket.listen(socket.SOMAXCONN)
        self._task = asyncio.create_task(self._server.serve([self._socket]))
        while not self._server.started:
            if self._task.done():
                self._task.result()
                raise ServingError(f"{self._place.listen}: the server did not start")
            await asyncio.sleep(0.005)
        return self

    async def __aexit__(self, *_: object) -> None:
        await self.stop()

    async def stop(self) -> None:
        """Take no more requests, answer those that are under way, and end."""
        self._server.should_exit = True
        if self._task is not None:
            await self._task


def reserve(place: str) -> socket.socket:
    """The socket of a place, which nobody else has then. Nobody is served there until it listens."""
    host, port = split_address(place, any_port=True)
    try:
        found = socket.getaddrinfo(host, port, type=socket.SOCK_STREAM, flags=socket.AI_PASSIVE)
        family, kind, protocol, _, address = found[0]
        made = socket.socket(family, kind, protocol)
        try:
            made.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
            made.bind(address)
            made.setblocking(False)
        except OSError:
            made.close()
            raise
    except OSError as error:
        raise ServingError(f"{place}: {error.strerror or error}") from error
    return made
