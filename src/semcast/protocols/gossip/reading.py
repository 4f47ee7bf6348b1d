"""Reading a log by position: where it begins and ends, and what is between two positions.

Only what is synced is shown. What left the log leaves its position empty: what was replaced is skipped
without a word, since its replacement has a later position; what was trimmed is counted, since nothing else
tells of it.
"""

from collections.abc import Mapping

import msgspec

from semcast.core.annotations import Annotation, Item
from semcast.core.ids import MemberId, Nanos
from semcast.core.messages import Batch, batch_of
from semcast.protocols.gossip.books import Books
from semcast.protocols.gossip.positions import Run
from semcast.protocols.gossip.spans import within


class OffsetError(ValueError):
    """A position that cannot be read from, and what to do about it."""


class OtherLogError(OffsetError):
    """Positions are of another log."""


class Ends(msgspec.Struct, frozen=True):
    """The positions of a log: `first` up to, but not with, `next`."""

    log: int
    """The identity of the log."""
    first: int
    """What is before it was trimmed."""
    next: int
    """The position that the next message will have."""
    oldest: Nanos = 0
    """When the first message that is there was placed; 0 in an empty log."""
    newest: Nanos = 0


class Entry(msgspec.Struct, frozen=True):
    """A message of a log, where it is, and since when."""

    position: int
    at: Nanos
    batch: Batch


class Stretch(msgspec.Struct, frozen=True):
    """Messages of one run, in the order of their positions: one value of each kind for all of them."""

    position: int
    at: Nanos
    sender: MemberId
    first: int
    payloads: list[bytes]
    offsets: list[int]
    """How far each is from the first, by position and by number."""
    notes: list[Annotation | None] | None
    """Of each, if any has one."""

    def entries(self) -> list[Entry]:
        """One by one."""
        notes = self.notes or [None] * len(self.payloads)
        place, seq = self.position, self.first
        return [
            Entry(place + offset, self.at, batch_of(self.sender, seq + offset, [payload], note))
            for offset, payload, note in zip(self.offsets, self.payloads, notes, strict=True)
        ]


class Page(msgspec.Struct, frozen=True):
    """What was read."""

    stretches: list[Stretch]
    next: int
    """Where to go on; `hi` if that was all."""
    trimmed: int
    """Positions between where it was read from and `next` whose messages are gone, though nothing replaced
    them."""

    @property
    def entries(self) -> list[Entry]:
        """Its messages, one by one."""
        return [entry for stretch in self.stretches for entry in stretch.entries()]


class Reading:
    """Over the books of a logger."""

    def __init__(self, books: Books) -> None:
        self._books = books

    def ends(self) -> Ends:
        """What can be read."""
        positions = self._books.positions
        first = min(positions.first, positions.synced)
        return Ends(self._books.log, first, positions.synced, *positions.times())

    def at_time(self, at: Nanos) -> int:
        """The first position that was given at a time of day or after it; the end if there is none."""
        return min(self._books.positions.at_time(at), self._books.positions.synced)

    def read(
        self, lo: int, hi: int, *, most: int = 1024, size: int = 1 << 20, log: int = 0, prefix: str = ""
    ) -> Page:
        """The messages at positions from `lo` to before `hi`, as far as the credit goes.

        Args:
            lo: where to begin.
            hi: where to stop; beyond the end, at the end.
            most: how many messages at most.
            size: bytes of these; the last may exceed it.
            log: the log that the positions are of; 0 for whichever there is.
            prefix: of messages about an item, only those whose item begins with it.
        """
        self._check(lo, log)
        positions = self._books.positions
        hi = min(hi, positions.synced)
        found: list[Stretch] = []
        upto = max(lo, hi)
        for run in positions.from_(lo):
            if run.position >= hi or upto < hi:
                break
            stretch, after = self._stretch(run, max(lo, run.position), min(hi, run.end), most, size, prefix)
            if stretch is not None:
                found.append(stretch)
                most -= len(stretch.payloads)
                size -= sum(map(len, stretch.payloads))
                if most <= 0 or size <= 0:
                    upto = after
        lost = within(positions.trimmed, lo, upto - 1)
        return Page(found, upto, sum(last - first + 1 for first, last in lost))

    def _stretch(
        self, run: Run, lo: int, hi: int, most: int, size: int, prefix: str
    ) -> tuple[Stretch | None, int]:
        """What is there of a run between two positions, and where to go on after it."""
        stream = self._books.streams.get(run.sender)
        if stream is None:
            return None, hi
        shift = run.first - run.position
        messages = stream.messages
        seqs: list[int] = []
        payloads: list[bytes] = []
        for seq in range(lo + shift, hi + shift):
            payload = messages.payload(seq)
            if payload is None or (prefix and not matches(messages.note(seq), prefix)):
                continue
            seqs.append(seq)
            payloads.append(payload)
            size -= len(payload)
            if len(seqs) >= most or size <= 0:
                hi = seq - shift + 1
                break
        if not seqs:
            return None, hi
        first = seqs[0]
        notes = messages.notes(seqs)
        offsets = [seq - first for seq in seqs]
        return Stretch(first - shift, run.at, run.sender, first, payloads, offsets, notes), hi

    def vector(self, position: int, log: int = 0) -> dict[MemberId, int]:
        """After which number of each stream comes what is at a position or after it."""
        self._check(position, log)
        positions = self._books.positions
        found = {}
        for sender, stream in self._books.streams.items():
            seq = positions.after(position, sender)
            found[sender] = stream.placed if seq is None else min(seq - 1, stream.logged)
        return found

    def check_whole(
        self, position: int, after: Mapping[MemberId, int], floors: Mapping[MemberId, int]
    ) -> None:
        """Raise if anything from a position on, which comes after these numbers, was trimmed.

        Nobody is given anything up to the floors: what is there of it counts as trimmed.
        """
        positions, whole = self._books.positions, position
        for sender, floor in floors.items():
            stream, first = self._books.streams[sender], after[sender] + 1
            for run in positions.within(sender, first, floor) if first <= floor else ():
                begin, end = max(first, run.first), min(floor, run.last)
                shift = run.position - run.first
                trimmed = within(positions.trimmed, begin + shift, end + shift)
                there = [seq + shift for seq in range(begin, end + 1) if seq in stream.messages]
                gone = [last for _, last in trimmed[-1:]] + there[-1:]
                whole = max(whole, *(each + 1 for each in gone)) if gone else whole
        if whole > position:
            trimmed_too = "some of what came after it was trimmed"
            raise OffsetError(f"position {position}: {trimmed_too}; the log is whole from {whole} on")

    def check_log(self, log: int) -> None:
        """Raise unless this is the log; 0 stands for whichever there is."""
        if log and log != self._books.log:
            raise OtherLogError(f"positions are of log {log}, and this is log {self._books.log}")

    def _check(self, position: int, log: int) -> None:
        self.check_log(log)
        ends = self.ends()
        if position > ends.next:
            raise OffsetError(f"position {position} is beyond the end of the log, which is {ends.next}")
        if position < ends.first:
            raise OffsetError(f"position {position} was trimmed: the log begins at {ends.first}")


def matches(note: Annotation | None, prefix: str) -> bool:
    """Whether a message is about an item that begins so, or about no item: what is an event passes."""
    return not isinstance(note, Item) or note.item.startswith(prefix)
