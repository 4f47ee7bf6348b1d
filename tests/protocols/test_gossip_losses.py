"""What a program is told of messages that nobody will ever give it."""

from tests.protocols.gossiplab import GossipLab

from semcast.core.events import Confirmed, Lost
from semcast.core.ids import MILLISECOND, SECOND, MemberId, MessageId
from semcast.protocols.gossip import Member, Protocol
from semcast.protocols.gossip.data import Data

MANY = 300


def test_a_program_that_does_not_read_is_told_of_few_long_spans() -> None:
    """Without a logger, what no peer has any more is lost; its program does something else for long."""
    lab = GossipLab(
        loggers=(), protocol=Protocol.PBCAST, queue_messages=10, hold=10, gc_rounds=1, gossip_rounds=1
    )
    q = lab.seats["q"]
    q.reads = False
    for number in range(MANY):
        lab.seats["p"].multicast(b"%d" % number)
        lab.run(20 * MILLISECOND)
    lab.run(SECOND)
    assert isinstance(q.stack, Member)
    assert not lab.lost("q")
    assert q.stack.receiver.lost
    q.reads = True
    q.run()
    got, lost = lab.got("q"), lab.lost("q")
    assert got[:10] == [b"%d" % number for number in range(10)]
    assert 0 < len(lost) <= 10 + 1  # one after each that was held, at most
    assert {each.sender for each in lost} == {MemberId("p")}
    assert len(got) + sum(each.last - each.first + 1 for each in lost) == MANY


def test_spans_of_one_cause_are_merged_and_others_are_not() -> None:
    lab = GossipLab()
    lab.run(SECOND)
    stack = lab.seats["q"].stack
    assert isinstance(stack, Member)
    lab.seats["q"].reads = False
    stream = stack.receiver.open(MemberId("x"), 0, "")
    assert stream is not None
    for seq in range(1, 7):
        stack.receiver.lose(stream, [(seq, seq)], "expired")
    stack.receiver.lose(stream, [(7, 9)], "abandoned")
    x = MemberId("x")
    assert stack.receiver.losses() == [Lost(x, 1, 6, "expired"), Lost(x, 7, 9, "abandoned")]
    assert not stack.receiver.losses()


def test_a_sender_is_not_told_that_a_hole_is_logged() -> None:
    """Of 1 only its number is heard: the stream is closed without it, while its sender is cut off."""
    for protocol in (Protocol.LBRM, Protocol.RPBCAST):
        lab = GossipLab(protocol=protocol, silence=300 * MILLISECOND)
        lab.run(SECOND)
        lab.stop(Data)
        lab.seats["p"].multicast(b"1")
        lab.run(15 * MILLISECOND)
        lab.seats["p"].call(lambda stack, now: stack.confirm(now, 7, safe=True))
        lab.run(15 * MILLISECOND)
        lab.carries = lambda source, dest, _frame: "p" not in (source, dest)
        lab.run(SECOND)
        assert [(note.sender, note.seq) for note in lab.notes("log", "closed")] == [(MemberId("p"), 1)]
        lab.carries = lambda *_: True
        lab.run(SECOND)
        p = lab.seats["p"]
        assert p.stack.phase() == "left"
        assert not lab.notes("p", "letgo")
        assert p.stack.unsettled() == (MessageId(MemberId("p"), 1),)
        assert not any(isinstance(each, Confirmed) for each in p.events)
