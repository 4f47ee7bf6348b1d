"""Scenarios for causal domains: overlapping groups, programs that come and go, crashes, and slow readers."""

from random import Random

import msgspec

from semcast.core.ids import MICROSECOND, MILLISECOND, Nanos
from semcast.protocols.isis import IsisSettings, Policy
from semcast.protocols.vsync import DetectorSettings, VsyncSettings
from semcast.sim.faults import AnyFault, Crash, Cut, Delay, Loss, Partition, Recover, Sleep
from semcast.sim.isis_programs import Act, IsisPlan
from semcast.sim.scenario import Fixed, Scenario

Groups = tuple[tuple[str, tuple[int, ...]], ...]
"""Groups, and the numbers of the processes that found them."""

_WITH_CLIENTS = 0.4
"""In so many of the runs groups have clients."""
_NAMES = ("a", "b", "c", "d", "e")


class IsisVariant(Fixed, frozen=True):
    """What a swarm may fix; the rest is drawn."""

    policy: Policy | None = None
    resilience: str | None = None
    clients: bool | None = None
    """Whether some groups have clients."""
    lazy: bool = False
    """Whether programs read slowly, and little may be on its way to them: buffers are mostly full."""


def draw_isis(seed: int, variant: IsisVariant | None = None) -> Scenario:
    """A scenario with trouble in it. The same seed and variant give the same one for ever."""
    rng = Random(f"isis/{seed}")
    size = rng.choice((3, 4, 4, 5, 5, 6))
    duration = rng.choice((1000, 1500)) * MILLISECOND
    groups = _groups(rng, size)
    chosen = variant or IsisVariant()
    if chosen.policy is Policy.BLOCKS:
        size, groups = _overlapping(Random(f"isis/overlaps/{seed}"), size, groups)
    calls = _calls(Random(f"isis/calls/{seed}"), size, duration)
    plan = IsisPlan(
        settings=_settings(rng, seed, chosen),
        groups=groups,
        slow=tuple(number for number in range(size) if rng.random() < 0.25),
        answers=rng.choice((0, 10, 30)),
        many=rng.choice((1, 4)),
        calls=groups[0][0] if calls else "",
        ordered=Random(f"isis/ordered/{seed}").choice((0.0, 0.0, 0.3, 1.0)),
        directs=Random(f"isis/directs/{seed}").choice((0.0, 0.3, 0.7)),
    )
    faults = _trouble(rng, size, duration)
    steady = set(range(size)).difference(*map(_harmed, faults))
    faults += _crashes(rng, size, duration, groups, steady)
    victims = {each.member for each in faults if isinstance(each, Crash)}
    faults += _moves(rng, size, duration, groups, steady, victims)
    faults += _sends(rng, size, duration, [name for name, _ in groups], [fault.at for fault in faults])
    faults += _tells(Random(f"isis/tells/{seed}"), size, duration, [fault.at for fault in faults])
    draws = Random(f"isis/clients/{seed}")
    if chosen.clients or (chosen.clients is None and draws.random() < _WITH_CLIENTS):
        size, plan, more = _with_clients(draws, size, duration, plan, [fault.at for fault in faults])
        faults += more
    if chosen.policy is Policy.BLOCKS:
        plan = _asserting(Random(f"isis/structure/{seed}"), plan, faults)
    if chosen.lazy:
        lazy = Random(f"isis/lazy/{seed}")
        plan = _lazy(lazy, size, plan)
        faults += _floods(lazy, size, duration, [name for name, _ in groups])
    faults += calls
    faults += _flushes(Random(f"isis/flushes/{seed}"), size, duration)
    return Scenario(
        seed=seed,
        stack="isis",
        size=size,
        latency=rng.choice((20, 100, 1000)) * MICROSECOND,
        loss=rng.choice((0.0, 0.0, 0.01, 0.05)),
        duplication=rng.choice((0.0, 0.0, 0.05)),
        jitter=rng.choice((0, 1, 5)) * MILLISECOND,
        settings=plan,
        cpu=rng.choice((0, 10)) * MICROSECOND,
        faults=tuple(sorted(faults, key=lambda fault: fault.at)),
        duration=duration,
    )


def _groups(rng: Random, size: int) -> Groups:
    count = rng.choice((2, 2, 3, 3, 4))
    found = []
    for name in _NAMES[:count]:
        founders = rng.sample(range(size), rng.randint(2 if rng.random() < 0.2 else 3, min(size, 5)))
        found.append((name, tuple(sorted(founders))))
    return tuple(found)


def _with_clients(
    rng: Random, size: int, duration: Nanos, plan: IsisPlan, moments: list[Nanos]
) -> tuple[int, IsisPlan, list[AnyFault]]:
    """Some groups have clients: processes of other groups, and some more that are in no views at all.

    Clients come, go, sleep and crash, and servers and clients send.
    """
    names = [name for name, _ in plan.groups]
    styled = rng.sample(names, rng.choice((1, 1, 2)))
    more = size + rng.choice((1, 2, 3))
    styles = tuple((name, rng.choice(("client-server", "client-server", "diffusion"))) for name in styled)
    founders = dict(plan.groups)
    clients, found = [], list[AnyFault]()
    for name in styled:
        outside = [number for number in range(more) if number not in founders[name]]
        chosen = [number for number in outside if rng.random() < (0.7 if number >= size else 0.3)]
        clients.append((name, tuple(chosen)))
        for number in outside:
            found += _visits(rng, number, name, duration, there=number in chosen)
    for number in range(size, more):
        found += _client_trouble(rng, number, duration)
    for _ in range(rng.choice((20, 60))):
        at = rng.randrange(150 * MILLISECOND, duration)
        if moments and rng.random() < 0.5:
            at = min(
                max(rng.choice(moments) + rng.randrange(-30, 60) * MILLISECOND, MILLISECOND), duration - 1
            )
        found.append(
            Act(at, rng.randrange(more), what="send", group=rng.choice(styled), run=rng.choice((1, 1, 3)))
        )
    slow = (*plan.slow, *(number for number in range(size, more) if rng.random() < 0.25))
    return more, msgspec.structs.replace(plan, styles=styles, clients=tuple(clients), slow=slow), found


def _visits(rng: Random, number: int, group: str, duration: Nanos, *, there: bool) -> list[AnyFault]:
    if rng.random() > 0.3:
        return []
    at = rng.randrange(duration // 5, duration)
    if not there:
        return [Act(at, number, what="visit", group=group)]
    found: list[AnyFault] = [Act(at, number, what="leave", group=group)]
    if rng.random() < 0.6:
        found.append(Act(at + rng.choice((5, 100, 400)) * MILLISECOND, number, what="visit", group=group))
    return found


def _client_trouble(rng: Random, number: int, duration: Nanos) -> list[AnyFault]:
    at = rng.randrange(duration // 4, duration)
    kind = rng.choice(("", "", "crash", "restart", "sleep", "loss"))
    if kind == "sleep":
        return [Sleep(at, number, rng.choice((100, 600, 1500)) * MILLISECOND)]
    if kind == "loss":
        return [Loss(at, 250 * MILLISECOND, 0.4, number)]
    if kind in ("crash", "restart"):
        again = [Recover(at + rng.choice((1, 50, 800)) * MILLISECOND, number)] if kind == "restart" else []
        return [Crash(at, number, detected_after=0), *again]
    return []


def _overlapping(rng: Random, size: int, groups: Groups) -> tuple[int, Groups]:
    """In half of the runs groups in a row or in a ring, so that not everything is near to everything."""
    shape = rng.choice(("drawn", "drawn", "row", "ring"))
    if shape == "drawn":
        return size, groups
    count = rng.choice((3, 4))
    shared = rng.choice((1, 2))  # members of two groups that are side by side
    size = count * 2 + shared if shape == "row" else count * 2
    members = [
        tuple(sorted({(2 * place + each) % size for each in range(2 + shared)})) for place in range(count)
    ]
    return size, tuple(zip(_NAMES, members, strict=False))


def _asserting(rng: Random, plan: IsisPlan, faults: list[AnyFault]) -> IsisPlan:
    """The program knows who will ever be in which groups, and says so; or it says nothing."""
    if rng.random() < 0.2:
        return plan
    groups_of: dict[int, set[str]] = {}
    for name, founders in (*plan.groups, *plan.clients):
        for number in founders:
            groups_of.setdefault(number, set()).add(name)
    for fault in faults:
        if isinstance(fault, Act) and fault.what in ("join", "visit"):
            groups_of.setdefault(fault.member, set()).add(fault.group)
    structure = tuple(sorted({tuple(sorted(groups)) for groups in groups_of.values()}))
    settings = msgspec.structs.replace(plan.settings, structure=structure)
    return msgspec.structs.replace(plan, settings=settings)


def _settings(rng: Random, seed: int, variant: IsisVariant) -> IsisSettings:
    rng.choice((0, 1))  # there were two policies once: the rest of a seed is drawn as it was then
    policy = Random(f"isis/policy/{seed}").choice(list(Policy))
    resilience = rng.choice(("safe", "safe", "safe", "all"))
    return IsisSettings(
        policy=variant.policy or policy,
        resilience=variant.resilience or resilience,
        credit=rng.choice((2, 8, 64)),
        send_messages=64,
        stamp_age=rng.choice((50, 300)) * MILLISECOND,
        notes=True,
        vsync=VsyncSettings(
            buffer_messages=rng.choice((16, 64)),
            window=64,
            detector=DetectorSettings(
                heartbeat=20 * MILLISECOND,
                timeout_initial=rng.choice((150, 300)) * MILLISECOND,
                timeout_min=80 * MILLISECOND,
                timeout_max=1000 * MILLISECOND,
                margin=rng.choice((20, 60)) * MILLISECOND,
            ),
            ack_delay=rng.choice((1, 5)) * MILLISECOND,
            resend=10 * MILLISECOND,
            hello=40 * MILLISECOND,
            linger=rng.choice((0, 200)) * MILLISECOND,
        ),
    )


def _lazy(rng: Random, size: int, plan: IsisPlan) -> IsisPlan:
    """Nearly everybody takes one thing at a time, and a sender has to wait for that after a few messages."""
    settings = msgspec.structs.replace(
        plan.settings,
        credit=rng.choice((1, 2, 4)),
        vsync=msgspec.structs.replace(plan.settings.vsync, buffer_messages=16),
    )
    slow = tuple(number for number in range(size) if rng.random() < 0.9)
    return msgspec.structs.replace(plan, settings=settings, slow=slow, many=1)


def _floods(rng: Random, size: int, duration: Nanos, names: list[str]) -> list[AnyFault]:
    """Programs send one group after the other more than they have credit for."""
    found: list[AnyFault] = []
    for _ in range(rng.choice((4, 8))):
        at, member = rng.randrange(150 * MILLISECOND, duration), rng.randrange(size)
        for name in rng.sample(names, rng.randint(1, len(names))):
            found.append(Act(at, member, what="send", group=name, run=rng.choice((4, 12))))
    return found


def _harmed(fault: AnyFault) -> set[int]:
    """Who may be put out because of it."""
    if isinstance(fault, Partition):
        return set(fault.groups[0])
    return {fault.member} if isinstance(fault, Sleep | Loss | Delay) and fault.member is not None else set()


def _crashes(
    rng: Random,
    size: int,
    duration: Nanos,
    groups: Groups,
    steady: set[int],
) -> list[AnyFault]:
    """So few that every group keeps a majority; what is sent before may reach only some."""
    found: list[AnyFault] = []
    victims: set[int] = set()
    for victim in rng.sample(range(size), rng.choice((0, 1, 1, 2))):
        more = {victim, *victims}
        if any(len(steady.intersection(who) - more) <= len(more) for _, who in groups):
            continue
        victims.add(victim)
        at = rng.randrange(duration // 3, duration)
        found.append(Crash(at, victim, detected_after=0))
        if rng.random() < 0.7:
            length = rng.choice((5, 20, 60)) * MILLISECOND
            others = [number for number in range(size) if number != victim]
            deaf = tuple(sorted(rng.sample(others, rng.randint(1, len(others)))))
            found.append(Cut(at - length, length, (victim,), deaf))
        if rng.random() < 0.4:
            found.append(Recover(at + rng.choice((50, 300, 800)) * MILLISECOND, victim))
    return found


def _trouble(rng: Random, size: int, duration: Nanos) -> list[AnyFault]:
    found: list[AnyFault] = []
    for _ in range(rng.choice((0, 1, 1, 2))):
        at, member = rng.randrange(duration // 4, duration), rng.randrange(size)
        length = rng.choice((20, 100, 250, 600)) * MILLISECOND
        kind = rng.choice(("sleep", "split", "loss", "delay", "delay"))
        if kind == "sleep":
            found.append(Sleep(at, member, length))
        elif kind == "split":
            others = tuple(number for number in range(size) if number != member)
            found.append(Partition(at, length, ((member,), others)))
        elif kind == "loss":
            found.append(Loss(at, length, 0.4, member))
        else:
            found.append(Delay(at, length, member, rng.choice((1, 30)) * MILLISECOND))
    return found


def _moves(
    rng: Random,
    size: int,
    duration: Nanos,
    groups: Groups,
    steady: set[int],
    victims: set[int],
) -> list[AnyFault]:
    """Programs join and leave while others send. More than may crash stay in each group, undisturbed."""
    found: list[AnyFault] = []
    stay = {name: steady.intersection(who) - victims for name, who in groups}
    for _ in range(rng.choice((0, 1, 2, 4, 6))):
        name, founders = rng.choice(groups)
        at, member = rng.randrange(duration // 5, duration), rng.randrange(size)
        if member not in founders:
            found.append(Act(at, member, what="join", group=name))
            if rng.random() < 0.3:
                found.append(Act(at + rng.choice((20, 300)) * MILLISECOND, member, what="leave", group=name))
        elif len(stay[name] - {member}) > len(victims) + 1:
            stay[name].discard(member)
            found.append(Act(at, member, what="leave", group=name))
            if rng.random() < 0.4:
                found.append(Act(at + rng.choice((100, 400)) * MILLISECOND, member, what="join", group=name))
    return found


def _flushes(rng: Random, size: int, duration: Nanos) -> list[AnyFault]:
    """Drawn apart."""
    moments = [rng.randrange(duration // 4, duration) for _ in range(rng.choice((0, 0, 2, 5)))]
    return [Act(at, rng.randrange(size), what="flush", group="") for at in moments]


def _calls(rng: Random, size: int, duration: Nanos) -> list[AnyFault]:
    """Programs call each other in one of the groups; drawn apart."""
    found: list[AnyFault] = []
    for _ in range(rng.choice((0, 0, 10, 30))):
        at, member = rng.randrange(150 * MILLISECOND, duration), rng.randrange(size)
        to, replies = (
            rng.choice((-1, -1, rng.randrange(size), member)),
            rng.choice(("first", "majority", "all")),
        )
        timeout = rng.choice((20, 500)) * MILLISECOND
        found.append(Act(at, member, what="call", group="", to=to, replies=replies, timeout=timeout))
    return found


def _tells(rng: Random, size: int, duration: Nanos, moments: list[Nanos]) -> list[AnyFault]:
    """Messages for one member, drawn apart; half of them around the moments when something happens."""
    found: list[AnyFault] = []
    for _ in range(rng.choice((0, 10, 40))):
        at = rng.randrange(150 * MILLISECOND, duration)
        if moments and rng.random() < 0.5:
            at = min(
                max(rng.choice(moments) + rng.randrange(-30, 60) * MILLISECOND, MILLISECOND), duration - 1
            )
        member, to, run = rng.randrange(size), rng.randrange(size), rng.choice((1, 1, 3))
        found.append(Act(at, member, what="tell", group="", run=run, to=to))
    return found


def _sends(rng: Random, size: int, duration: Nanos, names: list[str], moments: list[Nanos]) -> list[AnyFault]:
    """Much of it around the moments when something happens."""
    found: list[AnyFault] = []
    for _ in range(rng.choice((20, 60, 120))):
        at = rng.randrange(150 * MILLISECOND, duration)
        if moments and rng.random() < 0.6:
            at = rng.choice(moments) + rng.randrange(-30, 60) * MILLISECOND
        what = Act(
            min(max(at, MILLISECOND), duration - 1),
            rng.randrange(size),
            what="send",
            group=rng.choice(names),
            run=rng.choice((1, 1, 3)),
            item=rng.choice((None, None, "x")),
        )
        found.append(what)
    return found
