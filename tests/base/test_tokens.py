"""Tokens to hashes: the short cuts for whole numbers and strings give what hashing one by one gives."""

import enum
import itertools
import math
from collections import Counter, deque
from decimal import Decimal
from fractions import Fraction

import numpy as np
import pyarrow as pa
import pytest
from hypothesis import example, given
from hypothesis import strategies as st

import oracles
from likewise.base import tokens
from likewise.base.arrays import Sets
from likewise.errors import InputError, ParameterError

EDGES = [
    *[0, 1, -1, 127, 128, 255, 256, 2**15, 2**16, 2**30 - 1, 2**30, 2**31 - 1, 2**31, 2**31 + 1, 2**32],
    *[-(2**30), -(2**31), -(2**31) - 1, -(2**32), 2**63 - 1, 2**63, -(2**63), -(2**63) - 1, 2**64, 10**40],
]
SMALL = st.sampled_from([x for x in EDGES if -(2**31) <= x < 2**31]) | st.integers(-(2**31), 2**31 - 1)
WHOLE = st.sampled_from(EDGES) | st.integers()
TEXT = st.text(max_size=12) | st.sampled_from(["", "\0", "a\0", "\0a", "a\0b", "1", "-1", "é", "日本語", "x" * 300])
OTHERS = st.booleans() | st.floats(allow_nan=False) | st.binary(max_size=4) | st.tuples(SMALL) | SMALL.map(np.int64)
MIXED = SMALL | WHOLE | TEXT | OTHERS


def lists_of(token, most=8):
    return st.lists(st.lists(token, max_size=most), max_size=6)


def one_by_one(lists):
    """The slow path, which takes every token by itself."""
    return [list(dict.fromkeys(tokens._hash_objects(list_).tolist())) for list_ in lists]


def hashed(lists):
    """The sets as they are made; tokens that are there twice are there once."""
    found = []
    for work in tokens.set_parts(lists, bag=False, threads=2):
        values, offsets = work()
        assert values.dtype == np.uint64
        assert offsets.dtype == np.int64
        found += [values[a:b].tolist() for a, b in itertools.pairwise(offsets)]
    return found


@given(lists_of(SMALL) | lists_of(WHOLE) | lists_of(TEXT) | lists_of(MIXED) | lists_of(SMALL | TEXT))
@example([])
@example([[]])
@example([[], [], [5]])
@example([[1], [True]])
@example([[1], [2**31]])
@example([[1], [np.int64(2)]])
@example([["a"], ["b\0"]])
@example([["a"], [b"a"]])
@example([["a", 1]])
@example([[1, "a"]])
@example([[7] * 300, ["x"] * 300])
def test_every_way_gives_the_same_hashes(lists):
    expected = one_by_one(lists)
    assert hashed(lists) == expected
    assert hashed(tuple(lists)) == hashed(iter(lists)) == hashed(list_ for list_ in lists) == expected
    assert hashed(list(map(tuple, lists))) == expected
    assert hashed([iter(list_) for list_ in lists]) == expected
    assert hashed([(token for token in list_) for list_ in lists]) == expected
    assert hashed(list(map(deque, lists))) == expected


@given(lists_of(SMALL) | lists_of(TEXT) | lists_of(SMALL | TEXT))
def test_the_hashes_are_those_of_the_oracle(lists):
    assert hashed(lists) == [oracles.distinct(map(oracles.hash_token, list_)) for list_ in lists]


@given(lists_of(SMALL) | lists_of(TEXT) | lists_of(SMALL | TEXT))
def test_sets_of_tokens(lists):
    """Their order is Python's own affair."""
    expected = [sorted(map(oracles.hash_token, set(list_))) for list_ in lists]
    for kind in (set, frozenset):
        assert list(map(sorted, hashed(list(map(kind, lists))))) == expected
    mixed = [(list, set, tuple, frozenset)[i % 4](list_) for i, list_ in enumerate(lists)]
    assert [sorted(set(part)) for part in hashed(mixed)] == expected
    assert [sorted(made.tolist()) for made in Sets.from_lists(mixed)] == expected


@pytest.mark.parametrize("short_cut", [SMALL, TEXT.filter(lambda text: "\0" not in text)])
@given(data=st.data())
def test_the_short_cuts_are_taken(short_cut, data):
    """Numbers are not looked at one by one, nor strings; else this file tests nothing."""
    lists = data.draw(lists_of(short_cut).filter(any))
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(tokens, "_hash_objects", None)
        assert hashed(lists) == [oracles.distinct(map(oracles.hash_token, list_)) for list_ in lists]


@pytest.mark.parametrize("other", [2**31, -(2**31) - 1, True, 1.5, "a", "a\0b", b"1", (1,), np.int64(3), np.int8(3)])
@pytest.mark.parametrize("first", [7, "seven"])
def test_one_token_of_another_kind_changes_no_other(first, other):
    lists = [[first], [], [first, other], [other, first]]
    alone = [hashed([[token]])[0][0] for token in (first, other)]
    assert hashed(lists) == one_by_one(lists) == [alone[:1], [], alone, alone[::-1]]
    assert hashed(lists[::-1]) == one_by_one(lists[::-1])


def test_tokens_of_different_types_differ():
    different = [1, "1", b"1", (1,), ("1",), 2**64 + 1, -1, 2**64 - 1, 0, "", b"", (), frozenset(), "\0", "True", 1j]
    [found] = hashed([different])
    assert len(set(found)) == len(different)


NUMBERS = [
    *[0, 0.0, -0.0, False, np.float32(0), 1, 1.0, True, Fraction(1), Decimal("1.00"), 1 + 0j, np.bool_(True)],
    *[0.5, Fraction(1, 2), Decimal("0.5"), 0.1, Decimal("0.1"), Fraction(1, 10), Fraction(0.1), Fraction(1, 3)],
    *[2**63, 2.0**63, 2**64, 2.0**64, -(2**63), -(2.0**63), 10**30, 1e30, Decimal("1E+30"), int(1e30)],
    *[math.inf, Decimal("Infinity"), -math.inf, 1j, 1 + 1j, Decimal("1E+9000"), Decimal("10E+8999")],
    *[(1,), (1.0,), (True, "1"), (1, 1), (None,), ((1,),), ((1.0,),), frozenset([1, 2]), frozenset([2.0, True])],
    *["1", "1.0", "True", "0.5", "inf", "(1,)"],
]


@pytest.mark.parametrize("one", NUMBERS, ids=repr)
def test_tokens_are_the_same_if_pythons_sets_take_them_for_the_same(one):
    """So `jaccard` and `batch.jaccard` agree."""
    for other in NUMBERS:
        assert (hashed([[one]]) == hashed([[other]])) == (len({one, other}) == 1), (one, other)


@pytest.mark.parametrize("nan", [math.nan, np.float32("nan"), Decimal("nan"), Decimal("snan"), complex(math.nan, 0)])
def test_nan_is_no_token(nan):
    for lists in ([[nan]], [["a", nan]], [[(1, nan)]]):
        with pytest.raises(ParameterError, match="a token is NaN"):
            Sets.from_lists(lists)


@given(lists_of(SMALL))
def test_whole_numbers_of_numpy_are_those_of_python(lists):
    expected = hashed(lists)
    assert hashed([np.array(list_, np.int32) for list_ in lists]) == expected
    assert hashed([np.repeat(np.array(list_, np.int64), 2)[::2] for list_ in lists]) == expected
    assert hashed([[np.int64(token) for token in list_] for list_ in lists]) == expected
    backwards = hashed([[1], *(np.array(list_, np.int64)[::-1] for list_ in lists)])[1:]
    assert list(map(sorted, backwards)) == list(map(sorted, expected))


def test_large_whole_numbers_of_numpy_are_those_of_python():
    large = [2**63, 2**64 - 1]
    assert hashed([np.array(large, np.uint64)]) == hashed([large])


def test_floats_and_booleans_of_numpy_are_those_of_python():
    assert hashed([np.array([1.5, -0.25])]) == hashed([[1.5, -0.25]])
    assert hashed([np.array([True, False])]) == hashed([[True, False]])


def test_arrow_arrays_among_lists():
    assert hashed([[1], pa.array([1, 2])]) == hashed([[1], [1, 2]])
    assert hashed([["a"], pa.array(["a", "b"])]) == hashed([["a"], ["a", "b"]])


class Colour(str, enum.Enum):  # noqa: UP042 (whose str() is not what it holds)
    RED = "red"


class Size(enum.IntEnum):
    SMALL = 1


class Word(str):
    __slots__ = ()


def test_subclasses_of_strings_and_numbers_are_what_they_hold_wherever_they_stand():
    assert hashed([[Word("red"), "blue"]]) == hashed([["red", "blue"]])
    assert hashed([["blue", Word("red")]]) == hashed([["blue", "red"]])
    assert hashed([[Size.SMALL, 2], [2, Size.SMALL]]) == hashed([[1, 2], [2, 1]])
    [[blue, red]] = hashed([["blue", Colour.RED]])
    assert hashed([[Colour.RED, "blue"]]) == [[red, blue]], "by the token alone, not by its neighbours"
    assert hashed([[Colour.RED, 1]])[0][0] == red


def test_equal_frozen_sets_are_equal_tokens():
    """They are the same set, in whatever order Python lists them."""
    a, b = frozenset([0, 8]), frozenset([8, 0])
    assert a == b
    assert repr(a) != repr(b)
    assert hashed([[a]]) == hashed([[b]])


@pytest.mark.parametrize("kind", [int, str])
def test_many_lists_are_taken_in_batches(monkeypatch, kind):
    lists = [[kind(31 * i + j) for j in range(i % 5)] for i in range(100)]
    expected = [list(map(oracles.hash_token, list_)) for list_ in lists]
    for size in (1, 2, 3, 10, 97, 99, 100, 101):
        monkeypatch.setattr(tokens, "LISTS", size)
        assert hashed(lists) == expected
        assert [made.tolist() for made in Sets.from_lists(lists, threads=2)] == expected


def test_a_column_of_many_numbers_is_hashed_in_batches(monkeypatch):
    expected = list(map(oracles.hash_token, range(-50, 50)))
    for size in (1, 7, 99, 100, 101):
        monkeypatch.setattr(tokens, "BATCH", size)
        assert hashed(pa.array([list(range(-50, 50))])) == [expected]


@pytest.mark.parametrize("bad", ["\ud800", "a\udfffb"])
def test_lone_surrogates_are_no_text(bad):
    for lists in ([[bad]], [["a"], ["b", bad]], [[1, bad]], [["\0", bad]], [(1.5,), {bad}], [iter([bad])]):
        with pytest.raises(ParameterError, match="not valid Unicode"):
            Sets.from_lists(lists)


@pytest.mark.parametrize("lists", [[[None]], [[1, None]], [["a", None]], [[1.5], [None]], [iter([None])]])
def test_null_is_no_token(lists):
    with pytest.raises(ParameterError, match="a token is null"):
        Sets.from_lists(lists)


@pytest.mark.parametrize("item", ["ab", b"ab", 3, None, 1.5, ""])
@pytest.mark.parametrize("first", [[1], ["a"], [], (1.5,)])
def test_an_item_that_is_no_list_is_named(first, item):
    for lists in ([first, item], (first, item), iter([first, item])):
        with pytest.raises(ParameterError, match=r"item 1 is .*each item must be a list of tokens"):
            Sets.from_lists(lists)


@pytest.mark.parametrize("lists", ["abc", b"abc", 5, None, "", 1.5])
def test_what_is_no_list_of_lists(lists):
    with pytest.raises(ParameterError, match="must be a list of lists of tokens"):
        Sets.from_lists(lists)


def test_a_token_may_be_a_list_that_holds_itself():
    """marshal gives up on it; it is hashed by what it looks like."""
    deep = [1]
    deep.append(deep)
    assert len(hashed([[1], deep])[1]) == 2
    assert hashed([[1], deep])[1][0] == oracles.hash_token(1)


@given(st.lists(st.lists(st.integers(0, 3) | st.sampled_from("ab"), max_size=8), max_size=6), st.booleans())
def test_from_lists_keeps_each_token_once_or_as_often_as_it_stands_there(lists, bag):
    made = Sets.from_lists(lists, bag=bag)
    keep = oracles.numbered if bag else oracles.distinct
    assert [part.tolist() for part in made] == [keep(map(oracles.hash_token, list_)) for list_ in lists]
    assert (made.values.dtype, made.offsets.dtype) == (np.uint64, np.int64)
    alone = Sets.from_lists(lists, bag=bag, threads=1)
    assert (alone.values.tolist(), alone.offsets.tolist()) == (made.values.tolist(), made.offsets.tolist())


@pytest.mark.parametrize("threads", [0, -1, True, 1.5, "2"])
def test_bad_threads(threads):
    with pytest.raises(
        ParameterError, match=r"'threads' parameter of Sets\.from_lists must be a positive whole number"
    ):
        Sets.from_lists([[1]], threads=threads)


COUNTS = st.dictionaries(SMALL | TEXT, st.integers(0, 5), max_size=6)


@given(st.lists(COUNTS | st.lists(SMALL | TEXT, max_size=6), max_size=6))
@example([{"a": 2, "b": 0}])
@example([{"a": 2.0, "b": np.int8(3)}])
def test_a_mapping_is_a_bag_of_elements_with_their_counts(bags):
    spelled = [
        [token for token, count in bag.items() for _ in range(int(count))] if isinstance(bag, dict) else bag
        for bag in bags
    ]
    made, expected = Sets.from_lists(bags, bag=True), Sets.from_lists(spelled, bag=True)
    assert [sorted(bag.tolist()) for bag in made] == [sorted(bag.tolist()) for bag in expected]
    counters = Sets.from_lists([Counter(bag) for bag in bags], bag=True)
    assert [sorted(bag.tolist()) for bag in counters] == [sorted(bag.tolist()) for bag in expected]


def test_a_mapping_as_a_set_is_the_set_of_its_keys():
    assert hashed([{"a": 2, "b": 0}]) == hashed([["a", "b"]])
    assert hashed([{1: 2}]) == hashed([[1]])


@pytest.mark.parametrize("count", [-1, 1.5, math.nan, math.inf, "2", None, True, [1], -0.5, Fraction(1, 2)])
def test_counts_are_whole_numbers(count):
    with pytest.raises(ParameterError, match=r"bag 1 has .* as the count of 'a'; counts must be whole numbers"):
        Sets.from_lists([{"b": 1}, {"a": count}], bag=True)


def test_a_bag_larger_than_any_join_takes():
    with pytest.raises(InputError, match="bag 0 has more than"):
        Sets.from_lists([{"a": 2**28, "b": 2**62}], bag=True)
