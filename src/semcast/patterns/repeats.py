"""Rows of a query as messages that say which they are, and what a member skips of what comes twice.

A program that publishes batches, as the sink for Spark does, may have to publish its last batch again: the
log that knew the batch is lost with its disk. Members then get rows again, as other messages. So a payload
may begin with a key: which query, which batch, which row (`put_key`, `split_key`). `Repeats` remembers what
it was shown, and says of a message whether it is a row that came before.

What is remembered: of each sender its last number, so that what a session is given again is known; and the
rows of its first batch and its last. Only these can come from another sender, too, for of the batches of a
query the last alone may be published again, and by a logger that has started again: another sender. Two
senders are not in any order: the batch before may come after the batch that follows it, and is no repeat.

A row counts as a repeat only if key *and* contents were there before. So where a batch is published again
with other rows, or batches come in another order than this, or something had to be forgotten, a member gets a
row twice, and never loses one.
"""

import struct
from array import array
from bisect import bisect_left
from collections.abc import Iterable
from operator import attrgetter
from typing import Annotated
from uuid import UUID
from zlib import crc32

import msgspec

from semcast.core.annotations import Item
from semcast.core.ids import MemberId, MessageId
from semcast.core.messages import Message

_MAGIC = b"\x93sr"
_VERSION = 1
_HEAD = struct.Struct(">3sB16sQIQ")
KEY_BYTES = _HEAD.size
"""That a key takes in front of a payload."""
_BATCH_AT, _ROW_AT, _SIGN = 20, 32, 127
"""Where numbers of 63 bits begin, and how."""
NO_PARTITION = (1 << 32) - 1
"""In a key of a row that has none."""
MAX_PARTITION = NO_PARTITION - 1
MAX_ROW = (1 << 63) - 1
"""Of batches, too."""
_CHUNK = 2048
"""Rows that are kept in one piece."""
_PARTITION = 64
"""What a partition takes besides, as rows: were it nothing, a million of one row each would be half a GB."""
_SENDERS = 8
"""Senders of one query that are remembered: each start of a logger is another one."""


class RowKey(msgspec.Struct, frozen=True):
    """Which row of which batch of which query a message is."""

    query: UUID
    batch: int
    row: int
    """Its number in its partition; in its batch, if there is no partition."""
    partition: int | None = None


def put_key(key: RowKey, payload: bytes) -> bytes:
    """A payload that says which row it is.

    Raises:
        ValueError: if a number is too large, or less than 0.

    >>> key = RowKey(UUID(int=7), batch=3, row=0, partition=1)
    >>> split_key(put_key(key, b"159.2")) == (key, b"159.2")
    True
    """
    return key_head(key.query, key.batch, key.partition) + row_number(key.row) + payload


def key_head(query: UUID, batch: int, partition: int | None) -> bytes:
    """What the keys of all rows of a partition begin with; a row's number follows."""
    if not 0 <= batch <= MAX_ROW or not 0 <= (partition or 0) <= MAX_PARTITION:
        raise ValueError(f"batch {batch}, partition {partition}: too large for a key, or less than 0")
    which = NO_PARTITION if partition is None else partition
    return _HEAD.pack(_MAGIC, _VERSION, query.bytes, batch, which, 0)[:-8]


def row_number(row: int) -> bytes:
    """The end of a key."""
    if not 0 <= row <= MAX_ROW:
        raise ValueError(f"row {row}: too large for a key, or less than 0")
    return row.to_bytes(8, "big")


def split_key(payload: bytes) -> tuple[RowKey | None, bytes]:
    """The key of a payload, and the rest; None and all of it, if it does not begin with a key.

    `key_problem` says whether there was none, or one that cannot be read.

    >>> split_key(b"159.2")
    (None, b'159.2')
    """
    if key_problem(payload):
        return None, payload
    _, _, query, batch, partition, row = _HEAD.unpack_from(payload)
    where = None if partition == NO_PARTITION else partition
    return RowKey(UUID(bytes=query), batch, row, where), payload[KEY_BYTES:]


def key_problem(payload: bytes) -> str:
    """Why a payload has no key, in words; nothing, if it has one.

    >>> key_problem(b"159.2")
    'no key'
    >>> key_problem(put_key(RowKey(UUID(int=7), 3, 0), b"")[:12])
    'a key is cut off: 12 of 40 bytes'
    """
    if not payload.startswith(_MAGIC):
        return "no key"
    if len(payload) > len(_MAGIC) and payload[len(_MAGIC)] != _VERSION:
        return f"a key of version {payload[len(_MAGIC)]}, and this release reads {_VERSION}"
    if len(payload) < KEY_BYTES:
        return f"a key is cut off: {len(payload)} of {KEY_BYTES} bytes"
    if max(payload[_BATCH_AT], payload[_ROW_AT]) > _SIGN:
        return "a key with numbers that are too large"
    return ""


class RepeatStatistics(msgspec.Struct):
    """Messages that `Repeats` was shown."""

    rows: int = 0
    """With a key."""
    repeated: int = 0
    without_key: int = 0
    """They are never repeats."""
    unreadable: int = 0
    """Of these, those whose key is cut off or of another version."""
    forgotten: int = 0
    """Rows that had to be forgotten before their time: were they repeated, nobody could tell."""


class _Chunk:
    """Some rows that follow each other, in order."""

    __slots__ = ("numbers", "sums")

    def __init__(self, numbers: Iterable[int] = (), sums: Iterable[int] = ()) -> None:
        self.numbers = array("Q", numbers)
        self.sums = array("I", sums)

    @property
    def top(self) -> int:
        """The last row."""
        return self.numbers[-1]


class _Rows:
    """Numbers of rows, and what each contained: 12 bytes for each.

    In chunks, so that rows which come in another order than that of their numbers do not move all others.
    """

    __slots__ = ("_chunks", "_count")

    def __init__(self) -> None:
        self._chunks: list[_Chunk] = []
        self._count = 0

    def __len__(self) -> int:
        return self._count

    def seen(self, row: int, contents: int) -> bool | None:
        """Whether it was there with these contents; None, if it was there with others."""
        if not self._chunks or row > self._chunks[-1].top:
            return False  # rows of a partition come in order
        chunk = self._chunks[self._chunk(row)]
        at = bisect_left(chunk.numbers, row)
        if chunk.numbers[at] != row:
            return False
        return True if chunk.sums[at] == contents else None

    def put(self, row: int, contents: int) -> None:
        """It is there now."""
        if not self._chunks or row > self._chunks[-1].top:
            if not self._chunks or len(self._chunks[-1].numbers) >= _CHUNK:
                self._chunks.append(_Chunk())
            self._chunks[-1].numbers.append(row)
            self._chunks[-1].sums.append(contents)
            self._count += 1
            return
        where = self._chunk(row)
        chunk = self._chunks[where]
        at = bisect_left(chunk.numbers, row)
        if chunk.numbers[at] == row:
            chunk.sums[at] = contents
            return
        chunk.numbers.insert(at, row)
        chunk.sums.insert(at, contents)
        self._count += 1
        if len(chunk.numbers) > _CHUNK:
            half = _CHUNK // 2
            self._chunks.insert(where + 1, _Chunk(chunk.numbers[half:], chunk.sums[half:]))
            del chunk.numbers[half:], chunk.sums[half:]

    def _chunk(self, row: int) -> int:
        """Where a row is, or belongs, that is not beyond the last one."""
        return bisect_left(self._chunks, row, key=_top)

    def numbers(self) -> list[int]:
        """All of them, in order."""
        return [number for chunk in self._chunks for number in chunk.numbers]

    def sums(self) -> list[int]:
        """What they contained, in this order."""
        return [each for chunk in self._chunks for each in chunk.sums]


_top = attrgetter("top")


class _Sender:
    """What is known of one sender of a query."""

    def __init__(self, seq: int, first: int, last: int) -> None:
        self.seq = seq
        """Of its newest message."""
        self.first = first
        self.last = last
        """Batches."""


class _Query:
    """What is known of one query."""

    def __init__(self) -> None:
        self.senders: dict[MemberId, _Sender] = {}
        """The one that was heard last comes last."""
        self.rows: dict[int, dict[int, _Rows]] = {}
        """By batch and partition; the batch that was heard of last comes last."""

    def advance(self, message: MessageId, batch: int) -> tuple[bool, bool]:
        """Whether a message is new from its sender, and whether it begins a batch there."""
        found = self.senders.pop(message.sender, None)
        if found is None:
            self.senders[message.sender] = _Sender(message.seq, batch, batch)
            if len(self.senders) > _SENDERS:
                del self.senders[next(iter(self.senders))]
            return True, True
        self.senders[message.sender] = found
        if message.seq <= found.seq:
            return False, False
        begins = batch != found.last
        found.seq, found.last = message.seq, batch
        return True, begins

    def ends(self) -> set[int]:
        """Batches of which a row may come again from another sender."""
        return {batch for each in self.senders.values() for batch in (each.first, each.last)}

    def count(self, batch: int) -> int:
        """Rows that are remembered of a batch."""
        return sum(map(len, self.rows[batch].values()))

    def size(self, batch: int) -> int:
        """What they take, as rows."""
        return self.count(batch) + _PARTITION * len(self.rows[batch])


class Repeats:
    """Tells a member which rows have come before. One for each group, for as long as the program reads it.

    >>> from semcast.core.ids import MessageId
    >>> payload = put_key(RowKey(UUID(int=7), batch=3, row=0), b"159.2")
    >>> first = Message(MessageId(MemberId("log1", 1), 1), payload)
    >>> again = Message(MessageId(MemberId("log1", 2), 1), payload)
    >>> repeats = Repeats()
    >>> repeats.repeated(first), repeats.repeated(again)
    (False, True)

    Args:
        queries: that are remembered; of more, the one that was silent for longest is forgotten.
        rows: that are remembered, of all queries together; 12 bytes each. A partition counts as 64.
    """

    def __init__(self, *, queries: int = 64, rows: int = 1 << 20) -> None:
        if queries < 1 or rows < 1:
            raise ValueError(f"queries = {queries}, rows = {rows}: 1 or more of each")
        self.stats = RepeatStatistics()
        self._most_queries = queries
        self._most_rows = rows
        self._size = 0
        self._queries: dict[bytes, _Query] = {}

    def repeated(self, message: object) -> bool:
        """Whether a message is a row that has come before. It has come now: ask once for each message.

        What has no key that can be read is never a repeat, and neither is anything else that a group gives
        its program, such as a view.
        """
        if not isinstance(message, Message):
            return False
        payload = message.payload
        if not payload.startswith(_MAGIC) or key_problem(payload):
            self.stats.without_key += 1
            self.stats.unreadable += payload.startswith(_MAGIC)
            return False
        _, _, which, batch, partition, row = _HEAD.unpack_from(payload)
        query = self._query(which)
        is_new, begins = query.advance(message.id, batch)
        if begins:
            self._let_go(query)
        again = not is_new or self._seen(query, batch, partition, row, _contents(message))
        self.stats.rows += 1
        self.stats.repeated += again
        return again

    def _seen(self, query: _Query, batch: int, partition: int, row: int, contents: int) -> bool:
        parts = query.rows.pop(batch, {})
        query.rows[batch] = parts
        rows = parts.get(partition)
        seen = False if rows is None else rows.seen(row, contents)
        if seen:
            return True
        more = 0 if seen is None else 1 if rows is not None else 1 + _PARTITION
        if self._room(more):
            parts.setdefault(partition, _Rows()).put(row, contents)
            self._size += more
        return False

    def _query(self, which: bytes) -> _Query:
        query = self._queries.pop(which, None) or _Query()
        self._queries[which] = query  # the one that was heard of last comes last
        while len(self._queries) > self._most_queries:
            oldest = self._queries.pop(next(iter(self._queries)))
            for batch in list(oldest.rows):
                self._drop(oldest, batch)
        return query

    def _let_go(self, query: _Query) -> None:
        """Of batches that nobody will publish again nothing is remembered."""
        ends = query.ends()
        for batch in [batch for batch in query.rows if batch not in ends]:
            self._size -= query.size(batch)
            del query.rows[batch]

    def _room(self, more: int) -> bool:
        """Room for one more row: other batches than the last one heard of are forgotten for it."""
        while more and self._size + more > self._most_rows:
            query = next((each for each in self._queries.values() if each.rows), None)
            assert query is not None, "rows are of queries"
            last = query is next(reversed(self._queries.values()))
            if last and len(query.rows) == 1:
                self.stats.forgotten += 1
                return False
            self._drop(query, next(iter(query.rows)))
        return True

    def _drop(self, query: _Query, batch: int) -> None:
        self._size -= query.size(batch)
        self.stats.forgotten += query.count(batch)
        del query.rows[batch]

    def export(self) -> bytes:
        """All that is remembered, for a program that keeps it beside what it does with messages."""
        return _encode(
            _Saved(
                [
                    _SavedQuery(
                        which,
                        [
                            _SavedSender(sender, each.seq, each.first, each.last)
                            for sender, each in query.senders.items()
                        ],
                        [
                            _SavedRows(batch, partition, rows.numbers(), rows.sums())
                            for batch, parts in query.rows.items()
                            for partition, rows in parts.items()
                        ],
                    )
                    for which, query in self._queries.items()
                ]
            )
        )

    def restore(self, saved: bytes) -> None:
        """Remember what was exported, and nothing else.

        Raises:
            ValueError: if that is not what was exported.
        """
        try:
            found = _decode(saved)
        except msgspec.MsgspecError as error:
            raise ValueError(f"these are no repeats that were exported: {error}") from None
        queries: dict[bytes, _Query] = {}
        for each in found.queries:
            query = queries[each.which] = _Query()
            query.senders = {one.sender: _Sender(one.seq, one.first, one.last) for one in each.senders}
            for some in each.rows:
                rows = query.rows.setdefault(some.batch, {}).setdefault(some.partition, _Rows())
                for row, contents in zip(some.numbers, some.sums, strict=False):
                    rows.put(row, contents)
        self._queries = queries
        self._size = sum(query.size(batch) for query in queries.values() for batch in query.rows)


_NO_ITEM = crc32(b"\xff\xff\xff\xff")


def _contents(message: Message) -> int:
    """A sum over what a row says, and what it is about."""
    note = message.annotation
    about = _NO_ITEM
    if isinstance(note, Item):
        item = note.item.encode()
        about = crc32(item, crc32(len(item).to_bytes(4, "big")))  # "a" and "bc" are not "ab" and "c"
    return crc32(memoryview(message.payload)[KEY_BYTES:], about)


_Number = Annotated[int, msgspec.Meta(ge=0, le=MAX_ROW)]
_Sum = Annotated[int, msgspec.Meta(ge=0, le=(1 << 32) - 1)]


class _SavedSender(msgspec.Struct, frozen=True, array_like=True):
    sender: MemberId
    seq: _Number
    first: _Number
    last: _Number


class _SavedRows(msgspec.Struct, frozen=True, array_like=True):
    batch: _Number
    partition: _Sum
    numbers: list[_Number]
    sums: list[_Sum]


class _SavedQuery(msgspec.Struct, frozen=True, array_like=True):
    which: bytes
    senders: list[_SavedSender]
    rows: list[_SavedRows]


class _Saved(msgspec.Struct, frozen=True, array_like=True, tag="repeats2"):
    queries: list[_SavedQuery]


_encode = msgspec.msgpack.Encoder().encode
_decode = msgspec.msgpack.Decoder(_Saved).decode
