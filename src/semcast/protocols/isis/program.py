"""The program of a process in a causal domain: what it asks for, and what it is told, over all its groups.

What it is told is bounded by the credit of those who send (1991 has no flow control). What it asks for is
done in order: the order of what a program sends is part of causality.
"""

from collections import deque
from collections.abc import Sequence
from heapq import heappop, heappush
from typing import TYPE_CHECKING, Protocol

import msgspec

from semcast.core.ids import MemberId
from semcast.protocols.isis.flushing import Flush
from semcast.protocols.isis.notes import Notes
from semcast.protocols.isis.seat import Seat
from semcast.protocols.lightweight.events import ClientEvent, Delivered, Out, Placed
from semcast.protocols.lightweight.sessions import Refused

if TYPE_CHECKING:
    from semcast.protocols.isis.arrivals import Source

CHANGES = 64
"""Changes of the group, and messages for one member, that may wait: each takes a round, and so does a flush
behind them."""


class Cast(msgspec.Struct, gc=False):
    """Messages to a group; those that have left are taken off."""

    group: str
    number: int
    payloads: Sequence[bytes]
    items: Sequence[str] | None
    sizes: list[int]
    """Bytes of each."""
    size: int
    """Of all."""
    largest: int
    """Of the largest."""
    marked: bool = False
    """Whether they belong to calls."""
    ordered: bool = False
    """Whether they have a place in the one order of the domain."""
    to: MemberId | None = None
    """The client that they are for, besides the servers."""


class Letter(msgspec.Struct, gc=False):
    """A message for one member."""

    group: str
    """That it is of; empty for any that both are in."""
    number: int
    to: MemberId
    payload: bytes
    marked: bool = False
    """Whether it belongs to calls."""


class LeaveWish(msgspec.Struct, frozen=True, gc=False):
    """To be in a group no more."""

    group: str
    number: int


Wish = Cast | Letter | LeaveWish


def measured(sizes: list[int]) -> tuple[int, int]:
    """Bytes of all messages, and of the largest; quick where they are of one size.

    >>> measured([2, 2]), measured([1, 3])
    ((4, 2), (4, 3))
    """
    first = sizes[0]
    return (first * len(sizes), first) if sizes.count(first) == len(sizes) else (sum(sizes), max(sizes))


def _apart(earlier: Wish, later: Wish) -> bool:
    """Whether the later one has to wait until the earlier one is where it has to be."""
    return later.group != earlier.group or type(earlier) is Letter


class Inlet:
    """Where a client of a group counts what its program has not taken of what its contact passes on."""

    def __init__(self) -> None:
        self.untaken = 0


class Receiver(Protocol):
    """Knows when what this program sent was taken by those it is for."""

    def taken_by_all(self, seq: int) -> bool:
        """Whether they have taken so much."""


class Program:
    """One program, as one member.

    Args:
        member: who it is.
        send_messages: messages that it may have waiting.
        send_bytes: of these; the last may exceed it.
        notes: what the history is told.
    """

    def __init__(self, member: MemberId, send_messages: int, send_bytes: int, notes: Notes) -> None:
        self.member = member
        self.closed = ""
        """Why it is over, if it is."""
        self.last = 0
        """The number of its last request."""
        self.wishes: deque[Wish] = deque()
        """What it asked for, in order, and has not happened."""
        self.flushes = 0
        """How many flushes have not returned."""
        self._notes = notes
        self._limit = send_messages
        self._limit_bytes = send_bytes
        self._waiting = self._waiting_bytes = 0
        self.changes = 0
        """How often the group changes from one wish to the next."""
        self._crowded = False  # whether that is too often for now
        self._events: deque[tuple[ClientEvent | None, Seat | Source | Inlet | None, int, MemberId | None]]
        self._events = deque()
        self._open: list[
            tuple[int, int, Receiver | None]
        ] = []  # not placed: number, message in its group, group
        self._placed = 0
        self.fresh: dict[str, Seat] = {}
        """Groups of which the program took messages that nobody was told of."""
        self.untold = 0
        """How many messages those are."""
        self.fresh_sources: dict[MemberId, Source] = {}
        """The same of direct messages, by who sent them."""

    def __len__(self) -> int:
        """Events that wait for it."""
        return len(self._events)

    @property
    def credit(self) -> int:
        """Messages that it should send at most. What it asked for before it knew is still taken."""
        return 0 if self._crowded else self._room

    @property
    def _room(self) -> int:
        return 0 if self._waiting_bytes >= self._limit_bytes else self._limit - self._waiting

    # What it asks for

    def number(self, count: int) -> int:
        """Numbers for its next requests; returns the first."""
        if self.closed:
            raise Refused(f"{self.member} is out of the domain: {self.closed}")
        if count > self._room:
            raise Refused(f"{count} messages, {self.member} has credit for {self._room}")
        first = self.last + 1
        self.last += count
        return first

    def skip(self, count: int) -> int:
        """Nothing comes of so many requests; returns the number of the first."""
        first = self.last + 1
        self.last += count
        self.done(self.last)
        return first

    def wish(self, wish: Wish) -> None:
        """One more, behind all others."""
        if self.wishes and _apart(self.wishes[-1], wish):
            self.changes += 1
            self._crowded = self._crowded or self.changes >= CHANGES
        self.wishes.append(wish)
        if type(wish) is Cast:
            self._waiting += len(wish.payloads)
            self._waiting_bytes += wish.size
        elif type(wish) is Letter:
            self._waiting += 1
            self._waiting_bytes += len(wish.payload)

    def left(self, cast: Cast, count: int, seat: Receiver, last: int) -> None:
        """So many messages of the first wish left, the last of them with this number in its group."""
        gone = cast.size if count == len(cast.payloads) else sum(cast.sizes[:count])
        self._waiting -= count
        self._waiting_bytes -= gone
        heappush(self._open, (cast.number + count - 1, last, seat))
        cast.number += count
        cast.payloads = cast.payloads[count:]
        cast.sizes = cast.sizes[count:]
        cast.items = None if cast.items is None else cast.items[count:]
        cast.size -= gone
        if not cast.payloads:
            self._pop()

    def _pop(self) -> Wish:
        """The first wish happens, or never will."""
        wish = self.wishes.popleft()
        if self.wishes and _apart(wish, self.wishes[0]):
            self.changes -= 1
            self._crowded = self._crowded and self.changes > CHANGES // 2
        return wish

    def letter_left(self, receiver: Receiver, nth: int) -> None:
        """The first wish is where it should be: the message for one member of this number there."""
        letter = self._pop()
        assert type(letter) is Letter
        self._waiting -= 1
        self._waiting_bytes -= len(letter.payload)
        heappush(self._open, (letter.number, nth, receiver))

    def drop(self) -> None:
        """Nothing comes of the first wish."""
        wish = self._pop()
        if type(wish) is Cast:
            self._waiting -= len(wish.payloads)
            self._waiting_bytes -= wish.size
            heappush(self._open, (wish.number + len(wish.payloads) - 1, 0, None))
            return
        if type(wish) is Letter:
            self._waiting -= 1
            self._waiting_bytes -= len(wish.payload)
        heappush(self._open, (wish.number, 0, None))

    def done(self, number: int) -> None:
        """A request that sends nothing happened."""
        heappush(self._open, (number, 0, None))

    def flush(self, flush: Flush) -> None:
        """Tell when everything that the program has sent or was given is given to all."""
        self.flushes += 1
        heappush(self._open, (flush.number, 0, flush))

    def settle(self) -> bool:
        """Tell how far all programs have taken what this one sent; returns whether something is open."""
        placed = self._placed
        while self._open:
            number, last, seat = self._open[0]
            if self.wishes and self.wishes[0].number <= number:
                break
            if seat is not None and not seat.taken_by_all(last):
                break
            placed = number
            heappop(self._open)
            if isinstance(seat, Flush):
                self.flushes -= 1
                self._notes.flush(number, "returned")
        if placed > self._placed:
            self._placed = placed
            self.put(Placed(placed))
        return bool(self._open)

    # What it is told

    def put(
        self,
        event: ClientEvent | None,
        seat: "Seat | Source | Inlet | None" = None,
        last: int = 0,
        of: MemberId | None = None,
    ) -> None:
        """The next thing; of messages, the last of them as the group counts, or the number of a view.

        Of a direct message its source, and which one it is there. With `of` it is a message that this member
        multicast, whoever sent it; without an event it is not for the program, and only counts.
        """
        if self.closed:
            return
        if type(event) is Placed and self._events and type(self._events[-1][0]) is Placed:
            self._events[-1] = event, None, 0, None
        else:
            self._events.append((event, seat, last, of))

    def take(self, most: int | None = None) -> list[ClientEvent]:
        """What it is told next, at most so many events."""
        count = len(self._events) if most is None else min(most, len(self._events))
        taken: list[ClientEvent] = []
        for _ in range(count):
            event, seat, last, of = self._events.popleft()
            if event is not None:
                taken.append(event)
            if isinstance(seat, Seat):
                if of is not None:
                    seat.taking.took(of, last)
                elif type(event) is Delivered:
                    seat.taking.took(event.sender, last)
                    self.untold += len(event.payloads)
                else:
                    seat.taking.took_view(last)
                self.fresh[seat.name] = seat
            elif isinstance(seat, Inlet):
                seat.untaken -= 1
            elif seat is not None:
                seat.taken = last
                self.fresh_sources[seat.member] = seat
        return taken

    def close(self, cause: str) -> None:
        """It was put out of the domain: that is all it is told."""
        if not self.closed:
            self._events.clear()
            self._events.append((Out(cause), None, 0, None))
            self.closed = cause
            self.wishes.clear()
            self.changes, self._crowded = 0, False
