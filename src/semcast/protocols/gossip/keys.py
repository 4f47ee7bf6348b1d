"""The keys of batches that were published: the newest so many."""

from collections.abc import Iterator

from semcast.core.ids import MemberId


class Keys:
    """By key, where its batch is.

    >>> keys, log = Keys(2), MemberId("log")
    >>> for number, key in enumerate((b"a", b"b", b"c"), 1):
    ...     keys.add(key, log, number)
    >>> keys.get(b"a"), keys.get(b"c")
    (None, (MemberId(name='log', incarnation=0), 3))
    """

    def __init__(self, most: int) -> None:
        self._most = most
        self._keys: dict[bytes, tuple[MemberId, int]] = {}

    def add(self, key: bytes, sender: MemberId, first: int) -> None:
        """A batch was published, as messages of this stream from `first` on."""
        self._keys[key] = sender, first
        if len(self._keys) > self._most:
            del self._keys[next(iter(self._keys))]

    def get(self, key: bytes) -> tuple[MemberId, int] | None:
        """Where its batch is, if it is known."""
        return self._keys.get(key)

    def all(self) -> Iterator[tuple[bytes, MemberId, int]]:
        """The oldest first."""
        return ((key, sender, first) for key, (sender, first) in self._keys.items())
