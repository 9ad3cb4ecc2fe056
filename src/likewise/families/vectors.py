"""Families for points and directions: hyperplanes, random lines, sampled bits (Sections 3.7 and 3.7.4)."""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from likewise.errors import ParameterError
from likewise.families.algebra import Family, check_distance
from likewise.families.minhash import check_seed
from likewise.families.randomness import bits, cauchy, gaussian, uniform

BLOCK = 1 << 14


def as_vectors(owner: str, items: Any) -> NDArray[Any]:
    """Return items as a table of finite numbers, one row an item."""
    table = np.asarray(items)
    if table.ndim != 2 or table.dtype.kind not in "fiub":
        raise ParameterError.of(owner, "items", "a table of numbers, one row a vector", type(items).__name__)
    if table.dtype.kind == "f" and not np.isfinite(table).all():
        row = int(np.argmin(np.isfinite(table).all(axis=1)))
        raise ParameterError(f"{owner}: vector {row} holds a number that is not finite")
    return table


def projected(items: NDArray[Any], directions: NDArray[np.float64]) -> NDArray[np.float32]:
    """Return the length of every item along every direction, in single precision."""
    across = np.ascontiguousarray(directions.T, np.float32)
    out = np.empty((len(items), across.shape[1]), np.float32)
    for start in range(0, len(items), BLOCK):
        part = slice(start, start + BLOCK)
        np.matmul(items[part].astype(np.float32, copy=False), across, out=out[part])
    return out


@dataclass(frozen=True)
class Hyperplanes(Family):
    """On which side of a random hyperplane through the origin a vector lies (Section 3.7.2).

    Two vectors at an angle of d degrees are on the same side with probability 1 − d/180. The normal of a hyperplane is a vector
    of Gaussian numbers, so that all directions are equally likely.

    >>> Hyperplanes().probability(60), Hyperplanes().all_of(3).probability(60)
    (0.6666666666666667, 0.2962962962962964)
    """

    seed: int = 1

    unit = "degrees"

    def __post_init__(self) -> None:
        check_seed(type(self).__name__, self.seed)

    def collision(self, d: Any) -> Any:
        """Return 1 − d/180."""
        return 1 - check_distance(type(self).__name__, d, 180) / 180

    def directions(self, n: int, dimensions: int) -> NDArray[np.float64]:
        """Return the normals of the first n hyperplanes."""
        return gaussian(self.seed, n, dimensions)

    def hashes(self, items: Any, n: int) -> NDArray[np.uint8]:
        """Return 1 or 0 for every vector and hyperplane; a vector in the plane counts as on the positive side."""
        table = as_vectors(type(self).__name__, items)
        return (projected(table, self.directions(n, table.shape[1])) >= 0).view(np.uint8)


@dataclass(frozen=True)
class SignSketch(Hyperplanes):
    """Hyperplanes whose normals hold only +1 and −1: sums and differences in place of products (Section 3.7.3).

    For vectors of many components of like size the probability is nearly that of `Hyperplanes`; one of a single large component
    among small ones sees only that component's sign.
    """

    def directions(self, n: int, dimensions: int) -> NDArray[np.float64]:
        """Return normals of +1 and −1."""
        return 1.0 - 2.0 * (bits(self.seed, 2, n, dimensions) >> np.uint64(63)).astype(np.float64)


@dataclass(frozen=True)
class RandomLines(Family):
    """In which segment of width a the projection on a random line falls: for the usual distance, L2 (Section 3.7.4).

    The direction of the line is a vector of Gaussian numbers, so the projections of two points at distance d differ by d times
    a Gaussian number, in any number of dimensions (Datar, Immorlica, Indyk, Mirrokni, 2004):
    p(d) = 1 − 2Φ(−a/d) − 2d/(√(2π)·a)·(1 − e^(−a²/2d²)).

    >>> lines = RandomLines(a=1.0)
    >>> bool(lines.probability(0.5) >= 1 / 2 and lines.probability(2.0) <= 1 / 3)
    True
    """

    a: float = 1.0
    seed: int = 1

    unit = "L2"

    def __post_init__(self) -> None:
        check_seed(type(self).__name__, self.seed)
        if isinstance(self.a, bool) or not isinstance(self.a, int | float) or not 0 < self.a < math.inf:
            raise ParameterError.of(type(self).__name__, "a", "a positive number", self.a)

    def collision(self, d: Any) -> Any:
        """Return the closed form above; 1 at distance 0."""
        far = check_distance("RandomLines", d, math.inf)
        with np.errstate(divide="ignore", over="ignore", invalid="ignore"):
            t = self.a / far
            tail = np.vectorize(lambda x: math.erfc(x / math.sqrt(2)), otypes=[float])(t)
            found = 1 - tail - 2 / (math.sqrt(2 * math.pi) * t) * -np.expm1(-(t**2) / 2)
        return np.where(far == 0, 1.0, np.where(np.isinf(far), 0.0, np.clip(found, 0, 1)))[()]

    def slopes(self, n: int, dimensions: int) -> NDArray[np.float64]:
        """Return the directions of the first n lines."""
        return gaussian(self.seed, n, dimensions)

    def hashes(self, items: Any, n: int) -> NDArray[np.int32]:
        """Return the number of the segment for every point and line; where segments begin is random."""
        table = as_vectors(type(self).__name__, items)
        along = projected(table, self.slopes(n, table.shape[1]) / self.a)
        along += uniform(self.seed, 5, 1, n).astype(np.float32)
        return np.floor(along, out=along).astype(np.int32)


@dataclass(frozen=True)
class CauchyLines(RandomLines):
    """`RandomLines` for the Manhattan distance, L1: the directions hold Cauchy numbers.

    p(d) = 2·arctan(a/d)/π − d/(π·a)·ln(1 + (a/d)²).
    """

    unit = "L1"

    def collision(self, d: Any) -> Any:
        """Return the closed form above; 1 at distance 0."""
        far = check_distance("CauchyLines", d, math.inf)
        with np.errstate(divide="ignore", over="ignore", invalid="ignore"):
            t = self.a / far
            found = 2 * np.arctan(t) / np.pi - np.log1p(t**2) / (np.pi * t)
        return np.where(far == 0, 1.0, np.where(np.isinf(far), 0.0, np.clip(found, 0, 1)))[()]

    def slopes(self, n: int, dimensions: int) -> NDArray[np.float64]:
        """Return the directions of the first n lines."""
        return cauchy(self.seed, n, dimensions)


@dataclass(frozen=True)
class BitSampling(Family):
    """One component of a vector, chosen at random: for the Hamming distance of vectors of so many components (Section 3.7.1).

    >>> BitSampling(dimensions=100).probability(10)
    0.9
    """

    dimensions: int
    seed: int = 1

    unit = "Hamming"

    def __post_init__(self) -> None:
        check_seed("BitSampling", self.seed)
        if isinstance(self.dimensions, bool) or not isinstance(self.dimensions, int) or self.dimensions < 1:
            raise ParameterError.of("BitSampling", "dimensions", "a positive whole number", self.dimensions)

    def collision(self, d: Any) -> Any:
        """Return 1 − d/dimensions."""
        return 1 - check_distance("BitSampling", d, self.dimensions) / self.dimensions

    def places(self, n: int) -> NDArray[np.int64]:
        """Return the component that each of the first n functions looks at."""
        return (uniform(self.seed, 3, 1, n)[0] * self.dimensions).astype(np.int64)

    def hashes(self, items: Any, n: int) -> NDArray[Any]:
        """Return the chosen components of every vector."""
        table = as_vectors("BitSampling", items)
        if table.shape[1] != self.dimensions:
            raise ParameterError(f"BitSampling: vectors have {table.shape[1]} components, not {self.dimensions}")
        return np.ascontiguousarray(table[:, self.places(n)])


@dataclass(frozen=True)
class UnaryCode(Family):
    """Whether a component, chosen at random, exceeds a random number: for L1 of whole numbers from 0 to `largest`.

    That is bit sampling of the unary code, in which x is x ones and then zeros: the Hamming distance of two codes is the
    Manhattan distance of the points.

    >>> UnaryCode(dimensions=2, largest=5).probability(3)
    0.7
    """

    dimensions: int
    largest: int
    seed: int = 1

    unit = "L1"

    def __post_init__(self) -> None:
        check_seed("UnaryCode", self.seed)
        for name in ("dimensions", "largest"):
            value = getattr(self, name)
            if isinstance(value, bool) or not isinstance(value, int) or value < 1:
                raise ParameterError.of("UnaryCode", name, "a positive whole number", value)

    def collision(self, d: Any) -> Any:
        """Return 1 − d/(dimensions·largest)."""
        size = self.dimensions * self.largest
        return 1 - check_distance("UnaryCode", d, size) / size

    def hashes(self, items: Any, n: int) -> NDArray[np.uint8]:
        """Return 1 if the component reaches the number, else 0."""
        table = as_vectors("UnaryCode", items)
        if table.shape[1] != self.dimensions:
            raise ParameterError(f"UnaryCode: vectors have {table.shape[1]} components, not {self.dimensions}")
        if table.dtype.kind not in "iu" or (len(table) and (table.min() < 0 or table.max() > self.largest)):
            raise ParameterError(f"UnaryCode: components must be whole numbers from 0 to {self.largest}")
        drawn = (uniform(self.seed, 4, 1, n)[0] * self.dimensions * self.largest).astype(np.int64)
        return (table[:, drawn // self.largest] > drawn % self.largest).view(np.uint8)
