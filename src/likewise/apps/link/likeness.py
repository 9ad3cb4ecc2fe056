"""Scores of one text that need no learning: the terms two values share, weighted by rarity (TF-IDF).

With a single field nothing else tells matches from other pairs, so that a model learned by EM only restates the
similarity, in steps and with ties. The likeness is continuous, and which pairs are matches follows from how far the
best partner of a record is ahead of the next.
"""

from __future__ import annotations

import numpy as np

from likewise.apps.link.fields import Floats
from likewise.apps.link.records import RecordTable
from likewise.apps.link.scoring import ScoredRecords
from likewise.apps.link.terms import WeightedTerms
from likewise.apps.link.text_likeness import first_smaller, likeness
from likewise.base.arrays import Ints
from likewise.base.runlog import RunLog
from likewise.kernels import linking as kernels

RIVAL = 1.0
"""Part of the distance to the best partner of the record of the larger table that is deducted from a pair: that record
more probably belongs to the other."""

UNIT = 10.0
"""Points per unit of the scores, of which identical values have UNIT: scores are 0 to 100 points."""

KINDS = ("text", "tokens", "name", "address")


def fits(records: RecordTable, rows: WeightedTerms | None) -> bool:
    """Return whether pairs are scored by likeness: two tables with a single field, a text."""
    return bool(records.border) and rows is not None and len(records.fields) == 1 and records.fields[0].kind in KINDS


class LikenessScorer:
    """Scores by the terms that two values share: 0 to 100 points."""

    usual = 0.0
    lowest = 0.0

    def __init__(self, records: RecordTable, rows: WeightedTerms) -> None:
        self._records, self._rows = records, rows

    def first(self, left: Ints, right: Ints, log: RunLog) -> ScoredRecords:
        """Score the candidates; a record's distance to a better partner counts against a pair."""
        with log.stage("compare_fields", len(left)):
            alike = self._alike(left, right)
            best = kernels.best_partners(left, right, alike, self._records.count)
            other = right if first_smaller(self._records) else left
            alike -= RIVAL * (best[other] - alike)
        return self._scored(alike)

    def others(self, left: Ints, right: Ints, before: ScoredRecords) -> ScoredRecords:
        """Score further pairs."""
        return self._scored(self._alike(left, right))

    def _scored(self, alike: Floats) -> ScoredRecords:
        value = np.maximum(alike, 0.0) * UNIT
        kept = {self._records.fields[0].name: value * UNIT}
        return ScoredRecords(value, np.ones(len(value), bool), UNIT, kept=kept)

    def _alike(self, left: Ints, right: Ints) -> Floats:
        return likeness(self._records, self._records.fields, self._rows, left, right)
