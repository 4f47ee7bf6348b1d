"""The formulas: M1, M4 and the analytical side of F2 and F8."""

from math import inf

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from semcast.models import (
    Empirical,
    Frd,
    Stock,
    smallest_buffer,
    throughput,
    tolerated_delay,
    tolerated_rate,
    tolerated_stop,
)


@pytest.mark.parametrize(
    ("r", "sent"),
    [(0.0, 50.0), (0.25, 66.6), (0.5, 100.0), (0.75, 100.0)],
)
def test_throughput_with_a_delay_of_20_ms(r: float, sent: float) -> None:
    """P fig. 5.3 (F2). For r = 0.25 the text says 75 msg/s; its formula, and we, say 66.6."""
    found = throughput(ts=100, tr=50, purge_ratio=Frd(r, 1).purge_ratio(20))
    assert found.sent == pytest.approx(sent, abs=0.1)
    assert found.consumed == pytest.approx(50)


def test_a_fast_receiver_gets_what_is_sent() -> None:
    found = throughput(ts=100, tr=150, purge_ratio=0.3)
    assert (found.sent, found.consumed) == (100, 100)


def test_everything_obsolete_stops_nobody() -> None:
    assert throughput(ts=100, tr=1, purge_ratio=1).sent == 100
    assert tolerated_delay(ts=100, purge_ratio=1) == inf


@pytest.mark.parametrize(("n", "about"), [(10, 0.1), (20, 0.3), (30, 0.4)])
def test_tolerated_delay_of_the_trading_system(n: int, about: float) -> None:
    """S fig. 8 (M4): about 10, 30 and 40 % more than the interval between messages."""
    ratio = Stock().purge_ratio(n)
    assert tolerated_delay(ts=100, purge_ratio=ratio) * 100 - 1 == pytest.approx(about, abs=0.06)


@given(
    ratio=st.floats(0, 0.99),
    ts=st.floats(1, 1e6),
    share=st.floats(0.01, 0.99),
)
@settings(deadline=None)
def test_tolerated_delay_is_the_longest(ratio: float, ts: float, share: float) -> None:
    delay = tolerated_delay(ts, ratio)
    assert throughput(ts, 1 / delay, ratio).sent == pytest.approx(ts)
    assert throughput(ts, 1 / delay * share, ratio).sent < ts


def test_longest_stop_as_the_paper_estimates_it() -> None:
    """P fig. 5.13(b) (F8): with N=20, 212 ms reliable and 377 ms semantic."""
    assert tolerated_stop(100, purge_ratio=0, n=20) == pytest.approx(0.212, abs=0.002)
    assert tolerated_stop(100, Frd(0.5, 5).purge_ratio(20), n=20) == pytest.approx(0.377, abs=0.002)


def test_lowest_rate_falls_with_the_buffer() -> None:
    """P fig. 5.13(a): reliable never below the input, semantic ever lower with larger buffers."""
    rates = [tolerated_rate(100, Frd(0.5, 5).purge_ratio(n), impact=0.05) for n in (2, 5, 10, 20, 40)]
    assert rates == sorted(rates, reverse=True)
    assert tolerated_rate(100, 0, impact=0.05) == pytest.approx(95)


@given(r=st.floats(0.05, 1), d=st.integers(1, 30), wanted=st.floats(0.01, 0.95))
@settings(deadline=None)
def test_smallest_buffer_is_smallest(r: float, d: int, wanted: float) -> None:
    model = Frd(r, d)
    n = smallest_buffer(model, wanted)
    if n is None:
        assert wanted > model.purge_ratio(1 << 20)
    else:
        assert model.purge_ratio(n - 1) < wanted <= model.purge_ratio(n)


def test_smallest_buffer_of_a_trace() -> None:
    trace = Empirical({0: 50, 1: 10, 3: 20, 9: 20})
    assert [smallest_buffer(trace, x) for x in (0.1, 0.2, 0.3, 0.31, 0.5)] == [1, 3, 3, 9, 9]
    assert smallest_buffer(trace, 0.51) is None
