"""The batch forms: each is the function of the same name for single pairs, row by row."""

import math
import re
import tracemalloc
from collections import Counter
from fractions import Fraction

import numpy as np
import pyarrow as pa
import pytest
from hypothesis import given
from hypothesis import strategies as st

from likewise import Sets, measures
from likewise.errors import InputError, ParameterError
from likewise.measures import batch

OF_SETS = ["jaccard", "jaccard_distance", "containment", "dice", "cosine", "overlap"]
OF_VECTORS = ["lr", "angle", "hamming"]
TOKENS = st.integers(-3, 5) | st.sampled_from("abcd")
LISTS = st.lists(TOKENS, max_size=8)
KINDS = [bool, np.int8, np.uint8, np.int32, np.uint64, np.float16, np.float32, np.float64, ">f8", np.longdouble]


def tables(kind, n=50, d=7, seed=1):
    """Two tables of small whole numbers, which every type holds, and no row of which is all zeros."""
    rng = np.random.default_rng(seed)
    x, y = (rng.integers(0, 4, (n, d)) for _ in "xy")
    x[:, 0] = y[:, 0] = 1
    return x.astype(kind), y.astype(kind)


def test_every_measure_has_its_batch_form():
    assert set(batch.__all__) == set(measures.__all__)
    assert set(batch.__all__) == {*OF_SETS, *OF_VECTORS, "bag_jaccard", "edit"}


@given(pairs=st.lists(st.tuples(LISTS, LISTS), max_size=6))
def test_sets(pairs):
    left, right = [a for a, _ in pairs], [b for _, b in pairs]
    sets = Sets.from_lists(left)
    for name in OF_SETS:
        expected = [getattr(measures, name)(a, b) for a, b in pairs]
        found = getattr(batch, name)(sets, right)
        assert found.dtype == np.float64
        assert found.tolist() == expected, name
    assert batch.jaccard(left, right).tolist() == batch.jaccard(sets, Sets.from_lists(right)).tolist()


def test_sets_of_any_whole_numbers_and_an_arrow_column():
    lists = [[1, 2, 3], [], [5, 2**31]], [[3, 1, 9], [], [2**31]]
    ragged = [(np.array([x for row in part for x in row]), np.cumsum([0, *map(len, part)])) for part in lists]
    for kind in (np.uint32, np.uint64, np.int64):
        (a, offsets_a), (b, offsets_b) = ragged
        for other in (kind, np.uint64):
            found = batch.jaccard(Sets(a.astype(kind), offsets_a), Sets(b.astype(other), offsets_b))
            assert found.tolist() == [0.5, 1.0, 0.5]
    assert batch.jaccard(*map(pa.array, lists)).tolist() == [0.5, 1.0, 0.5]


def test_equal_tokens_are_those_of_python():
    left, right = [[1], [True, "a"], [0.5, 2]], [[1.0], [1, "b"], [Fraction(1, 2), 2.0]]
    for name in OF_SETS:
        expected = [getattr(measures, name)(a, b) for a, b in zip(left, right, strict=True)]
        assert getattr(batch, name)(left, right).tolist() == expected, name


@pytest.mark.parametrize("kind", [float, np.float32, object])
def test_nan_has_no_hamming_distance(kind):
    table = np.array([[1, 2], [math.nan, 2]]).astype(kind)
    with pytest.raises(InputError, match="hamming: row 1 of x"):
        batch.hamming(table, np.ones((2, 2)))
    with pytest.raises(InputError, match="hamming: y contains"):
        batch.hamming(np.ones((2, 2)), table[1])
    assert batch.hamming([[math.inf]], [[math.inf]]).tolist() == [0]


def test_many_lists_are_not_mixed_up():
    """More than one portion of lists."""
    lists = [[i, i + 1, i + 2] for i in range(20_000)]
    assert (batch.jaccard(lists, lists) == 1).all()
    assert (batch.jaccard(lists[:-1], lists[1:]) == 0.5).all()


BAG = st.lists(st.sampled_from([0, 1, 1.0, "1", "a", "b", (1, 2), True]), max_size=8)


@given(st.lists(st.tuples(BAG, BAG), max_size=6), st.sampled_from([(list, list), (Counter, list), (tuple, Counter)]))
def test_bags_of_any_elements_in_any_form(pairs, forms):
    left, right = [forms[0](a) for a, _ in pairs], [forms[1](b) for _, b in pairs]
    for union in ("sum", "max"):
        expected = [measures.bag_jaccard(a, b, union) for a, b in pairs]
        assert batch.bag_jaccard(left, right, union).tolist() == expected
        if forms == (list, list):
            sets = [Sets.from_lists(side, bag=True) for side in (left, right)]
            assert batch.bag_jaccard(*sets, union=union).tolist() == expected


def test_large_counts_and_bags_that_are_none():
    a, b = [{"milk": 3 * 10**12, "tea": 1}, {}], [{"milk": 10**12}, Counter()]
    assert batch.bag_jaccard(a, b, "max").tolist() == [10**12 / (3 * 10**12 + 1), 1.0]
    assert batch.bag_jaccard(a, b).tolist() == [10**12 / (4 * 10**12 + 1), 0.5]
    with pytest.raises(ParameterError, match="counts must be whole numbers"):
        batch.bag_jaccard([{"a": 1.5}], [["a"]])
    with pytest.raises(ParameterError, match="'union' parameter of bag_jaccard must be 'sum' or 'max'"):
        batch.bag_jaccard([["a"]], [["a"]], union="min")
    with pytest.raises(ParameterError, match="Sets cannot be compared with mappings"):
        batch.bag_jaccard(Sets.from_lists([["a"]], bag=True), [{"a": 1}])


def test_bags_and_strings_of_no_pairs_and_the_bag_that_is_wrong():
    assert (
        batch.bag_jaccard([], []).tolist() == batch.hamming([], []).tolist() == batch.hamming([], "ab").tolist() == []
    )
    with pytest.raises(ParameterError, match=r"'b\[1\]' parameter of bag_jaccard has -1 as the count of 'x'"):
        batch.bag_jaccard([{"x": 1}, {"x": 1}], [{"x": 1}, {"x": -1}])


WORDS = st.integers(0, 9).flatmap(lambda n: st.tuples(*[st.text("ab\0é中🙂", min_size=n, max_size=n)] * 2))


@given(st.lists(WORDS, min_size=1, max_size=6))
def test_hamming_distances_of_strings(pairs):
    x, y = [a for a, _ in pairs], [b for _, b in pairs]
    expected = [measures.hamming(a, b) for a, b in pairs]
    for first, second in (
        (x, y),
        (tuple(x), pa.array(y)),
        (pa.array(x), np.array(y, object)),
        (np.array(x, object), y),
    ):
        found = batch.hamming(first, second)
        assert (found.tolist(), found.dtype) == (expected, np.int64)
    same = [text for text in x if len(text) == len(y[0])]
    assert batch.hamming([*same, y[0]], y[0]).tolist() == [*(measures.hamming(text, y[0]) for text in same), 0]


@pytest.mark.parametrize(
    ("x", "y", "options", "says"),
    [
        (["ab"], ["abc"], {}, "row 0: the strings have 2 and 3 characters"),
        (["ab", "cd"], ["ab", 5], {}, "row 1 of y is 5, not a string"),
        (["ab"], ["ab", "cd"], {}, "1 items cannot be paired with 2"),
        (["ab"], ["ab"], {"packed": True}, "'packed' parameter of hamming has no effect for strings"),
        ("ab", "cd", {}, "x must be a table"),
        (["ab", None], ["ab", "cd"], {}, "row 1 of x is None, not a string"),
        ([3, "ab"], ["a", "cd"], {}, "row 0 of x is 3, not a string"),
        ([], ["ab"], {}, "0 items cannot be paired with 1"),
    ],
)
def test_strings_without_a_hamming_distance(x, y, options, says):
    with pytest.raises((InputError, ParameterError), match=says):
        batch.hamming(x, y, **options)


@given(st.lists(st.tuples(st.text("ab", max_size=6), st.text("abc", max_size=6)), max_size=5))
def test_bags(pairs):
    left, right = [a for a, _ in pairs], [Counter(b) for _, b in pairs]
    for union in ("sum", "max"):
        expected = [measures.bag_jaccard(a, b, union) for a, b in pairs]
        assert batch.bag_jaccard(left, right, union=union).tolist() == expected
    fast = batch.jaccard(*(Sets.from_lists([list(pair[side]) for pair in pairs], bag=True) for side in (0, 1)))
    assert fast.tolist() == batch.bag_jaccard(left, right, union="max").tolist()


@pytest.mark.parametrize("kind", KINDS, ids=str)
@pytest.mark.parametrize("size", [1, 20, 1 << 18])
def test_vectors_of_any_type_in_blocks_of_any_size(kind, size, monkeypatch):
    monkeypatch.setattr(batch, "BLOCK", size)
    x, y = tables(kind)
    single = y[3]
    for r in (1, 1.5, 2, 3, math.inf):
        assert batch.lr(x, y, r).tolist() == pytest.approx([measures.lr(*row, r) for row in zip(x, y, strict=True)])
        assert batch.lr(x, single, r).tolist() == pytest.approx([measures.lr(row, single, r) for row in x])
    expected = [measures.angle(*row) for row in zip(x, y, strict=True)]
    assert batch.angle(x, y).tolist() == pytest.approx(expected, abs=1e-9)
    assert batch.angle(x, single).tolist() == pytest.approx([measures.angle(row, single) for row in x], abs=1e-9)
    assert batch.hamming(x, y).tolist() == [measures.hamming(*row) for row in zip(x, y, strict=True)]
    assert batch.hamming(x, single).tolist() == [measures.hamming(row, single) for row in x]
    assert (batch.lr(x, y).dtype, batch.angle(x, y).dtype, batch.hamming(x, y).dtype) == (float, float, np.int64)


@given(st.lists(st.tuples(*[st.floats(-1e300, 1e300)] * 4), min_size=1, max_size=5))
def test_angles_of_doubles_of_any_size(rows):
    table = np.array(rows)
    table[:, [0, 2]] += table[:, [0, 2]] == 0
    x, y = table[:, :2], table[:, 2:]
    expected = [measures.angle(*row) for row in zip(x, y, strict=True)]
    assert batch.angle(x, y).tolist() == pytest.approx(expected, abs=1e-9)


def test_tables_of_two_types():
    x, _ = tables(np.float32)
    assert batch.lr(x, x + np.float64(1e-12), math.inf).tolist() == pytest.approx([1e-12] * len(x), rel=1e-3)
    assert batch.lr(np.int8([[127]]), np.uint8([[255]])).tolist() == [128]
    assert batch.lr(np.int32([[2**31 - 1]]), np.float32([[0]])).tolist() == [2**31 - 1]


@pytest.mark.parametrize("view", [np.asfortranarray, lambda x: x[::-1], lambda x: np.hstack([x, x])[:, 7:]])
def test_tables_of_any_layout(view):
    x, y = tables(np.float64)
    a, b = view(x), view(y)
    for distance in (batch.lr, batch.angle, batch.hamming):
        assert distance(a, b).tolist() == distance(a.copy(), b.copy()).tolist()
    for kind in (np.uint8, np.uint64):
        a, b = view(x.astype(kind)), view(y.astype(kind))
        assert batch.hamming(a, b, packed=True).tolist() == batch.hamming(a.copy(), b.copy(), packed=True).tolist()


def test_a_memory_map_is_never_copied_as_a_whole(tmp_path):
    path = tmp_path / "vectors.npy"
    np.save(path, np.random.default_rng(1).standard_normal((8000, 512)).astype(np.float16))
    table = np.load(path, mmap_mode="r")
    batch.lr(table[:2], table[:2])
    tracemalloc.start()
    try:
        distances = batch.lr(table[:4000], table[4000:])
        angles = batch.angle(table, table[0])
        _, peak = tracemalloc.get_traced_memory()
    finally:
        tracemalloc.stop()
    assert peak < table.nbytes, "two blocks of 1 MB as float32, and the results"
    assert distances[17] == pytest.approx(measures.lr(table[17], table[4017]))
    assert angles[5000] == pytest.approx(measures.angle(table[5000], table[0]))


@pytest.mark.parametrize("bits", [0, 1, 8, 13, 64, 200])
def test_packed_bits(bits):
    rng = np.random.default_rng(bits)
    x, y = (rng.integers(0, 2, (30, bits), np.uint8) for _ in "xy")
    expected = (x != y).sum(axis=1).tolist()
    a, b = np.packbits(x, axis=1), np.packbits(y, axis=1)
    assert batch.hamming(a, b, packed=True).tolist() == expected
    assert batch.hamming(a, b[0], packed=True).tolist() == (x != y[0]).sum(axis=1).tolist()
    wide = [np.pad(table, ((0, 0), (0, -table.shape[1] % 8))).view(np.uint64) for table in (a, b)]
    assert batch.hamming(*wide, packed=True).tolist() == expected


def test_packed_words_must_be_bytes_or_words_of_64_bits():
    words = np.ones((2, 2), np.uint64)
    for other in (words.astype(np.uint8), words.astype(np.int64), words.astype(bool)):
        with pytest.raises(ParameterError, match="packed rows must both be uint8 or both uint64"):
            batch.hamming(words, other, packed=True)


@pytest.mark.parametrize("mutations", [False, True])
@pytest.mark.parametrize("transpositions", [False, True])
@pytest.mark.parametrize("threads", [1, 2])
def test_edits(mutations, transpositions, threads):
    rng = np.random.default_rng(1)
    left, right = (["".join(rng.choice(list("abcé"), n)) for n in rng.integers(0, 12, 60)] for _ in "xy")
    expected = [measures.edit(a, b, mutations, transpositions) for a, b in zip(left, right, strict=True)]
    for column in (list, np.array, pa.array, iter):
        found = batch.edit(column(left), column(right), mutations, transpositions, threads=threads)
        assert found.dtype == np.int64
        assert found.tolist() == expected
    assert batch.edit([], [], mutations, transpositions).tolist() == []


def test_what_edit_refuses():
    with pytest.raises(InputError, match="edit: row 1 is None, not a string"):
        batch.edit(["a", "b"], ["a", None])
    with pytest.raises(InputError, match="edit: row 0 is 5"):
        batch.edit([5], ["a"], transpositions=True)
    with pytest.raises(ParameterError, match="'threads' parameter of edit"):
        batch.edit(["a"], ["a"], threads=0)
    with pytest.raises(ParameterError, match="a list of strings"):
        batch.edit("ab", "cd")


@pytest.mark.parametrize("name", [*OF_SETS, "bag_jaccard", "edit"])
def test_both_sides_must_be_of_equal_length(name):
    with pytest.raises(ParameterError, match=rf"{name}: 2 (sets|items) cannot be paired with 1"):
        getattr(batch, name)([["a"], ["b"]] if name != "edit" else ["a", "b"], [["a"]] if name != "edit" else ["a"])


@pytest.mark.parametrize("name", OF_VECTORS)
@pytest.mark.parametrize(
    ("x", "y", "message"),
    [
        (np.ones((3, 2)), np.ones((2, 2)), "x has shape (3, 2) and y (2, 2)"),
        (np.ones((3, 2)), np.ones(3), "x has shape (3, 2) and y (3,)"),
        (np.ones((3, 2)), np.ones((1, 2)), "x has shape (3, 2) and y (1, 2)"),
        (np.ones(3), np.ones(3), "it has 1 dimensions, not 2"),
        ([[1, 2], [3]], [[1, 2], [3, 4]], "the vectors do not all have the same length"),
    ],
)
def test_shapes_that_do_not_fit(name, x, y, message):
    with pytest.raises(ParameterError, match=re.escape(message)):
        getattr(batch, name)(x, y)


@pytest.mark.parametrize("name", ["lr", "angle"])
def test_only_numbers_have_lengths_and_angles(name):
    with pytest.raises(ParameterError, match="y must be a table of numbers, not of <U1"):
        getattr(batch, name)([[1.0]], [["a"]])
    assert batch.hamming([["a", "b"]], [["a", "c"]]).tolist() == [1]


def test_an_r_below_1_is_refused():
    with pytest.raises(ParameterError, match=r"'r' parameter of lr .* Got 0.5 instead"):
        batch.lr([[1.0]], [[2.0]], r=0.5)


def test_sets_of_fractions_are_refused():
    with pytest.raises(ParameterError, match=r"the elements of .* must be whole numbers, not float64"):
        batch.jaccard(Sets(np.ones(2), np.array([0, 2])), [[1]])


@pytest.mark.parametrize("name", ["lr", "angle"])
@pytest.mark.parametrize("kind", [np.float16, np.float32, np.float64])
@pytest.mark.parametrize("bad", [math.nan, math.inf, -math.inf])
@pytest.mark.parametrize("size", [6, 1 << 18])
def test_the_row_that_is_not_finite_is_named(name, kind, bad, size, monkeypatch):
    monkeypatch.setattr(batch, "BLOCK", size)
    distance = getattr(batch, name)
    good, wrong = np.ones((9, 3), kind), np.ones((9, 3), kind)
    wrong[5, 1] = bad
    with pytest.raises(InputError, match=f"{name}: row 5 of x contains a number that is not finite"):
        distance(wrong, good)
    with pytest.raises(InputError, match=f"{name}: row 5 of y contains a number that is not finite"):
        distance(good, wrong)
    with pytest.raises(InputError, match=f"{name}: y contains a number that is not finite"):
        distance(good, wrong[5])


@pytest.mark.parametrize("r", [1, 2, 3, math.inf])
def test_infinite_minus_infinite_is_no_distance_either(r):
    with pytest.raises(InputError, match="row 1 of x contains a number that is not finite"):
        batch.lr([[1.0], [math.inf]], [[1.0], [math.inf]], r)
    assert batch.lr([[1.5e308]], [[-1.5e308]], r).tolist() == [math.inf], "too far for a double"


def test_the_vector_of_zeros_is_named():
    good, wrong = np.ones((9, 3)), np.ones((9, 3))
    wrong[7] = 0
    with pytest.raises(InputError, match="angle: row 7 of x is a vector of zeros, which has no direction"):
        batch.angle(wrong, good)
    with pytest.raises(InputError, match="angle: row 7 of y is a vector of zeros"):
        batch.angle(good, wrong)
    with pytest.raises(InputError, match="angle: y is a vector of zeros"):
        batch.angle(good, [0, 0, 0])
    with pytest.raises(InputError, match="angle: row 0 of x is a vector of zeros"):
        batch.angle(np.ones((2, 0)), np.ones((2, 0)))
    assert batch.lr(wrong, good)[7] == pytest.approx(math.sqrt(3))


@pytest.mark.parametrize("name", OF_VECTORS)
def test_no_rows(name):
    assert getattr(batch, name)(np.ones((0, 3)), np.ones((0, 3))).tolist() == []
    assert getattr(batch, name)(np.ones((0, 3)), np.ones(3)).tolist() == []
