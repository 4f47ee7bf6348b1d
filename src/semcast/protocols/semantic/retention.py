"""What others may still ask for of one sender's messages, in order: O of appendix A."""

from collections import deque
from collections.abc import Iterator
from itertools import chain

import msgspec

from semcast.core.ids import MemberId
from semcast.core.messages import Batch
from semcast.obsolescence import Purging, PurgingBuffer
from semcast.obsolescence.buffer import Receipt


class Retention:
    """A buffer that purges behind safe messages only.

    Runs of updates stay whole, out of the index, as long as they are young: mostly they are stable soon.
    """

    def __init__(self, purging: Purging) -> None:
        self._whole = purging is Purging.OFF
        self._buffer = PurgingBuffer(purging)
        self._fresh: deque[Batch] = deque()  # came after all that is in the buffer
        self._fresh_messages = 0
        self._fresh_bytes = 0
        self._old = 0  # how many of the fresh were here when `mature` was called last

    def __len__(self) -> int:
        return len(self._buffer) + self._fresh_messages

    @property
    def bytes(self) -> int:
        """Payload bytes held."""
        return self._buffer.bytes + self._fresh_bytes

    def __iter__(self) -> Iterator[Batch]:
        """The entries, oldest first."""
        return chain(self._buffer, self._fresh)

    def add(self, batch: Batch) -> None:
        """Append."""
        if self._whole or (batch.items is None and not self._fresh):
            self._buffer.add(batch)
        else:
            self._fresh.append(batch)
            self._count(batch, 1)

    def mature(self) -> None:
        """What was here at the last call is not stable soon: put it where `release` can purge it."""
        for _ in range(self._old):
            batch = self._fresh.popleft()
            self._count(batch, -1)
            for one in self.taken_apart(batch):
                self._buffer.add(one)
        self._old = len(self._fresh)

    def taken_apart(self, batch: Batch) -> list[Batch]:
        """The updates of a run; its head is that of the first."""
        if batch.items is None:
            return [batch]
        singles = batch.singles()
        if batch.head:
            singles[0] = msgspec.structs.replace(singles[0], head=batch.head)
        return singles

    def trim(self, upto: int) -> list[Batch]:
        """Remove and return the messages up to `upto`."""
        gone = self._buffer.trim(upto)
        while self._fresh and self._fresh[0].first <= upto:
            batch = self._fresh.popleft()
            self._count(batch, -1)
            if batch.last > upto:
                rest = batch.cut(upto + 1, batch.last)
                self._fresh.appendleft(rest)
                self._count(rest, 1)
                batch = batch.cut(batch.first, upto)
            else:
                self._old = max(self._old - 1, 0)
            gone.append(batch)
        return gone

    def release(self, sender: MemberId, upto: int) -> None:
        """Messages up to `upto` may be relied on; their victims go."""
        self._buffer.release(sender, upto)

    def take_receipts(self) -> list[Receipt]:
        """What was purged since the last call, in order."""
        return self._buffer.take_receipts()

    def _count(self, batch: Batch, sign: int) -> None:
        self._fresh_messages += sign * len(batch.payloads)
        self._fresh_bytes += sign * batch.size
