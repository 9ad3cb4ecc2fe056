"""Vectors to bits: the closer two vectors are, the more likely their bits agree, with a known probability.

Bits come in groups; two vectors share a bucket of a table if they agree in all bits of its groups.
"""

from __future__ import annotations

import copy
from abc import ABC, abstractmethod
from typing import Any

import numpy as np
from numpy.typing import NDArray

from likewise.base.parallel import in_order
from likewise.base.random import uniform
from likewise.families.stripes import Stripes
from likewise.families.vectors import Hyperplanes
from likewise.kernels.vector_tables import pack_chosen, pack_parities, pack_signs
from likewise.search.vectors.spaces import ROWS, Angle, Bits, Euclid, Space

Floats = NDArray[np.float64]
BitWords = NDArray[np.uint64]
STRIPES = (1.5, 2.0, 3.0, 4.0, 6.0, 9.0, 14.0)
"""Widths of stripes to choose from, as multiples of `within`."""
FINE = 500.0
"""Number of stripes up to which single precision determines the stripe of a point."""


class Sketcher(ABC):
    """Turns the vectors of a space into bits."""

    def __init__(self, space: Space) -> None:
        self.space = space

    def over(self, space: Space) -> Sketcher:
        """Return the same sketcher for other vectors."""
        found = copy.copy(self)
        found.space = space
        return found

    @abstractmethod
    def agree(self, d: Floats) -> Floats:
        """Return the probability that vectors at distance d agree in a bit."""

    def group(self, d: Floats, agree: Floats, bits: int) -> Floats:
        """Return the probability that they agree in a group of bits, from the probability `agree` of one bit."""
        return np.asarray(agree**bits)

    @abstractmethod
    def fill(self, groups: int, bits: int, out: BitWords, threads: int) -> None:
        """Write 64-bit words for every vector; the groups are the first bits, one after the other."""

    def differ(self, d: float) -> float | None:
        """Return the probability that a bit differs at distance d; None if the input is bits, which are compared."""
        return 1 - float(self.agree(np.array([d]))[0])


class _Projected(Sketcher):
    """Bits from the projections of vectors on random directions."""

    wide = False

    @abstractmethod
    def _directions(self, n: int) -> tuple[Floats, Floats]:
        """Return n directions, and the offsets added to the projections."""

    @abstractmethod
    def _pack(self, lengths: NDArray[Any], words: BitWords) -> None:
        """Turn projections into bits."""

    def fill(self, groups: int, bits: int, out: BitWords, threads: int) -> None:
        """Write the bits, by matrix products.

        All products have the same shape, so that rounding, and with it a bit, does not depend on where a vector is.
        """
        kind: Any = np.float64 if self.wide else np.float32
        directions, added = self._directions(64 * out.shape[1])
        across, added = np.ascontiguousarray(directions.T, kind), added.astype(kind)

        def work(start: int) -> None:
            rows = self.space.part(slice(start, start + ROWS)).astype(kind, copy=False)
            count = len(rows)
            if count < ROWS:
                rows = np.concatenate([rows, np.zeros((ROWS - count, rows.shape[1]), kind)])
            lengths = (rows @ across)[:count]
            lengths += added
            self._pack(lengths, out[start : start + ROWS])

        for _ in in_order(work, range(0, len(self.space), ROWS), threads):
            pass


class Signs(_Projected):
    """The side of each of many random hyperplanes that a vector lies on."""

    def __init__(self, space: Space, seed: int) -> None:
        super().__init__(space)
        self.family = Hyperplanes(seed)

    def agree(self, d: Floats) -> Floats:
        """Return 1 − d/180."""
        return np.asarray(self.family.collision(d))

    def _directions(self, n: int) -> tuple[Floats, Floats]:
        return self.family.directions(n, self.space.dimensions), np.zeros(n)

    def _pack(self, lengths: NDArray[Any], words: BitWords) -> None:
        pack_signs(lengths, words)


class Parities(_Projected):
    """Whether a point lies in an odd or an even stripe of each of many random lines."""

    def __init__(self, space: Space, width: float, seed: int) -> None:
        super().__init__(space)
        self.family = Stripes(width, "L2" if isinstance(space, Euclid) else "L1", seed)
        self.wide = self.family.unit == "L1" or space.largest * space.dimensions**0.5 > FINE * width

    def agree(self, d: Floats) -> Floats:
        """Return the collision probability of `Stripes`."""
        return np.asarray(self.family.collision(d))

    def _directions(self, n: int) -> tuple[Floats, Floats]:
        return self.family.directions(n, self.space.dimensions) / self.family.a, self.family.begins(n)

    def _pack(self, lengths: NDArray[Any], words: BitWords) -> None:
        pack_parities(lengths, words)


class SampledBits(Sketcher):
    """Some of the input bits, without repetition within a group, chosen at random."""

    def __init__(self, space: Bits, seed: int) -> None:
        super().__init__(space)
        self.seed = seed
        self._known: tuple[Floats | None, Floats] = None, np.zeros((0, 0))

    def agree(self, d: Floats) -> Floats:
        """Return 1 − d/n."""
        return np.asarray(1 - d / self.space.dimensions)

    def group(self, d: Floats, agree: Floats, bits: int) -> Floats:
        """Return the probability that none of `bits` different places, of all places, is one of d."""
        if self._known[0] is not d:
            width = self.space.dimensions
            left = np.arange(min(64, width))[:, None]
            free = np.maximum(width - d[None, :] - left, 0) / (width - left)
            self._known = d, np.cumprod(free, axis=0, dtype=np.float64)
        found: Floats = self._known[1][bits - 1]
        return found

    def differ(self, d: float) -> None:
        """Return None."""

    def fill(self, groups: int, bits: int, out: BitWords, threads: int) -> None:
        """Write the chosen bits."""
        order = np.argsort(uniform(self.seed, 6, groups, self.space.dimensions), axis=1, kind="stable")
        places = order[:, :bits].ravel().astype(np.int64)

        def work(start: int) -> None:
            pack_chosen(self.space.part(slice(start, start + ROWS)), places, out[start : start + ROWS])

        for _ in in_order(work, range(0, len(self.space), ROWS), threads):
            pass


def sketchers(space: Space, within: float, seed: int) -> list[Sketcher]:
    """Return the sketchers to choose from for pairs within a distance."""
    if isinstance(space, Angle):
        return [Signs(space, seed)]
    if isinstance(space, Bits):
        return [SampledBits(space, seed)]
    return [Parities(space, width * within, seed) for width in STRIPES] if within > 0 else []
