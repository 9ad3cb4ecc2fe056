"""Crowds: documents so much alike that their pairs cannot all be candidates. Compared on their own, and near-linearly.

1. Pairs that share a light shingle, one that few members have, are found by an inverted index (profile.py).
2. Other pairs are similar by their heavy shingles alone, if at all. These are found by bitmaps, all of them or, where
   they are too many to list, each member with a leader. Leaders are what is kept: no two of them are similar.

For the latter, the members of a crowd are walked through in the order in which they are preferred: one that is not
similar to a leader becomes a leader, and any other is listed with one that it is similar to. That is near-linear as
long as leaders are few, or members of few kinds, or told apart by rare shingles. In general it cannot be
(docs/theory.md), so the work is bounded, and members that were not compared with all leaders are counted.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from likewise.base.arrays import Hashes, Ints
from likewise.base.memory import UNLIMITED, Budget
from likewise.base.runlog import Tick
from likewise.kernels import leaders as kernels
from likewise.kernels.crowds import SLACK
from likewise.kernels.leaders import FORCED, NORMAL, PROBE
from likewise.search.candidates import Wanted
from likewise.search.common_shingles import CommonShingles, described
from likewise.search.crowds.profile import CrowdProfile, Flags, light_pairs
from likewise.search.exact.bounds import least_fraction
from likewise.search.expand import most_listed
from likewise.search.items import Items
from likewise.search.scored import ScoredPairs, concatenated, packed, unpacked
from likewise.search.verify import compare

ROUNDS = 10
"""Times that members are walked through again because bitmaps of several shingles to a bit misled."""
TOLD = 5
"""Crowds that run.json describes."""
COMMON = 20
"""Shared shingles of a crowd that are looked up for the description."""
WORK = 20_000
WORK_AT, WORK_GROWS = 10_000, 0.2
"""Steps of the walk per member, of about a nanosecond: this many for ten thousand members, and with their 0.2th power
more, so that the whole grows with the 1.2th power at most. Ten thousand members can all be compared with each other."""
GRACE = 1000
"""Members whose work may be spent in advance."""
FIRST_LOOK = 4
"""Looking for all pairs may take a quarter of the work."""
SLICE = 200_000_000
"""Steps after which the walk reports progress and can be interrupted."""
ROOM = 1 << 16
"""Pairs for which a call has room, beyond those of one member."""


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
        limits = self.threads, self.budget.sets, self.light_budget
        profile = CrowdProfile(self.items, self.rows[nodes], crowd_of[nodes], self.threshold, self.seed, *limits)
        low, high = np.searchsorted(nodes, [self.wanted.low, self.wanted.high]).tolist()
        scored = known
        for left, right in light_pairs(profile, Wanted(low, high), self.budget.pairs, self.folder):
            scored = merged_pairs(scored, self._verified(nodes[left], nodes[right]))
        walk = LeaderWalk(profile, nodes, *self._order())
        left, right, complete = walk.all_pairs(tick)
        scored = merged_pairs(scored, self._verified(nodes[left], nodes[right]))
        unchecked = 0
        if not complete.all():
            scored, unchecked = self._led(walk, scored, ~complete, tick)
        abridged = np.where(complete[crowd_of], -1, crowd_of).astype(np.int64)
        abridged[crowd_of < 0] = -1
        numbered = enumerate(self.crowds[:TOLD])
        largest = [self._described(profile, number, members, bool(complete[number])) for number, members in numbered]
        notes = {"crowds": len(self.crowds), "documents": len(nodes), "complete": bool(complete.all())}
        return scored, {**notes, "unchecked": unchecked, "largest": largest}, abridged

    def _led(self, walk: LeaderWalk, known: ScoredPairs, active: Flags, tick: Tick) -> tuple[ScoredPairs, int]:
        """Add pairs of followers and leaders; return also how many members were not compared with all leaders."""
        banned = np.zeros(0, np.uint64)
        for _ in range(ROUNDS):
            leader, member, unchecked = walk.followers(known[:2], active, banned, tick)
            a, b = walk.nodes[leader], walk.nodes[member]
            verified = self._verified(a, b)
            if len(verified[0]) == len(leader):
                break
            misled = ~np.isin(packed(np.minimum(a, b), np.maximum(a, b)), packed(verified[0], verified[1]))
            banned = np.sort(np.concatenate([banned, packed(member[misled], leader[misled])]))
        else:
            unchecked += int(misled.sum())
        return merged_pairs(known, verified), unchecked

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


def merged_pairs(a: ScoredPairs, b: ScoredPairs) -> ScoredPairs:
    """Merge two sorted lists of pairs; a pair in both counts once."""
    if not len(b[0]):
        return a
    left, right, similarity = concatenated([a, b])
    pairs, first = np.unique(packed(left, right), return_index=True)
    return *unpacked(pairs), similarity[first]


@dataclass(frozen=True)
class LeaderWalk:
    """The walk over the members of crowds.

    nodes: the number of each member among all items; ascending. order: the items, the most preferred first. role: what
    each may be.
    """

    profile: CrowdProfile
    nodes: Ints
    order: Ints
    role: NDArray[np.int8]

    def all_pairs(self, tick: Tick) -> tuple[Ints, Ints, Flags]:
        """Return the pairs of members whose bitmaps allow it, and for each crowd whether these are all of its pairs."""
        sizes = self.profile.crowd_sizes
        if (self.profile.least_sum > SLACK).all():
            nobody = np.zeros(0, np.int64)
            return nobody, nobody, np.ones(len(sizes), bool)
        state = _WalkState(self)
        share = most_listed(len(self.profile)) / max(1, len(self.profile))
        state.crowds.most_pairs[:] = (share * sizes).astype(np.int64)
        left, right, _ = state.run(True, self._income() // FIRST_LOOK, tick)
        complete: Flags = state.crowds.active
        known = complete[self.profile.crowds[left]]
        return left[known], right[known], complete

    def followers(self, known: tuple[Ints, Ints], active: Flags, banned: Hashes, tick: Tick) -> tuple[Ints, Ints, int]:
        """Return each member that is similar to a leader after the leader, and how many were not compared with all.

        known: pairs of items known to be similar. active: the crowds to walk through. banned: pairs (member, leader),
        packed and sorted, that turned out not to be similar.
        """
        state = _WalkState(self)
        state.crowds.active[:] = active
        state.know(*known)
        state.rows = state.rows._replace(banned=banned)
        return state.run(False, self._income(), tick)

    def _income(self) -> int:
        return int(WORK * max(1.0, len(self.profile) / WORK_AT) ** WORK_GROWS)


class _WalkState:
    """The arrays of a walk; see kernels/leaders.py."""

    def __init__(self, walk: LeaderWalk) -> None:
        self.profile = profile = walk.profile
        known, crowds, n, items = profile.vocabulary, len(profile.crowd_sizes), len(profile), len(walk.role)
        maps, heavy, dense = profile.drawn
        rare_lack = profile.lack(dense)
        p, q = least_fraction(profile.threshold)
        lowest, highest = np.full(crowds, np.inf), np.full(crowds, -np.inf)
        np.minimum.at(lowest, profile.crowds, rare_lack)
        np.maximum.at(highest, profile.crowds, rare_lack)
        width = np.maximum((highest - lowest) / kernels.SHELVES, 1e-3)
        shelf = ((rare_lack - lowest[profile.crowds]) / width[profile.crowds]).astype(np.int64)
        bases = np.concatenate([[0], np.cumsum(kernels.CLASSES * known.rare_bits + kernels.SHELVES)]).astype(np.int64)
        place = np.full(items, -1)
        place[walk.nodes] = np.arange(n)
        self.rows = kernels.WalkRows(
            order=walk.order,
            role=walk.role,
            place=place,
            starts=np.zeros(items + 1, np.int64),
            partners=np.zeros(0, np.int64),
            leads=np.zeros(items, bool),
            banned=np.zeros(0, np.uint64),
        )
        self.members = kernels.Members(
            crowds=profile.crowds,
            kinds=profile.kinds,
            sizes=profile.sizes,
            heavy=heavy,
            maps=maps,
            lack=profile.least_sum,
            rare_lack=rare_lack,
            needs=2 * p * profile.sizes - (p + q) * dense,
            shelf=np.clip(shelf, 0, kernels.SHELVES - 1),
        )
        self.crowds = kernels.Crowds(
            exact=known.exact,
            rare_bits=known.rare_bits,
            bases=bases,
            first=np.cumsum(profile.crowd_sizes) - profile.crowd_sizes,
            lowest=lowest,
            width=width,
            most_pairs=np.zeros(crowds, np.int64),
            active=np.ones(crowds, bool),
            counted=np.zeros(crowds, np.int64),
            listed=np.zeros(crowds, np.int64),
            favourites=np.full((crowds, kernels.FAVOURITES), -1, np.int32),
            hits=np.zeros((crowds, kernels.FAVOURITES), np.int32),
        )
        kinds = int(profile.kinds.max(initial=-1)) + 1
        self.leaders = kernels.Leaders(
            records=np.empty((n, kernels.HEAD + maps.shape[1]), np.uint64),
            lacks=np.empty(n, np.int64),
            heads=np.full(int(bases[-1]), -1, np.int32),
            pool=np.empty((1 << 12, 2 + kernels.CHUNK), np.int32),
            used=np.zeros(1, np.int64),
            marked=np.zeros(n, np.uint8),
            kind_found=np.full(kinds, -1, np.int32),
            kind_seen=np.zeros(kinds, np.int32),
        )

    def know(self, left: Ints, right: Ints) -> None:
        """Arrange known pairs: for each item, the more preferred ones that it is similar to."""
        order = self.rows.order
        rank = np.empty(len(order), np.int64)
        rank[order] = np.arange(len(order))
        later = np.where(rank[left] > rank[right], left, right)
        by = np.argsort(later, kind="stable")
        counts = np.bincount(later, minlength=len(order))
        starts = np.concatenate([[0], np.cumsum(counts)]).astype(np.int64)
        self.rows = self.rows._replace(partners=(left + right - later)[by], starts=starts)

    def run(self, everyone: bool, income: int, tick: Tick) -> tuple[Ints, Ints, int]:
        """Walk to the end; return the pairs of members, and how many were not compared with all leaders."""
        p, q = least_fraction(self.profile.threshold)
        purse = np.array([GRACE * income], np.int64)
        room = ROOM + (len(self.profile) if everyone else 0)
        left, right = np.empty(room, np.int32), np.empty(room, np.int32)
        parts = [np.zeros((2, 0), np.int64)]
        facts = np.zeros(2, np.int64)
        longest = 2 + int(self.crowds.rare_bits.max(initial=0))
        done = 0
        while done < len(self.rows.order):
            before = done
            state = self.rows, self.members, self.crowds, self.leaders
            done = kernels.walk(done, everyone, *state, p, q, income, purse, SLICE, left, right, facts)
            written = int(facts[0])
            parts.append(np.stack([left[:written], right[:written]]).astype(np.int64))
            tick(done - before)
            pool = self.leaders.pool
            if self.leaders.used[0] + longest > len(pool):
                more = np.empty((len(pool) + longest, pool.shape[1]), np.int32)
                self.leaders = self.leaders._replace(pool=np.concatenate([pool, more]))
        a, b = np.concatenate(parts, axis=1)
        return a, b, int(facts[1])
