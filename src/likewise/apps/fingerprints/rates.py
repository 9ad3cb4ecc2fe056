"""How good is a matcher: true and false match rates, the curve of both, and where they are equally bad."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from likewise.base.stats import binomial_interval
from likewise.errors import ParameterError

Floats = NDArray[np.float64]


@dataclass(frozen=True)
class Rate:
    """A share of pairs, with the 95 % interval it would have if pairs were independent.

    >>> print(Rate(99, 100))
    0.990 (99 of 100; 95 % interval 0.946 to 1.000)
    """

    count: int
    of: int

    @property
    def value(self) -> float:
        """The share itself."""
        return self.count / self.of if self.of else float("nan")

    @property
    def interval(self) -> tuple[float, float]:
        """Clopper and Pearson's interval."""
        return binomial_interval(self.count, self.of) if self.of else (0.0, 1.0)

    def to_dict(self) -> dict[str, Any]:
        """Return it for run.json."""
        low, high = self.interval
        return {"rate": self.value, "count": self.count, "of": self.of, "low": low, "high": high}

    def __str__(self) -> str:
        low, high = self.interval
        digits = 3 if self.value == 0 or self.value > 0.02 else 4
        numbers = [f"{number:.{digits}f}" for number in (self.value, low, high)]
        return f"{numbers[0]} ({self.count:,} of {self.of:,}; 95 % interval {numbers[1]} to {numbers[2]})"


@dataclass(frozen=True, eq=False)
class Curve:
    """The true and the false match rate at every threshold that makes a difference, highest threshold first."""

    thresholds: Floats
    true: Floats
    false: Floats

    @property
    def equal_error(self) -> float:
        """The error where true pairs are missed as often as false ones pass: halfway, where no threshold is exact."""
        missed = 1 - self.true
        at = int(np.argmin(np.abs(missed - self.false)))
        return float((missed[at] + self.false[at]) / 2)

    def true_at(self, false: float) -> float:
        """Return the greatest true match rate at which the false match rate is no more than this."""
        return float(self.true[self.false <= false].max(initial=0.0))


def curve(same: Any, other: Any) -> Curve:
    """Return the curve, from the scores of pairs of one finger and of pairs of two.

    >>> found = curve([0.9, 0.8, 0.4], [0.5, 0.1, 0.1, 0.1])
    >>> round(found.true_at(0), 3), found.true_at(0.25)
    (0.667, 1.0)
    >>> round(found.equal_error, 3)      # at 0.5: a third is missed, a quarter passes
    0.292
    """
    same, other = np.sort(np.asarray(same, np.float64)), np.sort(np.asarray(other, np.float64))
    if not len(same) or not len(other):
        raise ParameterError("curve: there must be pairs of one finger, and pairs of two")
    thresholds = np.concatenate([[np.inf], np.unique(np.concatenate([same, other]))[::-1]])
    true, false = (1 - np.searchsorted(scores, thresholds) / len(scores) for scores in (same, other))
    return Curve(thresholds, true, false)
