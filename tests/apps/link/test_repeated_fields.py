"""Columns that repeat others are left out, and change nothing."""

from __future__ import annotations

import numpy as np
import pyarrow as pa
import pytest
from made_people import two_tables

from likewise import link
from likewise.apps.link.fields import make_field
from likewise.apps.link.repeated_fields import repeated

Columns = dict[str, list[str | None]]


def people(count: int = 250) -> list[Columns]:
    a, b, _ = two_tables(count)
    return [{name: [row[name] for row in rows] for name in rows[0]} for rows in (a, b)]


def parted(words: str | None) -> str | None:
    return None if not words else "".join(word[0] for word in words.split()) if " " in words else words[:3]


DERIVED = {
    "copy": lambda row: row["address"],
    "joined": lambda row: " ".join(filter(None, (row["given"], row["surname"]))) or None,
    "joined the other way": lambda row: ", ".join(filter(None, (row["surname"], row["given"]))) or None,
    "abbreviated": lambda row: parted(row["address"]),
    "in capitals": lambda row: (row["surname"] or "").upper() or None,
    "first word": lambda row: (row["address"] or " ").split(" ")[0] or None,
}


def rows_of(side: Columns) -> list[dict[str, str | None]]:
    return [dict(zip(side, values, strict=True)) for values in zip(*side.values(), strict=True)]


def matches(found):
    return set(zip(found.matches["id_a"].to_pylist(), found.matches["id_b"].to_pylist(), strict=True))


def fields_of(columns: Columns):
    return [make_field(name, pa.chunked_array([pa.array(values, pa.string())])) for name, values in columns.items()]


@pytest.fixture(scope="module", params=["two tables", "one table"])
def plain(request):
    sides = people(150)
    if request.param == "one table":
        sides = [{name: sides[0][name] + sides[1][name] for name in sides[0]}]
    return sides, link(*sides, threads=1)


@pytest.mark.each_value
@pytest.mark.parametrize("derived", DERIVED)
def test_a_column_made_of_others_changes_nothing(derived, plain):
    sides, expected = plain
    more = [{**side, "derived": [DERIVED[derived](row) for row in rows_of(side)]} for side in sides]
    found = link(*more, threads=1)
    assert any(note.startswith("derived: repeats ") for note in found.stats["notes"])
    assert found.stats["details"]["fields"] == expected.stats["details"]["fields"]
    assert matches(found) == matches(expected)


def test_a_repeated_field_counts_once_even_if_it_is_named_but_not_if_it_has_a_weight():
    first, second = ({**side, "again": side["surname"]} for side in people(60))
    fields = ["given", "surname", "again"]
    assert list(link(first, second, fields=fields, threads=1).stats["details"]["fields"]) == fields[:2]
    weighted = link(first, second, fields=fields, weights={"again": 2.0}, threads=1)
    assert list(weighted.stats["details"]["fields"]) == fields


def test_the_parts_of_a_date_stay_and_the_date_goes():
    dice = np.random.default_rng(6)
    parts = {
        "year": dice.integers(1930, 2010, 200),
        "month": dice.integers(1, 13, 200),
        "day": dice.integers(1, 29, 200),
    }
    born = [f"{y}-{m:02}-{d:02}" for y, m, d in zip(*parts.values(), strict=True)]
    fields = fields_of({**{name: list(map(str, some)) for name, some in parts.items()}, "born": born})
    assert repeated(fields, 0) == {"born": "repeats year, month, day"}


def test_joined_columns_go_and_their_parts_stay():
    given, family = ([f"{name}{place % 17}" for place in range(100)] for name in ("ann", "lee"))
    whole = [f"{one} {other}" for one, other in zip(given, family, strict=True)]
    fields = fields_of({"full": whole, "given": given, "family": family})
    assert repeated(fields, 0) == {"full": "repeats given, family"}


def test_a_heading_that_a_long_text_repeats_stays():
    dice = np.random.default_rng(3)
    titles = [f"item{place} {dice.integers(0, 50)}" for place in range(100)]
    texts = [
        f"{dice.integers(0, 9)} the {title} of the {' '.join(f'x{dice.integers(0, 99)}' for _ in range(9))}"
        for title in titles
    ]
    assert repeated(fields_of({"title": titles, "text": texts}), 0) == {}


def test_independent_columns_of_few_values_repeat_nothing():
    dice = np.random.default_rng(4)
    few = {name: [str(value) for value in dice.integers(0, 2, 300)] for name in ("one", "two", "three")}
    assert repeated(fields_of(few), 0) == {}


def test_what_repeats_in_one_table_alone_stays():
    values = [f"w{place}" for place in range(80)]
    other = [f"v{place}" for place in range(80)]
    fields = fields_of({"a": values + values, "b": values + other})
    assert repeated(fields, 80) == {}
    assert repeated(fields_of({"a": values, "b": values}), 40) == {"b": "repeats a"}
