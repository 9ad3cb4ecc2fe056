"""How alike two texts are: the terms they share, weighted by rarity (TF-IDF), and the numbers in which they differ."""

from __future__ import annotations

import re

import numpy as np
from numpy.typing import NDArray

from likewise.apps.link.fields import Field, Floats
from likewise.apps.link.records import RecordTable
from likewise.apps.link.terms import WeightedTerms
from likewise.base.arrays import Ints
from likewise.kernels import linking as kernels

CONTAINED = 0.25
"""Weight of the part of the record of the smaller table that the other contains, beside the cosine: names get longer by
additions that the other table does not have."""

NUMBERS = 0.3
"""Deducted if each value has a number that the other lacks: seasons, editions and models differ in little else."""

DIGITS = re.compile(r"\d+")


def likeness(records: RecordTable, fields: list[Field], rows: WeightedTerms, left: Ints, right: Ints) -> Floats:
    """Return how alike the texts of pairs are, at most 1: the terms of `fields`, which are `rows`.

    The cosine counts, the part of the record of the smaller table that the other contains, and, of a single field,
    numbers that each value has and the other lacks.
    """
    found = shared_terms(records, rows, left, right)
    return found - number_conflicts(fields[0], left, right) if len(fields) == 1 else found


def shared_terms(records: RecordTable, rows: WeightedTerms, left: Ints, right: Ints) -> Floats:
    """Return the cosine of the terms of pairs, and the part of the record of the smaller table that the other has."""
    asked, other = (left, right) if first_smaller(records) else (right, left)
    whole, part = kernels.shared_parts(rows.offsets, rows.terms, rows.weights, asked, other)
    found: Floats = (np.minimum(whole, 1.0) + CONTAINED * np.minimum(part, 1.0)) / (1 + CONTAINED)
    return found


def number_conflicts(field: Field, left: Ints, right: Ints) -> Floats:
    """Return what is deducted from the likeness of pairs for numbers that each value has and the other lacks."""
    found: Floats = conflicting_numbers(field, left, right).astype(np.float64) * (NUMBERS / (1 + CONTAINED))
    return found


def first_smaller(records: RecordTable) -> bool:
    """Return whether the first table is not the larger one."""
    return records.border <= records.count - records.border


def conflicting_numbers(field: Field, left: Ints, right: Ints) -> NDArray[np.bool_]:
    """Return for which pairs of records each value has a number that the other lacks."""
    sets: dict[frozenset[str], int] = {frozenset(): 0}
    numbers = np.zeros(len(field.texts) + 1, np.int64)
    place = 0
    for batch in field.batches():
        for value in batch:
            numbers[place] = sets.setdefault(frozenset(DIGITS.findall(value)), len(sets))
            place += 1
    every = list(sets)
    pairs = numbers[field.codes[left]] * len(every) + numbers[field.codes[right]]
    kinds, places = np.unique(pairs, return_inverse=True)
    sides = ((every[pair // len(every)], every[pair % len(every)]) for pair in kinds.tolist())
    return np.array([bool(x - y) and bool(y - x) for x, y in sides], bool)[places]
