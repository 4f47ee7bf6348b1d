"""What is on its way to a client: numbered, bounded by what the client has taken, kept until then.

What has not left yet stays in the queue of the session, where obsolete messages can be dropped.
"""

from collections import deque

from semcast.protocols.lightweight.events import ClientEvent, Delivered
from semcast.protocols.lightweight.sessions import Session

_AT_A_TIME = 4096
_BYTES_AT_A_TIME = 1 << 18


class Outlet:
    """One session's.

    Args:
        session: where events wait.
        window: messages and other events that may be under way.
        most_bytes: of these messages; the last may exceed it.
        keeps: whether what is under way is kept, for a connection that breaks.
    """

    def __init__(self, session: Session, window: int, most_bytes: int, *, keeps: bool) -> None:
        self.session = session
        self.told = 0
        """Events that left, from the beginning of the session."""
        self.taken = 0
        """Of these, the client has dealt with so many."""
        self._window = window
        self._most_bytes = most_bytes
        self._under_way: deque[tuple[ClientEvent | None, int, int]] = deque()
        self._messages = self._bytes = 0  # of these
        self._keeps = keeps

    def next(self) -> list[ClientEvent]:
        """Events that leave now; none where the client has enough to do."""
        if not len(self.session):
            return []
        if self.session.closed:  # that it is over, it hears at once
            self.told += 1
            return self.session.take()
        if self._messages >= self._window or self._bytes >= self._most_bytes:
            return []
        room = min(_AT_A_TIME, self._window - self._messages)
        events = self.session.take_some(room, min(_BYTES_AT_A_TIME, self._most_bytes - self._bytes))
        keep = self._keeps
        for event in events:
            weight = (len(event.payloads), event.size) if type(event) is Delivered else (1, 0)
            self._under_way.append((event if keep else None, *weight))
            self._messages += weight[0]
            self._bytes += weight[1]
        self.told += len(events)
        return events

    def took(self, told: int) -> bool:
        """The client has dealt with so many events; returns whether that can be."""
        if not self.taken <= told <= self.told:
            return False
        while self.taken < told:
            _, messages, size = self._under_way.popleft()
            self._messages -= messages
            self._bytes -= size
            self.taken += 1
        return True

    def again(self, told: int) -> list[ClientEvent] | None:
        """The connection broke, and this is how much arrived: what to send again. None if that cannot be."""
        if not self.took(told):
            return None
        return [event for event, _, _ in self._under_way if event is not None]
