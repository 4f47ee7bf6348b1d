"""ABCAST over groups (1991, 6.2): all ordered messages of a domain are given in one order.

The paper gives no algorithm. Here the first member of a view, its *holder*, gives each ordered message of the
group a number, above all that it has seen; the place of a message is its number, then its group. A process
gives its program the lowest that it knows of, once the holder of each of its other groups has said a number
that is not below: from there nothing lower can come. It asks them to (`Advance`), and they say it to their
group. What a holder says is a message of its own for the order alone (`Says`), so that it is repaired, and
belongs to the view, as any other. When a view ends, what has no number gets one in the same way everywhere.

Numbers grow along causality: whoever sends says the highest number that it was given or told of, and the
holder goes above it. Who sent an ordered message sends nothing in other groups before it was given it itself.
Who joins says first how far it has come elsewhere, before which nothing is numbered in the view.
"""

from collections.abc import Iterator, Mapping
from heapq import heapify, heappop, heappush
from itertools import count
from typing import TYPE_CHECKING, Annotated, Protocol

import msgspec

from semcast.core.ids import MemberId
from semcast.protocols.semantic.frames import Rank, Seq

if TYPE_CHECKING:
    from semcast.protocols.isis.order import DomainOrder, Ticket
    from semcast.protocols.isis.seat import Seat

MOST_SAID = 256
"""Messages that are given numbers at once."""
_TAG = b"\xc1"
"""The first byte of what is for the order alone; no other head begins so."""


class Says(msgspec.Struct, frozen=True, array_like=True, gc=False):
    """What the holder of a group says; of others, how far who joins has come."""

    number: Seq
    """Nothing will have this number any more, nor one below."""
    order: Annotated[list[tuple[Rank, Seq, Seq]], msgspec.Meta(max_length=MOST_SAID)] = []
    """Members, their messages, and the numbers of these."""


_encode = msgspec.msgpack.Encoder().encode
_read = msgspec.msgpack.Decoder(Says).decode


def written(says: Says) -> bytes:
    """As a head."""
    return _TAG + _encode(says)


def is_said(head: bytes) -> bool:
    """Whether a head is for the order alone.

    >>> is_said(written(Says(3))), is_said(b"")
    (True, False)
    """
    return head[:1] == _TAG


def read_said(head: bytes) -> Says:
    """What it says; raises `msgspec.MsgspecError` where that is nothing."""
    return _read(head[1:])


class Numbered(Protocol):
    """What waits for the program, as far as the order is concerned."""

    ordered: bool
    turn: int
    """Of an ordered message: its number; 0 if that is not known."""
    lamport: int
    """The highest number that its sender knew of."""


def may_precede(earlier: Numbered, later: Numbered) -> bool:
    """Whether one may be among the causes of the other: numbers grow along causality."""
    bound = later.turn - 1 if later.ordered else later.lamport
    return (earlier.turn if earlier.ordered else earlier.lamport) <= bound


class Turns:
    """What one process knows of the order in one of its groups."""

    def __init__(self) -> None:
        self.said_upto = 0
        """The holder has said this number: what has none yet will have a higher one."""
        self.asked_upto = 0
        """The number that the holder was asked to say."""
        self.own_said: list[int] = []
        """Own messages for the order alone, behind all that every program has taken."""
        self.newcomers: frozenset[MemberId] = frozenset()
        """Who was not in the view before this one."""


class Totals:
    """The ordered messages of one process, over all its groups.

    Args:
        seats: its groups, by name.
    """

    def __init__(self, seats: "Mapping[str, Seat]") -> None:
        self._seats = seats
        self._known: list[tuple[int, int, int, DomainOrder, int, int]] = []
        self._count = count()
        self.lamport = 0
        """The highest number that the program was given, or that somebody had who said something to it."""

    def __len__(self) -> int:
        return len(self._known)

    def learn(self, number: int) -> None:
        """Somebody had come so far."""
        self.lamport = max(self.lamport, number)

    def placed(self, number: int, order: "DomainOrder", rank: int, seq: int) -> None:
        """A message has its place."""
        heappush(self._known, (number, order.seat.number, next(self._count), order, rank, seq))

    def allows(self, ticket: "Ticket") -> bool:
        """Whether an ordered message is the next."""
        if not self._known:
            return False
        _, _, _, order, rank, seq = self._known[0]
        return order is ticket.order and (rank, seq) == (ticket.rank, ticket.last) and not any(self.behind())

    def behind(self) -> "Iterator[Seat]":
        """Groups whose holders have not said the number of the next message."""
        if self._known:
            number, group, *_ = self._known[0]
            for seat in self._seats.values():
                if seat.number != group and seat.turns.said_upto < number and seat.member.stream is not None:
                    yield seat

    @property
    def next_number(self) -> int:
        """That of the next message."""
        return self._known[0][0] if self._known else 0

    def given(self) -> None:
        """The program was given the next message."""
        self.learn(heappop(self._known)[0])

    def left(self, seat: "Seat") -> None:
        """The process is in a group no more."""
        self._known = [each for each in self._known if each[3].seat is not seat]
        heapify(self._known)
