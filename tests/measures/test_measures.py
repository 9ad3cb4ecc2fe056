"""Set and bag similarities: values by hand, and the properties that must hold for any input."""

import math
from collections import Counter
from fractions import Fraction
from math import sqrt

import pytest
from hypothesis import given
from hypothesis import strategies as st

from likewise.errors import ParameterError
from likewise.measures import bag_jaccard, containment, cosine, dice, jaccard, jaccard_distance, overlap

ELEMENTS = st.one_of(st.integers(0, 8), st.sampled_from("abcd"))
SETS = st.sets(ELEMENTS)
BAGS = st.lists(ELEMENTS, max_size=12)


def naive_jaccard(a: set, b: set) -> Fraction:
    universe = list(a) + [x for x in b if x not in a]
    if not universe:
        return Fraction(1)
    return Fraction(sum(x in a and x in b for x in universe), len(universe))


@pytest.mark.parametrize(
    ("a", "b", "expected"),
    [
        ("abc", "abc", 1.0),
        ("abc", "def", 0.0),
        ("abcd", "cdef", 2 / 6),
        ([1, 1, 1, 2], [2, 2, 1], 1.0),  # repetitions do not count
        ([], [], 1.0),
        ([], [1], 0.0),
        ([1], [], 0.0),
        (iter("ab"), (c for c in "bc"), 1 / 3),  # one-shot iterables
        ([("a", 1), None], [None, frozenset()], 1 / 3),
    ],
)
def test_jaccard_by_hand(a, b, expected):
    assert jaccard(a, b) == expected


@given(SETS, SETS)
def test_jaccard_is_the_correctly_rounded_ratio(a, b):
    assert jaccard(a, b) == float(naive_jaccard(a, b)) == jaccard(b, a)


@given(SETS, SETS, SETS)
def test_jaccard_distance_is_a_metric(a, b, c):
    distance = lambda x, y: 1 - naive_jaccard(x, y)  # noqa: E731
    assert distance(a, c) <= distance(a, b) + distance(b, c)
    assert (jaccard(a, b) == 1.0) == (a == b)


@pytest.mark.parametrize(
    ("a", "b", "by_sum", "by_max"),
    [
        ("aab", "aab", 1 / 2, 1.0),
        ("aab", "c", 0.0, 0.0),
        ("aaaa", "a", 1 / 5, 1 / 4),
        ("aabc", "abbd", 2 / 8, 2 / 6),
        ("", "", 1 / 2, 1.0),
        ("", "a", 0.0, 0.0),
        (Counter(a=3, b=1), {"a": 2, "b": 2, "c": 1}, 1 / 3, 1 / 2),
    ],
)
def test_bag_jaccard_by_hand(a, b, by_sum, by_max):
    assert bag_jaccard(a, b) == bag_jaccard(a, b, union="sum") == by_sum
    assert bag_jaccard(a, b, union="max") == by_max


@given(BAGS, BAGS)
def test_bag_jaccard_against_pairing_off_elements(a, b):
    rest, shared = list(b), 0
    for x in a:
        if x in rest:
            rest.remove(x)
            shared += 1
    total = len(a) + len(b)
    assert bag_jaccard(a, b) == (shared / total if total else 0.5)
    assert bag_jaccard(a, b, union="max") == (shared / (total - shared) if total else 1.0)


@given(SETS, SETS)
def test_bags_without_repetition_are_sets_under_the_max_union(a, b):
    assert bag_jaccard(a, b, union="max") == jaccard(a, b)


@pytest.mark.parametrize("count", [math.nan, 1.5, -1, "2", None, True, math.inf])
def test_the_counts_of_a_bag_are_whole_numbers(count):
    for pair in (({"a": count}, "a"), ("a", {"a": count})):
        with pytest.raises(ParameterError, match=r"parameter of bag_jaccard has .* as the count of 'a'"):
            bag_jaccard(*pair)
    assert bag_jaccard({"a": 2, "b": 0}, {"a": 2}, union="max") == 1.0


def test_nan_is_no_element():
    for measure in (jaccard, jaccard_distance, containment, dice, cosine, overlap, bag_jaccard):
        for pair in (([math.nan], [1]), ([1], [2, math.nan])):
            with pytest.raises(ParameterError, match="NaN"):
                measure(*pair)


def test_bag_jaccard_refuses_an_unknown_union_and_a_negative_count():
    with pytest.raises(ParameterError, match=r"'union' parameter of bag_jaccard must be 'sum' or 'max'. Got 'min'"):
        bag_jaccard("a", "b", union="min")
    with pytest.raises(ParameterError, match="'b' parameter of bag_jaccard"):
        bag_jaccard("a", {"a": -1})


@pytest.mark.parametrize(
    ("a", "b", "expected"),
    [
        ("abcd", "bcdefg", 3 / 4),
        ("bcdefg", "abcd", 1 / 2),
        ("", "", 1.0),
        ("", "a", 1.0),
        ("a", "", 0.0),
        ("aab", "a", 1 / 2),
    ],
)
def test_containment_by_hand(a, b, expected):
    assert containment(a, b) == expected


@given(SETS, SETS)
def test_containment_is_at_least_jaccard_and_whole_for_subsets(a, b):
    assert containment(a, b) >= jaccard(a, b)
    assert (containment(a, b) == 1.0) == (a <= b)


@pytest.mark.parametrize(
    ("a", "b", "by_dice", "by_cosine", "by_overlap"),
    [
        ("abc", "bcd", 4 / 6, 2 / 3, 2 / 3),
        ("a", "abcd", 2 / 5, 1 / 2, 1.0),
        ("abc", "bcdefgh", 4 / 10, 2 / sqrt(21), 2 / 3),
        ("abc", "def", 0.0, 0.0, 0.0),
        ("abc", "cab", 1.0, 1.0, 1.0),
        ([1, 1, 1, 2], [2, 2, 1], 1.0, 1.0, 1.0),  # repetitions do not count
        ([], [], 1.0, 1.0, 1.0),
        ([], [1], 0.0, 0.0, 0.0),
        ([1], [], 0.0, 0.0, 0.0),
        ([("a", 1), None], [None, frozenset()], 1 / 2, 1 / 2, 1 / 2),
    ],
)
def test_dice_cosine_and_overlap_by_hand(a, b, by_dice, by_cosine, by_overlap):
    assert (dice(a, b), cosine(a, b), overlap(a, b)) == (by_dice, by_cosine, by_overlap)
    assert (dice(b, a), cosine(b, a), overlap(b, a)) == (by_dice, by_cosine, by_overlap)


def test_dice_cosine_and_overlap_take_iterables_that_can_be_read_once():
    assert dice(iter("abc"), (c for c in "bcd")) == 4 / 6
    assert cosine(iter("abc"), (c for c in "bcd")) == 2 / 3
    assert overlap(iter("abc"), (c for c in "bcde")) == 2 / 3


@given(SETS, SETS)
def test_dice_cosine_and_overlap_are_means_of_both_containments(a, b):
    """The harmonic mean, the geometric one, and the larger of the two; all at least the Jaccard similarity."""
    shared = len([x for x in a if x in b])
    if a and b:
        assert dice(a, b) == float(Fraction(2 * shared, len(a) + len(b)))
        assert cosine(a, b) == shared / sqrt(len(a) * len(b))
        assert overlap(a, b) == max(containment(a, b), containment(b, a))
        assert jaccard(a, b) <= dice(a, b) <= overlap(a, b)
        j = naive_jaccard(a, b)
        assert dice(a, b) == float(2 * j / (1 + j))
    else:
        assert dice(a, b) == cosine(a, b) == overlap(a, b) == float(a == b)
    assert (dice(a, b) == 1.0) == (cosine(a, b) == 1.0) == (a == b)
