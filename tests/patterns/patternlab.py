"""Patterns on a simulated group: virtual synchrony, an application on top, and drawn trouble."""

from collections.abc import Callable, Iterable, Sequence
from random import Random
from typing import Generic, TypeVar

import msgspec

from semcast.core import Annotation, Delivery, Frame, MemberId, Nanos, Outbox, Timer, View
from semcast.core.events import StateReceived, StateRequested
from semcast.core.ids import MICROSECOND, MILLISECOND, SECOND
from semcast.core.stack import Stack
from semcast.obsolescence import Purging
from semcast.patterns import Pattern, multicast_waiting, take
from semcast.protocols.vsync import (
    DetectorSettings,
    Engine,
    Flush,
    Order,
    VirtualSynchrony,
    VsyncSettings,
)
from semcast.sim.cluster import Cluster
from semcast.sim.faults import AnyFault, Crash, Cut, Leave, Loss, Partition, Recover, Sleep
from semcast.sim.hosts import CpuModel, Host
from semcast.sim.programs import Programs
from semcast.sim.scenario import Scenario
from semcast.sim.scheduler import Scheduler
from semcast.sim.simulate import PATIENCE, network_of
from semcast.sim.workloads import Source, constant, plain


class BrokenError(AssertionError):
    """What must never be seen was seen."""


class Application:
    """What runs on top of a stack. It acts when its time comes, and looks at what deliveries lead to."""

    def __init__(self, pattern: Pattern) -> None:
        self._pattern = pattern

    def on_delivery(self, each: Delivery) -> None:
        self._pattern.on_delivery(each)
        self.look(each)

    def export(self) -> bytes:
        return self._pattern.export()

    def go_on(self, now: Nanos, stack: VirtualSynchrony) -> None:
        multicast_waiting(now, self._pattern, stack)

    def act(self) -> None:
        raise NotImplementedError

    def look(self, each: Delivery) -> None:
        raise NotImplementedError


A = TypeVar("A", bound=Application)
Make = Callable[[MemberId, Random], A]


class Seat(Stack, Generic[A]):
    """A stack with an application on top: to multicast is to let the application act."""

    def __init__(self, stack: VirtualSynchrony, application: A) -> None:
        self.stack = stack
        self.application = application
        self.out = stack.out
        self.stats = stack.stats

    def start(self, now: Nanos) -> None:
        self.stack.start(now)

    def multicast(
        self,
        now: Nanos,
        payloads: Sequence[bytes],
        annotation: Annotation | None = None,
        *,
        safe: bool = False,
    ) -> int:
        self.application.act()
        self._go_on(now)
        return 1

    def on_frame(self, now: Nanos, source: MemberId, frame: Frame) -> None:
        self.stack.on_frame(now, source, frame)
        self._go_on(now)

    def on_timer(self, now: Nanos, timer: Timer) -> None:
        self.stack.on_timer(now, timer)
        self._go_on(now)

    def member_failed(self, now: Nanos, member: MemberId) -> None:
        pass

    def leave(self, now: Nanos, cause: str = "asked to") -> None:
        self.stack.leave(now, cause)

    def deliver(self, now: Nanos, most: int) -> Sequence[Delivery]:
        found = take(now, self.application, self.stack, most)
        self._go_on(now)
        return [each for each in found if not isinstance(each, StateRequested | StateReceived)]

    def deliverable(self) -> bool:
        return self.stack.deliverable()

    def buffered(self) -> int:
        return self.stack.buffered()

    def phase(self) -> str:
        return self.stack.phase()

    def view(self) -> View:
        return self.stack.view()

    def _go_on(self, now: Nanos) -> None:
        self.application.go_on(now, self.stack)


class Group(Generic[A]):
    """A simulated group, and everybody who ever was in it."""

    def __init__(
        self,
        scenario: Scenario,
        make: Make[A],
        stack: type[VirtualSynchrony] = VirtualSynchrony,
        acts: int = 30,
    ) -> None:
        self.scenario = scenario
        self.seats: list[Seat[A]] = []
        seeds = Random(scenario.seed)
        scheduler = Scheduler()
        joining = msgspec.structs.replace(scenario.vsync, minimum=0)

        def build(me: MemberId, _members: Sequence[MemberId], rng: Random, out: Outbox) -> Seat[A]:
            settings = joining if me.incarnation else scenario.vsync
            application = make(me, Random(f"{scenario.seed}/{me}"))
            self.seats.append(Seat(stack(me, settings, rng, out), application))
            return self.seats[-1]

        def source(_number: int, _member: MemberId) -> Source:
            return Source(constant(acts / scenario.duration * 1e9), plain(), acts)

        self.cluster = Cluster(
            scheduler,
            network_of(scenario, scheduler, seeds),
            build,
            size=scenario.size,
            rng=seeds,
            programs=Programs(
                sources={number: source(number, MemberId("")) for number in range(scenario.size)},
                again=source,
                delays=scenario.app_delays,
                observe=False,
            ),
            cpu=CpuModel(scenario.cpu, scenario.cpu),
        )

    def run(self) -> bool:
        """Faults, then peace; whether the group came to rest."""
        self.cluster.schedule(self.scenario.faults)
        self.cluster.start()
        self.cluster.run(self.scenario.duration)
        self.cluster.heal()
        return self.cluster.settle(PATIENCE)

    @property
    def members(self) -> list[Seat[A]]:
        """Who is there at the end."""
        return [seat_of(host) for host in self.cluster.hosts if not host.crashed]

    @property
    def together(self) -> list[Seat[A]]:
        """Who is there at the end, if that is a whole view: without a majority, others wait for ever."""
        members = self.members
        here = {seat.stack.me for seat in members}
        views = {seat.view() for seat in members if seat.phase() == "operational"}
        whole = len(views) == 1 and all(set(view.members) == here for view in views)
        return members if whole else []

    @property
    def purged(self) -> int:
        return sum(seat.stats.purged_delivery + seat.stats.skipped for seat in self.seats)


def seat_of(host: Host) -> Seat[A]:
    assert isinstance(host.stack, Seat)
    return host.stack


def draw(seed: int, order: Order) -> Scenario:
    """A slow member, and the trouble that makes views change. The first member is in trouble most."""
    rng = Random(f"patterns/{seed}")
    size = rng.choice((3, 3, 4))
    settings = VsyncSettings(
        order=order,
        engine=rng.choice((Engine.TOKEN, Engine.CONSENSUS)),
        flush=rng.choice((Flush.ALL, Flush.COORDINATOR)),
        uniform=rng.random() < 0.4,
        minimum=size // 2 + 1,
        state=True,
        purging=rng.choice((Purging.EAGER, Purging.LAZY)),
        buffer_messages=size + rng.choice((12, 30, 60)),
        frame_bytes=rng.choice((200, 1300)),
        detector=DetectorSettings(
            heartbeat=20 * MILLISECOND,
            timeout_initial=100 * MILLISECOND,
            timeout_min=50 * MILLISECOND,
            timeout_max=1 * SECOND,
            margin=30 * MILLISECOND,
        ),
        resend=10 * MILLISECOND,
        hello=40 * MILLISECOND,
    )
    duration = 900 * MILLISECOND
    return Scenario(
        seed=seed,
        stack="vsync",
        size=size,
        latency=100 * MICROSECOND,
        loss=rng.choice((0.0, 0.02, 0.1)),
        duplication=rng.choice((0.0, 0.05)),
        jitter=rng.choice((0, 2)) * MILLISECOND,
        vsync=settings,
        app_delays={rng.randrange(size): rng.choice((5, 10, 15)) * MILLISECOND},
        faults=_faults(rng, size, duration),
        duration=duration,
    )


def _faults(rng: Random, size: int, duration: Nanos) -> tuple[AnyFault, ...]:
    first = rng.randrange(duration // 4, duration // 2)
    victim = rng.choice((0, 0, size - 1))
    others = [member for member in range(size) if member != victim]
    kind = rng.choice(("crash", "crash", "partition", "leave"))
    found: list[AnyFault] = []
    if kind == "crash":
        deaf = tuple(rng.sample(others, rng.randint(1, size - 1)))
        found.append(Cut(first - 30 * MILLISECOND, 30 * MILLISECOND, (victim,), deaf))
        found.append(Crash(first, victim, detected_after=0))
        found.append(Recover(first + rng.choice((20, 150)) * MILLISECOND, victim))
    elif kind == "partition":
        found.append(Partition(first, 300 * MILLISECOND, ((victim,), tuple(others))))
    else:
        found.append(Leave(first, victim))
    then = rng.randrange(duration // 2, duration)
    member = rng.choice(others)
    more: tuple[AnyFault, ...] = (
        Sleep(then, member, 60 * MILLISECOND),
        Loss(then, 100 * MILLISECOND, 0.4),
        Partition(then, 60 * MILLISECOND, ((member,), tuple(m for m in range(size) if m != member))),
    )
    return (*found, rng.choice(more))


class Found(msgspec.Struct):
    """Of many runs: in how many something was purged, and how many ended in a view with everybody in it."""

    purged: int = 0
    whole: int = 0
    joined: int = 0
    """Members that came later, and were given the state."""


def survey(run: Callable[[int], Group[A]], seeds: Iterable[int]) -> Found:
    """All of them must hold."""
    found = Found()
    for seed in seeds:
        group = run(seed)
        found.purged += group.purged > 0
        found.whole += bool(group.together)
        found.joined += sum(seat.stack.me.incarnation > 0 and seat.view().id > 0 for seat in group.seats)
    return found


def hunt(run: Callable[[int], Group[A]], seeds: Iterable[int]) -> None:
    """Run a mutant until it is caught."""
    for seed in seeds:
        run(seed)
