"""Failure detector: complete, and as accurate as timeouts can be (Chandra and Toueg 1996, section 9.1)."""

from random import Random

import pytest

from semcast.core import MemberId, Nanos
from semcast.core.ids import MILLISECOND, SECOND
from semcast.protocols.vsync.detector import DetectorSettings, FailureDetector

P, Q = MemberId("p"), MemberId("q")
SETTINGS = DetectorSettings()
BEAT = SETTINGS.heartbeat
MS = MILLISECOND


def watching(*members: MemberId, settings: DetectorSettings = SETTINGS) -> FailureDetector:
    detector = FailureDetector(settings)
    detector.watch(0, members)
    return detector


def beats(detector: FailureDetector, start: Nanos, count: int, period: Nanos = BEAT) -> Nanos:
    """So many heartbeats of P, nobody suspected; returns when the last one came."""
    for number in range(count):
        assert detector.check(start + number * period) == []
        detector.heard(start + number * period, P, beat=True)
    return start + (count - 1) * period


# Completeness


def test_who_is_never_heard_is_suspected_after_the_initial_timeout_and_reported_once() -> None:
    detector = watching(P, Q)
    assert detector.next_check(0) == 500 * MS
    detector.heard(100 * MS, Q)
    assert detector.check(500 * MS) == [P]
    assert (detector.suspects(P), detector.suspects(Q)) == (True, False)
    assert detector.next_check(500 * MS) == 600 * MS, "only Q is left to wait for"
    assert detector.check(600 * MS) == [Q]
    assert detector.check(SECOND) == []
    assert detector.next_check(SECOND) == 6 * SECOND, "nobody is left to wait for"


def test_a_regular_peer_that_crashes_is_suspected_soon() -> None:
    detector = watching(P)
    last = beats(detector, 0, 200)
    assert detector.timeout(P) == SETTINGS.timeout_min
    assert detector.check(last + 149 * MS) == []
    assert detector.check(last + 150 * MS) == [P]


def test_the_timeout_follows_irregular_beats() -> None:
    detector, rng, now = watching(P), Random(1), 0
    for _ in range(300):
        now += rng.randint(10, 120) * MS
        detector.heard(now, P, beat=True)
    assert 250 * MS < detector.timeout(P) < 350 * MS
    beats(detector, now, 200)
    assert detector.timeout(P) < 160 * MS, "and forgets them"


def test_the_timeout_stays_between_its_bounds() -> None:
    detector = watching(P)
    for now in range(0, 200 * SECOND, 20 * SECOND):
        detector.heard(now, P, beat=True)
    assert detector.timeout(P) == SETTINGS.timeout_max
    for now in range(200 * SECOND, 200 * SECOND + 1000):
        detector.heard(now, P, beat=True)
    assert detector.timeout(P) == SETTINGS.timeout_min


# Accuracy


def test_other_life_signs_put_suspicion_off_and_are_not_sampled() -> None:
    detector = watching(P)
    last = beats(detector, 0, 50)
    before = detector.timeout(P)
    for number in range(1, 1000):
        assert not detector.heard(last + number * MS, P)
    assert detector.timeout(P) == before
    assert detector.check(last + 1100 * MS) == []
    assert detector.next_check(last + 1100 * MS) == last + 999 * MS + before


def test_hearing_from_a_suspect_is_a_wrong_suspicion_and_doubles_its_margin() -> None:
    detector = watching(P)
    last = beats(detector, 0, 200)
    detector.check(last + SECOND)
    assert detector.heard(last + SECOND, P), "it was suspected until now"
    assert not detector.heard(last + SECOND, P)
    assert not detector.suspects(P)
    assert detector.wrong_suspicions == 1
    assert detector.restored() == [P]
    assert detector.restored() == []
    assert 230 * MS < detector.timeout(P) < 270 * MS, "mean 50, and the margin 200 instead of 100"


def test_the_pause_of_a_wrong_suspicion_is_not_sampled() -> None:
    detector = watching(P)
    last = beats(detector, 0, 200)
    detector.check(last + 4 * SECOND)
    detector.heard(last + 4 * SECOND, P)
    beats(detector, last + 4 * SECOND + BEAT, 2)
    assert detector.timeout(P) < 270 * MS


def test_margins_are_bounded_and_fade() -> None:
    detector = watching(P)
    now = beats(detector, 0, 200)
    for _ in range(20):
        now += 6 * SECOND
        assert detector.check(now) == [P]
        detector.heard(now, P, beat=True)
    assert detector.wrong_suspicions == 20
    assert detector.timeout(P) == SETTINGS.timeout_max
    beats(detector, now + BEAT, 2000)
    assert detector.timeout(P) < 160 * MS


def test_a_peer_that_pauses_now_and_then_is_seldom_suspected() -> None:
    detector, now = watching(P), 0
    for _ in range(30):
        now = beats(detector, now, 20) + 700 * MS
        detector.check(now - 1)
    assert 1 <= detector.wrong_suspicions <= 8


def test_who_slept_accuses_nobody_at_once() -> None:
    detector = watching(P)
    last = beats(detector, 0, 200)
    woke = detector.next_check(last) + 3600 * SECOND
    assert detector.check(woke) == [], "what P sent meanwhile is still to be read"
    assert detector.next_check(woke) == woke + 2 * BEAT
    assert detector.check(woke + 2 * BEAT) == [P], "but it was nothing"
    assert detector.wrong_suspicions == 0


def test_who_is_always_late_still_suspects() -> None:
    detector = watching(P)
    assert detector.check(detector.next_check(0) + SECOND) == []
    assert detector.check(detector.next_check(2 * SECOND) + SECOND) == [P]


# Who is watched


def test_watching_others_keeps_the_estimates_of_those_who_stay() -> None:
    detector = watching(P)
    last = beats(detector, 0, 200)
    known = detector.timeout(P)
    detector.watch(last, [Q, P])
    assert (detector.timeout(P), detector.timeout(Q)) == (known, SETTINGS.timeout_initial)
    detector.watch(last, [Q])
    assert detector.check(last + SECOND) == [Q]
    assert not detector.suspects(P)
    assert not detector.heard(last + SECOND, P), "a stranger by now"
    detector.watch(last + SECOND, [Q, P])
    assert detector.suspects(Q), "suspicions stay, too"
    assert detector.timeout(P) == SETTINGS.timeout_initial


def test_who_is_no_longer_watched_is_not_restored() -> None:
    detector = watching(P)
    detector.check(SECOND)
    detector.heard(SECOND, P)
    detector.watch(SECOND, [Q])
    assert detector.restored() == []


@pytest.mark.parametrize(
    ("settings", "problem"),
    [
        (DetectorSettings(heartbeat=0), "heartbeat 0"),
        (DetectorSettings(heartbeat=SECOND), "heartbeat .* < timeout_min"),
        (DetectorSettings(timeout_min=6 * SECOND), "<= timeout_max"),
        (DetectorSettings(timeout_initial=MS), "timeout_initial"),
        (DetectorSettings(timeout_initial=9 * SECOND), "timeout_initial"),
        (DetectorSettings(margin=0), "margin 0"),
        (DetectorSettings(margin=9 * SECOND), "margin"),
    ],
)
def test_settings_that_cannot_work_are_refused(settings: DetectorSettings, problem: str) -> None:
    with pytest.raises(ValueError, match=problem):
        settings.check()
    with pytest.raises(ValueError, match=problem):
        FailureDetector(settings)
