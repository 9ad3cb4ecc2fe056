"""The sets that have something in common with a set, counted: the k most similar of each, whatever their similarity.

Filters and tables need a threshold; for the nearest sets of any there is none. Here the sets of every element are
listed, and a product of sparse matrices counts how often each appears among the lists of the elements of a set.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any

import numpy as np
from scipy.sparse import csr_matrix

from likewise.base.arrays import Hashes, Ints, Sets
from likewise.base.parallel import in_order
from likewise.search.exact.listing import BestPartners
from likewise.search.scored import ScoredPairs, concatenated

ENTRIES = 1 << 22
"""Entries of the lists that a thread visits at a time: some 50 MB of pairs."""


@dataclass(frozen=True, eq=False)
class SetPostings:
    """Sets, their elements in ascending order, and for each element the sets that have it."""

    sizes: Ints
    elements: Hashes
    lists: Any

    @classmethod
    def of(cls, sets: Sets) -> SetPostings:
        """List the sets of every element."""
        elements, columns = np.unique(sets.values, return_inverse=True)
        ones = np.ones(len(columns), np.int32)
        matrix = csr_matrix((ones, columns, sets.offsets), shape=(len(sets), len(elements)))
        return cls(sets.sizes, elements, matrix.T.tocsr())

    def best(self, asked: Sets, k: int, threads: int) -> ScoredPairs:
        """Return the k most similar sets of each of these, of the sets that have anything in common with it.

        In no particular order; ties go to the lower number.
        """
        place = np.minimum(np.searchsorted(self.elements, asked.values), max(0, len(self.elements) - 1))
        known = self.elements[place] == asked.values if len(self.elements) else np.zeros(len(place), bool)
        columns, offsets = place[known], np.concatenate([[0], np.cumsum(known)])[asked.offsets]
        ones = np.ones(len(columns), np.int32)
        matrix = csr_matrix((ones, columns, offsets), shape=(len(asked), len(self.elements)))
        visits = np.concatenate([[0], np.cumsum(np.diff(self.lists.indptr)[columns])])[offsets]

        def work(block: tuple[int, int]) -> ScoredPairs:
            start, stop = block
            counts = matrix[start:stop] @ self.lists
            rows = np.repeat(np.arange(stop - start), np.diff(counts.indptr))
            partners = counts.indices.astype(np.int64)
            union = asked.sizes[start:stop][rows] + self.sizes[partners] - counts.data
            best = BestPartners(stop - start, k)
            best.offer(rows, partners, counts.data / union)
            left, right, similarity = best.pairs()
            return left + start, right, similarity

        parts = list(in_order(work, _blocks(visits), threads))
        empty, others = np.flatnonzero(asked.sizes == 0), np.flatnonzero(self.sizes == 0)[:k]
        equal = np.repeat(empty, len(others)), np.tile(others, len(empty)), np.ones(len(empty) * len(others))
        return concatenated([*parts, equal])


def _blocks(visits: Ints) -> Iterator[tuple[int, int]]:
    """Cut rows into blocks of about so many visits; visits[i] are those of the rows before row i."""
    start = 0
    while start < len(visits) - 1:
        stop = int(np.searchsorted(visits, visits[start] + ENTRIES, side="right")) - 1
        stop = min(max(stop, start + 1), len(visits) - 1)
        yield start, stop
        start = stop
