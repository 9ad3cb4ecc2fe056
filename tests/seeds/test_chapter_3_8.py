"""Section 3.8.5 of the chapter: fingerprints, by the formulas of ORs and ANDs."""

import math

import pytest

from likewise import GridTriples, MinHash

MINUTIA, AGAIN = 0.2, 0.8  # a square has one; the same square of another print of the finger has it too
SAME, OTHER = MINUTIA**3 * AGAIN**3, MINUTIA**6  # both prints have minutiae in all three squares of a function


def to_digits(printed: str):
    """Equal to the digits that are printed: within half a unit of the last one."""
    return pytest.approx(float(printed), abs=0.5 * 10 ** -len(printed.partition(".")[2]))


def rates(family):
    """False negatives and positives: prints of one finger are 1 − AGAIN apart, those of two fingers 1 − MINUTIA."""
    return 1 - family.probability(1 - AGAIN), family.probability(1 - MINUTIA)


def any_of(n):
    return GridTriples(squares=1000, density=MINUTIA).any_of(n)


def test_the_three_squares_of_a_function():
    assert to_digits("0.004096") == SAME
    assert to_digits("0.000064") == OTHER
    assert rates(any_of(1)) == pytest.approx((1 - SAME, OTHER))


def test_example_3_22():
    negatives, positives = rates(any_of(1024))
    assert 1 - negatives == to_digits("0.985")
    assert positives == to_digits("0.063")
    assert 100 * negatives == to_digits("1.5")


def test_two_groups_of_1024():
    """The chapter squares 0.063 and prints 0.00397; with all digits it is 0.00402, "about 1/250th" either way."""
    both = any_of(1024).all_of(2)
    assert both.functions == 2048
    negatives, positives = rates(both)
    assert 1 - negatives == to_digits("0.970")
    assert to_digits("0.00397") == 0.063**2
    assert positives == to_digits("0.00402")
    assert 1 / positives == pytest.approx(250, abs=2)


def test_exercise_3_8_2():
    """One OR of 2048 misses almost nothing and looks at an eighth of all prints; as two ANDed ORs it misses 3 %."""
    assert rates(any_of(2048)) == (to_digits("0.00022"), to_digits("0.1228"))
    assert rates(any_of(1024).all_of(2)) == (to_digits("0.0297"), to_digits("0.0040"))


@pytest.mark.parametrize("n", [1, 10, 100, 1000])
def test_exercise_3_8_3_two_squares(n):
    same, other = MINUTIA**2 * AGAIN**2, MINUTIA**4
    wide = MinHash().any_of(n)  # whatever the family, the curve is the same
    assert 1 - wide.curve(same) == pytest.approx((1 - 0.0256) ** n, abs=1e-12)
    assert wide.curve(other) == pytest.approx(1 - (1 - 0.0016) ** n, abs=1e-12)


def test_exercise_3_8_4_many_many_has_the_rates_of_many_one():
    assert rates(any_of(1024)) == (to_digits("0.015"), to_digits("0.063"))


def test_exercise_3_8_5():
    """The sum 1 − (1 − q)^n + (1 − p)^n is least at n = ln(ln(1 − p)/ln(1 − q))/(ln(1 − q) − ln(1 − p))."""
    p, q = math.log1p(-SAME), math.log1p(-OTHER)
    n = math.log(p / q) / (q - p)
    assert n == to_digits("1029.8")
    best = min(range(1, 4000), key=lambda n: sum(rates(any_of(n))))
    assert best == round(n) == 1030
