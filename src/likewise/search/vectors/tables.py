"""Pairs of vectors within a distance, among those that share a bucket of a table or among all; each is verified."""

from __future__ import annotations

import threading
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

import numpy as np

from likewise.base.arrays import Ints
from likewise.base.parallel import in_order
from likewise.base.runlog import Tick
from likewise.errors import InputError
from likewise.kernels.vector_tables import fill_buckets, meet, table_keys
from likewise.search.scored import ScoredPairs, Scores, concatenated
from likewise.search.vectors.plan import COMPARE, LOOK, Plan
from likewise.search.vectors.spaces import Space, empty_table

Room = tuple[int, Path | None]
"""Bytes to keep in memory, and the folder for what exceeds them."""
PAIRS = 1 << 17
"""Pairs for which a thread has room; the kernel returns when they are full, and is called again."""
WIDE, HIGH = 4096, 1024
"""Columns and rows of a block of distances: it fits in a processor's cache."""


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
    """Find the pairs that share a bucket; raise Overrun if that costs more than `allowed` nanoseconds."""
    words = space.table
    if plan.sketcher is not None:
        words = empty_table((len(space), plan.words), np.uint64, *room)
        plan.sketcher.fill(plan.groups, plan.bits, words, threads)
    own = plan.sketcher is None or plan.sketcher.differ(0) is None
    seen = space.table if own else np.ascontiguousarray(words[:, : plan.looked])
    starts, lengths = plan.cuts(space.dimensions)
    n = len(space)
    shift = 64 - max(1, (n - 1).bit_length())
    pairs = max(PAIRS, n)
    lock, spent = threading.Lock(), [0.0]
    store = threading.local()

    def work(groups: tuple[int, ...]) -> tuple[list[ScoredPairs], int]:
        if not hasattr(store, "keys"):
            store.keys, store.ordered = np.empty(n, np.uint64), np.empty(n, np.uint64)
            store.rows, store.ends = np.empty(n, np.int32), np.empty((1 << (64 - shift)) + 1, np.int32)
            store.left, store.right = np.empty(pairs, np.int32), np.empty(pairs, np.int32)
        chosen = np.array(groups)
        table_keys(words, starts, lengths, chosen, store.keys)
        sharing = fill_buckets(store.keys, shift, store.ends, store.rows, store.ordered)
        with lock:
            spent[0] += sharing * (COMPARE + LOOK * plan.looked)
            if spent[0] > allowed:
                raise Overrun
        place, parts = np.zeros(2, np.int64), []
        while place[0] < len(store.ends) - 1:
            count = meet(
                store.ends, store.rows, store.ordered, place, words, starts, lengths, chosen,
                seen, plan.most, split, store.left, store.right,
            )  # fmt: skip
            parts.append(kept(space, within, store.left[:count].astype(np.int64), store.right[:count].astype(np.int64)))
            most.take(len(parts[-1][0]))
        return parts, sharing

    return _gathered(in_order(work, plan.tables, threads), tick)


def all_pairs(space: Space, within: float, split: int, threads: int, most: PairLimit, tick: Tick) -> VectorPairs:
    """Compare all pairs, block by block."""
    n = len(space)
    reach = space.score(within) + space.error()
    ends = (split, split) if split else (n, 0)
    tasks = [
        (row, column)
        for row in range(0, ends[0], HIGH)
        for column in range(max(ends[1], row // WIDE * WIDE if not split else ends[1]), n, WIDE)
    ]

    def work(task: tuple[int, int]) -> tuple[list[ScoredPairs], int]:
        row, column = task
        high = min(row + HIGH, ends[0])
        scores = space.scores(space.part(slice(row, high)), space.part(slice(column, column + WIDE)))
        left, right = np.divmod(np.flatnonzero((scores <= reach).ravel()), scores.shape[1])
        left, right = left + row, right + column
        after = left < right
        left, right = left[after], right[after]
        found = kept(space, within, left, right)
        most.take(len(found[0]))
        return [found], scores.size

    return _gathered(in_order(work, tasks, threads), tick)


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
