"""What a program is told of a log: where it begins and ends, and messages, one by one or as columns."""

from collections.abc import Sequence

import msgspec

from semcast.core.annotations import Annotation, Item
from semcast.core.ids import MemberId, MessageId, Nanos
from semcast.core.messages import Message
from semcast.protocols.gossip.queries import Lines
from semcast.wire.annotations import from_wire


class LogIdentity(msgspec.Struct, frozen=True):
    """Positions belong to one log of one logger."""

    logger: str
    log: int


class LogEnds(msgspec.Struct, frozen=True):
    """The positions of a log: `first` up to, but not with, `next`."""

    first: int
    """What is before it was trimmed."""
    next: int
    """The position that the next message will have."""
    oldest: Nanos
    """The time of day when the first message that is there was logged; 0 in an empty log."""
    newest: Nanos
    settled: Nanos = 0
    """The logger's time of day: whatever is logged later than this answer has this time, or a later one."""


class LogEntry(msgspec.Struct, frozen=True):
    """A message of a log."""

    position: int
    at: Nanos
    """The time of day when it was logged."""
    message: Message


class LogPage(msgspec.Struct, frozen=True):
    """What was read."""

    entries: list[LogEntry]
    next: int
    """Where to go on."""
    trimmed: int
    """Positions between where it was read from and `next` whose messages are gone, and nothing replaced."""


class LogRun(msgspec.Struct, frozen=True):
    """Messages of one sender that were logged together, as columns: for who reads very many."""

    position: int
    """Of the first."""
    at: Nanos
    sender: MemberId
    seq: int
    """Of the first."""
    payloads: list[bytes]
    offsets: Sequence[int]
    """How far each is from the first: the same in positions and in numbers."""
    items: list[str | None] | None
    """What each is about; None if none is about an item."""
    annotations: dict[int, Annotation]
    """Other annotations, by their places among these messages."""

    def entries(self) -> list[LogEntry]:
        """One by one."""
        items = self.items or [None] * len(self.payloads)
        found = []
        for place, (offset, payload, item) in enumerate(zip(self.offsets, self.payloads, items, strict=True)):
            note = self.annotations.get(place) if item is None else Item(item)
            message = Message(MessageId(self.sender, self.seq + offset), payload, note)
            found.append(LogEntry(self.position + offset, self.at, message))
        return found


class LogRuns(msgspec.Struct, frozen=True):
    """What was read, as columns."""

    runs: list[LogRun]
    next: int
    """Where to go on."""
    trimmed: int
    """As of `LogPage`."""


class LogReceipt(msgspec.Struct, frozen=True):
    """A batch is on disk."""

    position: int
    """Of its first message."""
    known: bool
    """Whether it had been logged before, by this key."""


def run_of(lines: Lines) -> LogRun:
    """A part of a page. Raises ValueError where no logger can have sent it."""
    notes = {place: note for place, wire in lines.notes or () if (note := from_wire(wire)) is not None}
    count = len(lines.payloads)
    if len(lines.offsets or lines.payloads) != count or len(lines.items or lines.payloads) != count:
        raise ValueError(f"{lines.sender} {lines.first}: a page that no logger sends")
    offsets = lines.offsets or range(count)
    return LogRun(
        lines.position, lines.at, lines.sender, lines.first, lines.payloads, offsets, lines.items, notes
    )
