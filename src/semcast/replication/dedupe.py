"""Requests are done once, however often a client asks and wherever: part of the replicated state.

Per client the *set* of numbers that are done, above a floor that the client itself raises. A rule like "a
number below the last one is dropped" would lose what was queued in a minority and came late.
"""

import msgspec

from semcast.replication.actions import Asked


class Answered(msgspec.Struct, frozen=True, array_like=True, gc=False):
    """The same, written down."""

    done: dict[str, dict[int, int]]
    floors: dict[str, int]


class Requests:
    """Which requests of which clients are done, and where in the order."""

    def __init__(self) -> None:
        self._done: dict[str, dict[int, int]] = {}
        self._floors: dict[str, int] = {}

    def position(self, client: str, number: int) -> int | None:
        """Where a request was done; None if it was not, or nobody needs to know any more."""
        return self._done.get(client, {}).get(number)

    def apply(self, request: Asked, position: int) -> bool:
        """A request is green; returns whether it is to be done now."""
        client, number = request.client, request.number
        done = self._done.setdefault(client, {})
        floor = self._floors.get(client, 0)
        new = number not in done and number >= floor
        if new:
            done[number] = position
        if request.floor > floor:
            self._floors[client] = request.floor
            for old in [old for old in done if old < request.floor]:
                del done[old]
        return new

    def written(self) -> Answered:
        """To be written down."""
        return Answered({client: dict(done) for client, done in self._done.items()}, dict(self._floors))

    def restore(self, answered: Answered) -> None:
        """As it was written down."""
        self._done = {client: dict(done) for client, done in answered.done.items()}
        self._floors = dict(answered.floors)
