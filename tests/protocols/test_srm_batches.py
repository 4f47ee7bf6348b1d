"""Batches through S-RM: many messages in a frame, frames around their limits, parts of batches."""

from typing import Any

import pytest

from semcast.protocols.semantic import Settings
from semcast.protocols.semantic.frames import Data

SETTINGS = Settings(buffer_messages=1000, frame_bytes=1300, senders=(0,))


@pytest.mark.parametrize("size", [0, 1, 12, 13, 64, 649, 650, 1299, 1300, 1301, 5000])
def test_a_batch_of_any_size_arrives_whole(make_lab: Any, size: int) -> None:
    lab = make_lab("pqr", SETTINGS)
    payloads = [bytes([number]) * size for number in range(100)]
    assert lab.multicast_many("p", payloads) == 100
    lab.carry()
    assert lab.read("q") == lab.read("p") == payloads


def test_small_messages_share_frames(make_lab: Any) -> None:
    lab = make_lab("pq", SETTINGS)
    lab.multicast_many("p", [bytes(60)] * 100)
    frames = [frame for _, _, frame in lab.wire]
    assert [len(frame.payloads) for frame in frames if isinstance(frame, Data)] == [20] * 5


def test_a_batch_is_cut_where_flow_control_says(make_lab: Any) -> None:
    lab = make_lab("pq", Settings(buffer_messages=10, senders=(0,)))
    assert lab.multicast_many("p", [b"%d" % n for n in range(30)]) == 10


def test_a_receiver_takes_the_part_it_has_room_for_and_asks_for_the_rest(make_lab: Any) -> None:
    lab = make_lab("pq", Settings(buffer_messages=10, senders=(0,)))
    q = lab.members["q"]
    lab.multicast_many("p", [b"%d" % n for n in range(10)])
    q.buffers.occupancy.add(0, 4, 0)  # four slots are taken
    lab.carry()
    assert q.buffers.queued == [6, 0]
    q.buffers.occupancy.remove(0, 4, 0)
    lab.request("q")
    lab.carry()
    lab.carry()
    assert lab.read("q") == [b"%d" % n for n in range(10)]


def test_a_repaired_part_of_a_batch_does_not_repeat_the_rest(make_lab: Any) -> None:
    lab = make_lab("pqr", SETTINGS)
    lab.multicast_many("p", [b"%d" % n for n in range(10)])
    [(_, _, frame)] = [entry for entry in lab.wire if entry[1] == "q"]
    lab.drop()
    q = lab.members["q"]
    for first, last in ((4, 6), (5, 9), (1, 4), (3, 10), (1, 10)):
        lab.hear("q", "p", Data(0, first, frame.payloads[first - 1 : last]))
    assert lab.read("q") == [b"%d" % n for n in range(10)]
    assert q.stats.duplicates > 0
    assert q.buffers.occupancy.messages == q.buffered()


def test_partial_delivery_keeps_the_books(make_lab: Any) -> None:
    lab = make_lab("pq", SETTINGS)
    lab.multicast_many("p", [b"%d" % n for n in range(10)])
    lab.carry()
    q = lab.members["q"]
    assert lab.read("q", 3) == [b"0", b"1", b"2"]
    for source, dest in (("p", "q"), ("q", "p")) * 3:
        lab.gossip(source, dest)
        lab.carry()
    assert q.buffers.stable == [10, 0]
    assert q.buffers.occupancy.messages == 0, "what is stable is kept for nobody"
    assert q.backlog.messages == q.buffered() == 7
    assert lab.read("q", 3) == [b"3", b"4", b"5"]
    assert q.backlog.messages == q.buffered() == 4
