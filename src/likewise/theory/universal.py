"""Universal and pairwise-independent families of hash functions, small enough to enumerate.

A family is a list of functions from which one is drawn at random *after* the keys are given: for a single function
known in advance, an adversary can choose keys that all collide. The quality of a family is described by probabilities
over the draw:

- **weakly universal**: two different keys collide with probability at most 1/m, where m is the number of hash values;
- **pairwise independent** (strongly universal): two different keys have any two values with probability exactly 1/m².

Pairwise independence is stronger: m of the m² pairs of values are collisions, so a collision has probability 1/m.
A family here lists its functions as a table, one row per function and one column per key, and the claims are counted:

>>> worst_collision(CarterWegman(p=11, m=4).table())
Fraction(2, 11)
>>> is_pairwise_independent(Affine(p=7).table(), m=7)
True
"""

from __future__ import annotations

import itertools
import math
import random
from abc import ABC, abstractmethod
from collections.abc import Callable, Iterable
from dataclasses import dataclass
from fractions import Fraction
from typing import Any

import numpy as np
from numpy.typing import NDArray

from likewise.base.checks import flag, prime, whole
from likewise.errors import ParameterError

Table = NDArray[np.int64]
Ranges = tuple[range, ...]
LARGEST_TABLE = 1 << 24
"""The largest table that is written out: 128 MB."""
LARGEST_PRIME = (1 << 31) - 1
"""The largest p: a·x + b then fits into 63 bits."""


class HashFamily(ABC):
    """A family of hash functions, one for every choice of its coefficients."""

    @property
    @abstractmethod
    def keys(self) -> int:
        """The number of keys: 0, 1, … keys − 1."""

    @property
    @abstractmethod
    def values(self) -> int:
        """The number of hash values m: 0, 1, … m − 1."""

    @property
    @abstractmethod
    def coefficients(self) -> Ranges:
        """The range of each coefficient."""

    @abstractmethod
    def value(self, coefficients: tuple[int, ...], x: Any) -> Any:
        """Return the hash value of key x, or of an array of keys, under one function."""

    @property
    def size(self) -> int:
        """The number of functions in the family."""
        return math.prod(len(choices) for choices in self.coefficients)

    def draw(self, source: random.Random) -> Callable[[int], int]:
        """Return a function drawn uniformly from the family."""
        if not isinstance(source, random.Random):
            raise ParameterError.of(type(self).__name__, "source", "a random.Random", source)
        chosen = tuple(source.choice(choices) for choices in self.coefficients)
        return lambda x: int(self.value(chosen, x))

    def table(self) -> Table:
        """Return all functions: one row per function, one column per key."""
        if self.size * self.keys > LARGEST_TABLE:
            got = f"{self.size:,} functions of {self.keys:,} keys"
            raise ParameterError(f"{type(self).__name__}.table holds at most {LARGEST_TABLE:,} values, not {got}")
        x = np.arange(self.keys, dtype=np.int64)
        return np.array([self.value(chosen, x) for chosen in itertools.product(*self.coefficients)])


class _ModuloPrime(HashFamily):
    """A family of a·x + b modulo a prime p, on keys from 0 to p − 1."""

    p: int
    zero: bool

    @property
    def keys(self) -> int:
        """The number of keys, p."""
        return self.p

    @property
    def coefficients(self) -> Ranges:
        """The ranges of a and b."""
        return range(0 if self.zero else 1, self.p), range(self.p)


class _TopBits(HashFamily):
    """A family that maps keys of `bits` bits to values of `out` bits."""

    bits: int
    out: int

    @property
    def values(self) -> int:
        """The number of hash values."""
        return 1 << self.out

    @property
    def keys(self) -> int:
        """The number of keys."""
        return 1 << self.bits


@dataclass(frozen=True)
class Affine(_ModuloPrime):
    """h(x) = (a·x + b) mod p for a prime p, with a and b from 0 to p − 1, on keys and values from 0 to p − 1.

    Pairwise independent, because two equations a·x + b = y determine a and b: for two keys, each pair of values belongs
    to exactly one of the p² functions. With `zero=False` the constant functions, a = 0, are excluded. The rest are
    permutations: no two keys ever collide, and each pair of *different* values has probability 1/(p·(p − 1)).

    >>> worst_collision(Affine(5).table()), worst_collision(Affine(5, zero=False).table())
    (Fraction(1, 5), Fraction(0, 1))
    """

    p: int
    zero: bool = True

    def __post_init__(self) -> None:
        prime("Affine", "p", self.p, LARGEST_PRIME)
        flag("Affine", "zero", self.zero)

    @property
    def values(self) -> int:
        """The number of hash values, p."""
        return self.p

    def value(self, coefficients: tuple[int, ...], x: Any) -> Any:
        """Return (a·x + b) mod p."""
        a, b = coefficients
        return (a * x + b) % self.p


@dataclass(frozen=True)
class CarterWegman(_ModuloPrime):
    """h(x) = ((a·x + b) mod p) mod m, with a from 1 to p − 1 and b from 0 to p − 1: the usual universal family.

    Two keys collide with probability at most 1/m. The prime p must exceed every *key*, not only m: x and x + p always
    collide. And a must not be 0: with `zero=True` the constant functions are included, and the bound is violated.

    >>> worst_collision(CarterWegman(5, 2).table()), worst_collision(CarterWegman(5, 2, zero=True).table())
    (Fraction(2, 5), Fraction(13, 25))

    It is not pairwise independent: p is not a multiple of m, so some values are more likely than others.
    """

    p: int
    m: int
    zero: bool = False

    def __post_init__(self) -> None:
        prime("CarterWegman", "p", self.p, LARGEST_PRIME)
        whole("CarterWegman", "m", self.m, 1, self.p)
        flag("CarterWegman", "zero", self.zero)

    @property
    def values(self) -> int:
        """The number of hash values, m."""
        return self.m

    def value(self, coefficients: tuple[int, ...], x: Any) -> Any:
        """Return ((a·x + b) mod p) mod m."""
        a, b = coefficients
        return (a * x + b) % self.p % self.m


@dataclass(frozen=True)
class MultiplyShift(_TopBits):
    """The top `out` bits of the low `bits` bits of a·x, for odd a: one multiplication and one shift.

    No prime and no division, at the cost of a factor 2: two keys collide with probability at most 2/m, where m = 2^out
    (Dietzfelbinger, Hagerup, Katajainen, Penttonen, 1997).

    >>> worst_collision(MultiplyShift(bits=6, out=2).table())
    Fraction(1, 2)
    """

    bits: int
    out: int

    def __post_init__(self) -> None:
        whole("MultiplyShift", "bits", self.bits, 1, 30)
        whole("MultiplyShift", "out", self.out, 1, self.bits)

    @property
    def coefficients(self) -> Ranges:
        """The odd numbers a."""
        return (range(1, 1 << self.bits, 2),)

    def value(self, coefficients: tuple[int, ...], x: Any) -> Any:
        """Return the top bits of a·x."""
        (a,) = coefficients
        return (a * x & (1 << self.bits) - 1) >> self.bits - self.out


@dataclass(frozen=True)
class MultiplyAddShift(_TopBits):
    """The top `out` bits of the low bits + out − 1 bits of a·x + b: pairwise independent without a prime.

    The cost is wider arithmetic: keys of `bits` bits need products of bits + out − 1 bits.

    >>> is_pairwise_independent(MultiplyAddShift(bits=3, out=2).table(), m=4)
    True
    """

    bits: int
    out: int

    def __post_init__(self) -> None:
        whole("MultiplyAddShift", "bits", self.bits, 1, 20)
        whole("MultiplyAddShift", "out", self.out, 1, 20)

    @property
    def coefficients(self) -> Ranges:
        """The ranges of a and b."""
        return (range(1 << self.bits + self.out - 1),) * 2

    def value(self, coefficients: tuple[int, ...], x: Any) -> Any:
        """Return the top bits of a·x + b."""
        a, b = coefficients
        return (a * x + b & (1 << self.bits + self.out - 1) - 1) >> self.bits - 1


def worst_collision(table: Table | Iterable[Iterable[int]]) -> Fraction:
    """Return the largest collision probability of two different keys, over all pairs of columns of the table.

    >>> worst_collision([[0, 1, 0], [0, 1, 1]])
    Fraction(1, 2)
    """
    rows = _as_table("worst_collision", table)
    most = 0
    for x in range(rows.shape[1] - 1):
        most = max(most, int((rows[:, x, None] == rows[:, x + 1 :]).sum(axis=0).max()))
    return Fraction(most, len(rows))


def is_weakly_universal(table: Table | Iterable[Iterable[int]], m: int) -> bool:
    """Return whether no two different keys collide with probability above 1/m."""
    m = whole("is_weakly_universal", "m", m, 1)
    return worst_collision(_as_table("is_weakly_universal", table, m)) <= Fraction(1, m)


def is_pairwise_independent(table: Table | Iterable[Iterable[int]], m: int) -> bool:
    """Return whether any two different keys have any two values, equal ones too, with probability exactly 1/m²."""
    m = whole("is_pairwise_independent", "m", m, 1)
    rows = _as_table("is_pairwise_independent", table, m)
    share = Fraction(len(rows), m * m)
    for x1, x2 in itertools.combinations(range(rows.shape[1]), 2):
        counts = np.bincount(rows[:, x1] * m + rows[:, x2], minlength=m * m)
        if not (counts == share).all():
            return False
    return True


def _as_table(owner: str, table: Table | Iterable[Iterable[int]], m: int | None = None) -> Table:
    rule = "one row of whole numbers for every function"
    try:
        rows = table if isinstance(table, np.ndarray) else np.array([list(row) for row in table])
    except (TypeError, ValueError) as error:
        raise ParameterError.of(owner, "table", rule, table) from error
    if rows.ndim != 2 or rows.dtype.kind not in "iu" or 0 in rows.shape:
        raise ParameterError.of(owner, "table", rule, rows.shape)
    if m is not None and (int(rows.min()) < 0 or int(rows.max()) >= m):
        raise ParameterError.of(owner, "table", f"values from 0 to m − 1 = {m - 1}", (int(rows.min()), int(rows.max())))
    return rows.astype(np.int64)
