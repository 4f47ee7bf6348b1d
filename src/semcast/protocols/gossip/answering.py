"""How a logger answers programs that are no members: about its log, what is in it, and batches for it.

Who asks is not taken for a member, and nothing is remembered of it but batches that come in parts, and
questions that wait for the disk: of both there are few, and who asks too much is told that.
"""

from collections.abc import Callable, Iterator, Sequence

import msgspec

from semcast.core.annotations import Annotation, Item
from semcast.core.ids import MemberId, Nanos
from semcast.core.outbox import Frame, Outbox
from semcast.protocols.gossip.books import Books
from semcast.protocols.gossip.gateway import Gateway
from semcast.protocols.gossip.placing import Placing
from semcast.protocols.gossip.publishing import MAX_BATCH, Answer
from semcast.protocols.gossip.queries import (
    Ask,
    Denied,
    End,
    Find,
    Found,
    Lines,
    Put,
    Read,
    Release,
    Taken,
    Told,
    Trouble,
)
from semcast.protocols.gossip.reading import OffsetError, OtherLogError, Reading, Stretch
from semcast.protocols.gossip.staging import NoRoomError, StageError
from semcast.protocols.gossip.streamruns import item_bytes
from semcast.wire.annotations import WireAnnotation, from_wire, to_wire

_PART = 1 << 14
"""Bytes of messages in one part of a page; a larger message is a part of its own."""
_BESIDE = 16
"""Bytes that a message takes besides what it says, at least."""
_WAITING = 256
"""Questions that may wait for the disk."""
_BATCHES = 64
"""Batches that may be on their way in parts, and the bytes of all of them."""
_BYTES = 16 * MAX_BATCH

Forget = Callable[[Nanos, str, Callable[[], None]], None]


class _Batch:
    """What came of a batch."""

    def __init__(self, parts: int) -> None:
        self.parts = parts
        self.came: dict[int, Put] = {}
        self.size = 0


class Answering:
    """Of one logger.

    Args:
        books: what it has.
        reading: shows it.
        placing: knows when it was logged.
        gateway: has batches logged.
        forget: goes on without a logger.
        out: where answers go.
    """

    def __init__(
        self,
        books: Books,
        reading: Reading,
        placing: Placing,
        gateway: Gateway,
        forget: Forget,
        out: Outbox,
    ) -> None:
        self._books = books
        self._reading = reading
        self._placing = placing
        self._gateway = gateway
        self._forget = forget
        self._out = out
        self._batches: dict[tuple[MemberId, int], _Batch] = {}
        self._waiting = 0
        self.handlers: dict[type[Frame], Callable[[Nanos, MemberId, Frame], None]]
        self.handlers = dict.fromkeys((Find, Ask, Read, Put, Release), self._on_query)

    def _on_query(self, now: Nanos, source: MemberId, frame: Frame) -> None:
        """One question; whatever is wrong with it is said."""
        if isinstance(frame, Find):
            self._out.send(source, Found(frame.serial, self._books.log))
            return
        assert isinstance(frame, Ask | Read | Put | Release)
        try:
            self._reading.check_log(frame.log)
            if isinstance(frame, Ask):
                self._on_ask(now, source, frame)
            elif isinstance(frame, Read):
                self._on_read(source, frame)
            elif isinstance(frame, Put):
                self._on_put(now, source, frame)
            elif self._may_wait(source, frame.serial):
                self._gateway.release(now, frame.key, frame.stages, self._taken(source, frame.serial))
                self._waiting += 1
        except OtherLogError as error:
            self._deny(source, frame.serial, "log", error)
        except OffsetError as error:
            self._deny(source, frame.serial, "offset", error)
        except StageError as error:
            self._deny(source, frame.serial, "stage", error)
        except NoRoomError as error:
            self._deny(source, frame.serial, "full", error)
        except ValueError as error:
            self._deny(source, frame.serial, "invalid", error)

    def _deny(self, target: MemberId, serial: int, trouble: Trouble, why: object) -> None:
        self._out.send(target, Denied(serial, trouble, str(why)[:512]))

    def _on_ask(self, now: Nanos, source: MemberId, frame: Ask) -> None:
        if frame.what == "ends":
            ends = self._reading.ends()
            settled = self._placing.settled(now)
            self._out.send(
                source, Told(frame.serial, ends.first, ends.next, ends.oldest, ends.newest, settled)
            )
        elif frame.what == "time":
            self._out.send(source, Told(frame.serial, self._reading.at_time(frame.at)))
        elif self._may_wait(source, frame.serial):

            def forgotten() -> None:
                self._waiting -= 1
                self._out.send(source, Told(frame.serial))

            self._forget(now, frame.name, forgotten)
            self._waiting += 1

    def _may_wait(self, source: MemberId, serial: int) -> bool:
        if self._waiting >= _WAITING:
            self._deny(source, serial, "busy", f"{_WAITING} questions wait for the disk of this logger")
            return False
        return True

    # Reading

    def _on_read(self, source: MemberId, frame: Read) -> None:
        page = self._reading.read(
            frame.lo, frame.hi, most=frame.most, size=frame.size, log=frame.log, prefix=frame.prefix
        )
        number = 0
        for stretch in page.stretches:
            for part in _parts(stretch):
                self._out.send(source, msgspec.structs.replace(part, serial=frame.serial, number=number))
                number += 1
        self._out.send(source, End(frame.serial, number, page.next, page.trimmed))

    # Batches

    def _on_put(self, now: Nanos, source: MemberId, frame: Put) -> None:
        whole = self._gather(source, frame)
        if whole is None or not self._may_wait(source, frame.serial):
            return

        payloads = [payload for payload, _ in whole]
        notes = [from_wire(note) for _, note in whole]
        answer = self._taken(source, frame.serial)
        if frame.stage:
            self._gateway.stage(now, frame.stage, frame.number, payloads, notes, answer)
        else:
            self._gateway.publish(now, frame.key, payloads, notes, answer)
        self._waiting += 1

    def _taken(self, source: MemberId, serial: int) -> Answer:
        """What is said when something is on disk; nothing to who has asked again since."""

        def answered(level: str, position: int) -> None:
            self._waiting -= 1
            if level != "again":
                self._out.send(source, Taken(serial, position, level == "known"))

        return answered

    def _gather(self, source: MemberId, frame: Put) -> list[tuple[bytes, WireAnnotation | None]] | None:
        """The messages of a batch of which all parts are there."""
        if frame.part >= frame.parts:
            raise ValueError(f"part {frame.part} of {frame.parts}")
        whose = source, frame.serial
        batch = self._batches.get(whose)
        if batch is None:
            batch = self._batches[whose] = _Batch(frame.parts)
        if frame.part not in batch.came and batch.parts == frame.parts:
            batch.came[frame.part] = frame
            batch.size += sum(len(payload) for payload, _ in frame.messages)
        if batch.size > MAX_BATCH:
            del self._batches[whose]
            raise ValueError(f"a batch has {MAX_BATCH} bytes at most")
        if len(batch.came) == batch.parts:
            del self._batches[whose]
            return [each for part in range(batch.parts) for each in batch.came[part].messages]
        while len(self._batches) > _BATCHES or sum(each.size for each in self._batches.values()) > _BYTES:
            del self._batches[next(iter(self._batches))]  # the oldest: who waits for it asks again
        return None


def _parts(stretch: Stretch) -> Iterator[Lines]:
    """Messages as they travel, as many in a part as fit."""
    start, room = 0, _PART
    notes = stretch.notes
    for place, payload in enumerate(stretch.payloads):
        size = len(payload) + _BESIDE + (0 if notes is None else _size(notes[place]))
        if place > start and room < size:
            yield _part(stretch, start, place)
            start, room = place, _PART
        room -= size
    yield _part(stretch, start, len(stretch.payloads))


def _size(note: Annotation | None) -> int:
    """Of an annotation on the wire; what is no item is in a part with nothing after it."""
    if note is None:
        return 0
    return item_bytes(note.item) if isinstance(note, Item) else _PART


def _part(stretch: Stretch, start: int, end: int) -> Lines:
    ahead = stretch.offsets[start]
    whole = stretch.offsets[end - 1] - ahead == end - 1 - start
    notes = None if stretch.notes is None else stretch.notes[start:end]
    items, others = (None, None) if notes is None else _apart(notes)
    return Lines(
        0,
        0,
        stretch.position + ahead,
        stretch.at,
        stretch.sender,
        stretch.first + ahead,
        stretch.payloads[start:end],
        None if whole else [offset - ahead for offset in stretch.offsets[start:end]],
        items,
        others,
    )


def _apart(
    notes: Sequence[Annotation | None],
) -> tuple[list[str | None] | None, list[tuple[int, WireAnnotation]] | None]:
    """Items, and other annotations."""
    items = [note.item if isinstance(note, Item) else None for note in notes]
    others = [
        (place, wire)
        for place, note in enumerate(notes)
        if not isinstance(note, Item) and (wire := to_wire(note)) is not None
    ]
    return items if any(item is not None for item in items) else None, others or None
