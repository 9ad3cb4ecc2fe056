"""Pairs by estimated similarity: the fraction of slots in which two signatures agree (MMDS §3.4.3, step 6).

The whole signature of every item is kept, one column of keys per slot: the column has a hash of the slot, so two items
agree in it as they agree in the slot. Bands are made of adjacent columns. No document is read again.
"""

from __future__ import annotations

from math import ceil

import numpy as np
from numpy.typing import NDArray

from likewise.base.arrays import Ints
from likewise.base.parallel import in_order
from likewise.base.random import mix
from likewise.base.runlog import Tick
from likewise.base.stats import beta_cdf
from likewise.families.banding import Banding
from likewise.families.signatures import standard_error
from likewise.search.band_keys import HeldKeys, Keys, Matrix
from likewise.search.scored import ScoredPairs, Scores

LEAST_SLOTS = 256
"""Slots of a signature from which similarities are estimated, at least, unless bands and rows are given: a standard
error of 0.025 at a similarity of 0.8, for a kilobyte per item."""
BATCH = 1 << 20
"""Slots that a thread compares in one call."""
START = np.uint64(0x9E3779B97F4A7C15)
U32 = np.uint64(32)


def signature_slots(banding: Banding, given: bool, most: int) -> int:
    """Return the length of the signatures: that of a given banding, else enough for a good estimate if at most `most`.

    >>> signature_slots(Banding(20, 5), True, 2048), signature_slots(Banding(20, 5), False, 2048)
    (100, 256)
    """
    return banding.slots if given else max(banding.slots, min(LEAST_SLOTS, most))


def described(threshold: float, slots: int) -> dict[str, float]:
    """Return the length of the signatures and the standard error of an estimate at the threshold, for run.json.

    >>> described(0.8, 400)
    {'slots': 400, 'standard_error': 0.02}
    """
    return {"slots": slots, "standard_error": round(standard_error(threshold, slots), 6)}


def standard_errors(similarity: Scores, slots: int) -> Scores:
    """Return the standard error of each estimate.

    The unknown similarity is replaced by (agreements + 1)/(slots + 2), so that agreement in all slots does not count as
    certainty.

    >>> standard_errors(np.array([0.5, 1.0]), 100).round(4).tolist()
    [0.05, 0.0099]
    """
    p = (similarity * slots + 1) / (slots + 2)
    errors: Scores = np.sqrt(p * (1 - p) / slots)
    return errors


def acceptance(threshold: float, slots: int, similarity: float | None = None) -> float:
    """Return the probability that the signatures of a pair agree in at least the fraction `threshold` of the slots.

    The similarity of the pair is by default that of the threshold.

    >>> round(acceptance(0.5, 3), 12), acceptance(1.0, 10), acceptance(0.5, 10, 0.0)
    (0.5, 1.0, 0.0)
    """
    pair = threshold if similarity is None else similarity
    least = ceil(threshold * slots)
    while least and (least - 1) / slots >= threshold:
        least -= 1
    while least / slots < threshold:
        least += 1
    return beta_cdf(pair, least, slots - least + 1) if 0 < pair < 1 and least else float(pair > 0 or not least)


def banded(slots: Keys, banding: Banding) -> Keys:
    """Return the band keys that belong to columns of slots; slots beyond the last band are left out."""
    if slots.matrix is None:
        return _BandedKeys(slots, banding)
    lazy = _BandedKeys(slots, banding)
    matrix = np.empty((slots.items, banding.b), np.uint32)
    for band in range(banding.b):
        matrix[:, band] = lazy.column(band)
    return HeldKeys(matrix)


class _BandedKeys(Keys):
    """The keys of bands, each made from its slots when it is asked for."""

    def __init__(self, slots: Keys, banding: Banding) -> None:
        super().__init__(slots.items, banding.b)
        self._slots = slots
        self._rows = banding.r

    def column(self, band: int) -> Matrix:
        """Hash the slots of one band."""
        keys = np.full(self.items, START)
        for slot in range(band * self._rows, (band + 1) * self._rows):
            keys = mix(keys ^ self._slots.column(slot).astype(np.uint64))
        return (keys >> U32).astype(np.uint32)

    def chosen(self, rows: Ints) -> _BandedKeys:
        """Return the keys of some items."""
        return _BandedKeys(self._slots.chosen(rows), Banding(self.bands, self._rows))


def estimated(
    slots: Keys, left: Ints, right: Ints, threshold: float, threads: int, tick: Tick = lambda done: None
) -> ScoredPairs:
    """Return the pairs whose signatures agree in at least this fraction of the slots, with the fraction."""
    count = _held(slots.matrix, left, right, threads, tick) if slots.matrix is not None else None
    if count is None:
        count = np.zeros(len(left), np.int64)
        for same in in_order(lambda slot: _agree(slots.column(slot), left, right), range(slots.bands), threads):
            count += same
        tick(len(left))
    similarity = count / slots.bands
    found = similarity >= threshold
    return left[found], right[found], similarity[found]


def _agree(column: Matrix, left: Ints, right: Ints) -> NDArray[np.bool_]:
    same: NDArray[np.bool_] = column[left] == column[right]
    return same


def _held(matrix: Matrix, left: Ints, right: Ints, threads: int, tick: Tick) -> Ints:
    """Count the slots in which each pair agrees."""
    count = np.empty(len(left), np.int64)
    step = max(1, BATCH // matrix.shape[1])

    def work(start: int) -> int:
        part = slice(start, start + step)
        count[part] = (matrix[left[part]] == matrix[right[part]]).sum(axis=1)
        return len(count[part])

    for done in in_order(work, range(0, len(left), step), threads):
        tick(done)
    return count
