"""The side of who is asked: requests that this member's program has been given and has not answered."""

import heapq

from semcast.core.ids import MemberId, Nanos
from semcast.patterns.calls.values import CallLimits, CallRequest, Key


class Answering:
    """Requests under way in the program.

    Args:
        limits: how many, and how many bytes.
    """

    def __init__(self, limits: CallLimits) -> None:
        self._limits = limits
        self._open: dict[Key, CallRequest] = {}
        self._of: dict[MemberId, int] = {}  # how many of each caller
        self._deadlines: list[tuple[Nanos, MemberId, int]] = []
        self.size = 0
        """Bytes of the requests."""

    def __len__(self) -> int:
        return len(self._open)

    def room_for(self, caller: MemberId, size: int) -> bool:
        """Whether another request of so many bytes can be taken."""
        limits = self._limits
        return self._of.get(caller, 0) < limits.requests and self.size + size <= limits.request_bytes

    def add(self, request: CallRequest) -> None:
        """The program is given it."""
        assert request.key not in self._open
        caller = request.caller
        self._open[request.key] = request
        self._of[caller] = self._of.get(caller, 0) + 1
        self.size += len(request.payload)
        if request.deadline is not None:
            heapq.heappush(self._deadlines, (request.deadline, *request.key))

    def __contains__(self, key: Key) -> bool:
        return key in self._open

    def get(self, key: Key) -> CallRequest | None:
        """One of them."""
        return self._open.get(key)

    def pop(self, key: Key) -> CallRequest | None:
        """It is over; returns it if it was there."""
        request = self._open.pop(key, None)
        if request is None:
            return None
        caller = request.caller
        self.size -= len(request.payload)
        self._of[caller] -= 1
        if not self._of[caller]:
            del self._of[caller]
        return request

    def of_others(self, together: frozenset[MemberId]) -> list[Key]:
        """Requests whose callers are not among these."""
        return [key for key in self._open if key[0] not in together]

    def next_at(self) -> Nanos | None:
        """When the first caller stops waiting."""
        deadlines = self._deadlines
        while deadlines and deadlines[0][1:] not in self._open:
            heapq.heappop(deadlines)
        return deadlines[0][0] if deadlines else None

    def expire(self, now: Nanos) -> list[Key]:
        """Requests whose callers wait no more. They are over."""
        found: list[Key] = []
        while (at := self.next_at()) is not None and at <= now:
            _, caller, number = heapq.heappop(self._deadlines)
            self.pop((caller, number))
            found.append((caller, number))
        return found

    def clear(self) -> list[Key]:
        """All are over."""
        found = list(self._open)
        self._open.clear()
        self._of.clear()
        self._deadlines.clear()
        self.size = 0
        return found
