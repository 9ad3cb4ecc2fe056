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
from likewise.base.random import uniform
from likewise.base.runlog import RunLog
from likewise.search.expand import nearest_rows
from likewise.search.scored import ScoredPairs, best_first, concatenated, no_pairs
from likewise.search.vectors import pairs as reasons
from likewise.search.vectors.cells import CellPlan, by_cells, cell_plan
from likewise.search.vectors.operands import Operands
from likewise.search.vectors.pairs import SMALL, Overrun, VectorAim, by_tables, different
from likewise.search.vectors.plan import Plan, cost_of_all, plan, spread
from likewise.search.vectors.scan import HeadPlan, Heads, Means, against_all, head_plan
from likewise.search.vectors.spaces import Space

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
    groups, here, one_each = different(space, split, across, aim, log)
    left, right, distance = no_pairs()
    if one_each is None and (across or not len(groups)):
        return left, right, distance
    if one_each is not None:
        left, right, distance = NearestSearch(one_each, here, across, k, aim, log).found()
    if len(groups) == len(space):
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


class NearestSearch:
    """The search for the neighbours of different vectors."""

    def __init__(self, space: Space, split: int, across: bool, k: int, aim: VectorAim, log: RunLog) -> None:
        self.space, self.split, self.across, self.k, self.aim, self.log = space, split, across, k, aim, log
        self.rows = np.arange(split if across else len(space))
        self.means = Means(aim.threads, aim.memory, aim.room)
        self.operands = Operands(space, np.float32, aim.threads, aim.room)

    def found(self) -> ScoredPairs:
        """Return the neighbours of every row: in the cheapest way, and by comparing all where that gives no answer."""
        aim, log, rows, small = self.aim, self.log, self.rows, len(self.space) <= SMALL
        # a pair of the same collection is compared once
        pairs = len(rows) * (len(self.space) - self.split) / (1 if self.split else 2)
        ways = Ways(cost_of_all(self.space, pairs))
        if (not small and ways.total > PLANNING) or aim.method == "lsh":
            with log.stage("plan"):
                ways = self._ways(ways.total)
        parts: list[ScoredPairs] = []
        why = reasons.QUICK if small else reasons.ALL_CHEAPER
        if aim.method == "lsh":
            why = reasons.NO_TABLES if ways.tables is None else reasons.TABLES_DEARER
        allowed = aim.allowed_tables(ways.rest)
        if ways.cells is not None:
            parts, rows = self._by_cells(ways.cells)
        elif ways.tables is not None and ways.cost <= allowed:
            try:
                parts, rows = self._by_tables(ways.tables, ways.within, allowed)
            except Overrun:
                why = reasons.OVERRUN
        if not parts:
            log.method = aim.taken("exact", why)
        heads = None
        if len(rows) and ways.heads is not None:
            heads = Heads(self.operands, ways.heads.turn, aim.threads, aim.room)
            log.details["heads"] = {"components": ways.heads.components}
        if len(rows):
            with log.stage("compare", len(rows)) as tick:
                parts.append(against_all(self.operands, rows, self.split, self.k, self.means, tick, heads))
        left, right, distance = concatenated(parts)
        left, right, closeness = best_first(left, right, -distance, self.k)
        return left, right, -closeness

    def _by_cells(self, chosen: CellPlan) -> tuple[list[ScoredPairs], Ints]:
        """Return the neighbours of rows in the cells that they visit, and the rows without an answer."""
        log = self.log
        with log.stage("compare", len(self.rows)) as tick:
            parts, rest = by_cells(self.operands, chosen, self.rows, self.split, self.k, self.means, tick)
        log.method = self.aim.taken("cells", reasons.CELLS_CHEAPER)
        recall = round(chosen.recall, 6)
        log.details["cells"] = {"count": len(chosen.centres), "visited": chosen.visited, "recall": recall}
        log.counts["left_over"] = len(rest)
        return parts, rest

    def _by_tables(self, chosen: Plan, within: float, allowed: float) -> tuple[list[ScoredPairs], Ints]:
        """Return the neighbours of rows with at least k within the distance, and the other rows."""
        log, aim = self.log, replace(self.aim, within=within)
        with log.stage("meet", len(chosen.tables)) as tick:
            (left, right, distance), compared = by_tables(self.space, chosen, self.split, aim, allowed, tick)
        if not self.across:
            left, right = np.concatenate([left, right]), np.concatenate([right, left])
            distance = np.concatenate([distance, distance])
        enough = np.bincount(left, minlength=len(self.space))[self.rows] >= self.k
        kept = enough[left]
        log.method = aim.taken("lsh", reasons.TABLES_CHEAPER)
        log.details["tables"] = {"plan": str(chosen), "within": within, "recall": round(chosen.recall, 6)}
        log.counts |= {"compared": compared, "left_over": int((~enough).sum())}
        return [(left[kept], right[kept], distance[kept])], self.rows[~enough]

    def _ways(self, total: float) -> Ways:
        """Return the cheapest ways, if there are any. total: the cost of comparing all."""
        space, split, rows, aim, operands = self.space, self.split, self.rows, self.aim, self.operands
        size = max(1, min(ASKED, len(rows) // 16))
        some = np.sort(rows[np.argsort(uniform(aim.seed, 8, 1, len(rows))[0], kind="stable")[:size]])
        known = against_all(operands, some, split, self.k, self.means, lambda done: None)
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
            tables = plan(space, within, aim.recall, spread_out, aim.seed, forced=True)
            if tables is not None and (cost := tables.nanoseconds + (1 - share) * ways.rest) < ways.cost:
                ways = replace(ways, tables=tables, within=within, cost=cost)
            if tables is None or tables.nanoseconds > aim.allowed_tables(ways.rest):
                break  # farther neighbours are dearer still
        return replace(ways, cells=cells) if cells is not None and cells.nanoseconds < ways.cost else ways
