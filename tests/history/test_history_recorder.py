"""What the recorder keeps, joins and leaves out."""

from zlib import crc32

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from semcast.core import Item, MemberId, MessageId, Purged, View
from semcast.core.messages import Batch, batch_of
from semcast.history import Event, History, Kind, Recorder, RunInfo

A, B = MemberId("a"), MemberId("b", 2)


def recorder() -> Recorder:
    return Recorder(RunInfo.one("run", "g", "s-rm", 7, (A, B), 40, uniform=False, quiesced=False))


def run_of(first: int, last: int, sender: MemberId = A) -> Batch:
    return batch_of(sender, first, [b"xy"] * (last - first + 1))


def test_each_kind_becomes_the_event_it_says() -> None:
    it = recorder()
    it.view(0, A, View(3, (A, B), primary=False))
    it.multicast(1, A, batch_of(A, 1, [b"xyz"], Item("i")))
    it.deliver(2, A, batch_of(A, 1, [b"xyz"], Item("i")))
    it.purge(3, A, Purged(MessageId(B, 4), MessageId(B, 6)))
    it.purge(4, A, Purged(MessageId(B, 5)))
    it.buffer(5, A, 12)
    it.crash(6, A)
    it.recover(7, A)
    it.apply(8, A, B, "d1")
    it.left(9, A)
    assert it.close(quiesced=True).events == (
        Event(A, 0, 0, Kind.VIEW, "g", view=3, level="non-primary", members=(A, B)),
        Event(A, 1, 1, Kind.MULTICAST, "g", A, 1, 1, 3, Item("i"), crc=crc32(b"xyz")),
        Event(A, 2, 2, Kind.DELIVER, "g", A, 1, 1, 3, crc=crc32(b"xyz")),
        Event(A, 3, 3, Kind.PURGE, "g", B, 4, 1, by=MessageId(B, 6)),
        Event(A, 4, 4, Kind.PURGE, "g", B, 5, 1),
        Event(A, 5, 5, Kind.BUFFER, "g", count=12),
        Event(A, 6, 6, Kind.CRASH, "g"),
        Event(A, 7, 7, Kind.RECOVER, "g"),
        Event(A, 8, 8, Kind.APPLY, "g", B, digest="d1"),
        Event(A, 9, 9, Kind.LEFT, "g"),
    )


def test_events_read_well() -> None:
    it = recorder()
    it.view(0, B, View(3, (A, B)))
    it.deliver(2, B, run_of(1, 5))
    it.purge(3, B, Purged(MessageId(A, 6), MessageId(A, 8)))
    it.buffer(4, B, 9)
    it.apply(5, B, A, "d1")
    it.crash(6, B)
    assert [str(event) for event in it.close(quiesced=True).events] == [
        "b#2[0] at 0 ns: view 3 of a, b#2",
        "b#2[1] at 2 ns: deliver (a,1..5)",
        "b#2[2] at 3 ns: purge (a,6) by (a,8)",
        "b#2[3] at 4 ns: buffer of 9 messages",
        "b#2[4] at 5 ns: apply to the state of a: d1",
        "b#2[5] at 6 ns: crash",
    ]


def test_events_are_numbered_at_each_process() -> None:
    it = recorder()
    for at in range(3):
        it.deliver(at, B, run_of(at + 1, at + 1))
        it.multicast(at, A, run_of(at + 1, at + 1))
    history = it.close(quiesced=True)
    assert [(event.process, event.index) for event in history.events] == [
        (process, index) for process in (A, B) for index in range(3)
    ]
    assert list(history.of(B)) == [event for event in history.events if event.process == B]


def test_info_says_whether_the_run_was_over() -> None:
    it = recorder()
    assert it.close(quiesced=True).info.quiesced
    assert not it.close(quiesced=False).info.quiesced


def test_members_without_events_are_processes_and_correct() -> None:
    it = recorder()
    it.crash(0, A)
    history = it.close(quiesced=True)
    assert (history.processes, history.gone, history.correct) == ((A, B), (A,), (B,))
    assert history.of(B) == ()


def test_only_a_new_high_water_mark_is_kept() -> None:
    it = recorder()
    for at, occupancy in enumerate([0, 3, 2, 3, 7, 1]):
        it.buffer(at, A, occupancy)
    it.buffer(9, B, 1)
    assert [(event.process, event.count) for event in it.close(quiesced=True).events] == [
        (A, 3),
        (A, 7),
        (B, 1),
    ]


@settings(deadline=None)
@given(st.lists(st.integers(1, 5), min_size=1, max_size=6), st.integers(0, 3))
def test_a_run_of_one_moment_is_one_row_however_it_was_cut(lengths: list[int], at: int) -> None:
    it = recorder()
    first = 1
    for length in lengths:
        it.multicast(at, A, run_of(first, first + length - 1))
        first += length
    count = sum(lengths)
    assert it.close(quiesced=True).events == (
        Event(A, 0, at, Kind.MULTICAST, "g", A, 1, count, 2 * count, crc=crc32(b"xy" * count)),
    )


def rows(history: History) -> list[tuple[int, int]]:
    return [(event.seq, event.count) for event in history.events]


def test_deliveries_of_annotated_messages_join_but_their_multicasts_do_not() -> None:
    it = recorder()
    for seq in (1, 2):
        it.multicast(0, A, batch_of(A, seq, [b""], Item("i")))
    for seq in (1, 2):
        it.deliver(0, A, batch_of(A, seq, [b""], Item("i")))
    assert rows(it.close(quiesced=True)) == [(1, 1), (2, 1), (1, 2)]


def test_what_says_more_stays_apart() -> None:
    it = recorder()
    it.multicast(0, A, run_of(1, 1))
    it.multicast(0, A, batch_of(A, 2, [b""], Item("i")))
    it.multicast(0, A, run_of(3, 3))
    for seq, by in [(1, None), (2, 9), (3, None)]:
        it.purge(0, B, Purged(MessageId(A, seq), None if by is None else MessageId(A, by)))
    assert rows(it.close(quiesced=True)) == [(1, 1), (2, 1), (3, 1)] * 2


@pytest.mark.parametrize(
    "second",
    [
        pytest.param((0, run_of(4, 4)), id="gap"),
        pytest.param((0, run_of(2, 2)), id="repeat"),
        pytest.param((0, run_of(1, 1)), id="back"),
        pytest.param((1, run_of(3, 3)), id="later"),
        pytest.param((0, run_of(3, 3, B)), id="other sender"),
    ],
)
def test_what_does_not_follow_at_once_stays_apart(second: tuple[int, Batch]) -> None:
    it = recorder()
    it.deliver(0, A, run_of(1, 2))
    at, batch = second
    it.deliver(at, A, batch)
    assert rows(it.close(quiesced=True)) == [(1, 2), (batch.first, 1)]


def test_other_events_in_between_keep_rows_apart() -> None:
    it = recorder()
    it.deliver(0, A, run_of(1, 1))
    it.apply(0, A, A, "d")
    it.deliver(0, A, run_of(2, 2))
    it.deliver(0, B, run_of(1, 1))
    it.deliver(0, A, run_of(3, 3))  # what another process does is not in between
    assert rows(it.close(quiesced=True)) == [(1, 1), (0, 0), (2, 2), (1, 1)]


def test_one_message_of_a_run() -> None:
    event = Event(A, 4, 9, Kind.DELIVER, "g", A, 5, 3, 30, order=100)
    assert event.only(6) == Event(A, 4, 9, Kind.DELIVER, "g", A, 6, 1, order=101)
