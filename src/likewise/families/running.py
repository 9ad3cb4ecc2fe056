"""Families at work: candidate pairs of a collection or of its signatures, and an index for queries, for any cascade.

ANDs at the base combine several functions into one key, and items with the same key share a bucket. An OR is the union
of the buckets of its parts. An AND of ORs takes the pairs of its first part and keeps those on which the other parts
agree too, so that only the first part is ever written out: the unions and their intersection of MMDS §3.8.5.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from likewise.base import checks
from likewise.base.random import bits
from likewise.errors import InputError, ParameterError
from likewise.families.banding import Banding
from likewise.families.buckets import ABSENT, Ints, Keys, KeyTables, batch_of_one, equal_pairs, folded, keyed, ranges
from likewise.families.curves import Construction
from likewise.families.functions import Cascade
from likewise.families.signatures import check_finished, slots_of

Codes = NDArray[np.int64]
"""Pairs encoded as one number each: left · n + right."""
MOST_PAIRS = 100_000_000
"""More pairs than this are an error by default: 1.6 GB as two columns of row numbers, and a sign that too much
collides."""
WAITING = 1 << 20
"""Pairs collected before duplicates are removed (8 MB): merging more often costs time, less often memory."""
PAIR_STREAM = 40
"""The stream of random numbers that draws pairs for predictions; no family uses it."""
ADVICE = "use more functions in all_of, fewer in any_of, or raise `most`; remove identical items first"


@dataclass(frozen=True, eq=False)
class CollidingPairs:
    """The pairs that collide, left < right, sorted; and their share of all pairs, measured and predicted.

    `predicted` is the mean of the family's curve over the distances of random pairs, and `error` its standard error
    from sampling; 0 if all pairs were used.
    """

    left: Ints
    right: Ints
    items: int
    predicted: float | None = None
    error: float | None = None

    def __len__(self) -> int:
        return len(self.left)

    @property
    def every(self) -> int:
        """The number of all pairs, n(n − 1)/2."""
        return self.items * (self.items - 1) // 2

    @property
    def rate(self) -> float:
        """The share of all pairs that are candidates."""
        return len(self.left) / self.every if self.every else 0.0

    def report(self) -> str:
        """Return a line with the number of candidates and the number predicted."""
        found = f"{len(self):,} of {self.every:,} pairs are candidates: {100 * self.rate:.3g} %"
        if self.predicted is None or self.error is None:
            return found
        return f"{found}, predicted {100 * self.predicted:.3g} % ± {100 * self.error:.2g} %"

    def __str__(self) -> str:
        return self.report()


def family_candidates(family: Cascade, items: Any, most: int = MOST_PAIRS, sample: int = 20_000) -> CollidingPairs:
    """Return the pairs of items that collide under a composed family.

    Memory grows with the number of items times the number of groups of functions, and with the number of pairs. Raises
    if there are more than `most` pairs; an overfull bucket is noticed before its pairs are written out.

    >>> from likewise import MinHash
    >>> baskets = [["milk", "bread", "eggs"], ["bread", "milk", "eggs"], ["nails", "hammer"]]
    >>> found = MinHash().all_of(3).any_of(5).candidates(baskets)
    >>> found.left.tolist(), found.right.tolist()
    ([0], [1])
    >>> print(found)
    1 of 3 pairs are candidates: 33.3 %, predicted 33.3 % ± 0 %
    """
    most, sample = checks.whole("candidates", "most", most), checks.whole("candidates", "sample", sample, 0)
    together, steps = grouped(family.steps)
    found = keyed(family.base, items, family.functions, together, _filters(steps))
    n = found.keys.shape[1]

    def leaf(place: int) -> Codes:
        return _bucket_pairs(found.keys[place], most)

    def agree(codes: Codes, inner: tuple[Construction, ...], place: int) -> NDArray[np.bool_]:
        return _agree(
            found.values, found.values, family.base.absent, codes, n, (("all", together), *inner), place * together
        )

    left, right = np.divmod(_meet(steps, 0, leaf, agree, most), max(1, n))
    predicted, error = predict(family, items, n, sample) if sample and n > 1 else (None, None)
    return CollidingPairs(left, right, n, predicted, error)


def candidates(signatures: Any, banding: Banding, *, most: int = MOST_PAIRS) -> CollidingPairs:
    """Return the pairs of items whose signatures agree in all rows of at least one band.

    signatures: one row per item and one column per slot, as `MinHash.signatures` returns them; any table of whole
    numbers will do. (The signature matrices of the book have a column per item: give their transpose.) banding: bands
    and rows; there must be b · r slots. most: more pairs than this are an error.

    The result has two arrays of row numbers, `left` < `right`, sorted.

    >>> rows = [[1, 0, 0, 0, 2], [3, 2, 1, 2, 2], [0, 1, 3, 1, 1]]      # a band of three rows, five items
    >>> found = candidates(np.transpose(rows), Banding(b=1, r=3))
    >>> found.left.tolist(), found.right.tolist()
    ([1], [3])
    """
    if not isinstance(banding, Banding):
        raise ParameterError.of("candidates", "banding", "a Banding, such as Banding(b=20, r=5)", banding)
    most = checks.whole("candidates", "most", most)
    if isinstance(signatures, list | tuple) and not signatures:
        signatures = np.zeros((0, banding.slots), np.int64)
    table = slots_of("candidates", "signatures", signatures)
    check_finished("candidates", signatures)
    if table.ndim != 2 or table.shape[1] != banding.slots:
        rule = f"a table with one row per item and {banding.slots} columns, for {banding}"
        raise ParameterError.of("candidates", "signatures", rule, f"an array of shape {table.shape}")
    keys = folded(np.ascontiguousarray(table), banding.r, table.dtype, None).T
    try:
        codes = united(np.ascontiguousarray(keys), most)
    except InputError as error:
        advice = "use more rows and fewer bands, or raise `most`; remove identical items first"
        raise InputError(f"candidates: {str(error).replace(ADVICE, advice)}") from error
    left, right = np.divmod(codes, max(1, len(table)))
    return CollidingPairs(left, right, len(table))


def predict(family: Cascade, items: Any, n: int, sample: int) -> tuple[float, float]:
    """Return the expected share of pairs that collide, from the distances of sampled pairs; and its standard error."""
    if n * (n - 1) // 2 <= sample:
        left, right = (side.astype(np.int64) for side in np.triu_indices(n, 1))
        error = 0.0
    else:
        drawn = bits(1, PAIR_STREAM, 2, sample)
        left, right = (drawn[0] % np.uint64(n)).astype(np.int64), (drawn[1] % np.uint64(n - 1)).astype(np.int64)
        right += right >= left
        error = sample**-0.5
    chances = family.probability(family.base.distances(items, left, right))
    return float(chances.mean()), error * float(chances.std())


def grouped(steps: tuple[Construction, ...]) -> tuple[int, tuple[Construction, ...]]:
    """Return the number of functions combined by AND at the base, and the steps that remain."""
    together, rest = 1, list(steps)
    while rest and rest[0][0] == "all":
        together *= rest.pop(0)[1]
    return together, tuple(rest)


def _filters(steps: tuple[Construction, ...]) -> bool:
    """Tell whether an AND follows an OR, which needs the hash values in addition to the keys."""
    return any(kind == "all" and k > 1 for kind, k in steps)


def united(keys: Keys, most: int) -> Codes:
    """Return the pairs of items with the same key in at least one table of keys, sorted."""
    return _meet((("any", len(keys)),), 0, lambda place: _bucket_pairs(keys[place], most), _always, most)


def _always(codes: Codes, inner: tuple[Construction, ...], place: int) -> NDArray[np.bool_]:
    return np.ones(len(codes), bool)


def _meet(
    steps: tuple[Construction, ...],
    place: int,
    leaf: Callable[[int], Codes],
    agree: Callable[[Codes, tuple[Construction, ...], int], NDArray[np.bool_]],
    most: int,
) -> Codes:
    """Return the pairs that collide under these steps, sorted; `place` is the first of their groups of functions."""
    if not steps:
        return leaf(place)
    (kind, k), inner = steps[-1], steps[:-1]
    width = math.prod(size for _, size in inner)
    if kind == "all":
        codes = _meet(inner, place, leaf, agree, most)
        for part in range(1, k):
            codes = codes[agree(codes, inner, place + part * width)]
        return codes
    codes, waiting = np.zeros(0, np.int64), [np.zeros(0, np.int64)]
    for part in range(k):
        waiting.append(_meet(inner, place + part * width, leaf, agree, most))
        if part == k - 1 or sum(map(len, waiting)) > max(WAITING, len(codes)):
            codes, waiting = _distinct(np.concatenate([codes, *waiting])), []
        if len(codes) > most:
            raise InputError(f"more than {most:,} pairs collide; {ADVICE}")
    return codes


def _distinct(codes: Codes) -> Codes:
    codes.sort()
    return codes[np.concatenate([[True], codes[1:] != codes[:-1]])] if len(codes) else codes


def _agree(
    ours: NDArray[Any] | None,
    theirs: NDArray[Any] | None,
    absent: int | None,
    codes: Codes,
    n: int,
    steps: tuple[Construction, ...],
    first: int,
) -> NDArray[np.bool_]:
    """Tell which pairs collide under these steps, from the values of the functions from number `first` on."""
    if ours is None or theirs is None:
        raise ValueError("the values were not kept")
    columns = math.prod(k for _, k in steps)
    out = np.empty(len(codes), np.bool_)
    size = max(1, WAITING // columns)
    for start in range(0, len(codes), size):
        left, right = np.divmod(codes[start : start + size], n)
        a = ours[left, first : first + columns]
        met = a == theirs[right, first : first + columns]
        if absent is not None:
            met &= a != absent
        for kind, k in steps:
            parts = met.reshape(len(left), -1, k)
            met = parts.all(axis=2) if kind == "all" else parts.any(axis=2)
        out[start : start + size] = met[:, 0]
    return out


def _bucket_pairs(keys: Keys, most: int) -> Codes:
    """Return the pairs of items with the same key, sorted."""

    def told(total: int, largest: int) -> str:
        return f"{largest:,} items share a bucket, and {total:,} pairs collide, more than {most:,}; {ADVICE}"

    return np.sort(equal_pairs(keys, most, told, ABSENT))


class FamilyIndex:
    """An index over the items of a composed family that finds those which collide with a query (many-one search).

    A query has the form of one element of the collection: an array for a vector; a list or set of tokens, a mapping, a
    record as they are. The index uses 12 bytes per item and group of functions combined by AND at the base, and also
    keeps the hash values if an AND follows an OR.

    >>> from likewise import MinHash
    >>> index = MinHash().all_of(2).any_of(8).index([["a", "b", "c"], ["x", "y"], ["b", "c", "a"]])
    >>> index.query(["c", "b", "a"]).tolist()
    [0, 2]
    """

    def __init__(self, family: Cascade, items: Any) -> None:
        self.family = family
        self._together, self._steps = grouped(family.steps)
        self._tables = KeyTables(family.base, items, family.functions, self._together, _filters(self._steps))

    def __len__(self) -> int:
        return len(self._tables)

    @property
    def nbytes(self) -> int:
        """The size of the index in bytes."""
        return sum(
            array.nbytes for array in (self._tables.keys, self._tables.rows, self._tables.values) if array is not None
        )

    def query(self, item: Any, most: int = MOST_PAIRS) -> Ints:
        """Return the row numbers of the items that collide with this one, ascending."""
        return self.query_many(batch_of_one(item), most)[1]

    def query_many(self, items: Any, most: int = MOST_PAIRS) -> tuple[Ints, Ints]:
        """Return two arrays, the row numbers of queries and of the items that collide with them, sorted."""
        most = checks.whole("query", "most", most)
        family, tables, n = self.family, self._tables, len(self)
        tables.check(items)
        asked = keyed(family.base, items, family.functions, self._together, _filters(self._steps), tables.kind)

        def leaf(place: int) -> Codes:
            low, high = tables.find(place, asked.keys[place])
            total = int((high - low).sum())
            if total > most:
                raise InputError(f"{total:,} items collide with queries, more than {most:,}; {ADVICE}")
            at, query = ranges(low, high)
            return np.sort(query * n + tables.rows[place][at])

        def agree(codes: Codes, inner: tuple[Construction, ...], place: int) -> NDArray[np.bool_]:
            steps, absent = (("all", self._together), *inner), family.base.absent
            return _agree(asked.values, tables.values, absent, codes, n, steps, place * self._together)

        queries, rows = np.divmod(_meet(self._steps, 0, leaf, agree, most), max(1, n))
        return queries, rows
