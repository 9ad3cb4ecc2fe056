"""From a threshold and a recall to bands and rows: the cheapest S-curve that finds a pair at the threshold.

Every r has a smallest b with 1 − (1 − t^r)^b ≥ recall. A small r means short signatures and many false candidates, a
large r the reverse. The cost below adds up both for the corpus at hand, and the cheapest r wins.
"""

from __future__ import annotations

import math
from dataclasses import dataclass, field
from typing import Any

import numpy as np
from numpy.typing import NDArray

from likewise.base import checks
from likewise.base.arrays import Hashes, Ints
from likewise.base.random import bits, mix
from likewise.errors import ParameterError
from likewise.families.banding import Banding, areas

HASH = 4.0
"""Nanoseconds to hash one shingle for one choice of slot. This cost and those below were measured on one core by
benchmarks/constants.py; only their ratios matter."""
BAND = 100.0
"""Nanoseconds for one band of one item: its key and its place in the sort."""
CANDIDATE = 70.0
"""Nanoseconds to find a candidate in a bucket."""
PROBE = 0.6
"""Nanoseconds per shingle of a document to rule out a candidate: not all shingles are looked up."""
SHINGLE = 30.0
"""Nanoseconds to read one shingle of a document again because a candidate must be verified."""
CROWD = 150.0
"""Nanoseconds per shingle of a document in a crowd, to compare it with the others; a third less where all sets fit in
memory."""
ORDER_SEED = 0xB0C4E7
DRAWN_BANDS = 64
"""Bands that are drawn from the signatures of a sample, to see how large their buckets are."""
DEFAULT_MAX_SLOTS = 2048
"""The longest signature considered by default, 8 kB per item: enough for recall 0.999 at threshold 0.1."""
MOST_SLOTS = 1 << 24
"""The longest signature that can be asked for, 64 MB per item."""
MOST_WEIGHED = 1 << 16
"""The longest signature whose divisions are compared by their areas: more than half a million, in a few seconds."""
LEAST_BANDS = 2
"""At least two bands. On sets smaller than the signature the slots of the fast sketch repel each other slightly, so a
single band, or many that are each unlikely, agrees less often than 1 − (1 − t^r)^b. From two bands and a recall of 0.7
on, the probability is at least that."""
LEAST_RECALL = 0.7
"""Bands are chosen for at least this recall; see LEAST_BANDS."""


class SampleBuckets:
    """How the sets of a sample meet in bands that are drawn from the slots of their signatures.

    Similarity alone does not tell how pairs spread over bands. Documents that share half of their text, a template, all
    have the lowest hashes of the template in the same few slots: a band of such slots has one large bucket, of which a
    crowd is made, where the same number of pairs in small buckets would have to be compared one by one.

    signatures: 16 bits a slot. groups: of a set that was not drawn by itself, with whom; such pairs do not count.
    """

    def __init__(self, signatures: NDArray[np.uint16], groups: Ints | None = None) -> None:
        self.sample, slots = signatures.shape
        self._signatures = signatures.astype(np.uint64)
        self._groups = np.arange(self.sample) if groups is None else groups
        own = np.bincount(self._groups, minlength=1)[self._groups] if self.sample else np.zeros(0, np.int64)
        self._others = self.sample - own
        self.order = np.argsort(bits(ORDER_SEED, 0, DRAWN_BANDS, slots), axis=1, kind="stable")
        keys, band = bits(ORDER_SEED, 1, DRAWN_BANDS, 1).repeat(self.sample), np.arange(DRAWN_BANDS).repeat(self.sample)
        self._met = [(keys, band, np.tile(np.arange(self.sample), DRAWN_BANDS), np.tile(self._others, DRAWN_BANDS))]

    @property
    def pairs(self) -> float:
        """The number of pairs that could meet, in all bands together."""
        return DRAWN_BANDS * float(self._others.sum()) / 2

    def met(self, rows: int) -> tuple[Ints, Ints]:
        """Return the set and the number of others in its bucket, for each band of so many rows with any there."""
        rows = min(rows, self.order.shape[1])
        while len(self._met) <= rows:
            keys, band, sets, _ = self._met[-1]
            slot = self.order[band, len(self._met) - 1]
            keys = mix(keys ^ self._signatures[sets, slot])
            met = _equal(keys) - _equal(mix(keys + self._groups[sets].astype(np.uint64)))
            some = met > 0
            self._met.append((keys[some], band[some], sets[some], met[some]))
        return self._met[rows][2:]

    def split(self, banding: Banding, largest: float) -> tuple[float, float]:
        """Return the share of pairs that meet in a bucket with at most so large a share of the collection, summed over
        all bands; and the share of sets that are in a larger one."""
        sets, met = self.met(banding.r)
        heavy = met > largest * self._others[sets]
        seen = float(met[~heavy].sum()) / 2
        light = (seen + 2 * math.sqrt(seen) + 1) / max(1.0, self.pairs)  # as many as there may well be
        often = np.bincount(sets[heavy], minlength=self.sample) / DRAWN_BANDS
        return banding.b * light, float((1 - (1 - often) ** banding.b).mean())


def _equal(keys: Hashes) -> Ints:
    """Return how many of the keys are equal to each."""
    order = np.argsort(keys)
    ordered = keys[order]
    runs = np.cumsum(np.concatenate([[0], ordered[1:] != ordered[:-1]])[: len(keys)])
    counts = np.empty(len(keys), np.int64)
    counts[order] = np.bincount(runs, minlength=1)[runs]
    return counts


@dataclass(frozen=True)
class Similarities:
    """The distribution of similarity over the pairs of a corpus: similarity values and the number of pairs near each.

    most: candidates that are verified one by one, at most; of more, the largest buckets are compared in another way.
    unseen: the part of the pairs that a sample was too small to show. buckets: how a sample meets in bands, if known.

    Without a corpus, `typical(items)` assumes that the similarity of two random documents falls off exponentially with
    mean 0.02, which is on the high side for word shingles of prose.
    """

    values: NDArray[np.float64]
    pairs: NDArray[np.float64]
    items: int
    mean_size: float = 300.0
    most: float = math.inf
    unseen: NDArray[np.float64] | None = None
    buckets: SampleBuckets | None = None

    @classmethod
    def typical(cls, items: int = 1_000_000, mean: float = 0.02) -> Similarities:
        """Return the distribution assumed when no corpus is given."""
        items = checks.whole("Similarities.typical", "items", items)
        mean = checks.number("Similarities.typical", "mean", mean, 0, open_left=True)
        edges = np.linspace(0, 1, 201)
        mass = np.exp(-edges[:-1] / mean) - np.exp(-edges[1:] / mean)
        return cls((edges[:-1] + edges[1:]) / 2, mass * items * (items - 1) / 2, items)

    @classmethod
    def sampled(
        cls,
        agreements: NDArray[Any],
        sample: int,
        items: int,
        mean_size: float,
        threshold: float,
        most: float = math.inf,
        buckets: SampleBuckets | None = None,
    ) -> Similarities:
        """Scale up a sample in which agreements[c] pairs agree in c slots of their signatures.

        One more pair is added, spread evenly below the threshold, for what the sample was too small to show.
        """
        slots = len(agreements) - 1
        below = np.arange(slots + 1) < threshold * slots
        scale = items * (items - 1) / max(1, sample * (sample - 1))
        unseen = scale * below / max(1, below.sum())
        pairs = scale * agreements + unseen
        return cls(np.arange(slots + 1) / slots, pairs, items, mean_size, most, unseen, buckets)

    def candidates(self, banding: Banding, threshold: float = 1.0) -> float:
        """Return the expected number of candidate pairs below the threshold under a banding."""
        below = self.values < threshold
        return float(self.pairs[below] @ banding.probability(self.values[below]))

    def compared(self, banding: Banding, threshold: float) -> tuple[float, float]:
        """Return how many candidates below the threshold are compared one by one, and the share of items in crowds.

        Those that the sample's similarities predict, but no more than it has in small buckets; and those not seen.
        """
        expected, crowded = self.candidates(banding, threshold), 0.0
        if self.buckets is not None and self.buckets.pairs and self.unseen is not None and self.most < math.inf:
            largest = math.sqrt(2 * self.most / banding.b) / self.items
            light, crowded = self.buckets.split(banding, largest)
            unseen = float(self.unseen @ banding.probability(self.values))
            expected = min(expected, unseen + light * self.items * (self.items - 1) / 2)
        return min(self.most, expected), crowded

    def cost(self, banding: Banding, threshold: float) -> float:
        """Return the predicted work, in nanoseconds on one core: sketching, sorting bands, ruling out candidates."""
        slots = banding.slots
        sketching = HASH * (self.mean_size + slots * (1 + math.log(slots)))
        useless, crowded = self.compared(banding, threshold)
        involved = -math.expm1(-2 * useless / self.items) * (1 - crowded)  # the share of items in a false candidate
        again = (involved * SHINGLE + crowded * CROWD) * self.mean_size
        return self.items * (sketching + BAND * banding.b + again) + (CANDIDATE + PROBE * self.mean_size) * useless


@dataclass(frozen=True)
class Tuning:
    """The result of tuning: the banding, the recall it reaches, the candidates below the threshold that it is expected
    to produce and that are compared one by one, and the share of items in crowds."""

    banding: Banding
    threshold: float
    recall: float
    predicted_recall: float
    predicted_candidates: float
    considered: list[Banding] = field(repr=False, default_factory=list)
    crowded: float = 0.0


def fewest_bands(threshold: float, recall: float, rows: int) -> int:
    """Return the smallest b such that b bands of this many rows find a pair at the threshold with this recall."""
    hit = threshold**rows
    if hit >= 1.0:
        return 1
    if hit < 1e-12:
        return 1 << 40
    b = max(1, math.ceil(math.log1p(-recall) / math.log1p(-hit)) - 1)
    while Banding(b, rows).probability(threshold) < recall:
        b += 1
    return b


def fits(threshold: float, recall: float, max_slots: int) -> bool:
    """Tell whether any banding of at most max_slots slots reaches the recall at the threshold.

    >>> fits(0.8, 0.99, 2048), fits(0.001, 0.99, 2048)
    (True, False)
    """
    return threshold == 1 or fewest_bands(threshold, max(recall, LEAST_RECALL), 1) <= max_slots


def tune_for(threshold: float, recall: float, similarities: Similarities, max_slots: int = DEFAULT_MAX_SLOTS) -> Tuning:
    """Return the cheapest banding for this corpus that reaches the recall at the threshold in max_slots slots."""
    threshold, recall = checks.threshold("tune", threshold), checks.recall("tune", recall)
    max_slots = checks.whole("tune", "max_slots", max_slots, most=MOST_SLOTS, rule="a positive whole number")
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
            f"Finding a pair at threshold {threshold:g} with recall {recall:g} takes {need:,} slots or more, and "
            f"max_slots is {max_slots:,}: raise the threshold, lower the recall, or raise max_slots."
        )
    best = min(considered, key=lambda banding: (similarities.cost(banding, threshold), banding.slots, banding.r))
    false, crowded = similarities.compared(best, threshold)
    return Tuning(best, threshold, recall, best.probability(threshold), false, considered, crowded)


def tune(
    threshold: float,
    recall: float = 0.99,
    *,
    slots: int | None = None,
    prefer: str | None = None,
    weights: tuple[float, float] | None = None,
    max_slots: int = DEFAULT_MAX_SLOTS,
    items: int = 1_000_000,
    similarities: Similarities | None = None,
) -> Banding:
    """Return the bands and rows that find a pair at the threshold with this recall at the lowest predicted cost.

    `items` is the size of the collection, `similarities` its similarity distribution if known; `dedup` and `pairs`
    estimate it from a sample. Ties go to the shorter signature, then to fewer rows.

    >>> banding = tune(0.8, recall=0.99)
    >>> bool(banding.probability(0.8) >= 0.99)
    True

    Two other ways of tuning do without a recall.

    slots: signatures of exactly n slots, divided so that (1/b)^(1/r) is as near to the threshold as possible (MMDS
    §3.4.3, step 4). prefer="recall" takes the nearest division whose (1/b)^(1/r) is not above the threshold, to avoid
    false negatives; prefer="speed" the nearest that is not below it, to limit false positives.

    >>> [str(tune(0.8, slots=128, prefer=way)) for way in (None, "recall", "speed")]
    ['8 bands of 16 rows', '16 bands of 8 rows', '8 bands of 16 rows']

    weights: (false positives, false negatives). The area under the S-curve left of the threshold and the area over it
    right of the threshold, weighted in this way, become as small as possible; with `slots` for exactly as many slots,
    else for any number up to `max_slots`.

    >>> tune(0.5, weights=(0.5, 0.5), max_slots=128), tune(0.5, weights=(0.1, 0.9), max_slots=128)
    (Banding(b=25, r=5), Banding(b=32, r=4))
    """
    if slots is not None or weights is not None:
        given = {"recall": (recall, 0.99), "items": (items, 1_000_000), "similarities": (similarities, None)}
        checks.unused("tune", given, f"with '{'slots' if weights is None else 'weights'}'")
        return _divided(checks.threshold("tune", threshold), slots, prefer, weights, max_slots)
    checks.unused("tune", {"prefer": (prefer, None)}, "without 'slots'")
    items = checks.whole("tune", "items", items)
    if similarities is not None and not isinstance(similarities, Similarities):
        raise ParameterError.of("tune", "similarities", "of the class Similarities", similarities)
    return tune_for(threshold, recall, similarities or Similarities.typical(items), max_slots).banding


def _divided(
    threshold: float, slots: int | None, prefer: str | None, weights: tuple[float, float] | None, max_slots: int
) -> Banding:
    """Return the banding of so many slots by the rule of thumb, or by the weighted areas."""
    if slots is not None:
        checks.unused("tune", {"max_slots": (max_slots, DEFAULT_MAX_SLOTS)}, "with 'slots'")
        slots = checks.whole("tune", "slots", slots, most=MOST_SLOTS)
    if weights is not None:
        checks.unused("tune", {"prefer": (prefer, None)}, "with 'weights'")
        name, value = ("max_slots", max_slots) if slots is None else ("slots", slots)
        limit = checks.whole("tune", name, value, most=MOST_WEIGHED)
        return _least_area(threshold, limit, _weights(weights), slots is not None)
    assert slots is not None
    low = [rows for rows in range(1, math.isqrt(slots) + 1) if slots % rows == 0]
    choices = [Banding(slots // rows, rows) for rows in sorted({*low, *(slots // rows for rows in low)})]
    if prefer is not None:
        checks.choice("tune", "prefer", prefer, ("recall", "speed"))
        sign = 1 if prefer == "recall" else -1
        choices = [one for one in choices if sign * (threshold - one.threshold) >= 0]
    if not choices:
        raise ParameterError(
            f"No division of {slots:,} slots into bands finds pairs at threshold {threshold:g} without missing most of"
            f" them: (1/b)^(1/r) is {1 / slots:.3g} at least. Give more slots, or raise the threshold."
        )
    return min(choices, key=lambda one: (abs(one.threshold - threshold), one.r))


def _weights(weights: tuple[float, float]) -> tuple[float, float]:
    """Return the weights of false positives and of false negatives."""
    rule = "two numbers of 0 or more, not both 0: of false positives and of false negatives"
    given = checks.listed("tune", "weights", weights, rule)
    if len(given) != 2:
        raise ParameterError.of("tune", "weights", rule, weights)
    positives, negatives = (checks.number("tune", "weights", one, 0, rule=rule) for one in given)
    if positives == negatives == 0:
        raise ParameterError.of("tune", "weights", rule, weights)
    return positives, negatives


def _least_area(threshold: float, most: int, weights: tuple[float, float], exactly: bool) -> Banding:
    """Return the banding of up to `most` slots, or of exactly as many, with the least weighted sum of both areas."""
    best = (math.inf, 0, 0)
    for rows in range(1, most + 1):
        if exactly and most % rows:
            continue
        for bands, (positives, negatives) in enumerate(areas(threshold, rows, most // rows), start=1):
            if not exactly or bands == most // rows:
                best = min(best, (weights[0] * positives + weights[1] * negatives, bands * rows, rows))
    return Banding(best[1] // best[2], best[2])
