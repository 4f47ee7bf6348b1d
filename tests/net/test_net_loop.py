"""A loop: whoever wakes it while it makes up its mind to sleep is heard; and tenants that share a thread."""

import os
import signal
import threading
import time
from collections.abc import Collection
from itertools import count

import pytest

from semcast.core.ids import SECOND, Nanos
from semcast.net.driving import Driving, Tenancy
from semcast.net.loop import Loop


class Tenant:
    def __init__(self, *, filenos: Collection[int] = ()) -> None:
        self.loop: Loop | None = None
        self.runs = 0
        self.error: BaseException | None = None
        self.ended = threading.Event()
        self.fails = False
        self.ready: list[int] = []
        self.thread: threading.Thread | None = None
        self._filenos = filenos

    def filenos(self) -> Collection[int]:
        return self._filenos

    def start(self, now: Nanos) -> None:
        self.thread = threading.current_thread()

    def run(self, now: Nanos, ready: Collection[int]) -> None:
        self.runs += 1
        self.ready += ready
        for fileno in ready:
            os.read(fileno, 100)
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


class Busy(Tenant):
    """One that has always something to do."""

    def next_at(self) -> Nanos:
        return 0


_GROUPS = count()


def started(tenant: Tenant, group: str | None = None) -> Loop:
    tenant.loop = Loop("test", tenant, group=f"group {next(_GROUPS)}" if group is None else group)
    tenant.loop.start()
    return tenant.loop


def drivers() -> list[str]:
    return [thread.name for thread in threading.enumerate() if thread.name.startswith("semcast ")]


def test_who_comes_while_it_falls_asleep_wakes_it() -> None:
    tenant = Tenant()
    loop = started(tenant)
    assert tenant.ended.wait(5)
    loop.close()
    assert loop.finished
    assert tenant.error is None
    assert not drivers()


def test_an_error_of_the_tenant_ends_it_and_is_told() -> None:
    tenant = Tenant()
    tenant.fails = True
    loop = started(tenant)
    assert tenant.ended.wait(5)
    assert isinstance(tenant.error, ZeroDivisionError)
    assert loop.finished
    loop.close()
    assert not drivers()


def test_an_error_of_one_tenant_leaves_the_others_alone() -> None:
    good, bad = Tenant(), Tenant()
    bad.fails = True
    loops = [started(bad), started(good)]
    assert good.ended.wait(5)
    assert bad.ended.wait(5)
    assert good.thread is bad.thread
    assert (good.error, type(bad.error)) == (None, ZeroDivisionError)
    loops[0].close()
    assert drivers() == ["semcast driver"]
    assert not loops[1].finished
    loops[1].close()
    assert not drivers()


class Noting(Tenant):
    """One that notes in which thread it runs, and has something to do a moment after the application had."""

    def __init__(self) -> None:
        super().__init__()
        self.where: list[threading.Thread] = []
        self.raises: BaseException | None = None
        self.due: Nanos = 0

    def run(self, now: Nanos, ready: Collection[int]) -> None:
        self.where.append(threading.current_thread())
        if self.raises is not None:
            raise self.raises

    def next_at(self) -> Nanos:
        due, self.due = self.due, 0
        return due or time.monotonic_ns() + 3600 * SECOND


def push_until_it_runs_here(tenant: Noting, loop: Loop) -> None:
    """Now and then, until the thread of the loop is found asleep."""
    deadline = time.monotonic() + 5
    while threading.current_thread() not in tenant.where:
        assert time.monotonic() < deadline
        time.sleep(0.002)
        loop.push()


def test_who_hands_something_over_now_and_then_takes_the_turn_itself() -> None:
    tenant = Noting()
    loop = started(tenant)
    push_until_it_runs_here(tenant, loop)
    loop.close()
    assert tenant.error is None


def test_who_hands_over_much_leaves_it_to_the_thread() -> None:
    tenant = Noting()
    loop = started(tenant)
    push_until_it_runs_here(tenant, loop)
    tenant.where.clear()
    loop.push()
    loop.push()
    deadline = time.monotonic() + 5
    while not tenant.where:
        assert time.monotonic() < deadline
        time.sleep(0.001)
    loop.close()
    assert {*tenant.where} == {tenant.thread}


def test_what_is_due_after_a_turn_in_another_thread_is_done_in_time() -> None:
    tenant = Noting()
    loop = started(tenant)
    push_until_it_runs_here(tenant, loop)
    deadline = time.monotonic() + 5
    while tenant.where[-1] is not tenant.thread:
        assert time.monotonic() < deadline
        time.sleep(0.002)
        if tenant.where[-1] is not tenant.thread:
            tenant.due = time.monotonic_ns() + SECOND // 1000
            loop.push()
        time.sleep(0.02)
    loop.close()


def test_an_error_in_a_turn_of_the_application_ends_the_tenant() -> None:
    tenant = Noting()
    loop = started(tenant)
    push_until_it_runs_here(tenant, loop)
    tenant.raises = ZeroDivisionError("in the tenant")
    tenant.where.clear()
    push_until_it_runs_here(tenant, loop)
    assert tenant.ended.wait(5)
    assert tenant.error is tenant.raises
    loop.close()


def test_who_is_interrupted_in_a_turn_of_its_own_is_told_so() -> None:
    tenant = Noting()
    loop = started(tenant)
    push_until_it_runs_here(tenant, loop)
    tenant.raises = KeyboardInterrupt()
    tenant.where.clear()
    with pytest.raises(KeyboardInterrupt):
        push_until_it_runs_here(tenant, loop)
    assert tenant.ended.wait(5)
    loop.close()


class Interrupted(Noting):
    """Ctrl-C comes in the middle of its turns."""

    def __init__(self) -> None:
        super().__init__()
        self.begun = self.whole = 0
        self.signals: list[int] = []

    def run(self, now: Nanos, ready: Collection[int]) -> None:
        super().run(now, ready)
        self.begun += 1
        if threading.current_thread() is threading.main_thread():
            for number in self.signals:
                signal.raise_signal(number)
        self.whole += 1


def test_a_turn_of_the_application_ends_before_it_is_interrupted() -> None:
    tenant = Interrupted()
    loop = started(tenant)
    push_until_it_runs_here(tenant, loop)
    tenant.where.clear()
    tenant.signals = [signal.SIGINT]
    with pytest.raises(KeyboardInterrupt):
        push_until_it_runs_here(tenant, loop)
    assert signal.getsignal(signal.SIGINT) is signal.default_int_handler
    tenant.where.clear()
    tenant.signals = []
    push_until_it_runs_here(tenant, loop)  # it goes on
    loop.close()
    assert (tenant.error, tenant.whole) == (None, tenant.begun)


def test_all_handlers_are_called_after_a_turn_although_one_raises() -> None:
    called = []
    before = signal.signal(signal.SIGUSR1, lambda number, _frame: called.append(number))
    tenant = Interrupted()
    loop = started(tenant)
    tenant.signals = [signal.SIGINT, signal.SIGUSR1]
    try:
        with pytest.raises(KeyboardInterrupt):
            push_until_it_runs_here(tenant, loop)
    finally:
        signal.signal(signal.SIGUSR1, before)
    assert called == [signal.SIGUSR1]
    assert tenant.error is None
    loop.close()


def test_one_that_is_always_busy_leaves_the_others_their_turns() -> None:
    busy, other = Busy(), Tenant()
    loops = [started(busy), started(other)]
    assert other.ended.wait(5)
    runs = other.runs
    loops[1].wake()
    deadline = time.monotonic() + 5
    while other.runs == runs and time.monotonic() < deadline:
        time.sleep(0.001)
    assert other.runs > runs
    for loop in loops:
        loop.close()


def test_each_hears_of_its_own_sockets() -> None:
    read, write = os.pipe()
    with os.fdopen(read, "rb", 0), os.fdopen(write, "wb", 0) as end:
        quiet, heard = Tenant(), Tenant(filenos=[read])
        loops = [started(quiet), started(heard)]
        assert quiet.ended.wait(5)
        assert heard.ended.wait(5)
        runs = quiet.runs
        end.write(b"x")
        deadline = time.monotonic() + 5
        while not heard.ready and time.monotonic() < deadline:
            time.sleep(0.001)
        assert (heard.ready, quiet.ready, quiet.runs) == ([read], [], runs)
        for loop in loops:
            loop.close()


def test_one_whose_turns_take_long_has_a_thread_of_its_own() -> None:
    slow, other = Tenant(), Tenant()
    loops = [started(slow, group=""), started(other)]
    assert slow.ended.wait(5)
    assert other.ended.wait(5)
    assert sorted(drivers()) == ["semcast driver", "semcast test"]
    for loop in loops:
        loop.close()
    assert not drivers()


def test_two_members_of_a_group_do_not_wait_for_each_other() -> None:
    tenants = [Tenant(), Tenant(), Tenant()]
    loops = [started(tenant, group) for tenant, group in zip(tenants, ("a", "a", "b"), strict=True)]
    for tenant in tenants:
        assert tenant.ended.wait(5)
    assert tenants[0].thread is tenants[2].thread
    assert sorted(drivers()) == ["semcast driver", "semcast test"]
    loops[0].close()
    again = Tenant()
    loops.append(started(again, "a"))
    assert again.ended.wait(5)
    assert again.thread is tenants[2].thread
    for loop in loops[1:]:
        loop.close()
    assert not drivers()


def test_tenants_come_and_go_in_many_threads() -> None:
    def work() -> None:
        for _ in range(30):
            tenant = Tenant()
            loop = started(tenant)
            assert tenant.ended.wait(5)
            loop.close()
            assert loop.finished

    threads = [threading.Thread(target=work) for _ in range(4)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join(30)
        assert not thread.is_alive()
    assert not drivers()


def test_a_tenant_starts_before_its_source_reads() -> None:
    """What was read before would be for nobody, and counted as strange."""
    order: list[str] = []

    class Recording(Busy):
        def __init__(self, name: str) -> None:
            super().__init__()
            self.name = name

        def start(self, now: Nanos) -> None:
            order.append(self.name)
            super().start(now)

    class Source:
        def board(self, driver: Driving) -> None:
            self.driver, self.place = driver, Tenancy(Recording("source"))
            driver.add(self.place)

        def alight(self) -> None:
            self.driver.remove(self.place)

    loop = Loop("test", Recording("tenant"), source=Source())
    loop.start()
    loop.close()
    assert order == ["tenant", "source"]
