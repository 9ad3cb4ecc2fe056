"""Families for points and directions: hyperplanes, random lines, sampled bits (Section 3.7)."""

from __future__ import annotations

import math
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from functools import lru_cache
from typing import Any

import numpy as np
from numpy.typing import NDArray

from likewise.base.random import cauchy, gaussian, signs, uniform
from likewise.errors import InputError, ParameterError
from likewise.families.algebra import Family, check_distance
from likewise.families.minhash import check_functions, check_seed

Floats = NDArray[np.float64]
Ints = NDArray[np.int64]
Draw = Callable[[int, int, int], Floats]
TILE = 64
PAIRS = 1 << 14


def as_vectors(owner: str, items: Any, dimensions: int | None = None) -> NDArray[Any]:
    """Return items as a table of finite numbers, one row an item."""
    try:
        table = np.asarray(items)
    except ValueError as error:
        raise ParameterError(f"{owner}: vectors must all have the same number of components ({error})") from error
    if table.ndim != 2 or table.dtype.kind not in "fiub":
        raise ParameterError.of(owner, "items", "a table of numbers, one row a vector", type(items).__name__)
    if table.dtype.kind == "f" and not np.isfinite(table).all():
        row = int(np.argmin(np.isfinite(table).all(axis=1)))
        raise InputError(f"{owner}: vector {row} holds a number that is not finite")
    if dimensions is not None and table.shape[1] != dimensions:
        raise ParameterError(f"{owner}: vectors have {table.shape[1]} components, not {dimensions}")
    return table


def pair_by_pair(measure: Callable[[Any, Any], Any], table: NDArray[Any], left: Ints, right: Ints) -> Floats:
    """Return a measure of many pairs of rows, some thousands at a time."""
    out = np.empty(len(left), np.float64)
    for start in range(0, len(left), PAIRS):
        part = slice(start, start + PAIRS)
        out[part] = measure(table[left[part]], table[right[part]])
    return out


@lru_cache(maxsize=2)
def panels(draw: Draw, seed: int, n: int, dimensions: int, kind: type) -> NDArray[Any]:
    """Return n random directions as columns, TILE to a panel; the last panel is filled up with zeros."""
    count = -(-n // TILE)
    out: NDArray[Any] = np.zeros((count * TILE, dimensions), kind)
    out[:n] = draw(seed, n, dimensions)
    return np.ascontiguousarray(out.reshape(count, TILE, dimensions).swapaxes(1, 2))


def tiles(table: NDArray[Any], across: NDArray[Any], n: int, directed: bool) -> Iterator[tuple[slice, slice, Any]]:
    """Yield (rows, columns, how far these items reach along these directions).

    All products are of the same shape and on one thread, so an item's numbers are the same to the last bit in whatever
    company it comes. With `directed` only directions count, and a power of two brings each item near 1, so that nothing
    overflows in single precision.
    """
    block = np.zeros((TILE, across.shape[1]), across.dtype)
    product = np.empty((TILE, TILE), across.dtype)
    with _libraries().limit(limits=1, user_api="blas"):
        for start in range(0, len(table), TILE):
            part = table[start : start + TILE].astype(np.float64)
            if directed:
                part = np.ldexp(part, -np.frexp(np.abs(part).max(axis=1))[1][:, None])
            block[: len(part)] = part
            block[len(part) :] = 0
            for place, panel in enumerate(across):
                np.matmul(block, panel, out=product)
                columns = slice(place * TILE, min(n, (place + 1) * TILE))
                yield slice(start, start + len(part)), columns, product[: len(part), : columns.stop - columns.start]


@lru_cache(maxsize=1)
def _libraries() -> Any:
    """Return what limits the threads of linear algebra."""
    from threadpoolctl import ThreadpoolController

    return ThreadpoolController()


@dataclass(frozen=True)
class Hyperplanes(Family):
    """On which side of a random hyperplane through the origin a vector lies (Section 3.7.2).

    Two vectors at an angle of d degrees are on the same side with probability 1 − d/180. The normal of a hyperplane is
    a vector of Gaussian numbers, so that all directions are equally likely.

    >>> Hyperplanes().probability(60), Hyperplanes().all_of(3).probability(60)
    (0.6666666666666667, 0.2962962962962964)
    """

    seed: int = 1

    unit = "degrees"
    draw = staticmethod(gaussian)

    def __post_init__(self) -> None:
        check_seed(type(self).__name__, self.seed)

    def collision(self, d: Any) -> Any:
        """Return 1 − d/180."""
        return 1 - check_distance(type(self).__name__, d, 180) / 180

    def directions(self, n: int, dimensions: int) -> Floats:
        """Return the normals of the first n hyperplanes, one a row."""
        return self.draw(self.seed, n, dimensions)

    def hashes(self, items: Any, n: int) -> NDArray[np.uint8]:
        """Return 1 or 0 for every vector and hyperplane; a vector in the plane counts as on the positive side."""
        name = type(self).__name__
        table, n = self._directed(items), check_functions(name, n)
        out = np.empty((len(table), n), np.uint8)
        across = panels(self.draw, self.seed, n, table.shape[1], np.float32)
        for rows, columns, along in tiles(table, across, n, directed=True):
            out[rows, columns] = along >= 0
        return out

    def distances(self, items: Any, left: Ints, right: Ints) -> Floats:
        """Return the angles in degrees."""
        from likewise.measures import batch

        return pair_by_pair(batch.angle, self._directed(items), left, right)

    def _directed(self, items: Any) -> NDArray[Any]:
        """Return items as a table of vectors that have a direction."""
        table = as_vectors(type(self).__name__, items)
        something = table.any(axis=1)
        if not something.all():
            raise InputError(f"{type(self).__name__}: vector {int(np.argmin(something))} is all zeros: no direction")
        return table


@dataclass(frozen=True)
class SignSketch(Hyperplanes):
    """Hyperplanes whose normals hold only +1 and −1: sums and differences in place of products (Section 3.7.3).

    `collision` is that of `Hyperplanes`, and here it is an approximation: the error falls as one over the number of
    components if they are of like size, and is large if few components outweigh the rest. Two vectors of a single large
    component each, and the same, agree in all functions whatever the angle that the small ones make.

    >>> SignSketch(seed=1).directions(2, 4).tolist()
    [[-1.0, 1.0, -1.0, 1.0], [-1.0, -1.0, -1.0, -1.0]]
    """

    draw = staticmethod(signs)


@dataclass(frozen=True)
class RandomLines(Family):
    """In which segment of width a the projection on a random line falls: for the usual distance, L2 (Section 3.7.4).

    The direction of the line is a vector of Gaussian numbers, so the projections of two points at distance d differ by
    d times a Gaussian number, in any number of dimensions (Datar, Immorlica, Indyk, Mirrokni, 2004):
    p(d) = 1 − 2Φ(−a/d) − 2d/(√(2π)·a)·(1 − e^(−a²/2d²)).

    >>> lines = RandomLines(a=1.0)
    >>> bool(lines.probability(0.5) >= 1 / 2 and lines.probability(2.0) <= 1 / 3)
    True
    """

    a: float = 1.0
    seed: int = 1

    unit = "L2"
    draw = staticmethod(gaussian)
    norm = 2

    def __post_init__(self) -> None:
        check_seed(type(self).__name__, self.seed)
        check_width(type(self).__name__, self.a)

    def collision(self, d: Any) -> Any:
        """Return the closed form above; 1 at distance 0."""
        t = self._widths(d)
        inside = np.vectorize(math.erf, otypes=[float])(t / math.sqrt(2))
        return (inside + 2 / (math.sqrt(2 * math.pi) * t) * np.expm1(-(t**2) / 2))[()]

    def _widths(self, d: Any) -> Floats:
        """Return how many times the distance goes into a segment, from nearly nothing to nearly infinity."""
        far = check_distance(type(self).__name__, d, math.inf)
        with np.errstate(divide="ignore", over="ignore"):
            return np.clip(self.a / far, 1e-150, 1e150)

    def directions(self, n: int, dimensions: int) -> Floats:
        """Return the directions of the first n lines, one a row."""
        return self.draw(self.seed, n, dimensions)

    def hashes(self, items: Any, n: int) -> Ints:
        """Return the number of the segment for every point and line; where segments begin is random."""
        table, n = as_vectors(type(self).__name__, items), check_functions(type(self).__name__, n)
        out, begin = np.empty((len(table), n), np.int64), uniform(self.seed, 5, 1, n)[0]
        across = panels(self.draw, self.seed, n, table.shape[1], np.float64)
        for rows, columns, along in tiles(table, across, n, directed=False):
            out[rows, columns] = np.fmod(np.floor(along / self.a + begin[columns]), 2.0**62)
        return out

    def distances(self, items: Any, left: Ints, right: Ints) -> Floats:
        """Return the distances in the family's norm."""
        return lr_distances(as_vectors(type(self).__name__, items), left, right, self.norm)


@dataclass(frozen=True)
class CauchyLines(RandomLines):
    """`RandomLines` for the Manhattan distance, L1: the directions hold Cauchy numbers (Datar et al., 2004).

    p(d) = 2·arctan(a/d)/π − d/(π·a)·ln(1 + (a/d)²).

    >>> round(CauchyLines(a=1.0).probability(1.0), 6)  # 1/2 − ln 2/π
    0.279364
    """

    unit = "L1"
    draw = staticmethod(cauchy)
    norm = 1

    def collision(self, d: Any) -> Any:
        """Return the closed form above; 1 at distance 0."""
        t = self._widths(d)
        return ((2 * np.arctan(t) - np.log1p(t**2) / t) / np.pi)[()]


@dataclass(frozen=True)
class BitSampling(Family):
    """One component of a vector, chosen at random: for the Hamming distance of vectors of so many (Section 3.7.1).

    >>> BitSampling(dimensions=100).probability(10)
    0.9
    """

    dimensions: int
    seed: int = 1

    unit = "Hamming"

    def __post_init__(self) -> None:
        check_seed("BitSampling", self.seed)
        _check_whole("BitSampling", "dimensions", self.dimensions)

    def collision(self, d: Any) -> Any:
        """Return 1 − d/dimensions."""
        return 1 - check_distance("BitSampling", d, self.dimensions) / self.dimensions

    def places(self, n: int) -> Ints:
        """Return the component that each of the first n functions looks at."""
        return np.asarray(uniform(self.seed, 3, 1, n)[0] * self.dimensions, np.float64).astype(np.int64)

    def hashes(self, items: Any, n: int) -> NDArray[Any]:
        """Return the chosen components: whole numbers as they are, others as the bits they are made of."""
        table = as_vectors("BitSampling", items, self.dimensions)
        chosen = np.ascontiguousarray(table[:, self.places(check_functions("BitSampling", n))])
        if chosen.dtype.kind != "f":
            return chosen.view(np.uint8) if chosen.dtype.kind == "b" else chosen
        wide = chosen.astype(np.float64)
        whole = (np.trunc(wide) == wide) & (np.abs(wide) < 2.0**62)
        return np.where(whole, np.where(whole, wide, 0).astype(np.int64), wide.view(np.int64))

    def distances(self, items: Any, left: Ints, right: Ints) -> Floats:
        """Return in how many components vectors differ."""
        from likewise.measures import batch

        return pair_by_pair(batch.hamming, as_vectors("BitSampling", items, self.dimensions), left, right)


@dataclass(frozen=True)
class UnaryCode(Family):
    """Whether a component, chosen at random, exceeds a random number: for L1 of whole numbers from 0 to `largest`.

    That is bit sampling of the unary code, in which x is x ones and then zeros: the Hamming distance of two codes is
    the Manhattan distance of the points.

    >>> UnaryCode(dimensions=2, largest=5).probability(3)
    0.7
    """

    dimensions: int
    largest: int
    seed: int = 1

    unit = "L1"

    def __post_init__(self) -> None:
        check_seed("UnaryCode", self.seed)
        _check_whole("UnaryCode", "dimensions", self.dimensions)
        _check_whole("UnaryCode", "largest", self.largest)

    def collision(self, d: Any) -> Any:
        """Return 1 − d/(dimensions·largest)."""
        size = self.dimensions * self.largest
        return 1 - check_distance("UnaryCode", d, size) / size

    def hashes(self, items: Any, n: int) -> NDArray[np.uint8]:
        """Return 1 if the component exceeds the number, else 0."""
        table, n = self._counts(items), check_functions("UnaryCode", n)
        component = (uniform(self.seed, 3, 1, n)[0] * self.dimensions).astype(np.int64)
        number = (uniform(self.seed, 4, 1, n)[0] * self.largest).astype(np.int64)
        return np.asarray(table[:, component] > number).view(np.uint8)

    def distances(self, items: Any, left: Ints, right: Ints) -> Floats:
        """Return the Manhattan distances."""
        return lr_distances(self._counts(items), left, right, 1)

    def _counts(self, items: Any) -> NDArray[Any]:
        """Return items as a table of whole numbers in range."""
        table = as_vectors("UnaryCode", items, self.dimensions)
        if table.dtype.kind not in "iu":
            raise ParameterError.of("UnaryCode", "items", "a table of whole numbers", f"numbers of type {table.dtype}")
        fits = ((table >= 0) & (table <= self.largest)).all(axis=1)
        if not fits.all():
            raise InputError(f"UnaryCode: vector {int(np.argmin(fits))} holds a number not from 0 to {self.largest}")
        return table


def lr_distances(table: NDArray[Any], left: Ints, right: Ints, norm: int) -> Floats:
    """Return the distances of pairs of rows in the norm L1 or L2."""
    from likewise.measures import batch

    return pair_by_pair(lambda x, y: batch.lr(x, y, norm), table, left, right)


def check_width(owner: str, a: object) -> None:
    """Raise unless the width of a segment is a positive number."""
    if isinstance(a, bool) or not isinstance(a, int | float | np.number) or not 0 < a < math.inf:
        raise ParameterError.of(owner, "a", "a positive number", a)


def _check_whole(owner: str, name: str, value: object) -> None:
    if isinstance(value, bool) or not isinstance(value, int | np.integer) or value < 1:
        raise ParameterError.of(owner, name, "a positive whole number", value)
