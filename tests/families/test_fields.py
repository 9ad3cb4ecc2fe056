"""Records that agree in whole fields: which values are the same, which are missing."""

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from likewise.errors import InputError, ParameterError
from likewise.families.fields import SameField

VALUES = st.sampled_from(["a", "b", "A ", " ", "", None, 1, 1.0, True, float("nan"), ("x", 2)])


def test_each_field_is_a_function_and_then_come_fields_at_random():
    same = SameField(["a", "b", "c"], seed=4)
    choices = same.choices(3000)
    assert choices[:3].tolist() == [0, 1, 2]
    assert np.bincount(choices[3:]) / 2997 == pytest.approx([1 / 3] * 3, abs=4.4 * (2 / 9 / 2997) ** 0.5)
    assert (SameField(["a", "b", "c"], seed=5).choices(3000) != choices).any()


@given(a=st.tuples(VALUES, VALUES), b=st.tuples(VALUES, VALUES))
def test_fields_agree_by_the_rule(a, b):
    """Equal in Python, text without case and blanks; what is missing agrees with nothing."""

    def plain(value):
        if isinstance(value, str):
            value = " ".join(value.casefold().split()) or None
        return None if value is None or value != value else value

    x, y = SameField([0, 1]).hashes([a, b], 2)
    expected = [plain(p) is not None and plain(p) == plain(q) for p, q in zip(a, b, strict=True)]
    assert ((x == y) & (x != 0)).tolist() == expected
    found = SameField([0, 1]).distances([a, b], np.array([0]), np.array([1]))
    assert found.tolist() == [1 - sum(expected) / 2]


def test_text_as_it_is():
    records = [{"name": "Ann Lee"}, {"name": "ann  lee"}, {"name": "Ann Lee"}, {"name": "  "}]
    exact = SameField(["name"], normalize=False).hashes(records, 1)[:, 0]
    assert exact[0] == exact[2] != exact[1]
    assert exact[3] == 0
    assert len(set(SameField(["name"]).hashes(records[:3], 1)[:, 0])) == 1


def test_mappings_tuples_and_lists():
    by_name = SameField(["name", "city"]).hashes([{"city": "Rome", "name": "Ann", "age": 3}], 2)
    by_place = SameField([1, 0]).hashes([("Rome", "Ann", 3)], 2)
    assert (by_name == by_place).all()
    assert (SameField([-2, 0]).hashes([["Rome", "Ann", 3]], 2) == by_name).all()
    assert SameField(["name"]).hashes([], 3).shape == (0, 3)
    assert SameField(["name"]) == SameField(("name",))
    assert hash(SameField(["name"])) == hash(SameField(("name",)))


def test_missing_values_never_meet():
    records = [{"a": None, "b": "x"}, {"a": "", "b": "y"}, {"b": "X"}, {"a": float("nan"), "b": None}]
    found = SameField(["a", "b"]).any_of(2).candidates(records)
    assert [*zip(found.left, found.right, strict=True)] == [(0, 2)]
    assert SameField(["a", "b"]).distances(records, np.array([0, 0]), np.array([0, 2])).tolist() == [0.5, 0.5]


class Ambiguous:
    """Like pandas.NA: whether it equals itself it does not say."""

    def __ne__(self, other):
        return self

    def __bool__(self):
        raise TypeError("ambiguous")

    __hash__ = object.__hash__


def test_a_value_that_does_not_equal_itself_is_missing():
    assert SameField(["a"]).hashes([{"a": Ambiguous()}, {"a": np.arange(2)}], 1).astype(bool).tolist() == [
        [False],
        [True],
    ]


@pytest.mark.parametrize("fields", ["name", [], ["a", "a"], ["a", 0], [1.5], [True], None])
def test_fields_must_be_names_or_places(fields):
    with pytest.raises(ParameterError, match="'fields' parameter of SameField"):
        SameField(fields)


@pytest.mark.parametrize(
    ("fields", "records", "message"),
    [
        (["a"], [{"a": 1}, ("a",)], "record 1 is \\('a',\\); it must be a mapping"),
        ([0], [("a",), {"a": 1}], "record 1 is {'a': 1}; it must be a tuple or list"),
        ([0, 2], [("a", "b", "c"), ("a", "b")], "record 1 has only 2 values"),
        ([0], ["text"], "record 0 is 'text'"),
    ],
)
def test_records_that_cannot_be_used(fields, records, message):
    with pytest.raises(InputError, match=message):
        SameField(fields).hashes(records, 2)
