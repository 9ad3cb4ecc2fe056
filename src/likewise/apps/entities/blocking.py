"""Blocking: the pairs worth comparing (§3.8.2). Identical fields by sorting, and pairs that share terms but no field.

Three ways, and their pairs together:
- records with an identical field. A block of more than LIMIT records is not paired as it stands: its records are
  sorted again by that field together with each other field.
- the nearest records by all their text: the NEAREST best of every record, and those beyond them that share ENOUGH.
- in tables too large for that, bands of MinHash over the three-letter pieces of all fields. A pair then must meet in
  two bands, or in one and in an identical field, or in two identical fields.
"""

from __future__ import annotations

from dataclasses import dataclass
from itertools import combinations

import numpy as np

from likewise.apps.entities.fields import Field, Ints
from likewise.apps.entities.terms import Hashed, Hashes, Weighted, all_codes, hashed, joined, of_records, weighted
from likewise.kernels import linking as kernels

LIMIT = 12
NEAREST = 10
ENOUGH = 0.2
MOST = 300
PAIRS = 6_000_000
VISITS = 300_000_000
TERMS = 6_000_000
BANDS, ROWS, ROUNDS = 6, 3, 4
MIX = np.uint64(0x9E3779B97F4A7C15)


@dataclass(frozen=True)
class Candidates:
    """Pairs to compare, left < right, sorted, each once; how many came in which way; and what was cut."""

    left: Ints
    right: Ints
    ways: dict[str, int]
    notes: list[str]

    def __len__(self) -> int:
        return len(self.left)


def block(fields: list[Field], border: int, seed: int = 1, threads: int = 1) -> tuple[Candidates, Weighted | None]:
    """Return the candidate pairs, and the weighted terms of records where the tables are small enough for them.

    `border` is the number of the second table's first record, 0 for one table.
    """
    codes = all_codes(fields)
    values = joined([hashed(one.folded, True) for one in fields])
    records = len(codes)
    sizes = np.append(np.diff(values.offsets), 0)
    whole = int(sizes[codes].sum())
    kinds: dict[str, Ints] = {}
    notes: list[str] = []
    rows: Weighted | None = None
    if whole <= TERMS:
        rows = weighted(of_records(codes, values))
        kinds["all text"] = _keys(*_nearest(rows, records, border), records)
        kinds["identical fields"] = _identical(fields, border, notes)
    else:
        banded, twice = _banded(codes, values, border, seed)
        kinds["bands of all text"] = np.sort(np.concatenate([twice, _equal_in(fields, banded, records, 1)]))
        kinds["identical fields"] = _equal_in(fields, _identical(fields, border, notes), records, 2)
        notes.append(f"{whole:,} terms: records are not ranked by all their text but put in bands of MinHash")
    merged = sorted_unique(np.concatenate(list(kinds.values())))
    ways = {way: len(keys) for way, keys in kinds.items()}
    return Candidates(merged // records, merged % records, ways, notes), rows


def sorted_unique(keys: Ints) -> Ints:
    """Return the different keys in order."""
    keys = np.sort(keys)
    return keys[np.append(True, keys[1:] != keys[:-1])] if len(keys) else keys


def _keys(left: Ints, right: Ints, records: int) -> Ints:
    return sorted_unique(np.minimum(left, right) * records + np.maximum(left, right))


def _nearest(rows: Weighted, records: int, border: int) -> tuple[Ints, Ints]:
    cap = max(NEAREST, min(MOST, PAIRS // max(1, records)))
    sides = [(0, records, 0, records)] if not border else [(0, border, border, records), (border, records, 0, border)]
    found = []
    for start, stop, first, last in sides:
        span = slice(rows.offsets[first], rows.offsets[last])
        order = np.argsort(rows.terms[span], kind="stable")
        starts = np.searchsorted(rows.terms[span][order], np.arange(rows.size + 1)).astype(np.int64)
        owners = np.repeat(np.arange(last - first), np.diff(rows.offsets[first : last + 1]))[order]
        found.append(
            kernels.nearest(
                np.arange(start, stop),
                rows.offsets,
                rows.terms,
                rows.weights,
                starts,
                owners,
                rows.weights[span][order],
                last - first,
                first,
                NEAREST,
                cap,
                ENOUGH,
                max(3_000, VISITS // records),
            )
        )
    return np.concatenate([left for left, _ in found]), np.concatenate([right for _, right in found])


def _paired(keys: Hashes, border: int, records: int) -> tuple[Ints, int]:
    """Return the pairs of records with equal keys (0 is none), and how many records stand in blocks too large."""
    rows = np.flatnonzero(keys)
    order = rows[np.argsort(keys[rows], kind="stable")]
    ordered = keys[order]
    none = np.zeros(0, np.int64)
    count, crowded = kernels.block_pairs(order, ordered, border, LIMIT, none, none, False)
    left, right = np.empty(count, np.int64), np.empty(count, np.int64)
    kernels.block_pairs(order, ordered, border, LIMIT, left, right, True)
    return left * records + right, crowded


def _banded(codes: Ints, values: Hashed, border: int, seed: int) -> tuple[Ints, Ints]:
    """Return the pairs that meet in one band, and those that meet in several."""
    found = []
    for turn in range(ROUNDS):
        salt = np.uint64((seed * ROUNDS + turn + 1) * 0x9E3779B97F4A7C15 % 2**64)
        keys = kernels.band_keys(codes, values.offsets, values.terms, BANDS, ROWS, salt)
        found += [_paired(np.ascontiguousarray(keys[:, band]), border, len(codes))[0] for band in range(BANDS)]
    keys = np.sort(np.concatenate(found))
    again = np.append(False, keys[1:] == keys[:-1]) if len(keys) else np.zeros(0, bool)
    twice = sorted_unique(keys[again])
    once = ~again & ~np.append(again[1:], False) if len(keys) else again
    return keys[once], twice


def _identical(fields: list[Field], border: int, notes: list[str]) -> Ints:
    records = len(fields[0].codes)
    found, crowded = [], []
    for field in fields:
        pairs, many = _paired((field.codes + 1).astype(np.uint64), border, records)
        found.append(pairs)
        if many:
            crowded.append(field)
            notes.append(
                f"{field.name}: {many:,} records in blocks of more than {LIMIT}; sorted with another field too"
            )
    for one, other in combinations(fields, 2):
        if one in crowded and other in crowded:
            both = (one.codes >= 0) & (other.codes >= 0)
            key = one.codes.astype(np.uint64) * MIX + other.codes.astype(np.uint64) + np.uint64(1)
            found.append(_paired(np.where(both, key, np.uint64(0)), border, records)[0])
    return sorted_unique(np.concatenate(found))


def _equal_in(fields: list[Field], keys: Ints, records: int, least: int) -> Ints:
    """Return the pairs with so many identical fields or more, if there are three fields."""
    if len(fields) < 3:
        return keys
    left, right = keys // records, keys % records
    equal = np.zeros(len(keys), np.int8)
    for field in fields:
        codes = field.codes[left]
        equal += (codes >= 0) & (codes == field.codes[right])
    return keys[equal >= least]


def completeness(candidates: Candidates, truth: Ints, records: int) -> float:
    """Return the part of the true pairs (two columns, left < right) that are candidates."""
    if not len(truth):
        return 1.0
    keys = candidates.left * records + candidates.right
    return float(np.isin(truth[:, 0] * records + truth[:, 1], keys).mean())
