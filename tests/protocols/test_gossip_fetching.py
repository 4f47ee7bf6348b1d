"""Who comes late, or back, catches up from the log at its own pace, not by rounds."""

from typing import Any

from tests.protocols.gossiplab import GossipLab

from semcast.core.ids import MILLISECOND, SECOND, MemberId
from semcast.protocols.gossip import Logger, Member

MANY = 3000


def late(**given: Any) -> GossipLab:
    """There is a log of many messages before r comes, and a round takes a second."""
    lab = GossipLab(gossip_period=SECOND, repairs_per_second=1_000_000, **given)
    heal = lab.stop(source="r")
    lab.seats["r"].crash()
    lab.run(2 * SECOND)
    heal()
    sent = 0
    while sent < MANY:
        sent += lab.seats["p"].multicast(*[b"%d" % number for number in range(sent, min(MANY, sent + 200))])
        lab.run(5 * MILLISECOND)
    lab.run(2 * SECOND)
    lab.restart("r")
    return lab


def test_a_late_joiner_does_not_wait_for_rounds() -> None:
    lab = late()
    lab.run(SECOND // 2)
    assert lab.got("r") == [b"%d" % number for number in range(MANY)]


def test_a_slow_program_is_not_flooded() -> None:
    """A window, and what fills its queue, is all that is under way."""
    lab = late(queue_messages=50, hold=100)
    lab.seats["r"].reads = False
    lab.run(3 * SECOND)
    stack = lab.seats["r"].stack
    assert isinstance(stack, Member)
    assert stack.receiver.held() + stack.receiver.waiting <= 50 + 100
    lab.seats["r"].reads = True
    lab.seats["r"].run()
    lab.run(SECOND)
    assert len(lab.got("r")) == MANY


def test_merged_receipts_come_as_spans() -> None:
    """A log of one item: what every session is past is one notice, however much it was."""
    lab = GossipLab()
    lab.seats["r"].crash()
    lab.run(SECOND)
    for number in range(200):
        lab.update("p", b"%d" % number)
        lab.run(2 * MILLISECOND)
    lab.run(SECOND)
    stack = lab.seats["log"].stack
    assert isinstance(stack, Logger)
    stream = stack.books.streams[MemberId("p")]
    stream.merge(199)
    assert (stream.merged_from(1), stream.merged_from(50)) == (199, 199)
