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
from likewise.kernels.crowds import SLACK
from likewise.search.crowds.profile import CrowdProfile, Flags
from likewise.search.exact.bounds import least_fraction
from likewise.search.expand import most_listed

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
        if (self.profile.least_sum > SLACK).all():
            nobody = np.zeros(0, np.int64)
            return nobody, nobody, np.ones(len(self.profile.crowd_sizes), bool)
        state = _WalkState(self.profile, len(role), self.nodes)
        sizes = self.profile.crowd_sizes
        share = most_listed(len(self.profile)) / max(1, len(self.profile))
        state.crowds.most_pairs[:] = (share * sizes).astype(np.int64)
        left, right = state.run(order, role, True, self._income() // FIRST_LOOK, tick)
        complete: Flags = state.crowds.active
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
        state.crowds.active[:] = active
        state.know(order, *known)
        state.rows = state.rows._replace(banned=banned)
        left, right = state.run(order, role, False, self._income(), tick)
        return left, right, state.rows.leads, state.unchecked

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
        place[nodes] = np.arange(n)
        self.rows = kernels.WalkRows(
            order=np.arange(items),
            role=np.full(items, NORMAL, np.int8),
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
        self.unchecked = 0

    def know(self, order: Ints, left: Ints, right: Ints) -> None:
        """Arrange known pairs: for each item, the more preferred ones that it is similar to."""
        rank = np.empty(len(order), np.int64)
        rank[order] = np.arange(len(order))
        later = np.where(rank[left] > rank[right], left, right)
        by = np.argsort(later, kind="stable")
        counts = np.bincount(later, minlength=len(order))
        starts = np.concatenate([[0], np.cumsum(counts)]).astype(np.int64)
        self.rows = self.rows._replace(partners=(left + right - later)[by], starts=starts)

    def run(self, order: Ints, role: NDArray[np.int8], everyone: bool, income: int, tick: Tick) -> tuple[Ints, Ints]:
        """Walk to the end; return the pairs of members."""
        p, q = least_fraction(self.profile.threshold)
        purse = np.array([GRACE * income], np.int64)
        room = ROOM + (len(self.profile) if everyone else 0)
        left, right = np.empty(room, np.int32), np.empty(room, np.int32)
        parts: list[tuple[NDArray[np.int32], NDArray[np.int32]]] = []
        rows = self.rows._replace(order=order, role=role)
        facts = np.zeros(2, np.int64)
        longest = 2 + int(self.crowds.rare_bits.max(initial=0))
        done = 0
        while done < len(order):
            before = done
            state = rows, self.members, self.crowds, self.leaders
            done = kernels.walk(done, everyone, *state, p, q, income, purse, SLICE, left, right, facts)
            written = int(facts[0])
            parts.append((left[:written].copy(), right[:written].copy()))
            tick(done - before)
            pool = self.leaders.pool
            if self.leaders.used[0] + longest > len(pool):
                more = np.empty((len(pool) + longest, pool.shape[1]), np.int32)
                self.leaders = self.leaders._replace(pool=np.concatenate([pool, more]))
        self.unchecked = int(facts[1])
        a, b = (np.concatenate([np.zeros(0, np.int32), *(part[i] for part in parts)]) for i in range(2))
        return a.astype(np.int64), b.astype(np.int64)
