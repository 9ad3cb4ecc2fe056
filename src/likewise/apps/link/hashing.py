"""The terms of texts as hashes: words, and three-letter pieces of words."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
import pyarrow as pa
from numpy.typing import NDArray

from likewise.base.arrays import TextChunk
from likewise.kernels import linking as kernels

Hashes = NDArray[np.uint64]


@dataclass(frozen=True)
class Hashed:
    """The hashed terms of every value: those of value i are terms[offsets[i]:offsets[i + 1]]."""

    offsets: NDArray[np.int64]
    terms: Hashes


def hashed(folded: pa.Array, grams: bool) -> Hashed:
    """Return the words of folded values and, with grams, the three-letter pieces of the words."""
    if len(folded) == 0:
        return Hashed(np.zeros(1, np.int64), np.zeros(0, np.uint64))
    chunk = TextChunk.from_arrow(folded)
    none = np.zeros(0, np.uint64)
    counts = kernels.terms(chunk.data, chunk.offsets, grams, chunk.offsets, none, False)
    offsets = np.concatenate(([0], np.cumsum(counts))).astype(np.int64)
    out = np.empty(int(offsets[-1]), np.uint64)
    kernels.terms(chunk.data, chunk.offsets, grams, offsets, out, True)
    return Hashed(offsets, out)
