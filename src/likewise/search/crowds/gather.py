"""The crowds of a collection: compared on their own, and their pairs merged with all others."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from likewise.base.arrays import Ints
from likewise.kernels.graph import keepers
from likewise.search.candidates import Wanted
from likewise.search.common_shingles import CommonShingles, described
from likewise.search.crowds.algorithm import Crowd, crowd_pairs
from likewise.search.items import Items
from likewise.search.scored import ScoredPairs, packed, unpacked

ROUNDS = 10
"""Times that documents are compared again whose representative is itself removed; more were never needed."""
TOLD = 5
"""Crowds that run.json describes."""


@dataclass(frozen=True)
class Gathering:
    """The crowds to compare: numbers in `rows`, the rows of items; items of low rank are preferred."""

    items: Items
    rows: Ints
    crowds: list[Ints]
    ranks: Ints
    wanted: Wanted
    threshold: float
    recall: float
    seed: int
    threads: int

    def pairs(self, light: ScoredPairs) -> tuple[ScoredPairs, dict[str, Any], Ints]:
        """Return all pairs, those of light buckets and those of crowds; a description for the user; and for each item
        the crowd it is in whose pairs are not all listed, or -1."""
        abridged = np.full(len(self.rows), -1)
        follows = np.zeros(len(self.rows), bool)
        largest = []
        scored = light
        for number, members in enumerate(self.crowds):
            crowd = self._compare(members)
            scored = merged_pairs(scored, self._named(members, crowd))
            if not crowd.complete:
                abridged[members] = number
                follows[self._ordered(members)[~crowd.leaders]] = True
            if number < TOLD:
                largest.append(self._described(members, crowd))
        for _ in range(ROUNDS):
            orphans = self._orphans(scored, follows)
            if not len(orphans):
                break
            before = len(scored[0])
            for number in np.unique(abridged[orphans]).tolist():
                members = orphans[abridged[orphans] == number]
                scored = merged_pairs(scored, self._named(members, self._compare(members)))
            if len(scored[0]) == before:
                break
        notes = {
            "crowds": len(self.crowds),
            "documents": int(sum(map(len, self.crowds))),
            "complete": bool((abridged < 0).all()),
            "largest": largest,
        }
        return scored, notes, abridged

    def _ordered(self, members: Ints) -> Ints:
        return members[np.argsort(self.ranks[members], kind="stable")]

    def _compare(self, members: Ints) -> Crowd:
        """Compare the members of a crowd, the most preferred first."""
        sets = self.items.sets(self.rows[members], self.threads)
        order = np.argsort(self.ranks[members], kind="stable")
        return crowd_pairs(sets.take(order), self.threshold, self.recall, self.seed, self.threads)

    def _named(self, members: Ints, crowd: Crowd) -> ScoredPairs:
        """Number the pairs of a crowd by their items, and drop those that do not count."""
        ordered = self._ordered(members)
        a, b = ordered[crowd.left], ordered[crowd.right]
        left, right = np.minimum(a, b), np.maximum(a, b)
        counts = (right >= self.wanted.low) & (left < self.wanted.high)
        return left[counts], right[counts], crowd.similarity[counts]

    def _orphans(self, scored: ScoredPairs, follows: NDArray[np.bool_]) -> Ints:
        """Return the items that would be kept only because their representative is removed."""
        removed_by = keepers(np.argsort(self.ranks, kind="stable"), scored[0], scored[1])
        kept = np.flatnonzero((removed_by < 0) & follows)
        return kept if len(kept) > 1 else kept[:0]

    def _described(self, members: Ints, crowd: Crowd) -> dict[str, Any]:
        """Return the size of a crowd and the shingles that its documents share."""
        shared = CommonShingles(crowd.common, crowd.carried)
        found = described(self.items, self.rows[members], shared, len(members))
        return {"documents": len(members), "complete": crowd.complete, "shingles": found["most_common"]}


def merged_pairs(a: ScoredPairs, b: ScoredPairs) -> ScoredPairs:
    """Merge two sorted lists of pairs; a pair in both counts once."""
    if not len(b[0]):
        return a
    words = [packed(left, right) for left, right, _ in (a, b)]
    pairs, first = np.unique(np.concatenate(words), return_index=True)
    similarity = np.concatenate([a[2], b[2]])[first]
    return *unpacked(pairs), similarity
