"""A daemon at work: one thread that drives its member and serves its clients.

Clients never wait for each other: each is read a portion at a time, and what a socket does not take stays in
the queue of its session.
"""

import resource
import select
import socket
import ssl
import time
from collections.abc import Callable, Sequence
from contextlib import suppress
from secrets import token_urlsafe

from semcast.core.ids import SECOND, Nanos
from semcast.daemon.about import About
from semcast.daemon.access import Access
from semcast.daemon.connections import Connection
from semcast.daemon.doors import Door
from semcast.daemon.member import DaemonMember
from semcast.daemon.metrics import text_of
from semcast.protocols.clients.codec import Malformed
from semcast.protocols.clients.guests import Link
from semcast.protocols.clients.host import Host, HostSettings

_LINGER: Nanos = SECOND
"""How long a connection that ends may take for what it is still told."""
_LEAVE: Nanos = 3 * SECOND
"""How long the daemon may take to leave."""
_AT_A_TIME = 64
"""Sockets that are looked at in a turn: a token must not wait for hundreds of clients."""
_FILES = 64
"""Descriptors that are not for clients."""


class DaemonServer:
    """One daemon.

    Args:
        member: its place on the ring.
        doors: where clients come in.
        access: who may.
        settings: of connections.
    """

    def __init__(
        self, member: DaemonMember, doors: Sequence[Door], access: Access, settings: HostSettings
    ) -> None:
        self.member = member
        self.doors = list(doors)
        self.access = access
        self.started_at = time.monotonic_ns()
        self.host = Host(
            member.stack.machine,
            settings,
            permissions=access.permissions,
            authenticate=access.of_token,
            secret=token_urlsafe,
            wall=_milliseconds,
            about=About(self).answer,
        )
        self.connections: dict[int, Connection] = {}
        self._most = min(
            member.stack.settings.clients + _FILES, resource.getrlimit(resource.RLIMIT_NOFILE)[0] - _FILES
        )
        self._poll = select.epoll()
        self._wake_in, self._wake_out = socket.socketpair()
        self._links: dict[Link, Connection] = {}
        self._ending: dict[Connection, Nanos] = {}
        self.on_settled: Callable[[], None] = _nothing
        """Called once, when the member has looked for others and begun to work."""
        self._settled = False
        self._left = False  # the member was told to leave
        self._stopping: Nanos | None = None
        self._reload = False
        self._due: Nanos | None = None

    # About it

    @property
    def places(self) -> list[str]:
        """Where clients come in, for people."""
        return [door.place for door in self.doors if door.metrics is None]

    @property
    def metrics_place(self) -> str:
        """Where metrics are served; empty where they are not."""
        return next((door.place for door in self.doors if door.metrics is not None), "")

    def metrics(self) -> str:
        """For Prometheus."""
        return text_of(self, time.monotonic_ns())

    # From signals and other threads

    def stop(self) -> None:
        """Leave the ring, and end."""
        self._stopping = self._stopping or time.monotonic_ns()
        self._wake()

    def reload(self) -> None:
        """Read keys, tokens and rules again."""
        self._reload = True
        self._wake()

    def _wake(self) -> None:
        with suppress(BlockingIOError):
            self._wake_out.send(b"!")

    # The loop

    def run(self) -> None:
        """Until it is told to stop, or its member has left."""
        self._wake_in.setblocking(False)
        self._wake_out.setblocking(False)
        self._poll.register(self._wake_in, select.EPOLLIN)
        of_hub = set(self.member.tenant.filenos())
        for fileno in of_hub:
            self._poll.register(fileno, select.EPOLLIN)
        for door in self.doors:
            self._poll.register(door.socket, select.EPOLLIN)
        try:
            self.member.tenant.start(time.monotonic_ns())
            while not self._over():
                self._turn(of_hub)
        finally:
            self._close()

    def _over(self) -> bool:
        seat = self.member.seat
        if seat.failure is not None:
            raise seat.failure
        late = self._stopping is not None and time.monotonic_ns() - self._stopping > _LEAVE
        return seat.left is not None or late

    def _timeout(self) -> float:
        dues = [
            at for at in (self.member.tenant.next_at(), self._due, *self._ending.values()) if at is not None
        ]
        if self._stopping is not None:
            dues.append(self._stopping + _LEAVE)
        return max(0.0, (min(dues) - time.monotonic_ns()) / SECOND)

    def _turn(self, of_hub: set[int]) -> None:
        events = self._poll.poll(self._timeout(), _AT_A_TIME)
        now = time.monotonic_ns()
        ready = [fileno for fileno, _ in events if fileno in of_hub]
        if len(events) == _AT_A_TIME:
            ready = list(of_hub)  # the ring does not wait until all clients had their turn
        stirred: dict[Connection, None] = {}
        for fileno, mask in events:
            if fileno not in of_hub:
                self._attend(now, fileno, mask, stirred)
        self._tend(now)
        if any(fileno not in of_hub for fileno, _ in events):
            self.member.settle()
        self.member.tenant.run(now, ready)
        for link in self.host.flush():
            stirred[self._links[link]] = None
        for connection in stirred:
            self._write(now, connection)
        if not self._settled and self.member.seat.settled:
            self._settled = True
            self.on_settled()

    def _attend(self, now: Nanos, fileno: int, mask: int, stirred: dict[Connection, None]) -> None:
        connection = self.connections.get(fileno)
        if connection is None:
            self._let_in(now, fileno)
            return
        if mask & select.EPOLLOUT:
            self._write(now, connection)
            self.host.writable(connection.link)
        if mask & ~select.EPOLLOUT and connection.fileno() >= 0:
            self._read(now, connection)
        if connection.fileno() >= 0:
            stirred[connection] = None

    def _let_in(self, now: Nanos, fileno: int) -> None:
        if fileno == self._wake_in.fileno():
            self._wake_in.recv(4096)
            return
        door = next(door for door in self.doors if door.socket.fileno() == fileno)
        for _ in range(64):
            connection = door.let_in(now)
            if connection is None:
                return
            if len(self.connections) >= self._most:
                connection.socket.close()
                continue
            self.connections[connection.fileno()] = self._links[connection.link] = connection
            self._poll.register(connection.fileno(), select.EPOLLIN)
            self.host.opened(connection.link)
            self._due = now + self.host.settings.hello_timeout if self._due is None else self._due

    def _read(self, now: Nanos, connection: Connection) -> None:
        link = connection.link
        try:
            bodies = connection.read()
        except Malformed as error:
            self.host.fail(link, "malformed", str(error))
            return
        except (OSError, ssl.SSLError) as error:
            self._break(now, connection, str(error))
            return
        if bodies is None:
            self._break(now, connection, "it closed the connection")
            return
        for body in bodies:
            self.host.heard(link, body)

    def _write(self, now: Nanos, connection: Connection) -> None:
        if connection.fileno() < 0:
            return
        try:
            done = connection.write()
        except (OSError, ssl.SSLError) as error:
            self._break(now, connection, str(error))
            return
        if done and connection.link.over:
            self._break(now, connection, connection.link.over)
            return
        if connection.waits == done:
            connection.waits = not done
            # Nothing is read from who does not read: else it could have us answer, and keep the answers.
            self._poll.modify(connection.fileno(), select.EPOLLIN if done else select.EPOLLOUT)
        if connection.link.over:
            self._ending.setdefault(connection, now + _LINGER)

    def _break(self, now: Nanos, connection: Connection, cause: str) -> None:
        """It is no more."""
        self._poll.unregister(connection.fileno())
        del self.connections[connection.fileno()]
        self._links.pop(connection.link, None)
        self._ending.pop(connection, None)
        connection.socket.close()
        self.host.broken(now, connection.link, cause)
        self._due = 0  # its session may wait for it

    def _tend(self, now: Nanos) -> None:
        if self._due is not None and self._due <= now:
            self._due = self.host.tend(now)
            for link in [link for link in self._links if link.over]:
                self._ending.setdefault(self._links[link], now + _LINGER)
        for connection, due in list(self._ending.items()):
            if due <= now:
                self._break(now, connection, "it does not take what it is told")
        if self._reload:
            self._reload = False
            self.member.reload()
            self.access.reload()
            self.host.permissions = self.access.permissions
        if self._stopping is not None and not self._left:
            self._left = True
            self.member.seat.leave()

    def _close(self) -> None:
        now = time.monotonic_ns()
        for link in self.host.flush():
            self._write(now, self._links[link])
        for connection in self.connections.values():
            connection.socket.close()
        for door in self.doors:
            door.close()
        self._poll.close()
        self._wake_in.close()
        self._wake_out.close()
        self.member.close()


def _nothing() -> None:
    """Nobody wants to know."""


def _milliseconds() -> int:
    return time.time_ns() // 1_000_000
