"""How probable a match is at each score, from a few labelled pairs: a Bayesian logistic curve, and what to ask next.

Pairs are ranked by score. The probability of a match falls from `top` to about 0 around a place of the ranking; which
place, how steeply and from which top is not known. A grid of such curves is weighted by how well each explains the
labels. From the weighted curves follow the number of pairs to take (the highest mean F1), precision, recall and F1 with
their intervals, and the pair whose answer tells most: the one after which the best attainable F1 is expected to be
highest.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from likewise.apps.link.fields import Floats
from likewise.apps.link.model import chance
from likewise.base.arrays import Ints

RANKS = 120
"""Ranges of the ranking in which all pairs are taken to be equally probable matches."""

PLACES = 50
"""Places of the ranking at which the curves fall, at most: every so many ranges."""

STEEPNESS = (0.7, 1.5, 3.0, 6.0, 12.0)
"""Slopes of the curves, per typical deviation of the scores of the pairs that are matches without labels."""

TOPS = {1.0: 0.5, 0.95: 0.3, 0.8: 0.2}
"""Probabilities of a match at the highest scores, each with its prior: some pairs look alike and are no matches."""

SCATTERED = {0.0: 0.5, 0.1: 0.3, 0.5: 0.2}
"""Matches scattered over all ranks, as a part of those found without labels, each with its prior: a single match far
down is no sign that everything above it matches."""

MOST_SCATTERED = 0.1
"""Scattered matches are at most this part of the pairs."""

NEAR, SURE = 0.2, 0.6
"""Before any label, with probability SURE the number of matches is that found without labels up to a factor of e^NEAR,
and otherwise up to a factor of e^FAR."""

FAR = 1.5

LOOKED = 16
"""Ranges for which it is computed what an answer would be worth: those whose answer is the most uncertain."""

CURIOSITY = 0.02
"""Weight of the information in an answer (bits), beside the F1 that it is expected to gain: an answer that changes
nothing by itself may still do so together with the next."""

SURPRISE = 1e-6
"""The least likelihood of a label: no single one rules a curve out for good."""

CONFIDENCE = 0.95


@dataclass(frozen=True)
class LinkQuality:
    """Precision, recall and F1 as estimated from labels, each with the ends of its interval (`CONFIDENCE`)."""

    precision: tuple[float, float, float]
    recall: tuple[float, float, float]
    f1: tuple[float, float, float]

    def as_dict(self) -> dict[str, Any]:
        """Return the estimates and intervals, for run.json."""
        found: dict[str, Any] = {}
        for name in ("precision", "recall", "f1"):
            middle, low, high = getattr(self, name)
            found |= {name: round(middle, 4), f"{name}_low": round(low, 4), f"{name}_high": round(high, 4)}
        return found


class MatchCurve:
    """The probability of a match along a ranking, best pairs first; `found` pairs are matches without labels.

    >>> curve = MatchCurve(np.linspace(10, 0, 100), found=50)
    >>> labelled = np.arange(0, 100, 4)
    >>> curve.learn(labelled, labelled < 30)
    >>> 26 <= curve.best() <= 34
    True
    """

    def __init__(self, scores: Floats, found: int) -> None:
        n, found = len(scores), min(max(1, found), len(scores))
        half = np.linspace(1, n, RANKS // 2), np.geomspace(1, n, RANKS // 2), found * np.linspace(0.5, 2, RANKS // 4)
        self._stops: Ints = np.unique(np.clip(np.concatenate(half).astype(np.int64), 1, n))
        self._starts: Ints = np.append(0, self._stops[:-1])
        self._sizes = self._stops - self._starts
        sums = np.append(0.0, np.cumsum(scores))
        means = (sums[self._stops] - sums[self._starts]) / self._sizes
        around = scores[: max(20, 2 * found)]
        spread = float(np.median(np.abs(around - np.median(around)))) or float(np.ptp(scores)) / 4 or 1.0
        places = np.append(means, means[0] + 2 * spread)[:: max(1, len(means) // PLACES)]
        axes = places, np.array(STEEPNESS) / spread, np.array(list(TOPS)), np.array(list(SCATTERED))
        place, steep, top, rest = (axis.ravel() for axis in np.meshgrid(*axes, indexing="ij"))
        floor = np.minimum(MOST_SCATTERED, rest * found / n)[:, None]
        self._chances: Floats = floor + (top[:, None] - floor) * chance(steep[:, None] * (means - place[:, None]))
        factor = np.log((np.searchsorted(-scores, -place) + 1) / (found + 1))
        near, far = (np.exp(-0.5 * (factor / width) ** 2) / width for width in (NEAR, FAR))
        prior = SURE * near + (1 - SURE) * far
        prior *= np.array([TOPS[one] * SCATTERED[part] for one, part in zip(top.tolist(), rest.tolist(), strict=True)])
        self._logs: Floats = np.log(prior)
        self._right = np.concatenate([np.zeros((len(top), 1)), np.cumsum(self._chances * self._sizes, axis=1)], axis=1)
        self._taken = np.append(0, self._stops)
        self._f1: Floats = 2 * self._right / (self._taken + self._right[:, -1:])

    def learn(self, places: Ints, match: NDArray[np.bool_]) -> None:
        """Take up labels of the pairs at these places of the ranking."""
        for place, yes in zip(np.searchsorted(self._stops, places, side="right").tolist(), match.tolist(), strict=True):
            seen = self._chances[:, place] if yes else 1 - self._chances[:, place]
            self._logs = self._logs + np.log(np.maximum(seen, SURPRISE))

    @property
    def weights(self) -> Floats:
        """How probable each curve is."""
        likely = np.exp(self._logs - self._logs.max())
        found: Floats = likely / likely.sum()
        return found

    def best(self) -> int:
        """Return the number of pairs to take, best first, so that the expected F1 is maximal."""
        return int(self._taken[int(np.argmax(self.weights @ self._f1))])

    def quality(self, taken: int) -> LinkQuality:
        """Return the quality of the first pairs of the ranking; recall is that among all pairs of the ranking."""
        right = np.array([np.interp(taken, self._taken, curve) for curve in self._right])
        every = self._right[:, -1]
        parts = right / max(1, taken), right / np.maximum(every, 1e-9), 2 * right / (taken + every)
        return LinkQuality(*(self._interval(np.minimum(part, 1.0)) for part in parts))

    def _interval(self, values: Floats) -> tuple[float, float, float]:
        order = np.argsort(values, kind="stable")
        below = np.cumsum(self.weights[order])
        ends = [values[order[min(int(np.searchsorted(below, part)), len(order) - 1)]] for part in self._tails]
        return float(self.weights @ values), float(ends[0]), float(ends[1])

    _tails = ((1 - CONFIDENCE) / 2, (1 + CONFIDENCE) / 2)

    def ask(self, free: NDArray[np.bool_]) -> Ints:
        """Return the places, of those that are `free`, of the range in which an answer tells most; none if none are."""
        open_ranges = np.flatnonzero(np.add.reduceat(free.astype(np.int64), self._starts))
        if not len(open_ranges):
            return np.zeros(0, np.int64)
        weights = self.weights
        told = _bits(weights @ self._chances) - weights @ _bits(self._chances)
        some = open_ranges[np.argsort(-told[open_ranges], kind="stable")[:LOOKED]]
        worth = np.empty(len(some))
        for place, one in enumerate(some.tolist()):
            yes = weights * self._chances[:, one]
            worth[place] = (yes @ self._f1).max() + ((weights - yes) @ self._f1).max()
        chosen = int(some[int(np.argmax(worth + CURIOSITY * told[some]))])
        span = np.arange(self._starts[chosen], self._stops[chosen])
        return span[free[span]]


def _bits(chances: Floats) -> Floats:
    """Return the entropy of answers, in bits."""
    inside = np.clip(chances, 1e-12, 1 - 1e-12)
    found: Floats = -(inside * np.log2(inside) + (1 - inside) * np.log2(1 - inside))
    return found
