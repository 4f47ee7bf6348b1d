"""What is kept of the requests of clients, so that each is done once: within bounds, the same everywhere.

A client says up to where it has the outcomes, and what is below goes. Some never come back, and some never
say so. Then the order of all decides what is forgotten: the client that was done something for longest ago,
and the lower half of the numbers of one that has too many. Nobody looks at a clock: a server that was away
for a year comes to the same.
"""

from collections.abc import Mapping
from typing import Generic, NamedTuple, TypeVar

from semcast.replication.actions import Asked

MOST_CLIENTS = 100_000
"""Clients that are remembered. What one that was forgotten asks again is done again."""
MOST_NUMBERS = 10_000
"""Requests of one client whose outcomes it does not have. Lower numbers are not done any more."""

T = TypeVar("T")


class Gone(NamedTuple):
    """What was forgotten: a number of a client; or, without a number, the client."""

    client: str
    number: int | None = None


class Clients(Generic[T]):
    """Something about each request that is done, by client and number."""

    def __init__(self, most_clients: int = MOST_CLIENTS, most_numbers: int = MOST_NUMBERS) -> None:
        self._most_clients, self._most_numbers = most_clients, most_numbers
        self._done: dict[str, dict[int, T]] = {}  # who was done something for longest ago comes first
        self._floors: dict[str, int] = {}

    def find(self, client: str, number: int) -> T | None:
        """What is kept of a request; None if it was not done, or is forgotten."""
        return self._done.get(client, {}).get(number)

    def floor(self, client: str) -> int:
        """Lower numbers of a client are not done any more."""
        return self._floors.get(client, 0)

    def is_new(self, request: Asked) -> bool:
        """Whether it is to be done."""
        return self.find(request.client, request.number) is None and request.number >= self.floor(
            request.client
        )

    def add(self, request: Asked, what: T) -> list[Gone]:
        """A request is done; returns what is forgotten for it."""
        client = request.client
        done = self._done[client] = self._done.pop(client, {})
        done[request.number] = what
        gone = self.heed(request)
        if len(done) > self._most_numbers:
            gone += self._raise_floor(client, sorted(done)[len(done) // 2])
        if len(self._done) > self._most_clients:
            oldest = next(iter(self._done))
            gone += [Gone(oldest, number) for number in self._done.pop(oldest)]
            gone.append(Gone(oldest))
            self._floors.pop(oldest, None)
        return gone

    def heed(self, request: Asked) -> list[Gone]:
        """What a client says that it has need not be kept."""
        if request.floor <= self.floor(request.client):
            return []
        return self._raise_floor(request.client, request.floor)

    def _raise_floor(self, client: str, floor: int) -> list[Gone]:
        self._floors[client] = floor
        done = self._done.get(client, {})
        gone = [Gone(client, number) for number in done if number < floor]
        for _, number in gone:
            assert number is not None
            del done[number]
        return gone

    def written(self) -> tuple[dict[str, dict[int, T]], dict[str, int]]:
        """To be written down."""
        return {client: dict(done) for client, done in self._done.items()}, dict(self._floors)

    def restore(
        self, done: Mapping[str, Mapping[int, T]], floors: Mapping[str, int], last: "Mapping[str, int]"
    ) -> None:
        """As it was written down; `last` says where in the order each client was done something for last."""
        self._done = {client: dict(done[client]) for client in sorted(done, key=lambda each: last[each])}
        self._floors = dict(floors)
