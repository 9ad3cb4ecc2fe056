"""From a signature matrix to candidate pairs: same bucket in at least one band (MMDS §3.4.1)."""

from itertools import combinations

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

import likewise
from likewise import Banding, IncompatibleError, InputError, MinHash, ParameterError, candidates


def naive(table, banding):
    """Every pair, band by band."""
    return [
        (i, j)
        for i, j in combinations(range(len(table)), 2)
        if any(
            list(table[i][band * banding.r : (band + 1) * banding.r])
            == list(table[j][band * banding.r : (band + 1) * banding.r])
            for band in range(banding.b)
        )
    ]


def pairs(found):
    return list(zip(found.left.tolist(), found.right.tolist(), strict=True))


@given(st.integers(1, 4), st.integers(1, 4), st.integers(0, 12), st.integers(0, 2**32), st.sampled_from("iqIB"))
def test_pairs_that_share_a_bucket(b, r, items, seed, kind):
    table = np.random.default_rng(seed).integers(0, 3, (items, b * r)).astype(kind)
    found = candidates(table, Banding(b, r))
    assert pairs(found) == naive(table.tolist(), Banding(b, r))
    assert found.items == items
    assert pairs(candidates(np.asfortranarray(table), Banding(b, r))) == pairs(found)


def test_signatures_and_the_composed_family_agree():
    lists = [list(range(i % 7, i % 7 + 20)) for i in range(40)] + [[], []]
    signatures = MinHash(seed=3, method="classic").signatures(lists, 24)
    found = candidates(signatures, Banding(6, 4))
    family = MinHash(seed=3, method="classic").all_of(4).any_of(6).candidates(lists)
    assert pairs(found) == pairs(family) == naive(signatures.tolist(), Banding(6, 4))
    assert (40, 41) in pairs(found)


def test_no_items_and_one():
    assert pairs(likewise.candidates([], Banding(2, 2))) == pairs(likewise.candidates([[1, 2]], Banding(1, 2))) == []


@pytest.mark.parametrize(
    ("signatures", "banding", "error", "says"),
    [
        (np.zeros((3, 5), int), Banding(2, 2), ParameterError, "one row per item and 4 columns"),
        (np.zeros(4, int), Banding(2, 2), ParameterError, "an array of shape"),
        (np.zeros((3, 4)), Banding(2, 2), ParameterError, "whole numbers"),
        (np.zeros((3, 4), int), (2, 2), ParameterError, r"such as Banding\(b=20, r=5\)"),
        (MinHash().parts([["a"]], 4), Banding(2, 2), IncompatibleError, "finish them first"),
        (
            np.zeros((9, 4), int),
            Banding(2, 2),
            InputError,
            r"candidates: .*36 pairs collide, more than 10; use more rows and fewer bands",
        ),
    ],
)
def test_what_is_wrong_is_said(signatures, banding, error, says):
    with pytest.raises(error, match=says):
        likewise.candidates(signatures, banding, most=10)
