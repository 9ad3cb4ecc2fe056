"""The certificate of a run: its recall, measured on a sample of documents whose true neighbours are known.

Recall is Σ found / Σ true over the sampled documents; a pair counts from the end that was drawn. Copies do not count:
they are always found. Pairs of one document are often found or missed together, so the interval uses the variance
between documents (Korn and Graubard's form of the Clopper–Pearson interval) and counts no document as more than one
observation.
"""

from __future__ import annotations

from dataclasses import asdict, dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from likewise.base.arrays import Ints
from likewise.base.stats import binomial_interval
from likewise.base.words import counted
from likewise.families.banding import Banding
from likewise.kernels.graph import keepers
from likewise.search.matches import Sides, Sketched, first_of_each
from likewise.search.scored import ScoredPairs, Scores, packed, unpacked

Flags = NDArray[np.bool_]


@dataclass(frozen=True)
class Certificate:
    """The recall of a run as measured on a sample, with a 95 % interval; None if the sample has no similar pair.

    >>> print(Certificate(0.9962, 0.9931, 0.9983, 1000, 1204, 1199))
    certified recall 0.9962, 95 % interval 0.9931 to 0.9983, from 1,204 true pairs of 1,000 documents
    """

    recall: float | None
    low: float
    high: float
    documents: int
    true_pairs: int
    found_pairs: int

    def __str__(self) -> str:
        if self.recall is None:
            return f"no certificate: none of the {self.documents:,} documents of the sample is similar to another"
        return (
            f"certified recall {self.recall:.4f}, 95 % interval {self.low:.4f} to {self.high:.4f}, "
            f"from {counted(self.true_pairs, 'true pair')} of {counted(self.documents, 'document')}"
        )

    def to_dict(self) -> dict[str, Any]:
        """Return the numbers, for run.json."""
        return asdict(self)


def certified(
    sketched: Sketched,
    found: ScoredPairs,
    crowd_of: Ints,
    ranks: Ints,
    sides: Sides | None,
    items: int,
    kept: Flags | None = None,
) -> Certificate:
    """Compare the true neighbours of the sample with the pairs found.

    crowd_of: the crowd of every group whose pairs are not all listed, or -1, or empty; there a pair counts as found if
    it is listed or if, with groups preferred by `ranks`, not both are kept. kept: which groups are, if known.
    """
    groups, drawn = sketched.groups, sketched.drawn
    first = first_of_each(sketched.copies)
    here, there = groups.of[drawn.rows[drawn.sample]], groups.of[first[drawn.items]]
    counts = here != there
    if sides:
        one, two = groups.first[here] < sides.split, groups.first[there] < sides.split
        counts &= (one != two) if sides.across else ~(one & two)  # two documents that are known are not compared
    sample, other = unpacked(np.unique(packed(drawn.sample[counts], there[counts])))
    own = groups.of[drawn.rows[sample]]
    listed, asked = packed(found[0], found[1]), packed(np.minimum(own, other), np.maximum(own, other))
    nearest = np.minimum(np.searchsorted(listed, asked), len(listed) - 1)
    known = listed[nearest] == asked if len(listed) else np.zeros(len(asked), bool)
    if len(crowd_of):
        if kept is None:
            kept = keepers(np.argsort(ranks, kind="stable"), found[0], found[1]) < 0
        known |= (crowd_of[own] >= 0) & (crowd_of[own] == crowd_of[other]) & ~(kept[own] & kept[other])
    sizes = groups.sizes
    if sides and not sides.across:  # the sample was shown new documents only
        sizes = np.bincount(groups.of[sides.split :], minlength=len(groups))
    true, hit = np.zeros(len(drawn.rows), np.int64), np.zeros(len(drawn.rows), np.int64)
    np.add.at(true, sample, sizes[other])
    np.add.at(hit, sample[known], sizes[other[known]])
    start = sides.split if sides and not sides.across else 0
    return estimate(true, hit, items - start)


def expected_recall(banding: Banding, similarity: Scores) -> float | None:
    """Return the recall that the pairs found imply, without a sample; None if there are none.

    A pair of similarity s is found with a known probability P(s), so that each one found represents 1/P(s) true ones
    (Horvitz and Thompson's estimator): of pairs at the threshold a few more are missing than of very similar ones.

    >>> expected_recall(Banding(1, 1), np.array([0.5, 1.0]))
    0.6666666666666666
    """
    if not len(similarity):
        return None
    return len(similarity) / float((1 / banding.probability(similarity)).sum())


def estimate(true: Ints, found: Ints, items: int) -> Certificate:
    """Estimate the recall and its interval from the true and the found neighbours of each sampled document."""
    documents, pairs, hits = len(true), int(true.sum()), int(found.sum())
    if pairs == 0:
        return Certificate(None, 0.0, 1.0, documents, 0, 0)
    recall = hits / pairs
    if documents >= items:
        return Certificate(recall, recall, recall, documents, pairs, hits)
    having = int((true > 0).sum())
    size = float(having)
    rest = found - recall * true
    if having > 1:
        variance = having / (having - 1) * float((rest**2).sum()) / pairs**2
        if variance > 0:
            size = min(size, recall * (1 - recall) / variance)
    size = max(1.0, size / (1 - documents / items))
    low, high = binomial_interval(recall * size, size)
    return Certificate(recall, low, high, documents, pairs, hits)
