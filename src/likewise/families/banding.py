"""The S-curve of b bands of r rows: the probability that a pair becomes a candidate (MMDS §3.4.2)."""

from __future__ import annotations

import math
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any, overload

import numpy as np
from numpy.typing import NDArray

from likewise.base import checks
from likewise.view.charts import COLOURS, DASHES, GREY, POINTS, finish_curves, new_figure, save_figure, small_curve

__all__ = ["Banding"]


@dataclass(frozen=True)
class Banding:
    """A signature divided into b bands of r rows; two items are candidates if they agree in all rows of some band.

    >>> banding = Banding(b=16, r=4)
    >>> print(banding, banding.slots)
    16 bands of 4 rows 64
    >>> banding.threshold
    0.5
    >>> Banding(1, 1).probability(0.3)
    0.3
    """

    b: int
    r: int

    def __post_init__(self) -> None:
        for name, value in (("b", self.b), ("r", self.r)):
            object.__setattr__(self, name, checks.whole("Banding", name, value))

    def __str__(self) -> str:
        bands, rows = "band" if self.b == 1 else "bands", "row" if self.r == 1 else "rows"
        return f"{self.b} {bands} of {self.r} {rows}"

    @property
    def slots(self) -> int:
        """The length of the signature, b·r."""
        return self.b * self.r

    @property
    def threshold(self) -> float:
        """The rule of thumb (1/b)^(1/r) for the similarity at which the curve rises.

        A pair at that similarity is found with probability 1 − (1 − 1/b)^b, which falls from 1 to 1 − 1/e as b grows:
        always more than 1/2, so it lies to the right of the exact threshold.
        """
        return float((1 / self.b) ** (1 / self.r))

    @property
    def exact_threshold(self) -> float:
        """The similarity at which the probability is exactly 1/2: (1 − 2^(−1/b))^(1/r)."""
        return float((-math.expm1(-math.log(2) / self.b)) ** (1 / self.r))

    @overload
    def probability(self, s: float) -> float: ...

    @overload
    def probability(self, s: Sequence[float] | NDArray[Any]) -> NDArray[np.float64]: ...

    def probability(self, s: float | Sequence[float] | NDArray[Any]) -> float | NDArray[np.float64]:
        """Return the probability 1 − (1 − s^r)^b that a pair of similarity s becomes a candidate.

        A number gives a number, an array gives an array. Probabilities far below 1e-16 keep full precision.

        >>> Banding(20, 5).probability([0.0, 0.5, 1.0]).round(3)
        array([0.  , 0.47, 1.  ])
        """
        similarity = checks.numbers("Banding.probability", "s", s, 0, 1)
        with np.errstate(divide="ignore", under="ignore"):  # log1p(−1) is −inf, as it should be
            result: NDArray[np.float64] = np.abs(np.expm1(self.b * np.log1p(-(similarity**self.r))))
        return result if result.ndim else float(result)

    def plot(self, path: str | Path | None = None, threshold: float | None = None) -> Any:
        """Plot the S-curve, with a threshold also both areas; return the Matplotlib figure, and save it to a path.

        It needs `pip install 'likewise[plot]'`. The suffix of the path determines the format: .png, .svg, .pdf.
        """
        figure, axes = new_figure()
        s = np.linspace(0, 1, POINTS)
        chance = self.probability(s)
        label = f"{self}\n(1/b)^(1/r) = {self.threshold:.3f}\nhalf at {self.exact_threshold:.3f}"
        axes.plot(s, chance, color=COLOURS[0], linewidth=2.2, label=label, zorder=3)
        if threshold is not None:
            threshold = checks.threshold("Banding.plot", threshold)
            reached = self.probability(threshold)
            axes.axvline(threshold, color=GREY, linewidth=1, linestyle=DASHES)
            label = f"threshold {threshold:g}:\nfound with probability {reached:.4f}"
            axes.plot([threshold], [reached], "o", color=COLOURS[0], label=label, zorder=4)
            shown = {"alpha": 0.35, "linewidth": 0}
            label = f"false positives, area {self.false_positive_area(threshold):.4f}"
            axes.fill_between(s, 0, chance, where=s <= threshold, color=COLOURS[1], label=label, **shown)
            label = f"false negatives, area {self.false_negative_area(threshold):.4f}"
            axes.fill_between(s, chance, 1, where=s >= threshold, color=COLOURS[2], label=label, **shown)
        axes.set_xlim(-0.01, 1.01)
        axes.set_xlabel("similarity")
        finish_curves(axes, "probability of becoming a candidate")
        if path is not None:
            save_figure(figure, path)
        return figure

    def _repr_html_(self) -> str:
        """Return what a notebook shows: the numbers, and the curve from similarity 0 to 1."""
        half = f"half of the pairs at similarity {self.exact_threshold:.3f} become candidates"
        curve = small_curve(self.probability(np.linspace(0, 1, 121)).tolist(), f"S-curve of {self}", "similarity")
        return f"<p><b>{self}</b> ({self.slots:,} slots); {half}</p>{curve}"

    def false_positive_area(self, threshold: float) -> float:
        """Return the area under the curve to the left of the threshold: ∫₀ᵗ 1 − (1 − s^r)^b ds.

        If similarities were uniform on [0, 1], this would be the probability of a candidate below the threshold.

        >>> Banding(1, 1).false_positive_area(0.5)  # the triangle under the diagonal
        0.125
        """
        t = checks.number("Banding.false_positive_area", "threshold", threshold, 0, 1)
        log_miss, area = _log_one_minus_power(t, self.r), 0.0
        for j in range(1, self.b + 1):
            # Integration by parts: (1 + jr)·A(j) = t·P(j) + jr·A(j − 1) for the area A of j bands; all terms positive.
            area = (-t * math.expm1(j * log_miss) + j * self.r * area) / (1 + j * self.r)
        return area

    def false_negative_area(self, threshold: float) -> float:
        """Return the area above the curve to the right of the threshold: ∫ₜ¹ (1 − s^r)^b ds.

        If similarities were uniform on [0, 1], this would be the probability of a missed pair above the threshold.

        >>> Banding(1, 1).false_negative_area(0.5)  # the triangle over the diagonal
        0.125
        """
        t = checks.number("Banding.false_negative_area", "threshold", threshold, 0, 1)
        log_miss = _log_one_minus_power(t, self.r)
        # Integration by parts: the area A of j bands satisfies (1 + jr)·A(j) = jr·A(j − 1) − t·(1 − t^r)^j. It is used
        # forwards left of the middle of the curve, and backwards from A(∞) = 0 right of it, where it would cancel.
        if self.b * log_miss > -math.log(2):
            area = 1 - t
            for j in range(1, self.b + 1):
                area = (j * self.r * area - t * math.exp(j * log_miss)) / (1 + j * self.r)
            return area
        area, j = 0.0, self.b + 1
        term = t * math.exp(j * log_miss) / (j * self.r)
        while term > 1e-17 * t**self.r * area:
            area += term
            term *= math.exp(log_miss) * (j + 1 / self.r) / (j + 1)
            j += 1
        return area


def areas(threshold: float, r: int, most: int) -> Iterator[tuple[float, float]]:
    """Yield the areas of false positives and of false negatives for 1, 2, … `most` bands of r rows.

    To an absolute error of about 1e-15; the methods of `Banding` are exact in relative terms.

    >>> [(round(a, 4), round(b, 4)) for a, b in areas(0.5, 1, 2)]
    [(0.125, 0.125), (0.2083, 0.0417)]
    """
    log_miss = _log_one_minus_power(threshold, r)
    area, missed = 0.0, 1.0
    for j in range(1, most + 1):
        area = (-threshold * math.expm1(j * log_miss) + j * r * area) / (1 + j * r)
        missed *= j * r / (1 + j * r)  # ∫₀¹ (1 − s^r)^j ds
        yield area, max(0.0, missed - (threshold - area))


def _log_one_minus_power(t: float, r: int) -> float:
    """Return log(1 − t^r) to full precision, whether t^r is near 0 or near 1."""
    if t in (0.0, 1.0):
        return 0.0 if t == 0 else -math.inf
    log_power = r * math.log(t)
    if log_power > -math.log(2):
        return math.log(-math.expm1(log_power))
    return math.log1p(-math.exp(log_power))
