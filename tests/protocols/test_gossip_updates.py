"""A frame carries a run of updates, each with its item: kept, repaired, written, replaced one by one."""

from random import Random

import msgspec
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from tests.protocols.gossiplab import GossipLab

from semcast.core import Enumeration, Item
from semcast.core.ids import MILLISECOND, SECOND, MemberId, MessageId
from semcast.core.messages import Batch, batch_of
from semcast.core.outgoing import Outgoing
from semcast.obsolescence import Purging
from semcast.protocols.gossip import Logger, Member
from semcast.protocols.gossip.buffer import Kept
from semcast.protocols.gossip.data import Data, data_of
from semcast.protocols.gossip.frames import Want
from semcast.protocols.gossip.log import LogStream
from semcast.protocols.gossip.records import Stored, StoredRun, decode
from semcast.protocols.gossip.streamruns import runs_of
from semcast.wire.annotations import WireItem

P = MemberId("p")
SHORT = 300 * MILLISECOND
PRICES = [(f"item {number % 10}", b"%05d" % number) for number in range(100)]
PAYLOADS = [payload for _, payload in PRICES]
ONCE = [(f"item {number}", b"%05d" % number) for number in range(100)]


def data_to(lab: GossipLab, name: str) -> list[Data]:
    frames = [frame for letter in lab.wire if letter.dest == name for frame in letter.frames]
    return [frame for frame in frames if isinstance(frame, Data)]


def items_at(lab: GossipLab, name: str) -> list[tuple[str, bytes]]:
    """What an application took, as updates."""
    messages = [
        message
        for each in lab.seats[name].application.taken  # type: ignore[attr-defined]
        if isinstance(each, Batch)
        for message in each.messages()
    ]
    return [
        (message.annotation.item, message.payload)
        for message in messages
        if isinstance(message.annotation, Item)
    ]


@pytest.mark.parametrize("notes", [[Item(f"i{number}") for number in range(40)], [None] * 40])
def test_messages_that_are_sent_one_by_one_in_a_turn_share_frames(notes: list[Item | None]) -> None:
    """Updates with updates, plain ones with plain ones; each is confirmed and kept by itself."""
    lab = GossipLab(frame_bytes=175, purging=Purging.OFF)
    lab.run(SHORT)
    p = lab.seats["p"]
    for number, note in enumerate(notes):
        p.handover.send(Outgoing([b"%05d" % number], note))
    p.run()
    frames = data_to(lab, "q")
    assert len(frames) < 10
    assert sum([len(frame.payloads) for frame in frames]) == 40
    assert all(sum(map(len, frame.payloads)) <= 175 for frame in frames)
    assert isinstance(p.stack, Member)
    kept = p.stack.desk.buffer.get(P)
    assert kept is not None
    assert [len(batch.payloads) for batch in kept.messages] == [1] * 40
    lab.run(SHORT)
    assert lab.got("q") == lab.got("r") == lab.got("p") == [b"%05d" % number for number in range(40)]
    assert [each for each, _ in items_at(lab, "q")] == [note.item for note in notes if note is not None]
    assert p.stack.sender.logged == 40


def test_messages_of_different_kinds_or_too_long_share_no_frame() -> None:
    lab = GossipLab(frame_bytes=60, purging=Purging.OFF)
    lab.run(SHORT)
    p = lab.seats["p"]
    enumeration = Enumeration((MessageId(P, 1),))
    for number, note in enumerate([None, Item("a"), Item("b"), enumeration, enumeration, None, None]):
        p.handover.send(Outgoing([b"%020d" % number], note))
    p.run()
    shapes = [(len(frame.payloads), frame.items) for frame in data_to(lab, "q")]
    assert shapes == [(1, None), (2, ["a", "b"]), (1, None), (1, None), (2, None)]
    lab.run(SHORT)
    assert len(lab.got("q")) == 7


def test_updates_that_are_handed_over_together_share_frames() -> None:
    lab = GossipLab(frame_bytes=175, purging=Purging.OFF)
    lab.run(SHORT)
    assert lab.updates("p", *PRICES) == 100
    frames = data_to(lab, "q")
    assert len(frames) == 10
    assert all(frame.items is not None and frame.annotation is None for frame in frames)
    lab.run(SHORT)
    assert items_at(lab, "q") == items_at(lab, "r") == PRICES


@pytest.mark.parametrize("purging", [Purging.EAGER, Purging.LAZY, Purging.OFF])
def test_a_program_that_does_not_read_is_given_the_last_of_each(purging: Purging) -> None:
    lab = GossipLab(purging=purging, queue_messages=200)
    lab.run(SHORT)
    q = lab.seats["q"]
    q.reads = False
    lab.updates("p", *PRICES)
    lab.run(SHORT)
    assert isinstance(q.stack, Member)
    if purging is not Purging.OFF:
        q.stack.receiver.reclaim()
    q.reads = True
    q.run()
    assert items_at(lab, "q") == (PRICES if purging is Purging.OFF else PRICES[-10:])
    assert len(lab.purged("q")) == (0 if purging is Purging.OFF else 90)


def test_a_filter_is_about_each_of_a_run() -> None:
    lab = GossipLab(filter="item 3", purging=Purging.OFF)
    lab.run(SHORT)
    lab.updates("p", *PRICES)
    lab.run(SHORT)
    assert items_at(lab, "q") == PRICES[3::10]


def test_lost_runs_of_updates_are_repaired_as_runs() -> None:
    """By a peer, and what was replaced and is logged is only said to be."""
    lab = GossipLab(frame_bytes=400)
    lab.run(SHORT)
    heal = lab.stop(Data, source="p", dest="q")
    lab.updates("p", *ONCE)
    lab.flow()
    heal()
    lab.run(SECOND)
    assert items_at(lab, "q") == ONCE
    heal = lab.stop(Data, source="p", dest="q")
    lab.updates("p", *PRICES)
    lab.flow()
    heal()
    lab.run(SECOND)
    had = items_at(lab, "q")[100:]
    assert had[-10:] == PRICES[-10:]
    assert len(had) + len(lab.purged("q")) == 100


def test_a_logger_writes_a_run_of_updates_as_one_record_and_finds_them_again() -> None:
    lab = GossipLab(compact=False)
    lab.run(SHORT)
    lab.seats["r"].crash()
    lab.updates("p", *ONCE)
    lab.run(SHORT)
    records = [decode(data) for data in lab.disk.records()]
    assert sum(isinstance(each, Stored) for each in records) == 0
    assert sum(isinstance(each, StoredRun) for each in records) <= 2
    lab.restart("log")
    lab.run(SHORT)
    log = lab.seats["log"].stack
    assert isinstance(log, Logger)
    stream = log.books.streams[P]
    assert (stream.logged, stream.size) == (len(ONCE), sum(len(payload) for _, payload in ONCE))
    assert stream.messages.note(7) == Item("item 6")
    lab.restart("r")
    lab.run(SECOND)
    assert items_at(lab, "r") == ONCE


def test_a_log_is_compacted_inside_a_run() -> None:
    lab = GossipLab()
    lab.run(SHORT)
    lab.seats["r"].crash()
    lab.updates("p", *PRICES)
    lab.run(SECOND)
    log = lab.seats["log"].stack
    assert isinstance(log, Logger)
    assert sorted(log.books.streams[P].messages) == list(range(91, 101))
    lab.restart("log")
    lab.restart("r")
    lab.run(SECOND)
    assert items_at(lab, "r") == PRICES[-10:]


def test_who_was_away_is_told_of_all_that_was_replaced_at_once() -> None:
    """Ten thousand updates of ten items: two windows would hold four thousand."""
    lab = GossipLab(window=1 << 14, start="all")
    lab.run(SHORT)
    lab.seats["r"].crash()
    for number in range(100):
        lab.updates("p", *[(item, b"%d" % number) for item, _ in PRICES])
    lab.run(SECOND)
    asked: list[Want] = []

    def carries(source: str, dest: str, frame: object) -> bool:
        if (source, dest) == ("r", "log") and isinstance(frame, Want):
            asked.append(frame)
        return True

    lab.carries = carries
    lab.restart("r")
    lab.run(SECOND)
    assert [payload for _, payload in items_at(lab, "r")] == [b"99"] * 10
    assert len(lab.purged("r")) == 9990
    assert len(asked) <= 3


def test_a_window_takes_a_part_of_a_run_and_the_rest_later() -> None:
    lab = GossipLab(window=30, purging=Purging.OFF)
    lab.run(SHORT)
    heal = lab.stop(Data, dest="log")
    assert lab.updates("p", *PRICES) == 30
    heal()
    lab.run(SHORT)
    assert lab.updates("p", *PRICES[30:]) == 30
    lab.run(SHORT)
    assert items_at(lab, "q") == PRICES[:60]


def test_messages_with_other_annotations_stay_alone() -> None:
    singles = [
        batch_of(P, 1, [b"a"]),
        batch_of(P, 2, [b"b"], Item("x")),
        batch_of(P, 3, [b"c"], Item("y")),
        batch_of(P, 5, [b"d"], Item("z")),
    ]
    found = [(each.first, each.payloads, each.items) for each in runs_of(singles, 1000)]
    assert found == [(1, [b"a"], None), (2, [b"b", b"c"], ["x", "y"]), (5, [b"d"], None)]


def test_frames_of_updates_that_nobody_sends_are_dropped_and_counted() -> None:
    lab = GossipLab()
    lab.run(SHORT)
    for name in ("q", "log"):
        seat = lab.seats[name]
        before = seat.stack.stats.malformed
        seat.hear(P, Data(P, 1, [b"x", b"y"], items=["a"]))
        seat.hear(P, Data(P, 1, [b"x"], WireItem("a"), items=["a"]))
        seat.hear(P, Data(P, 1, [b"x"], items=[]))
        assert seat.stack.stats.malformed == before + 3
    assert not lab.got("q")


def test_how_far_all_was_replaced_is_found_whoever_asks_from_where() -> None:
    stream = LogStream(P)
    for seq in (*range(1, 51), *range(52, 91)):
        stream.replace(seq, 100)
    assert [stream.replaced_from(first, 20) for first in (1, 1, 15, 40, 31)] == [20, 20, 34, 50, 50]
    assert [stream.replaced_from(first, 1000) for first in (52, 1, 60, 90)] == [90, 50, 90, 90]
    stream.merge(30)
    assert [stream.replaced_from(first, 20) for first in (31, 52, 32)] == [50, 71, 50]


NAMES = st.text(min_size=1, max_size=20)
RUNS = st.lists(st.tuples(NAMES, st.binary(max_size=30)), min_size=1, max_size=20)


@settings(deadline=None)
@given(RUNS, st.integers(1, 1 << 40))
def test_a_run_is_on_the_wire_what_it_was(updates: list[tuple[str, bytes]], first: int) -> None:
    payloads = [payload for _, payload in updates]
    run = Batch(P, first, payloads, size=sum(map(len, payloads)), items=[item for item, _ in updates])
    coded = msgspec.msgpack.decode(msgspec.msgpack.encode(data_of(run, 7)), type=Data)
    assert coded.batch == run


@given(st.lists(RUNS, min_size=1, max_size=6), st.randoms(use_true_random=False))
def test_runs_are_kept_and_logged_as_their_messages_would_be(
    runs: list[list[tuple[str, bytes]]], rng: Random
) -> None:
    """What comes in runs replaces the same as if it came one by one, in any order."""
    batches: list[Batch] = []
    first = 1
    for updates in runs:
        payloads, items = [payload for _, payload in updates], [item[0] for item, _ in updates]
        batches.append(Batch(P, first, payloads, size=sum(map(len, payloads)), items=items))
        first += len(updates)
    rng.shuffle(batches)
    whole, apart = (Kept(), LogStream(P)), (Kept(), LogStream(P))
    for batch in batches:
        for each in whole:
            each.add(batch) if isinstance(each, Kept) else each.store(batch)
        for single in batch.singles():
            for each in apart:
                each.add(single) if isinstance(each, Kept) else each.store(single)
    for seq in range(1, first):
        assert whole[0].replacement(seq, first) == apart[0].replacement(seq, first)
    assert whole[1].obsolete(1, first) == apart[1].obsolete(1, first)
    assert list(whole[1].messages.values()) == list(apart[1].messages.values())
    assert (whole[1].contiguous, whole[1].size) == (apart[1].contiguous, apart[1].size)
    for batch in batches:
        whole[0].drop(batch)
    assert not len(whole[0].messages)
    assert all(whole[0].replacement(seq, first) is None for seq in range(1, first))
