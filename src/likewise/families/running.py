"""Composed families at work (L5): candidates of a collection, and an index to ask, for ANDs and ORs in any order.

The values of the functions are a table, one row an item. ANDs next to the base make one key of several columns, and items
with the same key meet in a bucket. An OR is the union of the buckets of its parts. An AND of ORs takes the pairs of its
first part and keeps those on which the others agree too, so no part but the first is ever written out.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from likewise.errors import InputError
from likewise.families.algebra import Composable, Step

Ints = NDArray[np.int64]
Keys = NDArray[np.uint64]
MOST_PAIRS = 100_000_000
_ODD = np.uint64(0x9E3779B97F4A7C15)
_MIX = np.uint64(0xBF58476D1CE4E5B9)


@dataclass(frozen=True)
class Candidates:
    """Pairs of items that collide, left < right, sorted; and how many of all pairs they are."""

    left: Ints
    right: Ints
    items: int

    def __len__(self) -> int:
        return len(self.left)

    @property
    def rate(self) -> float:
        """The part of all pairs that are candidates."""
        every = self.items * (self.items - 1) / 2
        return len(self.left) / every if every else 0.0


def candidates(family: Composable, items: Any, most: int = MOST_PAIRS) -> Candidates:
    """Return the pairs of items that collide under a composed family.

    Raises if there would be more than `most` pairs: a family for which nearly everything collides is of no use.
    """
    keys, steps = keyed(family, items)
    left, right = _pairs(keys, steps, most)
    return Candidates(left, right, len(keys))


def keyed(family: Composable, items: Any) -> tuple[Keys, tuple[Step, ...]]:
    """Return one key for every item and group of functions that are ANDed next to the base, and the steps that remain."""
    values = family.base.hashes(items, family.functions)
    keys = values.astype(np.int64).view(np.uint64) if values.dtype.kind in "iub" else values.view(np.uint64)
    steps = list(family.steps)
    together = 1
    while steps and steps[0][0] == "all":
        together *= steps.pop(0)[1]
    return _folded(keys, together), tuple(steps)


def _folded(keys: Keys, together: int) -> Keys:
    """Hash every so many neighbouring columns to one."""
    parts = keys.reshape(len(keys), keys.shape[1] // together, together)
    out = np.full(parts.shape[:2], _ODD)
    for place in range(together):
        out = (out ^ parts[:, :, place]) * _MIX
        out ^= out >> np.uint64(31)
    return out


def _pairs(keys: Keys, steps: tuple[Step, ...], most: int) -> tuple[Ints, Ints]:
    """Return the pairs that agree, sorted."""
    if not steps:
        return _bucket_pairs(keys[:, 0], most)
    (kind, k), inner = steps[-1], steps[:-1]
    width = keys.shape[1] // k
    parts = [keys[:, place * width : (place + 1) * width] for place in range(k)]
    if kind == "all":
        left, right = _pairs(parts[0], inner, most)
        for part in parts[1:]:
            kept = agree(part, inner, left, right)
            left, right = left[kept], right[kept]
        return left, right
    n = np.uint64(len(keys))
    codes = np.zeros(0, np.uint64)
    for part in parts:
        left, right = _pairs(part, inner, most)
        codes = np.union1d(codes, left.astype(np.uint64) * n + right.astype(np.uint64))
        if len(codes) > most:
            raise InputError(f"more than {most:,} pairs collide; use more functions in all_of, or fewer in any_of")
    return (codes // n).astype(np.int64), (codes % n).astype(np.int64)


def agree(keys: Keys, steps: tuple[Step, ...], left: Ints, right: Ints, others: Keys | None = None) -> NDArray[np.bool_]:
    """Tell which pairs collide; with `others`, the right items have their keys there."""
    theirs = keys if others is None else others
    if not steps:
        found: NDArray[np.bool_] = keys[left, 0] == theirs[right, 0]
        return found
    (kind, k), inner = steps[-1], steps[:-1]
    width = keys.shape[1] // k
    result = np.full(len(left), kind == "all")
    for place in range(k):
        part = slice(place * width, (place + 1) * width)
        open_ = np.flatnonzero(result == (kind == "all"))  # not decided yet
        met = agree(keys[:, part], inner, left[open_], right[open_], theirs[:, part])
        result[open_] = met
        if kind == "any":
            result[open_[met]] = True
    return result


def _bucket_pairs(column: Keys, most: int) -> tuple[Ints, Ints]:
    """Return the pairs of items with the same key, sorted."""
    order = np.argsort(column, kind="stable")
    ordered = column[order]
    starts = np.flatnonzero(np.concatenate([[True], ordered[1:] != ordered[:-1]])) if len(order) else np.zeros(0, int)
    sizes = np.diff(np.append(starts, len(order)))
    total = int((sizes * (sizes - 1) // 2).sum())
    if total > most:
        raise InputError(
            f"{total:,} pairs collide, more than {most:,}; use more functions in all_of, or fewer in any_of"
        )
    after = np.repeat(starts + sizes, sizes) - np.arange(len(order)) - 1  # how many follow in the same bucket
    left = np.repeat(np.arange(len(order)), after)
    first = np.cumsum(after) - after
    right = left + 1 + np.arange(total) - np.repeat(first, after)
    a, b = order[left], order[right]
    a, b = np.minimum(a, b), np.maximum(a, b)
    sort = np.lexsort((b, a))
    return a[sort], b[sort]


class FamilyIndex:
    """Items of a composed family, ready to be asked which of them collide with another one."""

    def __init__(self, family: Composable, items: Any) -> None:
        self.family = family
        self.keys, self.steps = keyed(family, items)
        self._orders = [np.argsort(column, kind="stable") for column in self.keys.T]
        self._sorted = [column[order] for column, order in zip(self.keys.T, self._orders, strict=True)]

    def __len__(self) -> int:
        return len(self.keys)

    def query(self, item: Any, most: int | None = None) -> Ints:
        """Return the numbers of the items that collide with this one, ascending; at most so many that were looked at."""
        keys, _ = keyed(self.family, np.asarray(item)[None] if isinstance(item, np.ndarray) else [item])
        found = np.fromiter(self._looked_up(keys[0], self.steps, 0), np.int64)
        found = np.unique(found[:most] if most is not None else found)
        met = agree(keys, self.steps, np.zeros(len(found), np.int64), found, self.keys)
        return found[met]

    def _looked_up(self, key: Keys, steps: tuple[Step, ...], place: int) -> Iterator[int]:
        """Yield items, some of them more than once, among which are all that collide: of an AND, those of its first part."""
        if not steps:
            low, high = np.searchsorted(self._sorted[place], key[place]), 0
            high = int(np.searchsorted(self._sorted[place], key[place], side="right"))
            yield from self._orders[place][low:high].tolist()
            return
        (kind, k), inner = steps[-1], steps[:-1]
        width = int(np.prod([size for _, size in inner])) if inner else 1
        for part in range(k if kind == "any" else 1):
            yield from self._looked_up(key, inner, place + part * width)
