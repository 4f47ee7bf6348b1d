"""Which messages confirmations are about: stacks know tickets of calls, and histories know numbers."""

from collections import deque

from semcast.core.outgoing import Outgoing


class Tickets:
    """Of one incarnation: the tickets of its calls, until they are answered.

    Messages leave in the order in which the stack takes them, but it may give numbers to others in between.
    Where nobody asks, this is two sums.
    """

    def __init__(self) -> None:
        self._taken = 0  # messages that the stack took
        self._left = 0  # of those, messages that have left
        self._calls: deque[tuple[int, int, bool]] = deque()
        """Of calls whose last message has not left: the messages taken by then, the ticket, safe or not."""
        self._numbers: dict[int, tuple[int, bool]] = {}  # by ticket, of what has left

    def taken(self, outgoing: Outgoing, count: int) -> None:
        """The stack took so many of these."""
        self._taken += count
        if outgoing.confirm is not None and count == len(outgoing.payloads):
            self._calls.append((self._taken, *outgoing.confirm))

    def sent(self, first: int, count: int) -> None:
        """The next messages have left, with numbers from `first` on."""
        before, self._left = self._left, self._left + count
        while self._calls and self._calls[0][0] <= self._left:
            message, ticket, safe = self._calls.popleft()
            self._numbers[ticket] = first + message - before - 1, safe

    def answered(self, ticket: int) -> tuple[int, bool]:
        """The stack confirmed it: the number of the message, and whether it had to be safe."""
        return self._numbers.pop(ticket)

    def refused(self, ticket: int) -> None:
        """Nobody will confirm it."""
        self._numbers.pop(ticket, None)
