"""Blocking: the pairs worth comparing, by identical fields and by shared terms (MMDS §3.8.2).

The candidates are the union of
- records with an identical field, found by sorting. A block of more than LIMIT records is not paired; its records are
  sorted again by that field combined with each other field.
- the nearest neighbours by all text: the NEAREST best of every record, and further ones with similarity ENOUGH.
- in tables too large for nearest neighbours, records that share bands of MinHash over the words and trigrams of all
  fields. A pair must then share two bands; or one band and an identical field; or two fields whose agreement by chance
  is improbable.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from itertools import combinations

import numpy as np
from numpy.typing import NDArray

from likewise.apps.link.fields import Field, Floats, rarity
from likewise.apps.link.terms import HashedTerms, WeightedTerms, all_codes, joined, of_records, weighted
from likewise.base.arrays import Ints
from likewise.base.parallel import in_order
from likewise.kernels import linking as kernels
from likewise.kernels.sorting import radix_sort32

LIMIT = 12
"""Records of a block that are paired with each other, 66 pairs of 12; larger blocks come from frequent values, whose
agreement says little."""

ALIKE = 0.2
"""Least estimated similarity of a pair that shares bands: leaves out those that share one by chance."""

NEAREST = 10
"""Nearest neighbours of every record that are always candidates."""

ENOUGH = 0.2
"""Further neighbours are candidates from this cosine similarity on, for records with many duplicates."""

MOST = 300
"""Neighbours of one record at most, so that a text that many records share does not pair them all."""

PAIRS = 6_000_000
"""Candidates from further neighbours, over all records: bounds the time and memory of the comparison."""

VISITS = 100_000_000
"""Postings read in the search for nearest neighbours, over all records, rarest terms first: bounds its time."""

LEAST_VISITS = 3_000
"""Postings read for each record in any case."""

TERMS = 6_000_000
"""Tables with more terms in all their fields are blocked by bands of MinHash, not by nearest neighbours."""

BANDS, ROWS, ROUNDS = 6, 3, 4
"""MinHash: 4 rounds of 6 bands of 3 rows. By the banding formula, 98 % of the pairs with similarity 0.6 share two
bands, and 46 % of those with 0.4."""

PART = 1 << 19
"""Pairs checked at a time by one thread."""

ROWS_AT_ONCE = 2_000
"""Records whose neighbours are searched at a time by one thread."""

MIX = np.uint64(0x9E3779B97F4A7C15)


@dataclass(frozen=True)
class RecordPairs:
    """Distinct sorted pairs to compare, left < right; the number found by each method (`ways`); notes for the user."""

    left: Ints
    right: Ints
    ways: dict[str, int]
    notes: list[str]

    def __len__(self) -> int:
        return len(self.left)

    def with_pairs(self, pairs: Ints, records: int) -> RecordPairs:
        """Return these pairs and those given (two columns, left < right)."""
        keys = np.concatenate([self.left * records + self.right, pairs[:, 0] * records + pairs[:, 1]])
        keys = np.unique(keys)
        return RecordPairs(keys // records, keys % records, self.ways, self.notes)


def block(
    fields: list[Field], border: int, seed: int = 1, threads: int = 1, most: int = TERMS
) -> tuple[RecordPairs, WeightedTerms | None]:
    """Return the candidate pairs, and the weighted terms of records if the tables are small enough for them.

    `border` is the number of the first record of the second table, 0 for one table; tables with more than `most` terms
    are blocked by bands.
    """
    codes = all_codes(fields)
    values = joined([one.grams for one in fields])
    records = len(codes)
    sizes = np.append(np.diff(values.offsets), 0)
    whole = int(sizes[codes].sum())
    kinds: dict[str, Ints] = {}
    notes: list[str] = []
    rows: WeightedTerms | None = None
    if whole <= most:
        rows = weighted(of_records(codes, values))
        kinds["all_text"] = _keys(*_nearest(rows, records, border, threads), records)
        kinds["identical_fields"] = _identical(fields, border, notes, threads)
    else:
        kinds = _many(fields, codes, values, border, seed, threads, notes)
        notes.append(f"{whole:,} terms: candidates by bands of MinHash instead of nearest neighbours by all text")
    merged = sorted_unique(np.concatenate(list(kinds.values())))
    ways = {way: len(keys) for way, keys in kinds.items()}
    return RecordPairs(merged // records, merged % records, ways, notes), rows


def sorted_unique(keys: Ints) -> Ints:
    """Return the distinct keys in order."""
    keys = np.sort(keys)
    return keys[np.append(True, keys[1:] != keys[:-1])] if len(keys) else keys


def _keys(left: Ints, right: Ints, records: int) -> Ints:
    return sorted_unique(np.minimum(left, right) * records + np.maximum(left, right))


def _nearest(rows: WeightedTerms, records: int, border: int, threads: int) -> tuple[Ints, Ints]:
    """Return the pairs of each record and its nearest neighbours by all text, in the other table if there are two."""
    cap = max(NEAREST, min(MOST, PAIRS // max(1, records)))
    visits = max(LEAST_VISITS, VISITS // records)
    sides = [(0, records, 0, records)] if not border else [(0, border, border, records), (border, records, 0, border)]
    found: list[tuple[Ints, Ints]] = []
    for start, stop, first, last in sides:
        span = slice(rows.offsets[first], rows.offsets[last])
        order = np.argsort(rows.terms[span], kind="stable")
        starts = np.searchsorted(rows.terms[span][order], np.arange(rows.size + 1)).astype(np.int64)
        owners = np.repeat(np.arange(last - first), np.diff(rows.offsets[first : last + 1]))[order]
        weights = rows.weights[span][order]

        def near(
            some: Ints,
            posted: tuple[Ints, Ints, Floats] = (starts, owners, weights),
            size: int = last - first,
            shift: int = first,
        ) -> tuple[Ints, Ints]:
            pairs: tuple[Ints, Ints] = kernels.nearest(
                some, rows.offsets, rows.terms, rows.weights, *posted, size, shift, NEAREST, cap, ENOUGH, visits
            )
            return pairs

        some = np.arange(start, stop)
        found += in_order(near, [some[at : at + ROWS_AT_ONCE] for at in range(0, len(some), ROWS_AT_ONCE)], threads)
    return np.concatenate([left for left, _ in found]), np.concatenate([right for _, right in found])


def _many(
    fields: list[Field], codes: Ints, values: HashedTerms, border: int, seed: int, threads: int, notes: list[str]
) -> dict[str, Ints]:
    """Return the pairs of large tables by the method that found them."""
    records = len(codes)
    once, twice, marks = _banded(codes, values, border, seed, threads)
    rare = np.concatenate([rarity(field) for field in fields])

    def in_parts(function: Callable[[Ints], Ints], keys: Ints) -> Ints:
        parts = [keys[at : at + PART] for at in range(0, len(keys), PART)]
        return np.concatenate([np.zeros(0, np.int64), *in_order(function, parts, threads)])

    def alike(keys: Ints) -> Ints:
        near: NDArray[np.bool_] = kernels.agreement(marks, keys // records, keys % records) >= ALIKE
        return keys[near]

    def half_met(keys: Ints) -> Ints:
        if len(fields) >= 3:
            keys = keys[kernels.equal_worth(codes, rare, keys, records)[0] >= 1]
        return alike(keys)

    def rarely_equal(keys: Ints) -> Ints:
        count, worth = kernels.equal_worth(codes, rare, keys, records)
        chosen: NDArray[np.bool_] = (count >= min(2, len(fields) - 1)) & (worth >= np.log(records / 2))
        return keys[chosen]

    met = np.sort(np.concatenate([in_parts(alike, twice), in_parts(half_met, once)]))
    return {
        "bands": met,
        "identical_fields": in_parts(rarely_equal, _identical(fields, border, notes, threads)),
    }


def _paired(keys: NDArray[np.uint32], border: int, records: int) -> tuple[Ints, int]:
    """Return the pairs of records with equal keys (0: no key), and the number of records in blocks too large."""
    order, ordered = radix_sort32(keys)
    none = np.zeros(0, np.int64)
    count, crowded = kernels.block_pairs(order, ordered, border, LIMIT, none, none, False)
    left, right = np.empty(count, np.int64), np.empty(count, np.int64)
    kernels.block_pairs(order, ordered, border, LIMIT, left, right, True)
    return left * records + right, crowded


def _banded(
    codes: Ints, values: HashedTerms, border: int, seed: int, threads: int
) -> tuple[Ints, Ints, NDArray[np.uint8]]:
    """Return the pairs that share one band, those that share several, and a byte of every minimum."""
    marks = np.zeros((len(codes), ROUNDS * BANDS * ROWS), np.uint8)

    def turn(number: int) -> list[Ints]:
        salt = np.uint64((seed * ROUNDS + number + 1) * 0x9E3779B97F4A7C15 % 2**64)
        keys = np.zeros((len(codes), BANDS), np.uint32)
        place = number * BANDS * ROWS
        kernels.band_keys(codes, values.offsets, values.terms, BANDS, ROWS, salt, keys, marks, place)
        return [_paired(np.ascontiguousarray(keys[:, band]), border, len(codes))[0] for band in range(BANDS)]

    keys = np.sort(np.concatenate([found for part in in_order(turn, range(ROUNDS), threads) for found in part]))
    again = np.append(False, keys[1:] == keys[:-1]) if len(keys) else np.zeros(0, bool)
    twice = sorted_unique(keys[again])
    once = ~again & ~np.append(again[1:], False) if len(keys) else again
    return keys[once], twice, marks


def _identical(fields: list[Field], border: int, notes: list[str], threads: int = 1) -> Ints:
    records = len(fields[0].codes)
    found, crowded = [], []
    singles = in_order(lambda field: _paired((field.codes + 1).astype(np.uint32), border, records), fields, threads)
    for field, (pairs, many) in zip(fields, singles, strict=True):
        found.append(pairs)
        if many:
            crowded.append(field)
    if crowded:
        names = ", ".join(field.name for field in crowded)
        notes.append(f"{names}: values shared by more than {LIMIT} records are blocked together with another field")

    def by_both(two: tuple[Field, Field]) -> Ints:
        one, other = two
        key = one.codes.astype(np.uint64) * MIX + other.codes.astype(np.uint64)
        key = ((key * MIX) >> np.uint64(33)) + np.uint64(1)
        there = (one.codes >= 0) & (other.codes >= 0)
        return _paired(np.where(there, key, np.uint64(0)).astype(np.uint32), border, records)[0]

    found += in_order(by_both, combinations(crowded, 2), threads)
    return sorted_unique(np.concatenate(found))


def completeness(candidates: RecordPairs, truth: Ints, records: int) -> float:
    """Return the fraction of the true pairs (two columns, left < right) that are candidates."""
    if not len(truth):
        return 1.0
    keys = candidates.left * records + candidates.right
    return float(np.isin(truth[:, 0] * records + truth[:, 1], keys).mean())
