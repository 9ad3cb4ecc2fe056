"""Cells that are kept, and asked by queries that come later: centres, codes of vectors, and how far a query must go.

The centres are those of k-means on a sample, in a frame in which components are moderate and the mean is near 0. A
query visits the cells whose centres are not farther than the nearest one by more than `reach` times the distance of its
worst answer. By the triangle inequality a reach of 2 misses nothing; the reach that is stored is the least with which
enough of the true neighbours of a sample of the vectors are found. Every answer has its exact distance.

Of long vectors, compared by angle or L2, the signs of components are looked at first (kernels/sign_codes.py). How far
they may be off is what all but a few of these neighbours require; those few count as missed with every reach, and where
the reach is that with which nothing is missed, signs are not asked.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import Any

import numpy as np
from numpy.typing import NDArray
from threadpoolctl import threadpool_limits

from likewise.base.arrays import Ints
from likewise.base.parallel import in_order
from likewise.base.random import uniform
from likewise.kernels import cell_scan
from likewise.kernels.cell_codes import encode_cell, encode_signs, frame_rows
from likewise.kernels.cell_scan import CellAim, CellHits, CellTables
from likewise.kernels.sign_codes import estimates, turn_rows
from likewise.search.scored import ScoredPairs, concatenated, no_pairs
from likewise.search.vectors.cells import Singles, assured, closest, k_means
from likewise.search.vectors.spaces import ROWS, Angle, Bits, Floats, Manhattan, Space

Arrays = dict[str, NDArray[Any]]
CODES = {name: getattr(cell_scan, name.upper()) for name in ("angle", "l2", "l1", "hamming")}
ONE_CELL = 4096
"""Up to this many vectors are one cell: going through all of their codes takes less than a tenth of a millisecond."""
CELLS = 4.0
"""Cells for each unit of the root of the number of vectors: finding the nearest centres takes about a fourth of the
time of a query."""
LEARNT = 16
"""Vectors of the sample for each centre; with twice as many, queries visit hardly fewer cells."""
MOST_CENTRES = 1 << 15
ASKED, FEWEST_ASKED = 512, 64
"""Vectors of the sample whose true neighbours show how far to go, and the fewest, where comparing takes long."""
COMPARED = 1 << 36
"""Products of components that finding these neighbours may take, some seconds; an absolute difference counts as 4."""
NEIGHBOURS = (10, 100)
"""Numbers of neighbours for which the reach is found: the first is for queries for no more than that."""
ALL = 2.0
"""The reach with which nothing is missed."""
BATCH = 512
"""Queries that a thread answers in one call, at most: those that visit a cell read it from memory once."""
ROOM = 64
"""Answers to a query for which there is room at first, where all are asked for."""
HELD = 1 << 22
"""Answers, or distances of centres, for which a thread has room; with more to each query, fewer are answered in a
call."""
SIGNED = 64
"""The fewest components of which signs tell much."""
TURNS = 3
"""How often the components are mixed before their signs are taken."""
SPOILT = 0.1
"""The part of the neighbours that may be missed which are missed because their signs say that they are far."""
MARGIN = 1e-9
"""By how much, relatively, the distance of a candidate may be above the largest: that is decided by its exact value."""


@dataclass(frozen=True)
class VectorRows:
    """Vectors in several tables, one after the other; `measure` says how they are compared."""

    measure: str
    tables: Sequence[NDArray[Any]]

    def __len__(self) -> int:
        return sum(map(len, self.tables))

    @cached_property
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
        for number in set(of.tolist()):
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
            centres, of, known = some[:1] * 0, np.zeros(rows, np.int64), None
        else:
            centres = k_means(some, count, False, threads)
            of, known = _assigned(vectors, frame, centres, np.sort(drawn[-ASKED:]), threads)
    order = np.argsort(of, kind="stable")
    ends = np.concatenate([[0], np.cumsum(np.bincount(of, minlength=count))])
    cells: Arrays = {"frame": frame, "centres": centres, "ends": ends.astype(np.uint32)}
    cells["order"] = order.astype(np.uint32)
    if vectors.measure == "hamming":
        cells["words"] = vectors.take(order)
    else:
        cells |= _codes(vectors, frame, centres, order, ends, threads)
    if known is None:
        return {**cells, "reach": np.full(len(NEIGHBOURS), ALL)}
    ratio = known.ratio
    if vectors.measure in ("angle", "l2") and centres.shape[1] >= SIGNED:
        cells |= _signs(vectors, cells, seed, threads)
        doubts = _doubts(vectors, cells, known, of)
        doubt = np.quantile(doubts, 1 - (1 - recall) * SPOILT, keepdims=True).ravel()
        cells["doubt"] = doubt
        ratio = np.where(doubts > doubt, 2 * ALL, ratio)
    return {**cells, "reach": np.array([enough(ratio[:, :k], recall) for k in NEIGHBOURS])}


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


@dataclass(frozen=True)
class Neighbours:
    """The true neighbours of some vectors, the nearest first: their rows, distances in the frame, and what reach each
    needs. placed: the vectors in the frame."""

    placed: Singles
    rows: Ints
    radius: Floats
    ratio: Floats


def _assigned(
    vectors: VectorRows, frame: Floats, centres: Singles, asked: Ints, threads: int
) -> tuple[Ints, Neighbours]:
    """Return the cell of every vector, and the true neighbours of some."""
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
        apart = _radii(vectors.measure, sample, placed, some, framed)
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
    far = _radii("l2", placed, placed, centres, centres)
    beyond = np.take_along_axis(far, of[row], axis=1) - far.min(axis=1, keepdims=True)
    with np.errstate(divide="ignore", invalid="ignore"):
        ratio = np.where(beyond <= 0, 0, beyond / radius)
    return of, Neighbours(placed, row, radius, ratio)


def _radii(measure: str, a: NDArray[Any], placed_a: Singles, b: NDArray[Any], placed_b: Singles) -> Floats:
    """Return the distance of every a from every b, as they lie in the frame."""
    if measure == "l1":
        return Manhattan(b).scores(placed_a, placed_b)
    if measure == "hamming":
        return np.asarray(2 * np.sqrt(Bits(b, 1).scores(a, b).astype(np.float64)))
    apart = (placed_a @ (-2 * placed_b.T)).astype(np.float64)
    apart += (placed_a * placed_a).sum(axis=1)[:, None]
    apart += (placed_b * placed_b).sum(axis=1)[None, :]
    return np.asarray(np.sqrt(np.maximum(apart, 0)))


def enough(ratio: Floats, recall: float) -> float:
    """Return the least reach with which neighbours are found often enough; ratio: what each of some queries needs for
    each of its neighbours."""
    for reach in np.append(np.quantile(ratio, 1 - (1 - recall) * np.linspace(1, 0, 101)[:-1]), np.max(ratio)):
        if assured((ratio > reach).mean(axis=1), ratio.shape[1]) >= recall:
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


def _signs(vectors: VectorRows, cells: Arrays, seed: int, threads: int) -> Arrays:
    """Return the signs of all vectors, turned, in the order of the cells."""
    frame, centres, order, ends = (cells[name] for name in ("frame", "centres", "order", "ends"))
    rows, width = len(vectors), centres.shape[1]
    words = -(-width // 64)
    turns = np.where(uniform(seed, 12, TURNS, width) < 0.5, np.int8(-1), np.int8(1))
    turned = centres.copy()
    turn_rows(turns, turned)
    signs, spreads = np.empty(rows * words, np.uint64), np.empty(rows, np.float32)
    factors = np.empty(rows, np.float32)

    def work(cell: int) -> None:
        cut = slice(int(ends[cell]), int(ends[cell + 1]))
        if cut.stop > cut.start:
            mine = signs[cut.start * words : cut.stop * words]
            some, kind = vectors.take(order[cut]), CODES[vectors.measure]
            encode_signs(kind, some, frame, centres[cell], turns, mine, spreads[cut], factors[cut])

    for _ in in_order(work, range(len(centres)), threads if rows > ROWS else 1):
        pass
    return {"turns": turns, "turned": turned, "signs": signs, "spreads": spreads, "factors": factors}


def _doubts(vectors: VectorRows, cells: Arrays, known: Neighbours, of: Ints) -> Floats:
    """Return by how much the signs say that each neighbour is too far, as a part of the product of the lengths."""
    place = np.empty(len(vectors), np.int64)
    place[cells["order"]] = np.arange(len(vectors))
    ends, signs, words = cells["ends"].astype(np.int64), cells["signs"], -(-known.placed.shape[1] // 64)
    turned = known.placed.copy()
    turn_rows(cells["turns"], turned)
    doubts = np.empty(known.rows.shape)
    for i, row in enumerate(known.rows):
        cell, at = of[row], place[row]
        first, each = ends[cell] * words + at - ends[cell], ends[cell + 1] - ends[cell]
        bits = signs[first[:, None] + np.arange(words) * each[:, None]]
        out, factors = np.empty(len(row)), cells["factors"][at]
        one = np.broadcast_to(turned[i], (len(row), turned.shape[1])).copy()
        estimates(one, cells["turned"][cell], bits, cells["spreads"][at], factors, out)
        gap = np.sqrt(((known.placed[i] - cells["centres"][cell]) ** 2).sum(axis=1, dtype=np.float64))
        with np.errstate(divide="ignore", invalid="ignore"):
            doubts[i] = np.where(factors * gap > 0, (out - known.radius[i] ** 2) / (factors * gap), 0)
    return doubts


Fetch = Callable[[Ints], NDArray[Any]]
SegmentCells = tuple[CellTables, Floats, float, float]
"""The tables of a segment, how far queries go in it, how far its signs may be off, and the share of it that is not
removed."""


def near_vectors(
    tables: list[SegmentCells], vectors: Fetch, space: Space, best: int, within: float | None, threads: int
) -> ScoredPairs:
    """Return the answers: the number of the query, the row of the index and the distance, the nearest first.

    vectors: returns those of rows of the index. best: the most answers to each query, 0 for all.
    """
    room = best or ROOM
    each = max([room, *(len(segment.centres) for segment, *_ in tables)])
    batch = max(1, min(BATCH, HELD // each, -(-len(space) // threads)))
    most = math.inf if within is None else _key(space.measure, within)
    queries = _ready(space)

    def work(first: int) -> ScoredPairs:
        query, row = _asked(space.measure, queries[first : first + batch], tables, best, most, room)
        query += first
        distance = np.empty(len(query))
        for start in range(0, len(query), ROWS):
            cut = slice(start, start + ROWS)
            distance[cut] = space.exact(vectors(row[cut]), space.table[query[cut]])
        return query, row, distance

    starts = range(0, len(space), batch)
    parts = list(in_order(work, starts, threads if len(starts) > 1 else 1)) if tables else [no_pairs()]
    query, row, distance = concatenated(parts)
    if within is not None:
        near = distance <= within
        query, row, distance = query[near], row[near], distance[near]
    order = np.lexsort((row, distance, query))
    return query[order], row[order], distance[order]


def _asked(
    measure: str, queries: NDArray[np.generic], tables: list[SegmentCells], best: int, most: float, room: int
) -> tuple[Ints, Ints]:
    """Return the answers to some queries by their rows; where the room is too small, those of some again."""
    ask, count = cell_scan.ask_bits if measure == "hamming" else cell_scan.ask_numbers, len(queries)
    hits = CellHits(np.empty((count, room)), np.empty((count, room), np.int64), np.zeros(count, np.int64))
    for segment, reach, doubt, share in tables:
        wanted = best / max(share, 1e-9)
        far = float(reach[0] if 0 < wanted <= NEIGHBOURS[0] else reach.max())
        ask(queries, segment, CellAim(CODES[measure], best, most, far, doubt if far < ALL else math.inf), hits)
    full = np.flatnonzero(hits.counts > room)
    counts = np.where(hits.counts > room, 0, hits.counts)
    filled = np.arange(room) < counts[:, None]
    query, row = np.repeat(np.arange(count), counts), hits.rows[filled]
    for one in full:
        _, more = _asked(measure, queries[one : one + 1], tables, best, most, int(hits.counts[one]))
        query, row = np.concatenate([query, np.full(len(more), one)]), np.concatenate([row, more])
    return query, row


def _key(measure: str, within: float) -> float:
    """Return the largest key of an answer, as the kernels have it."""
    if measure == "angle":
        chord = 2 * math.sin(math.radians(min(within, 180.0)) / 2)
        return chord * chord * (1 + MARGIN) + MARGIN * MARGIN
    if measure == "l2":
        return within * within * (1 + MARGIN)
    return within * (1 + MARGIN)


def _ready(space: Space) -> NDArray[np.generic]:
    """Return queries as the kernels take them: in double precision, and of length 1 if angles are measured."""
    if isinstance(space, Bits):
        return np.ascontiguousarray(space.table)
    rows = np.ascontiguousarray(space.table, np.float64)
    if isinstance(space, Angle):
        rows = rows / np.abs(rows).max(axis=1, keepdims=True)
        rows /= np.sqrt((rows * rows).sum(axis=1, keepdims=True))
    return rows
