"""The first-cut scheme: every pair that agrees somewhere, against a comparison of all pairs."""

from itertools import combinations

import numpy as np
import pytest

from likewise import IncompatibleError, InputError, MinHash, ParameterError, Sets
from likewise.families import minhash

SIGMAS = 4.4


def naive(table, least=0.0):
    """Compare all pairs, function by function."""
    found = {}
    for i, j in combinations(range(len(table)), 2):
        agree = sum(int(a == b) for a, b in zip(table[i], table[j], strict=True))
        if agree and agree >= least * len(table[0]):
            found[i, j] = agree
    return found


def listed(found):
    rows = list(zip(found.left.tolist(), found.right.tolist(), strict=True))
    assert rows == sorted(rows)
    return dict(zip(rows, found.agree.tolist(), strict=True))


@pytest.mark.parametrize("least", [0, 0.2, 0.6, 1])
def test_against_all_pairs(least, monkeypatch):
    table = np.random.default_rng(1).integers(0, 9, (40, 15))
    table[7] = table[3]
    assert listed(MinHash.pair_estimates(table, least)) == naive(table.tolist(), least)
    monkeypatch.setattr(minhash, "WAITING", 5)
    assert listed(MinHash.pair_estimates(table, least)) == naive(table.tolist(), least)


def test_estimates_are_those_of_two_signatures():
    """And near the similarity, within 4.4 standard errors."""
    sets = [set(range(100)), set(range(40, 140)), set(range(300, 400)), set(range(90))]
    signatures = MinHash(seed=3, method="classic").signatures(Sets.from_lists(sets), 2000)
    found = MinHash.pair_estimates(signatures)
    for i, j, estimate, error in zip(found.left, found.right, found.similarity, found.error, strict=True):
        assert estimate == MinHash.estimate(signatures[i], signatures[j])
        true = len(sets[i] & sets[j]) / len(sets[i] | sets[j])
        assert abs(estimate - true) <= SIGMAS * (true * (1 - true) / 2000) ** 0.5
        assert error == pytest.approx((estimate * (1 - estimate) / 2000) ** 0.5)
    assert listed(found).keys() == {(0, 1), (0, 3), (1, 3)}


def test_few_items():
    assert len(MinHash.pair_estimates(np.zeros((0, 3), int))) == 0
    assert len(MinHash.pair_estimates(np.zeros((1, 3), int))) == 0
    assert listed(MinHash.pair_estimates([[1, 2], [1, 3]])) == {(0, 1): 1}


def test_what_cannot_be_counted():
    with pytest.raises(InputError, match="function 1 has 10 pairs of equal values, more than 9: 5 items share one"):
        MinHash.pair_estimates([[i, 0] for i in range(5)], most=9)
    for wrong in ([1, 2], [[]], [["a"]], [[0.5]]):
        with pytest.raises(ParameterError, match="'signatures' parameter"):
            MinHash.pair_estimates(wrong)
    with pytest.raises(IncompatibleError, match=r"MinHash\.pair_estimates: these are parts of 20 slots"):
        MinHash.pair_estimates(MinHash().parts([[1], [1]], 20))
