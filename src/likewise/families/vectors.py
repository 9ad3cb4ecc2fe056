"""Families for points and directions: hyperplanes, random lines, sampled bits (MMDS §3.7)."""

from __future__ import annotations

import math
from dataclasses import dataclass, field
from typing import Any, Self

import numpy as np
from numpy.typing import NDArray

from likewise.base import checks
from likewise.base.random import cauchy, gaussian, signs, uniform
from likewise.errors import InputError, ParameterError
from likewise.families.algebra import Family, StraightFamily
from likewise.families.functions import Moves
from likewise.families.projections import (
    Floats,
    GivenDirections,
    Ints,
    angle_from_sketches,
    as_vectors,
    lr_distances,
    pair_by_pair,
    panels,
    tiles,
)


@dataclass(frozen=True)
class Hyperplanes(StraightFamily):
    """Random hyperplanes: on which side of a hyperplane through the origin a vector lies (MMDS §3.7.2).

    Two vectors at an angle of d degrees are on the same side with probability 1 − d/180. The normal of a hyperplane is
    a vector of Gaussian numbers, so all directions are equally likely; `from_directions` takes normals as given.

    >>> Hyperplanes().probability(60), Hyperplanes().all_of(3).probability(60)
    (0.6666666666666667, 0.2962962962962964)
    """

    seed: int = 1
    given: GivenDirections | None = field(default=None, init=False, repr=False)

    unit = "degrees"
    farthest = 180.0
    multiprobe = True
    draw = staticmethod(gaussian)

    def __post_init__(self) -> None:
        object.__setattr__(self, "seed", checks.seed(type(self).__name__, self.seed))

    @classmethod
    def from_directions(cls, directions: Any) -> Self:
        """Return the family of the hyperplanes with these normals, one per row, instead of random ones.

        It has as many functions as there are normals. The curve remains that of random hyperplanes.

        >>> axes = Hyperplanes.from_directions([[1, 0], [0, 1]])
        >>> axes.hashes([[3, 4], [3, -4]], 2).tolist()
        [[1, 1], [1, 0]]
        """
        made = cls()
        object.__setattr__(made, "given", GivenDirections.of(f"{cls.__name__}.from_directions", directions))
        return made

    def __repr__(self) -> str:
        name = type(self).__name__
        return f"{name}(seed={self.seed})" if self.given is None else f"{name}.from_directions({self.given!r})"

    def directions(self, n: int, dimensions: int) -> Floats:
        """Return the normals of the first n hyperplanes, one per row."""
        return (self.given or self.draw)(self.seed, n, dimensions)

    @staticmethod
    def estimate(a: Any, b: Any) -> float:
        """Return the angle in degrees between two vectors, from their rows of `hashes` (or of +1 and −1).

        It is 180 times the fraction of positions that differ, since hyperplanes separate vectors at an angle of d
        degrees with probability d/180.

        >>> Hyperplanes.estimate([1, 1, 0], [1, 0, 1])
        120.0
        """
        return angle_from_sketches("estimate", a, b)

    def hashes(self, items: Any, n: int) -> NDArray[np.uint8]:
        """Return 1 or 0 for every vector and hyperplane; a vector in the plane counts as on the positive side."""
        table, n = self._directed(items), checks.functions(type(self).__name__, n)
        out = np.empty((len(table), n), np.uint8)
        kind = np.float32 if self.given is None else np.float64
        across = panels(self.given or self.draw, self.seed, n, table.shape[1], kind)
        for rows, columns, along in tiles(table, across, n, directed=True):
            out[rows, columns] = along >= 0
        return out

    def distances(self, items: Any, left: Ints, right: Ints) -> Floats:
        """Return the angles in degrees."""
        from likewise.measures import batch

        return pair_by_pair(batch.angle, self._directed(items), left, right)

    def moves(self, items: Any, values: NDArray[Any]) -> Moves:
        """Return the other side of each hyperplane, at the squared distance of the vector from it."""
        return Moves((1 - values)[:, :, None], _projections(self, items, values.shape[1])[:, :, None] ** 2)

    def _directed(self, items: Any) -> NDArray[Any]:
        """Return items as a table of vectors that have a direction."""
        table = as_vectors(type(self).__name__, items)
        something = table.any(axis=1)
        if not something.all():
            raise InputError(
                f"{type(self).__name__}: vector {int(np.argmin(something))} is all zeros, so it has no direction"
            )
        return table


@dataclass(frozen=True, repr=False)
class SignSketch(Hyperplanes):
    """Hyperplanes whose normals contain only +1 and −1: sums and differences instead of products (MMDS §3.7.3).

    `collision` is that of `Hyperplanes` and only approximate here: the error falls as one over the number of components
    if they are of similar size, and is large if few components outweigh the rest. Two vectors dominated by the same
    single component agree in all functions, whatever angle the small components make.

    >>> SignSketch(seed=1).directions(2, 4).tolist()
    [[-1.0, 1.0, -1.0, 1.0], [-1.0, -1.0, -1.0, -1.0]]
    """

    draw = staticmethod(signs)

    @classmethod
    def from_directions(cls, directions: Any) -> Self:
        """Return the sketches by these vectors of +1 and −1, one per row (MMDS Example 3.21).

        >>> three = SignSketch.from_directions([[1, -1, 1, 1], [-1, 1, -1, 1], [1, 1, -1, -1]])
        >>> x, y = three.hashes([[3, 4, 5, 6], [4, 3, 2, 1]], 3)
        >>> (2 * x.astype(int) - 1).tolist(), (2 * y.astype(int) - 1).tolist(), three.estimate(x, y)
        ([1, 1, -1], [1, -1, 1], 120.0)
        """
        made = super().from_directions(directions)
        if made.given is not None and not all(abs(x) == 1 for row in made.given.rows for x in row):
            raise ParameterError.of("SignSketch.from_directions", "directions", "rows of +1 and −1", directions)
        return made


@dataclass(frozen=True)
class RandomLines(Family):
    """Random lines cut into segments of width a: in which segment a point is projected, for Euclidean distance L2.

    The direction of the line is a vector of Gaussian numbers, so the projections of two points at distance d differ by
    d times a Gaussian number, in any number of dimensions (MMDS §3.7.4; Datar, Immorlica, Indyk, Mirrokni, 2004):
    p(d) = 1 − 2Φ(−a/d) − 2d/(√(2π)·a)·(1 − e^(−a²/2d²)).

    >>> lines = RandomLines(a=1.0)
    >>> bool(lines.probability(0.5) >= 1 / 2 and lines.probability(2.0) <= 1 / 3)
    True
    """

    a: float = 1.0
    seed: int = 1
    given: GivenDirections | None = field(default=None, init=False, repr=False)
    offsets: tuple[float, ...] | None = field(default=None, init=False, repr=False)

    unit = "L2"
    multiprobe = True
    draw = staticmethod(gaussian)
    norm = 2

    def __post_init__(self) -> None:
        name = type(self).__name__
        object.__setattr__(self, "seed", checks.seed(name, self.seed))
        checks.number(name, "a", self.a, 0, open_left=True)

    @classmethod
    def from_directions(cls, directions: Any, a: float = 1.0, offsets: Any = 0.0) -> Self:
        """Return the family of the lines with these directions, one per row, instead of random ones.

        A point is in segment ⌊(projection + offset)/a⌋ of a line. offsets: one number per line, or one for all lines.
        The projection is the dot product with the direction, whose length counts. The curve remains that of random
        lines.

        >>> axes = RandomLines.from_directions([[1, 0], [0, 1]], a=2)
        >>> axes.hashes([[1, 2], [4, -1]], 2).tolist()
        [[0, 1], [2, -1]]
        """
        owner = f"{cls.__name__}.from_directions"
        made, given = cls(a), GivenDirections.of(owner, directions)
        begins = checks.numbers(owner, "offsets", offsets)
        if begins.shape not in ((), (len(given.rows),)) or not np.isfinite(begins).all():
            rule = f"a finite number, or one for each of the {len(given.rows)} directions"
            raise ParameterError.of(owner, "offsets", rule, offsets)
        object.__setattr__(made, "given", given)
        object.__setattr__(made, "offsets", tuple(np.broadcast_to(begins / a, len(given.rows)).tolist()))
        return made

    def __repr__(self) -> str:
        name = type(self).__name__
        if self.given is None:
            return f"{name}(a={self.a}, seed={self.seed})"
        return f"{name}.from_directions({self.given!r}, a={self.a})"

    def _begins(self, n: int) -> Floats:
        """Return the offset of each line, in segments: random in [0, 1), or as given."""
        begins: Floats = uniform(self.seed, 5, 1, n)[0] if self.offsets is None else np.array(self.offsets[:n])
        return begins

    def collision(self, d: Any) -> Any:
        """Return the closed form above; 1 at distance 0."""
        t = self._widths(d)
        inside = np.vectorize(math.erf, otypes=[float])(t / math.sqrt(2))
        return (inside + 2 / (math.sqrt(2 * math.pi) * t) * np.expm1(-(t**2) / 2))[()]

    def _widths(self, d: Any) -> Floats:
        """Return a/d, kept away from 0 and infinity."""
        far = checks.numbers(f"{type(self).__name__}.probability", "d", d, 0)
        with np.errstate(divide="ignore", over="ignore"):
            return np.clip(self.a / far, 1e-150, 1e150)

    def directions(self, n: int, dimensions: int) -> Floats:
        """Return the directions of the first n lines, one per row."""
        return (self.given or self.draw)(self.seed, n, dimensions)

    def hashes(self, items: Any, n: int) -> Ints:
        """Return the number of the segment for every point and line; each line has a random offset, or a given one."""
        table, n = as_vectors(type(self).__name__, items), checks.functions(type(self).__name__, n)
        across = panels(self.given or self.draw, self.seed, n, table.shape[1], np.float64)
        out, begin = np.empty((len(table), n), np.int64), self._begins(n)
        for rows, columns, along in tiles(table, across, n, directed=False):
            out[rows, columns] = np.fmod(np.floor(along / self.a + begin[columns]), 2.0**62)
        return out

    def distances(self, items: Any, left: Ints, right: Ints) -> Floats:
        """Return the distances in the family's norm."""
        return lr_distances(as_vectors(type(self).__name__, items), left, right, self.norm)

    def moves(self, items: Any, values: NDArray[Any]) -> Moves:
        """Return the segments before and after, at the squared distance of the projection from the boundary."""
        n = values.shape[1]
        place = _projections(self, items, n) / self.a + self._begins(n)
        part = place - np.floor(place)
        return Moves(np.stack([values - 1, values + 1], axis=2), np.stack([part, 1 - part], axis=2) ** 2)


@dataclass(frozen=True, repr=False)
class CauchyLines(RandomLines):
    """`RandomLines` for the Manhattan distance, L1, with Cauchy numbers as directions (Datar et al., 2004).

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
class BitSampling(StraightFamily):
    """Bit sampling: one random component of a vector, for the Hamming distance of vectors of that many dimensions.

    See MMDS §3.7.1.

    >>> BitSampling(dimensions=100).probability(10)
    0.9
    """

    dimensions: int
    seed: int = 1

    unit = "Hamming"
    multiprobe = True

    def __post_init__(self) -> None:
        object.__setattr__(self, "seed", checks.seed("BitSampling", self.seed))
        object.__setattr__(self, "dimensions", checks.whole("BitSampling", "dimensions", self.dimensions))
        object.__setattr__(self, "farthest", self.dimensions)

    def places(self, n: int) -> Ints:
        """Return the component that each of the first n functions looks at."""
        return np.asarray(uniform(self.seed, 3, 1, n)[0] * self.dimensions, np.float64).astype(np.int64)

    def hashes(self, items: Any, n: int) -> NDArray[Any]:
        """Return the chosen components: integers as they are, other numbers as their bit patterns."""
        table = as_vectors("BitSampling", items, self.dimensions)
        chosen = np.ascontiguousarray(table[:, self.places(checks.functions("BitSampling", n))])
        if chosen.dtype.kind != "f":
            return chosen.view(np.uint8) if chosen.dtype.kind == "b" else chosen
        wide = chosen.astype(np.float64)
        whole = (np.trunc(wide) == wide) & (np.abs(wide) < 2.0**62)
        return np.where(whole, np.where(whole, wide, 0).astype(np.int64), wide.view(np.int64))

    def distances(self, items: Any, left: Ints, right: Ints) -> Floats:
        """Return the number of components in which vectors differ."""
        from likewise.measures import batch

        return pair_by_pair(batch.hamming, as_vectors("BitSampling", items, self.dimensions), left, right)

    def moves(self, items: Any, values: NDArray[Any]) -> Moves:
        """Return the other value of each bit, all at the same distance."""
        if len(values) and not ((values == 0) | (values == 1)).all():
            raise InputError("BitSampling: `probes` needs vectors of zeros and ones")
        return Moves((1 - values)[:, :, None], np.ones((*values.shape, 1)), self.places(values.shape[1]))


@dataclass(frozen=True)
class UnaryCode(StraightFamily):
    """Bit sampling of a unary code: whether a random component exceeds a random number, for the distance L1.

    Components are whole numbers from 0 to `largest`. In the unary code x is written as x ones followed by zeros, so the
    Hamming distance of two codes is the Manhattan distance of the points.

    >>> UnaryCode(dimensions=2, largest=5).probability(3)
    0.7
    """

    dimensions: int
    largest: int
    seed: int = 1

    unit = "L1"
    multiprobe = True

    def __post_init__(self) -> None:
        object.__setattr__(self, "seed", checks.seed("UnaryCode", self.seed))
        for name in ("dimensions", "largest"):
            object.__setattr__(self, name, checks.whole("UnaryCode", name, getattr(self, name)))
        object.__setattr__(self, "farthest", self.dimensions * self.largest)

    def hashes(self, items: Any, n: int) -> NDArray[np.uint8]:
        """Return 1 if the component exceeds the number, else 0."""
        table = self._counts(items)
        component, number = self._drawn(checks.functions("UnaryCode", n))
        return np.asarray(table[:, component] > number).view(np.uint8)

    def distances(self, items: Any, left: Ints, right: Ints) -> Floats:
        """Return the Manhattan distances."""
        return lr_distances(self._counts(items), left, right, 1)

    def moves(self, items: Any, values: NDArray[Any]) -> Moves:
        """Return the other side of each number, at the distance of the component from it."""
        component, number = self._drawn(values.shape[1])
        over = np.asarray(items, np.float64)[:, component] - number
        return Moves((1 - values)[:, :, None], np.where(over > 0, over, 1 - over)[:, :, None], component)

    def _drawn(self, n: int) -> tuple[Ints, Ints]:
        """Return the component and the number that each of the first n functions compares."""
        component = (uniform(self.seed, 3, 1, n)[0] * self.dimensions).astype(np.int64)
        return component, (uniform(self.seed, 4, 1, n)[0] * self.largest).astype(np.int64)

    def _counts(self, items: Any) -> NDArray[Any]:
        """Return items as a table of whole numbers in range."""
        table = as_vectors("UnaryCode", items, self.dimensions)
        if table.dtype.kind not in "iu":
            raise ParameterError.of("UnaryCode", "items", "a table of whole numbers", f"numbers of type {table.dtype}")
        fits = ((table >= 0) & (table <= self.largest)).all(axis=1)
        if not fits.all():
            raise InputError(f"UnaryCode: vector {int(np.argmin(fits))} contains a number outside 0 to {self.largest}")
        return table


def _projections(family: Hyperplanes | RandomLines, items: Any, n: int) -> Floats:
    table = np.asarray(items, np.float64)
    found: Floats = table @ family.directions(n, table.shape[1]).T
    return found
