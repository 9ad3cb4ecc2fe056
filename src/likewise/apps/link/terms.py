"""Terms of values and of whole records: words and three-letter pieces, rare ones counting most."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from likewise.apps.link.fields import Field, Floats, Ints
from likewise.apps.link.hashing import Hashed
from likewise.kernels import linking as kernels


@dataclass(frozen=True)
class Weighted:
    """Rows of terms, numbered from the rarest on, with weights whose squares add up to 1 in every row."""

    offsets: Ints
    terms: Ints
    weights: Floats
    size: int


def joined(parts: list[Hashed]) -> Hashed:
    """Return the terms of the values of several fields, one field's values after another's."""
    ends = np.cumsum([0, *(len(part.terms) for part in parts)])
    offsets = [part.offsets[:-1] + end for part, end in zip(parts, ends, strict=False)]
    return Hashed(
        np.concatenate([*offsets, ends[-1:]]).astype(np.int64), np.concatenate([part.terms for part in parts])
    )


def all_codes(fields: list[Field]) -> Ints:
    """Return the values of every record, numbered over all fields; -1 where one is missing."""
    starts = np.cumsum([0, *(len(field.values) for field in fields)])
    columns = [
        np.where(field.codes >= 0, field.codes + start, -1) for field, start in zip(fields, starts, strict=False)
    ]
    return np.ascontiguousarray(np.stack(columns, axis=1))


def of_records(codes: Ints, values: Hashed) -> Hashed:
    """Return the terms of all fields of every record together."""
    sizes = np.append(np.diff(values.offsets), 0)
    offsets = np.concatenate(([0], np.cumsum(sizes[codes].sum(axis=1)))).astype(np.int64)
    out = np.empty(int(offsets[-1]), np.uint64)
    kernels.gather(codes, values.offsets, values.terms, offsets, out)
    return Hashed(offsets, out)


def weighted(rows: Hashed, repeats: Ints | None = None) -> Weighted:
    """Weigh terms by how often a row has them and how few rows do: (1 + log n) · log(1 + N / df), scaled to length 1.

    `repeats` tells how many records have each row.
    """
    terms, counts = np.empty_like(rows.terms), np.empty(len(rows.terms), np.int64)
    offsets = np.zeros(len(rows.offsets), np.int64)
    n = kernels.bag(rows.offsets, rows.terms.copy(), terms, counts, offsets)
    terms, counts = terms[:n], counts[:n]
    row = np.repeat(np.arange(len(offsets) - 1), np.diff(offsets))
    different, places = np.unique(terms, return_inverse=True)
    times = None if repeats is None else repeats[row].astype(np.float64)
    frequency = np.bincount(places, times, len(different))
    total = max(1, len(offsets) - 1 if repeats is None else int(repeats.sum()))
    by_rarity = np.argsort(frequency, kind="stable")
    rank = np.empty(len(different), np.int64)
    rank[by_rarity] = np.arange(len(different))
    weights = (1 + np.log(counts)) * np.log1p(total / np.maximum(1, frequency[places]))
    length = np.sqrt(np.bincount(row, weights**2, len(offsets) - 1))
    weights /= np.maximum(length, 1e-12)[row]
    numbers = rank[places]
    order = np.lexsort((numbers, row))
    return Weighted(offsets, numbers[order], weights[order], len(different))


def tokens(values: Hashed, counts: Ints, records: int) -> tuple[Ints, Floats]:
    """Return the words of values as numbers, and for each word the logarithm of how few records have it."""
    different, places = np.unique(values.terms, return_inverse=True)
    row = np.repeat(np.arange(len(values.offsets) - 1), np.diff(values.offsets))
    frequency = np.bincount(places, counts[row].astype(np.float64), len(different))
    return places.astype(np.int64), np.log1p(records / np.maximum(1, frequency))
