"""Pairs of groups to pairs of rows: all of them, as many as fit in a table, and the nearest of each row."""

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

import oracles
from likewise.base.copies import Groups
from likewise.search import expand
from likewise.search.expand import listed_pairs, nearest_rows, row_pairs
from likewise.search.matches import VerifiedPairs

LABELS = st.lists(st.integers(0, 4), min_size=1, max_size=9)


def groups_of(labels):
    return Groups.by_digest(np.array([(label, 1) for label in labels], np.uint64))


def rows_of(matches, within=True):
    left, right, similarity, abridged = listed_pairs(matches, within)
    assert abridged == {}
    pairs = list(zip(left.tolist(), right.tolist(), strict=True))
    assert pairs == sorted(set(pairs))
    assert all(a < b for a, b in pairs)
    return dict(zip(pairs, similarity.tolist(), strict=True))


@given(LABELS, LABELS, st.sets(st.tuples(st.integers(0, 4), st.integers(0, 4))))
def test_groups_of_two_collections(here, there, chosen):
    a, b = groups_of(here), groups_of(there)
    pairs = sorted((x, y) for x, y in chosen if x < len(a) and y < len(b))
    left, right = (np.array([pair[side] for pair in pairs], np.int64) for side in (0, 1))
    found = row_pairs((left, right, np.arange(len(pairs)) / 10), a, b)
    expected = [(i, j, pairs.index((x, y)) / 10) for i, x in enumerate(a.of.tolist())
                for j, y in enumerate(b.of.tolist()) if (x, y) in pairs]  # fmt: skip
    assert sorted(zip(*(column.tolist() for column in found), strict=True)) == expected


@given(LABELS, st.sets(st.tuples(st.integers(0, 4), st.integers(0, 4))), st.booleans())
def test_groups_of_one_collection(labels, chosen, symmetric):
    """Groups of several rows may be paired with themselves; no row is."""
    groups = groups_of(labels)
    pairs = {(min(pair), max(pair)) if symmetric else pair for pair in chosen if max(pair) < len(groups)}
    pairs = sorted(pair for pair in pairs if pair[0] != pair[1] or groups.sizes[pair[0]] > 1)
    left, right = (np.array([pair[side] for pair in pairs], np.int64) for side in (0, 1))
    rows, others, _ = row_pairs((left, right, np.ones(len(pairs))), groups, symmetric=symmetric)
    of = groups.of.tolist()
    expected = {(i, j) for i, x in enumerate(of) for j, y in enumerate(of) if i != j and (x, y) in pairs}
    if symmetric:
        expected = {(min(pair), max(pair)) for pair in expected}
    assert sorted(zip(rows.tolist(), others.tolist(), strict=True)) == sorted(expected)


@st.composite
def matches_of_groups(draw):
    labels = draw(st.lists(st.integers(0, 5), min_size=1, max_size=14))
    groups = groups_of(labels)
    every = [(a, b) for a in range(len(groups)) for b in range(a + 1, len(groups))]
    pairs = sorted(draw(st.sets(st.sampled_from(every)))) if every else []
    left, right = (np.array([pair[side] for pair in pairs], np.int64) for side in (0, 1))
    similarity = np.linspace(0.8, 0.9, len(pairs))
    return VerifiedPairs(groups, groups.of, left, right, similarity)


def spelled_out(matches, within):
    groups = dict(enumerate(matches.groups.of.tolist()))
    similar = {(a, b): s for a, b, s in zip(matches.left, matches.right, matches.similarity, strict=True)}
    found = {}
    for i in groups:
        for j in range(i + 1, len(groups)):
            pair = min(groups[i], groups[j]), max(groups[i], groups[j])
            if pair in similar or (within and pair[0] == pair[1]):
                found[i, j] = similar.get(pair, 1.0)
    return found


@given(matches_of_groups(), st.booleans())
def test_all_pairs_are_listed(matches, within):
    assert rows_of(matches, within) == spelled_out(matches, within)


@given(matches_of_groups(), st.integers(0, 60))
def test_lists_that_would_be_too_long_are_abridged(matches, budget):
    """Never a pair that is not one, nobody left out, the same clusters; and the rows abridged are counted."""
    full = spelled_out(matches, within=True)
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(expand, "MAX_LISTED", budget)
        patch.setattr(expand, "LISTED_PER_ITEM", 0)
        left, right, similarity, abridged = listed_pairs(matches)
    pairs = list(zip(left.tolist(), right.tolist(), strict=True))
    found = dict(zip(pairs, similarity.tolist(), strict=True))
    assert pairs == sorted(found)
    assert found.items() <= full.items()
    n = len(matches.groups.of)
    assert oracles.components(n, pairs) == oracles.components(n, full)
    if len(full) <= budget:
        assert found == full
        assert abridged == {}
    else:
        assert abridged or matches.groups.sizes.max() == 1
    if abridged:
        sizes = np.sort(matches.groups.sizes)[::-1][: abridged["groups"]]
        assert abridged["items"] == sizes.sum()
        assert sizes.min() > 1


def test_an_abridged_group_is_a_star(monkeypatch):
    monkeypatch.setattr(expand, "MAX_LISTED", 20)
    monkeypatch.setattr(expand, "LISTED_PER_ITEM", 0)
    labels = [0] * 10 + [1, 1, 2]
    groups = groups_of(labels)
    matches = VerifiedPairs(groups, groups.of, np.array([0]), np.array([1]), np.array([0.9]))
    left, right, similarity, abridged = listed_pairs(matches)
    star = [(0, copy, 1.0) for copy in range(1, 10)]
    expected = [*star, (0, 10, 0.9), (0, 11, 0.9), (10, 11, 1.0)]
    assert list(zip(left.tolist(), right.tolist(), similarity.tolist(), strict=True)) == expected
    assert abridged == {"groups": 1, "items": 10}
    across = listed_pairs(matches, within=False)
    assert list(zip(across[0].tolist(), across[1].tolist(), strict=True))[:2] == [(0, 10), (0, 11)]


def test_a_hundred_thousand_copies_are_listed_in_linear_space():
    n = 100_000
    groups = Groups.by_digest(np.ones((n, 2), np.uint64))
    none = np.zeros(0, np.int64)
    left, right, _, abridged = listed_pairs(VerifiedPairs(groups, groups.of, none, none, np.zeros(0)))
    assert (left == 0).all()
    assert right.tolist() == list(range(1, n))
    assert abridged == {"groups": 1, "items": n}


@given(LABELS, st.integers(1, 4), st.data())
def test_the_nearest_rows(labels, k, data):
    """The k closest rows of every row, copies among them, ties by row."""
    groups = groups_of(labels)
    every = [(a, b) for a in range(len(groups)) for b in range(a + 1, len(groups))]
    pairs = sorted(data.draw(st.sets(st.sampled_from(every)))) if every else []
    left, right = (np.array([pair[side] for pair in pairs], np.int64) for side in (0, 1))
    closeness = np.array(
        data.draw(st.lists(st.sampled_from([0.1, 0.5, 0.9]), min_size=len(pairs), max_size=len(pairs)))
    )
    found = nearest_rows(groups, left, right, closeness, k, 0, across=False, same=1.0, both=True)
    close = dict(zip(pairs, closeness.tolist(), strict=True))
    of, expected = groups.of.tolist(), []
    for i, x in enumerate(of):
        partners = [(1.0 if x == y else close.get((min(x, y), max(x, y))), j) for j, y in enumerate(of) if j != i]
        ranked = sorted((-score, j) for score, j in partners if score is not None)
        expected += [(i, j, -score) for score, j in ranked[:k]]
    assert list(zip(*(column.tolist() for column in found), strict=True)) == expected
