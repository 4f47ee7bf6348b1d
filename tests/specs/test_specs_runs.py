"""Runs against plain sets."""

from itertools import pairwise

from hypothesis import example, given, settings
from hypothesis import strategies as st

from semcast.specs.runs import Runs, Span, union

spans = st.tuples(st.integers(1, 20), st.integers(0, 3)).map(lambda pair: (pair[0], sum(pair)))
lists = st.lists(spans, max_size=8)


def numbers(parts: list[Span]) -> set[int]:
    return {number for first, last in parts for number in range(first, last + 1)}


def assert_is(runs: Runs, expected: set[int]) -> None:
    found = list(runs)
    assert numbers(found) == expected
    assert all(first <= last for first, last in found)
    assert all(before[1] + 1 < after[0] for before, after in pairwise(found))
    assert runs.total() == len(expected)
    assert runs.highest() == max(expected, default=0)
    assert list(runs.numbers()) == sorted(expected)
    assert [number for number in range(40) if number in runs] == sorted(expected)


@settings(deadline=None)
@given(lists)
@example([(1, 3), (9, 9), (4, 5)])
@example([(1, 3), (9, 9), (7, 8)])
def test_adding_says_what_was_there(parts: list[Span]) -> None:
    runs = Runs()
    seen: set[int] = set()
    for first, last in parts:
        added = set(range(first, last + 1))
        known = runs.add(first, last)
        assert numbers(known) == added & seen
        assert known == sorted(known)
        seen |= added
        assert_is(runs, seen)


@settings(deadline=None)
@given(lists, lists, st.integers(-1, 40))
def test_sets(some: list[Span], others: list[Span], limit: int) -> None:
    assert_is(Runs(some).minus(Runs(others)), numbers(some) - numbers(others))
    assert_is(union([Runs(some), Runs(others)]), numbers(some) | numbers(others))
    assert_is(Runs(some).upto(limit), {number for number in numbers(some) if number <= limit})


def test_long_runs_cost_nothing() -> None:
    runs = Runs([(1, 10**15)])
    assert runs.minus(Runs([(5, 10**14)])).total() == 10**15 - 10**14 + 4
