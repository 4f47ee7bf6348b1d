"""A loop: whoever wakes it while it makes up its mind to sleep is heard."""

import threading
import time
from collections.abc import Collection

from semcast.core.ids import SECOND, Nanos
from semcast.net.loop import Loop


class Tenant:
    def __init__(self) -> None:
        self.loop: Loop | None = None
        self.runs = 0
        self.error: BaseException | None = None
        self.ended = threading.Event()
        self.fails = False

    def filenos(self) -> Collection[int]:
        return ()

    def start(self, now: Nanos) -> None:
        pass

    def run(self, now: Nanos, ready: Collection[int]) -> None:
        self.runs += 1
        if self.fails:
            raise ZeroDivisionError("in the tenant")
        if self.runs == 3:
            self.ended.set()

    def next_at(self) -> Nanos:
        """It has nothing to do for an hour; but just now the application does something."""
        assert self.loop is not None
        if self.runs < 3:
            self.loop.wake()
        return time.monotonic_ns() + 3600 * SECOND

    def failed(self, error: BaseException) -> None:
        self.error = error
        self.ended.set()


def test_who_comes_while_it_falls_asleep_wakes_it() -> None:
    tenant = Tenant()
    tenant.loop = Loop("test", tenant)
    tenant.loop.start()
    assert tenant.ended.wait(5)
    tenant.loop.close()
    assert tenant.loop.finished
    assert tenant.error is None


def test_an_error_of_the_tenant_ends_the_thread_and_is_told() -> None:
    tenant = Tenant()
    tenant.fails = True
    tenant.loop = Loop("test", tenant)
    tenant.loop.start()
    assert tenant.ended.wait(5)
    assert isinstance(tenant.error, ZeroDivisionError)
    tenant.loop.close()
