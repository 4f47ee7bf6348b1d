"""Scenarios for the ring: what breaks memberships, again and again, while messages flow."""

from collections.abc import Sequence
from random import Random

import msgspec

from semcast.core.ids import MICROSECOND, MILLISECOND, SECOND, Nanos
from semcast.protocols.ring import RingSettings, SlowPolicy
from semcast.sim.faults import Ambush, AnyFault, Crash, Cut, Delay, Leave, Loss, Partition, Recover, Sleep
from semcast.sim.scenario import ContentKind, NetworkKind, Scenario, Traffic, slow_applications

TOKEN_SIZE = 130
"""Bytes of an ordinary token on the wire, at most: some faults spare them."""


def draw_ring(seed: int) -> Scenario:
    """A scenario with trouble in it. The same seed gives the same one for ever.

    What users meet besides faults of the network is drawn apart, and put on top.
    """
    rng = Random(f"ring/{seed}/users")
    drawn = _crowded(rng, _draw_faults(seed))
    drawn = _narrow(rng, drawn)
    drawn = _coming_and_going(rng, drawn)
    drawn = _outlasting(rng, drawn)
    return _misfitting(rng, drawn)


def _draw_faults(seed: int) -> Scenario:
    rng = Random(f"ring/{seed}")
    size = rng.choice((2, 3, 3, 3, 4, 4, 5, 5, 7, 9, 16))
    network: NetworkKind = rng.choice(("switched", "switched", "switched", "shared", "routed"))
    far = network == "routed"
    size = min(size, 5) if far else size
    duration = rng.randint(800, 2500) * MILLISECOND
    traffic = _traffic(rng, size, duration, most=40 if far else 200)
    torn = size > 2 and rng.random() < 0.5
    if torn:
        duration = min(duration, 1200 * MILLISECOND)
        traffic = _steady(rng, size, duration)
    settings = _settings(rng, scale=4 if far else 1)
    patience = Random(f"ring/{seed}/linger").choice((0, 0, 2, 5)) * MILLISECOND
    settings = msgspec.structs.replace(settings, linger=patience)
    return Scenario(
        seed=seed,
        stack="ring",
        size=size,
        network=network,
        latency=rng.choice((20, 100, 1000)) * MICROSECOND,
        loss=rng.choice((0.0, 0.0, 0.01, 0.05, 0.2)),
        duplication=rng.choice((0.0, 0.0, 0.05, 0.2)),
        jitter=rng.choice((0, 0, 1, 3)) * MILLISECOND,
        ring=settings,
        cpu=rng.choice((0, 10, 50)) * MICROSECOND,
        traffic=traffic,
        app_delays=slow_applications(rng, size),
        faults=_last_words(rng, traffic[0].sender, size, duration, settings)
        if torn
        else _faults(rng, size, duration),
        duration=duration,
    )


def _settings(rng: Random, *, scale: int) -> RingSettings:
    """Timeouts are `scale` times as long where a hop takes longer: a token must come round in time."""
    window = rng.choice((8, 64, 512))
    return RingSettings(
        packet_bytes=rng.choice((60, 300, 1300)),
        window=window,
        visit=rng.choice((min(8, window), min(64, window))),
        visit_least=rng.choice((1, 4)),
        adaptive=rng.random() < 0.8,
        accelerated=rng.choice((0, 1, 16)),
        queue_messages=rng.choice((4, 20, 1024)),
        send_messages=rng.choice((1, 50, 1024)),
        policy=rng.choice((SlowPolicy.PURGE, SlowPolicy.PURGE, SlowPolicy.PURGE, SlowPolicy.BLOCK)),
        token_loss=rng.choice((100, 200, 300)) * MILLISECOND * scale,
        retransmit=10 * MILLISECOND * scale,
        gather=30 * MILLISECOND * scale,
        join=20 * MILLISECOND * scale,
        commit=120 * MILLISECOND * scale,
    )


def _traffic(rng: Random, size: int, duration: Nanos, *, most: int) -> tuple[Traffic, ...]:
    kinds: tuple[ContentKind, ...] = ("items", "items", "bitmaps", "enumerated", "plain", "plain")
    senders = rng.sample(range(size), rng.randint(1, min(size, 5)))
    chosen = []
    for sender in sorted(senders):
        rate = rng.choice((20.0, 100.0, 400.0))
        chosen.append(
            Traffic(
                sender,
                content=rng.choice(kinds),
                arrivals=rng.choice(("constant", "poisson", "bursts")),
                rate=rate,
                count=min(int(rate * duration / SECOND) + 1, most),
                r=rng.choice((0.3, 0.7, 1.0)),
                d=rng.choice((1, 2, 5)),
                size=rng.choice((0, 0, 100, 1000)),
                safe_every=rng.choice((0, 1, 2, 3)),
            )
        )
    return tuple(chosen)


def _steady(rng: Random, size: int, duration: Nanos) -> tuple[Traffic, ...]:
    """Somebody with large messages, and others with small ones, who send all the time."""
    senders = rng.sample(range(size), min(size, 3))
    chosen = []
    for sender in senders:
        rate = rng.choice((100.0, 200.0)) if size > 5 else 300.0
        chosen.append(
            Traffic(
                sender,
                content=rng.choice(("items", "plain", "plain")),
                arrivals="constant",
                rate=rate,
                count=int(rate * duration / SECOND) + 1,
                size=120 if sender == senders[0] else 0,
                safe_every=rng.choice((0, 1, 2)),
            )
        )
    return tuple(chosen)


def _faults(rng: Random, size: int, duration: Nanos) -> tuple[AnyFault, ...]:
    faults: list[AnyFault] = []
    for _ in range(rng.randint(0, 3)):
        faults.append(_disturbance(rng, size, duration))
    if rng.random() < 0.4:
        faults += _flapping(rng, size, duration)
    for member in rng.sample(range(size), rng.choice((0, 0, 1, 1, 2)) if size > 2 else 0):
        faults += _crash(rng, member, duration)
    return tuple(sorted(faults, key=lambda fault: fault.at))


def _last_words(
    rng: Random, victim: int, size: int, duration: Nanos, settings: RingSettings
) -> tuple[AnyFault, ...]:
    """A sender is cut off whose last packets reach nobody, or only when it is too late.

    Then the ring that forms without it is torn apart, if the draw says so, in the middle of that.
    """
    at = rng.randrange(200 * MILLISECOND, duration * 2 // 3)
    length = rng.choice((20, 60)) * MILLISECOND
    others = tuple(member for member in range(size) if member != victim)
    found: list[AnyFault] = []
    if rng.random() < 0.5:
        found.append(Loss(at, length, rng.choice((0.9, 1.0)), victim, above=TOKEN_SIZE))
    else:
        # About when the others form their ring.
        late = settings.token_loss + settings.gather + rng.randrange(-5, 40) * MILLISECOND
        found.append(Delay(at, length, victim, late, above=TOKEN_SIZE))
    if rng.random() < 0.5:
        found.append(Crash(at + length, victim, detected_after=0))
    else:
        gone = rng.choice((300, 700)) * MILLISECOND
        found.append(Partition(at + length, gone, ((victim,), others)))
    if rng.random() < 0.7:
        phase = rng.choice(("installed", "installed", "installed", "evs", "form", "commit", "gather"))
        lasting = rng.choice((None, 200 * MILLISECOND, 500 * MILLISECOND))
        found.append(Ambush(at + length, phase, lasting))
    return tuple(sorted(found, key=lambda fault: fault.at))


def _crash(rng: Random, victim: int, duration: Nanos) -> list[AnyFault]:
    at = rng.randrange(duration // 10, duration)
    found: list[AnyFault] = [Crash(at, victim, detected_after=0)]
    if rng.random() < 0.6:
        found.append(Recover(at + rng.choice((1, 20, 200, 600)) * MILLISECOND, victim))
    return found


def _flapping(rng: Random, size: int, duration: Nanos) -> list[AnyFault]:
    """One split after the other, each about as long as it takes to form a ring."""
    at = rng.randrange(duration)
    found: list[AnyFault] = []
    for _ in range(rng.randint(2, 6)):
        length = rng.choice((5, 30, 120, 250, 400)) * MILLISECOND
        found.append(Partition(at, length, _sides(rng, size)))
        at += length + rng.choice((0, 0, 20, 100, 300)) * MILLISECOND
    return found


def _disturbance(rng: Random, size: int, duration: Nanos) -> AnyFault:
    at = rng.randrange(duration)
    length = rng.choice((20, 150, 400, 800)) * MILLISECOND
    kind = rng.choice(("partition", "partition", "cut", "cut", "sleep", "loss", "delay"))
    if kind == "sleep":
        return Sleep(at, rng.randrange(size), length)
    if kind == "loss":
        return Loss(at, length, rng.choice((0.2, 0.6)), rng.choice((None, rng.randrange(size))))
    if kind == "delay":
        return Delay(at, length, rng.randrange(size), rng.choice((1, 20)) * MILLISECOND)
    sides = _sides(rng, size)
    return Partition(at, length, sides) if kind == "partition" else Cut(at, length, sides[0], sides[-1])


def _sides(rng: Random, size: int) -> tuple[tuple[int, ...], ...]:
    members = list(range(size))
    rng.shuffle(members)
    cuts = sorted(rng.sample(range(1, size), min(size - 1, rng.choice((1, 1, 1, 2)))))
    return tuple(
        tuple(sorted(members[low:high])) for low, high in zip((0, *cuts), (*cuts, size), strict=True)
    )


# What users meet


def _crowded(rng: Random, scenario: Scenario) -> Scenario:
    """Many members, of whom each sends a little."""
    if rng.random() >= 0.04 or scenario.network != "switched":
        return scenario
    size = rng.choice((20, 32))
    traffic = tuple(
        Traffic(sender, content="plain", arrivals="constant", rate=20.0, count=8, size=100)
        for sender in range(size)
    )
    settings = msgspec.structs.replace(scenario.ring, token_loss=300 * MILLISECOND, send_messages=50)
    return msgspec.structs.replace(
        scenario,
        size=size,
        traffic=traffic,
        ring=settings,
        app_delays={},
        loss=min(scenario.loss, 0.01),
        jitter=0,
        duration=min(scenario.duration, 1200 * MILLISECOND),
        faults=scenario.faults[:2],
    )


def _narrow(rng: Random, scenario: Scenario) -> Scenario:
    """A network with an MTU, and members with long names: enumerations of these do not fit in a packet."""
    if rng.random() >= 0.25:
        return scenario
    settings = msgspec.structs.replace(scenario.ring, packet_bytes=min(scenario.ring.packet_bytes, 900))
    mtu, name_bytes = rng.choice((1280, 1500)), rng.choice((0, 30, 60))
    return msgspec.structs.replace(scenario, ring=settings, mtu=mtu, name_bytes=name_bytes)


def _coming_and_going(rng: Random, scenario: Scenario) -> Scenario:
    """Members that start late, leave, or restart one after the other with the settings they had."""
    troubled = {fault.member for fault in scenario.faults if isinstance(fault, Crash | Recover | Leave)}
    calm = [member for member in range(scenario.size) if member not in troubled]
    rng.shuffle(calm)
    kind = rng.choice(("", "", "", "late", "leave", "roll"))
    count = rng.randint(1, max(1, min(len(calm), scenario.size - 1, 4)))
    chosen = sorted(calm[:count])
    if kind == "late":
        began = rng.randrange(scenario.duration)
        late = {member: began + rng.choice((0, 10, 100, 300)) * MILLISECOND for member in chosen}
        return msgspec.structs.replace(scenario, late=late)
    if kind == "leave":
        leaves = [Leave(rng.randrange(100 * MILLISECOND, scenario.duration), member) for member in chosen]
        return _with_faults(scenario, leaves[: max(0, scenario.size - 2)])
    if kind == "roll":
        at = rng.randrange(100 * MILLISECOND, scenario.duration)
        pause, gone = rng.choice((50, 300, 700)) * MILLISECOND, rng.choice((1, 100, 400)) * MILLISECOND
        rolled: list[AnyFault] = []
        for number, member in enumerate(chosen):
            rolled += [Crash(at + number * pause, member, detected_after=0)]
            rolled += [Recover(at + number * pause + gone, member)]
        return _with_faults(scenario, rolled)
    return scenario


def _outlasting(rng: Random, scenario: Scenario) -> Scenario:
    """A link that is dead for much longer than anybody waits, in one direction or in both."""
    if rng.random() >= 0.12 or scenario.size < 3:
        return scenario
    one, other = rng.sample(range(scenario.size), 2)
    at, length = rng.randrange(scenario.duration), rng.choice((3, 8)) * SECOND
    cuts = [Cut(at, length, (one,), (other,))]
    if rng.random() < 0.5:
        cuts.append(Cut(at, length, (other,), (one,)))
    return _with_faults(scenario, cuts)


def _misfitting(rng: Random, scenario: Scenario) -> Scenario:
    """Somebody has set another window."""
    if rng.random() >= 0.06:
        return scenario
    return msgspec.structs.replace(scenario, misfits=(rng.randrange(scenario.size),))


def _with_faults(scenario: Scenario, more: Sequence[AnyFault]) -> Scenario:
    faults = tuple(sorted((*scenario.faults, *more), key=lambda fault: fault.at))
    return msgspec.structs.replace(scenario, faults=faults)
