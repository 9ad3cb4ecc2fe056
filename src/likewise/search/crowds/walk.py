"""Pairs of members of crowds that are similar by their heavy shingles alone: all of them, or each with a leader.

First all pairs of a crowd are looked for. If there are too many to list, its members are walked through in the order
in which they are preferred: one that is not similar to a leader becomes a leader, and any other is listed with one that
it is similar to. That is near-linear as long as leaders are few, or members of few kinds, or told apart by rare
shingles. In general it cannot be (docs/theory.md), so the work is bounded, and members that were not compared with all
leaders are counted.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from likewise.base.arrays import Hashes, Ints
from likewise.base.runlog import Tick
from likewise.kernels import leaders as kernels
from likewise.search.crowds.profile import CrowdProfile, Flags
from likewise.search.exact.bounds import least_fraction

LISTED_AT_LEAST = 1_000_000
LISTED_PER_ITEM = 10
"""Pairs by heavy shingles that are listed in full: a million in all crowds, or ten per member (as expand.py does)."""
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

NORMAL, FORCED, PROBE = kernels.NORMAL, kernels.FORCED, kernels.PROBE


@dataclass(frozen=True)
class LeaderWalk:
    """The walk over the members of crowds. nodes: the number of each member among all items; ascending."""

    profile: CrowdProfile
    nodes: Ints

    def all_pairs(self, order: Ints, role: NDArray[np.int8], tick: Tick) -> tuple[Ints, Ints, Flags]:
        """Return the pairs of members whose bitmaps allow it, and for each crowd whether these are all of its pairs."""
        state = _WalkState(self.profile, len(role), self.nodes)
        sizes = self.profile.crowd_sizes
        share = max(LISTED_PER_ITEM, LISTED_AT_LEAST / max(1, len(self.profile)))
        state.most_pairs = (share * sizes).astype(np.int64)
        left, right = state.run(order, role, True, self._income() // FIRST_LOOK, tick)
        complete = state.active
        known = complete[self.profile.crowds[left]]
        return left[known], right[known], complete

    def followers(
        self, order: Ints, role: NDArray[np.int8], known: tuple[Ints, Ints], active: Flags, banned: Hashes, tick: Tick
    ) -> tuple[Ints, Ints, Flags, int]:
        """Return each member that is similar to a leader after the leader, which items lead, and how many members were
        not compared with all leaders.

        order: the items, the most preferred first. known: pairs of items known to be similar. active: the crowds to
        walk through. banned: pairs (member, leader), packed and sorted, that turned out not to be similar.
        """
        state = _WalkState(self.profile, len(role), self.nodes)
        state.active = active.copy()
        state.banned = banned
        state.know(order, *known)
        left, right = state.run(order, role, False, self._income(), tick)
        return left, right, state.leads, int(state.facts[1])

    def _income(self) -> int:
        n = len(self.profile)
        return int(WORK * max(1.0, n / WORK_AT) ** WORK_GROWS)


class _WalkState:
    """The arrays of a walk; see kernels/leaders.py."""

    def __init__(self, profile: CrowdProfile, items: int, nodes: Ints) -> None:
        known = profile.vocabulary
        crowds = len(profile.crowd_sizes)
        n = len(profile)
        self.profile = profile
        self.place = np.full(items, -1)
        self.place[nodes] = np.arange(n)
        self.active: Flags = np.ones(crowds, bool)
        self.rare_lack = profile.lack(profile.drawn[2])
        self.lowest, highest = np.full(crowds, np.inf), np.full(crowds, -np.inf)
        np.minimum.at(self.lowest, profile.crowds, self.rare_lack)
        np.maximum.at(highest, profile.crowds, self.rare_lack)
        self.width = np.maximum((highest - self.lowest) / kernels.SHELVES, 1e-3)
        shelf = (self.rare_lack - self.lowest[profile.crowds]) / self.width[profile.crowds]
        self.shelf = np.clip(shelf.astype(np.int64), 0, kernels.SHELVES - 1)
        self.bases = np.concatenate([[0], np.cumsum(known.rare_bits + kernels.SHELVES)]).astype(np.int64)
        self.starts, self.partners = np.zeros(items + 1, np.int64), np.zeros(0, np.int64)
        self.leads: Flags = np.zeros(items, bool)
        self.banned: Hashes = np.zeros(0, np.uint64)
        self.most_pairs = np.zeros(crowds, np.int64)
        self.facts = np.zeros(2, np.int64)
        kinds = profile.kinds
        self.kinds, count = kinds, int(kinds.max(initial=-1)) + 1
        self.kind_found, self.kind_seen = np.full(count, -1, np.int32), np.zeros(count, np.int32)
        self.numbers = np.zeros(n, np.int32)
        self.counted, self.spent, self.listed = (np.zeros(crowds, np.int64) for _ in range(3))
        self.favourites = np.full((crowds, kernels.FAVOURITES), -1, np.int32)
        self.hits = np.zeros((crowds, kernels.FAVOURITES), np.int32)
        self.heads = np.full(int(self.bases[-1]), -1, np.int32)
        self.pool = np.empty((1 << 12, 2 + kernels.CHUNK), np.int32)
        self.used = np.zeros(1, np.int64)
        self.shared = np.zeros(n, np.uint16)

    def know(self, order: Ints, left: Ints, right: Ints) -> None:
        """Arrange known pairs: for each item, the more preferred ones that it is similar to."""
        rank = np.empty(len(order), np.int64)
        rank[order] = np.arange(len(order))
        later = np.where(rank[left] > rank[right], left, right)
        by = np.argsort(later, kind="stable")
        self.partners = (left + right - later)[by]
        counts = np.bincount(later, minlength=len(order))
        self.starts = np.concatenate([[0], np.cumsum(counts)]).astype(np.int64)

    def run(self, order: Ints, role: NDArray[np.int8], everyone: bool, income: int, tick: Tick) -> tuple[Ints, Ints]:
        """Walk to the end; return the pairs of members."""
        profile = self.profile
        p, q = least_fraction(profile.threshold)
        purse = np.array([GRACE * income], np.int64)
        room = ROOM + (len(profile) if everyone else 0)
        out_left, out_right = np.empty(room, np.int32), np.empty(room, np.int32)
        parts: list[tuple[NDArray[np.int32], NDArray[np.int32]]] = []
        lack = profile.least_sum
        maps, heavy, _ = profile.drawn
        done = 0
        while done < len(order):
            self.facts[0] = 0
            before = done
            done = kernels.walk(
                done,
                order,
                everyone,
                role,
                self.starts,
                self.partners,
                self.leads,
                self.place,
                profile.crowds,
                self.active,
                profile.vocabulary.exact,
                profile.sizes,
                heavy,
                maps,
                lack,
                self.shelf,
                self.rare_lack,
                self.bases,
                profile.vocabulary.rare_bits,
                self.lowest,
                self.width,
                self.kinds,
                self.kind_found,
                self.kind_seen,
                self.numbers,
                self.counted,
                self.favourites,
                self.hits,
                self.heads,
                self.pool,
                self.used,
                self.shared,
                self.banned,
                p,
                q,
                income,
                purse,
                SLICE,
                self.most_pairs,
                self.spent,
                self.listed,
                out_left,
                out_right,
                self.facts,
            )
            written = int(self.facts[0])
            parts.append((out_left[:written].copy(), out_right[:written].copy()))
            tick(done - before)
            longest = 2 + int(profile.vocabulary.rare_bits.max(initial=0))
            if self.used[0] + longest > len(self.pool):
                more = np.empty((len(self.pool) + longest, self.pool.shape[1]), np.int32)
                self.pool = np.concatenate([self.pool, more])
        left, right = (np.concatenate([np.zeros(0, np.int32), *(part[i] for part in parts)]) for i in range(2))
        return left.astype(np.int64), right.astype(np.int64)
