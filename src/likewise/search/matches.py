"""What a search leaves: groups of copies, their sketches, the verified pairs between them, and those as rows."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from likewise.base.arrays import Hashes, Ints
from likewise.base.copies import Groups
from likewise.families.banding import Banding
from likewise.kernels.pairs import expand_pairs
from likewise.search.band_keys import Keys
from likewise.search.candidates import pair_order

MAX_LISTED = 1_000_000
LISTED_PER_ITEM = 10


@dataclass(frozen=True)
class Sides:
    """Which pairs of a collection of two parts count; the second begins at row `split`.

    across: pairs of one item from each part; and copies are sought within each part only.
    Otherwise: all pairs but those of two items of the first part.
    """

    split: int
    across: bool


@dataclass(frozen=True)
class Matches:
    """Groups of copies and the verified pairs between them, left < right, sorted.

    Rows with the same number in `copies` are the same to the byte.
    """

    groups: Groups
    copies: Ints
    left: Ints
    right: Ints
    similarity: NDArray[np.float64]
    sketched: Sketched | None = None


@dataclass(frozen=True)
class Sketched:
    """What sketching leaves: copies, groups of equal sets with their fingerprints, and the band keys.

    `filled` are the groups that are not empty, `keys` those of every different item, `group_keys` those of `filled`;
    `common` are the shingles that were left out. An exact search leaves keys of no bands, and no banding.
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
    """A sample of documents for the certificate: their rows, and (place in the sample, different item) of all true
    neighbours."""

    rows: Ints
    sample: Ints
    items: Ints


def first_of_each(of: Ints) -> Ints:
    """Return the first row of every group; groups are numbered by first row."""
    return np.flatnonzero(np.diff(np.maximum.accumulate(of), prepend=-1))


def add_empty_pair(
    groups: Groups, filled: Ints, left: Ints, right: Ints, similarity: NDArray[np.float64]
) -> tuple[Ints, Ints, NDArray[np.float64]]:
    """Add the pair of the two groups of empty items, one on each side of a join: identical, with nothing to share."""
    empty = np.setdiff1d(np.arange(len(groups)), filled)
    if len(empty) < 2:
        return left, right, similarity
    left, right = np.append(left, empty[0]), np.append(right, empty[1])
    order = pair_order(left, right, len(groups))
    return left[order], right[order], np.append(similarity, 1.0)[order]


def listed_pairs(
    matches: Matches, within: bool = True, same: float = 1.0
) -> tuple[Ints, Ints, NDArray[np.float64], dict[str, int]]:
    """Write the pairs of groups out as pairs of rows, sorted; `within`: copies of one group are pairs too.

    `same` is the similarity of copies.

    A group of g copies makes g(g-1)/2 pairs. While all pairs are at most a million, or ten an item, they are all
    listed.
    Beyond that the largest groups are abridged: each copy is listed with the first of its group only (of two
    collections, with the first of the group most like it), and only the first stands for the group in other pairs.
    What was abridged is in the dictionary returned.
    """
    groups = matches.groups
    sizes = groups.sizes
    budget = max(MAX_LISTED, LISTED_PER_ITEM * len(groups.of))
    cap = _largest_listed(matches, within, budget)
    big = sizes > cap
    listed = np.where(big, 1, sizes)
    left, right = matches.left, matches.right
    total = int((listed[left] * listed[right]).sum())
    inner = np.flatnonzero(sizes > 1) if within else np.zeros(0, np.int64)
    whole = inner[~big[inner]]
    stars = inner[big[inner]]
    total += int((sizes[whole] * (sizes[whole] - 1) // 2).sum())
    out_left, out_right = np.empty(total, np.int64), np.empty(total, np.int64)
    out_similarity = np.empty(total, np.float64)
    members, offsets = groups.members, groups.offsets
    if big.any():
        first_only = np.repeat(~big, sizes) | np.isin(np.arange(len(members)), offsets[:-1])
        members = members[first_only]
        offsets = np.concatenate([[0], np.cumsum(listed)]).astype(np.int64)
    both_left = np.concatenate([left, whole])
    both_right = np.concatenate([right, whole])
    both = np.concatenate([matches.similarity, np.full(len(whole), same)])
    out = True, True, out_left, out_right, out_similarity
    expand_pairs(both_left, both_right, both, members, offsets, members, offsets, *out)
    if len(stars):
        copies = np.flatnonzero(np.isin(groups.of, stars))
        copies = copies[groups.first[groups.of[copies]] != copies]
        out_left = np.concatenate([out_left, groups.first[groups.of[copies]]])
        out_right = np.concatenate([out_right, copies])
        out_similarity = np.concatenate([out_similarity, np.full(len(copies), same)])
    if not within and big.any():
        more = _best_partners(matches, big, same)
        out_left, out_right = np.concatenate([out_left, more[0]]), np.concatenate([out_right, more[1]])
        out_similarity = np.concatenate([out_similarity, more[2]])
    order = pair_order(out_left, out_right, max(2, len(groups.of)))
    abridged = {"groups": int(big.sum()), "items": int(sizes[big].sum())} if big.any() else {}
    return out_left[order], out_right[order], out_similarity[order], abridged


def _best_partners(matches: Matches, big: NDArray[np.bool_], same: float) -> tuple[Ints, Ints, NDArray[np.float64]]:
    """Pair every further copy of an abridged group with the first of the group that is most like its own."""
    groups = matches.groups
    of = np.concatenate([matches.left, matches.right])
    partner = np.concatenate([matches.right, matches.left])
    similarity = np.concatenate([matches.similarity, matches.similarity])
    order = np.lexsort((partner, np.abs(similarity - same), of))
    first = order[np.concatenate([[True], of[order][1:] != of[order][:-1]])[: len(order)]]
    best = np.full(len(groups), -1)
    best[of[first]] = first
    rows = np.arange(len(groups.of))
    copies = rows[big[groups.of] & (groups.first[groups.of] != rows) & (best[groups.of] >= 0)]
    chosen = best[groups.of[copies]]
    others = groups.first[partner[chosen]]
    return np.minimum(copies, others), np.maximum(copies, others), similarity[chosen]


def _largest_listed(matches: Matches, within: bool, budget: int) -> int:
    """Return the largest group size such that listing groups up to it in full stays within the budget."""
    sizes = matches.groups.sizes
    levels = np.unique(sizes)

    def total(cap: int) -> float:
        listed = np.where(sizes > cap, 1, sizes).astype(float)
        pairs = float((listed[matches.left] * listed[matches.right]).sum())
        return pairs + (float((listed * (listed - 1) / 2).sum()) if within else 0.0)

    low, high = 0, len(levels)
    while low < high:
        middle = (low + high) // 2
        if total(int(levels[middle])) <= budget:
            low = middle + 1
        else:
            high = middle
    return int(levels[low - 1]) if low else 1
