"""Pairs of groups to pairs of rows.

A search compares groups of equal items once each. Here its pairs become pairs of rows: all of them (`row_pairs`), as
many as fit in a table (`listed_pairs`), or the k best of every row (`nearest_rows`).
"""

from __future__ import annotations

from collections.abc import Callable

import numpy as np
from numpy.typing import NDArray

from likewise.base.arrays import Ints
from likewise.base.copies import Groups
from likewise.kernels.pairs import expand_pairs
from likewise.search.matches import VerifiedPairs
from likewise.search.scored import ScoredPairs, Scores, best_first, concatenated, pair_order

MAX_LISTED = 1_000_000
LISTED_PER_ITEM = 10
"""Pairs that are always listed in full: a million, or ten per item. Beyond them the largest groups are abridged."""


def most_listed(items: int) -> int:
    """Return how many pairs of this many items are listed in full."""
    return max(MAX_LISTED, LISTED_PER_ITEM * items)


def row_pairs(pairs: ScoredPairs, here: Groups, there: Groups | None = None, symmetric: bool = True) -> ScoredPairs:
    """Write out a pair of rows for every two members of two paired groups, in no particular order.

    `there` has the groups of the right-hand side. Without it both sides are groups of one collection, a group may be
    paired with itself, and no row is paired with itself; if `symmetric`, each pair is written once, the earlier row
    first.
    """
    left, right, scores = pairs
    within, others = there is None, here if there is None else there
    if len(here) == len(here.members) and len(others) == len(others.members):
        left, right = here.first[left], others.first[right]
    else:
        counts = here.sizes[left] * others.sizes[right]
        if within:
            own = left == right
            counts[own] = (counts[own] - here.sizes[left[own]]) // (2 if symmetric else 1)
        total = int(counts.sum())
        rows, partners, expanded = np.empty(total, np.int64), np.empty(total, np.int64), np.empty(total)
        sides = here.members, here.offsets, others.members, others.offsets
        expand_pairs(left, right, scores, *sides, within, symmetric, rows, partners, expanded)
        left, right, scores = rows, partners, expanded
    if within and symmetric and (left > right).any():
        left, right = np.minimum(left, right), np.maximum(left, right)
    return left, right, scores


def listed_pairs(
    matches: VerifiedPairs, within: bool = True, same: float = 1.0, items: int | None = None
) -> tuple[Ints, Ints, Scores, dict[str, int]]:
    """Return the pairs of rows, sorted, and how many groups were abridged; `within`: copies are pairs of each other.

    `same` is the similarity of copies. `items` is the number of all items, if `matches` has only some of them.

    A group of g copies makes g(g-1)/2 pairs. As long as all pairs together are at most a million, or ten per item, all
    are listed. Beyond that the largest groups are abridged: each copy is paired with the first of its group only (in a
    join of two collections, with the first of the most similar group), and only the first appears in other pairs.
    """
    groups = matches.groups
    sizes = groups.sizes
    cap = _largest_listed(matches, within, most_listed(len(groups.of) if items is None else items))
    big = sizes > cap
    inner = np.flatnonzero(sizes > 1) if within else np.zeros(0, np.int64)
    whole, stars = inner[~big[inner]], inner[big[inner]]
    pairs = concatenated([(matches.left, matches.right, matches.similarity), (whole, whole, np.full(len(whole), same))])
    parts = [row_pairs(pairs, _abridged(groups, big) if big.any() else groups, symmetric=not matches.directed)]
    if len(stars):
        copies = np.flatnonzero(np.isin(groups.of, stars))
        copies = copies[groups.first[groups.of[copies]] != copies]
        parts.append((groups.first[groups.of[copies]], copies, np.full(len(copies), same)))
    if not within and big.any():
        parts.append(_best_partners(matches, big, same))
    left, right, similarity = concatenated(parts) if len(parts) > 1 else parts[0]
    order = pair_order(left, right, max(2, len(groups.of)))
    told = {"groups": int(big.sum()), "items": int(sizes[big].sum())} if big.any() else {}
    return left[order], right[order], similarity[order], told


def _abridged(groups: Groups, big: NDArray[np.bool_]) -> Groups:
    """Return the groups with only the first member of each big one."""
    sizes = groups.sizes
    kept = np.repeat(~big, sizes) | np.isin(np.arange(len(groups.members)), groups.offsets[:-1])
    offsets = np.concatenate([[0], np.cumsum(np.where(big, 1, sizes))]).astype(np.int64)
    return Groups(groups.of, groups.members[kept], offsets)


def _best_partners(matches: VerifiedPairs, big: NDArray[np.bool_], same: float) -> ScoredPairs:
    """Pair every further copy of an abridged group with the first of the group most similar to its own."""
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


def _largest_listed(matches: VerifiedPairs, within: bool, budget: int) -> int:
    """Return the largest group size such that listing groups up to it in full stays within the budget."""
    sizes = matches.groups.sizes

    def total(cap: int) -> float:
        listed = np.where(sizes > cap, 1, sizes).astype(float)
        pairs = float((listed[matches.left] * listed[matches.right]).sum())
        return pairs + (float((listed * (listed - 1) / 2).sum()) if within else 0.0)

    return largest_cap(np.unique(sizes), total, budget)


def largest_cap(levels: Ints, total: Callable[[int], float], budget: int) -> int:
    """Return the largest of these sizes, which ascend, whose total is within the budget; 1 if there is none."""
    low, high = 0, len(levels)
    while low < high:
        middle = (low + high) // 2
        if total(int(levels[middle])) <= budget:
            low = middle + 1
        else:
            high = middle
    return int(levels[low - 1]) if low else 1


def nearest_rows(
    groups: Groups,
    left: Ints,
    right: Ints,
    closeness: Scores,
    k: int,
    split: int,
    across: bool,
    same: float,
    both: bool = False,
) -> ScoredPairs:
    """Return the k closest rows of every row, ties by row, from the closest groups of every group.

    same: the closeness of copies. across: the neighbours of groups below `split` are the others. both: each pair counts
    in both directions.
    """
    if both:
        left, right = np.concatenate([left, right]), np.concatenate([right, left])
        closeness = np.concatenate([closeness, closeness])
    left, right, closeness = best_first(left, right, closeness, k)
    if not across:  # a group with several members is a neighbour of itself
        several = np.flatnonzero(groups.sizes > 1)
        left, right = np.concatenate([left, several]), np.concatenate([right, several])
        closeness = np.concatenate([closeness, np.full(len(several), same)])
    taken = np.minimum(groups.sizes[right], k + 1)
    members = np.repeat(groups.offsets[right], taken) + _counted(taken)
    of, rows, closeness = np.repeat(left, taken), groups.members[members], np.repeat(closeness, taken)
    of, rows, closeness = best_first(of, rows, closeness, k + 1)
    counts = np.bincount(of, minlength=len(groups))
    starts = np.concatenate([[0], np.cumsum(counts)])
    asked = np.arange(len(groups.of)) if not across else np.flatnonzero(groups.of < split)
    sizes = counts[groups.of[asked]]
    place = np.repeat(starts[groups.of[asked]], sizes) + _counted(sizes)
    row = np.repeat(asked, sizes)
    other = row != rows[place]
    row, place = row[other], place[other]
    return best_first(row, rows[place], closeness[place], k)


def _counted(sizes: Ints) -> Ints:
    """Return 0, 1, … for every size, one after the other."""
    return np.arange(sizes.sum()) - np.repeat(np.cumsum(sizes) - sizes, sizes)
