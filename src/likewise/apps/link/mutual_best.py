"""How many records of two tables have a match, estimated without labels from whose best partner is mutual.

A record's best partner is mutual if the record is its best partner, too. Matches are mutual nearly always. The best
partner of a record that has no match is mutual by chance, about every second time, more often if it is very similar;
and never if it has a match of its own. How often by chance is counted inside each table, where (but for duplicates)
nobody has a match: a table is split at random into two parts, of sizes in the ratio of the two tables, and the parts
are compared as the tables are. The rates depend on ranks alone, so that tables that write things differently, and
whose records are more alike among themselves, do no harm.

If e records of the smaller table have no match, of which the strongest x · e have the rate r(x) of partners that are
not mutual, then e · ∫ r of them are not mutual, and the number of records without a match among the k strongest follows
from the number of partners that are not mutual among them.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace

import numpy as np
from numpy.typing import NDArray

from likewise.apps.link.agreement import ALL_TEXT
from likewise.apps.link.best_partners import strengths
from likewise.apps.link.blocking import block
from likewise.apps.link.evidence import PLACES
from likewise.apps.link.fields import Field, Floats
from likewise.apps.link.model import rising, shift_to
from likewise.apps.link.records import RecordTable
from likewise.apps.link.terms import WeightedTerms, all_codes, joined, of_records, weighted
from likewise.base.arrays import Ints
from likewise.kernels import linking

PARTS = 10
"""Ranges of rank in which partners by chance are counted."""

SPLITS = 4
"""Random splits of each table: more make the rates smoother."""

FEW = 20
"""Best partners that the rates of a table need."""

TIE = 1e-6
"""Scores are raised by a random amount below this: of equal scores, one is the best."""

TURNS, STABLE = 50, 1e-4
"""Rounds of the estimation at most, and the change of the fraction at which it ends."""

TYPICAL = np.array([0.17, 0.24, 0.35, 0.45, 0.54, 0.62, 0.70, 0.77, 0.84, 0.94])
"""Rates of partners that are not mutual, strongest first, where a table is too small to count them."""

ERROR = 0.02
"""Standard deviation of the stated F1 from the true one beside chance, over the collections of benchmarks/link.py."""

WIDTH = 1.645
"""Standard deviations to either side of the F1: nine of ten are within."""

Flags = NDArray[np.bool_]


@dataclass(frozen=True)
class MutualBest:
    """The best pair of each record of one side, strongest first, and whether it is the best of its partner, too."""

    pairs: Ints
    mutual: Flags

    @classmethod
    def of(cls, side: Ints, other: Ints, scores: Floats, records: int) -> MutualBest:
        """Return the best pairs of the records of `side`; a pair is strong by its score and by its lead.

        >>> found = MutualBest.of(np.array([0, 0, 1]), np.array([2, 3, 2]), np.array([5.0, 1.0, 4.0]), 4)
        >>> found.pairs.tolist(), found.mutual.tolist()  # the best of 1 is 2, whose best is 0
        ([0, 2], [True, False])
        """
        if not len(side):
            return cls(np.zeros(0, np.int64), np.zeros(0, bool))
        scores = scores + TIE * np.random.default_rng(len(side)).random(len(side))
        best, second = linking.two_best(side, scores, records)
        partner, _ = linking.two_best(other, scores, records)
        pairs = best[best >= 0]
        next_best = np.maximum(second[side[pairs]], float(scores.min()))
        strength = 2 * scores[pairs] - next_best
        pairs = pairs[np.argsort(-strength, kind="stable")]
        return cls(pairs, scores[pairs] >= scores[partner[other[pairs]]])


@dataclass(frozen=True)
class ChancePartners:
    """Pairs inside the tables, and random splits of each table; pairs between the parts are as those of two tables."""

    left: Ints
    right: Ints
    border: int
    records: int
    seed: int = 1

    @property
    def count(self) -> int:
        """The number of records that have a neighbour."""
        return len(np.unique(np.concatenate([self.left, self.right])))

    def rates(self, scores: Floats) -> Floats:
        """Return the fraction of best partners that are not mutual by chance, in ranges of rank, strongest first."""
        smaller = min(self.border, self.records - self.border) / self.records
        missed, count = np.zeros(PARTS), np.zeros(PARTS)
        for turn in range(SPLITS):
            part = np.random.default_rng([self.seed, turn]).random(self.records) < smaller
            across = np.flatnonzero(part[self.left] != part[self.right])
            left, right = self.left[across], self.right[across]
            side, other = np.where(part[left], left, right), np.where(part[left], right, left)
            best = MutualBest.of(side, other, scores[across], self.records)
            rank = np.arange(len(best.pairs)) * PARTS // max(1, len(best.pairs))
            missed += np.bincount(rank, ~best.mutual, PARTS)
            count += np.bincount(rank, minlength=PARTS)
        return TYPICAL if count.sum() < SPLITS * FEW else rising(missed / np.maximum(1, count), np.ones(PARTS))

    def strengths(self, score: Callable[[Ints, Ints, Ints], Floats]) -> Floats | None:
        """Return how strong best partners are by chance: some of the larger table, as many as the smaller has, in it.

        score: of pairs, given their places, their record that is one of the some, and the other. None if they are FEW.
        """
        sizes = self.border, self.records - self.border
        larger = np.flatnonzero((self.left < self.border) == (sizes[0] > sizes[1]))
        found = []
        for turn in range(SPLITS):
            some = np.random.default_rng([self.seed, turn]).random(self.records) < min(sizes) / max(sizes)
            one, other = (larger[some[side[larger]]] for side in (self.left, self.right))
            side, partner = np.append(self.left[one], self.right[other]), np.append(self.right[one], self.left[other])
            if len(side):
                strength, best = strengths(side, score(np.append(one, other), side, partner), self.records)
                found.append(strength[best])
        return np.concatenate(found) if sum(map(len, found)) >= SPLITS * FEW else None


@dataclass(frozen=True)
class ExpectedMatches:
    """How many records have a match, how many best partners are not mutual, and the rate of those without a match.

    `count` is the number of records from which the rate is estimated.
    """

    matches: float
    apart: int
    rate: float
    count: int

    @property
    def deviation(self) -> float:
        """The standard deviation of the number of matches by chance."""
        rate = max(self.rate, 1e-3)
        share = rate * (1 - rate)
        return float(
            np.sqrt(self.apart * (1 - rate) / rate**2 + (self.apart / rate**2) ** 2 * share / max(1, self.count))
        )

    def f1_range(self, expected: float) -> list[float]:
        """Return the lowest and the highest F1 in nine of ten cases, given the expected one."""
        part = self.deviation / max(1.0, self.matches)
        reach = WIDTH * float(np.hypot(part / 2, ERROR))
        return [round(max(0.0, expected - reach), 4), round(min(1.0, expected + reach), 4)]

    def error(self, moved: int) -> float:
        """Return the standard deviation by chance of a difference between two such estimates of the same tables.

        `moved` is the number of records whose best partner is mutual in one and not in the other.
        """
        rate = max(self.rate, 1e-3)
        of_rate = rate * (1 - rate) / max(1, self.count)
        return float(np.sqrt(moved / rate**2 + 2 * (self.apart / rate**2) ** 2 * of_rate))


def expected_matches(mutual: Sequence[bool] | Flags, rates: Floats, others: int, count: int = 1) -> ExpectedMatches:
    """Return how many records have a match, given whether their best partners are mutual, strongest first.

    rates: of partners that are not mutual by chance. others: the number of records on the other side. count: the number
    of records from which the rates were counted.

    >>> half = [True] * 50 + [True, False] * 10 + [False] * 30
    >>> round(expected_matches(half, np.linspace(0, 1, 10), 100).matches)
    54
    """
    flags = np.asarray(mutual, bool)
    total, ranks = len(flags), np.arange(1, len(flags) + 1)
    if not total:
        return ExpectedMatches(0.0, 0, 1.0, count)
    apart = np.cumsum(~flags).astype(np.float64)
    grid = np.linspace(0, 1, PARTS + 1)
    found, missed = total / 2, rates
    for _ in range(TURNS):
        free = 1 - min(1.0, found / max(1, others))
        missed = 1 - (1 - rates) * free
        unmatched = min(total, apart[-1] / max(missed.mean(), 1e-9))
        whole = np.append(0.0, np.cumsum(missed)) / PARTS
        among = unmatched * np.interp(apart / max(unmatched, 1.0), whole, grid)
        now = float(np.maximum(ranks - np.minimum(among, ranks), 0.0).max())
        moved, found = abs(now - found) / total, (found + now) / 2
        if moved < STABLE:
            break
    return ExpectedMatches(found, int(apart[-1]), float(missed.mean()), count)


SAMPLE = 4_000
"""Records of each table whose neighbours are searched, among themselves: enough for rates that err by a percent."""


def neighbours(records: RecordTable, seed: int, threads: int, most: int = SAMPLE) -> ChancePartners:
    """Return pairs of neighbours inside each table, of at most so many of its records, found as candidates are."""
    lefts, rights = [], []
    for start, stop in ((0, records.border), (records.border, records.count)):
        rows = _some(start, stop, seed, most)
        inside = []
        for one in records.fields:
            codes = one.codes[rows]
            counts = np.bincount(codes[codes >= 0], minlength=len(one.texts)).astype(np.int64)
            inside.append(replace(one, codes=codes, counts=counts))
        pairs, _ = block(inside, 0, seed, threads)
        lefts.append(rows[pairs.left])
        rights.append(rows[pairs.right])
    return ChancePartners(np.concatenate(lefts), np.concatenate(rights), records.border, records.count, seed)


def _some(start: int, stop: int, seed: int, most: int) -> Ints:
    if stop - start <= most:
        return np.arange(start, stop)
    return np.sort(np.random.default_rng(seed).choice(stop - start, most, replace=False)) + start


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
    whole, part = linking.shared_parts(rows.offsets, rows.terms, rows.weights, asked, other)
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


WEIGHTS = (10.0, 20.0, 40.0)
"""Log-odds of identical texts over texts that share nothing, from a few levels of a model to more than all of them."""

SURE = 1.0
"""A text is emphasised if the matches gained are more than this many standard deviations of chance."""

FEW_CHANGED = 10
"""Best partners taken to change, at least: a gain of a few is no proof, if nothing else changes."""


@dataclass(frozen=True)
class Emphasis:
    """A text that says more than the model makes of it: its likeness is added to the scores, less a constant.

    The model has one weight for each level of similarity, learned from all fields together, and a long noisy text may
    drown what a title says. Which text to emphasise (a field, or all text), and how much, is decided without labels: a
    change is taken if it finds more matches, by the best partners, than the partners that change would by chance.
    """

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


def emphasised(partners: Partners, scores: Floats, inside: Floats) -> tuple[Emphasis | None, ExpectedMatches]:
    """Return the text to emphasise, None if none helps, and the matches that can be expected then."""
    records, left, right = partners.records, partners.left, partners.right
    before, flags = partners.matches(scores, inside)
    chosen, best = None, before
    for name, fields in _texts(records):
        rows = weighted(of_records(all_codes(fields), joined([one.grams for one in fields])))
        here = likeness(records, fields, rows, left, right)
        there = likeness(records, fields, rows, partners.inside.left, partners.inside.right)
        for weight in WEIGHTS:
            found, changed = partners.matches(scores + weight * here, inside + weight * there)
            moved = int(np.count_nonzero(flags != changed))
            if found.matches > max(best.matches, before.matches + SURE * before.error(max(moved, FEW_CHANGED))):
                less = -shift_to(_best(scores + weight * here, left, right, records), found.matches)
                chosen, best = Emphasis(name, fields, rows, weight, less), found
    return chosen, best


def _texts(records: RecordTable) -> list[tuple[str, list[Field]]]:
    """Return the texts that can be emphasised: fields of several words but places and categories, and all text."""
    texts = [(one.name, [one]) for one in records.fields if one.long and one.kind not in PLACES and not one.category]
    return [*texts, (ALL_TEXT, records.fields)] if len(records.fields) > 1 else texts


def _best(scores: Floats, left: Ints, right: Ints, records: RecordTable) -> Floats:
    """Return the best score of each record of the smaller table that has candidates."""
    best = np.full(records.count, -np.inf)
    np.maximum.at(best, left if first_smaller(records) else right, scores)
    found: Floats = best[np.isfinite(best)]
    return found
