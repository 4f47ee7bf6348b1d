"""A tenant's place in a thread that waits for sockets, timers and applications.

The application lives in another thread: whatever it does, tokens and timers go on. The groups of a process
share one thread (`driving.py`). Two members of one group do not: each would have to wait for the other. Nor
does a tenant whose turns may take long.
"""

import os
import threading
from collections.abc import Callable
from typing import Protocol

from semcast.net.driving import Driver, Driving, Tenancy, Tenant


class Feeder(Protocol):
    """What a tenant is fed by: an exchange, which has to be in the same thread."""

    def board(self, driver: Driving) -> None:
        """The tenant begins to be driven by this thread."""

    def alight(self) -> None:
        """It is driven no more."""


class Drivers:
    """The threads of a process: one for its groups, and more where that would not do.

    Args:
        make: starts a thread of this name; a simulated host has something else in its place.
    """

    def __init__(self, make: Callable[[str], Driving] = Driver) -> None:
        self._make = make
        self._lock = threading.Lock()
        self._shared: dict[str, Driving] = {}  # groups that are driven by the thread that is shared

    def lease(self, group: str) -> Driving | None:
        """The thread that is shared; None where it drives a member of this group already."""
        with self._lock:
            if group in self._shared:
                return None
            self._shared[group] = next(iter(self._shared.values()), None) or self._make("driver")
            return self._shared[group]

    def give_back(self, group: str) -> bool:
        """It is shared by one less; returns whether that was the last."""
        with self._lock:
            del self._shared[group]
            return not self._shared

    def another(self, name: str) -> Driving:
        """A thread that is not shared."""
        return self._make(name)

    def forget(self) -> None:
        """In a child process, which has no thread of its parent."""
        self._lock = threading.Lock()  # another thread of the parent may have held it
        self._shared.clear()


DRIVERS = Drivers()
"""Of this process."""
os.register_at_fork(after_in_child=DRIVERS.forget)


class Loop:
    """Drives one tenant until it is closed.

    Args:
        name: of the thread, if it has one of its own.
        tenant: what is driven.
        group: that it belongs to, if it may share a thread with other groups.
        source: what feeds it, if it has no sockets of its own.
        drivers: where threads come from.
    """

    def __init__(
        self,
        name: str,
        tenant: Tenant,
        *,
        group: str = "",
        source: Feeder | None = None,
        drivers: Drivers = DRIVERS,
    ) -> None:
        self._name = name
        self._source = source
        self._group = group
        self._place = Tenancy(tenant)
        self._drivers = drivers
        self._driver: Driving | None = None

    @property
    def finished(self) -> bool:
        """Whether the tenant is driven no more, for whatever reason."""
        return self._place.gone.is_set()

    def start(self) -> None:
        """Let it take its first turn."""
        self._driver = self._drivers.lease(self._group) if self._group else None
        if self._driver is None:
            self._group = ""
            self._driver = self._drivers.another(self._name)
        self._driver.add(self._place)  # first: what is read before would find nobody it is for
        if self._source is not None:
            self._source.board(self._driver)

    def wake(self) -> None:
        """The application did something that the tenant should look at."""
        if not self._place.woken and self._driver is not None:
            self._driver.wake(self._place)

    def push(self) -> None:
        """The same, and it should be done soon: here, where that is sooner."""
        place = self._place
        if place.woken:
            place.hurried = True
        elif self._driver is not None:
            self._driver.push(place)

    def close(self) -> None:
        """Stop, and wait until the tenant has done what it was about."""
        driver, self._driver = self._driver, None
        if driver is None:
            self._place.gone.set()
            return
        driver.remove(self._place)
        if self._source is not None:
            self._source.alight()
        if not self._group or self._drivers.give_back(self._group):
            driver.close()
