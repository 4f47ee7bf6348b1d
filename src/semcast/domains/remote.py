"""A domain through the daemon of this host, or of another (docs/client-protocol.md)."""

import asyncio
import ssl
from collections.abc import Callable, Sequence
from contextlib import suppress

import msgspec

from semcast.domains.link import (
    CastRequest,
    JoinRequest,
    LeaveRequest,
    PrivateRequest,
    ReadyRequest,
    Refusal,
    Request,
    Terms,
    numbers_of,
)
from semcast.domains.places import no_daemon
from semcast.group.errors import ConfigurationError, GroupError
from semcast.net.addresses import AddressError, split_address
from semcast.protocols.clients.caller import Caller, Denial, Heard
from semcast.protocols.clients.codec import Malformed, Stream, all_framed
from semcast.protocols.lightweight.events import ClientEvent, Out
from semcast.protocols.lightweight.settings import MAX_MEMBERSHIPS

_LARGEST = 17 << 20
"""Bytes of a frame."""
_RUN_BYTES = 64 << 10
"""Single messages to the same groups are sent as one run, up to so many bytes."""
_FIRST_PAUSE, _LAST_PAUSE = 0.05, 2.0
"""Seconds between tries to reach a daemon."""
_ANSWER = 5.0
"""Seconds in which a daemon that is there says welcome."""
_CLOSE = 2.0
"""Seconds for what was submitted to leave, at the end."""
_FOR_GOOD = frozenset({"denied", "version", "policy", "malformed"})
"""Reasons that trying again does not change."""


class Refused(ConnectionError):  # noqa: N818 (it says what the daemon did)
    """The daemon answers, and does not let this program in; later it may."""


class DaemonAddress(msgspec.Struct, frozen=True):
    """Where a daemon is, and how to come in."""

    where: str
    """Path of a Unix socket, `tcp://HOST:PORT`, or `tls://HOST:PORT`."""
    token: str = ""
    certificates: str = ""
    """A PEM file of those who may vouch for the daemon, where the system's do not."""


class _Connection(asyncio.Protocol):
    """One connection: bytes for the link."""

    def __init__(self, link: "RemoteLink") -> None:
        self._stream = Stream(_LARGEST)
        self._link = link
        self.closed = asyncio.Event()
        self.transport: asyncio.Transport | None = None

    def connection_made(self, transport: asyncio.BaseTransport) -> None:
        assert isinstance(transport, asyncio.Transport)
        self.transport = transport

    def data_received(self, data: bytes) -> None:
        try:
            self._link.received(self, self._stream.feed(data))
        except Malformed:
            assert self.transport is not None
            self.transport.abort()

    def connection_lost(self, _exc: Exception | None) -> None:
        self.closed.set()
        self._link.lost(self)


class RemoteLink:
    """Of a program that is a client of a daemon.

    Args:
        place: of the daemon.
        name: of the program; empty for one that the daemon makes up.
        policy: what becomes of it if it is too slow.
        window: messages and other events that may be under way to it.
    """

    def __init__(
        self, place: DaemonAddress, name: str = "", policy: str = "purge", window: int = 16_384
    ) -> None:
        self.place = place
        self._options = name, place.token, policy, window
        self._caller = Caller(*self._options)
        self._connection: _Connection | None = None
        self._heard: Callable[[], None] = _nobody
        self._welcomed = asyncio.Event()
        self._queued: list[Request] = []  # for the end of this turn
        self._queued_messages = self._queued_bytes = 0
        self._flushing = False
        self._notified = False
        self._ready = False  # the program knows of the session
        self._resuming: asyncio.Task[None] | None = None
        self._out: str = ""  # why the session is over
        self._out_told = False
        self._closing = False

    # Life

    async def open(self, heard: Callable[[], None]) -> Terms:
        """Find the daemon. Raises GroupError where there is none."""
        self._heard = heard
        try:
            await self._begin()
        except Refused as error:
            raise GroupError(str(error)) from None
        except OSError as error:
            raise no_daemon(self.place.where, error) from error
        return self._opened()

    async def renew(self) -> Terms:
        """Begin another session, as soon as there is a daemon again."""
        self._drop()
        self._ready = False
        pause = _FIRST_PAUSE
        while True:
            self._caller = Caller(*self._options)
            self._queued.clear()
            self._queued_messages = self._queued_bytes = 0
            self._out, self._out_told = "", False
            try:
                await self._begin()
            except OSError:
                await asyncio.sleep(pause)
                pause = min(2 * pause, _LAST_PAUSE)
            else:
                return self._opened()

    async def close(self) -> None:
        """Say bye, behind everything that was submitted."""
        self._closing = True
        if self._resuming is not None:
            self._resuming.cancel()
        connection, self._connection = self._connection, None
        if connection is None or connection.transport is None:
            return
        if self._caller.connected and not self._out:
            self._flush_to(connection.transport)
            self._caller.bye()
            self._flush_to(connection.transport)
        connection.transport.close()
        try:
            with suppress(TimeoutError):
                await asyncio.wait_for(connection.closed.wait(), _CLOSE)
        finally:
            connection.transport.abort()

    async def _begin(self) -> None:
        """Connect, and wait for the welcome. Raises OSError; GroupError where trying again does not help."""
        await self._connect()
        try:
            await asyncio.wait_for(self._welcomed.wait(), _ANSWER)
        except TimeoutError:
            self._drop()
            raise ConnectionError("the daemon did not answer in time") from None
        ended = self._caller.ended
        if self._caller.connected:
            return
        self._drop()
        if ended is None:
            raise ConnectionError("the daemon closed the connection")
        cause = f"the daemon at {self.place.where} refuses: {ended.text}"
        if ended.code in _FOR_GOOD:
            raise GroupError(cause)
        raise Refused(cause)

    async def _connect(self) -> None:
        loop = asyncio.get_running_loop()
        self._welcomed.clear()

        def make() -> _Connection:
            self._connection = _Connection(self)
            return self._connection

        where = self.place.where
        if where.startswith(("tcp://", "tls://")):
            host, port = _split(where[6:])
            context = _context(self.place) if where.startswith("tls://") else None
            await loop.create_connection(make, host, port, ssl=context)
        else:
            await loop.create_unix_connection(make, where)
        self._caller.connect()
        self._flush()

    def _opened(self) -> Terms:
        """The session has begun; what has come already is told once the program knows that."""
        self._ready = True
        self._notify()
        welcome = self._caller.welcome
        assert welcome is not None
        most = max(1, welcome.messages // 4)
        holds = self._options[2] == "block"
        return Terms(welcome.member, most, welcome.run_bytes, MAX_MEMBERSHIPS, welcome.domain, holds)

    def _drop(self) -> None:
        connection, self._connection = self._connection, None
        if connection is not None and connection.transport is not None:
            connection.transport.abort()

    # From the daemon

    def received(self, connection: _Connection, bodies: list[bytes]) -> None:
        """Frames came. What an old connection still has to say is of no use."""
        if connection is not self._connection:
            return
        caller = self._caller
        caller.receive(bodies)
        if caller.connected or caller.ended is not None:
            self._welcomed.set()
        if caller.out:
            self._flush_soon()
        self._notify()

    def lost(self, connection: _Connection) -> None:
        """A connection broke: the session is over, unless it can be taken up again."""
        if connection is not self._connection or self._closing:
            return
        self._welcomed.set()
        self._connection = None
        caller = self._caller
        if caller.welcome is None or self._resuming is not None:
            return  # whoever waits for the welcome sees that
        if caller.resumable and caller.ended is None:
            caller.connected = False
            self._resuming = asyncio.get_running_loop().create_task(self._resume())
        else:
            self._end(caller.ended.text if caller.ended is not None else "the daemon is gone")

    async def _resume(self) -> None:
        """Within the time that the daemon keeps the session."""
        caller, pause = self._caller, _FIRST_PAUSE
        assert caller.welcome is not None
        try:
            async with asyncio.timeout(caller.welcome.grace):
                while True:
                    try:
                        await self._begin()
                        if self._connection is not None:
                            return
                    except OSError:
                        if caller.ended is not None:
                            break
                        await asyncio.sleep(pause)
                        pause = min(2 * pause, _LAST_PAUSE)
            self._end("the daemon knows the session no more")
        except (TimeoutError, GroupError):
            self._end("the connection broke, and the daemon was not reached in time")
        finally:
            self._resuming = None
            self._notify()

    def _end(self, cause: str) -> None:
        self._out = self._out or cause
        self._drop()
        self._notify()

    def _notify(self) -> None:
        if not self._notified and not self._closing:
            self._notified = True
            asyncio.get_running_loop().call_soon(self._wake)

    def _wake(self) -> None:
        self._notified = False
        if self._ready and not self._closing:
            self._heard()

    # By the program

    @property
    def over(self) -> bool:
        """Whether the session has ended."""
        return bool(self._out) or self._caller.ended is not None

    def room_for(self, messages: int, size: int) -> bool:  # noqa: ARG002 (the last may exceed the bound)
        """Whether so much may be sent now."""
        caller = self._caller
        if self.over or not caller.connected:
            return False
        return caller.messages - self._queued_messages >= messages and caller.bytes > self._queued_bytes

    def submit(self, request: Request) -> None:
        """Ask for something: it leaves at the end of this turn of the loop."""
        if self._out:
            return
        self._queued.append(request)
        self._queued_messages += numbers_of(request)
        self._queued_bytes += _size(request)
        self._flush_soon()

    def take(self) -> Sequence[ClientEvent | Refusal]:
        """The next events."""
        found = [self._event(heard) for heard in self._caller.take()]
        if found:
            self._flush_soon()
        elif self._out and not self._out_told:
            self._out_told = True
            return (Out(self._out),)
        if found and isinstance(found[-1], Out):
            self._out, self._out_told = self._out or found[-1].cause, True
        return found

    def _event(self, heard: Heard) -> ClientEvent | Refusal:
        if isinstance(heard, Denial):
            return Refusal(heard.seq, heard.count, heard.group, heard.text)
        return heard

    def _flush_soon(self) -> None:
        if not self._flushing:
            self._flushing = True
            asyncio.get_running_loop().call_soon(self._flush)

    def _flush(self) -> None:
        self._flushing = False
        if self._connection is not None and self._connection.transport is not None:
            self._flush_to(self._connection.transport)

    def _flush_to(self, transport: asyncio.Transport) -> None:
        caller = self._caller
        if caller.connected:
            self._ask(caller)
            caller.say_taken()
        bodies, caller.out = caller.out, []
        if bodies:
            transport.write(all_framed(bodies))

    def _ask(self, caller: Caller) -> None:
        """What was submitted; messages that go the same way as one run."""
        queued, self._queued = self._queued, []
        self._queued_messages = self._queued_bytes = 0
        place = 0
        while place < len(queued):
            request = queued[place]
            place += 1
            if type(request) is CastRequest:
                payloads = list(request.payloads)
                items = None if request.items is None else list(request.items)
                size = _size(request)
                while place < len(queued) and _alike(request, queued[place]) and size < _RUN_BYTES:
                    more = queued[place]
                    assert type(more) is CastRequest
                    payloads += more.payloads
                    if items is not None and more.items is not None:
                        items += more.items
                    size += _size(more)
                    place += 1
                caller.cast(request.groups, payloads, safe=request.safe, items=items)
            elif type(request) is JoinRequest:
                caller.join(request.group, vs=request.vs)
            elif type(request) is LeaveRequest:
                caller.leave(request.group)
            elif type(request) is PrivateRequest:
                caller.private(request.to, request.payload)
            else:
                assert type(request) is ReadyRequest
                caller.ready(request.group, request.view)


def _alike(one: CastRequest, other: Request) -> bool:
    return type(other) is CastRequest and one.alike(other)


def _size(request: Request) -> int:
    if type(request) is CastRequest:
        return request.size + 256
    return (len(request.payload) if type(request) is PrivateRequest else 0) + 256


def _split(text: str) -> tuple[str, int]:
    try:
        return split_address(text)
    except AddressError as error:
        raise ConfigurationError(str(error)) from error


def _context(place: DaemonAddress) -> ssl.SSLContext:
    try:
        return ssl.create_default_context(cafile=place.certificates or None)
    except OSError as error:
        raise ConfigurationError(f"certificates {place.certificates}: {error}") from error


def _nobody() -> None:
    """Nobody listens yet."""
