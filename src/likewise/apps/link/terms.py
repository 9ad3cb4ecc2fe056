"""Terms of values and of whole records: words and character trigrams as hashes, weighted by rarity."""

from __future__ import annotations

import zlib
from collections.abc import Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING

import numpy as np
import pyarrow as pa
from numpy.typing import NDArray

from likewise.base.arrays import Hashes, Ints, TextChunk
from likewise.kernels import record_terms as kernels
from likewise.kernels.hashing import hash_strings
from likewise.kernels.record_words import count_terms
from likewise.kernels.record_words import terms as write_terms
from likewise.kernels.sorting import stable_order

if TYPE_CHECKING:
    from likewise.apps.link.fields import Field

Floats = NDArray[np.float64]
Numbers = NDArray[np.int32]
AnyCodes = NDArray[np.int32] | NDArray[np.int64]

VALUES_AT_ONCE = 1 << 18
"""Values whose words are hashed at a time."""


@dataclass(frozen=True)
class HashedTerms:
    """The hashed terms of every value: those of value i are terms[offsets[i]:offsets[i + 1]]."""

    offsets: Ints
    terms: Hashes


@dataclass(frozen=True)
class WeightedTerms:
    """Rows of terms, numbered from the rarest on, with weights whose squares add up to 1 in every row."""

    offsets: Ints
    terms: Numbers
    weights: Floats
    size: int


MIX, SHIFT = np.uint64(0x9E3779B97F4A7C15), np.uint64(29)


def row_hashes(field: Field) -> Hashes:
    """Return a hash of the value of each record in a field, by text and name of the field; 0 without a value."""
    return np.append(named(field.hashes, field.name), np.uint64(0))[field.codes]


def text_hashes(texts: pa.Array) -> Hashes:
    """Return a hash of each text."""
    found = np.zeros(len(texts), np.uint64)
    if len(texts):
        chunk = TextChunk.from_arrow(texts)
        hash_strings(chunk.data, chunk.offsets, found)
    return found


def named(hashes: Hashes, name: str = "") -> Hashes:
    """Return other hashes for each name."""
    found = (hashes ^ np.uint64(zlib.crc32(name.encode()))) * MIX
    found ^= found >> SHIFT
    found *= MIX
    return found


def content_keys(fields: Sequence[Field], records: int) -> Hashes:
    """Return a hash of each record that follows from its values alone, in whatever order the fields are."""
    keys = np.zeros(records, np.uint64)
    for one in fields:
        keys += row_hashes(one)
    return keys


def content_order(keys: Hashes, border: int) -> Ints:
    """Return the records ordered by the hashes of their content, those of the first table first."""
    order = stable_order(keys)
    return np.concatenate([order[order < border], order[order >= border]]) if border else order


def in_parts(folded: pa.Array) -> list[pa.Array]:
    """Return values in parts that are small enough for the terms of each to be in memory."""
    return [folded.slice(start, VALUES_AT_ONCE) for start in range(0, len(folded), VALUES_AT_ONCE)]


def hashed(folded: pa.Array, grams: bool) -> HashedTerms:
    """Return the words of folded values and, with `grams`, the character trigrams of the words."""
    if len(folded) == 0:
        return HashedTerms(np.zeros(1, np.int64), np.zeros(0, np.uint64))
    chunk = TextChunk.from_arrow(folded)
    most = int(chunk.offsets[-1] - chunk.offsets[0]) * (2 if grams else 1)
    out, ends = np.empty(most, np.uint64), np.empty(len(chunk.offsets), np.int64)
    write_terms(chunk.data, chunk.offsets, grams, out, ends)
    out.resize(int(ends[-1]), refcheck=False)
    return HashedTerms(ends, out)


def term_counts(folded: pa.Array) -> Numbers:
    """Return the number of words and character trigrams of each folded value, without making them."""
    counts = np.zeros(len(folded), np.int32)
    if len(folded):
        chunk = TextChunk.from_arrow(folded)
        count_terms(chunk.data, chunk.offsets, counts)
    return counts


def joined(parts: list[HashedTerms]) -> HashedTerms:
    """Return the terms of the values of several fields, one field after another."""
    ends = np.cumsum([0, *(len(part.terms) for part in parts)])
    offsets = [part.offsets[:-1] + end for part, end in zip(parts, ends, strict=False)]
    return HashedTerms(
        np.concatenate([*offsets, ends[-1:]]).astype(np.int64), np.concatenate([part.terms for part in parts])
    )


def all_codes(fields: list[Field]) -> AnyCodes:
    """Return the values of every record, numbered over all fields; -1 for a missing value."""
    codes = np.empty((len(fields[0].codes), len(fields)), np.int64 if _many_values(fields) else np.int32)
    start = 0
    for place, field in enumerate(fields):
        codes[:, place] = np.where(field.codes >= 0, field.codes + codes.dtype.type(start), -1)
        start += len(field.texts)
    return codes


def _many_values(fields: list[Field]) -> bool:
    return sum(len(field.texts) for field in fields) > np.iinfo(np.int32).max


def of_records(codes: AnyCodes, values: HashedTerms) -> HashedTerms:
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
    different = np.unique(terms)
    places = np.searchsorted(different, terms).astype(np.int32)
    del terms
    frequency = np.bincount(places, None, len(different))
    total = max(1, len(offsets) - 1)
    rank = np.empty(len(different), np.int32)
    rank[np.argsort(frequency, kind="stable")] = np.arange(len(different), dtype=np.int32)
    weights = (1 + np.log(counts)) * np.log1p(total / np.maximum(1, frequency))[places]
    del counts
    row = np.repeat(np.arange(total, dtype=np.int32), np.diff(offsets))
    length = np.sqrt(np.bincount(row, weights**2, len(offsets) - 1))
    weights /= np.maximum(length, 1e-12)[row]
    numbers = rank[places]
    del places
    order = np.argsort(row.astype(np.int64) << 32 | numbers)
    return WeightedTerms(offsets, numbers[order], weights[order], len(different))


@dataclass(frozen=True)
class NumberedWords:
    """The words of values as numbers: those of value i are numbers[offsets[i]:offsets[i + 1]].

    rarity: of each word, the logarithm of its inverse frequency among records.
    """

    offsets: Ints
    numbers: Numbers
    rarity: Floats


def numbered_words(fields: list[Field]) -> NumberedWords:
    """Return the words of the values of all fields, one field after another."""
    table, known, count = np.zeros(1 << 16, np.uint64), np.full(1 << 16, -1, np.int32), 0
    sizes, found = [np.zeros(1, np.int64)], [np.zeros(0, np.int32)]
    for part in (part for field in fields for part in in_parts(field.folded)):
        words = hashed(part, False)
        sizes.append(np.diff(words.offsets))
        found.append(np.empty(len(words.terms), np.int32))
        table, known, count = kernels.number_terms(words.terms, found[-1], table, known, count)
    del table, known
    offsets, numbers = np.cumsum(np.concatenate(sizes)), np.concatenate(found)
    frequency = np.zeros(count, np.int64)
    kernels.add_counts(offsets, numbers, np.concatenate([field.counts for field in fields]), frequency)
    records = len(fields[0].codes)
    return NumberedWords(offsets, numbers, np.log1p(records / np.maximum(1, frequency)))
