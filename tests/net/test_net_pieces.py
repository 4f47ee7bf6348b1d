"""Datagrams in pieces: put together whatever the order, and bounded whatever comes."""

from random import Random

import pytest

from semcast.net.addresses import Address
from semcast.net.pieces import PIECE_VERSION, Assembly, cut

HERE: Address = ("192.0.2.1", 5000)
THERE: Address = ("192.0.2.2", 5000)
GROUP = b"thegroup"


@pytest.mark.parametrize("size", [501, 1200, 1201, 1400, 5000, 60_000, 65_000])
@pytest.mark.parametrize("limit", [500, 1200])
def test_pieces_in_any_order_make_the_datagram(size: int, limit: int) -> None:
    rng = Random(size)
    data = rng.randbytes(size)
    pieces = cut(data, limit, GROUP, 7)
    assert max(map(len, pieces)) <= limit
    assert len({len(piece) for piece in pieces[:-1]}) <= 1, "the kernel sends those of one length at once"
    rng.shuffle(pieces)
    if len(pieces) == 1:
        return
    assembly = Assembly(4)
    found = [assembly.add(HERE, piece) for piece in [*pieces[:-1], *pieces]]
    assert [whole for whole in found if whole is not None] == [data]


def test_pieces_of_several_sources_and_datagrams_are_kept_apart() -> None:
    assembly = Assembly(4)
    first, second = cut(b"a" * 900, 500, GROUP, 1), cut(b"b" * 900, 500, GROUP, 2)
    other = cut(b"c" * 900, 500, GROUP, 1)
    assert assembly.add(HERE, first[0]) is None
    assert assembly.add(HERE, second[1]) is None
    assert assembly.add(THERE, other[1]) is None
    assert assembly.add(THERE, other[0]) == b"c" * 900
    assert assembly.add(HERE, second[0]) == b"b" * 900
    assert assembly.add(HERE, first[1]) == b"a" * 900


def test_what_makes_no_sense_is_dropped_and_memory_is_bounded() -> None:
    rng = Random(1)
    assembly = Assembly(8)
    for number in range(50_000):
        piece = bytes([PIECE_VERSION]) + rng.randbytes(rng.choice([0, 3, 10, 11, 40, 1400]))
        whole = assembly.add((f"192.0.2.{number % 200}", rng.randrange(1, 100)), piece)
        assert whole is None or len(whole) <= 0xFFFF
    assert len(assembly._sources) <= 8
    assert all(len(each) <= 16 for each in assembly._sources.values())


def test_more_than_a_datagram_can_have_is_given_up() -> None:
    assembly = Assembly(8)
    pieces = cut(bytes(1400 * 200), 1400, GROUP, 3)
    assert [assembly.add(HERE, piece) for piece in pieces] == [None] * len(pieces)


def test_pieces_that_contradict_each_other() -> None:
    assembly = Assembly(8)
    two, three = cut(bytes(900), 500, GROUP, 1), cut(bytes(1400), 500, GROUP, 1)
    assert assembly.add(HERE, two[0]) is None
    assert assembly.add(HERE, three[2]) is None
    assert assembly.add(HERE, two[1]) == bytes(900)
