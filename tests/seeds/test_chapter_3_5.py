"""Section 3.5 of the chapter: distance measures, and its exercises."""

import itertools
from fractions import Fraction
from math import cos, inf, radians, sqrt

import pytest
from hypothesis import given
from hypothesis import strategies as st

from likewise.measures import angle, edit, hamming, jaccard, jaccard_distance, lr

STRINGS = st.text("abcd", max_size=8)
PAIRS_3_5_7 = {"a": ("abcdef", "bdaefc"), "b": ("abccdabc", "acbdcab"), "c": ("abcdef", "baedfc")}


def is_subsequence(part: str, whole: str) -> bool:
    rest = iter(whole)
    return all(letter in rest for letter in part)


def longest_common(x: str, y: str) -> set[str]:
    """All common subsequences of the greatest length."""
    for size in range(len(x), -1, -1):
        found = {"".join(part) for part in itertools.combinations(x, size) if is_subsequence("".join(part), y)}
        if found:
            return found
    raise AssertionError


def one_edit(text: str) -> set[str]:
    """Every string that one insertion, deletion, mutation or transposition makes."""
    places, letters = range(len(text)), "abcdef"
    return (
        {text[:i] + text[i + 1 :] for i in places}
        | {text[:i] + letter + text[i + 1 :] for i in places for letter in letters}
        | {text[:i] + text[i : i + 2][::-1] + text[i + 2 :] for i in places}
        | {text[:i] + letter + text[i:] for i in range(len(text) + 1) for letter in letters}
    )


def fewest_edits(x: str, y: str) -> int:
    """Search from both ends: strings so many edits from x, and those as many or one fewer from y."""
    near_x, near_y, edits = {x}, {y}, 0
    while not near_x & near_y:
        near_x |= set().union(*map(one_edit, near_x))
        near_x, near_y = near_y, near_x
        edits += 1
    return edits


def test_example_3_12_three_norms():
    assert (lr((2, 7), (6, 4)), lr((2, 7), (6, 4), 1), lr((2, 7), (6, 4), inf)) == (5, 7, 4)


def test_section_3_5_2_the_greatest_difference_is_the_limit_of_the_norms():
    distances = [lr((2, 7), (6, 4), r) for r in (1, 2, 4, 8, 16, 32, 64, 128)]
    assert distances == sorted(distances, reverse=True)
    assert distances[-1] == pytest.approx(4, rel=1e-9)


@given(st.sets(st.integers(0, 4)), st.sets(st.integers(0, 4)))
def test_section_3_5_3_the_jaccard_distance_is_how_often_minhash_tells_two_sets_apart(x, y):
    orders = list(itertools.permutations(range(5)))

    def first(order, elements):
        return next((element for element in order if element in elements), None)

    apart = Fraction(sum(first(order, x) != first(order, y) for order in orders), len(orders))
    assert jaccard_distance(x, y) == float(apart)


def test_example_3_13_an_angle_of_60_degrees():
    assert angle((1, 2, -1), (2, 1, 1)) == pytest.approx(60, abs=1e-12)


def test_footnote_4_a_multiple_is_the_same_direction():
    assert angle((1, 2), (3, 6)) == pytest.approx(0, abs=1e-12)


def test_example_3_14_three_edits():
    assert edit("abcde", "acfdeg") == 3
    without_b = "abcde".replace("b", "")
    with_f = without_b.replace("c", "cf")
    assert with_f.replace("e", "eg") == "acfdeg"


def test_example_3_15_by_the_longest_common_subsequence():
    assert longest_common("abcde", "acfdeg") == {"acde"}
    assert edit("abcde", "acfdeg") == 5 + 6 - 2 * 4
    assert longest_common("aba", "bab") == {"ab", "ba"}
    assert edit("aba", "bab") == 3 + 3 - 2 * 2 == 2


def test_example_3_16_hamming_distance():
    assert hamming("10101", "11110") == 3
    assert [place for place in range(5) if "10101"[place] != "11110"[place]] == [1, 3, 4]


@pytest.mark.parametrize(
    ("function", "broken"), [(max, {2}), (lambda x, y: lr([x], [y]), set()), (lambda x, y: x + y, {2})]
)
def test_exercise_3_5_1_the_larger_and_the_sum_are_not_zero_from_a_number_to_itself(function, broken):
    """The difference is a distance; the other two break the second axiom, and no other."""
    numbers = range(8)
    holds = {
        1: all(function(x, y) >= 0 for x in numbers for y in numbers),
        2: all((function(x, y) == 0) == (x == y) for x in numbers for y in numbers),
        3: all(function(x, y) == function(y, x) for x in numbers for y in numbers),
        4: all(function(x, z) <= function(x, y) + function(y, z) for x in numbers for y in numbers for z in numbers),
    }
    assert {axiom for axiom in holds if not holds[axiom]} == broken


def test_exercise_3_5_2_two_norms():
    assert lr((5, 6, 7), (8, 2, 4), 1) == 10
    assert lr((5, 6, 7), (8, 2, 4), 2) == pytest.approx(sqrt(34))


@given(
    st.lists(st.tuples(st.integers(-5, 5), st.integers(-5, 5)), min_size=1, max_size=6),
    st.integers(1, 6),
    st.integers(1, 6),
)
def test_exercise_3_5_3_higher_norms_are_smaller(pairs, i, more):
    """Strictly so if the points differ in two dimensions; in one dimension all norms are the same."""
    x, y = zip(*pairs, strict=True)
    low, high = lr(x, y, i), lr(x, y, i + more)
    if sum(a != b for a, b in pairs) >= 2:
        assert low > high
    else:
        assert low == high == lr(x, y, inf)


def test_exercise_3_5_4_jaccard_distances():
    assert jaccard_distance({1, 2, 3, 4}, {2, 3, 4, 5}) == 2 / 5 == pytest.approx(1 - jaccard("1234", "2345"))
    assert jaccard_distance({1, 2, 3}, {4, 5, 6}) == 1


@pytest.mark.parametrize(
    ("x", "y", "cosine", "degrees"),
    [
        ((3, -1, 2), (-2, 3, 1), -1 / 2, 120),
        ((1, 2, 3), (2, 4, 6), 1, 0),
        ((5, 0, -4), (-1, -6, 2), -13 / 41, None),
        ((0, 1, 1, 0, 1, 1), (0, 0, 1, 0, 0, 0), 1 / 2, 60),
    ],
    ids=list("abcd"),
)
def test_exercise_3_5_5_cosines(x, y, cosine, degrees):
    assert cos(radians(angle(x, y))) == pytest.approx(cosine, abs=1e-14)
    if degrees is not None:
        assert angle(x, y) == pytest.approx(degrees, abs=1e-12)


@given(st.integers(1, 12).flatmap(lambda n: st.tuples(*[st.tuples(*[st.integers(0, 1)] * n).filter(any)] * 2)))
def test_exercise_3_5_6_vectors_of_zeros_and_ones_are_at_most_90_degrees_apart(vectors):
    """The dot product counts the ones they share, which is not negative; 90° if they share none."""
    x, y = vectors
    assert angle(x, y) <= 90 + 1e-12
    share = any(a and b for a, b in zip(x, y, strict=True))
    assert (angle(x, y) < 90 - 1e-12) == share


@pytest.mark.parametrize(("part", "common", "edits"), [("a", 4, 4), ("b", 5, 5), ("c", 3, 6)])
def test_exercise_3_5_7_insertions_and_deletions(part, common, edits):
    x, y = PAIRS_3_5_7[part]
    assert {len(found) for found in longest_common(x, y)} == {common}
    assert edit(x, y) == len(x) + len(y) - 2 * common == edits


@pytest.mark.parametrize(("part", "edits"), [("a", 4), ("b", 3), ("c", 4)])
def test_exercise_3_5_8_mutations_and_transpositions_too(part, edits):
    x, y = PAIRS_3_5_7[part]
    assert edit(x, y, mutations=True, transpositions=True) == edits == fewest_edits(x, y)


@given(STRINGS, STRINGS, STRINGS)
def test_exercise_3_5_9_the_distance_by_all_four_edits_is_one(x, y, z):
    def distance(a, b):
        return edit(a, b, mutations=True, transpositions=True)

    assert distance(x, y) >= 0
    assert (distance(x, y) == 0) == (x == y)
    assert distance(x, y) == distance(y, x), "each edit can be undone by one edit"
    assert distance(x, z) <= distance(x, y) + distance(y, z), "the edits to y and those from y on lead to z"


@given(STRINGS, st.data())
def test_exercise_3_5_9_one_edit_is_a_distance_of_one(x, data):
    y = data.draw(st.sampled_from(sorted(one_edit(x) - {x})))
    assert edit(x, y, mutations=True, transpositions=True) == 1
    assert x in one_edit(y)


def test_exercise_3_5_10_hamming_distances():
    vectors = ["000000", "110011", "010101", "011100"]
    assert [hamming(x, y) for x, y in itertools.combinations(vectors, 2)] == [4, 3, 3, 3, 5, 2]
