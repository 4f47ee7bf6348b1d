"""`record=DIR`: what a live member does becomes the journal of its process.

Rows are written before the frames that go with them leave and before the application gets what they
are about: whatever anybody can know of this member is in its journal.
"""

import time
from collections.abc import Callable, Iterator, Sequence
from pathlib import Path

from semcast.core.annotations import Item
from semcast.core.certificates import Certificate, Certificates, Certified, Place, Vector, cut
from semcast.core.events import (
    Confirmed,
    Delivery,
    Event,
    Merged,
    Purged,
    Sent,
    Thinned,
    TransitionalView,
    Unconfirmed,
    ViewChange,
)
from semcast.core.events import Note as FamilyNote
from semcast.core.ids import MemberId, Nanos
from semcast.core.messages import Batch
from semcast.core.outgoing import Outgoing
from semcast.core.watchers import Watcher
from semcast.group.errors import ConfigurationError
from semcast.group.settings import GroupSettings
from semcast.group.stacks import Parts
from semcast.group.sums import OwnSums, summed
from semcast.history.crc import crc32
from semcast.history.events import RunInfo
from semcast.history.journal import (
    ConfirmedRow,
    DeliveredRow,
    FamilyRow,
    JournalWriter,
    MergedRow,
    Note,
    NotedRow,
    PurgedRow,
    Row,
    SentRow,
    ViewRow,
    note_of,
)
from semcast.history.tickets import Tickets


def open_recording(group: str, settings: GroupSettings, parts: Parts) -> "Recording":
    """The recording that the settings ask for. Closes the sockets where it cannot be made."""
    asked = parts.family.asked(settings)
    info = RunInfo.one(
        run=settings.record_run or group,
        group=group,
        stack=asked.stack or settings.stack,
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
        self.certificates = Certificates()
        """Where the stack notes them."""
        self._next = 1
        self._tickets = Tickets()
        self._own = OwnSums()

    def on_renewal(self, now: Nanos, member: MemberId) -> None:  # noqa: ARG002
        """Another incarnation goes on, with a journal of its own."""
        self.close()
        self._member, self._next, self._tickets, self._own = member, 1, Tickets(), OwnSums()
        self._writer = self._journal(member)

    def on_events(self, now: Nanos, events: Sequence[Event]) -> None:  # noqa: ARG002
        """Sends, purges, what the stack confirmed or notes, and views where it announces them."""
        rows: list[Row] = []
        for event in events:
            if type(event) is Sent:
                batch = event.batch
                for part, certificate in cut(batch, self.certificates.sent(batch.first, batch.last)):
                    _note_sent(rows, self._own, part, event.view, event.safe, certificate)
                self._tickets.sent(batch.first, len(batch.payloads))
            elif isinstance(event, Purged | Thinned):
                for purged in event.receipts():
                    _note_purged(rows, purged)
            elif isinstance(event, ViewChange | TransitionalView):
                rows.append(ViewRow(event.view, isinstance(event, TransitionalView)))
            elif type(event) is Confirmed:
                seq, safe = self._tickets.answered(event.ticket)
                rows.append(ConfirmedRow(seq, event.view, safe and not event.logged))
            elif type(event) is Unconfirmed:
                self._tickets.refused(event.ticket)
            elif type(event) is FamilyNote:
                rows.append(FamilyRow(event))
        self._write(rows)

    def on_multicast(self, now: Nanos, taken: Sequence[tuple[Outgoing, int]]) -> None:  # noqa: ARG002
        """What the stack took from the application, and sends at once if it announces nothing."""
        rows: list[Row] = []
        for outgoing, count in taken:
            self._tickets.taken(outgoing, count)
            if count and not self._announced:
                for batch in outgoing.batches(self._member, self._next, count):
                    _note_sent(rows, self._own, batch, None, outgoing.safe)
                self._tickets.sent(self._next, count)
                self._next += count
        self._write(rows)

    def on_deliveries(self, now: Nanos, deliveries: Sequence[Delivery]) -> None:  # noqa: ARG002
        """Messages and views on their way to the application."""
        rows: list[Row] = []
        for each in deliveries:
            if isinstance(each, Batch):
                own = self._own if each.sender == self._member else None
                certified = self.certificates.delivered(each.sender, each.first, each.last)
                for offset, payloads, certificate in _runs(each, certified):
                    _note_delivered(rows, own, each, offset, payloads, certificate)
            elif isinstance(each, ViewChange | TransitionalView):
                rows.append(ViewRow(each.view, isinstance(each, TransitionalView)))
            elif isinstance(each, Merged):
                rows.append(MergedRow(each.count))
        self._write(rows)

    def close(self) -> None:
        """The driver has ended. What is missing after a write that failed stays missing."""
        self._writer.close(self._clock())

    def _write(self, rows: list[Row]) -> None:
        if rows:
            self._writer.append(self._clock(), rows)


def _runs(
    batch: Batch, certified: Sequence[Certified]
) -> Iterator[tuple[int, list[bytes], Certificate | None]]:
    """Which messages of a batch share a certificate: how far into it they begin, and their payloads."""
    if len(certified) < 2:
        yield 0, batch.payloads, certified[0][1] if certified else None
        return
    begin = 0
    for count, certificate in certified:
        end = begin + count
        yield begin, batch.payloads[begin:end], certificate
        begin = end


def _note_delivered(
    rows: list[Row],
    own: OwnSums | None,
    batch: Batch,
    offset: int,
    payloads: list[bytes],
    certificate: Certificate | None,
) -> None:
    """Go on with the last row where that can be."""
    last, first = rows[-1] if rows else None, batch.first + offset
    order = None if batch.order is None else batch.order + offset
    ring, vector = _columns(certificate)
    if (
        type(last) is DeliveredRow
        and last.seq + last.count == first
        and last.sender == batch.sender
        and order == (None if last.order is None else last.order + last.count)
        and _follows(last.ring, last.count, ring)
        and vector == (None if last.vector is None else ())
    ):
        size, last.crc = summed(payloads, last.crc or 0)
        last.count += len(payloads)
        last.size += size
        return
    size, crc = summed(payloads) if own is None else own.delivered(first, payloads)
    rows.append(DeliveredRow(batch.sender, first, len(payloads), size, order, crc, ring, vector))


def _note_sent(
    rows: list[Row],
    own: OwnSums,
    batch: Batch,
    view: int | None,
    safe: bool,
    certificate: Certificate | None = None,
) -> None:
    """Go on with the last row where that can be."""
    ring, vector = _columns(certificate)
    if batch.items is not None:
        sizes, crcs = list(map(len, batch.payloads)), list(map(crc32, batch.payloads))
        items: list[Note] = list(map(Item, batch.items))
        rows.append(NotedRow(batch.first, view, safe, sizes, items, crcs, ring, vector))
    elif batch.annotation is None:
        _note_plain(rows, own, batch, view, safe, ring, vector)
    else:
        _note_annotated(rows, batch, view, safe, ring, vector)


def _note_plain(
    rows: list[Row],
    own: OwnSums,
    batch: Batch,
    view: int | None,
    safe: bool,
    ring: Place | None,
    vector: Vector | None,
) -> None:
    last, payloads = rows[-1] if rows else None, batch.payloads
    if (
        type(last) is SentRow
        and last.seq + last.count == batch.first
        and last.view == view
        and last.safe is safe
        and _follows(last.ring, last.count, ring)
        and vector == (None if last.vector is None else ())
    ):
        size, last.crc = summed(payloads, last.crc or 0)
        last.count += len(payloads)
        last.size += size
    else:
        size, crc = own.sent(batch.first, payloads)
        rows.append(SentRow(batch.first, len(payloads), size, view, safe, crc, ring, vector))


def _note_annotated(
    rows: list[Row], batch: Batch, view: int | None, safe: bool, ring: Place | None, vector: Vector | None
) -> None:
    last, note = rows[-1] if rows else None, batch.annotation
    assert note is not None
    stored, crc = note if type(note) is Item else note_of(note), crc32(batch.payloads[0])
    if (
        type(last) is NotedRow
        and last.view == view
        and last.safe is safe
        and last.seq + len(last.notes) == batch.first
        and last.crcs is not None
        and _follows(last.ring, len(last.notes), ring)
        and vector == (None if last.vector is None else ())
    ):
        last.sizes.append(batch.size)
        last.crcs.append(crc)
        last.notes.append(stored)
        return
    rows.append(NotedRow(batch.first, view, safe, [batch.size], [stored], [crc], ring, vector))


def _follows(last: Place | None, count: int, ring: Place | None) -> bool:
    """Whether a message was `count` places behind another, in the same packet."""
    if last is None or ring is None:
        return last is ring
    return last.packet == ring.packet and last.after(count) == ring


def _columns(certificate: Certificate | None) -> tuple[Place | None, Vector | None]:
    if isinstance(certificate, Place):
        return certificate, None
    return None, certificate


def _note_purged(rows: list[Row], purged: Purged) -> None:
    last = rows[-1] if rows else None
    victim, by, count = purged.id, purged.by, purged.count
    author, by_seq = (None, 0) if by is None else (by.sender, by.seq)
    if type(last) is PurgedRow and last.sender == victim.sender and last.by == author:
        last.seqs.extend(range(victim.seq, victim.seq + count))
        last.by_seqs.extend([by_seq] * count)
    else:
        seqs = list(range(victim.seq, victim.seq + count))
        rows.append(PurgedRow(victim.sender, seqs, author, [by_seq] * count))
