"""Consensus: the paper's clauses one by one, the fast path, hostile frames."""

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from tests.protocols.vsync.consensuslab import INSTANCE, Lab

from semcast.core import Frame, MemberId
from semcast.protocols.ring.frames import Presence
from semcast.protocols.vsync.consensus import FAR, MOVES, PATIENCE, Consensus, Phase
from semcast.protocols.vsync.consensus_frames import Ack, Decision, Estimate, Instance, Proposal, Summons
from semcast.protocols.vsync.frames import FRAMES as VSYNC_FRAMES
from semcast.wire import Codec, Datagram
from semcast.wire.limits import MAX_MEMBERS, MAX_SEQ, MAX_VALUE

A, B = b"a", b"b"


class Desk:
    """One member, told by hand what it hears; holds and suspects what the test says."""

    def __init__(self, me: int, size: int) -> None:
        self.held: set[bytes] = {A, B}
        self.suspected: set[int] = set()
        self.member = Consensus(INSTANCE, me, size, self.held.__contains__, self.suspected.__contains__)

    def sent(self) -> list[tuple[int | None, Frame]]:
        out = list(self.member.out)
        self.member.out.clear()
        return out

    def hears(self, rank: int, frame: Frame) -> list[tuple[int | None, Frame]]:
        self.member.on_frame(0, rank, frame)
        return self.sent()

    def rechecks(self) -> list[tuple[int | None, Frame]]:
        self.member.recheck(0)
        return self.sent()

    def resends(self) -> list[tuple[int | None, Frame]]:
        self.member.resend(0)
        return self.sent()


def joined(me: int, size: int, *, value: bytes | None = None) -> Desk:
    desk = Desk(me, size)
    if value is None:
        desk.member.join(0)
    else:
        desk.member.propose(0, value)
    return desk


def estimate(round_: int, ts: int = 0, value: bytes | None = None) -> Estimate:
    return Estimate(INSTANCE, round_, ts, value)


def proposal(round_: int, value: bytes = A) -> Proposal:
    return Proposal(INSTANCE, round_, value)


def ack(round_: int, *, ok: bool = True) -> Ack:
    return Ack(INSTANCE, round_, ok)


def decision(value: bytes = A) -> Decision:
    return Decision(INSTANCE, value)


def summons(round_: int) -> Summons:
    return Summons(INSTANCE, round_)


def coordinating(round_: int, size: int, value: bytes | None = None) -> Desk:
    """A member in a round that it coordinates, because all before it are suspected; nothing gathered yet."""
    desk = joined((round_ - 1) % size, size, value=value)
    desk.suspected.update(range(size))
    desk.rechecks()
    desk.suspected.clear()
    assert desk.member.round == round_
    return desk


# The fast path


@pytest.mark.parametrize("size", [3, 4, 5, 7])
def test_everybody_decides_three_delays_after_the_proposal_with_three_frames_a_member(size: int) -> None:
    lab = Lab(size)
    for rank in reversed(range(size)):
        lab.propose(rank, b"v%d" % rank)
    for held in lab.held:
        held.add(b"v0")
    for _ in range(3):
        assert len(lab.decisions) < size
        lab.carry()
    assert lab.decisions == dict.fromkeys(range(size), b"v0")
    lab.carry()
    assert lab.sent == 3 * (size - 1), "proposal, ack, decision, and no answers to late acks"


def test_one_member_decides_at_once() -> None:
    desk = joined(0, 1)
    assert desk.member.phase is Phase.GATHERING
    desk.member.propose(0, A)
    assert desk.member.decided == A
    assert desk.sent() == []


def test_the_first_coordinator_proposes_its_own_value_without_asking() -> None:
    assert joined(0, 3, value=A).sent() == [(None, proposal(1))]
    assert joined(1, 3, value=A).sent() == [], "and the others need not say theirs"


def test_the_first_coordinator_takes_the_value_of_another_if_it_has_none() -> None:
    desk = joined(0, 3)
    assert desk.resends() == [(None, summons(1))]
    assert desk.hears(1, estimate(1)) == []
    assert desk.hears(2, estimate(1, value=B)) == [(None, proposal(1, B))]
    desk.member.propose(0, A)
    assert desk.sent() == [], "too late"


def test_a_participant_says_its_value_in_round_1_only_when_asked_or_when_nothing_comes() -> None:
    desk = joined(2, 3, value=B)
    assert desk.hears(0, summons(1)) == [(0, estimate(1, value=B))]
    assert desk.resends() == [(0, estimate(1, value=B))]


# Phase 1 and 2 (figure 6 of the paper): estimates, and the one adopted last


def test_who_suspects_the_coordinator_goes_to_the_next_round_with_a_negative_ack() -> None:
    desk = joined(2, 3, value=B)
    desk.suspected.add(0)
    assert desk.rechecks() == [(0, ack(1, ok=False)), (1, estimate(2, value=B))]
    assert (desk.member.round, desk.member.coordinator, desk.member.phase) == (2, 1, Phase.AWAITING)


def test_who_asks_in_vain_for_too_long_goes_to_the_next_round() -> None:
    """The coordinator is heard, but may be deaf."""
    desk = joined(2, 3, value=B)
    for _ in range(PATIENCE):
        assert desk.resends() == [(0, estimate(1, value=B))]
    assert desk.resends() == [(0, ack(1, ok=False)), (1, estimate(2, value=B))]
    assert desk.hears(1, proposal(2)) == [(1, ack(2))]
    for _ in range(PATIENCE):
        assert desk.resends() == [(1, ack(2))]
    desk.resends()
    assert desk.member.round == 3, "who acked does not take it back"


def test_patience_grows_each_time_everybody_had_its_turn() -> None:
    desk = joined(2, 3, value=B)
    waited = []
    for round_ in (1, 2, 4, 5, 7):
        if desk.member.round < round_:
            desk.hears((round_ - 1) % 3, summons(round_))
        count = 0
        while desk.member.round == round_:
            desk.resends()
            count += 1
        waited.append(count)
    assert waited == [PATIENCE * lap + 1 for lap in (1, 1, 2, 2, 3)]


def test_rounds_of_suspected_coordinators_are_passed_over_at_once() -> None:
    desk = Desk(3, 5)
    desk.suspected.update({0, 1, 2, 4})
    desk.member.propose(0, B)
    refusals = [(rank, ack(rank + 1, ok=False)) for rank in range(3)]
    assert desk.sent() == [*refusals, (None, summons(4))]
    assert desk.hears(4, summons(5)) == [
        (4, ack(5, ok=False)),
        *[(r, ack(6 + r, ok=False)) for r in range(3)],
        (None, summons(9)),
    ]


def test_a_coordinator_needs_a_majority_of_estimates_and_takes_the_one_adopted_last() -> None:
    desk = coordinating(4, 5, value=A)
    assert desk.hears(0, estimate(4, 1, A)) == []
    assert desk.hears(0, estimate(4, 1, A)) == [], "a copy counts once"
    assert desk.hears(1, estimate(4, 3, B)) == [(None, proposal(4, B))]


def test_without_an_adopted_value_the_coordinator_prefers_its_own() -> None:
    desk = coordinating(2, 3, value=A)
    assert desk.hears(2, estimate(2, 0, B)) == [(None, proposal(2, A))]


def test_a_coordinator_without_any_value_waits_for_one() -> None:
    desk = coordinating(2, 3)
    assert desk.hears(2, estimate(2)) == []
    assert desk.hears(0, estimate(2)) == []
    desk.member.propose(0, B)
    assert desk.sent() == [(None, proposal(2, B))]
    desk = coordinating(2, 3)
    assert desk.hears(2, estimate(2)) == []
    assert desk.hears(2, estimate(2, 0, A)) == [(None, proposal(2, A))], "or for that of another"


def test_who_has_a_value_late_tells_the_coordinator() -> None:
    desk = joined(2, 3)
    assert desk.hears(1, summons(2)) == [(1, estimate(2))]
    assert desk.hears(1, summons(2)) == [], "it went out already"
    desk.member.propose(0, B)
    assert desk.sent() == [(1, estimate(2, value=B))]


def test_an_estimate_counts_only_when_its_value_is_held() -> None:
    desk = coordinating(2, 3, value=A)
    desk.held.clear()
    assert desk.hears(2, estimate(2, 1, B)) == []
    assert desk.member.wanted() == [(2, B)]
    assert desk.hears(2, estimate(2)) == [], "an older frame of the same member, overtaken"
    desk.held.add(B)
    assert desk.rechecks() == [(None, proposal(2, B))]
    assert desk.member.wanted() == []


def test_an_estimate_that_is_not_held_does_not_hold_up_a_majority_of_others() -> None:
    desk = coordinating(2, 3, value=A)
    desk.held.clear()
    assert desk.hears(2, estimate(2, 1, B)) == []
    assert desk.hears(0, estimate(2)) == [(None, proposal(2, A))]


# Phase 3: adopt and ack, when held


def test_a_participant_adopts_and_acks_and_says_so_in_the_next_round() -> None:
    desk = joined(2, 3, value=B)
    assert desk.hears(0, proposal(1, A)) == [(0, ack(1))]
    assert desk.hears(0, proposal(1, A)) == [(0, ack(1))], "the ack may have been lost"
    desk.suspected.add(0)
    assert desk.rechecks() == [(1, estimate(2, 1, A))], "who acked does not take it back"


def test_a_proposal_waits_until_it_is_held() -> None:
    desk = joined(2, 3, value=B)
    desk.held.discard(A)
    assert desk.hears(0, proposal(1, A)) == []
    assert (desk.member.phase, desk.member.wanted()) == (Phase.FETCHING, [(0, A)])
    assert desk.resends() == [(0, estimate(1, value=B))], "the coordinator may have decided meanwhile"
    desk.held.add(A)
    assert desk.rechecks() == [(0, ack(1))]
    assert desk.member.wanted() == []


def test_a_proposal_that_is_not_held_is_refused_once_the_coordinator_is_suspected() -> None:
    desk = joined(2, 3, value=B)
    desk.held.discard(A)
    desk.hears(0, proposal(1, A))
    desk.suspected.add(0)
    assert desk.rechecks() == [(0, ack(1, ok=False)), (1, estimate(2, value=B))]
    desk.held.add(A)
    assert desk.rechecks() == [], "and never adopted after that"


def test_a_later_round_is_joined_and_an_earlier_one_refused() -> None:
    desk = joined(2, 5, value=B)
    assert desk.hears(3, proposal(4, A)) == [(3, ack(4))], "no estimate: the proposal is here"
    assert desk.hears(1, proposal(2, A)) == [(1, ack(2, ok=False))]
    assert desk.hears(0, summons(1)) == [(0, ack(1, ok=False))]
    assert desk.hears(4, summons(5)) == [(4, estimate(5, 4, A))]
    assert desk.hears(3, proposal(4, A)) == [(3, ack(4))], "it did adopt that"
    assert desk.hears(0, estimate(8)) == [(None, summons(8))], "a round of its own"


# Phase 4: the decision


def test_the_coordinator_decides_with_a_majority_of_acks_and_tells_everybody_once() -> None:
    desk = joined(0, 5, value=A)
    desk.sent()
    assert desk.hears(1, ack(1)) == []
    assert desk.hears(1, ack(1)) == []
    assert desk.hears(2, ack(1)) == [(None, decision())]
    assert desk.hears(3, ack(1)) == [], "it crossed with the decision"
    assert desk.hears(3, ack(1)) == [(3, decision())], "it did not arrive"
    assert desk.hears(4, decision()) == []
    assert (desk.rechecks(), desk.resends(), desk.member.phase) == ([], [], Phase.DECIDED)


def test_a_coordinator_gives_up_when_a_majority_cannot_come_about() -> None:
    desk = joined(0, 5, value=A)
    desk.sent()
    for rank in (1, 2):
        assert desk.hears(rank, ack(1, ok=False)) == []
    assert desk.hears(3, ack(1)) == []
    assert desk.hears(3, ack(1, ok=False)) == [], "an ack stays"
    assert desk.hears(4, ack(1, ok=False)) == [(1, estimate(2, 1, A))]


def test_whoever_decided_answers_with_the_decision() -> None:
    desk = joined(2, 3)
    assert desk.hears(1, decision(B)) == [], "only who counts the acks tells everybody"
    for rank, frame in ((0, proposal(1)), (1, summons(2)), (0, estimate(3)), (1, ack(3, ok=False))):
        assert desk.hears(rank, frame) == [(rank, decision(B))]
    desk.member.propose(0, A)
    assert (desk.sent(), desk.member.decided) == ([], B)


def test_what_is_sent_again() -> None:
    desk = joined(0, 5, value=A)
    desk.sent()
    desk.hears(1, ack(1))
    desk.hears(2, ack(1, ok=False))
    assert desk.resends() == [(rank, proposal(1)) for rank in (2, 3, 4)], (
        "also to who refused: it may have decided"
    )
    assert coordinating(2, 3).resends() == [(None, summons(2))]
    desk = joined(2, 3)
    desk.hears(0, proposal(1))
    assert desk.resends() == [(0, ack(1))]


def test_a_member_that_was_not_told_to_join_only_learns_decisions() -> None:
    desk = Desk(2, 3)
    assert desk.hears(0, proposal(1)) == []
    assert desk.resends() == desk.rechecks() == []
    assert desk.member.phase is Phase.IDLE
    desk.hears(0, decision())
    assert desk.member.decided == A


# What no caller and no peer may do


def test_misuse_is_refused() -> None:
    with pytest.raises(ValueError, match="rank 3 among 3"):
        Desk(3, 3)
    with pytest.raises(ValueError, match="1024 at most"):
        Desk(0, MAX_MEMBERS + 1)
    with pytest.raises(ValueError, match=f"at most {MAX_VALUE}"):
        joined(0, 3, value=bytes(MAX_VALUE + 1))
    with pytest.raises(AssertionError, match="proposed twice"):
        joined(0, 3, value=A).member.propose(0, B)


@pytest.mark.parametrize(
    ("rank", "frame"),
    [
        (2, proposal(1)),
        (0, summons(2)),
        (0, proposal(1 + 3 * FAR)),
        (0, estimate(2 + 3 * FAR)),
        (0, estimate(1)),
        (0, estimate(5, 5, A)),
        (0, estimate(5, 1)),
        (0, ack(1)),
        (0, ack(5)),
        (1, decision()),
        (3, decision()),
        (-1, decision()),
        (0, Decision(Instance(7, 1), A)),
        (0, Proposal(Instance(6, 0), 1, A)),
        (0, Presence),
    ],
    ids=str,
)
def test_what_no_correct_member_sends_is_dropped_and_counted(rank: int, frame: Frame) -> None:
    desk = joined(1, 3, value=B)
    assert desk.hears(rank, frame) == []
    assert (desk.member.malformed, desk.member.round, desk.member.decided) == (1, 1, None)


RANKS = st.integers(-1, 5)
ROUNDS = st.one_of(st.integers(1, 12), st.integers(1, MAX_SEQ))
VALUES = st.sampled_from([A, B, b"c"])
FRAMES = st.one_of(
    st.builds(Estimate, st.just(INSTANCE), ROUNDS, st.integers(0, 12), st.none() | VALUES),
    st.builds(Proposal, st.just(INSTANCE), ROUNDS, VALUES),
    st.builds(Ack, st.just(INSTANCE), ROUNDS, st.booleans()),
    st.builds(Summons, st.just(INSTANCE), ROUNDS),
)


@settings(deadline=None, max_examples=150)
@given(st.integers(0, 4), st.lists(st.tuples(RANKS, FRAMES, st.integers(0, 31)), max_size=60))
def test_nothing_that_is_heard_breaks_a_member_or_makes_it_grow(
    me: int, heard: list[tuple[int, Frame, int]]
) -> None:
    desk = joined(me, 5, value=A)
    for rank, frame, suspected in heard:
        desk.suspected.clear()
        desk.suspected.update(other for other in range(5) if suspected >> other & 1)
        before = desk.member.round
        assert len(desk.hears(rank, frame) + desk.rechecks() + desk.resends()) <= 30
        member = desk.member
        assert before <= member.round <= before + FAR + 10
        kept = [*member._counted, *member._uncounted, *member._acks, *member._nacks]
        assert len(kept) <= 4 * 5


def test_frames_travel() -> None:
    codec = Codec("bench", [MemberId("p")], 1400, VSYNC_FRAMES)
    frames: list[Frame] = [
        estimate(1),
        estimate(2, 1, A),
        proposal(MAX_SEQ),
        ack(1),
        ack(1, ok=False),
        decision(),
        summons(3),
        decision(bytes(MAX_VALUE)),
    ]
    decoded = [codec.decode(datagram) for datagram in codec.encode(MemberId("p"), frames)]
    assert [frame for each in decoded if isinstance(each, Datagram) for frame in each.frames] == frames
    [large] = codec.encode(MemberId("p"), [decision(bytes(MAX_VALUE + 1))])
    assert not isinstance(codec.decode(large), Datagram)


def test_the_table_of_moves_is_complete() -> None:
    assert set(MOVES) == set(Phase)
