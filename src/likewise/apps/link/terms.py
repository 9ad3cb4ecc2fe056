"""Terms of values and of whole records: words and character trigrams as hashes, weighted by rarity."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

import numpy as np
import pyarrow as pa
from numpy.typing import NDArray

from likewise.base.arrays import Hashes, Ints, TextChunk
from likewise.kernels import linking as kernels

if TYPE_CHECKING:
    from likewise.apps.link.fields import Field

Floats = NDArray[np.float64]


@dataclass(frozen=True)
class HashedTerms:
    """The hashed terms of every value: those of value i are terms[offsets[i]:offsets[i + 1]]."""

    offsets: Ints
    terms: Hashes


@dataclass(frozen=True)
class WeightedTerms:
    """Rows of terms, numbered from the rarest on, with weights whose squares add up to 1 in every row."""

    offsets: Ints
    terms: Ints
    weights: Floats
    size: int


def hashed(folded: pa.Array, grams: bool) -> HashedTerms:
    """Return the words of folded values and, with `grams`, the character trigrams of the words."""
    if len(folded) == 0:
        return HashedTerms(np.zeros(1, np.int64), np.zeros(0, np.uint64))
    chunk = TextChunk.from_arrow(folded)
    none = np.zeros(0, np.uint64)
    counts = kernels.terms(chunk.data, chunk.offsets, grams, chunk.offsets, none, False)
    offsets = np.concatenate(([0], np.cumsum(counts))).astype(np.int64)
    out = np.empty(int(offsets[-1]), np.uint64)
    kernels.terms(chunk.data, chunk.offsets, grams, offsets, out, True)
    return HashedTerms(offsets, out)


def joined(parts: list[HashedTerms]) -> HashedTerms:
    """Return the terms of the values of several fields, one field after another."""
    ends = np.cumsum([0, *(len(part.terms) for part in parts)])
    offsets = [part.offsets[:-1] + end for part, end in zip(parts, ends, strict=False)]
    return HashedTerms(
        np.concatenate([*offsets, ends[-1:]]).astype(np.int64), np.concatenate([part.terms for part in parts])
    )


def all_codes(fields: list[Field]) -> Ints:
    """Return the values of every record, numbered over all fields; -1 for a missing value."""
    starts = np.cumsum([0, *(len(field.values) for field in fields)])
    columns = [
        np.where(field.codes >= 0, field.codes + start, -1) for field, start in zip(fields, starts, strict=False)
    ]
    return np.ascontiguousarray(np.stack(columns, axis=1))


def of_records(codes: Ints, values: HashedTerms) -> HashedTerms:
    """Return the terms of every record, from all its fields."""
    sizes = np.append(np.diff(values.offsets), 0)
    offsets = np.concatenate(([0], np.cumsum(sizes[codes].sum(axis=1)))).astype(np.int64)
    out = np.empty(int(offsets[-1]), np.uint64)
    kernels.gather(codes, values.offsets, values.terms, offsets, out)
    return HashedTerms(offsets, out)


def weighted(rows: HashedTerms) -> WeightedTerms:
    """Weight terms by TF-IDF, (1 + log n) · log(1 + N / df), with every row scaled to length 1."""
    terms, counts = np.empty_like(rows.terms), np.empty(len(rows.terms), np.int64)
    offsets = np.zeros(len(rows.offsets), np.int64)
    n = kernels.bag(rows.offsets, rows.terms.copy(), terms, counts, offsets)
    terms, counts = terms[:n], counts[:n]
    row = np.repeat(np.arange(len(offsets) - 1), np.diff(offsets))
    different, places = np.unique(terms, return_inverse=True)
    frequency = np.bincount(places, None, len(different))
    total = max(1, len(offsets) - 1)
    by_rarity = np.argsort(frequency, kind="stable")
    rank = np.empty(len(different), np.int64)
    rank[by_rarity] = np.arange(len(different))
    weights = (1 + np.log(counts)) * np.log1p(total / np.maximum(1, frequency[places]))
    length = np.sqrt(np.bincount(row, weights**2, len(offsets) - 1))
    weights /= np.maximum(length, 1e-12)[row]
    numbers = rank[places]
    order = np.lexsort((numbers, row))
    return WeightedTerms(offsets, numbers[order], weights[order], len(different))


def tokens(values: HashedTerms, counts: Ints, records: int) -> tuple[Ints, Floats]:
    """Return the words of values as numbers, and for each word the logarithm of its inverse record frequency."""
    different, places = np.unique(values.terms, return_inverse=True)
    row = np.repeat(np.arange(len(values.offsets) - 1), np.diff(values.offsets))
    frequency = np.bincount(places, counts[row].astype(np.float64), len(different))
    return places.astype(np.int64), np.log1p(records / np.maximum(1, frequency))
