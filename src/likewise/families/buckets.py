"""Items in buckets: keys of several hash values, sorted tables of keys, and the entries that belong to a key.

A key is a 64-bit hash of the values it represents. Two different groups of values share a key with probability 2^-64,
in which case a pair becomes a candidate that should not be one.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from likewise.base.arrays import Sets
from likewise.base.random import mix
from likewise.errors import InputError, ParameterError
from likewise.families.functions import HashFunctions

Ints = NDArray[np.int64]
Keys = NDArray[np.uint64]
ABSENT = np.uint64(2**64 - 1)
"""The key of an item that collides with nothing."""
BLOCK = 1 << 24
"""Hash values computed at a time, at most 128 MB at 8 bytes each."""
LEAST_BATCH = 1 << 12
"""Items per batch at least, however many functions there are: smaller batches only add overhead."""


@dataclass(frozen=True, eq=False)
class Keyed:
    """The keys of items: one row per group of functions combined by AND at the base, one column per item.

    `values` are the hash values, kept only on request; `kind` is their type before hashing.
    """

    keys: Keys
    values: NDArray[Any] | None
    kind: np.dtype[Any]


def keyed(
    family: HashFunctions, items: Any, n: int, together: int, keep: bool = False, kind: np.dtype[Any] | None = None
) -> Keyed:
    """Return the keys of items, one for every `together` of the first n functions.

    With `kind`, the keys are for looking up among others whose values have that type.
    """
    if not hasattr(items, "__len__") or getattr(items, "shape", None) == ():
        raise ParameterError.of(type(family).__name__, "items", "a collection", type(items).__name__)
    keys, kept = [], []
    for part in batches(items, max(LEAST_BATCH, BLOCK // n)):
        values = _plain(family.hashes(part, n))
        if keep:
            kept.append(values)
        kind = kind or values.dtype
        keys.append(folded(values, together, kind, family.absent).T)
    whole = np.ascontiguousarray(keys[0]) if len(keys) == 1 else np.concatenate(keys, axis=1)
    return Keyed(whole, np.concatenate(kept) if keep else None, kind or np.dtype(np.int64))


def folded(values: NDArray[Any], together: int, kind: np.dtype[Any], absent: int | None) -> Keys:
    """Hash every `together` adjacent values to one key; values that do not fit the type `kind` are absent."""
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


def batches(items: Any, size: int, lists: bool = False) -> Iterator[Any]:
    """Yield arrays and `Sets`, and with `lists` also lists, in batches of `size` items; other collections whole.

    Lists of vectors are otherwise read as one table, so that all numbers have one type.
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


def components_of(items: Any) -> int | None:
    """Return the number of components of the vectors in a table; None for other collections."""
    return int(items.shape[1]) if isinstance(items, np.ndarray) and items.ndim == 2 else None


class KeyTables:
    """The keys of items in sorted tables, one for each group of functions; `values` and `kind` are those of `Keyed`.

    12 bytes per item and table: 8 of the key, 4 of the row that it belongs to.
    """

    def __init__(self, family: HashFunctions, items: Any, n: int, together: int, keep: bool = False) -> None:
        made = keyed(family, items, n, together, keep)
        self.keys, self.values, self.kind, self._components = made.keys, made.values, made.kind, components_of(items)
        self.rows = np.empty(self.keys.shape, np.uint32)
        for table, rows in zip(self.keys, self.rows, strict=True):
            order = np.argsort(table, kind="stable")
            table[:] = table[order]
            rows[:] = order

    def __len__(self) -> int:
        return int(self.keys.shape[1])

    def check(self, queries: Any) -> None:
        """Raise unless query vectors have as many components as those of the index."""
        asked, known = components_of(queries), self._components
        if known is not None and asked is not None and asked != known:
            raise ParameterError(f"query: the vector has {asked} components, but the vectors of the index have {known}")

    def find(self, table: int, keys: Keys) -> tuple[Ints, Ints]:
        """Return where the entries of each key begin and end in a table; an absent key has none."""
        low, high = (np.searchsorted(self.keys[table], keys, side=side) for side in ("left", "right"))
        return low, np.where(keys == ABSENT, low, high)


def ranges(low: Ints, high: Ints) -> tuple[Ints, Ints]:
    """Return the integers from low[i] up to but excluding high[i], for each i in turn; and the i of each."""
    sizes = high - low
    owner = np.repeat(np.arange(len(sizes)), sizes)
    return np.arange(len(owner)) - np.repeat(np.cumsum(sizes) - sizes - low, sizes), owner


def equal_pairs(values: NDArray[Any], most: int, told: Callable[[int, int], str], absent: Any = None) -> Ints:
    """Return the pairs of items with equal values as left · n + right, in no order; `absent`, the largest, has none.

    More than `most` are an error, noticed before they are written out: `told` says it, given their number and that of
    the most items with one value.
    """
    n, order = len(values), np.argsort(values)
    ordered = values[order]
    if absent is not None:
        order = order[: np.searchsorted(ordered, absent)]
        ordered = ordered[: len(order)]
    starts = np.flatnonzero(np.concatenate([[True], ordered[1:] != ordered[:-1]])[: len(order)])
    sizes = np.diff(np.append(starts, len(order)))
    total = int((sizes * (sizes - 1) // 2).sum())
    if total > most:
        raise InputError(told(total, int(sizes.max())))
    after = np.repeat(starts + sizes, sizes) - np.arange(len(order)) - 1  # members of the same run that follow
    left = np.repeat(np.arange(len(order)), after)
    right = left + 1 + np.arange(total) - np.repeat(np.cumsum(after) - after, after)
    a, b = order[left], order[right]
    codes: Ints = np.minimum(a, b) * n + np.maximum(a, b)
    return codes


def _plain(values: NDArray[Any]) -> NDArray[Any]:
    """Return hash values with one bit pattern per number: −0.0 becomes 0.0."""
    if values.dtype.kind == "f":
        return np.asarray(values.astype(np.float64) + 0.0)
    if values.dtype.kind not in "iub":
        raise ParameterError.of("a family", "hashes", "numbers", str(values.dtype))
    return np.ascontiguousarray(values.view(np.uint8) if values.dtype.kind == "b" else values)
