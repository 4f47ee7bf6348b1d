"""Scenarios for daemons of lightweight groups: splits, merges, crashes, and clients that come and go."""

from random import Random

from semcast.core.ids import MICROSECOND, MILLISECOND, SECOND, Nanos
from semcast.protocols.lightweight import LightweightSettings
from semcast.protocols.ring import RingSettings, SlowPolicy
from semcast.sim.faults import Ambush, AnyFault, Crash, Leave, Loss, Partition, Recover, Sleep
from semcast.sim.hosted_clients import Do
from semcast.sim.lightweight_clients import Act
from semcast.sim.scenario import Scenario

_GROUPS = ("e0", "e1", "v0", "v1")


def draw_lightweight(seed: int) -> Scenario:
    """A scenario with trouble in it. The same seed gives the same one for ever."""
    rng = Random(f"lightweight/{seed}")
    size = rng.choice((2, 3, 3, 4))
    duration = rng.choice((1500, 2500)) * MILLISECOND
    faults = _faults(rng, size, duration)
    faults += _leaves(Random(f"lightweight/leaves/{seed}"), size, duration)
    programs = seed % 3 == 0  # that speak the client protocol
    if programs:
        faults += _deeds(Random(f"lightweight/programs/{seed}"), size, duration)
    if seed % 12 == 6:
        faults += _calls(Random(f"lightweight/calls/{seed}"), size, duration)
    faults += _acts(rng, size, duration, _moments(rng, faults, duration))
    return Scenario(
        seed=seed,
        stack="lightweight",
        size=size,
        latency=rng.choice((20, 100, 1000)) * MICROSECOND,
        loss=rng.choice((0.0, 0.0, 0.01, 0.05)),
        duplication=rng.choice((0.0, 0.0, 0.05)),
        jitter=rng.choice((0, 0, 1)) * MILLISECOND,
        ring=_ring(rng),
        settings=LightweightSettings(
            queue_messages=min(rng.choice((8, 4096, 4096)), 6 if programs else 4096),
            send_messages=rng.choice((4, 256)),
            quantum=rng.choice((1, 16_384)),
            window=rng.choice((1, 4, 256)),
            census_bytes=rng.choice((1, 100, 32_768)),
            flush_timeout=rng.choice((200, 1000)) * MILLISECOND,
            leave_after=(500 if programs else 5000) * MILLISECOND,
            notes=True,
        ),
        cpu=rng.choice((0, 10)) * MICROSECOND,
        faults=tuple(sorted(faults, key=lambda fault: fault.at)),
        duration=duration,
    )


def _ring(rng: Random) -> RingSettings:
    return RingSettings(
        packet_bytes=rng.choice((100, 1300)),
        window=64,
        visit=rng.choice((8, 64)),
        visit_least=1,
        send_messages=rng.choice((1, 50, 1024)),
        policy=SlowPolicy.BLOCK,
        token_loss=rng.choice((60, 100)) * MILLISECOND,
        gather=20 * MILLISECOND,
        join=10 * MILLISECOND,
        commit=60 * MILLISECOND,
        calm=20 * MILLISECOND,
        presence=100 * MILLISECOND,
        hold=20 * MILLISECOND,
    )


def _moments(rng: Random, faults: list[AnyFault], duration: Nanos) -> list[Nanos]:
    """When daemons change, about: something is under way when they part, and when they meet again."""
    found = [rng.randrange(20 * MILLISECOND, duration)]
    for fault in faults:
        found.append(fault.at)
        if isinstance(fault, Partition | Sleep):
            found.append(fault.at + fault.duration + rng.choice((0, 50, 100, 150)) * MILLISECOND)
    return found


def _acts(rng: Random, size: int, duration: Nanos, moments: list[Nanos]) -> list[AnyFault]:
    """Programs of two or three clients a daemon; more happens around the moments when daemons change."""
    clients = [(member, f"c{number}") for member in range(size) for number in range(rng.choice((2, 2, 3)))]
    slow = {each for each in clients if rng.random() < 0.2}
    mute = {each for each in clients if rng.random() < 0.08}
    found: list[AnyFault] = []
    for _ in range(rng.choice((60, 120, 200))):
        member, name = rng.choice(clients)
        what = rng.choice(
            ("join", "join", "join", "leave", "cast", "cast", "cast", "cast", "multi", "private", "vanish")
            if rng.random() < 0.5
            else ("join", "cast", "cast", "private")
        )
        groups = tuple(sorted(rng.sample(_GROUPS, 2))) if what == "multi" else (rng.choice(_GROUPS),)
        at = rng.randrange(20 * MILLISECOND, duration)
        if rng.random() < 0.6:
            at = rng.choice(moments) + rng.randrange(-3000, 8000) * MICROSECOND
        found.append(
            Act(
                min(max(at, MILLISECOND), duration - 1),
                member,
                client=name,
                what="cast" if what == "multi" else what,
                groups=groups,
                run=rng.choice((1, 1, 3)),
                safe=rng.random() < 0.1,
                to=rng.choice(clients),
                old=rng.random() < 0.4,
                slow=(member, name) in slow,
                mute=(member, name) in mute,
            )
        )
    return found


def _deeds(rng: Random, size: int, duration: Nanos) -> list[AnyFault]:
    """Programs that speak the client protocol. Drawn beside all else."""
    programs = [(member, f"h{number}") for member in range(size) for number in range(2)]
    slow = {each for each in programs if rng.random() < 0.4}
    found: list[AnyFault] = [
        Do(
            20 * MILLISECOND + place * MILLISECOND,
            member,
            program=name,
            what="join",
            slow=(member, name) in slow,
        )
        for place, (member, name) in enumerate(programs)
    ]
    for _ in range(rng.choice((200, 500))):
        member, name = rng.choice(programs)
        what = rng.choice(("cast",) * 30 + ("join", "join", "leave", "break", "break", "bye"))
        found.append(
            Do(
                rng.randrange(40 * MILLISECOND, duration),
                member,
                program=name,
                what=what,
                group=rng.choice(("e0", "e0", "e0", "e1", "v0")),
                run=rng.choice((1, 2, 4)) if what == "cast" else 1,
                item=rng.choice(("", "x", "x", "y")),
                slow=(member, name) in slow,
            )
        )
    return found


def _calls(rng: Random, size: int, duration: Nanos) -> list[AnyFault]:
    """Programs that call each other. Drawn beside all else."""
    programs = [(member, f"h{number}") for member in range(size) for number in range(2)]
    found: list[AnyFault] = []
    for _ in range(rng.choice((30, 80))):
        member, name = rng.choice(programs)
        found.append(
            Do(
                rng.randrange(40 * MILLISECOND, duration),
                member,
                program=name,
                what="call",
                replies=rng.choice(("first", "majority", "majority", "all", "all")),
                to=rng.choice((None, None, None, (member, name), (member, name), rng.choice(programs))),
                timeout=rng.choice((50, 300, 1000)) * MILLISECOND,
            )
        )
    return found


def _faults(rng: Random, size: int, duration: Nanos) -> list[AnyFault]:
    found: list[AnyFault] = []
    for _ in range(rng.randint(1, 4)):
        found += _trouble(rng, size, duration)
    for _ in range(rng.choice((0, 0, 1, 2))):
        lasting = rng.choice((None, 100 * MILLISECOND, 300 * MILLISECOND))
        back = rng.choice((1, 50, 300)) * MILLISECOND
        found.append(
            Ambush(
                rng.randrange(duration),
                rng.choice(("census", "census", "installed", "evs")),
                lasting,
                patience=SECOND,
                closely=True,
                back_after=back,
            )
        )
    found += [Recover(duration - MILLISECOND, member) for member in range(size) if rng.random() < 0.7]
    return found


def _leaves(rng: Random, size: int, duration: Nanos) -> list[AnyFault]:
    """Sometimes a daemon leaves for good, with its clients. Drawn beside all else."""
    if size < 3 or rng.random() >= 0.2:
        return []
    return [Leave(rng.randrange(200 * MILLISECOND, duration), rng.randrange(size))]


def _trouble(rng: Random, size: int, duration: Nanos) -> list[AnyFault]:
    at = rng.randrange(100 * MILLISECOND, duration)
    member = rng.randrange(size)
    length = rng.choice((80, 200, 400, 700)) * MILLISECOND
    kind = rng.choice(("split", "split", "split", "flap", "crash", "sleep", "loss"))
    if kind == "split":
        return [Partition(at, length, _sides(rng, size))]
    if kind == "flap":
        pause = rng.choice((100, 150, 250)) * MILLISECOND
        return [Partition(at + step * 2 * pause, pause, _sides(rng, size)) for step in range(3)]
    if kind == "crash":
        again = rng.choice((1, 20, 200, 600)) * MILLISECOND
        return [Crash(at, member, 0), *([Recover(at + again, member)] if rng.random() < 0.7 else [])]
    if kind == "sleep":
        return [Sleep(at, member, length)]
    return [Loss(at, length, 0.3)]


def _sides(rng: Random, size: int) -> tuple[tuple[int, ...], ...]:
    parts: dict[int, list[int]] = {}
    for member in range(size):
        parts.setdefault(rng.randrange(rng.choice((2, 2, 3))), []).append(member)
    return tuple(tuple(part) for part in parts.values())
