"""Weighted minhashing: its arithmetic in plain Python, its estimates, and the bags it takes."""

import math
from collections import Counter

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

import oracles
from likewise.errors import IncompatibleError, InputError, ParameterError
from likewise.families.weighted import Bags, WeightedMinHash
from likewise.measures import bag_jaccard

SIGMAS = 4.4
TOKENS = st.sampled_from(["a", "b", "c", "", "ä", 0, 1, -5])
BAGS = st.dictionaries(TOKENS, st.floats(0, 1e6, allow_subnormal=False), max_size=6)


def drawn(seed, stream, token, function):
    """A number from (0, 1) for a token and a function, by the arithmetic of base/random.py."""
    start = oracles.mix(seed + (2 * stream + 1) * oracles.WORD_SEED & oracles.MASK)
    row = oracles.mix(oracles.hash_token(token) ^ start)
    return ((oracles.mix(row + (function + 1) * oracles.WORD_SEED & oracles.MASK) >> 12) + 0.5) / 2**52


def slot(seed, bag, function):
    """The token and level that a function draws from a bag: Ioffe (2010), Algorithm 1."""
    best = None
    for token, weight in bag.items():
        if weight > 0:
            u = [drawn(seed, stream, token, function) for stream in range(8, 13)]
            r, c, beta = -math.log(u[0] * u[1]), -math.log(u[2] * u[3]), u[4]
            level = math.floor(math.log(weight) / r + beta)
            rank = math.log(c) - r * (level - beta) - r
            best = min(best or (rank, token, level), (rank, token, level), key=lambda found: found[0])
    return best and best[1:]


@given(a=BAGS, b=BAGS, seed=st.integers(0, 2**64 - 1))
def test_slots_agree_where_token_and_level_do(a, b, seed):
    signatures = WeightedMinHash(seed).signatures([a, b], 12)
    expected = [slot(seed, a, i) == slot(seed, b, i) for i in range(12)]
    assert (signatures[0] == signatures[1]).tolist() == expected


@given(bags=st.lists(BAGS, min_size=2, max_size=4))
def test_distances_are_those_of_the_definition(bags):
    left, right = np.triu_indices(len(bags))
    found = WeightedMinHash().distances(bags, left, right)
    for i, j, distance in zip(left, right, found, strict=True):
        tokens = {*bags[i], *bags[j]}
        both = [(bags[i].get(token, 0), bags[j].get(token, 0)) for token in tokens]
        union = math.fsum(map(max, both))
        assert distance == pytest.approx(1 - math.fsum(map(min, both)) / union if union else 0, abs=1e-12)


def test_counts_are_the_bags_of_the_chapter():
    lists = ["aaab", "aabbc"]
    assert WeightedMinHash().distances([[*text] for text in lists], np.array([0]), np.array([1])) == 1 - bag_jaccard(
        *lists, union="max"
    )
    as_lists = WeightedMinHash().signatures([[*text] for text in lists], 16)
    assert (WeightedMinHash().signatures([Counter(text) for text in lists], 16) == as_lists).all()


@pytest.mark.parametrize("weights", [(1, 1), (1, 2), (3, 0.1), (1e-9, 3e-9), (5e8, 4e8)])
def test_unbiased_with_the_error_of_theory(weights):
    """500 signatures of 64 slots, cut from one long signature: the functions are independent."""
    count, n = 500, 64
    a = {"x": weights[0], "y": weights[0] / 2, "z": weights[0]}
    b = {"x": weights[1], "y": weights[1], "w": weights[1] / 3}
    similarity = 1 - WeightedMinHash().distances([a, b], np.array([0]), np.array([1]))[0]
    left, right = WeightedMinHash(3).signatures([a, b], count * n)
    errors = (left == right).reshape(count, n).mean(axis=1) - similarity
    variance = similarity * (1 - similarity) / n
    assert abs(errors.mean()) < SIGMAS * (variance / count) ** 0.5
    kurtosis = 3 + (1 - 6 * similarity * (1 - similarity)) / (n * similarity * (1 - similarity))
    tolerance = SIGMAS * ((kurtosis - 1) / count) ** 0.5
    assert abs((errors**2).mean() / variance - 1) < tolerance


def test_tokens_are_drawn_in_proportion_to_their_weights():
    n, weights = 20_000, {"a": 5.0, "b": 3.0, "c": 2.0}
    whole = WeightedMinHash().signatures([weights, *({token: w} for token, w in weights.items())], n)
    for row, weight in enumerate(weights.values(), 1):
        p = weight / 10
        assert abs((whole[0] == whole[row]).mean() - p) < SIGMAS * (p * (1 - p) / n) ** 0.5


def test_equal_weights_are_plain_sets():
    """With all weights the same, Σ min / Σ max is the Jaccard similarity."""
    a, b = dict.fromkeys(range(40), 0.3), dict.fromkeys(range(10, 50), 0.3)
    assert WeightedMinHash().distances([a, b], np.array([0]), np.array([1])) == pytest.approx(1 - 30 / 50)


def test_empty_bags_and_weights_of_zero():
    signatures = WeightedMinHash().signatures([{}, [], {"a": 0}, {"a": 1}, {"a": 1, "b": 0.0}], 6)
    assert (signatures[:3] == 2**64 - 1).all()
    assert (signatures[3] == signatures[4]).all()
    assert (signatures[3] != signatures[0]).all()
    assert WeightedMinHash().signatures([], 4).shape == (0, 4)
    assert WeightedMinHash().signatures([{}], 4).shape == (1, 4)


def test_tokens_are_those_of_python():
    """1, 1.0 and True are one token and "1" is another, whatever other bags hold."""
    bags = [{1: 1}, {1.0: 1}, {True: 1}, {"1": 1}]
    together = WeightedMinHash().signatures(bags, 8)
    apart = np.vstack([WeightedMinHash().signatures([bag], 8) for bag in bags])
    assert (together == apart).all()
    assert all(len(set(column)) == 2 for column in together.T.tolist())
    assert (together[:3] == together[0]).all()


def test_estimates():
    a, b = WeightedMinHash().signatures([{"a": 1}, {"b": 1}], 8)
    assert WeightedMinHash.estimate(a, a) == 1
    assert WeightedMinHash.estimate(a, b) == 0
    with pytest.raises(IncompatibleError, match="8 and of 4 slots"):
        WeightedMinHash.estimate(a, b[:4])


def test_portions_are_whole_bags():
    bags = Bags.of("test", [["a"] * i + list(range(i)) for i in (0, 3, 0, 9, 1, 1, 0)])
    for most in (1, 2, 5, 100):
        portions = list(bags.portions(most))
        assert [rows.start for rows, _ in portions] == [0, *(rows.stop for rows, _ in portions[:-1])]
        assert portions[-1][0].stop == 7
        for rows, entries in portions:
            assert (entries.start, entries.stop) == (bags.offsets[rows.start], bags.offsets[rows.stop])
            assert entries.stop - entries.start <= most or np.count_nonzero(np.diff(bags.offsets)[rows]) == 1


@pytest.mark.parametrize(
    ("bags", "error", "message"),
    [
        ([{"a": 1}, {"a": -2}], InputError, "bag 1 has the weight -2.0; weights must be finite and 0 or more"),
        ([{"a": math.inf}], InputError, "bag 0 has the weight inf"),
        ([{"a": "b"}], InputError, "weights must be numbers"),
        (["abc"], ParameterError, "item 0 is 'abc'"),
        ([["a"], 3], ParameterError, "item 1 is 3"),
        ([[["a"]]], ParameterError, "item 0 has a token that is not hashable"),
        ({"a": 1}, ParameterError, "'items' parameter of WeightedMinHash"),
    ],
)
def test_bags_that_cannot_be_used(bags, error, message):
    with pytest.raises(error, match=message):
        WeightedMinHash().signatures(bags, 4)
