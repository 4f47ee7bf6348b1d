"""The books on their way to the disk: what is written, and up to where it outlives a crash.

Nothing waits on the path of deliveries. There is at most one sync of that kind under way; what is written
meanwhile goes with the next. Whoever needs certainty asks for a sync of its own, and is called back.
"""

from collections import deque
from collections.abc import Callable
from typing import NamedTuple

from semcast.core.outbox import Outbox
from semcast.replication.books import Books
from semcast.replication.ids import Weighted
from semcast.replication.knowledge import Prim
from semcast.replication.records import Record, encode

Then = Callable[[], None]


class Mark(NamedTuple):
    """What is on the disk, in one image."""

    line: int
    prim: Prim
    attempt: int
    founders: Weighted
    own: int
    """The last own action of this epoch."""
    arrivals: int
    """How many runs that were red when they came."""


class Journal:
    """Writes records of one server."""

    def __init__(self, books: Books, out: Outbox) -> None:
        self.books = books
        self.out = out
        self.durable = self.mark()
        self._tickets = 0
        self._asked: deque[tuple[int, Mark, Then | None]] = deque()
        self._written = 0
        self._covered = 0  # records that a sync was asked for

    def mark(self) -> Mark:
        """What the books say now."""
        books, colours = self.books, self.books.colours
        founders = books.members.founders
        return Mark(colours.line, books.prim, books.attempt, founders, books.index, colours.arrivals)

    def recovered(self) -> None:
        """All that the books say was on the disk."""
        self.durable = self.mark()

    def write(self, record: Record) -> None:
        """Change the books, and the disk with them."""
        self.books.apply(record)
        self.out.append(encode(record))
        self._written += 1

    def begin_anew(self) -> None:
        """Write what the books say in the place of all records before; those go once this is on the disk."""
        self.out.begin_anew()
        for record in self.books.condensed():
            self.out.append(encode(record))
            self._written += 1
        self.sync()

    def sync(self, then: Then | None = None) -> None:
        """Have all that was written outlive a crash; `then` is called once it does."""
        self._tickets += 1
        self._asked.append((self._tickets, self.mark(), then))
        self._covered = self._written
        self.out.sync(self._tickets)

    @property
    def awaited(self) -> int:
        """The ticket of the oldest sync that is not done; 0 if there is none."""
        return self._asked[0][0] if self._asked else 0

    def keep_up(self) -> None:
        """Sync what was written, unless one is under way: then after it."""
        if self._covered < self._written and not self._asked:
            self.sync()

    def on_synced(self, ticket: int) -> None:
        """A sync is done, and with it those before it."""
        due: list[Then] = []
        while self._asked and self._asked[0][0] <= ticket:
            _, self.durable, then = self._asked.popleft()
            if then is not None:
                due.append(then)
        for then in due:
            then()
        self.keep_up()
