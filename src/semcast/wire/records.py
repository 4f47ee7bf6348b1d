"""Records on a disk, one after the other: how they are framed, and how much of a torn file can be read.

Live logs and simulated disks use the same bytes, so that a simulated crash may cut a record in two.
"""

import struct
from zlib import crc32

_FRAME = struct.Struct("<II")
MAX_RECORD = 1 << 26
"""Bytes of one record, at most: what is said to be longer is not a record."""


def framed(record: bytes) -> bytes:
    """A record as it is stored: its length, a checksum of length and contents, the contents.

    The checksum covers the length, so that a tail of zeros is not a row of empty records.
    """
    size = len(record)
    if size > MAX_RECORD:
        raise ValueError(f"a record of {size} bytes: at most {MAX_RECORD} can be stored")
    return _FRAME.pack(size, _checksum(size, record)) + record


def read_records(data: bytes | bytearray | memoryview) -> tuple[list[bytes], int]:
    """The records from the beginning up to the first that is not whole, and how many bytes they take.

    >>> read_records(framed(b"one") + framed(b"two")[:-1])
    ([b'one'], 11)
    """
    records: list[bytes] = []
    whole = memoryview(data)
    at = 0
    while len(whole) - at >= _FRAME.size:
        size, checksum = _FRAME.unpack_from(whole, at)
        end = at + _FRAME.size + size
        if size > MAX_RECORD or end > len(whole):
            break
        record = bytes(whole[at + _FRAME.size : end])
        if _checksum(size, record) != checksum:
            break
        records.append(record)
        at = end
    return records, at


def _checksum(size: int, record: bytes) -> int:
    return crc32(record, crc32(size.to_bytes(4, "little")))
