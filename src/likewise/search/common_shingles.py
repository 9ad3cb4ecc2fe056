"""Shingles that too many documents share: found exactly, and described for the user."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, replace
from typing import Any

import numpy as np

from likewise.base import checks
from likewise.base.arrays import Hashes, Ints, Sets
from likewise.kernels.hashtable import count_carriers, fill_table, slot_of
from likewise.search.items import Items, TextItems

SAMPLE = 10_000
"""Documents in which candidates for common shingles are looked for."""
SHOWN = 10
"""Common shingles that run.json lists."""
LOOKED_AT = 200
"""Documents that are searched for the text of a shingle."""
SLACK = 5
"""Standard deviations by which a shingle may be rarer in the sample: a common one is missed once in three million."""


@dataclass(frozen=True)
class CommonShingles:
    """Shingles, the most frequent first, and the number of different documents that have each."""

    values: Hashes
    carriers: Ints


def check_fraction(owner: str, fraction: object) -> float | None:
    """Return the fraction of the documents above which a shingle is common: None, or a number in (0, 1)."""
    if fraction is None:
        return None
    rule = "a fraction of the documents in (0, 1), such as 0.1"
    return checks.number(owner, "ignore_common", fraction, 0, 1, open_left=True, open_right=True, rule=rule)


def value_table(values: Hashes) -> Hashes:
    """Return a hash table of values, at most half full."""
    table = np.zeros(1 << max(1, (2 * len(values)).bit_length()), np.uint64)
    fill_table(values[values != 0], table)
    return table


def find_common(items: Items, rows: Ints, fraction: float, order: Ints, threads: int) -> CommonShingles:
    """Return the shingles in more than this fraction of these items, with exact counts.

    Candidates come from a sample, the first rows in `order` (numbers in `rows`), and are then counted in all items.
    """
    items = without_counts(items)
    sample = rows[np.sort(order[:SAMPLE])]
    suspects = suspected(items.sets(sample, threads), len(rows), fraction)
    table = value_table(suspects)
    carriers = np.zeros(len(table), np.int64)
    for _, sets in items.set_batches(rows, threads):
        count_carriers(sets.values, sets.offsets, table, carriers)
    return common_ones(suspects, table, carriers, fraction * len(rows))


def without_counts(items: Items) -> Items:
    """Return the items as sets: a document counts once, however often it has a shingle."""
    if isinstance(items, TextItems) and items.shingler.bag:
        return TextItems(items.texts, replace(items.shingler, bag=False), items.sizes)
    return items


def suspected(sample: Sets, items: int, fraction: float) -> Hashes:
    """Return the shingles that may be in more than this fraction of so many items, judged by the sets of a sample."""
    values, counts = np.unique(sample.values.astype(np.uint64), return_counts=True)
    mean = fraction * len(sample)
    slack = 0.0 if len(sample) == items else SLACK * np.sqrt(mean * (1 - fraction))
    return values[counts > mean - slack - 1e-9]


def common_ones(suspects: Hashes, table: Hashes, carriers: Ints, most: float) -> CommonShingles:
    """Return the suspects that more than `most` items have; carriers[i] is the number of those with table[i]."""
    places = np.array([slot_of(table, value) for value in suspects], np.int64)
    found = carriers[places]
    often = found > most
    best = np.lexsort((suspects[often], -found[often]))
    return CommonShingles(suspects[often][best], found[often][best])


def spelled(items: Items, rows: Ints, values: Hashes) -> list[str]:
    """Return the text of these shingles, taken from these documents; if it is not found, their hashes."""
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
        yield from zip(values.tolist(), shingler.members(text), strict=False)


def described(items: Items, rows: Ints, common: CommonShingles, documents: int) -> dict[str, Any]:
    """Describe the common shingles, for run.json."""
    shown = spelled(items, rows, common.values[:SHOWN])
    examples = [{"shingle": text, "documents": int(count)} for text, count in zip(shown, common.carriers, strict=False)]
    return {"shingles": len(common.values), "of_documents": documents, "most_common": examples}
