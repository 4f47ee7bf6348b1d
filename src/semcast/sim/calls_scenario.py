"""Scenarios for calls: members come and go while requests and answers are under way."""

from random import Random

import msgspec

from semcast.core.ids import MICROSECOND, MILLISECOND, Nanos
from semcast.protocols.ring import RingSettings
from semcast.protocols.vsync import DetectorSettings, Order, VsyncSettings
from semcast.sim.calling import CallsSettings, PlaceCall
from semcast.sim.faults import AnyFault, Crash, Leave, Loss, Partition, Recover, Sleep
from semcast.sim.scenario import Scenario


def draw_calls(seed: int) -> Scenario:
    """A scenario with trouble in it. The same seed gives the same one for ever."""
    rng = Random(f"calls/{seed}")
    synchrony = rng.choice((False, False, True))
    size = rng.choice((2, 3, 3, 4, 5))
    duration = rng.choice((1000, 2000)) * MILLISECOND
    settings = _programs(rng, size, synchrony=synchrony)
    faults = _faults(rng, size, duration, synchrony=synchrony)
    moments = [rng.randrange(50 * MILLISECOND, duration), *(fault.at for fault in faults)]
    moments += [fault.at + fault.duration for fault in faults if isinstance(fault, Partition | Sleep)]
    faults += _calls(rng, size, duration, moments, patient=not synchrony and not settings.silent)
    return Scenario(
        seed=seed,
        stack="calls",
        size=size,
        latency=rng.choice((20, 100, 1000)) * MICROSECOND,
        loss=rng.choice((0.0, 0.0, 0.01, 0.05)),
        duplication=rng.choice((0.0, 0.0, 0.05)),
        jitter=rng.choice((0, 0, 1)) * MILLISECOND,
        ring=_ring(rng),
        vsync=_vsync(rng, size),
        settings=settings,
        cpu=rng.choice((0, 10)) * MICROSECOND,
        faults=tuple(sorted(faults, key=lambda fault: fault.at)),
        duration=duration,
    )


def _programs(rng: Random, size: int, *, synchrony: bool) -> CallsSettings:
    silent = tuple(member for member in range(size) if rng.random() < 0.1)
    idle = tuple(member for member in range(size) if rng.random() < 0.1)
    return CallsSettings(
        synchrony=synchrony,
        silent=silent if rng.random() < 0.5 else (),
        idle=idle,
        slow=rng.choice((0, 1, 20, 150)) * MILLISECOND,
        talks=rng.choice((0.0, 0.5, 1.0)),
    )


def _ring(rng: Random) -> RingSettings:
    return RingSettings(
        packet_bytes=rng.choice((100, 1300)),
        window=64,
        visit=rng.choice((8, 64)),
        visit_least=1,
        send_messages=rng.choice((1, 50, 1024)),
        token_loss=rng.choice((60, 100)) * MILLISECOND,
        gather=20 * MILLISECOND,
        join=10 * MILLISECOND,
        commit=60 * MILLISECOND,
        calm=20 * MILLISECOND,
        presence=100 * MILLISECOND,
        hold=20 * MILLISECOND,
    )


def _vsync(rng: Random, size: int) -> VsyncSettings:
    settings = VsyncSettings(
        order=rng.choice((Order.FIFO, Order.FIFO, Order.CAUSAL, Order.TOTAL)),
        minimum=size // 2 + 1,
        state=False,
        detector=DetectorSettings(
            heartbeat=20 * MILLISECOND,
            timeout_initial=rng.choice((100, 200)) * MILLISECOND,
            timeout_min=rng.choice((40, 80)) * MILLISECOND,
            timeout_max=1000 * MILLISECOND,
            margin=rng.choice((20, 60)) * MILLISECOND,
        ),
        ack_delay=rng.choice((1, 5)) * MILLISECOND,
        resend=10 * MILLISECOND,
        hello=40 * MILLISECOND,
    )
    return msgspec.structs.replace(settings, uniform=rng.random() < 0.3)


def _calls(rng: Random, size: int, duration: Nanos, moments: list[Nanos], *, patient: bool) -> list[AnyFault]:
    """Calls of all kinds, most of them around the moments when views change."""
    found: list[AnyFault] = []
    for _ in range(rng.choice((20, 40, 80))):
        at = rng.randrange(20 * MILLISECOND, duration)
        if rng.random() < 0.7:
            at = rng.choice(moments) + rng.randrange(-30_000, 150_000) * MICROSECOND
        to = rng.choice((None, None, None, -1, -1, rng.randrange(size)))
        endless = patient and rng.random() < 0.5
        wanted: str | int = rng.choice(("first", "majority", "majority", "all", "all", 2))
        found.append(
            PlaceCall(
                min(max(at, MILLISECOND), duration - 1),
                rng.randrange(size),
                replies=wanted if to is None else "first",
                to=to,
                timeout=None if endless else rng.choice((50, 300, 1000)) * MILLISECOND,
            )
        )
    return found


def _faults(rng: Random, size: int, duration: Nanos, *, synchrony: bool) -> list[AnyFault]:
    """With virtual synchrony all who crashed start again: fewer than `minimum` found no group."""
    found: list[AnyFault] = []
    for _ in range(rng.randint(1, 4)):
        found += _trouble(rng, size, duration)
    if size > 2 and rng.random() < 0.4:
        found.append(Leave(rng.randrange(200 * MILLISECOND, duration), rng.randrange(size)))
    found += [
        Recover(duration - MILLISECOND, member) for member in range(size) if rng.random() < 0.7 or synchrony
    ]
    return found


def _trouble(rng: Random, size: int, duration: Nanos) -> list[AnyFault]:
    at = rng.randrange(100 * MILLISECOND, duration)
    member = rng.randrange(size)
    length = rng.choice((80, 200, 400, 700)) * MILLISECOND
    kind = rng.choice(("split", "split", "crash", "crash", "sleep", "loss"))
    if kind == "split":
        parts: dict[int, list[int]] = {}
        for each in range(size):
            parts.setdefault(rng.randrange(2), []).append(each)
        return [Partition(at, length, tuple(tuple(part) for part in parts.values()))]
    if kind == "crash":
        again = rng.choice((1, 20, 200, 600)) * MILLISECOND
        return [Crash(at, member, 0), *([Recover(at + again, member)] if rng.random() < 0.7 else [])]
    if kind == "sleep":
        return [Sleep(at, member, length)]
    return [Loss(at, length, 0.3)]
