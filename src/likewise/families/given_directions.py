"""Directions that the user gives instead of random ones, and the angle that two sketches tell (MMDS §3.7.2, §3.7.3)."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from likewise.base import checks
from likewise.errors import ParameterError

Floats = NDArray[np.float64]


@dataclass(frozen=True)
class GivenDirections:
    """The directions of the functions of one family, one row per function, in place of random ones."""

    owner: str
    rows: tuple[tuple[float, ...], ...]

    @classmethod
    def of(cls, owner: str, directions: Any) -> GivenDirections:
        """Check a table of numbers, one direction per row."""
        rule = "a table of finite numbers, one direction per row, none of them all zeros"
        try:
            table = checks.numbers(owner, "directions", directions)
        except ParameterError as error:
            raise ParameterError.of(owner, "directions", rule, directions) from error
        if table.ndim != 2 or not table.size or not np.isfinite(table).all() or not table.any(axis=1).all():
            raise ParameterError.of(owner, "directions", rule, directions)
        return cls(owner, tuple(map(tuple, table.tolist())))

    def __repr__(self) -> str:
        return f"<{len(self.rows)} of {len(self.rows[0])} components>"

    def __call__(self, seed: int, n: int, dimensions: int) -> Floats:
        """Return the first n directions, in the way of the functions that draw random ones."""
        if n > len(self.rows):
            raise ParameterError.of(self.owner, "n", f"at most {len(self.rows)}, the number of directions given", n)
        if dimensions != len(self.rows[0]):
            raise ParameterError(
                f"{self.owner}: vectors have {dimensions} components, and the directions given have {len(self.rows[0])}"
            )
        return np.array(self.rows[:n], np.float64)


def angle_from_sketches(owner: str, a: Any, b: Any) -> float:
    """Return the angle in degrees that two sketches tell: 180 times the fraction of positions in which they differ."""
    one, other = _sketch(owner, "a", a), _sketch(owner, "b", b)
    if len(one) != len(other):
        raise ParameterError.of(owner, "b", f"as long as 'a', {len(one)} positions", f"{len(other)} positions")
    return float(180 * np.mean(one != other))


def _sketch(owner: str, name: str, given: Any) -> NDArray[Any]:
    """Return a sketch as an array."""
    rule = "the sketch of one vector, a row of numbers"
    try:
        sketch = np.asarray(given)
    except ValueError as error:
        raise ParameterError.of(owner, name, rule, given) from error
    if sketch.ndim != 1 or not sketch.size or sketch.dtype.kind not in "biuf" or (sketch != sketch).any():
        raise ParameterError.of(owner, name, rule, given)
    return sketch
