"""Votes of triples, partners one with one, the best fit, points in polygons, against their definitions."""

import math
from itertools import combinations

import numpy as np
import pytest
from arrays_of import Opened
from hypothesis import given
from hypothesis import strategies as st

from likewise.kernels import minutiae

minutiae = Opened(minutiae)

POSES = st.lists(st.tuples(st.integers(-40, 40), st.integers(-40, 40), st.floats(0, 6.28)), min_size=1, max_size=7)


def table(rows):
    return np.array(rows, np.float64).reshape(-1, 3)


def turned_apart(a, b):
    return abs(math.atan2(math.sin(a - b), math.cos(a - b)))


def naive_partners(a, b, near, turned):
    """All that agree, best first; each takes what is left."""
    close = []
    for i, (x, y, t) in enumerate(a):
        for j, (u, v, w) in enumerate(b):
            far, angle = math.hypot(x - u, y - v), turned_apart(t, w)
            if far <= near and angle <= turned:
                close.append(((far / near) ** 2 + (angle / turned) ** 2, i, j))
    taken = {}
    for _, i, j in sorted(close):
        if i not in taken and j not in taken.values():
            taken[i] = j
    return taken


@given(a=POSES, b=POSES)
def test_partners(a, b):
    partner = np.empty(len(a), np.int64)
    count = minutiae.partners(table(a), table(b), 15.0, 0.35, partner)
    found = {i: int(j) for i, j in enumerate(partner) if j >= 0}
    assert count == len(found) == len(set(found.values()))
    expected = naive_partners(a, b, 15.0, 0.35)
    assert len(found) == len(expected)
    cost = [sum((a[i][k] - b[j][k]) ** 2 for i, j in pairs.items() for k in range(2)) for pairs in (found, expected)]
    assert cost[0] == pytest.approx(cost[1])


@given(a=POSES, turn=st.floats(-3, 3), x=st.integers(-50, 50), y=st.integers(-50, 50))
def test_the_fit_undoes_a_turn_and_a_shift(a, turn, x, y):
    moved = np.empty((len(a), 3))
    minutiae.move(table(a), turn, float(x), float(y), moved)
    found = minutiae.fitted(table(a), moved, np.arange(len(a)), 40.0)
    assert found == pytest.approx((turn, x, y), abs=1e-6)


def laid(turn, x, y, tries):
    """What `verify` says of a print and the same print turned and shifted, whose corners are all but the middle."""
    a = table([(0, 0, 0.1), (60, 5, 1), (10, 70, 2), (-50, 30, 3), (-20, -60, 4)])
    b = np.empty(a.shape)
    minutiae.move(a, turn, float(x), float(y), b)
    poses, offsets = np.concatenate([a, b]), np.array([0, 5, 10])
    corners, corner_offsets = poses[:, :2].copy()[[4, 1, 2, 3, 9, 6, 7, 8]], np.array([0, 4, 8])
    out = np.zeros((1, 6))
    minutiae.verify(
        np.array([0]), np.array([1]), np.array([tries], np.float64), poses, offsets, corners, corner_offsets, 15.0,
        0.35, 1.0, 3, out,
    )  # fmt: skip
    return out[0]


@given(
    turn=st.floats(-3.1, 3.1),
    x=st.integers(-90, 90),
    y=st.integers(-90, 90),
    others=st.lists(st.tuples(st.integers(1, 9), st.floats(-3.1, 3.1)), max_size=2),
    place=st.integers(0, 2),
)
def test_verify_finds_all_of_a_moved_print(turn, x, y, others, place):
    """Whichever of the tries is the right one, and whatever the votes: the other tries lie far from everything."""
    tries = [(votes, rotation, 900.0, -900.0) for votes, rotation in others]
    tries.insert(place, (2, turn + 0.02, x + 3.0, y - 3.0))  # a little beside
    found = laid(turn, x, y, tries)
    assert found[:3].tolist() == [5, 5, 5]
    assert math.cos(found[3] - turn) == pytest.approx(1)
    assert found[4:] == pytest.approx((x, y), abs=1e-6)


def test_what_has_no_votes_is_no_try():
    assert laid(0.5, 10, 20, [(3, 0.5, 900, 900), (0, 0.5, 10, 20)]) == pytest.approx((0, 0, 0, 0.5, 900, 900))


def test_of_equal_tries_the_first_is_taken():
    assert laid(0, 0, 0, [(1, 0, 900, 900), (9, 1, -900, 900)])[3:] == pytest.approx((0, 900, 900))


def test_within_a_polygon():
    square = np.array([[0, 0], [10, 0], [10, 10], [0, 10]], np.float64)
    points = table([(5, 5, 0), (0, 0, 0), (11, 5, 0), (13, 5, 0), (-1, -1, 0)])
    assert [minutiae.within(points, square, slack) for slack in (0.0, 1.5, 5.0)] == [2, 4, 5]
    assert minutiae.within(points, square[:1], 2.0) == 2, "a polygon of one corner is a disc"


def naive_triples(seen, other, width):
    """How many triples of two minutiae agree: of squares of two neighbours, in any order."""
    there = [tuple(sorted(pair)) for pair in combinations([int(s) for s in other if s >= 0], 2)]
    count = 0
    for a, b in combinations([[int(s) for s in squares] for squares in seen], 2):
        count += sum(there.count(tuple(sorted((s, t)))) for s in a for t in b)
    return count


SEEN = st.lists(st.lists(st.integers(0, 4), min_size=0, max_size=3, unique=True), min_size=3, max_size=3)


@given(
    queries=st.lists(SEEN, min_size=1, max_size=3),
    others=st.lists(st.lists(st.integers(-1, 4), min_size=3, max_size=3), min_size=1, max_size=4),
    owners=st.lists(st.integers(1, 3), min_size=4, max_size=4),
    most=st.integers(0, 20),
    least=st.integers(1, 3),
)
def test_votes(queries, others, owners, most, least):
    """All minutiae lie in the middle and point the same way, so that all votes fall in one cell: they are counted.

    That is so however few votes are in memory at a time, and no vote is left for a second cell.
    """
    width, n = 5, len(queries)
    maybe, counts = np.zeros((n + len(others), 3, 3), np.int32), np.zeros((n + len(others), 3), np.int64)
    for f, seen in enumerate(queries):
        for k, squares in enumerate(seen):
            maybe[f, k, : len(squares)], counts[f, k] = squares, len(squares)
    owner = np.array([0] * n + owners[: len(others)])
    keys, where = [], []
    for g, squares in enumerate(others):
        for a, b in combinations([s for s in squares if s >= 0], 2):
            keys.append(min(a, b) * width + max(a, b))
            where.append(n + g)
    keys, where = np.array(keys, np.int32), np.array(where, np.int32)
    hashed = minutiae.slot(keys, 16)
    order = np.argsort(hashed, kind="stable")
    slots = np.concatenate([[0], np.cumsum(np.bincount(hashed, minlength=16))])
    found, best = np.zeros(4, np.int64), np.full((4, 2, 4), 7.0)
    poses = np.zeros((n + len(others), 3))
    index = minutiae.TripleTables(maybe, counts, width, slots, keys[order], where[order], owner)
    written = minutiae.propose(0, n, index, 1, poses, 48.0, np.full(4, float(least)), most, found, best)
    expected = {}
    for g, squares in enumerate(others):
        votes = sum(naive_triples(seen, squares, width) for seen in queries)
        if votes and owner[n + g] > 1:
            expected[int(owner[n + g])] = expected.get(int(owner[n + g]), 0) + votes
    expected = {p: votes for p, votes in expected.items() if votes >= least}
    assert {int(found[i]): int(best[i, 0, 0]) for i in range(written)} == expected
    assert not best[:written, 0, 1:].any()
    assert not best[:written, 1, 0].any()


def test_the_fullest_cells_win():
    """Three votes for a quarter turn, two for none: in this order, each with the mean of its shifts, and no third."""
    turn = math.pi / 2
    poses = table([(10, 0, 0)] + [(0, 10 + d, turn) for d in (-1, 0, 4)] + [(10, 0, 0), (16, 0, 0)])
    hits = np.array([(0, g) for g in (4, 1, 2, 3, 5)], np.int32)
    votes = np.zeros((8, minutiae.TURNS, minutiae.SHIFTS, minutiae.SHIFTS), np.int32)
    for tries in (1, 2, 3):
        best = np.zeros((tries, 4))
        assert minutiae.elect(poses, hits, 48.0, votes, best) == 3
        assert best == pytest.approx(np.array([(3, turn, 0, 1), (2, 0, 3, 0), (0, 0, 0, 0)])[:tries])
        assert not votes.any()
    assert minutiae.most_turned_alike(poses, hits) == 3


def test_a_vote_counts_for_one_cell():
    """Of six votes in a row the first four share a cell, and in a shifted grid the last four: that cell keeps two."""
    poses = table([(0, 0, 0)] + [(12 * d, 0, 0) for d in range(6)])
    hits = np.array([(0, g) for g in range(1, 7)], np.int32)
    votes = np.zeros((8, minutiae.TURNS, minutiae.SHIFTS, minutiae.SHIFTS), np.int32)
    best = np.zeros((3, 4))
    assert minutiae.elect(poses, hits, 48.0, votes, best) == 4
    assert best == pytest.approx(np.array([(4, 0, 18, 0), (2, 0, 54, 0), (0, 0, 0, 0)]))
    assert not votes.any()
