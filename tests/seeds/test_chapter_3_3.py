"""Section 3.3 of the chapter: the characteristic matrix, minhashing, the one-pass algorithm."""

import itertools
from fractions import Fraction
from math import sqrt

import pytest

from likewise import MinHash, Sets
from likewise.families.explicit import agreement, row_types
from likewise.measures import jaccard

FIGURE_3_2 = """
a 1 0 0 1
b 0 0 1 0
c 0 1 0 1
d 1 0 1 1
e 0 0 1 0
"""
FIGURE_3_5 = """
0 0 1 0 1
1 0 1 0 0
2 1 0 0 1
3 0 0 1 0
4 0 0 1 1
5 1 0 0 0
"""
PAIRS = list(itertools.combinations(range(4), 2))
SIMILARITIES = ["0", "1/4", "2/3", "0", "1/3", "1/5"]  # of the six pairs of columns of Figure 3.2


@pytest.fixture
def numbered(columns):
    """Figure 3.4: the sets of Figure 3.2 with rows 0 to 4 for a to e."""
    return [{"abcde".index(row) for row in column} for column in columns(FIGURE_3_2)]


def h1(x):
    return (x + 1) % 5


def h2(x):
    return (3 * x + 1) % 5


def test_a_signature_of_1000_bytes_gets_within_a_few_percent():
    """The opening of the section: 250 numbers of four bytes, a standard error of at most 3.2 %."""
    sets = Sets.from_lists([range(40_000), range(10_000, 50_000)])  # 30,000 shared of 50,000: 0.6
    for method in ("fast", "classic"):
        signatures = MinHash(seed=1, method=method).signatures(sets, 250)
        assert signatures[0].nbytes == 1000
        assert MinHash.estimate(*signatures) == pytest.approx(0.6, abs=2 * sqrt(0.6 * 0.4 / 250))


def test_example_3_6_and_figure_3_2(columns):
    """Element x is in a set if and only if it is the minhash under an order that begins with x."""
    orders = [row + "abcde".replace(row, "") for row in "abcde"]
    minhashes = MinHash.from_permutations(orders, universe="abcde").first_rows(columns(FIGURE_3_2))
    members = [{row for row, first in zip("abcde", firsts, strict=True) if row == first} for firsts in minhashes]
    assert members == columns(FIGURE_3_2) == [{"a", "d"}, {"c"}, {"b", "d", "e"}, {"a", "c", "d"}]


def test_example_3_7_and_figure_3_3_the_order_beadc(columns):
    minhash = MinHash.from_permutations(["beadc"], universe="abcde")
    assert minhash.first_rows(columns(FIGURE_3_2)) == [("a",), ("c",), ("b",), ("a",)]
    assert minhash.signatures(columns(FIGURE_3_2)).tolist() == [[0], [2], [1], [0]]  # the same rows by number


def test_example_3_8_and_figure_3_4_hash_values(numbered):
    assert [(x, h1(x), h2(x)) for x in range(5)] == [(0, 1, 1), (1, 2, 4), (2, 3, 2), (3, 4, 0), (4, 0, 3)]
    assert MinHash.from_functions([h1, h2], rows=5).permutes() == [True, True]
    assert numbered == [{0, 3}, {2}, {1, 3, 4}, {0, 2, 3}]


def test_example_3_8_the_signature_matrix_after_every_row(numbered):
    steps = list(MinHash.from_functions([h1, h2], rows=range(5)).trace(numbered))
    oo = -1
    assert [step.signatures.T.tolist() for step in steps] == [
        [[oo, oo, oo, oo], [oo, oo, oo, oo]],
        [[1, oo, oo, 1], [1, oo, oo, 1]],
        [[1, oo, 2, 1], [1, oo, 4, 1]],
        [[1, 3, 2, 1], [1, 2, 4, 1]],
        [[1, 3, 2, 1], [0, 2, 0, 0]],
        [[1, 3, 0, 1], [0, 2, 0, 0]],
    ]
    assert str(steps[2]) == "row 1: 2, 4\nh1     1     ∞     2     1\nh2     1     ∞     4     1"


def test_example_3_8_estimates_from_two_functions_are_rough(numbered):
    s1, s2, s3, s4 = MinHash.from_functions([h1, h2], rows=5).signatures(numbered)
    assert (MinHash.estimate(s1, s4), jaccard(numbered[0], numbered[3])) == (1.0, 2 / 3)
    assert (MinHash.estimate(s1, s3), jaccard(numbered[0], numbered[2])) == (0.5, 1 / 4)
    assert (MinHash.estimate(s1, s2), jaccard(numbered[0], numbered[1])) == (0.0, 0.0)


@pytest.mark.parametrize("method", ["fast", "classic"])
def test_example_3_8_estimates_from_many_functions_are_close(columns, method):
    n = 4096
    signatures = MinHash(seed=1, method=method).signatures(Sets.from_lists(columns(FIGURE_3_2)), n)
    for (i, j), similarity in zip(PAIRS, map(Fraction, SIMILARITIES), strict=True):
        standard_error = sqrt(similarity * (1 - similarity) / n)
        assert MinHash.estimate(signatures[i], signatures[j]) == pytest.approx(
            float(similarity), abs=4 * standard_error
        )


def test_exercise_3_3_1_a_similarities_of_figure_3_2(columns):
    sets = columns(FIGURE_3_2)
    types = [row_types(sets[i], sets[j], universe="abcde") for i, j in PAIRS]
    assert types == [(0, 3, 2), (1, 3, 1), (2, 1, 2), (0, 4, 1), (1, 2, 2), (1, 4, 0)]
    assert [pair.similarity for pair in types] == [Fraction(s) for s in SIMILARITIES]


def test_exercise_3_3_1_b_permutations_that_agree(columns):
    sets = columns(FIGURE_3_2)
    assert [120 * agreement(sets[i], sets[j], universe="abcde") for i, j in PAIRS] == [0, 30, 80, 0, 40, 24]


def test_exercise_3_3_2_two_more_hash_functions(numbered):
    functions = [h1, h2, lambda x: (2 * x + 4) % 5, lambda x: (3 * x - 1) % 5]
    minhash = MinHash.from_functions(functions, rows=5)
    assert [values[2:] for values in minhash.values] == [(4, 4), (1, 2), (3, 0), (0, 3), (2, 1)]
    assert minhash.signatures(numbered).T.tolist() == [
        [1, 3, 0, 1],
        [0, 2, 0, 0],
        [0, 3, 0, 0],
        [3, 0, 1, 0],
    ]


@pytest.fixture
def six_rows():
    """The three hash functions of Exercise 3.3.3."""
    functions = [lambda x: (2 * x + 1) % 6, lambda x: (3 * x + 2) % 6, lambda x: (5 * x + 2) % 6]
    return MinHash.from_functions(functions, rows=6)


def test_exercise_3_3_3_a_signatures_of_figure_3_5(columns, six_rows):
    sets = columns(FIGURE_3_5)
    assert sets == [{2, 5}, {0, 1}, {3, 4}, {0, 2, 4}]
    assert six_rows.signatures(sets).T.tolist() == [[5, 1, 1, 1], [2, 2, 2, 2], [0, 1, 4, 0]]


def test_exercise_3_3_3_b_only_the_third_is_a_permutation(six_rows):
    assert six_rows.permutes() == [False, False, True]


def test_exercise_3_3_3_c_functions_that_collide_overestimate(columns, six_rows):
    sets = columns(FIGURE_3_5)
    signatures = six_rows.signatures(sets)
    true = [jaccard(sets[i], sets[j]) for i, j in PAIRS]
    estimated = [MinHash.estimate(signatures[i], signatures[j]) for i, j in PAIRS]
    assert true == [0, 0, 1 / 4, 0, 1 / 4, 1 / 4]
    assert estimated == [1 / 3, 1 / 3, 2 / 3, 2 / 3, 2 / 3, 2 / 3]


def test_exercise_3_3_5_disjoint_sets_never_agree_under_a_true_permutation(columns):
    """They have no first row in common. Functions that collide can fail: see pair 1-2 of Exercise 3.3.3."""
    s1, s2, *_ = columns(FIGURE_3_5)
    signatures = MinHash.from_permutations(itertools.permutations(range(6)), universe=range(6)).signatures([s1, s2])
    assert signatures.shape == (2, 720)
    assert MinHash.estimate(*signatures) == 0.0


def test_exercise_3_3_6_cyclic_permutations_are_not_enough():
    """Columns {0, 1} and {0} of three rows: similarity 1/2, but agreement from starts 0 and 2 of three."""
    rows = [0, 1, 2]
    cyclic = [rows[start:] + rows[:start] for start in rows]
    assert agreement({0, 1}, {0}, rows, orders=cyclic) == Fraction(2, 3)
    assert agreement({0, 1}, {0}, rows) == Fraction(1, 2)
