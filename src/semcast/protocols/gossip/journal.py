"""A logger's disk: one sync at a time, and what waits for it.

Nothing that depends on a record leaves before the record is synced. Records that come while a sync is under
way are synced by the next one, together.
"""

from collections import deque
from collections.abc import Callable, Iterable

from semcast.core.ids import Nanos
from semcast.core.outbox import Outbox
from semcast.protocols.gossip.records import Record, encode

Then = Callable[[Nanos], None]


class Journal:
    """Appends records, and does what waits for them."""

    def __init__(self, out: Outbox) -> None:
        self._out = out
        self._written = 0
        self._synced = 0
        self._syncing: int | None = None
        self._waiting: deque[tuple[int, Then]] = deque()
        self.length = 0
        """Records since the log was written anew."""
        self.bytes = 0
        """Bytes of these."""
        self.anew = 0
        """Bytes that the log had when it was written anew: what is of use takes about so much."""
        self.base = 0
        """The position of the first record that was written in this life."""

    def write(self, record: Record) -> int:
        """Append a record; returns its position."""
        data = encode(record)
        self._out.append(data)
        self._written += 1
        self.length += 1
        self.bytes += len(data)
        return self.base + self._written - 1

    @property
    def synced(self) -> int:
        """Records before this position are synced."""
        return self.base + self._synced

    def then(self, what: Then) -> None:
        """Do something as soon as everything that was written so far is synced."""
        self._waiting.append((self._written, what))

    def rewrite(self, records: Iterable[Record]) -> None:
        """Replace all records by these."""
        self._out.begin_anew()
        self.length = self.bytes = 0
        for record in records:
            self.write(record)
        self.anew = self.bytes

    @property
    def next(self) -> int:
        """The position of the next record."""
        return self.base + self._written

    def quiet(self) -> bool:
        """Whether all that was written is synced, and nothing waits: then the books say what is on disk."""
        return self._written == self._synced and not self._waiting

    def flush(self, now: Nanos) -> None:
        """Sync what was written, unless a sync is under way; do what waits for nothing."""
        self._settle(now)
        if self._syncing is None and self._written > self._synced:
            self._syncing = self._written
            self._out.sync(self._written)

    def on_synced(self, now: Nanos, ticket: int) -> None:
        """Everything up to there is on disk."""
        self._synced = max(self._synced, ticket)
        self._syncing = None
        self.flush(now)

    def _settle(self, now: Nanos) -> None:
        while self._waiting and self._waiting[0][0] <= self._synced:
            self._waiting.popleft()[1](now)
