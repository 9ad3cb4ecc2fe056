"""The nearest neighbours of every vector: pairs within a well-chosen distance, and all vectors for what is left over.

A sample tells how far the k-th neighbour is for most vectors. Tables find the pairs within that distance; a vector with
fewer than k of them is compared with all others. Where tables would cost more, all are compared with all.
"""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import NDArray

from likewise.base.arrays import Ints
from likewise.base.copies import Groups
from likewise.base.parallel import in_order
from likewise.base.random import uniform
from likewise.base.runlog import RunLog
from likewise.search.candidates import best_first
from likewise.search.expand import nearest_rows
from likewise.search.vectors.pairs import (
    ALL_CHEAPER,
    NO_TABLES,
    NOTHING,
    OVERRUN,
    PAIR_BYTES,
    QUICK,
    SMALL,
    TABLES_CHEAPER,
    VectorAim,
    taken,
)
from likewise.search.vectors.plan import Plan, cost_of_all, plan, spread
from likewise.search.vectors.spaces import Bits, Space
from likewise.search.vectors.tables import Most, Overrun, by_tables

Floats = NDArray[np.float64]
ASKED = 256
SHARES = (0.5, 0.8, 0.95, 0.99)
"""Parts of the vectors whose neighbours may be left to the tables."""
SPARE = 8
HIGH, WIDE, FEW = 256, 8192, 512


def neighbours(
    space: Space, split: int, across: bool, k: int, aim: VectorAim, log: RunLog
) -> tuple[Ints, Ints, Floats]:
    """Return for every row (below `split`, if across) its k nearest others (from `split` on), nearest first."""
    with log.stage("look", len(space)):
        groups = Groups.by_digest(space.look(aim.threads, split))
    log.counts.update({"items": len(space), "different": len(groups)})
    here = int(np.searchsorted(groups.first, split)) if across else 0
    single = len(groups) == len(space)
    one_each = space if single else space.chosen(groups.first, *aim.room)
    nothing = np.zeros(0, np.int64)
    log.method = taken(aim, "exact", NOTHING)
    if not len(groups) or (across and not 0 < here < len(groups)):
        return nothing, nothing, np.zeros(0)
    left, right, distance = _of_different(one_each, here, across, k, aim, log)
    if single:
        return left, right, distance
    left, right, closeness = nearest_rows(groups, left, right, -distance, k, here, across, same=0.0)
    return left, right, 0 - closeness


def _of_different(
    space: Space, split: int, across: bool, k: int, aim: VectorAim, log: RunLog
) -> tuple[Ints, Ints, Floats]:
    """Find the neighbours of vectors that are all different."""
    n = len(space)
    rows = np.arange(split if across else n)
    chosen, why = None, QUICK
    if aim.method != "exact" and (aim.method == "lsh" or n > SMALL):
        with log.stage("plan"):
            chosen, within = _planned(space, split, across, k, aim)
        why = ALL_CHEAPER if aim.method == "auto" else NO_TABLES
    parts: list[tuple[Ints, Ints, Floats]] = []
    if chosen is not None:
        every = len(rows) * (n - split)
        allowed = cost_of_all(space, every) if aim.method == "auto" else float("inf")
        most = Most(aim.memory // PAIR_BYTES, space, within)
        try:
            with log.stage("meet", len(chosen.tables)) as tick:
                found = by_tables(space, chosen, within, split, aim.threads, allowed, most, aim.room, tick)
            left, right, distance = found.left, found.right, found.distance
            if not across:
                left, right = np.concatenate([left, right]), np.concatenate([right, left])
                distance = np.concatenate([distance, distance])
            enough = np.bincount(left, minlength=n)[rows] >= k
            kept = enough[left]
            parts.append((left[kept], right[kept], distance[kept]))
            rows = rows[~enough]
            log.method = taken(aim, "lsh", TABLES_CHEAPER)
            log.details["tables"] = {"plan": str(chosen), "within": within, "recall": round(chosen.recall, 6)}
            log.counts |= {"compared": found.compared, "left_over": len(rows)}
        except Overrun:
            chosen, why = None, OVERRUN
    if chosen is None:
        log.method = taken(aim, "exact", why)
    if len(rows):
        with log.stage("compare", len(rows)) as tick:
            parts.append(against_all(space, rows, split, k, aim.threads, tick))
    left, right, distance = (np.concatenate(column) for column in zip(*parts, strict=True))
    left, right, closeness = best_first(left, right, -distance, k)
    return left, right, -closeness


def _planned(space: Space, split: int, across: bool, k: int, aim: VectorAim) -> tuple[Plan | None, float]:
    """Return the cheapest plan and its distance; None if comparing all vectors is cheaper."""
    every = np.arange(split if across else len(space))
    some = np.sort(every[np.argsort(uniform(aim.seed, 8, 1, len(every))[0], kind="stable")[:ASKED]])
    left, _, distance = against_all(space, some, split, k, aim.threads, lambda done: None)
    farthest = np.array([distance[left == row].max(initial=0) for row in some])
    total = cost_of_all(space, len(every) * (len(space) - split))
    best, best_within, least = None, 0.0, float("inf") if aim.method == "lsh" else total
    for share in SHARES:
        within = float(np.quantile(farthest, share, method="higher"))
        known = spread(space, within, split, aim.seed)
        found = plan(space, within, aim.recall, known, aim.seed, forced=True)
        if found is not None and (cost := found.nanoseconds + (1 - share) * total) < least:
            best, best_within, least = found, within, cost
    return best, best_within


def against_all(space: Space, rows: Ints, split: int, k: int, threads: int, tick: Any) -> tuple[Ints, Ints, Floats]:
    """Compare rows with all vectors from `split` on, but not with themselves; return the k nearest of each, and ties.

    Blocks are compared by quick scores, and a few more than k are looked at exactly. Where rounding could have hidden a
    nearer one, all whose scores are near enough are looked at.
    """
    n = len(space)
    nothing = np.zeros(0, np.int64)
    if not len(rows) or n == split:
        return nothing, nothing, np.zeros(0)
    wanted = min(k + SPARE, n - split)

    def work(start: int) -> tuple[Ints, Ints, Floats]:
        some = rows[start : start + HIGH]
        mine = space.part(some)
        best = np.full((len(some), wanted), np.inf)
        columns = np.full((len(some), wanted), n)
        for first in range(split, n, WIDE):
            last = min(first + WIDE, n)
            scores = space.scores(mine, space.part(slice(first, last)))
            own = np.flatnonzero((some >= first) & (some < last))
            bound = best[:, -1]
            if first == split and last - first > wanted:  # what is not among the best of these few is of no interest
                few = scores[:, : max(FEW, 2 * wanted)]
                bound = np.partition(few, wanted, axis=1)[:, wanted].astype(np.float64)
            place, column = np.divmod(np.flatnonzero((scores <= bound[:, None]).ravel()), last - first)
            score = scores[place, column].astype(np.float64)
            score[np.isin(place, own) & (column + first == some[place])] = np.inf
            place = np.concatenate([np.repeat(np.arange(len(some)), wanted), place])
            column = np.concatenate([columns.ravel(), column + first])
            score = np.concatenate([best.ravel(), score])
            _, column, score = best_first(place, column, -score, wanted)
            best, columns = -score.reshape(len(some), wanted), column.reshape(len(some), wanted)
        finite = np.isfinite(best)
        left = np.broadcast_to(some[:, None], columns.shape)[finite]
        right = columns[finite]
        found = best_first(left, right, -space.distances(left, right), k)
        doubtful = np.zeros(len(some), bool)
        if wanted < n - split and wanted > k and not isinstance(space, Bits):
            doubtful = best[:, wanted - 1] - best[:, k - 1] <= 2 * space.error()
        if doubtful.any():
            sure = ~np.isin(found[0], some[doubtful])
            again = _settled(space, some[doubtful], best[doubtful, k - 1] + 2 * space.error(), split, k)
            found = _together(tuple(column[sure] for column in found), again)
        tick(len(some))
        left, right, closeness = found
        return left, right, -closeness

    results = list(in_order(work, range(0, len(rows), HIGH), threads))
    left, right, distance = (np.concatenate(column) for column in zip(*results, strict=True))
    return left, right, distance


def _settled(space: Space, rows: Ints, bounds: Floats, split: int, k: int) -> tuple[Ints, Ints, Floats]:
    """Return the k nearest of rows, and how close they are, of all vectors whose scores are within these bounds."""
    mine = space.part(rows)
    found = np.zeros(0, np.int64), np.zeros(0, np.int64), np.zeros(0)
    for first in range(split, len(space), WIDE):
        scores = space.scores(mine, space.part(slice(first, first + WIDE)))
        place, column = np.divmod(np.flatnonzero((scores <= bounds[:, None]).ravel()), scores.shape[1])
        left, right = rows[place], column + first
        left, right = left[left != right], right[left != right]
        left, right, closeness = _together(found, (left, right, -space.distances(left, right)))
        found = best_first(left, right, closeness, k)
    return found


def _together(a: tuple[Any, ...], b: tuple[Any, ...]) -> tuple[Ints, Ints, Floats]:
    left, right, closeness = (np.concatenate(columns) for columns in zip(a, b, strict=True))
    return left, right, closeness
