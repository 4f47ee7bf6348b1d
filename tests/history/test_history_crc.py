"""CRCs of parts give the CRC of the whole."""

import zlib
from random import Random

import pytest

from semcast.history import crc32, crc32_combine


@pytest.mark.parametrize("seed", range(20))
def test_however_it_is_cut(seed: int) -> None:
    random = Random(seed)
    data = random.randbytes(random.choice((1, 10, 1000, 200_000)))
    cuts = sorted(random.choices(range(len(data) + 1), k=6))
    total = 0
    for begin, end in zip([0, *cuts], [*cuts, len(data)], strict=True):
        part = data[begin:end]
        total = crc32_combine(total, crc32(part), len(part))
    assert total == crc32(data)


def test_over_more_zeros_than_anybody_can_hold() -> None:
    """Over 2**50 bytes in one go, or in two."""
    half = crc32_combine(0x12345678, 0, 1 << 49)
    assert crc32_combine(half, 0, 1 << 49) == crc32_combine(0x12345678, 0, 1 << 50)


def test_it_is_the_crc_of_the_standard_library() -> None:
    rng = Random(7)
    for length in (0, 1, 15, 16, 64, 255, 1024, 70_000):
        data, before = rng.randbytes(length), rng.getrandbits(32)
        assert crc32(data) == zlib.crc32(data)
        assert crc32(data, before) == zlib.crc32(data, before)
