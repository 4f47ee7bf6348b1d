"""From messages to packets and back: packing small ones, cutting large ones, putting them together.

A packet is numbered as a whole (seq of the paper), so the order of the messages in it is fixed. Messages of
a kind wait in runs, of which packets take parts: work is done for runs and parts, not for each message.
"""

from bisect import bisect_right
from collections import deque
from collections.abc import Sequence
from itertools import accumulate

from semcast.core.annotations import Annotation, Item, KEnumeration
from semcast.core.ids import MemberId
from semcast.core.messages import Batch
from semcast.protocols.ring.draft import Draft
from semcast.protocols.ring.frames import Part
from semcast.wire.annotations import WireAnnotation, from_wire, to_wire

MAX_PARTS = 64
"""Parts of a packet, at most: each costs its receivers some time, and a token must not wait for long."""
MAX_NOTED = 1024
"""Updates of items in a packet, at most, for the same reason."""
PART_OVERHEAD = 12
PAYLOAD_OVERHEAD = 3
ITEM_OVERHEAD = 3
_FEW = 16
"""Who has more messages to send is better off with full packets."""
_LONG_RUN, _LARGE_RUN = 4096, 1 << 20
"""Messages and bytes after which a new run begins, so that what has left does not lie about for long."""


class _Run:
    """Messages in a row, all plain, all updates of items, or one with another annotation or in fragments."""

    __slots__ = ("annotation", "first", "items", "needs", "payloads", "pieces", "safe", "start")

    def __init__(
        self, first: int, safe: bool, items: list[str] | None, annotation: WireAnnotation | None = None
    ) -> None:
        self.first = first
        self.safe = safe
        self.payloads: list[bytes] = []
        self.items = items
        self.annotation = annotation
        self.needs = [0]
        """Bytes that the payloads before each place take in packets."""
        self.start = 0
        """How many have left, of the messages or of the fragments of one."""
        self.pieces: list[bytes] = []

    def grow(self, sizes: Sequence[int]) -> None:
        """So many bytes more, in messages without annotation. Often all have the same size."""
        needs, step = self.needs, sizes[0] + PAYLOAD_OVERHEAD
        if sizes.count(sizes[0]) == len(sizes):
            last = needs[-1]
            needs += range(last + step, last + step * len(sizes) + 1, step)
        else:
            needs += accumulate([size + PAYLOAD_OVERHEAD for size in sizes], initial=needs.pop())

    def bytes(self, start: int, stop: int) -> int:
        """Of some of its payloads."""
        if self.items is None and self.annotation is None:
            return self.needs[stop] - self.needs[start] - (stop - start) * PAYLOAD_OVERHEAD
        return sum(map(len, self.payloads[start:stop]))

    def part(self, start: int, stop: int) -> Part:
        """Some of its messages."""
        items = None if self.items is None else self.items[start:stop]
        return Part(self.first + start, self.payloads[start:stop], self.annotation, 0, items)


class SendQueue:
    """Messages of the application that wait for the token."""

    def __init__(self, packet_bytes: int, limit_messages: int, limit_bytes: int) -> None:
        self._packet_bytes = packet_bytes
        self._limit_messages = limit_messages
        self._limit_bytes = limit_bytes
        self._runs: deque[_Run] = deque()
        self._full: deque[Draft] = deque()  # packets that come before the runs, made while the token was away
        self._next = 1
        self.messages = 0
        self._bytes = 0

    def __bool__(self) -> bool:
        return self.messages > 0

    @property
    def last(self) -> int:
        """The number of the message that came last."""
        return self._next - 1

    @property
    def brief(self) -> bool:
        """Whether all that waits is few messages for one packet, and nothing of it has to be safe."""
        return (
            not self._full
            and self.messages <= _FEW
            and len(self._runs) == 1
            and not self._runs[0].pieces
            and not self._runs[0].safe
            and self._bytes <= self._packet_bytes // 2
        )

    def add(self, payloads: Sequence[bytes], annotations: Sequence[Annotation] | None, *, safe: bool) -> int:
        """Take as many messages as there is room for; returns how many."""
        return self.add_sized(payloads, list(map(len, payloads)), annotations, safe=safe)

    def add_sized(
        self,
        payloads: Sequence[bytes],
        sizes: Sequence[int],
        annotations: Sequence[Annotation] | None,
        *,
        safe: bool,
    ) -> int:
        """The same for who knows how many bytes each of them has."""
        room = self._limit_messages - self.messages
        if len(payloads) > room:
            payloads, sizes = payloads[: max(room, 0)], sizes[: max(room, 0)]
        room, total = self._limit_bytes - self._bytes, sum(sizes)
        if total > room:
            fit = bisect_right(list(accumulate(sizes)), room)
            # An empty queue takes a message that is larger than the bound, or it would never leave.
            fit = max(fit, 0 if self.messages else 1)
            payloads, sizes = payloads[:fit], sizes[:fit]
            total = sum(sizes)
        if not payloads:
            return 0
        if total > self._packet_bytes and max(sizes) > self._packet_bytes:
            for place, payload in enumerate(payloads):
                self._add_one(payload, None if annotations is None else annotations[place], safe=safe)
        elif annotations is None:
            run = self._open(False, safe=safe)
            run.payloads += payloads
            run.grow(sizes)
            self._count(len(payloads), total)
        else:
            self._add_annotated(payloads, sizes, annotations, safe=safe)
        self._fill_packets()
        return len(payloads)

    def pop(self, most: int) -> list[Draft]:
        """The next packets, `most` at most, about to be sent."""
        drafts: list[Draft] = []
        while (self._full or self._runs) and len(drafts) < most:
            draft = self._full.popleft() if self._full else self._next_packet()
            self.messages -= draft.messages
            self._bytes -= draft.bytes
            drafts.append(draft)
        return drafts

    def restart(self) -> None:
        """The configuration ended: a message of which only some fragments left begins again."""
        if self._runs and self._runs[0].pieces:
            run = self._runs[0]
            self._bytes += sum(map(len, run.pieces[: run.start]))
            run.start = 0

    # In

    def _add_one(self, payload: bytes, annotation: Annotation | None, *, safe: bool) -> None:
        if len(payload) <= self._packet_bytes:
            if annotation is None:
                run = self._open(False, safe=safe)
                run.payloads.append(payload)
                run.grow((len(payload),))
                self._count(1, len(payload))
            else:
                self._add_annotated([payload], [len(payload)], [annotation], safe=safe)
            return
        run = self._begin(safe, [annotation.item] if type(annotation) is Item else None, annotation)
        step = self._packet_bytes
        run.pieces = [payload[start : start + step] for start in range(0, len(payload), step)]
        run.payloads.append(payload)
        self._count(1, len(payload))

    def _add_annotated(
        self,
        payloads: Sequence[bytes],
        sizes: Sequence[int],
        annotations: Sequence[Annotation],
        *,
        safe: bool,
    ) -> None:
        items = [note.item for note in annotations[: len(payloads)] if type(note) is Item]
        if len(items) == len(payloads):
            overhead = PAYLOAD_OVERHEAD + ITEM_OVERHEAD
            short = "".join(items).isascii()
            coded: Sequence[str | bytes] = items if short else [item.encode() for item in items]
            needs = [size + len(item) + overhead for size, item in zip(sizes, coded, strict=True)]
            run = self._open(True, safe=safe)
            assert run.items is not None
            run.payloads += payloads
            run.items += items
            run.needs += accumulate(needs, initial=run.needs.pop())
            self._count(len(payloads), sum(sizes))
            return
        for payload, size, note in zip(payloads, sizes, annotations, strict=False):
            if type(note) is Item:
                self._add_annotated([payload], [size], [note], safe=safe)
            else:
                run = self._begin(safe, None, note)
                run.payloads.append(payload)
                run.needs.append(size + annotation_bytes(note))
                self._count(1, size)

    def _open(self, updates: bool, *, safe: bool) -> _Run:
        """Where messages without annotation, or updates of items, go on: in the last run, if they can."""
        run = self._runs[-1] if self._runs else None
        if (
            run is None
            or run.safe is not safe
            or run.annotation is not None
            or run.pieces
            or (run.items is not None) is not updates
            or len(run.payloads) >= _LONG_RUN
            or run.needs[-1] >= _LARGE_RUN
        ):
            run = self._begin(safe, [] if updates else None, None)
        return run

    def _begin(self, safe: bool, items: list[str] | None, annotation: Annotation | None) -> _Run:
        run = _Run(self._next, safe, items, None if items is not None else to_wire(annotation))
        self._runs.append(run)
        return run

    def _count(self, messages: int, size: int) -> None:
        self.messages += messages
        self._bytes += size
        self._next += messages

    # Out

    def _fill_packets(self) -> None:
        """Make the packets that are full whatever comes later, so that the token need not wait for it."""
        run = self._runs[0] if self._runs else None
        if run is None or run.pieces:
            return
        needs, start, safe, count = run.needs, run.start, run.safe, len(run.payloads)
        room, most = self._packet_bytes - PART_OVERHEAD, count if run.items is None else MAX_NOTED
        last = needs[-1] - self._packet_bytes
        while needs[start] < last:
            stop = bisect_right(needs, needs[start] + room, start, count) - 1
            if stop <= start:
                stop = start + 1  # larger than a packet should be, because of its item
                if stop == count:
                    break
            stop = min(stop, start + most)
            parts = [run.part(start, stop)]
            self._full.append(Draft(safe, parts, parts, stop - start, run.bytes(start, stop)))
            start = stop
        run.start = start

    def _next_packet(self) -> Draft:
        runs = self._runs
        safe, room = runs[0].safe, self._packet_bytes
        if runs[0].pieces:
            return self._next_fragment()
        parts: list[Part] = []
        while room > 0 and runs and runs[0].safe is safe and not runs[0].pieces and len(parts) < MAX_PARTS:
            room = self._take(parts, room)
        messages = size = 0
        for part in parts:
            messages += len(part.payloads)
            size += sum(map(len, part.payloads))
        return Draft(safe, parts, parts, messages, size)

    def _take(self, parts: list[Part], room: int) -> int:
        """Put into a packet what fits of the first run; returns the room that is left."""
        run = self._runs[0]
        needs, start = run.needs, run.start
        stop = bisect_right(needs, needs[start] + room - PART_OVERHEAD, lo=start) - 1
        if run.items is not None:
            stop = min(stop, start + MAX_NOTED)
        if stop <= start:
            if parts:
                return 0
            stop = start + 1  # larger than a packet should be, because of its annotation
        parts.append(run.part(start, stop))
        if stop < len(run.payloads):
            run.start = stop
            return 0
        self._runs.popleft()
        return room - PART_OVERHEAD - (needs[stop] - needs[start])

    def _next_fragment(self) -> Draft:
        """Nothing else goes with a fragment; what is said about the message goes with the last."""
        run = self._runs[0]
        piece = run.pieces[run.start]
        run.start += 1
        left = len(run.pieces) - run.start
        if left:
            return Draft(run.safe, [Part(run.first, [piece], None, left)], [], 0, len(piece))
        self._runs.popleft()
        last = Part(run.first, [piece], run.annotation, 0, run.items)
        return Draft(run.safe, [last], [run.part(0, 1)], 1, len(piece))


class Assembly:
    """Puts the fragments of each sender together, in the order of delivery within one configuration."""

    def __init__(self, max_message: int) -> None:
        self._max_message = max_message
        self._pieces: dict[MemberId, tuple[int, int, int, list[bytes]]] = {}  # seq, left, size, pieces
        self._last: dict[MemberId, int] = {}
        self.refused = 0
        """Parts that no correct sender can have sent."""

    def batches(self, sender: MemberId, parts: Sequence[Part]) -> list[Batch]:
        """The messages that end in these packets of `sender`."""
        whole: list[Part] = []
        last = self._last.get(sender, 0)
        begun = sender in self._pieces
        for part in parts:
            complete = part
            if begun or part.left:
                message = self._fragment(sender, part)
                begun = sender in self._pieces
                if message is None:
                    continue
                complete = message
            if complete.first <= last or not _sound(complete):
                self.refused += 1
            else:
                last = complete.first + len(complete.payloads) - 1
                whole.append(complete)
        self._last[sender] = last
        return batches_of(sender, whole)

    def _fragment(self, sender: MemberId, part: Part) -> Part | None:
        """The whole message, if this is the last fragment of one."""
        seq, left, size, pieces = self._pieces.pop(sender, (part.first, part.left + 1, 0, []))
        size += len(part.payloads[0])
        if part.first != seq or part.left != left - 1 or len(part.payloads) != 1 or size > self._max_message:
            self.refused += 1
            return None
        pieces.append(part.payloads[0])
        if part.left:
            self._pieces[sender] = (seq, part.left, size, pieces)
            return None
        return Part(part.first, [b"".join(pieces)], part.annotation, 0, part.items)


def _sound(part: Part) -> bool:
    """Whether what is said about the messages of a part is said about each of them once."""
    if part.items is not None:
        return part.annotation is None and len(part.items) == len(part.payloads)
    return part.annotation is None or len(part.payloads) == 1


def batches_of(sender: MemberId, parts: Sequence[Part]) -> list[Batch]:
    """The messages of whole parts. Those in a row that are alike are one batch."""
    done: list[Batch] = []
    start, count = 0, len(parts)
    while start < count:
        stop = _alike(parts, start)
        head = parts[start]
        payloads, items = head.payloads, head.items
        if stop > start + 1:
            payloads = []
            for part in parts[start:stop]:
                payloads += part.payloads
            if items is not None:
                items = [item for part in parts[start:stop] for item in part.items or ()]
        note = None if head.annotation is None else from_wire(head.annotation)
        size = sum(map(len, payloads))
        done.append(Batch(sender, head.first, payloads, note, size, items=items))
        start = stop
    return done


def _alike(parts: Sequence[Part], start: int) -> int:
    """Where the run of parts ends that one batch can hold."""
    head, stop = parts[start], start + 1
    if head.annotation is not None:
        return stop
    plain, following = head.items is None, head.first + len(head.payloads)
    while stop < len(parts):
        part = parts[stop]
        if part.first != following or part.annotation is not None or (part.items is None) is not plain:
            break
        following += len(part.payloads)
        stop += 1
    return stop


def annotation_bytes(annotation: Annotation) -> int:
    """About how much room an annotation takes in a packet."""
    if isinstance(annotation, Item):
        return len(annotation.item.encode()) + 4
    if isinstance(annotation, KEnumeration):
        return annotation.bitmap.bit_length() // 8 + 14
    return sum(len(named.sender.name.encode()) + 16 for named in annotation.ids) + 4
