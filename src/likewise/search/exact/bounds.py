"""The bounds of the length, prefix and position filters (MMDS §3.9.3–3.9.6), in integer arithmetic.

A threshold such as 0.9 has no exact binary representation, and ⌊(1 − J)·L⌋ + 1 computed in floating point is wrong
where (1 − J)·L is an integer. So the threshold is replaced by a fraction p/q: the least one, among all denominators
that two sets can have, that is not below it once rounded. A similarity reaches the threshold if and only if it reaches
p/q, and everything else is integer arithmetic.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import dataclass
from fractions import Fraction
from functools import cached_property
from math import comb, sqrt

from likewise.base import checks
from likewise.errors import ParameterError
from likewise.kernels import overlap
from likewise.kernels import prefix_join as probing

FILTERS = {"length": probing.LENGTH, "prefix": probing.PREFIX, "position": probing.POSITION, "suffix": probing.SUFFIX}
MEASURES = {
    "jaccard": overlap.JACCARD,
    "dice": overlap.DICE,
    "cosine": overlap.COSINE,
    "overlap": overlap.OVERLAP,
    "containment": overlap.CONTAINMENT,
}
COMPARED = "exact.compared"
MOST_STEPS = 10_000_000
"""The most steps of a count of sets, one for every symbol of the universe and every two places of the prefixes: ten
seconds or so."""
LARGEST = 1 << 29
"""The largest size of a set: no product of a size and a numerator overflows 64 bits."""


def least_fraction(threshold: float, limit: int = 2 * LARGEST) -> tuple[int, int]:
    """Return the least fraction p/q with q ≤ limit that is at least the threshold as a floating-point number.

    >>> least_fraction(0.9), least_fraction(1 / 3), least_fraction(0.1 + 0.2)
    ((9, 10), (1, 3), (322122547, 1073741823))
    """
    low, high = (0, 1), (1, 1)  # low is below the threshold, high is not, and no simpler fraction lies between
    while True:
        before = low, high
        high = _far(high, low, limit, lambda p, q: p / q >= threshold)
        low = _far(low, high, limit, lambda p, q: p / q < threshold)
        if (low, high) == before:
            return high


def _far(
    start: tuple[int, int], step: tuple[int, int], limit: int, holds: Callable[[int, int], bool]
) -> tuple[int, int]:
    """Take as many steps from `start` (adding numerators and denominators) as the condition holds for."""

    def at(steps: int) -> tuple[int, int]:
        return start[0] + steps * step[0], start[1] + steps * step[1]

    most = (limit - start[1]) // step[1]
    low, high = 0, 1
    while high <= most and holds(*at(high)):
        low, high = high, 2 * high
    high = min(high, most + 1)
    while high - low > 1:
        middle = (low + high) // 2
        low, high = (middle, high) if holds(*at(middle)) else (low, middle)
    return at(low)


@dataclass(frozen=True)
class Bounds:
    """What a measure and a threshold require of two sets, written as strings of their elements, rarest first.

    Lengths and positions count from 1, as in MMDS §3.9. A partner is a string that may be similar.

    >>> bounds = Bounds("jaccard", 0.9)
    >>> [bounds.prefix(length) for length in (9, 10, 19, 20, 30)]
    [1, 2, 2, 3, 4]
    """

    measure: str
    threshold: float
    owner: str = "exact.pairs"

    def __post_init__(self) -> None:
        checks.choice(self.owner, "measure", self.measure, MEASURES)
        hint = " (|a ∩ b| / min(|a|, |b|))" if self.measure == "overlap" else ""
        value = checks.number(self.owner, "threshold", self.threshold, 0, 1, open_left=True, rule=f"in (0, 1]{hint}")
        object.__setattr__(self, "threshold", value)

    @cached_property
    def fraction(self) -> tuple[int, int]:
        """The threshold as a fraction of integers (p, q)."""
        return least_fraction(self.threshold)

    @cached_property
    def code(self) -> tuple[int, int, int, float]:
        """The arguments of the kernels: the number of the measure, p, q, the threshold."""
        return int(MEASURES[self.measure]), *self.fraction, self.threshold

    @property
    def symmetric(self) -> bool:
        """False if the similarity of a to b is not that of b to a."""
        return self.measure != "containment"

    def least(self, a: int, b: int) -> int:
        """Return the least overlap with which sets of a and b elements reach the threshold.

        >>> Bounds("jaccard", 0.8).least(10, 10), Bounds("containment", 0.8).least(10, 1000)
        (9, 8)
        """
        p, q = self.fraction
        a, b = checks.whole("Bounds.least", "a", a), checks.whole("Bounds.least", "b", b)
        if self.measure == "jaccard":
            return -(-p * (a + b) // (p + q))
        if self.measure == "dice":
            return -(-p * (a + b) // (2 * q))
        if self.measure == "overlap":
            return -(-p * min(a, b) // q)
        if self.measure == "containment":
            return -(-p * a // q)
        root = sqrt(a * b)
        least = max(1, int(self.threshold * root) - 1)
        while least > 1 and (least - 1) / root >= self.threshold:
            least -= 1
        while least / root < self.threshold:
            least += 1
        return least

    def shortest(self, length: int) -> int:
        """Return the length of the shortest partner of a string (MMDS §3.9.3).

        >>> Bounds("jaccard", 0.9).shortest(10)
        9
        """
        checks.whole("Bounds", "length", length, 1, LARGEST)
        return next(other for other in range(1, length + 1) if self.least(length, other) <= other)

    def longest(self, length: int, limit: int = LARGEST) -> int:
        """Return the length of the longest partner of a string, up to `limit` (MMDS §3.9.3).

        >>> Bounds("jaccard", 0.9).longest(9), Bounds("jaccard", 0.9).longest(8)
        (10, 8)
        """
        checks.whole("Bounds", "length", length, 1, LARGEST)
        low, high = length, checks.whole("Bounds.longest", "limit", limit)
        while low < high:
            middle = (low + high + 1) // 2
            low, high = (middle, high) if self.least(length, middle) <= length else (low, middle - 1)
        return low

    def prefix(self, length: int) -> int:
        """Return the length of the prefix: partners share one of its symbols (MMDS §3.9.4).

        For Jaccard similarity J it is ⌊(1 − J)·length⌋ + 1.
        """
        checks.whole("Bounds", "length", length, 1, LARGEST)
        shortest = self.shortest(length) if self.symmetric else length
        return length - self.least(length, shortest) + 1

    def positions(self, length: int, i: int) -> int:
        """Return the last position j at which a partner may have the i-th symbol of a string, as the first they share.

        Jaccard similarity J requires j ≤ (length·(1 − J) − i + 1 + J) / J (MMDS §3.9.5). 0 if there is none;
        LARGEST if every position is possible, as for containment.

        >>> Bounds("jaccard", 0.9).positions(10, 1), Bounds("jaccard", 0.9).positions(10, 2)
        (2, 1)
        """
        checks.whole("Bounds", "length", length, 1, LARGEST)
        checks.whole("Bounds", "i", i, 1, length)
        low, high = 0, LARGEST
        while low < high:
            middle = (low + high + 1) // 2
            fits = self.least(length, middle + length - i) <= length - i + 1
            low, high = (middle, high) if fits else (low, middle - 1)
        return low

    def buckets(self, length: int) -> Iterator[tuple[int, int, int]]:
        """Yield the (i, j, q) such that the bucket (x, j, q) is searched, where x is the i-th symbol (MMDS §3.9.6).

        j is the position of x in the partner and q the number of symbols after it.
        """
        if self.measure in ("overlap", "containment"):
            raise ParameterError(f"'{self.measure}' has partners of any length, and infinitely many buckets")
        longest = self.longest(length)
        for i in range(1, self.prefix(length) + 1):
            for j in range(1, longest + 1):
                for q in range(longest - j + 1):
                    if self.least(length, j + q) <= min(length - i, q) + 1:
                        yield i, j, q


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
    bounds = Bounds(measure, threshold, COMPARED)
    checks.choice(COMPARED, "index", index, FILTERS)
    universe = checks.whole(COMPARED, "universe", universe)
    a, b = checks.whole(COMPARED, "a", a, 1, universe), checks.whole(COMPARED, "b", b, 1, universe)
    if not bounds.symmetric:
        raise ParameterError.of(COMPARED, "measure", "jaccard, dice, cosine or overlap", measure)
    if not bounds.shortest(a) <= b <= bounds.longest(a):
        return 0.0
    if index == "length":
        return 1.0
    p, q = bounds.prefix(a), bounds.prefix(b)
    if universe * p * q > MOST_STEPS:
        rule = f"at most {MOST_STEPS // (p * q):,} for prefixes of {p} and {q} symbols"
        raise ParameterError.of(COMPARED, "universe", rule, universe)
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
        for i in range(p + 1):
            for j in range(q + 1):
                if i == p or j == q:
                    ways[i][j] = free_a[i] * free_b[j]
                else:
                    both = 0 if meets(i + 1, j + 1) else ways[i + 1][j + 1]
                    ways[i][j] += ways[i + 1][j] + ways[i][j + 1] + both
    return ways[0][0]
