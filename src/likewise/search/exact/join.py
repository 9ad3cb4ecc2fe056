"""Sets to pairs, no false negatives (MMDS §3.9): filters first, then the exact similarity of what they let through.

Sets are processed by size. Each is a probe against the smaller ones: the index of their prefixes yields those that
share one of its first symbols, the positions of the shared symbols and bitmaps of the sets rule most of them out, and
the rest are verified. An index that would not fit in memory is made in blocks.
"""

from __future__ import annotations

import threading
from collections.abc import Callable, Iterator
from dataclasses import dataclass, field
from functools import partial
from typing import TypeVar

import numpy as np

from likewise.base.arrays import Ints
from likewise.base.parallel import in_order
from likewise.kernels import overlap
from likewise.kernels import prefix_join as probing
from likewise.search.exact.bounds import Bounds
from likewise.search.exact.prefixes import JoinSide, Lengths, Postings, PrefixStrings, SymbolCounts, blocks
from likewise.search.scored import ScoredPairs

FILTERS = {"length": probing.LENGTH, "prefix": probing.PREFIX, "position": probing.POSITION, "suffix": probing.SUFFIX}
CHUNK = 1 << 12
"""Probes that a thread handles in one call."""
ROOM = 1 << 17
"""Candidates for which a thread has room; the kernel returns when they are full, and is called again."""
SYMBOL_BYTES = 40
"""Bytes that a symbol of the index takes: in its prefix, in the table of symbols, in its posting list."""
T = TypeVar("T")


@dataclass
class Facts:
    """The number of pairs that each filter let through: length, position, bitmap; and of index entries visited."""

    length: int = 0
    entries: int = 0
    position: int = 0
    bitmap: int = 0


@dataclass(frozen=True)
class Pass:
    """One side as probes, the other in the index: probe x is compared with the indexed sets from low[x] to high[x]."""

    probes: JoinSide
    probe_prefix: Ints
    indexed: JoinSide
    lengths: Lengths
    low: Ints
    high: Ints
    itself: Ints


def passes(
    a: JoinSide, b: JoinSide | None, bounds: Bounds, textbook: bool, times: int = 1
) -> Iterator[tuple[Pass, bool]]:
    """Yield the passes of a join, and whether the probes are of side b: a with itself, or a with b."""
    mine = Lengths.of(a.sizes, bounds, textbook, times)
    none = np.full(len(a), -1)
    if not bounds.symmetric:
        other = a if b is None else b
        theirs = Lengths.of(other.sizes, bounds, textbook, times)
        low = np.searchsorted(other.sizes, mine.shortest)
        itself = np.arange(len(a)) if b is None else none
        yield Pass(a, mine.probe, other, theirs, low, np.full(len(a), len(other)), itself), False
    elif b is None:
        low = np.searchsorted(a.sizes, mine.shortest)
        yield Pass(a, mine.probe, a, mine, low, np.arange(len(a)), none), False
    else:
        theirs = Lengths.of(b.sizes, bounds, textbook, times)
        low, high = np.searchsorted(b.sizes, mine.shortest), np.searchsorted(b.sizes, a.sizes, side="right")
        yield Pass(a, mine.probe, b, theirs, low, high, none), False
        low, high = np.searchsorted(a.sizes, theirs.shortest), np.searchsorted(a.sizes, b.sizes)
        yield Pass(b, theirs.probe, a, mine, low, high, np.full(len(b), -1)), True


@dataclass
class Join:
    """A join: the bounds, the filters (`index`), the number of threads, the memory of the index, and the statistics.

    Its work is a sequence of units of `chunk` probes. skip: units that were done before and are left out. position:
    the units whose pairs have all been yielded. most: verified pairs after which a join gives up, with `overflow` set.
    """

    bounds: Bounds
    counts: SymbolCounts
    index: str
    threads: int
    memory: int
    times: int = 2
    tick: Callable[[int], None] = lambda done: None
    facts: Facts = field(default_factory=Facts)
    skip: int = 0
    position: int = 0
    chunk: int = CHUNK
    most: int | None = None
    overflow: bool = False
    _found: int = 0
    _lock: threading.Lock = field(default_factory=threading.Lock, repr=False)

    def candidates(self, a: JoinSide, b: JoinSide | None = None) -> Iterator[tuple[Ints, Ints]]:
        """Yield the pairs that the filters let through, some at a time: numbers in a, and in b (or a)."""
        for task, swapped in passes(a, b, self.bounds, self.index != "auto", self.times if self.index == "auto" else 1):
            for left, right in self._run(task, lambda left, right: (left, right)):
                yield (right, left) if swapped else (left, right)

    def pairs(self, a: JoinSide, b: JoinSide | None = None) -> Iterator[ScoredPairs]:
        """Yield the pairs that reach the threshold with their similarity, some at a time."""
        for task, swapped in passes(a, b, self.bounds, self.index != "auto", self.times if self.index == "auto" else 1):
            for left, right, similarity in self._run(task, partial(self._compare, task)):
                yield (right, left, similarity) if swapped else (left, right, similarity)

    def _compare(self, task: Pass, left: Ints, right: Ints) -> ScoredPairs:
        """Verify these pairs, and keep those that reach the threshold."""
        scores = np.empty(len(left))
        probes, indexed = task.probes, task.indexed
        overlap.verify_overlap(
            left,
            right,
            probes.sets.values,
            probes.sets.offsets,
            probes.rows,
            indexed.sets.values,
            indexed.sets.offsets,
            indexed.rows,
            *self.bounds.code,
            scores,
        )
        found = scores >= 0
        if self.most is not None:
            with self._lock:
                self._found += int(found.sum())
                self.overflow = self._found > self.most
        return left[found], right[found], scores[found]

    def length_pairs(self, a: JoinSide, b: JoinSide | None = None) -> int:
        """Count the pairs that the sizes of the sets allow."""
        for task, _ in passes(a, b, self.bounds, textbook=True):
            self._count_lengths(task)
        return self.facts.length

    def _count_lengths(self, task: Pass) -> None:
        self.facts.length += int(np.maximum(task.high - task.low, 0).sum())
        if task.probes is task.indexed and not self.bounds.symmetric:
            self.facts.length -= len(task.probes)

    def _run(self, task: Pass, use: Callable[[Ints, Ints], T]) -> Iterator[T]:
        """Index the sets block by block, probe each block, and yield what `use` makes of the candidates."""
        self._count_lengths(task)
        if not len(task.probes) or not len(task.indexed):
            return
        busy = np.flatnonzero(task.high > task.low)
        begin, end = (int(task.low[busy].min()), int(task.high[busy].max())) if len(busy) else (0, 0)
        prefix = np.maximum(task.lengths.probe, task.lengths.index)
        for start, stop in blocks(prefix, begin, end, max(1, self.memory // SYMBOL_BYTES)):
            yield from self._block(task, start, stop, use)

    def _block(self, task: Pass, start: int, stop: int, use: Callable[[Ints, Ints], T]) -> Iterator[T]:
        same = (
            task.probes is task.indexed and self.bounds.symmetric
        )  # then the prefix of a probe contains the indexed one
        prefix = task.probe_prefix if same else task.lengths.index
        low, high = np.maximum(task.low, start) - start, np.minimum(task.high, stop) - start
        busy = np.flatnonzero(high > low)
        units = range(int(busy[0]), int(busy[-1]) + 1, self.chunk) if len(busy) else range(0)
        done = max(0, min(len(units), self.skip - self.position))
        self.position += done
        self.tick(done * self.chunk)
        if done == len(units):
            return
        written = task.indexed.all_strings(start, stop, prefix, self.counts, self.threads)
        kinds, places = np.unique(task.indexed.sizes[start:stop], return_inverse=True)
        class_starts = np.searchsorted(places, np.arange(len(kinds) + 1))
        classes = places.astype(np.int32)
        lists = Postings(written, task.lengths.index[start:stop], classes, kinds)
        maps = task.indexed.maps[start:stop]
        itself = task.itself - start
        local = threading.local()

        def strings_of(first: int, last: int) -> PrefixStrings:
            if same and first >= start and last <= stop:
                return written.cut(first - start, last - start)
            return task.probes.strings(first, last, task.probe_prefix, self.counts)

        def work(first: int) -> tuple[list[T], Facts]:
            last = min(first + self.chunk, int(busy[-1]) + 1)
            if not hasattr(local, "seen"):
                local.seen = np.zeros(stop - start, np.int8)
                room = ROOM + stop - start  # the candidates of one more probe must fit
                local.left, local.right = np.empty(room, np.int32), np.empty(room, np.int32)
            text = strings_of(first, last)
            numbers = lists.look_up(text.symbols)
            part = slice(first, last)
            here = (text.positions, text.offsets, task.probes.sizes[part], low[part], high[part], itself[part])
            there = (lists.starts, lists.sets, lists.rests, lists.classes, classes, kinds)
            facts = Facts()
            out: list[T] = []
            x = 0
            while x < last - first and not self.overflow:
                tally = np.zeros(3, np.int64)
                if self.index == "auto":
                    x = probing.probe(
                        x,
                        numbers,
                        *here,
                        *there,
                        class_starts,
                        *self.bounds.code,
                        self.times,
                        task.probes.maps[part],
                        maps,
                        local.seen,
                        local.left,
                        local.right,
                        tally,
                    )
                else:
                    x = probing.meet(
                        FILTERS[self.index],
                        x,
                        numbers,
                        *here,
                        *there,
                        *self.bounds.code,
                        local.seen,
                        local.left,
                        local.right,
                        tally,
                    )
                count = int(tally[0])
                facts.bitmap += count
                facts.entries += int(tally[1])
                facts.position += int(tally[2])
                if count:
                    out.append(
                        use(local.left[:count].astype(np.int64) + first, local.right[:count].astype(np.int64) + start)
                    )
            return out, facts

        for out, facts in in_order(work, units[done:], self.threads):
            self.facts.entries += facts.entries
            self.facts.position += facts.position
            self.facts.bitmap += facts.bitmap
            yield from out
            self.position += 1
            self.tick(self.chunk)
