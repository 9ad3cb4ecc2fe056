"""Collections of bags for `measures.batch`: lists of elements, or mappings from element to count."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from likewise import measures
from likewise.errors import ParameterError

Ints = NDArray[np.int64]


class Overlap(NamedTuple):
    """The number of elements that each pair of sets shares, and the sizes of both."""

    shared: Ints
    a: Ints
    b: Ints

    @property
    def union(self) -> Ints:
        """The number of elements in either set."""
        return self.a + self.b - self.shared


class CountedBags(NamedTuple):
    """Bags of which some are mappings from element to count."""

    bags: list[Any]


def bags_of(name: str, bags: Any) -> Any:
    """Return bags in a form that `_ragged` or `_counted` understands."""
    if hasattr(bags, "offsets") and hasattr(bags, "sizes"):
        return bags
    items = items_of("bag_jaccard", name, bags)
    kinds = set(map(type, items))
    if any(issubclass(kind, Mapping) for kind in kinds):
        return CountedBags(items)
    if not any(issubclass(kind, str) for kind in kinds):
        return items
    return [list(bag) if isinstance(bag, str) else bag for bag in items]


def _mappings(name: str, bags: Any) -> list[Mapping[Any, int]]:
    """Return every bag as a mapping from element to count, checked."""
    if hasattr(bags, "offsets"):
        raise ParameterError("bag_jaccard: Sets cannot be compared with mappings; give both in the same form")
    items = bags.bags if isinstance(bags, CountedBags) else bags
    return [measures.counted_bag(f"{name}[{row}]", bag) for row, bag in enumerate(items)]


def counted_overlap(first: Any, second: Any) -> Overlap:
    """Add up the smaller count of each element that two bags share, and the counts of both."""
    a, b = _mappings("a", first), _mappings("b", second)
    if len(a) != len(b):
        raise ParameterError(f"bag_jaccard: {len(a)} items cannot be paired with {len(b)}; give equally many")
    names: dict[Any, int] = {}
    rows, numbers, counts = [], [], []
    for side in (a, b):
        rows.append(np.repeat(np.arange(len(side)), [len(bag) for bag in side]))
        numbers.append(np.array([names.setdefault(name, len(names)) for bag in side for name in bag], np.int64))
        counts.append(np.array([count for bag in side for count in bag.values()], np.int64))
    totals = [np.bincount(row, count, len(a)).astype(np.int64) for row, count in zip(rows, counts, strict=True)]
    keys = [row * max(1, len(names)) + number for row, number in zip(rows, numbers, strict=True)]
    _, here, there = np.intersect1d(keys[0], keys[1], assume_unique=True, return_indices=True)
    least = np.minimum(counts[0][here], counts[1][there])
    return Overlap(np.bincount(rows[0][here], least, len(a)).astype(np.int64), *totals)


def items_of(owner: str, name: str, items: Any, rule: str = "a list with one item per pair") -> list[Any]:
    """Return a column as a list, from Arrow, NumPy, pandas, or any iterable."""
    for method in ("to_pylist", "tolist"):
        if hasattr(items, method):
            items = getattr(items, method)()
            break
    if isinstance(items, str | bytes | Mapping) or not isinstance(items, Iterable):
        raise ParameterError.of(owner, name, rule, items)
    return list(items)
