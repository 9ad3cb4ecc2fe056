"""Which cells queries visit, in rounds, so that all queries that visit a cell can do so one after another.

A query visits the cells whose centres are not much farther than the nearest one; how much depends on its worst answer
so far. In the first round this is the nearest cell, in the second the next ones up to the eighth, and so on. How far a
query may go is found when a round begins, and in a round cells come in the order of memory: what a query sees does not
depend on the other queries.
"""

from __future__ import annotations

import math
from typing import Any, NamedTuple

import numpy as np

from likewise.kernels import inner, making, summing
from likewise.kernels.vector_scan import kth_smallest

ROUND = 8
"""How many times as many cells may have been visited after another round."""
LOOSE = 1e-5
"""What is added to the reach of a query, relative to the distance of its nearest centre, for rounding."""


class CellVisits(NamedTuple):
    """gaps: for every cell the distance of its centre from each query. ends: for every round the distance of the last
    cell of each query that may belong to it. above, most: what distances belong to this round. waiting: the queries
    that visit a cell, and, while they do so, those that visit the next one."""

    gaps: Any
    ends: Any
    above: Any
    most: Any
    waiting: Any


@summing
def squared_gap(a, b):
    """Return the square of the distance of two vectors of single precision."""
    total = np.float32(0)
    for j in range(a.size):
        gap = a[j] - b[j]
        total += gap * gap
    return total


@making
def visits_of(placed, centres):
    """Return the visits of queries, given as they lie in the frame, before the first round."""
    cells, count = centres.shape[0], placed.shape[0]
    gaps = np.empty((cells, count), np.float32)
    for c in range(cells):
        for i in range(count):
            gaps[c, i] = math.sqrt(squared_gap(placed[i], centres[c]))
    rounds = 1
    while ROUND ** (rounds - 1) < cells:
        rounds += 1
    ends, column = np.full((rounds, count), np.inf), np.empty(cells, np.float32)
    for i in range(count):
        column[:] = gaps[:, i]
        size = cells
        for round_ in range(rounds - 2, -1, -1):
            last = ROUND**round_
            ends[round_, i] = kth_smallest(column, size, last)
            size = last
    return CellVisits(gaps, ends, np.empty(count), np.empty(count), np.empty((2, count), np.int64))


@inner
def begin_round(visits, round_, i, reach):
    """Find what distances a query visits in a round; tell whether there are any. reach: how much farther than the
    nearest centre others may be."""
    nearest = visits.ends[0, i]
    above = visits.ends[round_ - 1, i] if round_ > 0 else -1.0
    visits.above[i] = above
    visits.most[i] = min(visits.ends[round_, i], nearest + (reach + LOOSE * nearest))
    return visits.most[i] > above


@inner
def next_visits(visits, first, queries):
    """Write the queries that visit the next cell, from the first one on, in this round; return which cell, and how
    many."""
    above, most = visits.above, visits.most
    for c in range(first, visits.gaps.shape[0]):
        gaps = visits.gaps[c]
        count = 0
        for i in range(gaps.size):
            queries[count] = i
            count += 1 if above[i] < gaps[i] <= most[i] else 0
        if count > 0:
            return c, count
    return visits.gaps.shape[0], 0
