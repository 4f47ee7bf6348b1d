"""What waits for the application: messages in order, and the configuration changes between them.

Each configuration has a purging buffer of its own, so nothing is ever purged across a change of
configuration, and a message is purged only for one that waits here itself. What is obsolete stays as long
as the application keeps up: it goes when the application is behind, or when room is needed.
"""

from collections import deque
from collections.abc import Sequence

from semcast.core.events import Delivery, Purged, TransitionalView, ViewChange
from semcast.core.ids import MessageId
from semcast.core.messages import Batch
from semcast.obsolescence import Purging, PurgingBuffer
from semcast.obsolescence.buffer import Receipt

Change = ViewChange | TransitionalView


class DeliveryQueue:
    """Bounded in messages; what a configuration change forces in may exceed the bound for a while."""

    def __init__(self, limit: int, purging: Purging) -> None:
        assert purging in (Purging.LAZY, Purging.OFF), "what an application keeps up with is not purged"
        self._limit = limit
        self._purging = purging
        self._segments: deque[PurgingBuffer | Change] = deque()
        self._tail: PurgingBuffer | None = None
        self._messages = 0
        self._receipts: list[Receipt] = []

    def __len__(self) -> int:
        return self._messages

    def __bool__(self) -> bool:
        return bool(self._messages) or len(self._segments) > (self._tail is not None)

    @property
    def room(self) -> int:
        """How many more messages fit without purging any."""
        return self._limit - self._messages

    @property
    def overfull(self) -> bool:
        """Whether a change of configuration has left more here than the bound."""
        return self._messages > self._limit

    def add(self, batch: Batch) -> int:
        """Append as many messages as there is room for, at the price of what is obsolete."""
        buffer = self._open()
        room = self._limit - self._messages
        count = len(batch.payloads)
        if count > room:
            room += self._purge(count - room)
        if count <= room:
            self._append(buffer, [batch])
            return count
        if batch.annotation is not None:
            if not buffer.victims(batch):
                return 0
            self._append(buffer, [batch])
            self._purge(1)
            return 1
        if room > 0:
            self._append(buffer, [batch.cut(batch.first, batch.first + room - 1)])
        return max(room, 0)

    def extend(self, batches: Sequence[Batch]) -> None:
        """Append what there is room for."""
        self._append(self._open(), batches)

    def _purge(self, most: int) -> int:
        """Purge what is obsolete, oldest first and no more than `most`; returns how many that were."""
        purged = 0
        for segment in self._segments:
            if isinstance(segment, PurgingBuffer) and purged < most:
                purged += segment.reclaim(most - purged)
        self._messages -= purged
        return purged

    def force(self, batch: Batch) -> None:
        """Append, full or not."""
        self._append(self._open(), [batch])

    def change(self, change: Change) -> None:
        """From here on another configuration."""
        self._tail = None
        self._segments.append(change)

    def pop(self, most: int, *, behind: bool = True) -> list[Delivery]:
        """The oldest `most` messages at most, and the changes of configuration before and between them.

        Where the application is `behind`, what is obsolete goes first.
        """
        taken: list[Delivery] = []
        segments = self._segments
        if behind and self._messages > most:
            self._purge(self._messages)
        while segments:
            head = segments[0]
            if isinstance(head, PurgingBuffer):
                if most <= 0 and len(head):
                    break
                batches = head.pop(most)
                taken.extend(batches)
                count = sum([len(batch.payloads) for batch in batches])
                most -= count
                self._messages -= count
                self._receipts += head.take_receipts()
                if head is self._tail or len(head):
                    break
            else:
                taken.append(head)
            segments.popleft()
        return taken

    def take_receipts(self) -> list[Purged]:
        """What was purged since the last call."""
        for segment in self._segments:
            if isinstance(segment, PurgingBuffer):
                self._receipts += segment.take_receipts()
        if not self._receipts:
            return []
        receipts, self._receipts = self._receipts, []
        return [
            Purged(MessageId(victim.sender, victim.first), MessageId(by.sender, by.first))
            for victim, by in receipts
        ]

    def _open(self) -> PurgingBuffer:
        if self._tail is None:
            self._tail = PurgingBuffer(self._purging)
            self._segments.append(self._tail)
        return self._tail

    def _append(self, buffer: PurgingBuffer, batches: Sequence[Batch]) -> None:
        before = len(buffer)
        buffer.extend(batches)
        self._messages += len(buffer) - before
