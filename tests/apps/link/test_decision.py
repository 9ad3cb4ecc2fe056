"""The best assignment against brute force, and thresholds."""

from itertools import permutations

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from likewise.apps.link.best_partners import STEP, assign, best_cut, second_best, split, with_lead
from likewise.apps.link.decision import decide_pairs


def best_total(gains):
    """Return the greatest sum of gains with every row and column at most once: all ways are tried."""
    rows, columns = gains.shape
    wide = np.concatenate([np.maximum(gains, 0), np.zeros((rows, rows))], axis=1)
    return max(sum(wide[i, j] for i, j in enumerate(way)) for way in permutations(range(columns + rows), rows))


@given(st.integers(1, 4), st.integers(1, 4), st.data())
def test_assignment_is_the_best(rows, columns, data):
    gains = np.array(
        data.draw(st.lists(st.integers(-3, 9), min_size=rows * columns, max_size=rows * columns)), float
    ).reshape(rows, columns)
    left, right = (one.ravel() for one in np.indices(gains.shape))
    chosen = assign(left, right, gains.ravel())
    assert len(set(left[chosen])) == len(chosen) == len(set(right[chosen]))
    assert best_total(gains) - gains.ravel()[chosen].sum() <= rows * STEP


def test_assignment_of_many_equal_pairs_ends():
    left, right = (one.ravel() for one in np.indices((30, 20)))
    chosen = assign(left, right, np.full(600, 5.0))
    assert len(chosen) == 20


def test_one_side_free():
    left, right, gain = np.array([0, 0, 1, 1]), np.array([5, 6, 5, 6]), np.array([3.0, 2.0, 4.0, 1.0])
    assert assign(left, right, gain, one_left=True, one_right=False).tolist() == [0, 2]
    assert assign(left, right, gain, one_left=False, one_right=True).tolist() == [1, 2]
    assert assign(left, right, gain, one_left=False, one_right=False).tolist() == [0, 1, 2, 3]


def test_nothing_to_assign():
    none = np.zeros(0, np.int64)
    assert len(assign(none, none, np.zeros(0))) == 0
    assert len(assign(np.array([0]), np.array([1]), np.array([-1.0]))) == 0


def test_rivals():
    left, right, scores = np.array([0, 0, 1]), np.array([2, 3, 3]), np.array([5.0, 2.0, 4.0])
    chosen = np.array([0, 2])
    for sides in ((True, True), (True, False), (False, True)):
        best, next_best = second_best(left, right, scores, chosen, 4, sides)
        expected = {(True, True): [2.0, 2.0], (True, False): [2.0, 2.0], (False, True): [2.0, 2.0]}[sides]
        assert best.tolist() == expected
        assert next_best.tolist() == [2.0, 2.0]
    left, scores = np.array([0, 0, 0, 0]), np.array([5.0, 2.0, 4.0, -1.0])
    best, next_best = second_best(left, np.arange(4) + 1, scores, np.array([0]), 5, (True, True))
    assert (best.tolist(), next_best.tolist()) == ([4.0], [2.0])


def drawn(n, share, seed=1):
    """Return the three best scores of n records, of which a share have a match (11 ± 2); 40 others score 0 ± 2."""
    random = np.random.default_rng(seed)
    match = random.random(n) < share
    others = np.sort(random.normal(0, 2, (n, 40)), axis=1)[:, ::-1]
    ranked = np.where(match[:, None], np.column_stack([random.normal(11, 2, n), others[:, :2]]), others[:, :3])
    return -np.sort(-ranked, axis=1), match & (ranked[:, 0] > others[:, 0])


def f1_of(taken, match):
    return 2 * (taken & match).sum() / (taken.sum() + match.sum())


@pytest.mark.parametrize("share", [0.5, 0.7, 0.9, 0.99])
def test_matches_and_best_non_matches_are_split(share):
    """The cut is as good as the best that knows the truth, within the binomial error of an F1 of so many matches."""
    ranked, match = drawn(4000, share)
    first, second, third = ranked.T
    ahead = with_lead(first, second)
    probability, _ = split(ahead, second, third)
    cut, _ = best_cut(probability, ahead)
    best = max(f1_of(ahead >= at, match) for at in np.linspace(-4, 30, 300))
    error = 4.4 * np.sqrt(best * (1 - best) / match.sum())
    assert f1_of(ahead >= cut, match) >= best - error


@pytest.mark.parametrize("share", [0.05, 0.1, 0.2, 0.3])
def test_few_matches_are_not_drowned(share):
    """With few matches the cut is cautious; it never takes most of the others for matches."""
    ranked, match = drawn(4000, share)
    first, second, third = ranked.T
    ahead = with_lead(first, second)
    cut, _ = best_cut(split(ahead, second, third)[0], ahead)
    taken = ahead >= cut
    assert (taken & match).sum() > (taken & ~match).sum()
    assert (taken & match).sum() > (~taken & match).sum()


def two_clean_tables(n=300, share=0.6, seed=2):
    random = np.random.default_rng(seed)
    left = np.repeat(np.arange(n), 4)
    right = n + (left + np.tile(np.arange(4), n) * 7) % n
    true = (left + n == right) & (left < share * n)
    return left, right, np.where(true, random.normal(9, 2, len(left)), random.normal(-2, 2, len(left))), true


def test_clean_tables_are_matched_one_to_one():
    left, right, scores, true = two_clean_tables()
    decision = decide_pairs(left, right, scores, np.ones(len(left), bool), 600)
    assert decision.rule == "one to one"
    found = set(decision.chosen.tolist())
    right = len(found & set(np.flatnonzero(true)))
    assert 2 * right / (len(found) + true.sum()) > 0.97


def test_a_table_with_duplicates_is_noticed():
    """Half of the first table's records have two matches, both as good."""
    left, right, scores, true = two_clean_tables(share=1.0)
    twin = true & (left % 2 == 0)
    left, right = np.concatenate([left, left[twin]]), np.concatenate([right, right[twin] + 300])
    scores = np.concatenate([scores, scores[twin]])
    decision = decide_pairs(left, right, scores, np.ones(len(left), bool), 1000)
    assert "second table has duplicates" in decision.rule
    assert len(decision.chosen) > 1.4 * 300
    told = decide_pairs(left, right, scores, np.ones(len(left), bool), 1000, one_to_one=True)
    assert len(told.chosen) <= 300
    every = decide_pairs(left, right, scores, np.ones(len(left), bool), 1000, threshold=-100.0, one_to_one=False)
    assert len(every.chosen) == len(left)


def test_pairs_without_enough_evidence_are_never_matches():
    left, right, scores, true = two_clean_tables()
    decision = decide_pairs(left, right, scores, ~true, 600, threshold=5.0)
    assert not true[decision.chosen].any()
    assert len(decide_pairs(left, right, scores, np.zeros(len(left), bool), 600).chosen) == 0


def test_the_threshold_of_the_user_counts():
    left, right, scores, _ = two_clean_tables()
    decision = decide_pairs(left, right, scores, np.ones(len(left), bool), 600, threshold=9.0)
    assert decision.threshold == 9.0
    assert (scores[decision.chosen] >= 9.0).all()
