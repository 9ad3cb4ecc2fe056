"""Kinds of fields, one spelling, missing values."""

import numpy as np
import pyarrow as pa
import pytest
from hypothesis import given
from hypothesis import strategies as st

from likewise.apps.link import fields
from likewise.apps.link.comparison import as_numbers
from likewise.apps.link.fields import KINDS, fold, guess, make_field, rarity, spelled
from likewise.apps.link.records import read_table
from likewise.apps.link.request import field_kinds
from likewise.errors import ParameterError


def field(values, kind=None, name="x"):
    return make_field(name, pa.chunked_array([pa.array(values)]), kind)


def test_folding():
    assert fold(pa.array(["Ünïcode  ÉTÉ", "A&#228;B &amp; c", " X\tY ", "straße"])).to_pylist() == [
        "unicode ete",
        "aab & c",
        "x y",
        "strasse",
    ]


@given(st.lists(st.text(), min_size=1, max_size=5))
def test_folding_twice_changes_nothing(values):
    plain = [value for value in values if "&" not in value]
    once = fold(pa.array(plain, pa.string()))
    assert fold(once).to_pylist() == once.to_pylist()


@pytest.mark.parametrize(
    ("kind", "value", "expected"),
    [
        ("phone", "(0212) 319-1660", "02123191660"),
        ("date", "1999-3-1", "19990301"),
        ("date", "1.3.1999", "19990301"),
        ("date", "19990301", "19990301"),
        ("number", "$1,250.50", "1250.5"),
        ("number", "no number", ""),
        ("name", "o'hara-smith, j.", "o hara smith j"),
        ("exact", "ab-1/2", "ab 1 2"),
    ],
)
def test_spelling(kind, value, expected):
    assert spelled(pa.array([value]), kind).to_pylist() == [expected]


@pytest.mark.parametrize(
    ("name", "values", "kind"),
    [
        ("a", ["1999-03-01", "2001-12-31", "1950-01-01"], "date"),
        ("a", ["19990301", "20011231"], "date"),
        ("a", ["99990301", "12345678"], "text"),
        ("a", ["212-319-1660", "310/456-0488"], "phone"),
        ("phone", ["2123191660", "3104560488"], "phone"),
        ("code", ["2123191660", "3104560488"], "text"),
        ("price", ["12.50", "399", "7.99"], "number"),
        ("year", ["1999", "2001"], "text"),
        ("who", ["ann lee", "bo diaz"], "name"),
        ("street", ["12 high street"], "address"),
        ("a", ["12 high street", "7b oak ave. suite 4", "160 central park s"], "address"),
        ("a", ["hauptstrasse 12", "am weg 3", "lindenallee 7a", "markt"], "address"),
        ("a", ["12 rue de rivoli", "via roma 3", "calle mayor, 5", "coolsingel 40"], "address"),
        ("a", ["300 gb drive", "12 monkeys", "2 fast 2 furious", "7 samurai", "the way of all flesh"], "text"),
        ("title", ["finding similar items in very large sets"], "text"),
        ("nothing", [], "text"),
    ],
)
def test_guessing(name, values, kind):
    assert guess(name, values) == kind


def test_the_order_of_rows_does_not_change_the_kind():
    """Of 20,000 values, 80 % are names; which are looked at does not depend on where they are."""
    values = [f"ann {'abcdefghij'[i % 10]}{'klmnopqrst'[i // 10 % 10]}" if i % 5 else f"{i} x" for i in range(20_000)]
    kinds = set()
    for seed in range(6):
        dice = np.random.default_rng(seed)
        kinds.add(make_field("who", pa.chunked_array([dice.permutation(np.array(values))])).kind)
    assert len(kinds) == 1


def test_values_that_mean_the_same_are_one():
    made = field(["Ann Lee", "ann  lee", "ANN-LEE", None, "", "N/A", "Bo"], "name")
    assert made.texts.to_pylist() == ["ann lee", "bo"]
    assert made.codes.tolist() == [0, 0, 0, -1, -1, -1, 1]
    assert made.counts.tolist() == [3, 1]
    assert made.present == 4


def test_numbers_of_any_type_are_read():
    assert field([1.0, 2.0, None, float("nan")]).codes.tolist() == [0, 1, -1, -1]
    assert field([1, 1, 2]).texts.to_pylist() == ["1", "2"]
    assert field([True, False, True]).codes.tolist() == [0, 1, 0]


def test_all_missing():
    made = field([None, "", "nan"], "text")
    assert made.texts.to_pylist() == []
    assert made.codes.tolist() == [-1, -1, -1]


def test_rarity_is_the_logarithm_of_one_in_how_many():
    assert np.allclose(rarity(field(["a", "a", "a", "b"], "text")), np.log([4 / 3, 4]))


def test_numbers_over_orders_of_magnitude_are_logarithms():
    assert np.allclose(as_numbers(field(["1.0", "2.0", "4000.5"], "number")), np.log([1, 2, 4000.5]))
    assert np.allclose(as_numbers(field(["1.5", "2.0", "3.5"], "number")), [1.5, 2, 3.5])


def test_long_texts_are_compared_by_terms():
    assert field(["finding similar items", "in large sets"], "text").long
    assert not field(["20742", "20743"], "text").long


def test_wanted_fields():
    assert field_kinds({"a": "name", "b": None}) == {"a": "name", "b": None}
    assert field_kinds(["x:phone", "y"]) == {"x": "phone", "y": None}
    assert field_kinds(None) is None
    for wrong in ("name", [1], [], ["name:colour"], {"name": "colour"}):
        with pytest.raises(ParameterError, match="'fields' parameter of link"):
            field_kinds(wrong)
    with pytest.raises(ParameterError, match=KINDS[0]):
        field(["a"], "colour")


@given(st.lists(st.text(st.characters(exclude_categories=["Cs"]) | st.sampled_from("aB9 .&-\t\x1f"), max_size=9)))
def test_values_of_the_kernel_are_written_as_all_others_are(values):
    texts = pa.array(values, pa.string())
    assert fold(texts).to_pylist() == fields._folded(texts).to_pylist()
    once = fold(texts)
    assert spelled(once, "text").to_pylist() == fields._only_words(once).to_pylist()


def test_views_are_read_as_plain_texts_and_bytes():
    """Arrow takes no rows of views, and what is read here is also explained, asked about and shown on a page."""
    names = [f"name {i}" for i in range(6)]
    columns = {"name": pa.array(names, pa.string_view()), "raw": pa.array([b"x"] * 6, pa.binary_view())}
    table, _, _ = read_table(pa.table(columns), "a")
    assert table.schema.types == [pa.large_string(), pa.large_binary()]
    assert table.take([5])["name"].to_pylist() == names[5:]
