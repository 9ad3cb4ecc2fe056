"""The pairs that match: those chosen among the candidates, or all pairs of a cluster."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from likewise.apps.link.blocking import RecordPairs
from likewise.apps.link.fields import Floats
from likewise.apps.link.scoring import ScoredRecords, Scorer
from likewise.base.arrays import Ints

MOST_LISTED, LISTED_PER_RECORD = 1_000_000, 10
"""Pairs of clusters that are always listed in full: a million, or ten per record."""


@dataclass(frozen=True)
class MatchedPairs:
    """Matches: two columns of records, their scores, and the points of every field."""

    pairs: Ints
    scores: Floats
    points: dict[str, Floats]


def chosen_pairs(candidates: RecordPairs, scored: ScoredRecords, chosen: Ints) -> MatchedPairs:
    """Return some of the candidates as matches."""
    pairs = np.stack([candidates.left[chosen], candidates.right[chosen]], axis=1)
    return MatchedPairs(pairs, scored.value[chosen], scored.points(chosen))


def pairs_within(candidates: RecordPairs, scored: ScoredRecords, scorer: Scorer, groups: Ints) -> MatchedPairs:
    """Return all pairs inside clusters, with scores; those that were no candidates are compared now.

    All pairs are listed up to MOST_LISTED, or LISTED_PER_RECORD times the records. If there are more, those of the
    largest clusters are the pairs with the cluster's first record only.
    """
    n = len(groups)
    sizes = np.bincount(groups, minlength=n)
    cap = _largest_listed(sizes[sizes > 1], max(MOST_LISTED, LISTED_PER_RECORD * n))
    home = groups[candidates.left]
    listed = (sizes[home] <= cap) | (home == candidates.left)
    same = np.flatnonzero((home == groups[candidates.right]) & listed)
    known = chosen_pairs(candidates, scored, same)
    order = np.argsort(groups, kind="stable")
    starts = np.cumsum(sizes) - sizes
    every = [_listed(order, starts[sizes == size], size, cap) for size in np.unique(sizes[sizes > 2]).tolist()]
    if not every:
        return known
    inside = np.concatenate(every)
    missed = np.setdiff1d(inside[:, 0] * n + inside[:, 1], known.pairs[:, 0] * n + known.pairs[:, 1])
    if not len(missed):
        return known
    others = scorer.others(missed // n, missed % n, scored)
    points = others.points(np.arange(len(missed)))
    return MatchedPairs(
        np.concatenate([known.pairs, np.stack([missed // n, missed % n], axis=1)]),
        np.concatenate([known.scores, others.value]),
        {name: np.concatenate([some, points[name]]) for name, some in known.points.items()},
    )


def _largest_listed(sizes: Ints, most: int) -> int:
    """Return the size up to which clusters are listed in full, so that there are at most about `most` pairs.

    >>> _largest_listed(np.array([2, 3, 3, 100]), most=10), _largest_listed(np.array([2, 3]), most=10)
    (3, 3)
    """
    ordered = np.sort(sizes)
    listed = np.searchsorted(np.cumsum(ordered * (ordered - 1) // 2), most, side="right")
    if listed == len(ordered):
        return int(ordered[-1]) if len(ordered) else 2
    return int(max(2, ordered[ordered < ordered[listed]].max(initial=2)))


def _listed(order: Ints, starts: Ints, size: int, cap: int) -> Ints:
    """Return the pairs inside clusters of one size, whose records are in `order` from each of the `starts` on."""
    first, second = np.triu_indices(size, 1) if size <= cap else (np.zeros(size - 1, np.int64), np.arange(1, size))
    return np.stack([order[starts[:, None] + side].ravel() for side in (first, second)], axis=1)
