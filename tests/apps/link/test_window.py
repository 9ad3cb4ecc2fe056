"""Candidates within a window of dates or numbers: every pair of records is looked at in turn."""

import math
from datetime import date, timedelta

import numpy as np
import pyarrow as pa
import pytest
from hypothesis import given
from hypothesis import strategies as st
from pyarrow import csv

from likewise import ColumnError, InputError, ParameterError, link
from likewise.apps.link.validation import validate
from likewise.apps.link.window import random_pairs

NAMES = ["ann", "bo", "cy", "dee", "eve", "fay", "gus", "hal", "ida", "jon"]


def people(count, days, seed=1):
    """Count records each, a bought and b registered `days(i)` later; one in three names is shared by many."""
    rng = np.random.default_rng(seed)
    start = [date(2024, 1, 1) + timedelta(int(day)) for day in rng.integers(0, 365, count)]
    names = [f"{NAMES[i % 10]} {rng.integers(count // 3)} {i}" for i in range(count)]
    a = {"id": [f"a{i}" for i in range(count)], "name": names, "created": [str(day) for day in start]}
    later = [str(start[i] + timedelta(days(i))) for i in range(count)]
    return a, {"id": [f"b{i}" for i in range(count)], "name": names, "created": later}


def day(text):
    return date.fromisoformat(text).toordinal()


def test_only_candidates_in_the_window():
    a, b = people(60, lambda i: [5, 200, -3][i % 3])
    dates = {key: day(text) for table in (a, b) for key, text in zip(table["id"], table["created"], strict=True)}
    free = link(a, b, fields=["name"]).scored.to_pylist()
    bound = link(a, b, fields=["name"], window={"created": (0, 90)})
    inside = {(row["id_a"], row["id_b"]) for row in free if 0 <= dates[row["id_b"]] - dates[row["id_a"]] <= 90}
    assert {(row["id_a"], row["id_b"]) for row in bound.scored.to_pylist()} == inside
    assert 0 < len(inside) < len(free)
    matches = {(row["id_a"], row["id_b"]) for row in bound.matches.to_pylist()}
    assert matches <= inside
    assert {(f"a{i}", f"b{i}") for i in range(0, 60, 3)} <= matches
    outside = [note for note in bound.stats["notes"] if "outside the window (created 0 to 90)" in note]
    assert outside
    assert bound.stats["parameters"]["window"] == {"created": [0.0, 90.0]}


def test_the_column_is_compared_only_if_it_is_named():
    a, b = people(30, lambda i: 5)
    assert list(link(a, b, window={"created": (0, 9)}).stats["details"]["fields"]) == ["name"]
    named = link(a, b, fields=["name", "created"], window={"created": (0, 9)})
    assert list(named.stats["details"]["fields"]) == ["name", "created"]


def test_records_without_a_date_have_no_candidates():
    a, b = people(30, lambda i: 5)
    b["created"][4] = None
    a["created"][7] = ""
    found = link(a, b, window={"created": (0, 90)})
    pairs = {(row["id_a"], row["id_b"]) for row in found.scored.to_pylist()}
    assert not [pair for pair in pairs if pair[0] == "a7" or pair[1] == "b4"]
    assert "created: 2 records have no value, and so no candidates" in found.stats["notes"]


def test_two_windows_and_numbers():
    a, b = people(40, lambda i: 5)
    a["price"], b["price"] = [10.0] * 40, [10.0 + i % 4 for i in range(40)]
    found = link(a, b, fields=["name"], window={"created": (0, 90), "price": (-math.inf, 1)})
    rows = {(row["id_a"], row["id_b"]) for row in found.matches.to_pylist()}
    assert rows == {(f"a{i}", f"b{i}") for i in range(40) if i % 4 < 2}


def test_copies_with_other_dates_are_not_copies():
    """Twenty records of one name a year apart each: without the dates they would be taken as one."""
    years = [f"{year}-05-01" for year in range(2000, 2020)]
    late = [f"{year}-05-21" for year in range(2000, 2020)]
    more = [f"name {i}" for i in range(30)]
    a = {"name": ["the same"] * 20 + more, "created": years + ["2001-01-01"] * 30}
    b = {"name": ["the same"] * 20 + more, "created": late + ["2001-01-02"] * 30}
    found = link(a, b, window={"created": (0, 90)}, one_to_one=True, threshold=-50)
    same = {(row["id_a"], row["id_b"]) for row in found.matches.to_pylist() if row["id_a"] < 20}
    assert same <= {(i, i) for i in range(20)}
    assert len(same) >= 10


def test_labelled_pairs_outside_the_window_are_no_candidates():
    a, b = people(40, lambda i: 5 if i % 2 else 200)
    labels = [(f"a{i}", f"b{i}", True) for i in range(20)] + [(f"a{i}", f"b{i + 2}", False) for i in range(20)]
    found = link(a, b, window={"created": (0, 90)}, training=labels)
    scored = {(row["id_a"], row["id_b"]) for row in found.scored.to_pylist()}
    dates = {key: day(text) for table in (a, b) for key, text in zip(table["id"], table["created"], strict=True)}
    assert all(0 <= dates[y] - dates[x] <= 90 for x, y in scored)
    assert {(f"a{i}", f"b{i}") for i in range(1, 20, 2)} <= scored
    with pytest.raises(InputError, match="no labelled pair is within the window"):
        link(a, b, window={"created": (0, 90)}, training=[("a0", "b0", True)])


def test_validation_draws_random_pairs_from_the_window():
    """Dates all over a year: random pairs of it are 122 days apart, those 0 to 90 days after, 45 (a little less at the
    end of the year). True matches are 10 apart."""
    a, b = people(250, lambda i: 5 + i % 11)
    free = link(a, b, validate="created")
    bound = link(a, b, validate="created", window={"created": (0, 90)})
    means = [found.stats["details"]["validation"]["mean_of_random_pairs"] for found in (free, bound)]
    x, y = (np.array([day(text) for text in table["created"]]) for table in (a, b))
    apart = (y[None, :] - x[:, None]).ravel()
    inside = apart[(apart >= 0) & (apart <= 90)]
    assert means[1] == pytest.approx(inside.mean(), abs=4.4 * inside.std() / 200_000**0.5)
    assert abs(means[1] - 45) < 4
    assert means[0] > 100
    again = bound.validate("created")
    assert again.random == means[1]
    assert bound.validation["fraction"].to_pylist()[-1] > 0.9


def test_validate_with_a_window():
    """Forty-five days on average of all pairs from 0 to 90 days, if every difference is as likely as any other."""
    rng = np.random.default_rng(2)
    x = rng.uniform(0, 10_000, 3000)
    true = rng.random(3000) < 0.5
    y = x + np.where(true, rng.uniform(0, 20, 3000), rng.uniform(-100, 100, 3000))
    scores = np.where(true, 300.0, 100.0)
    found = validate(scores, (x, y), window=(0, 90), bins=[0, 200, 300])
    assert found.random == pytest.approx(45, abs=1)
    assert found.true == pytest.approx(10, abs=1)
    row = found.table.to_pylist()[0]
    assert row["pairs"] == int(((y - x >= 0) & (y - x <= 90) & ~true).sum())
    assert row["low"] < 0.1


@given(
    x=st.lists(st.integers(0, 9) | st.none(), max_size=6),
    y=st.lists(st.integers(0, 9) | st.none(), max_size=6),
    low=st.integers(-5, 5),
    span=st.integers(0, 5),
)
def test_every_pair_in_the_window_is_drawn_and_no_other(x, y, low, span):
    values = [np.array([np.nan if v is None else v for v in side], float) for side in (x, y)]
    every = {
        (i, j)
        for i, a in enumerate(x)
        for j, b in enumerate(y)
        if a is not None and b is not None and low <= b - a <= low + span
    }
    i, j = random_pairs(*values, (low, low + span), 2000, np.random.default_rng(1))
    assert set(zip(i.tolist(), j.tolist(), strict=True)) == every


def test_pairs_are_equally_likely():
    x, y = np.array([0.0, 0.0, 5.0]), np.array([0.0, 1.0, 2.0, 5.0])
    i, j = random_pairs(x, y, (0, 2), 70_000, np.random.default_rng(3))
    counts = np.unique(4 * i + j, return_counts=True)[1]
    assert len(counts) == 7
    assert (abs(counts - 10_000) < 4.4 * (70_000 * 6 / 49) ** 0.5).all()


def test_wrong_windows_on_the_command_line(typed, tmp_path):
    (tmp_path / "a.csv").write_text("name,created\nAnn,2024-01-01\n")
    for wrong in ("created", "created=90:0", "=0:90", "created=0:x", "created=0:nan"):
        done = typed("link", "a.csv", "a.csv", "--window", wrong, "--out", "found")
        assert done.returncode == 2
        assert "The --window option of link must be COL=LOW:HIGH, such as created=0:90" in done.stderr
    done = typed("link", "a.csv", "--window", "created=0:90", "--out", "found")
    assert "The --window option of link has no effect for one table" in done.stderr


def test_wrong_windows():
    a, b = people(20, lambda i: 5)
    for wrong in (
        {},
        5,
        {"created": 5},
        {"created": (90, 0)},
        {"created": (0, math.nan)},
        {"created": ("x", 1)},
        ["created"],
    ):
        with pytest.raises(ParameterError, match="'window' parameter of link"):
            link(a, b, window=wrong)
    with pytest.raises(ParameterError, match="'window' parameter of link has no effect for one table"):
        link(a, window={"created": (0, 90)})
    with pytest.raises(ColumnError, match="made"):
        link(a, b, window={"made": (0, 90)})
    with pytest.raises(InputError, match="name: a window needs dates or numbers"):
        link(a, b, fields=["created"], window={"name": (0, 90)})
    with pytest.raises(ParameterError, match="'window' parameter of validate"):
        validate([1, 2], [1.0, 2.0], random=3, window=(0, 90))


def test_on_the_command_line(tmp_path, typed):
    a, b = people(40, lambda i: 5 if i % 2 else 200)
    for name, table in (("a.csv", a), ("b.csv", b)):
        csv.write_csv(pa.table(table), tmp_path / name)
    done = typed("link", "a.csv", "b.csv", "--window", "created=0:90", "--out", "found")
    assert done.returncode == 0, done.stderr
    assert "outside the window" in done.stdout + done.stderr
    wrong = typed("link", "a.csv", "b.csv", "--window", "created=0-90", "--out", "other")
    assert wrong.returncode == 2
    assert "COL=LOW:HIGH" in wrong.stderr
