"""Where clients come in: a Unix socket, TCP, WebSockets."""

import os
import socket
import ssl
import stat
from collections.abc import Callable
from pathlib import Path

import msgspec

from semcast.core.ids import Nanos
from semcast.daemon.access import of_peer
from semcast.daemon.connections import Connection, StreamLayer, Tls, WebLayer
from semcast.daemon.metrics import MetricsLayer
from semcast.daemon.pages import Pages
from semcast.group.errors import ConfigurationError
from semcast.net.addresses import AddressError, is_loopback, split_address, written
from semcast.protocols.clients.guests import Link

_BACKLOG = 1024


class Web(msgspec.Struct, frozen=True):
    """What a door for browsers needs besides."""

    origins: frozenset[str] = frozenset()
    pages: Pages | None = None


class Door:
    """A socket that listens.

    Args:
        sock: bound.
        place: where, for people.
        most: bytes of a frame.
        tls: for connections beyond this host.
        web: where browsers come in.
        metrics: of a door for Prometheus: gives the text.
    """

    def __init__(
        self,
        sock: socket.socket,
        place: str,
        most: int,
        *,
        tls: ssl.SSLContext | None = None,
        web: Web | None = None,
        metrics: Callable[[], str] | None = None,
    ) -> None:
        self.socket = sock
        self.metrics = metrics
        self.place = place
        self._most = most
        self._tls = tls
        self._web = web
        sock.setblocking(False)
        sock.listen(_BACKLOG)

    @property
    def local(self) -> bool:
        """Whether it is a Unix socket."""
        return self.socket.family == socket.AF_UNIX

    def let_in(self, now: Nanos) -> Connection | None:
        """Who waits outside, if anybody does."""
        try:
            sock, address = self.socket.accept()
        except OSError:
            return None
        sock.setblocking(False)
        if self.local:
            link = Link(now, identity=of_peer(sock), place="unix")
            return Connection(sock, link, StreamLayer(self._most))
        sock.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
        sock.setsockopt(socket.SOL_SOCKET, socket.SO_KEEPALIVE, 1)
        link = Link(now, place=written(address[:2]))
        if self.metrics is not None:
            return Connection(sock, link, MetricsLayer(link, self.metrics))
        tls = None if self._tls is None else Tls(self._tls)
        if self._web is None:
            return Connection(sock, link, StreamLayer(self._most), tls)
        layer = WebLayer(link, self._most, self._web.origins, self._web.pages, secure=self._tls is not None)
        return Connection(sock, link, layer, tls)

    def close(self) -> None:
        """Nobody comes in any more."""
        if self.local:
            Path(self.socket.getsockname()).unlink(missing_ok=True)
        self.socket.close()


def unix_door(path: Path, most: int, mode: int = 0o600) -> Door:
    """At a path. A socket that a daemon left behind is removed; one that answers is not."""
    try:
        path.parent.mkdir(parents=True, exist_ok=True)
        if path.exists():
            _remove_stale(path)
        sock = socket.socket(socket.AF_UNIX, socket.SOCK_STREAM)
        before = os.umask(0o777 & ~mode)
        try:
            sock.bind(str(path))
        except OSError:
            sock.close()
            raise
        finally:
            os.umask(before)
    except OSError as error:
        raise ConfigurationError(f"socket {path}: {error.strerror or error}") from error
    return Door(sock, str(path), most)


def _remove_stale(path: Path) -> None:
    if not stat.S_ISSOCK(path.stat().st_mode):
        raise ConfigurationError(f"socket {path}: there is a file of that name")
    with socket.socket(socket.AF_UNIX, socket.SOCK_STREAM) as probe:
        try:
            probe.connect(str(path))
        except ConnectionRefusedError:
            path.unlink()
        else:
            raise ConfigurationError(f"socket {path}: another daemon listens there")


def tcp_door(
    text: str, most: int, *, tls: ssl.SSLContext | None, anonymous: bool, web: Web | None = None
) -> Door:
    """At an address; beyond this host only with TLS, and for nobody without a token."""

    def check() -> None:
        _check_exposed(text, secure=tls is not None, anonymous=anonymous)

    sock = _listening(text, check)
    return Door(sock, written(sock.getsockname()[:2]), most, tls=tls, web=web)


def metrics_door(text: str, metrics: Callable[[], str]) -> Door:
    """At an address, for whoever reaches it: there are no secrets in metrics, and nobody can do anything."""
    try:
        sock = _listening(text, _anybody)
    except ConfigurationError as error:
        raise ConfigurationError(f"metrics {error}") from error
    return Door(sock, written(sock.getsockname()[:2]), 0, metrics=metrics)


def _anybody() -> None:
    """May come from anywhere."""


def _listening(text: str, check_exposed: Callable[[], None]) -> socket.socket:
    try:
        host, port = split_address(text, any_port=True)
        found = socket.getaddrinfo(host, port, type=socket.SOCK_STREAM, flags=socket.AI_PASSIVE)
        family, kind, protocol, _, address = found[0]
        if not is_loopback((str(address[0]), int(address[1]))):
            check_exposed()
        sock = socket.socket(family, kind, protocol)
        try:
            sock.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
            sock.bind(address)
        except OSError:
            sock.close()
            raise
    except AddressError as error:
        raise ConfigurationError(str(error)) from error
    except OSError as error:
        raise ConfigurationError(f"{text}: {error.strerror or error}") from error
    return sock


def _check_exposed(text: str, *, secure: bool, anonymous: bool) -> None:
    if not secure:
        raise ConfigurationError(
            f"{text} can be reached from other hosts, and tokens would travel in the open: give a certificate"
            " and its key"
        )
    if anonymous:
        raise ConfigurationError(f"{text} can be reached from other hosts: every token needs a secret")
