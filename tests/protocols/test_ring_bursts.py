"""Many at a time or one by one: the ring does the same."""

from collections.abc import Sequence
from random import Random

from hypothesis import given, settings
from hypothesis import strategies as st
from tests.protocols.ringlab import RingLab

from semcast.core import Annotation, Batch, Enumeration, Item, MemberId, MessageId, Nanos, Outbox
from semcast.core.outbox import Frame
from semcast.lab import Keeper, Seat
from semcast.obsolescence import ItemsTracker, Purging
from semcast.protocols.ring import Ring, RingSettings, State
from semcast.protocols.ring.delivery import DeliveryQueue
from semcast.protocols.ring.frames import Packet, Part, Presence, TokenWanted
from semcast.protocols.ring.packing import MAX_NOTED, Assembly, SendQueue, batches_of

P = MemberId("p")
FAR = 1 << 40
SETTINGS = RingSettings(window=64, visit=16, queue_messages=40)


def formed() -> tuple[Ring, MemberId, Seat]:
    """A member of a ring of three whose application is busy, another member, and its seat."""
    lab = RingLab("pqr", SETTINGS)
    lab.start()
    lab.run_for(600)
    ring, seat = lab.rings["q"], lab.seats["q"]
    assert len(ring.order.members) == 3
    seat.reads = False
    other = next(member for member in ring.order.members if member != ring.me)
    return ring, other, seat


def told(ring: Ring, seat: Seat) -> tuple[object, ...]:
    """All that can be seen of a member after some packets."""
    keeper = seat.application = Keeper()
    while ring.deliverable():
        seat.read(7)
    batches = [each for each in keeper.taken if isinstance(each, Batch)]
    payloads = [(message.id, message.payload) for each in batches for message in each.messages()]
    order = ring.order
    seen = (ring.stats.malformed + ring.stats.duplicates, ring.stats.stale)
    return order.my_aru, order.highest_seq, order.delivered, sorted(order.store), payloads, seen


@settings(deadline=None, max_examples=25)
@given(st.lists(st.tuples(st.integers(1, 30), st.booleans(), st.integers(0, 3)), max_size=40))
def test_a_burst_does_what_its_frames_do_one_by_one(drawn: list[tuple[int, bool, int]]) -> None:
    results = []
    for together in (True, False):
        ring, other, seat = formed()
        order = ring.order
        base = order.highest_seq
        frames: list[Frame] = []
        for number, safe, rank in drawn:
            seq = base + number
            frames.append(Packet(order.conf, seq, rank, safe, [Part(seq, [b"%d" % seq])]))
            if number == 7:
                frames.append(Presence(order.conf, SETTINGS.terms()))
        for run in [frames] if together else [[frame] for frame in frames]:
            seat.hear(other, *run)
        results.append(told(ring, seat))
    assert results[0] == results[1]


def test_what_waits_to_be_handed_over_when_the_ring_breaks_waits_for_the_next_one() -> None:
    """A driver asks again and again while there is something to deliver: there must be an end to it."""
    ring, _, _ = formed()
    ring.operation.outlet.due = True
    ring.standing.state = State.FORM
    assert ring.deliver(0, 10) == []
    assert not ring.deliverable()


ANNOTATIONS: st.SearchStrategy[Annotation] = st.one_of(
    st.builds(Item, st.sampled_from(["a", "b", "ü" * 9])),
    st.just(Enumeration((MessageId(P, 1),))),
)


@given(st.lists(st.tuples(st.integers(0, 60), ANNOTATIONS), max_size=30), st.sampled_from([1, 20, 90]))
def test_annotated_messages_are_packed_together_as_they_are_one_by_one(
    drawn: list[tuple[int, Annotation]], packet_bytes: int
) -> None:
    payloads = [bytes([size]) * size for size, _ in drawn]
    notes = [note for _, note in drawn]
    together = SendQueue(packet_bytes, FAR, FAR)
    assert together.add(payloads, notes, safe=False) == len(drawn)
    single = SendQueue(packet_bytes, FAR, FAR)
    for payload, note in zip(payloads, notes, strict=True):
        single.add([payload], [note], safe=False)
    found = [[each for batch in arrived(queue) for each in batch.messages()] for queue in (together, single)]
    assert found[0] == found[1]
    assert [(each.payload, each.annotation) for each in found[0]] == list(zip(payloads, notes, strict=True))


def arrived(queue: SendQueue) -> Sequence[Batch]:
    assembly = Assembly(FAR)
    drafts = queue.pop(1 << 20)
    assert not queue
    batches = assembly.batches(P, [part for draft in drafts for part in draft.parts])
    assert batches == batches_of(P, [part for draft in drafts for part in draft.whole])
    assert assembly.refused == 0
    return batches


def test_a_packet_has_few_updates_however_small_they_are() -> None:
    queue = SendQueue(60_000, FAR, FAR)
    count = 3 * MAX_NOTED
    queue.add([b""] * count, [Item("x")] * count, safe=False)
    drafts = queue.pop(100)
    assert max(draft.messages for draft in drafts) == MAX_NOTED
    assert sum(draft.messages for draft in drafts) == count


def test_messages_that_stay_longer_than_those_before_them_do_not_keep_what_has_left() -> None:
    """A queue that is never empty still lets go of what was sent."""
    queue = SendQueue(1000, FAR, FAR)
    queue.add([bytes(900)], None, safe=False)
    for _ in range(20_000):
        queue.add([bytes(900)], None, safe=False)
        [draft] = queue.pop(1)
        assert draft.messages == 1
    assert sum(len(run.payloads) for run in queue._runs) < 5000


def test_a_run_in_a_queue_is_purged_like_single_messages() -> None:
    queue = DeliveryQueue(10, Purging.LAZY)
    updates = [Part(1, [b"%d" % n for n in range(6)], None, 0, ["a", "b", "a", "c", "a", "b"])]
    queue.extend(batches_of(P, updates))
    assert len(queue) == 6
    left = [each.first for each in queue.pop(3) if isinstance(each, Batch)]
    assert left == [4, 5, 6]
    receipts = [
        (each.id.seq, each.by.seq) for some in queue.take_receipts() for each in some.receipts() if each.by
    ]
    assert receipts == [(1, 3), (2, 6), (3, 5)]


@given(st.lists(st.lists(st.sampled_from("abc"), min_size=1, max_size=2), max_size=25))
def test_a_tag_is_what_an_update_of_one_item_is(updates: list[list[str]]) -> None:
    slow, fast = ItemsTracker(P), ItemsTracker(P)
    for seq, items in enumerate(updates, 1):
        expected = slow.update(seq, items)
        assert (fast.tag(seq, items[0]) if len(items) == 1 else fast.update(seq, items)) == expected


@given(st.lists(st.lists(st.sampled_from("abc"), min_size=1, max_size=6), max_size=12), st.randoms())
def test_tags_are_what_each_of_them_is(runs: list[list[str]], rng: Random) -> None:
    slow, fast = ItemsTracker(P), ItemsTracker(P)
    seq = 1
    for items in runs:
        if rng.random() < 0.3:
            assert fast.update(seq, items) == slow.update(seq, items)
            seq += 1
        else:
            expected = [slow.tag(number, item) for number, item in enumerate(items, seq)]
            assert fast.tags(seq, items) == expected
            seq += len(items)


def test_a_ring_that_was_asked_for_the_token_before_it_came_does_not_hold_it() -> None:
    lab = RingLab("pqr", RingSettings())
    lab.start()
    lab.run_for(2000)
    ring = next(each for each in lab.rings.values() if each.order.rank == 0)
    rotation = ring.operation.rotation
    token, rotation.held = rotation.held, None
    assert token is not None
    last = ring.order.members[1]
    now: Nanos = lab.now
    wanted = TokenWanted(ring.order.conf)
    ring.on_frame(now, last, wanted)
    assert rotation.hold_for(token) == 0
    assert rotation.hold_for(token) > 0


def test_who_is_alone_leaves_once() -> None:
    ring = Ring(P, RingSettings(), Random(1), Outbox())
    ring.start(0)
    ring.leave(0)
    assert ring.state is State.LEFT
    ring.leave(0)
