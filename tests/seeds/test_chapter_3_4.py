"""Section 3.4 of the chapter: bands, and the S-curve."""

from math import comb, exp

import numpy as np
import pytest

import likewise
from likewise import Banding, MinHash, Sets
from likewise.kernels.sketch import band_keys
from likewise.search.band_keys import HeldKeys
from likewise.search.candidates import candidates
from oracles import map_and_reduce

TENTHS = np.arange(1, 10) / 10


def to_digits(printed: str):
    """Equal to the digits that are printed: within half a unit of the last one."""
    return pytest.approx(float(printed), abs=0.5 * 10 ** -len(printed.partition(".")[2]))


def test_example_3_9_signatures_fit_in_memory_but_pairs_do_not_fit_in_a_day():
    signatures = MinHash().signatures(Sets.from_lists([["a", "b"], ["c"]]), 250)
    assert signatures.nbytes == 2 * 1000
    assert 1_000_000 * signatures[0].nbytes == 10**9  # a gigabyte for a million documents
    pairs = comb(1_000_000, 2)
    assert pairs == 499_999_500_000
    assert pairs / 1e6 / 86_400 == to_digits("5.79")  # days, at a microsecond each


def test_example_3_10_and_figure_3_6_one_equal_band_makes_a_candidate():
    """The first of four bands of three rows; the other three are given so that they differ everywhere."""
    banding = Banding(b=4, r=3)
    band_1 = np.array([[1, 0, 0, 0, 2], [3, 2, 1, 2, 2], [0, 1, 3, 1, 1]])
    matrix = np.vstack([band_1, np.arange(45).reshape(9, 5)])
    assert matrix.shape[0] == banding.slots == 12
    keys = np.empty((5, banding.b), np.uint32)
    for column, key in zip(matrix.T.astype(np.uint32), keys, strict=True):
        band_keys(np.ascontiguousarray(column), banding.r, key)
    [(left, right)] = candidates(HeldKeys(keys), threads=1).portions()
    # Columns 2 and 4 are both [0, 2, 1] in band 1; columns 1 and 2, [1, 3, 0] and [0, 2, 1], differ there.
    assert [*zip(left + 1, right + 1, strict=True)] == [(2, 4)]


@pytest.mark.parametrize(("b", "r"), [(2, 2), (20, 5), (16, 4), (50, 5)])
def test_figure_3_7_the_curve_is_an_s(b, r):
    """From 0 to 1, never falling, and bending once: first upwards, then downwards."""
    s = np.linspace(0, 1, 201)
    p = Banding(b, r).probability(s)
    assert (p[0], p[-1]) == (0.0, 1.0)
    assert (np.diff(p) >= 0).all()
    bend = np.diff(p, 2)
    signs = np.sign(bend[np.abs(bend) > 1e-9])
    assert signs[0] == 1
    assert signs[-1] == -1
    assert np.count_nonzero(np.diff(signs)) == 1


def test_rule_of_thumb_threshold_of_16_bands_of_4_rows():
    assert Banding(b=16, r=4).threshold == 0.5


@pytest.mark.parametrize(
    ("s", "printed"),
    [
        (0.2, ".006"),
        (0.3, ".047"),
        (0.4, ".186"),
        (0.5, ".470"),
        (0.6, ".802"),
        (0.7, ".975"),
        (0.8, ".9996"),
    ],
)
def test_example_3_11_and_figure_3_8(s, printed):
    assert Banding(b=20, r=5).probability(s) == to_digits(printed)


def test_example_3_11_threshold_and_slope():
    banding = Banding(b=20, r=5)
    assert banding.exact_threshold == to_digits("0.5087")  # "just slightly more than 0.5"
    rise = banding.probability(0.6) - banding.probability(0.4)
    assert rise == to_digits("0.616")  # more than 0.6
    assert rise / 0.2 > 3


def test_example_3_11_pairs_of_similarity_80_percent():
    """The chapter rounds 1 − 0.8⁵ to 0.672 first, and so prints 0.00035 and 0.99965; it is 0.000356."""
    assert Banding(1, 5).probability(0.8) == to_digits("0.328")
    missed = 1 - Banding(b=20, r=5).probability(0.8)
    assert missed == to_digits("0.000356")
    assert 1 / missed == to_digits("2808.5")  # "roughly one in 3000"
    assert to_digits("0.000353") == 0.672**20


# Values of 1 − (1 − s^r)^b for s = 0.1 … 0.9, rounded from exact fractions.
EXERCISE_3_4_1 = {
    (3, 10): "0.0100 0.0772 0.2394 0.4839 0.7369 0.9123 0.9850 0.9992 1.0000",
    (6, 20): "0.0000 0.0013 0.0145 0.0788 0.2702 0.6154 0.9182 0.9977 1.0000",
    (5, 50): "0.0005 0.0159 0.1145 0.4023 0.7956 0.9825 0.9999 1.0000 1.0000",
}


@pytest.mark.parametrize(("r", "b"), EXERCISE_3_4_1)
def test_exercise_3_4_1(r, b):
    got = Banding(b=b, r=r).probability(TENTHS)
    assert [*got] == [to_digits(printed) for printed in EXERCISE_3_4_1[r, b].split()]


@pytest.mark.parametrize(
    ("r", "b", "exact", "estimate", "found_at_estimate"),
    [
        (3, 10, "0.4061", "0.4642", "0.6513"),
        (6, 20, "0.5694", "0.6070", "0.6415"),
        (5, 50, "0.4244", "0.4573", "0.6358"),
    ],
)
def test_exercise_3_4_2_the_estimate_is_a_little_too_high(r, b, exact, estimate, found_at_estimate):
    banding = Banding(b=b, r=r)
    assert banding.exact_threshold == to_digits(exact)
    assert banding.probability(banding.exact_threshold) == pytest.approx(0.5, abs=1e-13)
    assert banding.threshold == to_digits(estimate)
    assert banding.probability(banding.threshold) == to_digits(found_at_estimate)


def test_exercise_3_4_3_when_s_to_the_r_is_small():
    """(1 − s^r)^b is then about e^(−b·s^r): the error of its logarithm is under b·s^2r."""
    for b, r, s in [(20, 5, 0.2), (50, 5, 0.1), (1000, 4, 0.05)]:
        missed = 1 - Banding(b, r).probability(s)
        assert missed == pytest.approx(exp(-b * s**r), rel=b * s ** (2 * r))
        assert missed < exp(-b * s**r)


@pytest.mark.parametrize("banding", [Banding(b=10, r=3), Banding(b=15, r=2), Banding(b=1, r=30)], ids=str)
def test_exercise_3_4_4_buckets_and_pairs_by_map_and_reduce(banding):
    """The lists of the exercise are the candidates, and (a) puts each column into one bucket of every band."""
    signatures = MinHash(seed=1).signatures([range(i, i + 20) for i in range(40)], banding.slots)
    (bands, bucket), (pairs, to_compare) = map_and_reduce(banding.b, banding.r)
    buckets = map_reduce(enumerate(signatures.tolist()), bands, bucket)
    assert sum(len(columns) for _, columns in buckets) == 40 * banding.b
    lists = dict(map_reduce(buckets, pairs, to_compare))
    found = likewise.candidates(signatures, banding)
    assert [(i, j) for i in sorted(lists) for j in lists[i]] == list(
        zip(found.left.tolist(), found.right.tolist(), strict=True)
    )
    assert all(i < j for i in lists for j in lists[i])


def map_reduce(elements, mapped, reduced):
    """Do in this process what a MapReduce engine does: group what Map makes of each element by its key, and Reduce."""
    groups = {}
    for element in elements:
        for key, value in mapped(*element):
            groups.setdefault(key, []).append(value)
    return [reduced(key, values) for key, values in groups.items()]
