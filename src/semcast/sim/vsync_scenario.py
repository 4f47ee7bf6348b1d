"""Scenarios for virtual synchrony: what makes views change, again and again, while messages flow."""

from random import Random

import msgspec

from semcast.core.ids import MICROSECOND, MILLISECOND, SECOND, Nanos
from semcast.obsolescence import Purging
from semcast.protocols.vsync import DetectorSettings, Engine, Flush, Order, VsyncSettings
from semcast.sim.faults import (
    Ambush,
    AnyFault,
    BitRot,
    Crash,
    CrashAll,
    Cut,
    Delay,
    DiskFull,
    DiskStall,
    Leave,
    Loss,
    Partition,
    Recover,
    Sleep,
)
from semcast.sim.scenario import (
    ArrivalKind,
    ContentKind,
    Fixed,
    NetworkKind,
    Scenario,
    Traffic,
    slow_applications,
)
from semcast.sim.vsync_users import fitting, with_users


class Variant(Fixed, frozen=True):
    """What a swarm may fix; the rest is drawn."""

    order: Order | None = None
    engine: Engine | None = None
    flush: Flush | None = None
    uniform: bool | None = None


def draw_vsync(seed: int, variant: Variant | None = None) -> Scenario:
    """A scenario with trouble in it. The same seed and variant give the same one for ever."""
    rng = Random(f"vsync/{seed}")
    size = rng.choice((2, 3, 3, 3, 3, 4, 4, 4, 5, 5, 5, 7, 7, 12))
    network: NetworkKind = rng.choice(("switched", "switched", "switched", "shared", "routed"))
    far = network == "routed"
    duration = rng.randint(800, 2000) * MILLISECOND
    settings = _settings(rng, size, variant or Variant(), scale=3 if far else 1)
    settings = _with_flow_control(Random(f"vsync flow/{seed}"), settings)
    traffic = _traffic(rng, size, duration)
    drawn = Scenario(
        seed=seed,
        stack="vsync",
        size=size,
        network=network,
        latency=rng.choice((20, 100, 1000)) * MICROSECOND,
        loss=rng.choice((0.0, 0.0, 0.01, 0.05, 0.2)),
        duplication=rng.choice((0.0, 0.0, 0.05, 0.2)),
        jitter=rng.choice((0, 0, 1, 5)) * MILLISECOND,
        uniform=settings.uniform,
        vsync=settings,
        cpu=rng.choice((0, 10, 50)) * MICROSECOND,
        traffic=traffic,
        app_delays=slow_applications(rng, size),
        faults=_faults(rng, size, duration, settings, [each.sender for each in traffic]),
        duration=duration,
    )
    drawn = _talkative(rng, drawn) if size > 2 and rng.random() < 0.3 else drawn
    drawn = _with_a_life(Random(f"vsync life/{seed}"), drawn)
    drawn = _with_disks(Random(f"vsync disks/{seed}"), drawn)
    return fitting(with_users(_with_disk_trouble(Random(f"vsync disk trouble/{seed}"), drawn)))


def _with_a_life(rng: Random, drawn: Scenario) -> Scenario:
    """What happens to groups besides faults: many leave, start late, restart. Drawn apart from the rest."""
    kinds = (_majority_restarts, _rolling_restart, _late_starters, _many_leave, _joiner_vanishes)
    return rng.choice(kinds)(rng, drawn) if rng.random() < 0.4 else drawn


def _with_disks(rng: Random, drawn: Scenario) -> Scenario:
    """Sometimes members remember across restarts. Then all of them may crash at once."""
    if rng.random() < 0.6:
        return drawn
    drawn = msgspec.structs.replace(drawn, disks=True)
    return _everybody_restarts(rng, drawn) if rng.random() < 0.3 else drawn


def _with_disk_trouble(rng: Random, drawn: Scenario) -> Scenario:
    """Disks stall, are full or rot, at any time; and processes crash while a sync is under way.

    Nobody loses a disk whole: founders that forget what they promised are outside of what the stack survives.
    """
    if not drawn.disks or rng.random() < 0.4:
        return drawn
    faults = list(drawn.faults)
    for _ in range(rng.randint(1, 2)):
        at, victim = rng.randrange(drawn.duration), rng.randrange(drawn.size)
        lasting = rng.choice((20, 100, 400)) * MILLISECOND
        kind = rng.choice(("stall", "stall", "full", "rot", "ambush", "power"))
        if kind == "stall":
            faults.append(DiskStall(at, lasting, victim))
        elif kind == "full":
            faults += [DiskFull(at, lasting, victim), Recover(at + lasting + MILLISECOND, victim)]
        elif kind == "rot":
            faults.append(BitRot(at, victim))
        elif kind == "ambush":
            faults.append(Ambush(at, "", None, syncing=True, back_after=lasting))
        else:
            faults.append(CrashAll(at, rng.choice((0, 1, 20)) * MILLISECOND))
            faults += [Recover(at + 20 * MILLISECOND + lasting, number) for number in range(drawn.size)]
    return msgspec.structs.replace(drawn, faults=tuple(sorted(faults, key=lambda fault: fault.at)))


def _everybody_restarts(rng: Random, drawn: Scenario) -> Scenario:
    """The power fails, and comes back."""
    at = rng.randrange(drawn.duration // 3, drawn.duration)
    faults: list[AnyFault] = []
    for victim in range(drawn.size):
        faults.append(Crash(at + rng.randrange(3) * MILLISECOND, victim, detected_after=0))
        faults.append(Recover(at + rng.choice((10, 100, 900)) * MILLISECOND, victim))
    return _calm(drawn, faults)


def _calm(drawn: Scenario, faults: list[AnyFault]) -> Scenario:
    """Without the other faults: who forgets all must be able to hear those who remember."""
    ordered = tuple(sorted(faults, key=lambda fault: fault.at))
    return msgspec.structs.replace(drawn, faults=ordered, loss=min(drawn.loss, 0.05))


def _majority_restarts(rng: Random, drawn: Scenario) -> Scenario:
    """All but a minority crash, nearly at once, and come back."""
    count = rng.randint(drawn.size // 2, max(drawn.size - 1, 1))
    at = rng.randrange(drawn.duration // 3, drawn.duration)
    faults: list[AnyFault] = []
    for victim in rng.sample(range(drawn.size), count):
        faults.append(Crash(at + rng.randrange(20) * MILLISECOND, victim, detected_after=0))
        faults.append(Recover(at + rng.choice((30, 200, 900)) * MILLISECOND, victim))
    return _calm(drawn, faults)


def _rolling_restart(rng: Random, drawn: Scenario) -> Scenario:
    """One after the other, whether the group has got over the last or not."""
    gap = rng.choice((50, 300, 1000, 2000)) * MILLISECOND
    at = rng.randrange(drawn.duration // 3, drawn.duration // 2)
    faults: list[AnyFault] = []
    for victim in rng.sample(range(drawn.size), drawn.size):
        faults += [Crash(at, victim, detected_after=0), Recover(at + 10 * MILLISECOND, victim)]
        at += gap
    return _calm(drawn, faults)


def _late_starters(rng: Random, drawn: Scenario) -> Scenario:
    """Some are not there when the group is founded; others restart before these come."""
    late = rng.sample(range(drawn.size), max((drawn.size - 1) // 2, 1))
    faults: list[AnyFault] = []
    for number in late:
        faults.append(Crash(1, number, detected_after=0))
        faults.append(Recover(rng.randrange(drawn.duration // 2, drawn.duration), number))
    early = rng.choice([number for number in range(drawn.size) if number not in late])
    at = rng.randrange(drawn.duration // 3, drawn.duration)
    faults += [Crash(at, early, detected_after=0), Recover(at + 10 * MILLISECOND, early)]
    return _calm(drawn, faults)


def _many_leave(rng: Random, drawn: Scenario) -> Scenario:
    """Several leave at about the same time, on top of whatever goes wrong."""
    at = rng.randrange(drawn.duration // 3, drawn.duration)
    gone = {fault.member for fault in drawn.faults if isinstance(fault, Crash | Leave)}
    rest = [number for number in range(drawn.size) if number not in gone]
    leavers = rng.sample(rest, rng.randint(0, max(len(rest) - 1, 0)))
    leaves = [Leave(at + rng.choice((0, 1, 20, 300)) * MILLISECOND, number) for number in leavers]
    faults = sorted([*drawn.faults, *leaves], key=lambda fault: fault.at)
    return msgspec.structs.replace(drawn, faults=tuple(faults))


def _joiner_vanishes(rng: Random, drawn: Scenario) -> Scenario:
    """A process comes back, and is gone before the others have let it in, or just after."""
    victim = rng.randrange(drawn.size)
    at = rng.randrange(drawn.duration // 4, drawn.duration)
    faults: list[AnyFault] = [Crash(at, victim, detected_after=0)]
    for _ in range(rng.randint(1, 3)):
        at += rng.choice((100, 400, 800)) * MILLISECOND
        faults.append(Recover(at, victim))
        at += rng.choice((10, 60, 150, 300)) * MILLISECOND
        faults.append(Crash(at, victim, detected_after=0))
    if rng.random() < 0.5:
        faults.append(Recover(at + 500 * MILLISECOND, victim))
    return _calm(drawn, faults)


def _talkative(rng: Random, drawn: Scenario) -> Scenario:
    """Many answer each other, and messages overtake their causes, while ranks come to mean other members.

    The first has said most when it goes; who speaks seldom has heard the others before, also in a new view.
    """
    duration = min(drawn.duration, 1200 * MILLISECOND)
    traffic = []
    for sender in range(min(drawn.size, 4)):
        rate = (150.0, 60.0, 15.0, 15.0)[sender]
        count = int(rate * duration / SECOND) + 1
        content: ContentKind = rng.choice(("items", "bitmaps", "plain"))
        arrivals: ArrivalKind = rng.choice(("constant", "poisson"))
        traffic.append(Traffic(sender, content, arrivals, rate, count, r=rng.choice((0.3, 1.0))))
    at = rng.randrange(duration // 3, duration // 2)
    faults: list[AnyFault] = [rng.choice((Crash(at, 0, detected_after=0), Leave(at, 0)))]
    if rng.random() < 0.5:
        faults.append(Recover(at + rng.choice((1, 300)) * MILLISECOND, 0))
    deaf = rng.randrange(1, drawn.size)
    faults.append(Loss(at, duration, 0.3, deaf))
    return msgspec.structs.replace(
        drawn,
        jitter=rng.choice((1, 5)) * MILLISECOND,
        traffic=tuple(traffic),
        faults=tuple(sorted(faults, key=lambda fault: fault.at)),
        duration=duration,
    )


def _settings(rng: Random, size: int, variant: Variant, *, scale: int) -> VsyncSettings:
    order = rng.choice((Order.FIFO, Order.CAUSAL, Order.TOTAL, Order.TOTAL))
    engine = rng.choice((Engine.TOKEN, Engine.CONSENSUS))
    flush = rng.choice((Flush.ALL, Flush.COORDINATOR))
    uniform = rng.random() < 0.4
    buffer = rng.choice((2, 10, 40)) + size
    return VsyncSettings(
        order=variant.order or order,
        engine=variant.engine or engine,
        flush=variant.flush or flush,
        uniform=uniform if variant.uniform is None else variant.uniform,
        minimum=size // 2 + 1,
        state=rng.random() < 0.7,
        purging=rng.choice((Purging.EAGER, Purging.EAGER, Purging.LAZY)),
        buffer_messages=buffer,
        window=rng.choice((buffer, 256)),
        frame_bytes=rng.choice((250, 1300)) if buffer >= 40 else 1300,
        detector=DetectorSettings(
            heartbeat=20 * MILLISECOND * scale,
            timeout_initial=rng.choice((100, 200, 300)) * MILLISECOND * scale,
            timeout_min=rng.choice((40, 80)) * MILLISECOND * scale,
            timeout_max=1 * SECOND * scale,
            margin=rng.choice((20, 60)) * MILLISECOND * scale,
        ),
        ack_delay=rng.choice((1, 5)) * MILLISECOND if size < 7 else 10 * MILLISECOND,
        resend=10 * MILLISECOND * scale,
        hello=40 * MILLISECOND * scale,
        expel_after=rng.choice((0, 0, 0, 400)) * MILLISECOND * scale,
    )


def _with_flow_control(rng: Random, settings: VsyncSettings) -> VsyncSettings:
    """Drawn apart, so that seeds of old go on to mean what they meant."""
    return msgspec.structs.replace(
        settings,
        fair=rng.random() < 0.5,
        window_bytes=rng.choice((0, 0, 3000)),
        repair_bytes=rng.choice((1 << 18, 2000)),
        greeting=rng.choice((0, 0, 5)) * settings.detector.heartbeat,
        linger=rng.choice((0, 0, 10)) * settings.detector.heartbeat,
        lag=rng.choice((0, 10, 50)) * MILLISECOND,
    )


def _traffic(rng: Random, size: int, duration: Nanos) -> tuple[Traffic, ...]:
    kinds: tuple[ContentKind, ...] = (
        "items",
        "items",
        "bitmaps",
        "enumerated",
        "operations",
        "plain",
        "plain",
    )
    senders = rng.sample(range(size), rng.randint(1, min(size, 4)))
    chosen = []
    for sender in sorted(senders):
        rate = rng.choice((20.0, 100.0, 300.0))
        chosen.append(
            Traffic(
                sender,
                content=rng.choice(kinds),
                arrivals=rng.choice(("constant", "poisson", "bursts")),
                rate=rate,
                count=min(int(rate * duration / SECOND) + 1, 100),
                r=rng.choice((0.3, 0.7, 1.0)),
                d=rng.choice((1, 2, 5)),
                size=rng.choice((0, 0, 100, 1000)),
            )
        )
    return tuple(chosen)


def _faults(
    rng: Random, size: int, duration: Nanos, settings: VsyncSettings, senders: list[int]
) -> tuple[AnyFault, ...]:
    faults: list[AnyFault] = [_disturbance(rng, size, duration) for _ in range(rng.randint(0, 3))]
    minority = (size - 1) // 2
    victims = rng.sample(range(size), rng.randint(0, minority))
    if minority and rng.random() < 0.6:
        victims = [rng.choice(senders), *victims][:minority]
    for victim in dict.fromkeys(victims):
        faults += _crash(rng, size, victim, duration)
    if rng.random() < 0.3:
        at = rng.randrange(duration // 3, duration)
        faults.append(Leave(at, rng.randrange(size)))
    if size > 2 and rng.random() < 0.3:
        at = rng.randrange(duration // 4, duration)
        gone = settings.detector.timeout_initial + rng.choice((0, 100, 500)) * MILLISECOND
        one = rng.randrange(size)
        others = tuple(member for member in range(size) if member != one)
        faults.append(Partition(at, gone, ((one,), others)))
    if minority and rng.random() < 0.5:
        at = rng.randrange(duration // 4, duration)
        lasting = rng.choice((None, 100, 400))
        faults.append(Ambush(at, "flushing", None if lasting is None else lasting * MILLISECOND))
    return tuple(sorted(faults, key=lambda fault: fault.at))


def _crash(rng: Random, size: int, victim: int, duration: Nanos) -> list[AnyFault]:
    """What a process sends before it crashes may reach only some."""
    at = rng.randrange(duration // 5, duration)
    found: list[AnyFault] = [Crash(at, victim, detected_after=0)]
    length = rng.choice((20, 60)) * MILLISECOND
    others = [member for member in range(size) if member != victim]
    if rng.random() < 0.6:
        deaf = tuple(sorted(rng.sample(others, rng.randint(1, len(others)))))
        found.append(Cut(at - length, length, (victim,), deaf))
    elif rng.random() < 0.5:
        found.append(Loss(at - length, length, 0.7, victim))
    if rng.random() < 0.6:
        found.append(Recover(at + rng.choice((1, 50, 300, 800)) * MILLISECOND, victim))
    return found


def _disturbance(rng: Random, size: int, duration: Nanos) -> AnyFault:
    at = rng.randrange(duration)
    length = rng.choice((20, 100, 300, 600)) * MILLISECOND
    kind = rng.choice(("partition", "partition", "cut", "sleep", "sleep", "loss", "delay"))
    if kind == "sleep":
        return Sleep(at, rng.randrange(size), length)
    if kind == "loss":
        return Loss(at, length, rng.choice((0.2, 0.6)), rng.choice((None, rng.randrange(size))))
    if kind == "delay":
        return Delay(at, length, rng.randrange(size), rng.choice((1, 30)) * MILLISECOND)
    members = list(range(size))
    rng.shuffle(members)
    split = rng.randint(1, size - 1)
    sides = (tuple(sorted(members[:split])), tuple(sorted(members[split:])))
    return Partition(at, length, sides) if kind == "partition" else Cut(at, length, *sides)
