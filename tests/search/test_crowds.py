"""Crowds against brute force: pairs, leaders and the shingles to blame, whatever the template and the threshold."""

import math
from collections import Counter

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

import oracles
from likewise.base.arrays import Sets
from likewise.errors import ParameterError
from likewise.kernels import graph
from likewise.search.crowds import algorithm as crowds
from likewise.search.crowds.algorithm import crowd_pairs

RECALL = 0.95
SETS = st.lists(st.sets(st.integers(0, 14), max_size=12), max_size=14)


def make_sets(lists):
    """Lay sets of small numbers out as they are."""
    values = np.array([x for part in lists for x in part], np.uint64)
    return Sets(values, np.cumsum([0, *map(len, lists)]).astype(np.int64))


def make_crowd(n, similarity, threshold=0.8, size=60, spread=0.0, missing=0.0, templates=1, planted=0.1, seed=1):
    """Make n sets of about `size` numbers on templates that alone make two of them this similar.

    A fraction `planted` of the sets stands in pairs that share just enough of their own to reach the threshold.
    Own parts vary by `spread`; every number of the template is missing with probability `missing`.
    """
    random = np.random.default_rng(seed)
    fixed = round(2 * similarity * size / (1 + similarity))
    template_of = random.integers(0, templates, n)
    own_sizes = np.maximum(1, np.round((size - fixed) * random.uniform(1 - spread, 1 + spread, n))).astype(int)
    own = [[1_000_000 + 1000 * i + j for j in range(own_sizes[i])] for i in range(n)]
    pairs = random.permutation(n)[: int(n * planted / 2) * 2].reshape(-1, 2)
    for a, b in pairs:
        template_of[b] = template_of[a]
        need = math.ceil(threshold / (1 + threshold) * 2 * (fixed + own_sizes[a]) - 1e-9) - fixed
        shared = min(own_sizes[a], max(0, need + random.integers(0, 2)))
        own[b] = own[a][:shared] + [1_000_000 + 1000 * b + j for j in range(own_sizes[a] - shared)]
    kept = random.random((n, fixed)) >= missing
    lists = [[1000 * int(template_of[i]) + j for j in range(fixed) if kept[i, j]] + own[i] for i in range(n)]
    return [random.permutation(part).tolist() for part in lists]


def true_pairs(lists, threshold):
    """All similar pairs by Python sets, {(i, j): similarity}; sets of different sizes need not be compared."""
    wholes = [set(part) for part in lists]
    found = {}
    for j, b in enumerate(wholes):
        for i, a in enumerate(wholes[:j]):
            shared = len(a & b)
            union = len(a) + len(b) - shared
            similarity = shared / union if union else 1.0
            if similarity >= threshold:
                found[i, j] = similarity
    return found


def listed(crowd):
    pairs = list(zip(crowd.left.tolist(), crowd.right.tolist(), strict=True))
    assert pairs == sorted(set(pairs)), "sorted, each once"
    assert all(i < j for i, j in pairs)
    return dict(zip(pairs, crowd.similarity.tolist(), strict=True))


def check(lists, threshold, budget=0, complete=None, **options):
    """Compare with the truth: nothing false, enough found if complete, and no two kept that are similar."""
    crowd = crowd_pairs(make_sets(lists), threshold, RECALL, seed=7, budget=budget, **options)
    truth, found = true_pairs(lists, threshold), listed(crowd)
    assert all(truth.get(pair) == similarity for pair, similarity in found.items())
    if complete is not None:
        assert crowd.complete == complete
    if crowd.complete:
        assert len(found) >= at_least(len(truth), RECALL)
    kept = graph.keepers(np.arange(len(lists)), crowd.left, crowd.right) < 0
    assert np.array_equal(kept, crowd.leaders)
    together = {row for pair in truth if kept[pair[0]] and kept[pair[1]] for row in pair}
    assert len(together) <= kept.sum() - at_least(int(kept.sum()), RECALL)
    return crowd, truth


def at_least(n, probability):
    """Four standard errors below the mean of n trials."""
    return n * probability - 4 * math.sqrt(n * probability * (1 - probability))


@pytest.mark.parametrize("similarity", [0.5, 0.667, 0.75, 0.78])
def test_a_template_below_the_threshold(similarity):
    lists = make_crowd(500, similarity)
    crowd, truth = check(lists, 0.8, complete=True)
    assert len(truth) == 25
    assert len(crowd.left) == 25, "each of these must share a shingle of its own: they are found for certain"


@pytest.mark.parametrize("similarity", [0.25, 0.4, 0.46])
def test_a_template_below_a_low_threshold(similarity):
    _, truth = check(make_crowd(500, similarity, 0.5), 0.5, complete=True)
    assert len(truth) == 25


@pytest.mark.parametrize(("similarity", "threshold"), [(0.82, 0.8), (0.95, 0.8), (0.55, 0.5), (0.7, 0.5)])
def test_a_template_above_the_threshold(similarity, threshold):
    lists = make_crowd(500, similarity, threshold)
    crowd, truth = check(lists, threshold, complete=False)
    assert len(truth) == 500 * 499 // 2
    assert crowd.leaders.sum() == 1
    assert 499 <= len(crowd.left) <= 3 * 499 + 500


@pytest.mark.parametrize("options", [{"spread": 0.5}, {"templates": 4, "spread": 0.5}, {"templates": 30}])
@pytest.mark.parametrize("similarity", [0.72, 0.8])
def test_mixtures(similarity, options):
    check(make_crowd(500, similarity, **options), 0.8)


@pytest.mark.parametrize(("similarity", "missing"), [(0.86, 0.05), (0.9, 0.05), (0.96, 0.1)])
def test_a_template_with_gaps(similarity, missing):
    check(make_crowd(500, similarity, missing=missing), 0.8)


def test_small_families_inside_a_crowd():
    """Twenty documents each on 30 templates that share half their shingles: too similar for a few, not for many."""
    lists = [part + list(range(10**9, 10**9 + 30)) for part in make_crowd(600, 0.9, size=40, templates=30)]
    _, truth = check(lists, 0.8, complete=True)
    assert len(truth) > 600 * 7


@pytest.mark.parametrize("threshold", [0.3, 0.5, 0.8, 1.0])
@pytest.mark.parametrize("budget", [0, None])
def test_equal_sets(threshold, budget):
    crowd, _ = check([[1, 2, 3]] * 200, threshold, budget, complete=budget is None)
    assert crowd.leaders.tolist() == [True] + [False] * 199
    assert sorted(crowd.common.tolist()) == [1, 2, 3]
    assert crowd.carried.tolist() == [200] * 3


@given(SETS, st.sampled_from([0.2, 1 / 3, 0.5, 0.8, 1.0]), st.sampled_from([0, 10, None]))
def test_tiny_sets(lists, threshold, budget):
    lists = [sorted(part) for part in lists]
    crowd = crowd_pairs(make_sets(lists), threshold, RECALL, seed=3, budget=budget)
    truth, found = true_pairs(lists, threshold), listed(crowd)
    assert all(truth.get(pair) == similarity for pair, similarity in found.items())
    if budget is None:
        assert found == truth
        assert crowd.complete
    kept = [i for i, stands in oracles.keepers(range(len(lists)), found).items() if i == stands]
    assert np.flatnonzero(crowd.leaders).tolist() == sorted(kept)
    carried = Counter(x for part in lists for x in part)
    most = sorted(((x, n) for x, n in carried.items() if n > len(lists) / 2), key=lambda entry: (-entry[1], entry[0]))
    assert list(zip(crowd.common.tolist(), crowd.carried.tolist(), strict=True)) == most


@pytest.mark.parametrize("n", [0, 1, 2])
@pytest.mark.parametrize("budget", [0, None])
def test_hardly_any_sets(n, budget):
    crowd = crowd_pairs(make_sets([[5, 6, 7]] * n), 0.8, RECALL, seed=1, budget=budget)
    assert crowd.leaders.tolist() == [True, False][:n]
    assert len(crowd.left) == n // 2


def test_empty_sets_are_alike():
    """And like nothing else."""
    crowd, _ = check([[]] * 100 + [[i] for i in range(100)], 0.8)
    assert crowd.leaders.sum() == 101


def test_all_pairs_are_compared_while_they_are_few():
    lists = make_crowd(300, 0.8, spread=0.5)
    crowd, truth = check(lists, 0.8, budget=None, complete=True)
    assert listed(crowd) == truth
    same, _ = check(lists, 0.8, budget=300 * 299 // 2, complete=True)
    assert listed(same) == truth


@pytest.mark.parametrize("options", [{"similarity": 0.75}, {"similarity": 0.82}, {"similarity": 0.87, "missing": 0.05}])
def test_the_answer_does_not_depend_on_threads(options, monkeypatch):
    monkeypatch.setattr(crowds, "BATCH", 100)
    sets = make_sets(make_crowd(1000, spread=0.4, **options))
    first, *others = (crowd_pairs(sets, 0.8, RECALL, 1, threads, budget=10_000) for threads in (1, 2, 3, 5))
    for other in others:
        for name in ("left", "right", "similarity", "leaders", "common", "carried"):
            assert np.array_equal(getattr(first, name), getattr(other, name)), name
        assert first.complete == other.complete


def test_sets_of_32_bits():
    lists = make_crowd(600, 0.75, spread=0.5)
    sets = make_sets(lists)
    narrow = Sets(sets.values.astype(np.uint32), sets.offsets)
    wide, short = (crowd_pairs(these, 0.8, RECALL, 1, budget=0) for these in (sets, narrow))
    assert listed(wide) == listed(short)
    assert np.array_equal(wide.common, short.common)


def test_the_shingles_to_blame():
    lists = [[*range(50), 100 + i] for i in range(40)] + [[*range(30), 200 + i] for i in range(20)]
    crowd = crowd_pairs(make_sets(lists), 0.8, RECALL, seed=1)
    assert crowd.common.dtype == np.uint64
    assert crowd.common.tolist() == list(range(20))
    assert crowd.carried.tolist() == [60] * 20
    crowd = crowd_pairs(make_sets([part[25:] for part in lists]), 0.8, RECALL, seed=1)
    assert crowd.common.tolist() == [*range(25, 45)]
    assert crowd.carried.tolist() == [60] * 5 + [40] * 15


def test_a_leader_has_deputies():
    """Were the leader taken away by a pair from elsewhere, nearly all its followers would still be stood for."""
    crowd, _ = check(make_crowd(500, 0.9), 0.8, complete=False)
    rest = (crowd.left > 0) & (crowd.right > 0)
    kept = graph.keepers(np.arange(500), crowd.left[rest], crowd.right[rest]) < 0
    assert kept[1:].sum() == 1


@pytest.mark.parametrize(("threshold", "recall"), [(0, 0.9), (1.1, 0.9), (0.8, 1), (0.8, 0)])
def test_parameters_are_checked(threshold, recall):
    with pytest.raises(ParameterError, match="crowd_pairs"):
        crowd_pairs(make_sets([]), threshold, recall, 1)
