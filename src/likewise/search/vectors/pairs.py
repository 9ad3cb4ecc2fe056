"""All pairs of vectors within a distance: copies are collapsed, tables planned, and pairs verified."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from likewise.base.arrays import Ints
from likewise.base.copies import Groups
from likewise.base.runlog import RunLog
from likewise.errors import InputError, ParameterError
from likewise.search.expand import listed_pairs, nearest_rows
from likewise.search.matches import VerifiedPairs
from likewise.search.scored import ScoredPairs, no_pairs
from likewise.search.vectors.plan import Plan, cost_of_all, plan, spread
from likewise.search.vectors.spaces import Space
from likewise.search.vectors.tables import Overrun, PairLimit, VectorPairs, all_pairs, by_tables

PAIR_BYTES = 64
"""Bytes that a pair takes until it is in the result."""
SMALL = 3000
"""Up to this many vectors all pairs are compared: that takes less time than planning tables."""
QUICK = f"at most {SMALL:,} vectors: comparing all pairs is quick"
NOTHING = "nothing to compare"
TABLES_CHEAPER = "predicted to be cheaper than comparing all pairs"
ALL_CHEAPER = "predicted to be cheaper than tables"
CELLS_CHEAPER = "predicted to be cheaper than comparing all pairs"
TABLES_DEARER = "tables would take longer than comparing all pairs"
OVERRUN = "too many vectors share buckets: comparing all pairs is cheaper than going on with tables"
NO_TABLES = "no tables of moderate size find these neighbours"

DEARER = 1.2
"""With method="lsh", how much longer than comparing all pairs the tables may take."""
INSTANT = 2e7
"""With method="lsh", nanoseconds that tables may take in any case."""


@dataclass(frozen=True)
class VectorAim:
    """What to look for in a space, and with which means; `within` is not used by nearest neighbours."""

    within: float
    recall: float
    seed: int
    method: str
    threads: int
    memory: int
    spill: Path | None

    @property
    def room(self) -> tuple[int, Path | None]:
        """The memory for the bits of vectors, in bytes, and the folder for more of them."""
        return self.memory // 4, self.spill


def joined(
    space: Space,
    split: int,
    across: bool,
    aim: VectorAim,
    log: RunLog,
    k: int | None = None,
    beyond: float | None = None,
) -> ScoredPairs:
    """Return the pairs of rows within the distance, left < right, sorted, and their distances; with k, the k nearest.

    Copies of a vector are searched once. `across`: one row of a pair is below `split`, and the other is not. `beyond`:
    only pairs at a larger distance than this.
    """
    if len(space) >= 1 << 31:
        raise InputError(f"{len(space):,} vectors are more than one run can pair; split the input")
    with log.stage("look", len(space)):
        groups = Groups.by_digest(space.look(aim.threads, split))
    log.counts.update({"items": len(space), "different": len(groups)})
    found = VectorPairs(*no_pairs(), 0)
    log.method = taken(aim, "exact", NOTHING)
    here = int(np.searchsorted(groups.first, split)) if across else 0
    if len(groups) > 1 and (not across or 0 < here < len(groups)):
        one_each = space if len(groups) == len(space) else space.chosen(groups.first, *aim.room)
        found = found_pairs(one_each, here, aim, log)
    left, right, distance = found.left, found.right, found.distance
    if beyond is not None:
        kept = distance > beyond
        left, right, distance = left[kept], right[kept], distance[kept]
    copies = not across and beyond is None
    if k is not None:
        here = here if across else len(groups)
        left, right, closeness = nearest_rows(
            groups, left, right, -distance, k, here, across=not copies, same=0.0, both=not across
        )
        return left, right, 0 - closeness
    matches = VerifiedPairs(groups, groups.of, left, right, distance)
    left, right, distance, abridged = listed_pairs(matches, within=copies, same=0.0)
    if abridged:
        log.details["abridged"] = abridged
    return left, right, distance


def taken(aim: VectorAim, method: str, why: str) -> dict[str, str]:
    """Return the method that was requested, the one taken, and why, for run.json."""
    return {"asked": aim.method, "taken": method, "why": "requested" if aim.method == method else why}


def allowed_tables(aim: VectorAim, all_pairs: float) -> float:
    """Return the nanoseconds that tables may take, from those of comparing all pairs."""
    return max(DEARER * all_pairs, INSTANT) if aim.method == "lsh" else all_pairs


def reason_for_all(aim: VectorAim, vectors: int) -> str:
    """Return why all pairs of so many vectors are compared."""
    if aim.method == "lsh":
        return TABLES_DEARER
    return QUICK if vectors <= SMALL else ALL_CHEAPER


def found_pairs(space: Space, split: int, aim: VectorAim, log: RunLog) -> VectorPairs:
    """Find the pairs of different vectors, by the method requested or predicted to be cheaper."""
    chosen, allowed = planned(space, split, aim, log)
    why = reason_for_all(aim, len(space))
    if chosen is not None:
        most = PairLimit(aim.memory // PAIR_BYTES, space, aim.within)
        try:
            with log.stage("meet", len(chosen.tables)) as tick:
                found = by_tables(space, chosen, aim.within, split, aim.threads, allowed, most, aim.room, tick)
            log.method = taken(aim, "lsh", TABLES_CHEAPER)
            log.details["tables"] = {"plan": str(chosen), "recall": round(chosen.recall, 6)}
            log.counts["compared"] = found.compared
            return found
        except Overrun:
            why = OVERRUN
    most = PairLimit(aim.memory // PAIR_BYTES, space, aim.within)
    with log.stage("compare") as tick:
        found = all_pairs(space, aim.within, split, aim.threads, most, aim.room, tick)
    log.method = taken(aim, "exact", why)
    log.counts["compared"] = found.compared
    return found


def planned(
    space: Space, split: int, aim: VectorAim, log: RunLog, part: Callable[[Ints], NDArray[Any]] | None = None
) -> tuple[Plan | None, float]:
    """Return the plan, or None to compare all pairs, and the nanoseconds it may take."""
    n = len(space)
    every = split * (n - split) if split else n * (n - 1) // 2
    cost = cost_of_all(space, every)
    if aim.method == "exact" or (aim.method == "auto" and n <= SMALL):
        return None, 0.0
    with log.stage("plan"):
        known = spread(space, aim.within, split, aim.seed, part)
        chosen = plan(space, aim.within, aim.recall, known, aim.seed, forced=aim.method == "lsh")
    if chosen is None and aim.method == "lsh" and aim.within > 0:
        raise ParameterError(
            f"no tables of moderate size find pairs within {aim.within:g} ({space.measure}) with recall {aim.recall:g};"
            " use method='exact', which compares all pairs"
        )
    allowed = allowed_tables(aim, cost)
    return chosen if chosen is not None and chosen.nanoseconds <= allowed else None, allowed
