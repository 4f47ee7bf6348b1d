"""Scenarios for S-RM, S-SRM and their reliable baseline: a fixed group, most of which survives."""

from random import Random

from semcast.core.ids import MICROSECOND, MILLISECOND, SECOND, Nanos
from semcast.obsolescence import Purging
from semcast.sim.faults import AnyFault, Crash, Cut, Delay, Loss, Partition, Sleep, SlowLink
from semcast.sim.scenario import (
    BANDWIDTH,
    ContentKind,
    NetworkKind,
    Scenario,
    Traffic,
    slow_applications,
)

LARGEST = 1200
"""The largest message of drawn traffic, its record included."""


def draw(seed: int, stack: str, *, plain: bool = False, uniform: bool = True) -> Scenario:
    """A scenario with trouble in it. The same seed and stack give the same one for ever.

    With `plain` no message ever becomes obsolete; without `uniform` nobody asks for uniform agreement.
    """
    rng = Random(f"{stack}/{seed}")
    size = rng.choice((2, 3, 3, 3, 4, 5, 5, 7))
    network: NetworkKind = rng.choice(("switched", "switched", "switched", "shared", "routed"))
    duration = rng.randint(500, 2000) * MILLISECOND
    traffic = _traffic(rng, size, duration, plain=plain)
    live = Random(f"{stack}/{seed}/busy")  # what only live groups set
    return Scenario(
        seed=seed,
        stack=stack,
        size=size,
        network=network,
        latency=rng.choice((20, 100, 1000, 5000)) * MICROSECOND,
        loss=rng.choice((0.0, 0.0, 0.01, 0.05, 0.2)),
        duplication=rng.choice((0.0, 0.0, 0.05, 0.2)),
        jitter=rng.choice((0, 1, 10)) * MILLISECOND,
        buffer=rng.choice((size, size + 2, 10 + size, 20 + size, 40 + size)),
        spare_bytes=rng.choice((None, None, None, 0, 2000, 20_000)),
        purging=Purging.EAGER if rng.random() < 0.8 else Purging.LAZY,
        uniform=uniform and rng.random() < 0.3,
        gossip_period=rng.choice((10, 30, 50)) * MILLISECOND,
        gossip_fanout=rng.choice((1, 2, 3)),
        gossip_busy=live.choice((0, 0, 0, 2)) * MILLISECOND,
        hopeful=live.random() < 0.25,
        window=rng.choice((1, 64, 256, 4096)),
        cpu=rng.choice((0, 10, 100)) * MICROSECOND,
        traffic=traffic,
        app_delays=slow_applications(rng, size),
        faults=_faults(rng, size, duration, network, [t.sender for t in traffic]),
        duration=duration,
    )


def _traffic(rng: Random, size: int, duration: Nanos, *, plain: bool) -> tuple[Traffic, ...]:
    kinds: tuple[ContentKind, ...] = (
        "items",
        "items",
        "bitmaps",
        "enumerated",
        "operations",
        "stocks",
        "plain",
    )
    senders = rng.sample(range(size), rng.choice((1, 1, 2, size)) if size > 1 else 1)
    chosen = []
    for sender in sorted(senders):
        rate = rng.choice((20.0, 100.0, 500.0))
        chosen.append(
            Traffic(
                sender,
                content="plain" if plain else rng.choice(kinds),
                arrivals=rng.choice(("constant", "poisson", "bursts")),
                rate=rate,
                count=min(int(rate * duration / SECOND) + 1, 150),
                r=rng.choice((0.3, 0.7, 1.0)),
                d=rng.choice((1, 2, 5, 20)),
                k=rng.choice((4, 32, 200)),
                size=rng.choice((0, 0, 100, 1000)),
            )
        )
    return tuple(chosen)


def _faults(
    rng: Random, size: int, duration: Nanos, network: NetworkKind, senders: list[int]
) -> tuple[AnyFault, ...]:
    faults: list[AnyFault] = []
    for _ in range(rng.randint(0, 4)):
        faults.append(_disturbance(rng, size, duration, network))
    f = (size - 1) // 2
    crashes = max(rng.randint(0, f), rng.randint(0, f))
    # Senders crash more often than others, and best in the middle of trouble of their own.
    victims = rng.sample(senders, min(crashes, len(senders))) if rng.random() < 0.8 else []
    victims = victims or rng.sample(range(size), crashes)
    for victim in victims:
        at = rng.randrange(duration // 4, duration)
        if rng.random() < 0.85:
            faults.extend(_last_words(rng, size, victim, at))
        faults.append(Crash(at, victim, detected_after=rng.choice((0, 50, 300)) * MILLISECOND))
    return tuple(sorted(faults, key=lambda fault: fault.at))


def _last_words(rng: Random, size: int, victim: int, crash: Nanos) -> list[AnyFault]:
    """What a process sends before it crashes reaches only some: agreement is hardest then."""
    length = rng.choice((20, 60, 150)) * MILLISECOND
    start = max(0, crash - length)
    if rng.random() < 0.5:
        return [Loss(start, length, rng.choice((0.5, 0.8)), victim)]
    others = [member for member in range(size) if member != victim]
    deaf = tuple(sorted(rng.sample(others, rng.randint(1, len(others)))))
    return [Cut(start, length, (victim,), deaf)]


def _disturbance(rng: Random, size: int, duration: Nanos, network: NetworkKind) -> AnyFault:
    at = rng.randrange(duration)
    length = rng.choice((20, 100, 400)) * MILLISECOND
    member = rng.randrange(size)
    kind = rng.choice(("sleep", "loss", "cut", "partition", "slow-link", "delay"))
    if kind == "sleep":
        return Sleep(at, member, length)
    if kind == "loss":
        return Loss(at, length, rng.choice((0.2, 0.6)))
    if kind == "delay":
        return Delay(at, length, member, rng.choice((1, 20)) * MILLISECOND)
    if kind == "slow-link" and network == "switched":
        return SlowLink(at, length, member, 64_000, BANDWIDTH)
    members = list(range(size))
    rng.shuffle(members)
    split = rng.randint(1, size - 1)
    sides = (tuple(sorted(members[:split])), tuple(sorted(members[split:])))
    if kind == "partition":
        return Partition(at, length, sides)
    return Cut(at, length, *sides)
