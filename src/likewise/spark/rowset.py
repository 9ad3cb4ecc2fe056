"""Some of the rows of a corpus, one bit for each row: what every machine can hold, however many rows are chosen."""

from __future__ import annotations

from collections.abc import Iterable

import numpy as np
from numpy.typing import NDArray

from likewise.base.arrays import Ints

BLOCK = 64
"""Bytes of bits that are counted together."""
AT_ONCE = 1 << 14
"""Questions that are answered together: each looks at one block."""


class RowSet:
    """A set of rows below `total`; it knows how many rows before a given one are in it, and which others are not."""

    def __init__(self, total: int, parts: Iterable[Ints] = ()) -> None:
        self.total = total
        flags = np.zeros((-(-total // (8 * BLOCK)) or 1) * BLOCK, np.uint8)
        for rows in parts:
            np.bitwise_or.at(flags, rows >> 3, np.left_shift(1, rows & 7).astype(np.uint8))
        self._bits = flags
        self._count()

    @classmethod
    def from_words(cls, total: int, words: Ints) -> RowSet:
        """Return the set of which `words` is the content."""
        found = cls(total)
        found._bits = words.view(np.uint8).copy()
        found._count()
        return found

    @property
    def words(self) -> Ints:
        """All bits, 64 in each number."""
        return self._bits.view(np.int64)

    def _count(self) -> None:
        flags = self._bits
        counts = np.bitwise_count(flags.reshape(-1, BLOCK)).sum(axis=1, dtype=np.int64)
        self._before = np.concatenate([[0], np.cumsum(counts)])

    def __len__(self) -> int:
        return int(self._before[-1])

    def has(self, rows: Ints) -> NDArray[np.bool_]:
        """Tell which rows are in the set."""
        return np.asarray((self._bits[rows >> 3] >> (rows & 7)) & 1, bool)

    def before(self, rows: Ints) -> Ints:
        """Return how many rows of the set come before each of these."""
        out = np.empty(len(rows), np.int64)
        for start in range(0, len(rows), AT_ONCE):
            some = rows[start : start + AT_ONCE]
            block, place = np.divmod(some, 8 * BLOCK)
            inside = np.arange(8 * BLOCK) < place[:, None]
            out[start : start + AT_ONCE] = self._before[block] + (self._unpacked(block) & inside).sum(axis=1)
        return out

    def others(self, places: Ints) -> Ints:
        """Return the rows at these places among those that are not in the set."""
        out = np.empty(len(places), np.int64)
        absent = np.arange(len(self._before)) * 8 * BLOCK - self._before
        for start in range(0, len(places), AT_ONCE):
            some = places[start : start + AT_ONCE]
            block = np.searchsorted(absent, some, side="right") - 1
            seen = np.cumsum(~self._unpacked(block), axis=1)
            inside = (seen <= (some - absent[block])[:, None]).sum(axis=1)
            out[start : start + AT_ONCE] = block * 8 * BLOCK + inside
        return out

    def _unpacked(self, blocks: Ints) -> NDArray[np.bool_]:
        bits = np.unpackbits(self._bits.reshape(-1, BLOCK)[blocks], axis=1, bitorder="little")
        return bits.astype(bool)
