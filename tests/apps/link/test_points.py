"""Points of fields and scores of records, against the plain definition of the edit distance."""

from __future__ import annotations

import datetime
import math

import numpy as np
import pyarrow as pa
import pytest
from hypothesis import given
from hypothesis import strategies as st

from likewise.apps.link.points import KINDS, field_points, kinds_of, pair_points, penalised, score, score_pairs, total
from likewise.apps.link.synonyms import Synonyms
from likewise.errors import ColumnError, ParameterError

NONE = Synonyms()
words = st.text(alphabet="abcé'. BX", max_size=8)
values = st.one_of(st.none(), words, st.sampled_from(["Bill", "William Jones", "12 Main St", "2001-02-03", "7"]))


def edits(x: str, y: str) -> int:
    """Insertions and deletions, by the longest common subsequence."""
    best = [[0] * (len(y) + 1) for _ in range(len(x) + 1)]
    for i, a in enumerate(x):
        for j, b in enumerate(y):
            best[i + 1][j + 1] = best[i][j] + 1 if a == b else max(best[i][j + 1], best[i + 1][j])
    return len(x) + len(y) - 2 * best[-1][-1]


@given(st.text(alphabet="abc", min_size=1, max_size=12), st.text(alphabet="abc", min_size=1, max_size=12))
def test_texts_lose_the_square_of_their_edits(x: str, y: str) -> None:
    share = 2 * edits(x, y) / (len(x) + len(y))
    assert field_points(x, y, nicknames=NONE) == pytest.approx(100 * max(0, 1 - share**2))


@pytest.mark.parametrize("letters", [4, 10, 31])
def test_twice_the_edits_cost_four_times_as_much(letters: int) -> None:
    few, more = penalised([1, 2], letters)
    assert 100 - more == pytest.approx(min(100, 4 * (100 - few)))


@given(values, values, st.sampled_from(KINDS))
def test_points_are_the_same_in_both_directions_and_in_range(x: object, y: object, kind: str) -> None:
    points = field_points(x, y, kind)
    assert math.isnan(points) or 0 <= points <= 100
    assert field_points(y, x, kind) == pytest.approx(points, nan_ok=True)


@given(values, st.sampled_from(KINDS))
def test_a_value_agrees_with_itself(x: object, kind: str) -> None:
    points = field_points(x, x, kind)
    assert math.isnan(points) or points == 100


@given(st.lists(st.tuples(values, values), max_size=12), st.sampled_from(KINDS))
def test_many_pairs_at_once_are_the_pairs_one_by_one(pairs: list[tuple[object, object]], kind: str) -> None:
    xs, ys = [x for x, _ in pairs], [y for _, y in pairs]
    alone = [field_points(x, y, kind) for x, y in pairs]
    np.testing.assert_allclose(pair_points(xs, ys, kind), alone)
    if pairs:
        np.testing.assert_allclose(pair_points(pa.array(xs, pa.string()), pa.array(ys, pa.string()), kind), alone)


@pytest.mark.parametrize("missing", [None, "", "  ", "-", float("nan")])
@pytest.mark.parametrize("kind", ["text", "name", "address", "phone", "number"])
def test_missing_values_have_no_points(missing: object, kind: str) -> None:
    assert math.isnan(field_points(missing, "7", kind))
    assert math.isnan(field_points("7", missing, kind))


def test_a_table_only_ever_helps() -> None:
    table = Synonyms([("st", "street"), ("st", "saint"), ("usa", "united states of america")])
    for x, y, steps in [
        ("12 main st", "12 main street", 1),
        ("st john st", "saint john street", 2),
        ("st john st", "st john street", 1),
        ("texas usa", "texas united states of america", 1),
        ("united states of america", "usa", 1),
        ("st x", "street y", 1 + 2),
        ("street st", "st street", 6),
    ]:
        letters = len(x) + len(y)
        assert field_points(x, y, nicknames=table) == pytest.approx(float(penalised(min(steps, edits(x, y)), letters)))
        assert field_points(x, y, nicknames=table) >= field_points(x, y, nicknames=NONE)


def test_names() -> None:
    assert field_points("Bill", "William", "name") == pytest.approx(float(penalised(1, 11)))
    assert field_points("Jones, Robert", "Robert Jones", "name") == pytest.approx(float(penalised(1, 24)))
    assert field_points("Jones, Bob", "Robert Jones", "name") == pytest.approx(float(penalised(2, 21)))
    assert field_points("J Smith", "John Smith", "name") == pytest.approx(float(penalised(2, 17)))
    assert field_points("J", "John", "name") == pytest.approx(float(penalised(2, 5)))
    assert field_points("Bill", "William", "name", NONE) == pytest.approx(float(penalised(5, 11)))
    assert field_points("Bill", "William", "text") == pytest.approx(float(penalised(5, 11))), "nicknames are for names"


def test_phones() -> None:
    assert field_points("(555) 010-0199", "555.010.0199", "phone") == 100
    assert field_points("212 555 0100", "555-0100", "phone") == pytest.approx(float(penalised(1, 17)))
    assert field_points("5550100", "5550190", "phone") == pytest.approx(float(penalised(2, 14)))
    assert field_points("5550100", "0015550", "phone") == 0, "digits count where they stand"
    assert field_points(5550100.0, "5550100", "phone") == 100


def test_dates() -> None:
    day = datetime.date(1999, 2, 11)
    for other in ("1999-02-11", "19990211", "1999/2/11", "11.2.1999", datetime.datetime(1999, 2, 11, 5), 19990211):
        assert field_points(day, other, "date") == 100, other
    assert field_points(day, "1999-11-02", "date") == pytest.approx(float(penalised(1, 16))), "day and month swapped"
    assert field_points(day, "1999-02-12", "date") == pytest.approx(float(penalised(2, 16)))
    assert field_points(day, "2003-07-24", "date") == 0


def test_numbers() -> None:
    assert field_points("$1,100", 1100, "number") == 100
    assert field_points(90, 110, "number") == pytest.approx(float(penalised(20, 200)))
    assert field_points(1, -1, "number") == 0
    assert field_points(0, 0.0, "number") == 100
    assert math.isnan(field_points("unknown", 3, "number"))


def test_scores_add_up() -> None:
    a = {"name": ["Ann Lee", "Bob Ray"], "phone": ["5550100", None], "more": [1, 2]}
    b = {"name": ["Ann Lee", "Robert Ray"], "phone": ["5550190", "5550100"], "more": [1, 2]}
    kinds = {"name": "name", "phone": "phone"}
    together, points = score_pairs(a, b, kinds, weights={"phone": 0.5}, missing=20)
    assert list(points) == ["name", "phone"]
    assert math.isnan(points["phone"][1])
    for row in range(2):
        records = [{name: column[row] for name, column in side.items()} for side in (a, b)]
        alone = score(*records, kinds, weights={"phone": 0.5}, missing=20)
        phone = points["phone"][row]
        assert together[row] == pytest.approx(alone)
        assert alone == pytest.approx(points["name"][row] + 0.5 * (20 if math.isnan(phone) else phone))
    tables = [pa.table(side) for side in (a, b)]
    np.testing.assert_array_equal(score_pairs(*tables, kinds)[0], score_pairs(a, b, kinds)[0])
    assert kinds_of(["x"]) == {"x": "text"}


def test_wrong_calls_are_explained() -> None:
    with pytest.raises(ParameterError, match="'text', 'name'"):
        field_points("a", "b", "colour")
    with pytest.raises(ParameterError, match="2 values on one side, 1 on the other"):
        pair_points(["a", "b"], ["a"])
    with pytest.raises(ColumnError, match="no column 'phone'; the columns are: name"):
        score({"name": "x"}, {"name": "x"}, ["name", "phone"])
    with pytest.raises(ParameterError, match=r"of fields that are compared \(name\)"):
        score({"name": "x"}, {"name": "x"}, ["name"], weights={"phone": 2})
    with pytest.raises(ParameterError, match="not negative"):
        score({"name": "x"}, {"name": "x"}, ["name"], weights={"name": -1})
    with pytest.raises(ParameterError, match=r"in \[0, 100\]"):
        score({"name": "x"}, {"name": "x"}, ["name"], missing=101)
    with pytest.raises(ParameterError, match="one or more fields"):
        total({})
