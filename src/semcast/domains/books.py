"""The requests of one session: their numbers, and which of them have a place."""

import asyncio
from collections import deque

from semcast.core.ids import MemberId, MessageId
from semcast.domains.link import CastRequest, PrivateRequest, Request, numbers_of


class Books:
    """What this program asked for as one member.

    Args:
        member: who it is in this session.
    """

    def __init__(self, member: MemberId) -> None:
        self.member = member
        self.last = 0
        """The number of the last request."""
        self.placed = 0
        """Requests up to this one have a place, and all daemons have them."""
        self._open: deque[tuple[int, int]] = deque()  # messages that have none: first and last of each run
        self._refused: deque[tuple[int, int]] = deque()  # requests that never have one: first and last
        self._waiting: deque[tuple[int, asyncio.Future[None]]] = deque()

    def note(self, request: Request) -> int:
        """One more request; returns its first number."""
        first = self.last + 1
        self.last += numbers_of(request)
        if isinstance(request, CastRequest | PrivateRequest):
            self._open.append((first, self.last))
        return first

    def place(self, upto: int) -> None:
        """All up to this one have a place; with those that were refused and need none."""
        while self._refused and self._refused[0][0] <= upto + 1:
            upto = max(upto, self._refused.popleft()[1])
        self.placed = upto
        while self._open and self._open[0][1] <= upto:
            self._open.popleft()
        while self._waiting and self._waiting[0][0] <= upto:
            _, future = self._waiting.popleft()
            if not future.done():
                future.set_result(None)

    def placing(self) -> "asyncio.Future[None]":
        """Done when all requests so far have a place; fails where that will not be known."""
        future: asyncio.Future[None] = asyncio.get_running_loop().create_future()
        if self.placed >= self.last:
            future.set_result(None)
        else:
            self._waiting.append((self.last, future))
        return future

    def refuse(self, seq: int, count: int, error: Exception) -> None:
        """Nothing comes of these; who waits for them hears that."""
        self._refused.append((seq, seq + count - 1))
        for upto, future in self._waiting:
            if upto >= seq and not future.done():
                future.set_exception(error)
        self.place(self.placed)

    def end(self, error: Exception) -> None:
        """The session is over."""
        while self._waiting:
            _, future = self._waiting.popleft()
            if not future.done():
                future.set_exception(error)

    def unsettled(self) -> tuple[MessageId, ...]:
        """Messages of which it is not known whether anybody has them."""
        return tuple(
            MessageId(self.member, seq)
            for first, last in self._open
            for seq in range(max(first, self.placed + 1), last + 1)
        )
