"""How likely two random sets are compared, by the index that is used (MMDS Exercise 3.9.5)."""

from __future__ import annotations

from collections.abc import Callable
from fractions import Fraction
from math import comb

from likewise.base import checks
from likewise.errors import ParameterError
from likewise.search.exact.bounds import Bounds
from likewise.search.exact.join import FILTERS

OWNER = "exact.compared"
MOST_STEPS = 10_000_000
"""The most steps of the count, one for every symbol of the universe and every two places of the prefixes: ten seconds
or so."""


def compared(
    a: int, b: int, universe: int, threshold: float, index: str = "position", measure: str = "jaccard"
) -> float:
    """Return the probability that two random sets, of a and b elements of a universe, are compared.

    The set of a elements is the probe, and the other is in the index: "length", "prefix", "position" or "suffix" (MMDS
    §3.9.3 to §3.9.6), each with the filters before it. All sets of these sizes are equally likely. The symbols have
    one order, whichever. The pairs of sets that are not compared are counted exactly, by the number of elements that
    either set has among the first symbols of the universe.

    >>> round(compared(9, 9, 100, 0.9), 4), round(compared(10, 10, 100, 0.9), 4)
    (0.0496, 0.1073)
    """
    bounds = Bounds(measure, threshold, OWNER)
    checks.choice(OWNER, "index", index, FILTERS)
    universe = checks.whole(OWNER, "universe", universe)
    a, b = checks.whole(OWNER, "a", a, 1, universe), checks.whole(OWNER, "b", b, 1, universe)
    if not bounds.symmetric:
        raise ParameterError.of(OWNER, "measure", "jaccard, dice, cosine or overlap", measure)
    if not bounds.shortest(a) <= b <= bounds.longest(a):
        return 0.0
    if index == "length":
        return 1.0
    p, q = bounds.prefix(a), bounds.prefix(b)
    if universe * p * q > MOST_STEPS:
        rule = f"at most {MOST_STEPS // (p * q):,} for prefixes of {p} and {q} symbols"
        raise ParameterError.of(OWNER, "universe", rule, universe)
    missed = _apart(a, b, universe, p, q, _meets(bounds, a, b, index))
    return float(1 - Fraction(missed, comb(universe, a) * comb(universe, b)))


def _meets(bounds: Bounds, a: int, b: int, index: str) -> Callable[[int, int], bool]:
    """Return whether the probe looks at the entry of its i-th symbol as the j-th of the other."""
    if index == "prefix":
        return lambda i, j: True
    last = [0, *(bounds.positions(a, i) for i in range(1, bounds.prefix(a) + 1))]
    if index == "position":
        return lambda i, j: j <= last[i]
    return lambda i, j: j <= last[i] and bounds.least(a, b) <= min(a - i, b - j) + 1


def _apart(a: int, b: int, universe: int, p: int, q: int, meets: Callable[[int, int], bool]) -> int:
    """Count the pairs of sets of which no shared symbol is at places (i, j) of the prefixes p and q where they meet.

    ways[i][j] is the number of ways to choose from the last symbols of the universe what completes both sets, once i
    and j symbols are chosen; beyond a prefix any choice will do.
    """
    ways = [[int((i, j) == (a, b)) for j in range(q + 1)] for i in range(p + 1)]
    for rest in range(1, universe + 1):
        free_a, free_b = [comb(rest, a - i) for i in range(p + 1)], [comb(rest, b - j) for j in range(q + 1)]
        ways = [
            [
                free_a[i] * free_b[j]
                if i == p or j == q
                else ways[i][j] + ways[i + 1][j] + ways[i][j + 1] + (0 if meets(i + 1, j + 1) else ways[i + 1][j + 1])
                for j in range(q + 1)
            ]
            for i in range(p + 1)
        ]
    return ways[0][0]
