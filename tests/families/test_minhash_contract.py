"""What every minhash method promises: its docstring's arithmetic, no bias, the error of theory, and P2 for bands.

Tolerances follow from the number of trials: 4.4 standard errors, which chance exceeds once in 100,000 tests.
"""

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

import oracles
from likewise.base.arrays import Sets
from likewise.families.banding import Banding
from likewise.families.minhash import METHODS, MinHash
from likewise.families.tuning import fewest_bands
from likewise.search.band_keys import HeldKeys
from likewise.search.sketch import SketchPlan, key_sets

SIGMAS = 4.4
every_method = pytest.mark.parametrize("method", METHODS)
HASHES = st.lists(st.integers(0, 2**64 - 1), max_size=30)

# (shared, union), slots, trials: tiny, medium, huge
CASES = [
    ((1, 2), 16, 4000), ((1, 3), 64, 2000), ((4, 5), 32, 3000), ((8, 10), 128, 1000), ((1, 10), 64, 1500),
    ((100, 200), 64, 1500), ((160, 200), 128, 800), ((2, 200), 256, 400), ((180, 200), 16, 2000),
    ((25_000, 50_000), 64, 60), ((40_000, 50_000), 64, 60),
]  # fmt: skip


def trials(shared, union, count, seed, consecutive=False):
    """Return `count` pairs of sets, one behind the other, with so many elements shared and in the union."""
    if consecutive:
        values = np.arange(count * union, dtype=np.uint64).reshape(count, union)
    else:
        values = np.random.default_rng(seed).integers(0, 2**64, (count, union), dtype=np.uint64)
    here = shared + (union - shared) // 2
    pairs = np.concatenate([values[:, :here], values[:, :shared], values[:, here:]], axis=1)
    sizes = [here, shared + union - here] * count
    return Sets(pairs.ravel(), np.cumsum([0, *sizes]).astype(np.int64))


def estimates(method, sets, slots, seed):
    signatures = MinHash(seed, method).signatures(sets, slots)
    return (signatures[0::2] == signatures[1::2]).mean(axis=1)


def as_sets(lists):
    values = np.array([x for part in lists for x in part], np.uint64)
    return Sets(values, np.cumsum([0, *map(len, lists)]).astype(np.int64))


@every_method
@given(lists=st.lists(HASHES, max_size=4), seed=st.integers(0, 2**64 - 1), n=st.integers(1, 20))
def test_signatures_are_those_of_the_docstring(method, lists, seed, n):
    found = MinHash(seed, method).signatures(as_sets(lists), n)
    assert found.shape == (len(lists), n)
    assert found.dtype == np.uint32
    assert found.tolist() == [oracles.signature(method, seed, values, n) for values in lists]


@every_method
@given(values=HASHES, data=st.data())
def test_neither_order_nor_repetition_matters(method, values, data):
    shuffled = data.draw(st.permutations(values))
    repeated = shuffled + values[: data.draw(st.integers(0, 5))]
    a, b, c = MinHash(3, method).signatures(as_sets([values, shuffled, repeated]), 24).tolist()
    assert a == b == c


@every_method
def test_a_signature_depends_on_seed_and_set_alone(method):
    sets = trials(50, 80, 5, seed=0)
    first = MinHash(7, method).signatures(sets, 40)
    assert (MinHash(7, method).signatures(sets, 40) == first).all()
    assert (MinHash(7, method).signatures(sets.take(np.array([3])), 40) == first[3]).all()
    assert (MinHash(8, method).signatures(sets, 40) == first).mean() < 0.05


@every_method
def test_sets_of_32_bits_are_sketched_as_the_same_numbers(method):
    wide = as_sets([[1, 2, 2**32 - 1], [2, 5]])
    narrow = Sets(wide.values.astype(np.uint32), wide.offsets)
    minhash = MinHash(1, method)
    assert (minhash.signatures(wide, 16) == minhash.signatures(narrow, 16)).all()


@every_method
def test_equal_sets_agree_and_disjoint_ones_do_not(method):
    for size in (1, 3, 200):
        assert (estimates(method, trials(size, size, 20, seed=size), 64, seed=1) == 1).all()
        assert estimates(method, trials(0, 2 * size, 20, seed=size), 64, seed=1).max() == 0
    empty = MinHash(1, method).signatures(as_sets([[], []]), 8)
    assert (empty == 2**32 - 1).all()


@pytest.mark.each_value
@every_method
@pytest.mark.parametrize("consecutive", [False, True], ids=["random", "consecutive"])
@pytest.mark.parametrize(("sizes", "slots", "count"), CASES, ids=str)
def test_unbiased_with_the_error_of_theory(method, sizes, slots, count, consecutive):
    shared, union = sizes
    j = shared / union
    variance = j * (1 - j) / slots
    errors = estimates(method, trials(shared, union, count, 1, consecutive), slots, seed=2) - j
    assert abs(errors.mean()) < SIGMAS * (variance / count) ** 0.5
    kurtosis = 3 + (1 - 6 * j * (1 - j)) / (slots * j * (1 - j))  # of a binomial: the spread of squared errors
    tolerance = SIGMAS * ((kurtosis - 1) / count) ** 0.5
    ratio = float((errors**2).mean() / variance)
    assert ratio < 1 + tolerance
    if method == "classic":
        assert ratio > 1 - tolerance


def test_the_fast_sketch_errs_less_on_sets_smaller_than_the_signature():
    count, slots = 1000, 128
    errors = estimates("fast", trials(8, 10, count, 1), slots, seed=2) - 0.8
    half = 0.5 * 0.8 * 0.2 / slots  # about half the variance: no element can win two slots in one round
    assert abs((errors**2).mean() - half) < SIGMAS * (2 / count) ** 0.5 * half


# One band, or a recall under 0.7, is left to the classic method: slots of the fast one repel each other on
# sets smaller than the signature, which helps when one band of many must agree, and hurts when there is only one.
BANDS = [
    (threshold, recall, rows)
    for threshold, rows in [(0.5, 1), (0.5, 4), (0.8, 3), (0.8, 5), (0.8, 8), (0.9, 12), (0.95, 16)]
    for recall in (0.7, 0.9, 0.99)
]


def keys_of(sets, minhash, banding, threads=1, tick=lambda done: None):
    keys = HeldKeys(np.empty((len(sets), banding.b), np.uint32))
    key_sets(sets, SketchPlan(minhash, banding, keys, threads, tick))
    return keys.matrix


def hit_rate(method, banding, shared, union, count):
    keys = keys_of(trials(shared, union, count, 5), MinHash(6, method), banding)
    return (keys[0::2] == keys[1::2]).any(axis=1).mean()


@pytest.mark.each_value
@every_method
@pytest.mark.parametrize("union", [20, 100, 1000])
@pytest.mark.parametrize(("threshold", "recall", "rows"), BANDS)
def test_bands_find_pairs_at_the_threshold_as_often_as_promised(method, threshold, recall, rows, union):
    banding = Banding(fewest_bands(threshold, recall, rows), rows)
    promised = banding.probability(threshold)
    count = 3000 if union < 1000 and banding.slots < 200 else 250
    rate = hit_rate(method, banding, round(threshold * union), union, count)
    assert rate > promised - SIGMAS * (promised * (1 - promised) / count) ** 0.5


@pytest.mark.parametrize(("b", "r"), [(1, 1), (1, 5), (2, 8), (5, 2), (20, 5)])
@pytest.mark.parametrize("similarity", [0.2, 0.5, 0.8])
def test_classic_bands_follow_the_s_curve(b, r, similarity):
    p, count = Banding(b, r).probability(similarity), 2000
    rate = hit_rate("classic", Banding(b, r), round(similarity * 20), 20, count)
    assert abs(rate - p) < SIGMAS * (p * (1 - p) / count) ** 0.5 + 1 / count


@every_method
@given(lists=st.lists(HASHES, max_size=5), threads=st.integers(1, 3))
def test_keys_of_sets(method, lists, threads):
    done = []
    keys = keys_of(as_sets(lists), MinHash(4, method), Banding(3, 2), threads, done.append)
    assert keys.tolist() == [oracles.band_keys(oracles.signature(method, 4, s, 6), 2) for s in lists]
    assert sum(done) == len(lists)
