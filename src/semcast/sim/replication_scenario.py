"""Scenarios for replication servers: splits, crashes of one and of all, disks, clients, operators."""

from random import Random
from typing import Any

from semcast.core.ids import MICROSECOND, MILLISECOND, SECOND, Nanos
from semcast.protocols.ring import RingSettings, SlowPolicy
from semcast.replication.settings import ReplicationSettings
from semcast.sim.faults import (
    Ambush,
    AnyFault,
    Crash,
    CrashAll,
    DiskCopied,
    DiskPutBack,
    DiskStall,
    Leave,
    Loss,
    Partition,
    Recover,
    Sleep,
)
from semcast.sim.replication_deeds import Alter, Ask, Collect, Forget, LookDeed
from semcast.sim.scenario import Scenario, Traffic, slow_applications

_STATES = ("construct", "exchange-actions", "exchange-states", "reg-prim")


def draw_replication(seed: int) -> Scenario:
    """A scenario with trouble in it. The same seed gives the same one for ever."""
    rng = Random(f"replication/{seed}")
    founders = rng.choice((2, 3, 3, 3, 4, 5))
    joiners = rng.choice((0, 0, 1))
    size = founders + joiners
    duration = rng.choice((2000, 4000)) * MILLISECOND
    names = tuple(f"p{number}" for number in range(founders))
    backlog, delays = _slowness(seed, size)
    settings = ReplicationSettings(
        names=names,
        exchange_limit=rng.choice((3, 20, 1000)),
        window=rng.choice((1, 4)),
        line_every=rng.choice((1, 10)),
        patience=rng.choice((300, 2000)) * MILLISECOND,
        trim_every=rng.choice((1, 10)),
        pull_every=rng.choice((20, 100)) * MILLISECOND,
        pull_bytes=rng.choice((100, 40_000)),
        run_bytes=rng.choice((100, 48_000)),
        notes=True,
        **_snapshots(seed),
        backlog=backlog,
    )
    faults = _faults(rng, founders, duration) + _deeds(rng, founders, size, duration)
    operators = _operators(seed, founders, duration)
    if len(_wiped(faults + operators)) < founders:  # what all have lost nobody can tell
        faults += operators
    faults += _stops(seed, founders, duration)
    return Scenario(
        seed=seed,
        stack="replication",
        size=size,
        latency=rng.choice((20, 100, 1000)) * MICROSECOND,
        loss=rng.choice((0.0, 0.0, 0.01, 0.05)),
        duplication=rng.choice((0.0, 0.0, 0.05)),
        jitter=rng.choice((0, 0, 1)) * MILLISECOND,
        ring=_ring(rng),
        settings=settings,
        cpu=rng.choice((0, 10)) * MICROSECOND,
        traffic=_traffic(rng, founders, duration),
        app_delays=delays,
        disks=True,
        faults=tuple(sorted(faults, key=lambda fault: fault.at)),
        duration=duration,
    )


def _snapshots(seed: int) -> dict[str, Any]:
    """Logs that are trimmed behind snapshots, and pulled in small pieces. Drawn beside all else."""
    rng = Random(f"replication/snapshots/{seed}")
    return {
        "snapshots": rng.random() < 0.7,
        "retention": rng.choice((0, 5, 1000)),
        "pull_window": rng.choice((64, 1000, 100_000)),
        "piece_bytes": rng.choice((50, 1000)),
    }


def _slowness(seed: int, size: int) -> tuple[int, dict[int, Nanos]]:
    """Services that take their time, with little room for what waits for them. Drawn beside all else."""
    rng = Random(f"replication/slowness/{seed}")
    if rng.random() < 0.7:
        return 1 << 26, {}
    return rng.choice((200, 1000, 1 << 26)), slow_applications(rng, size)


def _ring(rng: Random) -> RingSettings:
    return RingSettings(
        packet_bytes=rng.choice((300, 1300)),
        window=64,
        visit=rng.choice((8, 64)),
        visit_least=1,
        queue_messages=rng.choice((20, 1024)),
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


def _traffic(rng: Random, founders: int, duration: Nanos) -> tuple[Traffic, ...]:
    senders = rng.sample(range(founders), rng.randint(1, founders))
    rate = rng.choice((5.0, 20.0, 60.0))
    return tuple(
        Traffic(
            sender,
            content="plain",
            arrivals=rng.choice(("constant", "poisson", "bursts")),
            rate=rate,
            count=min(int(rate * duration / SECOND) + 1, 60),
            size=rng.choice((0, 100)),
            safe_every=rng.choice((0, 1, 2)),
        )
        for sender in sorted(senders)
    )


def _faults(rng: Random, founders: int, duration: Nanos) -> list[AnyFault]:
    found: list[AnyFault] = []
    for _ in range(rng.randint(1, 5)):
        found += _trouble(rng, founders, duration)
    if founders > 2 and rng.random() < 0.1:  # one disk at most: what all have lost nobody can tell
        at, member = rng.randrange(100 * MILLISECOND, duration), rng.randrange(founders)
        found += [Crash(at, member, 0), Recover(at + 20 * MILLISECOND, member, with_disk=False)]
    for _ in range(rng.choice((0, 1, 2, 3))):
        lasting = rng.choice((None, None, 100 * MILLISECOND, 400 * MILLISECOND))
        found.append(
            Ambush(
                rng.randrange(duration),
                rng.choice(_STATES),
                lasting,
                patience=SECOND,
                syncing=rng.random() < 0.3,
                closely=True,
                everybody=lasting is None and rng.random() < 0.4,
                back_after=rng.choice((1, 50, 300)) * MILLISECOND,
            )
        )
    # Whoever lies there at the end gets up.
    found += [Recover(duration - MILLISECOND, member) for member in range(founders)]
    return found


def _wiped(faults: list[AnyFault]) -> set[int]:
    """Whose disks are lost at some time."""
    return {fault.member for fault in faults if isinstance(fault, Recover) and not fault.with_disk}


def _trouble(rng: Random, founders: int, duration: Nanos) -> list[AnyFault]:
    at = rng.randrange(100 * MILLISECOND, duration)
    kind = rng.choice(
        ("split", "split", "split", "crash", "crash", "total", "sleep", "loss", "stall", "stall")
    )
    member = rng.randrange(founders)
    again = rng.choice((1, 20, 200, 600)) * MILLISECOND
    length = rng.choice((50, 200, 500, 1000)) * MILLISECOND
    if kind == "split":
        return [Partition(at, length, _sides(rng, founders))]
    if kind == "crash":
        return [Crash(at, member, 0), Recover(at + again, member)]
    if kind == "total":
        window = rng.choice((1, 10, 100)) * MILLISECOND
        back = [
            Recover(at + window + rng.choice((1, 20, 200)) * MILLISECOND, number)
            for number in range(founders)
        ]
        return [CrashAll(at, window), *back]
    if kind == "sleep":
        return [Sleep(at, member, length)]
    if kind == "loss":
        return [Loss(at, length, 0.3)]
    return [DiskStall(at, rng.choice((length, 3 * SECOND)), member)]


def _operators(seed: int, founders: int, duration: Nanos) -> list[AnyFault]:
    """Operators who give up servers, or put old copies of folders back. Drawn beside all else."""
    rng = Random(f"replication/operators/{seed}")
    what = rng.choice(("forget", "put back", *(6 * ("",))))
    if founders < 3 or not what:
        return []
    at = rng.randrange(duration // 4, duration // 2)
    first, *others = rng.sample(range(founders), founders)
    pause = rng.choice((1, 50, 300)) * MILLISECOND
    if what == "put back":
        copied = rng.randrange(100 * MILLISECOND, at)
        return [DiskCopied(copied, first), DiskPutBack(at, first), Recover(at + pause, first)]
    wiped = rng.random() < 0.5
    dead = tuple(others[: rng.randint(1, founders - 1) if wiped else 1])
    found: list[AnyFault] = [Crash(at, member, 0) for member in dead]
    if wiped:
        found += [Recover(at + MILLISECOND, member, with_disk=False) for member in dead]
    later = at + pause
    return [
        *found,
        *(Crash(later, member, 0) for member in dead if not wiped),
        Forget(later, first, dead, wiped),
        *(Recover(later + 10 * MILLISECOND, member) for member in range(founders) if member not in dead),
        *(Recover(later + rng.choice((400, 900)) * MILLISECOND, member) for member in dead),
    ]


def _stops(seed: int, founders: int, duration: Nanos) -> list[AnyFault]:
    """Servers that are stopped in good order and started again, whatever goes on. Drawn beside all else."""
    rng = Random(f"replication/stops/{seed}")
    if rng.random() < 0.7:
        return []
    found: list[AnyFault] = []
    for _ in range(rng.randint(1, 3)):
        at = rng.randrange(10 * MILLISECOND, duration)
        chosen = rng.sample(range(founders), rng.choice((1, 1, 1, founders)))
        found += [Leave(at + rng.choice((0, 1, 20)) * MILLISECOND, member) for member in chosen]
        back = at + rng.choice((30, 300, 1500)) * MILLISECOND
        found += [Recover(back + rng.choice((0, 20)) * MILLISECOND, member) for member in chosen]
        # A sleeper, or one whose disk stalls, leaves late, and then it was not there to be started.
        found += [Recover(duration + 5 * SECOND, member) for member in chosen]
    return found


def _sides(rng: Random, size: int) -> tuple[tuple[int, ...], ...]:
    parts: dict[int, list[int]] = {}
    for member in range(size):
        parts.setdefault(rng.randrange(rng.choice((2, 2, 3))), []).append(member)
    return tuple(tuple(part) for part in parts.values())


def _deeds(rng: Random, founders: int, size: int, duration: Nanos) -> list[AnyFault]:
    """Clients ask here and there, some of it twice, and look; operators change the group."""
    found: list[AnyFault] = []
    asked: list[tuple[str, int, str]] = []
    for number in range(rng.randint(0, 30)):
        again = asked and rng.random() < 0.3
        client, which, level = (
            rng.choice(asked)
            if again
            else (rng.choice(("k0", "k1")), number + 1, rng.choice(("strict", "queued")))
        )
        asked.append((client, which, level))
        at, member = rng.randrange(duration), rng.randrange(founders)
        looked = rng.choice((None, None, rng.randrange(founders)))
        found.append(Ask(at, member, client, which, level, looked))
        found.append(
            LookDeed(rng.randrange(duration), rng.randrange(founders), client, rng.choice(("weak", "dirty")))
        )
    if size == founders:
        found += [Collect(rng.randrange(duration), rng.randrange(founders)) for _ in range(rng.randint(0, 6))]
    for joiner in range(founders, size):
        at = rng.randrange(200 * MILLISECOND, duration)
        found += [Alter(at + step * SECOND, step % founders, "join", joiner) for step in range(3)]
    for _ in range(rng.choice((0, 0, 1))):
        what = rng.choice(("leave", "weigh"))
        if what == "weigh" or founders > 2:
            at, by = rng.randrange(200 * MILLISECOND, duration), rng.randrange(founders)
            found.append(Alter(at, by, what, rng.randrange(founders), rng.choice((0, 1, 2, 3))))
    return found
