"""Rounds of gossip (Sun 2000, section 4.2): C1, and where the text errs."""

from itertools import islice
from math import exp
from random import Random

import pytest

from semcast.models.convergence import (
    Bias,
    Contact,
    Epidemic,
    Reading,
    bound,
    choice,
    contact_loss,
    distributions,
    expected_rounds,
    lacking,
    rounds_by_recurrence,
    rounds_exactly,
    rounds_of_choice,
    simulated_rounds,
    spread,
    unfinished,
)


@pytest.mark.parametrize(
    ("n0", "recurrence", "exact"),
    [(1, 13, 23), (2, 12, 16), (5, 10, 11), (10, 9, 10), (20, 8, 8), (50, 6, 6), (90, 5, 5), (99, 4, 4)],
)
def test_rounds_of_pull(n0: int, recurrence: int, exact: int) -> None:
    """Figure 4-2. The recurrence takes members for independent: its left end is wrong."""
    pull = Epidemic(100, n0)
    assert (rounds_by_recurrence(pull), rounds_exactly(pull)) == (recurrence, exact)
    assert exact <= bound(100, n0)


@pytest.mark.parametrize(("n0", "rounds"), [(1, 26), (10, 22), (50, 19), (90, 17), (99, 14)])
def test_rounds_of_push(n0: int, rounds: int) -> None:
    """Both models agree, and pull is below everywhere; 4.2 says that push would need 2^n states."""
    push = Epidemic(100, n0, "push")
    assert rounds_by_recurrence(push) == rounds_exactly(push) == rounds
    assert rounds_exactly(Epidemic(100, n0)) < rounds


@pytest.mark.parametrize(("n0", "rounds"), [(1, 23.3), (10, 20.9), (50, 18.7), (90, 16.1), (99, 13.8)])
def test_bounds_of_the_text(n0: int, rounds: float) -> None:
    assert bound(100, n0) == pytest.approx(rounds, abs=0.05)


def test_the_bound_holds_in_larger_groups() -> None:
    assert rounds_exactly(Epidemic(200, 1)) == 24
    assert bound(200, 1) == pytest.approx(24.7, abs=0.05)


def test_inequalities_of_the_text_that_are_false() -> None:
    """P_k >= 1 - e^-k above n/2 is false at k = 1; P_k >= (n0/n) e^(k-1) is, too: pull doubles."""
    assert 1 - next(lacking(Epidemic(100, 60))) < 1 - exp(-1)
    third = 1 - list(islice(lacking(Epidemic(100, 1)), 3))[2]
    assert third == pytest.approx(0.0675, abs=0.0005)
    assert third < exp(2) / 100


def test_lost_next_to_its_sender() -> None:
    """Ten rounds, then it is forgotten: 1 % of such messages are not everywhere with 18, 25 % with 100."""
    assert unfinished(Epidemic(18, 1, itself=False), 10) == pytest.approx(0.0095, abs=0.0005)
    assert unfinished(Epidemic(100, 1, itself=False), 10) == pytest.approx(0.25, abs=0.005)


@pytest.mark.parametrize("contact", ["pull", "push"])
def test_the_chain_is_what_members_do(contact: Contact) -> None:
    epidemic = Epidemic(30, 2, contact, loss=0.1, itself=False)
    rng = Random(7)
    mean = sum(simulated_rounds(epidemic, rng) for _ in range(400)) / 400
    assert mean == pytest.approx(expected_rounds(epidemic), rel=0.04)
    assert sum(next(distributions(epidemic)).values()) == pytest.approx(1)


def test_loss_costs_rounds() -> None:
    lossy = Epidemic(100, 10, loss=contact_loss(0.1, 2))
    assert rounds_exactly(lossy) > rounds_exactly(Epidemic(100, 10))


def test_everybody_has_it() -> None:
    full = Epidemic(10, 10)
    assert rounds_exactly(full) == rounds_by_recurrence(full) == bound(10, 10) == 0
    assert expected_rounds(full) == simulated_rounds(full, Random(1)) == 0


def _line(size: int) -> list[list[float]]:
    return [[abs(a - b) * 0.01 for b in range(size)] for a in range(size)]


@pytest.mark.parametrize("contact", ["pull", "push"])
def test_uniform_choice_is_the_plain_recurrence(contact: Contact) -> None:
    chosen = choice(_line(20), "uniform")
    have = [1.0, 1.0, *[0.0] * 18]
    general = [1 - now[5] for now in islice(spread(chosen, have, contact, loss=0.05), 6)]
    plain = list(islice(lacking(Epidemic(20, 2, contact, loss=0.05, itself=False)), 6))
    assert general == pytest.approx(plain)


def test_bias_costs_rounds() -> None:
    """4.2, 7.5: uniform converges fastest, quadratic slowest, with either reading of linear."""
    have = [1.0, *[0.0] * 29]
    readings: tuple[Reading, ...] = ("inverse", "difference")
    biases: tuple[Bias, ...] = ("uniform", "linear", "quadratic")
    for reading in readings:
        rounds = [rounds_of_choice(choice(_line(30), bias, reading), have) for bias in biases]
        assert rounds == sorted(rounds)
        assert rounds[0] < rounds[2]


@pytest.mark.parametrize("wrong", [(1, 1, 0.0), (10, 0, 0.0), (10, 11, 0.0), (10, 1, 1.0)])
def test_impossible_groups_are_refused(wrong: tuple[int, int, float]) -> None:
    n, n0, loss = wrong
    with pytest.raises(ValueError, match=r"members|loss"):
        Epidemic(n, n0, loss=loss)
