"""Values that mean no value: one meaning, however a column writes them; unused ones are noted, wrong ones refused."""

import json

import pyarrow as pa
import pytest
from made_people import two_tables

from likewise.apps.link import link
from likewise.apps.link.fields import MissingValues, make_field
from likewise.errors import ParameterError


def absent(values, missing, kind=None):
    """Which values are missing in a field of these values."""
    field = make_field("x", pa.chunked_array([pa.array(values)]), kind, MissingValues(tuple(missing)))
    return [value for value, code in zip(values, field.codes.tolist(), strict=True) if code < 0]


@pytest.mark.parametrize(
    ("kind", "given", "values", "gone"),
    [
        ("number", "0.0", ["0", "0.00", "$0.0", "0.5", "10"], ["0", "0.00", "$0.0"]),
        ("date", "1900-01-01", ["1.1.1900", "19000101", "1900-01-01", "1900-01-02"], 3),
        ("name", "TEST user", ["test  USER", "Test, User", "tést user", "test"], 3),
        ("phone", "000-0000000", ["(000) 0000000", "0000000000", "000 1234567"], 2),
        ("text", "0.0", ["0.0", "0", "0.00"], ["0.0"]),
        (None, "0", ["0", "5", "17"], ["0"]),
        (None, "0.0", [0.0, 5.0, 17.0], [0.0]),
        (None, "-1", [-1, 5, 17], [-1]),
        ("number", "none given", ["none given", "1", "2"], ["none given"]),
    ],
)
def test_a_value_is_missing_however_it_is_written(kind, given, values, gone):
    assert absent(values, [], kind) in ([], ["none given"])
    assert absent(values, [given], kind) == (values[:gone] if isinstance(gone, int) else gone)


def test_the_usual_ones_stay_missing():
    assert absent(["n/a", "Unknown", "", "x", "none", "y"], ["x"]) == ["n/a", "Unknown", "", "x", "none"]


@pytest.fixture(scope="module")
def tables():
    """People of whom a quarter have no date and no phone, written as placeholders."""
    a, b, _ = two_tables(150, seed=5)
    for place, row in enumerate([*a, *b]):
        if place % 4 == 0:
            row |= {"born": "01.01.1900" if place % 8 else "1900-01-01", "phone": "0000-000000"}
    return pa.Table.from_pylist(a), pa.Table.from_pylist(b)


def emptied(table):
    columns = {
        "born": [None if "1900" in one else one for one in table["born"].to_pylist()],
        "phone": [None if one == "0000-000000" else one for one in table["phone"].to_pylist()],
    }
    return pa.table({name: columns.get(name, table[name]) for name in table.column_names})


def test_placeholders_are_as_good_as_empty_cells(tables, tmp_path):
    fields = ["given:name", "surname:name", "born:date", "address:address", "phone:phone"]
    missing = ["1900-01-01", "0000 000000", "nobody"]
    said = link(*tables, fields=fields, missing=missing, out=tmp_path / "out")
    assert said.matches.equals(link(*map(emptied, tables), fields=fields).matches)
    assert not said.matches.equals(link(*tables, fields=fields).matches)
    stats = json.loads((tmp_path / "out" / "run.json").read_text())
    assert stats["parameters"]["missing"] == missing
    told = "nobody: no column that is compared has this value, given as missing"
    assert [note for note in stats["notes"] if "given as missing" in note] == [told]


def test_columns_are_not_paired_by_placeholders():
    """Two columns that share only a placeholder hold different things."""
    chance = range(60)
    a = pa.table(
        {"name": [f"ann{i} lee{i}" for i in chance], "code": ["zz top"] * 40 + [f"k{i} m{i}" for i in chance][:20]}
    )
    b = pa.table(
        {"name": [f"ann{i} lee{i}" for i in chance], "other": ["zz top"] * 40 + [f"q{i} r{i}" for i in chance][:20]}
    )
    assert any("'code' of a with 'other' of b" in note for note in link(a, b).stats["notes"])
    assert not any("'code' of a with 'other' of b" in note for note in link(a, b, missing=["ZZ top"]).stats["notes"])


@pytest.mark.parametrize("wrong", ["0.0", ["0.0", 1], [""], [" "], 5])
def test_wrong_values_are_refused(tables, wrong):
    with pytest.raises(ParameterError, match=r"The 'missing' parameter of link must be a list of texts"):
        link(*tables, missing=wrong)
