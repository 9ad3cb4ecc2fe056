"""The fraction of true matches by score, where the truth is known."""

from __future__ import annotations

import datetime
import math
from pathlib import Path

import numpy as np
import pyarrow as pa
import pytest
from hypothesis import given
from hypothesis import strategies as st

from likewise.apps.link.validation import Validation, true_fraction, validate
from likewise.apps.link.window import differences
from likewise.errors import InputError, OutputError, ParameterError

TRUE, LONGEST = 10.0, 90.0
"""The delay of a true match is exponential, of a false one anything up to 90 days."""


def made(n: int, chance: np.random.Generator) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    """Scores of 0 to 10, of which a pair is right with probability score / 10, the delays, and which are right."""
    scores = chance.integers(0, 11, n).astype(float)
    right = chance.random(n) < scores / 10
    return scores, np.where(right, chance.exponential(TRUE, n), chance.uniform(0, LONGEST, n)), right


def by_score(**options: object) -> Validation:
    chance = np.random.default_rng(5)
    scores, delays, _ = made(22_000, chance)
    options.setdefault("random", chance.uniform(0, LONGEST, 4_000))
    return validate(scores, delays, bins=np.arange(-0.5, 11), **options)


@pytest.mark.parametrize("true", [TRUE, None])
def test_fractions_are_those_of_the_truth(true: float | None) -> None:
    """About 2,000 pairs a bin; a delay varies by at most 30 days, hence so does its average: 30 / √2000 of 35 days.

    h0 comes from the score of 10, h1 from 4,000 delays of the same spread: each adds less than the bin itself.
    """
    error = 4.4 * math.sqrt(3) * 30 / math.sqrt(1_900) / 35
    table = by_score(true=true).table.to_pydict()
    assert table["score_from"] == pytest.approx(np.arange(-0.5, 10))
    assert min(table["pairs"]) > 1_800
    assert sum(table["pairs"]) == 22_000
    np.testing.assert_allclose(table["fraction"], np.arange(11) / 10, atol=error)


def test_intervals_cover_the_truth_as_often_as_they_say() -> None:
    """Each of 400 runs has scores of one half only; 95 % of the intervals hold 1/2, within 4.4 standard errors."""
    chance = np.random.default_rng(7)
    held = 0
    for _ in range(400):
        right = chance.random(60) < 0.5
        delays = np.where(right, chance.exponential(TRUE, 60), chance.uniform(0, LONGEST, 60))
        sure, false = chance.exponential(TRUE, 60), chance.uniform(0, LONGEST, 60)
        found = validate([1.0] * 60 + [2.0] * 60, [*delays, *sure], random=false, bins=[0.5, 1.5, 2.5])
        first = found.table.to_pylist()[0]
        held += first["low"] <= 0.5 <= first["high"]
    assert held / 400 == pytest.approx(0.95, abs=4.4 * math.sqrt(0.95 * 0.05 / 400))


def test_intervals_grow_with_confidence_and_shrink_with_pairs() -> None:
    wide, narrow = by_score(confidence=0.99).table.to_pylist()[5], by_score(confidence=0.5).table.to_pylist()[5]
    assert wide["low"] < narrow["low"] < narrow["fraction"] < narrow["high"] < wide["high"]
    few = validate([5.0] * 16 + [6.0], [10.0, 45.0] * 8 + [10.0], true=10, random=45, bins=[5, 5.5, 6])
    first, last = few.table.to_pylist()
    reach = 2.131 * math.sqrt(35**2 / 4 / 15) / 35
    assert first["low"] == pytest.approx(0.5 - reach, abs=0.005), "Student's t with 15 degrees of freedom"
    assert (last["low"], last["fraction"], last["high"]) == (0, 1, 1), "of one pair, nothing is known"


def test_pairs_that_all_agree_are_not_certain() -> None:
    """Of ten pairs that agree, the true fraction may well be 0.8 (0.8¹⁰ = 0.11), but hardly 0.5; of 1,000, not 0.98."""
    lows = []
    for n in (2, 10, 1000):
        found = validate([1.0] * n, [0.0] * n, true=0, random=1, bins=1).table.to_pylist()[0]
        assert found["fraction"] == found["high"] == 1
        lows.append(found["low"])
    assert lows[0] == 0
    assert 0.5 < lows[1] < 0.8
    assert 0.98 < lows[2] < 1


@given(st.floats(-20, 100), st.floats(0, 20), st.floats(30, 60))
def test_the_fraction_is_where_the_average_lies(mean: float, true: float, random: float) -> None:
    fraction = true_fraction(mean, true, random)
    assert fraction * true + (1 - fraction) * random == pytest.approx(mean)


def test_columns_are_met_at_random() -> None:
    """Heights of 10,000 people, once more within a centimetre; every third pair is of strangers."""
    chance = np.random.default_rng(9)
    height = chance.normal(170, 10, 10_000)
    other = height + chance.uniform(-1, 1, 10_000)
    wrong = np.arange(10_000) % 3 == 0
    other[wrong] = chance.normal(170, 10, int(wrong.sum()))
    scores = np.where(chance.random(10_000) < 0.5, 1.0, 0.0)
    scores[np.flatnonzero(~wrong)[:200]] = 2.0
    found = validate(scores, (height, other), bins=[0, 0.5, 1.5, 2])
    assert found.random == pytest.approx(20 / math.sqrt(math.pi), abs=4.4 * 8.6 / math.sqrt(10_000))
    assert found.true == pytest.approx(0.5, abs=4.4 * 0.29 / math.sqrt(200))
    rows = found.table.to_pylist()
    for row in rows[:2]:
        assert row["low"] <= row["fraction"] <= row["high"]
        share = (~wrong & (scores == row["score_from"] + (0.5 if row["score_from"] == 0.5 else 0))).sum() / row["pairs"]
        assert row["fraction"] == pytest.approx(share, abs=4.4 * 8.6 / math.sqrt(row["pairs"]) / 10.7)
    assert found.threshold(0.9) == 1.5
    again = validate(scores, (pa.array(height), other.tolist()), bins=[0, 0.5, 1.5, 2])
    assert again.table.equals(found.table)


def test_thresholds() -> None:
    found = by_score(true=TRUE)
    assert found.threshold(0.75) == pytest.approx(7.5)
    assert found.threshold(0.01) == pytest.approx(0.5)
    assert validate([1, 2], [45.0, 45.0], 10, 45, bins=1).threshold() is None
    with pytest.raises(ParameterError, match="fraction"):
        found.threshold(1.5)


def test_bins() -> None:
    found = validate([0.0, 1.0, 9.0, 10.0], [45.0, 45.0, 10.0, 10.0], true=10, random=45, bins=5).table.to_pydict()
    assert (found["score_from"], found["score_to"]) == ([0, 8], [2, 10])
    assert found["pairs"] == [2, 2]
    assert found["fraction"] == [0, 1]
    one = validate([3.0, 3.0], [45.0, 10.0], true=10, random=45).table.to_pydict()
    assert one["pairs"] == [2]
    some = validate([0.0, 1.0, 9.0, 10.0], [45.0, math.nan, 10.0, 10.0], true=10, random=45, bins=[0, 5, 10])
    assert some.table["pairs"].to_pylist() == [1, 2], "a pair without a value is left out"


def test_differences() -> None:
    days = [datetime.date(2024, 2, 28), None, datetime.date(2024, 1, 1)]
    later = [datetime.datetime(2024, 3, 1, 12), datetime.date(2024, 1, 1), datetime.date(2023, 12, 31)]
    np.testing.assert_array_equal(differences(days, later), [2.5, math.nan, 1])
    np.testing.assert_array_equal(differences(["20240228", ""], ["2024-03-01", "20240101"]), [2, math.nan])
    np.testing.assert_array_equal(differences(["1.5", " 7"], ["1", "7"]), [0.5, 0])
    np.testing.assert_array_equal(differences(["a", "B ", None], ["b", "b", "a"]), [1, 0, math.nan])
    assert len(differences([], [])) == 0
    with pytest.raises(ParameterError, match="1 values on one side, 2 on the other"):
        differences([1], [1, 2])


def test_the_picture(tmp_path: Path) -> None:
    figure = by_score(true=TRUE).plot(tmp_path / "validation.png", measure="days apart")
    assert (tmp_path / "validation.png").read_bytes().startswith(b"\x89PNG")
    upper, lower = figure.axes
    assert "10, of random pairs" in upper.get_title(loc="left")
    assert lower.get_xlabel() == "score"
    with pytest.raises(OutputError, match="cannot be written"):
        by_score().plot(tmp_path / "none" / "x.png")


@pytest.mark.parametrize(
    ("call", "error", "told"),
    [
        (lambda: validate([1, 2], [1.0, 2.0]), ParameterError, "give random="),
        (lambda: validate([1, 2], [1.0, 2.0], 45, 45), ParameterError, "is uninformative"),
        (lambda: validate([1, 2], [1.0, 2.0], 10, [45]), ParameterError, "two or more pairs"),
        (lambda: validate([1, 2], [1.0], 10, 45), ParameterError, "one value for each of the 2 scores"),
        (lambda: validate([1, 2], ([1], [2]), 10, 45), ParameterError, "two values for each of the 2 scores"),
        (lambda: validate([1, 2], [math.nan, 1.0], 10, 45), InputError, "two or more pairs"),
        (lambda: validate([1, 2], ([1, 2], [None, None])), InputError, "two or more pairs"),
        (lambda: validate([1, 2], [1.0, 2.0], 10, 45, bins=0), ParameterError, "at least 1"),
        (lambda: validate([1, 2], [1.0, 2.0], 10, 45, bins=[2, 1]), ParameterError, "increasing"),
        (lambda: validate([1, 2], [1.0, 2.0], 10, 45, bins=[5, 6]), ParameterError, "scores between them"),
        (lambda: validate([1, 2], [1.0, 2.0], 10, 45, confidence=1), ParameterError, "confidence"),
    ],
)
def test_wrong_calls_are_explained(call, error: type[Exception], told: str) -> None:
    with pytest.raises(error, match=told):
        call()
