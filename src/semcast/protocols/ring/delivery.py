"""What waits for the application: messages in order, and the configuration changes between them.

Each configuration has a purging buffer of its own, so nothing is ever purged across a change of
configuration, and a message is purged only for one that waits here itself. What is obsolete stays as long
as the application keeps up, and goes when it is behind.
"""

from collections import deque
from collections.abc import Sequence

from semcast.core.events import Delivery, Merged, Purged, Thinned, TransitionalView, ViewChange
from semcast.core.messages import Batch
from semcast.obsolescence import Purging, PurgingBuffer

Change = ViewChange | TransitionalView

CHANGES = 64
"""Configurations that wait for the application before those without messages are merged."""


class DeliveryQueue:
    """Bounded in messages and bytes; what a configuration change forces in may exceed that for a while.

    Bytes may exceed their bound by what was added last, so that a message of any size finds its way.
    """

    def __init__(self, limit: int, purging: Purging, limit_bytes: int = 64 << 20) -> None:
        assert purging in (Purging.LAZY, Purging.OFF), "what an application keeps up with is not purged"
        self.limit = limit
        """Messages that may wait here, but for what is forced in."""
        self.limit_bytes = limit_bytes
        self._purging = purging
        self._segments: deque[PurgingBuffer | Change | Merged] = deque()
        self._changes = 0  # regular configurations among them
        self._tail: PurgingBuffer | None = None
        self.messages = 0
        """That wait here."""
        self.bytes = 0
        """Of their payloads."""
        self.newest = 0
        """Bytes of what was added last."""
        self.tolerated = 0
        """Bytes that may wait: the bound, or what there was when it was reached."""
        self.purged: list[Purged | Thinned] = []
        """Receipts that nobody has taken yet."""

    def __len__(self) -> int:
        return self.messages

    def __bool__(self) -> bool:
        return bool(self.messages) or len(self._segments) > (self._tail is not None)

    @property
    def room(self) -> int:
        """How many more messages fit without purging any."""
        return self.limit - self.messages if self.bytes < self.limit_bytes else 0

    def add(self, batch: Batch, *, behind: bool = True, reserve: int = 0) -> int:
        """Append as many messages as there is room for, and so many beyond the bound.

        Where the application is `behind`, at the price of what is obsolete.
        """
        buffer = self._open()
        count = len(batch.payloads)
        if count > self.room + reserve and behind:
            self.purge()
        room = max(self.room, 0) + reserve
        if count <= room:
            self._append(buffer, [batch])
            return count
        if behind and batch.items is not None:
            return self._add_updates(batch, reserve)
        if behind and batch.annotation is not None:
            if not self._replaces(buffer, batch):
                return 0
            self._append(buffer, [batch])
            self.purge(1)
            return 1
        if room > 0:
            self._append(buffer, [batch.cut(batch.first, batch.first + room - 1)])
        return room

    def _replaces(self, buffer: PurgingBuffer, batch: Batch) -> bool:
        """Whether a message takes the place of one that waits; of one as large, if bytes are what lacks."""
        sizes = [victim.size for victim in buffer.victims(batch)]
        return bool(sizes) and (self.bytes < self.limit_bytes or batch.size <= min(sizes))

    def _add_updates(self, run: Batch, reserve: int) -> int:
        """Append one by one: each may make room for itself."""
        taken = 0
        for single in run.singles():
            if not self.add(single, reserve=reserve):
                break
            taken += 1
        return taken

    def extend(self, batches: Sequence[Batch]) -> None:
        """Append what there is room for."""
        self._append(self._open(), batches)

    def purge(self, most: int | None = None) -> int:
        """Purge what is obsolete, oldest first and no more than `most`; returns how many that were."""
        purged = 0
        most = self.messages if most is None else most
        for segment in self._segments:
            if isinstance(segment, PurgingBuffer) and purged < most and len(segment):
                before = segment.bytes
                purged += segment.reclaim(most - purged)
                self.bytes -= before - segment.bytes
                self.purged += segment.take_purged()
        self.messages -= purged
        return purged

    def force(self, batch: Batch) -> None:
        """Append, full or not."""
        self._append(self._open(), [batch])

    def change(self, change: Change) -> None:
        """From here on another configuration."""
        self._tail = None
        merged = change
        if isinstance(change, ViewChange):
            if self._changes >= CHANGES and self._may_merge():
                merged = self._merge(change)
            self._changes += 1
        self._segments.append(merged)

    def _may_merge(self) -> bool:
        """Whether the last configuration here had no messages, neither before nor after it was torn.

        A buffer says that it had, also if all were purged. This member sent nothing there either, since its
        application was not given that configuration. What came before stays, and how that was torn.
        """
        segments = self._segments
        return isinstance(segments[-1], TransitionalView) and isinstance(segments[-2], ViewChange)

    def _merge(self, change: ViewChange) -> ViewChange:
        """Leave out the last configuration, and say that; returns the next as seen from the one before it."""
        segments = self._segments
        segments.pop()
        passed = segments.pop()
        assert isinstance(passed, ViewChange)
        self._changes -= 1
        before = segments[-1]
        if isinstance(before, Merged):
            segments[-1] = Merged(before.count + 1)
        else:
            segments.append(Merged(1))
        return _after_both(passed, change)

    def pop(self, most: int, *, behind: bool = True) -> list[Delivery]:
        """The oldest `most` messages at most, and the changes of configuration before and between them.

        Where the application is `behind`, what is obsolete goes first.
        """
        taken: list[Delivery] = []
        segments = self._segments
        if behind and self.messages > most:
            self.purge()
        while segments:
            head = segments[0]
            if isinstance(head, PurgingBuffer):
                if most <= 0 and len(head):
                    break
                before = head.bytes
                batches = head.pop(most)
                self.bytes -= before - head.bytes
                taken.extend(batches)
                count = sum([len(batch.payloads) for batch in batches])
                most -= count
                self.messages -= count
                if head is self._tail or len(head):
                    break
            else:
                taken.append(head)
                self._changes -= isinstance(head, ViewChange)
            segments.popleft()
        return taken

    def take_receipts(self) -> list[Purged | Thinned]:
        """What was purged since the last call."""
        if not self.purged:
            return []
        purged, self.purged = self.purged, []
        return purged

    def _open(self) -> PurgingBuffer:
        if self._tail is None:
            self._tail = PurgingBuffer(self._purging)
            self._segments.append(self._tail)
        return self._tail

    def _append(self, buffer: PurgingBuffer, batches: Sequence[Batch]) -> None:
        had_room = self.bytes < self.limit_bytes
        messages, size = buffer.held()
        buffer.extend(batches)
        self.newest = buffer.bytes - size
        self.bytes += self.newest
        self.messages += len(buffer) - messages
        if had_room:
            self.tolerated = max(self.bytes, self.limit_bytes)


def _after_both(first: ViewChange, second: ViewChange) -> ViewChange:
    """How the second view differs from the one before the first."""
    members = {*second.view.members}
    here_before = {*first.view.members} - {*first.joined} | {*first.left} | {*first.failed}
    gone = [
        member
        for member in dict.fromkeys((*first.left, *first.failed, *second.left, *second.failed))
        if member in here_before and member not in members
    ]
    left = {*first.left, *second.left}
    return ViewChange(
        second.view,
        joined=tuple(member for member in second.view.members if member not in here_before),
        left=tuple(member for member in gone if member in left),
        failed=tuple(member for member in gone if member not in left),
    )
