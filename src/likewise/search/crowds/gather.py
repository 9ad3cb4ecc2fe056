"""The crowds of a collection: compared apart from the rest, and their pairs put together with all others (P7)."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from likewise.base.arrays import Ints
from likewise.kernels.graph import keepers
from likewise.search.candidates import Wanted
from likewise.search.common_shingles import Common, described
from likewise.search.crowds.algorithm import Crowd, crowd_pairs
from likewise.search.items import Items
from likewise.search.verify import Scored

ROUNDS = 10
TOLD = 5
U32 = np.uint64(32)
LOW32 = np.uint64(0xFFFFFFFF)


@dataclass(frozen=True)
class Gathering:
    """The crowds to be compared: numbers in `rows`, the rows of items; `ranks` say which of them are wanted most."""

    items: Items
    rows: Ints
    crowds: list[Ints]
    ranks: Ints
    wanted: Wanted
    threshold: float
    recall: float
    seed: int
    threads: int

    def pairs(self, light: Scored) -> tuple[Scored, dict[str, Any], Ints]:
        """Return all pairs, those found in light buckets and those of crowds; what to tell the user; and for each item
        the crowd it is in whose pairs are not all listed, or -1."""
        abridged = np.full(len(self.rows), -1)
        follows = np.zeros(len(self.rows), bool)
        told = []
        scored = light
        for number, members in enumerate(self.crowds):
            crowd = self._compare(members)
            scored = joined(scored, self._named(members, crowd))
            if not crowd.complete:
                abridged[members] = number
                follows[self._ordered(members)[~crowd.leaders]] = True
            if number < TOLD:
                told.append(self._told(members, crowd))
        for _ in range(ROUNDS):
            orphans = self._orphans(scored, follows)
            if not len(orphans):
                break
            before = len(scored[0])
            for number in np.unique(abridged[orphans]).tolist():
                members = orphans[abridged[orphans] == number]
                scored = joined(scored, self._named(members, self._compare(members)))
            if len(scored[0]) == before:
                break
        notes = {
            "crowds": len(self.crowds),
            "documents": int(sum(map(len, self.crowds))),
            "complete": bool((abridged < 0).all()),
            "largest": told,
        }
        return scored, notes, abridged

    def _ordered(self, members: Ints) -> Ints:
        return members[np.argsort(self.ranks[members], kind="stable")]

    def _compare(self, members: Ints) -> Crowd:
        """Compare the members of a crowd, the most wanted first."""
        sets = self.items.sets(self.rows[members], self.threads)
        order = np.argsort(self.ranks[members], kind="stable")
        return crowd_pairs(sets.take(order), self.threshold, self.recall, self.seed, self.threads)

    def _named(self, members: Ints, crowd: Crowd) -> Scored:
        """Give the pairs of a crowd the numbers of their items, and drop those that do not count."""
        ordered = self._ordered(members)
        a, b = ordered[crowd.left], ordered[crowd.right]
        left, right = np.minimum(a, b), np.maximum(a, b)
        counts = (right >= self.wanted.low) & (left < self.wanted.high)
        return left[counts], right[counts], crowd.similarity[counts]

    def _orphans(self, scored: Scored, follows: NDArray[np.bool_]) -> Ints:
        """Return the items that would be kept only because the one that stood for them is not."""
        removed_by = keepers(np.argsort(self.ranks, kind="stable"), scored[0], scored[1])
        kept = np.flatnonzero((removed_by < 0) & follows)
        return kept if len(kept) > 1 else kept[:0]

    def _told(self, members: Ints, crowd: Crowd) -> dict[str, Any]:
        """Say how large a crowd is and which shingles are to blame."""
        blame = described(self.items, self.rows[members], Common(crowd.common, crowd.carried), len(members))
        return {"documents": len(members), "complete": crowd.complete, "shingles": blame["most_common"]}


def joined(a: Scored, b: Scored) -> Scored:
    """Put two sorted lists of pairs together; a pair in both counts once."""
    if not len(b[0]):
        return a
    packed = [(left.astype(np.uint64) << U32) | right.astype(np.uint64) for left, right, _ in (a, b)]
    pairs, first = np.unique(np.concatenate(packed), return_index=True)
    similarity = np.concatenate([a[2], b[2]])[first]
    return (pairs >> U32).astype(np.int64), (pairs & LOW32).astype(np.int64), similarity
