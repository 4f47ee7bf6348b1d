"""Where the messages of a log are: on disk, but for the newest and those that were read last.

Of a message that is on disk only, 12 bytes are kept, and its annotation where it has one: the position of its
record, and its size. They are in arrays, by blocks of numbers, so that a block of which nothing is left takes
nothing. What is not synced is always in memory, since it cannot be read back.

Reading back is a call, not an effect: see docs/decisions/0011.
"""

from array import array
from bisect import bisect_left
from collections import deque
from collections.abc import Callable, Iterator, Sequence

from semcast.core.annotations import Annotation
from semcast.core.ids import MemberId
from semcast.core.messages import Batch, batch_of
from semcast.protocols.gossip.records import Published, Record, Staged, Stored, StoredRun, decode
from semcast.wire.annotations import WireItem, from_wire

_BLOCK = 64
_BESIDE = 300
"""Bytes that a message in memory takes besides its payload."""
_AHEAD = 1 << 16
"""Bytes that are read at a time: who wants a message wants the next ones, too."""

ReadBack = Callable[[int, int], Sequence[bytes]]
"""Synced records from a position on: at least one, then as many as fit into so many bytes; none if the first
is not synced, or was given up."""


class Cache:
    """What all streams of a log have in memory.

    Args:
        most: bytes of messages that are on disk, too; without a disk everything is in memory.
    """

    def __init__(self, most: int) -> None:
        self.most = most
        self.read: ReadBack | None = None
        self.synced = 0
        """Records before this position can be read back."""
        self.size = 0
        self._runs: deque[tuple[Shelf, int, int, int]] = deque()  # what may leave, the oldest first
        self.released: dict[int, tuple[MemberId, int]] = {}
        """Records of pieces of published batches: whose messages they hold, and from which number on."""
        self._read: dict[int, Record] = {}  # what was read last, by its position

    def held(self, shelf: "Shelf", first: int, last: int, position: int, size: int) -> None:
        """These are in memory from now on, and in the record at a position; others may have to leave."""
        if self.read is not None:
            self._runs.append((shelf, first, last, position))
            self.size += size
            if self.size > self.most:
                self._make_room()

    def said(self, position: int, seq: int) -> bytes | None:
        """The payload of a message in the record at a position; a few records are read at a time."""
        record = self._read.get(position)
        if record is None:
            assert self.read is not None, "without a disk everything is in memory"
            records = self.read(position, _AHEAD)
            self._read = {place: decode(data) for place, data in enumerate(records, position)}
            record = self._read.get(position)
        if isinstance(record, StoredRun):
            return record.payloads[seq - record.first]
        if isinstance(record, Stored):
            return record.payload
        if isinstance(record, Staged):
            return record.payloads[seq - self.released[position][1]]
        return record.messages[seq - record.first][0] if isinstance(record, Published) else None

    def _make_room(self) -> None:
        runs = self._runs
        while self.size > self.most and runs:
            shelf, first, last, position = runs[0]
            if position >= self.synced:
                return  # it cannot be read back yet
            runs.popleft()
            self.size -= shelf.release(first, last)


class _Block:
    """Some numbers in a row."""

    __slots__ = ("count", "places", "sizes")

    def __init__(self) -> None:
        self.places = array("Q", bytes(8 * _BLOCK))  # 1 + the position of the record; 0 if it has none yet
        self.sizes = array("I", bytes(4 * _BLOCK))  # 1 + bytes; 0 if it is not there
        self.count = 0


_NOWHERE = array("Q", bytes(8 * _BLOCK))


def _blocks(first: int, last: int) -> Iterator[tuple[int, int, int]]:
    """Blocks that have these numbers: which, and from which slot to before which."""
    while first <= last:
        number, begin = divmod(first, _BLOCK)
        end = min(_BLOCK, begin + last - first + 1)
        yield number, begin, end
        first += end - begin


class Shelf:
    """The messages of one stream, by number.

    Args:
        sender: of the stream.
        cache: of the log.
        other: finds the shelf of another stream: what is read ahead may be of any.
    """

    def __init__(self, sender: MemberId, cache: Cache, other: "Callable[[MemberId], Shelf | None]") -> None:
        self._sender = sender
        self._cache = cache
        self._other = other
        self._held: dict[int, Batch] = {}
        self._notes: dict[int, Annotation] = {}
        self._blocks: dict[int, _Block] = {}
        self._count = 0
        self._moved: tuple[array[int], int] | None = None  # whose records were written anew, and where

    def __len__(self) -> int:
        return self._count

    def __contains__(self, seq: object) -> bool:
        assert isinstance(seq, int)
        block = self._blocks.get(seq // _BLOCK)
        return block is not None and block.sizes[seq % _BLOCK] > 0

    def __iter__(self) -> Iterator[int]:
        for number, block in list(self._blocks.items()):
            begin = number * _BLOCK
            yield from [begin + slot for slot, size in enumerate(block.sizes) if size]

    def first_between(self, first: int, last: int) -> int | None:
        """The first message between two numbers, if there is any; empty blocks are passed over at once."""
        for number, begin, end in _blocks(first, last):
            block = self._blocks.get(number)
            there = [] if block is None else [slot for slot in range(begin, end) if block.sizes[slot]]
            if there:
                return number * _BLOCK + there[0]
        return None

    # What comes and goes

    def put(self, batch: Batch) -> int:
        """Take messages in; returns how many bytes are there more than before."""
        if self._count and self._cache.read is not None:
            self._cache.size -= self.release(batch.first, batch.last)
        if len(batch.payloads) == 1 and batch.items is None:
            return self._put_one(batch)
        held = self._held
        for single in singles_of(batch):
            held[single.first] = single
            if single.annotation is not None:
                self._notes[single.first] = single.annotation
        grown = 0
        for number, begin, end in _blocks(batch.first, batch.last):
            block = self._blocks.get(number)
            if block is None:
                block = self._blocks[number] = _Block()
            start = number * _BLOCK + begin - batch.first
            sizes = array("I", [len(payload) + 1 for payload in batch.payloads[start : start + end - begin]])
            before = block.sizes[begin:end]
            there = sum([1 for size in before if size])
            block.sizes[begin:end] = sizes
            block.places[begin:end] = _NOWHERE[begin:end]
            block.count += end - begin - there
            self._count += end - begin - there
            grown += sum(sizes) - sum(before) - (end - begin - there)
        return grown

    def _put_one(self, batch: Batch) -> int:
        seq = batch.first
        self._held[seq] = batch
        if batch.annotation is not None:
            self._notes[seq] = batch.annotation
        number, slot = divmod(seq, _BLOCK)
        block = self._blocks.get(number)
        if block is None:
            block = self._blocks[number] = _Block()
        before, size = block.sizes[slot], len(batch.payloads[0])
        block.sizes[slot] = size + 1
        block.places[slot] = 0
        if before:
            return size + 1 - before
        block.count += 1
        self._count += 1
        return size

    def place(self, first: int, last: int, position: int) -> None:
        """The record of these messages, which came just now, is written there."""
        if first == last:
            number, slot = divmod(first, _BLOCK)
            block = self._blocks[number]
            block.places[slot] = position + 1
            self._cache.held(self, first, first, position, block.sizes[slot] - 1 + _BESIDE)
            return
        size = _BESIDE * (last - first + 1)
        for number, begin, end in _blocks(first, last):
            block = self._blocks[number]
            block.places[begin:end] = array("Q", [position + 1]) * (end - begin)
            size += sum(block.sizes[begin:end]) - (end - begin)
        self._cache.held(self, first, last, position, size)

    def pop(self, seq: int) -> tuple[int, Annotation | None] | None:
        """A message leaves; returns its size and its annotation, if it was here."""
        number, slot = divmod(seq, _BLOCK)
        block = self._blocks.get(number)
        if block is None or not block.sizes[slot]:
            return None
        size = block.sizes[slot] - 1
        block.sizes[slot] = block.places[slot] = 0
        block.count -= 1
        self._count -= 1
        if not block.count:
            del self._blocks[number]
        if self._held.pop(seq, None) is not None and self._cache.read is not None:
            self._cache.size -= size + _BESIDE
        return size, self._notes.pop(seq, None)

    # What is known without the disk

    def note(self, seq: int) -> Annotation | None:
        """The annotation of a message, if it is here and has one."""
        return self._notes.get(seq)

    def size_of(self, seq: int) -> int | None:
        """The bytes of a message; None if it is not here."""
        block = self._blocks.get(seq // _BLOCK)
        size = 0 if block is None else block.sizes[seq % _BLOCK]
        return size - 1 if size else None

    def notes(self, seqs: Sequence[int]) -> list[Annotation | None] | None:
        """The annotations of messages; None if they have none."""
        if not self._notes:
            return None
        found = [self._notes.get(seq) for seq in seqs]
        return found if any(note is not None for note in found) else None

    # Memory

    def release(self, first: int, last: int) -> int:
        """Forget what is in these; returns the bytes."""
        size = 0
        for seq in range(first, last + 1):
            batch = self._held.pop(seq, None)
            if batch is not None:
                size += len(batch.payloads[0]) + _BESIDE
        return size

    # Reading

    def get(self, seq: int) -> Batch | None:
        """A message, if it is here; from the disk if need be."""
        batch = self._held.get(seq)
        if batch is not None or seq not in self:
            return batch
        return self._load(seq)

    def payload(self, seq: int) -> bytes | None:
        """What a message says, if it is here.

        What is on disk alone is not kept: who reads a log by position reads it once, and must not drive out
        what members are about to ask for.
        """
        batch = self._held.get(seq)
        if batch is not None:
            return batch.payloads[0]
        number, slot = divmod(seq, _BLOCK)
        block = self._blocks.get(number)
        if block is None or not block.sizes[slot]:
            return None
        found = None if self._moved is not None else self._cache.said(block.places[slot] - 1, seq)
        return self._load(seq).payloads[0] if found is None else found

    def __getitem__(self, seq: int) -> Batch:
        batch = self.get(seq)
        if batch is None:
            raise KeyError(seq)
        return batch

    def values(self) -> Iterator[Batch]:
        """All of them, in order."""
        for seq in sorted(self):
            yield self[seq]

    def _load(self, seq: int) -> Batch:
        assert self._cache.read is not None, "without a disk everything is in memory"
        old = self._blocks[seq // _BLOCK].places[seq % _BLOCK] - 1
        for position in (self._moved_to(seq), old, self._moved_to(seq)):
            found = None if position is None else self._read(position, seq)
            if found is not None:
                return found
        raise LookupError(f"{self._sender} {seq} is not on disk at {old}")

    def _read(self, position: int, seq: int) -> Batch | None:
        assert self._cache.read is not None
        wanted = None
        ahead = min(_AHEAD, self._cache.most // 4)
        for place, data in enumerate(self._cache.read(position, ahead), position):
            record = decode(data)
            if isinstance(record, Staged) and place in self._cache.released:
                record = _published(record, *self._cache.released[place])
            if isinstance(record, Stored | StoredRun | Published):
                shelf = self._other(record.sender)
                for batch in batches_of(record):
                    if shelf is self and batch.first == seq and place == position:
                        wanted = batch
                    if shelf is not None:
                        shelf.keep(batch, place)
        return wanted

    def keep(self, batch: Batch, position: int) -> None:
        """It was read: keep it for a while, if that is where it is."""
        seq = batch.first
        block = self._blocks.get(seq // _BLOCK)
        if block is not None and block.places[seq % _BLOCK] == position + 1 and seq not in self._held:
            self._held[seq] = batch
            self._cache.held(self, seq, seq, position, len(batch.payloads[0]) + _BESIDE)

    # Records that are written anew

    def move(self, seqs: "array[int]", position: int) -> None:
        """These were written anew, a record each, from a position on; the old ones go when that is synced."""
        self._moved = seqs, position

    def settle(self) -> None:
        """They are synced."""
        if self._moved is not None:
            seqs, position = self._moved
            for place, seq in enumerate(seqs, position):
                block = self._blocks.get(seq // _BLOCK)
                if block is not None and block.sizes[seq % _BLOCK]:
                    block.places[seq % _BLOCK] = place + 1
            self._moved = None

    def _moved_to(self, seq: int) -> int | None:
        if self._moved is None:
            return None
        seqs, position = self._moved
        place = bisect_left(seqs, seq)
        return position + place if place < len(seqs) and seqs[place] == seq else None


def batches_of(record: Stored | StoredRun | Published) -> Iterator[Batch]:
    """The messages of a record, one by one."""
    sender = record.sender
    if isinstance(record, Stored):
        yield batch_of(sender, record.seq, [record.payload], from_wire(record.annotation))
    elif isinstance(record, StoredRun):
        yield from singles_of(Batch(sender, record.first, record.payloads, items=record.items))
    else:
        for seq, (payload, annotation) in enumerate(record.messages, record.first):
            yield batch_of(sender, seq, [payload], from_wire(annotation))


def _published(record: Staged, sender: MemberId, first: int) -> Published:
    """A piece of a batch, as messages of a stream."""
    items = record.items or [None] * len(record.payloads)
    notes = [None if item is None else WireItem(item) for item in items]
    return Published(b"", sender, first, list(zip(record.payloads, notes, strict=True)))


def singles_of(run: Batch) -> list[Batch]:
    """Messages in a row, one by one."""
    if run.items is not None:
        return run.singles()
    sender, payloads = run.sender, run.payloads
    return [
        Batch(sender, seq, [payload], None, len(payload)) for seq, payload in enumerate(payloads, run.first)
    ]
