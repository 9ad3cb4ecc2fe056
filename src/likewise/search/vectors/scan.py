"""The k nearest of some vectors among all, by comparing them block by block.

Blocks are compared in single precision. Whatever rounding may have hidden is compared exactly, so that the answer is
that of double precision, ties by row, whatever the blocks and the threads. Vectors with too many neighbours that single
precision cannot tell apart are compared again in double precision, and those that it cannot tell apart, one by one.

Vectors may be compared by their heads first, the part that says most. A vector x is turned so that its first m
components, its head, are those along the m leading eigenvectors of the matrix of second moments; what is left of it has
length r(x). Then x·y is at most head(x)·head(y) + r(x)·r(y), by the inequality of Cauchy and Schwarz: a matrix product
of m + 1 components shows which of the many others x can be near to.
"""

from __future__ import annotations

import math
import threading
from collections.abc import Callable
from contextlib import nullcontext
from dataclasses import dataclass
from functools import partial
from itertools import count
from typing import Any

import numpy as np
from numpy.typing import NDArray

from likewise.base.arrays import Ints
from likewise.base.parallel import in_order
from likewise.base.runlog import Tick
from likewise.kernels.vector_scan import BestColumns, bound_by, choose, choose_both, list_within, settle
from likewise.search.scored import ScoredPairs, best_first, concatenated, no_pairs
from likewise.search.vectors.operands import HIGH, WIDE, Block, Operands
from likewise.search.vectors.plan import PRODUCT, SCORE
from likewise.search.vectors.spaces import ROWS, Floats, Room, empty_table

EXTRA = 48
"""Columns that a row has room for, beyond twice k."""
TRIAL = 256
"""Rows that are compared first; if single precision does not do for half of them, it is skipped."""
PORTION = 1 << 30
"""Products of components in one portion of work: about 0.05 s, so that an interrupt is heeded."""
ALONE = 1 << 24
"""Components in one portion of vectors that are compared one by one."""
SQUARE = 1024
"""Rows and columns of a block that serves both its rows and its columns."""
AHEAD = 4
"""How many columns, as a multiple of k, bound what a row is looking for: those whose heads promise most."""
STRIP = 256
"""Rows that are compared by their heads at a time, for any number of threads: the order decides what is found."""
ROUNDED = 1e-6
"""What is added to the length of a rest, as a part of the vector's length, for the rounding of the turn."""
LEAST = 24
"""Vectors with fewer components are compared whole."""
SIZES = (7, 15, 23, 31, 47, 63, 95, 127, 191, 255)
"""Numbers of components of a head to choose from."""
MOMENTS = 4096
"""Vectors whose matrix of moments shows the directions."""
TURN = 0.5
"""Nanoseconds that finding the directions takes, for the cube of the number of components."""
REFINE, REFINE_COMPONENT = 20.0, 0.5
"""Nanoseconds to look at the rest of a vector, and for each component."""
LAG = 1.5
"""How many more are looked at than in the end, because the bounds are not quite narrow enough."""
WORSE = 1.3
"""Longer heads are not tried once they take this much longer than the best."""


@dataclass(frozen=True)
class Means:
    """Threads, the memory for what is known of every row, and the room for vectors made ready."""

    threads: int
    memory: int
    room: Room


class Heads:
    """The heads of all vectors, with the lengths of their rests as a last component."""

    def __init__(self, operands: Operands, turn: Floats, threads: int, room: Room) -> None:
        self.operands = operands
        self.table = np.asarray(empty_table((len(operands.space), turn.shape[1] + 1), np.float32, *room))
        self.nothing = np.zeros(len(operands.space), np.float32)

        def work(start: int) -> None:
            cut = slice(start, start + ROWS)
            self.table[cut] = headed(operands.rows(cut), turn)

        for _ in in_order(work, range(0, len(self.table), ROWS), threads):
            pass

    @property
    def width(self) -> int:
        """The number of components that are compared."""
        return int(self.table.shape[1])

    def promise(self, rows: Ints, columns: Ints) -> Block:
        """Return for each row and each column how large the product of their vectors may be."""
        mine, others = self.table[rows], self.table[columns]
        out = self.operands.block(len(mine), len(others))
        np.dot(mine, others.T, out=out)
        return out


def headed(rows: Floats, turn: Floats) -> Floats:
    """Return the heads of vectors, and the lengths of their rests."""
    heads = rows @ turn
    squares = (rows * rows).sum(axis=1)
    rests = np.sqrt(np.maximum(squares - (heads * heads).sum(axis=1), 0)) + ROUNDED * np.sqrt(squares)
    return np.concatenate([heads, rests[:, None]], axis=1)


@dataclass(frozen=True)
class HeadPlan:
    """The directions of the components of heads, and what comparing by them costs."""

    turn: Floats
    nanoseconds: float

    @property
    def components(self) -> int:
        """The number of components of a head."""
        return int(self.turn.shape[1])


def head_plan(operands: Operands, known: ScoredPairs, columns: Ints, pairs: float) -> HeadPlan | None:
    """Return the cheapest heads for comparing this many pairs, or None if there are none.

    known: the true neighbours of a sample of rows. columns: a sample of columns.
    """
    space, d = operands.space, operands.width
    ready = 2 * PRODUCT * MOMENTS * d**2 + TURN * d**3
    if not space.products or d < LEAST or ready > pairs * PRODUCT * d / 4:
        return None
    some = operands.rows(columns[:MOMENTS])
    directions = np.linalg.eigh(some.T @ some)[1][:, ::-1]
    rows, place = np.unique(known[0], return_inverse=True)
    mine, theirs, others = (operands.rows(one) for one in (rows, known[1], columns))
    terms, other_terms = operands.sizes[known[1]], operands.sizes[columns]
    farthest = np.full(len(rows), -np.inf)
    np.maximum.at(farthest, place, terms - (mine[place] * theirs).sum(axis=1))
    best = None
    for components in SIZES:
        if components + 1 > d * 2 // 3:
            break
        turn = np.ascontiguousarray(directions[:, :components])
        promise = headed(mine, turn) @ headed(others, turn).T
        passed = float((other_terms - promise <= farthest[:, None]).mean())
        each = 2 * (PRODUCT * (components + 1) + SCORE) + LAG * passed * (REFINE + REFINE_COMPONENT * d)
        cost = ready + 2 * PRODUCT * len(space) * d * components + each * pairs
        if best is None or cost < best.nanoseconds:
            best = HeadPlan(turn, cost)
        elif cost > WORSE * best.nanoseconds:
            break
    return best


class Best:
    """For some rows the columns that may be among their k best."""

    def __init__(self, rows: Ints, k: int, operands: Operands) -> None:
        room = 2 * k + EXTRA
        self.rows, self.k, self.operands = rows, k, operands
        self.counts = np.zeros(len(rows), np.int32)
        self.bounds = np.full(len(rows), np.inf, operands.kind)
        self.crowded = np.zeros(len(rows), bool)
        self.lows = np.empty((len(rows), room), operands.kind)
        self.columns = np.empty((len(rows), room), np.int32)

    @staticmethod
    def bytes(k: int, kind: type[Any]) -> int:
        """Return the bytes that one row takes, with those of its results."""
        return (2 * k + EXTRA) * (4 + np.dtype(kind).itemsize) + 16 + 48 * k

    def arrays(self, cut: slice = slice(None), heads: Heads | None = None) -> BestColumns:
        """Return the arrays of some of the rows, as kernels take them; by what heads promise, scores are certain."""
        one, held = self.operands, (self.counts[cut], self.bounds[cut], self.crowded[cut])
        slack, doubt = (one.slack, one.doubt) if heads is None else (heads.nothing, heads.nothing)
        certain = one.certain or heads is not None
        return BestColumns(self.k, certain, slack, doubt, *held, self.lows[cut], self.columns[cut])

    def enter(self, at: Ints, columns: Ints) -> None:
        """Compare the rows at some places with some columns; enter those that may be among the k best."""
        one = self.operands
        likeness = one.likeness(one.table[self.rows[at]], columns)
        self._choose(likeness, one.table[:0], at, columns, self.arrays())

    def enter_promised(self, heads: Heads, at: Ints, columns: Ints) -> None:
        """Enter columns by what their heads promise, and no more than are asked for."""
        promise = heads.promise(self.rows[at], columns)
        self._choose(promise, self.operands.table[:0], at, columns, self.arrays(heads=heads))

    def enter_promising(self, heads: Heads, at: Ints, columns: Ints) -> None:
        """Enter columns by the likeness of those whose heads promise enough."""
        promise = heads.promise(self.rows[at], columns)
        self._choose(promise, self.operands.table, at, columns, self.arrays()._replace(certain=False))

    def _choose(self, likeness: Block, every: NDArray[Any], at: Ints, columns: Ints, best: BestColumns) -> None:
        choose(likeness, every, self.operands.terms[columns], columns, self.rows, at, best)

    def settle(self, cut: slice) -> None:
        """Drop what is not among the k best of some rows, all columns having been entered."""
        settle(self.rows[cut], self.arrays(cut))

    def settled(self, cut: slice) -> ScoredPairs:
        """Return the k nearest of each of some rows that are not crowded, with their distances."""
        self.settle(cut)
        return self.ranked(cut, ~self.crowded[cut])

    def ranked(self, cut: slice, which: NDArray[np.bool_]) -> ScoredPairs:
        """Return the k nearest of those of some settled rows that are marked, with their distances."""
        operands, rows = self.operands, self.rows[cut]
        kept = np.arange(self.lows.shape[1]) < np.where(which, self.counts[cut], 0)[:, None]
        left = np.broadcast_to(rows[:, None], kept.shape)[kept]
        right = self.columns[cut][kept].astype(np.int64)
        left, right, closeness = best_first(left, right, -operands.space.distances(left, right), self.k)
        return left, right, -closeness


@dataclass
class Outcome:
    """The neighbours of rows that were settled; the rows that were not, with bounds on the scores of their k best."""

    parts: list[ScoredPairs]
    crowded: Ints
    bounds: NDArray[Any]


def against_all(
    single: Operands, rows: Ints, split: int, k: int, means: Means, tick: Tick, heads: Heads | None = None
) -> ScoredPairs:
    """Compare rows with all vectors from `split` on except themselves; return the k nearest of each, ties by row.

    With `heads`, vectors are compared by the part that says most, and by the rest where that part leaves them a chance.
    """
    space = single.space
    k = min(k, len(space) - split)
    if not len(rows) or k < 1:
        return no_pairs()
    parts: list[ScoredPairs] = []
    crowded, report = rows, tick
    if single.fit and not (len(rows) > 16 * TRIAL and _in_vain(single, rows, split, k, means)):
        found = _compared(single, rows, split, k, means, tick, heads)
        parts, crowded, report = found.parts, found.crowded, _silent
    if len(crowded):
        double = Operands(space, np.float64, means.threads, means.room)
        found = _compared(double, crowded, split, k, means, report)
        parts += found.parts + _one_by_one(double, found, split, k, means)
    return concatenated(parts)


def _silent(done: int) -> None:
    """Report nothing."""


def _in_vain(single: Operands, rows: Ints, split: int, k: int, means: Means) -> bool:
    """Tell whether single precision does not do for most of a few rows."""
    some = rows[:: -(-len(rows) // TRIAL)]
    return 2 * len(_compared(single, some, split, k, means, _silent).crowded) > len(some)


def _compared(
    operands: Operands, rows: Ints, split: int, k: int, means: Means, tick: Tick, heads: Heads | None = None
) -> Outcome:
    """Compare rows with all columns in the precision of the operands; as many at a time as memory allows."""
    each = Best.bytes(k, operands.kind) + (0 if heads is None else Best.bytes(AHEAD * k, operands.kind))
    most = max(1, means.memory // 4 // each // HIGH) * HIGH
    both = heads is None and not split and len(rows) == len(operands.space) and len(rows) <= most
    out = Outcome([], np.zeros(0, np.int64), np.zeros(0))
    for start in range(0, len(rows), most):
        best = Best(rows[start : start + most], k, operands)
        if both:
            _both_ways(best, means.threads, tick)
        else:
            _in_rounds(best, split, means.threads, tick, heads)
        cuts = [slice(first, first + HIGH) for first in range(0, len(best.rows), HIGH)]
        out.parts += in_order(best.settled, cuts, means.threads)
        out.crowded = np.concatenate([out.crowded, best.rows[best.crowded]])
        out.bounds = np.concatenate([out.bounds, best.bounds[best.crowded]])
    return out


def _in_rounds(best: Best, split: int, threads: int, tick: Tick, heads: Heads | None) -> None:
    """Compare the rows, in strips, with the next columns, and so on: a strip always sees its columns in order."""
    operands, rows = best.operands, best.rows
    n, width = len(operands.space), operands.width if heads is None else heads.width
    high = max(64, min(HIGH, -(-len(rows) // threads), PORTION // (WIDE * width))) if heads is None else STRIP
    wide = max(1, PORTION // (high * WIDE * width)) * WIDE
    passes: list[Callable[[Ints, Ints], None]] = [best.enter]
    if heads is not None:
        first = Best(rows, min(AHEAD * best.k, n - split), operands)
        passes = [partial(first.enter_promised, heads), partial(best.enter_promising, heads)]
    step = _evenly(tick, len(rows), len(passes) * -(-(n - split) // wide) * -(-len(rows) // high))

    def work(compare: Callable[[Ints, Ints], None], begin: int, start: int) -> None:
        at = np.arange(start, min(start + high, len(rows)))
        for column in range(begin, min(begin + wide, n), WIDE):
            compare(at, np.arange(column, min(column + WIDE, n)))

    for number, compare in enumerate(passes):
        if number:
            for _ in in_order(partial(_bounded, first, best), range(0, len(rows), high), threads):
                pass
        for begin in range(split, n, wide):
            for _ in in_order(partial(work, compare, begin), range(0, len(rows), high), threads):
                step()


def _bounded(first: Best, best: Best, start: int) -> None:
    """Bound what the rows are looking for by the columns that promise most."""
    cut, one = slice(start, start + STRIP), best.operands
    bound_by(
        one.table, one.terms, best.rows[cut], best.k, one.slack, one.doubt,
        first.counts[cut], first.columns[cut], best.bounds[cut],
    )  # fmt: skip


def _both_ways(best: Best, threads: int, tick: Tick) -> None:
    """Compare all rows with each other: a block of scores serves its rows and its columns."""
    operands, n = best.operands, len(best.rows)
    side = max(128, min(SQUARE, math.isqrt(PORTION // operands.width)))
    starts = range(0, n, side)
    locks = [threading.Lock() for _ in starts]
    tasks = [(row, row + gap) for gap in range(len(starts)) for row in range(len(starts) - gap)]
    step = _evenly(tick, n, len(tasks))
    state = best.arrays()

    def work(task: tuple[int, int]) -> None:
        row, column = task
        mine = operands.table[starts[row] : starts[row] + side]
        likeness = operands.likeness(mine, slice(starts[column], min(starts[column] + side, n)))
        with locks[row], locks[column] if row != column else nullcontext():
            choose_both(likeness, operands.terms, starts[column], starts[row], state)

    for _ in in_order(work, tasks, threads):
        step()


def _evenly(tick: Tick, rows: int, steps: int) -> Callable[[], None]:
    """Return a function to be called after each of the steps, which reports the rows evenly."""
    done = count(1)

    def step() -> None:
        at = next(done)
        if more := rows * at // steps - rows * (at - 1) // steps:
            tick(more)

    return step


def _one_by_one(operands: Operands, found: Outcome, split: int, k: int, means: Means) -> list[ScoredPairs]:
    """Return the k nearest of crowded rows, by the exact distances of all vectors whose scores may be low enough."""
    space, n = operands.space, len(operands.space)
    high = max(1, ALONE // (WIDE * (space.dimensions + 64)))
    parts = []
    for start in range(0, len(found.crowded), high):
        rows, bounds = found.crowded[start : start + high], found.bounds[start : start + high]
        near = in_order(partial(_nearest_within, operands, rows, bounds, k), range(split, n, WIDE), means.threads)
        left, right, closeness = best_first(*concatenated(list(near)), k)
        parts.append((left, right, -closeness))
    return parts


def _nearest_within(operands: Operands, rows: Ints, bounds: NDArray[Any], k: int, first: int) -> ScoredPairs:
    """Return the k nearest of rows in a block of columns, with negated distances, of those within bounds."""
    wide = min(WIDE, len(operands.space) - first)
    likeness = operands.likeness(operands.table[rows], slice(first, first + wide))
    left, right = np.empty(len(rows) * wide, np.int32), np.empty(len(rows) * wide, np.int32)
    begins = np.zeros(len(rows), np.int64)
    many = list_within(likeness, operands.terms, first, bounds, begins, np.zeros(1, np.int64), left, right)
    near, others = rows[left[:many]], right[:many] + np.int64(first)
    apart = near != others
    near, others = near[apart], others[apart]
    return best_first(near, others, -operands.space.distances(near, others), k)
