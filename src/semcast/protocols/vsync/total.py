"""Total order: messages are held until somebody says in which order they come.

What is said is always (rank, upto): next come the messages of this member up to that one, whichever of them
were not purged. So a decision is short however many messages it orders, and gaps do no harm. The order is
causal as well: what a message can have been caused by was delivered, hence ordered, before it was sent. That
order must be known where the message is: else its causes may be lost with who knew it, when the view ends.
"""

from bisect import bisect_right
from collections import deque
from operator import itemgetter

from semcast.core.annotations import KEnumeration
from semcast.core.messages import Batch
from semcast.protocols.vsync.orders import FifoOrder, Lines

_REACH = 4096
"""How far back in the total order a message may replace others."""


class TotalOrder(FifoOrder):
    """Holds messages and lines them up. Subclasses decide on the order."""

    def __init__(self, lines: Lines, view: int, position: int) -> None:
        super().__init__(lines, view, position)
        size = len(lines.members)
        self.ordered = list(lines.queued)
        """By rank, up to where messages are lined up."""
        self.assigned = list(lines.queued)
        """By rank, up to where it is known when their turn comes."""
        self.learnt = position
        """The position of the last message of another member that was lined up: the program may know it."""
        self._held: list[deque[Batch]] = [deque() for _ in range(size)]
        self._withdrawn: list[set[int]] = [set() for _ in range(size)]  # messages that were purged while held
        self._turns: deque[tuple[int, int, int, int]] = deque()  # (rank, upto), and which message said so
        self._watched: dict[int, int] = {}  # own messages that somebody waits for -> position, or 0
        # (position, how many, rank, seq) of annotated messages and runs of updates that were lined up
        self._places: list[tuple[int, int, int, int]] = []

    def accept(self, rank: int, part: Batch) -> None:
        """Hold them; commands are for the order alone, and never line up."""
        if self.is_command(part):
            self.obey(rank, part)
            if len(part.payloads) == 1:
                return
            part = part.cut(part.first + 1, part.last)
        self._held[rank].append(part)

    def obey(self, rank: int, command: Batch) -> None:
        """A message for the order alone came first in a batch."""

    def withdraw(self, rank: int, victim: Batch) -> bool:
        """Do not line it up when its turn comes."""
        withdrawn = self._withdrawn[rank]
        if victim.first <= self.ordered[rank] or victim.first in withdrawn:
            return False
        withdrawn.add(victim.first)
        return True

    def replaces(self, batch: Batch) -> bool:
        """Whether a message replaces one by its position."""
        annotation = batch.annotation
        if not isinstance(annotation, KEnumeration) or not annotation.total:
            return False
        places = map(self._place_of, annotation.positions())
        return any(self.lines.waits(*place) for place in places if place is not None)

    def unplaced(self, rank: int, upto: int) -> int:
        """Messages that are held."""
        return max(upto - self.ordered[rank], 0)

    def placed(self) -> int:
        """Own messages up to here are lined up."""
        return self.ordered[self.lines.rank]

    def watch(self, number: int) -> None:
        """Note its position when its turn comes."""
        self._watched[number] = 0

    def position_of(self, number: int) -> int:
        """Its place in the total order."""
        return self._watched.pop(number)

    def unassigned(self) -> bool:
        """Whether there are messages whose turn nobody has named."""
        return any(map(int.__gt__, self.lines.queued, self.assigned))

    def assign(self, rank: int, upto: int, by: tuple[int, int]) -> None:
        """Next come the messages of `rank` up to there; message `by` (rank, number) says so."""
        if upto > self.assigned[rank]:
            self.assigned[rank] = upto
            self._turns.append((rank, upto, *by))

    def line_up(self) -> None:
        """Line up the messages whose turn has come and that are here."""
        while self._turns and self.may_follow(*self._turns[0]):
            rank, upto, *_ = self._turns.popleft()
            self._line_up(rank, upto)

    def may_follow(self, rank: int, upto: int, by_rank: int, by: int) -> bool:
        """Whether messages may be lined up: they and the word about them are here, in uniform mode safe."""
        due_upto = self.lines.due_upto
        return self.lines.queued[rank] >= upto and due_upto(rank) >= upto and due_upto(by_rank) >= by

    def finish_turns(self) -> None:
        """The view ends, and everything is here: line up the rest, sender by sender."""
        while self._turns:
            rank, upto, *_ = self._turns.popleft()
            self._line_up(rank, upto)
        for rank, upto in enumerate(self.lines.queued):
            self._line_up(rank, upto)

    def _line_up(self, rank: int, upto: int) -> None:
        start = self.ordered[rank]
        if upto <= start:
            return
        held = self._held[rank]
        while held and held[0].first <= upto:
            batch = held.popleft()
            if batch.last > upto:
                held.appendleft(batch.cut(upto + 1, batch.last))
                batch = batch.cut(batch.first, upto)
            self._append(rank, batch, self.position + batch.first - start)
            if rank != self.lines.rank:
                self.learnt = self.position + batch.last - start
        if self._watched and rank == self.lines.rank:
            for number in self._watched:
                if start < number <= upto:
                    self._watched[number] = self.position + number - start
        self.ordered[rank] = upto
        self.position += upto - start

    def _append(self, rank: int, batch: Batch, position: int) -> None:
        """Line up one batch. Positions are counted from 1."""
        annotation = batch.annotation
        withdrawn = self._withdrawn[rank]
        if withdrawn and (annotation is not None or batch.items is not None):
            if batch.items is not None:
                for one in batch.singles():
                    self._append(rank, one, position + one.first - batch.first)
                return
            if batch.first in withdrawn:
                withdrawn.discard(batch.first)
                return
        placed = Batch(
            batch.sender,
            batch.first,
            batch.payloads,
            annotation,
            batch.size,
            batch.head,
            position,
            batch.left,
            batch.items,
        )
        if isinstance(annotation, KEnumeration) and annotation.total:
            self._replace(annotation, placed, position)
        if annotation is not None or batch.items is not None:
            self._remember(rank, placed, position)
        self.lines.append(placed)

    def _replace(self, annotation: KEnumeration, by: Batch, position: int) -> None:
        """Purge what a message replaces by position, if it is still here."""
        for old in annotation.positions():
            place = self._place_of(old) if old < position else None
            if place is not None:
                self.lines.replace(*place, by)

    def _place_of(self, position: int) -> tuple[int, int] | None:
        """Rank and number of the annotated message that was lined up there; it may have been taken by now."""
        at = bisect_right(self._places, position, key=itemgetter(0)) - 1
        if at < 0:
            return None
        start, count, rank, seq = self._places[at]
        return (rank, seq + position - start) if position < start + count else None

    def _remember(self, rank: int, batch: Batch, position: int) -> None:
        self._places.append((position, len(batch.payloads), rank, batch.first))
        if len(self._places) > 2 * _REACH:
            self._places = [place for place in self._places if place[0] + place[1] > position - _REACH]
