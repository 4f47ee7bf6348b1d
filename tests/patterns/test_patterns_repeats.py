"""Keys in front of payloads, and which rows a member has seen before: also with helpers that are wrong."""

from collections import Counter
from collections.abc import Callable, Sequence
from itertools import permutations
from random import Random
from uuid import UUID

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from semcast.core import Item, MemberId, Message, MessageId, View
from semcast.patterns import Repeats, RowKey, key_problem, put_key, split_key
from semcast.patterns.repeats import _PARTITION, KEY_BYTES, MAX_PARTITION, MAX_ROW, _Query, _Rows

QUERY, OTHER = UUID(int=1), UUID(int=2)

keys = st.builds(
    RowKey,
    st.uuids(),
    st.integers(0, MAX_ROW),
    st.integers(0, MAX_ROW),
    st.none() | st.integers(0, MAX_PARTITION),
)


class Sender:
    """A start of a logger: its messages are numbered."""

    def __init__(self, incarnation: int = 1) -> None:
        self.me = MemberId("log1", incarnation)
        self.seq = 0

    def plain(self, payload: bytes, item: str | None = None) -> Message:
        self.seq += 1
        return Message(MessageId(self.me, self.seq), payload, None if item is None else Item(item))

    def row(
        self, batch: int, row: int, partition: int | None = 0, says: bytes | None = None, query: UUID = QUERY
    ) -> Message:
        rest = b"%d %s %d" % (batch, str(partition).encode(), row) if says is None else says
        return self.plain(put_key(RowKey(query, batch, row, partition), rest))


@given(keys, st.binary(max_size=50))
def test_what_was_put_in_front_is_split_off(key: RowKey, payload: bytes) -> None:
    whole = put_key(key, payload)
    assert split_key(whole) == (key, payload)
    assert len(whole) == KEY_BYTES + len(payload)
    assert key_problem(whole) == ""


@given(st.binary(max_size=80) | st.binary(max_size=80).map(lambda rest: b"\x93sr" + rest))
def test_whatever_comes_is_answered(payload: bytes) -> None:
    """Nothing raises, and what has no key is left as it is."""
    key, rest = split_key(payload)
    assert (key is None) == bool(key_problem(payload))
    if key is None:
        assert rest == payload
    else:
        assert put_key(key, rest) == payload
    repeats = Repeats()
    message = Sender().plain(payload)
    assert not repeats.repeated(message)
    assert repeats.stats.without_key == (key is None)


def test_what_cannot_be_read_is_said_in_words() -> None:
    whole = put_key(RowKey(QUERY, 1, 1), b"")
    for bad, why in (
        (b"", "no key"),
        (b"159.2", "no key"),
        (whole[:3], "a key is cut off: 3 of 40 bytes"),
        (whole[:39], "a key is cut off: 39 of 40 bytes"),
        (whole[:3] + b"\x02" + whole[4:], "a key of version 2, and this release reads 1"),
        (whole[:32] + b"\xff" * 8, "a key with numbers that are too large"),
    ):
        assert (key_problem(bad), split_key(bad)) == (why, (None, bad))
    for wrong in (
        RowKey(QUERY, -1, 0),
        RowKey(QUERY, 0, MAX_ROW + 1),
        RowKey(QUERY, 0, 0, MAX_PARTITION + 1),
    ):
        with pytest.raises(ValueError, match="too large for a key, or less than 0"):
            put_key(wrong, b"")


def test_what_a_group_says_besides_is_no_repeat() -> None:
    repeats, sender = Repeats(), Sender()
    plain, cut = sender.plain(b"hello"), sender.plain(b"\x93sr\x01")
    assert not any(map(repeats.repeated, [plain, plain, cut, cut, View(1, ()), None]))
    assert (repeats.stats.without_key, repeats.stats.unreadable, repeats.stats.rows) == (4, 2, 0)


def test_a_batch_that_was_half_there_is_completed() -> None:
    """The logger's disk is lost with batch 1 under way: the next start publishes it again."""
    repeats, first, second = Repeats(), Sender(1), Sender(2)
    before = [first.row(0, 0), first.row(1, 0), first.row(1, 2), first.row(1, 0, partition=3)]
    assert not any(map(repeats.repeated, before))
    again = [second.row(1, row, part) for part in (0, 3) for row in (0, 1, 2)] + [second.row(2, 0)]
    assert list(map(repeats.repeated, again)) == [True, False, True, True, False, False, False]


def test_two_senders_are_in_no_order() -> None:
    """What a logger sent before its disk was lost comes late, from another member."""
    repeats, first, second = Repeats(), Sender(1), Sender(2)
    assert not any(map(repeats.repeated, [first.row(0, 0), second.row(2, 0), second.row(3, 0)]))
    late = [first.row(1, 0), first.row(2, 0)]
    assert list(map(repeats.repeated, late)) == [False, True], "batch 1 was never there"


def test_what_a_session_is_given_again_is_known() -> None:
    """It begins anew where it acknowledged last, and the program kept what it had seen."""
    sender = Sender()
    sent = [sender.row(batch, row) for batch in range(5) for row in range(3)]
    repeats = Repeats()
    assert not any(map(repeats.repeated, sent[:10]))
    after = Repeats()
    after.restore(repeats.export())
    assert list(map(after.repeated, sent[2:])) == [True] * 8 + [False] * 5


def test_a_number_that_means_another_row_loses_nothing() -> None:
    """Spark gave other rows when it did the batch again; what is about another item is another row, too."""
    repeats, first, second = Repeats(), Sender(1), Sender(2)
    assert not any(map(repeats.repeated, [first.row(0, number, says=b"%d" % number) for number in range(3)]))
    moved = [second.row(0, number - 1, says=b"%d" % number) for number in range(1, 5)]
    assert not any(map(repeats.repeated, moved)), "twice, rather than lost"
    key = put_key(RowKey(QUERY, 9, 0), b"1")
    assert not any(map(repeats.repeated, [second.plain(key, "a"), Sender(3).plain(key, "b")]))


def test_an_item_and_what_is_said_of_it_do_not_run_together() -> None:
    """5 about s12 and 25 about s1 are as bytes the same; so is 12 about s, and s12 about nothing."""
    key = RowKey(QUERY, 0, 0)
    rows: list[tuple[str | None, bytes]] = [("s12", b"5"), ("s1", b"25"), ("s", b"125"), (None, b"s125")]
    for first, second in permutations(rows, 2):
        repeats = Repeats()
        assert not any(
            repeats.repeated(Sender(start).plain(put_key(key, says), item))
            for start, (item, says) in enumerate((first, second))
        )
        item, says = second
        assert repeats.repeated(Sender(3).plain(put_key(key, says), item))


@given(st.lists(st.tuples(st.integers(0, 40), st.integers(0, 3)), max_size=200))
def test_rows_come_in_any_order(rows: list[tuple[int, int]]) -> None:
    """They are kept in chunks: as a table would have them."""
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr("semcast.patterns.repeats._CHUNK", 4)
        kept, table = _Rows(), dict[int, int]()
        for row, contents in rows:
            expected = False if row not in table else True if table[row] == contents else None
            assert kept.seen(row, contents) is expected
            kept.put(row, contents)
            table[row] = contents
        assert (kept.numbers(), kept.sums()) == (sorted(table), [table[row] for row in sorted(table)])
        assert len(kept) == len(table)
        assert all(1 <= len(chunk.numbers) <= 4 for chunk in kept._chunks)


def test_partitions_of_a_row_each_are_bounded_too() -> None:
    """What a partition takes besides its rows counts."""
    repeats, sender = Repeats(rows=1000), Sender()
    for partition in range(300):
        assert not repeats.repeated(sender.row(0, 7, partition))
    [query] = repeats._queries.values()
    assert len(query.rows[0]) == 1000 // 65
    assert repeats.stats.forgotten == 300 - 1000 // 65
    again = Sender(2)
    assert sum(repeats.repeated(again.row(0, 7, partition)) for partition in range(300)) == 1000 // 65
    small = Repeats(rows=1000, queries=1)
    small.restore(repeats.export())
    assert small._size == repeats._size == 65 * (1000 // 65)


def test_memory_is_bounded_and_says_what_it_forgot() -> None:
    room = 10 + 2 * _PARTITION
    repeats, sender = Repeats(queries=3, rows=room), Sender()
    for number in range(100):
        assert not repeats.repeated(sender.row(0, 0, query=UUID(int=number)))
    assert len(repeats._queries) == 3
    assert repeats._size <= room
    assert repeats.stats.forgotten >= 97
    for batch in range(50):
        for row in range(4):
            assert not repeats.repeated(sender.row(batch, row))
    [*_, query] = repeats._queries.values()
    assert set(query.rows) == {0, 49}, "the first batch of a sender, and its last"
    assert query.count(0) + query.count(49) == 8
    for row in range(30):
        assert not repeats.repeated(sender.row(50, row))
    again = Sender(2)
    assert sum(repeats.repeated(again.row(50, row)) for row in range(30)) == 30
    for row in range(300):
        assert not repeats.repeated(sender.row(51, row))
    assert repeats._size == room
    again = Sender(3)
    assert sum(repeats.repeated(again.row(51, row)) for row in range(300)) == room - _PARTITION
    for incarnation in range(4, 60):
        repeats.repeated(Sender(incarnation).row(60 + incarnation, 0))
    assert len(query.senders) == 8
    with pytest.raises(ValueError, match="1 or more of each"):
        Repeats(queries=0)


def test_what_was_not_exported_is_refused() -> None:
    repeats = Repeats()
    repeats.repeated(Sender().row(0, 0))
    saved = repeats.export()
    for bad in (b"", b"{}", saved[:-1], b"\xc0" + saved[1:]):
        with pytest.raises(ValueError, match="no repeats that were exported"):
            Repeats().restore(bad)
    assert repeats.repeated(Sender(2).row(0, 0))


# Runs: loggers lose their disks, members get senders in any order, sessions are given messages again.


def run(seed: int) -> list[Message]:
    """What one member is given: of each sender a piece of its stream, some of it again."""
    rng = Random(seed)
    streams: list[list[Message]] = []
    batch = 0
    shapes: dict[int, list[tuple[int, int]]] = {}
    for incarnation in range(1, rng.randint(2, 5)):
        sender, sent = Sender(incarnation), []
        for _ in range(rng.randint(1, 4)):
            if batch not in shapes:
                shapes[batch] = [
                    (part, row) for part in range(rng.randint(1, 3)) for row in range(rng.randint(1, 5))
                ]
            sent += [sender.row(batch, row, part) for part, row in shapes[batch] if rng.random() < 0.9]
            batch += 1
        batch -= rng.random() < 0.7  # Spark does not know that its last batch was published
        if rng.random() < 0.5:
            sent = sent[: rng.randint(0, len(sent))]  # the rest is lost with the disk
        streams.append(sent)
    given: list[Message] = []
    ahead = [0] * len(streams)
    while any(at < len(stream) for at, stream in zip(ahead, streams, strict=True)):
        which = rng.randrange(len(streams))
        for _ in range(rng.randint(1, 6)):
            if ahead[which] < len(streams[which]):
                given.append(streams[which][ahead[which]])
                ahead[which] += 1
        if rng.random() < 0.1:
            ahead[which] = max(0, ahead[which] - rng.randint(1, 8))  # the program starts again
    return given


def judge(make: Callable[[], Repeats], given: Sequence[Message]) -> str:
    """What a helper does wrong, or nothing: every row counts once, the first time that it comes."""
    repeats = make()
    kept: Counter[bytes] = Counter(each.payload for each in given if not repeats.repeated(each))
    if set(kept) != {each.payload for each in given}:
        return "lost"
    if max(kept.values(), default=0) > 1:
        return "twice"
    ends = {end for query in repeats._queries.values() for end in query.ends()}
    return "" if all(set(query.rows) <= ends for query in repeats._queries.values()) else "never forgets"


class Forgetful(Repeats):
    """Of a batch nothing is remembered as soon as another one begins anywhere."""

    def _let_go(self, query: _Query) -> None:
        for each in self._queries.values():
            for batch in list(each.rows):
                self._drop(each, batch)


class Hoarder(Repeats):
    """Remembers all rows of all batches."""

    def _let_go(self, query: _Query) -> None: ...


class Orderly(Repeats):
    """Believes that what is of an earlier batch has come before, whoever sends it."""

    newest = 0

    def _seen(self, query: _Query, batch: int, partition: int, row: int, contents: int) -> bool:
        self.newest = max(self.newest, batch)
        return batch < self.newest or super()._seen(query, batch, partition, row, contents)


class Counting(Repeats):
    """Remembers how far each partition came, and not which rows were missing before."""

    def __init__(self) -> None:
        super().__init__()
        self.marks: dict[tuple[int, int], int] = {}

    def _seen(self, query: _Query, batch: int, partition: int, row: int, contents: int) -> bool:
        before = self.marks.get((batch, partition), -1)
        self.marks[batch, partition] = max(before, row)
        return row <= before


class Deaf(Repeats):
    """Nothing is a repeat."""

    def repeated(self, message: object) -> bool:
        super().repeated(message)
        return False


@settings(max_examples=300, deadline=None)
@given(st.integers(0, 1 << 32))
def test_every_row_counts_once_in_any_run(seed: int) -> None:
    assert judge(Repeats, run(seed)) == ""


@settings(max_examples=100, deadline=None)
@given(st.integers(0, 1 << 32))
def test_what_was_kept_beside_goes_on(seed: int) -> None:
    """A program that starts again at every tenth message, with what it exported."""
    kept: Counter[bytes] = Counter()
    repeats, given = Repeats(), run(seed)
    for number, each in enumerate(given):
        if number % 10 == 0:
            saved = repeats.export()
            repeats = Repeats()
            repeats.restore(saved)
        if not repeats.repeated(each):
            kept[each.payload] += 1
    assert kept == Counter({each.payload for each in given})


@settings(max_examples=100, deadline=None)
@given(st.integers(0, 1 << 32), st.integers(1, 2), st.integers(1, 12) | st.integers(64, 200))
def test_with_too_little_room_nothing_is_lost(seed: int, queries: int, rows: int) -> None:
    assert judge(lambda: Repeats(queries=queries, rows=rows), run(seed)) != "lost"


@pytest.mark.parametrize(
    ("wrong", "how"),
    [
        (Forgetful, "twice"),
        (Hoarder, "never forgets"),
        (Orderly, "lost"),
        (Counting, "lost"),
        (Deaf, "twice"),
    ],
)
def test_a_helper_that_is_wrong_is_caught(wrong: type[Repeats], how: str) -> None:
    assert how in {judge(wrong, run(seed)) for seed in range(50)}
