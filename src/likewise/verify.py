"""Candidate pairs to scored pairs (P1): the exact Jaccard similarity of the sets, and nothing below the threshold."""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from likewise.arrays import Ints, Sets
from likewise.parallel import in_order

BATCH = 1 << 16


def similarities(left: Ints, right: Ints, sets: Sets, threshold: float, threads: int) -> NDArray[np.float64]:
    """Return the similarity of every pair of sets, -1 for those below the threshold; pairs come sorted by `left`."""
    from likewise.kernels.sets import verify

    out = np.empty(len(left), np.float64)

    def check(cut: slice) -> None:
        verify(left[cut], right[cut], sets.values, sets.offsets, threshold, out[cut])

    cuts = [slice(start, start + BATCH) for start in range(0, len(left), BATCH)]
    for _ in in_order(check, cuts, threads):
        pass
    return out
