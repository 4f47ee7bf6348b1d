"""The thread that lets the tenants of a process take their turns: as many groups as it has, one thread.

Each tenant is run when something happened at its sockets, when its application did something, or when it is
due. What a tenant does in one run is bounded (datagrams of a burst, calls of its application, a list for its
mailbox), so that one which is always busy leaves the others their turns.

An application that hands over a message now and then need not wait until the thread is awake: where that
sleeps, it takes the turn of its tenant itself. There is a lock that whoever takes turns holds.
"""

import os
import select
import threading
import time
from collections import deque
from collections.abc import Callable, Collection
from contextlib import suppress
from typing import Protocol

from semcast.core.ids import MICROSECOND, SECOND, Nanos
from semcast.net import memory, switching
from semcast.net.signals import Signals

_NOW_AND_THEN: Nanos = 300 * MICROSECOND
"""An application that handed something over less than this before, or did so the time before, leaves it to
the thread, which takes many messages in one turn."""

_EVER: Nanos = 1 << 62


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
    """A tenant in a thread.

    Args:
        tenant: who is driven.
        feeds: whether it wakes others: its turn comes before theirs, so that they need not wait for another.
    """

    __slots__ = ("due", "feeds", "filenos", "gone", "hurried", "pushed_at", "ready", "tenant", "woken")

    def __init__(self, tenant: Tenant, *, feeds: bool = False) -> None:
        self.tenant = tenant
        self.feeds = feeds
        self.woken = False
        """Its application did something. Set by any thread, before it wakes the thread of the tenant."""
        self.pushed_at: Nanos = 0
        """When its application last handed something over, and no turn was to come already."""
        self.hurried = False
        """Whether it did so soon after the time before."""
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

    def push(self, place: Tenancy) -> None:
        """The same, and it should be done as soon as possible: in the thread of the application, perhaps."""

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
        self._turning = threading.Lock()
        self._sleeps_until: Nanos = 0
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

    def push(self, place: Tenancy) -> None:
        """The application handed something over: let it take the turn, where the thread sleeps."""
        now = time.monotonic_ns()
        hurried, place.hurried = place.hurried, now - place.pushed_at < _NOW_AND_THEN
        place.pushed_at = now
        if not self._asleep or hurried or place.hurried:
            self.wake(place)
            return
        signals = Signals()
        try:
            signals.hold()
            self._turn_here(now, place)
        except BaseException:  # it was interrupted before its turn
            self.wake(place)
            raise
        finally:
            signals.let_go()

    def _turn_here(self, now: Nanos, place: Tenancy) -> None:
        if not self._turning.acquire(blocking=False):
            self.wake(place)
            return
        error: BaseException | None = None
        try:
            if place in self._places:
                error = self._take_turn(now, place)
        finally:
            self._turning.release()
        if self._moves or place.due < self._sleeps_until:
            self.stir()
        if error is not None and not isinstance(error, Exception):
            raise error  # of the application: another thread has ended it

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
                self._take_turns()
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
            with self._turning:
                move(poll, place)

    def _come(self, poll: select.epoll, place: Tenancy) -> None:
        try:
            self._places.insert(0 if place.feeds else len(self._places), place)
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

    def _take_turns(self) -> None:
        for place in self._places:
            with self._turning:
                now = time.monotonic_ns()
                if place.ready or place.woken or place.due <= now:
                    self._take_turn(now, place)

    def _take_turn(self, now: Nanos, place: Tenancy) -> BaseException | None:
        """Returns what it raised: then it is driven no more."""
        ready, place.ready, place.woken = place.ready, [], False
        try:
            place.tenant.run(now, ready)
            place.due = place.tenant.next_at()
        except BaseException as raised:
            error = raised
            self._moves.append((lambda poll, place: self._fail(poll, place, error), place))
            return error
        return None

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
        with self._turning:  # who takes a turn afterwards sees how long the thread sleeps
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
        self._sleeps_until = _EVER
        for place in self._places:
            if place.woken or not place.due:
                return 0.0
            self._sleeps_until = min(self._sleeps_until, place.due)
        if self._sleeps_until == _EVER:
            return None
        return max(0.0, (self._sleeps_until - time.monotonic_ns()) / SECOND)
