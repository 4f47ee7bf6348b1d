"""Total order: messages are held until somebody says in which order they come.

What is said is always (rank, upto): next come the messages of this member up to that one, whichever of them
were not purged. So a decision is short however many messages it orders, and gaps do no harm. The order is
causal as well: what a message can have been caused by was delivered, hence ordered, before it was sent.
"""

from collections import deque

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
        self._held: list[deque[Batch]] = [deque() for _ in range(size)]
        self._annotated: set[tuple[int, int]] = set()  # (rank, seq) of annotated messages that are held
        self._turns: deque[tuple[int, int, int, int]] = deque()  # (rank, upto), and which message said so
        self._watched: dict[int, int] = {}  # own messages that somebody waits for -> position, or 0
        self._places: dict[int, tuple[int, int]] = {}  # position -> annotated message that is lined up

    def accept(self, rank: int, part: Batch) -> None:
        """Hold them; commands are for the order alone, and never line up."""
        if part.items is not None:
            for one in part.singles():
                self.accept(rank, one)
            return
        if self.is_command(part):
            self.obey(rank, part)
            if len(part.payloads) == 1:
                return
            part = part.cut(part.first + 1, part.last)
        self._held[rank].append(part)
        if part.annotation is not None:
            self._annotated.add((rank, part.first))

    def obey(self, rank: int, command: Batch) -> None:
        """A message for the order alone came first in a batch."""

    def withdraw(self, rank: int, victim: Batch) -> bool:
        """Do not line it up when its turn comes."""
        if (rank, victim.first) not in self._annotated:
            return False
        self._annotated.discard((rank, victim.first))
        return True

    def replaces(self, batch: Batch) -> bool:
        """Whether a message replaces one by its position."""
        annotation = batch.annotation
        if not isinstance(annotation, KEnumeration) or not annotation.total:
            return False
        places = [self._places[old] for old in annotation.positions() if old in self._places]
        return any(self.lines.waits(rank, seq) for rank, seq in places)

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
        if self._watched and rank == self.lines.rank:
            for number in self._watched:
                if start < number <= upto:
                    self._watched[number] = self.position + number - start
        self.ordered[rank] = upto
        self.position += upto - start

    def _append(self, rank: int, batch: Batch, position: int) -> None:
        """Line up one batch. Positions are counted from 1."""
        annotation = batch.annotation
        if annotation is not None:
            if (rank, batch.first) not in self._annotated:
                return  # purged while it was held
            self._annotated.discard((rank, batch.first))
        placed = Batch(
            batch.sender,
            batch.first,
            batch.payloads,
            annotation,
            batch.size,
            batch.head,
            position,
            batch.left,
        )
        if annotation is not None:
            if isinstance(annotation, KEnumeration) and annotation.total:
                self._replace(annotation, placed, position)
            self._remember(rank, batch.first, position)
        self.lines.append(placed)

    def _replace(self, annotation: KEnumeration, by: Batch, position: int) -> None:
        """Purge what a message replaces by position, if it is still here."""
        for old in annotation.positions():
            place = self._places.pop(old, None) if old < position else None
            if place is not None:
                self.lines.replace(*place, by)

    def _remember(self, rank: int, seq: int, position: int) -> None:
        self._places[position] = (rank, seq)
        if len(self._places) > 2 * _REACH:
            self._places = {at: who for at, who in self._places.items() if at > position - _REACH}
