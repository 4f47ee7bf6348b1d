"""Records: whatever is cut off, added or changed behind a point, what is before it is read.

And what was synced is never taken for the end of what a crash left.
"""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from semcast.wire import records
from semcast.wire.records import DamagedError, block_at, packed, portions, records_of, whole_blocks

SALT = 7
RECORDS = st.lists(st.binary(max_size=40), max_size=4)
BLOCKS = st.lists(RECORDS, max_size=6)


def file_of(blocks: list[list[bytes]], synced: int = 0) -> bytes:
    """As it is written while nothing is synced, or, with `synced`, when the first so many records were."""
    data, position = b"", 0
    for block in blocks:
        data += packed(block, position, min(position, synced), SALT)
        position += len(block)
    return data


def read(data: bytes, first: int = 0) -> list[bytes]:
    return [record for block in whole_blocks(data, first, SALT) for record in records_of(data, block)]


@given(BLOCKS, st.data())
def test_a_cut_leaves_the_blocks_that_are_whole(written: list[list[bytes]], data: st.DataObject) -> None:
    file = file_of(written)
    cut = data.draw(st.integers(0, len(file)))
    whole = [block.end for block in whole_blocks(file, 0, SALT) if block.end <= cut]
    expected = [record for block in written[: len(whole)] for record in block]
    assert read(file[:cut]) == expected


@given(BLOCKS, st.integers(1, 200))
def test_zeros_at_the_end_are_not_records(written: list[list[bytes]], zeros: int) -> None:
    assert read(file_of(written) + bytes(zeros)) == [record for block in written for record in block]


def test_a_changed_byte_ends_the_log_there() -> None:
    file = bytearray(file_of([[b"first"], [b"second"], [b"third"]]))
    [first, *_] = whole_blocks(file, 0, SALT)
    for place in range(first.end, len(file)):
        file[place] ^= 1
        assert read(bytes(file))[:1] == [b"first"], f"byte {place}"
        assert b"third" not in read(bytes(file)), f"byte {place}"
        file[place] ^= 1


def test_a_changed_byte_of_what_was_synced_is_told_from_a_torn_end() -> None:
    """A later block says that everything before it was synced, whatever became of that."""
    file = bytearray(file_of([[b"first"], [b"second"], [b"third"], [b"fourth"]], synced=3))
    starts = [block.offset for block in whole_blocks(file, 0, SALT)]
    for place in range(starts[3]):
        file[place] ^= 1
        with pytest.raises(DamagedError) as raised:
            read(bytes(file))
        number = sum(start <= place for start in starts) - 1
        assert (raised.value.offset, raised.value.position) == (starts[number], number)
        file[place] ^= 1
    for place in range(starts[3], len(file)):
        file[place] ^= 1
        assert read(bytes(file)) == [b"first", b"second", b"third"]
        file[place] ^= 1


def test_a_later_block_without_an_earlier_one_is_cut_off() -> None:
    """What was not synced may reach the disk in any order."""
    file = bytearray(file_of([[b"first"], [b"second"], [b"third"]], synced=1))
    blocks = list(whole_blocks(file, 0, SALT))
    file[blocks[1].offset : blocks[1].end] = bytes(blocks[1].end - blocks[1].offset)
    assert read(bytes(file)) == [b"first"]


def test_a_record_cannot_contain_what_looks_like_a_block() -> None:
    """Whoever sends it does not know the salt: else a torn end would be taken for damage."""
    forged = packed([b"forged"], 0, 10**9, SALT + 1)
    file = bytearray(file_of([[b"first"], [forged]]))
    assert read(bytes(file)) == [b"first", forged]
    file[-1] ^= 1
    assert read(bytes(file)) == [b"first"]


def test_a_block_without_records_says_what_was_synced() -> None:
    file = bytearray(packed([b"one"], 5, 0, SALT) + packed([], 6, 6, SALT))
    assert read(bytes(file), 5) == [b"one"]
    file[10] ^= 1
    with pytest.raises(DamagedError, match="record 5, which was synced, is damaged"):
        read(bytes(file), 5)


def test_a_block_of_another_place_is_not_taken() -> None:
    assert read(packed([b"stray"], 3, 0, SALT)) == []
    assert block_at(packed([b"stray"], 3, 0, SALT), 0, SALT + 1) is None


@given(st.lists(st.binary(max_size=30), max_size=40))
def test_portions_are_all_records_in_order(written: list[bytes]) -> None:
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(records, "BLOCK_BYTES", 50)
        patch.setattr(records, "BLOCK_RECORDS", 5)
        found = list(portions(written))
        assert [record for portion in found for record in portion] == written
        assert all(len(portion) <= 5 for portion in found)
        assert all(len(portion) == 1 or sum(map(len, portion)) <= 50 for portion in found if portion)


def test_a_record_has_a_largest_size(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(records, "MAX_RECORD", 10)
    with pytest.raises(ValueError, match="a record of 11 bytes"):
        packed([bytes(11)], 0, 0, SALT)
