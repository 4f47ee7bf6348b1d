"""Very many messages wait for a program that has stopped: letting them in must not hold up a member."""

from unittest.mock import patch

from tests.protocols.vsync.vsynclab import MS, group

from semcast.protocols.semantic.buffers import Buffers


def test_what_waits_at_the_door_is_let_in_together_once_the_program_closes() -> None:
    lab = group("abc", buffer_messages=8192, queue_messages=64, window=8192)
    lab.run(2000 * MS)
    slow = lab.nodes["c"]
    slow.seat.reads = False
    for _ in range(10):
        for _ in range(200):
            lab.nodes["a"].multicast(b"plain")
        lab.run(50 * MS)
    stream = slow.stack.stream
    assert stream is not None
    [rank] = [rank for rank, door in enumerate(stream.buffers.door) if door]
    waiting = sum(len(batch.payloads) for batch in stream.buffers.door[rank])
    assert waiting > 1500
    with patch.object(Buffers, "admit", autospec=True, side_effect=Buffers.admit) as admit:
        slow.leave()
        lab.run(1000 * MS)
    assert not stream.buffers.door[rank]
    assert admit.call_count < waiting / 50
