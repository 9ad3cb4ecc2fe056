"""The beta distribution against binomial sums, and Student's t against printed tables."""

from __future__ import annotations

from math import comb

import pytest
from hypothesis import given
from hypothesis import strategies as st

from likewise.base.stats import beta_cdf, binomial_interval, student_quantile


@given(st.integers(1, 60), st.data())
def test_the_interval_is_that_of_clopper_and_pearson(trials: int, data: st.DataObject) -> None:
    """At its ends the tails of the binomial distribution have 2.5 % each."""
    hits = data.draw(st.integers(0, trials))
    low, high = binomial_interval(hits, trials)

    def tail(p: float, first: int, last: int) -> float:
        return sum(comb(trials, k) * p**k * (1 - p) ** (trials - k) for k in range(first, last + 1))

    assert low == 0 if hits == 0 else abs(tail(low, hits, trials) - 0.025) < 1e-9
    assert high == 1 if hits == trials else abs(tail(high, 0, hits) - 0.025) < 1e-9


@given(st.floats(0.001, 0.999), st.integers(1, 30), st.integers(1, 30))
def test_the_beta_distribution_is_the_binomial_tail(x: float, a: int, b: int) -> None:
    n = a + b - 1
    assert abs(beta_cdf(x, a, b) - sum(comb(n, k) * x**k * (1 - x) ** (n - k) for k in range(a, n + 1))) < 1e-9


@pytest.mark.parametrize(
    ("confidence", "freedom", "quantile"),
    [(0.95, 1, 12.706), (0.95, 2, 4.303), (0.95, 3, 3.182), (0.95, 5, 2.571), (0.99, 10, 3.169), (0.9, 30, 1.697)],
)
def test_student(confidence: float, freedom: int, quantile: float) -> None:
    """Against the printed tables; the expansion is within half a percent of them."""
    assert student_quantile(confidence, freedom) == pytest.approx(quantile, rel=0.005)
