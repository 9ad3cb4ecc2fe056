"""Section 3.1 of the chapter: Jaccard similarity of sets and bags."""

import itertools
from fractions import Fraction
from math import comb

import pytest

from likewise.families.explicit import first_row
from likewise.measures import bag_jaccard, jaccard


def test_example_3_1_three_shared_elements_of_eight():
    s, t = {"s1", "s2", "x", "y", "z"}, {"x", "y", "z", "t1", "t2", "t3"}
    assert (len(s & t), len(s | t)) == (3, 8)
    assert jaccard(s, t) == 3 / 8
    assert 1 - jaccard(s, t) == 5 / 8


def test_example_3_2_bags():
    a, b = "aaab", "aabbc"
    assert bag_jaccard(a, b, union="sum") == 3 / 9
    assert bag_jaccard(a, b, union="max") == 3 / 6  # the footnote's union: a³ b² c


def test_footnote_on_bags_the_highest_similarity_is_a_half_by_sums_and_one_by_maxima():
    assert bag_jaccard("aab", "aab", union="sum") == 1 / 2
    assert bag_jaccard("aab", "aab", union="max") == 1
    # "does not simply double": the ratio of the two is 3/2 in example 3.2.
    assert bag_jaccard("aaab", "aabbc", union="max") / bag_jaccard("aaab", "aabbc") == pytest.approx(3 / 2)


def test_movie_ratings_three_ways():
    """Section 3.1.3 with two customers of our own: stars 5, 1, 3 and stars 4, 1, 5 for films p, q, r."""
    liked_only = jaccard({"p"}, {"p", "r"})  # 4 or 5 stars: a liked p; b liked p and r
    liked_and_hated = jaccard({"p liked", "q hated"}, {"p liked", "q hated", "r liked"})
    stars = bag_jaccard("pppppqrrr", "ppppqrrrrr")  # shared 4 + 1 + 3 of 9 + 10
    assert (liked_only, liked_and_hated, stars) == (1 / 2, 2 / 3, 8 / 19)


@pytest.mark.parametrize(
    ("a", "b", "answer"),
    [
        ({1, 2, 3, 4}, {2, 3, 5, 7}, 2 / 6),
        ({1, 2, 3, 4}, {2, 4, 6}, 2 / 5),
        ({2, 3, 5, 7}, {2, 4, 6}, 1 / 6),
    ],
)
def test_exercise_3_1_1(a, b, answer):
    assert jaccard(a, b) == answer


@pytest.mark.parametrize(
    ("a", "b", "by_sum", "by_max"),
    [
        ([1, 1, 1, 2], [1, 1, 2, 2, 3], 3 / 9, 3 / 6),
        ([1, 1, 1, 2], [1, 2, 3, 4], 2 / 8, 2 / 6),
        ([1, 1, 2, 2, 3], [1, 2, 3, 4], 3 / 9, 3 / 6),
    ],
)
def test_exercise_3_1_2(a, b, by_sum, by_max):
    assert bag_jaccard(a, b) == by_sum
    assert bag_jaccard(a, b, union="max") == by_max


# n, m, E[SIM]: 7/18 = (4·1/3 + 1·1)/6. For 10 and 4: (80·1/7 + 90·2/6 + 24·3/5 + 1·1)/210 = 663/2450.
EXPECTED_SIMILARITIES = [(4, 2, Fraction(7, 18)), (10, 4, Fraction(663, 2450)), (5, 1, Fraction(1, 5))]


@pytest.mark.parametrize(("n", "m", "answer"), EXPECTED_SIMILARITIES)
def test_exercise_3_1_3_expected_similarity_of_random_subsets(n, m, answer):
    """Sum over the overlap i, which is hypergeometric; and, by symmetry, the mean over all T for one S."""
    formula = sum(Fraction(comb(m, i) * comb(n - m, m - i), comb(n, m)) * Fraction(i, 2 * m - i) for i in range(m + 1))
    assert formula == answer
    subsets = list(itertools.combinations(range(n), m))
    mean = sum(jaccard(subsets[0], t) for t in subsets) / len(subsets)
    assert mean == pytest.approx(float(answer), rel=1e-12)


@pytest.mark.parametrize(("n", "m", "answer"), EXPECTED_SIMILARITIES)
def test_exercise_3_3_4_the_same_by_minhashing(n, m, answer):
    """One order of the rows is enough: S and T are random, and agree if they have the same first row.

    A random S begins at row j with probability C(n−1−j, m−1)/C(n, m); both must: a sum of squares.
    """
    subsets = list(itertools.combinations(range(n), m))
    begins = [first_row(range(n), s) for s in subsets]
    agree = Fraction(sum(a == b for a, b in itertools.product(begins, repeat=2)), len(subsets) ** 2)
    assert agree == answer
    assert sum(Fraction(comb(n - 1 - j, m - 1), comb(n, m)) ** 2 for j in range(n)) == answer
