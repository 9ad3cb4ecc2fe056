"""Comparing: how alike the fields of candidate pairs are, as levels that can be counted (§3.8.2)."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from likewise.apps.entities.fields import Field, Floats, Ints, as_numbers, rarity
from likewise.apps.entities.names import table_for
from likewise.apps.entities.points import Tables, pair_points, penalised
from likewise.apps.entities.terms import Hashed, Weighted, hashed, tokens, weighted
from likewise.kernels import linking as kernels
from likewise.parallel import in_order

HELPED = 50_000
"""So many pairs of values at most are looked up in tables of nicknames and abbreviations."""

MANY = 300_000
"""Of more pairs than these, only those with two identical fields are searched for values in the wrong field."""

SWAPPED = 0.95
"""How alike dates are whose day and month are swapped."""

STEPS = 20
EQUAL = STEPS
PARTS = 5
LEVELS = STEPS + 1 + PARTS
"""Levels 0 to 19 are similarities, 20 identical values, 21 to 25 how much is found elsewhere in the other record."""

ALL_TEXT = "all text"
WORDS_TOGETHER = 3
"""The words of one value come together: they count as if every third were by itself."""

Levels = NDArray[np.int8]


@dataclass(frozen=True)
class Compared:
    """One field of all candidate pairs: similarity (NaN: missing), level (-1: missing), rarity of equal values."""

    name: str
    similarity: Floats
    level: Levels
    rarity: Floats


def compare_field(field: Field, left: Ints, right: Ints, tables: Tables = None) -> Floats:
    """Return the similarities of a field, 1 for identical values, NaN where one of the two is missing.

    Repeated pairs of values are compared once. Texts of several words by the terms they share; numbers by their
    difference in terms of the spread of all; everything else by the points of the chapter.
    """
    a, b = field.codes[left], field.codes[right]
    similarity = np.full(len(left), np.nan)
    both = (a >= 0) & (b >= 0)
    similarity[both] = 1.0
    differ = np.flatnonzero(both & (a != b))
    if len(differ):
        low, high = np.minimum(a[differ], b[differ]), np.maximum(a[differ], b[differ])
        keys, inverse = np.unique(low * len(field.values) + high, return_inverse=True)
        similarity[differ] = _of_values(field, keys // len(field.values), keys % len(field.values), tables)[inverse]
    return similarity


def _of_values(field: Field, low: Ints, high: Ints, tables: Tables) -> Floats:
    if field.long:
        rows = weighted(hashed(field.folded, True), field.counts)
        found: Floats = kernels.cosines(rows.offsets, rows.terms, rows.weights, low, high)
        return np.minimum(found, 1.0)
    if field.kind == "number":
        numbers = as_numbers(field)
        spread = np.subtract(*np.quantile(np.repeat(numbers, np.minimum(field.counts, 100)), [0.75, 0.25])) or 1.0
        near: Floats = 1 / (1 + 4 * np.abs(numbers[low] - numbers[high]) / abs(float(spread)))
        return near
    if field.kind == "exact":
        return np.zeros(len(low))
    return _by_edits(field, low, high, tables)


def _by_edits(field: Field, low: Ints, high: Ints, tables: Tables) -> Floats:
    """Return the points of the chapter, as parts of 100; the tables are asked only where both values are in them."""
    from rapidfuzz.distance import Indel
    from rapidfuzz.process import cpdist

    values = np.array(field.values, object)
    alike = cpdist(values[low], values[high], scorer=Indel.normalized_similarity, dtype=np.float64)
    points: Floats = penalised(1 - alike, 1.0) / 100
    if field.kind == "date":
        places = {value: place for place, value in enumerate(field.values)}
        swapped = np.array([places.get(value[:4] + value[6:] + value[4:6], -1) for value in field.values], np.int64)
        points[swapped[low] == high] = SWAPPED
    elif field.kind in ("name", "address"):
        table = table_for(field.kind, tables)
        known = {word: bool(table.partners(word)) for word in {w for value in field.values for w in value.split()}}
        helped = np.array([any(known[word] for word in value.split()) for value in field.values], bool)
        asked = np.flatnonzero(helped[low] & helped[high] & (points < 0.9))[:HELPED]
        points[asked] = (
            np.nan_to_num(pair_points(values[low[asked]].tolist(), values[high[asked]].tolist(), field.kind, tables))
            / 100
        )
    return points


def compare(
    fields: list[Field],
    codes: Ints,
    words: Hashed,
    rows: Weighted | None,
    left: Ints,
    right: Ints,
    threads: int = 1,
    tables: Tables = None,
) -> tuple[list[Compared], Floats]:
    """Return the comparison of every field, that of all text, and how much evidence the fields could give at most.

    A value that is missing on one side, or unlike, may stand in another field of the other record: in citations a year
    in the address, in people first and last name swapped. How much of it is found there has levels of its own.
    """
    found: list[Compared] = []
    counts = np.concatenate([field.counts for field in fields])
    numbers, rare = tokens(words, counts, len(codes))
    information = np.bincount(np.repeat(np.arange(len(counts)), np.diff(words.offsets)), rare[numbers], len(counts))
    evidence = np.zeros(len(left))
    likely = np.ones(len(left), bool)
    if len(left) > MANY:
        likely = np.sum([(f.codes[left] >= 0) & (f.codes[left] == f.codes[right]) for f in fields], axis=0) >= 2
    start = 0
    similarities = in_order(lambda field: compare_field(field, left, right, tables), fields, threads)
    for place, (field, similarity) in enumerate(zip(fields, similarities, strict=True)):
        a, b = field.codes[left], field.codes[right]
        level = np.minimum(np.nan_to_num(similarity) * STEPS, STEPS - 1).astype(np.int8)
        missing = np.isnan(similarity)
        equal = ~missing & (a == b)
        level[equal] = EQUAL
        level[missing] = -1
        if len(fields) > 1:
            doubtful = np.flatnonzero(likely & (missing & ((a >= 0) | (b >= 0)) | (~missing & (similarity < 0.5))))
            part = kernels.found_elsewhere(place, codes, words.offsets, numbers, rare, left[doubtful], right[doubtful])
            known = ~np.isnan(part)
            taken = known & (missing[doubtful] | (part > np.nan_to_num(similarity[doubtful]) + 0.3))
            level[doubtful[taken]] = (STEPS + 1 + np.minimum(part[taken] * PARTS, PARTS - 1)).astype(np.int8)
        worth = rarity(field)
        found.append(Compared(field.name, similarity, level, np.where(equal, worth[a], np.nan)))
        most = np.maximum(worth, information[start : start + len(field.values)] / WORDS_TOGETHER)
        evidence += np.where(missing, 0.0, np.minimum(most[a], most[b]))
        start += len(field.values)
    if rows is not None:
        similarity = np.minimum(kernels.cosines(rows.offsets, rows.terms, rows.weights, left, right), 1.0)
        level = np.minimum(similarity * STEPS, STEPS - 1).astype(np.int8)
        found.append(Compared(ALL_TEXT, similarity, level, np.full(len(left), np.nan)))
    return found, evidence
