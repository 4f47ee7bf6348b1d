"""What the servers of a group were given, as far as some client may not have it.

Each server keeps it, whoever is the contact of a client: when that one fails, another goes on with it.
"""

from collections import deque
from collections.abc import Sequence
from typing import NamedTuple

from semcast.core.ids import MemberId
from semcast.protocols.isis.client_frames import ViewItem
from semcast.protocols.isis.stamps import Counts, Foreign, Time, Times, merge


class Entry(NamedTuple):
    """A run of messages, or what was said with messages that no client is given."""

    view: int
    rank: int
    first: int
    last: int
    """As the group counts."""
    sender: MemberId
    number: int
    """Of the first, as its sender counts."""
    payloads: Sequence[bytes]
    items: Sequence[str] | None
    to: MemberId | None
    """The only client that it is for."""
    everybody: bool
    """Whether it is for all clients."""
    marked: bool
    others: Sequence[Foreign]
    epoch: int
    lamport: int


class Log:
    """Of one server."""

    def __init__(self) -> None:
        self.entries: deque[Entry | ViewItem] = deque()
        self.first = 0
        """The number of the first entry that is still there."""
        self.time = Time(0, {})
        """How far the server is."""
        self.base = Time(0, {})
        """How far it was before the first entry."""
        self.base_told: Times = {}
        """What was said of other groups before that."""
        self.view: ViewItem | None = None
        """The latest view."""
        self.since = 0
        """The view of the servers with which it begins; of those before it there is nothing."""

    @property
    def end(self) -> int:
        """The number that the next entry gets."""
        return self.first + len(self.entries)

    def add(self, entry: Entry) -> None:
        """The server is given messages."""
        self.entries.append(entry)
        self.time = behind(self.time, entry)

    def reach(self, rank: int, last: int) -> None:
        """A message is for nobody, or was purged."""
        if last > self.time.counts.get(rank, 0):
            nobody = MemberId("-")
            self.add(
                Entry(self.time.view, rank, last, last, nobody, 0, (), None, None, False, False, (), 0, 0)
            )

    def enter(self, item: ViewItem) -> None:
        """It is in another view."""
        self.since = self.since or item.view
        self.view = item
        self.entries.append(item)
        self.time = Time(item.view, {})

    def at(self, index: int) -> Time:
        """How far the server was before an entry."""
        if index >= self.end:
            return self.time
        time = self.base
        for place in range(index - self.first):
            time = behind(time, self.entries[place])
        return time

    def told(self, index: int) -> Times:
        """What was said of other groups before an entry."""
        found = {group: Time(time.view, dict(time.counts)) for group, time in self.base_told.items()}
        for place in range(min(index, self.end) - self.first):
            hear(found, self.entries[place])
        return found

    def trim(self, index: int) -> None:
        """No client needs what is before an entry."""
        while self.first < index and self.entries:
            entry = self.entries.popleft()
            self.first += 1
            self.base = behind(self.base, entry)
            hear(self.base_told, entry)


def hear(told: Times, entry: Entry | ViewItem) -> None:
    """What messages say of other groups."""
    if isinstance(entry, Entry):
        for other in entry.others:
            merge(told, other.group, other.view, other.counts)


def behind(time: Time, entry: Entry | ViewItem) -> Time:
    """How far who was there is with an entry."""
    if isinstance(entry, ViewItem):
        return Time(entry.view, {})
    counts: Counts = {**time.counts, entry.rank: max(entry.last, time.counts.get(entry.rank, 0))}
    return Time(time.view, counts)


def covered(time: Time, entry: Entry | ViewItem) -> bool:
    """Whether who is so far has an entry.

    >>> [covered(Time(3, {0: 7}), ViewItem(view, [], [], [], [])) for view in (3, 4)]
    [True, False]
    """
    if isinstance(entry, ViewItem):
        return entry.view <= time.view
    return time.covers(entry.view, {entry.rank: entry.last})
