"""The making of a ring, by hand: who does not take the token, who is held off, and whose numbers count."""

from random import Random

import msgspec
import pytest
from tests.protocols.ringlab import RingLab

from semcast.core import Frame, MemberId
from semcast.core.events import Left
from semcast.core.ids import MILLISECOND, SECOND
from semcast.protocols.backoff import CAP, FIRST, Backoff
from semcast.protocols.ring import Cause, RingSettings, State
from semcast.protocols.ring.frames import AttemptJoin, ConfId, FormRefused, FormToken, Join, Presence
from semcast.wire.limits import MAX_MEMBERS, MAX_SEQ

SETTINGS = RingSettings()
TERMS = SETTINGS.terms()
GHOST = MemberId("zz", 1)


class OddLab(RingLab):
    """One member has set another window."""

    def settings_of(self, name: str) -> RingSettings:
        return msgspec.structs.replace(SETTINGS, window=256) if name == "r" else SETTINGS


def formed(names: str) -> RingLab:
    lab = RingLab(names, SETTINGS)
    lab.start()
    lab.run_for(500)
    assert one_view(lab, names)
    return lab


def one_view(lab: RingLab, names: str) -> bool:
    members = tuple(lab.ids[name] for name in names)
    return all({*lab.rings[name].order.members} == {*members} for name in names) and all(
        lab.rings[name].state is State.OPERATIONAL for name in names
    )


def begin(lab: RingLab, names: str) -> None:
    """Start some; the others are not there yet."""
    lab.carries = lambda source, dest, _frame: {source, dest} <= {*names}
    for name in names:
        if not lab.rings[name].standing.moves:
            lab.seats[name].start()


def says(lab: RingLab, name: str, source: MemberId, *frames: Frame) -> None:
    lab.seats[name].hear(source, *frames)


# Back-off


def test_a_first_failure_is_forgiven_and_the_next_ones_cost_more_and_more_up_to_a_cap() -> None:
    backoff, now, waits = Backoff(Random(1)), 0, []
    for _ in range(9):
        backoff.failed(now, GHOST)
        began = now
        while backoff.holds(now, GHOST):
            now += MILLISECOND
        waits.append(now - began)
    assert waits[0] == 0
    assert FIRST * 7 // 8 <= waits[1] <= FIRST
    assert waits[1] < waits[2] < waits[3] < waits[4] < CAP
    assert all(CAP * 7 // 8 <= wait <= CAP for wait in waits[-3:])


def test_who_stays_for_long_has_a_clean_slate() -> None:
    backoff = Backoff(Random(1))
    for _ in range(5):
        backoff.failed(0, GHOST)
    backoff.joined(SECOND, GHOST)
    assert not backoff.holds(SECOND, GHOST)
    backoff.failed(SECOND + CAP, GHOST)
    assert not backoff.holds(SECOND + CAP, GHOST)


def test_who_fails_again_at_once_has_not() -> None:
    backoff = Backoff(Random(1))
    for _ in range(5):
        backoff.failed(0, GHOST)
    backoff.joined(SECOND, GHOST)
    backoff.failed(SECOND + CAP // 2, GHOST)
    assert backoff.holds(SECOND + CAP, GHOST)


def test_what_is_remembered_of_failures_is_bounded() -> None:
    backoff = Backoff(Random(1))
    for number in range(3 * MAX_MEMBERS):
        backoff.failed(0, MemberId(f"g{number}"))
    assert len(backoff._failures) == MAX_MEMBERS


# Who does not take the Form token


def test_who_does_not_take_the_form_token_is_left_out_and_nobody_else_is() -> None:
    lab = RingLab("pqr", SETTINGS)
    lab.carries = lambda _source, dest, frame: dest != "q" or not isinstance(frame, FormToken)
    lab.start()
    lab.run_for(400)
    assert lab.story["p"][-1] == lab.story["r"][-1] == "regular {p r}"
    assert lab.rings["p"].standing.moves[State.FORM, Cause.TOKEN_LOST] == 0


def test_who_cannot_pass_the_form_token_on_gives_it_back() -> None:
    """r takes it from q, and does not get it to p: q goes on without r."""
    lab = RingLab("pqr", SETTINGS)
    refused: list[str] = []

    def carries(source: str, dest: str, frame: Frame) -> bool:
        if isinstance(frame, FormRefused):
            refused.append(source + dest)
        return (source, dest) != ("r", "p") or not isinstance(frame, FormToken)

    lab.carries = carries
    lab.start()
    lab.run_for(2000)
    assert "rq" in refused
    assert "regular {p q}" in lab.story["p"]
    assert one_view(lab, "pq")
    assert lab.rings["p"].standing.moves[State.FORM, Cause.TOKEN_LOST] == 0


@pytest.mark.parametrize("source", ["q", "r"])
def test_a_refusal_of_another_attempt_or_out_of_place_is_stale(source: str) -> None:
    lab = formed("pqr")
    ring = lab.rings["p"]
    before = ring.stats.stale
    assert ring.formation.forming.form_id is not None
    says(lab, "p", lab.ids[source], FormRefused(ConfId(99, lab.ids["p"]), 3))
    says(lab, "p", lab.ids[source], FormRefused(ring.formation.forming.form_id, 3))
    assert ring.stats.stale == before + 2
    lab.run_for(500)
    assert one_view(lab, "pqr")


# Numbers


def test_numbers_that_somebody_merely_claims_lock_nobody_out() -> None:
    """Three Attempt Joins with a huge `highest`; then a newcomer comes."""
    lab = RingLab("pqrs", SETTINGS)
    begin(lab, "pqr")
    lab.run_for(500)
    for step in range(1, 4):
        for name in "pqr":
            says(lab, name, GHOST, AttemptJoin(ConfId(1, GHOST), 10 + step * ((1 << 32) - 100), True, TERMS))
        lab.run_for(700)
    assert all(lab.rings[name].formation.forming.highest < 1000 for name in "pqr")
    begin(lab, "pqrs")
    lab.run_for(1500)
    assert one_view(lab, "pqrs")


def test_a_group_with_large_numbers_takes_newcomers() -> None:
    lab = RingLab("pqr", SETTINGS)
    for name in "pq":
        lab.rings[name].formation.forming.highest = MAX_SEQ // 2 + 7
    begin(lab, "pq")
    lab.run_for(500)
    assert lab.rings["p"].order.conf.number > MAX_SEQ // 2
    begin(lab, "pqr")
    lab.run_for(1000)
    assert one_view(lab, "pqr")


def test_rings_with_very_different_numbers_merge() -> None:
    lab = RingLab("pqr", SETTINGS)
    for name in "pq":
        lab.rings[name].formation.forming.highest = 5 << 32
    begin(lab, "pq")
    lab.run_for(500)
    lab.carries = lambda *_: False
    lab.seats["r"].start()
    lab.run_for(1000)
    lab.carries = lambda *_: True
    lab.run_for(1500)
    assert one_view(lab, "pqr")


# Settings that must agree


def test_a_newcomer_is_told_which_setting_differs() -> None:
    lab = OddLab("pqr", SETTINGS)
    begin(lab, "pq")
    lab.run_for(500)
    begin(lab, "pqr")
    lab.run_for(500)
    assert lab.rings["r"].state is State.LEFT
    left = [event for event in lab.seats["r"].events if isinstance(event, Left)]
    assert [event.cause for event in left] == [
        "the settings are not those of p: window is 256 here and 512 there"
    ]
    assert one_view(lab, "pq")
    assert lab.rings["p"].stats.refused_members > 0


def test_who_works_stays_whatever_strangers_have_set() -> None:
    lab = formed("pq")
    terms = msgspec.structs.replace(SETTINGS, packet_bytes=99).terms()
    conf = ConfId(7, GHOST)
    for frame in (
        Presence(conf, terms),
        AttemptJoin(conf, 7, False, terms),
        Join(conf, 7, False, [GHOST, lab.ids["p"]], [], terms),
    ):
        says(lab, "p", GHOST, frame)
    lab.run_for(500)
    assert one_view(lab, "pq")
    assert lab.rings["p"].stats.refused_members == 3
    assert lab.rings["p"].standing.moves[State.OPERATIONAL, Cause.FOREIGN_MESSAGE] <= 1
