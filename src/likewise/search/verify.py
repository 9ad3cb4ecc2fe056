"""Candidate pairs to verified pairs: the exact Jaccard similarity of the sets, and nothing below the threshold.

Where the sets of all candidates do not fit in memory, they are written to disk in blocks, and every pair of blocks that
shares candidates is verified at a time.
"""

from __future__ import annotations

import shutil
from collections.abc import Callable, Iterator
from dataclasses import dataclass, field
from itertools import pairwise
from pathlib import Path

import numpy as np

from likewise.base.arrays import Hashes, Ints, Sets, concatenate, map_words
from likewise.base.parallel import in_order
from likewise.base.runlog import Tick
from likewise.io.disk import write_array
from likewise.kernels.graph import components
from likewise.kernels.sets import bitmaps, verify
from likewise.search.exact.bounds import least_fraction
from likewise.search.items import Items
from likewise.search.scored import ScoredPairs, Scores

BATCH = 1 << 16
"""Pairs that a thread verifies in one call."""
SETS = 1 << 12
"""Sets whose bitmaps a thread makes in one call."""


def similarities(
    left: Ints,
    right: Ints,
    sets: Sets,
    threshold: float,
    threads: int,
    tick: Tick = lambda done: None,
) -> Scores:
    """Return the similarity of every pair of sets, -1 if it is below the threshold; pairs are sorted by `left`."""
    out = np.empty(len(left), np.float64)
    mean = len(sets.values) / max(1, len(sets))
    maps = np.empty((len(sets), map_words(mean)), np.uint64)

    def draw(start: int) -> None:
        part = slice(start, start + SETS)
        bitmaps(sets.values, sets.offsets[start : start + SETS + 1], maps[part])

    for _ in in_order(draw, range(0, len(sets), SETS), threads):
        pass

    p, q = least_fraction(threshold)

    def check(cut: slice) -> int:
        verify(left[cut], right[cut], sets.values, sets.offsets, maps, p, q, out[cut])
        return len(out[cut])

    cuts = [slice(start, start + BATCH) for start in range(0, len(left), BATCH)]
    for done in in_order(check, cuts, threads):
        tick(done)
    return out


def compare(
    items: Items,
    rows: Ints,
    left: Ints,
    right: Ints,
    threshold: float,
    threads: int,
    limit: int,
    folder: Callable[[], Path],
    tick: Tick = lambda done: None,
) -> ScoredPairs:
    """Return the pairs that reach the threshold, with their exact similarity.

    rows: the rows of items; left and right are numbers in it, sorted. limit: the bytes of sets to hold in memory; more
    are written to folder().
    """
    involved = np.zeros(len(rows), bool)
    involved[left] = True
    involved[right] = True
    place = np.cumsum(involved) - 1
    needed = rows[involved]
    size = items.set_bytes(needed)
    a, b = place[left], place[right]
    if int(size.sum()) <= limit:
        scores = similarities(a, b, items.sets(needed, threads), threshold, threads, tick)
    else:
        scores = _by_blocks(items, needed, size, a, b, threshold, threads, limit // 2, folder(), tick)
    found = scores >= 0
    return left[found], right[found], scores[found]


def blocks_of(n: int, left: Ints, right: Ints, size: Ints, limit: int) -> Ints:
    """Assign each of n items to a block of about `limit` bytes; connected items share one if they fit."""
    labels = components(n, left, right)
    order = np.argsort(labels, kind="stable")
    total = np.cumsum(size[order]) - size[order]
    new = np.concatenate([[True], np.diff(labels[order]) != 0])
    part = np.cumsum(new) - 1
    begin = total[new]
    whole = np.diff(np.append(begin, total[-1] + size[order[-1]]))
    rough = np.where(whole[part] <= limit, begin[part], total) // max(1, limit)
    blocks = np.empty(n, np.int64)
    blocks[order] = np.unique(rough, return_inverse=True)[1]
    return blocks


@dataclass
class _SetBlock:
    """The sets of some items in a file, in ascending order of the items; up to `room` bytes of them wait in memory."""

    path: Path
    room: int
    sizes: list[Ints] = field(default_factory=list)
    waiting: list[Hashes] = field(default_factory=list)
    bytes: int = 0

    def add(self, sizes: Ints, values: Hashes) -> None:
        self.sizes.append(sizes)
        self.waiting.append(values)
        self.bytes += values.nbytes
        if self.bytes > self.room:
            self.write()

    def write(self) -> None:
        with open(self.path, "ab") as out:
            for values in self.waiting:
                write_array(out, values)
        self.waiting.clear()
        self.bytes = 0

    def load(self) -> Sets:
        sizes = np.concatenate(self.sizes)
        offsets = np.concatenate([[0], np.cumsum(sizes)]).astype(np.int64)
        return Sets(np.fromfile(self.path, np.uint64), offsets)


def _by_blocks(
    items: Items,
    rows: Ints,
    size: Ints,
    left: Ints,
    right: Ints,
    threshold: float,
    threads: int,
    limit: int,
    folder: Path,
    tick: Tick,
) -> Scores:
    """Write the sets to blocks on disk, and verify the pairs of every two blocks."""
    block_of = blocks_of(len(rows), left, right, size, limit)
    count = int(block_of.max()) + 1
    within = np.empty(len(rows), np.int64)  # the number of an item within its block
    order = np.argsort(block_of, kind="stable")
    starts = np.searchsorted(block_of[order], np.arange(count + 1))
    within[order] = np.arange(len(rows)) - starts[block_of[order]]
    place = folder / "sets"
    shutil.rmtree(place, ignore_errors=True)
    place.mkdir(parents=True)
    blocks = [_SetBlock(place / str(block), limit // (8 * count)) for block in range(count)]
    for part, sets in items.set_batches(rows, threads):
        by_block = np.argsort(block_of[part], kind="stable")
        sets = sets.take(by_block)
        numbers, firsts = np.unique(block_of[part][by_block], return_index=True)
        for block, (first, stop) in zip(numbers.tolist(), pairwise([*firsts.tolist(), len(sets)]), strict=True):
            values = sets.values[sets.offsets[first] : sets.offsets[stop]]
            blocks[block].add(sets.sizes[first:stop], values.copy())
    for written in blocks:
        written.write()
    scores = np.empty(len(left), np.float64)
    for pairs, sets, a, b in _block_pairs(blocks, block_of, within, left, right):
        scores[pairs] = similarities(a, b, sets, threshold, threads, tick)
    shutil.rmtree(place, ignore_errors=True)
    return scores


def _block_pairs(
    blocks: list[_SetBlock], block_of: Ints, within: Ints, left: Ints, right: Ints
) -> Iterator[tuple[Ints, Sets, Ints, Ints]]:
    """Yield the pairs to verify next, the sets they need, and their numbers among these."""
    low = np.minimum(block_of[left], block_of[right])
    high = np.maximum(block_of[left], block_of[right])
    for first, block in enumerate(blocks):
        here = np.flatnonzero(low == first)
        if not len(here):
            continue
        sets = block.load()
        for second in np.unique(high[here]).tolist():
            pairs = here[high[here] == second]
            a, b = within[left[pairs]], within[right[pairs]]
            if second == first:
                yield pairs, sets, a, b
            else:
                shift = len(sets)
                a = np.where(block_of[left[pairs]] == first, a, a + shift)
                b = np.where(block_of[right[pairs]] == first, b, b + shift)
                yield pairs, concatenate([sets, blocks[second].load()]), a, b
