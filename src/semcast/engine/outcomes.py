"""What became of requests that clients numbered: part of the replicated state, so that a retry finds it.

Which of them are done is decided below, where actions become green (`replication/dedupe.py`). Here is what
the service said, for as long as the client may ask again.
"""

import msgspec

from semcast.replication.actions import Asked


class Outcome(msgspec.Struct, frozen=True, gc=False):
    """What an action did."""

    position: int
    """Its place in the order of all."""
    result: bytes = b""
    """What the service said."""
    error: str = ""
    """Why nothing was done, if so: `ActionError` says it to who asked."""


class Kept(msgspec.Struct, frozen=True, array_like=True, gc=False):
    """The same, written down."""

    done: dict[str, dict[int, tuple[int, bytes, str]]]
    floors: dict[str, int]


class Outcomes:
    """By client and number."""

    def __init__(self) -> None:
        self._done: dict[str, dict[int, Outcome]] = {}
        self._floors: dict[str, int] = {}

    def find(self, client: str, number: int) -> Outcome | None:
        """What became of a request; None if it is not done here, or was forgotten."""
        return self._done.get(client, {}).get(number)

    def floor(self, client: str) -> int:
        """The client has all outcomes below this number."""
        return self._floors.get(client, 0)

    def add(self, asked: Asked, outcome: Outcome) -> list[int]:
        """A request was done; returns the numbers of its client that are forgotten with it."""
        done = self._done.setdefault(asked.client, {})
        done[asked.number] = outcome
        if asked.floor <= self._floors.get(asked.client, 0):
            return []
        self._floors[asked.client] = asked.floor
        gone = [old for old in done if old < asked.floor]
        for old in gone:
            del done[old]
        return gone

    def written(self) -> Kept:
        """To be part of a snapshot."""
        return Kept(
            {
                client: {number: (each.position, each.result, each.error) for number, each in done.items()}
                for client, done in self._done.items()
            },
            dict(self._floors),
        )

    def restore(self, kept: Kept) -> None:
        """As it was in a snapshot."""
        self._done = {
            client: {number: Outcome(*each) for number, each in done.items()}
            for client, done in kept.done.items()
        }
        self._floors = dict(kept.floors)
