"""Replicated state by hand: what is sent, what may be left out, and what is seen of it."""

from random import Random

import pytest

from semcast.core import (
    Batch,
    Blocked,
    KEnumeration,
    MemberId,
    Message,
    MessageId,
    Outbox,
    Sent,
    View,
    ViewChange,
)
from semcast.core.events import StateReceived, StateRequested
from semcast.core.messages import batch_of
from semcast.obsolescence import obsoletes
from semcast.patterns import ReplicatedState, multicast_waiting, take
from semcast.protocols.vsync import VirtualSynchrony, VsyncSettings

P, Q = MemberId("p"), MemberId("q")


def drain(pattern: ReplicatedState, first: int = 1) -> list[Message]:
    """Everything that waits."""
    found = []
    seq = first
    while (message := pattern.waiting()) is not None:
        found.append(Message(MessageId(pattern.me, seq), *message))
        pattern.sent()
        seq += 1
    return found


def give(pattern: ReplicatedState, messages: list[Message]) -> None:
    for message in messages:
        pattern.on_delivery(Batch(message.sender, message.id.seq, [message.payload], message.annotation))


def view(number: int, *members: MemberId) -> ViewChange:
    return ViewChange(View(number, members))


def test_one_item_is_one_message_that_replaces_the_last() -> None:
    """Figure 3.6."""
    p = ReplicatedState(P)
    for item in "abaab":
        p.update(item, b"")
    found = [message.annotation for message in drain(p)]
    assert [each.positions() for each in found if isinstance(each, KEnumeration)] == [
        [],
        [],
        [1],
        [3, 1],
        [3, 2, 1],  # and what the others replaced: 3.4.2, last paragraph
    ]


def test_an_operation_is_seen_at_its_commit() -> None:
    """Figure 3.8."""
    p, q = ReplicatedState(P), ReplicatedState(Q)
    p.operation({"a": b"1", "b": b"1"})
    messages = drain(p)
    assert len(messages) == 3
    give(q, messages[:2])
    assert q.seen("p") == {}
    assert p.of("p") == {"a": b"1", "b": b"1"}
    give(q, messages[2:])
    assert q.seen("p") == {"a": b"1", "b": b"1"}
    p.update("a", None)
    give(q, drain(p, 4))
    assert q.seen("p") == {"b": b"1"}


def test_a_commit_that_outlived_an_update_waits_for_its_replacement() -> None:
    """{a,b} COMMIT {a} with its own commit in between: the first a is gone, its replacement still to come."""
    p, q = ReplicatedState(P), ReplicatedState(Q)
    p.operation({"a": b"1", "b": b"1"})
    p.update("c", b"2")
    p.operation({"a": b"3", "d": b"3"})
    _, b1, _, c2, a3, d3, commit = drain(p)
    give(q, [b1, c2])
    assert q.seen("p") == {}  # and not {b: 1, c: 2}, which has half of the first operation
    give(q, [a3, d3])
    assert q.seen("p") == {}
    give(q, [commit])
    assert q.seen("p") == {"a": b"3", "b": b"1", "c": b"2", "d": b"3"}


@pytest.mark.parametrize("seed", range(30))
def test_whatever_is_purged_the_end_is_the_same(seed: int) -> None:
    """3.4.3: any of the obsolete may be missing."""
    rng = Random(seed)
    p, q = ReplicatedState(P, k=rng.choice((2, 8, 64))), ReplicatedState(Q)
    for number in range(rng.randint(1, 25)):
        items = rng.sample("abcd", rng.randint(1, 3))
        p.operation(dict.fromkeys(items, rng.choice((None, b"%d" % number))))
    messages = drain(p)
    obsolete = [old for old in messages if any(obsoletes(new, old) for new in messages)]
    gone = [old for old in obsolete if rng.random() < 0.7]
    give(q, [message for message in messages if message not in gone])
    assert q.seen("p") == p.of("p")


def test_an_operation_never_spans_views() -> None:
    p, q = ReplicatedState(P), ReplicatedState(Q)
    for pattern in (p, q):
        pattern.on_delivery(view(1, P, Q))
    p.operation({"a": b"1", "b": b"1"})
    message = p.waiting()
    assert message is not None
    p.sent()
    give(q, [Message(MessageId(P, 1), *message)])
    for pattern in (p, q):
        pattern.on_delivery(view(2, P, Q))
    again = drain(p, 2)
    assert len(again) == 3
    give(q, again)
    assert q.seen("p") == {"a": b"1", "b": b"1"}


def test_what_a_writer_left_unfinished_disappears() -> None:
    p, q = ReplicatedState(P), ReplicatedState(Q)
    p.update("a", b"1")
    p.operation({"a": b"2", "b": b"2"})
    give(q, drain(p)[:-1])
    q.on_delivery(view(2, Q))
    assert q.seen("p") == {"a": b"1"}


def test_who_comes_back_goes_on_with_its_items() -> None:
    q = ReplicatedState(Q)
    p = ReplicatedState(P)
    p.operation({"a": b"1", "b": b"1"})
    give(q, drain(p))
    again = ReplicatedState(MemberId("p", 1))
    again.operation({"a": None, "c": b"2"})  # before it knows its items
    q.on_delivery(view(2, Q, again.me))
    again.on_delivery(StateReceived(2, q.export()))
    again.on_delivery(view(2, Q, again.me))
    assert again.of("p") == {"b": b"1", "c": b"2"}
    assert again.seen("p") == {"a": b"1", "b": b"1"}
    give(q, drain(again))
    assert q.seen("p") == again.of("p")
    assert q.writers() == ["p"]


def test_messages_of_others_are_refused() -> None:
    q = ReplicatedState(Q)
    q.on_delivery(batch_of(P, 1, [b"hello", b"\x93\x00"]))
    assert q.refused == 2
    assert q.writers() == []


class Full(VirtualSynchrony):
    """A stack that takes two messages, and delivers a request for the state."""

    def multicast(self, now, payloads, annotation=None, *, safe=False):  # type: ignore[no-untyped-def]
        self.taken = [*getattr(self, "taken", []), annotation]
        if len(self.taken) > 2:
            self.out.deliver(Blocked())
            return 0
        self.out.deliver(Sent(batch_of(self.me, 4 * len(self.taken), list(payloads), annotation), 1))
        return 1

    def deliver(self, now, most):  # type: ignore[no-untyped-def]
        return [StateRequested(7)]

    def provide(self, view: int, state: bytes) -> None:
        self.provided = view, state


def test_what_a_driver_does() -> None:
    """It stops where flow control says so, and hands over the state."""
    stack = Full(P, VsyncSettings(), Random(0), Outbox())
    p = ReplicatedState(P)
    for _ in range(4):
        p.update("a", b"")
    assert multicast_waiting(0, p, stack) == 2
    assert [tag.positions() for tag in stack.taken] == [[], [1], [2, 1]]
    take(0, p, stack, 10)
    assert stack.provided == (7, p.export())
