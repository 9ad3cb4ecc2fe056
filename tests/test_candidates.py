"""Candidate pairs against brute force over the keys."""

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

import oracles
from likewise.candidates import candidate_pairs, pair_order

KEY = st.sampled_from([0, 1, 2**31, 2**32 - 1])
KEYS = st.integers(1, 5).flatmap(
    lambda bands: st.lists(st.lists(KEY | st.integers(0, 30), min_size=bands, max_size=bands), max_size=25)
)


def found(keys, threads=1, split=None):
    array = np.array(keys, np.uint32).reshape(len(keys), len(keys[0]) if keys else 3)
    left, right = candidate_pairs(array, threads, split)
    assert left.dtype == right.dtype == np.int64
    return list(zip(left.tolist(), right.tolist(), strict=True))


@given(KEYS, st.integers(1, 4))
def test_candidates(keys, threads):
    assert found(keys, threads) == oracles.candidates(keys)


@given(KEYS, st.integers(0, 26), st.integers(1, 4))
def test_candidates_across_a_split(keys, split, threads):
    assert found(keys, threads, split) == oracles.candidates(keys, split)


@pytest.mark.parametrize("threads", [1, 2, 4])
def test_many_collisions(threads):
    keys = np.random.default_rng(1).integers(0, 40, (300, 12)).tolist()
    assert found(keys, threads) == oracles.candidates(keys)
    assert found(keys, threads, 100) == oracles.candidates(keys, 100)


def test_one_bucket_holds_everybody():
    """Every pair agrees in all bands, and stands there once."""
    n = 300
    assert len(found([[7] * 9] * n)) == n * (n - 1) // 2
    assert len(found([[7] * 9] * n, split=10)) == 10 * (n - 10)
    assert found([[7] * 9] * n, split=0) == found([[7] * 9] * n, split=n) == []


@pytest.mark.parametrize("n", [0, 1])
def test_too_few_items(n):
    left, right = candidate_pairs(np.zeros((n, 4), np.uint32), 2)
    assert left.size == right.size == 0


@given(st.lists(st.tuples(st.integers(0, 40), st.integers(0, 40)), max_size=30))
def test_pairs_are_put_in_order(pairs):
    left, right = (np.array([pair[side] for pair in pairs], np.int64) for side in (0, 1))
    order = pair_order(left, right, 41)
    assert [pairs[i] for i in order] == sorted(pairs)


def test_numbers_up_to_the_highest_are_put_in_order():
    for n in (2, 3, 2**20, 2**31):
        left, right = np.array([n - 1, 0, n - 1]), np.array([n - 1, n - 1, 0])
        assert pair_order(left, right, n).tolist() == [1, 2, 0]
