"""What a stack delivered and the application has not taken yet: lists, few at a time.

What lies here can no longer be purged, so it must be little for a slow application and much for a fast
one: the lists grow and shrink with the time it takes for them. What else it does between them says nothing.
An application may take long for each list, however short, because it commits or acknowledges it as a whole;
short lists would only slow it down, so what counts is the time that a longer list takes more (`Pace`).
Lists of large messages have few of them, whatever the time: these lie in memory, too.
"""

from collections import deque
from collections.abc import Sequence

from semcast.core.events import Delivery
from semcast.core.ids import MILLISECOND, Nanos
from semcast.core.messages import Batch

_LISTS = 2
_FIRST = 16
_MOST = 1 << 16
_MOST_BYTES = 16 << 20
_BRIEF: Nanos = 2 * MILLISECOND
_LONG: Nanos = 10 * MILLISECOND
_WEIGHT = 1 / 4
"""Of the last list in what is known of those that took long."""
_DOUBT = 1 / 1024
"""Lists that differ less in length than this, squared and as a part of their length, say nothing."""
_CHANGE = 4
"""A list that takes so many times as long as it should is the first of an application with other ways."""


class Pace:
    """What a message costs an application that takes long, apart from what each list costs it.

    Lists of different lengths tell the two apart: a straight line is fitted to the times of the last ones,
    and a line through the origin to the first. Where all have the same length for some time nothing is known,
    so that a longer list is tried: an application may have changed its ways.
    """

    def __init__(self) -> None:
        self._forget()

    def _forget(self) -> None:
        self._messages = self._elapsed = 0.0  # weighted means
        self._spread = self._together = 0.0  # variance of the messages, covariance of messages and time
        self._each = 0.0

    def spent_on(self, messages: int, elapsed: Nanos) -> Nanos:
        """A list of so many messages took so long; how much of that was for its messages."""
        if elapsed > _CHANGE * (self._elapsed + self._each * max(0.0, messages - self._messages)):
            self._forget()
        longer, later = messages - self._messages, elapsed - self._elapsed
        self._messages += _WEIGHT * longer
        self._elapsed += _WEIGHT * later
        self._spread = (1 - _WEIGHT) * (self._spread + _WEIGHT * longer * longer)
        self._together = (1 - _WEIGHT) * (self._together + _WEIGHT * longer * later)
        self._each = max(0.0, self._together / (self._spread + _DOUBT * self._messages**2))
        return min(elapsed, round(self._each * messages))


class Mailbox:
    """Put into by one thread, taken from by another; no locks, since each field has one writer.

    Args:
        lists: how many may lie here. With 0 there is room only while the application asks for a list, so
            that nothing is out of reach of purging before it can be dealt with.
        most: messages of a list, at most.
        most_bytes: of a list, about: the next one is shorter where the last was larger.
    """

    __slots__ = (
        "_came",
        "_expected",
        "_in_hand",
        "_most",
        "_most_bytes",
        "_most_lists",
        "_pace",
        "_taken",
        "_taken_at",
        "_taken_bytes",
        "_went",
        "asked",
        "lists",
        "want",
    )

    def __init__(self, lists: int = _LISTS, most: int = _MOST, most_bytes: int = _MOST_BYTES) -> None:
        self.want = min(_FIRST, most)
        """How many messages the next list should have, at most."""
        self.asked = False
        """Whether the application asks for a list; of no meaning where lists may lie here."""
        self._most_lists = lists
        self._expected = max(1, lists)  # more than these are excess
        self._most = most
        self._most_bytes = most_bytes
        self.lists: deque[tuple[Sequence[Delivery], int, int, int]] = deque()
        """What lies here: each list with its messages, all that is in it, and bytes."""
        self._came = 0  # messages that were put here
        self._went = 0  # and taken from here
        self._taken_at: Nanos | None = None
        self._taken = self._taken_bytes = 0  # messages in the list that was taken last
        self._in_hand = 0  # of these, while the application deals with them
        self._pace = Pace()

    def has_room(self) -> bool:
        """Whether another list is welcome."""
        return len(self.lists) < self._most_lists or (self.asked and not self.lists)

    @property
    def held(self) -> int:
        """Messages that lie here."""
        return self._came - self._went

    @property
    def unfinished(self) -> int:
        """Messages that lie here, and those that the application took and has not dealt with."""
        return self._came - self._went + self._in_hand

    def excess(self) -> tuple[int, int]:
        """What is in the lists for which there was no room, and its bytes.

        Changes of view count like messages: a program that sends and does not read is given every one of
        them, so they must have a bound, too.
        """
        if len(self.lists) <= self._expected:
            return 0, 0
        lists = tuple(self.lists)[self._expected :]  # in one step: one may be taken meanwhile
        return sum([weight for _, _, weight, _ in lists]), sum([size for _, _, _, size in lists])

    def put(self, deliveries: Sequence[Delivery]) -> bool:
        """Leave a list; returns whether some of what lies here is excess."""
        count = others = size = 0
        for each in deliveries:  # most lists are short: no comprehension pays
            if type(each) is Batch:
                count += len(each.payloads)
                size += each.size
            else:
                others += 1
        self._came += count
        self.lists.append((deliveries, count, count + others, size))
        return len(self.lists) > self._expected

    def __bool__(self) -> bool:
        return bool(self.lists)

    def take(self, now: Nanos) -> Sequence[Delivery]:
        """Take the oldest list."""
        taken, self._taken, _, self._taken_bytes = self.lists.popleft()
        self._in_hand = self._taken  # before it is gone from here
        self._went += self._taken
        self._taken_at = now
        return taken

    def finish(self) -> None:
        """The application is done with the list it took last, however long that took."""
        self._in_hand = 0

    def dealt_with(self, now: Nanos) -> None:
        """The application is done with the list it took last."""
        self.finish()
        if self._taken_at is not None:
            self._adapt(now - self._taken_at)
            self._taken_at = None

    def _adapt(self, elapsed: Nanos) -> None:
        """The last list kept the application busy for so long."""
        brief, long = _BRIEF, _LONG
        if elapsed > long and self._taken:
            spent = self._pace.spent_on(self._taken, elapsed)
            fixed, elapsed = elapsed - spent, spent
            brief, long = max(brief, fixed // 4), max(long, fixed)
        if elapsed > long:
            self.want = max(1, self.want * long // (2 * elapsed))
        elif elapsed < brief and self._taken >= self.want:
            self.want = min(self._most, 2 * self.want)
        if self.want * self._taken_bytes > self._taken * self._most_bytes:
            self.want = max(1, self._taken * self._most_bytes // self._taken_bytes)
