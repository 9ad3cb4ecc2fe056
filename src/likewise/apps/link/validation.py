"""Is a score good enough? The fraction of true matches at every score, from a field not used in the scoring (§3.8.3).

Pairs that are surely right differ in that field by h0 on average, random pairs by h1. Pairs of one score, of which a
fraction f is right, differ by h = f·h0 + (1 − f)·h1; hence f = (h1 − h) / (h1 − h0), and no pair need be looked at.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass
from datetime import date, datetime
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np
import numpy.typing as npt

from likewise.apps.link.points import listed
from likewise.base.stats import student_quantile
from likewise.errors import InputError, LikewiseError, OutputError, ParameterError

if TYPE_CHECKING:
    import pyarrow as pa

SURE = 30
"""So many pairs at least, or one in a hundred, are taken as surely right: those of the highest scores."""

SHUFFLES = 20
MOST_RANDOM = 200_000
"""Each value is met with so many others at random, until there are so many random pairs."""

READABLE = 0.95
COLOUR = "#0b6e4f"
Floats = npt.NDArray[np.float64]


@dataclass(frozen=True)
class Mean:
    """An average, and the variance of its error: none, if it is known."""

    value: float
    variance: float = 0.0


@dataclass(frozen=True)
class Validation:
    """The fraction of true matches by score.

    table: score_from, score_to, pairs, mean (of the field's differences), fraction, low, high. A bin holds the pairs
    from score_from up to but without score_to; the last one holds both ends. low and high are the ends of the interval.
    true, random: the averages of true and of random pairs, h0 and h1. confidence: of the intervals.
    """

    table: pa.Table
    true: float
    random: float
    confidence: float

    def threshold(self, fraction: float = 0.95) -> float | None:
        """Return the lowest score from which on, bin after bin, at least this fraction of the pairs is right.

        None if not even the highest scores are that good.
        """
        if not 0 < fraction <= 1:
            raise ParameterError.of("threshold", "fraction", "in (0, 1]", fraction)
        good = None
        for row in reversed(self.table.to_pylist()):
            if row["fraction"] < fraction:
                break
            good = row["score_from"]
        return good

    def plot(self, path: str | Path | None = None, measure: str = "") -> Any:
        """Draw the fractions with their intervals, and below them how many pairs there are; return the figure.

        It is written to a file if there is a path. `measure` says what the field tells, such as "days apart".
        """
        return _plotted(self, path, measure)


def true_fraction(mean: Any, true: float, random: float) -> Any:
    """Return the fraction of true matches among pairs that differ by `mean` on average (§3.8.3).

    >>> [true_fraction(days, true=10, random=45) for days in (10, 45, 27.5)]
    [1.0, 0.0, 0.5]
    """
    if not (math.isfinite(true) and math.isfinite(random)) or true == random:
        rule = "finite and different from the average of true pairs; else the field tells nothing"
        raise ParameterError.of("validate", "random", rule, random)
    return (random - mean) / (random - true)


def validate(
    scores: Sequence[float] | npt.NDArray[Any],
    values: Any,
    true: float | None = None,
    random: float | Sequence[float] | npt.NDArray[Any] | None = None,
    bins: int | Sequence[float] = 10,
    *,
    confidence: float = 0.95,
    seed: int = 1,
) -> Validation:
    """Estimate the fraction of true matches at every score from a field that was not used in the scoring (§3.8.3).

    values: how much the two records of each pair differ in that field; or two columns (values_a, values_b), numbers,
    dates or texts, of which `differences` are taken. Pairs without a value (NaN) are left out.
    true: h0, the average difference of true matches. Without it, that of the highest scores, which are taken as right.
    random: h1, the average difference of random pairs, or the differences of some. With two columns it may be left out:
    then the values of one are met at random with those of the other.
    bins: how many ranges of equal width between the lowest and the highest score, or the borders of the ranges.

    The intervals take into account that all three averages are estimates (the delta method): with D = h1 − h0,
    var f = (var h + (1 − f)² var h1 + f² var h0) / D². An average that you give is taken as known. Few pairs, or pairs
    that all agree, have wide intervals.

    >>> days = [10, 10, 10, 10, 20, 30, 28, 32]
    >>> found = validate([300] * 4 + [185] * 4, days, true=10, random=45, bins=[0, 200, 300])
    >>> found.table.select(["score_from", "pairs", "mean", "fraction"]).to_pylist()[0]
    {'score_from': 0.0, 'pairs': 4, 'mean': 27.5, 'fraction': 0.5}
    """
    if not 0 < confidence < 1:
        raise ParameterError.of("validate", "confidence", "in (0, 1)", confidence)
    score = np.asarray(scores, np.float64)
    value, others = _measured(values, len(score), np.random.default_rng(seed))
    known = np.isfinite(score) & np.isfinite(value)
    score, value = score[known], value[known]
    if len(score) < 2:
        raise InputError("validate needs two or more pairs that have a score and a value; is the field ever filled?")
    h0 = Mean(float(true)) if true is not None else _mean(value[score >= _sure(score)])
    h1 = _random(random, others, len(known))
    true_fraction(0.0, h0.value, h1.value)  # says so if the field tells nothing
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
        raise ParameterError.of("validate", "bins", "borders with scores between them", bins)
    return Validation(_table(rows), h0.value, h1.value, confidence)


def differences(xs: Any, ys: Any) -> Floats:
    """Return how much two columns differ, pair by pair: numbers, days of dates, or 0 and 1 for texts; NaN if missing.

    Texts that are all dates (2024-05-17) or all numbers are taken as such.

    >>> differences([1.5, 4], [2, None])
    array([0.5, nan])
    >>> differences(["2024-02-28", "2024-12-31"], ["2024-03-01", "2025-01-01"])
    array([2., 1.])
    >>> differences(["red", "blue"], ["red", "green"])
    array([0., 1.])
    """
    if len(xs) != len(ys):
        raise ParameterError(f"Differences are of pairs: {len(xs):,} values on one side, {len(ys):,} on the other")
    both = [None if value is None or value != value or value == "" else value for value in [*listed(xs), *listed(ys)]]
    numbers = _numbers(both)
    if numbers is None:
        codes = {value: code for code, value in enumerate(dict.fromkeys(map(_word, both)))}
        coded = [math.nan if value is None else codes[_word(value)] for value in both]
        numbers = np.array(coded, np.float64)
        x, y = numbers[: len(xs)], numbers[len(xs) :]
        return np.where(np.isnan(x) | np.isnan(y), np.nan, x != y)
    return np.abs(numbers[: len(xs)] - numbers[len(xs) :])


def _word(value: object) -> str:
    return " ".join(str(value).casefold().split())


def _numbers(values: list[Any]) -> Floats | None:
    """Return dates as days and numbers as they are, if the values are such: all but one in twenty, which count as none.

    Digits that may be a date, such as 20240517, are one.
    """
    there = [value for value in values if value is not None]
    for read in (_days, _float):
        found = [None if value is None else read(value) for value in values]
        if sum(number is not None for number in found) >= max(1, READABLE * len(there)):
            return np.array([math.nan if number is None else number for number in found])
    return None


def _days(value: Any) -> float | None:
    if isinstance(value, datetime):
        return value.toordinal() + (value.hour * 3600 + value.minute * 60 + value.second) / 86400
    if isinstance(value, date):
        return float(value.toordinal())
    if isinstance(value, str) and len(value.strip()) >= len("20240517"):
        try:
            return _days(datetime.fromisoformat(value.strip()))
        except ValueError:
            return None
    return None


def _float(value: Any) -> float | None:
    try:
        number = float(value)
    except (TypeError, ValueError):
        return None
    return number if math.isfinite(number) else None


def _measured(values: Any, pairs: int, chance: np.random.Generator) -> tuple[Floats, Floats | None]:
    """Return the difference of each pair, and those of random pairs if there are two columns to draw them from."""
    if not (isinstance(values, tuple) and len(values) == 2 and hasattr(values[0], "__len__")):
        value = np.asarray(values, np.float64)
        if value.shape != (pairs,):
            raise ParameterError(f"validate takes one value for each of the {pairs:,} scores; there are {value.size:,}")
        return value, None
    xs, ys = map(listed, values)
    if not len(xs) == len(ys) == pairs:
        sizes = f"{len(xs):,} and {len(ys):,}"
        raise ParameterError(f"validate takes two values for each of the {pairs:,} scores; there are {sizes}")
    times = min(SHUFFLES, math.ceil(MOST_RANDOM / max(1, pairs)))
    mixed = [place for _ in range(times) for place in chance.permutation(pairs).tolist()]
    together = differences([*xs, *(list(xs) * times)], [*ys, *(ys[place] for place in mixed)])
    return together[:pairs], together[pairs:]


def _sure(scores: Floats) -> float:
    """Return the score from which on pairs are taken as right."""
    rank = min(len(scores), max(SURE, len(scores) // 100))
    return float(np.partition(scores, len(scores) - rank)[len(scores) - rank])


def _mean(values: Floats, independent: int | None = None) -> Mean:
    n = independent or len(values)
    return Mean(float(values.mean()), float(values.var(ddof=1)) / n if len(values) > 1 else 0.0)


def _random(given: Any, drawn: Floats | None, pairs: int) -> Mean:
    """Return the average of random pairs.

    Pairs drawn from one set of values share them. Their average varies less than that of as many independent pairs as
    there are values on a side, which is the variance taken: what a value explains of a difference, on both sides
    together, is at most the whole of it.
    """
    if given is None:
        if drawn is None:
            raise ParameterError(
                "validate needs the average difference of random pairs: give random=, a number or the differences of "
                "some random pairs; or give values as two columns, (values_a, values_b)"
            )
        times = len(drawn) // pairs
        drawn = drawn[np.isfinite(drawn)]
        if len(drawn) < 2:
            raise InputError("validate: no two records of the pairs have a value in the field; choose another")
        return _mean(drawn, max(1, len(drawn) // times))
    numbers = np.asarray(given, np.float64)
    if numbers.ndim == 0:
        return Mean(float(numbers))
    numbers = numbers[np.isfinite(numbers)]
    if len(numbers) < 2:
        raise ParameterError.of("validate", "random", "a number, or the differences of two or more pairs", given)
    return _mean(numbers)


def _edges(scores: Floats, bins: int | Sequence[float]) -> Floats:
    if isinstance(bins, int | np.integer):
        if bins < 1:
            raise ParameterError.of("validate", "bins", "at least 1", bins)
        low, high = float(scores.min()), float(scores.max())
        return np.linspace(low, high if high > low else low + 1.0, int(bins) + 1)
    edges = np.asarray(bins, np.float64)
    if edges.ndim != 1 or len(edges) < 2 or not np.all(np.diff(edges) > 0):
        raise ParameterError.of("validate", "bins", "a number of ranges, or two or more rising borders", list(bins))
    return edges


def _interval(values: Floats, h0: Mean, h1: Mean, confidence: float) -> tuple[float, float, float]:
    """Return the low end, the estimate and the high end, all in [0, 1]; of one pair, nothing is known.

    Values of which a fraction f is h0 on average, the others h1, vary by f (1 − f) (h1 − h0)² at least. So a few pairs
    that all agree do not pass for certainty; there f is smoothed as by Agresti and Coull, two pairs more of each kind.
    """
    here = _mean(values)
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
    try:
        from matplotlib.figure import Figure
    except ImportError as error:
        raise LikewiseError("plots need Matplotlib: pip install 'likewise[plot]'") from error
    columns = {name: np.array(column) for name, column in found.table.to_pydict().items()}
    middle = (columns["score_from"] + columns["score_to"]) / 2
    width = columns["score_to"] - columns["score_from"]
    figure = Figure(figsize=(7.6, 5.0), dpi=120, layout="constrained")
    upper, lower = figure.subplots(2, 1, sharex=True, height_ratios=[3, 1])
    fraction = columns["fraction"]
    upper.fill_between(middle, columns["low"], columns["high"], color=COLOUR, alpha=0.15, linewidth=0)
    reach = [fraction - columns["low"], columns["high"] - fraction]
    upper.errorbar(middle, fraction, reach, fmt="o-", color=COLOUR, linewidth=1.6, capsize=3, markersize=5)
    upper.set_ylim(-0.03, 1.03)
    upper.set_ylabel("fraction of true matches")
    unit = f" {measure}" if measure else ""
    told = f"average of true pairs {found.true:.3g}, of random pairs {found.random:.3g}{unit}"
    upper.set_title(f"{told}; {found.confidence:.0%} intervals", fontsize=10, loc="left", color="#4a4e54")
    lower.bar(middle, columns["pairs"], width=0.9 * width, color="#9a9da1")
    lower.set_yscale("log")
    lower.set_ylim(bottom=0.7)
    lower.set_ylabel("pairs")
    lower.set_xlabel("score")
    for axes in (upper, lower):
        axes.grid(color="#e6e6e6", linewidth=0.8)
        axes.set_axisbelow(True)
        axes.spines[["top", "right"]].set_visible(False)
    if path is not None:
        try:
            figure.savefig(path)
        except (OSError, ValueError) as error:
            raise OutputError(f"{path}: the plot cannot be written: {error}") from error
    return figure
