"""Requests become actions, where and when a server may make any."""

from collections.abc import Callable, Sequence

from semcast.replication.actions import Run
from semcast.replication.answers import Answers
from semcast.replication.creation import QUEUED, Creation, Wish
from semcast.replication.ids import ConfId
from semcast.replication.messages import Actions
from semcast.replication.records import Own
from semcast.replication.settings import Durability
from semcast.replication.standing import ServerStanding
from semcast.replication.states import CREATES, IN_GROUP, State


class Making:
    """Makes the actions of one server.

    Args:
        standing: of the server.
        creation: what waits to become an action, and what was made of it.
        answers: for refusals.
        answer: called where somebody may be answered, in mode `memory`.
    """

    def __init__(
        self, standing: ServerStanding, creation: Creation, answers: Answers, answer: Callable[[], None]
    ) -> None:
        self.holds = False
        """Whether requests wait because the service of this server is slow."""
        self.line = 0
        """The green line that others were told last, with an action or alone."""
        self._standing = standing
        self._books = standing.books
        self._creation = creation
        self._answers = answers
        self._answer = answer

    @property
    def accepts(self) -> bool:
        """Whether requests are taken at all: not before the group is founded, and from its servers only."""
        return self._standing.state in IN_GROUP and self._books.prim.index > 0 and self._books.belongs

    def request(self, wishes: Sequence[Wish]) -> int:
        """Take requests, as many as there is room for; they become actions as soon as they can."""
        creation = self._creation
        if not self.accepts:
            creation.blocked = True
            return 0
        taken = wishes[: max(0, creation.room)]
        creation.add(taken)
        creation.blocked = creation.blocked or len(taken) < len(wishes)
        self.flush()
        return len(taken)

    def flush(self) -> None:
        """Make actions of what waits, where that is possible now."""
        standing, creation = self._standing, self._creation
        while (
            len(creation)
            and standing.state in CREATES
            and standing.conf is not None
            and self.accepts
            and not (self.holds or standing.unfit)
            and len(self._books.ongoing) < standing.settings.window
        ):
            wishes = creation.take(self.refuse_unseen)
            if wishes:
                self._make(standing.conf, wishes)

    def _make(self, conf: ConfId, wishes: Sequence[Wish]) -> None:
        """Mode `parallel`: sent at once, answered when it is on the disk."""
        standing, books = self._standing, self._books
        clock = max(books.clock, books.colours.clock) + 1
        run = Run(books.creator, books.index + 1, clock, [wish.action for wish in wishes])
        standing.write(Own(run))
        self._creation.made(run.creator, run.first, wishes)
        standing.stats.sent += len(wishes)
        standing.notes.requests(run, wishes)
        self.line = standing.told_line
        standing.say(Actions(conf, self.line, run), safe=self.sends_safe())
        if QUEUED in {wish.level for wish in wishes}:
            standing.journal.keep_up()  # the others are answered when their place is on the disk, this before
        if standing.settings.durability is Durability.MEMORY:
            self._answer()

    def sends_safe(self) -> bool:
        """In a primary an action is green when it is delivered: all must have it then."""
        return self._standing.state is State.REG_PRIM

    def refuse_unseen(self, wish: Wish) -> bool:
        """What a client saw elsewhere must be known here, and have its place in a primary."""
        colours = self._books.colours
        has = colours.has_green if self._standing.state is State.REG_PRIM else colours.knows
        if all(has(creator, index) for creator, index in wish.seen):
            return False
        self._answers.refuse(wish, "not here yet: what the client saw")
        return True
