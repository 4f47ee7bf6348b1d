"""From what a daemon is asked for to a daemon."""

import ssl
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Any

import msgspec

from semcast.core.ids import SECOND
from semcast.daemon.access import Access
from semcast.daemon.doors import Door, Web, metrics_door, tcp_door, unix_door
from semcast.daemon.member import DaemonMember
from semcast.daemon.pages import Pages
from semcast.daemon.server import DaemonServer
from semcast.domains.places import default_socket
from semcast.group.errors import ConfigurationError
from semcast.group.settings import check_group, resolve
from semcast.protocols.clients.host import HostSettings
from semcast.protocols.lightweight import LIGHTWEIGHT, LightweightSettings
from semcast.protocols.lightweight.settings import MAX_MEMBERSHIPS

FRAME_OVERHEAD = 1 << 16
"""Bytes of a frame besides its messages."""


class DaemonSettings(msgspec.Struct, frozen=True, kw_only=True):
    """What a daemon is asked for."""

    domain: str = "semcast"
    socket: str = ""
    """Path of the Unix socket; the usual one where it is empty."""
    socket_mode: int = 0o600
    listen: str = ""
    """Address of a TCP socket, for clients with a token."""
    ws: str = ""
    """Address for WebSockets."""
    origins: tuple[str, ...] = ()
    """Whose pages may use it, besides those that it serves."""
    pages: str = ""
    """Folder with pages that it serves."""
    access: str = ""
    """File with tokens and rules."""
    metrics: str = ""
    """Address at which metrics are served."""
    certificate: str = ""
    key: str = ""
    allow_block: bool = False
    queue_messages: int = 4096
    queue_bytes: int = 16 << 20
    leave_after: float = 5.0
    grace: float = 5.0
    clients: int = 4096
    member: Mapping[str, Any] = {}
    """Settings of its member on the ring, as `join` takes them."""


def open_daemon(wanted: DaemonSettings) -> DaemonServer:
    """Open its sockets. Raises ConfigurationError."""
    check_group(wanted.domain)
    access = Access(Path(wanted.access) if wanted.access else None)
    light = LightweightSettings(
        clients=wanted.clients,
        memberships=MAX_MEMBERSHIPS,
        queue_messages=wanted.queue_messages,
        queue_bytes=wanted.queue_bytes,
        leave_after=round(wanted.leave_after * SECOND),
        send_messages=16384,
        send_bytes=8 << 20,
        window=1024,
        notes=bool(wanted.member.get("record")),
    )
    settings = HostSettings(
        domain=wanted.domain, grace=round(wanted.grace * SECOND), allow_block=wanted.allow_block
    )
    served: list[DaemonServer] = []

    def metrics() -> str:
        return served[0].metrics()

    doors = _doors(wanted, access, light.run_bytes + FRAME_OVERHEAD, metrics)
    own = {"stack": LIGHTWEIGHT.name, "receive": False, "metrics": wanted.metrics}
    try:
        member = DaemonMember(wanted.domain, resolve({**wanted.member, **own}), light)
    except BaseException:
        _close(doors)
        raise
    served.append(DaemonServer(member, doors, access, settings))
    return served[0]


def _doors(wanted: DaemonSettings, access: Access, most: int, metrics: Callable[[], str]) -> list[Door]:
    if (wanted.listen or wanted.ws) and not access.has_tokens:
        raise ConfigurationError("TCP and WebSockets need tokens: name a file with --access")
    tls = _tls(wanted)
    doors: list[Door] = []
    try:
        path = Path(wanted.socket) if wanted.socket else default_socket()
        doors.append(unix_door(path, most, wanted.socket_mode))
        if wanted.listen:
            doors.append(tcp_door(wanted.listen, most, tls=tls, anonymous=access.anonymous))
        if wanted.ws:
            web = Web(frozenset(wanted.origins), Pages(Path(wanted.pages)) if wanted.pages else None)
            doors.append(tcp_door(wanted.ws, most, tls=tls, anonymous=access.anonymous, web=web))
        if wanted.metrics:
            doors.append(metrics_door(wanted.metrics, metrics))
    except OSError as error:
        _close(doors)
        raise ConfigurationError(f"pages {wanted.pages}: {error.strerror}") from error
    except BaseException:
        _close(doors)
        raise
    return doors


def _close(doors: list[Door]) -> None:
    for door in doors:
        door.close()


def _tls(wanted: DaemonSettings) -> ssl.SSLContext | None:
    if bool(wanted.certificate) != bool(wanted.key):
        raise ConfigurationError("TLS needs both, the certificate and its key")
    if not wanted.certificate:
        return None
    context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
    context.minimum_version = ssl.TLSVersion.TLSv1_2
    try:
        context.load_cert_chain(wanted.certificate, wanted.key)
    except (OSError, ssl.SSLError) as error:
        raise ConfigurationError(
            f"{wanted.certificate}, {wanted.key}: not a certificate and its key: {error}"
        ) from error
    return context
