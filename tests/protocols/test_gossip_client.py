"""Programs that are no members ask a logger for positions, and give it batches (ours; spec, correction 3)."""

from random import Random
from types import NoneType
from typing import Any

import msgspec
import pytest
from tests.protocols.gossiplab import GossipLab

from semcast.core import Frame, Item, MemberId, Outbox
from semcast.core.annotations import Enumeration
from semcast.core.ids import MILLISECOND, SECOND, MessageId
from semcast.group.logpages import run_of
from semcast.lab.disk import Disk
from semcast.lab.seat import Seat
from semcast.protocols.gossip import LogClient, Logger, Member
from semcast.protocols.gossip.client import Page, Question, Result
from semcast.protocols.gossip.queries import Ask, Denied, End, Found, Lines, Put, Read, Taken, Told

ASKER = MemberId("asker")


class Asking(GossipLab):
    """With a program that asks; it is in nobody's list."""

    def __init__(self, **given: Any) -> None:
        super().__init__(**given)
        self.client = LogClient(ASKER, "", Random(1), Outbox())
        seat = self.add(ASKER, self.client)
        seat.start()
        self.run(20 * MILLISECOND)

    def begin(self, question: Question) -> list[Result]:
        found: list[Result] = []
        self.seats["asker"].call(lambda _stack, now: self.client.ask(now, question, found.append))
        self.flow()
        return found

    def ask(self, question: Question) -> Result:
        [answer] = self.begin(question)
        return answer


def put(key: bytes, *payloads: bytes) -> list[Put]:
    return [Put(0, 0, key, n, len(payloads), [(each, None)]) for n, each in enumerate(payloads)]


def payloads(answer: Result) -> list[bytes]:
    assert isinstance(answer, Page), answer
    return [payload for lines in answer.lines for payload in lines.payloads]


def test_positions_are_read_by_a_program_that_is_no_member() -> None:
    lab = Asking()
    for number in range(5):
        lab.seats["p"].multicast(b"%d" % number)
        lab.flow()
    lab.update("q", b"x")
    lab.flow()
    told = lab.ask(Ask(0, 0, "ends"))
    assert isinstance(told, Told)
    assert (told.first, told.next) == (0, 6)
    assert payloads(lab.ask(Read(0, 0, 1, 4, 1000, 1000))) == [b"1", b"2", b"3"]
    page = lab.ask(Read(0, 0, 3, 100, 2, 1000))
    assert isinstance(page, Page)
    assert (payloads(page), page.next) == ([b"3", b"4"], 5)
    rest = lab.ask(Read(0, 0, page.next, 100, 1000, 1000))
    assert isinstance(rest, Page)
    assert (payloads(rest), rest.next, rest.lines[0].sender) == ([b"x"], 6, MemberId("q"))
    at = lab.ask(Ask(0, 0, "time", rest.lines[0].at))
    assert isinstance(at, Told)
    assert at.first == 5
    stack = lab.seats["p"].stack
    assert isinstance(stack, Member)
    assert ASKER not in stack.view().members, "who asks is no member"
    logger = lab.seats["log"].stack
    assert isinstance(logger, Logger)
    assert ASKER not in logger.view().members


def test_a_position_beyond_either_end_is_said() -> None:
    lab = Asking(log_bytes=4)
    for number in range(4):
        lab.seats["p"].multicast(b"%04d" % number)
        lab.run(50 * MILLISECOND)
    for lo, why in ((9, "beyond the end of the log, which is 4"), (0, "was trimmed: the log begins at 3")):
        denied = lab.ask(Read(0, 0, lo, 10, 10, 100))
        assert isinstance(denied, Denied)
        assert denied.trouble == "offset"
        assert why in denied.why


def test_a_batch_is_logged_once_for_its_key() -> None:
    lab = Asking()
    first = lab.ask(put(b"k", b"1", b"2"))
    again = lab.ask(put(b"k", b"1", b"2"))
    assert isinstance(first, Taken)
    assert isinstance(again, Taken)
    assert (first.position, first.known, again.position, again.known) == (0, False, 0, True)
    lab.run(SECOND)
    assert lab.got("p") == [b"1", b"2"]


def test_what_is_not_answered_is_asked_again() -> None:
    """Parts of an answer, or of a batch, are lost; then the logger is away for a while."""
    lab = Asking()
    lost: list[Frame] = []

    def carries(_source: str, _dest: str, frame: Frame) -> bool:
        if isinstance(frame, Lines | Put) and len(lost) < 2 and type(frame) not in map(type, lost):
            lost.append(frame)
            return False
        return True

    lab.carries = carries
    taken = lab.begin(put(b"k", b"1", b"2"))
    assert not taken
    lab.run(SECOND)
    page = lab.begin(Read(0, 0, 0, 10, 10, 100))
    assert not page
    lab.run(SECOND)
    assert [type(each) for each in lost] == [Put, Lines]
    assert isinstance(taken[0], Taken)
    assert payloads(page[0]) == [b"1", b"2"]
    lab.seats["log"].crash()
    later = lab.begin(put(b"l", b"3"))
    lab.run(SECOND)
    assert not later
    lab.restart("log")
    lab.run(SECOND)
    assert isinstance(later[0], Taken)
    assert (later[0].position, lab.client.log) == (2, 1)


def test_another_log_is_refused() -> None:
    lab = Asking()
    lab.ask(put(b"k", b"1"))
    lab.seats["log"].crash()
    lab.disk = Disk()
    lab.restart("log")
    found = lab.begin(Read(0, 0, 0, 10, 10, 100))
    batch = lab.begin(put(b"k", b"1"))
    lab.run(SECOND)
    for answer in (*found, *batch):
        assert isinstance(answer, Denied)
        assert answer.trouble == "log"
        assert "this is log 2" in answer.why
    assert len(found) == len(batch) == 1


def test_what_can_never_be_is_said() -> None:
    lab = Asking()
    large = lab.ask([Put(0, 0, b"k", n, 40, [(bytes(32768), None)]) for n in range(40)])
    assert isinstance(large, Denied)
    assert "1048576 bytes at most" in large.why
    wrong = lab.ask(Ask(0, 0, "forget", 0, "nobody"))
    assert isinstance(wrong, Denied)
    assert "there is no other logger 'nobody'" in wrong.why


def test_who_asks_too_much_takes_no_memory() -> None:
    """Batches that never become whole leave."""
    lab = Asking()
    log: Seat = lab.seats["log"]
    stack = log.stack
    assert isinstance(stack, Logger)
    for serial in range(200):
        log.hear(ASKER, Put(serial, 0, b"k", 0, 2, [(bytes(1000), None)]))
    assert len(stack.answering._batches) <= 64


def test_frames_are_bounded() -> None:
    for wrong in (
        Read(0, 0, 0, 1, 0, 1),
        Read(0, 0, 0, 1, 1 << 20, 1),
        Put(0, 0, b"", 0, 1, []),
        Put(0, 0, b"k", 5000, 1, []),
    ):
        data = msgspec.msgpack.encode(wrong)
        with pytest.raises(msgspec.ValidationError):
            msgspec.msgpack.decode(data, type=type(wrong))


def test_a_client_may_want_a_certain_logger() -> None:
    out = Outbox()
    client = LogClient(ASKER, "log2", Random(1), out)
    client.start(0)
    client.on_frame(0, MemberId("log1"), Found(0, 1))
    assert client.phase() == "joining"
    client.on_frame(0, MemberId("log2"), Found(0, 1))
    assert client.phase() == "client"
    assert client.settled()
    client.on_frame(0, MemberId("log2"), End(77, 0, 0, 0))  # awaited by nobody
    for _ in range(64):
        client.ask(0, Ask(0, 0, "ends"), lambda _: None)
    with pytest.raises(ValueError, match="64 questions are under way"):
        client.ask(0, Ask(0, 0, "ends"), lambda _: None)


def test_pages_have_annotations_and_gaps() -> None:
    """Messages that left, items, and other annotations, in parts that fit into datagrams."""
    lab = Asking(log_bytes=1 << 20)
    for number in range(3):
        lab.update("p", b"%d" % number)
    lab.seats["p"].multicast(b"event")
    lab.seats["p"].multicast(b"named", annotation=Enumeration((MessageId(MemberId("p"), 4),)))
    for number in range(60):
        lab.seats["p"].multicast(bytes(1000) + b"%d" % number)
    lab.run(SECOND)
    page = lab.ask(Read(0, 0, 0, 1000, 1000, 1 << 17))
    assert isinstance(page, Page)
    assert len(page.lines) >= 4, "16 KiB in a part"
    entries = [entry for lines in page.lines for entry in run_of(lines).entries()]
    assert [entry.position for entry in entries] == list(range(2, 65)), "the first two were replaced"
    assert [entry.message.id.seq for entry in entries] == list(range(3, 66))
    assert [type(entry.message.annotation) for entry in entries[:3]] == [Item, NoneType, Enumeration]
    told = lab.ask(Ask(0, 0, "ends"))
    assert isinstance(told, Told)
    assert told.newest <= told.settled
    with pytest.raises(ValueError, match="a page that no logger sends"):
        run_of(msgspec.structs.replace(page.lines[-1], offsets=[0, 1, 2] * 1000))


def test_who_does_not_wait_any_more_asks_no_more() -> None:
    lab = Asking()
    lab.seats["log"].crash()
    found: list[Result] = []
    done = found.append
    lab.seats["asker"].call(lambda _stack, now: lab.client.ask(now, Ask(0, 0, "ends"), done))
    lab.client.drop(done)
    lab.restart("log")
    lab.run(SECOND)
    assert not found
