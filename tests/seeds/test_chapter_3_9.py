"""Section 3.9 of the chapter: sets as strings, and what lengths, prefixes, positions and suffixes rule out."""

import itertools
from fractions import Fraction
from math import comb, floor, nextafter

import numpy as np
import pytest

from likewise import exact
from likewise.base.arrays import Sets
from likewise.exact import Bounds
from likewise.measures import jaccard
from likewise.search.exact.prefixes import survey, written

S, T = "acdefghijk", "bcdefghijk"
HIGH, LOWER = Bounds("jaccard", 0.9), Bounds("jaccard", 0.8)


def similar(sets, threshold, index="auto"):
    table = exact.pairs(list(map(list, sets)), threshold, index)
    return list(zip(*(table[name].to_pylist() for name in ("id_a", "id_b", "similarity")), strict=True))


def as_string(elements, order):
    """The string of a set in a collection whose symbols are in this order from the rarest to the most frequent."""
    sets = Sets.from_lists([list(elements), *(list(order[start:]) for start in range(len(order)))])
    made = written(sets, np.arange(1), sets.sizes[:1], survey([sets], 1, 1).counts, 0)
    names = dict(zip(sets[1].tolist(), order, strict=True))
    return "".join(names[symbol] for symbol in made.symbols.tolist())


def test_example_3_24_a_set_as_a_string():
    assert as_string({"d", "a", "b"}, "abcdefghijklmnopqrstuvwxyz") == "abd"
    assert exact.strings([{"d", "a", "b"}], "abcdefghijklmnopqrstuvwxyz") == ["abd"]


def counted(sets):
    hashed = Sets.from_lists(sets)
    return hashed, survey([hashed], 1, 1).counts


def test_a_better_ordering_is_rarest_first():
    """Six symbols: the first is in all six sets, the last in one, so each string is its set backwards.

    A few are counted together where their hashes collide; the symbols are chosen so that these are not.
    """
    nested = ([[*range(start, start + n)] for n in range(1, 7)] for start in range(100))
    sets = next(made for made in nested if np.count_nonzero(counted(made)[1]) == 6)
    hashed, known = counted(sets)
    assert sorted(known[known > 0].tolist()) == [1, 2, 3, 4, 5, 6]
    made = written(hashed, np.arange(6), hashed.sizes, known, 0)
    names = dict(zip(hashed[5].tolist(), sets[5], strict=True))
    strings = [[names[x] for x in made.symbols[a:b].tolist()] for a, b in itertools.pairwise(made.offsets)]
    assert strings == [elements[::-1] for elements in sets]


def test_example_3_25_lengths():
    assert (HIGH.shortest(9), HIGH.longest(9)) == (9, 10)
    assert (HIGH.shortest(8), HIGH.longest(8)) == (8, 8)
    sets = ["abcdefgh"[:8], "abcdefghi", "abcdefghij", "abcdefghijk"]
    assert similar(sets, 0.9) == [(1, 2, 9 / 10), (2, 3, 10 / 11)]
    table = exact.pairs(list(map(list, sets)), 0.9, "length")
    assert table.num_rows == 2
    assert b'"length": 2' in table.schema.metadata[b"likewise"]


def test_example_3_26_prefixes():
    s, t = "bcdefghij", "abcdefghij"
    assert (HIGH.prefix(len(s)), HIGH.prefix(len(t))) == (1, 2)
    assert s[:1] in t[:2]  # case 1: t begins with a, and is indexed under a and b
    assert similar([s, t], 0.9) == [(0, 1, 0.9)]
    assert jaccard(s, "cdefghij") == 8 / 9 < 0.9  # case 2: t begins with c
    assert similar([s, "cdefghij"], 0.9) == []
    prefixes = [HIGH.prefix(length) for length in range(1, 51)]
    assert prefixes == [1] * 9 + [2] * 10 + [3] * 10 + [4] * 10 + [5] * 10 + [6]


def test_section_3_9_5_two_strings_that_share_all_but_the_first_symbol():
    assert jaccard(S, T) == 9 / 11 < 0.9
    assert similar([S, T], 0.9) == []
    assert S[: HIGH.prefix(10)] == "ac"
    assert T[: HIGH.prefix(10)] == "bc"
    assert HIGH.positions(10, 2) < T.index("c") + 1, "c is the second of both: the position rules the pair out"


@pytest.mark.parametrize(("i", "bound", "last"), [(1, "2.11", 2), (2, "1.00", 1)])
def test_example_3_27_positions(i, bound, last):
    similarity = Fraction("0.9")
    limit = (10 * (1 - similarity) - i + 1 + similarity) / similarity
    assert f"{float(limit):.2f}" == bound
    assert HIGH.positions(len(S), i) == floor(limit) == last


def test_example_3_27_the_buckets():
    places = [(S[i - 1], j) for i in range(1, HIGH.prefix(10) + 1) for j in range(1, HIGH.positions(10, i) + 1)]
    assert places == [("a", 1), ("a", 2), ("c", 1)]


def test_example_3_28_symbol_position_and_suffix_length():
    indexed = [(S[i - 1], i, len(S) - i) for i in range(1, HIGH.prefix(len(S)) + 1)]
    assert indexed == [("a", 1, 9), ("c", 2, 8)]


EXAMPLE_3_29 = {
    1: [(7, 1), (8, 1), (8, 2), (9, 1), (9, 2), (9, 3), (10, 1), (10, 2), (11, 1)],
    2: [(7, 1), (8, 1), (8, 2), (9, 1)],
    3: [(7, 1)],
}


def test_example_3_29_the_buckets():
    assert LOWER.prefix(10) == 3
    found = {i: sorted((q, j) for at, j, q in LOWER.buckets(10) if at == i) for i in (1, 2, 3)}
    assert found == EXAMPLE_3_29


@pytest.mark.parametrize("case", ["10/13", "9/12", "7/10"])
def test_example_3_29_prints_greater_where_it_means_less(case):
    """j = 4 for q = 9, j = 3 for q = 8, and every j for q = 6 are rejected, because the ratio is below 0.8."""
    assert Fraction(case) < Fraction("0.8")
    shared, union = map(int, case.split("/"))
    q, j = shared - 1, union - 9  # the ratio is (q + 1) / (9 + j)
    assert (1, j, q) not in set(LOWER.buckets(10))
    if q > 6:
        assert (1, j - 1, q) in set(LOWER.buckets(10))
    else:
        assert not [j for _, j, suffix in LOWER.buckets(10) if suffix <= 6]


FIGURE_3_15 = """
    1  7 x . .
    1  8 x x .
    1  9 x x x
    1 10 x x .
    1 11 x . .
    2  7 x . .
    2  8 x x .
    2  9 x . .
    3  7 x . .
"""


def test_figure_3_15_the_pyramid():
    """Every cell, also those that are not drawn."""
    marked = {
        (int(i), j, int(q))
        for i, q, *cells in (line.split() for line in FIGURE_3_15.strip().splitlines())
        for j, cell in enumerate(cells, 1)
        if cell == "x"
    }
    searched = list(LOWER.buckets(10))
    assert len(searched) == len(set(searched)) == 14
    for cell in itertools.product(range(1, 11), range(1, 14), range(14)):
        assert (cell in searched) == (cell in marked), cell


def test_figure_3_15_no_bucket_is_searched_in_vain():
    """For each cell, a string whose first symbol that s has too is at that place is 0.8 similar to s at best."""
    for i, j, q in LOWER.buckets(10):
        shared = S[i - 1 :][: q + 1]
        t = [f"before {n}" for n in range(j - 1)] + [*shared] + [f"after {n}" for n in range(q + 1 - len(shared))]
        assert (len(t), t[j - 1]) == (j + q, S[i - 1])
        assert similar([S, t], 0.8) == [(0, 1, jaccard(S, t))]


ORDER = "aeiou" + "zyxwvtsrqpnmlkjhgfdcb"


@pytest.mark.parametrize(("elements", "string"), [("qwerty", "eywtrq"), ("asdfghjui", "aiusjhgfd")])
def test_exercise_3_9_1(elements, string):
    assert sorted(ORDER) == sorted("abcdefghijklmnopqrstuvwxyz")
    assert as_string(set(elements), ORDER) == string
    assert exact.strings([set(elements)], ORDER) == [string]


@pytest.mark.parametrize(("threshold", "shortest", "longest"), [(0.85, 17, 23), (0.95, 19, 21), (0.98, 20, 20)])
def test_exercise_3_9_2(threshold, shortest, longest):
    bounds = Bounds("jaccard", threshold)
    assert (bounds.shortest(20), bounds.longest(20)) == (shortest, longest)
    others = [[*range(n)] for n in range(10, 31) if n != 20]
    table = exact.pairs([[*range(20)]], threshold, "length", other=others)
    assert [len(others[j]) for j in table["id_b"].to_pylist()] == [n for n in range(shortest, longest + 1) if n != 20]


def test_exercise_3_9_3():
    assert Bounds("jaccard", 0.85).prefix(15) == 3
    assert Bounds("jaccard", 0.95).prefix(15) == 1
    # (c) 3 ≤ (1 − J)·15 < 4, that is 11/15 < J ≤ 12/15
    assert Bounds("jaccard", 12 / 15).prefix(15) == 4
    assert Bounds("jaccard", nextafter(12 / 15, 1)).prefix(15) == 3
    assert Bounds("jaccard", nextafter(11 / 15, 1)).prefix(15) == 4
    assert Bounds("jaccard", 11 / 15).prefix(15) == 5


@pytest.mark.parametrize(("threshold", "last"), [(0.75, {1: 5, 2: 3, 3: 2, 4: 1}), (0.95, {1: 1})])
def test_exercise_3_9_4(threshold, last):
    """The pairs are (x, 1) … (x, last[i]), where x is the i-th symbol."""
    bounds = Bounds("jaccard", threshold)
    assert {i: bounds.positions(12, i) for i in range(1, bounds.prefix(12) + 1)} == last


def test_exercise_3_9_5():
    """(a) Both have the same first symbol. (b) One has the first symbol of the other as its first or second."""
    pairs = comb(100, 9) ** 2
    assert exact.compared(9, 9, 100, 0.9) == pytest.approx(sum(comb(99 - x, 8) ** 2 for x in range(100)) / pairs)
    assert exact.compared(9, 9, 100, 0.9) == pytest.approx(0.0496, abs=5e-5)
    first = sum(comb(99 - x, 9) ** 2 for x in range(100))
    second = sum(x * comb(99 - x, 8) * comb(99 - x, 9) for x in range(100))  # x smaller ones to choose the first from
    assert exact.compared(10, 10, 100, 0.9) == pytest.approx((first + 2 * second) / comb(100, 10) ** 2)
    assert exact.compared(10, 10, 100, 0.9) == pytest.approx(0.1073, abs=5e-5)


@pytest.mark.parametrize(
    ("threshold", "last"),
    [
        (
            "0.8",
            {
                1: {15: 1, 16: 2, 17: 3, 18: 4, 19: 6, 20: 5, 21: 4, 22: 3, 23: 2, 24: 1},
                2: {15: 1, 16: 2, 17: 3, 18: 4, 19: 3, 20: 2, 21: 1},
                3: {15: 1, 16: 2, 17: 3, 18: 2, 19: 1},
                4: {15: 1, 16: 2, 17: 1},
                5: {15: 1},
            },
        ),
        (
            "0.9",
            {1: {17: 1, 18: 2, 19: 3, 20: 2, 21: 1}, 2: {17: 1, 18: 2, 19: 1}, 3: {17: 1}},
        ),
    ],
)
def test_exercise_3_9_6(threshold, last):
    """last[i][q]: the i-th symbol is sought at the positions 1 … last[i][q] before suffixes of length q."""
    expected = {(i, j, q) for i, rows in last.items() for q, most in rows.items() for j in range(1, most + 1)}
    found = list(Bounds("jaccard", float(threshold)).buckets(20))
    assert len(found) == len(set(found))
    assert set(found) == expected
    similarity = Fraction(threshold)
    for i, j, q in itertools.product(range(1, 7), range(1, 8), range(27)):
        p = 20 - i
        most = Fraction(q + 1, 19 + j) if p >= q else Fraction(21 - i, i + j - 1 + q)
        assert ((i, j, q) in expected) == (most >= similarity and i <= len(last)), (i, j, q)
