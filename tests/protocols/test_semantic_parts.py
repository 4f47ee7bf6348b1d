"""The parts of S-RM on their own: rounds, occupancy, congestion, repair, retention."""

from random import Random

from hypothesis import given, settings
from hypothesis import strategies as st

from semcast.core import Batch, Item, MemberId
from semcast.core.ids import MILLISECOND
from semcast.core.messages import batch_of
from semcast.core.outbox import Outbox
from semcast.core.statistics import Statistics
from semcast.obsolescence import Purging
from semcast.protocols.semantic import Settings
from semcast.protocols.semantic.answers import answers, merged
from semcast.protocols.semantic.buffers import Buffers
from semcast.protocols.semantic.congestion import CongestionWindow, RoundTrip
from semcast.protocols.semantic.occupancy import Occupancy
from semcast.protocols.semantic.repair import Repairs
from semcast.protocols.semantic.retention import Retention
from semcast.protocols.semantic.rounds import Rounds, SafetyRounds, StabilityRounds


@settings(deadline=None)
@given(st.integers(1, 6), st.booleans(), st.data())
def test_rounds_never_overstate(size: int, safety: bool, data: st.DataObject) -> None:
    """A result is a prefix that enough members had queued when it was decided, whatever the gossip."""
    votes = (size - 1) // 2 + 1 if safety else size
    trackers: list[Rounds] = [
        SafetyRounds(me, size, votes) if safety else StabilityRounds(me, size) for me in range(size)
    ]
    queued = [[0] * size for _ in range(size)]
    for _ in range(data.draw(st.integers(0, 40))):
        me = data.draw(st.integers(0, size - 1))
        if data.draw(st.booleans()):
            sender = data.draw(st.integers(0, size - 1))
            queued[me][sender] += data.draw(st.integers(1, 3))
            continue
        other = data.draw(st.integers(0, size - 1))
        trackers[me].vote(queued[me])
        trackers[me].conclude(queued[me])
        if other != me:
            trackers[other].merge(trackers[me].frame(), queued[other])
            trackers[other].conclude(queued[other])
        for tracker in trackers:
            for sender, upto in enumerate(tracker.result):
                assert sum(member[sender] >= upto for member in queued) >= votes


def test_stability_goes_on_without_the_failed() -> None:
    tracker = StabilityRounds(0, 2)
    tracker.vote([5, 0])
    tracker.conclude([5, 0])
    assert tracker.result == [0, 0]
    tracker.forget(1)
    tracker.conclude([5, 0])
    assert tracker.result == [5, 0]


@settings(deadline=None)
@given(st.integers(1, 5), st.integers(0, 10), st.data())
def test_every_sender_always_keeps_a_slot(size: int, extra: int, data: st.DataObject) -> None:
    limit = size + extra
    occupancy = Occupancy(size, tuple(range(size)), limit, 1 << 30, 1000)
    held = [0] * size
    for _ in range(60):
        rank = data.draw(st.integers(0, size - 1))
        if data.draw(st.booleans()):
            count = data.draw(st.integers(0, occupancy.room(rank)))
            if count:
                occupancy.add(rank, count, count)
                held[rank] += count
        elif held[rank]:
            occupancy.remove(rank, 1, 1)
            held[rank] -= 1
        assert sum(held) <= limit
        assert all(held[r] or occupancy.room(r) >= 1 for r in range(size))


def test_bytes_are_bounded_too() -> None:
    occupancy = Occupancy(2, (0, 1), 100, 10_000, 1000)
    assert occupancy.room(0) == 9, "one message of the largest size is kept for the other"
    occupancy.add(0, 1, 8500)
    assert occupancy.room(0) == 0
    assert occupancy.room(1) == 1


def test_bytes_kept_for_a_sender_are_not_lost_while_it_holds_little() -> None:
    """Once two members deadlocked: each had taken the bytes of the other, who held a single one."""
    occupancy = Occupancy(2, (0, 1), 20, 2000, 1000)
    occupancy.add(0, 1, 1)
    occupancy.add(1, 1, 1)
    assert occupancy.room(0) == 0, "999 bytes are left, less than the largest message"
    occupancy.remove(1, 1, 1)
    assert occupancy.room(1) == 1


def test_the_window_grows_slowly_after_a_loss() -> None:
    window = CongestionWindow(initial=4, most=64)
    for _ in range(12):
        window.on_answer()
    assert window.size == 16
    window.on_timeout()
    assert window.size == 1
    for _ in range(7):
        window.on_answer()
    assert window.size == 8, "back to half by slow start"
    for _ in range(8):
        window.on_answer()
    assert window.size == 8, "then by one a round trip"


def test_the_timeout_follows_the_round_trip() -> None:
    round_trip = RoundTrip(50 * MILLISECOND, 2 * MILLISECOND, 1000 * MILLISECOND)
    for _ in range(50):
        round_trip.sample(10 * MILLISECOND)
    assert 10 * MILLISECOND <= round_trip.timeout < 12 * MILLISECOND
    assert round_trip.after(3) == 4 * round_trip.timeout
    assert round_trip.after(20) == 1000 * MILLISECOND


def test_repair_asks_the_sender_first_then_any_holder() -> None:
    repairs = Repairs(0, 4, Settings(), Random(1))
    repairs.received[2] = [0, 9, 0, 0]
    [(whom, request)] = repairs.ask(0, 1, [3, 4, 7])
    assert whom == 1
    assert request.spans == [(3, 4), (7, 7)]
    assert repairs.ask(1, 1, [3, 4, 7]) == [], "under way"
    asked: set[int] = set()
    now = 0
    for _ in range(30):
        now += 2000 * MILLISECOND
        repairs.expire(now)
        asked.update(whom for whom, _ in repairs.ask(now, 1, [3]))
    assert asked == {1, 2}, "member 3 never said that it has the message"
    repairs.forget(now, 1)
    now += 2000 * MILLISECOND
    repairs.expire(now)
    assert [whom for whom, _ in repairs.ask(now, 1, [3])] == [2]


def test_nobody_is_asked_for_what_nobody_has() -> None:
    repairs = Repairs(0, 3, Settings(), Random(1))
    repairs.forget(0, 1)
    assert repairs.ask(0, 1, [1]) == []


def test_repair_asks_for_handfuls_and_the_window_counts_these() -> None:
    repairs = Repairs(0, 2, Settings(), Random(1))
    [(whom, request)] = repairs.ask(0, 1, list(range(1, 100)), handful=10)
    assert (whom, request.spans) == (1, [(1, 40)]), "four handfuls at first"
    repairs.arrived(MILLISECOND, 1, range(1, 21))
    [(_, request)] = repairs.ask(MILLISECOND, 1, list(range(21, 100)), handful=10)
    assert request.spans == [(41, 80)], "two were answered, so that six may be under way"
    assert repairs.busy(1)
    repairs.arrived(2 * MILLISECOND, 1, range(21, 81))
    assert not repairs.busy(1)


def test_a_handful_of_which_some_came_is_asked_for_again_without_these() -> None:
    repairs = Repairs(0, 2, Settings(), Random(1))
    repairs.ask(0, 1, [1, 2, 3, 4], handful=4)
    repairs.arrived(1, 1, [2])
    now = 2000 * MILLISECOND
    repairs.expire(now)
    assert repairs.timeouts == 1
    assert [request.spans for _, request in repairs.ask(now, 1, [1, 4], handful=4)] == [[(1, 1), (4, 4)]]


def test_requests_for_much_that_is_scattered_are_several() -> None:
    repairs = Repairs(0, 2, Settings(), Random(1))
    asked = repairs.ask(0, 1, list(range(1, 1000, 2)), handful=200)
    assert [len(request.spans) for _, request in asked] == [*[48] * 10, 20]


P = MemberId("p")


def test_answers_put_neighbours_together_and_keep_to_the_limits() -> None:
    held = [batch_of(P, seq, [bytes(10)]) for seq in range(1, 10)]
    held.append(batch_of(P, 10, [bytes(10)], Item("x")))
    held.append(batch_of(P, 12, [bytes(10)] * 5))
    spans = merged([(3, 4), (1, 3), (6, 1 << 61), (9, 8)])
    assert spans == [(1, 4), (6, 1 << 61)]
    found = [(part.first, part.last) for part in answers(held, spans, 40, 1000)]
    assert found == [(1, 3), (4, 4), (6, 8), (9, 9), (10, 10), (12, 16)]
    assert [(part.first, part.last) for part in answers(held, spans, 40, 45)] == [(1, 3), (4, 4)]


@settings(deadline=None)
@given(st.lists(st.tuples(st.sampled_from("rsm"), st.integers(1, 5)), max_size=40), st.booleans())
def test_retention_holds_what_was_added_and_not_trimmed(steps: list[tuple[str, int]], items: bool) -> None:
    """Whatever is in the index by then: runs, single messages, and what grew old."""
    retained = Retention(Purging.HELD)
    held: list[int] = []
    last = 0
    for kind, count in steps:
        if kind == "m":
            retained.mature()
            gone = retained.trim(held[0] + count - 1) if held else []
            assert [seq for batch in gone for seq in range(batch.first, batch.last + 1)] == held[:count]
            del held[:count]
            continue
        many = count if kind == "r" else 1
        names = [f"i{number}" for number in range(many)] if kind == "r" and items else None
        retained.add(Batch(P, last + 1, [b"."] * many, None, many, items=names))
        held += range(last + 1, last + many + 1)
        last += many
        assert [seq for batch in retained for seq in range(batch.first, batch.last + 1)] == held
        assert len(retained) == retained.bytes == len(held)


def test_updates_that_grew_old_are_purged_behind_safe_ones() -> None:
    retained = Retention(Purging.HELD)
    retained.add(Batch(P, 1, [b"1", b"2", b"3"], None, 3, head=b"h", items=["x", "y", "x"]))
    retained.mature()
    retained.release(P, 3)
    assert not retained.take_receipts(), "it is young"
    retained.mature()
    retained.release(P, 3)
    assert [(victim.first, victim.head, by.first) for victim, by in retained.take_receipts()] == [
        (1, b"h", 3)
    ]


def test_what_was_known_to_be_purged_and_came_all_the_same_is_not_announced_as_purged() -> None:
    """A view ended with a message both here and known to be purged; to announce it killed the member."""
    p = MemberId("p")
    buffers = Buffers([p, MemberId("q")], Settings(), Statistics(), Outbox())
    buffers.freeze()
    buffers.want([3, 0])
    for seq, item in enumerate("axx", 1):
        buffers.lay_aside(0, batch_of(p, seq, [b"."], Item(item)))
    buffers.skips[0] = {1}
    buffers.complete([3, 0])
    buffers.purge_retained()
    assert [batch.first for batch in buffers.held_between(0, 1, 3)] == [1, 3]
    assert buffers.purged_between(0, 1, 10) == [2]
