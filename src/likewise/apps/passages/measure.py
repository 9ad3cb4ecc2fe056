"""Containment and Jaccard similarity of the pairs of documents, from their shingles."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from itertools import pairwise

import numpy as np
from numpy.typing import NDArray

from likewise.apps.passages.index import SourceBlock
from likewise.apps.passages.settings import PassageSettings
from likewise.base.arrays import Ints, TextChunk, concatenate

PORTION = 1 << 20
"""Bytes of sources whose shingles are made at a time; it bounds memory, and the time that cannot be interrupted."""
Floats = NDArray[np.float64]


@dataclass(frozen=True)
class SuspectShingles:
    """The sets of shingles of some suspects, and for every shingle the suspects that have it."""

    settings: PassageSettings
    sizes: Ints
    postings: tuple[NDArray[np.uint64], Ints, Ints, Ints]

    @classmethod
    def of(cls, chunk: TextChunk, rows: Ints, settings: PassageSettings) -> SuspectShingles:
        """Make the sets of these documents."""
        from likewise.kernels.coverage import make_postings
        from likewise.kernels.hashtable import table_bits

        sets = settings.shingler.chunk_sets(chunk, rows)
        slots = 1 << table_bits(len(sets.values))
        numbers, begins = np.empty(slots, np.int64), np.empty(len(sets.values) + 1, np.int64)
        postings = np.empty(slots, np.uint64), numbers, begins, np.empty(len(sets.values), np.int64)
        make_postings(sets.values.astype(np.uint64, copy=False), sets.offsets, *postings)
        return cls(settings, sets.sizes, postings)

    def measure(self, block: SourceBlock, left: Ints, right: Ints) -> Floats:
        """Return the containment of suspect in source, of source in suspect, and the Jaccard similarity.

        left: numbers of these suspects; right: sources of the block, ascending. A document without shingles is
        contained in nothing and contains nothing.
        """
        from likewise.kernels.coverage import count_shared_elements

        sources, places = np.unique(right, return_inverse=True)
        shingler = self.settings.shingler
        sets = concatenate([shingler.chunk_sets(part, rows) for part, rows, _ in block.rows(sources)])
        shared = np.zeros(len(left), np.int64)
        values = sets.values.astype(np.uint64, copy=False)
        count_shared_elements(*self.postings, len(self.sizes), values, sets.offsets, left, places, shared)
        a, b = self.sizes[left], sets.sizes[places]
        return shared[:, None] / np.maximum(np.column_stack([a, b, a + b - shared]), 1)


def portions(block: SourceBlock, right: Ints) -> Iterator[slice]:
    """Cut ascending sources into portions with about PORTION bytes of text, or a single larger source."""
    new = np.concatenate([[True], right[1:] != right[:-1]])[: len(right)]
    bytes_so_far = np.cumsum(block.sizes[right] * new)
    cuts = np.flatnonzero((np.diff(bytes_so_far // PORTION) > 0) & new[1:]) + 1
    edges = [0, *cuts.tolist(), len(right)]
    return (slice(low, high) for low, high in pairwise(edges) if high > low)
