"""The S-curve against exact rational arithmetic and plain numeric integration."""

import math
from dataclasses import FrozenInstanceError
from fractions import Fraction

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from likewise.errors import ParameterError
from likewise.families.banding import Banding, areas

SHAPES = [(1, 1), (1, 7), (9, 1), (2, 2), (20, 5), (16, 4), (3, 50), (50, 5)]
BANDINGS = st.builds(Banding, b=st.integers(1, 60), r=st.integers(1, 12))
FRACTIONS = st.floats(0, 1)


def exact_probability(banding: Banding, s: float) -> Fraction:
    return 1 - (1 - Fraction(s) ** banding.r) ** banding.b


def exact_area_under(banding: Banding, t: float) -> Fraction:
    """∫₀ᵗ 1 − (1 − s^r)^b ds by the binomial theorem, without rounding."""
    b, r, t = banding.b, banding.r, Fraction(t)
    return -sum(math.comb(b, i) * (-1) ** i * t ** (r * i + 1) / (r * i + 1) for i in range(1, b + 1))


def test_both_areas_for_all_numbers_of_bands():
    for t in (0.05, 0.5, 0.8, 1.0):
        for r in (1, 3, 9):
            for b, (positives, negatives) in enumerate(areas(t, r, 40), start=1):
                assert positives == pytest.approx(Banding(b, r).false_positive_area(t), abs=1e-13)
                assert negatives == pytest.approx(Banding(b, r).false_negative_area(t), abs=1e-13)


def close(got: float, exact: Fraction) -> bool:
    """Equal to 13 digits; results under 1e-290 may lose digits to denormal numbers."""
    return abs(Fraction(got) - exact) <= exact / 10**13 + Fraction(1, 10**290)


@given(BANDINGS, FRACTIONS)
def test_probability_has_all_its_digits(banding, s):
    assert close(banding.probability(s), exact_probability(banding, s))


def test_probability_at_the_ends_and_when_tiny():
    banding = Banding(b=20, r=5)
    assert (banding.probability(0), banding.probability(1)) == (0.0, 1.0)
    assert math.copysign(1, banding.probability(0)) == 1
    # s^r = 1e-50: one minus it is 1 in floating point, yet the answer is b times it.
    assert banding.probability(1e-10) == pytest.approx(20e-50, rel=1e-14)


def test_probability_of_an_array_is_an_array_and_of_a_number_a_float():
    banding = Banding(b=2, r=1)  # 1 − (1 − s)² = 2s − s²
    assert type(banding.probability(0.5)) is type(banding.probability(np.float64(0.5))) is float
    grid = banding.probability([[0.0, 0.5], [0.25, 1.0]])
    assert grid.dtype == np.float64
    np.testing.assert_allclose(grid, [[0.0, 0.75], [0.4375, 1.0]], rtol=1e-15)
    assert banding.probability(np.array([], dtype=float)).shape == (0,)


@pytest.mark.parametrize("s", [-0.1, 1.1, math.nan, [0.5, 2.0]])
def test_probability_refuses_what_is_no_similarity(s):
    with pytest.raises(ParameterError, match=r"'s' parameter of Banding.probability must be in \[0, 1\]"):
        Banding(2, 2).probability(s)


@given(BANDINGS)
def test_exact_threshold_is_found_half_the_time_and_the_rule_of_thumb_more(banding):
    # An error of one ulp in s moves the probability by slope·ulp, and the slope is at most b·r.
    assert banding.probability(banding.exact_threshold) == pytest.approx(0.5, abs=2 * banding.slots * 2**-52)
    assert banding.threshold >= banding.exact_threshold
    at_rule_of_thumb = 1 - (1 - 1 / banding.b) ** banding.b
    assert banding.probability(banding.threshold) == pytest.approx(at_rule_of_thumb, abs=1e-12)


@pytest.mark.parametrize(("b", "r"), SHAPES)
@pytest.mark.parametrize("t", [0.0, 0.001, 0.2, 0.5, 0.55, 0.8, 0.99, 1 - 1e-9, 1.0])
def test_areas_are_exact(b, r, t):
    banding = Banding(b, r)
    under = exact_area_under(banding, t)
    over = (1 - Fraction(t)) - (exact_area_under(banding, 1) - under)
    assert close(banding.false_positive_area(t), under)
    assert close(banding.false_negative_area(t), over)


@given(BANDINGS, FRACTIONS)
def test_areas_against_numeric_integration(banding, t):
    def trapezoid(lo: float, hi: float, curve) -> float:
        grid = np.linspace(lo, hi, 4001)
        return float(np.trapezoid(curve(grid), grid))

    # The rule's error is at most (hi − lo)³/(12·4000²)·|curve''|, and |curve''| ≤ (b·r)²·2 for these shapes.
    bound = 2 * banding.slots**2 / (12 * 4000**2)
    under = trapezoid(0, t, banding.probability)
    over = trapezoid(t, 1, lambda s: 1 - banding.probability(s))
    assert banding.false_positive_area(t) == pytest.approx(under, abs=bound * t**3 + 1e-12)
    assert banding.false_negative_area(t) == pytest.approx(over, abs=bound * (1 - t) ** 3 + 1e-12)


@given(BANDINGS)
def test_areas_on_both_sides_of_the_exact_threshold_join(banding):
    t = banding.exact_threshold
    left, right = (banding.false_negative_area(s) for s in (math.nextafter(t, 0) - 1e-12, min(1, t + 1e-12)))
    assert left == pytest.approx(right, abs=1e-11)


@pytest.mark.parametrize("method", ["false_positive_area", "false_negative_area"])
@pytest.mark.parametrize("t", [-0.01, 1.4, math.nan])
def test_areas_refuse_what_is_no_threshold(method, t):
    with pytest.raises(ParameterError, match=f"'threshold' parameter of Banding.{method}"):
        getattr(Banding(2, 2), method)(t)


@pytest.mark.parametrize("bad", [0, -3, 2.0, "5", None, True])
def test_bands_and_rows_are_positive_integers(bad):
    with pytest.raises(ParameterError, match=r"'b' parameter of Banding must be a positive whole number. Got"):
        Banding(bad, 5)
    with pytest.raises(ParameterError, match=r"'r' parameter of Banding must be a positive whole number. Got"):
        Banding(5, bad)


def test_a_banding_is_a_frozen_value():
    banding = Banding(b=np.int64(20), r=5)
    assert banding == Banding(20, 5)
    assert len({banding, Banding(20, 5), Banding(5, 20)}) == 2
    assert repr(banding) == "Banding(b=20, r=5)"
    assert (str(banding), str(Banding(1, 1)), banding.slots) == ("20 bands of 5 rows", "1 band of 1 row", 100)
    with pytest.raises(FrozenInstanceError):
        banding.b = 3
