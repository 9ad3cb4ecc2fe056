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
    inside = [order[starts[place] : starts[place] + sizes[place]] for place in np.flatnonzero(sizes > 2)]
    if not inside:
        return known
    every = np.concatenate([_every_pair(one) if len(one) <= cap else _with_first(one) for one in inside])
    missed = np.setdiff1d(every[:, 0] * n + every[:, 1], known.pairs[:, 0] * n + known.pairs[:, 1])
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


def _every_pair(members: Ints) -> Ints:
    return np.stack([members[i] for i in np.triu_indices(len(members), 1)], axis=1)


def _with_first(members: Ints) -> Ints:
    return np.stack([np.full(len(members) - 1, members[0]), members[1:]], axis=1)
