"""The checkers against the sentences of the paper, read literally over small histories.

Everything is spelled out: each pair of messages is asked for obsolescence, the closure is Floyd and
Warshall's, and each property is its sentence with "there is a time after which ..." left out, because it
is true in a finite run.
"""

from collections.abc import Sequence
from itertools import product
from random import Random

import msgspec
from hypothesis import given, settings
from hypothesis import strategies as st

from semcast.core import Annotation, Enumeration, Item, KEnumeration, MemberId, Message, MessageId
from semcast.history import GONE, Event, History, Kind, RunInfo
from semcast.obsolescence import obsoletes
from semcast.specs import (
    CALLS,
    CERTIFICATES,
    DOMAINS,
    EVS,
    GOSSIP,
    GOSSIP_BATCHES,
    GOSSIP_LOGS,
    GOSSIP_READERS,
    LIGHTWEIGHT,
    PROPERTIES,
    REPLICATION,
    VSYNC,
    Status,
    Verdict,
    check,
)

NAMES = [
    name
    for name in PROPERTIES
    if name
    not in CERTIFICATES
    | EVS
    | VSYNC
    | REPLICATION
    | GOSSIP
    | GOSSIP_BATCHES
    | GOSSIP_LOGS
    | GOSSIP_READERS
    | LIGHTWEIGHT
    | CALLS
    | DOMAINS
]
A, B, C = MEMBERS = MemberId("a"), MemberId("b"), MemberId("c", 1)
MOST = 5

ids = st.builds(MessageId, st.sampled_from(MEMBERS), st.integers(1, MOST))
annotations: st.SearchStrategy[Annotation | None] = st.one_of(
    st.none(),
    st.builds(Item, st.sampled_from("xy")),
    st.builds(Item, st.sampled_from("xy")),
    st.builds(Enumeration, st.lists(ids, max_size=2).map(tuple)),
    st.builds(KEnumeration, st.integers(1, MOST + 1), st.integers(0, 7)),
    st.builds(KEnumeration, st.integers(1, 12), st.integers(0, 7), st.just(True)),
)


class Local(msgspec.Struct):
    """What one process does, as a list of rows."""

    process: MemberId
    rows: list[Event] = []

    def add(self, kind: Kind, sender: MemberId | None = None, seq: int = 0, count: int = 0) -> None:
        self.rows.append(Event(self.process, len(self.rows), 0, kind, "g", sender, seq, count))

    def note(self, **fields: object) -> None:
        self.rows[-1] = msgspec.structs.replace(self.rows[-1], **fields)


enumerations = st.builds(Enumeration, st.lists(ids, min_size=1, max_size=2).map(tuple))


@st.composite
def histories(draw: st.DrawFn, annotations: st.SearchStrategy[Annotation | None] = annotations) -> History:
    sent = {member: draw(st.integers(0, MOST)) for member in MEMBERS}
    orders = draw(st.dictionaries(ids, st.integers(1, 12), max_size=6))
    events: list[Event] = []
    for member in MEMBERS:
        local = Local(member)
        for seq in range(1, sent[member] + 1):
            local.add(Kind.MULTICAST, member, seq, 1)
            local.note(annotation=draw(annotations), order=orders.get(MessageId(member, seq)))
        deliver(draw, local, sent)
        if draw(st.integers(0, 3)) == 0:
            local.add(Kind.CRASH)
        events += local.rows
    limit, quiesced = draw(st.integers(3, 6)), draw(st.integers(0, 9)) > 0
    info = RunInfo.one("run", "g", "s-rm", None, MEMBERS, limit, uniform=True, quiesced=quiesced)
    return History(info, events)


def deliver(draw: st.DrawFn, local: Local, sent: dict[MemberId, int]) -> None:
    """Mostly what a protocol would do, with a fault here and there."""
    for sender in MEMBERS:
        seqs = [seq for seq in range(1, sent[sender] + 1) if draw(st.integers(0, 3))]
        if draw(st.integers(0, 5)) == 0:
            seqs.append(draw(st.integers(1, MOST + 2)))
        if draw(st.integers(0, 5)) == 0:
            seqs = draw(st.permutations(seqs))
        if draw(st.integers(0, 5)) == 0:
            seqs = seqs + seqs[-draw(st.integers(1, 4)) :]
        for seq in seqs:
            local.add(Kind.DELIVER, sender, seq, 1)
        if draw(st.booleans()):
            local.add(Kind.APPLY, sender)
            local.note(digest=draw(st.sampled_from("ppppq")))
    if draw(st.booleans()):
        local.add(Kind.BUFFER, count=draw(st.integers(0, 6)))


class Literal:
    """A history as the paper sees it: who multicast what, who delivered what in which order."""

    def __init__(self, history: History) -> None:
        self.history = history
        self.multicast: dict[MessageId, Message] = {}
        self.delivered: dict[MemberId, list[MessageId]] = {process: [] for process in MEMBERS}
        for event in history.events:
            for seq in range(event.seq, event.seq + event.count):
                if event.kind is Kind.MULTICAST:
                    message = MessageId(event.process, seq)
                    self.multicast[message] = Message(message, b"", event.annotation, event.order)
                elif event.kind is Kind.DELIVER and event.sender is not None:
                    self.delivered[event.process].append(MessageId(event.sender, seq))
        self.replaced_by = self._closure()

    def _closure(self) -> set[tuple[MessageId, MessageId]]:
        messages = list(self.multicast.values())
        pairs = {(old.id, new.id) for old, new in product(messages, messages) if obsoletes(new, old)}
        for middle, old, new in product(self.multicast, self.multicast, self.multicast):
            if (old, middle) in pairs and (middle, new) in pairs:
                pairs.add((old, new))
        return pairs

    def has(self, process: MemberId, message: MessageId) -> bool:
        return any(m == message or (message, m) in self.replaced_by for m in self.delivered[process])

    def relation_is_order(self) -> int:
        circular = {m for m in self.multicast if (m, m) in self.replaced_by}
        return sum(m in circular or any((m, n) in self.replaced_by for n in circular) for m in self.multicast)

    def integrity(self) -> int:
        repeated = sum(len(order) - len(set(order)) for order in self.delivered.values())
        return repeated + sum(
            m not in self.multicast for order in self.delivered.values() for m in set(order)
        )

    def fifo_delivery(self) -> int:
        return sum(
            any(later.sender == m.sender and later.seq > m.seq for later in order[:place])
            for order in self.delivered.values()
            for place, m in enumerate(order)
        )

    def _lacking(self, owed: set[tuple[MemberId, MessageId]]) -> int:
        return sum(not self.has(process, message) for process, message in owed)

    def semantic_sender_reliability(self) -> int:
        correct = self.history.correct
        return self._lacking({(p, m) for p in correct for m in self.multicast if m.sender in correct})

    def semantic_validity(self) -> int:
        return self._lacking({(p, m) for p in self.history.correct for m in self.multicast if m.sender == p})

    def semantic_agreement(self) -> int:
        correct = self.history.correct
        return self._lacking({(p, m) for p in correct for q in correct for m in self.delivered[q]})

    def semantic_uniform_agreement(self) -> int:
        return self._lacking(
            {(p, m) for p in self.history.correct for q in MEMBERS for m in self.delivered[q]}
        )

    def semantic_fifo_completeness(self) -> int:
        return self._lacking(
            {
                (p, m)
                for p in self.history.correct
                for later in self.delivered[p]
                for m in self.multicast
                if m.sender == later.sender and m.seq < later.seq
            }
        )

    def nothing_after_crash(self) -> int:
        gone = {(e.process, e.index) for e in self.history.events if e.kind in GONE}
        return sum(
            max(1, event.count)
            for event in self.history.events
            if event.kind in (Kind.MULTICAST, Kind.DELIVER, Kind.VIEW, Kind.TRANSITIONAL)
            and any(process == event.process and index < event.index for process, index in gone)
        )

    def buffer_bound(self) -> int:
        limit = self.history.info.only.buffer_limit or 0
        return sum(event.count > limit for event in self.history.events if event.kind is Kind.BUFFER)

    def same_state(self) -> int:
        return self._different(MEMBERS)

    def same_state_of_correct_senders(self) -> int:
        return self._different(self.history.correct)

    def _final(self, senders: Sequence[MemberId]) -> dict[tuple[MemberId | None, MemberId], str | None]:
        return {
            (event.sender, event.process): event.digest
            for event in self.history.events
            if event.kind is Kind.APPLY and event.process in self.history.correct and event.sender in senders
        }

    def _different(self, senders: Sequence[MemberId]) -> int:
        final = self._final(senders)
        return sum(len({final[key] for key in final if key[0] == sender}) > 1 for sender in senders)

    def tells_nothing(self, name: str) -> bool:
        """Whether the history is no evidence, for or against."""
        if name.startswith(("semantic_", "same_state")) and not self.history.info.quiesced:
            return True
        if name.startswith("semantic_"):
            return self.relation_is_order() > 0
        if name.startswith("same_state"):
            return not self._final(MEMBERS if name == "same_state" else self.history.correct)
        return name == "buffer_bound" and not any(e.kind is Kind.BUFFER for e in self.history.events)

    def expected(self, name: str) -> tuple[Status, int]:
        if self.tells_nothing(name):
            return Status.UNKNOWN, 0
        count = getattr(self, name)()
        return (Status.VIOLATED if count else Status.HOLDS), count


@settings(deadline=None, max_examples=300)
@given(histories())
def test_the_checkers_say_what_the_sentences_say(history: History) -> None:
    literal = Literal(history)
    for name, verdict in zip(NAMES, check(history, NAMES), strict=True):
        assert (name, verdict.status, verdict.count) == (name, *literal.expected(name))
        assert bool(verdict.offending) == (verdict.status is Status.VIOLATED)


@settings(deadline=None, max_examples=100)
@given(histories(enumerations))
def test_circles_are_found_and_one_is_named(history: History) -> None:
    literal = Literal(history)
    (verdict,) = check(history, ["relation_is_order"])
    assert (verdict.status, verdict.count) == literal.expected("relation_is_order")
    circle = [literal.multicast[MessageId(event.process, event.seq)] for event in verdict.offending]
    if len(circle) < 10:
        assert all(obsoletes(new, old) for old, new in zip(circle, circle[1:] + circle[:1], strict=True))


def recut(history: History, random: Random) -> History:
    """The same history with its runs cut and joined at random."""
    info = history.info
    return History(info, [event for p in history.processes for event in _recut(history.of(p), random)])


def _recut(events: Sequence[Event], random: Random) -> list[Event]:
    cut: list[Event] = []
    for event in events:
        singles = [event.only(seq) for seq in range(event.seq, event.last + 1)] if event.sender else []
        for part in singles or [event]:
            before = cut[-1] if cut else None
            if before is not None and _joins(before, part) and random.random() < 0.6:
                cut[-1] = msgspec.structs.replace(before, count=before.count + 1)
            else:
                cut.append(part)
    return [msgspec.structs.replace(event, index=index) for index, event in enumerate(cut)]


def _joins(before: Event, part: Event) -> bool:
    """Whether a run can go on with the next message without saying anything else."""
    follows = part.count == 1 and (part.kind, part.sender, part.seq) == (
        before.kind,
        before.sender,
        before.last + 1,
    )
    orders = part.order is None and before.order is None
    return follows and orders and part.annotation is None and before.annotation is None


def meaning(verdict: Verdict) -> Verdict:
    """A verdict without what must differ: which rows the events were found in."""
    events = tuple(msgspec.structs.replace(event, index=0, size=0) for event in verdict.offending)
    return msgspec.structs.replace(verdict, offending=events)


@settings(deadline=None, max_examples=200)
@given(histories(), st.integers(0, 2**32))
def test_no_verdict_depends_on_how_runs_were_cut(history: History, seed: int) -> None:
    other = recut(history, Random(seed))
    assert [meaning(verdict) for verdict in check(other, NAMES)] == [
        meaning(verdict) for verdict in check(history, NAMES)
    ]


def test_positions_in_the_total_order_may_be_said_by_runs_of_deliveries() -> None:
    """b delivers (a,1..3) at positions 11..13; (c,1) replaces position 12, which is (a,2)."""
    members = (A, B, C)
    info = RunInfo.one("run", "g", "s-rm", None, members, None, uniform=False, quiesced=True)
    tags = [Event(A, n, 0, Kind.MULTICAST, "g", A, n + 1, 1, annotation=Item(str(n))) for n in range(3)]
    replacing = KEnumeration(14, 0b10, total=True)
    history = History(
        info,
        [
            *tags,
            Event(A, 3, 0, Kind.CRASH, "g"),
            Event(B, 0, 0, Kind.DELIVER, "g", A, 1, 3, order=11),
            Event(B, 1, 0, Kind.DELIVER, "g", C, 1, 1, order=14),
            Event(C, 0, 0, Kind.MULTICAST, "g", C, 1, 1, annotation=replacing),
            Event(C, 1, 0, Kind.DELIVER, "g", C, 1, 1, order=14),
        ],
    )
    (verdict,) = check(history, ["semantic_agreement"])
    assert (
        verdict.detail == "c#1 has neither (a,1) nor a replacement; c#1 has neither (a,3) nor a replacement"
    )
