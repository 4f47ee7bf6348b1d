"""Stacks of one group in one process: a member takes in all that has come for it in one turn.

Nothing is lost, and only timers make time pass.
"""

from collections.abc import Callable, Sequence

from semcast.core import MemberId, Nanos
from semcast.core.outgoing import Outgoing
from semcast.core.stack import Stack
from semcast.lab import Counter, Forgetful, Lab, Seat, stateless

MEMBERS = 3
FOREVER: Nanos = 1 << 62


class Bench:
    """The members, each with an application that takes everything at once.

    Args:
        make: a stack for a member, given its number.
    """

    def __init__(self, make: Callable[[MemberId, int], Stack]) -> None:
        self._lab = Lab(bursts=True)
        self._counters = [Counter() for _ in range(MEMBERS)]
        self._seats: list[Seat] = []
        for number, counter in enumerate(self._counters):
            member = MemberId(f"p{number}")
            stack = make(member, number)
            self._seats.append(self._lab.add(member, stack, counter, stateless(), Forgetful))

    def form(self) -> None:
        """Start all, and wait until each sees all."""
        self._lab.start()
        while any(len(seat.stack.view().members) < MEMBERS for seat in self._seats):
            self._lab.advance(FOREVER)

    def spread(self, payloads: Sequence[bytes], messages: int) -> None:
        """Let all members multicast, again and again, until so many messages came to everybody."""
        outgoing, sent = Outgoing(payloads), 0
        while min([counter.count for counter in self._counters]) < messages:
            for seat in self._seats:
                if sent < messages:
                    sent += seat.offer(outgoing)
            self._lab.advance(FOREVER)
