"""Columns of two tables that hold the same under different names."""

import numpy as np
import pyarrow as pa
import pytest
from made_people import two_tables

from likewise import link
from likewise.apps.link.columns import alike_columns, date_parts, joined_columns, shared_words
from likewise.errors import ColumnError, ParameterError

RENAMED = {"name": "person", "street": "address", "city": "place", "phone": "contact", "born": "birthday"}
STARTS, ENDS = ["ba", "do", "fi", "ke", "lu", "mo", "nu", "pa", "ri", "so"], ["lan", "mer", "tis", "vok", "zun"]
WORDS = [f"{start}{end}" for start in STARTS for end in ENDS]


def titles(count, seed, words=3):
    chance = np.random.default_rng(seed)
    return [" ".join(WORDS[i] for i in chance.integers(0, len(WORDS), words)) for _ in range(count)]


def columns(table):
    return {name: pa.chunked_array([pa.array(values, pa.string())]) for name, values in table.items()}


def matches(found):
    return set(zip(found.matches["id_a"].to_pylist(), found.matches["id_b"].to_pylist(), strict=True))


def made(count=200):
    a, b, _ = two_tables(count)
    names = list(a[0])
    sides = [{name: [row[name] for row in rows] for name in names} for rows in (a, b)]
    other = {RENAMED.get(name, f"{name}_2"): values for name, values in sides[1].items()}
    return sides[0], sides[1], other


def test_columns_are_found_again_under_other_names():
    first, _, other = made()
    expected = set(zip(first, other, strict=True))
    found = alike_columns(columns(first), columns(other))
    assert {(pair.name, pair.other) for pair in found} <= expected
    assert len([pair for pair in found if pair.strong]) >= len(expected) - 1


def test_renamed_columns_change_nothing_else():
    first, second, other = made()
    plain = link(first, second, threads=1)
    again = link(first, other, threads=1, columns=dict(zip(first, other, strict=True)))
    assert again.matches.equals(plain.matches)
    assert again.stats["details"]["fields"] == plain.stats["details"]["fields"]


def test_what_was_compared_is_said():
    a = {"title": titles(60, 1), "cast": titles(60, 2, 2)}
    b = {"title": a["title"], "actors": a["cast"]}
    found = link(a, b, threads=1)
    assert found.stats["details"]["columns"] == {"cast": {"b": "actors", "shared": 1.0}}
    assert any(
        "compared 'cast' of a with 'actors' of b: they share 1.00 of their words" in n for n in found.stats["notes"]
    )
    assert matches(found) == {(i, i) for i in range(60)}


def test_a_weak_likeness_is_only_suggested():
    a = {"title": titles(300, 1), "topic": [f"word{i}" for i in range(300)]}
    b = {"title": a["title"], "area": [f"word{i}" if i < 60 else f"other{i}" for i in range(300)]}
    found = link(a, b, threads=1)
    assert list(found.stats["details"]["fields"]) == ["title"]
    assert found.stats["notes"][0] == (
        "not compared 'topic' of a with 'area' of b: they share 0.20 of their words; --map topic=area compares them"
    )
    asked = link(a, b, columns={"topic": "area"}, threads=1)
    assert "topic" in asked.stats["details"]["columns"]


def test_the_only_column_of_each_table_is_compared_if_they_share_a_word():
    names = titles(60, 1)
    a, b = {"venue": names}, {"place": [name.replace(" ", " x") for name in names]}
    found = link(a, b, threads=1)
    assert list(found.stats["details"]["fields"]) == ["venue"]
    assert found.stats["notes"][0] == "compared 'venue' of a with 'place' of b: neither table has another column"
    assert not any("left out" in note for note in found.stats["notes"])


def test_a_weak_likeness_is_compared_where_there_is_nothing_else():
    a = {"topic": [f"word{i}" for i in range(300)], "count": [str(i % 7) for i in range(300)]}
    b = {"area": [f"word{i}" if i < 60 else f"other{i}" for i in range(300)]}
    found = link(a, b, threads=1)
    assert list(found.stats["details"]["fields"]) == ["topic"]
    assert found.stats["notes"][0].startswith("compared 'topic' of a with 'area' of b: they share 0.20 of their words")


def test_names_that_differ_in_punctuation_are_the_same():
    a = {"Title": titles(40, 1), "Phone Number": [f"555-01{i:02}" for i in range(40)]}
    b = {"title": titles(40, 1), "phone_number": a["Phone Number"]}
    found = link(a, b, threads=1)
    assert list(found.stats["details"]["fields"]) == ["Title", "Phone Number"]
    assert found.stats["details"]["columns"] == {"Title": {"b": "title"}, "Phone Number": {"b": "phone_number"}}


def test_a_column_can_be_left_without_counterpart():
    a = {"title": titles(60, 1), "cast": titles(60, 2, 2)}
    b = {"title": a["title"], "actors": a["cast"]}
    found = link(a, b, columns={"cast": None}, threads=1)
    assert list(found.stats["details"]["fields"]) == ["title"]
    assert "columns" not in found.stats["details"]


def test_given_columns_go_before_equal_names():
    a = {"title": titles(40, 1), "note": titles(40, 2)}
    b = {"title": titles(40, 2), "text": titles(40, 1)}
    found = link(a, b, columns={"title": "text", "note": "title"}, threads=1)
    assert matches(found) == {(i, i) for i in range(40)}


def test_name_parts_are_one_name():
    given, sur = titles(80, 5, 1), titles(80, 6, 1)
    born = [f"19{50 + i % 40}-{1 + i % 12:02}-{1 + i % 28:02}" for i in range(80)]
    a = {"name": [f"{g} {s}" for g, s in zip(given, sur, strict=True)], "born": born}
    b = {"first": given, "last": sur, "born": born}
    for asked in ({"name": "first+last"}, None):
        found = link(a, b, columns=asked, threads=1)
        assert found.stats["details"]["columns"]["name"]["b"] == "first+last"
        assert matches(found) == {(i, i) for i in range(80)}


def test_a_date_in_three_columns_is_found():
    chance = np.random.default_rng(1)
    days = [(int(y), int(m), int(d)) for y, m, d in chance.integers((1950, 1, 1), (2000, 13, 29), (90, 3))]
    a = {"title": titles(90, 1), "born": [f"{y}-{m:02}-{d:02}" for y, m, d in days]}
    b = {
        "title": a["title"],
        "day": [d for *_, d in days],
        "month": [m for _, m, _ in days],
        "year": [y for y, *_ in days],
    }
    found = link(a, b, threads=1)
    assert found.stats["details"]["columns"]["born"] == {"b": "day+month+year", "shared": 1.0}
    assert found.stats["details"]["fields"]["born"] == "date"


def test_parts_of_dates():
    parts = {"y": ["1999", "2001"], "m": ["7", "12"], "d": ["30", "1"], "n": ["ann", "bo"]}
    arrays = {name: pa.chunked_array([values]) for name, values in parts.items()}
    assert date_parts([arrays[name] for name in "dmy"]) == [2, 1, 0]
    assert date_parts([arrays[name] for name in "mdy"]) == [2, 0, 1]
    assert date_parts([arrays[name] for name in "ymn"]) is None
    assert joined_columns([arrays["n"], arrays["y"]]).to_pylist() == ["ann 1999", "bo 2001"]
    missing = pa.chunked_array([pa.array([None, "3"])])
    assert joined_columns([arrays["y"], missing, arrays["d"]]).to_pylist() == [None, "2001-03-01"]


def test_shared_words_is_symmetric_and_one_for_the_same():
    chance = np.random.default_rng(2)
    x = np.unique(chance.integers(0, 500, 200).astype(np.uint64)), None
    x = (x[0], chance.integers(1, 9, len(x[0])))
    y = (x[0] + np.uint64(50), x[1][::-1])
    assert shared_words(x, x) == pytest.approx(1)
    assert shared_words(x, y) == pytest.approx(shared_words(y, x))
    naive = sum(min(dict(zip(*x)).get(w, 0), c) for w, c in zip(*y)) / np.sqrt(x[1].sum() * y[1].sum())  # noqa: B905
    assert shared_words(x, y) == pytest.approx(naive)


def test_a_column_that_is_not_there_is_named():
    a, b = {"title": titles(9, 1), "cast": titles(9, 2)}, {"title": titles(9, 1), "actors": titles(9, 2)}
    with pytest.raises(ColumnError, match="no column 'crew'; the columns are: title, cast"):
        link(a, b, columns={"crew": "actors"})
    with pytest.raises(ColumnError, match="no column 'players'; the columns are: title, actors"):
        link(a, b, columns={"cast": "players"})
    with pytest.raises(ParameterError, match=r"without a column twice \('actors'\)"):
        link(a, b, columns={"cast": "actors", "title": "actors"})
    with pytest.raises(ParameterError, match="no effect for one table"):
        link(a, columns={"cast": "actors"})
    for wrong in ({}, "cast=actors", {"cast": 3}, {1: "cast"}):
        with pytest.raises(ParameterError, match="a mapping of columns"):
            link(a, b, columns=wrong)


def test_no_column_in_common_is_an_error_that_says_what_to_do():
    a = {"x": [str(i) for i in range(9)]}
    b = {"y": [chr(97 + i) * 3 for i in range(9)]}
    with pytest.raises(ColumnError, match=r"no column to compare .*--map"):
        link(a, b)


def test_validation_and_windows_follow_the_names():
    count = 60
    days = np.random.default_rng(1).integers(0, 300, count)
    a = {"title": titles(count, 1), "bought": (np.datetime64("2024-01-01") + days).astype(str).tolist()}
    b = {"title": a["title"], "registered": (np.datetime64("2024-01-03") + days).astype(str).tolist()}
    found = link(a, b, columns={"bought": "registered"}, window={"bought": (0, 5)}, validate="bought", threads=1)
    assert matches(found) == {(i, i) for i in range(count)}
    assert list(found.stats["details"]["fields"]) == ["title"]
