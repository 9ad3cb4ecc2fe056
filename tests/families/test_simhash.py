"""SimHash: texts, lists and weights of terms; fingerprints; what signs do to few terms."""

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from likewise.errors import InputError, ParameterError
from likewise.families.weighted import SimHash, words
from likewise.measures import angle

SIGMAS = 4.4
WEIGHTS = st.dictionaries(st.sampled_from("abcdef"), st.integers(-9, 9).filter(bool), min_size=1)


def test_words_are_lower_case_runs():
    assert words("The cat—the CAT's 9 lives_\n") == ["the", "cat", "the", "cat", "s", "9", "lives_"]
    assert words(" .,;") == []


def test_strings_lists_and_weights_are_the_same_texts():
    family = SimHash()
    expected = family.hashes([{"to": 2, "be": 2, "or": 1, "not": 1}], 200)
    for item in ("To be, or not to be", ["to", "be", "or", "not", "to", "be"], {"be": 4, "to": 4, "not": 2.0, "or": 2}):
        assert (family.hashes([item], 200) == expected).all()
        assert family.distances([item, "to be or not to be"], np.array([0]), np.array([1]))[0] < 1e-6


@given(a=WEIGHTS, b=WEIGHTS)
def test_distances_are_angles(a, b):
    terms = sorted({*a, *b})
    expected = angle([a.get(term, 0) for term in terms], [b.get(term, 0) for term in terms])
    found = SimHash().distances([a, b], np.array([0, 1]), np.array([1, 0]))
    assert found == pytest.approx([expected, expected], abs=1e-9)


def test_weights_of_any_size_have_an_angle():
    items = [{"a": 1e200, "b": 1e200}, {"a": 1e-200}, {"a": -1e-200, "b": 1e-200}]
    found = SimHash().distances(items, np.array([0, 0, 1]), np.array([1, 2, 2]))
    assert found == pytest.approx([45, 90, 135])


@pytest.mark.parametrize("normals", ["gaussian", "signs"])
def test_fingerprints_are_the_first_64_bits(normals):
    texts = [f"text number {i} of a hundred" for i in range(100)]
    family = SimHash(5, normals)
    codes = family.fingerprints(texts)
    assert codes.dtype == np.uint64
    assert codes.shape == (100,)
    expected = [sum(int(bit) << i for i, bit in enumerate(row)) for row in family.hashes(texts, 64)]
    assert codes.tolist() == expected
    assert family.fingerprints([]).shape == (0,)


def test_fingerprints_estimate_the_angle():
    """Two texts of twenty words that share half of them: 60°; 300 families of 64 functions."""
    a, b = ([f"w{i}" for i in range(start, start + 20)] for start in (0, 10))
    codes = np.array([SimHash(seed).fingerprints([a, b]) for seed in range(300)])
    differ = np.bitwise_count(codes[:, 0] ^ codes[:, 1]).mean() / 64
    assert abs(differ - 60 / 180) < SIGMAS * (1 / 3 * 2 / 3 / (300 * 64)) ** 0.5


@pytest.mark.parametrize("degrees", [10, 45, 60, 90, 150])
def test_signs_follow_the_curve_on_many_terms(degrees):
    """1500 terms of Gaussian weights; the error is of the order of 1/1500, that of 2000 functions of 1/100."""
    x, y = np.linalg.qr(np.random.default_rng(1).normal(size=(1500, 2)))[0].T
    turned = np.cos(np.radians(degrees)) * x + np.sin(np.radians(degrees)) * y
    bits = SimHash(2, "signs").hashes([dict(enumerate(v)) for v in (x, turned)], 2000)
    p = SimHash().collision(degrees)
    assert abs((bits[0] == bits[1]).mean() - p) < SIGMAS * (p * (1 - p) / 2000) ** 0.5


def test_signs_of_few_terms_do_not():
    """The weight of the first term outvotes the rest: all functions agree at 60°."""
    items = [{"a": 3, "b": 1, "c": 1}, {"a": 3, "b": -1, "c": -1}]
    assert SimHash().distances(items, np.array([0]), np.array([1]))[0] > 50
    bits = SimHash(1, "signs").hashes(items, 500)
    assert (bits[0] == bits[1]).all()
    bits = SimHash(1).hashes(items, 500)
    assert not (bits[0] == bits[1]).all()


def test_texts_without_terms_have_no_direction():
    with pytest.raises(InputError, match="item 1 has no terms"):
        SimHash().hashes(["words", "—"], 8)
    with pytest.raises(InputError, match="item 0 has no terms"):
        SimHash().fingerprints([{"a": 0.0}])
    with pytest.raises(InputError, match="weights must be finite"):
        SimHash().hashes([{"a": np.nan}], 8)
    with pytest.raises(ParameterError, match="'normals' parameter of SimHash must be 'gaussian' or 'signs'"):
        SimHash(1, "cauchy")
