"""Which pairs become candidates."""

import numpy as np
import pyarrow as pa
import pytest
from made_people import two_tables

from likewise.apps.link.blocking import RecordPairs, block, completeness
from likewise.apps.link.equal_keys import LIMIT
from likewise.apps.link.fields import make_field


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
