"""The nearest neighbours of every vector: by hash tables, in the nearest cells, or by comparing all.

The neighbours of a sample are found exactly. They show how many cells a vector must visit, and how far the k-th
neighbour of most vectors is: tables find the pairs within that distance, and a vector with fewer than k of them is
compared with all others. The cheapest of these and of comparing all vectors is taken; all vectors are compared by their
heads where that is cheaper, with the same answer.
"""

from __future__ import annotations

from dataclasses import dataclass, replace

import numpy as np

from likewise.base.arrays import Ints
from likewise.base.copies import Groups
from likewise.base.random import uniform
from likewise.base.runlog import RunLog
from likewise.search.expand import nearest_rows
from likewise.search.scored import ScoredPairs, best_first, concatenated, no_pairs
from likewise.search.vectors.cells import CellPlan, by_cells, cell_plan
from likewise.search.vectors.heads import HeadPlan, head_plan
from likewise.search.vectors.operands import Operands
from likewise.search.vectors.pairs import (
    ALL_CHEAPER,
    CELLS_CHEAPER,
    NO_TABLES,
    NOTHING,
    OVERRUN,
    PAIR_BYTES,
    QUICK,
    SMALL,
    TABLES_CHEAPER,
    TABLES_DEARER,
    VectorAim,
    allowed_tables,
    taken,
)
from likewise.search.vectors.plan import Plan, cost_of_all, plan, spread
from likewise.search.vectors.scan import Means, against_all
from likewise.search.vectors.spaces import Space
from likewise.search.vectors.tables import Overrun, PairLimit, by_tables

ASKED = 512
"""Vectors whose neighbours are found exactly to learn where neighbours are; at most one in sixteen."""
SHARES = (0.5, 0.8, 0.95, 0.99)
"""Fractions of the vectors whose neighbours the tables may be planned for."""
PLANNING = 1e9
"""Comparing all vectors in fewer nanoseconds than this is as quick as planning anything else."""
COLUMNS = 4096
"""Vectors that show how many others the heads would leave, and how large cells are."""
GAIN = 0.8
"""Heads and cells are taken if they are predicted to take at most this part of the time of comparing all."""
MUCH = 8
"""No other way is planned if cells are predicted to be so many times as fast as comparing all."""


def neighbours(space: Space, split: int, across: bool, k: int, aim: VectorAim, log: RunLog) -> ScoredPairs:
    """Return for every row (below `split`, if across) its k nearest others (from `split` on), nearest first."""
    with log.stage("look", len(space)):
        groups = Groups.by_digest(space.look(aim.threads, split))
    log.counts.update({"items": len(space), "different": len(groups)})
    here = int(np.searchsorted(groups.first, split)) if across else 0
    single = len(groups) == len(space)
    one_each = space if single else space.chosen(groups.first, *aim.room)
    log.method = taken(aim, "exact", NOTHING)
    if not len(groups) or (across and not 0 < here < len(groups)):
        return no_pairs()
    left, right, distance = _of_different(one_each, here, across, k, aim, log)
    if single:
        return left, right, distance
    left, right, closeness = nearest_rows(groups, left, right, -distance, k, here, across, same=0.0)
    return left, right, 0 - closeness


@dataclass(frozen=True)
class Ways:
    """How neighbours can be found: by tables within a distance, in cells, or by comparing all, perhaps by heads."""

    total: float
    tables: Plan | None = None
    within: float = 0.0
    cost: float = float("inf")
    heads: HeadPlan | None = None
    cells: CellPlan | None = None

    @property
    def rest(self) -> float:
        """The cost of comparing all."""
        return self.total if self.heads is None else self.heads.nanoseconds


def _of_different(space: Space, split: int, across: bool, k: int, aim: VectorAim, log: RunLog) -> ScoredPairs:
    """Find the neighbours of different vectors."""
    n = len(space)
    rows = np.arange(split if across else n)
    means = Means(aim.threads, aim.memory, aim.room)
    operands = Operands(space, np.float32, aim.threads, aim.room)
    ways = Ways(_cost(space, len(rows), split))
    if (n > SMALL and ways.total > PLANNING) or aim.method == "lsh":
        with log.stage("plan"):
            ways = _planned(operands, rows, split, k, aim, means)
    parts: list[ScoredPairs] = []
    why = QUICK if n <= SMALL else ALL_CHEAPER
    if aim.method == "lsh":
        why = NO_TABLES if ways.tables is None else TABLES_DEARER
    allowed = allowed_tables(aim, ways.rest)
    if ways.cells is not None:
        rows = _by_cells(operands, ways.cells, rows, split, k, means, parts, aim, log)
    elif ways.tables is not None and ways.cost <= allowed:
        try:
            found, rows = _by_tables(space, ways.tables, ways.within, split, across, k, allowed, aim, log)
            parts.append(found)
        except Overrun:
            why = OVERRUN
    if not parts:
        log.method = taken(aim, "exact", why)
    heads = None
    if len(rows) and ways.heads is not None:
        heads = ways.heads.heads(operands, aim.threads, aim.room)
        log.details["heads"] = {"components": ways.heads.components}
    if len(rows):
        with log.stage("compare", len(rows)) as tick:
            parts.append(against_all(operands, rows, split, k, means, tick, heads))
    left, right, distance = concatenated(parts)
    left, right, closeness = best_first(left, right, -distance, k)
    return left, right, -closeness


def _by_cells(
    operands: Operands,
    chosen: CellPlan,
    rows: Ints,
    split: int,
    k: int,
    means: Means,
    parts: list[ScoredPairs],
    aim: VectorAim,
    log: RunLog,
) -> Ints:
    """Add the neighbours of rows in the cells that they visit to `parts`; return the rows without an answer."""
    with log.stage("compare", len(rows)) as tick:
        found, rest = by_cells(operands, chosen, rows, split, k, means, tick)
    parts += found
    log.method = taken(aim, "cells", CELLS_CHEAPER)
    said = {"count": len(chosen.centres), "visited": chosen.visited, "recall": round(chosen.recall, 6)}
    log.details["cells"] = said
    log.counts["left_over"] = len(rest)
    return rest


def _by_tables(
    space: Space,
    chosen: Plan,
    within: float,
    split: int,
    across: bool,
    k: int,
    allowed: float,
    aim: VectorAim,
    log: RunLog,
) -> tuple[ScoredPairs, Ints]:
    """Return the neighbours of rows with at least k within the distance, and the other rows."""
    n = len(space)
    most = PairLimit(aim.memory // PAIR_BYTES, space, within)
    with log.stage("meet", len(chosen.tables)) as tick:
        found = by_tables(space, chosen, within, split, aim.threads, allowed, most, aim.room, tick)
    left, right, distance = found.left, found.right, found.distance
    if not across:
        left, right = np.concatenate([left, right]), np.concatenate([right, left])
        distance = np.concatenate([distance, distance])
    rows = np.arange(split if across else n)
    enough = np.bincount(left, minlength=n)[rows] >= k
    kept = enough[left]
    log.method = taken(aim, "lsh", TABLES_CHEAPER)
    log.details["tables"] = {"plan": str(chosen), "within": within, "recall": round(chosen.recall, 6)}
    log.counts |= {"compared": found.compared, "left_over": int((~enough).sum())}
    return (left[kept], right[kept], distance[kept]), rows[~enough]


def _cost(space: Space, rows: int, split: int) -> float:
    """Return the cost of comparing rows with all others; a pair of the same collection is compared once."""
    return cost_of_all(space, rows * (len(space) - split) / (1 if split else 2))


def _planned(operands: Operands, rows: Ints, split: int, k: int, aim: VectorAim, means: Means) -> Ways:
    """Return the cheapest ways, if there are any."""
    space = operands.space
    size = max(1, min(ASKED, len(rows) // 16))
    some = np.sort(rows[np.argsort(uniform(aim.seed, 8, 1, len(rows))[0], kind="stable")[:size]])
    known = against_all(operands, some, split, k, means, lambda done: None)
    total = _cost(space, len(rows), split)
    pairs = float(len(rows) * (len(space) - split))
    columns = np.argsort(uniform(aim.seed, 9, 1, len(space) - split)[0], kind="stable")[:COLUMNS] + split
    cells = None
    if aim.method == "auto":
        cells = cell_plan(operands, known, columns, split, aim.recall, len(rows), GAIN * total, aim.seed)
        if cells is not None and cells.nanoseconds < max(PLANNING, total / MUCH):
            return Ways(total, cells=cells)
    heads = head_plan(operands, known, columns, pairs)
    ways = Ways(total, heads=heads if heads is not None and heads.nanoseconds <= GAIN * total else None)
    if aim.method == "exact":
        return ways
    if cells is not None and cells.nanoseconds > GAIN * ways.rest:
        cells = None
    farthest = np.zeros(len(space))
    np.maximum.at(farthest, known[0], known[2])
    for share in SHARES:
        within = float(np.quantile(farthest[some], share, method="higher"))
        spread_out = spread(space, within, split, aim.seed)
        found = plan(space, within, aim.recall, spread_out, aim.seed, forced=True)
        if found is not None and (cost := found.nanoseconds + (1 - share) * ways.rest) < ways.cost:
            ways = replace(ways, tables=found, within=within, cost=cost)
        if found is None or found.nanoseconds > allowed_tables(aim, ways.rest):
            break  # farther neighbours are dearer still
    return replace(ways, cells=cells) if cells is not None and cells.nanoseconds < ways.cost else ways
