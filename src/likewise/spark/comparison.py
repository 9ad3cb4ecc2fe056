"""What tasks do with documents that meet: texts are compared by their sets, signatures by their slots."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, Protocol

import numpy as np

from likewise.base.arrays import Hashes, Ints
from likewise.search.band_keys import HeldKeys
from likewise.search.estimate import estimated
from likewise.search.scored import ScoredPairs
from likewise.shingle import Shingler
from likewise.spark import steps

UNIT = 4
"""Words of 32 bits of the fingerprint of a set."""
SAME = 2.0
"""The score of two signatures of equal sets, which agree in all slots as those of nearly equal sets may."""


class PairComparison(Protocol):
    """What tasks do with documents that meet.

    kind: the type that Spark has for what travels of a document. size: its bytes; None if they differ.
    """

    kind: str

    @property
    def size(self) -> int | None:
        """The bytes of a document."""

    def scored(self, documents: Any, left: Ints, right: Ints) -> ScoredPairs:
        """Return the pairs of these documents, an Arrow array, that count, with their scores; pairs are sorted."""


@dataclass(frozen=True)
class TextComparison:
    """Texts compared by their sets of shingles."""

    shingler: Shingler
    common: Hashes | None
    threshold: float
    kind = "string"
    size = None

    def scored(self, documents: Any, left: Ints, right: Ints) -> ScoredPairs:
        """Return the pairs that reach the threshold."""
        return steps.compared(steps.items_of(documents, self.shingler, self.common), left, right, self.threshold)


@dataclass(frozen=True)
class SlotComparison:
    """Signatures compared by their slots, after the fingerprints of sets; equal sets get the score SAME."""

    slots: int
    threshold: float
    kind = "binary"

    @property
    def size(self) -> int:
        """The bytes of a fingerprint and a signature."""
        return 4 * (UNIT + self.slots)

    def scored(self, documents: Any, left: Ints, right: Ints) -> ScoredPairs:
        """Return the pairs that agree in so many slots as the threshold says."""
        whole = np.frombuffer(b"".join(documents.to_pylist()), np.uint32).reshape(len(documents), UNIT + self.slots)
        slots = HeldKeys(np.ascontiguousarray(whole[:, UNIT:]))
        a, b, similarity = estimated(slots, left, right, self.threshold, 1)
        same = (whole[a, :UNIT] == whole[b, :UNIT]).all(axis=1)
        return a, b, np.where(same, SAME, similarity)
