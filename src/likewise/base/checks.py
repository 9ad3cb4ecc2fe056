"""What the functions of this package ask of their parameters."""

from __future__ import annotations

import math
import random

import numpy as np

from likewise.errors import ParameterError


def whole(owner: str, name: str, value: object, least: int, most: int | None = None) -> int:
    """Return a whole number that is within bounds."""
    rule = f"a whole number of at least {least}" if most is None else f"a whole number from {least} to {most}"
    if isinstance(value, bool) or not isinstance(value, (int, np.integer)):
        raise ParameterError.of(owner, name, rule, value)
    if value < least or (most is not None and value > most):
        raise ParameterError.of(owner, name, rule, value)
    return int(value)


def prime(owner: str, name: str, value: object, most: int) -> int:
    """Return a prime number up to `most`, found by trial division."""
    if not (isinstance(value, (int, np.integer)) and 2 <= value <= most and _is_prime(int(value))):
        raise ParameterError.of(owner, name, f"a prime number up to {most:,}", value)
    return int(value)


def seeded(owner: str, seed: object) -> random.Random:
    """Return Python's own source of random numbers, started at a seed."""
    return random.Random(whole(owner, "seed", seed, 0, 2**64 - 1))


def _is_prime(value: int) -> bool:
    return all(value % factor for factor in range(2, math.isqrt(value) + 1))
