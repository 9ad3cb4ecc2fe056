"""The pairs of rows that a search on a cluster found: all of them or the best of each row, and the ids of rows."""

from __future__ import annotations

from typing import Any

import numpy as np

from likewise.base.arrays import Ints, to_arrow
from likewise.base.runlog import RunLog
from likewise.search.expand import listed_pairs, nearest_rows
from likewise.search.matches import VerifiedPairs
from likewise.search.scored import ScoredPairs
from likewise.spark.corpus import Corpus
from likewise.spark.universe import Universe


def listed(
    corpus: Corpus, universe: Universe, matches: VerifiedPairs, k: int | None, copies: bool, log: RunLog,
    distances: bool = False,
) -> ScoredPairs:  # fmt: skip
    """List the pairs of rows of the universe: all of them, or the k best of each row.

    copies: copies are pairs too. distances: the scores of the pairs are distances, and not similarities.
    """
    across, same = corpus.sides is not None, 0.0 if distances else 1.0
    if k is None:
        left, right, score, abridged = listed_pairs(matches, within=copies, items=len(corpus), same=same)
        if abridged:
            log.details["abridged"] = abridged
        return left, right, score
    sides, groups = universe.sides(corpus.sides), matches.groups
    here = int(np.searchsorted(groups.first, sides.split)) if sides else len(groups)
    score = -matches.similarity if distances else matches.similarity
    left, right, score = nearest_rows(
        groups, matches.left, matches.right, score, k, here, across=not copies, same=same, both=not across
    )
    return left, right, 0 - score if distances else score


def named(corpus: Corpus, universe: Universe, places: Ints, column: str | None) -> Any:
    """Return the ids of rows of the universe, all of them of one collection."""
    rows, split = universe.rows[places], corpus.split
    second = bool(split and len(rows) and rows[0] >= split)
    if column is None:
        return to_arrow(corpus.parts[second].positions(rows - split if second else rows))
    different, place = np.unique(rows, return_inverse=True)
    ids = corpus.column(different - split if second else different, column, int(second))
    return ids.take(to_arrow(place.astype(np.int64)))
