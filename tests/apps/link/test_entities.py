"""Clusters of records by average linkage, and their keepers."""

import numpy as np
from hypothesis import given
from hypothesis import strategies as st

from likewise.apps.link.entities import cluster, keepers


def test_one_false_match_does_not_join_two_clusters():
    groups = [(0, 1, 2, 3), (4, 5, 6, 7)]
    pairs = [(i, j, 5.0) for g in groups for i in g for j in g if i < j]
    pairs += [(i, j, 5.0 if (i, j) == (3, 4) else -5.0) for i in groups[0] for j in groups[1]]
    left, right, scores = (np.array(column) for column in zip(*pairs, strict=True))
    assert cluster(8, left, right, scores).tolist() == [0, 0, 0, 0, 4, 4, 4, 4]


@given(st.integers(2, 7), st.data())
def test_clusters_of_agreeing_scores_are_components(n, data):
    labels = np.array(data.draw(st.lists(st.integers(0, 2), min_size=n, max_size=n)))
    left, right = np.triu_indices(n, 1)
    found = cluster(n, left, right, np.where(labels[left] == labels[right], 4.0, -4.0))
    assert all((found[i] == found[j]) == (labels[i] == labels[j]) for i in range(n) for j in range(n))
    assert (found <= np.arange(n)).all()


def test_no_pairs_no_clusters():
    none = np.zeros(0, np.int64)
    assert cluster(3, none, none, np.zeros(0)).tolist() == [0, 1, 2]


def test_the_fullest_record_is_kept():
    assert keepers(np.array([0, 0, 0, 3]), np.array([1, 4, 4, 2])).tolist() == [1, 1, 1, 3]


def test_pairs_that_were_no_candidates_are_compared_before_clusters_are_formed() -> None:
    """A chain of one entity: neighbours are candidates, all others would match if they were compared."""
    left = np.arange(7)
    asked = []

    def score(one: np.ndarray, other: np.ndarray) -> np.ndarray:
        asked.extend(zip(one.tolist(), other.tolist(), strict=True))
        return np.full(len(one), 4.0)

    assert cluster(8, left, left + 1, np.full(7, 5.0), score=score).tolist() == [0] * 8
    assert sorted(asked) == [(i, j) for i in range(8) for j in range(i + 2, 8)]
    assert len(set(cluster(8, left, left + 1, np.full(7, 5.0)).tolist())) > 1
    apart = cluster(8, left, left + 1, np.full(7, 5.0), score=lambda one, other: np.full(len(one), -5.0))
    assert len(set(apart.tolist())) > 1
