"""Who is told what became of requests, and when (chapter 7)."""

from collections.abc import Sequence

from semcast.core.events import Answered
from semcast.core.outbox import Outbox
from semcast.replication.actions import Run
from semcast.replication.books import Books
from semcast.replication.creation import QUEUED, STRICT, Creation, Owed, Wish
from semcast.replication.notes import Notes


class Answers:
    """Of one server.

    Args:
        books: what it knows.
        creation: who is owed an answer.
        notes: where replies are written down.
        out: for answers.
    """

    def __init__(self, books: Books, creation: Creation, notes: Notes, out: Outbox) -> None:
        self._books = books
        self._creation = creation
        self._notes = notes
        self._out = out

    def tell(self, own: int, line: int) -> None:
        """Own actions up to one are there to stay, and places up to a line: answer who waits for that."""
        for owed in self._creation.durable(own):
            self._reply(owed, QUEUED, 0)
        for owed, position in self._creation.placed(line):
            self._reply(owed, STRICT, self._place_of(owed, position))

    def overtake(self, runs: Sequence[Run]) -> None:
        """Own runs are part of a snapshot: they were done, and nobody here knows where."""
        for owed in self._creation.overtaken(runs):
            if owed.wish.ticket is not None:
                self._out.deliver(Answered(owed.wish.ticket, STRICT))

    def refuse(self, wish: Wish, why: str) -> None:
        """A request is not taken."""
        if wish.ticket is not None:
            self._out.deliver(Answered(wish.ticket, wish.level, refusal=why))

    def _place_of(self, owed: Owed, position: int) -> int:
        """Where a request was done: not with this action, if an earlier one asked for the same."""
        request = owed.request
        if request is None:
            return position
        return self._books.requests.position(request.client, request.number) or position

    def _reply(self, owed: Owed, level: str, position: int) -> None:
        if owed.wish.ticket is not None:
            self._out.deliver(Answered(owed.wish.ticket, level, position))
        self._notes.reply(level, owed.creator.member, owed.index, position)
