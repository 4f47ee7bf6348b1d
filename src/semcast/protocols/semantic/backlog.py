"""What waits for the program, and how much more of it is taken: rules 1 to 5 of `docs/flow-control.md`.

This is the second account of flow control: what is not stable is kept for others and counted in
`occupancy.py`, what only waits for the program is counted here, in whichever view it came. So a program that
does not read never takes the room that others need to go on.
"""

from collections.abc import Sequence
from typing import Protocol

from semcast.core.reader import Reader

EACH = 64
"""Bytes that a message takes up besides its payload."""


class Waiting(Protocol):
    """The messages of one view that wait for the program."""

    def waiting(self) -> int:
        """How many may be handed over as soon as it takes them."""

    def waiting_bytes(self) -> int:
        """Their payloads."""


class Backlog:
    """D of the rules, over all views of a member.

    Args:
        messages: Q, what is taken whether the program waits or not.
        size: bytes of the same.
        reserve: R, bytes that are taken beyond that while the program waits.
    """

    def __init__(self, messages: int, size: int, reserve: int) -> None:
        self.reader = Reader()
        """The program that it waits for."""
        self.queues: Sequence[Waiting] = ()
        """By view, the oldest first."""
        self.lacks_state = False
        """Whether the state of the program is not here yet, so that nothing can be handed over."""
        self.limit = messages
        self._limit_bytes = size
        self._reserve = reserve

    @property
    def messages(self) -> int:
        """D: what waits here, and what lies in the mailbox beyond its bound."""
        return sum([queue.waiting() for queue in self.queues]) + self.reader.excess

    @property
    def bytes(self) -> int:
        """Payload bytes that wait here."""
        return sum([queue.waiting_bytes() for queue in self.queues])

    def waits(self) -> bool:
        """Whether the program can take nothing before it has sent something, or has its state."""
        return self.reader.waits or self.lacks_state

    def dropped(self) -> bool:
        """Whether nobody wants to be given anything: then there is always room."""
        return not self.reader.receives or self.reader.closing

    def fits(self, count: int) -> bool:
        """Whether so many more messages are taken without any of the reserve."""
        if self.messages + count <= self.limit and self.bytes < self._limit_bytes:
            return True
        return self.dropped()

    def room(self, count: int, size: int) -> int:
        """How many of `count` more messages are taken, which have `size` bytes together."""
        if self.fits(count):
            return count
        held, held_bytes = self.messages, self.bytes
        left = max(self.limit - held, 0) if held_bytes < self._limit_bytes else 0
        if self.waits():
            free = self._reserve - self._reserved(held, held_bytes)
            left += max(-(-free // (EACH + size // count)), 0)
        return min(left, count)

    def full(self) -> bool:
        """Whether D has reached Q."""
        return not self.dropped() and (self.messages >= self.limit or self.bytes >= self._limit_bytes)

    def over(self) -> bool:
        """Whether this member says stop: D is above Q.

        Not at Q: a full queue must go on receiving, or nothing replaces what is obsolete there. Bytes may
        exceed their bound by what came last.
        """
        if self.dropped():
            return False
        return self.messages > self.limit or 4 * self.bytes > 5 * self._limit_bytes

    def overflowing(self) -> bool:
        """Whether the reserve is full, too: nothing more is taken, whoever waits."""
        return self.full() and self._reserved(self.messages, self.bytes) >= self._reserve

    def reserved(self) -> int:
        """Bytes of the reserve in use."""
        return self._reserved(self.messages, self.bytes)

    def _reserved(self, held: int, size: int) -> int:
        beyond = held - self.limit
        by_messages = beyond * (EACH + size // held) if beyond > 0 else 0
        return max(by_messages, size - self._limit_bytes, 0)
