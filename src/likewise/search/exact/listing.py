"""All similar pairs, sorted, or the k best of every set: in memory as long as they fit, and otherwise in files.

Pairs arrive in any order. What does not fit in memory is written in sorted runs. In the end, the pairs of a range of
rows are taken from all runs, sorted, and appended to the final columns, range after range.
"""

from __future__ import annotations

import mmap
import os
import shutil
import weakref
from collections.abc import Callable, Iterator
from contextlib import ExitStack
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa

from likewise.base.arrays import Hashes, Ints, to_arrow
from likewise.base.copies import Groups
from likewise.errors import OutputError
from likewise.io.disk import disk_errors, write_array
from likewise.kernels.pairs import offer
from likewise.search.expand import row_pairs
from likewise.search.scored import ScoredPairs, Scores, best_first, concatenated, no_pairs, packed, pair_order, unpacked

PAIR_BYTES = 64
"""Bytes that a pair takes in memory while it is sorted."""
RUN_BYTES, FINAL_BYTES = 16, 24
"""Bytes that a pair takes on disk, in a run and in the final columns."""
LEAST_HELD = 1 << 16
"""As many pairs are held in memory however little there is: 4 MiB of them."""
MARK = 1 << 10
"""One pair in 1,024 of a run stays in memory, to find the pairs of a range of rows with one look at the file."""
ENTRY_BYTES = 16
"""Bytes of a partner among the k best: its number and its similarity."""
BLOCK = 1 << 20
"""Pairs looked at a time for those below a similarity; all pairs may be more than fit in memory."""
COLUMNS = ("id_a", "id_b", "similarity")


@dataclass(frozen=True)
class HeldPairs:
    """Pairs of rows and their similarities, sorted, in memory."""

    left: Ints
    right: Ints
    similarity: Scores

    def __len__(self) -> int:
        return len(self.left)

    def part(self, part: slice) -> ScoredPairs:
        """Cut the arrays."""
        return self.left[part], self.right[part], self.similarity[part]

    def table(self) -> Any:
        """Return a table of the arrays."""
        columns = zip(COLUMNS, (self.left, self.right, self.similarity), strict=True)
        return pa.table({name: to_arrow(column) for name, column in columns})


class StoredPairs:
    """Sorted pairs in three files, one a column, which may be unlinked while open; a table of them is mapped."""

    def __init__(self, paths: list[Path], length: int) -> None:
        self._columns = [os.open(path, os.O_RDONLY) for path in paths]
        self._length = length
        for column in self._columns:
            weakref.finalize(self, os.close, column)

    def __len__(self) -> int:
        return self._length

    def part(self, part: slice) -> ScoredPairs:
        """Read some of the pairs."""
        size = 8 * (part.stop - part.start)
        left, right, similarity = (os.pread(column, size, 8 * part.start) for column in self._columns)
        return np.frombuffer(left, np.int64), np.frombuffer(right, np.int64), np.frombuffer(similarity, np.float64)

    def table(self) -> Any:
        """Return a table whose columns are the mapped files."""
        columns = {}
        for name, column in zip(COLUMNS, self._columns, strict=True):
            kind = pa.float64() if name == "similarity" else pa.int64()
            content = pa.py_buffer(mmap.mmap(column, 0, access=mmap.ACCESS_READ))
            columns[name] = pa.Array.from_buffers(kind, self._length, [None, content])
        return pa.table(columns)


PairList = HeldPairs | StoredPairs


class Listing:
    """Collects pairs of rows, those of the left side below n and those of the right side below m."""

    def __init__(self, n: int, m: int, memory: int, folder: Callable[[], Path]) -> None:
        self.most = max(LEAST_HELD, memory // PAIR_BYTES)
        self._n, self._m, self._folder = n, m, folder
        self._place: Path | None = None
        self._parts: list[ScoredPairs] = []
        self._held, self._total, self._runs = 0, 0, 0
        self._marks: list[Hashes] = []
        self._lengths: list[int] = []
        self._counts: Ints = np.zeros(0, np.int64)

    def add_groups(self, pairs: ScoredPairs, here: Groups, there: Groups | None, symmetric: bool) -> None:
        """Add the pairs of the rows of paired groups; see `row_pairs`."""
        counts = _row_counts(pairs, here, there, symmetric)
        self._check_room(float(counts.sum(dtype=np.float64)))
        for part in _expanded(pairs, counts, here, there, symmetric, self.most):
            self.add(part)

    def add(self, pairs: ScoredPairs) -> None:
        """Add pairs of rows."""
        self._parts.append(pairs)
        self._held += len(pairs[0])
        self._total += len(pairs[0])
        if self._held > self.most:
            self._write_run()

    def finish(self) -> PairList:
        """Return all pairs."""
        if not self._runs:
            return HeldPairs(*self._sorted())
        self._write_run()
        with disk_errors(self._where):
            paths = [self._where / name for name in COLUMNS]
            with ExitStack() as stack:
                files = [stack.enter_context(open(path, "wb")) for path in paths]
                for part in self._ranges():
                    for file, column in zip(files, part, strict=True):
                        write_array(file, column)
            for number in range(self._runs):
                for name in ("words", "scores"):
                    (self._where / f"{name}-{number}").unlink()
            return StoredPairs(paths, self._total)

    @property
    def _where(self) -> Path:
        if self._place is None:
            self._place = self._folder()
        return self._place

    def _sorted(self) -> ScoredPairs:
        left, right, similarity = concatenated(self._parts)
        self._parts, self._held = [], 0
        order = pair_order(left, right, max(2, self._n), max(2, self._m))
        return left[order], right[order], similarity[order]

    def _write_run(self) -> None:
        if not self._held:
            return
        self._check_room(0)
        left, right, similarity = self._sorted()
        counts = np.bincount(left, minlength=self._n)
        self._counts = counts + self._counts if self._runs else counts
        with disk_errors(self._where):
            words = packed(left, right)
            self._marks.append(words[::MARK].copy())
            self._lengths.append(len(words))
            for name, values in (("words", words), ("scores", similarity)):
                with open(self._where / f"{name}-{self._runs}", "wb") as out:
                    write_array(out, values)
        self._runs += 1

    def _ranges(self) -> Iterator[ScoredPairs]:
        """Yield the pairs of ranges of rows, sorted, from the first range to the last."""
        ends = np.cumsum(self._counts)
        low, starts = 0, [0] * self._runs
        while low < self._n:
            before = int(ends[low - 1]) if low else 0
            high = max(low + 1, int(np.searchsorted(ends, before + self.most, side="right")))
            stops = [self._first_from(number, high) for number in range(self._runs)]
            yield self._range(list(zip(starts, stops, strict=True)))
            low, starts = high, stops

    def _first_from(self, number: int, row: int) -> int:
        """Return the place of the first pair of a run whose left row is not below this one."""
        word, length = np.uint64(row) << np.uint64(32), self._lengths[number]
        start = MARK * max(0, int(np.searchsorted(self._marks[number], word)) - 1)
        some = _read(self._where / f"words-{number}", np.uint64, start, min(start + MARK, length))
        return start + int(np.searchsorted(some, word))

    def _range(self, cuts: list[tuple[int, int]]) -> ScoredPairs:
        words, scores = [], []
        for number, (start, stop) in enumerate(cuts):
            words.append(_read(self._where / f"words-{number}", np.uint64, start, stop))
            scores.append(_read(self._where / f"scores-{number}", np.float64, start, stop))
        together: Hashes = np.concatenate(words)
        order = np.argsort(together, kind="stable")
        left, right = unpacked(together[order])
        return left, right, np.concatenate(scores)[order]

    def _check_room(self, more: float) -> None:
        """Raise if the pairs so far and this many more fit neither in memory nor on disk."""
        if self._held + more <= self.most and not self._runs:
            return
        free = shutil.disk_usage(self._where).free
        if (self._held + more) * RUN_BYTES + (self._total + more) * FINAL_BYTES > free:
            raise OutputError(
                f"{self._where.parent}: {self._total + more:,.0f} pairs or more are similar, and the disk has no room"
                f" for them ({free / 1e9:.1f} GB are free); raise the threshold, list only the most similar of each"
                " with k, or name another disk with --spill"
            )


class BestPartners:
    """The k best partners of each of `rows` sets; ties go to the lower number.

    Heaps that take more than `room` bytes are in a file in a folder, if one is given.
    """

    def __init__(self, rows: int, k: int, room: int = 0, folder: Callable[[], Path] | None = None) -> None:
        self._counts = np.zeros(rows, np.int64)
        self.floors: Scores = np.zeros(rows)
        self._best: Scores
        self._partners: Ints
        if folder is None or ENTRY_BYTES * rows * k <= room:
            self._best, self._partners = np.empty((rows, k)), np.empty((rows, k), np.int64)
        else:
            place = folder()
            self._best = np.asarray(np.memmap(place / "best", np.float64, "w+", shape=(rows, k)))
            self._partners = np.asarray(np.memmap(place / "partners", np.int64, "w+", shape=(rows, k)))

    def offer(self, rows: Ints, partners: Ints, scores: Scores) -> None:
        """Keep those of these pairs that are among the k best of their row so far."""
        offer(rows, partners, scores, self._best, self._partners, self._counts, self.floors)

    def pairs(self) -> ScoredPairs:
        """Return the pairs that are kept, by row, in no particular order within a row."""
        rows = np.repeat(np.arange(len(self._counts)), self._counts)
        filled = np.arange(self._best.shape[1]) < self._counts[:, None]
        return rows, self._partners[filled], self._best[filled]


def _read(path: Path, kind: Any, start: int, stop: int) -> Any:
    return np.fromfile(path, kind, stop - start, offset=start * 8)


def _row_counts(pairs: ScoredPairs, here: Groups, there: Groups | None, symmetric: bool) -> Ints:
    """Return the number of pairs of rows of each pair of groups."""
    left, right, _ = pairs
    counts: Ints = here.sizes[left] * (here if there is None else there).sizes[right]
    if there is None:
        own = left == right
        counts[own] = (counts[own] - here.sizes[left[own]]) // (2 if symmetric else 1)
    return counts


def _expanded(
    pairs: ScoredPairs, counts: Ints, here: Groups, there: Groups | None, symmetric: bool, most: int
) -> Iterator[ScoredPairs]:
    """Yield the pairs of rows of paired groups, at most `most` at a time if no row has more partners."""
    left, right, similarity = pairs
    ends = np.cumsum(counts)
    low = 0
    while low < len(left):
        before = int(ends[low - 1]) if low else 0
        high = int(np.searchsorted(ends, before + most, side="right"))
        if high > low:
            part = slice(low, high)
            yield row_pairs((left[part], right[part], similarity[part]), here, there, symmetric)
            low = high
            continue
        yield from _large(int(left[low]), int(right[low]), similarity[low], here, there, symmetric, most)
        low += 1


def _large(
    a: int, b: int, similarity: float, here: Groups, there: Groups | None, symmetric: bool, most: int
) -> Iterator[ScoredPairs]:
    """Yield the pairs of rows of two large groups, some rows of the first at a time."""
    others = here if there is None else there
    rows = here.members[here.offsets[a] : here.offsets[a + 1]]
    partners = others.members[others.offsets[b] : others.offsets[b + 1]]
    step = max(1, most // len(partners))
    for start in range(0, len(rows), step):
        some = rows[start : start + step]
        left, right = np.repeat(some, len(partners)), np.tile(partners, len(some))
        if there is None and a == b:
            wanted = left < right if symmetric else left != right
            left, right = left[wanted], right[wanted]
        elif there is None and symmetric:
            left, right = np.minimum(left, right), np.maximum(left, right)
        yield left, right, np.full(len(left), similarity)


def pairs_below(found: PairList, below: float, k: int | None, both: bool) -> HeldPairs:
    """Return the pairs with a similarity below this, or the k best of every item; `both`: of both sides of a pair."""
    parts = []
    for start in range(0, len(found), BLOCK):
        left, right, similarity = found.part(slice(start, min(start + BLOCK, len(found))))
        kept = similarity < below
        parts.append((left[kept], right[kept], similarity[kept]))
    left, right, similarity = concatenated([no_pairs(), *parts])
    if k is None:
        return HeldPairs(left, right, similarity)
    if both:
        left, right = np.concatenate([left, right]), np.concatenate([right, left])
        similarity = np.concatenate([similarity, similarity])
    return HeldPairs(*best_first(left, right, similarity, k))
