"""Replicated services: what two servers have green on their disks at one position is one action.

A green action that is on no disk yet may go with a crash. Where an operator gives servers up, or puts an old
disk back, what they had may go, too: from then on nothing is compared.
"""

from collections import deque
from collections.abc import Collection, Iterator

from semcast.core.annotations import Item
from semcast.core.ids import MemberId
from semcast.history.events import Event
from semcast.specs.prefix.alarm import Alarm
from semcast.specs.replication.kinds import COLOUR, DURABLE, GREEN, INSTALL, PUT_BACK, WHOLE

_MOST = 1 << 16
"""Positions that are remembered; a server that is farther behind is not compared."""

_Green = tuple[MemberId, int, Event]
"""An action by its creator and index, and the row that says so."""


class ReplicationWatch:
    """The newest positions that are on a disk, and what is green beyond them.

    Args:
        promised: the properties of the group of servers.
    """

    def __init__(self, promised: Collection[str]) -> None:
        self._promised = "repl_total_order" in promised
        self._order: dict[int, _Green] = {}
        self._waiting: dict[MemberId, deque[tuple[int, _Green]]] = {}
        self._found: list[Alarm] = []

    def feed(self, event: Event) -> None:
        """One more event of a server."""
        if not self._promised:
            return
        if event.kind is PUT_BACK or (event.kind is INSTALL and event.annotation == Item(WHOLE)):
            self._promised = False
            self._order.clear()
            self._waiting.clear()
            self._found.clear()
        elif event.kind is COLOUR and event.level == GREEN and event.order is not None:
            assert event.sender is not None
            waiting = self._waiting.setdefault(event.process, deque(maxlen=_MOST))
            for place in range(event.count):
                waiting.append((event.order + place, (event.sender, event.seq + place, event)))
        elif event.kind is DURABLE and event.order is not None:
            waiting = self._waiting.setdefault(event.process, deque(maxlen=_MOST))
            while waiting and waiting[0][0] <= event.order:
                self._compare(event.process, *waiting.popleft())

    def _compare(self, process: MemberId, position: int, green: _Green) -> None:
        other = self._order.setdefault(position, green)
        if len(self._order) > _MOST:
            del self._order[next(iter(self._order))]
        if other[:2] != green[:2]:
            one, two = (f"({creator},{index})" for creator, index, _ in (other, green))
            said = f"position {position} is {two} at {process} and {one} at {other[2].process}"
            self._found.append(Alarm("repl_total_order", said, (other[2], green[2])))

    def settle(self) -> Iterator[Alarm]:
        """What was found since the last time."""
        found, self._found = self._found, []
        return iter(found)

    def size(self) -> int:
        """How many rows are remembered."""
        return len(self._order) + sum(map(len, self._waiting.values()))
