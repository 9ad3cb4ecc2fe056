"""Min-wise independent families of permutations, by going through all sets and all permutations."""

import math
import random
from fractions import Fraction
from itertools import chain, combinations, permutations

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from likewise import ParameterError
from likewise.theory import (
    agreement,
    chance,
    cyclic_family,
    enough_permutations,
    epsilon,
    extremes,
    halving_family,
    halving_permutation,
    halving_size,
    is_minwise,
    lcm_bound,
    linear_bound,
    linear_chance,
    linear_family,
    random_family,
    worst_case,
)

SIGMAS = 4.4
SETS = st.sets(st.integers(0, 7), min_size=1)


def subsets(n):
    return chain.from_iterable(combinations(range(n), k) for k in range(1, n + 1))


def naive_chance(family, subset, element):
    return Fraction(sum(min(subset, key=lambda x: row[x]) == element for row in family), len(family))


def naive_epsilon(family):
    cases = [(s, x) for s in subsets(len(family[0])) for x in s]
    return max(abs(len(s) * naive_chance(family, s, x) - 1) for s, x in cases)


def jaccard(a, b):
    return Fraction(len(a & b), len(a | b))


@given(st.integers(1, 5).flatmap(lambda n: st.lists(st.permutations(range(n)), min_size=1, max_size=6)))
def test_the_counts_are_those_of_the_definition(family):
    worst = worst_case(family)
    assert worst.epsilon == epsilon(family) == naive_epsilon(family)
    assert worst.chance == chance(family, worst.subset, worst.element)
    assert worst.epsilon == abs(len(worst.subset) * worst.chance - 1)
    for k, found in extremes(family).items():
        every = [naive_chance(family, s, x) for s in subsets(len(family[0])) if len(s) == k for x in s]
        assert found == (min(every), max(every))


@pytest.mark.parametrize("n", range(1, 7))
def test_all_permutations_are_min_wise_independent(n):
    family = list(permutations(range(n)))
    assert is_minwise(family)
    assert len(family) % lcm_bound(n) == 0


@pytest.mark.parametrize("n", range(2, 6))
def test_a_family_whose_size_the_lcm_does_not_divide_is_not(n):
    family = list(permutations(range(n)))
    assert not is_minwise(family[1:])
    assert not is_minwise([*family, family[0]])


def test_the_lcm_grows_as_e_to_the_n():
    assert [lcm_bound(n) for n in (1, 2, 3, 4, 5, 6, 8)] == [1, 2, 6, 12, 60, 60, 840]
    assert math.log(lcm_bound(10_000)) / 10_000 == pytest.approx(1, abs=0.02)


@pytest.mark.parametrize("n", [1, 2, 4, 8])
def test_halving_gives_an_exact_family_as_small_as_can_be(n):
    family = halving_family(n)
    assert len(family) == halving_size(n) == lcm_bound(n)
    assert len({tuple(row) for row in family.tolist()}) == len(family)
    assert is_minwise(family)


@pytest.mark.parametrize("n", [2, 4, 8, 16, 32, 64, 128])
def test_halving_lies_between_the_lcm_and_4_to_the_n(n):
    assert halving_size(n) % lcm_bound(n) == 0
    assert lcm_bound(n) <= halving_size(n) <= 4**n
    assert n < 4 or halving_size(n) < math.factorial(n)


def test_two_choices_for_two_halves_are_exact_but_larger():
    """The halves may be ordered independently; the family is then larger and no better."""
    tops = [set(top) for top in combinations(range(4), 2)]
    family = []
    for top in tops:
        for first in permutations(sorted(top)):
            for last in permutations(sorted(set(range(4)) - top)):
                family.append([(first + last).index(x) for x in range(4)])
    assert is_minwise(family)
    assert len(family) == 24 == 2 * halving_size(4)


@given(a=SETS, b=SETS)
def test_agreement_is_the_jaccard_similarity_under_an_exact_family(a, b):
    assert agreement(halving_family(8), a, b) == jaccard(a, b)


@given(a=SETS, b=SETS, seed=st.integers(0, 5))
def test_agreement_is_off_by_at_most_epsilon_times_the_similarity_under_an_approximate_one(a, b, seed):
    family = random_family(8, 60, seed)
    assert abs(agreement(family, a, b) - jaccard(a, b)) <= epsilon(family) * jaccard(a, b)


@pytest.mark.parametrize("n", [4, 8])
def test_permutations_drawn_by_halving_are_those_of_the_family(n):
    source, draws = random.Random(1), 200 * halving_size(n) if n == 4 else 5000
    drawn = [tuple(halving_permutation(n, source)) for _ in range(draws)]
    family = {tuple(row) for row in halving_family(n).tolist()}
    assert set(drawn) <= family
    if n == 4:
        p = 1 / len(family)
        assert max(abs(drawn.count(row) / draws - p) for row in family) < SIGMAS * (p * (1 - p) / draws) ** 0.5


@pytest.mark.parametrize(
    "subset",
    [
        (0, 1, 2),
        *(pytest.param(some, marks=pytest.mark.soak) for some in ((0, 31), (3, 4, 17, 18, 30), range(0, 32, 3))),
    ],
    ids=len,
)
def test_halving_of_32_elements_gives_every_element_its_chance(subset):
    source, draws = random.Random(2), 4000
    family = [halving_permutation(32, source) for _ in range(draws)]
    p = 1 / len(subset)
    for x in subset:
        assert abs(float(chance(family, subset, x)) - p) < SIGMAS * (p * (1 - p) / draws) ** 0.5


@pytest.mark.parametrize(("n", "allowed"), [(4, 0.3), (6, 0.5), (8, 0.5), (8, 1.0)])
def test_enough_random_permutations_are_approximately_min_wise_independent(n, allowed):
    size = enough_permutations(n, allowed, failure=1e-5)
    family = random_family(n, size, seed=1)
    assert 0 < epsilon(family) <= allowed


def test_the_size_of_approximate_families_is_quadratic_in_n_over_epsilon():
    assert enough_permutations(1000, 0.01) / enough_permutations(1000, 0.1) == pytest.approx(100, rel=1e-3)
    assert enough_permutations(4000, 0.1) / enough_permutations(2000, 0.1) == pytest.approx(4, rel=1e-2)
    assert enough_permutations(64, 0.5) < 2**16 < lcm_bound(64) < halving_size(64)


@pytest.mark.parametrize(("n", "allowed", "failure"), [(4, 0.3, 0.5), (8, 0.5, 1e-3), (100, 0.1, 0.9)])
def test_enough_is_the_least_number_that_chernoff_and_all_sets_allow(n, allowed, failure):
    def failing(size):
        return n * 2 ** (n - 1) * 2 * math.exp(-(allowed**2) * size / (3 * n))

    enough = enough_permutations(n, allowed, failure)
    assert failing(enough) <= failure < failing(enough - 1)


def test_elements_that_come_first_too_seldom_count_as_those_that_do_too_often():
    """Mod 5, elements of three come first 0.9 or 1.05 times as often as they should."""
    assert worst_case(linear_family(5)).chance == Fraction(3, 10)
    assert epsilon(linear_family(5)) == Fraction(1, 10)


def test_few_random_permutations_are_not_enough():
    """Under fewer than n permutations some element of the whole set never comes first: its error is 1 or more."""
    for seed in range(10):
        assert epsilon(random_family(8, 7, seed)) >= 1


@pytest.mark.parametrize("p", [2, 3, 5, 7, 11, 13])
def test_linear_permutations_keep_the_bound_of_the_lecture(p):
    """Pr ≥ 1/(2(k − 1)) for every set of k and every element; exact for k = 2, p − 1 and p."""
    found = extremes(linear_family(p))
    for k in range(1, p + 1):
        assert linear_bound(k) <= found[k].least <= Fraction(1, k) <= found[k].greatest
    for k in {1, 2, p - 1, p}:
        assert found[k] == (Fraction(1, k), Fraction(1, k))
    assert is_minwise(linear_family(p)) is (p <= 3)
    assert is_minwise(linear_family(p), largest=2)


@pytest.mark.parametrize("p", [5, 7, 11, 13, 101, 10007])
def test_the_bound_is_met_in_the_limit_by_the_middle_of_three(p):
    assert linear_chance(p, {0, 1, 2}, 1) == Fraction(p + 1, 4 * p)
    assert linear_bound(3) == Fraction(1, 4) < Fraction(p + 1, 4 * p)
    if p <= 13:
        assert extremes(linear_family(p))[3].least == Fraction(p + 1, 4 * p)


@given(p=st.sampled_from([2, 3, 5, 7, 11]), data=st.data())
def test_linear_chances_by_gaps_are_those_by_counting(p, data):
    subset = data.draw(st.sets(st.integers(0, p - 1), min_size=1))
    element = data.draw(st.sampled_from(sorted(subset)))
    assert linear_chance(p, subset, element) == naive_chance(linear_family(p).tolist(), sorted(subset), element)


def test_under_linear_permutations_the_end_of_a_run_is_favoured_more_and_more():
    """k·Pr grows like (3/π²)·ln k, so no ε serves all sets; the other elements make up for it."""
    p = 100_003
    ratios = [float(k * linear_chance(p, range(k), 0)) for k in (4, 16, 64, 256)]
    steps = np.diff(ratios) / (3 / math.pi**2 * math.log(4))
    assert steps == pytest.approx(1, abs=0.2)
    assert sum(linear_chance(101, range(20), x) for x in range(20)) == 1


def test_exercise_3_3_6_cyclic_permutations_do_not_give_the_jaccard_similarity():
    """Columns (1, 1, 0) and (1, 0, 0): similarity 1/2, but two of the three cyclic orders agree; and it gets worse."""
    assert agreement(cyclic_family(3), {0, 1}, {0}) == Fraction(2, 3)
    for n in range(3, 40):
        assert agreement(cyclic_family(n), {0, 1}, {0}) == Fraction(n - 1, n)
        assert agreement(cyclic_family(n), {0, 1}, {1}) == Fraction(1, n)


def test_exercise_3_3_6_cyclic_permutations_are_those_of_the_text():
    """Row r first, then r + 1 and so on to the last, then the first to r − 1."""
    orders = [sorted(range(4), key=row.__getitem__) for row in cyclic_family(4).tolist()]
    assert orders == [[0, 1, 2, 3], [1, 2, 3, 0], [2, 3, 0, 1], [3, 0, 1, 2]]


@pytest.mark.parametrize("n", range(3, 13))
def test_exercise_3_3_6_the_error_of_cyclic_permutations_grows_with_n(n):
    """An element comes first as often as the gap before it is wide: at most n − k + 1 for a set of k."""
    assert epsilon(cyclic_family(n)) == max(Fraction(k * (n - k + 1), n) - 1 for k in range(1, n + 1))
    assert not is_minwise(cyclic_family(n), largest=2)
    assert {k: found.greatest for k, found in extremes(cyclic_family(n)).items() if k > 1} == {
        k: Fraction(n - k + 1, n) for k in range(2, n + 1)
    }


def test_exercise_3_3_6_two_rows_are_too_few_to_see_it():
    assert is_minwise(cyclic_family(2))


def test_random_families_depend_on_the_seed_alone():
    assert (random_family(9, 5, seed=3) == random_family(9, 5, seed=3)).all()
    assert (random_family(9, 5, seed=3) != random_family(9, 5, seed=4)).any()
    assert is_minwise([[0]])


@pytest.mark.parametrize(
    ("call", "message"),
    [
        (lambda: halving_family(6), "'n' parameter of halving_family must be a power of two. Got 6"),
        (lambda: halving_family(16), "halving_permutation"),
        (lambda: halving_size(0), "'n' parameter of halving_size must be a positive whole number"),
        (lambda: halving_permutation(12, random.Random(1)), "power of two"),
        (lambda: linear_family(9), "prime"),
        (lambda: linear_chance(7, {1, 2}, 3), "'element' parameter of linear_chance must be in the subset"),
        (lambda: linear_chance(7, {1, 7}, 1), "from 0 to 6"),
        (lambda: linear_bound(0), "'k'"),
        (lambda: cyclic_family(0), "'n'"),
        (lambda: lcm_bound(2.5), "'n'"),
        (lambda: epsilon([]), "one or more permutations"),
        (lambda: epsilon([[0, 1], [1, 1]]), "from 0 to 1. Got 'row 1: "),
        (lambda: epsilon([[0, 1], [2, 1, 0]]), "row 1"),
        (lambda: epsilon([list(range(19))]), "at most 18 elements"),
        (lambda: worst_case([[0, 1]], largest=3), "'largest'"),
        (lambda: chance([[0, 1]], {0}, 1), "'element'"),
        (lambda: agreement([[0, 1]], {0}, set()), "'b' parameter of agreement"),
        (lambda: enough_permutations(4, 0), "'epsilon'"),
        (lambda: enough_permutations(4, 0.5, failure=1), "'failure'"),
        (lambda: random_family(4, 0), "'size'"),
        (lambda: random_family(4, 1, seed=-1), "'seed'"),
    ],
)
def test_errors(call, message):
    with pytest.raises(ParameterError, match=message):
        call()
