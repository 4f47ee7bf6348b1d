"""The keys of batches that were published: the newest so many."""

from collections.abc import Iterator
from typing import NamedTuple

from semcast.core.ids import MemberId


class Place(NamedTuple):
    """Where a batch is: messages of a stream."""

    sender: MemberId
    first: int
    last: int


class Keys:
    """By key, where its batch is.

    >>> keys, log = Keys(2), MemberId("log")
    >>> for number, key in enumerate((b"a", b"b", b"c"), 1):
    ...     keys.add(key, log, number, 1)
    >>> keys.get(b"a"), keys.get(b"c")
    (None, Place(sender=MemberId(name='log', incarnation=0), first=3, last=3))
    """

    def __init__(self, most: int) -> None:
        self._most = most
        self._keys: dict[bytes, Place] = {}

    def add(self, key: bytes, sender: MemberId, first: int, count: int) -> None:
        """A batch was published, as so many messages of this stream from `first` on."""
        self._keys[key] = Place(sender, first, first + count - 1)
        if len(self._keys) > self._most:
            del self._keys[next(iter(self._keys))]

    def get(self, key: bytes) -> Place | None:
        """Where its batch is, if it is known."""
        return self._keys.get(key)

    def all(self) -> Iterator[tuple[bytes, Place]]:
        """The oldest first."""
        return iter(self._keys.items())
