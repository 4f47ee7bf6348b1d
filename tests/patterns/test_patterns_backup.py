"""Primary and backups by hand."""

from collections.abc import Mapping

import pytest

from semcast.core import Batch, MemberId, View, ViewChange
from semcast.core.events import StateReceived
from semcast.core.messages import batch_of
from semcast.patterns import BackupReply, Executed, PrimaryBackup

P, Q, R = MemberId("p"), MemberId("q"), MemberId("r")


def append(state: Mapping[str, bytes], request: bytes) -> Executed:
    log = state.get("log", b"") + request
    return Executed({"log": log, "last": request}, log)


class Bench:
    """Members by name; messages go where the test says."""

    def __init__(self, *members: MemberId, window: int = 8) -> None:
        self.members = {member: PrimaryBackup(member, append, window=window) for member in members}
        self.seq = dict.fromkeys(members, 0)
        self.number = 0
        self.view(*members)

    def __getitem__(self, member: MemberId) -> PrimaryBackup:
        return self.members[member]

    def view(self, *members: MemberId) -> None:
        self.number += 1
        self.members = {member: self.members[member] for member in members}
        for pattern in self.members.values():
            pattern.on_delivery(ViewChange(View(self.number, members)))

    def step(self, sender: MemberId, *dests: MemberId) -> bool:
        """One message of a member, to all or to these."""
        message = self[sender].waiting()
        if message is None:
            return False
        self.seq[sender] += 1
        self[sender].sent()
        for dest in dests or tuple(self.members):
            self[dest].on_delivery(Batch(sender, self.seq[sender], [message.payload], message.annotation))
        return True

    def settle(self) -> None:
        while sum(self.step(member) for member in self.members):
            pass


def test_a_backup_forwards_and_the_answer_comes_back() -> None:
    bench = Bench(P, Q)
    assert (bench[Q].primary, bench[Q].request(b"x")) == (P, 1)
    bench[P].request(b"y")
    bench.settle()
    assert bench[Q].take_answers() == [BackupReply(1, b"yx")]
    assert bench[P].take_answers() == [BackupReply(1, b"y")]
    assert bench[P].state == bench[Q].state == {"log": b"yx", "last": b"x"}
    assert bench[Q].take_answers() == []


def test_the_next_primary_executes_what_was_not_answered() -> None:
    bench = Bench(P, Q, R)
    bench[R].request(b"x")
    bench[Q].request(b"y")
    bench.step(R)
    bench.step(Q)
    bench.step(P)  # half of the first operation; then p fails
    bench.view(Q, R)
    assert bench[Q].state == {}
    bench.settle()
    assert bench[Q].state == bench[R].state == {"log": b"yx", "last": b"x"}
    assert bench[Q].take_answers() == [BackupReply(1, b"y")]
    assert bench[R].take_answers() == [BackupReply(1, b"yx")]


def test_what_was_answered_is_not_executed_again() -> None:
    bench = Bench(P, Q, R, window=1)
    bench[R].request(b"x")
    bench[R].request(b"y")
    bench.settle()
    bench.view(Q, R)
    bench.settle()
    assert bench[Q].state["log"] == b"xy"


def test_a_reply_may_be_faster_than_the_request() -> None:
    """FIFO order: q may see the primary's operation before the request of r that it answers."""
    bench = Bench(P, Q, R)
    bench[R].request(b"x")
    message = bench[R].waiting()
    assert message is not None
    bench.step(R, P, R)
    bench.settle()
    bench[Q].on_delivery(Batch(R, 1, [message.payload], message.annotation))
    bench.view(Q, R)
    bench.settle()
    assert bench[Q].state["log"] == b"x"


def test_a_request_that_never_left_is_executed_by_who_made_it() -> None:
    bench = Bench(P, Q)
    bench[Q].request(b"x")
    bench.view(Q)
    bench.settle()
    assert bench[Q].take_answers() == [BackupReply(1, b"x")]


def test_who_is_primary_no_more_takes_back_what_did_not_leave() -> None:
    bench = Bench(P, Q)
    bench[P].request(b"x")
    bench.step(P)
    bench.view(Q, P)
    assert bench[P].state == {}
    bench.settle()
    assert bench[P].take_answers() == [BackupReply(1, b"x")]
    assert bench[P].state == bench[Q].state == {"log": b"x", "last": b"x"}


def test_no_more_than_the_window_is_under_way() -> None:
    bench = Bench(P, Q, window=2)
    for body in (b"a", b"b", b"c"):
        bench[Q].request(body)
    assert bench.step(Q)
    assert bench.step(Q)
    assert not bench.step(Q)
    bench.settle()
    assert [answer.number for answer in bench[Q].take_answers()] == [1, 2, 3]


def test_who_joins_gets_state_replies_and_requests() -> None:
    bench = Bench(P, Q)
    bench[Q].request(b"x")
    bench.settle()
    bench[Q].request(b"y")
    bench.step(Q)
    joiner = PrimaryBackup(R, append)
    joiner.on_delivery(StateReceived(2, bench[Q].export()))
    bench.members[R], bench.seq[R] = joiner, 0
    bench.view(Q, R)  # p failed, and q after it
    bench.members[Q], old = bench[Q], bench[Q]
    bench.view(R)
    assert old.state == {"log": b"x", "last": b"x"}
    assert joiner.state == old.state
    bench.settle()
    assert joiner.state["log"] == b"x"  # the one who asked for y is gone


def test_only_the_primary_changes_the_state() -> None:
    bench = Bench(P, Q)
    bench[P].request(b"x")
    message = bench[P].waiting()
    assert message is not None
    bench[Q].on_delivery(batch_of(Q, 1, [message.payload], message.annotation))
    bench[Q].on_delivery(batch_of(P, 1, [b"nonsense"]))
    assert bench[Q].refused == 2


def test_names_of_replies_are_taken() -> None:
    service = PrimaryBackup(P, lambda _state, _request: Executed({"\0p": b""}, b""))
    service.on_delivery(ViewChange(View(1, (P,))))
    with pytest.raises(ValueError, match="zero byte"):
        service.request(b"")
    with pytest.raises(ValueError, match="window must be at least 1, not 0"):
        PrimaryBackup(P, append, window=0)
