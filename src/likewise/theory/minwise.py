"""Families of permutations that are min-wise independent: exactly, approximately, and not (MMDS §3.3, Exercise 3.3.6).

Minhashing works because under a random permutation π every x of a set X is equally likely to come first. A family has
this property, and is *exactly min-wise independent*, if for every X and every x in X

    Pr(min π(X) = π(x)) = 1/|X|,    π drawn from the family.

The family of all n! permutations is, but naming one of them takes log₂ n! ≈ n·log₂ n bits. How few are enough?

- at least lcm(1, …, n) = e^(n − o(n)): every element of X comes first equally often, so |X| divides the family's size;
- at most 4^n, by repeated halving (`halving_family`);
- about n²/ε², if an error of ε is allowed: |Pr − 1/|X|| ≤ ε/|X| (`random_family`, `enough_permutations`);
- p·(p − 1), if elements need only come first with probability at least 1/(2·(|X| − 1)) (`linear_family`);
- n are too few (`cyclic_family`).

Permutations are rows of numbers: the row [2, 0, 1] maps 0 to 2, 1 to 0 and 2 to 1, so element 1 comes first. Families
on up to 18 elements are checked by enumerating all sets and all permutations.
"""

from __future__ import annotations

import itertools
import math
import random
from collections.abc import Collection, Iterable, Sequence
from fractions import Fraction
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from likewise.base import checks
from likewise.base.checks import listed, prime, seeded, whole
from likewise.errors import ParameterError

Permutations = NDArray[np.int64]
LARGEST_UNIVERSE = 18
"""The largest universe whose subsets are all enumerated: 2^18 subsets of 18 counts each take 38 MB."""
LARGEST_WRITTEN = 200
"""The largest p or n of a family that is listed: 200 · 199 rows of 200 numbers take 64 MB."""
LARGEST_HALVED = 8
"""The largest n for which the halving family is listed: 840 permutations; for n = 16 there are 10,810,800."""


class WorstCase(NamedTuple):
    """The set X and the element whose chance of coming first is farthest from 1/|X|, and ε = |X|·|chance − 1/|X||."""

    subset: tuple[int, ...]
    element: int
    chance: Fraction
    epsilon: Fraction


class Chances(NamedTuple):
    """The smallest and largest chance of coming first over all elements of all sets of one size."""

    least: Fraction
    greatest: Fraction


def chance(family: Iterable[Sequence[int]], subset: Collection[int], element: int) -> Fraction:
    """Return the fraction of permutations under which an element comes first in a set.

    >>> chance([[0, 1, 2], [1, 2, 0], [2, 0, 1]], {0, 1}, 0)
    Fraction(2, 3)
    """
    permutations = _as_family("chance", family)
    members = _members("chance", "subset", subset, permutations.shape[1])
    if not _is_whole(element) or element not in members:
        raise ParameterError.of("chance", "element", "in the subset", element)
    first = permutations[:, members].argmin(axis=1)
    return Fraction(int((first == members.index(element)).sum()), len(permutations))


def agreement(family: Iterable[Sequence[int]], a: Collection[int], b: Collection[int]) -> Fraction:
    """Return the fraction of permutations under which the same element comes first in two sets.

    For an exactly min-wise independent family this is the Jaccard similarity; for an ε-approximate one it is off by at
    most ε times that.
    """
    permutations = _as_family("agreement", family)
    rows_a = _members("agreement", "a", a, permutations.shape[1])
    rows_b = _members("agreement", "b", b, permutations.shape[1])
    same = permutations[:, rows_a].min(axis=1) == permutations[:, rows_b].min(axis=1)
    return Fraction(int(same.sum()), len(permutations))


def worst_case(family: Iterable[Sequence[int]], largest: int | None = None) -> WorstCase:
    """Return the set of up to `largest` elements, and the element, whose chance of coming first is farthest off.

    >>> worst_case(cyclic_family(5))
    WorstCase(subset=(0, 1, 2), element=0, chance=Fraction(3, 5), epsilon=Fraction(4, 5))
    """
    permutations = _as_family("worst_case", family)
    n = permutations.shape[1]
    largest = whole("worst_case", "largest", n if largest is None else largest, 1, n)
    counts, sizes = _first_counts("worst_case", permutations)
    off = np.abs(counts * sizes[:, None] - len(permutations))
    off[~_inside(n) | (sizes > largest)[:, None]] = -1
    subset, element = divmod(int(off.argmax()), n)
    found = Fraction(int(counts[subset, element]), len(permutations))
    members = tuple(x for x in range(n) if subset >> x & 1)
    return WorstCase(members, element, found, Fraction(int(off[subset, element]), len(permutations)))


def epsilon(family: Iterable[Sequence[int]], largest: int | None = None) -> Fraction:
    """Return the smallest ε for which the family is ε-approximately min-wise independent; see `worst_case`."""
    return worst_case(family, largest).epsilon


def is_minwise(family: Iterable[Sequence[int]], largest: int | None = None) -> bool:
    """Return whether the family is exactly min-wise independent, on sets of up to `largest` elements.

    >>> is_minwise(halving_family(8)), is_minwise(linear_family(7)), is_minwise(linear_family(7), largest=2)
    (True, False, True)
    """
    return epsilon(family, largest) == 0


def extremes(family: Iterable[Sequence[int]]) -> dict[int, Chances]:
    """Return, for every set size, the smallest and the largest chance of coming first.

    >>> extremes(linear_family(5))[3]
    Chances(least=Fraction(3, 10), greatest=Fraction(7, 20))
    """
    permutations = _as_family("extremes", family)
    n, total = permutations.shape[1], len(permutations)
    counts, sizes = _first_counts("extremes", permutations)
    inside, found = _inside(n), {}
    for k in range(1, n + 1):
        of_size = counts[inside & (sizes == k)[:, None]]
        found[k] = Chances(Fraction(int(of_size.min()), total), Fraction(int(of_size.max()), total))
    return found


def lcm_bound(n: int) -> int:
    """Return lcm(1, …, n), which divides the size of any exactly min-wise independent family on n elements.

    With sets of up to k elements only, it is lcm(1, …, k).

    >>> [lcm_bound(n) for n in (2, 4, 8, 16)]
    [2, 12, 840, 720720]
    """
    return math.lcm(*range(1, whole("lcm_bound", "n", n, 1) + 1))


def halving_size(n: int) -> int:
    """Return the size of the halving family: the product of C(n, n/2), C(n/2, n/4), … C(2, 1), at most 4^n.

    It equals the lower bound up to n = 8; for n = 16 it is 15 times as large.

    >>> [halving_size(n) // lcm_bound(n) for n in (2, 4, 8, 16)]
    [1, 1, 1, 15]
    """
    n = _power_of_two("halving_size", n)
    size = 1
    while n > 1:
        size, n = size * math.comb(n, n // 2), n // 2
    return size


def halving_family(n: int) -> Permutations:
    """Return an exactly min-wise independent family on n elements, n a power of two up to 8.

    Choose which half of the elements comes first; then, *with one choice for both halves*, which half of each half; and
    so on. Sharing the choice between both halves is what makes the family small: the minimum of a set lies in one of
    them, and what happens in the other does not matter.

    >>> halving_family(2).tolist(), len(halving_family(4)), len(halving_family(8))
    ([[0, 1], [1, 0]], 12, 840)
    """
    n = _power_of_two("halving_family", n)
    if n > LARGEST_HALVED:
        rule = f"at most {LARGEST_HALVED} (draw permutations of more elements with halving_permutation)"
        raise ParameterError.of("halving_family", "n", rule, n)
    if n == 1:
        return np.zeros((1, 1), np.int64)
    inner = halving_family(n // 2)
    return np.array(
        [_halved(top, order.tolist()) for top in itertools.combinations(range(n), n // 2) for order in inner]
    )


def halving_permutation(n: int, source: random.Random) -> list[int]:
    """Return a random permutation from the halving family, for any power of two n.

    It takes about 2n random bits, compared to n·log₂ n for one of all n! permutations.
    """
    if not isinstance(source, random.Random):
        raise ParameterError.of("halving_permutation", "source", "a random.Random", source)
    order, size = [0], 1
    for _ in range(_power_of_two("halving_permutation", n).bit_length() - 1):
        size *= 2
        order = _halved(source.sample(range(size), size // 2), order)
    return order


def random_family(n: int, size: int, seed: int = 1) -> Permutations:
    """Return `size` permutations drawn from all n!, the same ones for the same seed."""
    n, size = whole("random_family", "n", n, 1), whole("random_family", "size", size, 1)
    stream = seeded("random_family", seed)
    return np.array([stream.sample(range(n), n) for _ in range(size)])


def enough_permutations(n: int, epsilon: float, failure: float = 0.5) -> int:
    """Return how many random permutations are ε-approximately min-wise independent, except with probability `failure`.

    An element of a set of k ≤ n comes first under m/k of m random permutations, up to a factor 1 ± ε, except with
    probability 2·exp(−ε²·m/(3k)), by the Chernoff bound. There are n·2^(n − 1) ways to choose a set and an element of
    it, so m = 3n/ε²·ln(n·2^n/failure) is enough. This is O(n²/ε²), and any failure below 1 proves that families of that
    size exist.

    >>> enough_permutations(8, 0.5), enough_permutations(16, 0.5), enough_permutations(8, 0.25)
    (799, 2795, 3195)
    """
    n = whole("enough_permutations", "n", n, 1)
    checks.number("enough_permutations", "epsilon", epsilon, 0, 1, open_left=True)
    checks.number("enough_permutations", "failure", failure, 0, 1, open_left=True, open_right=True)
    return math.ceil(3 * n / epsilon**2 * (math.log(n / failure) + n * math.log(2)))


def linear_family(p: int) -> Permutations:
    """Return all permutations x → (a·x + b) mod p for a prime p and a ≠ 0: p·(p − 1) of them."""
    p = prime("linear_family", "p", p, LARGEST_WRITTEN)
    x = np.arange(p)
    return np.array([(a * x + b) % p for a in range(1, p) for b in range(p)])


def linear_bound(k: int) -> Fraction:
    """Return 1/(2·(k − 1)): no element of a set of k comes first less often under linear permutations.

    That is half of what it should be, or slightly more. The bound is almost tight: in {0, 1, 2}, element 1 comes first
    with probability (p + 1)/(4p), which tends to 1/4 for large p.

    >>> linear_bound(3), extremes(linear_family(17))[3].least
    (Fraction(1, 4), Fraction(9, 34))
    """
    k = whole("linear_bound", "k", k, 1)
    return Fraction(1, 2 * (k - 1)) if k > 1 else Fraction(1)


def linear_chance(p: int, subset: Collection[int], element: int) -> Fraction:
    """Return the fraction of linear permutations mod p under which an element comes first, for p up to a million.

    For a given a, the values a·x lie on a circle of p points, which b rotates. The element comes first if the rotation
    puts the start of the circle between it and the value before it: for as many b as the width of that gap.

    In {0, 1, …, k − 1} element 0 comes first too often, by a factor that grows like ln k:

    >>> [round(float(k * linear_chance(10007, range(k), 0)), 2) for k in (2, 10, 100, 1000)]
    [1.0, 1.4, 2.06, 2.7]
    """
    p = prime("linear_chance", "p", p, 1_000_000)
    members = _members("linear_chance", "subset", subset, p)
    if not _is_whole(element) or element not in members:
        raise ParameterError.of("linear_chance", "element", "in the subset", element)
    a, gap = np.arange(1, p), np.full(p - 1, p)
    for other in members:
        if other != element:
            np.minimum(gap, a * (element - other) % p, out=gap)
    return Fraction(int(gap.sum()), p * (p - 1))


def cyclic_family(n: int) -> Permutations:
    """Return the n cyclic permutations, which start at row r: r, r + 1, … n − 1, 0, … r − 1 (MMDS Exercise 3.3.6).

    They are not enough. An element comes first in X if r lies in the gap between it and the previous one, and gaps can
    have any width: with X = {0, 1}, element 1 comes first only if r = 1.

    >>> agreement(cyclic_family(3), {0, 1}, {0})        # columns of Jaccard similarity 1/2
    Fraction(2, 3)
    """
    n = whole("cyclic_family", "n", n, 1, LARGEST_WRITTEN)
    return np.array([(np.arange(n) - first) % n for first in range(n)])


def _halved(top: Collection[int], order: Sequence[int]) -> list[int]:
    """Return the permutation of 2·len(order) elements that puts those in `top` first and orders both halves alike."""
    places, chosen = {True: iter(order), False: iter(order)}, set(top)
    return [next(places[x in chosen]) + (0 if x in chosen else len(order)) for x in range(2 * len(order))]


def _first_counts(owner: str, permutations: Permutations) -> tuple[NDArray[np.int64], NDArray[np.int64]]:
    """Return how often each element comes first in each set, and the set sizes; set s contains the bits of s."""
    n = permutations.shape[1]
    if n > LARGEST_UNIVERSE:
        raise ParameterError.of(owner, "family", f"permutations of at most {LARGEST_UNIVERSE} elements", n)
    sets = np.arange(1 << n)
    counts = np.zeros((1 << n, n), np.int64)
    first = np.zeros(1 << n, np.int64)
    for permutation in permutations:
        for x in np.argsort(-permutation):
            first.reshape(-1, 2, 1 << x)[:, 1] = x
        counts[sets, first] += 1
    return counts, _inside(n).sum(axis=1)


def _inside(n: int) -> NDArray[np.bool_]:
    return (np.arange(1 << n)[:, None] >> np.arange(n) & 1).astype(bool)


def _as_family(owner: str, family: Iterable[Sequence[int]]) -> Permutations:
    try:
        rows = [tuple(row) for row in family]
    except TypeError as error:
        raise ParameterError.of(owner, "family", "a list of permutations", family) from error
    if not rows or not rows[0]:
        raise ParameterError.of(owner, "family", "one or more permutations", rows)
    elements = list(range(len(rows[0])))
    for number, row in enumerate(rows):
        if not all(map(_is_whole, row)) or sorted(row) != elements:
            rule = f"permutations of the numbers from 0 to {len(elements) - 1}"
            raise ParameterError.of(owner, "family", rule, f"row {number}: {row}")
    return np.array(rows, np.int64)


def _members(owner: str, name: str, subset: Collection[int], n: int) -> list[int]:
    rule = f"one or more elements from 0 to {n - 1}"
    found = listed(owner, name, subset, rule)
    if not found or not all(_is_whole(x) and 0 <= x < n for x in found):
        raise ParameterError.of(owner, name, rule, subset)
    return sorted(set(found))


def _is_whole(x: object) -> bool:
    return isinstance(x, int | np.integer) and not isinstance(x, bool)


def _power_of_two(owner: str, n: object) -> int:
    n = whole(owner, "n", n, 1)
    if n & n - 1:
        raise ParameterError.of(owner, "n", "a power of two", n)
    return n
