"""Pairs of vectors within a distance, among those that share a bucket of a table or among all; each is verified."""

from __future__ import annotations

import threading
from collections.abc import Iterator
from dataclasses import dataclass

import numpy as np

from likewise.base.arrays import Ints
from likewise.base.parallel import in_order
from likewise.base.runlog import Tick
from likewise.errors import InputError
from likewise.kernels.vector_scan import list_within
from likewise.kernels.vector_tables import fill_buckets, meet, pairs_across, table_keys
from likewise.search.scored import ScoredPairs, Scores, concatenated
from likewise.search.vectors.operands import HIGH, WIDE, Operands
from likewise.search.vectors.plan import COMPARE, COMPONENT, LOOK, VERIFY, Plan
from likewise.search.vectors.spaces import ROWS, Room, Space, empty_table

PAIRS = 1 << 17
"""Pairs for which a thread has room; the kernel returns when they are full, and is called again."""
PROBED = 4
"""Tables that show what all of them will cost."""
MANY = 64
"""A block is compared in double precision if more than one in so many of its pairs may be near enough."""
PORTION = 1 << 30
"""Products of components in one portion of work: about 0.05 s, so that an interrupt is heeded."""


class Overrun(Exception):
    """So many pairs share buckets that comparing all pairs is cheaper."""


@dataclass
class VectorPairs:
    """Pairs of rows, left < right, sorted, and their distances; and the number of pairs compared."""

    left: Ints
    right: Ints
    distance: Scores
    compared: int


class PairLimit:
    """The number of pairs that fit in memory."""

    def __init__(self, most: int, space: Space, within: float) -> None:
        self.left = most
        self._message = (
            f"more than {most:,} pairs are within {within:g} ({space.measure}), more than fit in memory; "
            "choose a smaller distance, or allow more memory"
        )

    def take(self, count: int) -> None:
        """Count more pairs; raise if they are too many."""
        self.left -= count
        if self.left < 0:
            raise InputError(self._message)


class Buckets:
    """The tables of a plan over the vectors of a space; every thread has room for one at a time."""

    def __init__(self, space: Space, plan: Plan, split: int, threads: int, room: Room) -> None:
        self.space, self.plan, self.split = space, plan, split
        self.words = space.table
        if plan.sketcher is not None:
            self.words = empty_table((len(space), plan.words), np.uint64, *room)
            plan.sketcher.fill(plan.groups, plan.bits, self.words, threads)
        own = plan.sketcher is None or plan.sketcher.differ(0) is None
        self.seen = space.table if own else np.ascontiguousarray(self.words[:, : plan.looked])
        self.cuts = plan.cuts(space.dimensions)
        n = len(space)
        self.shift = 64 - max(1, (n - 1).bit_length())
        self._store = threading.local()

    def fill(self, groups: tuple[int, ...]) -> int:
        """Make the table of some groups; return how many pairs share a bucket."""
        store, n = self._store, len(self.space)
        if not hasattr(store, "keys"):
            pairs = max(PAIRS, n)
            store.keys, store.ordered = np.empty(n, np.uint64), np.empty(n, np.uint64)
            store.rows, store.ends = np.empty(n, np.int32), np.empty((1 << (64 - self.shift)) + 1, np.int32)
            store.left, store.right = np.empty(pairs, np.int32), np.empty(pairs, np.int32)
        table_keys(self.words, *self.cuts, np.array(groups), store.keys)
        sharing = int(fill_buckets(store.keys, self.shift, store.ends, store.rows, store.ordered))
        return int(pairs_across(store.ends, store.rows, self.split)) if self.split else sharing

    def pairs(self, groups: tuple[int, ...]) -> Iterator[tuple[Ints, Ints]]:
        """Yield the pairs that meet in the table just made, and in none before it, and whose bits are near enough."""
        store, plan = self._store, self.plan
        place = np.zeros(2, np.int64)
        while place[0] < len(store.ends) - 1:
            count = meet(
                store.ends, store.rows, store.ordered, place, self.words, *self.cuts, np.array(groups),
                self.seen, plan.most, self.split, store.left, store.right,
            )  # fmt: skip
            yield store.left[:count].astype(np.int64), store.right[:count].astype(np.int64)


def by_tables(
    space: Space,
    plan: Plan,
    within: float,
    split: int,
    threads: int,
    allowed: float,
    most: PairLimit,
    room: Room,
    tick: Tick,
) -> VectorPairs:
    """Find the pairs that share a bucket; raise Overrun if that costs more than `allowed` nanoseconds.

    The first tables show what all of them will cost: they are alike.
    """
    buckets = Buckets(space, plan, split, threads, room)
    each, verify = COMPARE + LOOK * plan.looked, VERIFY + COMPONENT * space.dimensions
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
            parts.append(kept(space, within, left, right))
            most.take(len(parts[-1][0]))
        return parts, sharing

    tables = plan.tables
    first = sum(in_order(buckets.fill, tables[:PROBED], threads)) * each
    if first * len(tables) / min(PROBED, len(tables)) > allowed:
        raise Overrun
    return _gathered(in_order(work, tables, threads), tick)


def all_pairs(
    space: Space, within: float, split: int, threads: int, most: PairLimit, room: Room, tick: Tick
) -> VectorPairs:
    """Compare all pairs, block by block, in single precision; verify those that may be near enough.

    Where these are many in a block, it is compared in double precision first.
    """
    n = len(space)
    single, fine = Operands(space, np.float32, threads, room), DoubleBlocks(space, room)
    high = max(64, min(HIGH, PORTION // (WIDE * single.width)))
    last = split or n
    tasks = [(row, column) for row in range(0, last, high) for column in range(split or row // WIDE * WIDE, n, WIDE)]

    def work(task: tuple[int, int]) -> tuple[list[ScoredPairs], int]:
        rows, columns = slice(task[0], min(task[0] + high, last)), slice(task[1], min(task[1] + WIDE, n))
        size = (rows.stop - rows.start) * (columns.stop - columns.start)
        operands = single if single.fit else fine.operands()
        parts = []
        found = near(operands, within, rows, columns)
        if operands is single and not single.certain and sum(len(left) for left, _ in found) > size // MANY:
            found = near(fine.operands(), within, rows, columns)
        for left, right in found:
            for start in range(0, len(left), ROWS):
                cut = slice(start, start + ROWS)
                parts.append(kept(space, within, left[cut], right[cut]))
                most.take(len(parts[-1][0]))
        return parts, size

    return _gathered(in_order(work, tasks, threads), tick)


class DoubleBlocks:
    """The vectors in double precision, made ready when they are first needed."""

    def __init__(self, space: Space, room: Room) -> None:
        self._space, self._room = space, room
        self._lock = threading.Lock()
        self._made: Operands | None = None

    def operands(self) -> Operands:
        """Return them."""
        with self._lock:
            if self._made is None:
                self._made = Operands(self._space, np.float64, 1, self._room)
            return self._made


def near(operands: Operands, within: float, rows: slice, columns: slice) -> list[tuple[Ints, Ints]]:
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


def _gathered(results: Iterator[tuple[list[ScoredPairs], int]], tick: Tick) -> VectorPairs:
    """Collect the pairs of all tables or blocks, sorted."""
    parts: list[ScoredPairs] = []
    compared = 0
    for more, count in results:
        parts.extend(more)
        compared += count
        tick(1)
    left, right, distance = concatenated(parts)
    order = np.lexsort((right, left))
    return VectorPairs(left[order], right[order], distance[order], compared)
