"""Trackers against the relations stated in Pereira 2002, 3.4.2 to 3.4.4: O2 (figures 3.6, 3.8, 3.10, 6.1).

The figures as printed are here too: 3.6 and 3.10 agree with their text; 3.8 and 6.1 do not, and have to
be caught.
"""

from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass
from typing import Protocol

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from semcast.core import KEnumeration, MemberId, Message, MessageId
from semcast.obsolescence import (
    OperationObserver,
    OperationTracker,
    ReadWriteTracker,
    SingleItemTracker,
    obsoletes,
)

P = MemberId("p")
Pairs = set[tuple[int, int]]


def represented(tags: Sequence[KEnumeration | None]) -> Pairs:
    """(old, new) by position, as the annotations alone say."""
    messages = [Message(MessageId(P, seq), b"", tag) for seq, tag in enumerate(tags, 1)]
    return {(old.id.seq, new.id.seq) for new in messages for old in messages if obsoletes(new, old)}


def within(pairs: Pairs, k: int) -> Pairs:
    return {(old, new) for old, new in pairs if new - old <= k}


# 3.4.2, single item operations. None stands for a message that never becomes obsolete (figure 6.1).

ITEMS = st.lists(st.sampled_from([*"abcdefghij", None]), max_size=40)


def stated_single(items: Sequence[str | None]) -> Pairs:
    return {
        (i, j)
        for j, new in enumerate(items, 1)
        for i, old in enumerate(items, 1)
        if i < j and old is not None and old == new
    }


@given(ITEMS, st.integers(1, 12))
@settings(deadline=None)
def test_single_items_represent_what_is_stated(items: list[str | None], k: int) -> None:
    tracker = SingleItemTracker(k)
    tags: list[KEnumeration | None] = []
    for item in items:
        tags.append(None if item is None else tracker.update(item))
        if item is None:
            tracker.reliable()
    assert represented(tags) == within(stated_single(items), k)


@given(st.lists(st.sampled_from("abcdefghij"), max_size=40), st.integers(1, 12))
@settings(deadline=None)
def test_figure_3_6_as_printed(items: list[str], k: int) -> None:
    tracker = SingleItemTracker(k)
    mask = (1 << k) - 1
    bits, at = dict.fromkeys(items, 0), dict.fromkeys(items, 0)
    for seq, item in enumerate(items, 1):
        bits[item] = bits[item] << (seq - at[item]) & mask  # line 4
        assert tracker.update(item) == KEnumeration(seq, bits[item])
        at[item] = seq + 1  # line 6
        bits[item] = bits[item] << 1 & mask | 1  # line 7


def test_items_out_of_reach_are_forgotten() -> None:
    tracker = SingleItemTracker(k=4)
    for number in range(1000):
        tracker.update(f"item {number}")
    assert len(tracker.info) <= 8


# 3.4.3, operations on several items, and figure 6.1


class Server(Protocol):
    def operation(self, items: Iterable[str]) -> tuple[list[KEnumeration], KEnumeration]: ...

    def reliable(self) -> None: ...


@dataclass(frozen=True)
class Sent:
    """One message: an update of `item` or, where that is None, the commit of operation `number`."""

    number: int
    item: str | None
    tag: KEnumeration | None
    value: int = 0

    @property
    def reliable(self) -> bool:
        return self.number == 0


Step = frozenset[str] | None
"""An operation on these items, or a message that never becomes obsolete."""


def play(server: Server, steps: Sequence[Step], reliable_tag: KEnumeration | None = None) -> list[Sent]:
    sent: list[Sent] = []
    number = 0
    for step in steps:
        if step is None:
            server.reliable()
            sent.append(Sent(0, None, reliable_tag))
            continue
        number += 1
        items = sorted(step)
        updates, commit = server.operation(items)
        sent += [Sent(number, item, tag, 10 * number) for item, tag in zip(items, updates, strict=True)]
        sent.append(Sent(number, None, commit))
    return sent


def stated_operations(sent: Sequence[Sent]) -> Pairs:
    """The two clauses of 3.4.3, word by word."""
    pairs = set()
    for j, new in enumerate(sent, 1):
        if new.reliable or new.item is not None:
            continue
        for i, old in enumerate(sent, 1):
            if old.reliable:
                continue
            later = [m for m in sent if m.item == old.item and old.number < m.number <= new.number]
            if old.number < new.number if old.item is None else later:
                pairs.add((i, j))
    return pairs


STEPS = st.lists(st.none() | st.frozensets(st.sampled_from("abcdef"), max_size=4), max_size=10)


@given(STEPS, st.integers(1, 40))
@settings(deadline=None)
def test_operations_represent_what_is_stated(steps: list[Step], k: int) -> None:
    sent = play(OperationTracker(k), steps)
    assert represented([message.tag for message in sent]) == within(stated_operations(sent), k)


def test_operations_by_hand() -> None:
    """Figure 3.7(b): {m1: a, m2: b} COMMIT(1) {m3: b, m4: c} COMMIT(2)."""
    sent = play(OperationTracker(k=8), [frozenset("ab"), frozenset("bc")])
    assert represented([message.tag for message in sent]) == {(2, 6), (3, 6)}


class PrintedServer:
    """Figure 3.8, lines 2 to 13, and figure 6.1: the maps are one position off."""

    def __init__(self, k: int, *, shift_commit: bool = True, shift_reliable: bool = False) -> None:
        self.mask = (1 << k) - 1
        self.seq = self.map = 0
        self.iseq: dict[str, int] = {}
        self.shift_commit, self.shift_reliable = shift_commit, shift_reliable

    def shift(self, bits: int, n: int) -> int:
        return bits << n & self.mask

    def operation(self, items: Iterable[str]) -> tuple[list[KEnumeration], KEnumeration]:
        updates = []
        for item in items:
            self.seq += 1  # line 5
            self.map = self.shift(self.map, 1) | self.shift(1, self.seq - self.iseq.get(item, 0))
            self.iseq[item] = self.seq
            updates.append(KEnumeration(self.seq, 0))
        self.seq += 1  # line 9
        if self.shift_commit:
            self.map = self.shift(self.map, 1)  # line 10
        commit = KEnumeration(self.seq, self.map)
        self.map = self.shift(self.map, 1) | 1  # line 13
        return updates, commit

    def reliable(self) -> None:
        self.seq += 1  # figure 6.1 has nothing else
        if self.shift_reliable:
            self.map = self.shift(self.map, 1)


def violations(server: Server, steps: Sequence[Step]) -> Pairs:
    """What a server represents and 3.4.3 does not state. Reliable messages carry the empty tag of 6.1."""
    sent = play(server, steps, reliable_tag=KEnumeration(0, 0))
    return represented([message.tag for message in sent]) - stated_operations(sent)


def test_printed_server_is_caught() -> None:
    """Operations {a,b} and {b}: the second commit replaces 2 and 1 instead of 3 and 2; 1 is live."""
    steps: list[Step] = [frozenset("ab"), frozenset("b")]
    commit = play(PrintedServer(8), steps)[-1].tag
    assert commit is not None
    assert [position for position in commit.positions() if position > 0] == [2, 1]
    assert violations(PrintedServer(8), steps) == {(1, 5)}
    assert not violations(OperationTracker(8), steps)


def test_printed_reliable_is_caught() -> None:
    """Figure 6.1 moves on without moving the map.

    A commit then replaces the reliable message instead of the commit before it, and a live update: each
    first update of an item marked position 0, where there is no message, and that mark is now at 1.
    """
    steps: list[Step] = [frozenset("a"), None, frozenset("b")]
    assert violations(PrintedServer(8, shift_commit=False), steps) == {(3, 5), (1, 5)}
    assert not violations(OperationTracker(8), steps)


@given(STEPS, st.integers(1, 40))
@settings(deadline=None)
def test_figure_3_8_with_both_slips_mended(steps: list[Step], k: int) -> None:
    """Without line 10, and with a shift in 6.1, the printed code says what our tracker says."""
    mended = play(PrintedServer(k, shift_commit=False, shift_reliable=True), steps)
    ours = play(OperationTracker(k), steps)
    assert represented([m.tag for m in mended]) == represented([m.tag for m in ours])


class Observer(Protocol):
    def deliver(self, message: Sent) -> None: ...

    def state(self) -> dict[str, int]: ...


class OurObserver:
    def __init__(self) -> None:
        self.observer: OperationObserver[int] = OperationObserver()

    def deliver(self, message: Sent) -> None:
        if message.item is not None:
            self.observer.update(message.item, message.value)
        elif not message.reliable:
            self.observer.commit()

    def state(self) -> dict[str, int]:
        return self.observer.state


class PrintedObserver:
    """Figure 3.8, lines 14 to 23; line 23 with the operation that the commit would have to carry."""

    def __init__(self) -> None:
        self.applied: dict[str, int] = {}
        self.queue: dict[str, int] = {}
        self.last = 1

    def deliver(self, message: Sent) -> None:
        if message.reliable:
            return
        if message.item is None:
            self.flush()
        else:
            if message.number != self.last:
                self.flush()
            self.queue[message.item] = message.value
        self.last = message.number + 1

    def flush(self) -> None:
        self.applied.update(self.queue)
        self.queue.clear()

    def state(self) -> dict[str, int]:
        return self.applied


def committed(sent: Sequence[Sent]) -> dict[str, int]:
    """The state after the operations that `sent` completes."""
    done = max((m.number for m in sent if m.item is None), default=0)
    return {m.item: m.value for m in sent if m.item is not None and m.number <= done}


def observed(observer: Observer, sent: Sequence[Sent], keep: Callable[[int], bool]) -> dict[str, int]:
    """Deliver `sent`, leaving out what is obsolete in it unless `keep` says otherwise."""
    obsolete = {old for old, _ in represented([message.tag for message in sent])}
    for seq, message in enumerate(sent, 1):
        if seq not in obsolete or keep(seq):
            observer.deliver(message)
    return observer.state()


@given(STEPS, st.integers(1, 40), st.floats(0, 1), st.sets(st.integers(1, 60)))
@settings(deadline=None)
def test_operations_stay_atomic(steps: list[Step], k: int, cut: float, kept: set[int]) -> None:
    """3.4.3: whatever prefix R the sender managed to send, and whatever of it is purged."""
    sent = play(OperationTracker(k), steps)
    prefix = sent[: round(cut * len(sent))]
    assert observed(OurObserver(), prefix, kept.__contains__) == committed(prefix)


def test_printed_observer_is_caught() -> None:
    """It applies the first update of an operation as soon as the second arrives."""
    sent = play(OperationTracker(8), [frozenset("ab")])[:2]
    assert committed(sent) == observed(OurObserver(), sent, lambda _: True) == {}
    assert observed(PrintedObserver(), sent, lambda _: True) == {"a": 10}


def test_printed_server_loses_state() -> None:
    """The live update that the printed map replaces is missing at an observer that purged it."""
    sent = play(PrintedServer(8), [frozenset("ab"), frozenset("b")])
    assert committed(sent) == {"a": 10, "b": 20}
    assert observed(OurObserver(), sent, lambda _: False) == {"b": 20}


# 3.4.3, last paragraph: the update of an operation on one item may be its own commit

NUMBERED = st.lists(
    st.tuples(st.frozensets(st.sampled_from("abcd"), min_size=1), st.integers(1, 5)), max_size=12
)


@given(NUMBERED, st.integers(1, 40))
@settings(deadline=None)
def test_single_updates_are_their_own_commits(operations: list[tuple[frozenset[str], int]], k: int) -> None:
    """Messages that were cut take several numbers: a tag names them by the last."""
    tracker = OperationTracker(k)
    sent: list[tuple[int, int, str | None, KEnumeration]] = []  # number, operation, item, tag
    seq = 0
    for number, (items, step) in enumerate(operations, 1):
        for item in sorted(items):
            tag = tracker.part_tag() if len(items) > 1 else tracker.update_tag(item)
            seq += step
            sent.append((seq, number, item, tag))
            tracker.updated(item, seq)
        if len(items) > 1:
            tag = tracker.commit_tag()
            seq += step
            sent.append((seq, number, None, tag))
            tracker.committed(seq)
    for at, number, _, tag in sent:
        commits = [m for m in sent if m[1] == number][-1][0] == at
        stated = set()
        for old, earlier, which, _ in sent:
            later = [m for m in sent if m[2] == which and earlier < m[1] <= number]
            if commits and old < at and (later or (which is None and earlier < number)):
                stated.add(old)
        assert set(tag.positions()) == {old for old in stated if tag.base - old <= k}


# 3.4.4, concurrent operations

EVENTS = st.lists(
    st.tuples(st.sampled_from(["update", "get", "other"]), st.sampled_from("abcdef")), max_size=40
)


def stated_concurrent(events: Sequence[tuple[str, str]], at: int) -> set[int]:
    """Updates that a reply sent after delivering the first `at` messages makes obsolete."""
    seen = list(enumerate(events[:at], 1))
    obsolete = set()
    for i, (kind, x) in seen:
        for k, (kind2, y) in seen:
            if kind == kind2 == "update" and x == y and i < k:
                between = [e for place, e in seen if i < place < k]
                if ("get", x) not in between:
                    obsolete.add(i)
    return obsolete


@given(EVENTS, st.integers(1, 12))
@settings(deadline=None)
def test_replies_represent_what_is_stated(events: list[tuple[str, str]], k: int) -> None:
    tracker = ReadWriteTracker(k)
    for at, (kind, item) in enumerate(events, 1):
        if kind == "update":
            tracker.on_update(item)
        elif kind == "other":
            tracker.on_other()
        else:
            reply = tracker.on_get(item)
            assert (reply.base, reply.total) == (at, True)
            assert set(reply.positions()) == {i for i in stated_concurrent(events, at) if at - i <= k}


@given(EVENTS, st.integers(1, 12))
@settings(deadline=None)
def test_figure_3_10_as_printed(events: list[tuple[str, str]], k: int) -> None:
    tracker = ReadWriteTracker(k)
    mask = (1 << k) - 1
    bits = 0
    info = {item: (0, 0) for _, item in events}
    for seq, (kind, item) in enumerate(events, 1):
        at, own = info[item]
        bits = bits << 1 & mask
        if kind == "update":
            own = own << (seq - at) & mask  # line 4
            bits |= own  # line 5
            info[item] = (seq + 1, own << 1 & mask | 1)  # lines 6 and 7
            tracker.on_update(item)
        elif kind == "get":
            info[item] = (at, own & ~1)  # line 9
            assert tracker.on_get(item) == KEnumeration(seq, bits, total=True)
        else:
            tracker.on_other()


@given(EVENTS, st.integers(1, 12), st.lists(st.integers(1, 40), min_size=40, max_size=40))
@settings(deadline=None)
def test_positions_may_have_gaps(events: list[tuple[str, str]], k: int, steps: list[int]) -> None:
    """Purged messages and those of the protocol take positions, too: the relation is about the others."""
    tracker = ReadWriteTracker(k)
    places = [sum(steps[: at + 1]) for at in range(len(events))]
    for at, (kind, item) in enumerate(events):
        if kind == "update":
            tracker.on_update(item, places[at])
        elif kind == "other":
            tracker.on_other(places[at])
        else:
            reply = tracker.on_get(item, places[at])
            stated = {places[i - 1] for i in stated_concurrent(events, at + 1)}
            assert reply.base == places[at]
            assert set(reply.positions()) == {place for place in stated if places[at] - place <= k}


def test_a_reply_replaces_the_one_before() -> None:
    tracker = ReadWriteTracker(k=20)
    tracker.on_reply(at=3)
    tracker.on_reply(at=8)
    tracker.on_reply(at=9)
    assert tracker.tag() == KEnumeration(9, 0b100001, total=True)


def test_positions_grow() -> None:
    tracker = ReadWriteTracker(k=4)
    tracker.on_update("x", at=5)
    with pytest.raises(AssertionError, match="position 5 comes after 5"):
        tracker.on_other(at=5)


def test_a_read_update_stays() -> None:
    """m1 update, m2 read, m3 update of one item: nobody may drop m1."""
    tracker = ReadWriteTracker(k=8)
    tracker.on_update("x")
    tracker.on_get("x")
    tracker.on_update("x")
    assert tracker.on_get("x").positions() == []


def test_trackers_refuse_an_empty_reach() -> None:
    with pytest.raises(ValueError, match="k must be at least 1, not 0"):
        SingleItemTracker(0)
    with pytest.raises(ValueError, match="k must be at least 1"):
        OperationTracker(0)
    with pytest.raises(ValueError, match="k must be at least 1"):
        ReadWriteTracker(-1)
