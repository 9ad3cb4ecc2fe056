"""Groups of equal vectors and the near pairs between them, and the recall of the search, measured on a sample."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator

import numpy as np

from likewise.base.arrays import Ints
from likewise.base.copies import Groups
from likewise.base.runlog import RunLog, Tick
from likewise.search.matches import VerifiedPairs
from likewise.search.recall.certificate import Certificate, estimate
from likewise.search.scored import ScoredPairs, no_pairs, packed, unpacked
from likewise.search.vectors.pairs import VectorAim, all_pairs, check_number, different, found_pairs, kept
from likewise.search.vectors.spaces import Space

FEWEST, MOST, SHARE = 100, 1000, 50
"""Limits of a default sample: at least 100 vectors, at most 1,000, and else one in 50."""
SALT = 0xCE47
"""What tells the sample from other random choices of a run."""
NO_ROWS = np.zeros(0, np.int64)
PORTION = 1 << 16
"""Vectors that the sample is compared with at a time."""


def near_groups(
    space: Space,
    aim: VectorAim,
    certify: int | None,
    log: RunLog,
    split: int = 0,
    asked: tuple[Ints, Ints] = (NO_ROWS, NO_ROWS),
) -> VerifiedPairs:
    """Find the pairs within the distance; their similarity is the negated distance.

    certify: the size of the sample on which recall is measured if some pairs may be missed; None for the default.
    split: rows before it are known to be apart; they are in no group with later rows, and in no pair with each other.
    asked: pairs of a row before it and a later one that an index has found.
    """
    check_number(len(space))
    groups, _, one_each = different(space, split, False, aim, log)
    pairs = no_pairs() if one_each is None else found_pairs(one_each, 0, aim, log)
    new = groups.first[pairs[1]] >= split
    pairs = _with_asked((pairs[0][new], pairs[1][new], pairs[2][new]), groups, space, aim, asked)
    log.counts["items"], log.counts["different"] = len(space) - split, int((groups.first >= split).sum())
    log.counts["verified"] = len(pairs[0])
    tables = log.details.get("tables")
    log.details["predicted_recall"] = 1.0 if tables is None else tables["recall"]
    items = len(space) - split
    rows = sampled_rows(items, certify, aim) + split
    if one_each is not None and tables is not None and len(rows):
        with log.stage("certify", len(groups)) as tick:
            log.certificate = certified(one_each, groups, pairs, rows, aim, tick, items).to_dict()
    return VerifiedPairs(groups, groups.of, pairs[0], pairs[1], 0 - pairs[2])


def _with_asked(
    pairs: ScoredPairs, groups: Groups, space: Space, aim: VectorAim, asked: tuple[Ints, Ints]
) -> ScoredPairs:
    """Return the pairs of groups with those of rows that were found before."""
    known = packed(pairs[0], pairs[1])
    left, right = unpacked(np.setdiff1d(packed(groups.of[asked[0]], groups.of[asked[1]]), known))
    if not len(left):
        return pairs
    more = kept(space, aim.within, groups.first[left], groups.first[right])
    found = groups.of[more[0]], groups.of[more[1]], more[2]
    left, right, distance = (np.concatenate(both) for both in zip(pairs, found, strict=True))
    order = np.lexsort((right, left))
    return left[order], right[order], distance[order]


def sampled_rows(items: int, certify: int | None, aim: VectorAim) -> Ints:
    """Return the sample of so many vectors, or of the default size."""
    size = _sample_size(items) if certify is None else min(certify, items)
    return np.sort(np.random.default_rng([aim.seed, SALT]).choice(items, size, replace=False)).astype(np.int64)


def _sample_size(items: int) -> int:
    """Return the number of vectors to sample by default.

    >>> _sample_size(10**6), _sample_size(20_000), _sample_size(50)
    (1000, 400, 50)
    """
    return min(items, max(FEWEST, min(MOST, items // SHARE)))


def certified(
    space: Space, groups: Groups, found: ScoredPairs, rows: Ints, aim: VectorAim, tick: Tick, items: int
) -> Certificate:
    """Compare a sample of the vectors with all others; see how many of the pairs within the distance were found.

    space: one vector of each group. rows: the sample, of so many items. Copies do not count: they are always found.
    """
    asked, place = np.unique(groups.of[rows], return_inverse=True)

    def neighbours() -> Iterator[tuple[Ints, Ints]]:
        for start in range(0, len(space), PORTION):
            stop = min(start + PORTION, len(space))
            some = space.chosen(np.concatenate([asked, np.arange(start, stop)]), *aim.room)
            (sample, other, _), _ = all_pairs(some, len(asked), aim, lambda _: None)
            yield sample, other + (start - len(asked))
            tick(stop - start)

    return tallied(neighbours(), asked, place, lambda other: groups.sizes[other], found, items)


def tallied(
    neighbours: Iterable[tuple[Ints, Ints]],
    asked: Ints,
    place: Ints,
    sizes: Callable[[Ints], Ints],
    found: ScoredPairs,
    items: int,
) -> Certificate:
    """Count how many true neighbours of a sample were found.

    neighbours: places in `asked`, the different vectors of the sample, beside vectors within the distance. place: that
    of each vector of the sample. sizes: tells how many copies vectors have.
    """
    true, hit = np.zeros(len(asked), np.int64), np.zeros(len(asked), np.int64)
    listed = packed(found[0], found[1])
    for sample, other in neighbours:
        apart = asked[sample] != other
        sample, other = sample[apart], other[apart]
        own = asked[sample]
        known = np.isin(packed(np.minimum(own, other), np.maximum(own, other)), listed)
        copies = sizes(other)
        np.add.at(true, sample, copies)
        np.add.at(hit, sample[known], copies[known])
    return estimate(true[place], hit[place], items)
