"""Requests are done once, however often a client asks and wherever: part of the replicated state.

Per client the *set* of numbers that are done, above a floor that the client itself raises. A rule like "a
number below the last one is dropped" would lose what was queued in a minority and came late.
"""

from semcast.replication.actions import Asked


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
