"""The keys of batches that were published: the newest so many.

A key may have an owner, `owner/batch`, as a query has. Who was away for long asks again for its last batch,
however many batches of others came meanwhile: so the last key of an owner outlives newer keys of others. Half
of the room is for these.
"""

from collections.abc import Iterator

import msgspec

from semcast.core.ids import MemberId


class Batched(msgspec.Struct, frozen=True):
    """Where a batch is, or was: its messages may have left the log."""

    sender: MemberId
    first: int
    last: int
    position: int | None = None
    """Of its first message; None until it has one."""


class Keys:
    """By key, where its batch is.

    >>> keys, log = Keys(2), MemberId("log")
    >>> for number, key in enumerate((b"a", b"b", b"c"), 1):
    ...     keys.add(key, log, number, 1)
    >>> keys.place(log, 2, 3, 40)
    >>> keys.get(b"a"), keys.get(b"c").first, keys.get(b"c").position
    (None, 3, 41)
    >>> for number, key in enumerate((b"q/7", b"d", b"e", b"f"), 4):
    ...     keys.add(key, log, number, 1)
    >>> [key for key, _ in keys.all()]
    [b'q/7', b'f']
    """

    def __init__(self, most: int) -> None:
        self._most = most
        self._keys: dict[bytes, Batched] = {}
        self._last: dict[bytes, bytes] = {}  # of each owner; who published last comes last
        self._others: dict[bytes, None] = {}  # what is forgotten first, the oldest first
        self._unplaced: dict[MemberId, list[bytes]] = {}

    def __len__(self) -> int:
        return len(self._keys)

    def add(self, key: bytes, sender: MemberId, first: int, count: int, position: int | None = None) -> None:
        """A batch was published, as so many messages of this stream from `first` on."""
        if key not in self._keys:
            self._rank(key)
        self._keys[key] = Batched(sender, first, first + count - 1, position)
        if position is None:
            self._unplaced.setdefault(sender, []).append(key)
        if len(self._keys) > self._most:
            oldest = next(iter(self._others))
            del self._others[oldest], self._keys[oldest]

    def _rank(self, key: bytes) -> None:
        """A new key: what was the last one of its owner is one among others now."""
        owner = key.rpartition(b"/")[0]
        before = self._last.pop(owner, None) if owner else key
        if before is not None:
            self._others[before] = None
        if owner:
            self._last[owner] = key
        if len(self._last) > self._most // 2:
            self._others[self._last.pop(next(iter(self._last)))] = None

    def place(self, sender: MemberId, first: int, last: int, position: int) -> None:
        """Messages of a stream were given positions, from this one on."""
        left = []
        for key in self._unplaced.pop(sender, ()):
            batch = self._keys.get(key)
            if batch is not None and first <= batch.first <= last:
                at = position + batch.first - first
                self._keys[key] = Batched(sender, batch.first, batch.last, at)
            elif batch is not None:
                left.append(key)
        if left:
            self._unplaced[sender] = left

    def get(self, key: bytes) -> Batched | None:
        """Where its batch is, if it is known."""
        return self._keys.get(key)

    def all(self) -> Iterator[tuple[bytes, Batched]]:
        """The oldest first."""
        return iter(self._keys.items())
