"""The parts of the ring on their own: packing, delivery queue, ordering, recovery, flow, settings, states."""

import ast
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from itertools import pairwise
from pathlib import Path
from random import Random

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from semcast.core import Annotation, Batch, Enumeration, Item, KEnumeration, MemberId, MessageId, Outbox
from semcast.core.events import Delivery, Merged, Purged, TransitionalView, ViewChange
from semcast.core.messages import batch_of
from semcast.core.views import View
from semcast.obsolescence import Purging
from semcast.protocols import ring
from semcast.protocols.lateness import Lateness
from semcast.protocols.ring import MOVES, Cause, Ring, RingSettings, State
from semcast.protocols.ring.delivery import CHANGES, DeliveryQueue
from semcast.protocols.ring.draft import Draft
from semcast.protocols.ring.flow import Flow
from semcast.protocols.ring.frames import FRAMES as RING_FRAMES
from semcast.protocols.ring.frames import RTR_SPANS, ConfId, ConfRecord, Packet, Part, Token
from semcast.protocols.ring.ordering import RingOrder, numbers, spans
from semcast.protocols.ring.packing import Assembly, SendQueue, batches_of
from semcast.protocols.ring.recovery import (
    Recovery,
    credible,
    keep_promises,
    merge,
    record_of,
    replace,
    split,
)
from semcast.protocols.ring.settings import REACH
from semcast.wire import Codec, Datagram
from semcast.wire.annotations import WireItem
from semcast.wire.limits import MAX_HOLES, MAX_PAYLOAD

P, Q, R = MEMBERS = (MemberId("p"), MemberId("q"), MemberId("r"))
CONF = ConfId(1, P)
FAR = 1 << 40


# Packing


def send_queue(packet_bytes: int, messages: int = FAR, size: int = FAR) -> SendQueue:
    return SendQueue(packet_bytes, messages, size)


def drain(queue: SendQueue) -> list[tuple[Draft, list[Batch]]]:
    popped = []
    while queue:
        [draft] = queue.pop(1)
        popped.append((draft, batches_of(P, draft.whole)))
    return popped


def payload_of(number: int, size: int) -> bytes:
    """Bytes that say where they belong."""
    return (b"%d." % number * (size // 2 + 1))[:size]


def assert_round_trip(queue: SendQueue, sent: Sequence[bytes], packet_bytes: int) -> None:
    assembly = Assembly(FAR)
    left: list[Batch] = []
    received: list[Batch] = []
    for draft, batches in drain(queue):
        assert sum(len(payload) for part in draft.parts for payload in part.payloads) <= packet_bytes
        left += batches
        received += assembly.batches(P, draft.parts)
    assert received == left, "what is announced as sent is what arrives, and at the same time"
    assert [payload for batch in received for payload in batch.payloads] == list(sent)
    assert [message.id.seq for batch in received for message in batch.messages()] == [
        *range(1, len(sent) + 1)
    ]
    assert assembly.refused == 0
    assert queue.messages == 0


@pytest.mark.parametrize("packet_bytes", [1, 2, 30, 31])
def test_every_size_around_the_packing_and_fragmentation_boundaries(packet_bytes: int) -> None:
    sizes = range(4 * packet_bytes + 3)
    queue = send_queue(packet_bytes)
    sent = [payload_of(number, size) for number, size in enumerate([*sizes, *reversed(sizes)])]
    assert queue.add(sent, None, safe=False) == len(sent)
    assert_round_trip(queue, sent, packet_bytes)


def test_every_pair_of_sizes_that_may_share_a_packet() -> None:
    for first in range(42):
        for second in range(42):
            queue = send_queue(40)
            sent = [payload_of(1, first), payload_of(2, second), b"end"]
            assert queue.add(sent, None, safe=False) == 3
            assert_round_trip(queue, sent, 40)


def test_how_many_packets_there_are() -> None:
    for size, expected in ((0, 1), (40, 1), (41, 2), (80, 2), (81, 3)):
        queue = send_queue(40)
        queue.add([bytes(size)], None, safe=False)
        drafts = [draft for draft, _ in drain(queue)]
        assert len(drafts) == expected, size
        assert [draft.parts[0].left for draft in drafts] == [*reversed(range(expected))]
    queue = send_queue(1300)
    queue.add([bytes(10)] * 99, None, safe=False)
    assert [len(draft.parts[0].payloads) for draft, _ in drain(queue)] == [99], "small ones share a packet"


ANNOTATIONS: st.SearchStrategy[Annotation | None] = st.one_of(
    st.none(),
    st.builds(Item, st.sampled_from(["a", "bb", "ü"])),
    st.builds(KEnumeration, st.integers(1, 9), st.integers(0, 1 << 20)),
    st.builds(Enumeration, st.lists(st.builds(MessageId, st.just(P), st.integers(1, 9))).map(tuple)),
)
OUTGOING = st.lists(st.tuples(st.integers(0, 70), ANNOTATIONS, st.booleans()), max_size=25)


@settings(deadline=None, max_examples=150)
@given(st.sampled_from([1, 7, 20, 33, 64]), OUTGOING, st.data())
def test_packets_keep_order_ids_annotations_and_safety_through_a_restart(
    packet_bytes: int, outgoing: list[tuple[int, Annotation | None, bool]], data: st.DataObject
) -> None:
    queue = send_queue(packet_bytes)
    sent = []
    for number, (size, annotation, safe) in enumerate(outgoing, 1):
        payload = payload_of(number, size)
        assert queue.add([payload], None if annotation is None else [annotation], safe=safe) == 1
        sent.append((number, payload, annotation, safe))
    # A configuration ends after some packets; a message cut in two by that begins again in the next one.
    received = []
    for restart in (True, False):
        assembly = Assembly(FAR)
        packets = data.draw(st.integers(0, 2 * len(outgoing))) if restart else FAR
        while queue and packets:
            packets -= 1
            [draft] = queue.pop(1)
            arrived = assembly.batches(P, draft.parts)
            assert arrived == batches_of(P, draft.whole)
            received += [
                (message.id.seq, message.payload, message.annotation, draft.safe)
                for batch in arrived
                for message in batch.messages()
            ]
        assert queue.messages == len(sent) - len(received)
        queue.restart()
    assert received == sent
    assert not queue


def test_restart_begins_a_partly_sent_message_again() -> None:
    queue = send_queue(10)
    queue.add([bytes(25), b"next"], None, safe=True)
    [first] = queue.pop(1)
    assert (first.parts[0].left, first.whole) == (2, [])
    queue.restart()
    queue.restart()  # nothing is begun twice
    lefts = [draft.parts[0].left for draft, _ in drain(queue)]
    assert lefts == [2, 1, 0, 0]


def test_a_message_that_left_as_a_whole_does_not_begin_again() -> None:
    queue = send_queue(10)
    queue.add([bytes(25)], None, safe=False)
    drain(queue)
    queue.restart()
    assert not queue


@given(
    st.integers(1, 6),
    st.integers(1, 60),
    st.lists(st.one_of(st.integers(0, 40), st.none()), max_size=40),
)
def test_limits_of_the_send_queue(messages: int, size: int, steps: list[int | None]) -> None:
    """Model: a message is taken if there is a place, and bytes enough or nothing else."""
    queue = send_queue(1000, messages, size)
    waiting: list[int] = []
    for step in steps:
        if step is None:
            if queue:
                [draft] = queue.pop(1)
                del waiting[: sum(len(part.payloads) for part in draft.whole)]
            continue
        fits = len(waiting) < messages and (not waiting or sum(waiting) + step <= size)
        assert queue.add([bytes(step)], None, safe=False) == fits
        waiting += [step] * fits
        assert queue.messages == len(waiting)


def test_a_batch_is_taken_up_to_the_limit() -> None:
    assert send_queue(100, messages=3).add([b"x"] * 5, None, safe=False) == 3
    assert send_queue(100, size=10).add([b"xxxx"] * 5, None, safe=False) == 2
    queue = send_queue(100, size=10)
    assert queue.add([bytes(50)], None, safe=False) == 1, "one that is larger than all bytes, alone"
    assert queue.add([b""], None, safe=False) == 0
    drain(queue)
    assert queue.add([b""], None, safe=False) == 1


REFUSED: dict[str, list[Part]] = {
    "a number again": [Part(5, [b"x"]), Part(5, [b"y"])],
    "numbers that go back": [Part(5, [b"x"]), Part(4, [b"y"])],
    "a run that ends after the next begins": [Part(1, [b"x"] * 5), Part(5, [b"y"])],
    "an annotation on several": [Part(1, [b"x", b"y"], WireItem("a"))],
    "an item too few": [Part(1, [b"x", b"y"], None, 0, ["a"])],
    "an item too many": [Part(1, [b"x"], None, 0, ["a", "b"])],
    "no items": [Part(1, [b"x"], None, 0, [])],
    "items and an annotation": [Part(1, [b"x"], WireItem("a"), 0, ["a"])],
    "a fragment of another message": [Part(1, [b"x"], left=1), Part(2, [b"y"])],
    "a fragment left out": [Part(1, [b"x"], left=2), Part(1, [b"y"])],
    "a fragment twice": [Part(1, [b"x"], left=1), Part(1, [b"x"], left=1)],
    "more fragments to come than before": [Part(1, [b"x"], left=1), Part(1, [b"y"], left=5)],
    "several payloads in a fragment": [Part(1, [b"x", b"y"], left=1)],
    "several payloads after a fragment": [Part(1, [b"x"], left=1), Part(1, [b"y", b"z"])],
    "more bytes than a message has": [Part(1, [bytes(60)], left=1), Part(1, [bytes(60)])],
    "a whole number again, in fragments": [Part(1, [b"x"]), Part(1, [b"y"], left=1), Part(1, [b"z"])],
}


@pytest.mark.parametrize("name", REFUSED)
def test_parts_that_do_not_fit_together_are_refused(name: str) -> None:
    assembly = Assembly(100)
    parts = REFUSED[name]
    batches = [batch for part in parts for batch in assembly.batches(P, [part])]
    assert assembly.refused == 1
    assert all(len(payload) == 1 for batch in batches for payload in batch.payloads), "nothing made up"
    assert assembly.batches(Q, [Part(1, [b"other"])]), "others are not concerned"
    assert assembly.batches(P, [Part(9, [b"later"])]), "and this sender can go on"


# The delivery queue


def view(number: int) -> ViewChange:
    return ViewChange(View(number, MEMBERS))


def seqs(deliveries: Iterable[Delivery]) -> list[int | str]:
    found: list[int | str] = []
    for each in deliveries:
        if isinstance(each, Batch):
            found += [each.first + place for place in range(len(each.payloads))]
        else:
            found.append("view" if isinstance(each, ViewChange) else "transitional")
    return found


def plain(first: int, count: int = 1) -> Batch:
    return batch_of(P, first, [b"."] * count)


def item(seq: int, tag: str = "a") -> Batch:
    return batch_of(P, seq, [b"."], Item(tag))


def updates(first: int, tags: list[str]) -> Batch:
    return Batch(P, first, [b"."] * len(tags), size=len(tags), items=tags)


def test_a_batch_is_cut_where_the_queue_is_full() -> None:
    queue = DeliveryQueue(4, Purging.LAZY)
    assert queue.add(plain(1, 3)) == 3
    assert queue.add(plain(4, 3)) == 1
    assert queue.add(plain(5, 2)) == 0
    assert len(queue) == 4
    assert seqs(queue.pop(2)) == [1, 2]
    assert queue.add(plain(5, 2)) == 2
    assert seqs(queue.pop(FAR)) == [3, 4, 5, 6]


def receipts_of(queue: DeliveryQueue) -> list[Purged]:
    return [receipt for some in queue.take_receipts() for receipt in some.receipts()]


def test_a_full_queue_takes_what_makes_room_for_itself() -> None:
    queue = DeliveryQueue(2, Purging.LAZY)
    assert [queue.add(batch) for batch in (item(1), plain(2), item(3), item(4, "b"))] == [1, 1, 1, 0]
    [receipt] = receipts_of(queue)
    assert (receipt.id, receipt.by) == (MessageId(P, 1), MessageId(P, 3))
    assert queue.take_receipts() == []
    assert seqs(queue.pop(FAR)) == [2, 3]


def test_without_purging_annotations_mean_nothing() -> None:
    queue = DeliveryQueue(2, Purging.OFF)
    assert [queue.add(item(seq)) for seq in (1, 2, 3)] == [1, 1, 0]
    assert queue.take_receipts() == []


@pytest.mark.parametrize("change", [view(2), TransitionalView(View(1, MEMBERS))])
def test_nothing_is_purged_across_a_change(change: ViewChange | TransitionalView) -> None:
    queue = DeliveryQueue(10, Purging.LAZY)
    queue.add(item(1))
    queue.change(change)
    queue.add(item(2))
    queue.add(item(3))
    queue.pop(0)  # the application takes less than there is
    [receipt] = receipts_of(queue)
    assert receipt.id.seq == 2
    assert [entry for entry in seqs(queue.pop(FAR)) if isinstance(entry, int)] == [1, 3]
    full = DeliveryQueue(1, Purging.LAZY)
    full.add(item(1))
    full.change(change)
    assert full.add(item(2)) == 0, "the only victim is out of reach"


def test_receipts_of_before_a_change_are_not_lost() -> None:
    queue = DeliveryQueue(10, Purging.LAZY)
    queue.add(item(1))
    queue.add(item(2))
    queue.change(view(2))
    queue.add(item(3))
    queue.add(item(4))
    queue.pop(0)
    assert [receipt.id.seq for receipt in receipts_of(queue)] == [1, 3]


def test_force_goes_beyond_the_limit_and_what_comes_after_waits() -> None:
    queue = DeliveryQueue(2, Purging.LAZY)
    queue.force(plain(1, 5))
    overfull = [len(queue) > queue.limit]
    assert len(queue) == 5
    assert queue.add(plain(6)) == 0
    queue.pop(3)
    assert [*overfull, len(queue) > queue.limit] == [True, False]
    assert queue.add(plain(6)) == 0
    queue.pop(1)
    assert queue.add(plain(6, 2)) == 1


def test_pop_with_limits_hands_changes_over_for_nothing() -> None:
    queue = DeliveryQueue(10, Purging.LAZY)
    assert not queue
    queue.change(view(1))
    assert queue
    queue.add(plain(1, 3))
    queue.change(view(2))
    queue.change(view(3))
    queue.add(plain(4))
    assert seqs(queue.pop(0)) == ["view"]
    assert seqs(queue.pop(2)) == [1, 2]
    assert seqs(queue.pop(1)) == [3, "view", "view"]
    assert seqs(queue.pop(0)) == []
    assert queue
    assert seqs(queue.pop(5)) == [4]
    assert not queue
    assert queue.pop(5) == []


def test_what_is_deliverable_for_nothing_is_handed_over_for_nothing() -> None:
    queue = DeliveryQueue(10, Purging.LAZY)
    queue.add(plain(1))
    queue.pop(1)
    queue.change(view(2))
    assert queue
    assert seqs(queue.pop(0)) == ["view"]


def test_an_application_with_always_something_left_is_not_behind_if_it_takes_all_in_time() -> None:
    lateness = Lateness(lag=50)
    for now in range(0, 1000, 20):
        assert not lateness.behind(now)
        lateness.took(now, 100, 200)


def test_an_application_is_behind_until_it_has_taken_everything() -> None:
    lateness = Lateness(lag=50)
    lateness.took(0, 0, 10)
    assert not lateness.behind(50)
    assert lateness.behind(51)
    lateness.took(51, 10, 5)
    assert lateness.behind(52)
    lateness.took(60, 5, 0)
    assert not lateness.behind(60)


STEPS = st.lists(
    st.one_of(
        st.tuples(st.just("plain"), st.integers(1, 4)),
        st.tuples(st.just("item"), st.integers(0, 2)),
        st.tuples(st.just("run"), st.integers(0, 3**5 - 1)),
        st.tuples(st.just("in time"), st.integers(0, 3**5 - 1)),
        st.tuples(st.just("force"), st.integers(0, 2)),
        st.tuples(st.just("change"), st.just(0)),
        st.tuples(st.just("pop"), st.integers(1, 5)),
    ),
    max_size=40,
)


@dataclass(eq=False)
class Entry:
    seq: int
    tag: int | None
    by: int | None = None


@settings(deadline=None, max_examples=150)
@given(st.integers(1, 8), STEPS)
def test_delivery_queue_against_a_list(limit: int, steps: list[tuple[str, int]]) -> None:  # noqa: PLR0915
    """Model: one list of views and messages; a tag makes an equal one after the last view obsolete.

    All that are obsolete go when room is needed and the application is behind.
    """
    queue = DeliveryQueue(limit, Purging.LAZY)
    model: list[Entry | None] = []  # None is a view
    purged: list[int] = []
    said: dict[int, tuple[int, int]] = {}  # tag and configuration of each message
    seq = changes = 0

    def messages() -> int:
        return sum(entry is not None for entry in model)

    def victim(tag: int) -> Entry | None:
        for entry in reversed(model):
            if entry is None:
                return None
            if entry.tag == tag and entry.by is None:
                return entry
        return None

    def purge(most: int) -> None:
        segment = 0
        doomed = []
        for entry in model:
            segment += entry is None
            if entry is not None and entry.by is not None:
                doomed.append((segment, entry.by, entry))
        for _, _, entry in sorted(doomed, key=lambda each: each[:2])[: max(most, 0)]:
            assert entry.by is not None
            model.remove(entry)
            purged.append(entry.seq)

    def add(tag: int) -> bool:
        if messages() >= limit:
            purge(messages())
        old, fits = victim(tag), messages() < limit
        if fits or old is not None:
            append(tag)
            if not fits:
                purge(1)
            return True
        return False

    def append(tag: int) -> None:
        nonlocal seq
        seq += 1
        old = victim(tag)
        if old is not None:
            old.by = seq
        model.append(Entry(seq, tag))
        said[seq] = tag, changes

    for kind, value in steps:
        if kind == "change":
            changes += 1
            model.append(None)
            queue.change(view(1))
        elif kind == "pop":
            if messages() > value:
                purge(messages())
            expected: list[int | str] = []
            left = value
            while model and (model[0] is None or left > 0):
                entry = model.pop(0)
                expected.append("view" if entry is None else entry.seq)
                left -= entry is not None
            assert seqs(queue.pop(value)) == expected
        elif kind == "plain":
            if value > limit - messages():
                purge(messages())
            taken = min(max(limit - messages(), 0), value)
            assert queue.add(plain(seq + 1, value)) == taken
            model += [Entry(seq + 1 + place, None) for place in range(taken)]
            seq += value
        elif kind in ("run", "in time"):
            tags = [value // 3**place % 3 for place in range(5)]
            found = queue.add(updates(seq + 1, list(map(str, tags))), behind=kind == "run")
            begun = seq
            if kind == "run" and len(tags) > limit - messages():
                purge(messages())
            if kind == "in time" or len(tags) <= limit - messages():
                for tag in tags[: max(limit - messages(), 0)]:
                    append(tag)
            else:
                for tag in tags:
                    if not add(tag):
                        break
            assert found == seq - begun
            seq = begun + len(tags)
        elif kind == "item":
            begun = seq
            assert queue.add(item(seq + 1, str(value))) == add(value)
            seq = begun + 1
        else:
            append(value)
            queue.force(item(seq, str(value)))
        assert len(queue) == messages()
        assert bool(queue) == bool(model)
    receipts = receipts_of(queue)
    assert sorted(receipt.id.seq for receipt in receipts) == sorted(purged)
    for receipt in receipts:
        assert receipt.by is not None
        assert receipt.id.seq < receipt.by.seq
        assert said[receipt.id.seq] == said[receipt.by.seq]


# Ordering


def order(rank: int = 0, size: int = 3, window: int = 64) -> RingOrder:
    members = tuple(MemberId(f"m{number}") for number in range(size))
    return RingOrder(CONF, members, members[rank], window)


def packet(seq: int, sender: int = 0, *, safe: bool = False) -> Packet:
    return Packet(CONF, seq, sender, safe, [Part(seq, [b"%d" % seq])])


def token(seq: int, aru: int, lowered_by: int, rtr: Sequence[tuple[int, int]] = ()) -> Token:
    return Token(CONF, 1, seq, aru, lowered_by, list(rtr), 0)


def having(seqs_here: Iterable[int], rank: int = 0) -> RingOrder:
    found = order(rank)
    for seq in seqs_here:
        assert found.receive(packet(seq))
    return found


def test_the_neighbours_on_the_ring() -> None:
    names = [(order(rank).predecessor.name, order(rank).successor.name) for rank in range(3)]
    assert names == [("m2", "m1"), ("m0", "m2"), ("m1", "m0")]
    alone = order(0, 1)
    assert alone.predecessor == alone.successor == alone.members[0]


def test_my_aru_is_the_end_of_what_is_here_without_a_gap() -> None:
    here = order()
    for seq, aru in ((2, 0), (1, 2), (5, 2), (4, 2), (3, 5)):
        assert here.receive(packet(seq))
        assert here.my_aru == aru
    assert not here.receive(packet(3))
    assert (here.highest_seq, here.missing(FAR)) == (5, [])


@pytest.mark.parametrize(
    ("mine", "seq", "aru", "lowered_by", "released"),
    [
        (5, 5, 5, -1, (5, -1)),  # everybody has everything
        (3, 5, 5, -1, (3, 1)),  # "if my_aru is smaller, it sets aru to my_aru"
        (3, 5, 4, 2, (3, 1)),  # also below what another lowered it to
        (4, 5, 3, 1, (4, 1)),  # "lowered, and it returned with the same value": raise to my_aru
        (5, 5, 3, 1, (5, -1)),  # all the way
        (2, 5, 3, 1, (2, 1)),  # still lower than last time
        (5, 5, 3, 2, (3, 2)),  # another member lowered it: its business
        (5, 5, 3, 0, (3, 0)),
        (7, 7, 5, -1, (7, -1)),  # equal to seq before this visit sent two: in step with seq
    ],
)
def test_the_aru_rule(mine: int, seq: int, aru: int, lowered_by: int, released: tuple[int, int]) -> None:
    here = having(range(1, mine + 1), rank=1)
    assert here.lower_aru(token(seq, aru, lowered_by), seq, here.my_aru) == released


def test_a_member_that_holds_back_reports_less_than_it_has() -> None:
    here = having(range(1, 8), rank=1)
    assert here.lower_aru(token(7, 7, -1), 7, held_at=4) == (4, 1)
    assert here.lower_aru(token(7, 4, 1), 7, held_at=7) == (7, -1)


def test_aru_is_confirmed_by_two_releases() -> None:
    here = order()
    confirmed = []
    for aru in (4, 6, 5, 5, 9, 2, 2):
        here.release(aru)
        confirmed.append(here.confirmed_aru)
    assert confirmed == [0, 4, 5, 5, 5, 5, 5], "the lower of two in succession, and never back"


def test_requests_name_what_is_missing_and_what_nobody_answered() -> None:
    here = having([1, 2, 5, 9])
    asked = here.requests([(3, 3), (20, 21)], {20}, 10, accelerated=False)
    assert asked == [(3, 4), (6, 8), (10, 10), (21, 21)]
    assert here.highest_seq == 10, "the token told"


def test_an_accelerated_ring_asks_only_for_what_the_token_knew_at_the_previous_visit() -> None:
    here = having([1, 2, 5])
    assert here.requests([], set(), 8, accelerated=True) == [], "the first visit: all may be under way"
    assert here.requests([], set(), 12, accelerated=True) == [(3, 4), (6, 8)]
    assert here.requests([], set(), 12, accelerated=True) == [(3, 4), (6, 12)]


def test_requests_are_bounded() -> None:
    here = having(range(2, 1500, 2))
    asked = here.requests([], set(), 1500, accelerated=False)
    assert len(asked) == RTR_SPANS
    assert asked[0] == (1, 1), "the oldest first"


def test_answers_are_what_is_here_and_bounded() -> None:
    here = having([1, 2, 4, 5])
    assert [found.seq for found in here.answers([(1, 3), (5, 9)], 10)] == [1, 2, 5]
    assert [found.seq for found in here.answers([(1, 3), (4, 9)], 10)] == [4]  # the others had their turn
    assert [found.seq for found in here.answers([(1, 3), (5, 9)], 2)] == [1, 2]


def test_trim_waits_for_the_application_and_for_everybody() -> None:
    here = having(range(1, 7))
    here.delivered = 6
    here.trim()
    assert len(here.store) == 6
    here.confirmed_aru, here.delivered = 4, 3
    here.trim()
    assert sorted(here.store) == [4, 5, 6]
    here.delivered = 6
    here.trim()
    assert sorted(here.store) == [5, 6]


@settings(deadline=None, max_examples=100)
@given(st.integers(2, 5), st.randoms(use_true_random=False), st.integers(0, 70), st.booleans())
def test_a_lossy_ring_never_confirms_or_forgets_too_early(
    size: int, rng: Random, loss: int, accelerated: bool
) -> None:
    """Whatever is lost: what is confirmed, everybody has; what somebody lacks, all others still keep."""
    ring_ = [order(rank, size) for rank in range(size)]
    on_way = token(0, 0, -1)
    rounds, quiet = 6 * size, 6 * size
    for visit in range(rounds + quiet):
        here = ring_[visit % size]
        losing = visit < rounds and loss
        sends = [packet(on_way.seq + 1 + n, here.rank) for n in range(rng.randint(0, 3) if losing else 0)]
        answers = here.answers(on_way.rtr, 100)
        for each in sends:
            here.receive(each)
        for other in ring_:
            for each in [*answers, *sends]:
                if other is not here and not (losing and rng.randrange(100) < loss):
                    other.receive(each)
        seq = on_way.seq + len(sends)
        rtr = here.requests(on_way.rtr, {each.seq for each in answers}, seq, accelerated=accelerated)
        held_at = here.my_aru - rng.choice((0, 0, 2)) if losing else here.my_aru
        aru, lowered_by = here.lower_aru(on_way, seq, max(held_at, 0))
        here.release(aru)
        here.delivered = here.my_aru
        here.trim()
        on_way = Token(CONF, visit, seq, aru, lowered_by, rtr, 0)
        assert here.credible(on_way)
        for member in ring_:
            assert member.confirmed_aru <= min(other.my_aru for other in ring_)
        for number in range(1, seq + 1):
            keepers = [number in other.store for other in ring_]
            has = [here or number <= other.my_aru for here, other in zip(keepers, ring_, strict=True)]
            assert any(has), "somebody sent it"
            if not all(has):
                assert keepers == has, "who has it keeps it for those who lack it"
    assert on_way.aru == on_way.seq
    assert not on_way.rtr
    assert all(not member.store and member.confirmed_aru == on_way.seq for member in ring_)


# Spans


@given(st.sets(st.integers(0, 60)))
def test_spans_and_numbers_are_inverse(chosen: set[int]) -> None:
    found = spans(sorted(chosen))
    assert list(numbers(found)) == sorted(chosen)
    assert all(low <= high for low, high in found)
    assert all(before[1] + 1 < after[0] for before, after in pairwise(found)), "as few as possible"


# Recovery


@st.composite
def old_configuration(draw: st.DrawFn) -> tuple[int, int, list[tuple[set[int], int, int]]]:
    """What was sent (1..top), what everybody in it had, and of some: (has, knows as aru, knows sent)."""
    top = draw(st.integers(0, 24))
    everybody_has = draw(st.integers(0, top))
    members = []
    for _ in range(draw(st.integers(1, 4))):
        more = draw(st.sets(st.integers(everybody_has + 1, top))) if top > everybody_has else set()
        has = {*range(1, everybody_has + 1), *more}
        aru = draw(st.integers(0, everybody_has))
        known = draw(st.integers(max(has, default=0), top))
        members.append((has, aru, known))
    return top, everybody_has, members


def order_of(has: set[int], aru: int, known: int) -> RingOrder:
    found = having(sorted(has))
    found.confirmed_aru = aru
    found.highest_seq = known
    found.delivered = aru
    found.trim()
    return found


def holes_of(record: ConfRecord) -> set[int]:
    bits = int.from_bytes(record.holes, "little")
    return {record.aru + 1 + bit for bit in range(bits.bit_length()) if bits >> bit & 1}


@settings(deadline=None, max_examples=200)
@given(old_configuration(), st.randoms(use_true_random=False))
def test_records_against_sets(drawn: tuple[int, int, list[tuple[set[int], int, int]]], rng: Random) -> None:
    """The holes of the whole list are what nobody has, whatever the order of the Form token."""
    _, _, members = drawn
    records = [
        record_of(order_of(*member), [MemberId(f"o{number}")]) for number, member in enumerate(members)
    ]
    for record, (has, aru, known) in zip(records, members, strict=True):
        assert (record.aru, record.highest_seq) == (aru, max(known, aru))
        assert holes_of(record) == {*range(aru + 1, known + 1)} - has
    aru = max(aru for _, aru, _ in members)
    highest = max(record.highest_seq for record in records)
    rng.shuffle(records)
    merged = records[0]
    for record in records[1:]:
        assert merge(merged, record) == merge(record, merged)
        merged = merge(merged, record)
        assert merge(merged, record) == merged
    assert credible(merged)
    assert (merged.aru, merged.highest_seq) == (aru, highest)
    somebody_has = set().union(*(has for has, _, _ in members))
    assert holes_of(merged) == {*range(aru + 1, highest + 1)} - somebody_has
    assert merged.obligation_set == sorted(MemberId(f"o{number}") for number in range(len(members)))


@settings(deadline=None, max_examples=100)
@given(old_configuration())
def test_what_is_missing_in_a_recovery_is_what_others_have(
    drawn: tuple[int, int, list[tuple[set[int], int, int]]],
) -> None:
    _, _, members = drawn
    orders = [order_of(*member) for member in members]
    merged = record_of(orders[0], [])
    for each in orders[1:]:
        merged = merge(merged, record_of(each, []))
    somebody_has = set().union(*(has for has, _, _ in members))
    for each, (has, _, _) in zip(orders, members, strict=True):
        recovery = Recovery(each, merged)
        assert recovery.holes == holes_of(merged)
        assert recovery.missing() == sorted(somebody_has - has)
        asked = recovery.requests([(30, 31)], {30})
        assert list(numbers(asked)) == [*sorted(somebody_has - has), 31]


def test_a_promise_may_be_ahead_of_what_is_here() -> None:
    """After a failure in the EVS state `aru` is known to be higher than this member's own."""
    here = having([1, 2, 5])
    keep_promises(here, ConfRecord(CONF, [], 5, 4, b""))
    keep_promises(here, ConfRecord(CONF, [], 5, 3, b""))
    record = record_of(here, [P])
    assert (record.aru, record.highest_seq, record.holes) == (4, 5, b"")
    assert Recovery(here, record).missing() == [3, 4], "to be had from others"


def test_replace_merges_with_the_record_of_the_same_configuration_only() -> None:
    other = ConfRecord(ConfId(7, Q), [Q], 3, 1, b"\1")
    mine = ConfRecord(CONF, [P], 4, 2, b"\2")
    assert replace([], mine) == [mine]
    assert replace([other], mine) == [other, mine]
    theirs = ConfRecord(CONF, [R], 4, 1, b"\4")
    assert replace([theirs, other], mine) == [merge(theirs, mine), other]


@pytest.mark.parametrize(
    ("highest", "aru", "holes", "believed"),
    [
        (5, 5, b"", True),
        (5, 3, b"\3", True),
        (5, 3, b"\4", False),  # packet 6 of 5
        (3, 5, b"", False),
        (MAX_HOLES + 1, 0, b"", False),
        (MAX_HOLES, 0, b"", True),
        (5, 3, b"\3\0\0", True),
    ],
)
def test_credible_records(highest: int, aru: int, holes: bytes, believed: bool) -> None:
    assert credible(ConfRecord(CONF, [], highest, aru, holes)) is believed


@st.composite
def recovered(draw: st.DrawFn) -> tuple[RingOrder, ConfRecord, set[int], list[Packet]]:
    """A member that lacks nothing but the holes."""
    highest = draw(st.integers(0, 16))
    aru = draw(st.integers(0, highest))
    holes = draw(st.sets(st.integers(aru + 1, highest))) if highest > aru else set()
    here = order()
    packets = []
    for seq in range(1, highest + 1):
        if seq not in holes:
            packets.append(packet(seq, draw(st.integers(0, 2)), safe=draw(st.booleans())))
            here.receive(packets[-1])
    obliged = draw(st.sets(st.sampled_from([*here.members, MemberId("somebody else")])))
    bits = sum(1 << (seq - aru - 1) for seq in holes)
    record = ConfRecord(CONF, sorted(obliged), highest, aru, bits.to_bytes(2, "little"))
    return here, record, holes, packets


@settings(deadline=None, max_examples=300)
@given(recovered(), st.data())
def test_the_steps_of_5_2_3_to_the_letter(
    drawn: tuple[RingOrder, ConfRecord, set[int], list[Packet]], data: st.DataObject
) -> None:
    here, record, holes, packets = drawn
    first_hole = min(holes, default=FAR)
    # 1. "all of the messages up to but not including the first place holder, or the first safe message
    #    higher than original_aru"
    first_safe = min((each.seq for each in packets if each.safe and each.seq > record.aru), default=FAR)
    step_1 = [each for each in packets if each.seq < min(first_hole, first_safe)]
    # 3. "Discard all the messages, except those sent by a member of the obligation_set", after a hole.
    rest = [each for each in packets if each not in step_1]
    step_4 = [
        each for each in rest if each.seq < first_hole or here.members[each.sender] in record.obligation_set
    ]
    here.delivered = data.draw(st.integers(0, len(step_1)))
    regular, transitional = split(here, record, holes)
    assert regular == step_1[here.delivered :]
    assert transitional == step_4
    assert Recovery(here, record).split() == (regular, transitional)


# Flow control


def test_the_limit_of_a_visit_follows_loss() -> None:
    flow = Flow(RingSettings(visit=16, visit_least=2, window=64), 3)
    assert flow.limit == 4
    flow.account(0, 0, 4, 4, lost=False)
    assert flow.limit == 5, "used up: one more"
    flow.account(4, 4, 4, 8, lost=False)
    assert flow.limit == 5, "not used up"
    for _ in range(20):
        flow.account(8, 4, flow.limit, 8, lost=False)
    assert flow.limit == 16
    flow.account(8, 16, 16, 8, lost=True)
    assert flow.limit == 12
    for _ in range(20):
        flow.account(8, 0, 0, 8, lost=True)
    assert flow.limit == 2


def test_a_fixed_limit_stays() -> None:
    flow = Flow(RingSettings(visit=16, window=64, adaptive=False), 3)
    for lost in (True, False, True):
        flow.account(0, 0, 16, 16, lost=lost)
        assert flow.limit == 16


def test_the_limit_grows_by_a_quarter_until_something_is_lost_and_by_one_from_then_on() -> None:
    flow = Flow(RingSettings(visit=64, window=512), 3)
    grown = [flow.limit]
    for lost in (False, False, True, False, False):
        flow.account(0, 0, flow.limit, 0, lost=lost)
        grown.append(flow.limit)
    assert grown == [16, 20, 25, 18, 19, 20]


@settings(deadline=None)
@given(st.integers(1, 6), st.randoms(use_true_random=False))
def test_fcc_counts_one_rotation_and_nobody_exceeds_the_windows(size: int, rng: Random) -> None:
    limits = RingSettings(visit=8, visit_least=1, window=20)
    flows = [Flow(limits, size) for _ in range(size)]
    last = [0] * size
    fcc = seq = aru = 0
    for visit in range(8 * size):
        me = visit % size
        aru = rng.randint(aru, seq)
        room = flows[me].allowance(seq, aru, fcc)
        assert 0 <= room <= min(flows[me].limit, limits.visit)
        assert seq - aru + room <= limits.window or room == 0
        assert sum(last) - last[me] + room <= limits.window or room == 0
        last[me] = rng.randint(0, room)
        seq += last[me]
        fcc = flows[me].account(seq - last[me], fcc, last[me], seq, lost=rng.random() < 0.2)
        assert fcc == sum(last)


@pytest.mark.parametrize("idle", [None, 0, 2])
@pytest.mark.parametrize("room", [1, 2, 3, 7])
def test_a_slow_reader_makes_room_for_everybody_who_has_something(room: int, idle: int | None) -> None:
    """The last member of the ring makes room, now and then: nobody uses more than twice what others do."""
    size, limits = 3, RingSettings(visit=8, window=20)
    flows = [Flow(limits, size) for _ in range(size)]
    sent = [0] * size
    fcc = seq = aru = 0
    for visit in range(600 * size):
        me = visit % size
        if visit % (5 * size) == size - 1:
            aru = min(seq, aru + room)
        count = 0 if me == idle else flows[me].allowance(seq, aru, fcc, shared=True)
        assert flows[me].full(seq, aru, shared=True) or count or me == idle
        sent[me] += count if seq > limits.window else 0
        seq += count
        fcc = flows[me].account(seq - count, fcc, count, seq, lost=False)
    sent = [count for me, count in enumerate(sent) if me != idle]
    assert sum(sent) >= 115 * room
    assert max(sent) <= 2 * min(sent) + 2


def test_an_absurd_fcc_is_forgotten_after_a_rotation() -> None:
    flow = Flow(RingSettings(), 3)
    assert flow.account(0, FAR, 0, 0, lost=False) <= flow.limit
    assert flow.allowance(0, 0, FAR) > 0


# Settings


@pytest.mark.parametrize(
    ("changed", "says"),
    [
        ({"visit_least": 0}, "visit_least"),
        ({"visit_least": 65}, "visit_least"),
        ({"visit": 600}, "visit"),
        ({"window": MAX_HOLES}, "window"),
        ({"packet_bytes": 0}, "packet_bytes"),
        ({"packet_bytes": MAX_PAYLOAD + 1}, "packet_bytes"),
        ({"retransmit": 300_000_000}, "retransmit"),
        ({"hold": 300_000_000}, "hold"),
        ({"join": 120_000_000}, "join"),
        ({"queue_messages": 0}, "queue_messages"),
        ({"send_messages": 0}, "send_messages"),
        ({"send_bytes": 0}, "send_bytes"),
        ({"max_message": 0}, "max_message"),
    ],
)
def test_settings_that_cannot_work_are_refused(changed: dict[str, int], says: str) -> None:
    with pytest.raises(ValueError, match=says):
        RingSettings(**changed)  # type: ignore[arg-type]


def test_messages_that_need_more_fragments_than_a_part_can_count_are_refused() -> None:
    """Otherwise nobody can decode the packets, and the ring breaks over each of them."""
    try:
        small = RingSettings(packet_bytes=1, max_message=70_000)
    except ValueError:
        return
    queue = SendQueue(small.packet_bytes, small.send_messages, small.send_bytes)
    assert queue.add([bytes(small.max_message)], None, safe=False) == 1
    [draft] = queue.pop(1)
    codec = Codec("g", [], 1400, RING_FRAMES)
    [data] = codec.encode(P, [Packet(CONF, 1, 0, False, draft.parts)])
    assert isinstance(codec.decode(data), Datagram)


def test_the_bound_covers_all_a_member_keeps() -> None:
    small = RingSettings(window=8, visit=8, packet_bytes=60, queue_messages=3, send_messages=4)
    assert small.bound() >= 3 + 4 + REACH * 8
    assert RingSettings().bound() > small.bound()


# States


def test_the_table_is_complete() -> None:
    assert {cause for _, cause in MOVES} == {*Cause}, "every cause moves somebody"
    assert {*MOVES.values()} == {*State}, "every state can be reached"
    for state in State:
        moves = [cause for old, cause in MOVES if old is state]
        assert bool(moves) is (state is not State.LEFT), "and be left, but for one"
        assert (Cause.LEAVING in moves) is (state is not State.LEFT)


def test_a_move_that_is_not_in_the_table_is_a_bug() -> None:
    member = Ring(P, RingSettings(), Random(1), Outbox())
    with pytest.raises(AssertionError, match="AGREED"):
        member.standing.shift_to(State.FORM, Cause.AGREED)
    with pytest.raises(AssertionError, match="STARTED"):
        member.standing.shift_to(State.EVS, Cause.STARTED)
    assert not member.standing.moves
    member.start(0)
    assert member.standing.moves == {(State.OPERATIONAL, Cause.STARTED): 1}


def test_the_state_is_set_in_one_place_only() -> None:
    """Every move goes through the table: nobody else assigns `state`."""
    found = []
    for path in sorted(Path(ring.__file__).parent.glob("*.py")):
        for function in ast.walk(ast.parse(path.read_text())):
            if isinstance(function, ast.FunctionDef):
                targets = [
                    target
                    for node in ast.walk(function)
                    if isinstance(node, ast.Assign | ast.AnnAssign | ast.AugAssign)
                    for target in (node.targets if isinstance(node, ast.Assign) else [node.target])
                ]
                names = [target.attr for target in targets if isinstance(target, ast.Attribute)]
                found += [function.name] * names.count("state")
    assert sorted(found) == ["__init__", "shift_to"]


# Configurations that are merged


def grown(queue: DeliveryQueue, first: int, last: int) -> None:
    """Configurations that come and go without a message."""
    for number in range(first, last + 1):
        queue.change(TransitionalView(View(number - 1, MEMBERS)))
        queue.change(view(number))


def test_configurations_without_messages_are_merged_beyond_a_number() -> None:
    queue = DeliveryQueue(10, Purging.LAZY)
    queue.change(view(1))
    queue.add(plain(1))
    grown(queue, 2, 1000)
    assert len(queue._segments) <= 2 * CHANGES + 2
    taken = queue.pop(FAR)
    assert [each.view.id for each in taken if isinstance(each, ViewChange)] == [*range(1, CHANGES), 1000]
    [merged] = [each for each in taken if isinstance(each, Merged)]
    assert merged.count == 1000 - CHANGES
    assert isinstance(taken[-3], TransitionalView), "of the last configuration that it was told of"
    assert taken[-3].view.id == CHANGES - 1
    grown(queue, 1001, 1010)
    assert not any(isinstance(each, Merged) for each in queue.pop(FAR))


def test_a_configuration_that_had_a_message_is_kept_also_if_that_was_purged() -> None:
    queue = DeliveryQueue(10, Purging.LAZY)
    queue.change(view(1))
    grown(queue, 2, 200)
    queue.add(item(1))
    queue.add(item(2))
    grown(queue, 201, 201)
    queue.add(plain(3))
    grown(queue, 202, 300)
    assert queue.purge() == 1
    kept = [each.view.id for each in queue.pop(FAR) if isinstance(each, ViewChange)]
    assert kept == [*range(1, CHANGES), 200, 201, 300]


def test_a_view_after_merged_ones_says_who_came_and_went_since_the_last_that_was_told() -> None:
    p, q, r, s, t = map(MemberId, "pqrst")
    queue = DeliveryQueue(10, Purging.LAZY)
    queue.change(view(1))
    grown(queue, 2, CHANGES)
    steps = [
        ViewChange(View(1, (p, q, r))),
        ViewChange(View(2, (p, q, s)), joined=(s,), left=(r,)),
        ViewChange(View(3, (p, t)), joined=(t,), failed=(q, s)),
        ViewChange(View(4, (p, q, t)), joined=(q,)),
    ]
    for change in steps:
        queue.change(TransitionalView(View(0, (p,))))
        queue.change(change)
        if change is steps[0]:
            queue.add(plain(1))
    assert queue.pop(FAR)[-1] == ViewChange(View(4, (p, q, t)), joined=(t,), left=(r,))
