"""The rows that have a copy, an equal set, a pair, or a place in a sample: all that the driver has to hold.

Every other row is kept and is a cluster of its own. Rows are numbered anew, in their order, so that the code of the
local engine can be used as it is: it depends on the order of rows only.
"""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property
from typing import Any

import numpy as np
from numpy.typing import NDArray

from likewise.base.arrays import Ints, to_arrow
from likewise.base.copies import Groups
from likewise.base.runlog import RunLog
from likewise.search.band_keys import HeldKeys
from likewise.search.expand import listed_pairs, nearest_rows
from likewise.search.matches import Drawn, Sides, Sketched, VerifiedPairs
from likewise.search.prepare import NO_ROWS, NOTHING
from likewise.search.scored import ScoredPairs, Scores
from likewise.spark.copies import Repeated
from likewise.spark.corpus import Corpus


def listed(
    corpus: Corpus, universe: Universe, matches: VerifiedPairs, k: int | None, copies: bool, log: RunLog,
    distances: bool = False,
) -> ScoredPairs:  # fmt: skip
    """List the pairs of rows of the universe: all of them, or the k best of each row.

    copies: copies are pairs too. distances: the scores of the pairs are distances, and not similarities.
    """
    across, same = corpus.sides is not None, 0.0 if distances else 1.0
    if k is None:
        left, right, score, abridged = listed_pairs(matches, within=copies, items=len(corpus), same=same)
        if abridged:
            log.details["abridged"] = abridged
        return left, right, score
    sides, groups = universe.sides(corpus.sides), matches.groups
    here = int(np.searchsorted(groups.first, sides.split)) if sides else len(groups)
    score = -matches.similarity if distances else matches.similarity
    left, right, score = nearest_rows(
        groups, matches.left, matches.right, score, k, here, across=not copies, same=same, both=not across
    )
    return left, right, 0 - score if distances else score


def named(corpus: Corpus, universe: Universe, places: Ints, column: str | None) -> Any:
    """Return the ids of rows of the universe, all of them of one collection."""
    rows, split = universe.rows[places], corpus.split
    second = bool(split and len(rows) and rows[0] >= split)
    if column is None:
        return to_arrow(corpus.parts[second].positions(rows - split if second else rows))
    different, place = np.unique(rows, return_inverse=True)
    ids = corpus.column(different - split if second else different, column, int(second))
    return ids.take(to_arrow(place.astype(np.int64)))


@dataclass(frozen=True)
class Universe:
    """Rows of the corpus, ascending; which are copies, and which have equal sets. empty: rows without a shingle."""

    rows: Ints
    copied: Repeated
    grouped: Repeated
    empty_rows: Ints

    @classmethod
    def of(cls, copied: Repeated, grouped: Repeated, empty_rows: Ints, *others: Ints) -> Universe:
        """Return the universe of these rows."""
        parts = copied.rows, copied.first, grouped.rows, grouped.first, empty_rows, *others
        return cls(np.unique(np.concatenate(parts)), copied, grouped, empty_rows)

    def place(self, rows: Ints) -> Ints:
        """Return the new numbers of rows."""
        return np.searchsorted(self.rows, rows)

    @cached_property
    def _first(self) -> Ints:
        return self.copied.resolved(self.rows)

    @cached_property
    def copies(self) -> Ints:
        """The number of the different document that each row is a copy of."""
        return np.unique(self._first, return_inverse=True)[1]

    @cached_property
    def groups(self) -> Groups:
        """Rows with equal sets."""
        return Groups.by_label(np.unique(self.grouped.resolved(self._first), return_inverse=True)[1])

    @cached_property
    def empty(self) -> NDArray[np.bool_]:
        """Whether the documents of a group are empty."""
        flags = np.zeros(len(self.groups), bool)
        flags[self.groups.of[self.place(self.empty_rows)]] = True
        return flags

    @property
    def filled(self) -> Ints:
        """The groups that are not empty."""
        return np.flatnonzero(~self.empty)

    def group(self, rows: Ints) -> Ints:
        """Return the groups of these rows of the corpus."""
        return self.groups.of[self.place(rows)]

    def sides(self, sides: Sides | None) -> Sides | None:
        """Return the sides in new numbers."""
        return None if sides is None else Sides(int(self.place(np.array([sides.split]))[0]), sides.across)

    def matches(
        self,
        left: Ints,
        right: Ints,
        similarity: Scores,
        drawn: Drawn | None = None,
        twins: NDArray[np.bool_] | None = None,
    ) -> VerifiedPairs:
        """Return pairs of groups as the local engine has them; band keys remain on the cluster.

        twins: which of the pairs have equal sets, one on each side, where that is known.
        """
        units = (
            np.repeat(np.where(self.empty, 0, np.arange(1, len(self.groups) + 1)), 2).reshape(-1, 2).astype(np.uint64)
        )
        if twins is not None:
            units[right[twins]] = units[left[twins]]
        none = HeldKeys(np.empty((0, 0), np.uint32))
        sample = drawn or Drawn(NO_ROWS, NO_ROWS, NO_ROWS)
        known = Sketched(self.copies, self.groups, self.filled, units, none, none, None, NOTHING, sample)
        return VerifiedPairs(self.groups, self.copies, left, right, similarity, known)
