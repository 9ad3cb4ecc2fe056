"""Cells: vectors near the same centre are kept together, and a row is compared with those of the nearest cells only.

The centres are those of k-means on a sample. How many cells a row visits is what the true neighbours of a sample of
rows require: the least number with which the share of them that is found exceeds the recall by two standard errors. Of
the vectors in the cells that a row visits its k nearest are found exactly.
"""

from __future__ import annotations

import math
from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from likewise.base.arrays import Ints
from likewise.base.parallel import in_order
from likewise.base.random import uniform
from likewise.base.runlog import Tick
from likewise.search.scored import ScoredPairs
from likewise.search.vectors.operands import HIGH, WIDE, Operands
from likewise.search.vectors.plan import PRODUCT, SCORE
from likewise.search.vectors.scan import PORTION, Best, Means
from likewise.search.vectors.spaces import ROWS, Angle

Singles = NDArray[np.float32]

FEWEST = 64
"""Fewer cells than this are too large."""
LEARNT = 32
"""Vectors of the sample for each centre."""
STEPS = 5
"""Steps of k-means: more of them hardly change how many cells must be visited."""
WAIT = 0.25
"""The part of the time of comparing all that finding the cells may take: they may turn out to be of no use."""
RANK = 8.0
"""Nanoseconds to see whether a centre is among the nearest of a row."""
GATHER = 1.4
"""How much longer a pair takes than in large blocks: the vectors of a cell are gathered for some rows at a time."""
VISITORS = 256
"""Rows that visit a cell at a time, on average; fewer where that takes long, so that an interrupt is heeded."""


class Cells:
    """Centres, and the columns of every cell."""

    def __init__(self, operands: Operands, centres: Singles, split: int, threads: int) -> None:
        self.operands, self.centres, self.split = operands, centres, split
        n = len(operands.space)

        def work(start: int) -> Ints:
            return nearest_centres(operands, operands.table[start : min(start + ROWS, n)], centres, 1)[:, 0]

        of = np.concatenate(list(in_order(work, range(split, n, ROWS), threads)))
        self.members = np.argsort(of, kind="stable") + split
        self.ends = np.concatenate([[0], np.cumsum(np.bincount(of, minlength=len(centres)))])

    def columns(self, cell: int) -> Ints:
        """Return the columns of a cell."""
        return self.members[self.ends[cell] : self.ends[cell + 1]]

    def meetings(self, rows: Ints, visited: int) -> Iterator[tuple[Ints, Ints]]:
        """Yield blocks: places in `rows`, and the columns that these are compared with, in the cells they visit."""
        table = self.operands.table
        visits = [
            nearest_centres(self.operands, table[rows[start : start + HIGH]], self.centres, visited)
            for start in range(0, len(rows), HIGH)
        ]
        cells = np.concatenate(visits).ravel()
        places = np.argsort(cells, kind="stable") // visited
        ends = np.concatenate([[0], np.cumsum(np.bincount(cells, minlength=len(self.centres)))])
        for cell in range(len(self.centres)):
            here, columns = places[ends[cell] : ends[cell + 1]], self.columns(cell)
            for start in range(0, len(here), HIGH):
                for first in range(0, len(columns), WIDE):
                    yield here[start : start + HIGH], columns[first : first + WIDE]


@dataclass(frozen=True)
class CellPlan:
    """Centres, and how many cells a row visits; with the recall that a sample had."""

    centres: Singles
    visited: int
    recall: float
    nanoseconds: float

    def strip(self, operands: Operands, split: int) -> int:
        """Return how many rows are compared at a time; what is found must not depend on threads or memory."""
        whole = (len(operands.space) - split) * operands.width
        visitors = max(32, min(VISITORS, 4 * PORTION // whole))
        return -(-visitors * len(self.centres) // self.visited // HIGH) * HIGH


def cell_plan(
    operands: Operands, known: ScoredPairs, columns: Ints, split: int, recall: float, rows: int, most: float, seed: int
) -> CellPlan | None:
    """Return the cells for comparing this many rows in less than `most` nanoseconds, or None if there are none.

    known: the true neighbours of a sample of rows. columns: a sample of columns.
    """
    others, d = len(operands.space) - split, operands.width
    if not operands.space.products or not operands.fit:
        return None
    count = 2 << round(math.log2(2 * math.sqrt(others)))
    ready = math.inf
    while ready > WAIT * most or LEARNT * count > others:
        count //= 2
        ready = PRODUCT * LEARNT * STEPS * count**2 * d + (PRODUCT * d + RANK) * (others + rows) * count
        if count < FEWEST:
            return None
    drawn = np.argsort(uniform(seed, 10, 1, others)[0], kind="stable")[: LEARNT * count] + split
    centres = k_means(operands.table[drawn], count, isinstance(operands.space, Angle))
    asked, at = np.unique(known[0], return_inverse=True)
    ranked = nearest_centres(operands, operands.table[asked], centres, count)
    rank = np.empty_like(ranked)
    rank[np.arange(len(asked))[:, None], ranked] = np.arange(count)
    cell = nearest_centres(operands, operands.table[known[1]], centres, 1)[:, 0]
    visited, found = _enough(rank[at, cell], at, count, recall)
    in_cell = np.bincount(nearest_centres(operands, operands.table[columns], centres, 1)[:, 0], minlength=count)
    share = float(in_cell[ranked[:, :visited]].sum(axis=1).mean()) / len(columns)
    cost = ready + rows * share * others * GATHER * (PRODUCT * d + SCORE)
    return CellPlan(centres, visited, found, cost) if cost < most else None


def nearest_centres(operands: Operands, rows: Singles, centres: Singles, count: int) -> Ints:
    """Return the nearest centres of each of some rows of the table; in order if these are one or all."""
    return closest(rows, centres, count, isinstance(operands.space, Angle))


def closest(rows: Singles, centres: Singles, count: int, unit: bool) -> Ints:
    """Return the nearest centres of each row; in order if these are one or all. unit: all centres have length 1."""
    scores = -(rows @ centres.T)
    if not unit:
        scores += (centres * centres).sum(axis=1) / 2
    if count == 1:
        return np.asarray(scores.argmin(axis=1)[:, None])
    if count == len(centres):
        return np.asarray(scores.argsort(axis=1, kind="stable"))
    return np.asarray(scores.argpartition(count - 1, axis=1)[:, :count])


def k_means(some: Singles, count: int, unit: bool, threads: int = 1) -> Singles:
    """Return centres: the means of the vectors that are nearest to the same centre, some steps on from the first
    `count` of them. unit: the means are scaled to length 1.
    """
    centres = some[:count].copy()

    def work(at: int) -> Ints:
        return closest(some[at : at + ROWS], centres, 1, unit)

    for _ in range(STEPS):
        cell = np.concatenate(list(in_order(work, range(0, len(some), ROWS), threads)))[:, 0]
        order, sizes = np.argsort(cell, kind="stable"), np.bincount(cell, minlength=count)
        filled = np.flatnonzero(sizes)
        sums = np.add.reduceat(some[order], np.cumsum(sizes)[filled] - sizes[filled], axis=0)
        if unit:
            lengths = np.sqrt((sums * sums).sum(axis=1, keepdims=True))
            centres[filled] = np.where(lengths > 0, sums / np.where(lengths > 0, lengths, 1), centres[filled])
        else:
            centres[filled] = sums / sizes[filled, None]
    return centres


def _enough(rank: Ints, at: Ints, count: int, recall: float) -> tuple[int, float]:
    """Return the least number of cells with which a sample of neighbours is found often enough, and how often.

    rank: which of the cells of its row, from the nearest on, holds a neighbour.
    """
    each = np.bincount(at)
    seen = np.zeros((len(each), count))
    np.add.at(seen, (at, rank), 1)
    missed = 1 - seen.cumsum(axis=1) / each[:, None]
    enough = assured(missed, each.max()) >= recall
    visited = int(enough.argmax()) + 1 if enough.any() else count
    return visited, 1 - float(missed[:, visited - 1].mean())


def assured(missed: NDArray[np.float64], each: int) -> Any:
    """Return the share of neighbours that is found, less two standard errors. missed: the share that each of some rows
    misses, in each column of one way of looking. each: the neighbours of a row.

    The rows are independent, their neighbours are not: the error is that of the mean of the rows. Two rows that miss as
    much as such rows do on average, one neighbour at least, are added, as where few rows miss anything the error is
    seen too small.
    """
    rows = len(missed) + 2
    typical = np.maximum(missed.sum(axis=0) / np.maximum((missed > 0).sum(axis=0), 1), 1 / each)
    mean = (missed.sum(axis=0) + 2 * typical) / rows
    variance = ((missed * missed).sum(axis=0) + 2 * typical**2) / rows - mean**2
    return 1 - mean - 2 * np.sqrt(np.maximum(variance, 0) / rows)


def by_cells(
    operands: Operands, plan: CellPlan, rows: Ints, split: int, k: int, means: Means, tick: Tick
) -> tuple[list[ScoredPairs], Ints]:
    """Compare rows with the vectors of the nearest cells; return the k nearest of each, and the rows without an answer.

    These have fewer than k others in the cells that they visit, or too many that single precision cannot tell apart.
    """
    k = min(k, len(operands.space) - split)
    cells = Cells(operands, plan.centres, split, means.threads)
    high = plan.strip(operands, split)
    most = max(1, means.memory // 4 // Best.bytes(k, operands.kind) // high) * high
    parts: list[ScoredPairs] = []
    rest: list[Ints] = []
    for begin in range(0, len(rows), most):
        best = Best(rows[begin : begin + most], k, operands)

        def work(start: int, best: Best = best) -> tuple[ScoredPairs, Ints]:
            cut = slice(start, min(start + high, len(best.rows)))
            for places, columns in cells.meetings(best.rows[cut], plan.visited):
                best.enter(places + start, columns)
            best.settle(cut)
            short = best.crowded[cut] | (best.counts[cut] < k)
            return best.ranked(cut, ~short), best.rows[cut][short]

        starts = range(0, len(best.rows), high)
        for start, (found, short) in zip(starts, in_order(work, starts, means.threads), strict=True):
            parts.append(found)
            rest.append(short)
            tick(min(high, len(best.rows) - start))
    return parts, np.concatenate(rest)
