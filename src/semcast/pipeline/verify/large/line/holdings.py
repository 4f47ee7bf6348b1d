"""Who delivered what of one window in com(c), as a table: a row for each part, a column for each process."""

from functools import cached_property

import numpy as np

from semcast.pipeline.verify.large.line.places import NOWHERE, Flags, Ints
from semcast.pipeline.verify.large.line.ranks import REST, Window
from semcast.pipeline.verify.large.line.spans import cut, edges


class Holdings:
    """The messages of one chain in one window, by falling rank."""

    def __init__(self, window: Window, reg: int) -> None:
        self._window = window
        self.reg = reg
        parts = window.parts
        chosen = window.chain == reg
        first, last = parts.first[chosen], parts.last[chosen]
        points = np.union1d(edges(first, last), window.chains.rows)
        which, first, last = cut(first, last, points)
        numbers, row = np.unique(first, return_inverse=True)
        ends = np.zeros_like(numbers)
        ends[row] = last
        falling = np.argsort(-window.chains.rank(numbers), kind="stable")
        place = np.empty_like(falling)
        place[falling] = np.arange(len(falling))
        self.first, self.last = numbers[falling], ends[falling]
        self.who, column = np.unique(parts.who[chosen][which], return_inverse=True)
        self.piece: Ints = np.full((len(self.who), len(numbers)), NOWHERE, np.int64)
        """By process and part, the piece in which it was delivered in com(c)."""

        piece = window.piece[chosen][which]
        here = window.places.reg[piece] == reg
        self.piece[column[here], place[row[here]]] = piece[here]

    @cached_property
    def sent(self) -> Flags:
        """What was sent in the same configuration."""
        sent: Flags = self._window.sent.reg(self.first) == self.reg
        return sent

    def rank(self, part: int) -> int:
        """The rank of the first message of a part."""
        return int(self._window.chains.rank(self.first[part : part + 1])[0])

    def there(self, who: int) -> Flags:
        """What a process delivered."""
        found = np.flatnonzero(self.who == who)
        if not len(found):
            return np.zeros(len(self.first), np.bool_)
        pieces: Ints = self.piece[found[0]]
        return pieces >= 0

    def absolute(self, chosen: Flags) -> tuple[Ints, Ints]:
        """The numbers of messages, not counted from where the window begins."""
        return self.first[chosen] + self._window.base, self.last[chosen] + self._window.base


def holdings_of(window: Window) -> list[Holdings]:
    """One for each chain."""
    return [Holdings(window, int(reg)) for reg in np.unique(window.chain) if reg != REST]
