"""The certificate of a run: the true neighbours of its sample beside the pairs it found."""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from likewise.base.arrays import Ints
from likewise.search.matches import Sides, Sketched, first_of_each
from likewise.search.recall.sample import Certificate, estimate, neighbour_counts, pairs_known
from likewise.search.verify import Scored


def certified(sketched: Sketched, found: Scored, crowd_of: Ints, sides: Sides | None, items: int) -> Certificate:
    """Compare the true neighbours of the sample with what was found."""
    groups, drawn = sketched.groups, sketched.drawn
    first = first_of_each(sketched.copies)
    here, there = groups.of[drawn.rows[drawn.sample]], groups.of[first[drawn.items]]
    counts = here != there
    if sides and sides.across:
        counts &= (groups.first[here] < sides.split) != (groups.first[there] < sides.split)
    pairs = np.unique(np.stack([drawn.sample[counts], there[counts]], axis=1), axis=0)
    sample, other = pairs[:, 0], pairs[:, 1]
    own = groups.of[drawn.rows[sample]]
    known = pairs_known(found[0], found[1], own, other, len(groups))
    known |= _stood_for(found, own, other, crowd_of)
    sizes = groups.sizes
    if sides and not sides.across:  # only new documents were shown to the sample
        sizes = np.bincount(groups.of[sides.split :], minlength=len(groups))
    within = sides is None or not sides.across
    true, hit = neighbour_counts(drawn.rows, groups.of, sizes, sample, other, known, within)
    start = sides.split if sides and not sides.across else 0
    return estimate(true, hit, items - start)


def _stood_for(found: Scored, own: Ints, other: Ints, crowd_of: Ints) -> NDArray[np.bool_]:
    """Tell which pairs lie in a crowd whose pairs are not all listed, and share a document that stands for both."""
    known = np.zeros(len(own), bool)
    if not len(crowd_of):
        return known
    same = (crowd_of[own] >= 0) & (crowd_of[own] == crowd_of[other])
    for group in np.unique(own[same]).tolist():
        near = np.zeros(len(crowd_of), bool)
        near[group] = True
        near[found[1][found[0] == group]] = True
        near[found[0][found[1] == group]] = True
        reached = near.copy()
        reached[found[1][near[found[0]]]] = True
        reached[found[0][near[found[1]]]] = True
        mine = same & (own == group)
        known[mine] = reached[other[mine]]
    return known
