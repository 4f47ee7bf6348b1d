"""A world in which programs that use semcast run, in virtual time: hosts, a network, and what befalls them.

A test is a script: start programs, let time pass, break something, let time pass, look. Nothing in it depends
on anything but the seed.
"""

import gc
import weakref
from collections.abc import Callable, Iterable, Iterator, Sequence
from contextlib import contextmanager
from itertools import combinations
from random import Random
from typing import Any

from semcast.core.ids import MILLISECOND, SECOND, Nanos
from semcast.history import History
from semcast.sim.networks import Conditions, SwitchedNetwork
from semcast.sim.scheduler import Scheduler
from semcast.specs import Verdict
from semcast.testing.errors import WorldError
from semcast.testing.host import WorldHost
from semcast.testing.lan import Lan
from semcast.testing.process import Process, Program
from semcast.testing.records import Records, violated
from semcast.testing.scratch import Scratch
from semcast.testing.standins import StandIns

_BANDWIDTH = 1_000_000_000
_SWEEP = 500_000
"""Things that happen between two collections of garbage."""
_HOUR = 3600.0


class World:
    """Hosts on one network, in virtual time.

    >>> import asyncio
    >>> import semcast
    >>> async def count(members: int) -> int:
    ...     async with semcast.join("demo") as group:
    ...         view = await group.wait_for(members)
    ...         await asyncio.sleep(5)  # so that nobody leaves before the others have seen it
    ...         return len(view.members)
    >>> world = World(seed=1, hosts=3)
    >>> started = [world.start(host, count, 3) for host in world.hosts]
    >>> world.wait()
    >>> [process.result() for process in started]
    [3, 3, 3]

    Args:
        seed: decides everything that is left to chance.
        hosts: their names, or how many: those are called a, b, c and so on.
        latency: seconds that a datagram takes at least.
        jitter: up to so many seconds more, drawn anew for each: they overtake each other.
        loss: the share of datagrams that are lost.
        duplication: the share of datagrams that come twice.
    """

    def __init__(
        self,
        seed: int = 0,
        hosts: int | Iterable[str] = 3,
        *,
        latency: float = 0.0001,
        jitter: float = 0.0001,
        loss: float = 0.0,
        duplication: float = 0.0,
    ) -> None:
        names = _names(hosts)
        self.seed = seed
        self.rng = Random(f"world/{seed}")
        """For what a test draws itself."""
        self._scheduler = Scheduler()
        self._conditions = Conditions(loss=loss, duplication=duplication, jitter=round(jitter * SECOND))
        network = SwitchedNetwork(
            self._scheduler,
            Random(f"network/{seed}"),
            len(names),
            self._conditions,
            bandwidth=_BANDWIDTH,
            latency=round(latency * SECOND),
        )
        self._network = network
        lan = Lan(self._scheduler, network, names)
        self._scratch = Scratch()
        self._hosts = {name: WorldHost(name, number, lan, self._scratch) for number, name in enumerate(names)}
        self._records = Records(seed)
        self._processes: list[Process] = []
        self._programs: dict[str, tuple[Program, Sequence[Any]]] = {}  # what was started last on a host
        self._cuts: list[tuple[int, int]] = []
        scheduler = self._scheduler
        self._stand_ins = StandIns(Random(f"programs/{seed}"), lambda: scheduler.now)
        self._swept = 0
        self._running = False
        self._failed: Process | None = None
        weakref.finalize(self, _bury, self._processes, self._scratch)  # where a test does not close it

    # About it

    @property
    def hosts(self) -> tuple[str, ...]:
        """Their names."""
        return tuple(self._hosts)

    @property
    def now(self) -> float:
        """Seconds since the world began."""
        return self._scheduler.now / SECOND

    @property
    def processes(self) -> list[Process]:
        """Those that run, in the order in which they were started."""
        return [process for process in self._processes if not process.done]

    # Programs

    def start(self, host: str, program: Program, *arguments: Any) -> Process:
        """Run a program on a host from now on: an `async def`, called with these arguments."""
        place = self._host(host)
        number = len(self._processes) + 1
        process = Process(place, number, Random(f"process/{self.seed}/{number}/{host}"), self._records)
        self._processes.append(process)
        self._programs[host] = program, arguments
        ended = weakref.WeakMethod(self._ended)  # a world that nobody has any more is closed
        process.on_end = lambda process: _tell(ended(), process)
        self._note(f"start {host}")
        process.run(program, arguments)
        return process

    def stop(self, *hosts: str) -> None:
        """Tell the programs of these hosts, or of all, to end, as SIGTERM does."""
        for process in self._of(hosts):
            self._note(f"stop {process.host.name}")
            process.stop()

    def crash(self, *hosts: str) -> None:
        """The programs of these hosts are gone at once, as after SIGKILL."""
        for process in self._of(hosts):
            self._note(f"crash {process.host.name}")
            process.crash()

    def restart(self, host: str, program: Program | None = None, *arguments: Any) -> Process:
        """Crash what runs on a host, and run a program there: the same as before, if none is given."""
        self.crash(host)
        if program is None:
            if host not in self._programs:
                raise WorldError(f"nothing ever ran on {host}: say what to run")
            program, arguments = self._programs[host][0], tuple(self._programs[host][1])
        return self.start(host, program, *arguments)

    def pause(self, *hosts: str) -> None:
        """Programs of these hosts do nothing until `resume`, as after SIGSTOP."""
        for process in self._of(hosts):
            self._note(f"pause {process.host.name}")
            process.pause()

    def resume(self, *hosts: str) -> None:
        """They go on."""
        for process in self._of(hosts):
            self._note(f"resume {process.host.name}")
            process.resume()

    def slow(self, host: str, seconds: float) -> None:
        """From now on programs of this host take so long for each message they are given; 0 for no longer."""
        self._host(host).slowness = seconds
        self._note(f"slow {host} {seconds:g} s")

    # The network

    def partition(self, *sides: Iterable[str]) -> None:
        """Cut the network between these sets of hosts, besides what is cut; the others are one more side."""
        named = [[self._host(name) for name in _as_names(side)] for side in sides]
        seen = [host for side in named for host in side]
        if len({host.name for host in seen}) != len(seen):
            raise WorldError("a host is on two sides of a partition")
        rest = [host for host in self._hosts.values() if host not in seen]
        for one, other in combinations([*named, rest], 2):
            for a in one:
                for b in other:
                    self._cut([(a.number, b.number), (b.number, a.number)])
        self._note("partition " + " | ".join(",".join(host.name for host in side) for side in named))

    def cut(self, source: str, dest: str) -> None:
        """Nothing passes from one host to another; the way back stays open."""
        self._cut([(self._host(source).number, self._host(dest).number)])
        self._note(f"cut {source} to {dest}")

    def heal(self) -> None:
        """Mend everything that is cut."""
        self._network.mend(self._cuts)
        self._cuts = []
        self._note("heal")

    def lose(self, share: float, host: str | None = None) -> None:
        """Lose this share of all datagrams from now on, or of those of one host."""
        if host is None:
            self._conditions.loss = share
        else:
            self._network.disturb_host(self._host(host).number, loss=share)
        self._note(f"lose {share:.0%} {host or ''}".rstrip())

    def delay(self, host: str, seconds: float) -> None:
        """What this host sends and is sent takes so much longer from now on."""
        self._network.disturb_host(self._host(host).number, delay=round(seconds * SECOND))
        self._note(f"delay {host} {seconds:g} s")

    # Time

    def sleep(self, seconds: float) -> None:
        """Let time pass. Raises what a program raises meanwhile."""
        self._pass(self._scheduler.now + round(seconds * SECOND), _never)

    def wait(self, *processes: Process, timeout: float = _HOUR) -> None:
        """Let time pass until these programs have ended, or all that run; an hour, at most."""
        awaited = processes or tuple(self.processes)
        self._pass(
            self._scheduler.now + round(timeout * SECOND), lambda: all(process.done for process in awaited)
        )
        left = [process for process in awaited if not process.done]
        if left:
            told = "; ".join(f"{process}: {process.where()}" for process in left)
            raise self._marked(WorldError(f"after {timeout:g} s of virtual time these still run: {told}"))

    def until(self, reached: Callable[[], bool], timeout: float = _HOUR) -> None:
        """Let time pass until this is so; it is asked every millisecond."""
        deadline = self._scheduler.now + round(timeout * SECOND)
        while not reached():
            if self._scheduler.now >= deadline:
                raise self._marked(WorldError(f"it is not so after {timeout:g} s of virtual time"))
            self._pass(min(deadline, self._scheduler.now + MILLISECOND), _never)

    def run(self, program: Program, *arguments: Any) -> Any:
        """Run a program on the first host until it ends; returns what it returns."""
        process = self.start(self.hosts[0], program, *arguments)
        self.wait(process)
        return process.result()

    def at(self, seconds: float, act: Callable[..., object], *arguments: Any) -> None:
        """Have something done at a time to come, such as `world.at(12.5, world.heal)`."""

        def call() -> None:
            act(*arguments)

        self._scheduler.at(round(seconds * SECOND), call)

    # Judgement

    def histories(self) -> list[History]:
        """What was recorded of each group so far, for checkers of your own."""
        return self._records.histories()

    def check(self, *, at_rest: bool = False) -> list[Verdict]:
        """Judge what was recorded by all that its stacks promise; raises AssertionError where one broke it.

        Args:
            at_rest: whether all that was sent has had the time to arrive, with nothing broken: then what is
                owed at rest is judged, too.
        """
        verdicts = self._records.verdicts(at_rest=at_rest)
        if broken := violated(verdicts):
            raise self._marked(AssertionError("\n".join(map(str, broken))))
        return verdicts

    def trace(self) -> list[str]:
        """Everything that happened, a line each: two runs of one seed have the same."""
        return self._records.trace()

    def close(self) -> None:
        """Let go of all programs. What is left of those that crashed is closed now, and not before."""
        _bury(self._processes, self._scratch)

    def __enter__(self) -> "World":
        return self

    def __exit__(self, *_: object) -> None:
        self.close()

    # Inside

    def _host(self, name: str) -> WorldHost:
        if name not in self._hosts:
            raise WorldError(f"there is no host {name!r}, only {', '.join(self._hosts)}")
        return self._hosts[name]

    def _of(self, hosts: Sequence[str]) -> list[Process]:
        wanted = {self._host(name).name for name in hosts} or set(self._hosts)
        return [process for process in self.processes if process.host.name in wanted]

    def _cut(self, pairs: list[tuple[int, int]]) -> None:
        self._network.cut(pairs)
        self._cuts += pairs

    def _note(self, what: str) -> None:
        self._records.note(self._scheduler.now, what)

    def _ended(self, process: Process) -> None:
        self._note(f"end {process.host.name}")
        if process.failure is not None and self._failed is None:
            self._failed = process

    def _pass(self, until: Nanos, reached: Callable[[], bool]) -> None:
        scheduler = self._scheduler
        with self._passing():
            while not reached():
                at = scheduler.next_at()
                if at is None or at > until:
                    scheduler.run(until)
                    return
                scheduler.run(at)
                self._tidy()
                if self._failed is not None:
                    process, self._failed = self._failed, None
                    assert process.failure is not None
                    raise self._marked(process.failure, process)

    @contextmanager
    def _passing(self) -> Iterator[None]:
        if self._running:
            raise WorldError("a program cannot let time pass: it awaits asyncio.sleep")
        self._running = True
        try:
            with self._stand_ins.in_place():
                yield
        finally:
            self._running = False

    def _tidy(self) -> None:
        """Collect garbage at moments that depend on the seed alone."""
        if self._scheduler.steps - self._swept >= _SWEEP:
            self._swept = self._scheduler.steps
            gc.collect()

    def _marked(self, error: BaseException, process: Process | None = None) -> BaseException:
        """With a note that says where it was, and how to see it again."""
        where = "" if process is None else f" in {process}"
        error.add_note(f"raised{where} after {self.now:.6f} s in World(seed={self.seed})")
        return error


def _bury(processes: Iterable[Process], scratch: Scratch) -> None:
    for process in processes:
        process.bury()
    scratch.remove()


def _tell(ended: Callable[[Process], None] | None, process: Process) -> None:
    if ended is not None:
        ended(process)


def _never() -> bool:
    return False


def _names(hosts: int | Iterable[str]) -> list[str]:
    if isinstance(hosts, int):
        if hosts < 1:
            raise WorldError(f"a world of {hosts} hosts: at least one is needed")
        return [chr(ord("a") + number) if number < 26 else f"host{number + 1}" for number in range(hosts)]
    names = list(_as_names(hosts))
    if not names or len(set(names)) != len(names):
        raise WorldError("hosts: names that are all different, or how many")
    return names


def _as_names(side: Iterable[str]) -> list[str]:
    """In an order that does not depend on the hashes of names."""
    if isinstance(side, str):
        return [side]
    return sorted(side) if isinstance(side, set | frozenset) else list(side)
