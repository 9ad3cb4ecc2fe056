import numpy as np
from arrays_of import WORDS_64, hashes, ints, numbers
from hypothesis import example, given
from hypothesis import strategies as st

import oracles
from likewise.kernels import graph, pairs

KEYS = st.integers(1, 3).flatmap(
    lambda b: st.lists(st.lists(st.integers(0, 2), min_size=b, max_size=b), min_size=1, max_size=9)
)
GRAPHS = st.integers(1, 9).flatmap(
    lambda n: st.tuples(st.permutations(range(n)), st.sets(st.tuples(st.integers(0, n - 1), st.integers(0, n - 1))))
)


@given(st.lists(WORDS_64, max_size=12))
@example([])
@example([2**64 - 1, 2**63, 0, 2**63])
def test_radix_argsort(keys):
    assert numbers(pairs.radix_argsort(hashes(keys), 64)) == sorted(range(len(keys)), key=keys.__getitem__)


@given(st.lists(st.integers(0, 2**11 + 3), max_size=12))
def test_radix_argsort_looks_at_the_bits_it_must(keys):
    assert numbers(pairs.radix_argsort(hashes(keys), 12)) == sorted(range(len(keys)), key=keys.__getitem__)


def scan(keys, split=-1):
    array = np.array(keys, np.uint32)
    found = []
    for band in range(array.shape[1]):
        order = np.argsort(array[:, band], kind="stable")
        none = np.zeros(0, np.int32)
        count = pairs.scan_band(array, band, order, split, False, none, none)
        left, right = np.empty(count, np.int32), np.empty(count, np.int32)
        assert pairs.scan_band(array, band, order, split, True, left, right) == count
        found += zip(numbers(left), numbers(right), strict=True)
    return sorted(found)


@given(KEYS)
def test_bands_give_every_candidate_once(keys):
    assert scan(keys) == oracles.candidates(keys)


@given(KEYS, st.integers(0, 9))
def test_bands_give_every_candidate_across_the_split_once(keys, split):
    assert scan(keys, split) == oracles.candidates(keys, split)


def test_spell_out():
    members, offsets = ints([0, 3, 5, 1, 2, 4]), ints([0, 3, 5, 6])  # groups {0, 3, 5}, {1, 2}, {4}
    left, right, similarity = ints([0, 1, 0]), ints([1, 2, 0]), np.array([0.5, 0.25, 1.0])
    out = np.empty(11, np.int64), np.empty(11, np.int64), np.empty(11)
    pairs.spell_out(left, right, similarity, members, offsets, *out)
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
