"""Which of its own messages a stack was asked about, and what it answers (`Stack.confirm`)."""

from collections.abc import Callable

import msgspec

from semcast.core.events import Confirmed, Unconfirmed
from semcast.core.outbox import Outbox
from semcast.core.views import View


class Asked(msgspec.Struct, frozen=True, gc=False):
    """Somebody waits to hear of the message with this number."""

    ticket: int
    number: int
    safe: bool


def itself(number: int) -> int:
    """The position of a message whose number says it."""
    return number


class Confirming:
    """Messages are known by numbers that grow, of one view at a time; a stack says how far it has come."""

    def __init__(self, out: Outbox) -> None:
        self._out = out
        self._asked: list[Asked] = []

    def __bool__(self) -> bool:
        return bool(self._asked)

    @property
    def last(self) -> int:
        """The highest number that anybody waits for; 0 if nobody does."""
        return self._asked[-1].number if self._asked else 0

    def ask(self, asked: Asked) -> None:
        """About a message of the current view; no later one was asked about before."""
        self._asked.append(asked)

    def settle(
        self,
        view: View,
        *,
        delivered: int,
        safe: int,
        position: Callable[[int], int] = itself,
        logged: bool = False,
    ) -> None:
        """Messages up to `delivered` have their place, and everybody has those up to `safe`.

        With `logged` it is loggers that have those, on disk.
        """
        open_: list[Asked] = []
        for asked in self._asked:
            if asked.number <= (min(delivered, safe) if asked.safe else delivered):
                place = position(asked.number)
                self._out.deliver(Confirmed(asked.ticket, view, place, logged and asked.safe))
            else:
                open_.append(asked)
        self._asked = open_

    def end(self, view: View, following: View) -> None:
        """The view is over, and the next one begins: nothing more becomes of what is open."""
        for asked in self._asked:
            wanted = "safe" if asked.safe else "delivered"
            cause = f"view {following.name} began before it was {wanted} in view {view.name}"
            self._out.deliver(Unconfirmed(asked.ticket, cause))
        self._asked.clear()
