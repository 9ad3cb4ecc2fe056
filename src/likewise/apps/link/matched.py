"""The pairs that match: those chosen among the candidates, or all pairs of a cluster."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from likewise.apps.link.blocking import RecordPairs
from likewise.apps.link.fields import Floats
from likewise.apps.link.scoring import ScoredRecords, Scorer
from likewise.base.arrays import Ints


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
    """Return all pairs inside clusters, with scores; those that were no candidates are compared now."""
    same = np.flatnonzero(groups[candidates.left] == groups[candidates.right])
    known = chosen_pairs(candidates, scored, same)
    order = np.argsort(groups, kind="stable")
    sizes = np.bincount(groups, minlength=len(groups))
    starts = (np.cumsum(sizes) - sizes)[sizes > 2]
    inside = [order[start : start + size] for start, size in zip(starts, sizes[sizes > 2], strict=True)]
    if not inside:
        return known
    every = np.concatenate([np.stack([one[i] for i in np.triu_indices(len(one), 1)], axis=1) for one in inside])
    n = len(groups)
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
