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

from collections.abc import Sequence
from dataclasses import dataclass, replace

import numpy as np
from numpy.typing import NDArray

from likewise.apps.link.fields import Floats
from likewise.apps.link.model import rising
from likewise.base.arrays import Ints
from likewise.kernels import linking

PARTS = 10
"""Ranges of rank in which partners by chance are counted."""

SPLITS = 4
"""Random splits of each table: more make the rates smoother."""

FEW = 20
"""Best partners that the rates of a table need."""

ALIKE = 0.1
"""Rates of two tables that differ by no more are taken together."""

TIE = 1e-6
"""Scores are raised by a random amount below this: of equal scores, one is the best."""

TURNS, STABLE = 50, 1e-4
"""Rounds of the estimation at most, and the change of the fraction at which it ends."""

TYPICAL = np.array([0.17, 0.24, 0.35, 0.45, 0.54, 0.62, 0.70, 0.77, 0.84, 0.94])
"""Rates of partners that are not mutual, strongest first, where a table is too small to count them."""

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

    def rates(self, scores: Floats) -> Floats:
        """Return the fraction of best partners that are not mutual by chance, in ranges of rank, strongest first."""
        found = self._rates(scores, np.ones(len(self.left), bool))
        return TYPICAL if found is None else found

    def clean(self, scores: Floats) -> Flags:
        """Return which pairs are of tables without duplicates: in a table that has them, partners are mutual oftener.

        It is one of the tables, if either is, as nothing tells then whether both have duplicates.
        """
        sides = [self.left < self.border, self.left >= self.border]
        rates = [self._rates(scores, inside) for inside in sides]
        means = [-1.0 if found is None else float(found.mean()) for found in rates]
        if abs(means[0] - means[1]) <= ALIKE:
            return np.ones(len(self.left), bool)
        return sides[int(np.argmax(means))]

    def part(self, chosen: Flags) -> ChancePartners:
        """Return some of the pairs."""
        return replace(self, left=self.left[chosen], right=self.right[chosen])

    @property
    def count(self) -> int:
        """The number of records that have a neighbour."""
        return len(np.unique(np.concatenate([self.left, self.right])))

    def _rates(self, scores: Floats, inside: Flags) -> Floats | None:
        places = np.flatnonzero(inside)
        smaller = min(self.border, self.records - self.border) / self.records
        missed, count = np.zeros(PARTS), np.zeros(PARTS)
        for turn in range(SPLITS):
            part = np.random.default_rng([self.seed, turn]).random(self.records) < smaller
            left, right = self.left[places], self.right[places]
            across = np.flatnonzero(part[left] != part[right])
            left, right = left[across], right[across]
            side, other = np.where(part[left], left, right), np.where(part[left], right, left)
            found = MutualBest.of(side, other, scores[places][across], self.records)
            rank = np.arange(len(found.pairs)) * PARTS // max(1, len(found.pairs))
            missed += np.bincount(rank, ~found.mutual, PARTS)
            count += np.bincount(rank, minlength=PARTS)
        if count.sum() < SPLITS * FEW:
            return None
        return rising(missed / np.maximum(1, count), np.ones(PARTS))


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
