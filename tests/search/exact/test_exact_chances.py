"""How likely random sets are compared: against all pairs of sets of a small universe, and against the join itself."""

import itertools
import string

import numpy as np
import pytest

from likewise import exact
from likewise.errors import InputError, ParameterError
from likewise.exact import Bounds


def naive(a, b, universe, threshold, index):
    """The share of all pairs of strings of which the probe finds the other in a bucket it looks at."""
    bounds = Bounds("jaccard", threshold)
    if not bounds.shortest(a) <= b <= bounds.longest(a):
        return 0.0
    places = [(i, j) for i in range(1, bounds.prefix(a) + 1) for j in range(1, bounds.prefix(b) + 1)]
    if index != "prefix":
        places = [(i, j) for i, j in places if j <= bounds.positions(a, i)]
    if index == "suffix":
        places = [(i, j) for i, j in places if (i, j, b - j) in set(bounds.buckets(a))]
    both = itertools.product(itertools.combinations(range(universe), a), itertools.combinations(range(universe), b))
    met = [any(s[i - 1] == t[j - 1] for i, j in places) for s, t in both]
    return sum(met) / len(met)


@pytest.mark.parametrize("index", ["prefix", "position", "suffix"])
@pytest.mark.parametrize(
    ("a", "b", "universe", "threshold"),
    [(3, 4, 7, 0.5), (4, 4, 8, 0.6), (2, 5, 7, 0.3), (5, 4, 8, 0.7), (1, 1, 5, 1.0), (6, 6, 6, 0.9), (2, 5, 7, 0.6)],
)
def test_against_every_pair_of_sets(a, b, universe, threshold, index):
    assert exact.compared(a, b, universe, threshold, index) == pytest.approx(
        naive(a, b, universe, threshold, index), abs=1e-12
    )


def test_by_length_all_or_none():
    assert exact.compared(9, 10, 20, 0.9, "length") == 1
    assert exact.compared(8, 10, 20, 0.9, "length") == 0


@pytest.mark.parametrize("index", ["prefix", "position", "suffix"])
def test_the_join_compares_as_many(index):
    """300 random sets of 10 of 100; all symbols are about equally frequent, so the join's order does not matter.

    The share of pairs is a U-statistic of order 2, whose variance is at most 2/n of that of one pair, p(1 − p).
    """
    random = np.random.default_rng(3)
    sets = [random.choice(100, 10, replace=False).tolist() for _ in range(300)]
    found = exact.explain(sets, 0.9)
    shares = dict(zip(found["filter"].to_pylist(), found["share"].to_pylist(), strict=True))
    p = exact.compared(10, 10, 100, 0.9, index)
    assert abs(shares[index] - p) < 4.4 * (2 * p * (1 - p) / 300) ** 0.5


def test_what_cannot_be_counted():
    for options, name in (
        ({"a": 0}, "a"), ({"b": 101}, "b"), ({"universe": 1.5}, "universe"), ({"threshold": 0}, "threshold"),
        ({"index": "auto"}, "index"), ({"measure": "containment"}, "measure"),
        ({"a": 500, "b": 500, "universe": 1000, "threshold": 0.1}, "universe"),
    ):  # fmt: skip
        with pytest.raises(ParameterError, match=f"'{name}' parameter of exact.compared"):
            exact.compared(**{"a": 9, "b": 9, "universe": 100, "threshold": 0.9, **options})


def test_a_set_as_a_string():
    vowels_first = "aeiou" + "zyxwvtsrqpnmlkjhgfdcb"
    assert exact.strings([set("qwerty"), "asdfghjui", ""], vowels_first) == ["eywtrq", "aiusjhgfd", ""]
    assert exact.strings([[3, 1, 3], [2]], order=[2, 3, 1]) == [[3, 1], [2]]
    assert exact.strings([], string.ascii_lowercase) == []


def test_the_rarest_symbol_comes_first():
    sets = [{"a"}, {"a", "b"}, {"a", "b", "c"}]
    assert exact.strings(sets) == ["a", "ba", "cba"]
    random = np.random.default_rng(1)
    sets = [random.choice(12, random.integers(1, 9), replace=False).tolist() for _ in range(50)]
    counts = np.bincount(np.concatenate(sets), minlength=12)
    made = exact.strings(sets)
    assert list(map(sorted, made)) == list(map(sorted, sets))
    assert all((np.diff(counts[one]) >= 0).all() for one in made)
    pairs = {(x, y) for one in made for x, y in itertools.combinations(one, 2)}
    assert not {(y, x) for x, y in pairs} & pairs, "one order for all strings"


def test_what_is_no_string():
    with pytest.raises(InputError, match="set 1 has the symbol 'z', which is not in 'order'"):
        exact.strings(["a", "z"], "abc")
    with pytest.raises(InputError, match="set 0 is not a set of symbols"):
        exact.strings([5])
    with pytest.raises(ParameterError, match="distinct symbols"):
        exact.strings(["a"], "aba")
    for wrong in (5, None):
        with pytest.raises(ParameterError, match="'sets' parameter"):
            exact.strings(wrong)
    with pytest.raises(ParameterError, match="'order' parameter"):
        exact.strings(["a"], [["a"]])
