"""Records on a disk: blocks of them, one after the other, and what can be read of a file that a crash left.

Live logs and simulated disks use the same bytes. A block is what was handed to the disk together. It says how
far everything before it was synced when it was written. So a block that is damaged *behind* that point is the
end of what a crash left (it is cut off), and one that is damaged *before* it was destroyed later: an error.
"""

import struct
from collections.abc import Iterator, Sequence
from zlib import crc32

import msgspec

_HEAD = struct.Struct("<4sIIIIQQ")
HEAD_BYTES = _HEAD.size
_MARK = b"\xb6\x10\xcb\x0a"
MAX_RECORD = 1 << 26
"""Bytes of one record, at most."""
BLOCK_BYTES = 1 << 20
"""Bytes of records that share a block, at most; a larger record is alone in one."""
BLOCK_RECORDS = 1 << 14


class DamagedError(Exception):
    """Records that were synced cannot be read.

    Args:
        offset: the byte where the damage begins.
        position: the number of the first record that is lost.
    """

    def __init__(self, offset: int, position: int) -> None:
        super().__init__(f"record {position}, which was synced, is damaged (at byte {offset})")
        self.offset, self.position = offset, position


class Block(msgspec.Struct, frozen=True, gc=False):
    """Where a block is in its file, and what it says."""

    offset: int
    end: int
    first: int
    """The position of its first record: how many came before it, ever."""
    count: int
    synced: int
    """Records before this position were synced when it was written."""

    @property
    def next(self) -> int:
        """The position of the first record behind it."""
        return self.first + self.count


def packed(records: Sequence[bytes], first: int, synced: int, salt: int) -> bytes:
    """A block of records, of which the first has this position.

    Args:
        records: any number of them, up to `BLOCK_RECORDS`; none if it is only to say what was synced.
        first: how many records came before.
        synced: how many of those outlive a crash.
        salt: of the file. Nobody else knows it: else a record could contain what looks like a block.
    """
    sizes = list(map(len, records))
    if sizes and max(sizes) > MAX_RECORD:
        raise ValueError(f"a record of {max(sizes)} bytes: at most {MAX_RECORD} can be stored")
    body = struct.pack(f"<{len(sizes)}I", *sizes) + b"".join(records)
    fields = len(sizes), len(body), crc32(body), first, synced
    return _HEAD.pack(_MARK, _checksum(salt, *fields), *fields) + body


def portions(records: Sequence[bytes]) -> Iterator[Sequence[bytes]]:
    """Records in runs that fit in one block each."""
    if len(records) <= BLOCK_RECORDS and sum(map(len, records)) <= BLOCK_BYTES:
        yield records
        return
    begin = held = 0
    for index, record in enumerate(records):
        if index > begin and (held + len(record) > BLOCK_BYTES or index - begin >= BLOCK_RECORDS):
            yield records[begin:index]
            begin, held = index, 0
        held += len(record)
    yield records[begin:]


def head_at(data: bytes | bytearray, offset: int, salt: int) -> Block | None:
    """The block that begins there, by its head. Nothing is said about its records."""
    if len(data) - offset < _HEAD.size:
        return None
    mark, checksum, *fields = _HEAD.unpack_from(data, offset)
    count, size, _, first, synced = fields
    if mark != _MARK or checksum != _checksum(salt, *fields):
        return None
    return Block(offset, offset + _HEAD.size + size, first, count, synced)


def block_at(data: bytes | bytearray, offset: int, salt: int) -> Block | None:
    """The block that begins there, if it is whole."""
    block = head_at(data, offset, salt)
    if block is None or block.end > len(data):
        return None
    with memoryview(data) as view, view[offset + _HEAD.size : block.end] as body:
        whole = crc32(body) == _HEAD.unpack_from(data, offset)[4]
    return block if whole else None


def records_of(data: bytes | bytearray, block: Block) -> list[bytes]:
    """The records of a block that is whole."""
    at = block.offset + _HEAD.size
    sizes = struct.unpack_from(f"<{block.count}I", data, at)
    at += 4 * block.count
    found = []
    with memoryview(data) as view:
        for size in sizes:
            found.append(bytes(view[at : at + size]))
            at += size
    return found


def whole_blocks(data: bytes | bytearray, position: int, salt: int, offset: int = 0) -> Iterator[Block]:
    """Blocks from an offset on, up to the end or to one that is not whole.

    Raises DamagedError if a later one says that it was synced.

    Args:
        data: of a file.
        position: of the first record in it.
        salt: of the file.
        offset: where the first block begins.
    """
    while (block := block_at(data, offset, salt)) is not None and block.first == position:
        yield block
        offset, position = block.end, block.next
    if _vouched(data, offset, salt) > position:
        raise DamagedError(offset, position)


def _vouched(data: bytes | bytearray, offset: int, salt: int) -> int:
    """The highest position of which a block says, from there on, that everything before it was synced."""
    highest = 0
    while (offset := data.find(_MARK, offset)) >= 0:
        block = head_at(data, offset, salt)
        if block is not None:
            highest = max(highest, block.synced)
        offset += 1
    return highest


def _checksum(salt: int, *fields: int) -> int:
    return crc32(struct.pack("<IIIQQ", *fields), salt)
