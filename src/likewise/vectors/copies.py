"""From the neighbours of different vectors to those of all rows, copies among them."""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from likewise.arrays import Ints
from likewise.candidates import best_first
from likewise.groups import Groups

Floats = NDArray[np.float64]


def nearest_rows(
    groups: Groups, left: Ints, right: Ints, distance: Floats, k: int, split: int, across: bool, both: bool = False
) -> tuple[Ints, Ints, Floats]:
    """Turn neighbours of groups of copies into the k nearest of every row: copies are each other's nearest.

    `across`: groups below `split` are asked, and the others are their neighbours. `both`: a pair counts both ways.
    """
    if both:
        left, right = np.concatenate([left, right]), np.concatenate([right, left])
        distance = np.concatenate([distance, distance])
    left, right, closeness = best_first(left, right, -distance, k)
    distance = -closeness
    if not across:  # a group is near to itself, as far as it has several members
        several = np.flatnonzero(groups.sizes > 1)
        left, right = np.concatenate([left, several]), np.concatenate([right, several])
        distance = np.concatenate([distance, np.zeros(len(several))])
    taken = np.minimum(groups.sizes[right], k + 1)
    members = np.repeat(groups.offsets[right], taken) + _counted(taken)
    of, rows, distance = np.repeat(left, taken), groups.members[members], np.repeat(distance, taken)
    of, rows, closeness = best_first(of, rows, -distance, k + 1)
    counts = np.bincount(of, minlength=len(groups))
    starts = np.concatenate([[0], np.cumsum(counts)])
    asked = np.arange(len(groups.of)) if not across else np.flatnonzero(groups.of < split)
    sizes = counts[groups.of[asked]]
    place = np.repeat(starts[groups.of[asked]], sizes) + _counted(sizes)
    row = np.repeat(asked, sizes)
    other = row != rows[place]
    row, place = row[other], place[other]
    final = best_first(row, rows[place], closeness[place], k)
    return final[0], final[1], -final[2]


def _counted(sizes: Ints) -> Ints:
    """Return 0, 1, … for every size, one after the other."""
    return np.arange(sizes.sum()) - np.repeat(np.cumsum(sizes) - sizes, sizes)
