"""From the neighbours of different items to those of all rows, copies among them (L7)."""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from likewise.base.arrays import Ints
from likewise.base.copies import Groups
from likewise.search.candidates import best_first

Floats = NDArray[np.float64]


def nearest_rows(
    groups: Groups,
    left: Ints,
    right: Ints,
    closeness: Floats,
    k: int,
    split: int,
    across: bool,
    same: float,
    both: bool = False,
) -> tuple[Ints, Ints, Floats]:
    """Turn neighbours of groups of copies into the k closest of every row, ties by row; copies are as close as `same`.

    `across`: groups below `split` are asked, and the others are their neighbours. `both`: a pair counts both ways.
    """
    if both:
        left, right = np.concatenate([left, right]), np.concatenate([right, left])
        closeness = np.concatenate([closeness, closeness])
    left, right, closeness = best_first(left, right, closeness, k)
    if not across:  # a group is near to itself, as far as it has several members
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
