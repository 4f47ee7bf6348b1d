"""`record=DIR`: what a live member does becomes the journal of its process.

Rows are written before the frames that go with them leave and before the application gets what they
are about: whatever anybody can know of this member is in its journal.
"""

import time
from collections.abc import Callable, Sequence
from pathlib import Path
from zlib import crc32

from semcast.core.annotations import Item
from semcast.core.events import Delivery, Event, Merged, Purged, Sent, TransitionalView, ViewChange
from semcast.core.handover import Outgoing
from semcast.core.ids import MemberId, MessageId, Nanos
from semcast.core.messages import Batch, batch_of
from semcast.core.turn import Watcher
from semcast.group.errors import ConfigurationError
from semcast.group.settings import GroupSettings
from semcast.group.stacks import Parts
from semcast.history.events import RunInfo
from semcast.history.journal import (
    DeliveredRow,
    JournalWriter,
    MergedRow,
    NotedRow,
    PurgedRow,
    Row,
    SentRow,
    ViewRow,
    note_of,
)


def open_recording(group: str, settings: GroupSettings, parts: Parts) -> "Recording":
    """The recording that the settings ask for. Closes the sockets where it cannot be made."""
    asked = parts.family.asked(settings)
    info = RunInfo.one(
        run=settings.record_run or group,
        group=group,
        stack=settings.stack,
        seed=None,
        members=parts.site.members,
        buffer_limit=None,
        uniform=asked.uniform,
        quiesced=False,
        order=asked.order,
    )

    def journal(member: MemberId) -> JournalWriter:
        return JournalWriter(Path(settings.record), member, info)

    try:
        return Recording(parts.member, journal, announced=parts.family.announces)
    except OSError as error:
        parts.close()
        raise ConfigurationError(f"cannot record in {settings.record}: {error}") from error


class Recording(Watcher):
    """Writes down what a driver does, in the driver's thread.

    Args:
        member: who this is.
        journal: begins one for an incarnation.
        announced: whether the stack says itself when messages leave; else they leave where it takes them.
        clock: the time of day, which is what rows of several hosts have in common.
    """

    def __init__(
        self,
        member: MemberId,
        journal: Callable[[MemberId], JournalWriter],
        *,
        announced: bool,
        clock: Callable[[], Nanos] = time.time_ns,
    ) -> None:
        self._member = member
        self._journal = journal
        self._writer = journal(member)
        self._announced = announced
        self._clock = clock
        self._next = 1

    def on_renewal(self, now: Nanos, member: MemberId) -> None:  # noqa: ARG002
        """Another incarnation goes on, with a journal of its own."""
        self.close()
        self._member, self._next = member, 1
        self._writer = self._journal(member)

    def on_events(self, now: Nanos, events: Sequence[Event]) -> None:  # noqa: ARG002
        """Sends, purges, and views where the stack announces them."""
        rows: list[Row] = []
        for event in events:
            if type(event) is Sent:
                _note_sent(rows, event.batch, event.view, event.safe)
            elif type(event) is Purged:
                _note_purged(rows, event.id, event.by)
            elif isinstance(event, ViewChange | TransitionalView):
                rows.append(ViewRow(event.view, isinstance(event, TransitionalView)))
        self._write(rows)

    def on_multicast(self, now: Nanos, taken: Sequence[tuple[Outgoing, int]]) -> None:  # noqa: ARG002
        """What the stack took from the application, and sends at once if it announces nothing."""
        if self._announced:
            return
        rows: list[Row] = []
        for outgoing, count in taken:
            if count:
                payloads = list(outgoing.payloads[:count])
                batch = batch_of(self._member, self._next, payloads, outgoing.annotation)
                _note_sent(rows, batch, None, outgoing.safe)
                self._next += count
        self._write(rows)

    def on_deliveries(self, now: Nanos, deliveries: Sequence[Delivery]) -> None:  # noqa: ARG002
        """Messages and views on their way to the application."""
        rows: list[Row] = []
        sender: MemberId | None = None
        first = following = size = crc = 0
        order: int | None = None
        for each in deliveries:
            if (
                type(each) is Batch
                and each.first == following
                and each.sender == sender
                and each.order == (None if order is None else order + following - first)
            ):
                following += len(each.payloads)
                size += each.size
                crc = crc32(b"".join(each.payloads), crc)
                continue
            if sender is not None:
                rows.append(DeliveredRow(sender, first, following - first, size, order, crc))
                sender = None
            if isinstance(each, Batch):
                sender, first, size, order = each.sender, each.first, each.size, each.order
                following = first + len(each.payloads)
                crc = crc32(b"".join(each.payloads))
            elif isinstance(each, ViewChange | TransitionalView):
                rows.append(ViewRow(each.view, isinstance(each, TransitionalView)))
            elif isinstance(each, Merged):
                rows.append(MergedRow(each.count))
        if sender is not None:
            rows.append(DeliveredRow(sender, first, following - first, size, order, crc))
        self._write(rows)

    def close(self) -> None:
        """The driver has ended. What is missing after a write that failed stays missing."""
        self._writer.close(self._clock())

    def _write(self, rows: list[Row]) -> None:
        if rows:
            self._writer.append(self._clock(), rows)


def _note_sent(rows: list[Row], batch: Batch, view: int | None, safe: bool) -> None:
    """Go on with the last row where that can be."""
    if batch.items is not None:
        sizes = list(map(len, batch.payloads))
        crcs = list(map(crc32, batch.payloads))
        rows.append(NotedRow(batch.first, view, safe, sizes, list(map(Item, batch.items)), crcs))
        return
    last = rows[-1] if rows else None
    first, note = batch.first, batch.annotation
    if note is None:
        if (
            type(last) is SentRow
            and last.seq + last.count == first
            and last.view == view
            and last.safe is safe
        ):
            last.count += len(batch.payloads)
            last.size += batch.size
            last.crc = crc32(b"".join(batch.payloads), last.crc or 0)
        else:
            crc = crc32(b"".join(batch.payloads))
            rows.append(SentRow(first, len(batch.payloads), batch.size, view, safe, crc))
        return
    stored = note if type(note) is Item else note_of(note)
    if type(last) is NotedRow and last.view == view and last.safe is safe:
        notes = last.notes
        if last.seq + len(notes) == first and last.crcs is not None:
            last.sizes.append(batch.size)
            last.crcs.append(crc32(batch.payloads[0]))
            notes.append(stored)
            return
    rows.append(NotedRow(first, view, safe, [batch.size], [stored], [crc32(batch.payloads[0])]))


def _note_purged(rows: list[Row], victim: MessageId, by: MessageId | None) -> None:
    last = rows[-1] if rows else None
    author, by_seq = (None, 0) if by is None else (by.sender, by.seq)
    if type(last) is PurgedRow and last.sender == victim.sender and last.by == author:
        last.seqs.append(victim.seq)
        last.by_seqs.append(by_seq)
    else:
        rows.append(PurgedRow(victim.sender, [victim.seq], author, [by_seq]))
