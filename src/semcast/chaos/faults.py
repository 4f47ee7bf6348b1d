"""What goes wrong, when, and for how long: drawn from a seed, as data that can be printed.

Two tracks run side by side: one does things to the network, the other to processes. On each, one fault
follows the other with a pause between, so that a group sometimes has time to recover and sometimes not.
"""

from collections.abc import Callable, Iterator, Sequence
from random import Random

import msgspec


class Fault(msgspec.Struct, frozen=True, kw_only=True, tag_field="fault"):
    """Base: everything happens at a time, in seconds."""

    at: float
    calm: bool = False
    """Whether to wait until the group works, if that does not take long."""


class Partition(Fault, frozen=True, kw_only=True, tag="partition"):
    """Members on different sides do not hear each other."""

    lasts: float
    sides: tuple[tuple[str, ...], ...]


class Cut(Fault, frozen=True, kw_only=True, tag="cut"):
    """The second of each pair does not hear the first. One way: the other direction still works."""

    lasts: float
    pairs: tuple[tuple[str, str], ...]


class Loss(Fault, frozen=True, kw_only=True, tag="loss"):
    """A share of all frames is lost."""

    lasts: float
    percent: int


class Kill(Fault, frozen=True, kw_only=True, tag="kill"):
    """kill -9 at the same moment; each starts again after its own time."""

    down: dict[str, float]


class Majority(Kill, frozen=True, kw_only=True, tag="majority"):
    """The same, for more than half."""


class Everybody(Kill, frozen=True, kw_only=True, tag="everybody"):
    """The same, for all: what is not on a disk is gone."""


class Stop(Fault, frozen=True, kw_only=True, tag="stop"):
    """SIGSTOP, and later SIGCONT."""

    lasts: float
    names: tuple[str, ...]


class Stall(Fault, frozen=True, kw_only=True, tag="stall"):
    """Their disks do not sync anything for a while."""

    lasts: float
    names: tuple[str, ...]


class Restart(Fault, frozen=True, kw_only=True, tag="restart"):
    """They leave, and start again with the same configuration."""

    down: dict[str, float]


class Roll(Fault, frozen=True, kw_only=True, tag="roll"):
    """One after the other: end, start again, pause."""

    names: tuple[str, ...]
    pause: float
    kill: bool
    """Whether by kill -9; else they leave."""


class Join(Fault, frozen=True, kw_only=True, tag="join"):
    """Somebody starts late."""

    name: str


AnyFault = Partition | Cut | Loss | Kill | Majority | Everybody | Stop | Stall | Restart | Roll | Join


class Plan(msgspec.Struct, frozen=True):
    """A whole run."""

    seed: int
    names: tuple[str, ...]
    late: tuple[str, ...]
    """Those that start in the middle."""
    seconds: float
    network: tuple[AnyFault, ...]
    processes: tuple[AnyFault, ...]
    clients: tuple[str, ...] = ()
    """Of the members: processes to which the same happens, but for the network."""


_Draw = Callable[[Random, Sequence[str], float], AnyFault]


def draw(
    seed: int,
    names: Sequence[str],
    seconds: float,
    *,
    cuts: bool,
    late: bool = True,
    everybody: bool = False,
    stalls: bool = False,
    clients: Sequence[str] = (),
) -> Plan:
    """A plan for these members, and their clients. The same arguments give the same plan for ever.

    With `late`, some start in the middle; with `everybody`, all are killed at once now and then; with
    `stalls`, disks stand still.
    """
    rng = Random(f"chaos {seed}")
    processes = (*names, *clients)
    count = len(processes) // 4 if late else 0
    latecomers = processes[len(processes) - count :]
    joins = [Join(at=rng.uniform(0.1, 0.5) * seconds, name=name) for name in latecomers]
    there = processes[: len(processes) - count]
    network = tuple(_track(rng, names, seconds, (_partition, _cut, _loss))) if cuts else ()
    kinds: list[_Draw] = [_kill, _majority, _stop, _restart, _roll]
    kinds += [_everybody] if everybody else []
    kinds += [_stall] if stalls else []
    track = sorted([*_track(rng, there, seconds, kinds), *joins], key=lambda fault: fault.at)
    return Plan(seed, tuple(names), latecomers, seconds, network, tuple(track), tuple(clients))


def ends_at(fault: AnyFault) -> float:
    """When it is over, about."""
    match fault:
        case Partition() | Cut() | Loss() | Stop() | Stall():
            return fault.at + fault.lasts
        case Kill() | Restart():
            return fault.at + max(fault.down.values())
        case Roll():
            return fault.at + (fault.pause + 0.5) * len(fault.names)
        case Join():
            return fault.at


def _track(rng: Random, names: Sequence[str], seconds: float, kinds: Sequence[_Draw]) -> Iterator[AnyFault]:
    """One fault after the other; each kind comes once before any comes again."""
    at, deck = rng.uniform(1.0, 3.0), list[_Draw]()
    while at < seconds:
        if not deck:
            deck = rng.sample(list(kinds), len(kinds))
        fault = msgspec.structs.replace(deck.pop()(rng, names, at), calm=rng.random() < 0.5)
        yield fault
        at = ends_at(fault) + rng.choice((0.2, 1.0, 4.0)) * rng.uniform(0.5, 1.5)


def _partition(rng: Random, names: Sequence[str], at: float) -> Partition:
    mixed = rng.sample(list(names), len(names))
    cuts = sorted(rng.sample(range(1, len(names)), min(len(names) - 1, rng.choice((1, 1, 1, 2)))))
    sides = [tuple(sorted(mixed[a:b])) for a, b in zip([0, *cuts], [*cuts, len(names)], strict=True)]
    return Partition(at=at, lasts=rng.uniform(0.5, 6.0), sides=tuple(sides))


def _cut(rng: Random, names: Sequence[str], at: float) -> Cut:
    """One direction of one link, or all that one member says, or all that it should hear."""
    one, two = rng.sample(list(names), 2)
    others = [name for name in names if name != one]
    kind = rng.randrange(3)
    pairs = [[(one, two)], [(one, other) for other in others], [(other, one) for other in others]][kind]
    return Cut(at=at, lasts=rng.uniform(0.5, 6.0), pairs=tuple(pairs))


def _loss(rng: Random, _names: Sequence[str], at: float) -> Loss:
    return Loss(at=at, lasts=rng.uniform(1.0, 6.0), percent=rng.choice((2, 5, 10, 20)))


def _kill(rng: Random, names: Sequence[str], at: float) -> Kill:
    """A minority."""
    victims = sorted(rng.sample(list(names), rng.randint(1, max(1, (len(names) - 1) // 2))))
    return Kill(at=at, down={name: _pause(rng) for name in victims})


def _majority(rng: Random, names: Sequence[str], at: float) -> Majority:
    """More than half, but not all."""
    count = rng.randint(len(names) // 2 + 1, max(len(names) // 2 + 1, len(names) - 1))
    victims = sorted(rng.sample(list(names), min(count, len(names))))
    return Majority(at=at, down={name: _pause(rng) for name in victims})


def _everybody(rng: Random, names: Sequence[str], at: float) -> Everybody:
    return Everybody(at=at, down={name: _pause(rng) for name in names})


def _stop(rng: Random, names: Sequence[str], at: float) -> Stop:
    victims = tuple(sorted(rng.sample(list(names), rng.choice((1, 1, min(2, len(names)))))))
    return Stop(at=at, lasts=rng.choice((0.2, 1.0, 4.0)) * rng.uniform(0.5, 1.5), names=victims)


def _stall(rng: Random, names: Sequence[str], at: float) -> Stall:
    """One or some; longer than the others wait for it, too."""
    victims = tuple(sorted(rng.sample(list(names), rng.choice((1, 1, min(2, len(names)), len(names))))))
    return Stall(at=at, lasts=rng.choice((0.3, 1.5, 5.0)) * rng.uniform(0.5, 1.5), names=victims)


def _restart(rng: Random, names: Sequence[str], at: float) -> Restart:
    victims = sorted(rng.sample(list(names), rng.randint(1, max(1, len(names) // 2))))
    return Restart(at=at, down={name: _pause(rng) for name in victims})


def _roll(rng: Random, names: Sequence[str], at: float) -> Roll:
    order = tuple(rng.sample(list(names), len(names)))
    return Roll(at=at, names=order, pause=rng.choice((0.0, 0.5, 2.0)), kill=rng.random() < 0.3)


def _pause(rng: Random) -> float:
    return rng.choice((0.0, 0.3, 2.0)) * rng.uniform(0.5, 1.5)
