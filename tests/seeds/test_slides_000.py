"""The first set of lecture slides (2020), and what its 2024 edition shares with it."""

from itertools import combinations

import pytest

from likewise import Banding, Chars, MinHash
from likewise.families.explicit import agreement
from likewise.measures import jaccard

MATRIX = """
1 1 0 0 1
2 0 0 1 0
3 0 1 0 1
4 1 0 1 1
5 0 0 1 0
"""
ROWS = range(1, 6)


def h1(x):
    return (x + 1) % 5


def h2(x):
    return (3 * x + 1) % 5


def test_jaccard_three_of_eight():
    s, t = {1, 2, 3, 4, 5}, {3, 4, 5, 6, 7, 8}
    assert (jaccard(s, t), 1 - jaccard(s, t)) == (3 / 8, 5 / 8)


def test_five_shingles_have_five_hash_values():
    """The slide lists four numbers for the five 2-shingles; 10 bits are enough for all 27² = 729 of them."""
    assert Chars(2).shingles("abcdabd") == ["ab", "bc", "cd", "da", "bd"]
    assert len({*Chars(2).sets(["abcdabd"])[0].tolist()}) == 5
    assert len({*Chars(2, bits=32).sets(["abcdabd"])[0].tolist()}) == 5
    assert 27**2 <= 2**10


def test_matrix_of_the_running_example(columns):
    letters = [{"abcde"[row - 1] for row in column} for column in columns(MATRIX)]
    assert letters == [{"a", "d"}, {"c"}, {"b", "d", "e"}, {"a", "c", "d"}]
    assert [jaccard(a, b) for a, b in combinations(letters, 2)] == [0, 1 / 4, 2 / 3, 0, 1 / 3, 1 / 5]


def test_min_hash_under_the_order_2_5_1_4_3(columns):
    minhash = MinHash.from_permutations([[2, 5, 1, 4, 3]], universe=ROWS)
    assert minhash.signatures(columns(MATRIX)).T.tolist() == [[1, 3, 2, 1]]


def test_min_hash_property_is_about_d1_and_d4(columns):
    """The slide writes D2 on the left-hand side; D1 and D2 have nothing in common."""
    d1, d2, _, d4 = columns(MATRIX)
    assert jaccard(d1, d4) == 2 / 3
    assert 120 * agreement(d1, d4, universe=ROWS) == 80
    assert agreement(d1, d2, universe=ROWS) == 0


def test_one_pass_table_is_that_of_rows_0_to_4(columns):
    """Rows are numbered 1 to 5 on the slide, but the hash values printed beside them are those of 0 to 4."""
    printed = [(1, 1), (2, 4), (3, 2), (4, 0), (0, 3)]
    as_meant = MinHash.from_functions([h1, h2], rows=range(5))
    assert list(as_meant.values) == printed
    sets = [{row - 1 for row in column} for column in columns(MATRIX)]
    assert as_meant.signatures(sets).T.tolist() == [[1, 3, 0, 1], [0, 2, 0, 0]]


def test_one_pass_table_with_the_rows_as_numbered(columns):
    as_numbered = MinHash.from_functions([h1, h2], rows=ROWS)
    assert list(as_numbered.values) == [(2, 4), (3, 2), (4, 0), (0, 3), (1, 1)]
    assert as_numbered.signatures(columns(MATRIX)).T.tolist() == [[0, 4, 0, 0], [3, 0, 1, 0]]


def test_80_percent_similar_documents():
    """Printed: 0.00035, 0.035 % and 99.965 %, from a rounded 0.328; it is 0.000356, 0.036 % and 99.964 %."""
    assert Banding(1, 5).probability(0.8) == pytest.approx(0.328, abs=0.0005)
    assert 1 - Banding(20, 5).probability(0.8) == pytest.approx(0.000356, abs=0.0000005)
    assert 100 * Banding(20, 5).probability(0.8) == pytest.approx(99.964, abs=0.0005)


def test_30_percent_similar_documents():
    """Printed: 0.0474, cut off; rounded it is 0.0475."""
    assert Banding(1, 5).probability(0.3) == pytest.approx(0.00243, rel=1e-12)
    assert Banding(20, 5).probability(0.3) == pytest.approx(0.047494, abs=0.0000005)
