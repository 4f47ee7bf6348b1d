"""From messages to packets and back: packing small ones, cutting large ones, putting them together.

A packet is numbered as a whole (seq of the paper), so the order of the messages in it is fixed.
"""

from bisect import bisect_right
from collections import deque
from collections.abc import Sequence
from itertools import accumulate

from semcast.core.annotations import Annotation, Item, KEnumeration
from semcast.core.ids import MemberId
from semcast.core.messages import Batch, batch_of
from semcast.wire.annotations import from_wire, to_wire
from semcast.wire.ring import Part

MAX_PARTS = 64
"""Parts of a packet, at most: each costs its receivers some time, and a token must not wait for long."""
PART_OVERHEAD = 12
PAYLOAD_OVERHEAD = 3


class Draft:
    """A packet to be: what is in it, but not its number."""

    __slots__ = ("bytes", "messages", "parts", "room", "safe")

    def __init__(self, room: int, *, safe: bool) -> None:
        self.parts: list[Part] = []
        self.safe = safe
        self.room = room
        """Bytes that still fit."""
        self.bytes = 0
        """Payload bytes in it."""
        self.messages = 0
        """Messages that end in this packet."""


class SendQueue:
    """Messages of the application that wait for the token, already packed."""

    def __init__(self, me: MemberId, packet_bytes: int, limit_messages: int, limit_bytes: int) -> None:
        self._me = me
        self._packet_bytes = packet_bytes
        self._limit_messages = limit_messages
        self._limit_bytes = limit_bytes
        self._drafts: deque[Draft] = deque()
        self._begun: list[Draft] = []  # fragments that left, of a message that has not left as a whole
        self._next = 1
        self.messages = 0
        self._bytes = 0

    def __bool__(self) -> bool:
        return bool(self._drafts)

    def add(self, payloads: Sequence[bytes], annotation: Annotation | None, *, safe: bool) -> int:
        """Take as many messages as there is room for; returns how many."""
        taken = payloads[: max(self._limit_messages - self.messages, 0)]
        sizes = list(map(len, taken))
        room = self._limit_bytes - self._bytes
        if sum(sizes) > room:
            fit = bisect_right(list(accumulate(sizes)), room)
            # An empty queue takes a message that is larger than the bound, or it would never leave.
            fit = max(fit, 0 if self.messages else 1)
            taken, sizes = taken[:fit], sizes[:fit]
        if not taken:
            return 0
        if annotation is None and max(sizes) <= self._packet_bytes:
            self._pack(taken, sizes, safe=safe)
        else:
            for payload in taken:
                self._add_one(payload, annotation, safe=safe)
        return len(taken)

    def pop(self) -> tuple[Draft, list[Batch]]:
        """The next packet, about to be sent, and the messages that have left as a whole with it."""
        draft = self._drafts.popleft()
        self.messages -= draft.messages
        self._bytes -= draft.bytes
        first = draft.parts[0]
        if first.left:
            self._begun.append(draft)
            return draft, []
        if self._begun:
            pieces = [begun.parts[0].payloads[0] for begun in self._begun]
            self._begun.clear()
            whole = b"".join((*pieces, first.payloads[0]))
            return draft, [batch_of(self._me, first.first, [whole], from_wire(first.annotation))]
        return draft, [
            batch_of(self._me, part.first, part.payloads, from_wire(part.annotation)) for part in draft.parts
        ]

    def restart(self) -> None:
        """The configuration ended: a message of which only some fragments left begins again."""
        for draft in reversed(self._begun):
            self._drafts.appendleft(draft)
            self._bytes += draft.bytes
        self._begun.clear()

    def _pack(self, payloads: Sequence[bytes], sizes: list[int], *, safe: bool) -> None:
        """Fill packet after packet with messages that are not annotated."""
        upto = list(accumulate(sizes, initial=0))
        needs = [total + PAYLOAD_OVERHEAD * place for place, total in enumerate(upto)]
        start, count = 0, len(payloads)
        while start < count:
            draft = self._draft(sizes[start] + PAYLOAD_OVERHEAD + PART_OVERHEAD, safe=safe)
            if not draft.parts or draft.parts[-1].annotation is not None:
                draft.parts.append(Part(self._next, []))
                draft.room -= PART_OVERHEAD
            stop = bisect_right(needs, needs[start] + draft.room, lo=start + 1) - 1
            stop = max(stop, start + 1)
            draft.parts[-1].payloads.extend(payloads[start:stop])
            draft.room -= needs[stop] - needs[start]
            self._count(draft, stop - start, upto[stop] - upto[start])
            start = stop

    def _add_one(self, payload: bytes, annotation: Annotation | None, *, safe: bool) -> None:
        size = len(payload)
        if size > self._packet_bytes:
            self._cut(payload, annotation, safe=safe)
        elif annotation is None:
            self._pack([payload], [size], safe=safe)
        else:
            need = size + PART_OVERHEAD + annotation_bytes(annotation)
            draft = self._draft(need, safe=safe)
            draft.parts.append(Part(self._next, [payload], to_wire(annotation)))
            draft.room -= need
            self._count(draft, 1, size)

    def _draft(self, need: int, *, safe: bool) -> Draft:
        """The packet that is being filled, or a new one if `need` bytes do not fit there."""
        draft = self._drafts[-1] if self._drafts else None
        if draft is None or draft.room < need or draft.safe is not safe or len(draft.parts) >= MAX_PARTS:
            draft = Draft(self._packet_bytes, safe=safe)
            self._drafts.append(draft)
        return draft

    def _count(self, draft: Draft, messages: int, size: int) -> None:
        draft.messages += messages
        draft.bytes += size
        self.messages += messages
        self._bytes += size
        self._next += messages

    def _cut(self, payload: bytes, annotation: Annotation | None, *, safe: bool) -> None:
        step = self._packet_bytes
        pieces = [payload[start : start + step] for start in range(0, len(payload), step)]
        for left, piece in zip(range(len(pieces) - 1, -1, -1), pieces, strict=True):
            draft = Draft(0, safe=safe)  # nothing else goes with a fragment
            draft.parts.append(Part(self._next, [piece], None if left else to_wire(annotation), left))
            self._drafts.append(draft)
            self._count(draft, 0 if left else 1, len(piece))


class Assembly:
    """Puts the fragments of each sender together, in the order of delivery within one configuration."""

    def __init__(self, max_message: int) -> None:
        self._max_message = max_message
        self._pieces: dict[MemberId, tuple[int, int, int, list[bytes]]] = {}  # seq, left, size, pieces
        self._last: dict[MemberId, int] = {}
        self.refused = 0
        """Parts that no correct sender can have sent."""

    def batches(self, sender: MemberId, parts: Sequence[Part]) -> list[Batch]:
        """The messages that end in a packet of `sender`."""
        done = []
        for part in parts:
            if part.left or sender in self._pieces:
                batch = self._fragment(sender, part)
            else:
                batch = self._whole(sender, part, part.payloads)
            if batch is not None:
                done.append(batch)
        return done

    def _whole(self, sender: MemberId, part: Part, payloads: list[bytes]) -> Batch | None:
        count = len(payloads)
        if part.first <= self._last.get(sender, 0) or (part.annotation is not None and count != 1):
            self.refused += 1
            return None
        self._last[sender] = part.first + count - 1
        return Batch(sender, part.first, payloads, from_wire(part.annotation), sum(map(len, payloads)))

    def _fragment(self, sender: MemberId, part: Part) -> Batch | None:
        seq, left, size, pieces = self._pieces.pop(sender, (part.first, part.left + 1, 0, []))
        size += len(part.payloads[0])
        if part.first != seq or part.left != left - 1 or len(part.payloads) != 1 or size > self._max_message:
            self.refused += 1
            return None
        pieces.append(part.payloads[0])
        if part.left:
            self._pieces[sender] = (seq, part.left, size, pieces)
            return None
        return self._whole(sender, part, [b"".join(pieces)])


def annotation_bytes(annotation: Annotation) -> int:
    """About how much room an annotation takes in a packet."""
    if isinstance(annotation, Item):
        return len(annotation.item.encode()) + 4
    if isinstance(annotation, KEnumeration):
        return annotation.bitmap.bit_length() // 8 + 14
    return sum(len(named.sender.name.encode()) + 16 for named in annotation.ids) + 4
