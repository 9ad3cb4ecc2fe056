"""The algebra of locality-sensitive families: AND, OR, and cascades of them, as objects that predict (Section 3.6).

A family makes two items at distance d collide with probability p(d). `all_of(r)` asks that r functions agree and turns p
into p^r; `any_of(b)` that one of b does, and turns p into 1 − (1 − p)^b. Steps follow one another in any order:

>>> from likewise import MinHash
>>> cascade = MinHash().all_of(4).any_of(4)
>>> [round(cascade.probability(1 - p), 4) for p in (0.2, 0.5, 0.8)]
[0.0064, 0.2275, 0.8785]
"""

from __future__ import annotations

import math
from abc import ABC, abstractmethod
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any, NamedTuple, overload

import numpy as np
from numpy.typing import NDArray

from likewise.errors import ParameterError

Floats = NDArray[np.float64]
Step = tuple[str, int]


class Sensitivity(NamedTuple):
    """A (d1, d2, p1, p2)-sensitive family: items at most d1 apart collide with probability ≥ p1, at least d2 with ≤ p2."""

    d1: float
    d2: float
    p1: float
    p2: float


class Steepest(NamedTuple):
    """Where the curve of a composed family climbs fastest: the probability p of its base, and the slope there."""

    p: float
    slope: float


class Composable(ABC):
    """What base families and composed ones share: a curve, and steps that can be added."""

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
        return Composed(self.base, (*self.steps, ("all", _count("all_of", r))))

    def any_of(self, b: int) -> Composed:
        """Let two items collide if they do under any of b independent copies: an OR-construction (Section 3.6.3)."""
        return Composed(self.base, (*self.steps, ("any", _count("any_of", b))))

    @overload
    def curve(self, p: float) -> float: ...

    @overload
    def curve(self, p: Sequence[float] | Floats) -> Floats: ...

    def curve(self, p: float | Sequence[float] | Floats) -> float | Floats:
        """Return the probability of a collision, given that of one function of the base."""
        value = np.asarray(p, np.float64)
        if not ((value >= 0) & (value <= 1)).all():
            raise ParameterError.of("curve", "p", "in [0, 1]", p)
        for kind, k in self.steps:
            value = value**k if kind == "all" else _any(value, k)
        return value if value.ndim else float(value)

    def slope(self, p: float) -> float:
        """Return the slope of the curve at p."""
        slope = 1.0
        for kind, k in self.steps:
            slope *= k * (p if kind == "all" else 1 - p) ** (k - 1)
            p = p**k if kind == "all" else float(_any(np.float64(p), k))
        return slope

    @overload
    def probability(self, d: float) -> float: ...

    @overload
    def probability(self, d: Sequence[float] | Floats) -> Floats: ...

    def probability(self, d: float | Sequence[float] | Floats) -> float | Floats:
        """Return the probability that items at distance d, in the family's own unit, collide."""
        found: float | Floats = self.curve(self.base.collision(d))
        return found

    def sensitivity(self, d1: float, d2: float) -> Sensitivity:
        """Return (d1, d2, p1, p2): closer than d1 collides with probability p1 or more, farther than d2 with p2 or less."""
        if not d1 < d2:
            raise ParameterError.of("sensitivity", "d1", f"less than d2 = {d2:g}", d1)
        return Sensitivity(d1, d2, float(self.probability(d1)), float(self.probability(d2)))

    def fixed_point(self) -> float | None:
        """Return the p between 0 and 1 that the curve leaves where it is; below it falls, above it rises (Section 3.6.3).

        None if there is none: a curve of ANDs alone only falls, one of ORs alone only rises.
        """
        if len({kind for kind, k in self.steps if k > 1}) < 2:
            return None
        low, high = 1e-12, 1 - 1e-12
        if not float(self.curve(low)) < low or not float(self.curve(high)) > high:
            return None
        for _ in range(200):
            middle = (low + high) / 2
            low, high = (middle, high) if float(self.curve(middle)) < middle else (low, middle)
        return (low + high) / 2

    def steepest(self) -> Steepest:
        """Return where the curve climbs fastest, and its slope there."""
        grid = np.linspace(0, 1, 2001)
        best = int(np.argmax([self.slope(float(p)) for p in grid]))
        low, high = float(grid[max(0, best - 1)]), float(grid[min(2000, best + 1)])
        ratio = (math.sqrt(5) - 1) / 2
        for _ in range(100):
            a, b = high - ratio * (high - low), low + ratio * (high - low)
            low, high = (a, high) if self.slope(a) < self.slope(b) else (low, b)
        p = (low + high) / 2
        return Steepest(p, self.slope(p))


class Family(Composable):
    """A family of hash functions for one distance: numbered functions, each a number for every item.

    `unit` names what distances are measured in.
    """

    unit: str = ""

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


@dataclass(frozen=True)
class Composed(Composable):
    """A family with steps on it; see `Composable`."""

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

    def __str__(self) -> str:
        return str(self.family) + "".join(f".{kind}_of({k})" for kind, k in self.path)


def _any(p: Any, k: int) -> Any:
    """Return 1 − (1 − p)^k with all its digits."""
    with np.errstate(divide="ignore", under="ignore"):
        return np.abs(np.expm1(k * np.log1p(-p)))


def _count(owner: str, k: object) -> int:
    if isinstance(k, bool) or not isinstance(k, (int, np.integer)) or k < 1:
        raise ParameterError.of(owner, "k", "a positive whole number", k)
    return int(k)


def check_distance(owner: str, d: Any, most: float) -> Floats:
    """Return distances as an array; raise unless they are from 0 to `most`."""
    value = np.asarray(d, np.float64)
    if not ((value >= 0) & (value <= most)).all():
        raise ParameterError.of(f"{owner}.probability", "d", f"from 0 to {most:g}", d)
    return value
