"""From which score on pairs match, and how well that goes where the fingers are known.

The threshold is found without knowing any finger, by mirror images of prints. The mirror image of a print has as many
minutiae as a real one, as dense, along ridges that flow as plausibly, but no finger has left it. Whatever it agrees
with, it agrees with by chance, so its scores are a sample of the scores that prints of different fingers get.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np

from likewise.apps.fingerprints.comparison import ComparedPrints
from likewise.apps.fingerprints.prints import Floats, Prints
from likewise.base.arrays import Ints
from likewise.base.stats import binomial_interval
from likewise.errors import ParameterError

FALLBACK = 0.45
"""The threshold if there are too few comparisons with mirrored prints to find one."""
ENOUGH = 200
"""Least number of comparisons with mirrored prints from which a threshold is found."""
TAIL = 30
"""Number of the highest scores whose exponential tail is extrapolated; its slope errs by 1/√30."""
COUNTED = 5
"""Least number of scores that are counted; with fewer, the tail is extrapolated."""
HIGHEST = 0.001
"""Highest false match rate of a threshold that is not given, however few pairs there are."""
LEAST = 0.2
"""Least threshold if so few mirrored prints were candidates that their tail is not seen: the scores of the others are
unknown rather than 0."""


@dataclass(frozen=True)
class Threshold:
    """The least score of a match, and the expected number of matches of different fingers.

    how: "mirrors", counted among the comparisons with mirrored prints; "mirrors, continued", extrapolated from the
    thirty highest of their scores; "given"; or "few", with fewer than 200 such comparisons. mirrored: their number.
    """

    value: float
    how: str
    mirrored: int
    expected_false: float | None


def choose(scores: Floats, comparisons: int, pairs: int, false: float, given: float | None) -> Threshold:
    """Return the threshold at which `false` false matches are expected among `pairs`, at most one in a thousand.

    scores: those of candidates among `comparisons` with mirrored prints; the others have the score 0.

    >>> scores = np.arange(1000) / 1000
    >>> choose(scores, 10_000, pairs=5000, false=5, given=None)
    Threshold(value=0.99, how='mirrors', mirrored=10000, expected_false=5.0)
    """
    ordered = np.sort(scores)[::-1]
    if given is not None:
        expected = _expected(ordered, comparisons, given) * pairs if comparisons >= ENOUGH else None
        return Threshold(given, "given", comparisons, expected)
    if comparisons < ENOUGH:
        return Threshold(FALLBACK, "few", comparisons, None)
    rate = min(HIGHEST, false / max(1, pairs))
    count = rate * comparisons
    if count >= COUNTED:
        at = int(count + 1e-9)
        value = float(ordered[at - 1]) if at <= len(ordered) else 0.0
        how = "mirrors"
    else:
        start, slope, share = _tail(ordered, comparisons)
        value, how = start + slope * np.log(share / rate), "mirrors, continued"
    least = LEAST if len(ordered) <= TAIL else np.nextafter(0, 1)
    value = float(max(value, least))
    return Threshold(value, how, comparisons, _expected(ordered, comparisons, value) * pairs)


def _tail(ordered: Floats, comparisons: int) -> tuple[float, float, float]:
    """Return the score at which the tail begins, its mean excess, and its share of all comparisons."""
    padded = np.concatenate([ordered, np.zeros(max(0, TAIL + 1 - len(ordered)))])
    start = float(padded[TAIL])
    return start, max(1e-3, float((padded[:TAIL] - start).mean())), TAIL / comparisons


def _expected(ordered: Floats, comparisons: int, value: float) -> float:
    """Return the expected false match rate at a score."""
    count = int(np.searchsorted(-ordered, -value, side="right"))
    if count >= COUNTED:
        return count / comparisons
    start, slope, share = _tail(ordered, comparisons)
    return float(share * np.exp(-max(0.0, value - start) / slope))


@dataclass(frozen=True)
class Rate:
    """A rate of pairs, with its 95 % confidence interval if pairs were independent.

    >>> print(Rate(99, 100))
    0.990 (99 of 100; 95 % interval 0.946 to 1.000)
    """

    count: int
    of: int

    @property
    def value(self) -> float:
        """The rate itself."""
        return self.count / self.of if self.of else float("nan")

    @property
    def interval(self) -> tuple[float, float]:
        """The interval of Clopper and Pearson."""
        return binomial_interval(self.count, self.of) if self.of else (0.0, 1.0)

    def to_dict(self) -> dict[str, Any]:
        """Return the rate and its interval, for run.json."""
        low, high = self.interval
        return {"rate": self.value, "count": self.count, "of": self.of, "low": low, "high": high}

    def __str__(self) -> str:
        low, high = self.interval
        digits = 3 if self.value == 0 or self.value > 0.02 else 4
        numbers = [f"{number:.{digits}f}" for number in (self.value, low, high)]
        return f"{numbers[0]} ({self.count:,} of {self.of:,}; 95 % interval {numbers[1]} to {numbers[2]})"


@dataclass(frozen=True, eq=False)
class Curve:
    """The ROC curve: the true and the false match rate at every score, the highest threshold first."""

    thresholds: Floats
    true: Floats
    false: Floats

    @property
    def equal_error(self) -> float:
        """The equal error rate: the mean of false non-match and false match rate where they differ least."""
        missed = 1 - self.true
        at = int(np.argmin(np.abs(missed - self.false)))
        return float((missed[at] + self.false[at]) / 2)

    def true_at(self, false: float) -> float:
        """Return the greatest true match rate whose false match rate is at most this."""
        return float(self.true[self.false <= false].max(initial=0.0))


def curve(same: Any, other: Any) -> Curve:
    """Return the ROC curve, from the scores of pairs of one finger and of pairs of two.

    >>> found = curve([0.9, 0.8, 0.4], [0.5, 0.1, 0.1, 0.1])
    >>> round(found.true_at(0), 3), found.true_at(0.25)
    (0.667, 1.0)
    >>> round(found.equal_error, 3)      # at 0.5: a third is missed, a quarter passes
    0.292
    """
    same, other = np.sort(np.asarray(same, np.float64)), np.sort(np.asarray(other, np.float64))
    if not len(same) or not len(other):
        raise ParameterError("The curve needs scores of pairs of one finger and of pairs of two; one of them is empty.")
    thresholds = np.concatenate([[np.inf], np.unique(np.concatenate([same, other]))[::-1]])
    true, false = (1 - np.searchsorted(scores, thresholds) / len(scores) for scores in (same, other))
    return Curve(thresholds, true, false)


def match_rates(
    every: Prints, queries: Ints, begin: int, within: bool, found: ComparedPrints, threshold: float
) -> dict[str, Any] | None:
    """Return the rates of the matches and of the candidates; None without pairs of one finger and of two."""
    codes = np.unique(np.array(every.fingers), return_inverse=True)[1]
    n = len(every)
    wanted = np.zeros(n, bool)
    wanted[queries] = True
    left, right = (side.ravel() for side in np.meshgrid(queries, np.arange(begin, n), indexing="ij"))
    keep = (left != right) & ~(wanted[right] & (right < left)) if within else left != right
    left, right = left[keep], right[keep]
    score = np.zeros(len(left))
    keys = left * n + right
    order = np.argsort(keys)
    at = order[np.searchsorted(keys, found.left * n + found.right, sorter=order)]
    score[at] = found.score
    candidate = np.zeros(len(left), bool)
    candidate[at] = True
    same = codes[left] == codes[right]
    if not same.any() or same.all():
        return None
    drawn = curve(score[same], score[~same])
    passed = score >= threshold
    missed = np.unique(codes[left[same & ~passed]])
    shared = np.unique(codes[left[same]])
    kinds = {"true_match": (passed, same), "false_match": (passed, ~same)}
    kinds |= {"candidates_true": (candidate, same), "candidates_false": (candidate, ~same)}
    rates = {name: Rate(int(flags[of].sum()), int(of.sum())).to_dict() for name, (flags, of) in kinds.items()}
    complete = Rate(len(shared) - len(missed), len(shared)).to_dict()
    return {**rates, "fingers_complete": complete, "equal_error": drawn.equal_error, "fingers": len(shared)}
