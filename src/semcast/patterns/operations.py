"""Operations on items, from one writer to everybody (Pereira 2002, 3.4.2 and 3.4.3).

An operation on one item is one message; one on several is an update for each and a commit. `Writer` makes
the messages, `WriterState` applies them.

Deviations: figure 3.8 relies on commits disappearing together with the updates they would expose. But a
member may learn that an update was purged and still have, in its cache, the commit that comes before the
replacement; or a message that is its own commit comes in between. So messages carry counts: each update how
many updates of operations its item has had in this view, each commit how many there were of all items.
Where these do not add up, something is missing whose replacement is still to come, and the operations wait
for it. An operation never spans views: if the view changes in the middle, it is begun anew. So nothing but
the items has to be handed over to who joins, and what a writer left unfinished disappears.
"""

from collections import deque
from collections.abc import Callable, Iterator, Mapping

import msgspec

from semcast.obsolescence import OperationTracker
from semcast.patterns.pattern import PatternMessage

Value = bytes | None
"""Of an item; None deletes it."""

Changes = Mapping[str, Value]


def assign(items: dict[str, bytes], changes: Changes) -> None:
    """Make changes."""
    for item, value in changes.items():
        if value is None:
            items.pop(item, None)
        else:
            items[item] = value


class OperationPart(msgspec.Struct, frozen=True, array_like=True, tag=0, gc=False):
    """One of the updates of an operation: it takes effect at the commit."""

    item: str
    value: Value
    count: int


class Commit(msgspec.Struct, frozen=True, array_like=True, tag=1, gc=False):
    """The end of an operation."""

    total: int


class Update(msgspec.Struct, frozen=True, array_like=True, tag=2, gc=False):
    """An operation on one item."""

    item: str
    value: Value
    count: int
    total: int


_encode = msgspec.msgpack.Encoder().encode


class Writer:
    """Turns operations into messages, in order. Messages that never become obsolete may go between them.

    >>> writer = Writer(OperationTracker(k=16))
    >>> writer.operation({"a": b"1"}); writer.operation({"a": b"2"})
    >>> writer.waiting().annotation.positions()
    []
    >>> writer.sent()
    >>> writer.waiting().annotation.positions()     # it replaces the first message
    [1]
    """

    def __init__(self, tracker: OperationTracker) -> None:
        self._tracker = tracker
        self._queue: deque[list[tuple[str, Value]] | bytes] = deque()
        self._place = 0  # in the first operation
        self._counts: dict[str, int] = {}
        self._total = 0

    def operation(self, changes: Changes) -> None:
        """These items change at once."""
        if changes:
            self._queue.append(list(changes.items()))

    def plain(self, payload: bytes) -> None:
        """A message that never becomes obsolete."""
        self._queue.append(payload)

    def operations(self) -> Iterator[Changes]:
        """Those that wait, and the one that is under way."""
        return (dict(each) for each in self._queue if not isinstance(each, bytes))

    def begin_view(self) -> None:
        """Another view: an operation that is not over is begun anew."""
        self._place = self._total = 0
        self._counts.clear()

    def clear(self) -> None:
        """Nothing of what waits is to leave any more."""
        self._queue.clear()
        self._place = 0

    def waiting(self) -> PatternMessage | None:
        """The next message."""
        if not self._queue:
            return None
        first = self._queue[0]
        if isinstance(first, bytes):
            return PatternMessage(first, None)
        if self._place == len(first):
            return PatternMessage(_encode(Commit(self._total)), self._tracker.commit_tag())
        item, value = first[self._place]
        count = self._counts.get(item, 0)
        if len(first) == 1:
            return PatternMessage(
                _encode(Update(item, value, count, self._total)), self._tracker.update_tag(item)
            )
        return PatternMessage(_encode(OperationPart(item, value, count + 1)), self._tracker.part_tag())

    def sent(self) -> None:
        """It left."""
        first = self._queue[0]
        if isinstance(first, bytes):
            self._tracker.reliable()
            self._queue.popleft()
        elif self._place == len(first):
            self._tracker.committed()
            self._done()
        else:
            item, _ = first[self._place]
            self._tracker.updated(item)
            if len(first) == 1:
                self._done()
            else:
                self._place += 1
                self._counts[item] = self._counts.get(item, 0) + 1
                self._total += 1

    def _done(self) -> None:
        self._queue.popleft()
        self._place = 0


class WriterState:
    """What one writer wrote, as far as it is here: an operation is visible as a whole or not at all.

    >>> replica = WriterState()
    >>> replica.apply(OperationPart("a", b"1", 1)); replica.apply(OperationPart("b", b"1", 1)); replica.state
    {}
    >>> replica.apply(Commit(2)); replica.state
    {'a': b'1', 'b': b'1'}
    """

    def __init__(self, write: Callable[[str, Value], None] | None = None) -> None:
        """`write` is called for every change; by default it goes into `state`."""
        self.state: dict[str, bytes] = {}
        self._write = self._assign if write is None else write
        self._pending: list[tuple[str, Value]] = []
        self._committed = 0  # of the pending ones, those of operations that are over
        self._counts: dict[str, int] = {}
        self._seen = 0  # the sum of the counts

    def apply(self, record: OperationPart | Commit | Update) -> None:
        """A message of the writer was delivered."""
        if isinstance(record, Commit):
            self._commit(record.total)
            return
        self._seen += record.count - self._counts.get(record.item, 0)
        self._counts[record.item] = record.count
        self._pending.append((record.item, record.value))
        if isinstance(record, Update):
            self._commit(record.total)

    def begin_view(self) -> None:
        """Another view: everything that was committed in the last is here, and the rest never will be."""
        self._flush(self._committed)
        self._pending.clear()
        self._counts.clear()
        self._seen = 0

    def _commit(self, total: int) -> None:
        self._committed = len(self._pending)
        if self.complete(total):
            self._flush(self._committed)

    def complete(self, total: int) -> bool:
        """Whether every update up to this commit is here, or a later one of the same item."""
        return self._seen == total

    def _flush(self, upto: int) -> None:
        for item, value in self._pending[:upto]:
            self._write(item, value)
        del self._pending[:upto]
        self._committed = 0

    def _assign(self, item: str, value: Value) -> None:
        assign(self.state, {item: value})
