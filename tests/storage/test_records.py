"""Records: whatever is cut off, added or changed behind a point, what is before it is read."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from semcast.wire import records
from semcast.wire.records import framed, read_records

RECORDS = st.lists(st.binary(max_size=40), max_size=8)


@given(RECORDS, st.data())
def test_a_cut_leaves_the_records_that_are_whole(written: list[bytes], data: st.DataObject) -> None:
    file = b"".join(map(framed, written))
    cut = data.draw(st.integers(0, len(file)))
    found, whole = read_records(file[:cut])
    assert found == written[: len(found)]
    assert whole == len(b"".join(map(framed, found))) <= cut
    assert len(found) == len(written) or cut < len(b"".join(map(framed, written[: len(found) + 1])))


@given(RECORDS, st.integers(1, 200))
def test_zeros_at_the_end_are_not_records(written: list[bytes], zeros: int) -> None:
    file = b"".join(map(framed, written))
    assert read_records(file + bytes(zeros)) == (written, len(file))


def test_a_changed_byte_ends_the_log_there() -> None:
    file = bytearray(framed(b"first") + framed(b"second"))
    for place in range(len(framed(b"first")), len(file)):
        file[place] ^= 1
        assert read_records(file)[0] == [b"first"], f"byte {place}"
        file[place] ^= 1


def test_a_record_has_a_largest_size(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(records, "MAX_RECORD", 10)
    with pytest.raises(ValueError, match="a record of 11 bytes"):
        framed(bytes(11))
