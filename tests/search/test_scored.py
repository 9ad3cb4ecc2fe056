"""The orders of scored pairs."""

import numpy as np
from hypothesis import given
from hypothesis import strategies as st

from likewise.search.scored import best_first, pair_order


@given(st.lists(st.tuples(st.integers(0, 40), st.integers(0, 40)), max_size=30))
def test_pairs_are_put_in_order(pairs):
    left, right = (np.array([pair[side] for pair in pairs], np.int64) for side in (0, 1))
    order = pair_order(left, right, 41)
    assert [pairs[i] for i in order] == sorted(pairs)


def test_numbers_up_to_the_highest_are_put_in_order():
    for n in (2, 3, 2**20, 2**31):
        left, right = np.array([n - 1, 0, n - 1]), np.array([n - 1, n - 1, 0])
        assert pair_order(left, right, n).tolist() == [1, 2, 0]


@given(st.lists(st.tuples(st.integers(0, 5), st.integers(0, 9), st.sampled_from([0.2, 0.5, 1.0]))), st.integers(1, 4))
def test_the_best_come_first(pairs, k):
    left, right, scores = (np.array([pair[side] for pair in pairs]) for side in range(3))
    found = best_first(left.astype(np.int64), right.astype(np.int64), scores.astype(float), k)
    ranked = sorted((a, -score, b) for a, b, score in pairs)
    expected = [row for place, row in enumerate(ranked) if sum(other[0] == row[0] for other in ranked[:place]) < k]
    assert list(zip(*(column.tolist() for column in found), strict=True)) == [
        (a, b, -score) for a, score, b in expected
    ]
