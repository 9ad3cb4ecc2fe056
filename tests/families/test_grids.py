"""Fingerprints: the numbers of Section 3.8.5, and the model behind them played through."""

import itertools

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from likewise.base.arrays import Sets
from likewise.errors import InputError, ParameterError
from likewise.families.grids import GridTriples

SIGMAS = 4.4


def test_the_numbers_of_the_chapter():
    triples = GridTriples(squares=1000, density=0.2)
    assert triples.collision(0.8) == pytest.approx(0.2**6)
    assert triples.collision(0.2) == pytest.approx(0.008 * 0.512)
    ors = triples.any_of(1024)
    assert ors.probability(0.2) == pytest.approx(0.985, abs=5e-4)
    assert ors.probability(0.8) == pytest.approx(0.063, abs=5e-4)
    both = ors.all_of(2)
    assert both.functions == 2048
    assert both.probability(0.2) == pytest.approx(0.970, abs=5e-4)
    assert both.probability(0.8) == pytest.approx(0.00397, abs=1e-4)  # the chapter squares the rounded 0.063


def test_three_different_squares():
    for squares in (3, 4, 1000):
        triples = GridTriples(squares).triples(5000)
        assert triples.min() >= 0
        assert triples.max() == squares - 1
        assert (np.diff(np.sort(triples, axis=1), axis=1) > 0).all()
    every = {tuple(sorted(triple)) for triple in GridTriples(5).triples(2000).tolist()}
    assert len(every) == 10
    firsts = np.bincount(GridTriples(5).triples(10_000).ravel(), minlength=5)
    assert (abs(firsts / 10_000 - 0.6) < SIGMAS * (0.6 * 0.4 / 10_000) ** 0.5).all()


@pytest.mark.parametrize("together", [1, 2, 4, 5])
def test_any_number_of_squares(together):
    """Each choice of distinct squares is equally likely, and a function asks for all of its squares."""
    family = GridTriples(5, together=together)
    chosen = [tuple(sorted(row)) for row in family.triples(4000).tolist()]
    every = list(itertools.combinations(range(5), together))
    share = 1 / len(every)
    for one in every:
        assert abs(chosen.count(one) / 4000 - share) <= SIGMAS * (share * (1 - share) / 4000) ** 0.5
    prints = [{0, 1}, {0, 1, 2, 3, 4}, set()]
    naive = [[set(squares) <= one for squares in chosen[:50]] for one in prints]
    assert family.hashes(prints, 50).tolist() == naive
    assert family.collision(0.25) == pytest.approx(0.15**together)


@pytest.mark.parametrize(("shared", "d"), [(0.8, 0.2), (0.2, 0.8)])
def test_the_model_played_through(shared, d):
    """1000 squares, a minutia in each with probability 0.4, in the other print with `shared` if in the first.

    20 pairs of prints; 20,000 functions on each. Over pairs too, the squares of a triple are independent in the model,
    so the rate scatters by the binomial error of the functions and by that of the prints: 3·√((1 − q)/(1000·q)) of
    itself for q = 0.4·shared, the density of the squares that both have.
    """
    random, pairs, functions = np.random.default_rng(0), 20, 20_000
    first = random.random((pairs, 1000)) < 0.4
    both = first & (random.random((pairs, 1000)) < shared)
    family = GridTriples(1000, density=0.4, seed=1)
    one, other = (family.hashes([np.flatnonzero(row) for row in side], functions) for side in (first, both))
    rate, p, q = ((one == other) & (one == 1)).mean(), family.collision(d), 0.4 * shared
    error = (p * (1 - p) / functions / pairs + 9 * p**2 * (1 - q) / (1000 * q * pairs)) ** 0.5
    assert abs(rate - p) < SIGMAS * error


@given(prints=st.lists(st.sets(st.integers(0, 11)), min_size=1, max_size=5))
def test_values_and_distances_by_the_definition(prints):
    family = GridTriples(12)
    found = family.hashes(prints, 30)
    triples = family.triples(30).tolist()
    assert found.tolist() == [[int(set(triple) <= squares) for triple in triples] for squares in prints]
    left, right = np.indices((len(prints), len(prints))).reshape(2, -1)
    for i, j, distance in zip(left, right, family.distances(prints, left, right), strict=True):
        a, b = prints[i], prints[j]
        assert distance == pytest.approx(1 - 2 * len(a & b) / (len(a) + len(b)) if a or b else 0)


def test_prints_come_in_any_form():
    family = GridTriples(10)
    expected = family.hashes([{0, 1, 2, 3}, {5, 6, 7}, set()], 100)
    lists = [[3, 2, 1, 0, 0], (7, 6, 5), []]
    arrays = [np.array(row, np.int64) for row in lists]
    sets = Sets(np.array([0, 1, 2, 3, 5, 6, 7], np.uint32), np.array([0, 4, 7, 7]))
    for prints in (lists, arrays, sets, iter(lists)):
        assert (family.hashes(prints, 100) == expected).all()
    assert family.hashes([], 5).shape == (0, 5)


def test_a_print_outside_the_bucket_collides_with_nothing():
    family = GridTriples(100, seed=2)
    assert family.absent == 0
    found = family.any_of(50).candidates([[1], [1], range(100), range(100)])
    assert [*zip(found.left, found.right, strict=True)] == [(2, 3)]


@pytest.mark.parametrize(
    ("make", "error", "message"),
    [
        (lambda: GridTriples(2), ParameterError, "'squares' parameter of GridTriples"),
        (lambda: GridTriples(3, together=4), ParameterError, "'squares' parameter of GridTriples"),
        (lambda: GridTriples(3, together=0), ParameterError, "'together' parameter of GridTriples"),
        (lambda: GridTriples(10, 0.0), ParameterError, "'density' parameter of GridTriples"),
        (lambda: GridTriples(10).hashes([[1], [10]], 4), InputError, "print 1 has the square 10, outside 0 to 9"),
        (lambda: GridTriples(10).hashes([[1], ["a"]], 4), InputError, "print 1 is \\['a'\\]"),
        (lambda: GridTriples(10).hashes([3], 4), InputError, "print 0 is 3"),
        (lambda: GridTriples(10).hashes(3, 4), ParameterError, "'items' parameter"),
        (lambda: GridTriples(10).collision(1.1), ParameterError, "'d' parameter"),
    ],
)
def test_what_cannot_be_used(make, error, message):
    with pytest.raises(error, match=message):
        make()
