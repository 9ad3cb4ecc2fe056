import numpy as np
from arrays_of import WORDS_64, hashes, ints, numbers, words
from hypothesis import example, given
from hypothesis import strategies as st

import oracles
from likewise.kernels import graph, pairs, sorting

KEYS = st.integers(1, 3).flatmap(
    lambda b: st.lists(st.lists(st.integers(0, 2), min_size=b, max_size=b), min_size=1, max_size=9)
)
EDGES_32 = [0, 1, 2**11 - 1, 2**11, 2**22 - 1, 2**22, 2**31 - 1, 2**31, 2**32 - 1]
GRAPHS = st.integers(1, 9).flatmap(
    lambda n: st.tuples(st.permutations(range(n)), st.sets(st.tuples(st.integers(0, n - 1), st.integers(0, n - 1))))
)


@given(st.lists(WORDS_64, max_size=12))
@example([])
@example([2**64 - 1, 2**63, 0, 2**63])
def test_radix_argsort(keys):
    assert numbers(sorting.radix_argsort(hashes(keys), 64)) == sorted(range(len(keys)), key=keys.__getitem__)


@given(st.lists(st.integers(0, 2**11 + 3), max_size=12))
def test_radix_argsort_looks_at_the_bits_it_must(keys):
    assert numbers(sorting.radix_argsort(hashes(keys), 12)) == sorted(range(len(keys)), key=keys.__getitem__)


@given(st.lists(st.sampled_from(EDGES_32) | st.integers(0, 2**32 - 1), max_size=14))
@example([])
@example([2**32 - 1, 2**31, 0, 2**31, 2**22, 2**11])
def test_radix_sort32(keys):
    array = words(keys)
    order, ordered = sorting.radix_sort32(array)
    assert order.dtype == np.int32
    assert ordered.dtype == np.uint32
    assert numbers(order) == sorted(range(len(keys)), key=keys.__getitem__)
    assert numbers(ordered) == sorted(keys)
    assert numbers(array) == keys, "the keys stay as they were"


FEW = st.sampled_from([0, 1, 2**32, 2**63, 2**63 + 1, 2**64 - 1])


@given(st.lists(st.tuples(FEW, st.sampled_from([0, 1, 2**63])), max_size=14))
@example([])
@example([(2**32, 0), (0, 0), (2**32, 0), (0, 0)])
def test_rows_with_equal_fingerprints_get_the_first_of_them(rows):
    """2**32 and 0 agree in the bits that are sorted by, and are not the same."""
    digests = hashes(rows).reshape(-1, 2)
    order = np.argsort(digests[:, 0].astype(np.uint32), kind="stable").astype(np.int32)
    first = np.full(len(rows), -1, np.int64)
    pairs.label_equal(digests, order, first)
    assert numbers(first) == [rows.index(row) for row in rows]


def scan(keys, low=0, high=None, cap=99, passed=True):
    """The pairs of every band; `passed`: those of earlier bands are passed over."""
    array, light = np.array(keys, np.uint32), np.zeros((0, 0), np.bool_)
    found = []
    for band in range(array.shape[1]):
        members, ordered = sorting.radix_sort32(array[:, band].copy())
        none = np.zeros(0, np.int32)
        bounds = low, len(keys) if high is None else high, cap
        earlier = (array, light, band) if passed else (np.zeros((0, 0), np.uint32), light, 0)
        count = pairs.scan_band(ordered, members, *earlier, *bounds, False, none, none)
        left, right = np.empty(count, np.int32), np.empty(count, np.int32)
        assert pairs.scan_band(ordered, members, *earlier, *bounds, True, left, right) == count
        found += zip(numbers(left), numbers(right), strict=True)
    return sorted(found)


@given(KEYS)
def test_bands_give_every_candidate_once(keys):
    assert scan(keys) == oracles.candidates(keys)


@given(KEYS, st.integers(0, 9), st.integers(0, 9))
def test_bands_give_every_candidate_that_counts_once(keys, low, high):
    assert scan(keys, low, high) == oracles.candidates(keys, low, high)
    assert scan(keys, low, low) == [(i, j) for i, j in oracles.candidates(keys) if i < low <= j]


@given(KEYS, st.integers(1, 9))
def test_pairs_that_met_in_a_heavy_bucket_count_in_a_light_one(keys, cap):
    array = np.array(keys, np.uint32)
    heavy = np.array([[column.tolist().count(key) > cap for key in column] for column in array.T], np.bool_).T.copy()
    found = []
    for band in range(array.shape[1]):
        members, ordered = sorting.radix_sort32(array[:, band].copy())
        room = [np.empty(99, np.int32), np.empty(99, np.int32)]
        count = pairs.scan_band(ordered, members, array, heavy, band, 0, len(keys), cap, True, *room)
        found += zip(*(numbers(side[:count]) for side in room), strict=True)
    assert sorted(found) == oracles.candidates(keys, cap=cap)


@given(KEYS, st.integers(0, 9), st.integers(1, 9))
def test_a_band_by_itself_gives_the_pairs_of_its_light_buckets(keys, low, cap):
    expected = [pair for column in zip(*keys, strict=True) for pair in oracles.candidates(
        [[key] for key in column], low, cap=cap)]  # fmt: skip
    assert scan(keys, low, None, cap, passed=False) == sorted(expected)


@given(st.lists(st.integers(0, 3), max_size=12), st.integers(1, 6))
def test_heavy_buckets_give_their_items_beside_the_first(column, cap):
    members, ordered = sorting.radix_sort32(words(column))
    none = np.zeros(0, np.int32)
    count = pairs.heavy_buckets(ordered, members, cap, False, none, none)
    first, rest = np.empty(count, np.int32), np.empty(count, np.int32)
    assert pairs.heavy_buckets(ordered, members, cap, True, first, rest) == count
    expected = [(column.index(key), item) for item, key in enumerate(column) if column.count(key) > cap]
    assert sorted(zip(numbers(first), numbers(rest), strict=True)) == sorted(expected)


def test_expand_pairs():
    members, offsets = ints([0, 3, 5, 1, 2, 4]), ints([0, 3, 5, 6])  # groups {0, 3, 5}, {1, 2}, {4}
    left, right, similarity = ints([0, 1, 0]), ints([1, 2, 0]), np.array([0.5, 0.25, 1.0])
    out = np.empty(11, np.int64), np.empty(11, np.int64), np.empty(11)
    pairs.expand_pairs(left, right, similarity, members, offsets, members, offsets, True, True, *out)
    found = list(zip(*(column.tolist() for column in out), strict=True))
    across = [(0, 1), (0, 2), (1, 3), (2, 3), (1, 5), (2, 5)]
    assert found[:6] == [(*pair, 0.5) for pair in across]
    assert found[6:8] == [(1, 4, 0.25), (2, 4, 0.25)]
    assert found[8:] == [(0, 3, 1.0), (0, 5, 1.0), (3, 5, 1.0)]


def edges(graph_edges):
    chosen = sorted({(min(edge), max(edge)) for edge in graph_edges if edge[0] != edge[1]})
    return chosen, ints([a for a, _ in chosen]), ints([b for _, b in chosen])


@given(GRAPHS)
def test_components(made):
    order, chosen = made
    chosen, left, right = edges(chosen)
    for direction in (slice(None), slice(None, None, -1)):
        found = graph.components(len(order), left[direction].copy(), right[direction].copy())
        assert numbers(found) == oracles.components(len(order), chosen)


@given(GRAPHS)
def test_keepers(made):
    order, chosen = made
    chosen, left, right = edges(chosen)
    removed_by = numbers(graph.keepers(ints(order), left, right))
    expected = oracles.keepers(order, set(chosen))
    for node, pair in enumerate(removed_by):
        keeper = node if pair < 0 else sum(chosen[pair]) - node
        assert keeper == expected[node]


def test_nothing_to_cluster():
    none = ints([])
    assert graph.components(0, none, none).size == 0
    assert graph.keepers(none, none, none).size == 0
