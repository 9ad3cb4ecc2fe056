"""Exact joins against brute force: no pair missed, none invented, whatever the sets, the measure and the index."""

import itertools
import json
import random
from collections import Counter
from datetime import date
from fractions import Fraction
from functools import cache
from math import floor, nextafter
from types import SimpleNamespace

import numpy as np
import pyarrow as pa
import pytest
from hypothesis import example, given
from hypothesis import strategies as st

import oracles
from likewise import exact
from likewise.base.arrays import Sets
from likewise.errors import InputError, OutputError, ParameterError
from likewise.io.workspace import Workspace
from likewise.kernels.hashtable import SPREAD_ODD, TABLE_ODD
from likewise.search.exact import join, listing
from likewise.search.exact import pairs as joining
from likewise.search.exact.prefixes import Lengths, Postings, survey, written
from likewise.search.scored import best_first

MEASURES = ["jaccard", "containment", "cosine", "dice", "overlap"]
INDEXES = ["auto", "length", "prefix", "position", "suffix"]
QUICK = {"threads": 1, "memory": "1GB"}
"""Options that spare a join of a few sets the making of threads and the asking for free memory."""

TWENTIETHS = [i / 20 for i in range(1, 21)]
THRESHOLDS = (
    st.sampled_from([*TWENTIETHS, 1 / 3, 2 / 3, 0.1 + 0.2, 1e-300])
    | st.integers(1, 20).flatmap(lambda u: st.integers(1, u).map(lambda o: o / u))
    | st.floats(0.01, 1)
)


@st.composite
def collections(draw, most=10):
    """Small sets of few different tokens, sets of up to 60 that contain each other, empty ones, and copies."""
    tiny = st.lists(st.integers(0, draw(st.integers(1, 12))), max_size=9)
    nested = st.integers(1, 60).map(lambda n: list(range(n)))
    made = draw(st.lists(tiny | tiny | nested, max_size=most))
    copies = draw(st.lists(st.sampled_from(made), max_size=4)) if made else []
    return made + copies


def rows(table):
    return list(zip(*(table[name].to_pylist() for name in table.column_names), strict=True))


def counts(table):
    return json.loads(table.schema.metadata[b"likewise"])["counts"]


def near_copies(seed, n=120, most=70):
    """Sets of many sizes, each changed a little from an earlier one or new."""
    source = random.Random(seed)
    made = [set(source.choices(range(300), k=5))]
    while len(made) < n:
        new = set(source.choice(made)) if source.random() < 0.7 else set()
        size = source.choice([1, 2, 3, 8, 20, most])
        new ^= {int(300 * source.random() ** 2) for _ in range(source.randint(1, 4) if new else size)}
        made.append(new)
    return [source.sample(sorted(tokens), len(tokens)) for tokens in made]


# against brute force


@pytest.mark.parametrize("measure", MEASURES)
@given(sets=collections(), threshold=THRESHOLDS)
@example([], 0.5)
@example([[]], 0.5)
@example([[], [1], []], 1.0)
@example([[1], [2], [1]], 1.0)
def test_every_index_finds_what_brute_force_finds(measure, sets, threshold):
    truth, hashed = oracles.joined(sets, threshold, measure), Sets.from_lists(sets)
    for index in INDEXES:
        assert rows(exact.pairs(hashed, threshold, index, measure, **QUICK)) == truth, index


@pytest.mark.parametrize("measure", MEASURES)
@given(sets=collections(8), other=collections(8), threshold=THRESHOLDS)
@example([[]], [[], [1]], 0.5)
@example([[], [1]], [[]], 0.5)
@example([], [[], [1]], 0.5)
@example([[], [1]], [], 0.5)
def test_two_collections(measure, sets, other, threshold):
    truth, here, there = oracles.joined(sets, threshold, measure, other), Sets.from_lists(sets), Sets.from_lists(other)
    for index in INDEXES:
        assert rows(exact.pairs(here, threshold, index, measure, other=there, **QUICK)) == truth, index


@given(
    collections(),
    st.none() | collections(6),
    THRESHOLDS,
    st.sampled_from(MEASURES),
    st.sampled_from(INDEXES),
    st.sampled_from([1, 40, 200, 1000, "1KB"]),
    st.integers(1, 2),
)
def test_little_memory_few_at_a_time_and_two_threads(sets, other, threshold, measure, index, memory, threads):
    """The index is made in many blocks, probes come three at a time, and there is room for few candidates."""
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(join, "CHUNK", 3)
        patch.setattr(join, "ROOM", 1)
        options = {"other": other, "memory": memory, "threads": threads}
        found = exact.pairs(sets, threshold, index, measure, **options)
    assert rows(found) == oracles.joined(sets, threshold, measure, other)


@given(collections(8), st.none() | collections(5), THRESHOLDS, st.sampled_from(INDEXES), st.sampled_from(MEASURES))
def test_bags(bags, other, threshold, index, measure):
    found = exact.pairs(bags, threshold, index, measure, other=other, bag=True, **QUICK)
    assert rows(found) == oracles.joined(bags, threshold, measure, other, bag=True)


@cache
def near_copies_compared(measure):
    """Near copies, all pairs of them, and all of one half with the other."""
    sets = near_copies(seed=MEASURES.index(measure))
    sets.append(sets[40][::-1])
    half = len(sets) // 2
    parts = [Sets.from_lists(some) for some in (sets, sets[:half], sets[half:])]
    return parts, oracles.joined(sets, 0, measure), oracles.joined(sets[:half], 0, measure, sets[half:])


@pytest.mark.each_value
@pytest.mark.parametrize("threshold", [0.05, 0.3, 0.5, 0.8, 0.9, 1.0])
@pytest.mark.parametrize("measure", MEASURES)
def test_many_near_copies(measure, threshold):
    (sets, first, second), within, between = near_copies_compared(measure)
    truth, across = ([row for row in pairs if row[2] >= threshold] for pairs in (within, between))
    assert truth
    for index in INDEXES:
        assert rows(exact.pairs(sets, threshold, index, measure, **QUICK)) == truth
    assert rows(exact.pairs(sets, threshold, measure=measure, memory=4000)) == truth
    assert rows(exact.pairs(first, threshold, measure=measure, other=second, **QUICK)) == across


def test_threads_and_memory_change_nothing_where_there_is_work_for_all():
    """9,000 sets: more than one chunk of probes, of strings and of hashes."""
    source = np.random.default_rng(5)
    middle = source.integers(0, 4000, 9000)
    sets = [(start + source.integers(0, 12, 7)).tolist() for start in middle]
    truth = exact.pairs(sets, 0.6, threads=1)
    assert truth.num_rows > 1000
    for table in (exact.pairs(sets, 0.6, threads=2), exact.pairs(sets, 0.6, threads=2, memory="100KB")):
        assert table.equals(truth)
    for index in ("prefix", "position", "suffix"):
        assert exact.pairs(sets, 0.6, index, threads=2).equals(truth)
    sample = range(0, 9000, 300)
    expected = [(i, j) for i in sample for j in range(9000) if i < j and oracles.jaccard(sets[i], sets[j]) >= 0.6]
    assert [(i, j) for i, j, _ in rows(truth) if i in sample] == expected


@pytest.mark.parametrize("ratio", ["4/5", "9/10", "1/3", "2/3", "3/7", "19/20", "1/7", "1/1"])
@pytest.mark.parametrize("scale", [1, 2, 5])
@pytest.mark.parametrize("index", INDEXES)
def test_exactly_at_the_threshold(ratio, scale, index):
    """|a ∩ b| / |a ∪ b| is the ratio itself; with a threshold one unit of the last place higher it is below."""
    shared, union = (scale * part for part in Fraction(ratio).as_integer_ratio())
    at, lists = float(Fraction(ratio)), []
    for beside in range(union - shared + 1):
        a = [*range(shared), *range(1000, 1000 + beside)]
        b = [*range(2000, 2000 + union - shared - beside), *range(shared)]
        lists += [[10_000 * beside + token for token in tokens] for tokens in (a, b)]
    sets, first = Sets.from_lists(lists), range(0, len(lists), 2)
    assert rows(exact.pairs(sets, at, index, **QUICK)) == [(i, i + 1, at) for i in first]
    assert at == 1 or rows(exact.pairs(sets, nextafter(at, 2), index, **QUICK)) == []


# what does not matter


@given(collections(), THRESHOLDS, st.sampled_from(MEASURES), st.randoms(use_true_random=False))
def test_the_order_of_sets_and_tokens_does_not_matter(sets, threshold, measure, source):
    order = source.sample(range(len(sets)), len(sets))
    mixed = [source.sample(sets[i], len(sets[i])) for i in order]
    found = {(order[i], order[j], s) for i, j, s in rows(exact.pairs(mixed, threshold, measure=measure, **QUICK))}
    if measure != "containment":
        found = {(min(i, j), max(i, j), s) for i, j, s in found}
    assert found == set(rows(exact.pairs(sets, threshold, measure=measure, **QUICK)))


@given(collections(), THRESHOLDS, st.sampled_from(MEASURES))
def test_all_layouts_of_the_same_sets_are_joined_alike(sets, threshold, measure):
    truth = exact.pairs(sets, threshold, measure=measure)
    column = pa.array(sets, pa.list_(pa.int64()))
    layouts = [
        Sets.from_lists(sets),
        column,
        pa.array(sets, pa.large_list(pa.int16())),
        pa.chunked_array([column[:2], column[2:]]),
        tuple(map(frozenset, sets)),
        [np.array(tokens, np.int64) for tokens in sets],
        (tuple(tokens) for tokens in sets),
        [iter(tokens) for tokens in sets],
        [[f"token {token}" for token in tokens] for tokens in sets],
    ]
    for layout in layouts:
        assert exact.pairs(layout, threshold, measure=measure, **QUICK).equals(truth)
    across = exact.pairs(sets, threshold, measure=measure, other=sets, **QUICK)
    assert exact.pairs(Sets.from_lists(sets), threshold, measure=measure, other=column, **QUICK).equals(across)


EDGES = [0, 1, 2**31, 2**32 - 1, 2**32, 2**63 - 1, 2**63, 2**63 + 1, 2**64 - 2, 2**64 - 1]


@given(st.lists(st.sets(st.sampled_from(EDGES)), max_size=8), THRESHOLDS, st.sampled_from(INDEXES))
def test_sets_of_any_64_bit_values(lists, threshold, index):
    offsets = np.cumsum([0, *map(len, lists)])
    sets = Sets(np.array([x for values in lists for x in values], np.uint64), offsets)
    assert rows(exact.pairs(sets, threshold, index, **QUICK)) == oracles.joined(lists, threshold)


@pytest.mark.parametrize("kind", [np.int64, np.int32, np.uint32, np.uint16, np.int8])
def test_sets_of_other_whole_numbers(kind):
    lists = [[1, 2, 3], [3, 2, 1, 4], [100], [], [100]]
    offsets = np.cumsum([0, *map(len, lists)]).astype(np.int32)
    sets = Sets(np.array([x for values in lists for x in values], kind), offsets)
    assert rows(exact.pairs(sets, 0.5)) == oracles.joined(lists, 0.5) == [(0, 1, 0.75), (2, 4, 1.0)]
    negative = Sets(np.array([-1, -2, -1], kind), np.array([0, 2, 3])) if np.dtype(kind).kind == "i" else sets
    assert exact.pairs(negative, 0.5)["similarity"].to_pylist()[0] == (0.5 if negative is not sets else 0.75)


def test_sets_that_are_slices_of_larger_arrays():
    values = np.arange(20, dtype=np.uint64)[::2]
    assert rows(exact.pairs(Sets(values, np.array([0, 5, 5, 10])), 0.1)) == []
    assert rows(exact.pairs(Sets(values % np.uint64(10), np.array([0, 5, 5, 10])), 0.1)) == [(0, 2, 1.0)]


TOKENS = [
    *[0, 1, -1, 2**31 - 1, 2**31, -(2**31), -(2**31) - 1, 2**63 - 1, 2**63, -(2**63), -(2**63) - 1, 10**30],
    *["", "0", "1", "a", "é", "a\0b", "\0", "None", "日本", "x" * 300],
    *[1.5, float("inf"), 1e30 / 3],
    *[b"", b"1", b"a", (), (1,), (1, "a"), ("1",), frozenset(), frozenset([1]), date(2020, 1, 1)],
]


@given(
    st.lists(st.lists(st.sampled_from(range(len(TOKENS))), max_size=8), max_size=8),
    THRESHOLDS,
    st.sampled_from(MEASURES),
    st.booleans(),
)
def test_tokens_of_any_type(numbered, threshold, measure, bag):
    """Tokens that differ in Python differ here, such as 1 and "1"."""
    lists = [[TOKENS[i] for i in tokens] for tokens in numbered]
    truth = oracles.joined(numbered, threshold, measure, bag=bag)
    assert rows(exact.pairs(lists, threshold, measure=measure, bag=bag, **QUICK)) == truth


def test_mappings_are_bags_of_elements_with_their_counts():
    bags = [Counter(a=3), Counter(a=1), {"a": 3, "b": 0}, ["a", "a", "a"]]
    same = [(0, 2, 1.0), (0, 3, 1.0), (2, 3, 1.0)]
    assert rows(exact.pairs(bags, 0.9, bag=True)) == same
    assert len(exact.pairs(bags, 1 / 3, bag=True)) == 6
    index = exact.Index(bags, 0.9, bag=True)
    assert rows(index.query({"a": 3})) == [(0, 1.0), (2, 1.0), (3, 1.0)]
    assert rows(index.query(Counter("a"))) == [(1, 1.0)]
    with pytest.raises(ParameterError, match="counts must be whole numbers"):
        index.query({"a": -1})


# the table


@pytest.mark.parametrize("other", [None, [[1, 2], [9]]])
@pytest.mark.parametrize("measure", MEASURES)
def test_schema_order_and_metadata(measure, other):
    sets = [[1, 2, 3], [1, 2], [], [3, 2, 1], [], [9]]
    table = exact.pairs(sets, 0.5, measure=measure, other=other)
    assert table.schema.names == ["id_a", "id_b", "similarity"]
    assert table.schema.types == [pa.int64(), pa.int64(), pa.float64()]
    found = [(i, j) for i, j, _ in rows(table)]
    assert found == sorted(set(found))
    if other is None and measure != "containment":
        assert all(i < j for i, j in found)
    if other is None and measure == "containment":
        assert {(1, 0), (0, 1), (2, 0), (3, 0)} <= set(found)
        assert (0, 2) not in found
    stats = json.loads(table.schema.metadata[b"likewise"])
    assert sorted(stats) == ["counts", "index", "measure", "seconds", "threshold"]
    assert (stats["measure"], stats["threshold"], stats["index"]) == (measure, 0.5, "auto")
    assert stats["counts"]["sets"] == 6
    assert stats["counts"].get("other") == (None if other is None else 2)
    assert stats["counts"]["different"] == 4
    assert stats["counts"]["pairs"] == table.num_rows
    assert set(stats["seconds"]) == {"read", "join"}
    assert min(stats["seconds"].values()) >= 0


DIFFERENT = st.sets(st.frozensets(st.integers(0, 9), min_size=1), max_size=10).map(lambda sets: list(map(sorted, sets)))


@given(DIFFERENT, st.none() | DIFFERENT, THRESHOLDS, st.sampled_from(MEASURES))
def test_each_filter_lets_fewer_through(sets, other, threshold, measure):
    here, there = Sets.from_lists(sets), None if other is None else Sets.from_lists(other)
    passed = {}
    for index in INDEXES:
        found = counts(exact.pairs(here, threshold, index, measure, other=there, **QUICK))
        assert found["all_pairs"] >= found["length"] >= found["compared"] >= found["pairs"]
        assert found["length"] == passed.setdefault("length", found["length"])
        passed[index] = found["length"] if index == "length" else found["compared"]
        if index == "auto":
            assert found["length"] >= found["suffix"] >= found["bitmap"] == found["compared"]
        elif index != "length":
            assert found[index] == found["compared"]
    n = len(sets)
    every = n * len(other) if other is not None else n * (n - 1) // (1 if measure == "containment" else 2)
    assert found["all_pairs"] == every
    assert passed["length"] >= passed["prefix"] >= passed["position"] >= passed["suffix"] >= passed["auto"]


def test_copies_are_compared_once():
    table = exact.pairs([[1, 2, 3]] * 50 + [[1, 2, 3, 4]] * 50, 0.7)
    found = counts(table)
    assert (found["different"], found["all_pairs"], found["compared"]) == (2, 1, 1)
    assert found["pairs"] == table.num_rows == 100 * 99 // 2


# errors


@pytest.mark.parametrize("threshold", [0, -1, 1.5, float("nan"), True, "x", None])
@pytest.mark.parametrize("function", [exact.pairs, exact.Index, exact.explain])
def test_bad_thresholds(function, threshold):
    name = f"exact.{function.__name__}"
    with pytest.raises(ParameterError, match=rf"'threshold' parameter of {name} must be in \(0, 1\]"):
        function([[1], [2]], threshold)


@pytest.mark.parametrize("function", [exact.pairs, exact.Index, exact.explain])
def test_bad_measures_and_threads(function):
    name = f"exact.{function.__name__}"
    with pytest.raises(ParameterError, match=f"'measure' parameter of {name} must be 'jaccard', .*Got 'tanimoto'"):
        function([[1]], 0.5, measure="tanimoto")
    for threads in (0, -1, 1.5, True, "2"):
        with pytest.raises(ParameterError, match=f"'threads' parameter of {name}"):
            function([[1]], 0.5, threads=threads)


@pytest.mark.parametrize("index", ["Auto", "", None, "bitmap", 3])
def test_bad_indexes(index):
    with pytest.raises(ParameterError, match=r"'index' parameter of exact\.pairs must be 'auto', 'length'"):
        exact.pairs([[1]], 0.5, index)


@pytest.mark.parametrize("function", [exact.pairs, exact.explain])
@pytest.mark.parametrize("memory", [0, -1, "much", True, 1.5, "0GB"])
def test_bad_memory(function, memory):
    with pytest.raises(ParameterError, match=f"'memory' parameter of exact.{function.__name__}"):
        function([[1]], 0.5, memory=memory)


def no_offsets():
    return Sets(np.zeros(0, np.uint64), np.zeros(0, np.int64))


@pytest.mark.parametrize(
    ("bad", "says"),
    [
        ("abc", "list of lists"),
        (b"abc", "list of lists"),
        (5, "list of lists"),
        ({"a": [1]}, "list of lists"),
        ([["a"], "ab"], "item 1 is 'ab'"),
        ([["a"], b"ab"], "item 1 is b'ab'"),
        ([[1], 2], "item 1 is 2"),
        ([[1], None], "item 1 is None"),
        ([[1, None]], "null"),
        ([["\ud800"]], "Unicode"),
        (pa.array([[1], None]), "null lists"),
        (pa.array([1]), "column of lists"),
        (no_offsets(), "broken Sets"),
        (Sets(np.zeros(3, np.uint64), np.array([1, 3])), "broken Sets"),
        (Sets(np.zeros(3, np.uint64), np.array([0, 2])), "broken Sets"),
        (Sets(np.zeros(3, np.uint64), np.array([0, 4])), "broken Sets"),
        (Sets(np.zeros(3, np.uint64), np.array([0, 2, 1, 3])), "broken Sets"),
        (Sets(np.zeros(3), np.array([0, 3])), "must be whole numbers, not float64"),
    ],
)
def test_bad_sets(bad, says):
    good = [[1]]
    for call in (
        lambda: exact.pairs(bad, 0.5),
        lambda: exact.pairs(good, 0.5, other=bad),
        lambda: exact.explain(bad, 0.5),
        lambda: exact.Index(bad, 0.5),
        lambda: exact.Index(good, 0.5).add(bad),
        lambda: exact.Index(good, 0.5).query_many(bad),
        lambda: exact.Index(good, 0.5).query_and_add(bad),
    ):
        with pytest.raises(ParameterError, match=says):
            call()


def test_bags_cannot_be_made_of_sets():
    sets = Sets.from_lists([[1, 1], [1]])
    with pytest.raises(ParameterError, match=r"'bag' parameter of exact\.pairs needs lists, and 'other' are Sets"):
        exact.pairs([[1]], 0.5, other=sets, bag=True)
    bags = Sets.from_lists([[1, 1], [1]], bag=True)
    assert rows(exact.pairs(bags, 0.5)) == [(0, 1, 0.5)]


def test_too_large_sets(monkeypatch):
    monkeypatch.setattr(joining, "LARGEST", 3)
    with pytest.raises(InputError, match="set 1 of 'other' has more than 3 elements"):
        exact.pairs([[1, 2, 3]], 0.5, other=[[1, 2, 3], [1, 2, 3, 4]])


def test_more_pairs_than_the_disk_has_room_for(monkeypatch):
    monkeypatch.setattr(listing, "LEAST_HELD", 50)
    monkeypatch.setattr(listing.shutil, "disk_usage", lambda place: SimpleNamespace(free=100 * 40))
    few = {"threads": 1, "memory": 1000}
    assert exact.pairs([[1]] * 10, 0.5, **few).num_rows == 45
    for sets in ([[1]] * 15, [[1, i // 15] for i in range(30)]):
        with pytest.raises(
            OutputError, match=r"pairs or more are similar, and the disk has no room for them \(0\.0 GB"
        ):
            exact.pairs(sets, 0.5, **few)
    assert exact.pairs([[1]] * 15, 0.5, k=2, **few).num_rows == 30


# pairs in files, and k of each


@pytest.mark.parametrize("measure", ["jaccard", "containment"])  # pairs in files: symmetric ones, and others
@given(
    sets=collections(),
    other=st.none() | collections(6),
    threshold=THRESHOLDS,
    held=st.sampled_from([1, 7, 40]),
    chunk=st.sampled_from([3, 1 << 12]),
    threads=st.integers(1, 2),
)
def test_pairs_that_do_not_fit_in_memory(measure, sets, other, threshold, held, chunk, threads):
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(listing, "LEAST_HELD", held)
        patch.setattr(listing, "MARK", 4)
        patch.setattr(join, "CHUNK", chunk)
        patch.setattr(join, "PORTION", 2)
        found = exact.pairs(sets, threshold, measure=measure, other=other, memory=1000, threads=threads)
    assert rows(found) == oracles.joined(sets, threshold, measure, other)


@pytest.mark.parametrize("measure", MEASURES)
@given(
    sets=collections(14),
    other=st.none() | collections(8),
    threshold=THRESHOLDS,
    k=st.integers(1, 4) | st.just(50),
    memory=st.sampled_from([1, "1GB"]),
    threads=st.integers(1, 2),
)
@example([[], [1], [], [2]], None, 0.5, 1, 1, 1)
@example([[], [1]], [[], [2], []], 0.5, 2, 1, 1)
def test_the_k_best_are_those_of_all_pairs(measure, sets, other, threshold, k, memory, threads):
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(join, "CHUNK", 2)
        table = exact.pairs(sets, threshold, measure=measure, other=other, k=k, memory=memory, threads=threads)
    every = oracles.joined(sets, threshold, measure, other)
    if other is None and measure != "containment":
        every += [(b, a, similarity) for a, b, similarity in every]
    every.sort(key=lambda pair: (pair[0], -pair[2], pair[1]))
    best = [pair for _, of in itertools.groupby(every, key=lambda pair: pair[0]) for pair in list(of)[:k]]
    assert rows(table) == best


def test_the_k_best_of_many_sets_by_any_number_of_threads():
    sets = near_copies(7, 500)
    every = exact.pairs(sets, 0.1)
    left, right, similarity = (every[name].to_numpy() for name in every.column_names)
    both = np.concatenate([left, right]), np.concatenate([right, left]), np.concatenate([similarity, similarity])
    expected = [column.tolist() for column in best_first(*both, 5)]
    for threads in (1, 2):
        table = exact.pairs(sets, 0.1, k=5, threads=threads)
        assert [column.to_pylist() for column in table.columns] == expected
        assert counts(table)["compared"] == counts(every)["compared"], "whatever was of no use"


@pytest.mark.parametrize("k", [0, -1, 1.5, True, "2"])
def test_bad_k_of_pairs(k):
    with pytest.raises(ParameterError, match=r"'k' parameter of exact\.pairs"):
        exact.pairs([[1]], 0.5, k=k)


def test_progress_adds_up_to_the_sets():
    done = []
    sets = Sets.from_lists([[1, 2], [2, 1], [], [3], [1, 2, 3]])
    for other, memory in ((None, 1 << 20), (sets, 1 << 20), (sets, 1)):
        done.clear()
        task = joining.JoinTask(exact.Bounds("jaccard", 0.5), 1, memory)
        joining.join_sets(sets, other, task, Workspace.temporary(), done.append)
        assert sum(done) == (5 if other is None else 10)
        assert min(done) >= 0


# one set at a time


def answers(query, sets, threshold, measure, bag=False):
    found = [(j, oracles.similarity(measure, query, tokens, bag)) for j, tokens in enumerate(sets)]
    return sorted((row for row in found if row[1] >= threshold), key=lambda row: (-row[1], row[0]))


@pytest.mark.parametrize("measure", MEASURES)
@given(
    sets=collections(8),
    queries=collections(5),
    threshold=THRESHOLDS,
    k=st.none() | st.integers(1, 4),
    bag=st.booleans(),
)
@example([[], [1]], [[], [2], [1]], 0.5, None, False)
@example([], [[], [2]], 0.5, 1, False)
def test_queries_find_what_brute_force_finds(measure, sets, queries, threshold, k, bag):
    index = exact.Index(sets, threshold, measure=measure, bag=bag, threads=1)
    assert len(index) == len(sets)
    truth = [answers(query, sets, threshold, measure, bag)[:k] for query in queries]
    assert rows(index.query_many(queries, k)) == [(i, *row) for i, found in enumerate(truth) for row in found]
    for query, found in zip(queries[:2], truth, strict=False):
        assert rows(index.query(query, k)) == found


@pytest.mark.parametrize("measure", MEASURES)
@given(sets=collections(14), threshold=THRESHOLDS, bag=st.booleans(), data=st.data())
def test_sets_added_in_batches_as_they_are_asked_about(measure, sets, threshold, bag, data):
    """Each set against those before it; batches of any size, so that the order of symbols is made anew in between."""
    index = exact.Index(threshold=threshold, measure=measure, bag=bag, threads=1)
    found, at, asked = [], 0, set()
    while at < len(sets):
        size = data.draw(st.integers(1, 4))
        batch = sets[at : at + size]
        if data.draw(st.booleans()):
            asked |= set(range(at, at + len(batch)))
            found += rows(index.query_and_add(batch))
        else:
            assert index.add(batch) == range(at, at + len(batch))
        at += len(batch)
        assert len(index) == at
    earlier = [(i, answers(sets[i], sets[:i], threshold, measure, bag)) for i in sorted(asked)]
    assert found == [(i, *row) for i, expected in earlier for row in expected]
    for query in sets[-2:]:
        assert rows(index.query(query)) == answers(query, sets, threshold, measure, bag)


@pytest.mark.parametrize("measure", MEASURES)
def test_an_index_that_grows_far(measure):
    """From one set to many, so that tables and lists of entries are moved, and the most frequent symbols change."""
    sets = near_copies(seed=11, n=150)
    pairs = oracles.joined(sets, 0.6, measure)
    truth = {(i, j, s) for i, j, s in pairs if i > j} | {(j, i, s) for i, j, s in pairs if measure != "containment"}
    one_by_one, at_once = (exact.Index(threshold=0.6, measure=measure, threads=threads) for threads in (1, 2))
    assert {row for tokens in sets for row in rows(one_by_one.query_and_add([tokens]))} == truth
    assert set(rows(at_once.query_and_add(sets))) == truth
    third = exact.Index(sets[:50], 0.6, measure=measure)
    third.add(sets[50:51])
    third.add(sets[51:])
    for tokens in (sets[0], sets[60], sets[-1], sets[7][1:], [*sets[30], "unseen", -5]):
        expected = answers(tokens, sets, 0.6, measure)
        for index in (one_by_one, at_once, third):
            assert rows(index.query(tokens)) == expected


def test_tokens_that_no_set_has():
    index = exact.Index([["a", "b"], []], 0.1)
    assert rows(index.query(["x", "y", 3])) == []
    assert rows(index.query(["a", *range(8)])) == [(0, 0.1)]
    assert rows(index.query(["a", *range(9)])) == []
    assert rows(index.query([])) == [(1, 1.0)]
    assert rows(exact.Index([["a"], []], 0.5, measure="containment").query([])) == [(0, 1.0), (1, 1.0)]


def test_layouts_of_queries():
    sets = [[1, 2, 3], [2, 3, 4], [7]]
    index = exact.Index(pa.array(sets), 0.5)
    expected = [(0, 1.0), (1, 0.5)]
    for tokens in ([3, 2, 1], (1, 2, 3), {1, 2, 3}, np.array([1, 2, 3]), iter([1, 2, 3]), [1, 1, 2, 3]):
        assert rows(index.query(tokens)) == expected
    for queries in ([[1, 2, 3]], pa.array([[1, 2, 3]]), Sets.from_lists([[1, 2, 3]]), iter([[1, 2, 3]])):
        assert rows(index.query_many(queries)) == [(0, *row) for row in expected]
    assert rows(index.query_many([])) == []


def test_a_query_may_be_an_arrow_column():
    assert rows(exact.Index([[1, 2, 3], [7]], 0.5).query(pa.array([1, 2, 3]))) == [(0, 1.0)]


def test_the_tables_of_an_index():
    index = exact.Index([[1, 2], [1]], 0.4)
    names = [("id_b", pa.int64()), ("similarity", pa.float64())]
    assert index.query([1]).schema == pa.schema(names)
    assert (
        index.query_many([[1]]).schema == index.query_and_add([[1]]).schema == pa.schema([("id_a", pa.int64()), *names])
    )
    assert repr(index) == "<Index of 3 sets: jaccard of 0.4 or more>"
    assert index.add([]) == range(3, 3)
    assert rows(index.query_and_add([])) == []
    assert rows(index.query_and_add([[5]])) == []


def test_many_answers_do_not_overflow_an_index(monkeypatch):
    from likewise.search.exact import index as module

    monkeypatch.setattr(module, "ROOM", 1)
    monkeypatch.setattr(module, "CHUNK", 2)
    sets = [[1, 2, i % 3] for i in range(40)]
    index = exact.Index(threshold=0.5, threads=2)
    found = rows(index.query_and_add(sets))
    assert sorted((j, i, s) for i, j, s in found) == oracles.joined(sets, 0.5)
    asked = rows(index.query_many(sets[:9]))
    assert asked == [(i, *row) for i in range(9) for row in answers(sets[i], sets, 0.5, "jaccard")]


@pytest.mark.parametrize("k", [0, -1, 1.5, True, "3"])
def test_bad_k(k):
    index = exact.Index([[1]], 0.5)
    for call in (index.query, index.query_many):
        with pytest.raises(
            ParameterError, match=r"'k' parameter of exact\.Index\.query(_many)? must be a positive whole number"
        ):
            call([[1]], k)


@pytest.mark.parametrize("tokens", ["abc", b"abc", Sets.from_lists([[1]]), 5, None])
def test_bad_queries(tokens):
    with pytest.raises(ParameterError, match=r"'tokens' parameter of exact\.Index\.query must be a list of tokens"):
        exact.Index([[1]], 0.5).query(tokens)


def test_a_bad_batch_leaves_an_index_as_it_was():
    index = exact.Index([["a", "b"]], 0.5)
    for bad in ([["a"], "b"], [[None]]):
        for call in (index.add, index.query_and_add):
            with pytest.raises(ParameterError):
                call(bad)
    assert len(index) == 1
    assert rows(index.query(["a"])) == [(0, 0.5)]


# how many pairs each filter leaves


def in_order(sets):
    """The strings of these sets, in the library's order of symbols, whole."""
    hashed = Sets.from_lists(sets)
    known = survey([hashed], 1, 1).counts
    made = written(hashed, np.arange(len(sets)), hashed.sizes, known, 0)
    return [made.symbols[a:b].tolist() for a, b in itertools.pairwise(made.offsets)]


def fits(name, s, t, similarity):
    """Whether the chapter would compare the probe s with an earlier, not longer, string t; every place from 1."""
    here, there = ({x: i for i, x in enumerate(string[: prefix(string, similarity)], 1)} for string in (s, t))
    return any(
        name == "prefix"
        or (name == "position" and Fraction(len(s) - here[x] + 1, len(s) + there[x] - 1) >= similarity)
        or (name == "suffix" and fits_suffix(len(s), here[x], there[x], len(t) - there[x], similarity))
        for x in here.keys() & there.keys()
    )


def prefix(string, similarity):
    return floor((1 - similarity) * len(string)) + 1


def fits_suffix(length, i, j, q, similarity):
    p = length - i
    if p >= q:
        return Fraction(q + 1, length + j - 1) >= similarity
    return Fraction(length - i + 1, i + j - 1 + q) >= similarity


def compared(name, sets, similarity):
    """How many pairs of different sets the chapter compares: strings by length, each a probe for those before it."""
    strings = sorted(in_order(sets), key=len)
    near = [(s, t) for t, s in itertools.combinations(strings, 2) if len(s) <= len(t) / similarity]
    return len(near) if name == "length" else sum(fits(name, s, t, similarity) for s, t in near)


@given(DIFFERENT, st.sampled_from(["0.3", "0.5", "0.6", "2/3", "0.75", "0.8", "0.9", "1"]))
def test_the_filters_compare_the_pairs_that_the_chapter_compares(sets, threshold):
    similarity = Fraction(threshold)
    for name in ("length", "prefix", "position", "suffix"):
        table = exact.pairs(sets, float(similarity), name, **QUICK)
        assert counts(table)["compared"] == compared(name, sets, similarity), name


@pytest.mark.parametrize("threshold", ["0.5", "0.8", "0.9"])
def test_explain_counts_what_the_chapter_compares(threshold):
    sets = [list(tokens) for tokens in {frozenset(tokens): 0 for tokens in near_copies(3)} if tokens]
    similarity = Fraction(threshold)
    table = exact.explain(sets, float(similarity))
    found = dict(zip(table["filter"].to_pylist(), table["pairs"].to_pylist(), strict=True))
    assert list(found) == ["none", "length", "prefix", "position", "suffix", "bitmap", "similar"]
    every = len(sets) * (len(sets) - 1) // 2
    assert found["none"] == every
    assert found["similar"] == len(oracles.joined(sets, float(similarity))) > 0
    for name in ("length", "prefix", "position", "suffix"):
        assert found[name] == compared(name, sets, similarity)
    assert found["none"] > found["length"] > found["prefix"] > found["position"] > found["suffix"] > found["bitmap"]
    assert table["share"].to_pylist() == [count / every for count in found.values()]
    assert min(table["seconds"].to_pylist()) >= 0


@given(collections(8), st.none() | collections(6), THRESHOLDS, st.sampled_from(MEASURES), st.booleans())
def test_explain_counts_what_each_index_compares(sets, other, threshold, measure, bag):
    options = {"measure": measure, "other": other, "bag": bag, "threads": 1, "memory": 500}
    if not sets or other == []:
        with pytest.raises(ParameterError, match="a collection is empty"):
            exact.explain(sets, threshold, **options)
        return
    table = exact.explain(sets, threshold, **options)
    found = dict(zip(table["filter"].to_pylist(), table["pairs"].to_pylist(), strict=True))
    for index in INDEXES:
        expected = counts(exact.pairs(sets, threshold, index, **options))["compared"]
        assert found["bitmap" if index == "auto" else index] == expected
    numbers = list(found.values())
    assert numbers == sorted(numbers, reverse=True)
    here, there = (
        [Counter(dict(kind)) for kind in {frozenset(Counter(x if bag else set(x)).items()) for x in side} if kind]
        for side in (sets, other or [])
    )
    if other is None:
        every = len(here) * (len(here) - 1) // (1 if measure == "containment" else 2)
    else:
        every = len(here) * len(there)
    assert found["none"] == every
    spelled = [list(kind.elements()) for kind in here], [list(kind.elements()) for kind in there]
    truth = oracles.joined(spelled[0], threshold, measure, None if other is None else spelled[1], bag)
    assert found["similar"] == len(truth)
    told = json.loads(table.schema.metadata[b"likewise"])
    assert told["sets"] == [len(sets), *([] if other is None else [len(other)])]
    assert told["compared"] == [len(here), *([] if other is None else [len(there)])]


# sets as strings


def test_strings_are_in_one_order_and_rarest_first():
    source = random.Random(4)
    sets = [sorted({int(2000 * source.random() ** 3) for _ in range(30)}) for _ in range(400)]
    hashed = Sets.from_lists(sets)
    known = survey([hashed], 1, 1).counts
    frequency = Counter(hashed.values.tolist())
    together = Counter()
    for token, count in frequency.items():
        together[slot(token, known)] += count
    assert all(known[place] == count for place, count in together.items())
    ranks, ends = {}, Counter()
    for string, tokens in zip(in_order(sets), hashed, strict=True):
        assert sorted(string) == sorted(tokens.tolist())
        keys = [together[slot(token, known)] for token in string]
        assert keys == sorted(keys)
        for a, b in itertools.combinations(string, 2):
            first = ranks.setdefault((min(a, b), max(a, b)), a)
            assert first == a, "two symbols are in the same order everywhere"
        ends["first"] += sum(frequency[token] for token in string[:5])
        ends["last"] += sum(frequency[token] for token in string[-5:])
    assert 10 * ends["first"] < ends["last"], "though some symbols are counted together with others"


def slot(token, known):
    """Symbols are counted by the first bits of their hash."""
    code = (token ^ token >> 32) * int(TABLE_ODD) % 2**64
    return (code ^ code >> 32) * int(SPREAD_ODD) % 2**64 >> 64 - (len(known).bit_length() - 1)


# growth


@pytest.mark.parametrize("n", [100, 400])
def test_look_ups_walk_no_further_in_an_index_of_more_sets(n):
    """Every symbol is in two sets, so that prefixes are chosen among equally rare ones.

    A look-up of a symbol that is not there walks to the end of a run of filled slots: 3/2 slots on average if at most
    half of the slots, at random, are filled (Knuth, The Art of Computer Programming, volume 3, 6.4).
    """
    source = np.random.default_rng(n)
    values = source.integers(0, 2**64, (n, 200), np.uint64)
    sets = Sets(np.tile(values, (2, 1)).reshape(-1), np.arange(2 * n + 1) * 200)
    known = survey([sets], 4, 1)
    lengths = Lengths.of(sets.sizes, exact.Bounds("jaccard", 0.8), textbook=False)
    text = written(sets, np.arange(len(sets)), lengths.index, known.counts, 2)
    lists = Postings(text, lengths.index, np.zeros(len(sets), np.int32), np.array([200]))
    filled = lists.filled
    assert filled.sum() > 10 * n
    ends = np.flatnonzero(np.diff(np.concatenate([[False], filled, [False]]).astype(int)))
    runs = np.diff(ends)[::2]
    assert (runs * (runs + 1) / 2).sum() / len(filled) <= 3
