"""Where rows lie, as numbers: what the work on arrays knows of processes and configurations.

A place is a process and the index of a row there. A spot is a row of one process and a message in it, so that
the messages of a row have an order as well. A reg is the number of a regular configuration, and stands for
all of com(c).
"""

from collections.abc import Mapping
from dataclasses import dataclass
from typing import NamedTuple

import numpy as np
import numpy.typing as npt

from semcast.pipeline.verify.folds import INDEX_BITS
from semcast.pipeline.verify.scene import Scene
from semcast.specs.evs.configurations import Configuration

"""As in the places of `moves`."""

ROW_BITS = 20
"""A row that is about more messages than so many bits can count is not judged here."""

NOWHERE = -1

REG_BITS = 20
"""So many bits the number of a regular configuration may have."""

Ints = npt.NDArray[np.int64]
Flags = npt.NDArray[np.bool_]


@dataclass(frozen=True, slots=True, eq=False)
class Places:
    """The rows of each process, cut into pieces where its configuration changes, or it crashes."""

    starts: Ints
    """Where each piece starts, in order."""

    reg: Ints
    """Of each piece com(c), as its reg; NOWHERE before the first configuration."""

    sending: Ints
    """The same, and NOWHERE in transitional configurations too."""

    chain: Ints
    """The reg for which the process is the reference, if it is."""

    def piece(self, who: Ints | int, index: Ints) -> Ints:
        """The piece in which rows lie."""
        place = (np.asarray(who, np.int64) << INDEX_BITS) + index
        return np.searchsorted(self.starts, place, side="right") - 1


class Entry(NamedTuple):
    """A process comes to a configuration."""

    spot: int
    configuration: Configuration


def regs_of(scene: Scene) -> dict[tuple[str, Configuration], int]:
    """All regular configurations of all runs, numbered."""
    every = [(run, reg) for run, known in scene.stays.runs.items() for reg in known.regs]
    return {each: number for number, each in enumerate(every)}


def places_of(scene: Scene, counts: Mapping[int, int]) -> Places:
    """The places of a scene; `counts` says how many messages were delivered in each piece."""
    regs = regs_of(scene)
    reg, sending = [NOWHERE] * len(scene.pieces), [NOWHERE] * len(scene.pieces)
    stays = {
        scene.stays.number(run, stay): (regs[run, stay.configuration.reg], stay.configuration.regular)
        for run, known in scene.stays.runs.items()
        for stay in known.stays
    }
    for number, piece in enumerate(scene.pieces):
        if piece.stay is not None:
            reg[number], regular = stays[piece.stay]
            sending[number] = reg[number] if regular else NOWHERE
    starts = [(scene.numbers[piece.who] << INDEX_BITS) + piece.first for piece in scene.pieces]
    who = [scene.numbers[piece.who] for piece in scene.pieces]
    columns = (np.array(column, np.int64) for column in (starts, reg, sending, _references(reg, who, counts)))
    return Places(*columns)


def entries_of(scene: Scene) -> dict[str, dict[int, list[Entry]]]:
    """By run and process, the configurations it comes to, in order."""
    return {
        run: {
            scene.numbers[run, process]: [
                Entry(stay.event.index << ROW_BITS, stay.configuration) for stay in life.stays
            ]
            for process, life in known.lives.items()
        }
        for run, known in scene.stays.runs.items()
    }


def lives_of(scene: Scene, places: Places) -> dict[int, list[int]]:
    """By reg, the processes that spent any time in com(c)."""
    found: dict[int, dict[int, None]] = {}
    for piece, reg in zip(scene.pieces, places.reg.tolist(), strict=True):
        found.setdefault(reg, {})[scene.numbers[piece.who]] = None
    return {reg: list(who) for reg, who in found.items()}


def crowd_of(scene: Scene) -> list[frozenset[int]]:
    """For each piece the members of the configuration."""
    stays = {
        scene.stays.number(run, stay): frozenset(scene.numbers[run, member] for member in stay.members)
        for run, known in scene.stays.runs.items()
        for stay in known.stays
    }
    return [frozenset() if piece.stay is None else stays[piece.stay] for piece in scene.pieces]


def _references(reg: list[int], who: list[int], counts: Mapping[int, int]) -> list[int]:
    """For each piece its reg if its process delivered the most there, else NOWHERE."""
    most: dict[tuple[int, int], int] = {}
    for piece, key in enumerate(zip(reg, who, strict=True)):
        most[key] = most.get(key, 0) + counts.get(piece, 0)
    best: dict[int, int] = {}
    for here, process in sorted(most, key=lambda key: (most[key], -key[1])):
        best[here] = process
    return [
        here if here != NOWHERE and best[here] == process else NOWHERE
        for here, process in zip(reg, who, strict=True)
    ]
