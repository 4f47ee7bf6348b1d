"""Actions get their colours (Amir 1995, figure 6.19): in the books, on the disk, and in the history."""

from collections.abc import Callable, Sequence

from semcast.replication.actions import Run
from semcast.replication.answers import Answers
from semcast.replication.creation import Creation
from semcast.replication.notes import RED, YELLOW
from semcast.replication.records import Green, KnownGreen, OwnRed, Red, Yellow
from semcast.replication.settings import Durability
from semcast.replication.standing import ServerStanding


class Marking:
    """Marks the actions of one server.

    Args:
        standing: of the server.
        creation: own actions on their way.
        answers: to who waits for these.
        answer: called where somebody may be answered, in mode `memory`.
    """

    def __init__(
        self, standing: ServerStanding, creation: Creation, answers: Answers, answer: Callable[[], None]
    ) -> None:
        self._standing = standing
        self._books = standing.books
        self._notes = standing.notes
        self._creation = creation
        self._answers = answers
        self._answer = answer
        self._at_once = standing.settings.durability is Durability.MEMORY

    def green(self, run: Run) -> None:
        """OR-1.1: it has the next place."""
        books = self._books
        if books.colours.is_green(run.id):
            return
        known = run.id in books.ongoing or run.id in books.colours.reds
        position = books.colours.line + 1
        self._standing.write(KnownGreen(run.id) if known else Green(run))
        self.placed(run, position)
        if self._at_once:
            self._answer()

    def placed(self, run: Run, position: int) -> None:
        """It was marked green at a position: who waits for it here, and who judges, are told."""
        self._notes.green(run, position, self._books.void)
        self._tell_changes()
        self._creation.place(run, position)

    def all_placed(self, line: int) -> None:
        """The same of all behind a line."""
        for position, run in self._books.colours.after(line):
            self.placed(run, position)

    def yellow(self, run: Run) -> None:
        """It came in the transitional configuration of a primary: others may have it green."""
        known = self._books.colours.knows(run.creator, run.last)
        self._standing.write(Yellow(run))
        if not known:
            self._notes.colour(YELLOW, run)

    def red(self, run: Run) -> None:
        """It is known, and has no place."""
        if run.id in self._books.ongoing:
            self._standing.write(OwnRed(run.id))
        elif self._books.colours.knows(run.creator, run.last):
            return
        else:
            self._standing.write(Red(run))
        self._notes.colour(RED, run)

    def own_red(self) -> None:
        """What may have been sent and was not delivered is red: the states tell of it (slip 3)."""
        for run in list(self._books.ongoing.values()):
            self._standing.write(OwnRed(run.id))
            self._notes.colour(RED, run)

    def rebased(self, overtaken: Sequence[Run]) -> None:
        """The order goes on from a snapshot, with own runs in it whose places are not known here."""
        self._answers.overtake(overtaken)
        colours = self._books.colours
        self._notes.snapshot(colours.start, colours.digest)
        self._tell_changes()

    def _tell_changes(self) -> None:
        for where, servers in self._books.altered:
            self._notes.group(servers, where)
        self._books.altered.clear()
