"""Candidate pairs to scored pairs (P1): the exact Jaccard similarity of the sets, and nothing below the threshold."""

from __future__ import annotations

import shutil
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from pathlib import Path

import numpy as np
from numpy.typing import NDArray

from likewise.base.arrays import Ints, Sets, concatenate
from likewise.base.parallel import in_order
from likewise.io.workspace import write_array
from likewise.kernels.graph import components
from likewise.kernels.sets import bitmaps, verify
from likewise.search.exact.bounds import least_fraction
from likewise.search.items import Items

BATCH = 1 << 16
SETS = 1 << 12


def similarities(
    left: Ints,
    right: Ints,
    sets: Sets,
    threshold: float,
    threads: int,
    tick: Callable[[int], None] = lambda done: None,
) -> NDArray[np.float64]:
    """Return the similarity of every pair of sets, -1 for those below the threshold; pairs come sorted by `left`."""
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


def map_words(mean: float) -> int:
    """Return the 64-bit words of a bitmap: about four bits an element of a typical set, from 64 to 4,096 bits."""
    return 1 << min(6, max(0, int(4 * mean).bit_length() - 6))


Scores = NDArray[np.float64]
Scored = tuple[Ints, Ints, Scores]


def compare(
    items: Items,
    rows: Ints,
    left: Ints,
    right: Ints,
    threshold: float,
    threads: int,
    limit: int,
    folder: Callable[[], Path],
    tick: Callable[[int], None] = lambda done: None,
) -> Scored:
    """Return those of the pairs (numbers in `rows`, sorted) that reach the threshold, with their exact similarity."""
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
    """Return a block for each of n items, of about `limit` bytes; connected items share one if it holds them."""
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
class _Block:
    """The sets of some items in a file, in ascending order of the items."""

    path: Path
    sizes: list[Ints]

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
    tick: Callable[[int], None],
) -> Scores:
    block_of = blocks_of(len(rows), left, right, size, limit)
    count = int(block_of.max()) + 1
    within = np.empty(len(rows), np.int64)  # the number of an item within its block
    order = np.argsort(block_of, kind="stable")
    starts = np.searchsorted(block_of[order], np.arange(count + 1))
    within[order] = np.arange(len(rows)) - starts[block_of[order]]
    place = folder / "sets"
    shutil.rmtree(place, ignore_errors=True)
    place.mkdir(parents=True)
    blocks = [_Block(place / str(block), []) for block in range(count)]
    for part, sets in items.set_batches(rows, threads):
        for block in np.unique(block_of[part]).tolist():
            chosen = sets.take(np.flatnonzero(block_of[part] == block))
            with open(blocks[block].path, "ab") as out:
                write_array(out, chosen.values)
            blocks[block].sizes.append(chosen.sizes)
    scores = np.empty(len(left), np.float64)
    for pairs, sets, a, b in _meetings(blocks, block_of, within, left, right):
        scores[pairs] = similarities(a, b, sets, threshold, threads, tick)
    shutil.rmtree(place, ignore_errors=True)
    return scores


def _meetings(
    blocks: list[_Block], block_of: Ints, within: Ints, left: Ints, right: Ints
) -> Iterator[tuple[Ints, Sets, Ints, Ints]]:
    """Yield which pairs to score next, the sets they need, and their numbers among these."""
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
