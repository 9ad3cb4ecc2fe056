"""The algebra of locality-sensitive families: AND, OR, and cascades of them, as objects that predict (Section 3.6).

A family makes two items at distance d collide with probability p(d). `all_of(r)` asks that r functions agree and turns
p into p^r; `any_of(b)` that one of b does, and turns p into 1 − (1 − p)^b. Steps follow one another in any order:

>>> from likewise import MinHash
>>> cascade = MinHash().all_of(4).any_of(4)
>>> [round(cascade.probability(1 - p), 4) for p in (0.2, 0.5, 0.8)]
[0.0064, 0.2275, 0.8785]

Curves are computed from p and 1 − p side by side, so that neither end loses its digits, however many the functions.
"""

from __future__ import annotations

import math
from abc import ABC, abstractmethod
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any, NamedTuple, overload

import numpy as np
from numpy.typing import NDArray

from likewise.errors import ParameterError

if TYPE_CHECKING:
    from likewise.families.near import NearIndex
    from likewise.families.running import Candidates, FamilyIndex

Floats = NDArray[np.float64]
Step = tuple[str, int]
MOST_PAIRS = 100_000_000
FARTHEST = 700.0
"""Curves are searched where the logarithm of the odds p : 1 − p is from −700 to 700, about what a float can hold."""


class Sensitivity(NamedTuple):
    """A (d1, d2, p1, p2)-sensitive family: up to d1 items collide with probability ≥ p1, from d2 on with ≤ p2."""

    d1: float
    d2: float
    p1: float
    p2: float


class Steepest(NamedTuple):
    """Where the curve of a composed family climbs fastest: the probability p of its base, and the slope there."""

    p: float
    slope: float


class Composable(ABC):
    """What base families and composed ones share: a curve, steps that can be added, and items to run on."""

    @property
    @abstractmethod
    def base(self) -> Family:
        """The family whose functions are used."""

    @property
    @abstractmethod
    def steps(self) -> tuple[Step, ...]:
        """The steps from the base on: ("all", r) or ("any", b)."""

    @property
    def functions(self) -> int:
        """How many functions of the base family are used."""
        return math.prod(k for _, k in self.steps)

    def all_of(self, r: int) -> Composed:
        """Let two items collide if they do under all of r independent copies: an AND-construction (Section 3.6.3)."""
        return Composed(self.base, (*self.steps, ("all", _count("all_of", "r", r))))

    def any_of(self, b: int) -> Composed:
        """Let two items collide if they do under any of b independent copies: an OR-construction (Section 3.6.3)."""
        return Composed(self.base, (*self.steps, ("any", _count("any_of", "b", b))))

    @overload
    def curve(self, p: float) -> float: ...

    @overload
    def curve(self, p: Sequence[float] | Floats) -> Floats: ...

    def curve(self, p: float | Sequence[float] | Floats) -> float | Floats:
        """Return the probability of a collision, given that of one function of the base."""
        value = _probabilities("curve", p)
        rest = 1 - value
        for kind, k in self.steps:
            value, rest = _step(kind, k, value, rest)
        return value if value.ndim else float(value)

    @overload
    def slope(self, p: float) -> float: ...

    @overload
    def slope(self, p: Sequence[float] | Floats) -> Floats: ...

    def slope(self, p: float | Sequence[float] | Floats) -> float | Floats:
        """Return the slope of the curve at p: the product of the slopes of its steps."""
        value = _probabilities("slope", p)
        rest, slope = 1 - value, np.ones_like(value)
        for kind, k in self.steps:
            slope = slope * (k * (_power(value, rest, k - 1) if kind == "all" else _power(rest, value, k - 1)))
            value, rest = _step(kind, k, value, rest)
        return slope if slope.ndim else float(slope)

    @overload
    def probability(self, d: float) -> float: ...

    @overload
    def probability(self, d: Sequence[float] | Floats) -> Floats: ...

    def probability(self, d: float | Sequence[float] | Floats) -> float | Floats:
        """Return the probability that items at distance d, in the family's own unit, collide."""
        found: float | Floats = self.curve(self.base.collision(d))
        return found

    def sensitivity(self, d1: float, d2: float) -> Sensitivity:
        """Return (d1, d2, p1, p2): up to d1, items collide with probability p1 or more; from d2 on, with p2 or less."""
        if not d1 < d2:
            raise ParameterError.of("sensitivity", "d1", f"less than d2 = {d2:g}", d1)
        return Sensitivity(d1, d2, float(self.probability(d1)), float(self.probability(d2)))

    def fixed_point(self) -> float | None:
        """Return the p between 0 and 1 that the curve leaves as it is: below, p falls, above, it rises (Section 3.6.3).

        None if there is none: ANDs alone only lower p, ORs alone only raise it. With both there is exactly one, however
        long the cascade. In log-odds x = ln(p/(1 − p)) an AND of r has the slope r(1 − p)/(1 − p^r) and an OR of b the
        slope bp/(1 − (1 − p)^b), both above 1: the curve crosses the diagonal at most once. And it does: near 0 it goes
        like p^R, and near 1 its distance from 1 like (1 − p)^B, with R the product of all r, and B that of all b.

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
        """Return where the curve climbs fastest, and its slope there (Exercises 3.6.3 and 3.6.4).

        The search goes along the log-odds y of the result, not along p: for every unit of y the logarithm of the slope
        changes by no more than the number of steps, so that a grid finds the highest of several peaks, however narrow
        they are in p. Of a straight line, which is as steep everywhere, the middle is given.

        >>> from likewise import MinHash
        >>> p, slope = MinHash().all_of(2).any_of(2).steepest()
        >>> round(p**2, 6), round(slope, 6)      # p^r = (r − 1)/(rb − 1) = 1/3
        (0.333333, 1.539601)
        """
        if all(k == 1 for _, k in self.steps):
            return Steepest(0.5, 1.0)
        grid = np.linspace(-FARTHEST, FARTHEST, 28_001)
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
        """Return the p from which the curve comes to these log-odds, and how the log of its slope grows with them."""
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

    def candidates(self, items: Any, most: int = MOST_PAIRS, sample: int = 20_000) -> Candidates:
        """Return the pairs of items that collide, with their share of all pairs as measured and as predicted.

        Raises if there would be more than `most`. The prediction is from the distances of `sample` pairs drawn at
        random; 0 makes none. See `likewise.families.running`.
        """
        from likewise.families.running import candidates

        return candidates(self, items, most, sample)

    def index(self, items: Any) -> FamilyIndex:
        """Return an index that answers which of the items collide with another one."""
        from likewise.families.running import FamilyIndex

        return FamilyIndex(self, items)

    def plot(self, path: str | Path | None = None, distances: Sequence[float] | Floats | None = None) -> Any:
        """Draw the curve, over the base's probability or over these distances; write it to a file if there is a path.

        Returns the Matplotlib figure. Needs `pip install 'likewise[plot]'`.
        """
        from likewise.families.plotting import plot_many

        return plot_many([self], path, distances)


class Family(Composable):
    """A family of hash functions for one distance: numbered functions, each a number for every item.

    `unit` names what distances are measured in. A function that has nothing to say about an item gives it the value
    `absent`, if the family has one: under that function the item collides with nothing, not even with its like.
    """

    unit: str = ""
    absent: int | None = None

    @property
    def base(self) -> Family:
        """Itself."""
        return self

    @property
    def steps(self) -> tuple[Step, ...]:
        """None."""
        return ()

    @abstractmethod
    def collision(self, d: Any) -> Any:
        """Return the probability that one function agrees on items at distance d; arrays give arrays."""

    @abstractmethod
    def hashes(self, items: Any, n: int) -> NDArray[Any]:
        """Return the values of the first n functions for every item: one row an item."""

    @abstractmethod
    def distances(self, items: Any, left: NDArray[np.int64], right: NDArray[np.int64]) -> Floats:
        """Return how far items[left[i]] is from items[right[i]], for every i, in the family's own unit."""

    def near(
        self,
        items: Any,
        r: float,
        c: float,
        *,
        probes: int = 0,
        k: int | None = None,
        L: int | None = None,
        memory: int | str = "4GiB",
    ) -> NearIndex:
        """Return an index for (c, r)-near neighbours: if an item is within r of a query, one within c·r is found.

        See `likewise.families.near` for what is promised, and what the options do.
        """
        from likewise.families.near import NearIndex

        return NearIndex(self, items, r, c, probes=probes, k=k, L=L, memory=memory)


@dataclass(frozen=True, repr=False)
class Composed(Composable):
    """A family with steps on it; see `Composable`.

    >>> from likewise import MinHash
    >>> MinHash(seed=7).all_of(4).any_of(16)
    MinHash(seed=7, method='fast').all_of(4).any_of(16)
    """

    family: Family
    path: tuple[Step, ...]

    @property
    def base(self) -> Family:
        """The family whose functions are used."""
        return self.family

    @property
    def steps(self) -> tuple[Step, ...]:
        """The steps from the base on."""
        return self.path

    def __repr__(self) -> str:
        return repr(self.family) + "".join(f".{kind}_of({k})" for kind, k in self.path)


def _step(kind: str, k: int, p: Any, rest: Any) -> tuple[Any, Any]:
    """Return p and 1 − p after a step; an OR does to 1 − p what an AND does to p."""
    if kind == "all":
        return _power(p, rest, k), _power_rest(p, rest, k)
    return _power_rest(rest, p, k), _power(rest, p, k)


def _power(p: Any, rest: Any, k: int) -> Any:
    """Return p^k; from 1 − p if p is so near 1 that this has more digits."""
    with np.errstate(divide="ignore", invalid="ignore", under="ignore"):
        return np.where(rest < 1e-3, np.exp(k * np.log1p(-rest)), p**k) if k else np.ones_like(p)


def _power_rest(p: Any, rest: Any, k: int) -> Any:
    """Return 1 − p^k with all its digits."""
    with np.errstate(divide="ignore", under="ignore"):
        return np.abs(np.expm1(k * np.where(p < 0.5, np.log(p), np.log1p(-np.minimum(rest, 0.5)))))


def _log_step(kind: str, k: int, p: Any, rest: Any) -> tuple[Any, Any]:
    """Do the same with the logarithms of both."""
    return (k * p, _log_rest(k * p)) if kind == "all" else (_log_rest(k * rest), k * rest)


def _log_rest(log: Any) -> Any:
    """Return ln(1 − e^log) with all its digits."""
    with np.errstate(divide="ignore", under="ignore"):
        small = np.minimum(log, -0.5)
        return np.where(log < -0.5, np.log1p(-np.exp(small)), np.log(-np.expm1(np.maximum(log, -0.5))))


def _logs_of_odds(odds: Any) -> tuple[Any, Any]:
    """Return ln p and ln(1 − p) for p of these log-odds."""
    return -np.logaddexp(0, -odds), -np.logaddexp(0, odds)


def _probabilities(owner: str, p: Any) -> Floats:
    value = np.asarray(p, np.float64)
    if not ((value >= 0) & (value <= 1)).all():
        raise ParameterError.of(owner, "p", "in [0, 1]", p)
    return value


def _count(owner: str, name: str, k: object) -> int:
    if isinstance(k, bool) or not isinstance(k, (int, np.integer)) or k < 1:
        raise ParameterError.of(owner, name, "a positive whole number", k)
    return int(k)


def check_distance(owner: str, d: Any, most: float) -> Floats:
    """Return distances as an array; raise unless they are from 0 to `most`."""
    try:
        value = np.asarray(d, np.float64)
    except (TypeError, ValueError) as error:
        raise ParameterError.of(f"{owner}.probability", "d", "a number or an array of numbers", d) from error
    if not ((value >= 0) & (value <= most)).all():
        raise ParameterError.of(f"{owner}.probability", "d", f"from 0 to {most:g}", d)
    return value
