"""Shingles that too many documents share: finding them exactly, and naming them for people (P7)."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, replace
from typing import Any

import numpy as np

from likewise.base.arrays import Hashes, Ints
from likewise.errors import ParameterError
from likewise.kernels.common_shingles import count_carriers
from likewise.kernels.hashtable import fill_table, slot_of
from likewise.search.items import Items, TextItems

SAMPLE = 10_000
SHOWN = 10
LOOKED_AT = 200


@dataclass(frozen=True)
class Common:
    """Shingles, most carried first, and how many of the different documents carry each."""

    values: Hashes
    carriers: Ints

    @property
    def table(self) -> Hashes:
        """The hash table by which kernels know them."""
        return value_table(self.values)


def check_fraction(owner: str, fraction: object) -> float | None:
    """Raise unless the fraction is None or in (0, 1)."""
    if fraction is None:
        return None
    if isinstance(fraction, bool) or not isinstance(fraction, int | float | np.number) or not 0 < fraction < 1:
        raise ParameterError.of(owner, "ignore_common", "a fraction of the documents in (0, 1), such as 0.1", fraction)
    return float(fraction)


def value_table(values: Hashes) -> Hashes:
    """Return a hash table of values, at most half full."""
    table = np.zeros(1 << max(1, (2 * len(values)).bit_length()), np.uint64)
    fill_table(values[values != 0], table)
    return table


def find_common(items: Items, rows: Ints, fraction: float, order: Ints, threads: int) -> Common:
    """Return the shingles in more than this fraction of these items; the count is exact.

    What may be that common shows in a sample, the first rows in `order` (numbers in `rows`): a shingle of the fraction
    asked for is rarer there by five standard deviations once in three million times. Those are counted everywhere.
    """
    if isinstance(items, TextItems) and items.shingler.bag:  # what is common counts once, however often it is there
        items = TextItems(items.texts, replace(items.shingler, bag=False), items.sizes)
    sample = rows[np.sort(order[:SAMPLE])]
    values, counts = np.unique(items.sets(sample, threads).values.astype(np.uint64), return_counts=True)
    mean = fraction * len(sample)
    slack = 0.0 if len(sample) == len(rows) else 5 * np.sqrt(mean * (1 - fraction))
    suspects = values[counts > mean - slack - 1e-9]
    table = value_table(suspects)
    carriers = np.zeros(len(table), np.int64)
    for _, sets in items.set_batches(rows, threads):
        count_carriers(sets.values, sets.offsets, table, carriers)
    places = np.array([slot_of(table, value) for value in suspects], np.int64)
    found = carriers[places]
    often = found > fraction * len(rows)
    best = np.lexsort((suspects[often], -found[often]))
    return Common(suspects[often][best], found[often][best])


def spelled(items: Items, rows: Ints, values: Hashes) -> list[str]:
    """Write these shingles as text, found in the first of these documents that have them; else as numbers."""
    names: dict[int, str] = {}
    if isinstance(items, TextItems):
        for value, text in _shingles(items, rows[:LOOKED_AT]):
            names.setdefault(value, text)
    return [names.get(int(value), f"{int(value):#x}") for value in values]


def _shingles(items: TextItems, rows: Ints) -> Iterator[tuple[int, str]]:
    shingler = replace(items.shingler, bag=False)
    for row in rows.tolist():
        text = items.texts[row]
        values = shingler.sets([text]).values
        yield from zip(values.tolist(), shingler.shingles(text), strict=False)


def described(items: Items, rows: Ints, common: Common, documents: int) -> dict[str, Any]:
    """Say which shingles are common, for run.json."""
    shown = spelled(items, rows, common.values[:SHOWN])
    examples = [{"shingle": text, "documents": int(count)} for text, count in zip(shown, common.carriers, strict=False)]
    return {"shingles": len(common.values), "of_documents": documents, "most_common": examples}
