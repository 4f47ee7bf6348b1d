"""CRC-32 of payloads, and of what is put together from the CRCs of its parts.

Recordings take the CRC of every payload, which is most of what they cost at 1 KiB. isal uses the processor's
instructions for it and takes a ninth of the time of the standard library; it has wheels for common machines.

The CRC of a concatenation is the CRC of the first part, moved on over as many zero bytes as the second part
has, xor that of the second. To move on over zeros is linear in the bits of the CRC: for 1, 2, 4, 8, ... zeros
there is a table for each of its four bytes, made when it is first needed.
"""

from functools import cache

try:
    from isal.isal_zlib import crc32
except ImportError:  # no wheel for this machine
    from zlib import crc32

__all__ = ["crc32", "crc32_combine"]

_POLYNOMIAL = 0xEDB88320  # that of zlib.crc32, bits reversed
_BYTE = 0xFF

Move = tuple[list[int], list[int], list[int], list[int]]
"""What becomes of each value of the lowest byte of a CRC, of the next, and so on."""


def crc32_combine(crc1: int, crc2: int, len2: int) -> int:
    """The CRC-32 of two parts, one behind the other, from their CRCs and the length of the second.

    >>> crc32_combine(crc32(b"semantic "), crc32(b"multicast"), 9) == crc32(b"semantic multicast")
    True
    """
    power = 0
    while len2:
        if len2 & 1:
            crc1 = moved(zeros(power), crc1)
        len2 >>= 1
        power += 1
    return crc1 ^ crc2


@cache
def zeros(power: int) -> Move:
    """Moves a CRC on over 2**power zero bytes."""
    if power == 0:
        return _tables([_over_zero_byte(1 << bit) for bit in range(32)])
    half = zeros(power - 1)
    return _tables([moved(half, moved(half, 1 << bit)) for bit in range(32)])


def moved(move: Move, crc: int) -> int:
    """A CRC moved on."""
    low, second, third, high = move
    return low[crc & _BYTE] ^ second[crc >> 8 & _BYTE] ^ third[crc >> 16 & _BYTE] ^ high[crc >> 24]


def _over_zero_byte(crc: int) -> int:
    for _ in range(8):
        crc = crc >> 1 ^ (_POLYNOMIAL if crc & 1 else 0)
    return crc


def _tables(of_bits: list[int]) -> Move:
    """From what becomes of each bit to what becomes of each byte."""
    tables: list[list[int]] = []
    for first in range(0, 32, 8):
        table = [0]
        for bit in of_bits[first : first + 8]:
            table += [value ^ bit for value in table]
        tables.append(table)
    low, second, third, high = tables
    return low, second, third, high
