"""Counting what sets share: by all lists, by the rarest elements first, and pair by pair."""

import numpy as np
from arrays_of import Opened
from hypothesis import given
from hypothesis import strategies as st

from likewise.apps.recommend.inverted_lists import InvertedLists
from likewise.base.arrays import Sets
from likewise.kernels import counting

counting = Opened(counting)

SETS = st.lists(st.lists(st.integers(0, 9), min_size=1, max_size=8, unique=True), min_size=1, max_size=10)
THRESHOLDS = st.sampled_from([1e-12, 0.2, 1 / 3, 0.5])


def arranged(sets):
    """The arrays of the sets, and the sets in the kernels' order."""
    elements = np.array([element for one in sets for element in one], np.int64)
    lists = InvertedLists(Sets(elements, np.cumsum([0, *map(len, sets)])))
    return lists, [set(sets[row]) for row in lists.rows]


def score(a, b, summed):
    return len(a & b) / (len(a) + len(b) if summed else len(a | b))


def ranked(ordered, lists, x, top, threshold, summed):
    found = [
        (-score(ordered[x], other, summed), int(lists.rows[y]), len(ordered[x] & other))
        for y, other in enumerate(ordered)
        if y != x and ordered[x] & other and score(ordered[x], other, summed) >= threshold
    ]
    return [(-negative, row, shared) for negative, row, shared in sorted(found)[:top]]


@given(SETS, THRESHOLDS, st.booleans(), st.integers(1, 4))
def test_both_ways_give_the_best_partners(sets, threshold, summed, top):
    lists, ordered = arranged(sets)
    n = len(ordered)
    counts, touched, stamps = np.zeros(n, np.int32), np.empty(n, np.int32), np.full(n, -1, np.int32)
    for x in range(n):
        truth = ranked(ordered, lists, x, top, threshold, summed)
        for patience in (10**9, None):
            best, rows, shared = np.zeros(top), np.zeros(top, np.int64), np.zeros(top, np.int64)
            if patience is None:
                held = counting.meet_all(x, lists._lists, threshold, summed, counts, touched, best, rows, shared)
            else:
                held = counting.meet_rare_first(
                    x, lists._lists, threshold, summed, patience, stamps, best, rows, shared
                )
            assert list(zip(best[:held], rows[:held], shared[:held], strict=True)) == truth
    assert not counts.any()


@given(SETS, THRESHOLDS, st.booleans())
def test_a_search_that_takes_too_long_is_counted(sets, threshold, summed):
    """Without patience the rarest elements give up, having seen some partners; what they knew must not be lost."""
    lists, ordered = arranged(sets)
    n, top = len(ordered), 2
    for x in range(n):
        stamps = np.full(n, -1, np.int32)
        best, rows, shared = np.zeros(top), np.zeros(top, np.int64), np.zeros(top, np.int64)
        held = counting.meet_rare_first(x, lists._lists, threshold, summed, 0, stamps, best, rows, shared)
        assert held < 0 or held == len(ranked(ordered, lists, x, top, threshold, summed))
        truth = {(round(score, 9), row) for score, row, _ in ranked(ordered, lists, x, n, threshold, summed)}
        seen = -1 - held if held < 0 else held
        assert {(round(score, 9), row) for score, row in zip(best[:seen], rows[:seen], strict=True)} <= truth


@given(SETS, THRESHOLDS, st.booleans(), st.integers(0, 3))
def test_pairs_stop_where_there_is_no_room_and_go_on(sets, threshold, summed, more):
    lists, ordered = arranged(sets)
    n = len(ordered)
    counts, touched = np.zeros(n, np.int32), np.empty(n, np.int32)
    out = [np.empty(n + more, np.int32) for _ in range(3)]
    found, x = [], 0
    while x < n:
        after, count = counting.count_pairs(x, n, lists._lists, threshold, summed, counts, touched, *out)
        assert after > x
        found += zip(*(array[:count].tolist() for array in out), strict=True)
        x = after
    truth = [
        (x, y, len(ordered[x] & ordered[y]))
        for x in range(n)
        for y in range(x)
        if ordered[x] & ordered[y] and score(ordered[x], ordered[y], summed) >= threshold
    ]
    assert sorted(found) == sorted(truth)
