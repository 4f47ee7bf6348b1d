"""Messages that were purged here, until the program has taken what replaces them."""


class Replaced:
    """Of one sender.

    A program that has taken a message has not always taken what replaces an earlier one: that comes later,
    and may wait for causes in other groups. Who flushes has to wait for it.

    >>> replaced = Replaced()
    >>> replaced.purged(1, by=3)  # the program is given 2 next
    >>> replaced.certain(2), replaced.certain(3)
    (0, 3)
    """

    def __init__(self) -> None:
        self._first: dict[int, int] = {}  # by a message that comes, the first one that it stands for
        self._unknown: list[tuple[int, int]] = []  # what was skipped, and up to where its replacement is

    def __bool__(self) -> bool:
        """Whether anything is to come."""
        return bool(self._first or self._unknown)

    def purged(self, seq: int, by: int) -> None:
        """A message was, and what it stood for is now the business of this other one."""
        first = min(seq, self._first.pop(seq, seq))
        self._first[by] = min(first, self._first.get(by, first))

    def skipped(self, seq: int, upto: int) -> None:
        """One was purged elsewhere, because of a later one among those up to there."""
        self._unknown.append((seq, upto))

    def certain(self, taken: int) -> int:
        """The program has taken so much: up to where it has each message, or what replaces it."""
        for by in [by for by in self._first if by <= taken]:
            del self._first[by]
        least = min(self._first.values(), default=taken + 1)
        if self._unknown:
            least = self._still_unknown(taken, least)
        return min(taken, least - 1)

    def _still_unknown(self, taken: int, least: int) -> int:
        """Of those that may be replaced by what is replaced itself, too; returns the first of all."""
        kept: list[tuple[int, int]] = []
        for seq, upto in sorted(self._unknown, reverse=True):
            if upto > taken or seq < least <= upto:
                kept.append((seq, upto))
                least = min(least, seq)
        self._unknown = kept
        return least
