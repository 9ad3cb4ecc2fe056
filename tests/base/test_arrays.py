"""The border between Arrow and NumPy: texts taken over without copying, tokens hashed by their own value."""

import itertools
from datetime import date

import numpy as np
import pyarrow as pa
import pytest
from hypothesis import given
from hypothesis import strategies as st

import oracles
from likewise.base.arrays import Sets, TextChunk, Texts, as_bytes, concatenate
from likewise.base.copies import set_digests, text_digests
from likewise.errors import ParameterError
from likewise.search.items import SetItems, TextItems
from likewise.shingle import Chars

TEXTS = st.lists(st.text(max_size=12), max_size=8)
TOKENS = st.lists(st.lists(st.integers(-(2**63), 2**63 - 1) | st.text(max_size=9), max_size=8), max_size=6)


@given(TEXTS, st.integers(1, 3))
def test_texts_read_back(texts, pieces):
    cut = len(texts) // pieces
    chunked = pa.chunked_array([pa.array(texts[:cut], pa.string()), pa.array(texts[cut:], pa.string())], pa.string())
    for layout in (texts, chunked, tuple(texts), pa.array(texts, pa.string_view())):
        taken = Texts.of(layout)
        assert len(taken) == len(texts)
        assert [taken[row] for row in range(len(texts))] == texts
    assert Texts.of(taken) is taken


def test_string_bytes_are_not_copied():
    array = pa.array(["abc", "defghij" * 10], pa.large_string())
    chunk = TextChunk.from_arrow(array.slice(1))
    assert chunk.data.ctypes.data == array.buffers()[2].address
    assert not chunk.data.flags.writeable
    assert chunk.offsets.tolist() == [3, 73]


@given(st.binary(max_size=40), st.integers(0, 15))
def test_bytes_begin_at_an_address_that_eight_divides(data, start):
    taken = as_bytes(pa.py_buffer(b"\0" * start + data).slice(start))
    assert taken.tobytes() == data
    assert taken.size == 0 or taken.ctypes.data % 8 == 0
    assert not taken.flags.writeable
    assert as_bytes(None).size == 0


@given(TEXTS, st.data())
def test_rows_are_split_by_chunk(texts, data):
    cuts = sorted(data.draw(st.lists(st.integers(0, len(texts)), max_size=3)))
    edges = [0, *cuts, len(texts)]
    pieces = [pa.array(texts[a:b], pa.string()) for a, b in itertools.pairwise(edges)]
    whole = Texts.of(pa.chunked_array(pieces, pa.string()))
    rows = np.array(sorted(data.draw(st.sets(st.sampled_from(range(len(texts)))))) if texts else [], np.int64)
    read, places = [], []
    for chunk, local, place in whole.split(rows):
        read += [chunk.text(row) for row in local]
        places += range(place.start, place.stop)
    assert read == [texts[row] for row in rows]
    assert places == list(range(len(rows)))


@pytest.mark.parametrize("bad", ["text", ["a", None], [3], 5, None, ["\udc80"], pa.array(["a", None])])
def test_texts_must_be_strings(bad):
    with pytest.raises(ParameterError):
        Texts.of(bad)


# tokens to sets


@given(TOKENS)
def test_a_token_is_hashed_by_its_value_alone(lists):
    sets = Sets.from_lists(lists)
    expected = [oracles.distinct(map(oracles.hash_token, tokens)) for tokens in lists]
    assert [s.tolist() for s in sets] == expected
    assert sets.sizes.tolist() == list(map(len, expected))
    together = Sets.from_lists([*lists, [1, "a", 2.5, (1, 2), True, b"x"]])
    assert [s.tolist() for s in together][:-1] == expected, "whatever else is in the collection"


def test_tokens_of_different_types_differ():
    different = [1, "1", 1.5, "1.5", b"1", (1,), 2**64, -1, 2**64 - 1, "int:1", date(2020, 1, 1), ""]
    assert Sets.from_lists([different]).sizes.tolist() == [len(different)]


def test_numpy_tokens_are_those_of_python():
    plain = Sets.from_lists([[1, 2, -3], ["a", "b"]])
    arrays = Sets.from_lists([np.array([1, 2, -3]), np.array(["a", "b"])])
    narrow = Sets.from_lists([np.array([1, 2, -3], np.int8), ("a", "b")])
    assert plain.values.tolist() == arrays.values.tolist() == narrow.values.tolist()


INT, TEXT = pa.int64(), pa.string()


@pytest.mark.parametrize(
    ("lists", "kind"),
    [
        ([[1, 2], [], [2, 3, 2]], pa.list_(INT)),
        ([[1, 2], [], [2, 3]], pa.large_list(pa.int8())),
        ([[1, 2**63], [], [2]], pa.list_(pa.uint64())),
        ([["a", "b"], [], ["é"]], pa.list_(TEXT)),
        ([["a", "b"], [], ["é"]], pa.list_(pa.string_view())),
        ([["a", "b"], [], ["a"]], pa.list_(pa.dictionary(pa.int32(), TEXT))),
        ([[1.5], [2.0, 1.5]], pa.list_(pa.float64())),
        ([[date(2020, 1, 1)], []], pa.list_(pa.date32())),
        ([[True], [False, True]], pa.list_(pa.bool_())),
    ],
)
def test_arrow_lists_give_the_sets_of_python_lists(lists, kind):
    column = pa.array(lists, kind)
    expected = [s.tolist() for s in Sets.from_lists(lists)]
    assert [s.tolist() for s in Sets.from_lists(column)] == expected
    assert [s.tolist() for s in Sets.from_lists(column.slice(1))] == expected[1:]
    chunked = pa.chunked_array([column[:1], column[1:]])
    assert [s.tolist() for s in Sets.from_lists(chunked)] == expected
    assert len(Sets.from_lists(pa.chunked_array([], kind))) == 0


@given(st.lists(st.lists(st.sampled_from("abc"), max_size=9), min_size=2, max_size=4))
def test_bags_of_tokens(bags):
    sets = Sets.from_lists(bags, bag=True)
    for a, bag_a in zip(sets, bags, strict=True):
        assert len(set(a.tolist())) == len(bag_a)
        for b, bag_b in zip(sets, bags, strict=True):
            assert oracles.jaccard(a.tolist(), b.tolist()) == oracles.bag_jaccard(bag_a, bag_b)


@pytest.mark.parametrize(
    ("bad", "says"),
    [
        (["ab", ["a"]], "item 0 is 'ab'"),
        ([[1], 2], "item 1 is 2"),
        (5, "list of lists"),
        ("abc", "list of lists"),
        ([[1, None]], "null"),
        ([["\ud800"]], "Unicode"),
        (pa.array([[1], None]), "null lists"),
        (pa.array([[1, None]]), "null"),
        (pa.array(["a"]), "not of string"),
    ],
)
def test_lists_say_what_is_wrong(bad, says):
    with pytest.raises(ParameterError, match=says):
        Sets.from_lists(bad)


@given(st.lists(st.sets(st.integers(0, 20), max_size=6).map(sorted), min_size=1, max_size=6), st.data())
def test_take_and_index(lists, data):
    sets = Sets.from_lists(lists)
    rows = data.draw(st.lists(st.sampled_from(range(len(lists))), max_size=6))
    assert [s.tolist() for s in sets.take(np.array(rows, np.int64))] == [sets[row].tolist() for row in rows]
    assert sets[-1].tolist() == sets[len(lists) - 1].tolist()
    for outside in (len(lists), -len(lists) - 1):
        with pytest.raises(IndexError):
            sets[outside]
    assert [s.tolist() for s in concatenate([sets, sets.take(np.array(rows, np.int64)), sets])] == [
        s.tolist() for part in (sets, [sets[row] for row in rows], sets) for s in part
    ]


# items: fingerprints and lengths


@given(st.lists(st.text("ab\0é", max_size=3), max_size=9), st.integers(1, 3))
def test_fingerprints_of_texts(texts, threads):
    cut = len(texts) // 2
    pieces = pa.chunked_array([pa.array(texts[:cut], pa.string()), pa.array(texts[cut:], pa.string())], pa.string())
    digests = [tuple(row) for row in text_digests(Texts.of(pieces), threads).tolist()]
    assert digests == [tuple(row) for row in text_digests(Texts.of(texts), 1).tolist()]
    assert len(set(digests)) == len(set(texts))


@given(st.lists(st.tuples(st.integers(0, 2), st.integers(0, 2)), max_size=9))
def test_fingerprints_of_long_texts_that_differ_in_few_bytes(places):
    """Between the bytes that are sampled, and at the very ends."""
    texts = [f"{a}{'x' * 900}{b}{'y' * 1000}{a}" for a, b in places]
    digests = [tuple(row) for row in text_digests(Texts.of(texts), 2).tolist()]
    assert len(set(digests)) == len(set(texts))
    assert all((digests[i] == digests[0]) == (texts[i] == texts[0]) for i in range(len(texts)))


@given(st.lists(st.lists(st.integers(0, 3), max_size=4), max_size=9))
def test_fingerprints_of_sets(lists):
    digests = [tuple(row) for row in set_digests(Sets.from_lists(lists)).tolist()]
    assert len(set(digests)) == len(set(map(frozenset, lists)))
    assert all((digest == (0, 0)) == (not tokens) for digest, tokens in zip(digests, lists, strict=True))


@given(TEXTS)
def test_lengths_are_characters_or_elements(texts):
    sliced = pa.array(["é", *texts, "x"], pa.string()).slice(1, len(texts))
    for layout in (texts, sliced):
        assert TextItems(Texts.of(layout), Chars(2)).lengths.tolist() == list(map(len, texts))
    sets = Sets.from_lists([list(text) for text in texts])
    assert SetItems(sets).lengths.tolist() == [len(set(text)) for text in texts]
