"""What makes a function a distance: its four axioms, tried on given points (MMDS §3.5.1)."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from typing import Any

import numpy as np

from likewise.base import checks
from likewise.errors import ParameterError

AXIOMS = ("non-negative", "zero only from a point to itself", "symmetric", "triangle inequality")
MOST_POINTS = 300
"""The most points: the triangle inequality is tried on every three of them, 27 million in all."""


def broken_axioms(
    distance: Callable[[Any, Any], float],
    points: Iterable[Any],
    same: Callable[[Any, Any], bool] | None = None,
    tolerance: float = 1e-9,
) -> dict[str, tuple[Any, ...]]:
    """Return the axioms of a distance that these points break, each with the first points that break it.

    Nothing broken is no proof, unless these are all points of the space. same: when two points are one and the same, by
    default when they are equal; for directions, when one is a multiple of the other. tolerance: for rounding errors.
    A distance that is no number (NaN) is not non-negative.

    >>> broken_axioms(lambda x, y: abs(x - y), range(10))
    {}
    >>> broken_axioms(max, range(10))
    {'zero only from a point to itself': (1, 1)}
    >>> broken_axioms(lambda x, y: (x - y) ** 2, range(10))
    {'triangle inequality': (0, 1, 2)}
    """
    owner = "broken_axioms"
    listed = checks.listed(owner, "points", points, "a list of points")
    checks.whole(owner, "points", len(listed), 0, MOST_POINTS, rule=f"at most {MOST_POINTS}")
    checks.number(owner, "tolerance", tolerance, 0)
    for name, value in (("distance", distance), ("same", same)):
        if not callable(value) and (name, value) != ("same", None):
            raise ParameterError.of(owner, name, "a function of two points", value)
    one = same if same is not None else lambda x, y: bool(np.all(x == y))
    far = [[distance(x, y) for y in listed] for x in listed]
    rows = range(len(listed))
    pairs = [(i, j) for i in rows for j in rows]
    found: dict[str, tuple[int, ...] | None] = {
        AXIOMS[0]: next(((i, j) for i, j in pairs if not far[i][j] >= -tolerance), None),
        AXIOMS[1]: next(((i, j) for i, j in pairs if (abs(far[i][j]) <= tolerance) != one(listed[i], listed[j])), None),
        AXIOMS[2]: next(((i, j) for i, j in pairs if abs(far[i][j] - far[j][i]) > tolerance), None),
        AXIOMS[3]: next(
            ((i, k, j) for i, j in pairs for k in rows if far[i][j] > far[i][k] + far[k][j] + tolerance), None
        ),
    }
    return {axiom: tuple(listed[i] for i in where) for axiom, where in found.items() if where is not None}
