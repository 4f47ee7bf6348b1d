"""The log of one stream: what is there, what left it and why (5.2; compaction by obsolescence is ours).

Deviations: no wait lists; what all sessions are through with is one number for each stream. Whatever was ever
stored stays settled, so that a duplicate does not bring back what was collected (R-7).

Compaction: a message leaves as soon as one that replaces it is in the log before the first gap, and synced.
A receipt says what replaced it. When every session is past it, or there are very many, the oldest receipts
become one number: below it, what is not here was replaced. So what is kept for a session that never comes
back is the log itself, and nothing for each message that left it.
"""

from collections.abc import Callable, Collection

from semcast.core.annotations import Enumeration, Item, KEnumeration
from semcast.core.ids import MemberId
from semcast.core.messages import Batch
from semcast.protocols.gossip.shelf import Cache, Shelf
from semcast.protocols.gossip.spans import Span, Spans, gaps, spans_of

_TORN = 512
"""Spans of expired messages that are told apart; beyond that, what was replaced between the oldest counts as
expired, too."""


def _nobody(_sender: MemberId) -> Shelf | None:
    """There are no other streams."""


class LogStream:
    """One stream in a log. Whoever changes it writes the record."""

    def __init__(
        self,
        sender: MemberId,
        cache: Cache | None = None,
        other: Callable[[MemberId], Shelf | None] = _nobody,
    ) -> None:
        self.sender = sender
        self.messages = Shelf(sender, cache or Cache(0), other)
        self.size = 0
        """Bytes of these."""
        self.receipts: dict[int, int] = {}
        self.superseded: dict[int, int] = {}
        """Where the log is not compacted: what could leave, and what is on disk in its place."""
        self.merged = 0
        """Up to here, what is not in the log and not gone was replaced."""
        self.floor = 0
        """Up to here everything was collected."""
        self.expired = Spans()
        self.holes = Spans()
        self.contiguous = 0
        """Everything up to here is settled."""
        self.logged = 0
        """The same, and on disk."""
        self.placed = 0
        """Messages up to here have positions."""
        self.compacted = 0
        """What messages up to here replace has left, where other loggers have them, too."""
        self.known = 0
        self.frozen = False
        self.last: int | None = None
        self._replaced = 1, 0  # what was found to have left with receipts, for who asks again or goes on
        self._least = 1  # no receipt is for a message before this one
        self._ahead: dict[int, None] = {}  # settled beyond the first gap, and some that were
        self._latest: dict[str, int] = {}
        self._victims: dict[int, list[int]] = {}

    def settled(self, seq: int) -> bool:
        """Whether it is here, or was and left for a reason."""
        return seq <= self.contiguous or seq in self.messages or seq in self.receipts or seq in self.holes

    def unsettled(self, first: int, last: int) -> list[Span]:
        """Of these, what is neither here, nor was and left for a reason."""
        if first > self.known:
            return [(first, last)]
        if last <= self.contiguous:
            return []
        return spans_of(seq for seq in range(first, last + 1) if not self.settled(seq))

    def store(self, batch: Batch) -> None:
        """Take messages in."""
        self.size += self.messages.put(batch)
        if batch.items is not None:
            for seq, item in enumerate(batch.items, batch.first):
                self._update(seq, item)
        elif batch.annotation is not None:
            self._see_what_it_replaces(batch)
        if batch.first == self.contiguous + 1:
            self.contiguous = batch.last
        else:
            self._ahead.update(dict.fromkeys(range(batch.first, batch.last + 1)))
        self.known = max(self.known, batch.last)
        self.advance()

    def advance(self) -> None:
        """See how far everything is settled."""
        while True:
            following = self.contiguous + 1
            if following in self.messages or following in self.receipts:
                self.contiguous = following
                self._ahead.pop(following, None)
            elif following in self.holes:
                self.contiguous = self.holes.end(following)
            elif following in self.expired:
                self.contiguous = self.expired.end(following)
            else:
                break
        self.known = max(self.known, self.contiguous)

    def missing(self, last: int | None = None) -> list[Span]:
        """What is not settled, up to a number or to the highest heard of."""
        upto = self.known if last is None else last
        return gaps(self.contiguous + 1, upto, self.beyond(), self.holes)

    def beyond(self) -> list[int]:
        """What is settled beyond the first gap."""
        self._ahead = {seq: None for seq in sorted(self._ahead) if seq > self.contiguous}
        return [seq for seq in self._ahead if seq in self.messages or seq in self.receipts]

    def unplaced(self) -> list[Span]:
        """Messages without a gap before them that have no positions yet; from now on they have."""
        first, self.placed = self.placed + 1, max(self.placed, self.contiguous)
        return spans_of(self._stored(first, self.placed))

    # How messages leave

    def obsolete(self, first: int, last: int) -> list[tuple[int, int]]:
        """What messages between two numbers replace: pairs of a message and its replacement."""
        found: dict[int, int] = {}
        for by in sorted(by for by in self._victims if first <= by <= last):
            for seq in self._victims.pop(by):
                if self.messages.note(seq) is not None and by in self.messages:
                    found[seq] = by
        return list(found.items())

    def replace(self, seq: int, by: int) -> None:
        """A message leaves with a receipt."""
        gone = self.messages.pop(seq)
        if gone is not None:
            self.size -= gone[0]
        self.receipts[seq] = by
        self._least = min(self._least, seq)
        if seq > self.contiguous:
            self._ahead[seq] = None

    def replacement(self, seq: int) -> int:
        """What replaced a message, as far as that is known here."""
        return _last_of(self.receipts, seq)

    def newest(self, seq: int) -> int | None:
        """What replaces a message that is here, where the log is not compacted; None if nothing does."""
        if seq not in self.superseded:
            return None
        by = _last_of(self.superseded, seq)
        return by if by in self.messages else None

    def may_merge(self, below: int) -> bool:
        """Whether there may be receipts that every session is past, if it is past this number."""
        return bool(self.receipts) and self._least <= below

    def crowded(self, most: int) -> int:
        """Below which number receipts must merge so that no more than so many are left; 0 if they need not.

        Only what is on disk without a gap: beyond that, what is not here may be missing.
        """
        if len(self.receipts) <= most:
            return 0
        kept = most // 2  # so that this is not looked for again at once
        return min(sorted(self.receipts)[len(self.receipts) - kept - 1], self.logged)

    def merge(self, below: int) -> None:
        """Forget what replaced these: that something did is known of all that is not here."""
        self.merged = max(self.merged, below)
        self.contiguous = max(self.contiguous, below)
        for seq in _between(self.receipts, self._least, below):
            del self.receipts[seq]
        self._least = max(self._least, below + 1)

    def replaced_from(self, first: int, most: int) -> int:
        """Up to where all left with receipts, from such a one on, as far as a number of messages reaches."""
        receipts = self.receipts
        start, last = self._replaced if self._replaced[0] <= first <= self._replaced[1] else (first, first)
        while last - first + 1 < most and last + 1 in receipts:
            last += 1
        self._replaced = start, last
        return min(last, first + most - 1)

    def merged_from(self, first: int, most: int) -> int:
        """Up to where all was replaced, from such a one on, as far as a number of messages reaches."""
        last = min(self.merged, first + most - 1)
        following = self.messages.first_between(first, last)
        last = last if following is None else following - 1
        for spans in (self.expired, self.holes):
            others = spans.between(first, last)
            last = others[0][0] - 1 if others else last
        return last

    def collect(self, upto: int) -> list[int]:
        """Everything up to there leaves; returns the messages that were still here."""
        first, self.floor = self.floor + 1, max(self.floor, upto)
        self.contiguous = max(self.contiguous, upto)
        self.known = max(self.known, upto)
        found = self._stored(first, upto)
        for seq in found:
            self._drop(seq)
        for seq in _between(self.receipts, first, upto):
            del self.receipts[seq]
        self.expired.drop(upto)
        self.holes.drop(upto)
        return found

    def expire(self, spans: list[Span]) -> list[int]:
        """These leave because there are too many; returns those that were still here."""
        found = []
        for first, last in spans:
            there = self._stored(first, last)
            for seq in there:
                self._drop(seq)
            self.expired.add(first, last)
            found += there
        while len(self.expired) > _TORN and self.expired.second_end() <= self.contiguous:
            self.expired.join()
        return found

    def tear(self, spans: list[Span]) -> None:
        """Nobody has these."""
        for span in spans:
            self.holes.add(*span)
        self.advance()

    def close(self, last: int) -> None:
        """It ends there; what is beyond was never promised to anybody."""
        self.last, self.frozen, self.known = last, True, last
        for seq in [seq for seq in self.messages if seq > last]:
            self._drop(seq)

    def _stored(self, first: int, last: int) -> list[int]:
        return _between(self.messages, first, last)

    def _drop(self, seq: int) -> None:
        gone = self.messages.pop(seq)
        assert gone is not None
        size, annotation = gone
        self.size -= size
        self.superseded.pop(seq, None)
        if isinstance(annotation, Item) and self._latest.get(annotation.item) == seq:
            del self._latest[annotation.item]
        self._victims.pop(seq, None)

    def _see_what_it_replaces(self, batch: Batch) -> None:
        seq, annotation = batch.first, batch.annotation
        if isinstance(annotation, Item):
            self._update(seq, annotation.item)
        elif isinstance(annotation, Enumeration):
            self._name(seq, [named.seq for named in annotation.ids if named.sender == self.sender])
        elif isinstance(annotation, KEnumeration) and not annotation.total:
            self._name(seq, list(annotation.positions()))

    def _update(self, seq: int, item: str) -> None:
        """It is an update of an item.

        It may be known: a log whose rewriting was cut off by a crash has the old records and the new ones.
        """
        latest = self._latest.get(item, 0)
        if latest and latest != seq:
            self._victims.setdefault(max(seq, latest), []).append(min(seq, latest))
        self._latest[item] = max(seq, latest)

    def _name(self, by: int, olds: list[int]) -> None:
        victims = [old for old in olds if self.floor < old < by]
        if victims:
            self._victims.setdefault(by, []).extend(victims)


def _last_of(chain: dict[int, int], seq: int) -> int:
    """Where a chain of replacements ends; it is made shorter, so that a long one is gone along once."""
    by = chain[seq]
    while by in chain:
        by = chain[by]
    while chain[seq] != by:
        chain[seq], seq = by, chain[seq]
    return by


def _between(numbers: Collection[int], first: int, last: int) -> list[int]:
    """Those between two, in order: by looking for each, or, where there are few, by looking through all."""
    if last - first < len(numbers):
        return [seq for seq in range(first, last + 1) if seq in numbers]
    return sorted(seq for seq in numbers if first <= seq <= last)
