"""Counter-based random numbers: functions of a seed and a position only, so any part can be computed in any order.

A position is a row and a column of a table, or a token (its 64-bit hash) and the number of a function. The numbers do
not depend on the version of NumPy.
"""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

Floats = NDArray[np.float64]
Hashes = NDArray[np.uint64]
MASK = 0xFFFFFFFFFFFFFFFF
_ODD = np.uint64(0x9E3779B97F4A7C15)


def bits(seed: int, stream: int, rows: int, columns: int) -> Hashes:
    """Return 64 random bits for each cell of a table; a longer table begins with the same rows."""
    row = mix(_start(seed, stream) + _ODD * np.arange(1, rows + 1, dtype=np.uint64))
    return mix(row[:, None] + _ODD * np.arange(1, columns + 1, dtype=np.uint64)[None, :])


def token_bits(seed: int, stream: int, tokens: Hashes, functions: range) -> Hashes:
    """Return 64 random bits for each token and function, one row per token."""
    numbers = np.arange(functions.start + 1, functions.stop + 1, dtype=np.uint64)
    return mix(mix(tokens ^ _start(seed, stream))[:, None] + _ODD * numbers[None, :])


def fraction(places: Hashes) -> Floats:
    """Return random bits as numbers uniform on the open interval (0, 1)."""
    return ((places >> np.uint64(12)).astype(np.float64) + 0.5) * 2.0**-52


def uniform(seed: int, stream: int, rows: int, columns: int) -> Floats:
    """Return numbers uniform on the open interval (0, 1)."""
    return fraction(bits(seed, stream, rows, columns))


def bell(length: Floats, direction: Floats) -> Floats:
    """Turn two uniform numbers into a normally distributed one (Box-Muller transform)."""
    return np.asarray(np.sqrt(-2 * np.log(length)) * np.cos(2 * np.pi * direction), np.float64)


def gaussian(seed: int, rows: int, columns: int) -> Floats:
    """Return normally distributed numbers."""
    return bell(uniform(seed, 0, rows, columns), uniform(seed, 1, rows, columns))


def cauchy(seed: int, rows: int, columns: int) -> Floats:
    """Return Cauchy-distributed numbers: the tangent of a random angle."""
    return np.tan(np.pi * (uniform(seed, 0, rows, columns) - 0.5))


def signs(seed: int, rows: int, columns: int) -> Floats:
    """Return +1 or −1, each with probability 1/2."""
    return sign(bits(seed, 2, rows, columns))


def sign(places: Hashes) -> Floats:
    """Return random bits as +1 or −1."""
    return 1.0 - 2.0 * (places >> np.uint64(63)).astype(np.float64)


def mix(x: Hashes) -> Hashes:
    """Mix 64 bits: the finaliser of SplitMix64."""
    x = (x ^ (x >> np.uint64(30))) * np.uint64(0xBF58476D1CE4E5B9)
    x = (x ^ (x >> np.uint64(27))) * np.uint64(0x94D049BB133111EB)
    return x ^ (x >> np.uint64(31))


def _start(seed: int, stream: int) -> Hashes:
    return mix(np.array([(seed + (2 * stream + 1) * int(_ODD)) & MASK], np.uint64))
