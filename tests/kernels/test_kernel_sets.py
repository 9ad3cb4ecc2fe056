from fractions import Fraction

import numpy as np
import pytest
from arrays_of import FEW_64, LAST_SLOTS, WORDS_64, Opened, hashes, ints, numbers, parts, ragged, spread
from hypothesis import example, given
from hypothesis import strategies as st

import oracles
from likewise.kernels import sets
from likewise.kernels.hashtable import table_bits
from likewise.search.exact.bounds import least_fraction

sets = Opened(sets)

BAGS = st.lists(st.lists(FEW_64 | WORDS_64, max_size=12), max_size=6)
SETS = st.lists(st.sets(st.integers(0, 15).map(oracles.mix) | FEW_64, max_size=14).map(list), min_size=1, max_size=6)
THRESHOLDS = [0.1, 0.1 + 0.2, 1 / 3, 0.5, 2 / 3, 0.7, 0.8, 0.9, 1.0]


@pytest.mark.parametrize("n", [0, 1, 7, 8, 9, 1000])
def test_a_table_is_a_power_of_two_and_at_most_half_full(n):
    assert 2 * n <= 1 << int(table_bits(n)) <= max(16, 4 * n)


@given(BAGS)
@example([])
@example([[]])
@example([[2**63]])
def test_distinct_sets(bags):
    values, offsets = ragged(bags)
    out, out_offsets = np.empty(len(values), np.uint64), np.empty(len(offsets), np.int64)
    written = sets.distinct_sets(values, offsets, out, out_offsets)
    assert parts(out[:written], out_offsets) == [oracles.distinct(bag) for bag in bags]


@given(BAGS)
@example([])
def test_numbered_sets(bags):
    values, offsets = ragged(bags)
    out, out_offsets = np.empty(len(values), np.uint64), np.empty(len(offsets), np.int64)
    assert sets.numbered_sets(values, offsets, out, out_offsets) == len(values)
    assert parts(out, out_offsets) == [oracles.numbered(bag) for bag in bags]


def test_crowded_tables_wrap_around():
    bag = LAST_SLOTS * 2
    values, offsets = ragged([bag])
    out, out_offsets = np.empty(len(values), np.uint64), np.empty(2, np.int64)
    assert sets.distinct_sets(values, offsets, out, out_offsets) == 8
    assert numbers(out[:8]) == bag[:8]
    similarity = verified([bag[:8], bag[4:8]], [(0, 1), (0, 0)], 0.5)
    assert similarity == [0.5, 1.0]


def drawn(lists, words, dtype=np.uint64):
    values, offsets = ragged(lists)
    maps = np.empty((len(lists), words), np.uint64)
    sets.bitmaps(values.astype(dtype), offsets, maps)
    return maps


def bitmap(values, words):
    """One bit for every element, by its hash."""
    places = [spread(x) // 2**32 % (64 * words) for x in values]
    return [sum({1 << place % 64 for place in places if place // 64 == word}) for word in range(words)]


@pytest.mark.parametrize("words", [1, 2, 8])
@given(lists=SETS)
def test_bitmaps(lists, words):
    maps = drawn(lists, words)
    assert [numbers(row) for row in maps] == [bitmap(values, words) for values in lists]
    for a in range(len(lists)):
        differ = sets.differing_bits(maps[a], maps[0])
        assert differ == sum((int(x) ^ int(y)).bit_count() for x, y in zip(maps[a], maps[0], strict=True))
        assert differ <= len(set(lists[a]) ^ set(lists[0])), "so that no pair is ruled out by mistake"


@given(st.lists(WORDS_64, min_size=1, max_size=4))
def test_differing_bits(words):
    zero = np.zeros(len(words), np.uint64)
    assert sets.differing_bits(hashes(words), zero) == sum(word.bit_count() for word in words)


def verified(lists, pairs, threshold, dtype=np.uint64, words=2):
    values, offsets = ragged(lists)
    out = np.empty(len(pairs))
    left, right = ints([a for a, _ in pairs]), ints([b for _, b in pairs])
    sets.verify(left, right, values.astype(dtype), offsets, drawn(lists, words, dtype), *least_fraction(threshold), out)
    return out.tolist()


def truth(lists, pairs, threshold):
    found = [oracles.jaccard(lists[a], lists[b]) for a, b in pairs]
    return [similarity if similarity >= threshold else -1.0 for similarity in found]


@given(SETS, st.sampled_from(THRESHOLDS) | st.floats(0.001, 1))
def test_verify_every_pair(lists, threshold):
    pairs = [(a, b) for a in range(len(lists)) for b in range(len(lists))]
    assert verified(lists, pairs, threshold) == truth(lists, pairs, threshold)


@given(st.lists(st.sets(st.integers(0, 12), max_size=9).map(list), min_size=2, max_size=4))
def test_verify_sets_of_32_bits(lists):
    pairs = [(a, b) for a in range(len(lists)) for b in range(a + 1, len(lists))]
    assert verified(lists, pairs, 0.3, np.uint32) == truth(lists, pairs, 0.3)


@pytest.mark.parametrize("threshold", ["4/5", "9/10", "1/3", "2/3", "3/7", "99/100", "1/7", "1/1"])
@pytest.mark.parametrize("scale", [1, 3, 7])
def test_verify_exactly_at_the_threshold(threshold, scale):
    """shared / union is the threshold itself; one element less and it is below."""
    shared, union = (scale * part for part in Fraction(threshold).as_integer_ratio())
    extra = union - shared
    shared_values = list(range(shared))
    for beside in range(extra + 1):
        a = shared_values + list(range(1000, 1000 + beside))
        b = list(range(2000, 2000 + extra - beside)) + shared_values
        lists = [a, b, a[1:], [*b, 5000]]
        at = float(Fraction(threshold))
        assert verified(lists, [(0, 1), (1, 0)], at) == [at, at]
        assert verified(lists, [(0, 3), (2, 1)], at) == [-1.0, -1.0]
        above = float(np.nextafter(at, 2)) if at < 1 else 1.0
        assert at == 1 or verified(lists, [(0, 1), (1, 0)], above) == [-1.0, -1.0]


@given(BAGS)
def test_digests_of_sets_ignore_order(bags):
    lists = [oracles.distinct(bag) for bag in bags]
    lists += [list_[::-1] for list_ in lists]
    out = np.empty((len(lists), 2), np.uint64)
    sets.digest_sets(*ragged(lists), out)
    found = [tuple(numbers(row)) for row in out]
    for i, j in zip(*np.triu_indices(len(lists)), strict=True):
        same = set(lists[i]) == set(lists[j])
        assert (found[i][0] == found[j][0]) == same
        assert (found[i][1] == found[j][1]) == same


def test_distinct_keeps_the_stamp_of_earlier_documents_apart():
    table, owner = np.empty(16, np.uint64), np.full(16, -1)
    out = np.empty(3, np.uint64)
    for stamp in range(3):
        assert sets.distinct(hashes([5, 5, 2**63]), 3, table, owner, stamp, out) == 2
