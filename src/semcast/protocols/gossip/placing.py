"""How a logger gives positions: to what came in a turn, at its end, on disk together with it."""

from collections.abc import Iterable

from semcast.core.events import Note
from semcast.core.ids import MemberId, Nanos
from semcast.core.outbox import Outbox
from semcast.protocols.gossip.books import Books
from semcast.protocols.gossip.journal import Journal
from semcast.protocols.gossip.positions import Run
from semcast.protocols.gossip.records import Placed


class Placing:
    """Positions count, and are told, once they are synced."""

    def __init__(self, books: Books, journal: Journal, out: Outbox) -> None:
        self.epoch: Nanos = 0
        """What to add to `now` for the time of day; whoever drives the logger sets it before it starts."""
        self._books = books
        self._journal = journal
        self._out = out

    def start(self, now: Nanos) -> None:
        """Of a log that was read: say which positions there are; a crash may have left some without."""
        positions = self._books.positions
        positions.synced = positions.next
        self._tell(positions.runs())
        self.place(now, list(self._books.streams))

    def place(self, now: Nanos, senders: Iterable[MemberId]) -> None:
        """What these streams have without a gap, and without positions."""
        found: list[Run] = []
        positions = self._books.positions
        for sender in senders:
            stream = self._books.streams.get(sender)
            if stream is not None:
                found += positions.place(sender, stream.unplaced(), now + self.epoch)
        if found:
            for run in found:
                self._journal.write(Placed(*run))
                self._books.keys.place(run.sender, run.first, run.last, run.position)
            self._journal.then(lambda _now: self._placed(found))

    def settled(self, now: Nanos) -> Nanos:
        """The time of day before which nothing will be shown that is not shown by now."""
        positions = self._books.positions
        if positions.synced == positions.next:
            return now + self.epoch
        return next(positions.from_(positions.synced)).at

    def tidy(self) -> None:
        """Positions of what left the log take no memory for long."""
        self._books.positions.tidy(self._books.has, self._books.stored())

    def _placed(self, runs: list[Run]) -> None:
        self._books.positions.synced = runs[-1].end
        self._tell(runs)

    def _tell(self, runs: Iterable[Run]) -> None:
        for run in runs:
            self._out.deliver(
                Note("placed", sender=run.sender, seq=run.first, count=run.size, order=run.position)
            )
