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
from likewise.search.exact.bounds import FILTERS, Bounds
from likewise.search.exact.prefixes import JoinSide, Lengths, Numbers, Postings, PrefixStrings, SymbolCounts, blocks
from likewise.search.scored import ScoredPairs, Scores

CHUNK = 1 << 12
"""The most probes that a thread handles in one call; they are fewer where each has many partners."""
STRETCH = 1 << 16
"""Probes of a unit of work, after which what was found can be committed."""
PORTION = 1 << 19
"""A call ends when it has this many candidates: some 20 MB of them, and every thread has those of a call or two."""
ROOM = 1 << 17
"""Candidates for which a thread has room; the kernel returns when they are full, and is called again."""
SYMBOL_BYTES = 40
"""Bytes that a symbol of the index takes: in its prefix, in the table of symbols, in its posting list."""
NO_FLOORS: Scores = np.zeros(0)
"""Stands for the floors of a join that yields all pairs."""
T = TypeVar("T")
Block = tuple[int, int, Ints]
"""Sets to index together, from start to stop, and the probes to compare them with."""


@dataclass
class Facts:
    """The number of pairs that each filter let through: length, position, bitmap; and of index entries visited.

    probes: how many sets were probes.
    """

    length: int = 0
    entries: int = 0
    position: int = 0
    bitmap: int = 0
    probes: int = 0

    def add(self, entries: int, position: int, bitmap: int) -> None:
        """Count what more probes have visited and let through."""
        self.entries += entries
        self.position += position
        self.bitmap += bitmap


@dataclass(frozen=True)
class Pass:
    """One side as probes, the other in the index: probe x is compared with the indexed sets from low[x] to high[x].

    `swapped`: the probes are of the second side of the join.
    """

    probes: JoinSide
    probe_prefix: Ints
    indexed: JoinSide
    lengths: Lengths
    low: Ints
    high: Ints
    itself: Ints
    swapped: bool = False

    def blocks(self, memory: int) -> Iterator[Block]:
        """Yield the blocks of an index that fits in memory."""
        busy = np.flatnonzero(self.high > self.low)
        if not len(busy):
            return
        prefix = np.maximum(self.lengths.probe, self.lengths.index)
        begin, end = int(self.low[busy].min()), int(self.high[busy].max())
        for start, stop in blocks(prefix, begin, end, max(1, memory // SYMBOL_BYTES)):
            probes = np.flatnonzero(np.minimum(self.high, stop) > np.maximum(self.low, start))
            if len(probes):
                yield start, stop, probes


def passes(a: JoinSide, b: JoinSide | None, bounds: Bounds, textbook: bool, times: int = 1) -> Iterator[Pass]:
    """Yield the passes of a join: a with itself, or a with b."""
    mine = Lengths.of(a.sizes, bounds, textbook, times)
    none = np.full(len(a), -1)
    if not bounds.symmetric:
        other = a if b is None else b
        theirs = Lengths.of(other.sizes, bounds, textbook, times)
        low = np.searchsorted(other.sizes, mine.shortest)
        yield Pass(a, mine.probe, other, theirs, low, np.full(len(a), len(other)), _itself(a, other))
    elif b is None:
        low = np.searchsorted(a.sizes, mine.shortest)
        yield Pass(a, mine.probe, a, mine, low, np.arange(len(a)), none)
    else:
        theirs = Lengths.of(b.sizes, bounds, textbook, times)
        low, high = np.searchsorted(b.sizes, mine.shortest), np.searchsorted(b.sizes, a.sizes, side="right")
        yield Pass(a, mine.probe, b, theirs, low, high, none)
        low, high = np.searchsorted(a.sizes, theirs.shortest), np.searchsorted(a.sizes, b.sizes)
        yield Pass(b, theirs.probe, a, mine, low, high, np.full(len(b), -1), swapped=True)


def _itself(a: JoinSide, b: JoinSide) -> Ints:
    """Return the place of each set of a in b, -1 if it is not there: a set that is on both sides is no pair."""
    if not len(b) or a.sets is not b.sets:
        return np.full(len(a), -1)
    order = np.argsort(b.rows)
    place = order[np.minimum(np.searchsorted(b.rows, a.rows, sorter=order), len(b) - 1)]
    found: Ints = np.where(b.rows[place] == a.rows, place, -1)
    return found


@dataclass
class Join:
    """A join: the bounds, the filters (`index`), the number of threads, the memory of the index, and the statistics.

    tick: called with the number of sets just done; the numbers of a join add up to the number of its sets, and grow
    with the work, which is least for small sets. floors: for each set of either side the similarity below which a pair
    is of no use to it; they may rise while the join runs, and if only the `best` so many pairs of a set are of use,
    they rise by themselves. Pairs of no use to both of their sets may be left out.
    The work is a sequence of units, `stretch` probes of one block of the index each. skip: units that were done before
    and are left out. position: the units whose pairs have all been yielded. most: verified pairs after which a join
    gives up, with `overflow` set.
    """

    bounds: Bounds
    counts: SymbolCounts
    index: str
    threads: int
    memory: int
    times: int = 2
    tick: Callable[[int], None] = lambda done: None
    facts: Facts = field(default_factory=Facts)
    floors: tuple[Scores, Scores] = NO_FLOORS, NO_FLOORS
    best: int = 0
    stretch: int = STRETCH
    skip: int = 0
    position: int = 0
    most: int | None = None
    overflow: bool = False
    _found: int = 0
    _lock: threading.Lock = field(default_factory=threading.Lock, repr=False)

    def candidates(self, a: JoinSide, b: JoinSide | None = None) -> Iterator[tuple[Ints, Ints]]:
        """Yield the pairs that the filters let through, some at a time: numbers in a, and in b (or a)."""
        for task, (left, right) in self._run(a, b, lambda task, left, right, most: (task, (left, right))):
            yield (right, left) if task.swapped else (left, right)

    def pairs(self, a: JoinSide, b: JoinSide | None = None) -> Iterator[ScoredPairs]:
        """Yield the pairs that reach the threshold with their similarity, some at a time."""
        for task, (left, right, similarity) in self._run(a, b, self._compare):
            yield (right, left, similarity) if task.swapped else (left, right, similarity)

    def _floors(self, task: Pass) -> tuple[Scores, Scores]:
        """Return the floors of the probes and of the indexed sets."""
        return self.floors[::-1] if task.swapped else self.floors

    def _compare(self, task: Pass, left: Ints, right: Ints, most: Numbers) -> tuple[Pass, ScoredPairs]:
        """Verify these pairs, and keep those that reach the threshold; most: what they share at most, if known."""
        scores = np.empty(len(left))
        sides = ((side.sets.values, side.sets.offsets, side.rows) for side in (task.probes, task.indexed))
        overlap.verify_overlap(left, right, *sides, self.bounds.code, self._floors(task), self.best, most, scores)
        found = scores >= 0
        if self.most is not None:
            with self._lock:
                self._found += int(found.sum())
                self.overflow = self._found > self.most
        return task, (left[found], right[found], scores[found])

    def length_pairs(self, a: JoinSide, b: JoinSide | None = None) -> int:
        """Count the pairs that the sizes of the sets allow."""
        for task in passes(a, b, self.bounds, textbook=True):
            self._count_lengths(task)
        return self.facts.length

    def _count_lengths(self, task: Pass) -> None:
        self.facts.length += int(np.maximum(task.high - task.low, 0).sum())
        self.facts.length -= int((task.itself >= 0).sum())

    def _run(self, a: JoinSide, b: JoinSide | None, use: Callable[[Pass, Ints, Ints, Numbers], T]) -> Iterator[T]:
        """Index the sets block by block, probe each block, and yield what `use` makes of the candidates."""
        auto = self.index == "auto"
        tasks = list(passes(a, b, self.bounds, not auto, self.times if auto else 1))
        work = sum(int(task.probe_prefix[probes].sum()) for task in tasks for *_, probes in task.blocks(self.memory))
        progress = _Progress(self.tick, len(a) + (0 if b is None else len(b)), work)
        for task in tasks:
            self._count_lengths(task)
            for block in task.blocks(self.memory):
                yield from self._block(task, block, use, progress)
        progress.finish()

    def _block(
        self, task: Pass, block: Block, use: Callable[[Pass, Ints, Ints, Numbers], T], progress: _Progress
    ) -> Iterator[T]:
        start, stop, busy = block
        units = [busy[i : i + self.stretch] for i in range(0, len(busy), self.stretch)]
        skipped = max(0, min(len(units), self.skip - self.position))
        self.position += skipped
        progress.done(sum(int(task.probe_prefix[unit].sum()) for unit in units[:skipped]))
        if skipped == len(units):
            return
        same = task.probes is task.indexed and self.bounds.symmetric  # then prefixes of probes contain the indexed ones
        prefix = task.probe_prefix if same else task.lengths.index
        written = task.indexed.all_strings(start, stop, prefix, self.counts, self.threads)
        low, high = np.maximum(task.low, start) - start, np.minimum(task.high, stop) - start
        kinds, of_kind = np.unique(task.indexed.sizes[start:stop], return_inverse=True)
        class_starts = np.searchsorted(of_kind, np.arange(len(kinds) + 1))
        classes = of_kind.astype(np.int32)
        lists = Postings(written, task.lengths.index[start:stop], classes, kinds)
        itself = task.itself - start
        probe_floors, floors = self._floors(task)
        entries = lists.starts, lists.sets, lists.rests, lists.classes
        maps = task.indexed.maps[start:stop]
        index = probing.PrefixIndex(*entries, classes, kinds, class_starts, maps, floors[start:stop])
        auto = self.index == "auto"
        local = threading.local()

        def strings_of(first: int, last: int) -> PrefixStrings:
            if same and first >= start and last <= stop:
                return written.cut(first - start, last - start)
            return task.probes.strings(first, last, task.probe_prefix, self.counts)

        def work(chunk: tuple[int, int], chunks: _Chunks) -> tuple[list[T], Facts, int]:
            """Find the candidates of the first probes of a chunk, of all unless there are many."""
            first, last = chunk
            if not hasattr(local, "seen"):
                local.seen = np.zeros(stop - start, np.int8)
                most = ROOM + stop - start  # the candidates of one more probe must fit
                local.left, local.right, local.most = (np.empty(most, np.int32) for _ in range(3))
            text = strings_of(first, last)
            part = slice(first, last)
            met = low[part], high[part], itself[part], task.probes.maps[part], probe_floors[part]
            strings = lists.look_up(text.symbols), text.positions, text.offsets
            probes = probing.Probes(*strings, task.probes.sizes[part], *met)
            facts = Facts()
            out: list[T] = []
            x = 0
            while x < last - first and facts.bitmap < PORTION and not self.overflow:
                tally = np.zeros(4, np.int64)
                pairs = probing.JoinRoom(local.seen, local.left, local.right, local.most, tally)
                if auto:
                    x = probing.probe(x, probes, index, self.bounds.code, self.times, pairs)
                else:
                    x = probing.meet(FILTERS[self.index], x, probes, index, self.bounds.code, pairs)
                count, entries, position, bitmap = tally.tolist()
                facts.add(entries, position, bitmap)
                if count:
                    left, right = (side[:count].astype(np.int64) for side in (local.left, local.right))
                    out.append(use(task, left + first, right + start, local.most[: count if auto else 0]))
            facts.probes = x
            if x < last - first and not self.overflow:
                chunks.give_back(first + x, last)
            done = slice(*np.searchsorted(busy, (first, first + x)))
            return out, facts, int(task.probe_prefix[busy[done]].sum())

        for unit in units[skipped:]:
            chunks = _Chunks(int(unit[0]), int(unit[-1]) + 1)
            while chunks.left:
                for out, facts, done in in_order(partial(work, chunks=chunks), chunks, self.threads):
                    chunks.saw(facts)
                    self.facts.add(facts.entries, facts.position, facts.bitmap)
                    yield from out
                    progress.done(done)
            self.position += 1


class _Chunks:
    """Cuts the probes from `start` to `stop` into chunks, smaller ones where the last had many candidates."""

    def __init__(self, start: int, stop: int) -> None:
        self._ranges = [(start, stop)]
        self._size = min(CHUNK, 1 << 8)

    def __iter__(self) -> Iterator[tuple[int, int]]:
        while self._ranges:
            first, stop = self._ranges.pop()
            middle = min(first + self._size, stop)
            if middle < stop:
                self._ranges.append((middle, stop))
            yield first, middle

    @property
    def left(self) -> bool:
        """True if there are more."""
        return bool(self._ranges)

    def give_back(self, start: int, stop: int) -> None:
        """Take back the rest of a chunk."""
        self._ranges.append((start, stop))

    def saw(self, facts: Facts) -> None:
        """Take note of a chunk that is done."""
        fitting = PORTION * facts.probes // max(1, facts.bitmap)
        self._size = max(1, min(CHUNK, 2 * self._size, fitting))


class _Progress:
    """Turns work into items done, so that the share of the items is that of the work."""

    def __init__(self, tick: Callable[[int], None], items: int, work: int) -> None:
        self._tick, self._items, self._work = tick, items, max(1, work)
        self._so_far, self._ticked = 0, 0

    def done(self, work: int) -> None:
        """Note that some work is done."""
        self._so_far += work
        self._upto(self._items * self._so_far // self._work)

    def finish(self) -> None:
        """Note that everything is done."""
        self._upto(self._items)

    def _upto(self, items: int) -> None:
        if items > self._ticked:
            self._tick(items - self._ticked)
            self._ticked = items
