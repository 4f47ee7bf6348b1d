"""One program on a host of a simulated world: what it runs on, and how it ends."""

import asyncio
import inspect
import signal
import socket
from collections.abc import Callable, Coroutine, Mapping, Sequence
from contextlib import suppress
from contextvars import Context, copy_context
from pathlib import Path
from random import Random
from typing import Any

from semcast.core.events import Delivery
from semcast.core.ids import MemberId, Nanos
from semcast.core.messages import Batch
from semcast.group.errors import ConfigurationError
from semcast.group.machine import MACHINE, Pace
from semcast.group.settings import GroupSettings
from semcast.group.stacks import Parts
from semcast.history import RunInfo
from semcast.net.addresses import Address, AddressError, find_address, split_address
from semcast.net.loop import Drivers
from semcast.net.sharing import Exchanges
from semcast.testing.disk import Platter, SimulatedDisk
from semcast.testing.driver import TurnDriver
from semcast.testing.errors import WorldError
from semcast.testing.host import WorldHost
from semcast.testing.lan import SimulatedSockets, address_of
from semcast.testing.loop import NumberedTask, ProcessLoop
from semcast.testing.records import Records
from semcast.testing.scribe import Scribe
from semcast.testing.standins import EPOCH

Program = Callable[..., Coroutine[Any, Any, Any]]
"""An `async def`: what a process runs."""


class Process:
    """A program that runs, or ran. Made by `World.start`; also the `Machine` of its groups.

    Args:
        host: that it is on.
        number: of the process, among those of the world.
        rng: draws what it draws.
        records: what its members do.
    """

    def __init__(self, host: WorldHost, number: int, rng: Random, records: Records) -> None:
        self.host = host
        self.number = number
        self.simulated = True
        self.environment: Mapping[str, str] = {}
        self.random_bytes: Callable[[int], bytes] = rng.randbytes
        self.exchanges = Exchanges(self._open_sockets)
        self.drivers = Drivers(self._drive)
        self.pace: Pace | None = self._pace
        self.on_end: Callable[[Process], None] = _nobody
        """Called once its program has ended, however it did."""
        self._rng = rng
        self._records = records
        self._scheduler = host.lan.scheduler
        self._context: Context = copy_context()
        self._context.run(MACHINE.set, self)
        self._loop = ProcessLoop(self._scheduler, self._context)
        self._driving: list[TurnDriver] = []
        self._sockets: list[SimulatedSockets] = []
        self._scribes: list[Scribe] = []
        self._disks: list[SimulatedDisk] = []
        self._task: NumberedTask | None = None
        self._stopping = False

    def __repr__(self) -> str:
        return f"process {self.number} on {self.host.name}"

    # For tests

    @property
    def done(self) -> bool:
        """Whether its program has ended, or it crashed."""
        return self._loop.dead

    @property
    def crashed(self) -> bool:
        """Whether it is gone without the program's doing."""
        return self.done and (self._task is None or not self._task.done())

    def result(self) -> Any:
        """What its program returned; raises what it raised."""
        if self.crashed:
            raise WorldError(f"{self} crashed: it has no result")
        if not self.done or self._task is None:
            raise WorldError(f"{self} has not ended: {self.where()}")
        return None if self._task.cancelled() else self._task.result()

    @property
    def failure(self) -> BaseException | None:
        """What its program raised, if it did."""
        if self._task is None or not self._task.done() or self._task.cancelled():
            return None
        return self._task.exception()

    def where(self) -> str:
        """Where its program waits."""
        frames = [] if self._task is None else self._task.get_stack()
        if not frames:
            return "it does not wait for anything"
        frame = frames[-1]
        return f"it waits in {frame.f_code.co_name}, {Path(frame.f_code.co_filename).name}:{frame.f_lineno}"

    # For its world

    def run(self, program: Program, arguments: Sequence[Any]) -> None:
        """Start its program."""

        def begin() -> None:
            coroutine = program(*arguments)
            if not inspect.iscoroutine(coroutine):
                raise WorldError(f"{program!r} is no `async def`: it returned {type(coroutine).__name__}")
            task = self._loop.create_task(coroutine)
            assert isinstance(task, NumberedTask)
            self._task = task
            task.add_done_callback(lambda _: self._on_done())

        self._context.copy().run(begin)

    def stop(self) -> None:
        """As SIGTERM does it: what the program asked for is called, or its task is cancelled."""
        if self.done or self._stopping:
            return
        self._stopping = True
        handler = self._loop.signals.get(signal.SIGTERM) or self._loop.signals.get(signal.SIGINT)
        if handler is not None:
            self._loop.call_soon(handler)
        elif self._task is not None:
            self._loop.call_soon(self._task.cancel)

    def crash(self) -> None:
        """As SIGKILL does it: nothing of it runs any more."""
        if not self.done:
            for scribe in self._scribes:
                scribe.crash()
            self._vanish()

    def pause(self) -> None:
        """As SIGSTOP does it."""
        self._loop.paused = True
        for driver in self._driving:
            driver.paused = True

    def resume(self) -> None:
        """As SIGCONT does it."""
        if not self.done:
            self._loop.resume()
            for driver in self._driving:
                driver.resume()

    def bury(self) -> None:
        """The world is over: let go of what waits in vain, without a word."""
        self._vanish()
        buried: set[asyncio.Task[Any]] = set()
        with self._loop.running():  # what is closed may still begin something
            while tasks := asyncio.all_tasks(self._loop) - buried:
                for task in sorted(tasks, key=hash):
                    buried.add(task)
                    task._log_destroy_pending = False  # type: ignore[attr-defined]
                    _close(task.get_coro())

    def _on_done(self) -> None:
        """The program has returned or raised: what else runs there is cancelled, and the process ends."""
        others = sorted((each for each in asyncio.all_tasks(self._loop) if each is not self._task), key=hash)
        for task in others:
            task.cancel()
        if others and not self.done:
            gathered = asyncio.gather(*others, return_exceptions=True)
            gathered.add_done_callback(lambda _: self._exit())
        else:
            self._exit()

    def _exit(self) -> None:
        for scribe in self._scribes:
            scribe.crash()  # of groups that were not left
        self._vanish()
        self.on_end(self)

    def _vanish(self) -> None:
        self._loop.end()
        for disk in self._disks:
            disk.crash()
        for driver in self._driving:
            driver.end()
        for each in self._sockets:
            each.close()

    # What its groups run on

    @property
    def name(self) -> str:
        """Of the host."""
        return self.host.name

    def clock(self) -> Nanos:
        """Virtual time."""
        return self._scheduler.now

    def wall(self) -> Nanos:
        """Virtual time, since 1970."""
        return EPOCH + self._scheduler.now

    def chance(self) -> Random:
        """Drawn from the seed."""
        return Random(self._rng.getrandbits(64))

    def home(self, *, sealed: bool) -> str:  # noqa: ARG002
        """The address of the host: its network is its own."""
        return address_of(self.host.number)

    def exposed(self, address: Address) -> bool:  # noqa: ARG002
        """Nobody else is on that network."""
        return False

    def find(self, text: str, family: socket.AddressFamily | None, *, any_port: bool) -> Address:
        """An address, or the name of a host of the world; nobody else is asked."""
        host, port = split_address(text, any_port=any_port)
        known = self.host.lan.lookup(host)
        if known is not None:
            return known, port
        if not host.replace(".", "").isdigit() and host != "localhost":
            raise AddressError(f"{text!r}: there is no host {host!r} in this world")
        return find_address(text, family, any_port=any_port)

    def open_disk(self, data: Path, group: str, name: str) -> SimulatedDisk:
        """On the disk of the host."""
        key = str(data), group, name
        if key not in self.host.platters:
            self.host.platters[key] = Platter(self.host.scratch)
        platter = self.host.platters[key]
        rng = Random(self._rng.getrandbits(64))
        made = SimulatedDisk(data / group / name, platter, self._scheduler, rng, self.wall() // 1_000_000)
        self._disks.append(made)
        return made

    def file(self, folder: Path | None, name: str) -> Path | None:
        """Only what the program names itself: what lies in the working folder is no part of a test."""
        return None if folder is None else folder / name

    def witness(self, group: str, settings: GroupSettings, parts: Parts) -> Scribe:
        """A world records all of its groups."""
        if settings.record:
            raise ConfigurationError("record: a simulated world records by itself: see World.histories")
        asked = parts.family.asked(settings)
        info = RunInfo.one(
            run="world",
            group=group,
            stack=asked.stack or settings.stack,
            seed=self._records.seed,
            members=parts.site.members,
            buffer_limit=None,
            uniform=asked.uniform,
            quiesced=False,
            order=asked.order,
        )
        recorder = self._records.of(info)
        scribe = Scribe(parts.member, recorder, self.clock, announced=parts.family.announces)
        self._scribes.append(scribe)
        return scribe

    def members(self) -> list[MemberId]:
        """Who its groups know it as, now."""
        return [scribe.member for scribe in self._scribes]

    def _open_sockets(self, bind: Address, meeting: Address | None) -> SimulatedSockets:
        made = self.host.lan.open(self.host.number, bind, meeting, self._arrived)
        self._sockets.append(made)
        return made

    def _arrived(self, fileno: int) -> None:
        for driver in self._driving:
            driver.arrived(fileno)

    def _drive(self, _name: str) -> TurnDriver:
        driver = TurnDriver(self._scheduler, Random(self._rng.getrandbits(64)), self._context)
        self._driving.append(driver)
        return driver

    def _pace(self, deliveries: Sequence[Delivery]) -> float:
        """Seconds that the program takes for these, besides its own."""
        messages = sum(len(each.payloads) for each in deliveries if isinstance(each, Batch))
        return messages * self.host.slowness


def _close(coroutine: Any) -> None:
    """Where it waits once more when it is closed, it waits in vain."""
    while inspect.getcoroutinestate(coroutine) != inspect.CORO_CLOSED:
        with suppress(BaseException):  # whatever it raises, nobody is there
            coroutine.close()


def _nobody(_process: Process) -> None:
    """Nobody waits."""
