"""Queries of a snapshot: sets to band keys, keys to candidates, candidates to verified answers."""

from __future__ import annotations

from dataclasses import dataclass
from functools import cache

import numpy as np
from numpy.typing import NDArray

from likewise.base.arrays import Ints, Sets
from likewise.base.parallel import in_order
from likewise.index.scheme import Scheme
from likewise.index.view import IndexView
from likewise.kernels.lookup import IndexAim, IndexHits, IndexQueries, answer
from likewise.kernels.overlap import CONTAINMENT, JACCARD
from likewise.search.exact.bounds import least_fraction

Floats = NDArray[np.float64]
BATCH = 256
"""Queries that a thread answers in one call."""
ROOM = 1 << 10
"""Answers for which there is room at first."""


@dataclass(frozen=True)
class IndexQuestion:
    """What is asked of each query: the measure, the threshold, and the most answers; 0 for all."""

    measure: str
    threshold: float
    best: int


_fraction = cache(least_fraction)


def answers(
    view: IndexView, scheme: Scheme, sets: Sets, question: IndexQuestion, threads: int
) -> tuple[Ints, Ints, Floats]:
    """Return the answers: the number of the query, the row of the index and the similarity, the best first."""
    p, q = _fraction(question.threshold)
    jaccard = question.measure == "jaccard"
    best = min(question.best, max(1, view.manifest.live))
    aim = IndexAim(JACCARD if jaccard else CONTAINMENT, p, q, best, scheme.sure)
    keys = scheme.keys(sets, threads) if jaccard else np.zeros((len(sets), 0), np.uint32)
    queries = IndexQueries(sets.values, sets.offsets, keys)

    def work(first: int) -> tuple[Ints, Ints, Floats]:
        return _some(queries, first, min(first + BATCH, len(sets)), view, aim)

    parts = list(in_order(work, range(0, len(sets), BATCH), threads if len(sets) > BATCH else 1))
    if not parts:
        return np.zeros(0, np.int64), np.zeros(0, np.int64), np.zeros(0)
    query, row, similarity = parts[0] if len(parts) == 1 else map(np.concatenate, zip(*parts, strict=True))
    if len(query) < 2:
        return query, row, similarity
    order = np.lexsort((row, -similarity, query))
    return query[order], row[order], similarity[order]


def _some(queries: IndexQueries, first: int, last: int, view: IndexView, aim: IndexAim) -> tuple[Ints, Ints, Floats]:
    """Answer some queries; where the room is too small, the rest of them in a larger one."""
    parts: list[tuple[Ints, Ints, Floats]] = []
    room = max(ROOM, aim.best)
    while first < last:
        hits = IndexHits(np.empty(room, np.int64), np.empty(room, np.int64), np.empty(room))
        first, written, needed = answer(queries, first, last, view.tables, aim, hits)
        parts.append((hits.query[:written], hits.row[:written], hits.similarity[:written]))
        room = max(2 * room, needed)
    if len(parts) == 1:
        return parts[0]
    query, row, similarity = map(np.concatenate, zip(*parts, strict=True))
    return query, row, similarity
