"""Batches that come in pieces: what is there of them before they are published.

Pieces are on disk, so that a logger that starts again has them. They are in memory, too, until they are
published or given up: there are few of them at a time.
"""

from collections.abc import Iterator, Sequence
from itertools import groupby

import msgspec

from semcast.core.ids import MemberId, Nanos
from semcast.core.messages import Batch
from semcast.protocols.gossip.records import Staged

_BESIDE = 64
"""Bytes that a message takes besides what it says."""


class Piece(msgspec.Struct):
    """Messages of a batch, in a record of their own."""

    payloads: list[bytes]
    items: list[str | None] | None
    position: int
    """Of its record."""


class Stage(msgspec.Struct):
    """What one task has given."""

    touched: Nanos
    pieces: dict[int, Piece] = msgspec.field(default_factory=dict)
    size: int = 0


class Stages:
    """All that are not published yet."""

    def __init__(self) -> None:
        self.size = 0
        """Bytes of all of them."""
        self._stages: dict[str, Stage] = {}

    def __len__(self) -> int:
        return len(self._stages)

    def has(self, stage: str, number: int) -> bool:
        """Whether a piece is there."""
        found = self._stages.get(stage)
        return found is not None and number in found.pieces

    def touch(self, now: Nanos, stage: str) -> None:
        """Somebody works on it."""
        found = self._stages.get(stage)
        if found is not None:
            found.touched = now

    def add(self, now: Nanos, record: Staged, position: int) -> None:
        """A piece came, and its record is at a position."""
        stage = self._stages.setdefault(record.stage, Stage(now))
        if record.number in stage.pieces:
            return
        stage.pieces[record.number] = Piece(record.payloads, record.items, position)
        size = size_of(record.payloads, record.items)
        stage.touched = now
        stage.size += size
        self.size += size

    def move(self, stage: str, number: int, position: int) -> None:
        """The record of a piece was written anew."""
        self._stages[stage].pieces[number].position = position

    def lacking(self, stage: str, pieces: int) -> int:
        """How many pieces of a stage are not there."""
        found = self._stages.get(stage)
        return pieces if found is None else sum(1 for number in range(pieces) if number not in found.pieces)

    def pieces(self, stages: Sequence[tuple[str, int]]) -> Iterator[Piece]:
        """The pieces of some stages, in order."""
        for stage, count in stages:
            found = self._stages[stage]
            for number in range(count):
                yield found.pieces[number]

    def drop(self, stages: Sequence[str]) -> list[str]:
        """Forget these; returns those that were there."""
        there = [stage for stage in stages if stage in self._stages]
        for stage in there:
            self.size -= self._stages.pop(stage).size
        return there

    def beside(self, stages: Sequence[str]) -> list[str]:
        """Other stages of those who own these."""
        owners = {stage.partition("/")[0] for stage in stages if "/" in stage}
        return [each for each in self._stages if "/" in each and each.partition("/")[0] in owners]

    def untouched(self, since: Nanos) -> list[str]:
        """Those of which nothing was heard for long."""
        return [name for name, stage in self._stages.items() if stage.touched < since]

    def records(self) -> Iterator[Staged]:
        """All pieces, for a log that is written anew."""
        for name, stage in self._stages.items():
            for number, piece in stage.pieces.items():
                yield Staged(name, number, piece.payloads, piece.items)


def size_of(payloads: Sequence[bytes], items: Sequence[str | None] | None) -> int:
    """Bytes that messages take while they are staged."""
    names = sum([4 * len(item) for item in items if item is not None]) if items else 0
    return sum(map(len, payloads)) + names + _BESIDE * len(payloads)


def batches(sender: MemberId, first: int, piece: Piece) -> Iterator[Batch]:
    """The messages of a piece as runs, from a number on: of plain ones, and of updates of items.

    >>> piece = Piece([b"1", b"2", b"3", b"4"], ["x", "y", None, "x"], 0)
    >>> [(each.first, each.payloads, each.items) for each in batches(MemberId("log"), 7, piece)]
    [(7, [b'1', b'2'], ['x', 'y']), (9, [b'3'], None), (10, [b'4'], ['x'])]
    """
    if piece.items is None:
        yield Batch(sender, first, piece.payloads, size=sum(map(len, piece.payloads)))
        return
    start = 0
    for plain, group in groupby(piece.items, lambda item: item is None):
        items = list(group)
        end = start + len(items)
        payloads = piece.payloads[start:end]
        names = None if plain else [item for item in items if item is not None]
        yield Batch(sender, first + start, payloads, size=sum(map(len, payloads)), items=names)
        start = end
