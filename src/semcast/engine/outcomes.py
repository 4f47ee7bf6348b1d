"""What became of requests that clients numbered: part of the replicated state, so that a retry finds it.

Which of them are done is decided below, where actions become green (`replication/dedupe.py`). Here is what
the service said, for as long as the client may ask again.
"""

import msgspec

from semcast.replication.actions import Asked
from semcast.replication.clients import Clients, Gone


class Outcome(msgspec.Struct, frozen=True, gc=False):
    """The outcome of an action."""

    position: int
    """Its place in the order of all."""
    result: bytes = b""
    """What the service said."""
    error: str = ""
    """Why nothing was done, if so: `ActionError` says it to who asked."""


class KeptOutcome(msgspec.Struct, frozen=True, array_like=True, gc=False):
    """The same, written down."""

    done: dict[str, dict[int, tuple[int, bytes, str]]]
    floors: dict[str, int]


class Outcomes:
    """By client and number."""

    def __init__(self) -> None:
        self._kept: Clients[Outcome] = Clients()

    def find(self, client: str, number: int) -> Outcome | None:
        """What became of a request; None if it is not done here, or was forgotten."""
        return self._kept.find(client, number)

    def floor(self, client: str) -> int:
        """The client has all outcomes below this number."""
        return self._kept.floor(client)

    def add(self, asked: Asked, outcome: Outcome) -> list[Gone]:
        """A request was done; returns what is forgotten with it."""
        return self._kept.add(asked, outcome)

    def written(self) -> KeptOutcome:
        """To be part of a snapshot."""
        kept, floors = self._kept.written()
        return KeptOutcome(
            {
                client: {number: (each.position, each.result, each.error) for number, each in done.items()}
                for client, done in kept.items()
            },
            floors,
        )

    def restore(self, kept: KeptOutcome) -> None:
        """As it was in a snapshot."""
        done = {
            client: {number: Outcome(*each) for number, each in done.items()}
            for client, done in kept.done.items()
        }
        last = {
            client: max((each.position for each in some.values()), default=0) for client, some in done.items()
        }
        self._kept.restore(done, kept.floors, last)
