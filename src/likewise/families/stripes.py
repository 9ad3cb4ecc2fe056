"""Stripes: random lines for points with one bit per function (a variant of MMDS §3.7.4)."""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from likewise.base import checks
from likewise.base.random import cauchy, gaussian, uniform
from likewise.families.algebra import Family
from likewise.families.projections import Draw, Floats, Ints, as_vectors, lr_distances, panels, tiles


@dataclass(frozen=True)
class Stripes(Family):
    """Space cut by parallel planes into alternating black and white stripes of width a: one bit, for L2 or L1.

    The planes are perpendicular to a random line, and the bit is the parity of the segment of `RandomLines` (Gaussian
    numbers, unit="L2") or `CauchyLines` (unit="L1"). Two points whose projections are z stripes apart agree with a
    probability that is a triangle wave, 1 at even z and 0 at odd z; averaged over lines, by its Fourier series,
    p(d) = 1/2 + 4/π² · Σ φ(kπd/a)/k² over odd k, where φ(t) is e^(−t²/2) for L2 and e^(−t) for L1. Far points agree
    half the time, as with any single bit.

    >>> stripes = Stripes(a=1.0)
    >>> stripes.probability(0), round(stripes.probability(0.1), 6), round(stripes.probability(9), 6)
    (1.0, 0.920212, 0.5)
    """

    a: float = 1.0
    unit: str = "L2"
    seed: int = 1

    def __post_init__(self) -> None:
        object.__setattr__(self, "seed", checks.seed("Stripes", self.seed))
        checks.number("Stripes", "a", self.a, 0, open_left=True)
        checks.choice("Stripes", "unit", self.unit, ("L2", "L1"))

    def collision(self, d: Any) -> Any:
        """Return the series above to full precision."""
        with np.errstate(over="ignore"):
            x = np.minimum(checks.numbers("Stripes.probability", "d", d, 0) / self.a, 1e3)
        return (1 - (_gaussian_parity(x) if self.unit == "L2" else _cauchy_parity(x)))[()]

    @property
    def _draw(self) -> Draw:
        return gaussian if self.unit == "L2" else cauchy

    def directions(self, n: int, dimensions: int) -> Floats:
        """Return the directions of the first n lines, one per row."""
        return self._draw(self.seed, n, dimensions)

    def begins(self, n: int) -> Floats:
        """Return the offset of the first stripe on each line, in [0, 2) stripes."""
        begins: Floats = 2 * uniform(self.seed, 5, 1, n)[0]
        return begins

    def hashes(self, items: Any, n: int) -> NDArray[np.uint8]:
        """Return 1 for points in a black stripe, 0 for those in a white one."""
        table, n = as_vectors("Stripes", items), checks.functions("Stripes", n)
        out, begin = np.empty((len(table), n), np.uint8), self.begins(n)
        across = panels(self._draw, self.seed, n, table.shape[1], np.float64)
        for rows, columns, along in tiles(table, across, n, directed=False):
            out[rows, columns] = np.fmod(np.floor(along / self.a + begin[columns]), 2.0) != 0
        return out

    def distances(self, items: Any, left: Ints, right: Ints) -> Floats:
        """Return the distances in the family's norm."""
        return lr_distances(as_vectors("Stripes", items), left, right, 2 if self.unit == "L2" else 1)


def _gaussian_parity(x: Floats) -> Floats:
    """Return the probability that points x stripes apart lie in stripes of different colour, for Gaussian lines.

    Below a tenth of a stripe, more than one plane between the points would take ten standard deviations, so the
    probability is that of one plane, the mean of |x·N|. Above that, the series converges quickly.
    """
    k = np.arange(1, 61, 2)
    wave = np.exp(-((np.pi * np.maximum(x, 0.1)[..., None] * k) ** 2) / 2) / k**2
    return np.where(x < 0.1, x * math.sqrt(2 / math.pi), 0.5 - 4 / np.pi**2 * wave.sum(axis=-1))


def _cauchy_parity(x: Floats) -> Floats:
    """Return the same for Cauchy lines.

    The series is Legendre's chi function χ(q) = Σ q^k/k² over odd k at q = e^(−πx), and slow for q near 1. There its
    reflection χ(q) = π²/8 − χ(y) − πx/2·ln(1/y), y = (1 − q)/(1 + q) = tanh(πx/2), converges quickly.
    """
    k = np.arange(1, 61, 2)

    def chi(q: Floats) -> Floats:
        total: Floats = (q[..., None] ** k / k**2).sum(axis=-1)
        return total

    y = np.tanh(np.pi * x / 2)
    near = y < math.sqrt(2) - 1
    with np.errstate(under="ignore"):
        close = np.where(near, y, 0.1)
        small = chi(close) - np.pi * x / 2 * np.log(np.maximum(close, 1e-300))
        large = np.pi**2 / 8 - chi(np.exp(-np.pi * np.where(near, 1.0, x)))
    return 4 / np.pi**2 * np.where(near, small, large)
