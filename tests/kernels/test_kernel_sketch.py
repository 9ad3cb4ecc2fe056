from collections import Counter
from itertools import combinations

import numpy as np
import pytest
from arrays_of import WORDS_64, hashes, numbers, ragged
from hypothesis import given
from hypothesis import strategies as st

import oracles
from likewise.families.minhash import METHODS, MinHash, seed_sequence
from likewise.kernels import sketch

SETS = st.lists(st.lists(WORDS_64, max_size=7), max_size=4)


def signatures(lists, method, seed, t):
    out = np.empty((len(lists), t), np.uint32)
    minhash = MinHash(seed, method)
    sketch.sketch_sets(*ragged(lists), minhash.code, minhash.seeds(t), out)
    return [numbers(row) for row in out]


@given(WORDS_64, st.integers(0, 20))
def test_seeds(seed, n):
    assert numbers(seed_sequence(seed, n)) == oracles.seed_sequence(seed, n)


@pytest.mark.parametrize("method", METHODS)
@given(lists=SETS, seed=WORDS_64, t=st.integers(1, 12))
def test_signatures(method, lists, seed, t):
    assert signatures(lists, method, seed, t) == [oracles.signature(method, seed, values, t) for values in lists]


@pytest.mark.parametrize("method", METHODS)
@pytest.mark.parametrize("size", [0, 1, 2, 40])
def test_signatures_of_one_set(method, size):
    values = [oracles.mix(i) | 1 << 63 for i in range(size)]
    assert signatures([values], method, 9, 16) == [oracles.signature(method, 9, values, 16)]


@pytest.mark.parametrize("rows", [1, 2, 3])
@given(slots=st.lists(st.integers(0, 2**32 - 1), max_size=4))
def test_band_keys(slots, rows):
    signature = np.array(slots * rows, np.uint32)
    out = np.empty(len(slots), np.uint32)
    sketch.band_keys(signature, rows, out)
    assert numbers(out) == oracles.band_keys(slots * rows, rows)


@pytest.mark.parametrize("method", METHODS)
@given(lists=SETS)
def test_keys_are_those_of_the_signatures(method, lists):
    minhash, bands, rows = MinHash(2**63 + 5, method), 3, 2
    out = np.empty((len(lists), bands), np.uint32)
    sketch.key_sets(*ragged(lists), minhash.code, minhash.seeds(bands * rows), rows, out)
    expected = [oracles.signature(method, minhash.seed, values, bands * rows) for values in lists]
    assert [numbers(row) for row in out] == [oracles.band_keys(slots, rows) for slots in expected]


@given(st.lists(st.lists(st.integers(0, 2), min_size=5, max_size=5), max_size=6), st.integers(1, 3))
def test_agreements(rows, step):
    counts = np.zeros(6, np.int64)
    for first in range(step):
        sketch.agreements(np.array(rows, np.uint16).reshape(-1, 5), first, step, counts)
    same = Counter(sum(x == y for x, y in zip(a, b, strict=True)) for a, b in combinations(rows, 2))
    assert numbers(counts) == [same[c] for c in range(6)]


def test_an_empty_set_looks_like_no_other():
    out = np.zeros(4, np.uint32)
    sketch.sketch_one(hashes([]), 0, 0, seed_sequence(1, 8), np.empty(4, np.uint64), out)
    assert numbers(out) == [2**32 - 1] * 4
