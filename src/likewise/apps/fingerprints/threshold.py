"""The threshold of the score, found without knowing any finger: by mirror images of prints.

The mirror image of a print has as many minutiae as a real one, as dense, along ridges that flow as plausibly, but no
finger has left it. Whatever it agrees with, it agrees with by chance, so its scores are a sample of the scores that
prints of different fingers get.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

Floats = NDArray[np.float64]

FALLBACK = 0.45
"""The threshold if there are too few comparisons with mirrored prints to find one."""
ENOUGH = 200
"""Least number of comparisons with mirrored prints from which a threshold is found."""
TAIL = 30
"""Number of the highest scores whose exponential tail is extrapolated; its slope errs by 1/√30."""
COUNTED = 5
"""Least number of scores that are counted; with fewer, the tail is extrapolated."""
HIGHEST = 0.001
"""Highest false match rate of a threshold that is not given, however few pairs there are."""


LEAST = 0.2
"""Least threshold if so few mirrored prints were candidates that their tail is not seen: the scores of the others are
unknown rather than 0."""


@dataclass(frozen=True)
class Threshold:
    """The least score of a match, and the expected number of matches of different fingers.

    how: "mirrors", counted among the comparisons with mirrored prints; "mirrors, continued", extrapolated from the
    thirty highest of their scores; "given"; or "few", with fewer than 200 such comparisons. mirrored: their number.
    """

    value: float
    how: str
    mirrored: int
    expected_false: float | None


def choose(scores: Floats, comparisons: int, pairs: int, false: float, given: float | None) -> Threshold:
    """Return the threshold at which `false` false matches are expected among `pairs`, at most one in a thousand.

    scores: those of candidates among `comparisons` with mirrored prints; the others have the score 0.

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
    least = LEAST if len(ordered) <= TAIL else np.nextafter(0, 1)
    value = float(max(value, least))
    return Threshold(value, how, comparisons, _expected(ordered, comparisons, value) * pairs)


def _tail(ordered: Floats, comparisons: int) -> tuple[float, float, float]:
    """Return the score at which the tail begins, its mean excess, and its share of all comparisons."""
    padded = np.concatenate([ordered, np.zeros(max(0, TAIL + 1 - len(ordered)))])
    start = float(padded[TAIL])
    return start, max(1e-3, float((padded[:TAIL] - start).mean())), TAIL / comparisons


def _expected(ordered: Floats, comparisons: int, value: float) -> float:
    """Return the expected false match rate at a score."""
    count = int(np.searchsorted(-ordered, -value, side="right"))
    if count >= COUNTED:
        return count / comparisons
    start, slope, share = _tail(ordered, comparisons)
    return float(share * np.exp(-max(0.0, value - start) / slope))
