"""Candidate pairs to scored pairs (P1): the exact Jaccard similarity of the sets, and nothing below the threshold."""

from __future__ import annotations

from collections.abc import Callable

import numpy as np
from numpy.typing import NDArray

from likewise.arrays import Ints, Sets
from likewise.kernels.sets import bitmaps, verify
from likewise.parallel import in_order

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

    def check(cut: slice) -> int:
        verify(left[cut], right[cut], sets.values, sets.offsets, maps, threshold, out[cut])
        return len(out[cut])

    cuts = [slice(start, start + BATCH) for start in range(0, len(left), BATCH)]
    for done in in_order(check, cuts, threads):
        tick(done)
    return out


def map_words(mean: float) -> int:
    """Return the 64-bit words of a bitmap: about four bits an element of a typical set, from 64 to 4,096 bits."""
    return 1 << min(6, max(0, int(4 * mean).bit_length() - 6))
