"""The chapter's formulas in whole numbers: against fractions, against brute force, against the kernels."""

from fractions import Fraction
from math import floor, nextafter

import pytest
from hypothesis import example, given
from hypothesis import strategies as st

import oracles
from likewise.errors import ParameterError
from likewise.exact import Bounds
from likewise.kernels import overlap
from likewise.search.exact.bounds import LARGEST, MEASURES, least_fraction

NAMES = sorted(oracles.SIMILARITIES)
DECIMALS = ["0.05", "0.1", "0.3", "0.5", "0.6", "0.7", "0.75", "0.8", "0.85", "0.9", "0.95", "0.98", "0.99", "1"]
FIXED = [0.05, 0.1, 0.1 + 0.2, 1 / 3, 0.5, 0.6, 2 / 3, 0.7, 0.75, 0.8, 0.9, 0.95, 1.0]
RATIOS = st.integers(1, 4000).flatmap(lambda u: st.integers(1, u).map(lambda o: o / u))
NEXT_TO_RATIOS = st.tuples(RATIOS, st.sampled_from([0.0, 2.0])).map(lambda pair: min(1.0, nextafter(*pair)))
THRESHOLDS = st.sampled_from(FIXED) | RATIOS | NEXT_TO_RATIOS | st.floats(1e-9, 1)


def reaches(measure, threshold, shared, a, b):
    return oracles.SIMILARITIES[measure](shared, a, b) >= threshold


# the threshold as a fraction


@given(THRESHOLDS, st.integers(1, 4000), st.data())
def test_a_ratio_reaches_the_threshold_if_and_only_if_it_reaches_the_fraction(threshold, whole, data):
    p, q = least_fraction(threshold)
    near = min(whole, max(0, round(threshold * whole)))
    part = data.draw(st.sampled_from(range(max(0, near - 1), min(whole, near + 1) + 1)) | st.integers(0, whole))
    assert (part / whole >= threshold) == (part * q >= p * whole)
    assert 0 < p <= q <= 2 * LARGEST


@given(THRESHOLDS | st.floats(5e-324, 1), st.integers(1, 60))
@example(5e-324, 60)
@example(1.0, 1)
def test_the_fraction_is_the_least_of_all(threshold, limit):
    every = [Fraction(p, q) for q in range(1, limit + 1) for p in range(q + 1) if p / q >= threshold]
    p, q = least_fraction(threshold, limit)
    assert Fraction(p, q) == min(every)
    assert q == min(every).denominator


@pytest.mark.parametrize("decimal", DECIMALS)
def test_a_decimal_is_taken_as_it_is_written(decimal):
    assert least_fraction(float(decimal)) == Fraction(decimal).as_integer_ratio()


def test_a_threshold_a_little_above_a_ratio_is_not_that_ratio():
    assert 0.1 + 0.2 > 0.3
    p, q = least_fraction(0.1 + 0.2)
    assert Fraction(p, q) > Fraction(3, 10)
    assert Fraction(p, q) - Fraction(3, 10) <= Fraction(1, 2 * LARGEST), "but it is as near as one can be"
    assert Bounds("jaccard", 0.1 + 0.2).least(5, 8) == 4
    assert Bounds("jaccard", 0.3).least(5, 8) == 3


# what is demanded of two sets


@pytest.mark.parametrize("decimal", [text for text in DECIMALS if text != "1"])
def test_the_prefix_is_that_of_the_chapter(decimal):
    similarity, bounds = Fraction(decimal), Bounds("jaccard", float(decimal))
    for length in range(1, 301):
        assert bounds.prefix(length) == floor((1 - similarity) * length) + 1


def test_the_prefix_where_floating_point_numbers_fail():
    wrong = [
        (j, n)
        for j in (0.9, 0.8, 0.7)
        for n in (10, 20, 30)
        if floor((1 - j) * n) + 1 != Bounds("jaccard", j).prefix(n)
    ]
    assert wrong == [(0.9, 10), (0.9, 20), (0.9, 30), (0.8, 10), (0.8, 20), (0.8, 30)]
    assert [Bounds("jaccard", 0.9).prefix(n) for n in (9, 10, 19, 20, 29, 30)] == [1, 2, 2, 3, 3, 4]


@pytest.mark.parametrize("threshold", FIXED)
@pytest.mark.parametrize("measure", NAMES)
def test_the_least_overlap_by_trying_all(measure, threshold):
    bounds = Bounds(measure, threshold)
    for a in range(1, 25):
        for b in range(1, 25):
            enough = [o for o in range(1, min(a, b) + 1) if reaches(measure, threshold, o, a, b)]
            least = bounds.least(a, b)
            assert least == enough[0] if enough else least > min(a, b)


@given(st.sampled_from(NAMES), THRESHOLDS, st.integers(1, 3000), st.integers(1, 3000))
def test_the_least_overlap_is_enough_and_one_less_is_not(measure, threshold, a, b):
    least = Bounds(measure, threshold).least(a, b)
    assert least >= 1
    assert not reaches(measure, threshold, min(least - 1, a, b), a, b)
    assert least > min(a, b) or reaches(measure, threshold, least, a, b)


@pytest.mark.parametrize("threshold", FIXED)
@pytest.mark.parametrize("measure", NAMES)
def test_the_lengths_of_partners_by_trying_all(measure, threshold):
    bounds = Bounds(measure, threshold)
    for length in range(1, 31):
        sizes = [size for size in range(1, 200) if reaches(measure, threshold, min(length, size), length, size)]
        assert bounds.shortest(length) == sizes[0]
        assert bounds.longest(length, 199) == sizes[-1]


@pytest.mark.parametrize("decimal", ["0.6", "0.7", "0.75", "0.8", "0.85", "0.9", "0.95", "1"])
def test_positions_are_those_of_the_chapter(decimal):
    similarity = Fraction(decimal)
    bounds = Bounds("jaccard", float(decimal))
    for length in range(1, 41):
        for i in range(1, bounds.prefix(length) + 1):
            assert bounds.positions(length, i) == floor((length * (1 - similarity) - i + 1 + similarity) / similarity)


@pytest.mark.parametrize("decimal", ["0.1", "0.3", "0.4", "0.5"])
def test_positions_may_be_beyond_the_length_of_the_string(decimal):
    """A partner twice as long has the string as its second half."""
    similarity = Fraction(decimal)
    bounds = Bounds("jaccard", float(decimal))
    for length in range(1, 21):
        for i in range(1, bounds.prefix(length) + 1):
            assert bounds.positions(length, i) == floor((length * (1 - similarity) - i + 1 + similarity) / similarity)


def chapter_buckets(similarity, length):
    """Both cases of Section 3.9.6, for all j and q that a partner can have."""
    found = []
    for i in range(1, floor((1 - similarity) * length) + 2):
        p = length - i
        for j in range(1, floor(length / similarity) + 1):
            for q in range(floor(length / similarity) + 1):
                most = Fraction(q + 1, length + j - 1) if p >= q else Fraction(length - i + 1, i + j - 1 + q)
                if most >= similarity:
                    found.append((i, j, q))
    return found


@pytest.mark.parametrize("decimal", ["0.6", "0.7", "0.75", "0.8", "0.9", "0.95", "1"])
def test_buckets_are_those_of_the_chapter(decimal):
    for length in range(1, 16):
        expected = chapter_buckets(Fraction(decimal), length)
        assert list(Bounds("jaccard", float(decimal)).buckets(length)) == expected


@pytest.mark.parametrize("decimal", ["0.2", "0.4", "0.5"])
def test_buckets_at_low_similarities(decimal):
    """J = 0.4: ab and uvwab share a symbol that is the first of one and the fourth of the other."""
    for length in range(1, 9):
        expected = chapter_buckets(Fraction(decimal), length)
        assert list(Bounds("jaccard", float(decimal)).buckets(length)) == expected


@pytest.mark.parametrize("threshold", [0.7, 0.8, 0.9])
@pytest.mark.parametrize("measure", ["cosine", "dice"])
def test_buckets_of_other_measures_by_trying_all(measure, threshold):
    bounds = Bounds(measure, threshold)
    for length in range(1, 13):
        expected = [
            (i, j, q)
            for i in range(1, bounds.prefix(length) + 1)
            for j in range(1, 3 * length + 1)
            for q in range(3 * length + 1)
            if reaches(measure, threshold, min(length - i, q) + 1, length, j + q)
        ]
        assert list(bounds.buckets(length)) == expected


@given(st.sampled_from(NAMES), THRESHOLDS, st.lists(st.integers(0, 9), unique=True, min_size=1), st.data())
def test_partners_share_a_symbol_of_their_prefixes(measure, threshold, a, data):
    """The promise of the prefix, whatever the two sets; of containment, only the first has one."""
    b = data.draw(st.lists(st.integers(0, 9), unique=True, min_size=1))
    if oracles.similarity(measure, a, b) >= threshold:
        bounds = Bounds(measure, threshold)
        here = sorted(a)[: bounds.prefix(len(a))]
        there = sorted(b)[: bounds.prefix(len(b))] if bounds.symmetric else b
        assert set(here) & set(there)


# the kernels


@given(st.sampled_from(NAMES), THRESHOLDS, st.integers(1, LARGEST), st.integers(1, LARGEST))
@example("jaccard", 1.0, LARGEST, LARGEST)
@example("dice", 0.1 + 0.2, LARGEST, LARGEST)
@example("cosine", 0.1 + 0.2, LARGEST, LARGEST)
@example("cosine", 1.0, LARGEST, LARGEST - 1)
@example("overlap", 1.0, LARGEST, LARGEST)
@example("containment", 1.0, LARGEST, 1)
def test_kernels_have_the_same_least_overlap(measure, threshold, a, b):
    bounds = Bounds(measure, threshold)
    assert overlap.least_overlap(*bounds.code, a, b) == bounds.least(a, b)
    near = max(1, min(LARGEST, a + b % 7 - 3))
    assert overlap.least_overlap(*bounds.code, a, near) == bounds.least(a, near)


@given(st.sampled_from(NAMES), THRESHOLDS, st.integers(1, 400))
def test_kernels_have_the_same_partners(measure, threshold, size):
    bounds = Bounds(measure, threshold)
    assert overlap.shortest_partner(*bounds.code, size) == bounds.shortest(size)


def test_measures_are_numbered_as_in_the_kernels():
    assert sorted(MEASURES) == NAMES
    for name, code in MEASURES.items():
        for shared, a, b in [(1, 1, 1), (2, 3, 7), (3, 7, 3), (5, 11, 13)]:
            assert overlap.similarity_of(code, shared, a, b) == oracles.SIMILARITIES[name](shared, a, b)


# errors


@pytest.mark.parametrize("threshold", [0, -1, 1.5, float("nan"), float("inf"), True, "x", None, [0.5], Fraction(1, 2)])
def test_a_threshold_must_be_above_0_and_at_most_1(threshold):
    with pytest.raises(ParameterError, match=r"'threshold' parameter of exact\.pairs must be in \(0, 1\]"):
        Bounds("jaccard", threshold)


def test_the_threshold_of_overlap_is_a_ratio_too():
    with pytest.raises(ParameterError, match=r"\|a ∩ b\| / min\(\|a\|, \|b\|\)\)\. Got 3 instead"):
        Bounds("overlap", 3)


@pytest.mark.parametrize("measure", ["Jaccard", "", "hamming", None])
def test_measures_are_named_when_there_is_none_such(measure):
    with pytest.raises(ParameterError, match="'jaccard', 'dice', 'cosine', 'overlap' or 'containment'"):
        Bounds(measure, 0.5)


def test_a_whole_number_is_a_threshold():
    assert Bounds("jaccard", 1) == Bounds("jaccard", 1.0)
    assert Bounds("jaccard", 1).fraction == (1, 1)


@pytest.mark.parametrize("length", [0, -1, 1.5, None, True, "3", LARGEST + 1])
def test_a_string_has_a_length(length):
    bounds = Bounds("jaccard", 0.9)
    for wrong in (bounds.prefix, bounds.shortest, bounds.longest, lambda x: bounds.positions(x, 1)):
        with pytest.raises(ParameterError, match="'length' parameter of Bounds must be a whole number from 1"):
            wrong(length)
