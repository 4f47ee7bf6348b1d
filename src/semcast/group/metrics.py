"""Metrics of a member for Prometheus, and the small server that hands them out on request."""

import asyncio
from collections.abc import Awaitable, Callable, Sequence
from contextlib import suppress

import msgspec

from semcast.core.events import Blocked, Delivery, Event, Unblocked, ViewChange
from semcast.core.ids import SECOND, MemberId, Nanos
from semcast.core.outgoing import Outgoing
from semcast.core.stack import Stack
from semcast.core.statistics import Statistics
from semcast.core.watchers import Watcher
from semcast.group.errors import ConfigurationError
from semcast.net.addresses import split_address
from semcast.net.hub import Hub
from semcast.net.seat import Seat
from semcast.net.sockets import SocketStatistics

_MOST_REQUEST = 8192
_MOST_CONNECTIONS = 16
_PATIENCE = 5.0
"""Seconds a client may take."""
_TYPE = "text/plain; version=0.0.4; charset=utf-8"


class Meter(Watcher):
    """Counts what no stack counts. Told in the loop's thread."""

    def __init__(self) -> None:
        self.view_changes = 0
        self.rejoins = 0
        self._blocked: Nanos = 0
        self._since: Nanos | None = None

    def blocked(self, now: Nanos) -> Nanos:
        """How long flow control has refused messages until now."""
        since = self._since
        return self._blocked + (0 if since is None else max(0, now - since))

    def on_events(self, now: Nanos, events: Sequence[Event]) -> None:
        """Time passes between blocked and unblocked."""
        for event in events:
            if isinstance(event, Blocked):
                self._since = now if self._since is None else self._since
            elif isinstance(event, Unblocked) and self._since is not None:
                self._blocked += now - self._since
                self._since = None
            elif isinstance(event, ViewChange):
                self.view_changes += 1

    def on_deliveries(self, now: Nanos, deliveries: Sequence[Delivery]) -> None:  # noqa: ARG002
        """Views come between messages."""
        for each in deliveries:
            if type(each) is ViewChange:
                self.view_changes += 1

    def on_multicast(self, now: Nanos, taken: Sequence[tuple[Outgoing, int]]) -> None:
        """The stack counts these."""

    def on_renewal(self, now: Nanos, member: MemberId) -> None:  # noqa: ARG002
        """The group went on without this member, which comes back."""
        self.rejoins += 1


class MetricsSnapshot(msgspec.Struct, frozen=True):
    """Everything that is exported, at one moment."""

    group: str
    member: str
    stack: Statistics
    network: SocketStatistics
    malformed: dict[str, int]
    """Datagrams that were dropped, by reason."""
    view: int
    members: int
    waiting_to_send: int
    buffered: int
    view_changes: int
    blocked: Nanos
    minority: bool = False
    rejoins: int = 0
    held_back: dict[tuple[str, str], Nanos] = {}
    """How long, by which member and why."""
    reserved: int = 0
    backlogs: int = 0
    skipped: int = 0


Series = Sequence[tuple[dict[str, str], float]]


def exposition(reading: MetricsSnapshot) -> str:
    """The text that Prometheus reads."""
    stack, network = reading.stack, reading.network
    lines: list[str] = []

    def metric(name: str, kind: str, about: str, series: Series) -> None:
        lines.append(f"# HELP semcast_{name} {about}")
        lines.append(f"# TYPE semcast_{name} {kind}")
        for labels, value in series:
            full = {"group": reading.group, "member": reading.member, **labels}
            written = ",".join(f'{label}="{label_text(text)}"' for label, text in full.items())
            lines.append(f"semcast_{name}{{{written}}} {value}")

    def counter(name: str, about: str, value: float) -> None:
        metric(f"{name}_total", "counter", about, [({}, value)])

    def gauge(name: str, about: str, value: float) -> None:
        metric(name, "gauge", about, [({}, value)])

    counter("sent", "Messages multicast by this member.", stack.sent)
    counter("delivered", "Messages handed to the application.", stack.delivered)
    purged: Series = [
        ({"reason": "delivery"}, stack.purged_delivery),
        ({"reason": "retransmission"}, stack.purged_retransmission),
        ({"reason": "skipped"}, stack.skipped),
    ]
    metric("purged_total", "counter", "Obsolete messages dropped: from which buffer.", purged)
    counter("retransmitted", "Messages or packets sent again.", stack.retransmitted)
    counter("requested", "Messages or packets asked for again.", stack.requested)
    counter("duplicates", "Messages or packets that came again.", stack.duplicates)
    counter("flow_control_seconds", "Time in which messages were refused.", reading.blocked / SECOND)
    counter("flow_control_blocks", "Times that messages began to be refused.", stack.blocked)
    counter("view_changes", "Views delivered.", reading.view_changes)
    counter("rejoins", "Times that the group went on without this member, which came back.", reading.rejoins)
    gauge("minority", "1 while this member is cut off from the majority of its view.", int(reading.minority))
    gauge("view", "Number of the current view.", reading.view)
    gauge("view_members", "Members of the current view.", reading.members)
    gauge("buffered_messages", "Messages in the buffers of the protocol.", reading.buffered)
    gauge("unsent_messages", "Messages that wait to be taken by the protocol.", reading.waiting_to_send)
    held: Series = [
        ({"by": by, "why": why}, time / SECOND) for (by, why), time in sorted(reading.held_back.items())
    ]
    metric("held_back_seconds_total", "counter", "Time in which this member could not send: why.", held)
    gauge("reserve_messages", "Messages received beyond the queue of a program that waits.", reading.reserved)
    counter("backlog_errors", "Sends that failed because this program must read first.", reading.backlogs)
    counter("skipped", "Messages dropped because this program never iterated.", reading.skipped)
    malformed: Series = [
        *(({"reason": reason}, count) for reason, count in sorted(reading.malformed.items())),
        ({"reason": "impossible frame"}, stack.malformed),
    ]
    metric("malformed_total", "counter", "Datagrams and frames dropped: why.", malformed)
    counter("stale_frames", "Frames that came too late.", stack.stale)
    counter("kernel_drops", "Datagrams lost because they were not read in time.", network.kernel_drops)
    counter("kept_out", "Datagrams that the kernel dropped: their sources flood.", network.kept_out)
    counter("send_errors", "Datagrams that could not be sent.", network.send_errors)
    for name, about, came, went in (
        ("datagrams_total", "Datagrams that came and went.", network.datagrams_in, network.datagrams_out),
        ("bytes_total", "Bytes of these datagrams.", network.bytes_in, network.bytes_out),
    ):
        metric(name, "counter", about, [({"direction": "in"}, came), ({"direction": "out"}, went)])
    return "\n".join(lines) + "\n"


def label_text(text: str) -> str:
    r"""A label's value.

    >>> print(label_text('a"b'))
    a\"b
    """
    return text.replace("\\", r"\\").replace('"', r"\"").replace("\n", r"\n")


class Metrics:
    """The metrics of one member, where its settings ask for them.

    Args:
        group: its name.
        wanted: address and port to serve them at; empty for none.
    """

    def __init__(self, group: str, wanted: str) -> None:
        self.address: tuple[str, int] | None = None
        """Where they are served."""
        self._group = group
        self._wanted = wanted
        self._meter = Meter()
        self._server: MetricsServer | None = None
        self.watchers: list[Watcher] = [self._meter] if wanted else []

    async def start(self, seat: Seat, hub: Hub) -> None:
        """Serve, if that is wanted."""
        if not self._wanted:
            return

        async def text() -> str:
            return exposition(await self._read(seat, hub))

        server = MetricsServer(text)
        host, port = split_address(self._wanted, any_port=True)
        try:
            self.address = await server.start(host, port)
        except OSError as error:
            raise ConfigurationError(f"metrics {self._wanted}: {error.strerror or error}") from error
        self._server = server

    async def close(self) -> None:
        """Stop serving."""
        if self._server is not None:
            await self._server.close()
            self._server = None

    async def _read(self, seat: Seat, hub: Hub) -> MetricsSnapshot:
        """Read in the loop's thread: buffers do not hold still for anybody else."""
        loop = asyncio.get_running_loop()
        reading: asyncio.Future[MetricsSnapshot] = loop.create_future()

        def take(stack: Stack, now: Nanos) -> None:
            taken = self.reading(seat, hub, stack, now)
            with suppress(RuntimeError):  # the loop has ended, and nobody waits
                loop.call_soon_threadsafe(_settle, reading, taken)

        seat.call(take)
        return await reading

    def reading(self, seat: Seat, hub: Hub, stack: Stack, now: Nanos) -> MetricsSnapshot:
        """Everything that is exported. In the loop's thread."""
        view = stack.view()
        return MetricsSnapshot(
            group=self._group,
            member=seat.member.name,
            stack=msgspec.structs.replace(stack.stats),
            network=hub.traffic(),
            malformed={why.value: count for why, count in hub.malformed().items()},
            view=view.id,
            members=len(view.members),
            waiting_to_send=seat.handover.unsent,
            buffered=stack.buffered(),
            view_changes=self._meter.view_changes,
            blocked=self._meter.blocked(now),
            minority=stack.phase() == "minority",
            rejoins=self._meter.rejoins,
            held_back=seat.holdup.so_far(now),
            reserved=seat.handover.reading.reserved(stack),
            backlogs=seat.handover.backlogs,
            skipped=seat.handover.skipped,
        )


def _settle(reading: "asyncio.Future[MetricsSnapshot]", taken: MetricsSnapshot) -> None:
    if not reading.done():
        reading.set_result(taken)


class MetricsServer:
    """Answers GET /metrics, and nothing else. Few connections at a time, short requests, little patience.

    Args:
        read: gives the text to export.
    """

    def __init__(self, read: Callable[[], Awaitable[str]]) -> None:
        self._read = read
        self._server: asyncio.Server | None = None
        self._handlers: set[asyncio.Task[None]] = set()

    async def start(self, host: str, port: int) -> tuple[str, int]:
        """Listen; returns where. Port 0 for any."""
        self._server = await asyncio.start_server(self._on_client, host, port, limit=_MOST_REQUEST)
        address: tuple[str, int] = self._server.sockets[0].getsockname()[:2]
        return address

    async def close(self) -> None:
        """Stop listening and end every connection."""
        if self._server is None:
            return
        self._server.close()
        for handler in self._handlers:
            handler.cancel()
        await asyncio.gather(*self._handlers, return_exceptions=True)
        await self._server.wait_closed()
        self._server = None

    async def _on_client(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        handler = asyncio.current_task()
        assert handler is not None
        self._handlers.add(handler)
        try:
            with suppress(TimeoutError, OSError, asyncio.CancelledError):
                async with asyncio.timeout(_PATIENCE):
                    if len(self._handlers) > _MOST_CONNECTIONS:
                        answer = _answer("503 Service Unavailable", "too many connections\n")
                    else:
                        answer = await self._answer(reader)
                    writer.write(answer)
                    await writer.drain()
        finally:
            self._handlers.discard(handler)
            writer.close()

    async def _answer(self, reader: asyncio.StreamReader) -> bytes:
        try:
            head = await reader.readuntil(b"\r\n\r\n")
        except (asyncio.IncompleteReadError, asyncio.LimitOverrunError):
            return _answer("400 Bad Request", "not a request\n")
        return refused(head) or answered(await self._read())


def refused(head: bytes) -> bytes | None:
    """The answer to a request that is not for metrics; None for one that is."""
    words = head.split(b"\r\n", 1)[0].split(b" ")
    if len(words) != 3 or not words[2].startswith(b"HTTP/1."):
        return _answer("400 Bad Request", "not a request\n")
    method, target, _ = words
    if target.split(b"?", 1)[0] != b"/metrics":
        return _answer("404 Not Found", "there is only /metrics\n")
    if method != b"GET":
        return _answer("405 Method Not Allowed", "only GET\n", "Allow: GET\r\n")
    return None


def answered(text: str) -> bytes:
    """The answer to one that is."""
    return _answer("200 OK", text)


def _answer(status: str, body: str, more: str = "") -> bytes:
    data = body.encode()
    head = f"HTTP/1.1 {status}\r\nContent-Type: {_TYPE}\r\nContent-Length: {len(data)}\r\n{more}"
    return f"{head}Connection: close\r\n\r\n".encode("ascii") + data
