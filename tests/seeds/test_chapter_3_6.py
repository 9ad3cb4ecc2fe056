"""Section 3.6 of the chapter: families of functions, and what AND and OR do to them."""

import numpy as np
import pytest

from likewise import Banding, MinHash


def to_digits(printed: str):
    """Equal to the digits that are printed: within half a unit of the last one."""
    return pytest.approx(float(printed), abs=0.5 * 10 ** -len(printed.partition(".")[2]))


FIGURE_3_10 = {
    0.2: "0.0064", 0.3: "0.0320", 0.4: "0.0985", 0.5: "0.2275",
    0.6: "0.4260", 0.7: "0.6666", 0.8: "0.8785", 0.9: "0.9860",
}  # fmt: skip
FIGURE_3_11 = {
    0.1: "0.0140", 0.2: "0.1215", 0.3: "0.3334", 0.4: "0.5740",
    0.5: "0.7725", 0.6: "0.9015", 0.7: "0.9680", 0.8: "0.9936",
}  # fmt: skip
and_or = MinHash().all_of(4).any_of(4)
or_and = MinHash().any_of(4).all_of(4)


def test_example_3_17_minhashing_is_sensitive_for_any_two_distances():
    assert MinHash().sensitivity(0.3, 0.6) == (0.3, 0.6, 0.7, 0.4)
    for d1, d2 in [(0, 1), (0.1, 0.11), (0.25, 0.75)]:
        assert MinHash().sensitivity(d1, d2) == (d1, d2, 1 - d1, 1 - d2)


@pytest.mark.parametrize("p", FIGURE_3_10)
def test_figure_3_10(p):
    assert and_or.curve(p) == to_digits(FIGURE_3_10[p])
    assert and_or.curve(p) == pytest.approx(Banding(b=4, r=4).probability(p), rel=1e-12)  # four bands of four rows


@pytest.mark.parametrize("p", FIGURE_3_11)
def test_figure_3_11(p):
    assert or_and.curve(p) == to_digits(FIGURE_3_11[p])


def test_example_3_18():
    assert and_or.functions == 16
    assert 0.7 < and_or.fixed_point() < 0.8
    assert and_or.curve(0.7) < 0.7 < 0.8 < and_or.curve(0.8)
    d1, d2, p1, p2 = and_or.sensitivity(0.2, 0.6)
    assert (d1, d2, p1, p2) == (0.2, 0.6, to_digits("0.8785"), to_digits("0.0985"))


def test_example_3_19():
    assert or_and.functions == 16
    assert or_and.sensitivity(0.2, 0.6) == (0.2, 0.6, to_digits("0.9936"), to_digits("0.5740"))


def test_example_3_20_a_cascade():
    """The second construction follows the first."""
    cascade = and_or.any_of(4).all_of(4)
    assert cascade.functions == 256
    assert cascade.sensitivity(0.2, 0.8) == (0.2, 0.8, to_digits("0.9991285"), to_digits("0.0000004"))


# The curves of Exercise 3.6.1 multiplied out: coefficients of 1, p, p², …
SQUARE = np.polynomial.Polynomial([0, 0, 1])
EITHER = np.polynomial.Polynomial([0, 2, -1])  # 1 − (1 − p)²
EXERCISE_3_6_1 = {
    "a": (MinHash().all_of(2).any_of(3), np.polynomial.Polynomial([0, 0, 3, 0, -3, 0, 1])),
    "b": (MinHash().any_of(3).all_of(2), np.polynomial.Polynomial([0, 0, 9, -18, 15, -6, 1])),
    "c": (MinHash().all_of(2).any_of(2).all_of(2), np.polynomial.Polynomial([0, 0, 0, 0, 4, 0, -4, 0, 1])),
    "d": (MinHash().any_of(2).all_of(2).any_of(2).all_of(2), SQUARE(EITHER(SQUARE(EITHER)))),
}


@pytest.mark.parametrize("part", EXERCISE_3_6_1)
def test_exercise_3_6_1(part):
    family, polynomial = EXERCISE_3_6_1[part]
    p = np.linspace(0, 1, 21)
    assert family.curve(p) == pytest.approx(polynomial(p), abs=1e-12)
    assert family.probability(1 - p) == pytest.approx(polynomial(p), abs=1e-12)


@pytest.mark.parametrize(("part", "printed"), [("a", "0.3894"), ("b", "0.1516"), ("c", "0.8474"), ("d", "0.3820")])
def test_exercise_3_6_2(part, printed):
    """The roots of curve − p between 0 and 1: there is one of each."""
    family, polynomial = EXERCISE_3_6_1[part]
    roots = (polynomial - np.polynomial.Polynomial([0, 1])).roots()
    inside = [root.real for root in roots if abs(root.imag) < 1e-9 and 1e-6 < root.real < 1 - 1e-6]
    assert inside == [pytest.approx(family.fixed_point(), abs=1e-9)]
    assert family.fixed_point() == to_digits(printed)


def test_exercise_3_6_3():
    """Figure 3.10 is steepest where p⁴ = 1/5; figure 3.11 is figure 3.10 turned upside down: 1 − p there."""
    assert and_or.steepest().p == pytest.approx(0.2**0.25, abs=1e-9)
    assert and_or.steepest() == (to_digits("0.6687"), to_digits("2.4500"))
    assert or_and.steepest() == (to_digits("0.3313"), to_digits("2.4500"))
    p = np.linspace(0, 1, 101)
    assert or_and.curve(p) == pytest.approx(1 - and_or.curve(1 - p), abs=1e-12)


@pytest.mark.parametrize("r", [2, 3, 4, 5, 10])
@pytest.mark.parametrize("b", [2, 4, 20, 100])
def test_exercise_3_6_4(r, b):
    """p^(r−1)·(1 − p^r)^(b−1) is greatest where (r − 1)(1 − p^r) = r(b − 1)p^r, that is p^r = (r − 1)/(rb − 1)."""
    x, y = (r - 1) / (r * b - 1), (b - 1) / (r * b - 1)
    first = r * b * x ** ((r - 1) / r) * (r * y) ** (b - 1)
    assert MinHash().all_of(r).any_of(b).steepest() == pytest.approx((x ** (1 / r), first), rel=1e-9)
    second = r * b * y ** ((b - 1) / b) * (b * x) ** (r - 1)
    assert MinHash().any_of(b).all_of(r).steepest() == pytest.approx((1 - y ** (1 / b), second), rel=1e-9)
