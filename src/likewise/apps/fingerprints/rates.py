"""The quality of a matcher: true and false match rates, the ROC curve, the equal error rate."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from likewise.apps.fingerprints.comparison import ComparedPrints
from likewise.apps.fingerprints.prints import Prints
from likewise.base.arrays import Ints
from likewise.base.stats import binomial_interval
from likewise.errors import ParameterError

Floats = NDArray[np.float64]


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
    return {
        "true_match": Rate(int(passed[same].sum()), int(same.sum())).to_dict(),
        "false_match": Rate(int(passed[~same].sum()), int((~same).sum())).to_dict(),
        "fingers_complete": Rate(len(shared) - len(missed), len(shared)).to_dict(),
        "equal_error": drawn.equal_error,
        "candidates_true": Rate(int(candidate[same].sum()), int(same.sum())).to_dict(),
        "candidates_false": Rate(int(candidate[~same].sum()), int((~same).sum())).to_dict(),
        "fingers": len(shared),
    }
