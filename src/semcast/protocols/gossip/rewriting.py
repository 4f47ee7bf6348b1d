"""A log is written anew when most of it is of no use (ours: the paper's logger forgets in place).

That takes a moment in which all that was written is synced and nothing waits for it: only then do the books
say what is on disk. Under load such a moment never comes by itself. So where a log has become far too large,
what arrives waits until it comes, for a round at most.
"""

from collections.abc import Sequence

from semcast.core.ids import MemberId
from semcast.core.outbox import Frame
from semcast.protocols.gossip.books import Books
from semcast.protocols.gossip.journal import Journal
from semcast.protocols.gossip.settings import GossipSettings

_FAR = 4
"""How many times as large as one that is written anew in a quiet moment: then none is waited for."""
_MOST = 512
"""Arrivals that wait: as much as a socket holds."""
_PAUSE = 8
"""Rounds until it is tried again, where the disk was too slow for a round."""


class Rewriting:
    """Of one log."""

    def __init__(self, settings: GossipSettings, books: Books, journal: Journal) -> None:
        self._settings = settings
        self._books = books
        self._journal = journal
        self._held: list[tuple[MemberId, Sequence[Frame]]] = []
        self._not_before = 0  # the round in which it may be waited for again
        self.waits = False
        """Whether what arrives waits for a quiet moment."""

    def on_round(self, number: int) -> None:
        """Write the log anew, or wait for a moment in which that can be done."""
        if self._exceeds(1) and not self.write():
            self.waits = number >= self._not_before and self._exceeds(_FAR)
            self._not_before = number + _PAUSE if self.waits else self._not_before

    def _exceeds(self, times: int) -> bool:
        """Whether the log is so many times larger than it may be."""
        books, journal, settings = self._books, self._journal, self._settings
        records = 2 * books.size() + settings.rewrite_records
        size = 2 * max(books.bytes(), journal.anew) + settings.rewrite_bytes
        return journal.length > times * records or journal.bytes > times * size

    def hold(self, source: MemberId, frames: Sequence[Frame]) -> bool:
        """Keep these for later, if they must wait and there is room."""
        if not self.waits or len(self._held) >= _MOST:
            return False
        self._held.append((source, frames))
        return True

    def write(self) -> bool:
        """Do it, if that can be done now."""
        if not self._journal.quiet():
            return False
        self._books.rewrite(self._journal)
        self._not_before = 0
        return True

    def release(self) -> list[tuple[MemberId, Sequence[Frame]]]:
        """What has waited; nothing waits any more."""
        held, self._held, self.waits = self._held, [], False
        return held
