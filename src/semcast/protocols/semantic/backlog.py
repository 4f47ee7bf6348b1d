"""What waits for the program, and how much more of it is taken: rules 1 to 5 of `docs/flow-control.md`.

This is the second account of flow control: what is not stable is kept for others and counted in
`occupancy.py`, what only waits for the program is counted here, in whichever view it came. So a program that
does not read never takes the room that others need to go on.
"""

from collections.abc import Sequence
from typing import Protocol

from semcast.core.ids import Nanos
from semcast.core.reader import Reader
from semcast.protocols.lateness import Lateness

EACH = 64
"""Bytes that a message takes up besides its payload."""


class Waiting(Protocol):
    """The messages of one view that wait for the program."""

    def waiting(self) -> tuple[int, int]:
        """How many may be handed over as soon as it takes them, and the bytes of their payloads."""

    def newest(self) -> int:
        """Bytes of what came last."""


class Backlog:
    """D of the rules, over all views of a member.

    Args:
        messages: Q, what is taken whether the program waits or not.
        size: bytes of the same.
        reserve: R, bytes that are taken beyond that while the program waits.
        lag: how long something may wait before the program counts as slow; 0 for no time at all.
    """

    def __init__(self, messages: int, size: int, reserve: int, lag: Nanos = 0) -> None:
        self.reader = Reader()
        """The program that it waits for."""
        self.queues: Sequence[Waiting] = ()
        """By view, the oldest first."""
        self.lacks_state = False
        """Whether the state of the program is not here yet, so that nothing can be handed over."""
        self.limit = messages
        self._limit_bytes = size
        self._reserve = reserve
        self._lateness = Lateness(lag) if lag else None
        self._late = not lag

    @property
    def messages(self) -> int:
        """D: what waits here, and what lies in the mailbox beyond its bound."""
        return self._held()[0]

    @property
    def bytes(self) -> int:
        """Of these."""
        return self._held()[1]

    def waits(self) -> bool:
        """Whether the program can take nothing before it has sent something, or has its state."""
        return self.reader.waits or self.lacks_state

    def look(self, now: Nanos) -> None:
        """Before each input: see whether the program has become slow."""
        if self._lateness is not None:
            if not self.messages:
                self._lateness.took(now, 0, 0)
            self._late = self._lateness.behind(now)

    def took(self, now: Nanos, count: int) -> None:
        """The program took so many messages."""
        if self._lateness is not None:
            self._lateness.took(now, count, self.messages)
            self._late = self._lateness.behind(now)

    def hurried(self) -> bool:
        """Whether what is obsolete goes as soon as there is no room.

        Not where a program that keeps up is late for a moment: the group waits for it, as it does for plain
        messages.
        """
        return self._late or self.waits()

    def dropped(self) -> bool:
        """Whether nobody wants to be given anything: then there is always room."""
        return not self.reader.receives or self.reader.closing

    def fits(self, count: int, size: int) -> bool:
        """Whether so many more messages, with so many bytes, are taken without any of the reserve."""
        held, held_bytes = self._held()
        room = held + count <= self.limit and held_bytes + max(size, 1) <= self._limit_bytes
        return room or self.dropped()

    def room(self, count: int, size: int) -> int:
        """How many of `count` more messages are taken, which have `size` bytes together.

        Bytes may exceed their bound by the last of these, whatever its size.
        """
        if self.fits(count, size):
            return count
        held, held_bytes = self._held()
        free_bytes = max(self._limit_bytes - held_bytes, 0)
        left = min(max(self.limit - held, 0), -(-free_bytes * count // max(size, 1)))
        if self.waits():
            free = self._reserve - self._reserved(held, held_bytes)
            left += max(-(-free // (EACH + size // count)), 0)
        return min(left, count)

    def full(self) -> bool:
        """Whether D has reached Q."""
        held, size = self._held()
        return (held >= self.limit or size >= self._limit_bytes) and not self.dropped()

    def over(self) -> bool:
        """Whether this member says stop: D is above Q.

        Not at Q: a full queue must go on receiving, or nothing replaces what is obsolete there. Bytes may
        exceed their bound by what came last.
        """
        held, size = self._held()
        if held <= self.limit and size <= self._limit_bytes:
            return False
        crowded = 4 * self._without_newest(size) > 5 * self._limit_bytes
        return (held > self.limit or crowded) and not self.dropped()

    def overflowing(self) -> bool:
        """Whether the reserve is full, too: nothing more is taken, whoever waits."""
        return self.full() and self._reserved(*self._held()) >= self._reserve

    def beyond(self) -> bool:
        """Whether even more waits than queue and reserve hold: only a change of view can have added it."""
        held, size = self._held()
        return self._reserved(held, self._without_newest(size)) > self._reserve and not self.dropped()

    def _without_newest(self, size: int) -> int:
        """So many bytes, but for what came last where they exceed their bound: it may be of any size."""
        return size - self.queues[-1].newest() if size > self._limit_bytes and self.queues else size

    def is_full_of_bytes(self) -> bool:
        """Whether bytes have reached their bound."""
        return self._held()[1] >= self._limit_bytes

    def _held(self) -> tuple[int, int]:
        """D and its bytes: asked for every frame, so views are counted without ado."""
        held, size = self.reader.excess, self.reader.excess_bytes
        for queue in self.queues:
            messages, payloads = queue.waiting()
            held += messages
            size += payloads
        return held, size

    def _reserved(self, held: int, size: int) -> int:
        beyond = held - self.limit
        by_messages = beyond * (EACH + size // held) if beyond > 0 else 0
        return max(by_messages, size - self._limit_bytes, 0)
