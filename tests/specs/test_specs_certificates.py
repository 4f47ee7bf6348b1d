"""Certificates are compared with the rows of who recorded them: histories written by hand, and mutants."""

from collections.abc import Sequence

import msgspec
import pytest

from semcast.core import MemberId
from semcast.core.certificates import Place, Vector
from semcast.history import Event, History, Kind, RunInfo
from semcast.sim.mutants import MUTANTS
from semcast.sim.simulate import simulate
from semcast.sim.swarm import scenario_of
from semcast.specs import Status, check
from semcast.specs.certificates import ring_certificate, vector_certificate

A, B, C = MEMBERS = MemberId("a"), MemberId("b"), MemberId("c")


def history(rows: Sequence[tuple[MemberId, Kind, MemberId, int, int, Place | Vector | None]]) -> History:
    """Everybody is in view 1, which a formed."""
    events = [Event(who, 0, 0, Kind.VIEW, "g", A, view=1, members=MEMBERS) for who in MEMBERS]
    places = dict.fromkeys(MEMBERS, 0)
    for who, kind, sender, seq, count, certificate in rows:
        places[who] += 1
        view = 1 if kind is Kind.MULTICAST else None
        event = Event(who, places[who], 0, kind, "g", sender, seq, count, view=view)
        events.append(event.certified(certificate))
    info = RunInfo.one("run", "g", "ring", None, MEMBERS, None, uniform=False, quiesced=True)
    return History(info, events)


def at(packet: int, index: int = 0, configuration: int = 1) -> Place:
    return Place(configuration, A, packet, index)


SENT = (A, Kind.MULTICAST, A, 1, 3, at(4))
OWN = (A, Kind.DELIVER, A, 1, 3, at(4))


def test_positions_that_fit() -> None:
    later = (B, Kind.MULTICAST, B, 1, 1, at(5))
    there = [(B, Kind.DELIVER, A, 1, 1, at(4)), (B, Kind.DELIVER, A, 2, 2, at(4, 1)), later]
    assert ring_certificate(history([SENT, OWN, *there])).status is Status.HOLDS


@pytest.mark.parametrize(
    ("row", "why"),
    [
        ((B, Kind.DELIVER, A, 1, 3, at(5)), "(a,1) has several positions"),
        ((B, Kind.DELIVER, A, 1, 3, at(4, 1)), "(a,1) has several positions"),
        ((B, Kind.DELIVER, A, 1, 3, at(4, 0, 2)), "b: (a,1) is at a position of configuration 2"),
        ((A, Kind.DELIVER, B, 1, 1, at(4, 2)), "a: (b,1) is delivered at (4, 2) after (4, 2)"),
        ((A, Kind.MULTICAST, A, 4, 1, at(3)), "a: (a,4) is sent at (3, 0) after (4, 2)"),
    ],
)
def test_positions_that_do_not_fit(
    row: tuple[MemberId, Kind, MemberId, int, int, Place | None], why: str
) -> None:
    verdict = ring_certificate(history([SENT, OWN, row]))
    assert (verdict.status, verdict.detail.partition(";")[0]) == (Status.VIOLATED, why)


def test_some_rows_without_a_position() -> None:
    verdict = ring_certificate(history([SENT, OWN, (B, Kind.DELIVER, A, 1, 3, None)]))
    assert (verdict.status, verdict.detail) == (Status.UNKNOWN, "b recorded messages without a position")
    assert ring_certificate(history([])).detail == "no position was recorded"


FIRST = [(A, Kind.MULTICAST, A, 1, 2, ()), (A, Kind.DELIVER, A, 1, 2, ()), (B, Kind.DELIVER, A, 1, 2, ())]
ANSWER = (B, Kind.MULTICAST, B, 1, 1, ((0, 2),))


def test_vectors_that_fit() -> None:
    heard = [ANSWER, (C, Kind.DELIVER, B, 1, 1, ((0, 2),)), (C, Kind.MULTICAST, C, 1, 1, ((0, 2), (1, 1)))]
    assert vector_certificate(history([*FIRST, *heard])).status is Status.HOLDS


@pytest.mark.parametrize(
    ("rows", "why"),
    [
        ([(B, Kind.MULTICAST, B, 1, 1, ())], "(b,1) is said to come after a 0, and its sender had come to 2"),
        (
            [(B, Kind.MULTICAST, B, 1, 1, ((0, 1),))],
            "(b,1) is said to come after a 1, and its sender had come to 2",
        ),
        (
            [(B, Kind.MULTICAST, B, 1, 1, ((0, 2), (2, 1)))],
            "(b,1) is said to come after c 1, and its sender had come to 0",
        ),
        ([ANSWER, (A, Kind.DELIVER, B, 1, 1, ())], "a has another vector time of (b,1) than its sender"),
        ([(B, Kind.MULTICAST, B, 1, 1, ((3, 2),))], "(b,1) has a vector time with rank 3 of 3 members"),
    ],
)
def test_vectors_that_do_not_fit(
    rows: list[tuple[MemberId, Kind, MemberId, int, int, Vector]], why: str
) -> None:
    verdict = vector_certificate(history([*FIRST, *rows]))
    assert (verdict.status, verdict.detail) == (Status.VIOLATED, why)


def test_a_certificate_on_a_row_that_is_not_about_messages() -> None:
    from semcast.history.wellformed import problem  # noqa: PLC0415

    crash = Event(A, 0, 0, Kind.CRASH, "g", ring=at(1))
    assert problem(crash) == "crash with a certificate, which is for messages that are sent or delivered"
    place = msgspec.structs.replace(at(1), packet=0)
    assert problem(Event(A, 0, 0, Kind.DELIVER, "g", A, 1, 1, ring=place)) == (
        "deliver at index 0 of packet 0: that cannot be"
    )


@pytest.mark.parametrize(
    ("stack", "mutant", "name", "seed"),
    [
        ("ring", "position-recorded-wrong", "ring_certificate", 0),
        ("vsync", "vector-too-small", "vector_certificate", 7),
    ],
)
def test_who_records_wrongly_is_caught_by_name(stack: str, mutant: str, name: str, seed: int) -> None:
    """And by that alone: what is recorded of the messages themselves is sound."""
    found = check(simulate(scenario_of(stack, seed), MUTANTS[stack][mutant]).history)
    assert [each.property for each in found if each.status is Status.VIOLATED] == [name]
    sound = check(simulate(scenario_of(stack, seed)).history, [name])
    assert sound[0].status is Status.HOLDS
