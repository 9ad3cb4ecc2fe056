"""Validation: the fraction of true matches at every score, from a field not used in the scoring (MMDS §3.8.3).

True matches differ in that field by h0 on average, random pairs by h1. Pairs of one score, of which a fraction f are
true matches, differ by h = f·h0 + (1 − f)·h1; hence f = (h1 − h) / (h1 − h0), without looking at any pair.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import NDArray

from likewise.apps.link.points import listed
from likewise.apps.link.window import apart, check_window, measurable, numbers_in, random_pairs
from likewise.base import checks
from likewise.base.stats import student_quantile
from likewise.errors import InputError, ParameterError
from likewise.view.charts import new_figure, plain_axes, save_figure

if TYPE_CHECKING:
    import pyarrow as pa

SURE = 30
"""Pairs with the highest scores, at least this many or one in a hundred, are taken as true matches to estimate h0."""

SHUFFLES = 20
MOST_RANDOM = 200_000
"""Random pairs: each value is paired with at most 20 random others, until there are 200,000 pairs. The error of h1 then
comes from the number of values, not of pairs."""

BINS = 20
"""Score ranges of the validation of a linkage."""

COLOUR = "#0b6e4f"
Floats = NDArray[np.float64]


@dataclass(frozen=True)
class EstimatedMean:
    """A mean, and the variance of its error: 0 if the mean is known."""

    value: float
    variance: float = 0.0

    @classmethod
    def of(cls, values: Floats, independent: int | None = None) -> EstimatedMean:
        """Return the mean of values, with the variance of the mean of as many independent ones."""
        n = independent or len(values)
        return cls(float(values.mean()), float(values.var(ddof=1)) / n if len(values) > 1 else 0.0)


@dataclass(frozen=True)
class Validation:
    """The fraction of true matches by score.

    table: score_from, score_to, pairs, mean (of the differences), fraction, low, high. A bin has the pairs with scores
    in [score_from, score_to); the last one includes score_to. low and high are the confidence interval of the fraction.
    true, random: the mean differences of true matches and of random pairs, h0 and h1. confidence: of the intervals.
    """

    table: pa.Table
    true: float
    random: float
    confidence: float

    def threshold(self, fraction: float = 0.95) -> float | None:
        """Return the lowest score from which on at least this fraction of the pairs of every bin are true matches.

        None if the fraction is not reached even by the highest scores.
        """
        checks.threshold("threshold", fraction, "fraction")
        good = None
        for row in reversed(self.table.to_pylist()):
            if row["fraction"] < fraction:
                break
            good = row["score_from"]
        return good

    def plot(self, path: str | Path | None = None, measure: str = "") -> Any:
        """Draw the fractions with their intervals, and the number of pairs below them; return the figure.

        It is written to `path` if there is one. `measure` is the unit of the differences, such as "days apart".
        """
        return _plotted(self, path, measure)


def true_fraction(mean: Any, true: float, random: float) -> Any:
    """Return the fraction of true matches among pairs that differ by `mean` on average (MMDS §3.8.3).

    >>> [true_fraction(days, true=10, random=45) for days in (10, 45, 27.5)]
    [1.0, 0.0, 0.5]
    """
    if not (math.isfinite(true) and math.isfinite(random)) or true == random:
        rule = "finite and different from the mean of true matches; otherwise the field is uninformative"
        raise ParameterError.of("true_fraction", "random", rule, random)
    return (random - mean) / (random - true)


def validate(
    scores: Sequence[float] | NDArray[Any],
    values: Any,
    true: float | None = None,
    random: float | Sequence[float] | NDArray[Any] | EstimatedMean | None = None,
    bins: int | Sequence[float] = 10,
    *,
    window: tuple[float, float] | None = None,
    confidence: float = 0.95,
    seed: int = 1,
) -> Validation:
    """Estimate the fraction of true matches at every score from a field that was not used in the scoring (MMDS §3.8.3).

    values: the difference of the two records of each pair in that field; or two columns (values_a, values_b) of
    numbers, dates or texts, whose `differences` are used. Pairs without a value (NaN) are left out.
    true: h0, the mean difference of true matches. Without it, that of the highest scores, taken as true matches.
    random: h1, the mean difference of random pairs, or the differences of some. With two columns it may be omitted; the
    values of one are then paired at random with those of the other.
    bins: the number of score ranges of equal width, or their edges.
    window: with two columns of dates or numbers, how far the second may be after the first, such as (0, 90) days. Other
    pairs are left out, and random pairs are drawn from the window: all of 0 to 90 days are 45 apart on average.
    confidence: of the intervals. seed: of the random pairs.

    The intervals account for the errors of all three means (delta method): with D = h1 − h0,
    var f = (var h + (1 − f)² var h1 + f² var h0) / D². A mean that is given is taken as known. Intervals are wide for
    few pairs, also if these all agree.

    >>> days = [10, 10, 10, 10, 20, 30, 28, 32]
    >>> found = validate([300] * 4 + [185] * 4, days, true=10, random=45, bins=[0, 200, 300])
    >>> found.table.select(["score_from", "pairs", "mean", "fraction"]).to_pylist()[0]
    {'score_from': 0.0, 'pairs': 4, 'mean': 27.5, 'fraction': 0.5}
    """
    checks.number("validate", "confidence", confidence, 0, 1, open_left=True, open_right=True)
    checks.seed("validate", seed)
    score = np.asarray(scores, np.float64)
    chance = np.random.default_rng(seed)
    if window is None:
        value, others = _measured(values, len(score), chance)
    else:
        value, drawn = _in_window(values, len(score), window, chance)
        random, others = drawn if random is None else random, None
    known = np.isfinite(score) & np.isfinite(value)
    score, value = score[known], value[known]
    if len(score) < 2:
        raise InputError("validation needs two or more pairs with a score and a value; choose a field with more values")
    h0 = EstimatedMean(float(true)) if true is not None else EstimatedMean.of(value[score >= _sure(score)])
    h1 = _random(random, others, len(known))
    if h0.value == h1.value or not (math.isfinite(h0.value) and math.isfinite(h1.value)):
        if random is not None:
            rule = "finite and different from the mean of true matches; otherwise the field is uninformative"
            raise ParameterError.of("validate", "random", rule, h1.value)
        raise InputError(
            f"validation: true matches and random pairs differ by {h0.value:.3g} alike; the field is "
            f"uninformative, choose another"
        )
    edges = _edges(score, bins)
    place = np.searchsorted(edges, score, side="right") - 1
    place[score == edges[-1]] = len(edges) - 2
    rows = []
    for number in np.unique(place[(place >= 0) & (place < len(edges) - 1)]).tolist():
        inside = value[place == number]
        low, fraction, high = _interval(inside, h0, h1, confidence)
        ends = float(edges[number]), float(edges[number + 1])
        rows.append((*ends, len(inside), float(inside.mean()), fraction, low, high))
    if not rows:
        raise ParameterError.of("validate", "bins", "edges with scores between them", bins)
    return Validation(_table(rows), h0.value, h1.value, confidence)


def _measured(values: Any, pairs: int, chance: np.random.Generator) -> tuple[Floats, Floats | None]:
    """Return the difference of each pair, and those of random pairs if there are two columns."""
    if not (isinstance(values, tuple) and len(values) == 2 and hasattr(values[0], "__len__")):
        value = np.asarray(values, np.float64)
        if value.shape != (pairs,):
            raise ParameterError(f"validate needs one value for each of the {pairs:,} scores; there are {value.size:,}")
        return value, None
    xs, ys = map(listed, values)
    if not len(xs) == len(ys) == pairs:
        sizes = f"{len(xs):,} and {len(ys):,}"
        raise ParameterError(f"validate needs two values for each of the {pairs:,} scores; there are {sizes}")
    times = min(SHUFFLES, math.ceil(MOST_RANDOM / max(1, pairs)))
    x, y, words = measurable(xs, ys)
    mixed = np.concatenate([chance.permutation(pairs) for _ in range(times)])
    return apart(x, y, words), apart(np.tile(x, times), y[mixed], words)


def _in_window(
    values: Any, pairs: int, window: Any, chance: np.random.Generator
) -> tuple[Floats, EstimatedMean | None]:
    """Return the difference of each pair, NaN outside the window; and the mean of random pairs inside it."""
    bounds = check_window("validate", "window", window)
    two = isinstance(values, tuple) and len(values) == 2
    columns = [listed(side) for side in values] if two else []
    if [len(side) for side in columns] != [pairs, pairs]:
        raise ParameterError(f"The 'window' parameter of validate needs values of two columns, {pairs:,} each.")
    numbers = numbers_in([*columns[0], *columns[1]])
    if numbers is None:
        raise ParameterError.of("validate", "window", "given with columns of dates or numbers only", window)
    x, y = numbers[:pairs], numbers[pairs:]
    inside = (y - x >= bounds[0]) & (y - x <= bounds[1])
    i, j = random_pairs(x, y, bounds, MOST_RANDOM, chance)
    several = min((len(np.unique(side)) for side in (i, j)), default=0)
    mean = EstimatedMean.of(np.abs(y[j] - x[i]), several) if several else None
    return np.where(inside, np.abs(y - x), np.nan), mean


def _sure(scores: Floats) -> float:
    """Return the score from which on pairs are taken as true matches."""
    rank = min(len(scores), max(SURE, len(scores) // 100))
    return float(np.partition(scores, len(scores) - rank)[len(scores) - rank])


def _random(given: Any, drawn: Floats | None, pairs: int) -> EstimatedMean:
    """Return the mean difference of random pairs.

    Pairs drawn from the same values are not independent. The variance is that of as many independent pairs as there are
    values on one side, an upper bound: the variance explained by the values of both sides is at most the whole.
    """
    if given is None:
        if drawn is None:
            raise ParameterError(
                "validate needs the mean difference of random pairs: give random=, a number or the differences of "
                "some random pairs; or give values as two columns, (values_a, values_b)"
            )
        times = len(drawn) // pairs
        drawn = drawn[np.isfinite(drawn)]
        if len(drawn) < 2:
            raise InputError("validation: no random pair has two values in the field; choose another field")
        return EstimatedMean.of(drawn, max(1, len(drawn) // times))
    if isinstance(given, EstimatedMean):
        return given
    numbers = np.asarray(given, np.float64)
    if numbers.ndim == 0:
        return EstimatedMean(float(numbers))
    numbers = numbers[np.isfinite(numbers)]
    if len(numbers) < 2:
        raise ParameterError.of("validate", "random", "a number, or the differences of two or more pairs", given)
    return EstimatedMean.of(numbers)


def _edges(scores: Floats, bins: int | Sequence[float]) -> Floats:
    if isinstance(bins, int | np.integer):
        checks.whole("validate", "bins", bins, rule="at least 1")
        low, high = float(scores.min()), float(scores.max())
        return np.linspace(low, high if high > low else low + 1.0, int(bins) + 1)
    edges = np.asarray(bins, np.float64)
    if edges.ndim != 1 or len(edges) < 2 or not np.all(np.diff(edges) > 0):
        raise ParameterError.of("validate", "bins", "a number of ranges, or two or more increasing edges", list(bins))
    return edges


def _interval(values: Floats, h0: EstimatedMean, h1: EstimatedMean, confidence: float) -> tuple[float, float, float]:
    """Return the low end, the estimate and the high end, all in [0, 1]; a single pair gives the interval [0, 1].

    Values of which a fraction f have mean h0 and the others h1 have a variance of at least f (1 − f) (h1 − h0)². This
    bound, with f smoothed as by Agresti and Coull (two more pairs of each kind), keeps the interval of a few pairs that
    all agree from being too narrow.
    """
    here = EstimatedMean.of(values)
    fraction = float(true_fraction(here.value, h0.value, h1.value))
    if len(values) < 2:
        return 0.0, min(1.0, max(0.0, fraction)), 1.0
    n, inside = len(values), min(1.0, max(0.0, fraction))
    smoothed = (n * inside + 2) / (n + 4)
    least = smoothed * (1 - smoothed) * (h1.value - h0.value) ** 2 / n
    variance = max(here.variance, least) + (1 - fraction) ** 2 * h1.variance + fraction**2 * h0.variance
    reach = student_quantile(confidence, len(values) - 1) * math.sqrt(variance) / abs(h1.value - h0.value)
    low, middle, high = (min(1.0, max(0.0, end)) for end in (fraction - reach, fraction, fraction + reach))
    return low, middle, high


def _table(rows: Sequence[tuple[float, ...]]) -> pa.Table:
    import pyarrow as pa

    names = ("score_from", "score_to", "pairs", "mean", "fraction", "low", "high")
    columns = zip(names, zip(*rows, strict=True), strict=True)
    return pa.table(
        {name: pa.array(column, pa.int64() if name == "pairs" else pa.float64()) for name, column in columns}
    )


def _plotted(found: Validation, path: str | Path | None, measure: str) -> Any:
    columns = {name: np.array(column) for name, column in found.table.to_pydict().items()}
    middle = (columns["score_from"] + columns["score_to"]) / 2
    width = columns["score_to"] - columns["score_from"]
    figure, (upper, lower) = new_figure(2, 5.0, sharex=True, height_ratios=[3, 1])
    fraction = columns["fraction"]
    upper.fill_between(middle, columns["low"], columns["high"], color=COLOUR, alpha=0.15, linewidth=0)
    reach = [fraction - columns["low"], columns["high"] - fraction]
    upper.errorbar(middle, fraction, reach, fmt="o-", color=COLOUR, linewidth=1.6, capsize=3, markersize=5)
    upper.set_ylim(-0.03, 1.03)
    upper.set_ylabel("fraction of true matches")
    unit = f" {measure}" if measure else ""
    means = f"mean of true matches {found.true:.3g}, of random pairs {found.random:.3g}{unit}"
    upper.set_title(
        f"{means}; {found.confidence:.0%} intervals", fontsize=10, loc="left", color="#4a4e54", parse_math=False
    )
    lower.bar(middle, columns["pairs"], width=0.9 * width, color="#9a9da1")
    lower.set_yscale("log")
    lower.set_ylim(bottom=0.7)
    lower.set_ylabel("pairs")
    lower.set_xlabel("score")
    for axes in (upper, lower):
        plain_axes(axes)
    return written_figure(figure, path)


def written_figure(figure: Any, path: str | Path | None) -> Any:
    """Write a figure to a path, if there is one, and return it."""
    if path is not None:
        save_figure(figure, path)
    return figure
