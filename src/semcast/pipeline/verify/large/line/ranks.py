"""Every delivery with its rank: where its message stands in the order of a reference.

The reference of a regular configuration is the process that delivered the most in com(c); the chain of that
configuration is the messages that it delivered there, in its order, and the rank of a message is its spot at
the reference. What no reference delivered has no rank: it is the rest.
"""

from typing import NamedTuple

import numpy as np

from semcast.pipeline.verify.large.line.places import NOWHERE, ROW_BITS, Flags, Ints, Places
from semcast.pipeline.verify.large.line.spans import cut, earliest, edges, inside
from semcast.pipeline.verify.large.line.windows import WINDOW_BITS, Rows

REST = -1

DELIVERY, SEND, OVER_BOUND, EARLY, AGAIN, ASTRAY = range(6)
"""What an item says: the first two are steps of a process, the others what was noticed.

OVER_BOUND: a row is about too many messages. EARLY: a process delivers a message before it sends it itself.
AGAIN: a process delivers a message in two com(c). ASTRAY: it delivers a message in another com(c) than the
reference.
"""


class Items(NamedTuple):
    """Steps of processes that are about successive messages of a chain, or about messages of the rest."""

    who: Ints
    spot: Ints
    what: Ints
    chain: Ints
    """REST for the rest."""

    low: Ints
    """The rank of the first message; of the rest, the sender."""

    high: Ints
    """The rank of the last message; of the rest, the number of the first."""

    sent: Ints
    """The reg in which it was sent, NOWHERE if not in a regular configuration."""

    size: Ints
    """How many messages it is about."""

    def only(self, chosen: Ints | Flags) -> "Items":
        """Some of them."""
        return Items(*(column[chosen] for column in self))


class Chains:
    """The messages of one window that references delivered, as stretches along which ranks grow."""

    def __init__(self, rows: Rows, chain: Ints) -> None:
        which, first, last = earliest(np.zeros_like(chain), chain, rows.first, rows.last, WINDOW_BITS)
        self._first, self._last, self.chain = first, last, chain[which]
        offset = rows.offset[which] + first - rows.first[which]
        self._rank = (rows.row[which] << ROW_BITS) + offset
        end = self._rank + last - first
        goes_on = (
            (first[1:] == last[:-1] + 1) & (self.chain[1:] == self.chain[:-1]) & (self._rank[1:] > end[:-1])
        )
        begins = np.concatenate(([True], ~goes_on)) if len(first) else np.zeros(0, np.bool_)
        ends = np.append(~goes_on, True) if len(first) else begins
        self.first, self.last = first[begins], last[ends]

    @property
    def rows(self) -> Ints:
        """Where rows of references begin: between these ranks have no gaps."""
        return self._first

    def of(self, number: Ints) -> Ints:
        """The chain of messages, REST for those that are in none."""
        found = inside(number, self._first, self._last)
        return np.where(found >= 0, self.chain[found], REST) if len(self.chain) else found

    def rank(self, number: Ints) -> Ints:
        """The rank of messages that are in a chain."""
        found = np.searchsorted(self._first, number, side="right") - 1
        return self._rank[found] + number - self._first[found]


class Window:
    """What happens to one sender's messages in one window."""

    def __init__(self, author: int, window: int, rows: Rows, places: Places) -> None:
        self.author = author
        self.base = window << WINDOW_BITS
        self.places = places
        self._noticed: list[tuple[int, Rows]] = []
        over = rows.offset + rows.last - rows.first >= 1 << ROW_BITS
        self._notice(OVER_BOUND, rows.only(over))
        sends = rows.only(rows.sent == 1)
        self.sends = sends.only(np.argsort(sends.first, kind="stable"))
        self.sent = Sent(self.sends, places)
        delivered = rows.only(rows.sent == 0)
        which, first, last = earliest(
            delivered.who, delivered.row, delivered.first, delivered.last, WINDOW_BITS
        )
        self.delivered = _parts(delivered, which, first, last)
        """For the first time, by process and number."""

        self._notice_again(delivered)
        piece = places.piece(self.delivered.who, self.delivered.row)
        chain = places.chain[piece]
        is_reference = chain != NOWHERE
        self.chains = Chains(self.delivered.only(is_reference), chain[is_reference])
        self._cut(piece)

    def _cut(self, piece: Ints) -> None:
        """Deliveries as pieces of stretches, or of the rest, so that pieces are the same for all."""
        points = edges(self.chains.first, self.chains.last)
        which, first, last = cut(self.delivered.first, self.delivered.last, points)
        chain = self.chains.of(first)
        rest = chain == REST
        points = np.union1d(points, edges(first[rest], last[rest]))
        self.points = np.union1d(points, edges(self.sent.first, self.sent.last))
        which, first, last = cut(self.delivered.first, self.delivered.last, self.points)
        self.parts = _parts(self.delivered, which, first, last)
        self.piece = piece[which]
        self.chain = self.chains.of(first)

    def items(self) -> Items:
        """All steps, and what was noticed."""
        here = self.places.reg[self.piece]
        astray = (self.chain != REST) & (here != self.chain) & (here != NOWHERE)
        self._notice(ASTRAY, self.parts.only(astray))
        steps = self._items(DELIVERY, self.parts, self.chain)
        sends = self._items_of_sends()
        noticed = [self._items(what, rows, np.array([REST])) for what, rows in self._noticed]
        return joined([steps, sends, *noticed])

    def _items_of_sends(self) -> Items:
        """The sends that order something: of what is delivered, but not by the sender afterwards."""
        own = self.delivered.only(self.delivered.who == self.author)
        points = np.union1d(self.points, edges(own.first, own.last))
        which, first, last = cut(self.sends.first, self.sends.last, points)
        sends = _parts(self.sends, which, first, last)
        found = inside(first, own.first, own.last)
        index = np.where(found >= 0, own.row[found], -1) if len(own.first) else found
        early = (found >= 0) & (index < sends.row)
        self._notice(EARLY, sends.only(early))
        chain = self.chains.of(first)
        # All parts are cut at the same points, so a part of the rest is there under its first number, or not.
        there = (chain != REST) | np.isin(first, self.parts.first)
        chosen = (found < 0) & there
        return self._items(SEND, sends.only(chosen), chain[chosen])

    def _items(self, what: int, rows: Rows, chain: Ints) -> Items:
        ranked = chain != REST
        low, high = np.full(len(chain), self.author), rows.first + self.base
        low[ranked] = self.chains.rank(rows.first[ranked])
        high[ranked] = self.chains.rank(rows.last[ranked])
        spot = (rows.row << ROW_BITS) + rows.offset
        sent = self.sent.reg(rows.first)
        return Items(
            rows.who, spot, np.full(len(chain), what), chain, low, high, sent, rows.last - rows.first + 1
        )

    def _notice(self, what: int, rows: Rows) -> None:
        """One of them is enough."""
        if len(rows.who):
            self._noticed.append((what, rows.only(np.array([0]))))

    def _notice_again(self, delivered: Rows) -> None:
        if _messages(self.delivered) == _messages(delivered):
            return
        reg = self.places.reg[self.places.piece(delivered.who, delivered.row)]
        mine = self.places.reg[self.places.piece(self.delivered.who, self.delivered.row)]
        base, other = self.delivered.who << (WINDOW_BITS + 1), delivered.who << (WINDOW_BITS + 1)
        which, first, _ = cut(other + delivered.first, other + delivered.last, base + self.delivered.first)
        found = inside(first, base + self.delivered.first, base + self.delivered.last)
        self._notice(AGAIN, delivered.only(which[reg[which] != mine[found]]))


class Sent:
    """In which regular configuration messages were sent: as spans, as long as it is the same."""

    def __init__(self, sends: Rows, places: Places) -> None:
        regs = places.sending[places.piece(sends.who, sends.row)]
        fresh = (sends.first[1:] != sends.last[:-1] + 1) | (regs[1:] != regs[:-1])
        begins = np.concatenate(([True], fresh))[: len(regs)]
        ends = np.append(fresh, True)[: len(regs)]
        self.first, self.last, self.regs = sends.first[begins], sends.last[ends], regs[begins]

    def reg(self, number: Ints) -> Ints:
        """The reg of messages, NOWHERE for none."""
        found = inside(number, self.first, self.last)
        return np.where(found >= 0, self.regs[found], NOWHERE) if len(self.regs) else found


def joined(some: list[Items]) -> Items:
    """All of them."""
    return Items(*(np.concatenate(columns) for columns in zip(*some, strict=True)))


def _parts(rows: Rows, which: Ints, first: Ints, last: Ints) -> Rows:
    """Parts of rows: which, and the first and last message of each."""
    part = rows.only(which)
    return part._replace(first=first, last=last, offset=part.offset + first - part.first)


def _messages(rows: Rows) -> int:
    return int((rows.last - rows.first + 1).sum())
