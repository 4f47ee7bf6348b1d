"""What a member receives: gaps, and FIFO on top of them (3.3, 4.3; the paper promises no order).

A *stream* is what one incarnation of a sender multicasts. Everything up to `next` was queued for the program
or skipped; what came out of order is held. What is missing is not kept but worked out: all between `next` and
the highest number heard of that is neither held nor skipped, in time that grows with the number of gaps, not
of messages: every round asks, also while a program does not read and thousands are held. How long it has been
missing follows from when its number was first heard of, since those only grow: that takes one entry a round,
however large a gap is.

The paper's `gmissing` is what peers are asked for, `missing` what only a logger can have: because a peer has
forgotten it (GcNOTE), or because peers were asked for `gossip_rounds` in vain.
"""

from collections.abc import Iterable

from semcast.core.ids import MemberId
from semcast.core.messages import Batch
from semcast.protocols.gossip.spans import Span, Spans, first_of, within

WANTED = 512
"""Messages of a stream that are asked for at a time."""
_NONE = Spans()
"""Of streams without gaps, which are most; nothing is ever added to it."""


class Stream:
    """One stream at one member; a thousand members have a hundred thousand."""

    __slots__ = (
        "_gaps",
        "_have",
        "_heard",
        "_noted",
        "_overdue",
        "frozen",
        "held",
        "holds",
        "known",
        "lagging",
        "last",
        "next",
        "number",
        "queued",
        "sender",
        "skipped",
        "start",
        "taken",
        "through",
    )

    def __init__(self, sender: MemberId, start: int) -> None:
        self.sender = sender
        self.start = start
        self.next = start
        """Everything up to here is settled: queued for the program, or skipped."""
        self.known = start
        """lastseen: the highest number heard of."""
        self.held: dict[int, Batch] = {}
        """What came out of order, or waits for room in the queue: runs, by their first numbers."""
        self.holds = 0
        """How many messages that is."""
        self.skipped = _NONE
        """What will not come, beyond `next`."""
        self.last: int | None = None
        """Where it ends, once a logger has closed it."""
        self.frozen = False
        """Whether a logger is closing it: then only logs are believed."""
        self.number = 0
        """Streams are numbered as they were opened."""
        self.queued = 0
        """Messages that wait for the program."""
        self.taken = start
        """The last that was handed over."""
        self.through = start
        """The last that the program is known to be done with."""
        self.lagging: dict[MemberId, Stream] = {}
        """Where a stream enters itself when something of it may be missing."""
        self._gaps = False  # whether there may be anything in the next two, or in `skipped`
        self._have = _NONE  # what is held or skipped
        self._noted = _NONE
        self._overdue = start
        self._heard: list[tuple[int, int]] = []  # short: a deque takes ten times its memory

    # What is heard

    def hear_of(self, seq: int, number: int) -> bool:
        """Its sender gave this number, as is known in this round; returns whether that is news."""
        if self.last is not None:
            seq = min(seq, self.last)
        if seq <= self.known:
            return False
        if self.known == self.next:
            self._heard.clear()  # of what is settled
            self.lagging[self.sender] = self
        self.known = seq
        if self._heard and self._heard[-1][1] == number:
            self._heard.pop()
        self._heard.append((seq, number))
        return True

    def expects(self, batch: Batch) -> bool:
        """Whether these come next, and nothing is held or skipped that they could be mixed up with."""
        ends = self.last
        if batch.first != self.next + 1 or (self._gaps and len(self._have)):
            return False
        return ends is None or batch.last <= ends

    def _mind_gaps(self) -> None:
        """Something is about to be held, skipped or noted."""
        self._gaps = True
        if self._have is _NONE:
            self._have, self.skipped, self._noted = Spans(), Spans(), Spans()

    def take(self, batch: Batch, upto: int, most: int) -> list[Batch]:
        """Hold messages until those before them are there; returns those that were missing.

        Args:
            batch: the messages.
            upto: no message beyond this number is held.
            most: how many of them, at most.
        """
        self._mind_gaps()
        upto = min(batch.last, upto if self.last is None else min(upto, self.last))
        taken = [batch.cut(*span) for span in first_of(self.gaps(batch.first, upto), most)]
        for part in taken:
            self.held[part.first] = part
            self.holds += len(part.payloads)
            self._have.add(part.first, part.last)
        return taken

    def has(self, seq: int) -> bool:
        """Whether it is settled, or held."""
        return seq <= self.next or seq in self._have

    def skip(self, first: int, last: int) -> list[Span]:
        """These will not come; returns those that were still missing."""
        self._mind_gaps()
        lacking = self.gaps(first, last)
        for span in lacking:
            self.skipped.add(*span)
            self._have.add(*span)
        return lacking

    def close(self, last: int) -> None:
        """A logger says where it ends. What is beyond that was never logged, and is dropped."""
        self.last = last
        self.frozen = True
        for first, batch in [each for each in self.held.items() if each[1].last > last]:
            del self.held[first]
            self.holds -= batch.last - max(last, first - 1)
            if first <= last:
                self.held[first] = batch.cut(first, last)
        self.known = max(last, self.next)
        self.lagging[self.sender] = self

    def settle(self, upto: int) -> None:
        """Everything up to there is queued or skipped: some of what comes next, or a span that is skipped."""
        if upto <= self.next:
            return
        batch = self.held.pop(self.next + 1, None) if self.held else None
        if batch is not None:
            if batch.last > upto:
                self.held[upto + 1] = batch.cut(upto + 1, batch.last)
            self.holds -= min(upto, batch.last) - self.next
        self.next = upto
        self.known = max(self.known, upto)
        if self._gaps:
            for spans in (self._have, self.skipped, self._noted):
                spans.drop(upto)
            self._gaps = bool(len(self._have) or len(self.skipped) or len(self._noted))

    # What is missing

    def note(self, spans: Iterable[Span]) -> bool:
        """GcNOTE: of these, what is missing is for the logger from now on; returns whether anything is.

        Deviation (R-1): as printed, a note moves whatever it names; one that is late then asks for what was
        delivered, which comes twice.
        """
        self._mind_gaps()
        moved = [part for first, last in spans for part in self.gaps(first, min(last, self.known))]
        for part in moved:
            self._noted.add(*part)
        return bool(moved)

    def age(self, number: int) -> int:
        """What was first heard of before this round is for the logger; returns up to where that is."""
        while self._heard and self._heard[0][1] < number:
            self._overdue = max(self._overdue, self._heard.pop(0)[0])
        return self._overdue

    def leave_to_logger(self, upto: int) -> None:
        """What is missing up to there, peers are not asked for."""
        self._overdue = max(self._overdue, upto)

    def is_through_log(self) -> bool:
        """Whether nothing is missing of what peers are not asked for because it is old."""
        return self.next >= (self.known if self.frozen else self._overdue)

    def missing(self, *, peers: bool, most: int) -> list[Span]:
        """What to ask peers for (gmissing), or the logger (missing); the first so many."""
        overdue = self.known if self.frozen else self._overdue
        found: list[Span] = []
        for first, last in self.gaps(1, min(self.known, self.next + most)):
            if peers:
                found += self._noted.gaps(max(first, overdue + 1), last)
            else:
                found += within([(first, last)], first, overdue)
                found += self._noted.between(max(first, overdue + 1), last)
        return found

    def lacks(self, upto: int) -> int:
        """How many are missing up to there."""
        return sum([last - first + 1 for first, last in self.gaps(1, upto)])

    def gaps(self, first: int, last: int) -> list[Span]:
        """What is missing between two numbers."""
        return self._have.gaps(max(first, self.next + 1), last)
