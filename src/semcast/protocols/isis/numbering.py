"""The numbers of ordered messages in one view of a group (1991, 6.2): see `total.py`."""

from typing import TYPE_CHECKING

from semcast.core.ids import Nanos
from semcast.protocols.isis.total import MOST_SAID, Says, Totals, written
from semcast.protocols.vsync.orders import Lines

if TYPE_CHECKING:
    from semcast.protocols.isis.order import DomainOrder, Ticket

_HOLDER = 0
"""The rank of who gives numbers."""


class Numbering:
    """Of one view.

    Args:
        order: of the view.
        lines: the stream of messages.
        totals: of the process.
        newcomers: ranks of members that were not in the view before.
    """

    def __init__(self, order: "DomainOrder", lines: Lines, totals: Totals, newcomers: set[int]) -> None:
        self._order = order
        self._lines = lines
        self._totals = totals
        self._unheard = newcomers - {_HOLDER}  # who joins and has not said how far it has come
        self._begun = lines.rank not in self._unheard  # whether this member need not say so
        self._unnumbered: dict[tuple[int, int], Ticket] = {}
        self._wanted = 0  # somebody waits for this number to be said
        self._said = 0  # the highest number that anybody said for the order alone
        self._planned = False

    def __len__(self) -> int:
        """Messages without a number."""
        return len(self._unnumbered)

    # What comes

    def lined_up(self, ticket: "Ticket") -> None:
        """An ordered message waits for its number."""
        self._unnumbered[ticket.rank, ticket.last] = ticket

    def ready(self, says: Says) -> bool:
        """Whether the messages that are given numbers are here."""
        return all(self._lines.queued[rank] >= seq for rank, seq, _ in says.order)

    def sound(self, says: Says) -> bool:
        """Whether a correct member can have said it."""
        size = len(self._lines.members)
        return all(rank < size and number <= says.number for rank, _, number in says.order)

    def obey(self, rank: int, seq: int, says: Says) -> None:
        """A member said something for the order alone."""
        if rank == self._lines.rank:
            self._order.seat.turns.own_said.append(seq)
        self._said = max(self._said, says.number)
        self._unheard.discard(rank)
        if rank == _HOLDER:
            for of, message, number in says.order:
                self._place(of, message, number)
            self._say_upto(says.number)

    def advance(self, number: int) -> None:
        """Somebody waits for this number: nothing lower shall come."""
        self._wanted = max(self._wanted, number)

    def _place(self, rank: int, seq: int, number: int) -> None:
        ticket = self._unnumbered.pop((rank, seq), None)
        if ticket is not None:
            ticket.turn = number
            self._totals.placed(number, self._order, rank, seq)

    def _say_upto(self, number: int) -> None:
        seat = self._order.seat
        seat.turns.said_upto = max(seat.turns.said_upto, number)

    # Speaking

    def settle(self, now: Nanos) -> None:
        """After every input."""
        if not self._planned and self._must_speak():
            self._planned = True
            self._lines.wake_at(now)

    def tick(self) -> None:
        """Say what there is to say."""
        self._planned = False
        if self._must_speak():
            says = self._next()
            self._begun = True
            self._lines.command(written(says))

    def _must_speak(self) -> bool:
        lines = self._lines
        if lines.frozen or not lines.may_command():
            return False
        if lines.rank != _HOLDER:
            return not self._begun and bool(self._unnumbered)
        return self._wanted > self._order.seat.turns.said_upto or (
            bool(self._unnumbered) and not self._unheard
        )

    def _next(self) -> Says:
        """Of the holder: numbers above all that it, and who sent the messages, has seen."""
        if self._lines.rank != _HOLDER:
            return Says(self._totals.lamport)
        last, order = self.floor(), []
        if not self._unheard:
            for rank, seq in list(self._unnumbered)[:MOST_SAID]:
                last += 1
                order.append((rank, seq, last))
        return Says(max(last, self._wanted) if not order else last, order)

    def floor(self) -> int:
        """All numbers that are given come above this one."""
        return max(
            self._order.seat.turns.said_upto,
            self._totals.lamport,
            self._wanted,
            self._said,
            *self._order.lamports,
        )

    # The end of the view

    def finish(self, number: int, most: int) -> None:
        """All of the view is here: what has no number gets one above this, the same everywhere.

        There are at most so many, as far as those know who join.
        """
        assert len(self._unnumbered) <= most
        self._say_upto(number + most)
        for rank, seq in sorted(self._unnumbered):
            number += 1
            self._place(rank, seq, number)
