"""How a program reads, as its member sees it: what its thread writes down, and what a turn makes of that.

Nothing here needs a lock: each field has one writer, the program's thread or the thread of the turns.
"""

from semcast.core.ids import MILLISECOND, SECOND, Nanos
from semcast.core.mailbox import Mailbox
from semcast.core.reader import Reader
from semcast.core.stack import Stack

LONG: Nanos = 200 * MILLISECOND
"""Who has something to take, takes nothing and does not wait has stopped reading after so long."""

PATIENCE: Nanos = SECOND
"""A task that waits in `send` may be what the reader waits for, once that has taken nothing for so long.

A call that was refused counts as waiting for so long: who is refused and still wants to send comes again.
"""


class Reading:
    """What is known of one program.

    Args:
        mailbox: where it finds what is delivered.
        queue_messages: how many messages may wait for it.
        queue_bytes: of these.
        receives: whether it wants to be given anything.
    """

    __slots__ = (
        "_full_since",
        "_idle_since",
        "_mailbox",
        "_queue_bytes",
        "_queue_messages",
        "_receives",
        "_refused",
        "_refused_at",
        "_seen_refusal",
        "_seen_takes",
        "_stalled",
        "_takes",
        "_waiters",
        "answers_first",
        "calm",
        "closing",
        "reader",
        "receives",
        "skipping",
        "stalled",
    )

    def __init__(self, mailbox: Mailbox, queue_messages: int, queue_bytes: int, *, receives: bool) -> None:
        self.reader = Reader()
        """What the stack sees of it. Written by turns."""
        self.reader.receives = receives
        self.reader.held = lambda: mailbox.unfinished
        self.skipping = False
        """It never iterated, and what was delivered filled its queue: nothing is kept for it. By turns."""
        self.answers_first = False
        """What the reading task sends goes before what other tasks send. By turns."""
        self.receives = receives
        """Whether anything is kept for the program. By turns."""
        self._mailbox = mailbox
        self._queue_messages = queue_messages
        self._queue_bytes = queue_bytes
        self._receives = receives
        # Written by the program's thread:
        self.closing = False
        self._takes = 0  # how often it took something
        self._waiters = 0  # calls that wait to send, or for a confirmation
        self._stalled = 0  # of those, calls by who reads: nothing is taken until they are over
        self._refused: tuple[int, int, bool] = (0, -1, False)  # which refusal, takes before it, by who reads
        # Written by turns:
        self._seen_takes = 0
        self._idle_since: Nanos = 0
        self._full_since: Nanos | None = None  # a program that never iterated has a full queue
        self.stalled = False
        """Whether who reads waits, as the last look found."""
        self._seen_refusal = 0
        self._refused_at: Nanos = 0
        self.calm = False
        """Whether at the last look it read, and nothing else was to be said."""

    # By the program

    @property
    def began(self) -> bool:
        """Whether it ever iterated."""
        return self.reader.began

    @began.setter
    def began(self, began: bool) -> None:
        self.reader.began = began

    def took(self) -> None:
        """It took a list."""
        self.reader.began = True
        self._takes += 1

    def wait(self, *, reading: bool) -> None:
        """A call waits; `reading` if nobody takes what is delivered until it is over."""
        self._waiters += 1
        self._stalled += reading

    def waited(self, *, reading: bool) -> None:
        """That call waits no more."""
        self._waiters -= 1
        self._stalled -= reading

    def refused(self, *, reading: bool) -> None:
        """A call that does not wait found no room."""
        self._refused = self._refused[0] + 1, self._takes, reading

    @property
    def turned_away(self) -> bool:
        """Whether the last call that would not wait found no room."""
        return self._refused[1] >= 0

    def welcome(self) -> None:
        """There was room for what it sent: who was refused before waits no more."""
        if self._refused[1] >= 0:
            self._refused = self._refused[0], -1, False

    # By turns

    @property
    def waiting(self) -> bool:
        """Whether a call waits."""
        return self._waiters > 0

    def excess(self) -> tuple[int, int]:
        """What is in the mailbox beyond its bound, changes of view included, and its bytes."""
        return self._mailbox.excess()

    def stirred(self) -> bool:
        """Whether the program did something that the next turn should know of."""
        return (
            (self._stalled > 0) != self.stalled
            or self._refused[0] != self._seen_refusal
            or (self.reader.excess > 0 and self.excess()[0] != self.reader.excess)
        )

    def look(self, now: Nanos, stack: Stack) -> bool:
        """Make `reader` true; returns whether anything has changed that its stack knew."""
        reader = self.reader
        before = _seen(reader)
        idle = self._idle(now, stack)
        self.stalled = self._stalled > 0
        keeps = self.receives and not self.closing
        reader.waits = keeps and self.began and self._waits(now, idle)
        reader.receives = self.receives
        reader.closing = self.closing
        reader.stopped = keeps and not reader.waits and idle >= LONG
        reader.excess, reader.excess_bytes = self.excess() if keeps else (0, 0)
        self.calm = keeps and not (self.stalled or reader.waits or reader.stopped or reader.excess)
        return before != _seen(reader)

    def reads_on(self, now: Nanos, stack: Stack) -> bool:
        """Whether all is as it was: a program that reads, as most do, costs its turns no more than this."""
        if not self.calm or self._stalled or self.closing:
            return False
        if self._refused[0] != self._seen_refusal or self.reader.excess:
            return False
        if self._takes == self._seen_takes and (self._mailbox.lists or stack.deliverable()):
            return now - self._idle_since < LONG
        self._seen_takes, self._idle_since = self._takes, now
        return True

    def fills(self, now: Nanos, stack: Stack) -> bool:
        """Whether what waits for a program that never iterated has filled its queue: then it is skipped.

        Not at once: the task that reads may be about to start. And not where something obsolete can go.
        """
        if self.began or not self.receives or self.closing or not self._full(stack):
            self._full_since = None
        elif self._full_since is None:
            self._full_since = now
        elif now - self._full_since >= LONG:
            stack.reclaim()
            if self._full(stack):
                self.skip()
        return self.skipping

    def _full(self, stack: Stack) -> bool:
        """Whether no more is taken for the program, if it neither reads nor waits."""
        return stack.queued() >= self._queue_messages or stack.queued_bytes() >= self._queue_bytes

    def skip(self) -> None:
        """Nothing is kept any more for a program that never iterated."""
        self.skipping = True
        self.receives = self.calm = False

    def reserved(self, stack: Stack) -> int:
        """Messages that wait for the program beyond its queue."""
        return max(0, stack.queued() - self._queue_messages)

    def resume(self) -> None:
        """The program iterates at last."""
        self.skipping = False
        self.receives = self._receives

    def put_answers_first(self, held_back: bool) -> bool:
        """Other tasks wait while the reading one does, and until nobody holds this member back any more.

        Returns whether they may go on now.
        """
        before = self.answers_first
        self.answers_first = self.stalled or (before and held_back)
        return before and not self.answers_first

    def _idle(self, now: Nanos, stack: Stack) -> Nanos:
        """How long there has been something to take of which nothing was taken."""
        takes = self._takes
        if takes != self._seen_takes or not (self._mailbox or stack.deliverable()):
            self._seen_takes, self._idle_since = takes, now
        return now - self._idle_since

    def _waits(self, now: Nanos, idle: Nanos) -> bool:
        number, takes, by_reader = self._refused
        if number != self._seen_refusal:
            self._seen_refusal, self._refused_at = number, now
        refused = takes == self._takes and now - self._refused_at < PATIENCE
        if self.stalled or (refused and by_reader):
            return True
        return idle >= PATIENCE and (self._waiters > 0 or refused)


def _seen(reader: Reader) -> tuple[bool, bool, bool, bool, int]:
    """What a stack knows of its program."""
    return reader.waits, reader.receives, reader.closing, reader.stopped, reader.excess
