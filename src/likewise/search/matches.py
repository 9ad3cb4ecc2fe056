"""What a search returns: groups of copies, the verified pairs between them, and the sketches they came from."""

from __future__ import annotations

from dataclasses import dataclass, replace

import numpy as np
from numpy.typing import NDArray

from likewise.base.arrays import Hashes, Ints
from likewise.base.copies import Groups
from likewise.families.banding import Banding
from likewise.search.band_keys import HeldKeys, Keys
from likewise.search.scored import ScoredPairs, Scores, pair_order


@dataclass(frozen=True)
class Sides:
    """Which pairs of a collection of two parts count; the second begins at row `split`.

    across: pairs with one item from each part; copies are looked for within each part only.
    Otherwise: all pairs except those of two items of the first part.
    """

    split: int
    across: bool


@dataclass(frozen=True)
class VerifiedPairs:
    """Groups of equal items and the verified pairs between them, left < right, sorted.

    Rows with the same number in `copies` are identical to the byte. directed: a pair says that the left one is
    contained in the right one, whichever comes first.
    """

    groups: Groups
    copies: Ints
    left: Ints
    right: Ints
    similarity: Scores
    sketched: Sketched | None = None
    directed: bool = False

    @property
    def empty(self) -> NDArray[np.bool_]:
        """Whether the documents of a group are empty: without a single shingle."""
        known = self.sketched
        return np.zeros(len(self.groups), bool) if known is None else ~(known.units != 0).any(axis=1)

    def same_sets(self, left: Ints, right: Ints) -> NDArray[np.bool_]:
        """Tell which pairs of rows have the same set; rows of two collections are never in one group."""
        a, b = self.groups.of[left], self.groups.of[right]
        if self.sketched is None:
            return np.asarray(a == b)
        return np.asarray((self.sketched.units[a] == self.sketched.units[b]).all(axis=1))

    def without_keys(self) -> VerifiedPairs:
        """Return the same pairs without the band keys, which only later runs use."""
        if self.sketched is None:
            return self
        none = HeldKeys(np.empty((self.sketched.keys.items, 0), np.uint32))
        chosen = none.chosen(self.sketched.filled[:0])
        return replace(self, sketched=replace(self.sketched, keys=none, group_keys=chosen, banding=None))


@dataclass(frozen=True)
class Sketched:
    """The result of sketching: copies, groups of equal sets with their fingerprints, and the band keys.

    filled: the groups whose sets are not empty. keys: the band keys of every different item. group_keys: those of
    `filled`. common: the shingles left out. After an exact search the keys have no bands, and the banding is None.
    """

    copies: Ints
    groups: Groups
    filled: Ints
    units: Hashes
    keys: Keys
    group_keys: Keys
    banding: Banding | None
    common: Hashes
    drawn: Drawn


@dataclass(frozen=True)
class Drawn:
    """A sample of documents for the certificate: their rows, and (place in the sample, different item) of every true
    neighbour."""

    rows: Ints
    sample: Ints
    items: Ints


def count_different(found: VerifiedPairs, sides: Sides | None = None) -> int:
    """Count the documents that are not copies of an earlier one; empty ones are copies of each other.

    Of two parts that are not compared across, those of the first, which an earlier run kept, do not count.
    """
    start = sides.split if sides and not sides.across else 0
    copies, groups = found.copies[start:], found.groups.of[start:]
    empty = found.empty[groups]
    several = np.count_nonzero(np.bincount(copies[empty])) - len(np.unique(groups[empty]))
    return int(np.count_nonzero(np.bincount(copies)) - several)


def first_of_each(of: Ints) -> Ints:
    """Return the first row of every group; groups are numbered by first row."""
    return np.flatnonzero(np.diff(np.maximum.accumulate(of), prepend=-1))


def add_empty_pair(groups: Groups, filled: Ints, left: Ints, right: Ints, similarity: Scores) -> ScoredPairs:
    """Add the pair of the two groups of empty items, one on each side of a join: they are identical."""
    empty = np.setdiff1d(np.arange(len(groups)), filled)
    if len(empty) < 2:
        return left, right, similarity
    left, right = np.append(left, empty[0]), np.append(right, empty[1])
    order = pair_order(left, right, len(groups))
    return left[order], right[order], np.append(similarity, 1.0)[order]


def best_ranks(groups: Groups, ranks: Ints | None) -> Ints:
    """Return the lowest rank of every group."""
    if ranks is None or not len(groups):
        return groups.first
    best: Ints = np.minimum.reduceat(ranks[groups.members], groups.offsets[:-1])
    return best
