"""What users of virtual synchrony meet besides faults: put on top of what a seed draws.

Only from seed `FIRST` on: mutants and seeds that once failed are known by the numbers of earlier ones.
"""

from random import Random

import msgspec

from semcast.core.ids import MILLISECOND, SECOND
from semcast.protocols.vsync import Agreement, Flush, Order, VsyncSettings
from semcast.sim.faults import Ambush, AnyFault, Crash, CrashAll, Cut, DiskFull, Leave, Recover
from semcast.sim.scenario import Scenario, Traffic

FIRST = 200
_MANY = 2000
_HEAD = 100
"""Bytes that a workload writes in a message besides those that are asked for, at most."""


def with_users(drawn: Scenario) -> Scenario:
    """The same trouble, or another user."""
    if drawn.seed < FIRST:
        return drawn
    rng = Random(f"vsync users/{drawn.seed}")
    kinds = (_narrow, _closes, _slow_policy, _long, _oracle)
    if rng.random() < 0.5:
        drawn = rng.choice(kinds)(rng, drawn)
    else:
        drawn = _dead_link(Random(f"vsync link/{drawn.seed}"), drawn)
    drawn = _shared(Random(f"vsync shared/{drawn.seed}"), drawn)
    return _misfitting(Random(f"vsync misfit/{drawn.seed}"), drawn)


def fitting(drawn: Scenario) -> Scenario:
    """With messages no larger than the buffers of a member have room for: larger ones are refused at once."""
    stream = drawn.vsync.stream()
    pieces = min(stream.window, stream.buffer_messages - drawn.size) // 2
    most = stream.frame_bytes * max(pieces, 1) - _HEAD
    if all(each.size <= most for each in drawn.traffic):
        return drawn
    traffic = (msgspec.structs.replace(each, size=min(each.size, most)) for each in drawn.traffic)
    return msgspec.structs.replace(drawn, traffic=tuple(traffic))


def _shared(rng: Random, drawn: Scenario) -> Scenario:
    """In total order, sometimes messages replace those of others. Drawn apart from the other users."""
    if drawn.vsync.order is not Order.TOTAL or rng.random() < 0.7:
        return drawn
    traffic = tuple(
        msgspec.structs.replace(
            each, content="shared", r=rng.choice((0.1, 0.5, 1.0)), k=rng.choice((4, 12, 40))
        )
        for each in drawn.traffic
    )
    slow = {rng.randrange(drawn.size): rng.choice((5, 20)) * MILLISECOND}  # there something can be replaced
    return msgspec.structs.replace(drawn, traffic=traffic, app_delays=slow)


def _narrow(rng: Random, drawn: Scenario) -> Scenario:
    """A network with an MTU, and members with long names."""
    settings = msgspec.structs.replace(drawn.vsync, frame_bytes=min(drawn.vsync.frame_bytes, 900))
    return msgspec.structs.replace(
        drawn, vsync=settings, mtu=rng.choice((1280, 1500)), name_bytes=rng.choice((0, 30, 60))
    )


def _closes(rng: Random, drawn: Scenario) -> Scenario:
    """A program closes its group and comes back, again and again; the others remember what there was."""
    number, at = rng.randrange(drawn.size), rng.randrange(drawn.duration // 4, drawn.duration)
    faults: list[AnyFault] = _without_endings(drawn)
    for _ in range(rng.randint(1, 3)):
        gone = at + rng.choice((10, 300, 4000)) * MILLISECOND
        faults += [Leave(at, number), Recover(gone, number)]
        at = gone + rng.choice((100, 800)) * MILLISECOND
    return msgspec.structs.replace(drawn, faults=tuple(sorted(faults, key=lambda fault: fault.at)))


def _slow_policy(rng: Random, drawn: Scenario) -> Scenario:
    """Who is slow is put out, or leaves by itself."""
    settings = msgspec.structs.replace(
        drawn.vsync,
        expel_when_full=rng.random() < 0.5,
        leave_after=rng.choice((0, 100, 500)) * MILLISECOND,
    )
    return msgspec.structs.replace(drawn, vsync=settings)


def _long(rng: Random, drawn: Scenario) -> Scenario:
    """Thousands of messages, in a small group."""
    if drawn.size > 4 or drawn.network != "switched":
        return drawn
    rate = rng.choice((500.0, 2000.0))
    traffic = tuple(
        Traffic(sender, rng.choice(("items", "plain")), "poisson", rate, _MANY // drawn.size, r=0.7, d=5)
        for sender in range(drawn.size)
    )
    return msgspec.structs.replace(
        drawn, traffic=traffic, app_delays={}, loss=min(drawn.loss, 0.05), jitter=0
    )


def _oracle(rng: Random, drawn: Scenario) -> Scenario:
    """Failures are known, not suspected: all but one may crash, and nobody is put out."""
    settings = msgspec.structs.replace(drawn.vsync, agreement=Agreement.ORACLE, expel_after=0)
    victims = rng.sample(range(drawn.size), rng.randint(1, drawn.size - 1))
    faults = _without_endings(drawn)
    for victim in victims:
        at = rng.randrange(drawn.duration // 2, drawn.duration)
        faults.append(Crash(at, victim, detected_after=rng.choice((0, 5, 50)) * MILLISECOND))
    ordered = tuple(sorted(faults, key=lambda fault: fault.at))
    return msgspec.structs.replace(drawn, vsync=settings, faults=ordered, disks=False)


def _dead_link(rng: Random, drawn: Scenario) -> Scenario:
    """Sometimes a link is dead for much longer than anybody waits, in one direction or in both."""
    if drawn.size < 2 or rng.random() < 0.8:
        return drawn
    one, other = rng.sample(range(drawn.size), 2)
    at, length = rng.randrange(drawn.duration), rng.choice((3, 8)) * SECOND
    cuts = [Cut(at, length, (one,), (other,))]
    if rng.random() < 0.5:
        cuts.append(Cut(at, length, (other,), (one,)))
    faults = sorted((*drawn.faults, *cuts), key=lambda fault: fault.at)
    return msgspec.structs.replace(drawn, faults=tuple(faults))


def _misfitting(rng: Random, drawn: Scenario) -> Scenario:
    """Somebody has set otherwise what all must have set alike, and may start when the group stands.

    No process ends but that one: a group that is left with too few founders waits rightly.
    """
    if drawn.size < 3 or drawn.vsync.agreement is Agreement.ORACLE or rng.random() >= 0.08:
        return drawn
    odd = rng.randrange(drawn.size)
    late = {odd: rng.randrange(drawn.duration)} if rng.random() < 0.5 else {}
    faults = tuple(fault for fault in _without_endings(drawn) if not isinstance(fault, DiskFull))
    return msgspec.structs.replace(drawn, misfits=(odd,), late=late, faults=faults)


def odd_settings(scenario: Scenario) -> VsyncSettings:
    """What misfits have set: one thing otherwise than the others."""
    settings = scenario.vsync
    odd: dict[str, object] = {
        "order": Order.TOTAL if settings.order is Order.FIFO else Order.FIFO,
        "flush": Flush.ALL if settings.flush is Flush.COORDINATOR else Flush.COORDINATOR,
        "uniform": not settings.uniform,
        "frame_bytes": settings.frame_bytes - 50,
        "buffer_messages": settings.buffer_messages + 1,
        "window": settings.window + 1,
    }
    name = Random(f"vsync odd/{scenario.seed}").choice(sorted(odd))
    return msgspec.structs.replace(settings, **{name: odd[name]})


def _without_endings(drawn: Scenario) -> list[AnyFault]:
    """Faults in which no process ends."""
    return [
        fault for fault in drawn.faults if not isinstance(fault, Crash | CrashAll | Recover | Leave | Ambush)
    ]
