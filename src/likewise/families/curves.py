"""The curve of AND- and OR-constructions: collision probability of one function in, of the whole cascade out.

An AND of r functions turns p into p^r, an OR of b functions turns p into 1 − (1 − p)^b (MMDS §3.6.3). Both p and 1 − p
are carried along, so that neither end of the curve loses digits, however many functions there are.
"""

from __future__ import annotations

import math
from abc import ABC, abstractmethod
from collections.abc import Sequence
from typing import Any, NamedTuple, overload

import numpy as np
from numpy.typing import NDArray

from likewise.base import checks

Floats = NDArray[np.float64]
Construction = tuple[str, int]
"""One step of a cascade: ("all", r) or ("any", b)."""
FARTHEST = 700.0
"""Curves are searched where the log-odds ln(p/(1 − p)) lie between −700 and 700, about the range of a float."""
GRID = 28_001
"""Log-odds tried in the search for the steepest point: 20 per unit. Between neighbours the log of the slope changes by
at most 1/20 for each step of the cascade, which is fine enough to find the right peak."""


class Steepest(NamedTuple):
    """The steepest point of a curve: the collision probability p of one function, and the slope there."""

    p: float
    slope: float


class CollisionCurve(ABC):
    """The collision probability of a cascade as a function of the collision probability p of one function."""

    @property
    @abstractmethod
    def steps(self) -> tuple[Construction, ...]:
        """The constructions, from the base family outwards: ("all", r) or ("any", b)."""

    @property
    def functions(self) -> int:
        """The number of functions of the base family in use."""
        return math.prod(k for _, k in self.steps)

    @overload
    def curve(self, p: float) -> float: ...

    @overload
    def curve(self, p: Sequence[float] | Floats) -> Floats: ...

    def curve(self, p: float | Sequence[float] | Floats) -> float | Floats:
        """Return the collision probability, given that of one function of the base family."""
        value = transformed(self.steps, checks.numbers("curve", "p", p, 0, 1))
        return value if value.ndim else float(value)

    @overload
    def slope(self, p: float) -> float: ...

    @overload
    def slope(self, p: Sequence[float] | Floats) -> Floats: ...

    def slope(self, p: float | Sequence[float] | Floats) -> float | Floats:
        """Return the slope of the curve at p: the product of the slopes of its steps."""
        value = checks.numbers("slope", "p", p, 0, 1)
        rest, slope = 1 - value, np.ones_like(value)
        for kind, k in self.steps:
            slope = slope * (k * (_power(value, rest, k - 1) if kind == "all" else _power(rest, value, k - 1)))
            value, rest = _step(kind, k, value, rest)
        return slope if slope.ndim else float(slope)

    def fixed_point(self) -> float | None:
        """Return the p strictly between 0 and 1 that the curve maps to itself: smaller p decrease, larger p increase.

        None if there is none: ANDs alone only lower p, ORs alone only raise it. A cascade with both has exactly one,
        however long it is (MMDS §3.6.3). In log-odds x = ln(p/(1 − p)) an AND of r has slope r(1 − p)/(1 − p^r) and an
        OR of b has slope bp/(1 − (1 − p)^b), both above 1, so the curve crosses the diagonal at most once. And it does
        cross: near 0 it behaves like p^R, and near 1 its distance from 1 behaves like (1 − p)^B, where R is the product
        of all r and B that of all b.

        >>> from likewise import MinHash
        >>> round(MinHash().any_of(2).all_of(2).fixed_point(), 6)      # (3 − √5)/2
        0.381966
        """
        if len({kind for kind, k in self.steps if k > 1}) < 2:
            return None
        low, high = -FARTHEST, FARTHEST
        for _ in range(200):
            middle = (low + high) / 2
            p, rest = _logs_of_odds(np.float64(middle))
            for kind, k in self.steps:
                p, rest = _log_step(kind, k, p, rest)
            low, high = (middle, high) if float(p - rest) < middle else (low, middle)
        return math.exp(-math.log1p(math.exp(-(low + high) / 2)))

    def steepest(self) -> Steepest:
        """Return the steepest point of the curve (MMDS Exercises 3.6.3 and 3.6.4).

        The search runs over the log-odds y of the result, not over p: per unit of y the log of the slope changes by at
        most the number of steps, so a grid finds the highest of several peaks, however narrow they are in p. For a
        straight line, equally steep everywhere, the midpoint is returned.

        >>> from likewise import MinHash
        >>> p, slope = MinHash().all_of(2).any_of(2).steepest()
        >>> round(p**2, 6), round(slope, 6)      # p^r = (r − 1)/(rb − 1) = 1/3
        (0.333333, 1.539601)
        """
        if all(k == 1 for _, k in self.steps):
            return Steepest(0.5, 1.0)
        grid = np.linspace(-FARTHEST, FARTHEST, GRID)
        heights = self.slope(self._back(grid)[0])
        best = int(np.argmax(heights))
        for end in (0.0, 1.0):
            if self.slope(end) >= heights[best] * (1 - 1e-9):
                return Steepest(end, self.slope(end))
        low, high = float(grid[max(0, best - 1)]), float(grid[min(len(grid) - 1, best + 1)])
        for _ in range(100):
            middle = (low + high) / 2
            low, high = (middle, high) if self._back(np.float64(middle))[1] > 0 else (low, middle)
        p = float(self._back(np.float64((low + high) / 2))[0])
        return Steepest(p, self.slope(p))

    def _back(self, odds: Any) -> tuple[Any, Any]:
        """Return the p that the curve maps to these log-odds, and the derivative of the log slope by them."""
        p, rest = _logs_of_odds(odds)
        pace, growth = 1.0, 0.0
        for kind, k in reversed(self.steps):
            above = rest if kind == "all" else p
            if kind == "all":
                p, rest = p / k, _log_rest(p / k)
            else:
                p, rest = _log_rest(rest / k), rest / k
            below = rest if kind == "all" else p
            pace = pace * np.exp(above - below) / k
            growth = growth + (1 if kind == "all" else -1) * (k - 1) * np.exp(below) * pace
        return np.exp(p), growth


def transformed(steps: Sequence[Construction], p: Any) -> Any:
    """Return the collision probability after these constructions, given that of one function.

    >>> round(float(transformed([("all", 4), ("any", 4)], 0.5)), 4)
    0.2275
    """
    value = np.asarray(p, np.float64)
    rest = 1 - value
    for kind, k in steps:
        value, rest = _step(kind, k, value, rest)
    return value


def _step(kind: str, k: int, p: Any, rest: Any) -> tuple[Any, Any]:
    """Return p and 1 − p after a step; an OR does to 1 − p what an AND does to p."""
    if kind == "all":
        return _power(p, rest, k), _power_rest(p, rest, k)
    return _power_rest(rest, p, k), _power(rest, p, k)


def _power(p: Any, rest: Any, k: int) -> Any:
    """Return p^k; computed from 1 − p where p is so close to 1 that this keeps more digits."""
    with np.errstate(divide="ignore", invalid="ignore", under="ignore"):
        return np.where(rest < 1e-3, np.exp(k * np.log1p(-rest)), p**k) if k else np.ones_like(p)


def _power_rest(p: Any, rest: Any, k: int) -> Any:
    """Return 1 − p^k to full precision."""
    with np.errstate(divide="ignore", under="ignore"):
        return np.abs(np.expm1(k * np.where(p < 0.5, np.log(p), np.log1p(-np.minimum(rest, 0.5)))))


def _log_step(kind: str, k: int, p: Any, rest: Any) -> tuple[Any, Any]:
    """Return the logarithms of p and 1 − p after a step, given their logarithms before it."""
    return (k * p, _log_rest(k * p)) if kind == "all" else (_log_rest(k * rest), k * rest)


def _log_rest(log: Any) -> Any:
    """Return ln(1 − e^log) to full precision."""
    with np.errstate(divide="ignore", under="ignore"):
        small = np.minimum(log, -0.5)
        return np.where(log < -0.5, np.log1p(-np.exp(small)), np.log(-np.expm1(np.maximum(log, -0.5))))


def _logs_of_odds(odds: Any) -> tuple[Any, Any]:
    """Return ln p and ln(1 − p) for the p with these log-odds."""
    return -np.logaddexp(0, -odds), -np.logaddexp(0, odds)
