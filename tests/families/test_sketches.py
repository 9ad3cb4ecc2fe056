"""Signatures of unions from those of parts, and signatures of a few bits: exact, unbiased, with the error of theory."""

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from likewise.base.arrays import Sets
from likewise.errors import IncompatibleError, ParameterError
from likewise.families.minhash import METHODS, MinHash
from likewise.families.signatures import bbit, estimate_bbit, merge, standard_error

SIGMAS = 4.4
every_method = pytest.mark.parametrize("method", METHODS)
ELEMENTS = st.lists(st.integers(0, 2**64 - 1) | st.integers(0, 50), max_size=25)


def as_sets(lists):
    values = np.array([x for part in lists for x in part], np.uint64)
    return Sets(values, np.cumsum([0, *map(len, lists)]).astype(np.int64))


@every_method
@given(parts=st.lists(st.lists(ELEMENTS, min_size=2, max_size=2), min_size=1, max_size=4), n=st.integers(1, 30))
def test_rows_in_chunks(method, parts, n):
    """Exercise 3.3.7: each part of the elements is sketched by itself; merged, it is the signature of the whole."""
    minhash = MinHash(5, method)
    whole = [[x for part in parts for x in part[column]] for column in range(2)]
    merged = minhash.merge(*(minhash.parts(as_sets(part), n) for part in parts))
    assert (minhash.finish(merged) == minhash.signatures(as_sets(whole), n)).all()


@every_method
@pytest.mark.parametrize(("size", "n"), [(3, 400), (40, 40), (5000, 64)])
def test_merging_in_any_grouping_and_again(method, size, n):
    minhash = MinHash(1, method)
    values = np.random.default_rng(size).integers(0, 2**64, (3, size), dtype=np.uint64)
    a, b, c = (minhash.parts(as_sets([row.tolist()]), n) for row in values)
    expected = minhash.signatures(as_sets([values.ravel().tolist()]), n)
    for merged in (minhash.merge(minhash.merge(a, b), c), minhash.merge(c, minhash.merge(b, a, a)), merge(a, b, c, c)):
        assert (minhash.finish(merged) == expected).all()
    nothing = minhash.parts(as_sets([[]]), n)
    assert (minhash.merge(a, nothing) == a).all()
    assert (minhash.finish(nothing) == 2**32 - 1).all()


@every_method
def test_columns_in_chunks(method):
    sets = as_sets([list(range(i, 3 * i)) for i in range(20)])
    minhash = MinHash(2, method)
    whole = minhash.signatures(sets, 50)
    portions = [minhash.signatures(sets.take(np.arange(i, i + 5)), 50) for i in range(0, 20, 5)]
    assert (np.vstack(portions) == whole).all()


def test_slots_in_chunks():
    sets = as_sets([list(range(i, 3 * i)) for i in range(20)])
    minhash = MinHash(2**64 - 1, "classic")
    portions = [minhash.skip(k).signatures(sets, 10) for k in range(0, 50, 10)]
    assert (np.hstack(portions) == minhash.signatures(sets, 50)).all()
    with pytest.raises(ParameterError, match="computed as a whole; use method='classic'"):
        MinHash().skip(10)
    with pytest.raises(ParameterError, match="'k' parameter"):
        minhash.skip(-1)


def test_what_cannot_be_merged():
    fast = MinHash().signatures([["a"], ["b"]], 8)
    with pytest.raises(IncompatibleError, match="cannot be merged once they are finished"):
        MinHash().merge(fast, fast)
    with pytest.raises(IncompatibleError, match="not made in the same way"):
        merge(fast, fast[:, :4])
    with pytest.raises(IncompatibleError, match="not made in the same way"):
        merge(fast, fast.astype(np.uint64))
    with pytest.raises(ParameterError, match="at least one"):
        merge()


def test_a_finished_fast_signature_is_no_least_value():
    """Why `parts` is needed: the least of two slots may come from a later round than the other."""
    minhash = MinHash()
    a, b = (minhash.signatures([[f"{side}{i}" for i in range(20)]], 64) for side in "ab")
    union = minhash.signatures([[f"{side}{i}" for side in "ab" for i in range(20)]], 64)
    assert (merge(a, b) != union).any()


def pairs_of(similarity, size, count, seed):
    """Signatures are made of so many pairs of sets with that similarity."""
    values = np.random.default_rng(seed).integers(0, 2**64, (count, size), dtype=np.uint64)
    shared = round(similarity * size)
    half = shared + (size - shared) // 2
    return (
        as_sets([row[:half].tolist() for row in values]),
        as_sets([[*row[:shared].tolist(), *row[half:].tolist()] for row in values]),
    )


@pytest.mark.each_value
@every_method
@pytest.mark.parametrize("bits", [1, 2, 4, 8])
@pytest.mark.parametrize("similarity", [0.0, 0.2, 0.5, 0.9])
def test_few_bits_are_unbiased_with_the_error_of_theory(method, bits, similarity):
    """1000 pairs of sets of 400 elements in their union, signatures of 64 slots."""
    count, n, minhash = 1000, 64, MinHash(3, method)
    a, b = (minhash.bbit(side, n, bits) for side in pairs_of(similarity, 400, count, bits))
    errors = estimate_bbit(a, b) - similarity
    error = a.standard_error(similarity)
    assert abs(errors.mean()) < SIGMAS * error / count**0.5
    p = 2.0**-bits + (1 - 2.0**-bits) * similarity
    kurtosis = 3 + (1 - 6 * p * (1 - p)) / (n * p * (1 - p))
    tolerance = SIGMAS * ((kurtosis - 1) / count) ** 0.5
    ratio = (errors**2).mean() / error**2
    assert ratio < 1 + tolerance
    if method == "classic":  # the fast one may err less
        assert ratio > 1 - tolerance


@every_method
def test_merged_signatures_are_as_good_as_others(method):
    """Estimates from merged parts are unbiased, and err as theory says: 600 pairs, 64 slots, J = 1/2."""
    count, n, minhash = 600, 64, MinHash(4, method)
    sides = []
    for side in pairs_of(0.5, 400, count, 9):
        halves = [as_sets([[x for x in row.tolist() if x % 2 == odd] for row in side]) for odd in (0, 1)]
        sides.append(minhash.finish(minhash.merge(*(minhash.parts(half, n) for half in halves))))
    errors = (sides[0] == sides[1]).mean(axis=1) - 0.5
    error = standard_error(0.5, n)
    assert abs(errors.mean()) < SIGMAS * error / count**0.5
    assert (errors**2).mean() / error**2 < 1 + SIGMAS * (2 / count) ** 0.5


@given(rows=st.integers(0, 3), n=st.integers(1, 40), bits=st.integers(1, 32), values=st.randoms(use_true_random=False))
def test_packing_keeps_which_slots_agree(rows, n, bits, values):
    signatures = np.array([[values.getrandbits(32) for _ in range(n)] for _ in range(rows)], np.uint32).reshape(rows, n)
    few = bbit(signatures, bits)
    assert few.packed.shape == (rows, -(-n * bits // 8))
    assert (estimate_bbit(few, few) == 1).all()
    if rows:
        turned = estimate_bbit(few, few.take([*range(1, rows), 0]))
        agreed = (turned * (1 - 2.0**-bits) + 2.0**-bits) * n
        assert agreed == pytest.approx(np.round(agreed))
        assert (agreed >= (signatures == np.roll(signatures, -1, axis=0)).sum(axis=1) - 1e-9).all()


def test_low_bits_are_random_even_if_values_are_not():
    """Least values of huge sets are small numbers; a hash of them is not."""
    random = np.random.default_rng(0)
    a, b = (random.integers(0, 64, (1, 20_000)).astype(np.uint32) * 2 + odd for odd in (0, 1))
    agreed = estimate_bbit(bbit(a, 1), bbit(b, 1))[0]
    # 64 values, each with a bit of its own: on either side the share of ones is that of 64 coins, 1/2 ± 1/16, and
    # the estimate four times the product of both deviations. The plain low bits would never agree: −1.
    assert abs(agreed) < 4 * (SIGMAS / 16) ** 2


def test_incompatible_bits_are_not_compared():
    few = MinHash(1).bbit([["a"], ["b"]], 16, 2)
    for other, message in [
        (MinHash(1).bbit([["a"], ["b"]], 16, 4), "16 slots of 4 bits"),
        (MinHash(1).bbit([["a"], ["b"]], 8, 2), "8 slots of 2 bits"),
        (MinHash(2).bbit([["a"], ["b"]], 16, 2), "seed=2"),
        (MinHash(1, "classic").bbit([["a"], ["b"]], 16, 2), "classic"),
        (few.take([0]), "row by row"),
    ]:
        with pytest.raises(IncompatibleError, match=message):
            estimate_bbit(few, other)


@pytest.mark.parametrize("b", [0, 33, 1.5, True, None])
def test_number_of_bits(b):
    with pytest.raises(ParameterError, match="'b' parameter of bbit"):
        bbit(np.zeros((1, 4), np.uint32), b)
    with pytest.raises(ParameterError, match="'signatures' parameter of bbit"):
        bbit(np.zeros((1, 4)), 2)


def test_standard_errors():
    assert standard_error(0.5, 100) == pytest.approx(0.05)
    assert standard_error(0.5, 100, 1) == pytest.approx(2 * (0.75 * 0.25 / 100) ** 0.5)
    assert standard_error(0.5, 100, 32) == pytest.approx(0.05)
