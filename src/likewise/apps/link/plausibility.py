"""Whether a learned model can be believed: signs that it has learned something else than which pairs match."""

from __future__ import annotations

import numpy as np

from likewise.apps.link.agreement import ALL_TEXT, EQUAL
from likewise.apps.link.fields import Floats
from likewise.apps.link.model import MatchModel
from likewise.base.arrays import Ints

OPEN = 5.0
"""Open triads per accepted pair from which on a model is not believed: identity is transitive. Where linkage works they
are about 1 or fewer, where it fails 15 and more."""

PATHS = 20_000
"""Triads that are looked at."""

WRONG = -0.25
"""Identical values of a field are evidence against a match from this weight on (natural logarithm), about a point, and
different values are evidence of one from its opposite."""

NOTHING = 0.25
"""Identical values of a field say nothing up to this weight."""


def misleading(model: MatchModel) -> list[str]:
    """Return the fields whose identical values would be evidence against a match."""
    return [name for name, logs in model.weights.items() if name != ALL_TEXT and logs[EQUAL] < WRONG]


def doubts(
    model: MatchModel, scores: Floats, left: Ints, right: Ints, records: int, triads: bool = True, seed: int = 1
) -> str | None:
    """Return why the model cannot be believed, or None.

    left, right, scores: the pairs and their log-odds. `triads` if a record may have several matches.
    """
    wrong = misleading(model)
    if wrong:
        return f"identical values of {', '.join(wrong)} would be evidence against a match"
    odd = [name for name, logs in model.weights.items() if name != ALL_TEXT and logs[0] > -WRONG]
    if odd:
        return f"different values of {', '.join(odd)} would be evidence of a match"
    idle = [name for name, logs in model.weights.items() if name != ALL_TEXT and logs[EQUAL] < NOTHING]
    if 2 * len(idle) > len(model.weights):
        return f"identical values of {', '.join(idle)} would be no evidence of a match"
    if triads:
        found = open_triads(left, right, scores > 0, records, seed)
        if found > OPEN:
            return f"there are {found:.0f} open triads (a is b, b is c, a is not c) for each match"
    return None


def open_triads(left: Ints, right: Ints, accepted: np.ndarray, records: int, seed: int = 1) -> float:
    """Return the number of paths of two accepted pairs whose ends were compared and rejected, per accepted pair.

    Pairs are sorted.

    >>> left, right = np.array([0, 0, 1]), np.array([1, 2, 2])
    >>> open_triads(left, right, np.array([True, False, True]), 3), open_triads(left, right, np.ones(3, bool), 3)
    (0.5, 0.0)
    """
    a, b = left[accepted], right[accepted]
    if not len(a):
        return 0.0
    ends, others = np.concatenate([a, b]), np.concatenate([b, a])
    others = others[np.argsort(ends, kind="stable")]
    degree = np.bincount(ends, minlength=records)
    starts = np.cumsum(degree) - degree
    paths = degree * (degree - 1) // 2
    whole = int(paths.sum())
    if not whole:
        return 0.0
    dice = np.random.default_rng(seed)
    picked = np.arange(whole) if whole <= PATHS else dice.integers(0, whole, PATHS)
    middle = np.searchsorted(np.cumsum(paths), picked, side="right")
    rank = picked - (np.cumsum(paths) - paths)[middle]
    # the rank-th pair (x, y), x < y, of the neighbours of the middle
    y = np.floor((1 + np.sqrt(1 + 8 * rank)) / 2).astype(np.int64)
    y -= y * (y - 1) // 2 > rank
    x = rank - y * (y - 1) // 2
    one, two = others[starts[middle] + x], others[starts[middle] + y]
    asked = np.minimum(one, two) * records + np.maximum(one, two)
    keys = left * records + right
    places = np.minimum(np.searchsorted(keys, asked), len(keys) - 1)
    rejected = (keys[places] == asked) & ~accepted[places]
    return float(rejected.mean()) * whole / len(a)
