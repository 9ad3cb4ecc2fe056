"""Distances of points, directions and vectors: values by hand, what NumPy brings along, and what is refused."""

import math
import subprocess
import sys

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from likewise import measures
from likewise.errors import ParameterError
from likewise.measures import angle, hamming, jaccard_distance, lr

FLOATS = st.floats(-1e6, 1e6)
PAIRS = st.lists(st.tuples(FLOATS, FLOATS), max_size=8)


@given(PAIRS, st.sampled_from([1, 1.5, 2, 3, 10]))
def test_lr_against_its_formula(pairs, r):
    x, y = [a for a, _ in pairs], [b for _, b in pairs]
    assert lr(x, y, r) == pytest.approx(sum(abs(a - b) ** r for a, b in pairs) ** (1 / r), rel=1e-12, abs=1e-25)
    assert lr(x, y, math.inf) == max((abs(a - b) for a, b in pairs), default=0)


@pytest.mark.parametrize("r", [1, 2, 3, math.inf])
def test_lr_at_the_ends_of_floating_point(r):
    assert lr([1e-200, 0], [0, 0], r) == 1e-200
    assert lr([3e200, 0], [0, 4e200], r) == pytest.approx({1: 7e200, 2: 5e200, 3: 91 ** (1 / 3) * 1e200}.get(r, 4e200))
    assert lr([1.5e308], [-1.5e308], r) == math.inf


@pytest.mark.parametrize(
    ("x", "y", "expected"),
    [
        ((1, 0), (1, 0), 0),
        ((1, 0), (0, 2), 90),
        ((1, 0), (-3, 0), 180),
        ((1, 1), (5, 0), 45),
        ((1, 0), (1, math.sqrt(3)), 60),
        ((1e-300, 0), (1e300, 1e300), 45),
        ((5e-324, 0), (0, 1.7e308), 90),
        ((1, 0), (1, 1e-12), math.degrees(1e-12)),
        ((-1, 0), (1, 1e-12), 180 - math.degrees(1e-12)),
    ],
)
def test_angle_by_hand(x, y, expected):
    assert angle(x, y) == pytest.approx(expected, rel=1e-12, abs=1e-13)


@given(st.floats(0.01, 179.99), st.floats(1e-3, 1e3))
def test_angle_is_the_turn(turn, length):
    x, y = (length, 0.0), (math.cos(math.radians(turn)), math.sin(math.radians(turn)))
    assert angle(x, y) == pytest.approx(turn, abs=1e-12)


@pytest.mark.parametrize("kind", [bool, np.int8, np.uint8, np.int64, np.float16, np.float32, np.float64])
def test_numpy_vectors_are_what_lists_are(kind):
    x, y = np.array([1, 0, 1, 1], kind), np.array([0, 1, 1, 1], kind)
    for r in (1, 2, np.float32(3), np.int64(4), np.inf):
        assert lr(x, y, r) == lr(x.tolist(), y.tolist(), float(r))
    assert lr(x, y, 1) == hamming(x, y) == 2
    assert angle(x, y) == angle([1, 0, 1, 1], [0, 1, 1, 1])
    assert type(lr(x, y)) is type(angle(x, y)) is float
    assert type(hamming(x, y)) is int


def test_small_integers_of_numpy_do_not_wrap_around():
    assert lr(np.uint8([0, 255]), np.uint8([255, 0]), 1) == 510
    assert lr(np.int8([-128]), np.int8([127])) == 255


@pytest.mark.parametrize(
    ("x", "y", "expected"),
    [
        ("karolin", "kathrin", 3),
        ("", "", 0),
        ([1, None, "a"], (1, 0, "a"), 1),
        ([True, False], [1, 1], 1),
        (b"ab", bytearray(b"aa"), 1),
        (np.array(["x", "yy"]), ["x", "y"], 1),
    ],
)
def test_hamming_by_hand(x, y, expected):
    assert hamming(x, y) == hamming(y, x) == expected


@given(st.sets(st.integers(0, 8)), st.sets(st.integers(0, 8)))
def test_jaccard_distance_and_similarity_make_one(a, b):
    assert jaccard_distance(a, b) == pytest.approx(1 - measures.jaccard(a, b), abs=1e-15)
    assert (jaccard_distance(a, b) == 0) == (a == b)


@pytest.mark.parametrize("r", [0, 0.999, -1, math.nan, True, "2", None, 1 + 0j])
def test_an_r_that_makes_no_distance_is_refused(r):
    with pytest.raises(ParameterError, match="'r' parameter of lr must be a number of at least 1, or inf"):
        lr([1], [2], r)


@pytest.mark.parametrize("distance", [lr, angle, hamming])
def test_vectors_must_be_of_equal_length_and_vectors(distance):
    with pytest.raises(ParameterError, match=f"{distance.__name__}: the vectors have 2 and 3 components"):
        distance([1, 2], [1, 2, 3])
    with pytest.raises(ParameterError, match=rf"use measures\.batch\.{distance.__name__}"):
        distance(np.ones((2, 2)), np.ones((2, 2)))


@pytest.mark.parametrize("vector", [[0, 0], [math.nan, 1], [1, math.nan], [math.inf, 0], [0, -math.inf]])
def test_vectors_without_a_direction(vector):
    for pair in ((vector, [1, 1]), ([1, 1], vector)):
        with pytest.raises(ParameterError, match="has no direction"):
            angle(*pair)
        if any(vector):
            with pytest.raises(ParameterError, match="a component is not finite"):
                lr(*pair)
    with pytest.raises(ParameterError, match="has no direction"):
        angle([], [])


def test_single_pairs_need_neither_numpy_nor_anything_else_that_is_heavy():
    code = (
        "from likewise.measures import *; import sys;"
        "jaccard('ab', 'b'), lr([1], [2]), angle([1], [2]), hamming('a', 'b'), bag_jaccard('a', 'a');"
        "print([m for m in ('numpy', 'numba', 'pyarrow', 'rapidfuzz') if m in sys.modules])"
    )
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert done.stdout.strip() == "[]"


def test_only_what_is_there_can_be_had():
    assert measures.batch.lr([[1]], [[2]]) == [1.0]
    with pytest.raises(AttributeError, match="has no attribute 'nothing'"):
        measures.nothing  # noqa: B018
