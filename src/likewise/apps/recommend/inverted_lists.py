"""Exact neighbours at low thresholds: overlaps are counted in inverted lists, one list of sets per element.

Similar customers share a fifth of what they bought; at such thresholds the prefixes of an exact join are nearly the
whole sets. Here memory is that of the input and of the result, however many sets share an element.
"""

from __future__ import annotations

import threading
from collections.abc import Iterator
from dataclasses import dataclass
from functools import cached_property
from pathlib import Path
from typing import IO, Any

import numpy as np
from numpy.typing import NDArray

from likewise.base.arrays import Ints, Sets
from likewise.base.memory import UNLIMITED
from likewise.base.parallel import in_order
from likewise.base.runlog import Tick
from likewise.io.disk import disk_errors, write_array
from likewise.io.workspace import Workspace
from likewise.kernels import counting as kernels
from likewise.search.exact.listing import Listing

ROOM = 1 << 20
"""Pairs that a thread finds before they are copied out of its buffers."""
MANY = 1 << 62
"""Visits of a search that is not limited."""
SORT_BYTES = 32
"""Bytes that a pair takes while all are sorted in memory."""
WORD = 63
"""Bits of an integer that can be sorted: two row numbers and an overlap are packed into it if they fit."""
CHUNK = 256
"""Sets that a thread processes at a time."""
ODD = np.uint64(0x9E3779B97F4A7C15)
"""Multiplier that spreads elements over the 64 bits of a bitmap: 2^64 divided by the golden ratio."""
Floats = NDArray[np.float64]
Whole = NDArray[np.integer[Any]]


@dataclass(frozen=True)
class SharedCounts:
    """Pairs of rows, the number of elements each pair shares, and the sizes of all sets, which give the similarity.

    summed: the union of two bags is their sum, not the maximum of the counts.
    """

    left: Whole
    right: Whole
    shared: Whole
    sizes: Ints
    summed: bool

    def __len__(self) -> int:
        return len(self.left)

    def part(self, part: slice) -> Floats:
        """Return the similarity of some of the pairs: Jaccard, or that of bags whose union is the sum.

        >>> SharedCounts(np.array([0]), np.array([1]), np.array([3]), np.array([4, 5]), True).part(slice(0, 1)).tolist()
        [0.3333333333333333]
        """
        both = self.sizes[self.left[part]] + self.sizes[self.right[part]]
        shared = self.shared[part]
        similarity: Floats = shared / (both if self.summed else both - shared)
        return similarity

    @property
    def similarity(self) -> Floats:
        """The similarity of all pairs."""
        return self.part(slice(None))


class InvertedLists:
    """Sets ordered by size, elements by frequency, and for each element the list of the sets that have it.

    Pairs that take more than `room` bytes are sorted, or kept, in files in the folder `spill`.
    """

    def __init__(self, sets: Sets, room: int = UNLIMITED.total, spill: Path | None = None) -> None:
        self._room, self._spill = room, spill
        self.all_sizes = sizes = sets.sizes
        filled = np.flatnonzero(sizes)
        self.rows: Ints = filled[np.argsort(sizes[filled], kind="stable")]
        number = np.zeros(len(sizes), np.int64)
        number[self.rows] = np.arange(len(self.rows))
        owners = np.repeat(number, sizes)
        _, elements, frequency = np.unique(sets.values, return_inverse=True, return_counts=True)
        rank = np.empty(len(frequency), np.int64)
        rank[np.argsort(frequency, kind="stable")] = np.arange(len(frequency))
        elements = rank[elements]
        count = max(1, len(frequency))
        by_set = np.argsort(owners * count + elements, kind="stable")
        self.values = elements[by_set].astype(np.int32)
        self.sizes = sizes[self.rows].astype(np.int32)
        self.offsets: Ints = np.concatenate([[0], np.cumsum(self.sizes)]).astype(np.int64)
        by_element = np.argsort(elements * max(1, len(self.rows)) + owners, kind="stable")
        self.members = owners[by_element].astype(np.int32)
        self.starts: Ints = np.concatenate([[0], np.cumsum(np.sort(frequency))]).astype(np.int64)
        self.first_of_size: Ints = np.searchsorted(self.sizes, np.arange(int(self.sizes.max(initial=0)) + 2))
        self.number = number
        self.cut = 0

    def __len__(self) -> int:
        return len(self.rows)

    @cached_property
    def maps(self) -> NDArray[np.uint64]:
        """One 64-bit bitmap per set: the bits of its elements; several elements may share a bit."""
        if not len(self):
            return np.zeros(0, np.uint64)
        bits = np.uint64(1) << ((self.values.astype(np.uint64) * ODD) >> np.uint64(58))
        maps: NDArray[np.uint64] = np.bitwise_or.reduceat(bits, self.offsets[:-1])
        return maps

    @property
    def meetings(self) -> float:
        """The number of times two sets are in the same list, counted in both directions: the work of counting."""
        return float((np.diff(self.starts).astype(float) ** 2).sum())

    @cached_property
    def _lists(self) -> kernels.SetLists:
        sets = self.values, self.offsets, self.starts, self.members, self.first_of_size
        return kernels.SetLists(self.rows, self.sizes, self.maps, *sets)

    def all_pairs(self, threshold: float, summed: bool, threads: int, tick: Tick, most: int) -> SharedCounts | None:
        """Return all pairs at or above the threshold, sorted; None if there are more than `most`."""
        bits = max(1, len(self.all_sizes) - 1).bit_length()
        below = int(self.sizes.max(initial=1)).bit_length()
        fits = 2 * bits + below <= WORD  # as for ten million sets of up to 32,767 elements
        space = Workspace.temporary(self._spill)
        listing: Listing | None = None
        parts: list[tuple[Any, ...]] = []
        total = 0
        try:
            for one, other, shared in self.pairs(threshold, summed, threads, tick):
                total += len(one)
                if total > most:
                    return None
                parts.append((np.minimum(one, other).astype(np.int32), np.maximum(one, other).astype(np.int32), shared))
                if listing is None and total * SORT_BYTES > self._room:
                    n = len(self.all_sizes)
                    listing = Listing(n, n, self._room, lambda: space.large)
                if listing is not None:
                    for left, right, shared in parts:
                        listing.add((left.astype(np.int64), right.astype(np.int64), shared.astype(np.float64)))
                    parts.clear()
            if listing is not None:
                table = listing.finish().table()
                left, right, shared = (column.to_numpy() for column in table.columns)
                return SharedCounts(left, right, shared, self.all_sizes, summed)
        finally:
            space.finish()
        return self._sorted(parts, fits, bits, below, summed)

    def _sorted(self, parts: list[tuple[Any, ...]], fits: bool, bits: int, below: int, summed: bool) -> SharedCounts:
        """Return these pairs, sorted; as packed integers if they fit, which is faster."""
        if not fits:
            left, right, shared = (_concatenated([part[i] for part in parts]) for i in range(3))
            order = np.lexsort((right, left))
            return SharedCounts(left[order], right[order], shared[order], self.all_sizes, summed)
        packed = _concatenated([
            left.astype(np.int64) << (bits + below) | right.astype(np.int64) << below | shared
            for left, right, shared in parts
        ])  # fmt: skip
        parts.clear()
        packed.sort()
        left = (packed >> (bits + below)).astype(np.int32)
        right = ((packed >> below) & ((1 << bits) - 1)).astype(np.int32)
        packed &= (1 << below) - 1
        return SharedCounts(left, right, packed.astype(np.int32), self.all_sizes, summed)

    def pairs(self, threshold: float, summed: bool, threads: int, tick: Tick) -> Iterator[tuple[Any, Any, Any]]:
        """Yield all pairs at or above the threshold in batches: two rows and the number of elements they share."""
        local = threading.local()
        pairs = max(ROOM, len(self))
        firsts = range(0, len(self), CHUNK)

        def work(first: int) -> list[tuple[Any, Any, Any]]:
            if not hasattr(local, "counts"):
                local.counts, local.touched = np.zeros(len(self), np.int32), np.empty(len(self), np.int32)
                local.out = tuple(np.empty(pairs, np.int32) for _ in range(3))
            x, last, parts = first, min(first + CHUNK, len(self)), []
            while x < last:
                room = local.counts, local.touched, *local.out
                x, found = kernels.count_pairs(x, last, self._lists, threshold, summed, *room)
                left, right, shared = (array[:found].copy() for array in local.out)
                parts.append((self.rows[left], self.rows[right], shared))
            return parts

        for first, parts in zip(firsts, in_order(work, firsts, threads), strict=True):
            tick(min(CHUNK, len(self) - first))
            yield from parts

    def best(
        self, rows: Ints, k: int, threshold: float, summed: bool, threads: int, tick: Tick, visits: int = MANY
    ) -> SharedCounts:
        """Return for each of these rows, in this order, the k most similar rows, best first, ties by row number.

        If the lists of a row's elements are longer than `visits`, only so many places of them are visited, those of the
        rarest elements first; `self.cut` counts these rows.
        """
        rows = rows[np.isin(rows, self.rows)]
        local, columns = threading.local(), PairColumns(self._room, self._spill)
        k = max(1, min(k, len(self)))

        def work(first: int) -> tuple[tuple[Any, ...], int, int]:
            if not hasattr(local, "counts"):
                local.counts, local.touched = np.zeros(len(self), np.int32), np.empty(len(self), np.int32)
                local.stamps = np.full(len(self), -1, np.int32)
            asked = rows[first : first + CHUNK]
            best = np.zeros((len(asked), k))
            best_rows, shared = np.zeros((len(asked), k), np.int64), np.zeros((len(asked), k), np.int64)
            found = np.zeros(len(asked), np.int64)
            room = local.counts, local.touched, local.stamps, best, best_rows, shared, found
            cut = kernels.best_partners(self.number[asked], self._lists, threshold, summed, visits, *room)
            held = np.arange(k) < found[:, None]
            return (np.repeat(asked, found), best_rows[held], shared[held]), cut, len(asked)

        for part, cut, done in in_order(work, range(0, len(rows), CHUNK), threads):
            self.cut += cut
            tick(done)
            columns.add(*part)
        return SharedCounts(*columns.finish(), self.all_sizes, summed)


class PairColumns:
    """Pairs in the order in which they are added: two rows and what they share; beyond `room` bytes, in files."""

    def __init__(self, room: int, spill: Path | None) -> None:
        self._room, self._space = room, Workspace.temporary(spill)
        self._parts: list[tuple[Ints, Ints, Ints]] = []
        self._files: list[IO[bytes]] = []
        self._held = 0

    def add(self, left: Ints, right: Ints, shared: Ints) -> None:
        """Append pairs."""
        self._parts.append((left.astype(np.int32), right.astype(np.int32), shared.astype(np.int32)))
        self._held += 3 * 4 * len(left)
        if self._held > self._room:
            self._write()

    def finish(self) -> tuple[Whole, Whole, Whole]:
        """Return the columns; those in files are mapped, and the files are gone with them."""
        if not self._files:
            left, right, shared = (_concatenated([part[i] for part in self._parts]) for i in range(3))
            return left, right, shared
        self._write()
        with disk_errors(self._space.large):
            for file in self._files:
                file.close()
            left, right, shared = (np.asarray(np.memmap(file.name, np.int32, "r")) for file in self._files)
        self._space.finish()
        return left, right, shared

    def _write(self) -> None:
        with disk_errors(self._space.large):
            if not self._files:
                self._files = [open(self._space.large / f"column-{i}", "wb") for i in range(3)]  # noqa: SIM115
            for part in self._parts:
                for file, column in zip(self._files, part, strict=True):
                    write_array(file, column)
        self._parts, self._held = [], 0


def _concatenated(parts: list[Any]) -> Any:
    return np.concatenate(parts) if parts else np.zeros(0, np.int64)
