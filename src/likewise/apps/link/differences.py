"""How much two columns differ, row by row: numbers, dates or texts."""

from __future__ import annotations

import math
from typing import Any

import numpy as np
from numpy.typing import NDArray

from likewise.apps.link.dates import day_number
from likewise.apps.link.points import listed
from likewise.errors import ParameterError

READABLE = 0.95
"""A column of texts is one of dates or of numbers if this fraction of its values are: a few may be mistyped."""

Floats = NDArray[np.float64]


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
    both = [None if value is None or value != value or value == "" else value for value in [*listed(xs), *listed(ys)]]
    numbers = numbers_in(both)
    if numbers is None:
        codes = {value: code for code, value in enumerate(dict.fromkeys(map(_word, both)))}
        coded = [math.nan if value is None else codes[_word(value)] for value in both]
        numbers = np.array(coded, np.float64)
        x, y = numbers[: len(xs)], numbers[len(xs) :]
        return np.where(np.isnan(x) | np.isnan(y), np.nan, x != y)
    return np.abs(numbers[: len(xs)] - numbers[len(xs) :])


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


def _float(value: Any) -> float | None:
    try:
        number = float(value)
    except (TypeError, ValueError):
        return None
    return number if math.isfinite(number) else None
