"""A tenant's place in a thread that waits for sockets, timers and applications.

The application lives in another thread: whatever it does, tokens and timers go on. The groups of a process
share one thread (`driving.py`). Two members of one group do not: each would have to wait for the other. Nor
does a tenant whose turns may take long.
"""

import os
import threading
from typing import Protocol

from semcast.net import switching
from semcast.net.driving import Driver, Place, Tenant

_LOCK = threading.Lock()
_shared: dict[str, Driver] = {}
"""The groups that are driven by the thread that is shared, while there is one."""


class Source(Protocol):
    """What a tenant is fed by: an exchange, which has to be in the same thread."""

    def board(self, driver: Driver) -> None:
        """The tenant begins to be driven by this thread."""

    def alight(self) -> None:
        """It is driven no more."""


class Loop:
    """Drives one tenant until it is closed.

    Args:
        name: of the thread, if it has one of its own.
        tenant: what is driven.
        group: that it belongs to, if it may share a thread with other groups.
        source: what feeds it, if it has no sockets of its own.
    """

    def __init__(self, name: str, tenant: Tenant, *, group: str = "", source: Source | None = None) -> None:
        self._name = name
        self._source = source
        self._group = group
        self._place = Place(tenant)
        self._driver: Driver | None = None

    @property
    def finished(self) -> bool:
        """Whether the tenant is driven no more, for whatever reason."""
        return self._place.gone.is_set()

    def start(self) -> None:
        """Let it take its first turn."""
        switching.hasten()
        self._driver = _lease(self._group) if self._group else None
        if self._driver is None:
            self._group = ""
            self._driver = Driver(self._name)
        if self._source is not None:
            self._source.board(self._driver)
        self._driver.add(self._place)

    def wake(self) -> None:
        """The application did something that the tenant should look at."""
        if not self._place.woken and self._driver is not None:
            self._driver.wake(self._place)

    def close(self) -> None:
        """Stop, and wait until the tenant has done what it was about."""
        driver, self._driver = self._driver, None
        if driver is None:
            self._place.gone.set()
            return
        driver.remove(self._place)
        if self._source is not None:
            self._source.alight()
        switching.relax()
        if not self._group or _give_back(self._group):
            driver.close()


def _lease(group: str) -> Driver | None:
    """The thread that is shared; None where it drives a member of this group already."""
    with _LOCK:
        if group in _shared:
            return None
        _shared[group] = next(iter(_shared.values()), None) or Driver("driver")
        return _shared[group]


def _give_back(group: str) -> bool:
    """It is shared by one less; returns whether that was the last."""
    with _LOCK:
        del _shared[group]
        return not _shared


def _forget() -> None:
    """In a child process, which has no thread of its parent."""
    global _LOCK  # noqa: PLW0603 (another thread of the parent may have held it)
    _LOCK = threading.Lock()
    _shared.clear()


os.register_at_fork(after_in_child=_forget)
