"""From scores to matches: one-to-one assignment or every pair between two tables, clusters within one."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from likewise.apps.link.blocking import RecordPairs
from likewise.apps.link.decision import Decision, decide_alike, decide_pairs
from likewise.apps.link.entities import CLIP, cluster
from likewise.apps.link.fields import Floats
from likewise.apps.link.records import RecordTable
from likewise.apps.link.scoring import ScoredRecords, Scorer
from likewise.base.arrays import Ints


@dataclass(frozen=True)
class KnownPairs:
    """The candidates whose answer is known from labels: their places among the candidates, and the answers."""

    places: Ints
    match: NDArray[np.bool_]

    @property
    def both(self) -> bool:
        """Whether there are matches and other pairs."""
        return bool(self.match.any()) and not bool(self.match.all())


NOTHING_KNOWN = KnownPairs(np.zeros(0, np.int64), np.zeros(0, bool))


@dataclass(frozen=True)
class MatchRules:
    """How the candidates of one run are decided.

    alike: the scores are a likeness. usual: the threshold if none is given; None finds the one with the best expected
    F1. one_to_one: as given by the user.
    """

    records: RecordTable
    candidates: RecordPairs
    scorer: Scorer
    alike: bool
    usual: float | None
    one_to_one: bool | None

    def decide(
        self, scored: ScoredRecords, threshold: float | None, known: KnownPairs = NOTHING_KNOWN
    ) -> tuple[Decision, Ints | None]:
        """Return the matches and, for one table, the cluster of each record. Labels count more than scores."""
        left, right, n = self.candidates.left, self.candidates.right, self.records.count
        cut = self.usual if threshold is None else threshold
        if not self.records.border:
            assert cut is not None
            return self._clusters(scored, cut, known)
        expected = None if scored.matches is None else scored.matches.matches
        if self.alike:
            found = decide_alike(left, right, scored.value, n, cut, self.one_to_one is True, expected)
        else:
            lowest = self.scorer.lowest
            found = decide_pairs(left, right, scored.value, scored.usable, n, cut, self.one_to_one, lowest, expected)
        return self.corrected(found, known), None

    def corrected(self, found: Decision, known: KnownPairs) -> Decision:
        """Return the decision with labelled matches, and without pairs that labels exclude or that rival a match."""
        if not len(known.places):
            return found
        yes, no = known.places[known.match], known.places[~known.match]
        kept = np.setdiff1d(found.chosen, no)
        for side, single in zip((self.candidates.left, self.candidates.right), found.single, strict=True):
            if single:
                kept = kept[~np.isin(side[kept], side[yes]) | np.isin(kept, yes)]
        return Decision(np.union1d(kept, yes), found.threshold, found.expected_f1, found.rule, found.single)

    def _clusters(self, scored: ScoredRecords, cut: float, known: KnownPairs) -> tuple[Decision, Ints]:
        left, right = self.candidates.left, self.candidates.right
        value = np.where(scored.usable, scored.value, np.minimum(scored.value, cut - 1))
        value[known.places] = np.where(known.match, cut + CLIP, cut - CLIP)

        def compared(one: Ints, other: Ints) -> Floats:
            return self.scorer.others(one, other, scored).value

        groups = cluster(self.records.count, left, right, value, cut, compared)
        chosen = np.flatnonzero(groups[left] == groups[right])
        return Decision(chosen, cut, None, "clusters by average linkage"), groups
