"""A text that says more than the model makes of it: its likeness is added to the scores where that finds more matches.

The model has one weight for each level of similarity, learned from all fields together, and a long noisy text may drown
what a title says. Which text to emphasise, and how much, is decided without labels: by the number of matches that are
to be expected from the best partners (`likewise.apps.link.mutual_best`). A change is taken if it finds more of them
than the partners that change would by chance.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from likewise.apps.link.agreement import ALL_TEXT
from likewise.apps.link.coincidence import PLACES
from likewise.apps.link.fields import Field, Floats
from likewise.apps.link.model import chance
from likewise.apps.link.mutual_best import ChancePartners, ExpectedMatches, MutualBest, expected_matches
from likewise.apps.link.records import RecordTable
from likewise.apps.link.terms import WeightedTerms, all_codes, joined, of_records, weighted
from likewise.apps.link.text_likeness import first_smaller, likeness
from likewise.base.arrays import Ints

WEIGHTS = (10.0, 20.0, 40.0)
"""Log-odds of identical texts over texts that share nothing, from a few levels of a model to more than all of them."""

SURE = 1.0
"""A text is emphasised if the matches gained are more than this many standard deviations of chance."""

FEW = 10
"""Best partners taken to change, at least: a gain of a few is no proof, if nothing else changes."""

HALVINGS = 40
"""Steps of the search for the prior with which the scores say how many matches there are."""


@dataclass(frozen=True)
class Emphasis:
    """A field (or all text), the terms of its values, how much its likeness counts, and what is deducted from it."""

    name: str
    fields: list[Field]
    rows: WeightedTerms
    weight: float
    less: float = 0.0

    def scores(self, records: RecordTable, left: Ints, right: Ints) -> Floats:
        """Return what is added to the log-odds of pairs."""
        return self.weight * likeness(records, self.fields, self.rows, left, right) - self.less


@dataclass(frozen=True)
class Partners:
    """The usable candidates and the pairs inside tables from which the number of matches is estimated."""

    records: RecordTable
    left: Ints
    right: Ints
    inside: ChancePartners

    def matches(self, scores: Floats, inside: Floats) -> tuple[ExpectedMatches, Ints]:
        """Return the number of matches expected, and for each record 1 if its best partner is mutual, 0 if not."""
        records = self.records
        side, other = (self.left, self.right) if first_smaller(records) else (self.right, self.left)
        found = MutualBest.of(side, other, scores, records.count)
        flags = np.full(records.count, -1)
        flags[side[found.pairs]] = found.mutual
        others = int(np.count_nonzero(np.bincount(other, minlength=records.count)))
        return expected_matches(found.mutual, self.inside.rates(inside), others, self.inside.count), flags


def emphasised(partners: Partners, scores: Floats, inside: Floats) -> tuple[Emphasis | None, ExpectedMatches, Ints]:
    """Return the text to emphasise, None if none helps, the matches that can be expected then, and who is mutual."""
    records, left, right = partners.records, partners.left, partners.right
    before, flags = partners.matches(scores, inside)
    chosen, best, mutual = None, before, flags
    for name, fields in _texts(records):
        rows = weighted(of_records(all_codes(fields), joined([one.grams for one in fields])))
        here = likeness(records, fields, rows, left, right)
        there = likeness(records, fields, rows, partners.inside.left, partners.inside.right)
        for weight in WEIGHTS:
            found, changed = partners.matches(scores + weight * here, inside + weight * there)
            moved = int(np.count_nonzero(flags != changed))
            if found.matches > max(best.matches, before.matches + SURE * before.error(max(moved, FEW))):
                less = _prior(_best(scores + weight * here, left, right, records), found.matches)
                chosen, best, mutual = Emphasis(name, fields, rows, weight, less), found, changed
    return chosen, best, mutual


def _texts(records: RecordTable) -> list[tuple[str, list[Field]]]:
    """Return the texts that can be emphasised: fields of several words but those of places, and all text."""
    texts = [(one.name, [one]) for one in records.fields if one.long and one.kind not in PLACES]
    return [*texts, (ALL_TEXT, records.fields)] if len(records.fields) > 1 else texts


def _best(scores: Floats, left: Ints, right: Ints, records: RecordTable) -> Floats:
    """Return the best score of each record of the smaller table that has candidates."""
    best = np.full(records.count, -np.inf)
    np.maximum.at(best, left if first_smaller(records) else right, scores)
    found: Floats = best[np.isfinite(best)]
    return found


def _prior(scores: Floats, matches: float) -> float:
    """Return what to deduct from the scores so that their probabilities add up to the number of matches."""
    low, high = float(scores.min()) - 50, float(scores.max()) + 50
    for _ in range(HALVINGS):
        middle = (low + high) / 2
        low, high = (middle, high) if float(chance(scores - middle).sum()) > matches else (low, middle)
    return (low + high) / 2
