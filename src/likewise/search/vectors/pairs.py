"""All pairs of vectors within a distance: copies are collapsed, tables planned, and pairs verified.

Pairs are sought among those that share a bucket of a table, or among all. Where the vectors are elsewhere, as on a
cluster, somebody there fills the tables; the plan and the story are the same.
"""

from __future__ import annotations

import threading
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Protocol

import numpy as np
from numpy.typing import NDArray

from likewise.base.arrays import Hashes, Ints
from likewise.base.copies import Groups
from likewise.base.parallel import in_order
from likewise.base.runlog import RunLog, Tick
from likewise.errors import InputError, ParameterError
from likewise.kernels.vector_scan import list_within
from likewise.kernels.vector_tables import fill_buckets, meet, pairs_across, table_keys
from likewise.search.expand import listed_pairs, nearest_rows
from likewise.search.matches import VerifiedPairs
from likewise.search.scored import ScoredPairs, concatenated, no_pairs
from likewise.search.vectors.operands import HIGH, WIDE, Operands
from likewise.search.vectors.plan import COMPARE, COMPONENT, LOOK, VERIFY, Plan, cost_of_all, plan, spread
from likewise.search.vectors.spaces import ROWS, Room, Space, empty_table

PAIR_BYTES = 64
"""Bytes that a pair takes until it is in the result."""
PAIRS = 1 << 17
"""Pairs for which a thread has room; the kernel returns when they are full, and is called again."""
PROBED = 4
"""Tables that show what all of them will cost."""
MANY = 64
"""A block is compared in double precision if more than one in so many of its pairs may be near enough."""
PORTION = 1 << 30
"""Products of components in one portion of work: about 0.05 s, so that an interrupt is heeded."""
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
    def room(self) -> Room:
        """The memory for the bits of vectors, in bytes, and the folder for more of them."""
        return self.memory // 4, self.spill

    def taken(self, method: str, why: str) -> dict[str, str]:
        """Return the method that was requested, the one taken, and why, for run.json."""
        return {"asked": self.method, "taken": method, "why": "requested" if self.method == method else why}

    def allowed_tables(self, all_pairs: float) -> float:
        """Return the nanoseconds that tables may take, from those of comparing all pairs."""
        return max(DEARER * all_pairs, INSTANT) if self.method == "lsh" else all_pairs


class DistantVectors(Protocol):
    """Vectors that are elsewhere; rows are numbered as in the space that stands for them."""

    def part(self, rows: Ints) -> NDArray[Any]:
        """Return some vectors, as `Space.part` does."""

    def by_tables(self, plan: Plan, allowed: float) -> tuple[ScoredPairs, int]:
        """Do what the function `by_tables` does."""

    def every(self) -> Space:
        """Return all vectors."""


class Overrun(Exception):
    """So many pairs share buckets that comparing all pairs is cheaper."""


class PairLimit:
    """The number of pairs that fit in memory."""

    def __init__(self, space: Space, aim: VectorAim) -> None:
        self.left = most = aim.memory // PAIR_BYTES
        self._message = (
            f"more than {most:,} pairs are within {aim.within:g} ({space.measure}), more than fit in memory; "
            "choose a smaller distance, or allow more memory"
        )

    def take(self, count: int) -> None:
        """Count more pairs; raise if they are too many."""
        self.left -= count
        if self.left < 0:
            raise InputError(self._message)


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
    check_number(len(space))
    groups, here, one_each = different(space, split, across, aim, log)
    left, right, distance = no_pairs() if one_each is None else found_pairs(one_each, here, aim, log)
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


def different(space: Space, split: int, across: bool, aim: VectorAim, log: RunLog) -> tuple[Groups, int, Space | None]:
    """Return the groups of equal vectors, which of them is the first from `split` on if that matters, and one vector of
    each; None if nothing is to be compared."""
    with log.stage("look", len(space)):
        groups = Groups.by_digest(space.look(aim.threads, split))
    log.counts.update({"items": len(space), "different": len(groups)})
    log.method = aim.taken("exact", NOTHING)
    here = int(np.searchsorted(groups.first, split)) if across else 0
    if len(groups) < 2 or (across and not 0 < here < len(groups)):
        return groups, here, None
    return groups, here, space if len(groups) == len(space) else space.chosen(groups.first, *aim.room)


def check_number(count: int) -> None:
    """Raise if there are more vectors than rows can be numbered."""
    if count >= 1 << 31:
        raise InputError(f"{count:,} vectors are more than one run can pair; split the input")


def found_pairs(
    space: Space, split: int, aim: VectorAim, log: RunLog, distant: DistantVectors | None = None
) -> ScoredPairs:
    """Find the pairs of different vectors, by the method requested or predicted to be cheaper.

    distant: where the vectors are, if `space` has only their number and shape.
    """
    chosen, allowed = planned(space, split, aim, log, distant)
    why = TABLES_DEARER if aim.method == "lsh" else QUICK if len(space) <= SMALL else ALL_CHEAPER
    if chosen is not None:
        try:
            if distant is not None:
                pairs, log.counts["compared"] = distant.by_tables(chosen, allowed)
            else:
                with log.stage("meet", len(chosen.tables)) as tick:
                    pairs, log.counts["compared"] = by_tables(space, chosen, split, aim, allowed, tick)
            log.method = aim.taken("lsh", TABLES_CHEAPER)
            log.details["tables"] = {"plan": str(chosen), "recall": round(chosen.recall, 6)}
            return pairs
        except Overrun:
            why = OVERRUN
    if distant is not None:
        with log.stage("fetch"):
            space = distant.every()
    with log.stage("compare") as tick:
        pairs, log.counts["compared"] = all_pairs(space, split, aim, tick)
    log.method = aim.taken("exact", why)
    return pairs


def planned(
    space: Space, split: int, aim: VectorAim, log: RunLog, distant: DistantVectors | None
) -> tuple[Plan | None, float]:
    """Return the plan, or None to compare all pairs, and the nanoseconds it may take."""
    n = len(space)
    every = split * (n - split) if split else n * (n - 1) // 2
    if aim.method == "exact" or (aim.method == "auto" and n <= SMALL):
        return None, 0.0
    with log.stage("plan"):
        known = spread(space, aim.within, split, aim.seed, None if distant is None else distant.part)
        chosen = plan(space, aim.within, aim.recall, known, aim.seed, forced=aim.method == "lsh")
    if chosen is None and aim.method == "lsh" and aim.within > 0:
        raise ParameterError(
            f"no tables of moderate size find pairs within {aim.within:g} ({space.measure}) with recall {aim.recall:g};"
            " use method='exact', which compares all pairs"
        )
    allowed = aim.allowed_tables(cost_of_all(space, every))
    return chosen if chosen is not None and chosen.nanoseconds <= allowed else None, allowed


class Buckets:
    """The tables of a plan over the vectors of a space; every thread has room for one at a time."""

    def __init__(self, space: Space, plan: Plan, split: int, threads: int, room: Room) -> None:
        self.space, self.plan, self.split = space, plan, split
        self.words = space.table
        if plan.sketcher is not None:
            self.words = empty_table((len(space), plan.words), np.uint64, *room)
            plan.sketcher.fill(plan.groups, plan.bits, self.words, threads)
        self.seen = space.table if plan.own else np.ascontiguousarray(self.words[:, : plan.looked])
        self.cuts = plan.cuts(space.dimensions)
        self.shift = plan.shift(len(space))
        self._store = threading.local()

    def fill(self, groups: tuple[int, ...]) -> int:
        """Make the table of some groups; return how many pairs share a bucket."""
        store, n = self._store, len(self.space)
        if not hasattr(store, "keys"):
            store.keys, store.ordered = np.empty(n, np.uint64), np.empty(n, np.uint64)
            store.rows, store.ends = np.empty(n, np.int32), np.empty((1 << (64 - self.shift)) + 1, np.int32)
        table_keys(self.words, *self.cuts, np.array(groups), store.keys)
        sharing = int(fill_buckets(store.keys, self.shift, store.ends, store.rows, store.ordered))
        return int(pairs_across(store.ends, store.rows, self.split)) if self.split else sharing

    def pairs(self, groups: tuple[int, ...]) -> Iterator[tuple[Ints, Ints]]:
        """Yield the pairs that meet in the table just made, and in none before it, and whose bits are near enough."""
        store, bits = self._store, (self.words, *self.cuts, np.array(groups), self.seen, self.plan.most, self.split)
        return meetings(store.ends, store.rows, store.ordered, bits, len(self.space))


def meetings(
    ends: NDArray[np.int32], rows: NDArray[np.int32], keys: Hashes, bits: tuple[Any, ...], largest: int
) -> Iterator[tuple[Ints, Ints]]:
    """Yield the pairs of rows that share a bucket of a table, a portion at a time; largest: rows of a bucket."""
    room, place = max(PAIRS, largest), np.zeros(2, np.int64)
    left, right = np.empty(room, np.int32), np.empty(room, np.int32)
    while place[0] < len(ends) - 1:
        count = meet(ends, rows, keys, place, *bits, left, right)
        yield left[:count].astype(np.int64), right[:count].astype(np.int64)


def by_tables(
    space: Space, plan: Plan, split: int, aim: VectorAim, allowed: float, tick: Tick
) -> tuple[ScoredPairs, int]:
    """Find the pairs that share a bucket, and how many do; raise Overrun if that costs more than `allowed` nanoseconds.

    The first tables show what all of them will cost: they are alike.
    """
    buckets, most = Buckets(space, plan, split, aim.threads, aim.room), PairLimit(space, aim)
    each, verify = costs(plan, space.dimensions)
    lock, spent = threading.Lock(), [0.0]

    def spend(cost: float) -> None:
        with lock:
            spent[0] += cost
            if spent[0] > allowed:
                raise Overrun

    def work(groups: tuple[int, ...]) -> tuple[list[ScoredPairs], int]:
        sharing = buckets.fill(groups)
        spend(sharing * each)
        parts = []
        for left, right in buckets.pairs(groups):
            spend(len(left) * verify)
            parts.append(kept(space, aim.within, left, right))
            most.take(len(parts[-1][0]))
        return parts, sharing

    tables = plan.tables
    first = sum(in_order(buckets.fill, tables[:PROBED], aim.threads)) * each
    if first * len(tables) / min(PROBED, len(tables)) > allowed:
        raise Overrun
    return _gathered(in_order(work, tables, aim.threads), tick)


def costs(plan: Plan, dimensions: int) -> tuple[float, float]:
    """Return the nanoseconds that a pair takes that shares a bucket, and one that is verified."""
    return COMPARE + LOOK * plan.looked, VERIFY + COMPONENT * dimensions


def all_pairs(space: Space, split: int, aim: VectorAim, tick: Tick) -> tuple[ScoredPairs, int]:
    """Compare all pairs, block by block, in single precision; verify those that may be near enough. Also count them.

    Where these are many in a block, it is compared in double precision first.
    """
    n, within, most = len(space), aim.within, PairLimit(space, aim)
    single = Operands(space, np.float32, aim.threads, aim.room)
    high = max(64, min(HIGH, PORTION // (WIDE * single.width)))
    last = split or n
    tasks = [(row, column) for row in range(0, last, high) for column in range(split or row // WIDE * WIDE, n, WIDE)]
    lock, double = threading.Lock(), list[Operands]()

    def fine() -> Operands:
        """Make the vectors ready in double precision, when that is first needed."""
        with lock:
            if not double:
                double.append(Operands(space, np.float64, 1, aim.room))
            return double[0]

    def work(task: tuple[int, int]) -> tuple[list[ScoredPairs], int]:
        rows, columns = slice(task[0], min(task[0] + high, last)), slice(task[1], min(task[1] + WIDE, n))
        size = (rows.stop - rows.start) * (columns.stop - columns.start)
        operands = single if single.fit else fine()
        parts = []
        found = _near(operands, within, rows, columns)
        if operands is single and not single.certain and sum(len(left) for left, _ in found) > size // MANY:
            found = _near(fine(), within, rows, columns)
        for left, right in found:
            for start in range(0, len(left), ROWS):
                cut = slice(start, start + ROWS)
                parts.append(kept(space, within, left[cut], right[cut]))
                most.take(len(parts[-1][0]))
        return parts, size

    return _gathered(in_order(work, tasks, aim.threads), tick)


def _near(operands: Operands, within: float, rows: slice, columns: slice) -> list[tuple[Ints, Ints]]:
    """Return the pairs of a block, the row before the column, whose scores do not exclude that they are near enough."""
    likeness = operands.likeness(operands.table[rows], columns)
    reach = operands.reach(within, rows)
    begins = np.maximum(np.arange(rows.start, rows.stop) + 1 - columns.start, 0)
    place, found = np.zeros(1, np.int64), []
    left, right = np.empty(max(PAIRS, likeness.shape[1]), np.int32), np.empty(max(PAIRS, likeness.shape[1]), np.int32)
    while place[0] < len(likeness):
        count = list_within(likeness, operands.terms, columns.start, reach, begins, place, left, right)
        found.append((left[:count] + np.int64(rows.start), right[:count] + np.int64(columns.start)))
    return found


def kept(space: Space, within: float, left: Ints, right: Ints) -> ScoredPairs:
    """Verify pairs: return those within the distance, by its exact value."""
    distance = space.distances(left, right)
    near = distance <= within
    return left[near], right[near], distance[near]


def _gathered(results: Iterator[tuple[list[ScoredPairs], int]], tick: Tick) -> tuple[ScoredPairs, int]:
    """Collect the pairs of all tables or blocks, sorted."""
    parts: list[ScoredPairs] = []
    compared = 0
    for more, count in results:
        parts.extend(more)
        compared += count
        tick(1)
    left, right, distance = concatenated(parts)
    order = np.lexsort((right, left))
    return (left[order], right[order], distance[order]), compared
