"""The thread that lets the tenants of a process take their turns: as many groups as it has, one thread.

Each tenant is run when something happened at its sockets, when its application did something, or when it is
due. What a tenant does in one run is bounded (datagrams of a burst, calls of its application, a list for its
mailbox), so that one which is always busy leaves the others their turns.
"""

import os
import select
import threading
import time
from collections import deque
from collections.abc import Callable, Collection
from contextlib import suppress
from typing import Protocol

from semcast.core.ids import SECOND, Nanos
from semcast.net import memory, switching


class Tenant(Protocol):
    """What a loop drives: a hub."""

    def filenos(self) -> Collection[int]:
        """The sockets to wait for."""

    def start(self, now: Nanos) -> None:
        """Called once, in the loop's thread, before anything else."""

    def run(self, now: Nanos, ready: Collection[int]) -> None:
        """Something may have happened, at these sockets or elsewhere."""

    def next_at(self) -> Nanos:
        """When it wants to run again, even if nothing happens; 0 for at once."""

    def failed(self, error: BaseException) -> None:
        """It raised this, and is not driven any more."""


class Tenancy:
    """A tenant in a thread."""

    __slots__ = ("due", "filenos", "gone", "ready", "tenant", "woken")

    def __init__(self, tenant: Tenant) -> None:
        self.tenant = tenant
        self.woken = False
        """Its application did something. Set by any thread, before it wakes the thread of the tenant."""
        self.due: Nanos = 0
        self.ready: list[int] = []
        """Sockets at which something happened."""
        self.filenos: list[int] = []
        self.gone = threading.Event()
        """Set once it is not driven any more, for whatever reason."""


class Driving(Protocol):
    """Whatever lets tenants take their turns: a thread, or the virtual time of a simulated host."""

    def add(self, place: Tenancy) -> None:
        """Drive this one, too."""

    def remove(self, place: Tenancy) -> None:
        """Drive it no more; returns once that is so."""

    def dismiss(self, place: Tenancy) -> None:
        """Drive it no more, soon."""

    def wait_for(self, place: Tenancy) -> None:
        """Until it is driven no more."""

    def look_again(self, place: Tenancy) -> None:
        """There are more sockets to wait for."""

    def wake(self, place: Tenancy) -> None:
        """The application of a tenant did something."""

    def close(self) -> None:
        """Nobody is driven any more."""


Move = Callable[[select.epoll, Tenancy], None]


class Driver:
    """One thread, and the tenants that come and go while it runs.

    Args:
        name: of the thread.
    """

    def __init__(self, name: str) -> None:
        self._wake_fd = os.eventfd(0, os.EFD_NONBLOCK | os.EFD_CLOEXEC)
        self._asleep = False
        self._closing = False
        self._places: list[Tenancy] = []
        self._of: dict[int, Tenancy] = {}  # by socket
        self._moves: deque[tuple[Move, Tenancy]] = deque()  # who comes, goes, or has other sockets
        self._thread = threading.Thread(target=self._run, name=f"semcast {name}", daemon=True)
        switching.hasten()
        memory.keep()
        self._thread.start()

    # Called by any thread

    def add(self, place: Tenancy) -> None:
        """Drive this one, too."""
        self._move(self._come, place)

    def remove(self, place: Tenancy) -> None:
        """Drive it no more; returns once that is so."""
        self.dismiss(place)
        self.wait_for(place)

    def dismiss(self, place: Tenancy) -> None:
        """Drive it no more, soon."""
        self._move(self._drop, place)

    def wait_for(self, place: Tenancy) -> None:
        """Until it is driven no more."""
        if self._thread is not threading.current_thread():
            place.gone.wait()

    def look_again(self, place: Tenancy) -> None:
        """There are more sockets to wait for."""
        self._move(self._look_again, place)

    def _move(self, move: Move, place: Tenancy) -> None:
        self._moves.append((move, place))
        self.stir()

    def wake(self, place: Tenancy) -> None:
        """The application of a tenant did something."""
        if not place.woken:  # else its next turn is still to come, and somebody has seen to that
            place.woken = True  # first: who falls asleep looks at it afterwards
            self.stir()

    def stir(self) -> None:
        """Have the thread look, if it sleeps."""
        if self._asleep and self._wake_fd >= 0:
            self._asleep = False  # before the write: whoever comes next need not write again
            os.eventfd_write(self._wake_fd, 1)

    def close(self) -> None:
        """End the thread, once nobody is driven."""
        self._closing = True
        if self._thread.is_alive():
            os.eventfd_write(self._wake_fd, 1)
            if self._thread is not threading.current_thread():
                self._thread.join()
        os.close(self._wake_fd)
        self._wake_fd = -1
        switching.relax()

    # The thread

    def _run(self) -> None:
        poll = select.epoll()
        try:
            poll.register(self._wake_fd, select.EPOLLIN)
            while True:
                self._let_move(poll)
                if self._closing and not self._places:
                    return
                self._sleep(poll)
                self._take_turns(poll)
        except BaseException as error:
            for place in self._places:
                self._fail(poll, place, error)
            raise
        finally:
            self._asleep = False
            poll.close()

    def _let_move(self, poll: select.epoll) -> None:
        while self._moves:
            move, place = self._moves.popleft()
            move(poll, place)

    def _come(self, poll: select.epoll, place: Tenancy) -> None:
        try:
            self._places.append(place)
            self._watch(poll, place)
            place.tenant.start(time.monotonic_ns())
            place.due = place.tenant.next_at()
        except BaseException as error:  # the application is told, whatever it is
            self._fail(poll, place, error)

    def _look_again(self, poll: select.epoll, place: Tenancy) -> None:
        try:
            self._watch(poll, place)
        except OSError as error:
            self._fail(poll, place, error)

    def _watch(self, poll: select.epoll, place: Tenancy) -> None:
        if place in self._places:
            for fileno in place.tenant.filenos():
                if fileno not in place.filenos:
                    poll.register(fileno, select.EPOLLIN)
                    self._of[fileno] = place
                    place.filenos.append(fileno)

    def _take_turns(self, poll: select.epoll) -> None:
        for place in self._places:
            now = time.monotonic_ns()
            if place.ready or place.woken or place.due <= now:
                ready, place.ready, place.woken = place.ready, [], False
                try:
                    place.tenant.run(now, ready)
                    place.due = place.tenant.next_at()
                except BaseException as error:
                    self._fail(poll, place, error)

    def _fail(self, poll: select.epoll, place: Tenancy, error: BaseException) -> None:
        """One tenant ends with an error, and the others go on."""
        self._drop(poll, place)
        place.tenant.failed(error)

    def _drop(self, poll: select.epoll, place: Tenancy) -> None:
        if place in self._places:
            self._places = [each for each in self._places if each is not place]  # they may be taking turns
            for fileno in place.filenos:
                del self._of[fileno]
                with suppress(OSError):  # closed, by whatever made it fail
                    poll.unregister(fileno)
        place.gone.set()

    def _sleep(self, poll: select.epoll) -> None:
        """Wait for something to happen, and note for whom."""
        self._asleep = True  # first: who comes from now on wakes it
        timeout = self._pause()
        for fileno, _ in poll.poll(timeout):
            place = self._of.get(fileno)
            if place is not None:
                place.ready.append(fileno)
            elif fileno == self._wake_fd:
                os.eventfd_read(self._wake_fd)
        self._asleep = False

    def _pause(self) -> float | None:
        """How long nothing has to be done; None for until something happens."""
        if self._closing or self._moves:
            return 0.0
        soonest: Nanos | None = None
        for place in self._places:
            if place.woken or not place.due:
                return 0.0
            if soonest is None or place.due < soonest:
                soonest = place.due
        return None if soonest is None else max(0.0, (soonest - time.monotonic_ns()) / SECOND)
