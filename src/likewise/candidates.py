"""Band keys to candidate pairs (L1): items that share a bucket in at least one band, each pair once."""

from __future__ import annotations

from collections.abc import Callable

import numpy as np
from numpy.typing import NDArray

from likewise.arrays import Ints
from likewise.kernels.pairs import radix_argsort, scan_band
from likewise.parallel import in_order

Keys = NDArray[np.uint32]


def candidate_pairs(
    keys: Keys, threads: int, split: int | None = None, tick: Callable[[int], None] = lambda done: None
) -> tuple[Ints, Ints]:
    """Return the pairs (left, right), left < right, whose keys agree in at least one band, sorted.

    A pair is taken from the first band in which it agrees, so that no list of duplicates is ever made. With
    `split` only pairs of an item before `split` and one from `split` on are wanted. `tick` is told of every band done.
    """
    nothing = np.zeros(0, np.int32)
    cut = -1 if split is None else split

    def band_pairs(band: int) -> tuple[NDArray[np.int32], NDArray[np.int32]]:
        order = radix_argsort(keys[:, band].astype(np.uint64), 32)
        count = scan_band(keys, band, order, cut, False, nothing, nothing)
        left, right = np.empty(count, np.int32), np.empty(count, np.int32)
        scan_band(keys, band, order, cut, True, left, right)
        return left, right

    if len(keys) < 2:
        return np.zeros(0, np.int64), np.zeros(0, np.int64)
    bands = []
    for band in in_order(band_pairs, range(keys.shape[1]), threads):
        bands.append(band)
        tick(1)
    left = np.concatenate([band[0] for band in bands])
    right = np.concatenate([band[1] for band in bands])
    del bands
    order = pair_order(left, right, len(keys))
    return left[order].astype(np.int64), right[order].astype(np.int64)


def pair_order(left: NDArray[np.integer], right: NDArray[np.integer], n: int) -> Ints:
    """Return the order that sorts pairs of numbers below n by left, then by right."""
    bits = max(1, int(n - 1).bit_length())
    order: Ints = radix_argsort((left.astype(np.uint64) << np.uint64(bits)) | right.astype(np.uint64), 2 * bits)
    return order
