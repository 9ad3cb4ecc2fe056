"""Universal and pairwise-independent families: every claim counted over all functions, keys and values."""

import random
from fractions import Fraction
from itertools import combinations

import numpy as np
import pytest

from likewise import ParameterError
from likewise.theory import (
    Affine,
    CarterWegman,
    MultiplyAddShift,
    MultiplyShift,
    is_pairwise_independent,
    is_weakly_universal,
    worst_collision,
)

SIGMAS = 4.4
PRIMES = [2, 3, 5, 7, 11, 13]
FAMILIES = [Affine(7), Affine(7, zero=False), CarterWegman(11, 4), MultiplyShift(4, 2), MultiplyAddShift(3, 2)]
every_family = pytest.mark.parametrize("family", FAMILIES, ids=str)


def naive_worst(rows):
    keys = range(len(rows[0]))
    return max(Fraction(sum(row[x] == row[y] for row in rows), len(rows)) for x, y in combinations(keys, 2))


@every_family
def test_a_table_has_every_function_and_every_key(family):
    table = family.table()
    assert table.shape == (family.size, family.keys)
    assert (table.min(), table.max()) == (0, family.values - 1)
    assert worst_collision(table) == naive_worst(table.tolist())


@pytest.mark.parametrize("p", PRIMES)
def test_lines_mod_p_are_pairwise_independent(p):
    """Lecture 004: Pr(h(x1) = y1 and h(x2) = y2) = 1/M²."""
    table = Affine(p).table()
    assert len(table) == p * p
    assert is_pairwise_independent(table, p)
    assert worst_collision(table) == Fraction(1, p)


@pytest.mark.parametrize("p", PRIMES)
def test_without_constants_they_are_permutations_that_are_pairwise_independent_as_such(p):
    table = Affine(p, zero=False).table()
    assert (np.sort(table, axis=1) == np.arange(p)).all()
    assert worst_collision(table) == 0
    assert not is_pairwise_independent(table, p)
    for x1, x2 in combinations(range(p), 2):
        counts = np.bincount(table[:, x1] * p + table[:, x2], minlength=p * p).reshape(p, p)
        assert (counts == 1 - np.eye(p)).all()


@pytest.mark.parametrize("p", [5, 7, 11, 13])
def test_carter_wegman_collides_with_at_most_1_in_m(p):
    """Lecture 003: ((a·x + b) mod p) mod N. For two keys all pairs of different residues are equally likely."""
    for m in range(1, p + 1):
        table = CarterWegman(p, m).table()
        q, longer = divmod(p, m)
        pairs = longer * (q + 1) * q + (m - longer) * q * (q - 1)
        assert worst_collision(table) == Fraction(pairs, p * (p - 1)) <= Fraction(1, m)
        assert is_weakly_universal(table, m)
        assert is_pairwise_independent(table, m) is (m == 1)


def test_constants_break_the_bound():
    assert not is_weakly_universal(CarterWegman(5, 2, zero=True).table(), 2)


def test_a_prime_above_the_values_is_not_enough_it_must_be_above_the_keys():
    family = CarterWegman(p=5, m=3)
    for chosen in [(1, 0), (2, 3), (4, 4)]:
        assert family.value(chosen, 1) == family.value(chosen, 6)


@pytest.mark.parametrize("bits", range(1, 8))
def test_multiply_shift_collides_with_at_most_2_in_m_and_nearly_always_needs_the_2(bits):
    for out in range(1, bits + 1):
        family = MultiplyShift(bits, out)
        worst = worst_collision(family.table()) * family.values
        assert worst == {0: 0, 1: 1}.get(bits - out, 2)


@pytest.mark.parametrize("bits", [1, 2, 3])
@pytest.mark.parametrize("out", [1, 2, 3])
def test_multiply_add_shift_is_pairwise_independent(bits, out):
    family = MultiplyAddShift(bits, out)
    assert family.size == 4 ** (bits + out - 1)
    assert is_pairwise_independent(family.table(), family.values)


def test_one_bit_less_and_it_is_not():
    whole = np.array([[(a * x + b) % 8 >> 1 for x in range(8)] for a in range(8) for b in range(8)])
    assert not is_pairwise_independent(whole, 4)


def test_pairwise_independent_implies_weakly_universal_but_not_the_reverse():
    for family in FAMILIES:
        if is_pairwise_independent(family.table(), family.values):
            assert is_weakly_universal(family.table(), family.values)
    never_collides = [[0, 1]]
    assert is_weakly_universal(never_collides, 2)
    assert not is_pairwise_independent(never_collides, 2)


def test_equal_values_count_too():
    """Probability 1/4 for both pairs of different values, as the lecture asks; but collisions only ever give 0."""
    rows = [[0, 1], [1, 0], [0, 0], [0, 0]]
    assert worst_collision(rows) == Fraction(1, 2)
    assert not is_pairwise_independent(rows, 2)


@every_family
def test_a_drawn_function_is_one_of_the_family_and_all_are_as_likely(family):
    source, draws, x1, x2 = random.Random(1), 4000, 1, 2
    table = family.table()
    rows = {tuple(row) for row in table.tolist()}
    functions = [family.draw(source) for _ in range(draws)]
    assert all(tuple(map(function, range(family.keys))) in rows for function in functions[:100])
    p = float((table[:, x1] < table[:, x2]).mean())
    rate = sum(function(x1) < function(x2) for function in functions) / draws
    assert abs(rate - p) < SIGMAS * (p * (1 - p) / draws) ** 0.5


def test_large_primes_are_computed_without_overflow():
    family = CarterWegman(2**31 - 1, 1000)
    a, b, x = 2**31 - 2, 2**31 - 2, 2**31 - 2
    right = (a * x + b) % (2**31 - 1) % 1000
    assert family.value((a, b), x) == right == int(family.value((a, b), np.array([x]))[0])


@pytest.mark.parametrize(
    ("call", "message"),
    [
        (lambda: Affine(9), "'p' parameter of Affine must be a prime"),
        (lambda: Affine(1), "prime"),
        (lambda: CarterWegman(7.0, 2), "prime"),
        (lambda: CarterWegman(7, 8), "'m' parameter of CarterWegman must be a whole number from 1 to 7. Got 8"),
        (lambda: MultiplyShift(4, 5), "'out'"),
        (lambda: MultiplyShift(True, 1), "'bits'"),
        (lambda: MultiplyAddShift(0, 1), "'bits'"),
        (lambda: CarterWegman(2**31 - 1, 10).table(), "at most 16,777,216 values"),
        (lambda: worst_collision([]), "'table' parameter of worst_collision"),
        (lambda: worst_collision([[0.5, 1.0]]), "whole numbers"),
        (lambda: is_weakly_universal([[0, 1], [1, 2]], 2), "values from 0 to m − 1 = 1"),
        (lambda: is_pairwise_independent([[-1, 0]], 2), "values from 0 to m − 1 = 1"),
        (lambda: is_pairwise_independent([[0, 0]], 0), "'m' parameter of is_pairwise_independent"),
    ],
)
def test_errors(call, message):
    with pytest.raises(ParameterError, match=message):
        call()
