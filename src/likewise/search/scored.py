"""Scored pairs: three arrays of equal length (left, right, score), and the orders they come in."""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from likewise.base.arrays import Ints
from likewise.kernels.hashing import LOW32, U32
from likewise.kernels.sorting import radix_argsort

Scores = NDArray[np.float64]
ScoredPairs = tuple[Ints, Ints, Scores]
"""The numbers of the two items of each pair, and their similarity or distance."""


def no_pairs() -> ScoredPairs:
    """Return no pairs."""
    return np.zeros(0, np.int64), np.zeros(0, np.int64), np.zeros(0)


def concatenated(parts: list[ScoredPairs]) -> ScoredPairs:
    """Put pairs end to end."""
    if len(parts) == 1:
        return parts[0]
    left, right, scores = (np.concatenate(column) for column in zip(no_pairs(), *parts, strict=True))
    return left, right, scores


def packed(left: NDArray[np.integer], right: NDArray[np.integer]) -> NDArray[np.uint64]:
    """Return pairs as words, left in the upper 32 bits and right in the lower: they sort by left, then by right."""
    return (left.astype(np.uint64) << U32) | right.astype(np.uint64)


def unpacked(words: NDArray[np.uint64]) -> tuple[Ints, Ints]:
    """Return the left and the right side of packed pairs."""
    return (words >> U32).astype(np.int64), (words & LOW32).astype(np.int64)


def pair_order(left: NDArray[np.integer], right: NDArray[np.integer], n: int, m: int | None = None) -> Ints:
    """Return the order that sorts pairs by left, then by right; left is below n, and right below m (by default n)."""
    bits = max(1, int((n if m is None else m) - 1).bit_length())
    keys = (left.astype(np.uint64) << np.uint64(bits)) | right.astype(np.uint64)
    order: Ints = radix_argsort(keys, bits + max(1, int(n - 1).bit_length()))
    return order


def best_first(left: Ints, right: Ints, scores: Scores, k: int | None) -> ScoredPairs:
    """Order pairs by left, the highest score first, ties by right; keep at most k for every left."""
    order = np.lexsort((right, -scores, left))
    left, right, scores = left[order], right[order], scores[order]
    if k is None or not len(left):
        return left, right, scores
    starts = np.flatnonzero(np.concatenate([[True], left[1:] != left[:-1]]))
    rank = np.arange(len(left)) - np.repeat(starts, np.diff(np.append(starts, len(left))))
    return left[rank < k], right[rank < k], scores[rank < k]
