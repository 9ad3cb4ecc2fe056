"""The slides of the book's authors: shingles, the 7×4 matrices, the one-pass table, bands."""

import pytest

from likewise import Banding, Chars, MinHash, Sets, Similarities
from likewise.families.explicit import row_types
from likewise.measures import jaccard


def places(*permutations: str):
    """These slides give each row its place in the permuted order: hash functions of the rows 1 to 7."""
    tables = [[int(place) for place in permutation.split()] for permutation in permutations]
    return MinHash.from_functions([lambda row, table=table: table[row - 1] for table in tables], rows=range(1, 8))


def orders(*permutations: str):
    """The same permutations with the rows listed in their new order."""
    tables = [[int(place) for place in permutation.split()] for permutation in permutations]
    listed = [sorted(range(1, 8), key=lambda row: table[row - 1]) for table in tables]
    return MinHash.from_permutations(listed, universe=range(1, 8))


def test_shingles_as_a_set_and_as_a_bag():
    assert Chars(2).shingles("abcab") == ["ab", "bc", "ca"]
    assert Chars(2, bag=True).sets(["abcab"]).sizes.tolist() == [4]


def test_changing_a_word_only_affects_shingles_near_it():
    which = set(Chars(3).shingles("The dog which chased the cat"))
    that = set(Chars(3).shingles("The dog that chased the cat"))
    assert which - that == {"g w", " wh", "whi", "hic", "ich", "ch ", "h c"}
    assert that - which == {"g t", "tha", "hat", "at ", "t c"}  # " th" was there already, in "chased the"
    assert jaccard(which, that) == 18 / 30


def test_reordering_paragraphs_only_affects_shingles_that_cross_a_boundary():
    first, second = "abcdefghij", "klmnopqrst"
    before, after = set(Chars(4).shingles(first + second)), set(Chars(4).shingles(second + first))
    assert before - after == {"hijk", "ijkl", "jklm"}  # k − 1 lost
    assert after - before == {"rsta", "stab", "tabc"}  # k − 1 new: 2(k − 1) in all, fewer than the slide's 2k


def test_sets_as_bit_vectors():
    c1, c2 = ({i for i, bit in enumerate(bits) if bit == "1"} for bits in ("10111", "10011"))
    assert (len(c1 & c2), len(c1 | c2), jaccard(c1, c2)) == (3, 4, 3 / 4)


def test_similarity_of_two_of_four_documents(columns):
    c1, c2, *_ = columns("1 1 1 1 0\n2 1 1 0 1\n3 0 1 0 1\n4 0 0 0 1\n5 1 0 0 1\n6 1 1 1 0\n7 1 0 1 0")
    assert row_types(c1, c2, universe=range(1, 8)) == (3, 3, 1)
    assert jaccard(c1, c2) == 3 / 6


def test_column_similarity_two_fifths(columns):
    c1, c2 = columns("1 0 1\n2 1 0\n3 1 1\n4 0 0\n5 1 1\n6 0 1")
    assert row_types(c1, c2, universe=range(1, 7)) == (2, 3, 1)
    assert jaccard(c1, c2) == 0.4


def test_min_hash_property_four_types_of_rows(columns):
    c1, c2 = columns("1 0 0\n2 0 0\n3 1 1\n4 0 0\n5 0 1\n6 1 0")
    types = row_types(c1, c2, universe=range(1, 7))
    assert types == (1, 2, 3)  # a = 1, b + c = 2, d = 3
    assert float(types.similarity) == jaccard(c1, c2) == 1 / 3


FIRST_MATRIX = """
1 1 0 1 0
2 1 0 0 1
3 0 1 0 1
4 0 1 0 1
5 0 1 0 1
6 1 0 1 0
7 1 0 1 0
"""
FIRST_PERMUTATIONS = ("2 3 7 6 1 5 4", "4 2 1 3 6 7 5", "3 4 7 2 6 1 5")


def test_first_7_by_4_matrix_signatures_by_place(columns):
    signatures = places(*FIRST_PERMUTATIONS).signatures(columns(FIRST_MATRIX))
    assert signatures.T.tolist() == [[2, 1, 2, 1], [2, 1, 4, 1], [1, 2, 1, 2]]


def test_first_7_by_4_matrix_signatures_by_row(columns):
    """The other, equivalent way: the number of the row that comes first."""
    signatures = orders(*FIRST_PERMUTATIONS).signatures(columns(FIRST_MATRIX))
    assert signatures.T.tolist() == [[1, 5, 1, 5], [2, 3, 1, 3], [6, 4, 6, 4]]


@pytest.mark.parametrize(
    ("pair", "similarity", "estimate"),
    [
        ((1, 3), 3 / 4, 2 / 3),
        ((2, 4), 3 / 4, 1),
        ((1, 2), 0, 0),
        ((3, 4), 0, 0),
        ((1, 4), 1 / 7, 0),
        ((2, 3), 0, 0),
    ],
)
def test_first_7_by_4_matrix_similarities(columns, pair, similarity, estimate):
    i, j = (number - 1 for number in pair)
    sets = columns(FIRST_MATRIX)
    assert jaccard(sets[i], sets[j]) == similarity
    for minhash in (places(*FIRST_PERMUTATIONS), orders(*FIRST_PERMUTATIONS)):
        signatures = minhash.signatures(sets)
        assert MinHash.estimate(signatures[i], signatures[j]) == estimate


def test_second_7_by_4_matrix(columns):
    """The slide stacks the rows of the signature matrix from the last permutation to the first."""
    sets = columns("1 0 1 1 0\n2 0 0 1 1\n3 1 0 0 0\n4 0 1 0 1\n5 0 0 0 1\n6 1 1 0 0\n7 0 0 1 0")
    minhash = places("1 2 3 4 5 6 7", "7 6 5 4 3 2 1", "6 3 1 7 2 5 4")
    assert minhash.signatures(sets).T.tolist() == [[3, 1, 1, 2], [2, 2, 1, 3], [1, 5, 3, 2]]


def test_one_pass_table_after_every_row(columns):
    sets = columns("1 1 0\n2 0 1\n3 1 1\n4 1 0\n5 0 1")
    minhash = MinHash.from_functions([lambda x: x % 5, lambda x: (2 * x + 1) % 5], rows=range(1, 6))
    _, *steps = minhash.trace(sets)
    oo = -1
    assert [(step.row, step.values, step.signatures.tolist()) for step in steps] == [
        (1, (1, 3), [[1, 3], [oo, oo]]),
        (2, (2, 0), [[1, 3], [2, 0]]),
        (3, (3, 2), [[1, 2], [2, 0]]),
        (4, (4, 4), [[1, 2], [2, 0]]),
        (5, (0, 1), [[1, 2], [0, 0]]),
    ]
    assert (jaccard(*sets), MinHash.estimate(*steps[-1].signatures)) == (1 / 5, 0.0)


def test_a_signature_of_100_integers_takes_400_bytes():
    """Not "~100 bytes"; and 100,000 of them take 40 megabytes, as the slide on bands says."""
    signature = MinHash().signatures(Sets.from_lists([["a", "b", "c"]]), Banding(b=20, r=5).slots)
    assert signature.nbytes == 400
    assert 100_000 * signature.nbytes == 40_000_000


def test_how_many_pairs_there_are():
    assert Similarities.typical(1_000_000).pairs.sum() == pytest.approx(5e11, rel=1e-5)  # 5 days at 10⁶ per second
    assert Similarities.typical(100_000).pairs.sum() == pytest.approx(4_999_950_000)  # the slide's 5,000,000,000


def test_80_percent_similar_columns():
    """Printed: 0.00035 and 99.965 %, from a rounded 0.328; unrounded 0.000356, one in 2809, 99.964 %."""
    assert Banding(1, 5).probability(0.8) == pytest.approx(0.328, abs=0.0005)
    missed = 1 - Banding(20, 5).probability(0.8)
    assert missed == pytest.approx(0.000356, abs=0.0000005)
    assert round(1 / missed) == 2809


def test_30_percent_similar_columns():
    """Printed: 4.74 % of pairs "with similarity 0.3%"; it is 4.75 % of pairs with similarity 30 %."""
    assert 100 * Banding(20, 5).probability(0.30) == pytest.approx(4.75, abs=0.005)
    assert Banding(20, 5).probability(0.003) < 1e-11


def test_fewer_bands_give_fewer_false_positives_and_more_false_negatives():
    more, fewer = Banding(20, 5), Banding(15, 5)
    assert fewer.probability(0.3) == pytest.approx(0.0358, abs=0.00005)
    assert 1 - fewer.probability(0.8) == pytest.approx(0.00259, abs=0.000005)
    assert fewer.false_positive_area(0.8) < more.false_positive_area(0.8)
    assert fewer.false_negative_area(0.8) > more.false_negative_area(0.8)


def test_one_band_of_one_row_gives_a_straight_line():
    assert Banding(1, 1).probability([0.0, 0.25, 0.5, 1.0]) == pytest.approx([0.0, 0.25, 0.5, 1.0], abs=1e-15)


@pytest.mark.parametrize(
    ("s", "printed", "half_a_digit"),
    [
        (0.2, 0.006, 0.0005),
        (0.3, 0.047, 0.0005),
        (0.4, 0.186, 0.0005),
        (0.5, 0.470, 0.0005),
        (0.6, 0.802, 0.0005),
        (0.7, 0.975, 0.0005),
        (0.8, 0.9996, 0.00005),
    ],
)
def test_table_of_20_bands_of_5_rows(s, printed, half_a_digit):
    assert Banding(b=20, r=5).probability(s) == pytest.approx(printed, abs=half_a_digit)


def test_50_hash_functions_in_10_bands_of_5():
    banding = Banding(b=10, r=5)
    assert banding.slots == 50
    assert banding.exact_threshold == pytest.approx(0.5823, abs=0.00005)
    # By hand, with Simpson's rule and steps of 0.1: 0.0647 and 0.0373.
    assert banding.false_positive_area(0.6) == pytest.approx(0.0647, abs=0.0003)
    assert banding.false_negative_area(0.6) == pytest.approx(0.0373, abs=0.0003)
