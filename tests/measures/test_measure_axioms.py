"""The four axioms of a distance, for each of them (Section 3.5.1), and some functions that fail one."""

import math
from collections.abc import Callable
from typing import Any, NamedTuple

import pytest
from hypothesis import given
from hypothesis import strategies as st
from rapidfuzz.distance import OSA

from likewise import measures
from likewise.errors import ParameterError

ROUNDING = 1e-12
"""A distance is a sum of up to ten doubles and a root: the relative error is far below this."""

SETS = st.frozensets(st.sampled_from("abcdef"))
BAGS = st.text("abc", max_size=6).map(sorted).map(tuple)
COMPONENTS = st.integers(-4, 4) | st.floats(-1e6, 1e6)
POINTS = st.tuples(COMPONENTS, COMPONENTS, COMPONENTS)
STRINGS = st.text("abc", max_size=8)
BITS = st.tuples(*[st.integers(0, 1)] * 8)


def direction(vector: tuple[int, ...]) -> tuple[int, ...]:
    """The shortest vector of whole numbers that points the same way."""
    return tuple(part // math.gcd(*vector) for part in vector)


DIRECTIONS = st.tuples(*[st.integers(-9, 9)] * 3).filter(any).map(direction)


class Distance(NamedTuple):
    function: Callable[[Any, Any], float]
    points: st.SearchStrategy[Any]


DISTANCES = {
    "jaccard_distance": Distance(measures.jaccard_distance, SETS),
    "bag_jaccard by max": Distance(lambda x, y: 1 - measures.bag_jaccard(x, y, union="max"), BAGS),
    "angle": Distance(measures.angle, DIRECTIONS),
    "hamming of bits": Distance(measures.hamming, BITS),
    "hamming of strings": Distance(measures.hamming, st.text("abcd", min_size=5, max_size=5)),
}
for r in (1, 1.5, 2, 3, math.inf):
    DISTANCES[f"lr, r = {r}"] = Distance(lambda x, y, r=r: measures.lr(x, y, r), POINTS)
for mutations in (False, True):
    for transpositions in (False, True):
        kind = {"mutations": mutations, "transpositions": transpositions}
        DISTANCES[f"edit {kind}"] = Distance(lambda x, y, kind=kind: measures.edit(x, y, **kind), STRINGS)


@pytest.mark.parametrize("name", DISTANCES)
@given(data=st.data())
def test_axiom_1_and_2_positive_except_from_a_point_to_itself(name, data):
    distance, points = DISTANCES[name]
    x, y = data.draw(points), data.draw(points)
    assert distance(x, x) == 0
    assert distance(x, y) >= 0
    assert (distance(x, y) == 0) == (x == y)


@pytest.mark.parametrize("name", DISTANCES)
@given(data=st.data())
def test_axiom_3_symmetric(name, data):
    distance, points = DISTANCES[name]
    x, y = data.draw(points), data.draw(points)
    assert distance(x, y) == distance(y, x)


@pytest.mark.parametrize("name", DISTANCES)
@given(data=st.data())
def test_axiom_4_no_way_round_is_shorter(name, data):
    distance, points = DISTANCES[name]
    x, y, z = data.draw(points), data.draw(points), data.draw(points)
    assert distance(x, z) <= (distance(x, y) + distance(y, z)) * (1 + ROUNDING) + ROUNDING


@given(DIRECTIONS, st.integers(1, 1000), st.floats(1e-300, 1e300))
def test_an_angle_is_between_directions_whatever_the_lengths(x, times, scale):
    assert measures.angle(x, [times * part for part in x]) == pytest.approx(0, abs=ROUNDING)
    assert measures.angle(x, [-scale * part for part in x]) == pytest.approx(180, abs=ROUNDING)


def gap(x, y):
    """1 − the cosine of the angle."""
    return 1 - math.cos(math.radians(measures.angle(x, y)))


def test_1_minus_the_cosine_of_an_angle_is_no_distance():
    """From 0° to 90° it is 1; by way of 45° it is twice 1 − √½, or 0.59. The angles themselves add up."""
    x, y, z = (1, 0), (1, 1), (0, 1)
    assert gap(x, z) == pytest.approx(1)
    assert gap(x, y) + gap(y, z) == pytest.approx(2 - math.sqrt(2))
    assert measures.angle(x, z) == pytest.approx(measures.angle(x, y) + measures.angle(y, z))


@given(st.floats(0.1, 89), st.floats(0.1, 89))
def test_1_minus_the_cosine_fails_for_any_two_turns_one_after_the_other(first, second):
    """1 − cos(a + b) exceeds (1 − cos a) + (1 − cos b) by 4·sin(a/2)·sin(b/2)·cos((a + b)/2).

    Rounding, in units of 2**-53: an angle is off by 42 (unit vectors by 5 a component, so their diagonals by 18, which
    makes 29 after atan2, and 13 for degrees and back), so 1 − cosine by 44 and three of them by 132; the points add 12,
    the subtractions 2, and the right side 20.
    """
    a, b = math.radians(first), math.radians(second)
    x, y, z = ((math.cos(turn), math.sin(turn)) for turn in (0, a, a + b))
    excess = gap(x, z) - gap(x, y) - gap(y, z)
    assert excess == pytest.approx(4 * math.sin(a / 2) * math.sin(b / 2) * math.cos((a + b) / 2), abs=166 * 2**-53)
    assert excess > 0


@pytest.mark.parametrize("similarity", [measures.cosine, measures.dice, measures.overlap])
def test_1_minus_other_set_similarities_is_no_distance(similarity):
    x, y, z = "a", "ab", "b"
    assert 1 - similarity(x, z) > (1 - similarity(x, y)) + (1 - similarity(y, z))


def test_1_minus_containment_and_the_bag_jaccard_by_sum_are_no_distances():
    assert measures.containment("a", "ab") == 1 != measures.containment("ab", "a")
    assert 1 - measures.bag_jaccard("ab", "ab", union="sum") == 1 / 2


@pytest.mark.parametrize("r", [0.25, 0.5, 0.9])
def test_lr_below_1_would_be_no_distance(r):
    def formula(x, y):
        return sum(abs(a - b) ** r for a, b in zip(x, y, strict=True)) ** (1 / r)

    x, y, z = (0, 0), (1, 0), (1, 1)
    assert formula(x, z) == pytest.approx(2 ** (1 / r))
    assert formula(x, z) > formula(x, y) + formula(y, z) == 2
    with pytest.raises(ParameterError, match=rf"'r' parameter of lr must be a number of at least 1.*Got {r} instead"):
        measures.lr(x, z, r)


def test_edits_that_never_touch_a_place_twice_would_be_no_distance():
    assert OSA.distance("ca", "abc") == 3 > OSA.distance("ca", "ac") + OSA.distance("ac", "abc") == 2
    assert measures.edit("ca", "abc", mutations=True, transpositions=True) == 2
    assert measures.edit("ca", "abc", transpositions=True) == 2
