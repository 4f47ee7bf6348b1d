"""Frames for the same members share datagrams, and nobody receives anything in another order."""

from collections.abc import Sequence
from itertools import groupby
from random import Random

import pytest

from semcast.core.ids import MemberId
from semcast.core.outbox import Dest, Frame, Outbox, Reach
from semcast.protocols.isis.frames import DirectWanted, InGroup
from semcast.protocols.isis.packing import Packing

A, B, C, D = map(MemberId, "abcd")


def _frame(number: int) -> Frame:
    return InGroup(number, DirectWanted())


def _packed(*bursts: Sequence[Dest]) -> list[tuple[Dest, Frame]]:
    """What is sent to these, looked at after each burst."""
    out, number = Outbox(), 0
    packing = Packing(out)
    for burst in bursts:
        for dest in burst:
            out.sends.append((dest, _frame(number)))
            number += 1
        packing.tidy()
    return out.sends


def _runs(sends: list[tuple[Dest, Frame]]) -> list[Dest]:
    return [dest for dest, _ in groupby(sends, key=lambda send: send[0])]


def _received(sends: list[tuple[Dest, Frame]]) -> dict[MemberId, list[Frame]]:
    got: dict[MemberId, list[Frame]] = {each: [] for each in (A, B, C, D)}
    for dest, frame in sends:
        to = dest if isinstance(dest, tuple) else (dest,) if isinstance(dest, MemberId) else tuple(got)
        for member in to:
            got[member].append(frame)
    return got


def test_two_groups_in_turns_make_two_runs() -> None:
    assert _runs(_packed(*([(A, B)], [(C, D)]) * 20)) == [(A, B), (C, D)]


def test_nothing_goes_past_what_is_for_everybody_or_for_one_of_the_same_members() -> None:
    assert _runs(_packed([(A, B), Reach.ANYBODY, (A, B)])) == [(A, B), Reach.ANYBODY, (A, B)]
    assert _runs(_packed([(A, B), None, (A, B)])) == [(A, B), None, (A, B)]
    assert _runs(_packed([(A, B), B, (A, B), B])) == [(A, B), B, (A, B), B]


def test_where_groups_overlap_each_member_gets_its_own() -> None:
    assert _runs(_packed([(A, B), (A, C)] * 20)) == [A, B, C]


@pytest.mark.parametrize("seed", range(50))
def test_nobody_receives_anything_in_another_order(seed: int) -> None:
    rng = Random(seed)
    dests: list[Dest] = [(A, B), (A, C), (C, D), (B, C, D), A, D, None, Reach.ANYBODY]
    weights = [9, 9, 9, 5, 5, 5, 0.5, 0.5]
    bursts = [rng.choices(dests, weights, k=rng.randrange(30)) for _ in range(3)]
    whole = [(dest, _frame(number)) for number, dest in enumerate(dest for burst in bursts for dest in burst)]
    assert _received(_packed(*bursts)) == _received(whole)
