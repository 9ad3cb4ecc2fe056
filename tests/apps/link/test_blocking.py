"""Which pairs become candidates."""

import numpy as np
import pyarrow as pa
import pytest
from made_people import two_tables

from likewise.apps.link.blocking import NEAREST_BY_TEXT, RecordPairs, block, completeness
from likewise.apps.link.equal_keys import LIMIT
from likewise.apps.link.fields import make_field
from likewise.apps.link.terms import term_counts


def blocked(tables, large=False):
    rows = [row for table in tables for row in table]
    names = list(rows[0])
    fields = [make_field(name, pa.chunked_array([pa.array([row[name] for row in rows])])) for name in names]
    border = len(tables[0]) if len(tables) > 1 else 0
    return block(fields, border, most=0) if large else block(fields, border)


def pairs_of(candidates):
    return set(zip(candidates.left.tolist(), candidates.right.tolist(), strict=True))


def test_pairs_are_sorted_different_and_between_the_tables():
    a, b, _ = two_tables(60)
    found, _ = blocked([a, b])
    assert (found.left < 60).all()
    assert (found.right >= 60).all()
    keys = found.left * 120 + found.right
    assert (np.diff(keys) > 0).all()
    assert len(found) < 60 * 60


@pytest.mark.parametrize("large", [False, True])
def test_identical_fields_meet(large):
    rows = [{"x": f"value{i // 2}", "y": f"other{i // 2}", "z": f"third{i}"} for i in range(40)]
    found, _ = blocked([rows], large)
    assert {(i, i + 1) for i in range(0, 40, 2)} <= pairs_of(found)


def test_records_that_differ_in_every_field_meet():
    a, b, truth = two_tables(200, both=1.0, errors=5)
    found, _ = blocked([a, b])
    identical = {(i, j) for i, j in truth if any(a[i][name] == b[j][name] for name in a[0])}
    assert not identical
    wanted = np.array([(i, 200 + j) for i, j in truth])
    assert completeness(found, wanted, 400) > 0.97


def test_bands_find_records_with_errors_in_most_fields():
    """Typing errors in three of five fields leave more than half of the pieces in common."""
    a, b, truth = two_tables(400, both=1.0, errors=3)
    found, rows = blocked([a, b], large=True)
    assert rows is None
    assert any("MinHash" in note for note in found.notes)
    assert completeness(found, np.array([(i, 400 + j) for i, j in truth]), 800) > 0.95


def test_large_blocks_are_cut_by_another_field():
    size = LIMIT + 1
    rows = [{"x": "same", "y": f"pair {i // 2} of many"} for i in range(2 * size)]
    found, _ = blocked([rows])
    assert "x: values shared by more than 12 records are blocked together with another field" in found.notes
    assert {(i, i + 1) for i in range(0, 2 * size, 2)} <= pairs_of(found)


def test_completeness_counts_true_pairs():
    found = RecordPairs(np.array([0, 1]), np.array([2, 3]), {}, [])
    assert completeness(found, np.array([[0, 2], [1, 3]]), 4) == 1.0
    assert completeness(found, np.array([[0, 2], [0, 3]]), 4) == 0.5
    assert completeness(found, np.zeros((0, 2), np.int64), 4) == 1.0


def test_nothing_but_missing_values_meets_nobody():
    rows = [{"x": "", "y": None}, {"x": "", "y": None}, {"x": "a", "y": "b"}, {"x": "c", "y": "d"}]
    found, _ = blocked([rows])
    assert (0, 1) not in pairs_of(found)


def products(count, seed=1):
    """Return two tables of titles, one word of which is changed, with long descriptions that have nothing in common."""
    chance = np.random.default_rng(seed)
    words = [f"word{i}" for i in range(3 * count)]

    def some(number):
        return [words[i] for i in chance.integers(0, len(words), number)]

    titles = [some(5) for _ in range(count)]
    first = [{"title": " ".join(title), "description": " ".join(some(60))} for title in titles]
    second = [{"title": " ".join([*title[:4], *some(1)]), "description": " ".join(some(60))} for title in titles]
    return first, second


@pytest.mark.parametrize("large", [False, True])
def test_a_long_text_does_not_hide_a_short_one(large):
    first, second = products(300)
    rows = [*first, *second]
    fields = [make_field(name, pa.chunked_array([pa.array([row[name] for row in rows])])) for name in rows[0]]
    whole = sum(int(term_counts(field.folded)[field.codes].sum()) for field in fields)
    found, _ = block(fields, 300, most=whole - 1 if large else whole)
    assert ("bands" in found.ways) == large
    truth = np.stack([np.arange(300), np.arange(300) + 300], axis=1)
    assert completeness(found, truth, 600) == 1.0
    assert found.ways["each_text"] <= 2 * 2 * 600 * NEAREST_BY_TEXT


def test_one_text_with_too_many_terms_is_searched_as_well():
    first, second = products(200)
    rows = [*first, *second]
    field = make_field("title", pa.chunked_array([pa.array([row["title"] for row in rows])]))
    whole = int(term_counts(field.folded)[field.codes].sum())
    found, terms = block([field], 200, most=whole - 1)
    assert terms is None
    assert completeness(found, np.stack([np.arange(200), np.arange(200) + 200], axis=1), 400) == 1.0
