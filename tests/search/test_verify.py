"""Similarities of candidate pairs against brute force: exact, and nothing lost on the way out early."""

from itertools import combinations

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

import oracles
from likewise.base.arrays import Sets
from likewise.search import verify
from likewise.search.verify import similarities

THRESHOLDS = [0.1, 0.2, 0.1 + 0.2, 0.3, 1 / 3, 0.5, 0.6, 2 / 3, 0.7, 0.7999999999999999, 0.8, 0.9, 0.1 * 3 * 3, 1.0]
SETS = st.lists(st.sets(st.integers(0, 12), max_size=13).map(list), min_size=2, max_size=8)


def check(lists, threshold, threads=1):
    pairs = list(combinations(range(len(lists)), 2))
    left, right = (np.array([pair[side] for pair in pairs], np.int64) for side in (0, 1))
    found = similarities(left, right, Sets.from_lists(lists), threshold, threads)
    exact = [oracles.jaccard(lists[a], lists[b]) for a, b in pairs]
    assert found.tolist() == [s if s >= threshold else -1.0 for s in exact]
    return found


@given(SETS, st.sampled_from(THRESHOLDS) | st.floats(1e-6, 1))
def test_every_pair(lists, threshold):
    check(lists, threshold)


@pytest.mark.parametrize("threshold", THRESHOLDS)
def test_every_fraction_with_a_small_denominator(threshold):
    """For every union up to 20 and every overlap, split evenly and not: what equals the threshold passes."""
    for union in range(1, 21):
        for shared in range(union + 1):
            for here in {0, (union - shared) // 2, union - shared}:
                a = list(range(shared + here))
                b = [*range(shared), *range(shared + here, union)]
                check([a, b], threshold)


@pytest.mark.parametrize(("shared", "union", "threshold"), [(4, 5, 0.8), (9, 10, 0.9), (1, 3, 1 / 3), (3, 10, 0.3)])
@pytest.mark.parametrize("scale", [1, 10, 1000, 20_000])
def test_exactly_at_the_threshold(shared, union, threshold, scale):
    shared, union = shared * scale, union * scale
    half = (union - shared) // 2
    a, b = list(range(shared + half)), [*range(shared + half, union), *range(shared)]
    assert check([a, b], threshold).tolist() == [threshold]
    assert check([a, [*b, union]], threshold).tolist() == [-1.0]


def test_a_threshold_that_is_a_little_more_than_it_looks():
    """0.1 + 0.2 is more than 3/10, so a pair at 3/10 is below it."""
    a, b = list(range(6)), [*range(3), *range(10, 14)]
    assert check([a, b], 0.3).tolist() == [0.3]
    assert check([a, b], 0.1 + 0.2).tolist() == [-1.0]


@pytest.mark.parametrize("threads", [1, 2, 4])
def test_batches_cut_where_they_will(threads, monkeypatch):
    monkeypatch.setattr(verify, "BATCH", 7)
    random = np.random.default_rng(3)
    base = random.integers(0, 1000, 60)
    lists = [np.where(random.random(60) < 0.15, random.integers(0, 1000, 60), base).tolist() for _ in range(40)]
    for threshold in (0.4, 0.6, 0.8):
        check(lists, threshold, threads)


def test_sets_of_very_different_sizes():
    lists = [[], [1], [1, 2], list(range(10)), list(range(1000)), list(range(1, 1001)), list(range(5000)), []]
    for threshold in (0.001, 0.01, 0.2, 0.99, 1.0):
        check(lists, threshold)
        check(lists[::-1], threshold)


def test_no_pairs():
    none = np.zeros(0, np.int64)
    assert similarities(none, none, Sets.from_lists([[1]]), 0.8, 2).size == 0
