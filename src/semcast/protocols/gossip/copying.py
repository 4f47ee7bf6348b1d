"""What waits until as many loggers as `log_acks` says have a published batch on disk.

The logger that was given a batch counts itself. Another one says how far its log goes without a gap when it
has synced something of that stream (`Logged`), and with its promises, in each round.
"""

from collections.abc import Callable

from semcast.core.ids import MemberId
from semcast.protocols.gossip.books import Books
from semcast.protocols.gossip.colleagues import Colleagues

Then = Callable[[bool], None]
"""Told once: whether enough have it; False if the same key was asked for again, and that waits instead."""


class Copying:
    """Of one logger.

    Args:
        enough: how many loggers must have a batch.
        books: what this one has.
        colleagues: the others.
    """

    def __init__(self, enough: int, books: Books, colleagues: Colleagues) -> None:
        self._enough = enough
        self._books = books
        self._colleagues = colleagues
        self._waiting: dict[bytes, tuple[MemberId, int, Then]] = {}

    def wait(self, key: bytes, sender: MemberId, last: int, then: Then) -> None:
        """A batch that ends with this message is on disk here.

        Who asks again takes the place of the former: a program that asks for minutes takes one.
        """
        former = self._waiting.pop(key, None)
        if former is not None:
            former[2](False)
        if self._is_enough(sender, last):
            then(True)
        else:
            self._waiting[key] = sender, last, then

    def look(self) -> None:
        """Another logger has more on disk, or is waited for no more."""
        for key, (sender, last, then) in list(self._waiting.items()):
            if self._is_enough(sender, last):
                del self._waiting[key]
                then(True)

    def _is_enough(self, sender: MemberId, last: int) -> bool:
        """A stream that is over, and left this log, was had by all before."""
        if self._enough == 1 or sender not in self._books.streams:
            return True
        return 1 + self._colleagues.holders(sender, last) >= self._enough
