"""PurgingBuffer against a list that asks `obsoletes` about every pair."""

from collections.abc import Iterable

import pytest
from hypothesis import example, given, settings
from hypothesis import strategies as st

from semcast.core import Annotation, Batch, Enumeration, Item, KEnumeration, MemberId, MessageId
from semcast.core.messages import batch_of
from semcast.obsolescence import Purging, PurgingBuffer, Receipt, SingleItemTracker, obsoletes
from semcast.obsolescence.index import MAX_REACH, STRIDE

P, Q, R = MemberId("p"), MemberId("q"), MemberId("r", 2)
SENDERS = (P, Q, R)


def replaces(new: Batch, old: Batch) -> bool:
    return obsoletes(new.messages()[0], old.messages()[0])


class Reference:
    """The same promises, kept the slow way."""

    def __init__(self, purging: Purging, limit_messages: int | None, limit_bytes: int | None) -> None:
        self.purging = purging
        self.limits = (limit_messages, limit_bytes)
        self.entries: list[Batch] = []
        self.condemned: list[Receipt] = []  # lazy and held: (victim, by), in order
        self.receipts: list[Receipt] = []

    def has(self, batch: Batch) -> bool:
        return any(entry is batch for entry in self.entries)

    def fits(self, batch: Batch, without: Iterable[Batch] = ()) -> bool:
        rest = [e for e in self.entries if not any(e is gone for gone in without)]
        messages = sum(len(e.payloads) for e in rest) + len(batch.payloads)
        size = sum(len(p) for e in rest for p in e.payloads) + sum(map(len, batch.payloads))
        return all(
            limit is None or used <= limit for used, limit in zip((messages, size), self.limits, strict=True)
        )

    def victims(self, batch: Batch) -> list[Batch]:
        if self.purging is Purging.OFF:
            return []
        found = [entry for entry in self.entries if replaces(batch, entry)]
        if isinstance(batch.annotation, Enumeration):
            order = list(batch.annotation.ids)
            return sorted(found, key=lambda e: order.index(MessageId(e.sender, e.first)))
        return sorted(found, key=lambda e: -e.first)

    def purge(self, victim: Batch, by: Batch) -> None:
        if self.has(victim):
            self.entries = [entry for entry in self.entries if entry is not victim]
            self.receipts.append((victim, by))

    def add(self, batch: Batch) -> bool:
        victims = self.victims(batch)
        if self.purging is Purging.EAGER:
            if not self.fits(batch, victims):
                return False
            for victim in victims:
                self.purge(victim, batch)
        elif self.purging is Purging.LAZY:
            pending = [*self.condemned, *((victim, batch) for victim in victims)]
            while pending and not self.fits(batch):
                if pending[0][1] is batch and not self.fits(batch, [victim for victim, _ in pending]):
                    break
                self.purge(*pending.pop(0))
            if not self.fits(batch):
                self.condemned = [pair for pair in pending if pair[1] is not batch]
                return False
            self.condemned = pending
        elif not self.fits(batch):
            return False
        else:
            self.condemned += [(victim, batch) for victim in victims]
        self.entries.append(batch)
        return True

    def release(self, sender: MemberId, upto: int) -> None:
        for victim, by in self.condemned:
            if self.purging is Purging.HELD and by.sender == sender and by.first <= upto:
                self.purge(victim, by)

    def pop(self, most: int, horizon: dict[MemberId, int] | None) -> list[Batch]:
        taken, rest = [], []
        for entry in self.entries:
            last = entry.last if horizon is None else min(entry.last, horizon[entry.sender])
            last = min(last, entry.first + most - 1)
            if last >= entry.first:
                taken.append(entry.cut(entry.first, last))
                most -= last - entry.first + 1
            if last < entry.last:
                rest.append(entry if last < entry.first else entry.cut(last + 1, entry.last))
        self.entries = rest
        return taken

    def trim(self, upto: int) -> list[Batch]:
        taken = []
        while self.entries and self.entries[0].first <= upto:
            entry = self.entries.pop(0)
            taken.append(entry.cut(entry.first, min(entry.last, upto)))
            if entry.last > upto:
                self.entries.insert(0, entry.cut(upto + 1, entry.last))
                break
        return taken

    def reclaim(self) -> bool:
        while self.condemned and self.purging is Purging.LAZY:
            victim, by = self.condemned.pop(0)
            if self.has(victim):
                self.purge(victim, by)
                return True
        return False

    def discard(self, sender: MemberId, seq: int) -> Batch | None:
        for entry in self.entries:
            if entry.annotation is not None and (entry.sender, entry.first) == (sender, seq):
                self.entries = [other for other in self.entries if other is not entry]
                return entry
        return None


class Driver:
    """Plays one script on both and compares after every step."""

    def __init__(self, purging: Purging, limit_messages: int | None, limit_bytes: int | None) -> None:
        self.buffer = PurgingBuffer(purging, limit_messages, limit_bytes)
        self.reference = Reference(purging, limit_messages, limit_bytes)
        self.next = dict.fromkeys(SENDERS, 1)
        self.used: list[MessageId] = []

    def play(self, step: tuple[str, int, int, int]) -> None:
        kind, a, b, c = step
        sender = SENDERS[a % 3]
        if kind.startswith("add"):
            self.add(self.make(kind, sender, b, c))
        elif kind == "pop":
            assert self.buffer.pop(b) == self.reference.pop(b, None)
        elif kind == "pop within":
            horizon = {s: self.next[s] - 1 - n % 5 for s, n in zip(SENDERS, (a, b, c), strict=True)}
            assert self.buffer.pop(b, horizon) == self.reference.pop(b, horizon)
        elif kind == "trim":
            assert self.buffer.trim(b) == self.reference.trim(b)
        elif kind == "discard":
            seq = self.next[sender] - 1 - b % 6
            assert self.buffer.discard(sender, seq) is self.reference.discard(sender, seq)
        elif kind == "reclaim":
            assert self.buffer.reclaim() == self.reference.reclaim()
        else:
            self.buffer.release(sender, self.next[sender] - 1 - b % 4)
            self.reference.release(sender, self.next[sender] - 1 - b % 4)
        self.compare()

    def make(self, kind: str, sender: MemberId, b: int, c: int) -> Batch:
        first = self.next[sender] + (c % 3 == 0)  # now and then a number is skipped
        payloads = [b"x" * (1 + c % 4)]
        annotation: Annotation | None = None
        if kind == "add plain":
            payloads = [b"x" * (c % 3) for _ in range(1 + b % 5)]
        elif kind == "add item":
            annotation = Item("abc"[b % 3])
        elif kind == "add enumeration":
            recent = self.used[-8:]
            annotation = Enumeration(tuple(recent[n % len(recent)] for n in (b, c, b + c) if recent))
        elif kind == "add total":
            annotation = KEnumeration(first, b, total=True)
        else:
            annotation = KEnumeration(first - b % 3, b * 31 + c)
        return batch_of(sender, first, payloads, annotation)

    def add(self, batch: Batch) -> None:
        if self.buffer._purging is Purging.EAGER:
            expected = self.reference.victims(batch)
            assert [id(v) for v in self.buffer.victims(batch)] == [id(v) for v in expected]
        fits = self.buffer.fits(batch)
        added = self.buffer.add(batch)
        assert added == fits == self.reference.add(batch)
        if added:
            self.next[batch.sender] = batch.last + 1
            self.used += [MessageId(batch.sender, seq) for seq in range(batch.first, batch.last + 1)]

    def compare(self) -> None:
        buffer, reference = self.buffer, self.reference
        assert list(buffer) == reference.entries
        assert len(buffer) == sum(len(e.payloads) for e in reference.entries)
        assert buffer.bytes == sum(len(p) for e in reference.entries for p in e.payloads)
        limit_messages, limit_bytes = reference.limits
        assert limit_messages is None or len(buffer) <= limit_messages
        assert limit_bytes is None or buffer.bytes <= limit_bytes
        receipts = buffer.take_receipts()
        assert receipts == reference.receipts
        assert all(replaces(by, victim) for victim, by in receipts)
        reference.receipts = []
        for id_ in self.used[-12:]:
            here = any(
                e.annotation is not None and MessageId(e.sender, e.first) == id_ for e in reference.entries
            )
            assert buffer.holds(id_.sender, id_.seq) == here


ADDS = ["add plain", "add item", "add enumeration", "add k", "add total"]
OTHERS = ["pop", "pop within", "trim", "discard", "release", "reclaim"]
NUMBERS = st.integers(0, 40)
STEPS = st.lists(
    st.tuples(st.sampled_from([*ADDS, *ADDS, *OTHERS]), NUMBERS, NUMBERS, NUMBERS), min_size=1, max_size=50
)


# A message of another sender that names it, too, may be relied on first.
NAMED_BY_TWO = [
    ("add item", 0, 0, 0),
    ("add item", 0, 0, 0),
    ("add enumeration", 32, 0, 0),
    ("release", 14, 0, 0),
]


@pytest.mark.parametrize("purging", Purging)
@example(steps=NAMED_BY_TWO, limit_messages=None, limit_bytes=None)
@given(
    steps=STEPS,
    limit_messages=st.none() | st.integers(1, 12),
    limit_bytes=st.none() | st.integers(1, 25),
)
@settings(deadline=None, max_examples=250)
def test_same_as_the_reference(
    purging: Purging,
    steps: list[tuple[str, int, int, int]],
    limit_messages: int | None,
    limit_bytes: int | None,
) -> None:
    driver = Driver(purging, limit_messages, limit_bytes)
    for step in steps:
        driver.play(step)


@given(steps=STEPS, kind=st.sampled_from(ADDS[1:4]))
@settings(deadline=None, max_examples=150)
def test_same_as_the_reference_with_one_kind(steps: list[tuple[str, int, int, int]], kind: str) -> None:
    """One sender, one kind of annotation: relations that reach far."""
    driver = Driver(Purging.EAGER, None, None)
    for step in steps:
        name = kind if step[0].startswith("add") else step[0]
        driver.play((name, 0, *step[2:]))


# By hand


def item(seq: int, name: str, sender: MemberId = P, payload: bytes = b".") -> Batch:
    return batch_of(sender, seq, [payload], Item(name))


def firsts(batches: Iterable[Batch]) -> list[int]:
    return [batch.first for batch in batches]


def receipts(buffer: PurgingBuffer) -> list[tuple[int, int]]:
    return [(victim.first, by.first) for victim, by in buffer.take_receipts()]


def test_lazy_purges_only_for_room() -> None:
    buffer = PurgingBuffer(Purging.LAZY, limit_messages=3)
    assert all(buffer.add(item(seq, name)) for seq, name in ((1, "a"), (2, "b"), (3, "a")))
    assert receipts(buffer) == []
    assert buffer.add(item(4, "c"))
    assert receipts(buffer) == [(1, 3)]
    assert firsts(buffer) == [2, 3, 4]
    assert not buffer.add(item(5, "d"))
    assert buffer.add(item(5, "b"))
    assert receipts(buffer) == [(2, 5)]


def test_held_waits_for_the_word() -> None:
    buffer = PurgingBuffer(Purging.HELD, limit_messages=2)
    assert buffer.add(item(1, "a"))
    assert buffer.add(item(2, "a"))
    assert not buffer.add(item(3, "a"))
    buffer.release(P, 1)
    assert receipts(buffer) == []
    buffer.release(P, 2)
    assert receipts(buffer) == [(1, 2)]
    assert buffer.add(item(3, "a"))


def test_off_ignores_annotations() -> None:
    buffer = PurgingBuffer(Purging.OFF, limit_messages=2)
    assert buffer.add(item(1, "a"))
    assert buffer.add(item(2, "a"))
    assert buffer.victims(item(3, "a")) == []
    assert not buffer.add(item(3, "a"))
    assert firsts(buffer.pop(5)) == [1, 2]


def test_a_larger_update_may_lack_bytes() -> None:
    buffer = PurgingBuffer(limit_bytes=10)
    assert buffer.add(item(1, "a", payload=b"12345"))
    assert buffer.add(item(2, "b", payload=b"12345"))
    assert not buffer.add(item(3, "a", payload=b"123456"))
    assert (firsts(buffer), buffer.bytes, receipts(buffer)) == ([1, 2], 10, [])
    assert buffer.add(item(3, "a", payload=b"1234"))
    assert (firsts(buffer), buffer.bytes) == ([2, 3], 9)


def test_batches_leave_in_parts() -> None:
    buffer = PurgingBuffer()
    buffer.add(batch_of(P, 1, [b"1", b"22", b"333", b"4444"]))
    buffer.add(item(5, "a"))
    first, *_ = buffer.pop(1)
    assert (first.first, first.payloads, buffer.bytes) == (1, [b"1"], 10)
    assert [(b.first, b.payloads) for b in buffer.pop(2)] == [(2, [b"22", b"333"])]
    assert firsts(buffer.pop(10)) == [4, 5]
    assert (len(buffer), buffer.bytes) == (0, 0)


def test_trim_leaves_the_part_that_is_not_stable() -> None:
    buffer = PurgingBuffer()
    buffer.add(item(1, "a"))
    buffer.add(batch_of(P, 2, [b"2", b"3", b"4"]))
    assert [(b.first, b.last) for b in buffer.trim(3)] == [(1, 1), (2, 3)]
    assert [(b.first, b.last) for b in buffer] == [(4, 4)]
    assert buffer.trim(3) == []


def test_horizon_lets_others_pass() -> None:
    buffer = PurgingBuffer()
    buffer.add(batch_of(P, 1, [b"1", b"2", b"3"]))
    buffer.add(item(1, "a", Q))
    buffer.add(item(4, "a"))
    taken = buffer.pop(10, {P: 2, Q: 1})
    assert [(b.sender, b.first, b.last) for b in taken] == [(P, 1, 2), (Q, 1, 1)]
    assert firsts(buffer) == [3, 4]


def test_an_enumeration_may_name_the_same_message_twice() -> None:
    """What a peer sends need not be well made."""
    buffer = PurgingBuffer(limit_messages=1)
    buffer.add(item(1, "a"))
    twice = Enumeration((MessageId(P, 1), MessageId(P, 1), MessageId(Q, 7)))
    assert buffer.add(batch_of(P, 2, [b"."], twice))
    assert receipts(buffer) == [(1, 2)]


def test_an_enumeration_may_name_numbers_that_do_not_exist() -> None:
    buffer = PurgingBuffer()
    buffer.add(batch_of(P, 1, [b"."]))
    buffer.add(item(2, "a"))
    buffer.add(item(1, "a", Q))
    for seq in (-1, 0, STRIDE + 1, 1 - STRIDE):
        for sender in (P, Q):
            assert not buffer.holds(sender, seq)
            assert buffer.discard(sender, seq) is None
    buffer.add(batch_of(P, 3, [b"."], Enumeration((MessageId(P, -1), MessageId(P, STRIDE + 1)))))
    assert receipts(buffer) == []


def test_positions_in_the_total_order_are_not_sequence_numbers() -> None:
    """A batch does not know its place in the total order: nothing is purged on a guess."""
    buffer = PurgingBuffer()
    buffer.add(item(1, "a"))
    buffer.add(batch_of(P, 2, [b"."], KEnumeration(2, 0b1, total=True)))
    assert (firsts(buffer), receipts(buffer)) == ([1, 2], [])


def test_reach_beyond_the_limit_is_not_looked_at() -> None:
    buffer = PurgingBuffer()
    far, near = MAX_REACH + 2, 2
    buffer.add(item(1, "a"))
    buffer.add(item(1 + far - near, "b"))
    everything = (1 << (2 * MAX_REACH)) - 1
    buffer.add(batch_of(P, 1 + far, [b"."], KEnumeration(1 + far, everything)))
    assert receipts(buffer) == [(1 + far - near, 1 + far)]


def test_bitmaps_may_become_longer() -> None:
    """What is present is known as far back as the longest bitmap seen asks for."""
    buffer = PurgingBuffer()
    for seq in range(1, 301):
        buffer.add(item(seq, f"item {seq}"))
    for seq, back in ((301, 3), (302, 70), (303, 200), (304, 70)):
        buffer.add(batch_of(P, seq, [b"."], KEnumeration(seq, 1 << (back - 1))))
    assert receipts(buffer) == [(298, 301), (232, 302), (103, 303), (234, 304)]


def test_tags_and_bitmaps_of_one_sender_mix() -> None:
    """A bitmap finds tagged messages too, those included that were there before the first bitmap."""
    buffer = PurgingBuffer()
    tracker = SingleItemTracker(k=8)
    for seq, name in ((1, "a"), (2, "b"), (3, "a")):
        tracker.update(name)
        buffer.add(item(seq, name))
    assert receipts(buffer) == [(1, 3)]
    buffer.add(batch_of(P, 4, [b"."], tracker.update("b")))
    buffer.add(item(5, "a"))
    buffer.add(batch_of(P, 6, [b"."], KEnumeration(6, 0b11111)))
    assert receipts(buffer) == [(2, 4), (3, 5), (5, 6), (4, 6)]


def test_lazy_purging_forgets_what_was_taken() -> None:
    """A lazy buffer that never fills does not remember the victims that were delivered."""
    buffer = PurgingBuffer(Purging.LAZY, limit_messages=100)
    for seq in range(1, 1001, 2):
        buffer.add(item(seq, "a"))
        buffer.add(item(seq + 1, "a"))
        buffer.pop(2)
    assert not buffer._condemned


def test_order_is_kept_through_many_turns() -> None:
    """Taken one by one while others come and replace: first in, first out."""
    buffer = PurgingBuffer()
    taken = []
    for seq in range(1, 2001):
        buffer.add(item(seq, f"item {seq % 7}"))
        if seq % 3 == 0:
            taken += firsts(buffer.pop(1))
    taken += firsts(buffer.pop(100))
    purged = [victim for victim, _ in receipts(buffer)]
    assert taken == sorted(taken)
    assert sorted(taken + purged) == list(range(1, 2001))


def test_held_remembers_each_victim_once() -> None:
    """Every message replaces all before it, and none is safe: memory stays linear in the buffer."""
    buffer = PurgingBuffer(Purging.HELD)
    for seq in range(1, 1001):
        buffer.add(batch_of(P, seq, [b""], KEnumeration(seq, (1 << (seq - 1)) - 1)))
    condemned = buffer._index_of(P).condemned
    assert sum(len(victims) for _, victims in condemned) == 999
    buffer.release(P, 1000)
    assert len(buffer) == 1
