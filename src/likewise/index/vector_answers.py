"""Queries of vectors: the cells near to a query, the vectors in them, and their exact distances."""

from __future__ import annotations

import math

import numpy as np
from numpy.typing import NDArray

from likewise.base.arrays import Ints
from likewise.base.parallel import in_order
from likewise.index.vector_cells import CODES, NEIGHBOURS
from likewise.index.vector_scheme import VectorScheme
from likewise.index.view import IndexView
from likewise.kernels.cell_scan import CellAim, CellHits, CellTables, ask_bits, ask_numbers
from likewise.search.vectors.spaces import ROWS, Space

Floats = NDArray[np.float64]
BATCH = 128
"""Queries that a thread answers in one call."""
ROOM = 64
"""Answers to a query for which there is room at first, where all are asked for."""
HELD = 1 << 22
"""Answers for which a thread has room; with more to each query, fewer queries are answered in a call."""
MARGIN = 1e-9
"""By how much, relatively, the distance of a candidate may be above the largest: that is decided by its exact value."""


def near_vectors(
    view: IndexView, scheme: VectorScheme, space: Space, k: int, within: float | None, threads: int
) -> tuple[Ints, Ints, Floats]:
    """Return the answers: the number of the query, the row of the index and the distance, the nearest first."""
    tables = view.cells
    best = min(k, max(1, view.manifest.live))
    room = best or ROOM
    batch = max(1, min(BATCH, HELD // room))
    most = math.inf if within is None else _key(scheme.measure, within)
    queries = _ready(scheme.measure, space)

    def work(first: int) -> tuple[Ints, Ints, Floats]:
        some = slice(first, min(first + batch, len(space)))
        query, row = _asked(scheme, queries[some], tables, view, best, most, room)
        query += first
        distance = np.empty(len(query))
        for start in range(0, len(query), ROWS):
            cut = slice(start, start + ROWS)
            distance[cut] = space.exact(view.vectors(row[cut]), space.table[query[cut]])
        return query, row, distance

    starts = range(0, len(space), batch)
    parts = list(in_order(work, starts, threads if len(starts) > 1 else 1)) if tables else []
    if not parts:
        return np.zeros(0, np.int64), np.zeros(0, np.int64), np.zeros(0)
    query, row, distance = parts[0] if len(parts) == 1 else map(np.concatenate, zip(*parts, strict=True))
    if within is not None:
        near = distance <= within
        query, row, distance = query[near], row[near], distance[near]
    order = np.lexsort((row, distance, query))
    return query[order], row[order], distance[order]


def _asked(
    scheme: VectorScheme,
    queries: NDArray[np.generic],
    tables: list[tuple[CellTables, Floats, float]],
    view: IndexView,
    best: int,
    most: float,
    room: int,
) -> tuple[Ints, Ints]:
    """Return the answers to some queries by their rows; where the room is too small, those of some again."""
    ask = ask_bits if scheme.measure == "hamming" else ask_numbers
    hits = CellHits(
        np.empty((len(queries), room)), np.empty((len(queries), room), np.int64), np.zeros(len(queries), np.int64)
    )
    for segment, reach, share in tables:
        wanted = best / max(share, 1e-9)
        far = reach[0] if 0 < wanted <= NEIGHBOURS[0] else reach.max()
        ask(queries, segment, CellAim(CODES[scheme.measure], best, most, float(far)), hits)
    full = np.flatnonzero(hits.counts > room)
    counts = np.where(hits.counts > room, 0, hits.counts)
    filled = np.arange(room) < counts[:, None]
    query, row = np.repeat(np.arange(len(queries)), counts), hits.rows[filled]
    for one in full:
        _, more = _asked(scheme, queries[one : one + 1], tables, view, best, most, int(hits.counts[one]))
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


def _ready(measure: str, space: Space) -> NDArray[np.generic]:
    """Return queries as the kernels take them: in double precision, and of length 1 if angles are measured."""
    if measure == "hamming":
        return np.ascontiguousarray(space.table)
    rows = np.ascontiguousarray(space.table, np.float64)
    if measure == "angle":
        rows = rows / np.abs(rows).max(axis=1, keepdims=True)
        rows /= np.sqrt((rows * rows).sum(axis=1, keepdims=True))
    return rows
