"""Composed families at work (L5): candidates of a collection, and an index to ask, for ANDs and ORs in any order.

ANDs next to the base make one key of several functions, and items with the same key meet in a bucket. An OR is the
union of the buckets of its parts. An AND of ORs takes the pairs of its first part and keeps those on which the others
agree too, so that no part but the first is ever written out: the unions and their intersection of Section 3.8.5.

A key is a hash of 64 bits of the values that it stands for. Two different groups of values have the same key with
probability 2^-64, in which case a pair is a candidate that should not be one.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from likewise.base.arrays import Sets
from likewise.base.random import bits, mix
from likewise.errors import InputError, ParameterError
from likewise.families.algebra import MOST_PAIRS, Composable, Step

Ints = NDArray[np.int64]
Keys = NDArray[np.uint64]
Codes = NDArray[np.int64]
"""Pairs as one number each: left · n + right."""
ABSENT = np.uint64(2**64 - 1)
"""The key of what collides with nothing."""
BLOCK = 1 << 24
PAIR_STREAM = 40


@dataclass(frozen=True, eq=False)
class Candidates:
    """The pairs that collide, left < right, sorted; and which part of all pairs they are, measured and predicted.

    `predicted` is the mean of the family's curve over the distances of pairs drawn at random, and `error` the standard
    error that comes from drawing them; 0 if all pairs were taken.
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
        """The number of all pairs."""
        return self.items * (self.items - 1) // 2

    @property
    def rate(self) -> float:
        """The part of all pairs that are candidates."""
        return len(self.left) / self.every if self.every else 0.0

    def report(self) -> str:
        """Say how many candidates there are, and how many were to be expected."""
        found = f"{len(self):,} of {self.every:,} pairs are candidates: {100 * self.rate:.3g} %"
        if self.predicted is None or self.error is None:
            return found
        return f"{found}, predicted {100 * self.predicted:.3g} % ± {100 * self.error:.2g} %"

    def __str__(self) -> str:
        return self.report()


@dataclass(frozen=True, eq=False)
class Keyed:
    """The keys of items: one row a group of functions that are ANDed next to the base, one column an item.

    `values` are those of the functions, kept only where they are asked for; `kind` is their type before hashing.
    """

    keys: Keys
    values: NDArray[Any] | None
    kind: np.dtype[Any]


def candidates(family: Composable, items: Any, most: int = MOST_PAIRS, sample: int = 20_000) -> Candidates:
    """Return the pairs of items that collide under a composed family.

    Memory grows with the number of items times that of groups of functions, and with that of pairs. Raises if there are
    more than `most`; a bucket that is too full by itself is noticed before its pairs are written out.

    >>> from likewise import MinHash
    >>> baskets = [["milk", "bread", "eggs"], ["bread", "milk", "eggs"], ["nails", "hammer"]]
    >>> found = MinHash().all_of(3).any_of(5).candidates(baskets)
    >>> found.left.tolist(), found.right.tolist()
    ([0], [1])
    >>> print(found)
    1 of 3 pairs are candidates: 33.3 %, predicted 33.3 % ± 0 %
    """
    if isinstance(most, bool) or not isinstance(most, (int, np.integer)) or most < 1:
        raise ParameterError.of("candidates", "most", "a positive whole number", most)
    if isinstance(sample, bool) or not isinstance(sample, (int, np.integer)) or sample < 0:
        raise ParameterError.of("candidates", "sample", "a whole number from 0", sample)
    together, steps = grouped(family.steps)
    found = keyed(family, items, together, _filters(steps))
    n = found.keys.shape[1]

    def leaf(place: int) -> Codes:
        return _bucket_pairs(found.keys[place], most)

    def agree(codes: Codes, inner: tuple[Step, ...], place: int) -> NDArray[np.bool_]:
        return _agree(
            found.values, found.values, family.base.absent, codes, n, (("all", together), *inner), place * together
        )

    left, right = np.divmod(_meet(steps, 0, leaf, agree, most), max(1, n))
    predicted, error = predict(family, items, n, sample) if sample and n > 1 else (None, None)
    return Candidates(left, right, n, predicted, error)


def predict(family: Composable, items: Any, n: int, sample: int) -> tuple[float, float]:
    """Return the expected part of all pairs that collide, from a sample of their distances; and its standard error."""
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


def grouped(steps: tuple[Step, ...]) -> tuple[int, tuple[Step, ...]]:
    """Return how many functions are ANDed next to the base, and the steps that remain."""
    together, rest = 1, list(steps)
    while rest and rest[0][0] == "all":
        together *= rest.pop(0)[1]
    return together, tuple(rest)


def keyed(
    family: Composable, items: Any, together: int, keep: bool = False, kind: np.dtype[Any] | None = None
) -> Keyed:
    """Return the keys of items; with `kind`, of items to be looked up among others whose values are of that type."""
    if not hasattr(items, "__len__"):
        raise ParameterError.of(type(family.base).__name__, "items", "a collection", type(items).__name__)
    keys, kept = [], []
    for part in batches(items, max(1 << 12, BLOCK // family.functions)):
        values = _plain(family.base.hashes(part, family.functions))
        if keep:
            kept.append(values)
        kind = kind or values.dtype
        keys.append(folded(values, together, kind, family.base.absent).T)
    whole = np.ascontiguousarray(keys[0]) if len(keys) == 1 else np.concatenate(keys, axis=1)
    return Keyed(whole, np.concatenate(kept) if keep else None, kind or np.dtype(np.int64))


def batches(items: Any, size: int, lists: bool = False) -> Iterator[Any]:
    """Yield tables of numbers and `Sets`, and with `lists` also lists, in parts of so many; other collections whole.

    Lists of vectors are read as one table, so as to have one type of numbers.
    """
    if len(items) <= size or not isinstance(items, (np.ndarray, Sets, list)[: 3 if lists else 2]):
        yield items
        return
    for start in range(0, len(items), size):
        if isinstance(items, Sets):
            yield items.take(np.arange(start, min(start + size, len(items))))
        else:
            yield items[start : start + size]


def batch_of_one(item: Any) -> Any:
    """Return a collection of one item: an array becomes a table of one row, anything else a list of one."""
    return item[None] if isinstance(item, np.ndarray) else [item]


def width_of(items: Any) -> int | None:
    """Return how many components the vectors of a table have; None of other collections."""
    return int(items.shape[1]) if isinstance(items, np.ndarray) and items.ndim == 2 else None


def check_width(items: Any, width: int | None) -> None:
    """Raise unless vectors to be looked up have as many components as those of the index."""
    asked = width_of(items)
    if width is not None and asked is not None and asked != width:
        raise ParameterError(f"query: a vector has {asked} components, and those of the index have {width}")


def _filters(steps: tuple[Step, ...]) -> bool:
    """Tell whether some OR is ANDed, which needs the values of the functions beside the keys."""
    return any(kind == "all" and k > 1 for kind, k in steps)


def _plain(values: NDArray[Any]) -> NDArray[Any]:
    """Return hash values with one pattern of bits for every number: no −0.0 beside 0.0."""
    if values.dtype.kind == "f":
        return np.asarray(values.astype(np.float64) + 0.0)
    if values.dtype.kind not in "iub":
        raise ParameterError.of("a family", "hashes", "numbers", str(values.dtype))
    return np.ascontiguousarray(values.view(np.uint8) if values.dtype.kind == "b" else values)


def folded(values: NDArray[Any], together: int, kind: np.dtype[Any], absent: int | None) -> Keys:
    """Hash every so many neighbouring values to one key; what has no place in the type `kind` is absent."""
    missing: NDArray[np.bool_] | None = None if absent is None else values == absent
    if values.dtype != kind:
        with np.errstate(invalid="ignore"):
            narrow = np.ascontiguousarray(values.astype(kind))
        missing = (narrow != values) if missing is None else missing | (narrow != values)
        values = narrow
    n, groups = len(values), values.shape[1] // together
    size = together * values.itemsize
    raw = np.ascontiguousarray(values).view(np.uint8).reshape(n, groups, size)
    if size % 8:
        padded = np.zeros((n, groups, size + -size % 8), np.uint8)
        padded[:, :, :size] = raw
        raw = padded
    words = raw.view(np.uint64)
    keys = np.full((n, groups), np.uint64(0x9E3779B97F4A7C15))
    for place in range(words.shape[2]):
        keys = mix(keys ^ words[:, :, place])
    keys[keys == ABSENT] -= np.uint64(1)
    if missing is not None:
        keys[missing.reshape(n, groups, together).any(axis=2)] = ABSENT
    return keys


def _meet(
    steps: tuple[Step, ...],
    place: int,
    leaf: Callable[[int], Codes],
    agree: Callable[[Codes, tuple[Step, ...], int], NDArray[np.bool_]],
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
        if part == k - 1 or sum(map(len, waiting)) > max(1 << 20, len(codes)):
            codes, waiting = _distinct(np.concatenate([codes, *waiting])), []
        if len(codes) > most:
            raise InputError(f"more than {most:,} pairs collide; {_ADVICE}")
    return codes


_ADVICE = "use more functions in all_of, fewer in any_of, or raise `most`; remove identical items first"


def _distinct(codes: Codes) -> Codes:
    codes.sort()
    return codes[np.concatenate([[True], codes[1:] != codes[:-1]])] if len(codes) else codes


def _agree(
    ours: NDArray[Any] | None,
    theirs: NDArray[Any] | None,
    absent: int | None,
    codes: Codes,
    n: int,
    steps: tuple[Step, ...],
    first: int,
) -> NDArray[np.bool_]:
    """Tell which pairs collide under these steps, by the values of the functions from `first` on."""
    if ours is None or theirs is None:
        raise ValueError("the values were not kept")
    columns = math.prod(k for _, k in steps)
    out = np.empty(len(codes), np.bool_)
    size = max(1, (1 << 20) // columns)
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
    n = len(keys)
    order = np.argsort(keys)
    ordered = keys[order]
    order = order[: np.searchsorted(ordered, ABSENT)]
    ordered = ordered[: len(order)]
    starts = np.flatnonzero(np.concatenate([[True], ordered[1:] != ordered[:-1]])[: len(order)])
    sizes = np.diff(np.append(starts, len(order)))
    total = int((sizes * (sizes - 1) // 2).sum())
    if total > most:
        crowd = f"{int(sizes.max()):,} items share a bucket, and"
        raise InputError(f"{crowd} {total:,} pairs collide, more than {most:,}; {_ADVICE}")
    after = np.repeat(starts + sizes, sizes) - np.arange(len(order)) - 1  # how many follow in the same bucket
    left = np.repeat(np.arange(len(order)), after)
    right = left + 1 + np.arange(total) - np.repeat(np.cumsum(after) - after, after)
    a, b = order[left], order[right]
    codes: Codes = np.minimum(a, b) * n + np.maximum(a, b)
    codes.sort()
    return codes


def ranges(low: Ints, high: Ints) -> tuple[Ints, Ints]:
    """Return the numbers from low[i] up to but not including high[i], for one i after the other; and i for each."""
    sizes = high - low
    owner = np.repeat(np.arange(len(sizes)), sizes)
    return np.arange(len(owner)) - np.repeat(np.cumsum(sizes) - sizes - low, sizes), owner


class FamilyIndex:
    """Items of a composed family, ready to be asked which of them collide with another one (the many-one problem).

    A single item is what stands for one in a collection: an array for a vector; a list or set of tokens, a mapping, a
    record as they are. The index takes 12 bytes for every item and group of functions that are ANDed next to the base,
    and keeps the values of the functions as well if ORs are ANDed.

    >>> from likewise import MinHash
    >>> index = MinHash().all_of(2).any_of(8).index([["a", "b", "c"], ["x", "y"], ["b", "c", "a"]])
    >>> index.query(["c", "b", "a"]).tolist()
    [0, 2]
    """

    def __init__(self, family: Composable, items: Any) -> None:
        self.family = family
        self._width = width_of(items)
        self._together, self._steps = grouped(family.steps)
        found = keyed(family, items, self._together, _filters(self._steps))
        self._keys, self._values, self._kind = found.keys, found.values, found.kind
        self._rows = np.empty(self._keys.shape, np.uint32)
        sort_tables(self._keys, self._rows)

    def __len__(self) -> int:
        return int(self._keys.shape[1])

    @property
    def nbytes(self) -> int:
        """The bytes of the index."""
        return self._keys.nbytes + self._rows.nbytes + (0 if self._values is None else self._values.nbytes)

    def query(self, item: Any, most: int = MOST_PAIRS) -> Ints:
        """Return the numbers of the items that collide with this one, ascending."""
        return self.query_many(batch_of_one(item), most)[1]

    def query_many(self, items: Any, most: int = MOST_PAIRS) -> tuple[Ints, Ints]:
        """Return two arrays, the numbers of queries and of the items that collide with them, sorted."""
        check_width(items, self._width)
        asked = keyed(self.family, items, self._together, _filters(self._steps), self._kind)
        n = len(self)

        def leaf(place: int) -> Codes:
            low, high = looked_up(self._keys[place], asked.keys[place])
            total = int((high - low).sum())
            if total > most:
                raise InputError(f"{total:,} items collide with queries, more than {most:,}; {_ADVICE}")
            at, query = ranges(low, high)
            return np.sort(query * n + self._rows[place][at])

        def agree(codes: Codes, inner: tuple[Step, ...], place: int) -> NDArray[np.bool_]:
            steps, absent = (("all", self._together), *inner), self.family.base.absent
            return _agree(asked.values, self._values, absent, codes, n, steps, place * self._together)

        queries, rows = np.divmod(_meet(self._steps, 0, leaf, agree, most), max(1, n))
        return queries, rows


def sort_tables(keys: Keys, rows: NDArray[np.uint32]) -> None:
    """Sort every table of keys in place, and write which row each key belongs to."""
    for table, row in zip(keys, rows, strict=True):
        order = np.argsort(table, kind="stable")
        table[:] = table[order]
        row[:] = order


def looked_up(table: Keys, keys: Keys) -> tuple[Ints, Ints]:
    """Return where the entries of each key begin and end in a sorted table; those of absent keys are none."""
    low, high = np.searchsorted(table, keys), np.searchsorted(table, keys, side="right")
    return low, np.where(keys == ABSENT, low, high)
