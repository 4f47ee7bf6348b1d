"""The distribution of the obsolescence distance: M2 and M3 of the papers' figures."""

import random
from itertools import islice

import pytest

from semcast.models import Distance, Empirical, Frd, Stock, StockClass, distances

MODELS: list[Distance] = [
    Frd(r=0.25, d=1),
    Frd(r=0.5, d=5),
    Frd(r=1, d=20),
    Stock(),
    Empirical({0: 5, 1: 2, 7: 3}),
]


@pytest.mark.parametrize("model", MODELS, ids=lambda model: type(model).__name__)
def test_purge_ratio_is_the_sum_of_the_pmf(model: Distance) -> None:
    total = 0.0
    for n in range(1, 60):
        total += model.pmf(n)
        assert model.purge_ratio(n) == pytest.approx(total)
    assert model.purge_ratio(0) == 0


@pytest.mark.parametrize("r", [0.25, 0.5, 0.75, 1.0])
def test_r_bounds_purging_and_is_reached_soon_with_one_item(r: float) -> None:
    """P fig. 5.2(a): R_N <= r, and R_N = r but for very small N."""
    model = Frd(r, d=1)
    assert model.pmf(0) == 1 - r
    assert all(model.purge_ratio(n) <= r for n in range(1, 100))
    assert model.purge_ratio(20) == pytest.approx(r, abs=0.001)


def test_diversity_asks_for_larger_buffers() -> None:
    """P fig. 5.2(b): the N at which R_N approaches 1 grows with d."""
    ratios = [Frd(1, d).purge_ratio(20) for d in (1, 5, 10, 20, 40)]
    assert ratios == sorted(ratios, reverse=True)
    assert ratios[0] == 1
    assert Frd(1, 40).purge_ratio(400) > 0.99


def test_stock_classes_of_the_trading_system() -> None:
    """S table 2, the analytical row."""
    assert [round(Stock().purge_ratio(n), 2) for n in (10, 20, 30)] == [0.11, 0.20, 0.27]


def test_stock_pmf_as_printed() -> None:
    """S 5.2, the formula with its numbers."""
    for x in (1, 2, 17, 100):
        printed = (
            0.25 / 25 * (1 - 0.5 / 25) ** (x - 1)
            + 0.16 / 100 * (1 - 0.4 / 100) ** (x - 1)
            + 0.01 / 750 * (1 - 0.1 / 750) ** (x - 1)
        )
        assert Stock().pmf(x) == pytest.approx(printed)


@pytest.mark.parametrize("model", [Frd(0.5, 5), Frd(1, 10), Stock()], ids=str)
def test_traffic_has_the_distance_it_says(model: Frd | Stock) -> None:
    """A closed form against a count over 200,000 messages; three sigma are 0.0034 at most."""
    counted = Empirical.of_keys(islice(model.keys(random.Random(7)), 200_000))
    for n in (1, 5, 10, 20, 30, 100):
        assert counted.purge_ratio(n) == pytest.approx(model.purge_ratio(n), abs=0.004)


def test_distances_by_hand() -> None:
    """P fig. 3.1: items a b a a b, then a message that overwrites nothing."""
    assert distances(["a", "b", "a", "a", "b", None]) == {0: 3, 2: 1, 1: 1, 3: 1}
    assert Empirical.of_keys("abaab").purge_ratio(2) == 2 / 5


@pytest.mark.parametrize(
    ("make", "message"),
    [
        (lambda: Frd(1.5, 1), "r is a share"),
        (lambda: Frd(float("nan"), 1), "r is a share"),
        (lambda: Frd(0.5, 0), "d counts items"),
        (lambda: Stock((StockClass(10, 0.5),)), "must sum to 1, not 0.5"),
        (lambda: Stock((StockClass(0, 1.0),)), "at least 1 item"),
        (lambda: Stock((StockClass(1, 1.5), StockClass(1, -0.5))), "between 0 and 1"),
        (lambda: Empirical({}), "without messages"),
        (lambda: Empirical({-1: 2}), "not negative"),
    ],
)
def test_nonsense_is_refused(make: "object", message: str) -> None:
    assert callable(make)
    with pytest.raises(ValueError, match=message):
        make()
