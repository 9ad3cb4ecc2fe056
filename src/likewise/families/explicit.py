"""Minhashing by the book (MMDS §3.3), for teaching and tests: nothing is random and every step can be inspected.

`from_permutations` is the definition: in a permuted order of the rows, the minhash of a set is the first row that is in
it. `from_functions` is the one-pass algorithm: visit every row once and keep, for each set and hash function, the
smallest value seen. Sets are iterables of rows, rows are any hashable objects, and the signature of an empty set is -1
everywhere (the "∞" that no row has lowered): two empty sets agree, an empty set and a non-empty one never do.
"""

from __future__ import annotations

import itertools
import math
from abc import ABC, abstractmethod
from collections.abc import Callable, Collection, Hashable, Iterable, Iterator, Sequence
from dataclasses import dataclass
from fractions import Fraction
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from likewise.base import checks
from likewise.errors import ParameterError

__all__ = ["EMPTY", "ExplicitMinHash", "RowTypes", "Step", "agreement", "first_row", "row_types"]

EMPTY = -1
"""The minhash of the empty set. No row number and no hash value may be this number."""

Row = Hashable
MAX_ROWS = 1 << 24
"""The most rows that are numbered: every function is called with each of them."""
MAX_PERMUTED_ROWS = 9
"""The largest universe whose permutations are all enumerated: 9! = 362,880 take about a second."""


def first_row(order: Iterable[Row], members: Collection[Row]) -> Row | None:
    """Return the minhash by definition: the first row in this order that is a member, or None.

    >>> first_row("beadc", {"a", "d"})
    'a'
    """
    return next((row for row in order if row in members), None)


class ExplicitMinHash(ABC):
    """A list of minhash functions over a known universe of rows. Create one with a `from_…` constructor.

    >>> minhash = ExplicitMinHash.from_permutations(["beadc"], universe="abcde")
    >>> minhash.signatures(["ad", "c", "bde", "acd"]).tolist()
    [[0], [2], [1], [0]]
    >>> functions = [lambda x: (x + 1) % 5, lambda x: (3 * x + 1) % 5]
    >>> ExplicitMinHash.from_functions(functions, rows=range(5)).signatures([{0, 3}, {2}]).tolist()
    [[1, 0], [3, 2]]
    """

    def __init__(self, rows: Iterable[Row]) -> None:
        self.rows = tuple(_elements(type(self).__name__, "rows", rows))
        if len(set(self.rows)) < len(self.rows):
            raise ParameterError.of(type(self).__name__, "rows", "distinct", self.rows)

    @staticmethod
    def from_permutations(permutations: Iterable[Sequence[Row]], universe: Iterable[Row]) -> ByPermutations:
        """Return the minhash functions of these orders of the universe's rows (MMDS §3.3.2).

        Each permutation lists all rows in order: `"beadc"` puts row b first. (Lecture notes often list the position of
        each row instead; such a list is a hash function, for `from_functions`.)
        """
        return ByPermutations(permutations, universe)

    @staticmethod
    def from_functions(functions: Iterable[Callable[[Any], int]], rows: Iterable[Row] | int) -> ByFunctions:
        """Return the minhash functions of these hash functions, each called with every row (MMDS §3.3.5).

        `rows=5` means rows 0 to 4. The functions return non-negative integers and may collide.
        """
        if isinstance(rows, int):
            rows = range(checks.whole("from_functions", "rows", rows, 0, MAX_ROWS))
        return ByFunctions(functions, rows)

    @abstractmethod
    def signatures(self, sets: Iterable[Iterable[Row]]) -> NDArray[np.int64]:
        """Return the signature matrix: one row per set, one column per minhash function."""

    def _members(self, sets: Iterable[Iterable[Row]]) -> list[frozenset[Row]]:
        members = [frozenset(rows) for rows in sets]
        for row in frozenset().union(*members) - set(self.rows):
            raise ParameterError.of("signatures", "sets", "made of rows of the universe only", row)
        return members


class ByPermutations(ExplicitMinHash):
    """The definition of minhashing: the first row of the set in each of the given orders."""

    def __init__(self, permutations: Iterable[Sequence[Row]], universe: Iterable[Row]) -> None:
        super().__init__(universe)
        self.orders = tuple(
            tuple(_elements("from_permutations", "permutations", order))
            for order in _elements("from_permutations", "permutations", permutations, hashable=False)
        )
        for order in self.orders:
            if len(order) != len(self.rows) or set(order) != set(self.rows):
                rule = "orders of all rows of the universe"
                raise ParameterError.of("from_permutations", "permutations", rule, order)

    def first_rows(self, sets: Iterable[Iterable[Row]]) -> list[tuple[Row | None, ...]]:
        """Return the minhashes of each set as the rows themselves; None for an empty set."""
        return [tuple(first_row(order, rows) for order in self.orders) for rows in self._members(sets)]

    def signatures(self, sets: Iterable[Iterable[Row]]) -> NDArray[np.int64]:
        """Return for each set the number of the first row in each order.

        Rows that are non-negative integers are their own numbers; other rows are numbered from 0 in universe order.
        """
        numbered = all(_is_number(row) for row in self.rows)
        number: dict[Row | None, Any] = {row: row if numbered else i for i, row in enumerate(self.rows)}
        number[None] = EMPTY
        values = [[number[row] for row in rows] for rows in self.first_rows(sets)]
        return np.array(values, dtype=np.int64).reshape(len(values), len(self.orders))


class ByFunctions(ExplicitMinHash):
    """The one-pass algorithm: row by row, the smallest value so far of every hash function for every set."""

    def __init__(self, functions: Iterable[Callable[[Any], int]], rows: Iterable[Row]) -> None:
        super().__init__(rows)
        functions = tuple(_elements("from_functions", "functions", functions, hashable=False))
        if not all(map(callable, functions)):
            raise ParameterError.of("from_functions", "functions", "a list of functions", functions)
        self.values = tuple(tuple(function(row) for function in functions) for row in self.rows)
        self.n = len(functions)
        for value in itertools.chain.from_iterable(self.values):
            if not _is_number(value):
                rule = "functions to integers in [0, 2**63)"
                raise ParameterError.of("from_functions", "functions", rule, value)

    def trace(self, sets: Iterable[Iterable[Row]]) -> Iterator[Step]:
        """Yield the signature matrix before the first row and after each row, as in MMDS Example 3.8.

        >>> minhash = ExplicitMinHash.from_functions([lambda x: (x + 1) % 3], rows=3)
        >>> *_, before, after = minhash.trace([{2}, {1, 2}])
        >>> print(before)
        row 1: 2
        h1     ∞     2
        >>> print(after)
        row 2: 0
        h1     0     0
        """
        members = self._members(sets)
        least = np.full((len(members), self.n), EMPTY, dtype=np.int64)
        yield Step(None, (), least.copy())
        for row, values in zip(self.rows, self.values, strict=True):
            for signature, rows in zip(least, members, strict=True):
                if row in rows:
                    lower = (signature == EMPTY) | (values < signature)
                    signature[lower] = np.array(values, dtype=np.int64)[lower]
            yield Step(row, values, least.copy())

    def signatures(self, sets: Iterable[Iterable[Row]]) -> NDArray[np.int64]:
        """Return for each set the smallest value of each hash function over its rows."""
        *_, last = self.trace(sets)
        return last.signatures

    def permutes(self) -> list[bool]:
        """Tell for each function whether it is a true permutation of the rows, that is, free of collisions."""
        return [len({values[i] for values in self.values}) == len(self.rows) for i in range(self.n)]


@dataclass(frozen=True, eq=False)
class Step:
    """One step of the one-pass algorithm: the row just processed, its hash values, the signatures so far."""

    row: Row | None
    values: tuple[int, ...]
    signatures: NDArray[np.int64]

    def __str__(self) -> str:
        title = "start" if not self.values else f"row {self.row}: {', '.join(map(str, self.values))}"
        lines = [
            f"h{i}" + "".join(f"{'∞' if value == EMPTY else value:>6}" for value in column)
            for i, column in enumerate(self.signatures.T.tolist(), start=1)
        ]
        return "\n".join([title, *lines])


class RowTypes(NamedTuple):
    """The number of rows with a 1 in both columns (x), in one of them (y), in neither (z); MMDS §3.3.3."""

    x: int
    y: int
    z: int

    @property
    def similarity(self) -> Fraction:
        """The Jaccard similarity x / (x + y); 1 for two empty columns."""
        return Fraction(self.x, self.x + self.y) if self.x + self.y else Fraction(1)


def row_types(a: Iterable[Row], b: Iterable[Row], universe: Iterable[Row]) -> RowTypes:
    """Count the rows of types X, Y and Z for a pair of columns.

    >>> row_types("ad", "acd", universe="abcde")
    RowTypes(x=2, y=1, z=2)
    """
    a, b, rows = set(a), set(b), set(universe)
    for row in (a | b) - rows:
        raise ParameterError.of("row_types", "a or b", "made of rows of the universe only", row)
    return RowTypes(len(a & b), len(a ^ b), len(rows - a - b))


def agreement(
    a: Iterable[Row], b: Iterable[Row], universe: Iterable[Row], orders: Iterable[Sequence[Row]] | None = None
) -> Fraction:
    """Return the exact fraction of orders of the universe in which two sets have the same first row.

    The orders are all permutations, enumerated, unless others are given (such as the cyclic ones). Over all
    permutations the fraction is the Jaccard similarity: the theorem of MMDS §3.3.3, by counting.

    >>> agreement("ad", "acd", universe="abcde")
    Fraction(2, 3)
    """
    a, b, rows = set(a), set(b), tuple(universe)
    row_types(a, b, rows)
    if orders is None:
        if len(rows) > MAX_PERMUTED_ROWS:
            got = f"{len(rows)} rows, {math.factorial(len(rows)):,} permutations"
            raise ParameterError.of("agreement", "universe", f"at most {MAX_PERMUTED_ROWS} rows", got)
        orders = itertools.permutations(rows)
    agree = [first_row(order, a) == first_row(order, b) for order in orders]
    if not agree:
        raise ParameterError.of("agreement", "orders", "at least one order", orders)
    return Fraction(sum(agree), len(agree))


def _is_number(value: object) -> bool:
    return isinstance(value, (int, np.integer)) and 0 <= int(value) < 2**63


def _elements(owner: str, name: str, given: Iterable[Any], hashable: bool = True) -> list[Any]:
    """Return the elements of a collection, which a string may be."""
    try:
        found = list(given)
        if hashable:
            set(found)
    except TypeError as error:
        raise ParameterError.of(owner, name, "a list of hashable rows" if hashable else "a list", given) from error
    return found
