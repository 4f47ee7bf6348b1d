"""Newcomers with the name of a member: of one that lives, of one that is dead, of one behind a partition."""

import pytest
from tests.protocols.ringlab import RingLab
from tests.protocols.test_ring_forming import SETTINGS, TERMS, one_view, says

from semcast.core import Frame, MemberId
from semcast.core.events import Left, NotAdmitted
from semcast.protocols.ring import Cause, Ring, State
from semcast.protocols.ring.frames import AttemptJoin, ConfId, Join, NameTaken, Presence
from semcast.protocols.ring.namesakes import Namesakes
from semcast.sim.mutants.ring.admission import NamesakesLetIn, NamesakesPutOut

TWIN = MemberId("q", 7)


def formed(kind: type[Ring] = Ring) -> tuple[RingLab, list[NameTaken]]:
    """A ring, and what those are told who ask it under the name of q."""
    lab = RingLab("pqr", SETTINGS, kind)
    told: list[NameTaken] = []

    def carries(_source: str, dest: str, frame: Frame) -> bool:
        if isinstance(frame, NameTaken):
            assert dest == "q"
            told.append(frame)
            return False  # it is not for the one that is in the ring
        return True

    lab.carries = carries
    lab.start()
    lab.run_for(500)
    assert one_view(lab, "pqr")
    return lab, told


def asks(lab: RingLab, milliseconds: int) -> None:
    """A newcomer called q asks to join, again and again."""
    attempt = AttemptJoin(ConfId(1, TWIN), 1, True, TERMS)
    for _ in range(milliseconds // 20):
        for name in "pqr":
            if lab.seats[name].alive:
                says(lab, name, TWIN, attempt)
        lab.run_for(20)


def moved(lab: RingLab) -> int:
    return sum(ring.standing.moves[State.OPERATIONAL, Cause.FOREIGN_MESSAGE] for ring in lab.rings.values())


def test_a_newcomer_with_the_name_of_a_living_member_is_told_to_leave_and_the_ring_goes_on() -> None:
    lab, told = formed()
    before = moved(lab)
    asks(lab, 3 * 300 - 40)
    assert {frame.lives for frame in told} == {False}
    asks(lab, 200)
    assert told[-1] == NameTaken(lab.ids["q"], True)
    assert moved(lab) == before
    assert one_view(lab, "pqr")
    refused = {event for event in lab.seats["p"].events if isinstance(event, NotAdmitted)}
    assert refused == {NotAdmitted(TWIN, "q has its name, and lives")}


def test_a_ring_that_lets_namesakes_in_is_caught() -> None:
    lab, told = formed(NamesakesLetIn)
    before = moved(lab)
    asks(lab, 200)
    assert moved(lab) > before
    assert not told


def test_a_member_that_starts_again_is_not_refused() -> None:
    """The ring finds out that the former one is dead, and proposes one with the newcomer."""
    lab, told = formed()
    lab.seats["q"].alive = False
    proposed = False
    for _ in range(60):
        asks(lab, 20)
        agreement = lab.rings["p"].formation.agreement
        proposed = proposed or TWIN in agreement.reps
    assert proposed
    assert {frame.lives for frame in told} <= {False}
    assert not {event for event in lab.seats["p"].events if isinstance(event, NotAdmitted)}


def test_a_newcomer_waits_for_a_dead_namesake_and_leaves_for_a_living_one() -> None:
    lab = RingLab("q", SETTINGS)
    q = lab.seats["q"]
    q.start()
    says(lab, "q", MemberId("p"), NameTaken(MemberId("q", 3), False))
    lab.run_for(300)
    assert lab.rings["q"].state is State.GATHER, "else it works alone after 40 ms"
    says(lab, "q", MemberId("p"), NameTaken(MemberId("x", 3), True))
    assert lab.rings["q"].state is State.GATHER
    says(lab, "q", MemberId("p"), NameTaken(MemberId("q", 3), True))
    left = [event.cause for event in q.events if isinstance(event, Left)]
    assert left == ["refused by p: a living member is called q"]


def test_a_newcomer_does_not_wait_for_ever() -> None:
    lab = RingLab("q", SETTINGS)
    lab.seats["q"].start()
    says(lab, "q", MemberId("p"), NameTaken(MemberId("q", 3), False))
    lab.run_for(2000)
    assert lab.rings["q"].state is State.OPERATIONAL


@pytest.mark.parametrize(("kind", "state"), [(Ring, State.OPERATIONAL), (NamesakesPutOut, State.LEFT)])
def test_who_works_never_leaves_for_a_namesake(kind: type[Ring], state: State) -> None:
    """Two sides of a partition would put each other out, and come back, and so on."""
    lab = RingLab("pqr", SETTINGS, kind)
    lab.start()
    lab.run_for(500)
    says(lab, "q", MemberId("x"), NameTaken(TWIN, True))
    assert lab.rings["q"].state is state


def test_sides_of_a_partition_meet_though_each_has_somebody_of_one_name() -> None:
    """A representative of another ring is not asked for its name, whatever it is."""
    lab, told = formed()
    before = moved(lab)
    theirs = ConfId(9, TWIN)
    for frame in (Presence(theirs, TERMS), AttemptJoin(theirs, 9, False, TERMS)):
        says(lab, "p", TWIN, frame)
    says(lab, "p", TWIN, Join(theirs, 9, False, [TWIN, lab.ids["p"]], [], TERMS))
    assert moved(lab) > before
    assert not told


def test_a_newcomer_that_was_away_for_long_begins_anew_and_few_are_remembered() -> None:
    namesakes = Namesakes(100)
    assert not namesakes.outlived(0, TWIN)
    assert not namesakes.outlived(90, TWIN)
    assert namesakes.outlived(100, TWIN)
    assert not namesakes.outlived(300, TWIN), "it was silent for longer than that"
    for number in range(100):
        namesakes.outlived(301 + number, MemberId("x", number))
    assert len(namesakes._heard) <= 16
    namesakes.clear()
    assert not namesakes.outlived(500, TWIN)
