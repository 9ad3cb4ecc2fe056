"""The tables of a segment of vectors: cells around centres, codes of their vectors, and how far a query must go.

The centres are those of k-means on a sample, in a frame in which components are moderate and the mean is near 0. A
query visits the cells whose centres are not farther than the nearest one by more than `reach` times the distance of its
worst answer. By the triangle inequality a reach of 2 misses nothing; the reach that is stored is the least with which
enough of the true neighbours of a sample of the vectors are found.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray
from threadpoolctl import threadpool_limits

from likewise.base.arrays import Ints
from likewise.base.parallel import in_order
from likewise.base.random import uniform
from likewise.index.chunk import Arrays
from likewise.kernels.cell_scan import ANGLE, HAMMING, L1, L2, encode_cell, frame_rows
from likewise.kernels.vector_scan import bits_apart, sums_apart
from likewise.search.vectors.cells import closest, k_means

Floats = NDArray[np.float64]
Singles = NDArray[np.float32]
CODES = {"angle": ANGLE, "l2": L2, "l1": L1, "hamming": HAMMING}
ONE_CELL = 4096
"""Up to this many vectors are one cell: going through all of their codes takes less than a tenth of a millisecond."""
CELLS = 4.0
"""Cells for each unit of the root of the number of vectors: finding the nearest centres takes about a fourth of the
time of a query."""
LEARNT = 16
"""Vectors of the sample for each centre; with twice as many, queries visit hardly fewer cells."""
MOST_CENTRES = 1 << 15
ROWS = 4096
"""Vectors that a thread looks at at a time."""
ASKED, FEWEST_ASKED = 512, 64
"""Vectors of the sample whose true neighbours show how far to go, and the fewest, where comparing takes long."""
COMPARED = 1 << 36
"""Products of components that finding these neighbours may take, some seconds; an absolute difference counts as 4."""
NEIGHBOURS = (10, 100)
"""Numbers of neighbours for which the reach is found: the first is for queries for no more than that."""
ALL = 2.0
"""The reach with which nothing is missed."""


@dataclass(frozen=True)
class VectorRows:
    """Vectors in several tables, one after the other; `measure` says how they are compared."""

    measure: str
    tables: Sequence[NDArray[Any]]

    def __len__(self) -> int:
        return sum(map(len, self.tables))

    @property
    def firsts(self) -> Ints:
        """Where each table begins, and the end."""
        return np.cumsum([0, *map(len, self.tables)]).astype(np.int64)

    def take(self, rows: Ints) -> NDArray[Any]:
        """Return some vectors, in this order."""
        if len(self.tables) == 1:
            return np.ascontiguousarray(self.tables[0][rows])
        firsts = self.firsts
        of = np.searchsorted(firsts, rows, side="right") - 1
        out = np.empty((len(rows), self.tables[0].shape[1]), self.tables[0].dtype)
        for number in np.unique(of):
            mine = of == number
            out[mine] = self.tables[number][rows[mine] - firsts[number]]
        return out

    def part(self, start: int) -> NDArray[Any]:
        """Return the vectors from `start` on, as many as are looked at at a time."""
        return self.take(np.arange(start, min(start + ROWS, len(self))))

    def framed(self, vectors: NDArray[Any], frame: Floats) -> Singles:
        """Return vectors as they lie in the frame; bits as 1 and −1."""
        if self.measure == "hamming":
            flags = np.unpackbits(vectors.view(np.uint8), axis=1, bitorder="little")
            return flags.astype(np.float32) * 2 - 1
        out = np.empty(vectors.shape, np.float32)
        frame_rows(CODES[self.measure], vectors, frame, out)
        return out


def cell_count(rows: int) -> int:
    """Return how many cells a segment has.

    >>> [cell_count(rows) for rows in (0, 4096, 5000, 100_000, 1_000_000)]
    [1, 1, 256, 1024, 4096]
    """
    if rows <= ONE_CELL:
        return 1
    return int(min(MOST_CENTRES, 1 << round(math.log2(CELLS * math.sqrt(rows)))))


def cell_arrays(vectors: VectorRows, recall: float, seed: int, threads: int) -> Arrays:
    """Return the tables of a segment."""
    rows = len(vectors)
    with threadpool_limits(1, "blas"):
        drawn = np.argsort(uniform(seed, 11, 1, rows)[0], kind="stable")
        count = cell_count(rows)
        frame = _frame(vectors, drawn[: max(ROWS, LEARNT * count)], threads)
        some = vectors.framed(vectors.take(drawn[: LEARNT * count]), frame)
        if count == 1:
            centres, of = some[:1] * 0, np.zeros(rows, np.int64)
            reach = np.full(len(NEIGHBOURS), ALL)
        else:
            centres = k_means(some, count, False, threads)
            of, reach = _assigned(vectors, frame, centres, np.sort(drawn[-ASKED:]), recall, threads)
    order = np.argsort(of, kind="stable")
    ends = np.concatenate([[0], np.cumsum(np.bincount(of, minlength=count))])
    found: Arrays = {
        "frame": frame,
        "centres": centres,
        "ends": ends.astype(np.uint32),
        "order": order.astype(np.uint32),
        "reach": reach,
    }
    if vectors.measure == "hamming":
        return {**found, "words": vectors.take(order)}
    return {**found, **_codes(vectors, frame, centres, order, ends, threads)}


def _frame(vectors: VectorRows, drawn: Ints, threads: int) -> Floats:
    """Return a scale by which no component is above 1, and the mean of a sample, as an origin."""
    if vectors.measure == "hamming":
        return np.ones(1)
    width = vectors.tables[0].shape[1]
    frame = np.zeros(width + 1)
    frame[0] = 1.0
    if vectors.measure != "angle":

        def work(start: int) -> float:
            return float(np.abs(vectors.part(start)).max())

        largest = max(in_order(work, range(0, len(vectors), ROWS), threads), default=0.0)
        frame[0] = 2.0 ** -max(-1000, min(1000, int(np.frexp(largest)[1])))
    sums, count = np.zeros(width), 0
    for start in range(0, len(drawn), ROWS):
        some = vectors.take(drawn[start : start + ROWS])
        placed = np.empty(some.shape)
        frame_rows(CODES[vectors.measure], some, frame, placed)
        sums, count = sums + placed.sum(axis=0), count + len(some)
    frame[1:] = sums / max(1, count)
    return frame


def _assigned(
    vectors: VectorRows, frame: Floats, centres: Singles, asked: Ints, recall: float, threads: int
) -> tuple[Ints, Floats]:
    """Return the cell of every vector, and how far a query must go."""
    work_of_one = len(vectors) * centres.shape[1] * (1 if vectors.measure in ("angle", "l2") else 4)
    step = -(-len(asked) // max(FEWEST_ASKED, min(len(asked), COMPARED // work_of_one)))
    asked = asked[::step]
    sample = vectors.take(asked)
    placed = vectors.framed(sample, frame)
    most = min(NEIGHBOURS[-1] + 1, len(vectors))

    def work(start: int) -> tuple[Ints, Floats, Ints]:
        some = vectors.part(start)
        framed = vectors.framed(some, frame)
        cell = closest(framed, centres, 1, False)[:, 0]
        apart = _radii(vectors.measure, frame, sample, placed, some, framed)
        near = np.argpartition(apart, min(most, len(some)) - 1, axis=1)[:, :most]
        return cell, np.take_along_axis(apart, near, axis=1), near + start

    cells = []
    radius = np.empty((len(asked), 0))
    row = np.empty((len(asked), 0), np.int64)
    for cell, apart, near in in_order(work, range(0, len(vectors), ROWS), threads):
        cells.append(cell)
        radius, row = np.concatenate([radius, apart], axis=1), np.concatenate([row, near], axis=1)
        if radius.shape[1] > most:
            best = np.argpartition(radius, most - 1, axis=1)[:, :most]
            radius, row = np.take_along_axis(radius, best, axis=1), np.take_along_axis(row, best, axis=1)
    of = np.concatenate(cells)
    radius[row == asked[:, None]] = -1
    order = np.argsort(radius, axis=1, kind="stable")[:, 1:]
    radius, row = np.take_along_axis(radius, order, axis=1), np.take_along_axis(row, order, axis=1)
    far = _radii("l2", np.ones(1), placed, placed, centres, centres)
    beyond = np.take_along_axis(far, of[row], axis=1) - far.min(axis=1, keepdims=True)
    with np.errstate(divide="ignore", invalid="ignore"):
        ratio = np.where(beyond <= 0, 0, beyond / radius)
    return of, np.array([enough(ratio[:, :k], recall) for k in NEIGHBOURS])


def _radii(
    measure: str, frame: Floats, a: NDArray[Any], placed_a: Singles, b: NDArray[Any], placed_b: Singles
) -> Floats:
    """Return the distance of every a from every b, in the frame."""
    if measure == "l1":
        out = np.empty((len(a), len(b)))
        sums_apart(placed_a.astype(np.float64), np.ascontiguousarray(placed_b.T, np.float64), out)
        return -out
    if measure == "hamming":
        bits = np.empty((len(a), len(b)), np.float32)
        bits_apart(a, np.ascontiguousarray(b.T), bits)
        return np.asarray(2 * np.sqrt(-bits.astype(np.float64)))
    apart = (placed_a @ (-2 * placed_b.T)).astype(np.float64)
    apart += (placed_a * placed_a).sum(axis=1)[:, None]
    apart += (placed_b * placed_b).sum(axis=1)[None, :]
    return np.asarray(np.sqrt(np.maximum(apart, 0)))


def enough(ratio: Floats, recall: float) -> float:
    """Return the least reach with which neighbours are found often enough; ratio: what each of some queries needs for
    each of its neighbours.

    The queries are independent, their neighbours are not: two standard errors of the mean over the queries are set
    aside. Two queries are added that miss as much as those that miss anything do on average, one neighbour at least.
    """
    rows, each = ratio.shape
    ordered = np.sort(ratio, axis=1)
    for reach in np.append(np.quantile(ratio, 1 - (1 - recall) * np.linspace(1, 0, 101)[:-1]), np.max(ratio)):
        missed = (ordered > reach).mean(axis=1)
        typical = max(missed.sum() / max(1, np.count_nonzero(missed)), 1 / each)
        mean = (missed.sum() + 2 * typical) / (rows + 2)
        variance = ((missed * missed).sum() + 2 * typical**2) / (rows + 2) - mean**2
        if 1 - mean - 2 * math.sqrt(max(0.0, variance) / (rows + 2)) >= recall:
            return min(float(reach), ALL)
    return ALL


def _codes(vectors: VectorRows, frame: Floats, centres: Singles, order: Ints, ends: Ints, threads: int) -> Arrays:
    """Return the codes of all vectors, in the order of the cells."""
    rows, width = len(vectors), centres.shape[1]
    codes, squares = np.empty((rows, width), np.int8), np.empty(rows, np.float32)
    steps, errors = np.ones(len(centres)), np.zeros(len(centres))

    def work(cell: int) -> None:
        cut = slice(int(ends[cell]), int(ends[cell + 1]))
        if cut.stop > cut.start:
            some = vectors.take(order[cut])
            kind = CODES[vectors.measure]
            steps[cell], errors[cell] = encode_cell(kind, some, frame, centres[cell], codes[cut], squares[cut])

    for _ in in_order(work, range(len(centres)), threads if rows > ROWS else 1):
        pass
    return {"codes": codes, "squares": squares, "steps": steps, "errors": errors}
