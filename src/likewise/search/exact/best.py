"""The k best partners of every set, kept while a join yields its pairs: memory for k a set, not for all pairs."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

import numpy as np

from likewise.base.arrays import Ints
from likewise.kernels.pairs import offer
from likewise.search.scored import ScoredPairs, Scores

ENTRY_BYTES = 16
"""Bytes of a partner: its number and its similarity."""


class BestPartners:
    """The k best partners of each of `rows` sets; ties go to the lower number.

    Heaps that take more than `room` bytes are in a file in a folder, if one is given.
    """

    def __init__(self, rows: int, k: int, room: int = 0, folder: Callable[[], Path] | None = None) -> None:
        self._counts = np.zeros(rows, np.int64)
        self.floors: Scores = np.zeros(rows)
        self._best: Scores
        self._partners: Ints
        if folder is None or ENTRY_BYTES * rows * k <= room:
            self._best, self._partners = np.empty((rows, k)), np.empty((rows, k), np.int64)
        else:
            place = folder()
            self._best = np.asarray(np.memmap(place / "best", np.float64, "w+", shape=(rows, k)))
            self._partners = np.asarray(np.memmap(place / "partners", np.int64, "w+", shape=(rows, k)))

    def offer(self, rows: Ints, partners: Ints, scores: Scores) -> None:
        """Keep those of these pairs that are among the k best of their row so far."""
        offer(rows, partners, scores, self._best, self._partners, self._counts, self.floors)

    def pairs(self) -> ScoredPairs:
        """Return the pairs that are kept, by row, in no particular order within a row."""
        rows = np.repeat(np.arange(len(self._counts)), self._counts)
        filled = np.arange(self._best.shape[1]) < self._counts[:, None]
        return rows, self._partners[filled], self._best[filled]
