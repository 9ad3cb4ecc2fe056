"""From a threshold and a recall to bands and rows (L3): the cheapest S-curve that keeps the promise P2.

Every r has a smallest b with 1 − (1 − t^r)^b ≥ recall. Small r means short signatures and many useless candidates;
large r the
reverse. The cost below adds both up for the corpus at hand and the cheapest r wins.
"""

from __future__ import annotations

import math
from dataclasses import dataclass, field
from typing import Any

import numpy as np
from numpy.typing import NDArray

from likewise.errors import ParameterError
from likewise.families.banding import Banding

# Nanoseconds on one core, measured by benchmarks/constants.py; only their ratios matter.
HASH = 4.0  # hashing one shingle for one slot choice
BAND = 100.0  # one band of one item: its key, its place in the sort
CANDIDATE = 70.0  # meeting a candidate in a bucket
PROBE = 0.6  # ruling it out, for each shingle of a document: not all of them are looked up
SHINGLE = 30.0  # reading one shingle of a document again, because a candidate must be verified
DEFAULT_MAX_SLOTS = 2048

# On sets smaller than the signature the slots of the fast sketch repel each other a little: a single band, or many that
# are each unlikely, is then filled less often than 1 − (1 − t^r)^b says. From two bands and 0.7 on it is at least that.
LEAST_BANDS = 2
LEAST_RECALL = 0.7


@dataclass(frozen=True)
class Similarities:
    """How similar the pairs of a corpus are: similarity values and how many pairs have about that value.

    Without a corpus, `typical(items)` assumes that the similarity of two random documents falls off exponentially
    with mean 0.02,
    which is on the heavy side for word shingles of prose.
    """

    values: NDArray[np.float64]
    pairs: NDArray[np.float64]
    items: int
    mean_size: float = 300.0

    @classmethod
    def typical(cls, items: int = 1_000_000, mean: float = 0.02) -> Similarities:
        """Return the assumption made when no corpus is given."""
        edges = np.linspace(0, 1, 201)
        mass = np.exp(-edges[:-1] / mean) - np.exp(-edges[1:] / mean)
        return cls((edges[:-1] + edges[1:]) / 2, mass * items * (items - 1) / 2, items)

    @classmethod
    def sampled(
        cls, agreements: NDArray[Any], sample: int, items: int, mean_size: float, threshold: float
    ) -> Similarities:
        """Scale a sample up: agreements[c] of its pairs agree in c slots of their signatures.

        One more pair is added, spread evenly below the threshold: what the sample was too small to see.
        """
        slots = len(agreements) - 1
        pairs = agreements.astype(float)
        below = np.arange(slots + 1) < threshold * slots
        pairs[below] += 1 / max(1, below.sum())
        scale = items * (items - 1) / max(1, sample * (sample - 1))
        return cls(np.arange(slots + 1) / slots, pairs * scale, items, mean_size)

    def candidates(self, banding: Banding, threshold: float = 1.0) -> float:
        """Return the number of candidate pairs below the threshold that a banding is expected to give."""
        below = self.values < threshold
        return float(self.pairs[below] @ banding.probability(self.values[below]))

    def cost(self, banding: Banding, threshold: float) -> float:
        """Return the predicted work, in nanoseconds on one core: sketching, sorting bands, ruling candidates out."""
        slots = banding.slots
        sketching = HASH * (self.mean_size + slots * (1 + math.log(slots)))
        useless = self.candidates(banding, threshold)
        involved = -math.expm1(-2 * useless / self.items)  # the share of items that stand in a useless candidate
        verifying = (CANDIDATE + PROBE * self.mean_size) * useless + self.items * involved * SHINGLE * self.mean_size
        return self.items * (sketching + BAND * banding.b) + verifying


@dataclass(frozen=True)
class Tuning:
    """What tuning found: the banding, what it promises, and what it is expected to cost."""

    banding: Banding
    threshold: float
    recall: float
    predicted_recall: float
    predicted_candidates: float
    considered: list[Banding] = field(repr=False, default_factory=list)


def check_threshold(owner: str, threshold: object) -> float:
    """Raise unless the threshold is in (0, 1]."""
    if isinstance(threshold, bool) or not isinstance(threshold, int | float | np.number) or not 0 < threshold <= 1:
        raise ParameterError.of(owner, "threshold", "in (0, 1]", threshold)
    return float(threshold)


def check_recall(owner: str, recall: object) -> float:
    """Raise unless the recall is in (0, 1)."""
    if isinstance(recall, bool) or not isinstance(recall, int | float | np.number) or not 0 < recall < 1:
        hint = "; no number of bands finds every pair for certain" if recall == 1 else ""
        raise ParameterError.of(owner, "recall", f"in (0, 1), such as 0.99{hint}", recall)
    return float(recall)


def fewest_bands(threshold: float, recall: float, rows: int) -> int:
    """Return the smallest b for which b bands of these rows find a pair at the threshold with this probability."""
    hit = threshold**rows
    if hit >= 1.0:
        return 1
    if hit < 1e-12:
        return 1 << 40
    b = max(1, math.ceil(math.log1p(-recall) / math.log1p(-hit)) - 1)
    while Banding(b, rows).probability(threshold) < recall:
        b += 1
    return b


def tune_for(threshold: float, recall: float, similarities: Similarities, max_slots: int = DEFAULT_MAX_SLOTS) -> Tuning:
    """Return the cheapest banding for this corpus that reaches the recall at the threshold in max_slots slots."""
    owner = "tune"
    threshold, recall = check_threshold(owner, threshold), check_recall(owner, recall)
    if isinstance(max_slots, bool) or not isinstance(max_slots, int) or max_slots < 1:
        raise ParameterError.of(owner, "max_slots", "a positive whole number", max_slots)
    considered = []
    for rows in range(1, max_slots + 1):
        b = max(fewest_bands(threshold, max(recall, LEAST_RECALL), rows), 1 if threshold == 1 else LEAST_BANDS)
        if b * rows > max_slots:
            break
        considered.append(Banding(b, rows))
        if b == 1 and rows >= 32:
            break
    if not considered:
        need = fewest_bands(threshold, recall, 1)
        raise ParameterError(
            f"A pair at threshold {threshold:g} is found with recall {recall:g} only by {need:,} slots or more, and "
            f"max_slots is {max_slots:,}: raise the threshold, lower the recall, or raise max_slots."
        )
    best = min(considered, key=lambda banding: (similarities.cost(banding, threshold), banding.slots, banding.r))
    return Tuning(
        best, threshold, recall, best.probability(threshold), similarities.candidates(best, threshold), considered
    )


def tune(
    threshold: float,
    recall: float = 0.99,
    *,
    max_slots: int = DEFAULT_MAX_SLOTS,
    items: int = 1_000_000,
    similarities: Similarities | None = None,
) -> Banding:
    """Return the bands and rows that find a pair at the threshold with this recall, at the least predicted cost.

    `items` is the size of the collection, `similarities` its own distribution if it is known; `dedup` and `pairs`
    measure it on a
    sample. Ties go to the shorter signature, then to fewer rows.

    >>> banding = tune(0.8, recall=0.99)
    >>> bool(banding.probability(0.8) >= 0.99)
    True
    """
    if isinstance(items, bool) or not isinstance(items, int) or items < 1:
        raise ParameterError.of("tune", "items", "a positive whole number", items)
    return tune_for(threshold, recall, similarities or Similarities.typical(items), max_slots).banding
