"""What counts where: which rows lie in which view, and what was multicast there.

A view is known by its run and number; here each has a number of its own, its scope. The senders of a scope
sit in it in order, and vectors have a component for each seat. What was not multicast in a view does not
count in it.
"""

from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass

import numpy as np
from pyspark.sql import functions as fn

from semcast.pipeline.verify.folds import INDEX_BITS
from semcast.pipeline.verify.large.causal.arrays import SEQ_BITS, Ints, coded
from semcast.pipeline.verify.scene import Scene
from semcast.pipeline.verify.spans import chunked, segments
from semcast.pipeline.verify.stays import Piece, Stays, Who

MOST_SPANS = 1_000_000
STRIP_BITS = 16
"""A strip is made of the rows of so many indices, as a power of two, or of fewer if vectors are long."""

_CELLS_BITS = 24


class TooMuchError(Exception):
    """There is more of something than the driver may hold; it says of what."""


@dataclass(frozen=True, slots=True)
class Sent:
    """Spans of what was multicast, as codes, sorted."""

    first: Ints
    last: Ints
    scope: Ints
    seat: Ints
    """The seat of the sender in the scope."""


@dataclass(frozen=True, slots=True)
class Ground:
    """The rows by stays and scopes."""

    starts: Ints
    """The place at which each piece begins."""

    stay: Ints
    """Of each piece, below 0 if there is none."""

    runs: list[str]
    """Of each stay."""

    who: Ints
    """Of each stay."""

    scope: Ints
    """Of each stay, below 0 if its run is not judged."""

    seats: list[Ints]
    """The senders of each scope."""

    sent: Sent

    bits: Ints
    """Of each scope: a strip spans so many indices there, as a power of two."""


def ground_of(scene: Scene, runs: Collection[str]) -> Ground:
    """Of these runs; raises TooMuchError."""
    return lay_out(scene.stays, scene.pieces, scene.numbers, runs, _sent(scene))


def lay_out(
    stays: Stays, pieces: Sequence[Piece], numbers: Mapping[Who, int], runs: Collection[str], sent: Ints
) -> Ground:
    """From what was sent in stays, (stay, author, first, last), as spans that are apart."""
    starts = np.array([(numbers[piece.who] << INDEX_BITS) + piece.first for piece in pieces], np.int64)
    stay = np.array([-1 if piece.stay is None else piece.stay for piece in pieces], np.int64)
    of, who, scope = _stays(stays, numbers, runs)
    first, last, where = _joined(sent)
    inside = scope[where]
    here = inside >= 0
    first, last, inside = first[here], last[here], inside[here]
    seats, seat = _seats(first >> SEQ_BITS, inside, int(scope.max(initial=-1)) + 1)
    return Ground(starts, stay, of, who, scope, seats, Sent(first, last, inside, seat), _bits(seats))


def _bits(seats: list[Ints]) -> Ints:
    """Everybody's vectors at what is sent in a strip are compared by one task."""
    senders = np.array([max(1, len(members)) for members in seats], np.float64)
    return np.clip(_CELLS_BITS - 1.5 * np.log2(senders), 0, STRIP_BITS).astype(np.int64)


def _stays(stays: Stays, numbers: Mapping[Who, int], runs: Collection[str]) -> tuple[list[str], Ints, Ints]:
    """Of each stay the run, whose it is, and the scope."""
    scopes: dict[tuple[str, int], int] = {}
    rows = list[tuple[int, int]]()
    of = list[str]()
    for run, known in stays.runs.items():
        for stay in known.stays:
            assert stays.number(run, stay) == len(rows)
            key = (run, stay.configuration.number)
            scope = scopes.setdefault(key, len(scopes)) if run in runs else -1
            rows.append((numbers[run, stay.process], scope))
            of.append(run)
    table = np.array(rows, np.int64).reshape(-1, 2)
    return of, table[:, 0], table[:, 1]


def _sent(scene: Scene) -> Ints:
    """What was multicast in views: (stay, author, first, last)."""
    spans = scene.sent.where("stay is not null").select(
        "stay", "author", "first", "last", fn.lit(1).alias("there")
    )
    whole = segments(chunked(spans), ["stay", "author", "chunk"], ["there"])
    table = whole.select("stay", "author", "first", "last").limit(MOST_SPANS + 1).toArrow()
    if table.num_rows > MOST_SPANS:
        raise TooMuchError(f"the numbers of multicasts have more than {MOST_SPANS} gaps")
    sent = np.stack([column.to_numpy().astype(np.int64) for column in table.columns])
    if sent[3].max(initial=0) >> SEQ_BITS:
        raise TooMuchError(f"there are messages with numbers above {1 << SEQ_BITS}")
    return sent


def _joined(sent: Ints) -> tuple[Ints, Ints, Ints]:
    """Spans that follow each other in a stay as one: their first and last, as codes, and the stay."""
    stay, author, first, last = sent
    first, last = coded(author, first), coded(author, last)
    order = np.argsort(first)
    stay, first, last = stay[order], first[order], last[order]
    apart = (first[1:] != last[:-1] + 1) | (stay[1:] != stay[:-1])
    some = np.ones(min(1, len(first)), bool)
    begins, ends = np.concatenate((some, apart)), np.concatenate((apart, some))
    return first[begins], last[ends], stay[begins]


def _seats(author: Ints, scope: Ints, scopes: int) -> tuple[list[Ints], Ints]:
    """The senders of each scope, and the seat of the author of each span there."""
    seats = [np.zeros(0, np.int64) for _ in range(scopes)]
    seat = np.zeros(len(author), np.int64)
    order = np.argsort(scope, kind="stable")
    edges = np.searchsorted(scope[order], np.arange(scopes + 1))
    for number in range(scopes):
        spans = order[edges[number] : edges[number + 1]]
        seats[number], seat[spans] = np.unique(author[spans], return_inverse=True)
    return seats, seat
