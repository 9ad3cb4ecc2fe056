"""Similarities, levels, values in the wrong field."""

import numpy as np
import pyarrow as pa
import pytest

from likewise.apps.link import comparison
from likewise.apps.link.agreement import ALL_TEXT, EQUAL, LEVELS, STEPS
from likewise.apps.link.comparison import FieldComparer
from likewise.apps.link.evidence import most_evidence
from likewise.apps.link.fields import make_field
from likewise.apps.link.terms import all_codes, joined, of_records, weighted


def field(values, kind, name="x"):
    return make_field(name, pa.chunked_array([pa.array(values)]), kind)


def similarity(x, y, kind, more=()):
    """The similarity of two values of a field, as a pair of records has it."""
    fields = [field([x, y, "a", "b", *more], kind)]
    return float(FieldComparer(fields).compare(np.array([0]), np.array([1]))[0].similarity[0])


def compared(rows, kinds, left, right, texts=True):
    fields = [field([row[place] for row in rows], kind, f"f{place}") for place, kind in enumerate(kinds)]
    records = weighted(of_records(all_codes(fields), joined([one.grams for one in fields]))) if texts else None
    pairs = np.array(left), np.array(right)
    return FieldComparer(fields, records).compare(*pairs), most_evidence(fields, 0, *pairs)


@pytest.mark.parametrize("kind", ["text", "tokens", "name", "address", "phone", "date", "number", "exact"])
def test_identical_and_missing_values(kind):
    values = {"date": "2001-02-03", "phone": "212 555 0100", "number": "12.5"}
    value = values.get(kind, "some words here")
    assert similarity(value, value, kind) == 1.0
    assert np.isnan(similarity(value, "", kind))


def test_names_by_the_points_of_the_chapter():
    assert similarity("jones", "jomes", "name") == pytest.approx(0.84)
    assert similarity("bill", "william", "name") == pytest.approx(0.967, abs=1e-3)
    assert similarity("jones", "smith", "name") == 0.0


def test_dates_with_day_and_month_swapped():
    assert similarity("2001-02-03", "2001-03-02", "date") == pytest.approx(1 - (2 / 16) ** 2)
    assert similarity("2001-02-03", "1955-12-19", "date") < 0.6


def test_numbers_by_the_spread_of_all():
    more = [str(value + 0.5) for value in range(10, 20)]
    near, far = similarity("12.5", "12.6", "number", more), similarity("12.5", "19.5", "number", more)
    assert near > 0.9
    assert far < 0.3


def test_texts_by_rare_terms():
    more = ["sony tv stand", "sony black tv", "sony white radio", "sony blue phone"]
    model = similarity("sony turntable - pslx350h", "sony ps-lx350h belt drive", "text", more)
    brand = similarity("sony turntable - pslx350h", "sony clock radio black", "text", more)
    assert model > 2 * brand


def test_exact_is_all_or_nothing():
    assert similarity("ab1", "ab2", "exact") == 0.0


def test_levels():
    rows = [("ann", "1 a street"), ("ann", "1 b street"), ("", "1 a street"), ("zoe", "9 z road")]
    found, evidence = compared(rows, ["name", "address"], [0, 0, 0, 2], [1, 2, 3, 3])
    name, address, text = found
    assert [one.name for one in found] == ["f0", "f1", ALL_TEXT]
    assert name.level.tolist()[0] == EQUAL
    assert address.level.tolist()[1] == EQUAL
    assert name.level[1] == STEPS + 1
    assert np.isnan(name.similarity[1])
    assert 0 <= address.level[0] < EQUAL
    assert all((one.level < LEVELS).all() for one in found)
    assert (text.level >= 0).all()
    assert np.isnan(name.rarity[2])
    assert name.rarity[0] == pytest.approx(np.log(3 / 2))
    assert (evidence > 0).all()
    assert evidence[1] < evidence[0]


def test_both_missing_says_nothing():
    found, _ = compared([("", "a b c"), ("", "a b c"), ("x", "d e f")], ["name", "text"], [0], [1])
    assert found[0].level.tolist() == [-1]


def test_values_in_the_wrong_field_are_found():
    rows = [("anna", "karlson"), ("karlson", "anna"), ("greta", "holm")]
    found, _ = compared(rows, ["name", "name"], [0, 0], [1, 2])
    assert found[0].level.tolist()[0] == LEVELS - 1
    assert found[0].level.tolist()[1] < EQUAL


def test_the_value_of_a_missing_field_is_found_elsewhere():
    rows = [("los altos 1994", ""), ("los altos", "1994"), ("new york", "1993")]
    found, _ = compared(rows, ["text", "text"], [0, 0], [1, 2])
    assert found[1].level.tolist() == [LEVELS - 1, STEPS + 1]


def test_threads_do_not_change_the_answer(monkeypatch):
    rows = [(f"name{i}", f"{i} some street {i % 7}", f"{i % 5}") for i in range(60)]
    fields = [field([row[p] for row in rows], kind, f"f{p}") for p, kind in enumerate(["name", "address", "text"])]
    left, right = np.triu_indices(60, 1)
    monkeypatch.setattr(comparison, "BATCH", 100)
    one, two = (FieldComparer(fields, None, threads).compare(left, right) for threads in (1, 2))
    for x, y in zip(one, two, strict=True):
        assert np.array_equal(x.similarity, y.similarity, equal_nan=True)
        assert np.array_equal(x.level, y.level)
