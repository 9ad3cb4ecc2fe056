"""Candidates within a window: a date or number in the second table at most so far after that in the first.

A service that is bought at one company and registered at the other within 90 days makes two records whose dates differ
by 0 to 90 days. Pairs outside that window are no candidates, and random pairs, to which matches are compared in a
validation, are drawn from inside it (MMDS §3.8.3).
"""

from __future__ import annotations

import math
import re
from collections.abc import Sequence
from dataclasses import dataclass
from datetime import date, datetime
from typing import Any

import numpy as np
from numpy.typing import NDArray

from likewise.apps.link.blocking import RecordPairs
from likewise.apps.link.fields import date_digits
from likewise.apps.link.labels import LabelledPairs
from likewise.apps.link.points import listed
from likewise.apps.link.records import RecordTable
from likewise.base.arrays import Ints
from likewise.errors import InputError, ParameterError

Floats = NDArray[np.float64]
Ends = tuple[float, float]

SHORTEST = len("20240517")
SEPARATED = re.compile(r"\d+\D\d+\D\d+")


def check_window(owner: str, name: str, bounds: Any, rule: str = "two numbers, the lower first") -> Ends:
    """Return the two ends of a window; either may be infinite."""
    try:
        low, high = (float(end) for end in bounds)
    except (TypeError, ValueError, OverflowError) as error:
        raise ParameterError.of(owner, name, rule, bounds) from error
    if not low <= high or (math.isinf(low) and math.isinf(high)):
        raise ParameterError.of(owner, name, rule, bounds)
    return low, high


@dataclass(frozen=True)
class Window:
    """One column of all records as numbers (days, for dates; NaN: missing), and how far the second may be after."""

    column: str
    low: float
    high: float
    values: Floats
    border: int

    @classmethod
    def of(cls, records: RecordTable, column: str, bounds: Ends) -> Window:
        """Read the column; one that is neither of dates nor of numbers is an error."""
        values = numbers_in([value for part in records.columns_of(column) for value in part.to_pylist()])
        if values is None:
            raise InputError(f"{column}: a window needs dates or numbers, and most values of this column are neither")
        return cls(column, *bounds, values, records.border)

    def inside(self, left: Ints, right: Ints) -> NDArray[np.bool_]:
        """Return which pairs are in the window; a pair without a value is not."""
        apart = self.values[right] - self.values[left]
        return (apart >= self.low) & (apart <= self.high)

    def among(self, kept: Ints, border: int) -> Window:
        """Return the window for these records."""
        return Window(self.column, self.low, self.high, self.values[kept], border)

    @property
    def codes(self) -> Ints:
        """The values as whole numbers, equal for equal values."""
        return np.unique(self.values, return_inverse=True)[1].astype(np.int64)

    def note(self) -> list[str]:
        """Say how many records have no value, and so no candidates."""
        missing = int(np.isnan(self.values).sum())
        return [f"{self.column}: {missing:,} records have no value, and so no candidates"] if missing else []


def within(candidates: RecordPairs, windows: Sequence[Window]) -> RecordPairs:
    """Return the candidates that are in all windows."""
    if not windows:
        return candidates
    kept = np.logical_and.reduce([one.inside(candidates.left, candidates.right) for one in windows])
    out = len(kept) - int(kept.sum())
    columns = ", ".join(f"{one.column} {one.low:g} to {one.high:g}" for one in windows)
    notes = [*candidates.notes, f"{out:,} of {len(kept):,} candidates are outside the window ({columns})"]
    return RecordPairs(candidates.left[kept], candidates.right[kept], candidates.ways, notes)


def labelled_within(labels: LabelledPairs, windows: Sequence[Window]) -> LabelledPairs:
    """Return the labelled pairs that are in all windows: others are no candidates, and teach nothing about these."""
    if not windows:
        return labels
    kept = np.logical_and.reduce([one.inside(labels.pairs[:, 0], labels.pairs[:, 1]) for one in windows])
    if not kept.any():
        raise InputError("training: no labelled pair is within the window; widen the window, or label other pairs")
    return LabelledPairs(labels.pairs[kept], labels.match[kept])


def random_pairs(x: Floats, y: Floats, bounds: Ends, count: int, chance: np.random.Generator) -> tuple[Ints, Ints]:
    """Draw pairs (i, j) with y[j] − x[i] in the window, each such pair equally likely; none if there is none.

    >>> i, j = random_pairs(np.array([0.0, 5.0]), np.array([1.0, 7.0, np.nan]), (0, 2), 100, np.random.default_rng(1))
    >>> sorted(set(zip(i.tolist(), j.tolist())))
    [(0, 0), (1, 1)]
    """
    there = np.flatnonzero(~np.isnan(y))
    there = there[np.argsort(y[there], kind="stable")]
    start = np.searchsorted(y[there], x + bounds[0], side="left")
    stop = np.searchsorted(y[there], x + bounds[1], side="right")
    counts = np.where(np.isnan(x), 0, np.maximum(stop - start, 0))
    last = np.cumsum(counts)
    if not len(last) or not last[-1]:
        return np.zeros(0, np.int64), np.zeros(0, np.int64)
    drawn = chance.integers(int(last[-1]), size=count)
    i = np.searchsorted(last, drawn, side="right")
    return i, there[start[i] + drawn - (last[i] - counts[i])]


def random_in(windows: Sequence[Window], count: int, seed: int) -> tuple[Ints, Ints]:
    """Draw pairs of records that are in all windows: of the first, those that are in the others too."""
    first, *others = windows
    x, y = first.values[: first.border], first.values[first.border :]
    left, right = random_pairs(x, y, (first.low, first.high), count, np.random.default_rng(seed))
    right = right + first.border
    for one in others:
        kept = one.inside(left, right)
        left, right = left[kept], right[kept]
    return left, right


READABLE = 0.95
"""A column of texts is one of dates or of numbers if this fraction of its values are: a few may be mistyped."""


def differences(xs: Any, ys: Any) -> Floats:
    """Return the differences of two columns, row by row: of numbers, days between dates, or 0 and 1 for texts.

    Columns of texts that are dates (2024-05-17, 17.5.2024) or numbers count as such. A missing value gives NaN.

    >>> differences([1.5, 4], [2, None])
    array([0.5, nan])
    >>> differences(["2024-02-28", "2024-12-31"], ["2024-03-01", "2025-01-01"])
    array([2., 1.])
    >>> differences(["red", "blue"], ["red", "green"])
    array([0., 1.])
    """
    if len(xs) != len(ys):
        raise ParameterError(f"Differences are of pairs: {len(xs):,} values on one side, {len(ys):,} on the other")
    return apart(*measurable(xs, ys))


def measurable(xs: Any, ys: Any) -> tuple[Floats, Floats, bool]:
    """Return two columns as numbers, and whether they are numbers of words, which are equal or not."""
    both = [None if value is None or value != value or value == "" else value for value in [*listed(xs), *listed(ys)]]
    numbers = numbers_in(both)
    words = numbers is None
    if numbers is None:
        codes = {value: code for code, value in enumerate(dict.fromkeys(map(_word, both)))}
        numbers = np.array([math.nan if value is None else codes[_word(value)] for value in both], np.float64)
    return numbers[: len(xs)], numbers[len(xs) :], words


def apart(x: Floats, y: Floats, words: bool) -> Floats:
    """Return the differences of columns that `measurable` returned."""
    if words:
        return np.where(np.isnan(x) | np.isnan(y), np.nan, x != y)
    return np.abs(x - y)


def _word(value: object) -> str:
    return " ".join(str(value).casefold().split())


def numbers_in(values: list[Any]) -> Floats | None:
    """Return dates as days or numbers as they are, if nearly all values are dates or numbers; others count as missing.

    Eight digits that can be a date, such as 20240517, are one.
    """
    values = [None if value is None or value != value or value == "" else value for value in values]
    there = [value for value in values if value is not None]
    for read in (day_number, _float):
        found = [None if value is None else read(value) for value in values]
        if sum(number is not None for number in found) >= max(1, READABLE * len(there)):
            return np.array([math.nan if number is None else number for number in found])
    return None


def day_number(value: object) -> float | None:
    """Return a date, or a text that is a date, as a number of days, with the time of day as a fraction; or None.

    >>> day_number("2024-03-01") - day_number("28.2.2024"), day_number("1234.112"), day_number("2024")
    (2.0, None, None)
    """
    if isinstance(value, datetime):
        return value.toordinal() + (value.hour * 3600 + value.minute * 60 + value.second) / 86400
    if isinstance(value, date):
        return float(value.toordinal())
    if not isinstance(value, str) or len(value.strip()) < SHORTEST:
        return None
    text = value.strip()
    try:
        return day_number(datetime.fromisoformat(text))
    except ValueError:
        pass
    digits = date_digits(text) if SEPARATED.fullmatch(text) else None
    try:
        return None if digits is None else day_number(datetime.strptime(digits, "%Y%m%d"))
    except ValueError:
        return None


def _float(value: Any) -> float | None:
    try:
        number = float(value)
    except (TypeError, ValueError):
        return None
    return number if math.isfinite(number) else None
