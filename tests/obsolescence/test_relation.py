"""The relation and its representations: O1 (Pereira 2002, figures 3.1 to 3.5)."""

from collections.abc import Sequence

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from semcast.core import Annotation, Enumeration, Item, KEnumeration, MemberId, Message, MessageId
from semcast.obsolescence import OperationTracker, SingleItemTracker, obsoletes

P, Q = MemberId("p"), MemberId("q")

SAMPLE = {(1, 3), (1, 4), (3, 4), (2, 5)}
"""Figure 3.1: (old, new)."""


def sequence(annotations: Sequence[Annotation | None]) -> list[Message]:
    return [Message(MessageId(P, seq), b"", tag) for seq, tag in enumerate(annotations, 1)]


def printed(base: int, bits: str) -> KEnumeration:
    """(seq, base, [bits]) as the figures write it: leftmost is the message just before `base`."""
    return KEnumeration(base, sum(1 << n for n, bit in enumerate(bits) if bit == "1"))


def ids(*seqs: int) -> tuple[MessageId, ...]:
    return tuple(MessageId(P, seq) for seq in seqs)


def relation(messages: Sequence[Message]) -> set[tuple[int, int]]:
    return {(old.id.seq, new.id.seq) for new in messages for old in messages if obsoletes(new, old)}


TAGS = [Item(x) for x in "abaab"]
ENUMERATIONS = [Enumeration(ids(*pred)) for pred in ((), (), (1,), (1, 3), (2,))]
K_ENUMERATIONS = [
    printed(1, "0000"),
    printed(2, "0000"),
    printed(3, "0100"),
    printed(4, "1010"),
    printed(5, "0010"),
]
REPRESENTATIONS: dict[str, Sequence[Annotation]] = {
    "item tags (3.2)": TAGS,
    "enumeration (3.3)": ENUMERATIONS,
    "k-enumeration, base = seq": K_ENUMERATIONS,
    "k-enumeration as printed (3.4)": [*K_ENUMERATIONS[:4], printed(4, "0100")],
}


@pytest.mark.parametrize("name", REPRESENTATIONS)
def test_sample_relation(name: str) -> None:
    """Figures 3.2, 3.3 and 3.4 all represent 3.1; m5 as printed (base 4) and with base = seq."""
    assert relation(sequence(REPRESENTATIONS[name])) == SAMPLE


@pytest.mark.parametrize("name", REPRESENTATIONS)
@pytest.mark.parametrize(
    ("length", "mandatory", "optional"),
    [
        (1, {1}, set()),
        (2, {1, 2}, set()),
        (3, {2, 3}, {1}),
        (4, {2, 4}, {1, 3}),
        (5, {4, 5}, {1, 2, 3}),
    ],
)
def test_mandatory_and_optional(name: str, length: int, mandatory: set[int], optional: set[int]) -> None:
    """Figure 3.5: what must be delivered of each prefix R, and what may be left out."""
    prefix = sequence(REPRESENTATIONS[name][:length])
    found = {old.id.seq for old in prefix if any(obsoletes(new, old) for new in prefix)}
    assert found == optional
    assert {message.id.seq for message in prefix} - found == mandatory


def test_single_item_tracker_prints_figure_3_4() -> None:
    tracker = SingleItemTracker(k=4)
    assert [tracker.update(item) for item in "abaab"] == K_ENUMERATIONS


def test_one_message_replaces_unrelated_ones() -> None:
    """3.3.2 and 3.3.3: an m6 that replaces m4 and m5; with k = 4 it cannot reach m1."""
    everything = sequence([*ENUMERATIONS, Enumeration(ids(1, 2, 3, 4, 5))])
    assert relation(everything) == SAMPLE | {(seq, 6) for seq in range(1, 6)}
    in_reach = sequence([*K_ENUMERATIONS, printed(6, "1111")])
    assert relation(in_reach) == SAMPLE | {(seq, 6) for seq in range(2, 6)}


def test_without_annotation_nothing_is_related() -> None:
    """Neither replaced nor replacing, whatever the others say."""
    plain = Message(MessageId(P, 1), b"")
    for annotation in (Item("a"), Enumeration(ids(1)), printed(2, "1")):
        assert not obsoletes(Message(MessageId(P, 2), b"", annotation), plain)
    assert not obsoletes(plain, Message(MessageId(P, 2), b"", Item("a")))


def test_senders() -> None:
    """Tags and k-enumerations speak of their own sender only; enumerations of any."""
    of_q = Message(MessageId(Q, 1), b"", Item("a"))
    assert not obsoletes(Message(MessageId(P, 2), b"", Item("a")), of_q)
    assert not obsoletes(Message(MessageId(P, 2), b"", printed(2, "1")), of_q)
    assert obsoletes(Message(MessageId(P, 2), b"", Enumeration((MessageId(Q, 1),))), of_q)


def test_incarnations_are_different_senders() -> None:
    restarted = Message(MessageId(MemberId("p", 1), 2), b"", Item("a"))
    assert not obsoletes(restarted, Message(MessageId(P, 1), b"", Item("a")))


def test_positions_in_the_total_order() -> None:
    """3.3.3: with total order behind it, a k-enumeration replaces messages of other senders."""
    reply = Message(MessageId(Q, 1), b"", KEnumeration(base=4, bitmap=0b101, total=True), order=5)
    by_order = {order: Message(MessageId(P, 9), b"", Item("x"), order) for order in range(1, 5)}
    assert [order for order, old in by_order.items() if obsoletes(reply, old)] == [1, 3]
    assert not obsoletes(reply, Message(MessageId(P, 1), b"", Item("x")))


# A strict partial order inside causality (3.2)


def assert_strict_partial_order(messages: Sequence[Message], reach: int | None = None) -> None:
    """`messages` in an order that contains causality. Beyond `reach` nothing is said of transitivity."""
    place = {message.id: at for at, message in enumerate(messages)}
    pairs = {(old.id, new.id) for new in messages for old in messages if obsoletes(new, old)}
    assert all(place[old] < place[new] for old, new in pairs)
    for old, middle in pairs:
        for middle2, new in pairs:
            if middle == middle2 and (reach is None or place[new] - place[old] <= reach):
                assert (old, new) in pairs


@given(st.lists(st.tuples(st.sampled_from([P, Q]), st.sampled_from([*"abc", None])), max_size=12))
@settings(deadline=None)
def test_item_tags_are_a_strict_partial_order(sent: list[tuple[MemberId, str | None]]) -> None:
    counts = {P: 0, Q: 0}
    messages = []
    for sender, item in sent:
        counts[sender] += 1
        tag = None if item is None else Item(item)
        messages.append(Message(MessageId(sender, counts[sender]), b"", tag))
    assert_strict_partial_order(messages)


@given(st.lists(st.tuples(st.sampled_from([P, Q]), st.sets(st.integers(1, 4), max_size=3)), max_size=12))
@settings(deadline=None)
def test_closed_enumerations_are_a_strict_partial_order(sent: list[tuple[MemberId, set[int]]]) -> None:
    """3.3.2: a message names its predecessors and all of theirs."""
    counts = {P: 0, Q: 0}
    messages: list[Message] = []
    for sender, back in sent:
        counts[sender] += 1
        direct = [messages[-n] for n in sorted(back) if n <= len(messages)]
        named = {message.id for message in direct}
        for message in direct:
            assert isinstance(message.annotation, Enumeration)
            named.update(message.annotation.ids)
        messages.append(Message(MessageId(sender, counts[sender]), b"", Enumeration(tuple(sorted(named)))))
    assert_strict_partial_order(messages)


@given(st.lists(st.sampled_from([*"abc", None]), max_size=15), st.integers(1, 20))
@settings(deadline=None)
def test_tracked_single_items_are_a_strict_partial_order(items: list[str | None], k: int) -> None:
    tracker = SingleItemTracker(k)
    annotations: list[Annotation | None] = []
    for item in items:
        annotations.append(None if item is None else tracker.update(item))
        if item is None:
            tracker.reliable()
    assert_strict_partial_order(sequence(annotations), reach=k)


@given(st.lists(st.sets(st.sampled_from("abc"), max_size=3), max_size=6), st.integers(1, 20))
@settings(deadline=None)
def test_tracked_operations_are_a_strict_partial_order(operations: list[set[str]], k: int) -> None:
    tracker = OperationTracker(k)
    annotations: list[Annotation | None] = []
    for items in operations:
        updates, commit = tracker.operation(sorted(items))
        annotations += [*updates, commit]
    assert_strict_partial_order(sequence(annotations), reach=k)
