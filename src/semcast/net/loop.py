"""A thread that waits for sockets, timers and applications, and lets hubs take their turns.

The application lives in another thread: whatever it does, tokens and timers go on.
"""

import os
import select
import threading
import time
from collections.abc import Collection
from typing import Protocol

from semcast.core.ids import SECOND, Nanos
from semcast.net import switching


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


class Loop:
    """Drives one tenant until it is closed.

    Args:
        name: of the thread.
        tenant: what is driven.
    """

    def __init__(self, name: str, tenant: Tenant) -> None:
        self.finished = False
        """Whether the thread has ended, for whatever reason."""
        self._tenant = tenant
        self._wake_fd = os.eventfd(0, os.EFD_NONBLOCK | os.EFD_CLOEXEC)
        self._asleep = False
        self._closing = False
        self._hastened = False
        self._thread = threading.Thread(target=self._run, name=f"semcast {name}", daemon=True)

    # Called by the application's thread

    def start(self) -> None:
        """Start the thread."""
        switching.hasten()
        self._hastened = True
        self._thread.start()

    def wake(self) -> None:
        """The application did something that the tenant should look at."""
        if self._asleep and not self.finished:
            os.eventfd_write(self._wake_fd, 1)

    def close(self) -> None:
        """Stop, and wait until the thread has ended."""
        self._closing = True
        if not self.finished:
            os.eventfd_write(self._wake_fd, 1)
        if self._thread.is_alive() and self._thread is not threading.current_thread():
            self._thread.join()
        if self._hastened:
            self._hastened = False
            switching.relax()
        if self._wake_fd >= 0:
            os.close(self._wake_fd)
            self._wake_fd = -1

    # The thread

    def _run(self) -> None:
        error: BaseException | None = None
        try:
            self._drive()
        except BaseException as raised:  # the application is told, whatever it is
            error = raised
        finally:
            self.finished = True
        if error is not None:
            self._tenant.failed(error)

    def _drive(self) -> None:
        poll = select.epoll()
        try:
            poll.register(self._wake_fd, select.EPOLLIN)
            for fileno in self._tenant.filenos():
                poll.register(fileno, select.EPOLLIN)
            self._tenant.start(time.monotonic_ns())
            while not self._closing:
                ready = self._sleep(poll)
                self._tenant.run(time.monotonic_ns(), ready)
        finally:
            poll.close()

    def _sleep(self, poll: select.epoll) -> list[int]:
        """Wait for something to happen; returns the sockets at which it did."""
        self._asleep = True  # first: who comes from now on wakes it
        due = 0 if self._closing else self._tenant.next_at()
        timeout = max(0.0, (due - time.monotonic_ns()) / SECOND) if due else 0.0
        ready = [fileno for fileno, _ in poll.poll(timeout)]
        self._asleep = False
        if self._wake_fd in ready:
            os.eventfd_read(self._wake_fd)
        return ready
