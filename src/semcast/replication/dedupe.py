"""Requests are done once, however often a client asks and wherever: part of the replicated state.

Per client the *set* of numbers that are done, above a floor that the client itself raises. A rule like "a
number below the last one is dropped" would lose what was queued in a minority and came late. Within bounds:
`clients.py`.
"""

import msgspec

from semcast.replication.actions import Asked
from semcast.replication.clients import Clients


class Answered(msgspec.Struct, frozen=True, array_like=True, gc=False):
    """The same, written down."""

    done: dict[str, dict[int, int]]
    floors: dict[str, int]


class Requests:
    """Which requests of which clients are done, and where in the order."""

    def __init__(self) -> None:
        self._places: Clients[int] = Clients()

    def position(self, client: str, number: int) -> int | None:
        """Where a request was done; None if it was not, or nobody needs to know any more."""
        return self._places.find(client, number)

    def apply(self, request: Asked, position: int) -> bool:
        """A request is green; returns whether it is to be done now."""
        new = self._places.is_new(request)
        if new:
            self._places.add(request, position)
        else:
            self._places.heed(request)
        return new

    def written(self) -> Answered:
        """To be written down."""
        return Answered(*self._places.written())

    def restore(self, answered: Answered) -> None:
        """As it was written down."""
        last = {client: max(done.values(), default=0) for client, done in answered.done.items()}
        self._places.restore(answered.done, answered.floors, last)
