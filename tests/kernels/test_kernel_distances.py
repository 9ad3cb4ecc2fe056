import math

import numpy as np
import pytest
from arrays_of import FEW_64, LAST_SLOTS, WORDS_64, hashes, ints, ragged
from hypothesis import example, given
from hypothesis import strategies as st

import oracles
from likewise.kernels import distances

KINDS = [np.float32, np.float64]
WHOLE = st.integers(-9, 9)
PAIRS = st.integers(0, 9).flatmap(
    lambda d: st.lists(
        st.tuples(st.lists(WHOLE, min_size=d, max_size=d), st.lists(WHOLE, min_size=d, max_size=d)), max_size=4
    )
)
SETS = st.lists(st.sets(st.integers(0, 15).map(oracles.mix) | FEW_64, max_size=14).map(list), max_size=6)


def tables(pairs, kind):
    d = len(pairs[0][0]) if pairs else 0
    return [np.array([pair[side] for pair in pairs], kind).reshape(len(pairs), d) for side in (0, 1)]


def measured(kernel, pairs, *parameters, kind=np.float64):
    x, y = tables(pairs, kind)
    out = np.empty(len(pairs))
    kernel(x, y, 1, *parameters, out)
    return out.tolist()


def naive_norm(x, y, r):
    gaps = [abs(p - q) for p, q in zip(x, y, strict=True)]
    return max(gaps, default=0) if r == math.inf else sum(gap**r for gap in gaps) ** (1 / r)


def naive_angle(x, y):
    """By sine and cosine, both times the two lengths: under the roots are whole numbers."""
    product = sum(p * q for p, q in zip(x, y, strict=True))
    squares = sum(p * p for p in x) * sum(q * q for q in y)
    return math.degrees(math.atan2(math.sqrt(squares - product**2), product)) if squares else math.nan


@pytest.mark.parametrize("kind", KINDS)
@pytest.mark.parametrize("r", [1.0, 1.5, 2.0, 3.0, math.inf])
@given(pairs=PAIRS)
@example(pairs=[])
def test_norms(kind, r, pairs):
    expected = [naive_norm(x, y, r) for x, y in pairs]
    assert measured(distances.norms, pairs, r, kind=kind) == pytest.approx(expected, rel=1e-13)


@pytest.mark.parametrize("kind", KINDS)
@given(pairs=PAIRS)
def test_angles(kind, pairs):
    expected = [naive_angle(x, y) for x, y in pairs]
    assert measured(distances.angles, pairs, kind=kind) == pytest.approx(expected, abs=1e-12, nan_ok=True)


@pytest.mark.parametrize("scale", [1e-320, 1e-300, 1e-150, 1.0, 1e150, 1e300])
def test_sizes_near_the_end_of_doubles(scale):
    """At 1e-320, a subnormal number, about three digits are left."""
    near = pytest.approx if scale > 1e-310 else lambda value: pytest.approx(value, rel=0.01)
    pairs = [([3 * scale, 0.0], [0.0, 4 * scale]), ([scale, scale], [scale, 0.0])]
    assert measured(distances.angles, pairs) == near([90.0, 45.0])
    assert measured(distances.norms, pairs, 2.0) == near([5 * scale, scale])
    assert measured(distances.norms, pairs, 3.0) == near([91 ** (1 / 3) * scale, scale])


def test_distances_that_doubles_cannot_hold_are_infinite():
    pairs = [([1.5e308, 0.0], [-1.5e308, 1.0])]
    for r in (1.0, 2.0, 3.0, math.inf):
        assert measured(distances.norms, pairs, r) == [math.inf]
    assert measured(distances.angles, pairs) == pytest.approx([180.0])


@pytest.mark.parametrize("bad", [math.nan, math.inf])
def test_what_is_not_finite_shows_in_the_result(bad):
    pairs = [([1.0, bad, 2.0], [1.0, 1.0, 1.0])]
    for r in (1.0, 2.0, 3.0, math.inf):
        assert not math.isfinite(measured(distances.norms, pairs, r)[0])
    assert math.isnan(measured(distances.angles, pairs)[0])
    assert math.isnan(measured(distances.angles, [pair[::-1] for pair in pairs])[0])


@given(st.floats(1e-12, 1e-3))
def test_angles_near_0_and_180_are_exact(small):
    """For small x the tangent is x, to x²; an arc cosine would know it to 1e-8 at best."""
    expected = math.degrees(math.atan(small))
    assert measured(distances.angles, [([1.0, 0.0], [1.0, small])]) == pytest.approx([expected], rel=1e-9, abs=1e-13)
    assert measured(distances.angles, [([-1.0, 0.0], [1.0, small])]) == pytest.approx([180 - expected], abs=1e-13)


def test_one_vector_for_all_rows():
    x, y = np.array([[3.0, 4.0], [0.0, 1.0]]), np.array([[0.0, 0.0], [9.0, 9.0]])
    out = np.empty(2)
    distances.norms(x, y, 0, 2.0, out)
    assert out.tolist() == [5.0, 1.0]
    distances.angles(x, y[1:], 0, out)
    assert out.tolist() == pytest.approx([naive_angle([3, 4], [1, 1]), 45.0])


@given(st.lists(st.tuples(*[WORDS_64] * 4), max_size=4))
def test_bit_distances(rows):
    x, y = (hashes([row[part] for row in rows]).reshape(-1, 2) for part in (slice(0, 2), slice(2, 4)))
    out = np.empty(len(rows), np.int64)
    distances.bit_distances(x, y, 1, out)
    assert out.tolist() == [(a ^ c).bit_count() + (b ^ d).bit_count() for a, b, c, d in rows]
    distances.bit_distances(x, np.zeros((1, 2), np.uint64), 0, out)
    assert out.tolist() == [a.bit_count() + b.bit_count() for a, b, _, _ in rows]


def shared(left, right, kind=np.uint64):
    (values_a, offsets_a), (values_b, offsets_b) = ragged(left), ragged(right)
    out = np.empty(len(left), np.int64)
    distances.overlaps(values_a.astype(kind), offsets_a, values_b.astype(kind), offsets_b, out)
    return out.tolist()


@given(SETS)
def test_overlaps_of_all_pairs(lists):
    left = [a for a in lists for _ in lists]
    right = lists * len(lists)
    assert shared(left, right) == [len(set(a) & set(b)) for a, b in zip(left, right, strict=True)]


@given(st.lists(st.sets(st.integers(0, 12), max_size=9).map(list), max_size=4))
def test_overlaps_of_sets_of_32_bits(lists):
    assert shared(lists, lists[::-1], np.uint32) == [
        len(set(a) & set(b)) for a, b in zip(lists, lists[::-1], strict=True)
    ]


def test_overlaps_in_a_crowded_table_that_wraps_around():
    last = LAST_SLOTS
    assert shared([last, last, last[:4]], [last[::-1], last[4:], last[4:]]) == [8, 4, 0]


def test_overlaps_of_a_part_of_a_ragged_array():
    values, offsets = ragged([[1, 2, 3], [4, 5], [6]])
    out = np.empty(1, np.int64)
    distances.overlaps(values, offsets[1:3], values, ints([1, 4]), out)
    assert out.tolist() == [1]
