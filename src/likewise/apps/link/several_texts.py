"""Scores of records with one telling text and other fields that tell little: the likeness of each field, combined.

Titles of products or films find most matches, while descriptions, prices and casts differ between the tables even for
the same item. A model of several fields learns little from such fields and loses what the title says; the title alone
loses records without one. Here the likeness of the title counts in full and that of any other field as far as it agrees
with the title where both are known (noisy or).
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from likewise.apps.link.blocking import is_rich
from likewise.apps.link.fields import Field, Floats
from likewise.apps.link.likeness import UNIT, LikenessScorer
from likewise.apps.link.records import RecordTable
from likewise.apps.link.scoring import ScoredRecords
from likewise.apps.link.terms import WeightedTerms, all_codes, of_records, weighted
from likewise.apps.link.text_likeness import number_conflicts, shared_terms
from likewise.base.arrays import Ints
from likewise.kernels import linking

CORROBORATED = 0.8
"""Other fields that agree, summed over fields, in pairs that are best partners by the telling text: with fewer, pairs
are scored by likeness, with more, a model is learned. Products and films have 0.2 to 0.5, papers 1.6: chosen by looking
at these four sets."""

PRESENT = 0.5
"""Part of the records of each table, at least, that have a telling text."""

SEED = 0.5
"""Least likeness of two values by which they are taken to be the same."""

SURE = 0.8
"""The same for a field whose agreement is checked by another."""

TELLING = "{} finds partners, and the other fields hardly agree in these, so there is nothing to learn from"

FEW = 20
"""Pairs from which the weight of a field is estimated, at least; with fewer, it has none."""


@dataclass(frozen=True)
class _Likeness:
    """One field of the candidates: how alike the values are (0: missing), and in which pairs both are known."""

    field: Field
    rows: WeightedTerms
    value: Floats
    known: NDArray[np.bool_]


class TextsScorer(LikenessScorer):
    """Scores by the likeness of a telling text and, with less weight, of other fields: 0 to 100 points."""

    def __init__(self, records: RecordTable, rows: list[WeightedTerms], weights: list[float], main: int) -> None:
        super().__init__(records, rows[main])
        self._each, self._weights, self._main = rows, weights, main

    @property
    def main(self) -> str:
        """The name of the telling text."""
        return self._records.fields[self._main].name

    @classmethod
    def of(cls, records: RecordTable, left: Ints, right: Ints, seed: int = 1) -> TextsScorer | None:
        """Return the scorer for the candidates of two tables, or None if a model can be learned from them."""
        border, fields = records.border, records.fields
        if not border or len(fields) < 2 or not any(_telling(field, border) for field in fields):
            return None
        each = []
        for field in fields:
            rows = weighted(of_records(all_codes([field]), field.grams))
            known = (field.codes[left] >= 0) & (field.codes[right] >= 0)
            each.append(_Likeness(field, rows, np.where(known, shared_terms(records, rows, left, right), 0.0), known))
        leads = [_lead(one.value, left, records.count) if _telling(one.field, border) else -1.0 for one in each]
        main = int(np.argmax(leads))
        told = each[main]
        best = _mutual(told.value, left, right, records.count, SEED)
        again = np.random.default_rng(seed).permutation(best)
        if not len(best):
            return None
        others = [one for place, one in enumerate(each) if place != main]
        if sum(_agreement(records, one, left[best], right[best], right[again]) for one in others) >= CORROBORATED:
            return None
        weights = [1.0 if one is told else _weight(one, told, left, right, records.count) for one in each]
        return cls(records, [one.rows for one in each], weights, main)

    def _parts(self, left: Ints, right: Ints) -> list[Floats]:
        """Return the likeness of each field times its weight."""
        parts = []
        for field, rows, weight in zip(self._records.fields, self._each, self._weights, strict=True):
            known = (field.codes[left] >= 0) & (field.codes[right] >= 0)
            alike = shared_terms(self._records, rows, left, right) if weight else np.zeros(len(left))
            parts.append(weight * np.where(known, alike, 0.0))
        return parts

    def alike(self, left: Ints, right: Ints) -> Floats:
        """Return how alike pairs are, whatever other partners they have."""
        return self._alike(left, right)

    def _alike(self, left: Ints, right: Ints) -> Floats:
        found: Floats = 1 - np.prod([1 - part for part in self._parts(left, right)], axis=0)
        return found - number_conflicts(self._records.fields[self._main], left, right)

    def _scored(self, alike: Floats) -> ScoredRecords:
        value = np.maximum(alike, 0.0) * UNIT
        return ScoredRecords(value, np.ones(len(value), bool), UNIT, kept={self.main: value * UNIT})


def _telling(field: Field, border: int) -> bool:
    """Return whether a field is a text of many different values that most records of each table have."""
    there = field.codes >= 0
    return is_rich(field) and min(float(there[:border].mean()), float(there[border:].mean())) >= PRESENT


def _first_two(value: Floats, side: Ints, records: int) -> tuple[Floats, Floats]:
    """Return the best and the second best value of each record."""
    place, second = linking.two_best(side, value, records)
    best = np.where(place >= 0, np.append(value, 0.0)[place], 0.0)
    next_best = np.where(np.isfinite(second), second, 0.0)
    return best, next_best


def _lead(value: Floats, side: Ints, records: int) -> float:
    """Return how far the best partners of records are ahead of the second best, summed over records."""
    best, second = _first_two(value, side, records)
    return float((best - second).sum())


def _mutual(value: Floats, left: Ints, right: Ints, records: int, least: float, ahead: bool = False) -> Ints:
    """Return the pairs that are best partners of each other, with at least this value; `ahead`: of all others."""
    chosen = value >= least
    for side in (left, right):
        best, second = _first_two(value, side, records)
        chosen &= value >= best[side]
        if ahead:
            chosen &= value > second[side]
    return np.flatnonzero(chosen)


def _agreement(records: RecordTable, one: _Likeness, left: Ints, right: Ints, others: Ints) -> float:
    """Return how much more alike pairs are in a field than the same records paired at random; missing ones are not."""
    means = []
    for side in (right, others):
        known = (one.field.codes[left] >= 0) & (one.field.codes[side] >= 0)
        means.append(float(np.where(known, shared_terms(records, one.rows, left, side), 0.0).mean()))
    return means[0] - means[1]


def _weight(one: _Likeness, told: _Likeness, left: Ints, right: Ints, records: int) -> float:
    """Return the part of the pairs that a field alone would take for matches in which the telling text agrees, too."""
    best = _mutual(one.value, left, right, records, SURE, ahead=True)
    best = best[told.known[best]]
    return float((told.value[best] >= SEED).mean()) if len(best) >= FEW else 0.0
