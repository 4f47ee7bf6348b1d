"""Whether all paths of a run can be one line: a small walk through blocks and configurations.

The chains are paths themselves, of the ranks at which blocks begin and end. What lies between two of these is
tied to nothing but its chain, so there is a circle here exactly if there is one among all events.
"""

from collections.abc import Hashable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import NamedTuple

from semcast.pipeline.verify.large.line.paths import NOTHING
from semcast.pipeline.verify.large.line.places import Entry
from semcast.pipeline.verify.large.line.ranks import REST, SEND
from semcast.specs.evs.walks import Walk


class Block(NamedTuple):
    """A part of a path, see `Blocks`."""

    spot: int
    what: int
    chain: int
    low: int
    high: int
    aim: int
    size: int


class Ranked(NamedTuple):
    """A message of a chain."""

    chain: int
    rank: int


class Unranked(NamedTuple):
    """A message of the rest."""

    author: int
    number: int


Path = Sequence[Block | Entry]


@dataclass(slots=True)
class Knots:
    """The walk along all paths of a run."""

    paths: Mapping[int, Path]
    """By process, in order."""

    sends: bool
    together: bool = True
    """Whether all deliveries of a configuration are one moment."""

    extra: Sequence[Sequence[Ranked | Unranked]] = ()
    """What else must follow each other."""

    _numbers: dict[Hashable, int] = field(default_factory=dict)
    _after: dict[int, int] = field(default_factory=dict)
    _ranks: dict[int, set[int]] = field(default_factory=dict)
    steps: dict[int, list[tuple[int, int]]] = field(default_factory=dict)
    """By process, its steps and the spots where they begin."""

    walk: Walk = field(init=False)

    def __post_init__(self) -> None:
        for who, path in self.paths.items():
            self.steps[who] = []
            for part in path:
                self._step(who, part)
        extra = [[self._number(self._known(name)) for name in names] for names in self.extra]
        chains = [
            [self._numbers[Ranked(chain, rank)] for rank in sorted(ranks)]
            for chain, ranks in self._ranks.items()
        ]
        self.walk = Walk(
            [*([step for step, _ in steps] for steps in self.steps.values()), *chains, *extra], self._after
        )

    def stuck(self) -> tuple[int, int] | None:
        """A process, and the spot of a step that no order has; None if the walk comes to its end."""
        if not self.walk.stuck:
            return None
        return next(
            (who, spot)
            for who, steps in self.steps.items()
            for step, spot in steps
            if step in self.walk.stuck
        )

    def order(self) -> list[Hashable]:
        """All that was walked through, in an order that all paths agree with."""
        names = {number: name for name, number in self._numbers.items()}
        return [names[step] for step, _ in self.walk.taken]

    def _step(self, who: int, part: Block | Entry) -> None:
        match part:
            case Entry(spot, configuration):
                self._add(who, spot, configuration if self.together else (who, spot))
            case Block(spot, what, chain, low, high) if chain == REST:
                if what == SEND:
                    self._send(who, spot, Unranked(low, high))
                else:
                    self._add(who, spot, Unranked(low, high))
            case Block(spot, _, chain, low, high, aim):
                if aim != NOTHING:
                    # The sends of a block order nothing but what was before it: see `Blocks`.
                    self._send(who, spot, self._ranked(chain, aim))
                if low != NOTHING:
                    for rank in dict.fromkeys((low, high)):
                        self._add(who, spot, self._ranked(chain, rank))

    def _known(self, name: Ranked | Unranked) -> Ranked | Unranked:
        return self._ranked(*name) if isinstance(name, Ranked) else name

    def _ranked(self, chain: int, rank: int) -> Ranked:
        self._ranks.setdefault(chain, set()).add(rank)
        ranked = Ranked(chain, rank)
        self._number(ranked)
        return ranked

    def _add(self, who: int, spot: int, name: Hashable) -> None:
        self.steps[who].append((self._number(name), spot))

    def _send(self, who: int, spot: int, name: Hashable) -> None:
        if self.sends:
            send = self._number(("sent", name))
            self.steps[who].append((send, spot))
            self._after[self._number(name)] = send

    def _number(self, name: Hashable) -> int:
        return self._numbers.setdefault(name, len(self._numbers))
