"""Crowds: documents so much alike that their pairs cannot all be candidates. Compared on their own, and near-linearly.

1. Pairs that share a light shingle, one that few members have, are found by an inverted index (light.py).
2. Other pairs are similar by their heavy shingles alone, if at all. These are found by bitmaps, all of them or, where
   they are too many to list, each member with a leader (walk.py). Leaders are what is kept: no two of them are similar.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from likewise.base.arrays import Ints
from likewise.base.memory import UNLIMITED, Budget
from likewise.base.runlog import Tick
from likewise.search.candidates import Wanted
from likewise.search.common_shingles import CommonShingles, described
from likewise.search.crowds.light import light_pairs
from likewise.search.crowds.profile import CrowdProfile
from likewise.search.crowds.walk import FORCED, NORMAL, PROBE, LeaderWalk
from likewise.search.items import Items
from likewise.search.scored import ScoredPairs, concatenated, packed, unpacked
from likewise.search.verify import compare

ROUNDS = 10
"""Times that members are walked through again because bitmaps of several shingles to a bit misled."""
TOLD = 5
"""Crowds that run.json describes."""
COMMON = 20
"""Shared shingles of a crowd that are looked up for the description."""


@dataclass(frozen=True)
class Gathering:
    """The crowds to compare: numbers in `rows`, the rows of items; items of low rank are preferred.

    folder: where to put what does not fit in memory. light_budget: see CrowdProfile.
    """

    items: Items
    rows: Ints
    crowds: list[Ints]
    ranks: Ints
    wanted: Wanted
    threshold: float
    seed: int
    threads: int
    budget: Budget = UNLIMITED
    folder: Callable[[], Path] = Path
    light_budget: int | None = None

    def pairs(self, known: ScoredPairs, tick: Tick = lambda done: None) -> tuple[ScoredPairs, dict[str, Any], Ints]:
        """Return all pairs, those known and those of crowds; a description for the user; and for each item the crowd it
        is in whose pairs are not all listed, or -1."""
        crowd_of = np.full(len(self.rows), -1, np.int32)
        for number, members in enumerate(self.crowds):
            crowd_of[members] = number
        nodes = np.flatnonzero(crowd_of >= 0)
        profile = CrowdProfile(
            self.items,
            self.rows[nodes],
            crowd_of[nodes],
            self.threshold,
            self.seed,
            self.threads,
            self.budget.sets,
            self.light_budget,
        )
        low, high = np.searchsorted(nodes, [self.wanted.low, self.wanted.high]).tolist()
        scored = known
        for left, right in light_pairs(profile, Wanted(low, high), self.budget.pairs, self.folder):
            scored = merged_pairs(scored, self._verified(nodes[left], nodes[right]))
        order, role = self._order()
        walk = LeaderWalk(profile, nodes)
        left, right, complete = walk.all_pairs(order, role, tick)
        scored = merged_pairs(scored, self._verified(nodes[left], nodes[right]))
        unchecked = 0
        if not complete.all():
            scored, unchecked = self._led(walk, nodes, scored, (order, role), ~complete, tick)
        abridged = np.where(complete[crowd_of], -1, crowd_of).astype(np.int64)
        abridged[crowd_of < 0] = -1
        notes = {
            "crowds": len(self.crowds),
            "documents": len(nodes),
            "complete": bool(complete.all()),
            "unchecked": unchecked,
            "largest": [
                self._described(profile, number, members, bool(complete[number]))
                for number, members in enumerate(self.crowds[:TOLD])
            ],
        }
        return scored, notes, abridged

    def _led(
        self,
        walk: LeaderWalk,
        nodes: Ints,
        known: ScoredPairs,
        order: tuple[Ints, NDArray[np.int8]],
        active: NDArray[np.bool_],
        tick: Tick,
    ) -> tuple[ScoredPairs, int]:
        """Add pairs of followers and leaders; return also how many members were not compared with all leaders."""
        banned = np.zeros(0, np.uint64)
        for _ in range(ROUNDS):
            leader, member, _leads, unchecked = walk.followers(*order, known[:2], active, banned, tick)
            found = self._verified(nodes[leader], nodes[member])
            if len(found[0]) == len(leader):
                break
            misled = ~np.isin(_words(nodes[leader], nodes[member]), packed(found[0], found[1]))
            banned = np.sort(np.concatenate([banned, packed(member[misled], leader[misled])]))
        else:
            unchecked += int(misled.sum())
        return merged_pairs(known, found), unchecked

    def _order(self) -> tuple[Ints, NDArray[np.int8]]:
        """Return all items, the most preferred first, and what each may be.

        With two collections, those of the first lead; if only pairs across count, those of the second follow.
        """
        n = len(self.rows)
        role = np.full(n, NORMAL, np.int8)
        role[: self.wanted.low] = FORCED
        if self.wanted.high < n:
            role[self.wanted.high :] = PROBE
        order = np.lexsort((self.ranks, role == PROBE, role != FORCED))
        return order, role

    def _verified(self, a: Ints, b: Ints) -> ScoredPairs:
        """Return the pairs that are similar and count, sorted."""
        left, right = np.minimum(a, b), np.maximum(a, b)
        counts = (right >= self.wanted.low) & (left < self.wanted.high)
        left, right = unpacked(np.sort(packed(left[counts], right[counts])))
        if not len(left):
            return left, right, np.zeros(0)
        return compare(self.items, self.rows, left, right, self.threshold, self.threads, self.budget.sets, self.folder)

    def _described(self, profile: CrowdProfile, number: int, members: Ints, complete: bool) -> dict[str, Any]:
        """Return the size of a crowd and the shingles that its documents share."""
        shared = CommonShingles(*profile.common(number, COMMON))
        found = described(self.items, self.rows[members], shared, len(members))
        return {"documents": len(members), "complete": complete, "shingles": found["most_common"]}


def _words(a: Ints, b: Ints) -> NDArray[np.uint64]:
    return packed(np.minimum(a, b), np.maximum(a, b))


def merged_pairs(a: ScoredPairs, b: ScoredPairs) -> ScoredPairs:
    """Merge two sorted lists of pairs; a pair in both counts once."""
    if not len(b[0]):
        return a
    left, right, similarity = concatenated([a, b])
    pairs, first = np.unique(packed(left, right), return_index=True)
    return *unpacked(pairs), similarity[first]
