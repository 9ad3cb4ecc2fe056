"""Where to draw the line without knowing any finger: by prints in a mirror.

A print in a mirror has as many minutiae as a real one, as dense, along ridges that flow as plausibly. But nobody has
the finger. So whatever a mirrored print agrees with, it agrees with by chance, and the scores that it gets are those
that prints of different fingers get.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from likewise.apps.fingerprints.prints import OWNER
from likewise.errors import ParameterError

Floats = NDArray[np.float64]

FALLBACK = 0.45
"""The threshold where there are too few comparisons with mirrored prints to find one."""
ENOUGH = 200
TAIL = 30
"""How many of the highest scores make the slope that is continued."""
COUNTED = 5
HIGHEST = 0.001
"""The largest part of false pairs that may pass where no threshold is given, however few pairs there are."""


@dataclass(frozen=True)
class Threshold:
    """A score from which on pairs count as matches, and how many pairs of different fingers may be expected there.

    how: "mirrors", counted among the comparisons with mirrored prints; "mirrors, continued", beyond the highest of
    them along the slope of the thirty highest; "given"; or "few", where there are not even 200 such comparisons.
    """

    value: float
    how: str
    mirrored: int
    expected_false: float | None


def choose(scores: Floats, comparisons: int, pairs: int, false: float, given: float | None) -> Threshold:
    """Return the threshold at which `false` false matches are to be expected among so many pairs, or one in a thousand.

    scores: those of mirrored prints that were candidates; the other comparisons have the score 0.

    >>> scores = np.arange(1000) / 1000
    >>> choose(scores, 10_000, pairs=5000, false=5, given=None)
    Threshold(value=0.99, how='mirrors', mirrored=10000, expected_false=5.0)
    """
    ordered = np.sort(scores)[::-1]
    if given is not None:
        expected = _expected(ordered, comparisons, given) * pairs if comparisons >= ENOUGH else None
        return Threshold(given, "given", comparisons, expected)
    if comparisons < ENOUGH:
        return Threshold(FALLBACK, "few", comparisons, None)
    rate = min(HIGHEST, false / max(1, pairs))
    count = rate * comparisons
    if count >= COUNTED:
        at = int(count + 1e-9)
        value = float(ordered[at - 1]) if at <= len(ordered) else 0.0
        how = "mirrors"
    else:
        start, slope, share = _tail(ordered, comparisons)
        value, how = start + slope * np.log(share / rate), "mirrors, continued"
    value = float(max(value, np.nextafter(0, 1)))
    return Threshold(value, how, comparisons, _expected(ordered, comparisons, value) * pairs)


def _tail(ordered: Floats, comparisons: int) -> tuple[float, float, float]:
    """Return where the highest scores begin, their mean excess, and their share of all comparisons."""
    padded = np.concatenate([ordered, np.zeros(max(0, TAIL + 1 - len(ordered)))])
    start = float(padded[TAIL])
    return start, max(1e-3, float((padded[:TAIL] - start).mean())), TAIL / comparisons


def _expected(ordered: Floats, comparisons: int, value: float) -> float:
    """Return which part of false pairs is to be expected at a score or above."""
    count = int(np.searchsorted(-ordered, -value, side="right"))
    if count >= COUNTED:
        return count / comparisons
    start, slope, share = _tail(ordered, comparisons)
    return float(share * np.exp(-max(0.0, value - start) / slope))


def check_numbers(threshold: Any, false: Any) -> None:
    """Raise unless the user's numbers make sense."""
    if threshold is not None and (
        isinstance(threshold, bool) or not isinstance(threshold, int | float) or not 0 < threshold <= 1
    ):
        raise ParameterError.of(OWNER, "threshold", "in (0, 1]", threshold)
    if isinstance(false, bool) or not isinstance(false, int | float) or not 0 < false < np.inf:
        raise ParameterError.of(OWNER, "false", "a positive number of pairs", false)
