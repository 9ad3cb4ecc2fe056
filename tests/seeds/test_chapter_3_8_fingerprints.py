"""Section 3.8.5 again, by simulation: prints are drawn with the chapter's statistics, and the functions are run.

The formulas take the functions for independent. They are if no two of them look at the same square, which is how the
first half is drawn. With 1000 squares, as the chapter has them, 1024 triples do share squares; a pair of prints has m
squares in common and meets under a random triple with probability C(m, 3)/C(1000, 3), so that the rates are those of
the formula averaged over m: the second half. Half as many pairs again are missed as the chapter computes.
"""

import math

import numpy as np
import pytest

from likewise import GridTriples

MINUTIA, AGAIN = 0.2, 0.8
BY_CHANCE = (
    MINUTIA * (1 - AGAIN) / (1 - MINUTIA)
)  # a minutia in the copy where the print has none: 0.2 of squares still
ERRORS = 4.4  # one false alarm in 100,000


def pair_of_prints(random, shape, same):
    """Squares with minutiae of two prints each."""
    one = random.random(shape, np.float32) < MINUTIA
    chance = np.where(one, np.float32(AGAIN), np.float32(BY_CHANCE)) if same else np.float32(MINUTIA)
    return one, random.random(shape, np.float32) < chance


def met(same, functions, squares=3, pairs=4000):
    """Whether pairs of prints meet under each of some functions, no two of which share a square."""
    random = np.random.default_rng(functions * squares + same)
    found = np.empty((pairs, functions), bool)
    for row in range(pairs):
        one, other = pair_of_prints(random, (functions, squares), same)
        found[row] = (one & other).all(axis=1)
    return found


@pytest.fixture(scope="module")
def simulated():
    """Pairs of one finger and of two, under 2048 functions of three squares and of two."""
    return {(squares, same): met(same, 2048, squares) for squares in (3, 2) for same in (True, False)}


def agrees(hits, chance):
    """A share of pairs is what its probability says, within 4.4 standard errors."""
    return abs(hits.mean() - chance) <= ERRORS * math.sqrt(chance * (1 - chance) / len(hits))


def rates(family):
    return family.probability(1 - AGAIN), family.probability(1 - MINUTIA)


BASE = GridTriples(squares=1000, density=MINUTIA)


def test_one_function(simulated):
    for same, chance in zip((True, False), rates(BASE), strict=True):
        assert agrees(simulated[3, same].ravel(), chance)


def test_example_3_22_and_exercise_3_8_4(simulated):
    """A pair of the many-many problem meets just as a print does with one of the database."""
    for same, chance in zip((True, False), rates(BASE.any_of(1024)), strict=True):
        assert agrees(simulated[3, same][:, :1024].any(axis=1), chance)


def test_two_groups_of_1024(simulated):
    for same, chance in zip((True, False), rates(BASE.any_of(1024).all_of(2)), strict=True):
        assert agrees(simulated[3, same].reshape(-1, 2, 1024).any(axis=2).all(axis=1), chance)


def test_exercise_3_8_2(simulated):
    for same, chance in zip((True, False), rates(BASE.any_of(2048)), strict=True):
        assert agrees(simulated[3, same].any(axis=1), chance)


@pytest.mark.parametrize("n", [1, 30, 100, 1000])
def test_exercise_3_8_3(simulated, n):
    """Two squares: (0.2·0.8)² and (0.2·0.2)² take the place of the third powers; the OR is the same."""
    one_or_more = BASE.any_of(n)
    assert agrees(simulated[2, True][:, :n].any(axis=1), one_or_more.curve((MINUTIA * AGAIN) ** 2))
    assert agrees(simulated[2, False][:, :n].any(axis=1), one_or_more.curve((MINUTIA * MINUTIA) ** 2))


def test_exercise_3_8_5(simulated):
    """Half of 1030 functions, and twice as many, are worse by more than the simulation errs; around 1030 it is flat."""
    sums, errors = {}, {}
    for n in (515, 1030, 2048):
        missed = ~simulated[3, True][:, :n].any(axis=1)
        passed = simulated[3, False][:, :n].any(axis=1)
        sums[n] = missed.mean() + passed.mean()
        errors[n] = math.sqrt((missed.var() + passed.var()) / len(missed))
        same, other = rates(BASE.any_of(n))
        assert abs(sums[n] - (1 - same + other)) <= ERRORS * errors[n]
    for n in (515, 2048):
        assert sums[n] - sums[1030] > ERRORS * math.hypot(errors[n], errors[1030])


def averaged(family, share):
    """The formula averaged over the squares that two prints have in common, each with this probability."""
    m = np.arange(1001)
    logs = [math.lgamma(1001) - math.lgamma(k + 1) - math.lgamma(1001 - k) for k in m]
    weights = np.exp(np.array(logs) + m * math.log(share) + (1000 - m) * math.log1p(-share))
    triples = m * (m - 1) * (m - 2) / (1000 * 999 * 998)
    assert weights.sum() == pytest.approx(1)
    return float((weights * family.curve(triples)).sum())


@pytest.mark.parametrize("same", [True, False])
def test_a_thousand_squares(same):
    """What GridTriples does with 1024 triples of 1000 squares; each hundred pairs have triples of their own."""
    random = np.random.default_rng(7)
    share = MINUTIA * (AGAIN if same else MINUTIA)
    one, two = [], []
    for seed in range(1, 31):
        base = GridTriples(squares=1000, density=MINUTIA, seed=seed)
        prints = np.stack(pair_of_prints(random, (100, 1000), same))
        items = [np.flatnonzero(row) for row in prints.reshape(200, 1000)]
        both = base.hashes(items, 2048).reshape(2, 100, 2, 1024).all(axis=0).any(axis=2)
        one.append(both[:, 0])
        two.append(both.all(axis=1))
    for found, family in ((one, BASE.any_of(1024)), (two, BASE.any_of(1024).all_of(2))):
        chance = averaged(family, share)
        groups = np.array([part.mean() for part in found])
        error = groups.std(ddof=1) / math.sqrt(len(groups))  # pairs of one group share its triples
        assert abs(groups.mean() - chance) <= ERRORS * max(error, math.sqrt(chance * (1 - chance) / 3000))


def test_how_much_worse_a_thousand_squares_are():
    """Of the chapter's 1.5 % and 6.3 % the first becomes 2.2 %: pairs with few squares in common get lost."""
    one = BASE.any_of(1024)
    assert 1 - averaged(one, MINUTIA * AGAIN) == pytest.approx(0.022, abs=5e-4)
    assert averaged(one, MINUTIA**2) == pytest.approx(0.063, abs=5e-4)
