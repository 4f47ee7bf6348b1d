"""Datagrams in pieces, where the network does not carry them whole, and how they are put together again.

Layout of a piece: version (1 byte), group (8 bytes), number of the datagram (8 bytes), its place (1 byte),
how many there are (1 byte), then bytes of the datagram. A datagram that lacks a piece is lost, like any
other: stacks ask for it. What is put together is decoded, and opened, as if it had come whole.
"""

import struct

from semcast.net.addresses import Address

PIECE_VERSION = 0x41
_HEADER = struct.Struct(">B8sQBB")
_LARGEST = 0xFFFF
_UNFINISHED = 16
"""Datagrams of one source that wait for pieces; then the oldest is given up."""


def cut(data: bytes, size: int, group: bytes, number: int) -> list[bytes]:
    """A datagram in pieces of one length, which the kernel can send in one call.

    >>> [len(piece) for piece in cut(bytes(1400), 1200, b"thegroup", 7)]
    [719, 719]
    """
    count = -(-len(data) // (size - _HEADER.size))
    step = -(-len(data) // count)
    return [
        _HEADER.pack(PIECE_VERSION, group, number, at, count) + data[at * step : (at + 1) * step]
        for at in range(count)
    ]


class _Unfinished:
    """A datagram of which some pieces came."""

    __slots__ = ("missing", "pieces", "size")

    def __init__(self, count: int) -> None:
        self.pieces: list[bytes | None] = [None] * count
        self.missing = count
        self.size = 0


class Assembly:
    """Puts the datagrams of several sources together. Bounded.

    Args:
        most: sources that may have pieces here; then what the oldest had is given up.
    """

    def __init__(self, most: int) -> None:
        self._most = most
        self._sources: dict[Address, dict[int, _Unfinished]] = {}

    def add(self, source: Address, piece: bytes) -> bytes | None:
        """The datagram that this piece completes. What makes no sense is dropped."""
        if len(piece) <= _HEADER.size:
            return None
        _, _, number, at, count = _HEADER.unpack_from(piece)
        if at >= count or count < 2:
            return None
        known = self._of(source)
        found = known.get(number)
        if found is None:
            if len(known) >= _UNFINISHED:
                del known[next(iter(known))]
            found = known[number] = _Unfinished(count)
        if len(found.pieces) != count or found.pieces[at] is not None:
            return None
        found.pieces[at] = piece[_HEADER.size :]
        found.size += len(piece) - _HEADER.size
        found.missing -= 1
        if found.size > _LARGEST:
            del known[number]
        elif not found.missing:
            del known[number]
            return b"".join(each for each in found.pieces if each is not None)
        return None

    def _of(self, source: Address) -> dict[int, _Unfinished]:
        known = self._sources.get(source)
        if known is None:
            if len(self._sources) >= self._most:
                del self._sources[next(iter(self._sources))]
            known = self._sources[source] = {}
        return known
