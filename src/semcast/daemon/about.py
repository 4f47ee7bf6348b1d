"""What a daemon says of itself to administrators, as JSON."""

import time
from typing import TYPE_CHECKING, Any

import msgspec

from semcast.core.ids import SECOND
from semcast.protocols.clients.guests import Guest

if TYPE_CHECKING:
    from semcast.daemon.server import DaemonServer

_MOST = 10_000
"""Clients or groups in one answer."""


class About:
    """Answers `status`, `clients`, `groups`, and `drop`s clients.

    Args:
        server: what it is about.
    """

    def __init__(self, server: "DaemonServer") -> None:
        self._server = server

    def answer(self, what: str, about: str) -> str:
        """As JSON. Raises ValueError where there is no such thing."""
        known = {"status": self._status, "clients": self._clients, "groups": self._groups, "drop": self._drop}
        if what not in known:
            raise ValueError(f"{what!r}: there are {', '.join(known)}")
        return msgspec.json.encode(known[what](about)).decode()

    def _status(self, _about: str) -> dict[str, Any]:
        server, stack = self._server, self._server.member.stack
        machine, stats = stack.machine, stack.stats
        return {
            "daemon": str(stack.me),
            "domain": server.host.settings.domain,
            "phase": stack.phase(),
            "daemons": [str(each) for each in sorted(machine.members)],
            "address": "{}:{}".format(*server.member.hub.endpoint.address),
            "doors": server.places,
            "metrics": server.metrics_place,
            "clients": len(machine.map.clients),
            "local_clients": len(server.host.guests),
            "connections": len(server.connections),
            "groups": len(machine.map.groups),
            "uptime": (time.monotonic_ns() - server.started_at) / SECOND,
            "sent": stats.sent,
            "delivered": stats.delivered,
            "refused": server.host.refused,
            "access_problem": server.access.problem,
        }

    def _clients(self, _about: str) -> list[dict[str, Any]]:
        return [_client(guest) for guest in list(self._server.host.guests.values())[:_MOST]]

    def _groups(self, about: str) -> list[dict[str, Any]]:
        groups = self._server.member.stack.machine.map.groups
        names = [about] if about else sorted(groups)[:_MOST]
        return [
            {
                "group": name,
                "flavour": "vs" if groups[name].vs else "evs",
                "view": str(groups[name].view),
                "members": [str(each) for each in groups[name].members]
                if about
                else len(groups[name].members),
            }
            for name in names
            if name in groups
        ]

    def _drop(self, about: str) -> dict[str, Any]:
        host = self._server.host
        found = [client for client in host.guests if about in (str(client), client.name, _short(client.name))]
        if not found:
            raise ValueError(f"there is no client {about!r} here")
        for client in found:
            host.drop(client, "an administrator dropped it")
        return {"dropped": [str(client) for client in found]}


def _short(name: str) -> str:
    return name.partition("@")[0]


def _client(guest: Guest) -> dict[str, Any]:
    session, outlet = guest.session, guest.outlet
    waiting, waiting_bytes = session.unsent
    return {
        "client": str(session.client),
        "identity": str(guest.identity),
        "place": "" if guest.link is None else guest.link.place,
        "connected": guest.link is not None,
        "groups": len(session.asked),
        "queued": len(session),
        "queued_bytes": session.queued_bytes,
        "purged": session.purged,
        "under_way": outlet.told - outlet.taken,
        "requests": session.last,
        "unsent": waiting,
        "unsent_bytes": waiting_bytes,
    }
