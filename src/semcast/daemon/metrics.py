"""Metrics of a daemon for Prometheus: of its member on the ring, and of its clients.

They are handed out by the daemon's own thread: nothing moves while it reads.
"""

from collections.abc import Callable, Iterator, Sequence
from typing import TYPE_CHECKING

from semcast.core.ids import SECOND, Nanos
from semcast.group.metrics import answered, exposition, label_text, refused
from semcast.protocols.clients.guests import Link

if TYPE_CHECKING:
    from semcast.daemon.server import DaemonServer

_MOST_HEAD = 8192
Series = Sequence[tuple[dict[str, str], float]]


class MetricsLayer:
    """Answers one GET /metrics on a connection, and nothing else.

    Args:
        link: that ends with the answer.
        read: gives the text.
    """

    def __init__(self, link: Link, read: Callable[[], str]) -> None:
        self._link = link
        self._read = read
        self._head = bytearray()
        self._answer = b""

    def receive(self, data: bytes) -> list[bytes]:
        """There are no frames."""
        if self._link.over:
            return []
        self._head += data
        end = self._head.find(b"\r\n\r\n")
        if end >= 0 or len(self._head) > _MOST_HEAD:
            head = bytes(self._head[:end]) if end >= 0 else b""
            self._answer = refused(head) or answered(self._read())
            self._link.over = "it was answered"
        return []

    def written(self, bodies: Sequence[bytes]) -> bytes:  # noqa: ARG002 (nobody is told anything here)
        """The answer, once."""
        answer, self._answer = self._answer, b""
        return answer

    def ended(self) -> bytes:
        """Nothing."""
        return b""


def text_of(server: "DaemonServer", now: Nanos) -> str:
    """The text that Prometheus reads."""
    return exposition(server.member.reading(now)) + "\n".join(_lines(server)) + "\n"


def _lines(server: "DaemonServer") -> Iterator[str]:
    machine, host = server.member.stack.machine, server.host
    requests = machine.requests
    local = {"daemon": machine.me.name}
    yield from _metric("clients", "gauge", "Clients of this daemon.", [(local, len(host.guests))])
    yield from _metric("connections", "gauge", "Connections.", [(local, len(server.connections))])
    yield from _metric(
        "domain_clients", "gauge", "Clients of all daemons.", [(local, len(machine.map.clients))]
    )
    yield from _metric("groups", "gauge", "Groups of the domain.", [(local, len(machine.map.groups))])
    yield from _metric("refused_total", "counter", "Requests refused.", [(local, host.refused)])
    out = [({**local, "reason": why}, count) for why, count in sorted(requests.put_out_for.items())]
    yield from _metric("put_out_total", "counter", "Clients put out: why.", out)
    purged = requests.purged_before + sum(each.purged for each in requests.sessions.values())
    yield from _metric(
        "client_purged_total", "counter", "Obsolete messages dropped for slow clients.", [(local, purged)]
    )
    yield from _metric(
        "censuses_total",
        "counter",
        "Times that daemons told each other their clients.",
        [(local, machine.censuses)],
    )
    yield from _metric(
        "census_seconds_total", "counter", "Time in which they did.", [(local, machine.census_time / SECOND)]
    )
    guests = [({**local, "client": guest.session.client.name}, guest) for guest in host.guests.values()]
    yield from _metric(
        "client_queued",
        "gauge",
        "Events that wait for a client.",
        [(who, len(g.session)) for who, g in guests],
    )
    yield from _metric(
        "client_queued_bytes",
        "gauge",
        "Bytes of messages among them.",
        [(who, g.session.queued_bytes) for who, g in guests],
    )
    yield from _metric(
        "client_unsent",
        "gauge",
        "Requests of a client that wait for the ring.",
        [(who, g.session.unsent[0]) for who, g in guests],
    )


def _metric(name: str, kind: str, about: str, series: Series) -> Iterator[str]:
    yield f"# HELP semcast_daemon_{name} {about}"
    yield f"# TYPE semcast_daemon_{name} {kind}"
    for labels, value in series:
        written = ",".join(f'{each}="{label_text(text)}"' for each, text in labels.items())
        yield f"semcast_daemon_{name}{{{written}}} {value}"
