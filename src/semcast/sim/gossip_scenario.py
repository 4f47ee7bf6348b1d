"""Scenarios for LBRM, pbcast and rpbcast: losses, crashes, absences, restarts, disks."""

from random import Random

import msgspec

from semcast.core.ids import MAX_NAME, MICROSECOND, MILLISECOND, SECOND, Nanos
from semcast.obsolescence import Purging
from semcast.protocols.gossip import Choice, GossipSettings, Protocol, Retention
from semcast.sim.absence import with_absences
from semcast.sim.cluster import member_names
from semcast.sim.faults import (
    AnyFault,
    Crash,
    Cut,
    Delay,
    DiskLost,
    DiskStall,
    Leave,
    Loss,
    Partition,
    Recover,
    Sleep,
)
from semcast.sim.gossip_deeds import ForgetLogger, PublishBatch
from semcast.sim.scenario import ContentKind, NetworkKind, Scenario, Traffic, slow_applications

SILENCE: Nanos = 2 * SECOND
"""After which a sender counts as gone: longer than most absences, and shorter than a healed group waits."""
INACTIVE: Nanos = 8 * SECOND
"""After which a session ends, where that is drawn: longer than any absence."""


class Strangers(GossipSettings, frozen=True, kw_only=True):
    """Settings of a group whose members find each other."""

    known: float = 0.0
    """How many of the others a member knows to begin with, of 1."""
    named: bool = True
    """Whether members know the names of loggers."""
    regions: int = 0
    """How many regions there are, members and loggers by turns in each."""


_NOTICED = 8
"""Periods after which every logger knows who is not there."""
_TROUBLE = (
    "crash",
    "crash",
    "end",
    "down",
    "sleep",
    "stall",
    "loss",
    "cut",
    "partition",
    "away",
    "delay",
    "leave",
)


def loggers_of(size: int, protocol: Protocol, count: int = 1, name_bytes: int = 0) -> tuple[str, ...]:
    """The last members of a group, unless its protocol knows no loggers."""
    names = member_names(size, name_bytes)[-count:]
    return () if protocol is Protocol.PBCAST else tuple(each.name for each in names)


def draw_gossip(seed: int, protocol: Protocol) -> Scenario:
    """A scenario with trouble in it. The same seed gives the same one for ever."""
    rng = Random(f"{protocol.value}/{seed}")
    size = rng.choice((3, 4, 4, 5, 6, 8))
    network: NetworkKind = rng.choice(("switched", "switched", "shared", "routed"))
    duration = rng.randint(500, 2500) * MILLISECOND
    durable = protocol is not Protocol.PBCAST and not (protocol is Protocol.RPBCAST and rng.random() < 0.15)
    several = Random(f"loggers/{protocol.value}/{seed}")
    count = several.choice((1, 1, 1, 2, 2, 3)) if durable else 0
    size += max(0, count - 1)
    settings = _settings(rng, protocol, loggers_of(size, protocol, count) if durable else ())
    acks = several.randint(1, count) if durable else 1
    settings = msgspec.structs.replace(settings, log_acks=acks)
    beside = Random(f"rewrite/{protocol.value}/{seed}")  # logs that are written anew again and again
    settings = msgspec.structs.replace(settings, rewrite_records=beside.choice((0, 10, 4096)))
    cache = Random(f"cache/{protocol.value}/{seed}").choice((0, 300, 1 << 24))
    settings = msgspec.structs.replace(settings, log_cache=cache)
    receipts = Random(f"receipts/{protocol.value}/{seed}").choice((0, 3, 1024))
    settings = msgspec.structs.replace(settings, receipts=receipts)
    settings = _strangers(Random(f"strangers/{protocol.value}/{seed}"), settings)
    if durable:
        settings = _with_limits(Random(f"limits/{protocol.value}/{seed}"), settings)
        settings = _with_start(Random(f"start/{protocol.value}/{seed}"), settings, duration)
    senders = size - count
    scenario = Scenario(
        seed=seed,
        stack=protocol.value,
        size=size,
        network=network,
        latency=rng.choice((20, 100, 1000, 5000)) * MICROSECOND,
        loss=rng.choice((0.0, 0.01, 0.05, 0.2)),
        duplication=rng.choice((0.0, 0.0, 0.05, 0.2)),
        jitter=rng.choice((0, 1, 10)) * MILLISECOND,
        settings=settings,
        cpu=rng.choice((0, 10, 100)) * MICROSECOND,
        traffic=_traffic(rng, senders, duration),
        app_delays=slow_applications(rng, senders),
        late={rng.randrange(senders): rng.randrange(duration)} if rng.random() < 0.3 else {},
        disks=durable,
        faults=_faults(rng, size, duration, loggers=range(senders, size)),
        duration=duration,
    )
    if durable:
        scenario = _from_position(Random(f"position/{protocol.value}/{seed}"), scenario, senders)
    scenario = _sponsored(Random(f"sponsors/{protocol.value}/{seed}"), scenario, count)
    scenario = _in_regions(Random(f"regions/{protocol.value}/{seed}"), scenario, count)
    scenario = _with_batches(Random(f"batches/{protocol.value}/{seed}"), scenario, count)
    scenario = _without_one(Random(f"forgotten/{protocol.value}/{seed}"), scenario, count)
    scenario = _with_long_names(Random(f"frames/{protocol.value}/{seed}"), scenario, protocol, count)
    away = Random(f"absences/{protocol.value}/{seed}")
    return with_absences(away, scenario) if away.random() < (0.15 if count == 1 else 0.4) else scenario


def _with_long_names(rng: Random, scenario: Scenario, protocol: Protocol, count: int) -> Scenario:
    """Now and then several loggers have more streams than fit into a frame: where names are long, ten do not.

    All members send, and in many lives each.
    """
    settings = scenario.settings
    if count < 2 or rng.random() > 0.3:
        return scenario
    assert isinstance(settings, GossipSettings)
    settings = msgspec.structs.replace(settings, loggers=loggers_of(scenario.size, protocol, count, MAX_NAME))
    members = [number for number in range(scenario.size - count) if number not in scenario.late]
    senders = {each.sender for each in scenario.traffic}
    others = [number for number in members if number not in senders]
    crashes: list[AnyFault] = []
    for _ in range(rng.choice((5, 15, 30)) if members else 0):  # each time another stream
        at, victim = rng.randrange(scenario.duration), rng.choice(members)
        crashes += _last_words(rng, scenario.size, victim, at)
        crashes += [Crash(at, victim, 0), Recover(at + rng.choice((1, 50)) * MILLISECOND, victim)]
    more = [msgspec.structs.replace(scenario.traffic[0], sender=number) for number in others]
    return msgspec.structs.replace(
        scenario,
        name_bytes=MAX_NAME,
        settings=settings,
        traffic=tuple(sorted((*scenario.traffic, *more), key=lambda each: each.sender)),
        faults=tuple(sorted((*scenario.faults, *crashes), key=lambda fault: fault.at)),
    )


def _sponsored(rng: Random, scenario: Scenario, count: int) -> Scenario:
    """How many sponsors who joins needs; now and then some come while no logger is there."""
    settings = scenario.settings
    if not isinstance(settings, Strangers):
        return scenario
    chosen = {"sponsors": rng.choice((0, 1, 1, 2, 3)), "join_rounds": rng.choice((1, 5, 10))}
    if count and rng.random() < 0.35:
        return _without_loggers(rng, scenario, count, chosen)
    return msgspec.structs.replace(scenario, settings=msgspec.structs.replace(settings, **chosen))


def _without_loggers(rng: Random, scenario: Scenario, count: int, chosen: dict[str, int]) -> Scenario:
    """All loggers are down for most of the time; others join meanwhile, and some of their sponsors crash.

    Those who join do not: only the sponsors know of their sessions, and live none of them could start again
    under the same name.
    """
    settings, size, duration = scenario.settings, scenario.size, scenario.duration
    assert isinstance(settings, Strangers)
    loggers, members = range(size - count, size), range(size - count)
    down = rng.randrange(duration // 3)
    faults: list[AnyFault] = [
        fault for fault in scenario.faults if not (isinstance(fault, Recover) and fault.member in loggers)
    ]
    faults += [Crash(down + rng.choice((0, 0, 20)) * MILLISECOND, logger, 0) for logger in loggers]
    faults += [Recover(duration - rng.choice((1, 300)) * MILLISECOND, logger) for logger in loggers]
    faults += [Recover(_in_the_end(faults, logger, duration), logger) for logger in loggers]
    late = rng.sample(members, min(len(members), rng.choice((1, 1, 2))))
    times = {number: down + rng.randrange(duration // 3) for number in late}
    faults = [fault for fault in faults if not (isinstance(fault, Crash | Recover) and fault.member in late)]
    others = [number for number in members if number not in late]
    if others and rng.random() < 0.3:
        at, gone = rng.randrange(duration), rng.choice(others)
        faults += [Crash(at, gone, 0), Recover(at + rng.choice((1, 200)) * MILLISECOND, gone)]
    few = {"sponsors": rng.choice((1, 1, 2))}
    return msgspec.structs.replace(
        scenario,
        settings=msgspec.structs.replace(
            settings, **{**chosen, **few}, start="new", presence=50 * MILLISECOND, report=50 * MILLISECOND
        ),
        late=times,
        faults=tuple(sorted(faults, key=lambda fault: fault.at)),
    )


def _in_the_end(faults: list[AnyFault], logger: int, duration: Nanos) -> Nanos:
    """When a logger is there for good: after its last crash, since without any logger nobody may send."""
    crashes = [fault.at for fault in faults if isinstance(fault, Crash) and fault.member == logger]
    return max(duration - MILLISECOND, *(at + 1 for at in crashes))


def _in_regions(rng: Random, scenario: Scenario, count: int) -> Scenario:
    """Now and then members are in two regions with a logger each, and one of them is cut off."""
    settings, at = scenario.settings, rng.randrange(scenario.duration)
    if count < 2 or not isinstance(settings, Strangers) or rng.random() < 0.5:
        return scenario
    sides = tuple(range(0, scenario.size, 2)), tuple(range(1, scenario.size, 2))
    cut = Partition(at, rng.choice((100, 400, 1000)) * MILLISECOND, sides)
    return msgspec.structs.replace(
        scenario,
        settings=msgspec.structs.replace(settings, regions=2),
        faults=tuple(sorted((*scenario.faults, cut), key=lambda fault: fault.at)),
    )


def _with_batches(rng: Random, scenario: Scenario, count: int) -> Scenario:
    """Now and then programs that are no members have loggers log batches, some of them twice."""
    if not count or rng.random() > (0.1 if count == 1 else 0.3):
        return scenario
    faults: list[AnyFault] = list(scenario.faults)
    for key in range(rng.randint(1, 4)):
        logger, batch = rng.randrange(scenario.size - count, scenario.size), rng.choice((1, 3, 20))
        at = rng.randrange(scenario.duration)
        again = at + rng.choice((20, 300)) * MILLISECOND
        faults += [PublishBatch(each, logger, key, batch) for each in (at, again)[: rng.randint(1, 2)]]
    return msgspec.structs.replace(scenario, faults=tuple(sorted(faults, key=lambda fault: fault.at)))


def _without_one(rng: Random, scenario: Scenario, count: int) -> Scenario:
    """Now and then a logger crashes for good, and another is told to go on without it; it may come back."""
    if count < 2 or rng.random() > 0.25:
        return scenario
    settings = scenario.settings
    assert isinstance(settings, GossipSettings)
    loggers = list(range(scenario.size - count, scenario.size))
    gone = rng.choice(loggers)
    others = [number for number in loggers if number != gone]
    at = rng.randrange(scenario.duration)
    told = at + rng.choice((0, 100, 1000)) * MILLISECOND
    faults: list[AnyFault] = [
        fault for fault in scenario.faults if not (isinstance(fault, Recover) and fault.member == gone)
    ]
    faults += [Crash(at, gone, 0), ForgetLogger(told, rng.choice(others), gone)]
    # Refused while the other one may be there, for all that one which has just started knows: asked later.
    later = scenario.duration + _NOTICED * settings.presence
    faults += [ForgetLogger(later, number, gone) for number in others]
    if Random(f"inactive/{scenario.stack}/{scenario.seed}").random() < 0.5:
        settings = msgspec.structs.replace(settings, inactive=INACTIVE)
    if rng.random() < 0.5:
        faults.append(Recover(told + rng.choice((1, 200, 2000)) * MILLISECOND, gone))
    return msgspec.structs.replace(
        scenario,
        settings=msgspec.structs.replace(settings, log_acks=min(settings.log_acks, count - 1)),
        faults=tuple(sorted(faults, key=lambda fault: fault.at)),
    )


def _settings(rng: Random, protocol: Protocol, loggers: tuple[str, ...]) -> GossipSettings:
    period = rng.choice((10, 20, 50)) * MILLISECOND
    heartbeat = rng.choice((10, 50)) * MILLISECOND
    return GossipSettings(
        protocol=protocol,
        loggers=loggers,
        gossip_period=period,
        gc_rounds=rng.choice((2, 5, 10)),
        gossip_rounds=rng.choice((2, 5, 10)),
        gossip_messages=rng.choice((4, 50, 1000)),
        choice=rng.choice(tuple(Choice)),
        eager=rng.random() < 0.7,
        heartbeat_least=heartbeat,
        heartbeat_most=heartbeat * rng.choice((1, 4, 16)),
        resend=rng.choice((20, 50)) * MILLISECOND,
        repairs_per_second=rng.choice((100, 1000, 10_000)),
        report=rng.choice((50, 150)) * MILLISECOND,
        window=rng.choice((1, 4, 64)),
        hold=rng.choice((2, 20, 500)),
        queue_messages=rng.choice((1, 10, 500)),
        reserve_messages=1000,
        purging=rng.choice((Purging.EAGER, Purging.LAZY, Purging.LAZY, Purging.OFF)),
        start=rng.choice(("new", "all")),
        at_most_once=rng.random() < 0.3,
        retention=rng.choice((Retention.STABLE, Retention.STABLE, Retention.LIVE, Retention.LIMITS)),
        log_messages=rng.choice((5, 50)),
        compact=rng.random() < 0.7,
        silence=SILENCE,
    )


def _strangers(rng: Random, settings: GossipSettings) -> GossipSettings:
    """Half of the time members do not know each other to begin with."""
    if rng.random() < 0.5:
        return settings
    presence = rng.choice((50, 150)) * MILLISECOND
    return Strangers(
        **{**msgspec.structs.asdict(settings), "presence": presence},
        known=rng.choice((0.0, 0.0, 0.3, 1.0)),
        named=len(settings.loggers) > 1 or rng.random() < 0.5,
    )


def _with_limits(rng: Random, settings: GossipSettings) -> GossipSettings:
    """Some logs have a bound of bytes, or of age."""
    kind = rng.random()
    if kind < 0.15:
        return msgspec.structs.replace(settings, log_bytes=rng.choice((100, 1000, 10_000)))
    if kind < 0.3:
        return msgspec.structs.replace(settings, log_age=rng.choice((50, 500)) * MILLISECOND)
    return settings


def _with_start(rng: Random, settings: GossipSettings, duration: Nanos) -> GossipSettings:
    """Some sessions begin with a time, or want the log compacted, or only some items."""
    kind = rng.random()
    if rng.random() < 0.15:
        settings = msgspec.structs.replace(settings, filter=rng.choice(("i0", "i1", "other")))
    if kind < 0.15:
        return msgspec.structs.replace(settings, start="time", start_at=rng.randrange(duration))
    return msgspec.structs.replace(settings, start="compacted") if kind < 0.4 else settings


def _from_position(rng: Random, scenario: Scenario, senders: int) -> Scenario:
    """Now and then sessions begin with the first position, and some come when that may have left the log."""
    if rng.random() > 0.1:
        return scenario
    settings = scenario.settings
    assert isinstance(settings, GossipSettings)
    late = {rng.randrange(senders): rng.randrange(scenario.duration) for _ in range(rng.randint(1, 2))}
    return msgspec.structs.replace(
        scenario, settings=msgspec.structs.replace(settings, start="position"), late=late
    )


def _traffic(rng: Random, senders: int, duration: Nanos) -> tuple[Traffic, ...]:
    kinds: tuple[ContentKind, ...] = ("items", "items", "bitmaps", "enumerated", "operations", "plain")
    chosen = rng.sample(range(senders), rng.choice((1, 1, 2, senders)))
    found = []
    for sender in sorted(chosen):
        rate = rng.choice((20.0, 100.0))
        found.append(
            Traffic(
                sender,
                content=rng.choice(kinds),
                arrivals=rng.choice(("constant", "poisson", "bursts")),
                rate=rate,
                count=min(int(rate * duration / SECOND) + 1, 80),
                r=rng.choice((0.3, 0.7, 1.0)),
                d=rng.choice((1, 2, 5)),
                k=rng.choice((4, 32)),
                size=rng.choice((0, 0, 100)),
            )
        )
    return tuple(found)


def _faults(rng: Random, size: int, duration: Nanos, *, loggers: range) -> tuple[AnyFault, ...]:
    found: list[AnyFault] = []
    for _ in range(rng.randint(0, 5) + len(loggers) // 2):
        found += _trouble(rng, size, duration, loggers)
    if loggers:
        if rng.random() < 0.15:
            at, logger = rng.randrange(duration), _one(rng, loggers)
            found += [DiskLost(at, logger), Recover(at + rng.choice((1, 50, 400)) * MILLISECOND, logger)]
        found += [Recover(duration - MILLISECOND, logger) for logger in loggers]
    return tuple(sorted(found, key=lambda fault: fault.at))


def _trouble(rng: Random, size: int, duration: Nanos, loggers: range) -> list[AnyFault]:
    at = rng.randrange(duration)
    length = rng.choice((20, 100, 400, 1000)) * MILLISECOND
    again = rng.choice((1, 20, 200, 600)) * MILLISECOND
    member = rng.randrange(size)
    logger = _one(rng, loggers) if loggers else None
    other = rng.randrange(loggers.start) if loggers else member
    kind = rng.choice(_TROUBLE)
    if kind == "crash":
        detected = rng.choice((0, 50, 300)) * MILLISECOND
        return [*_last_words(rng, size, other, at), Crash(at, other, detected), Recover(at + again, other)]
    if kind == "end":
        return [*_last_words(rng, size, other, at), Crash(at, other, rng.choice((0, 300)) * MILLISECOND)]
    if kind == "down" and logger is not None:
        return [Crash(at, logger, 0), Recover(at + again, logger)]
    if kind == "leave":
        return [Leave(at, other)] if rng.random() < 0.5 else []
    if kind == "sleep":
        return [Sleep(at, member, length)]
    if kind == "loss":
        return [Loss(at, length, rng.choice((0.3, 0.7)))]
    if kind == "delay":
        return [Delay(at, length, member, rng.choice((1, 20)) * MILLISECOND)]
    if kind == "stall" and logger is not None:
        return [DiskStall(at, length, logger)]
    members = list(range(size))
    if kind == "away":
        rest = tuple(number for number in members if number != other)
        return [Partition(at, rng.choice((length, 3 * SECOND)), ((other,), rest))]
    rng.shuffle(members)
    split = rng.randint(1, size - 1)
    sides = (tuple(sorted(members[:split])), tuple(sorted(members[split:])))
    return [Partition(at, length, sides) if kind == "partition" else Cut(at, length, *sides)]


def _one(rng: Random, loggers: range) -> int:
    """One of them; where there is no choice, nothing is drawn."""
    return loggers[0] if len(loggers) == 1 else rng.choice(loggers)


def _last_words(rng: Random, size: int, victim: int, crash: Nanos) -> list[AnyFault]:
    """What a process sends before it crashes reaches only some, and often no logger."""
    if rng.random() < 0.4:
        return []
    length = rng.choice((20, 60, 150)) * MILLISECOND
    start = max(0, crash - length)
    others = [member for member in range(size) if member != victim]
    deaf = rng.sample(others, rng.randint(1, len(others)))
    if rng.random() < 0.5 and size - 1 not in (victim, *deaf):
        deaf.append(size - 1)
    return [Cut(start, length, (victim,), tuple(sorted(deaf)))]
