"""Random numbers that depend on a seed and a place alone: the same under every version of NumPy, in any order."""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

Floats = NDArray[np.float64]
_ODD = np.uint64(0x9E3779B97F4A7C15)


def bits(seed: int, stream: int, rows: int, columns: int) -> NDArray[np.uint64]:
    """Return 64 random bits for each place of a table; a longer table begins like a shorter one."""
    start = _mix(np.array([seed & 0xFFFFFFFFFFFFFFFF], np.uint64) + _ODD * np.uint64(2 * stream + 1))
    row = _mix(start + _ODD * np.arange(1, rows + 1, dtype=np.uint64))
    return _mix(row[:, None] + _ODD * np.arange(1, columns + 1, dtype=np.uint64)[None, :])


def uniform(seed: int, stream: int, rows: int, columns: int) -> Floats:
    """Return numbers spread evenly over the open interval (0, 1)."""
    return ((bits(seed, stream, rows, columns) >> np.uint64(11)).astype(np.float64) + 0.5) * 2.0**-53


def gaussian(seed: int, rows: int, columns: int) -> Floats:
    """Return normally distributed numbers by the method of Box and Muller: a random direction, a random length."""
    radius = np.sqrt(-2 * np.log(uniform(seed, 0, rows, columns)))
    return radius * np.cos(2 * np.pi * uniform(seed, 1, rows, columns))


def cauchy(seed: int, rows: int, columns: int) -> Floats:
    """Return numbers of a Cauchy distribution: the tangent of a random angle."""
    return np.tan(np.pi * (uniform(seed, 0, rows, columns) - 0.5))


def _mix(x: NDArray[np.uint64]) -> NDArray[np.uint64]:
    """The finaliser of SplitMix64."""
    x = (x ^ (x >> np.uint64(30))) * np.uint64(0xBF58476D1CE4E5B9)
    x = (x ^ (x >> np.uint64(27))) * np.uint64(0x94D049BB133111EB)
    return x ^ (x >> np.uint64(31))
