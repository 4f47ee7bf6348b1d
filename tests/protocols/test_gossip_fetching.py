"""Who comes late, or back, catches up from the log at its own pace, not by rounds."""

import sys
from random import Random
from types import FrameType
from typing import Any

import pytest
from tests.protocols.gossiplab import GossipLab

from semcast.core import Batch, Item, Outbox
from semcast.core.events import Away, Delivery, Purged
from semcast.core.ids import MILLISECOND, SECOND, MemberId
from semcast.core.outgoing import Outgoing
from semcast.lab import Keeper
from semcast.lab.seat import Seat
from semcast.protocols.gossip import Logger, Member, Protocol
from semcast.protocols.gossip.data import Data
from semcast.protocols.gossip.fetching import WINDOW, WINDOW_BYTES
from semcast.protocols.gossip.frames import Want
from semcast.protocols.gossip.streams import WANTED
from semcast.protocols.gossip.timers import GossipTimer

MANY = 3000
LIVES, EACH = 12, 200
ROUND = 100 * MILLISECOND


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
    assert stack.receiver.held() + stack.receiver.queue.messages <= 50 + 100
    lab.seats["r"].reads = True
    lab.seats["r"].run()
    lab.run(SECOND)
    assert len(lab.got("r")) == MANY


def many_streams(**given: Any) -> GossipLab:
    """The same with a log of many streams, of which one message in two was replaced."""
    lab = GossipLab(repairs_per_second=1_000_000, window=EACH, report=SECOND, **given)
    lab.seats["r"].crash()
    lab.seats["q"].reads = False  # what was replaced has a receipt, as long as a session is behind
    for _ in range(LIVES):
        for number in range(EACH):
            lab.seats["p"].multicast(b"%d" % number, annotation=Item("x") if number % 2 else None)
        lab.run(20 * MILLISECOND)
        lab.restart("p")
        lab.run(20 * MILLISECOND)
    lab.run(3 * SECOND)
    return lab


def test_all_streams_share_one_window() -> None:
    """A logger sends what was asked for, and nobody asks for more than a window, however many streams."""
    lab = many_streams(queue_messages=LIVES * EACH, hold=100)
    under_way: list[int] = []

    def carries(source: str, dest: str, frame: object) -> bool:
        if (source, dest) == ("log", "r") and isinstance(frame, Data):
            under_way.append(sum(letter.dest == "r" for letter in lab.wire))
        return True

    lab.carries = carries
    lab.restart("r")
    lab.run(5 * SECOND)
    assert len(lab.got("r")) == LIVES * (EACH // 2 + 1)
    assert max(under_way) <= min(WINDOW, 100) + 20  # and what else a logger says meanwhile


@pytest.mark.parametrize("protocol", [Protocol.LBRM, Protocol.RPBCAST])
def test_what_is_lost_while_somebody_catches_up_is_asked_for_as_usual(protocol: Protocol) -> None:
    """lbrm 30041: it is not old, so it was not fetched; and nobody else was asked for a stream that is."""
    lab = late(protocol=protocol, queue_messages=MANY)
    heal = lab.stop(Data, dest="r")
    lab.run(SECOND // 10)
    lab.seats["p"].multicast(b"lost")
    lab.run(SECOND // 10)
    heal()
    lab.run(5 * SECOND)
    assert lab.got("r")[-1] == b"lost"
    assert len(lab.got("r")) == MANY + 1


def test_the_window_is_so_many_bytes_whatever_messages_have() -> None:
    """What is under way has to fit into the buffer of a socket: of large messages there are few."""
    size, count = 16 << 10, 600
    lab = GossipLab(repairs_per_second=1_000_000, window_bytes=1 << 26, hold=4 * count, queue_messages=count)
    lab.seats["r"].crash()
    lab.run(SECOND)
    for number in range(count):
        lab.seats["p"].multicast(bytes([number % 256]) * size)
        lab.run(5 * MILLISECOND)
    lab.run(2 * SECOND)
    under_way: list[int] = []

    def carries(source: str, dest: str, frame: object) -> bool:
        if (source, dest) == ("log", "r") and isinstance(frame, Data):
            under_way.append(sum(letter.dest == "r" for letter in lab.wire))
        return True

    lab.carries = carries
    lab.restart("r")
    lab.run(5 * SECOND)
    assert [each[0] for each in lab.got("r")] == [number % 256 for number in range(count)]
    assert max(under_way) * size <= 2 * WINDOW_BYTES, "the first answer, of which nobody knew how large it is"
    assert max(under_way[-count // 2 :]) * size <= WINDOW_BYTES


def test_a_program_that_does_not_read_makes_its_member_ask_for_nothing() -> None:
    """Once its queue is full, and all that may be held is, for all streams together."""
    lab = many_streams(queue_messages=100, hold=500)
    r = lab.restart("r")
    r.reads = False
    lab.run(2 * SECOND)
    asked: list[Want] = []

    def carries(source: str, _dest: str, frame: object) -> bool:
        if source == "r" and isinstance(frame, Want):
            asked.append(frame)
        return True

    lab.carries = carries
    lab.run(3 * SECOND)
    stack = r.stack
    assert isinstance(stack, Member)
    assert (stack.receiver.queue.messages, stack.receiver.held()) == (100, 500)
    assert not asked
    assert not [each for each in r.events if isinstance(each, Away)]
    r.reads = True
    r.run()
    lab.run(5 * SECOND)
    assert len(lab.got("r")) == LIVES * (EACH // 2 + 1)


class Answers(Keeper):
    """Answers each message of others from where it reads it."""

    def __init__(self) -> None:
        super().__init__()
        self.seat: Seat | None = None
        self.answered = 0

    def on_delivery(self, each: Delivery) -> None:
        super().on_delivery(each)
        if isinstance(each, Batch) and self.seat is not None and each.sender != self.seat.member:
            self.answered += len(each.payloads)
            self.seat.send_or_wait(Outgoing([b"answer"] * len(each.payloads)))


def test_who_answers_all_it_reads_catches_up_with_a_whole_log() -> None:
    """Its answers wait for room behind what it has yet to read, and for the logger: neither stops it."""
    lab = many_streams(queue_messages=50, hold=100, reserve_messages=200)
    application = Answers()
    member = MemberId("r", 1)
    stack = Member(member, lab.known, lab.settings, Random(1), Outbox())
    seat = application.seat = lab.add(member, stack, application)
    seat.start()
    lab.run(5 * SECOND)
    assert application.answered == LIVES * (EACH // 2 + 1)
    assert len(lab.got("r")) == 2 * application.answered, "and it is given its answers"
    assert stack.sender.logged == stack.sender.seq == application.answered
    assert not [each for each in seat.events if isinstance(each, Away)]
    log = lab.seats["log"].stack
    assert isinstance(log, Logger)
    assert log.books.streams[member].logged == application.answered


def test_a_round_costs_by_gaps_and_not_by_messages() -> None:
    """Chaos, seed 403: with some thousands held between some thousands skipped a round took 100 ms.

    All that such a member did was to look for what it lacked, which was nothing; its logger's answers lay
    there until it took itself for one that is away.
    """
    lab = many_streams(queue_messages=10, hold=LIVES * EACH)
    r = lab.restart("r")
    r.reads = False
    lab.run(5 * SECOND)
    stack = r.stack
    assert isinstance(stack, Member)
    assert stack.receiver.held() > LIVES * EACH // 4
    calls = 0

    def count(_frame: FrameType, what: str, _argument: object) -> None:
        nonlocal calls
        calls += what == "call"

    sys.setprofile(count)
    try:
        r.fire(GossipTimer.ROUND)
    finally:
        sys.setprofile(None)
    assert calls < 50 * LIVES


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
    assert [stream.merged_from(*each) for each in ((1, 500), (50, 500), (1, 20))] == [199, 199, 20]


def test_who_is_far_behind_is_told_in_spans_what_was_replaced() -> None:
    """And by what, if it is not much: a notice names the replacement of each."""
    lab = GossipLab(window=1000, report=SECOND)
    lab.seats["r"].crash()
    lab.seats["q"].reads = False
    for number in range(300):
        lab.update("p", b"%d" % number, f"item {number % 10}")
    lab.run(2 * SECOND)
    for number in range(20):
        lab.seats["p"].multicast(b"event")
        lab.update("p", b"%d" % number, "another")
    lab.run(2 * SECOND)
    r = lab.restart("r")
    lab.run(2 * SECOND)
    assert lab.purged("r") == [*range(1, 291), *range(302, 340, 2)]
    assert len(lab.got("r")) == 10 + 20 + 1
    receipts = [each for each in r.events if isinstance(each, Purged)]
    assert max(each.count for each in receipts if each.by is None) > 100
    assert len(receipts) < 100


@pytest.mark.parametrize("protocol", [Protocol.LBRM, Protocol.RPBCAST])
def test_who_did_not_read_for_long_catches_up_in_windows(protocol: Protocol) -> None:
    """It was there, and has heard of everything; what it had no room for it does not ask for once a round."""
    lab = GossipLab(
        protocol=protocol, hold=1000, queue_messages=100, gossip_period=ROUND, repairs_per_second=1_000_000
    )
    lab.run(20 * ROUND)
    lab.seats["r"].reads = False
    count = 20 * WANTED
    for first in range(0, count, 128):
        lab.seats["p"].multicast(*(b"%d" % number for number in range(first, first + 128)))
        lab.run(2 * MILLISECOND)
    lab.run(20 * ROUND)
    assert len(lab.got("q")) == count
    lab.seats["r"].reads = True
    lab.seats["r"].run()
    lab.run(4 * ROUND)
    assert lab.got("r") == lab.got("q")


def test_streams_are_caught_up_with_in_turn() -> None:
    """A program that reads slowly is given something of each, and not all of one before the next."""
    lab = GossipLab(hold=1000, queue_messages=100, gossip_period=ROUND, repairs_per_second=1_000_000)
    lab.run(20 * ROUND)
    lab.seats["r"].reads = False
    for first in range(0, 10 * WANTED, 128):
        for name in ("p", "q"):
            lab.seats[name].multicast(*(b"%d" % number for number in range(first, first + 128)))
        lab.run(2 * MILLISECOND)
    lab.run(20 * ROUND)
    r = lab.seats["r"]
    assert isinstance(r.stack, Member)
    for _ in range(6 * WANTED):
        r.read(1)
        lab.run(MILLISECOND // 10)
    taken = {sender.name: stream.next for sender, stream in r.stack.receiver.streams.items()}
    assert min(taken["p"], taken["q"]) > WANTED
