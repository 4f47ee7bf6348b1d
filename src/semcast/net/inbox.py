"""Datagrams of one group that wait for its turn. Bounded; a turn takes a part, so that others have theirs."""

from collections.abc import Sequence

from semcast.net.sockets import RECEIVE_BUFFER, Arrival

ROOM = RECEIVE_BUFFER
"""Bytes that wait, at most: what a socket of the group's own would hold."""
_ALONE = 1 << 20
"""Bytes that a turn takes, and the datagram that exceeds them, where nobody waits for its end."""
_AMONG_OTHERS = 1 << 19
"""The same where other groups do. Shorter turns cost more for what they do: the program is woken by each."""
COST = 512
"""Bytes that a datagram counts for besides its own: a kernel counts like this, and turns are no longer."""


def budget(groups: int) -> int:
    """Bytes for one turn of one of so many groups."""
    return _ALONE if groups < 2 else _AMONG_OTHERS


class Inbox:
    """In the order of arrival."""

    def __init__(self) -> None:
        self._waiting: list[Arrival] = []
        self._size = 0

    def __bool__(self) -> bool:
        return bool(self._waiting)

    def put(self, arrivals: Sequence[Arrival]) -> int:
        """These came; returns for how many of them there was no room."""
        size = sum([len(each[0]) for each in arrivals]) + COST * len(arrivals)
        if self._size + size <= ROOM:
            self._waiting += arrivals
            self._size += size
            return 0
        lost = 0
        for each in arrivals:
            size = len(each[0]) + COST
            if self._size + size > ROOM:
                lost += 1
            else:
                self._waiting.append(each)
                self._size += size
        return lost

    def take(self, most: int) -> tuple[list[Arrival], int]:
        """The first, until they exceed so many bytes, and how many bytes these are."""
        if self._size <= most:
            taken, size = self._waiting, self._size
            self._waiting, self._size = [], 0
            return taken, size - COST * len(taken)
        count = size = 0
        for each in self._waiting:
            count += 1
            size += len(each[0]) + COST
            if size > most:
                break
        taken = self._waiting[:count]
        del self._waiting[:count]
        self._size -= size
        return taken, size - COST * count

    def clear(self) -> None:
        """Nobody wants them."""
        self._waiting, self._size = [], 0
