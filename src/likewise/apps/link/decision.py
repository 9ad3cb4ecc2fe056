"""The decision which pairs are matches: one-to-one assignment and a threshold between two tables, clusters within one.

MMDS §3.8.3.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from likewise.apps.link.blocking import RecordPairs
from likewise.apps.link.entities import CLIP, cluster
from likewise.apps.link.fields import Floats
from likewise.apps.link.model import chance, rising, shift_to
from likewise.apps.link.records import RecordTable
from likewise.apps.link.scoring import ScoredRecords, Scorer
from likewise.base.arrays import Ints
from likewise.kernels.graph import auction
from likewise.kernels.linking import two_best

STEP = 1e-3
"""Step of the auction: the total gain of an assignment is within this much per record of the best one."""

RANGES = 40
"""Score ranges, at least, in which matches and non-matches are counted; one per 20 records, up to ten times as many."""

HIGH = 0.9
"""Records whose best score exceeds this quantile of the non-matches are taken to have a match, to begin with."""

TURNS = 300
"""Rounds of estimation at most."""

STABLE = 1e-5
"""The estimation ends when no probability changes by this much."""

CLOSE = 2.0
"""A match is close if it leads by at most this much (natural logarithm): odds of seven to one. As many matches are
taken to trail by that much, behind a rival that is not a match."""

MOSTLY = 0.5
"""If this part of the records is expected to have a match, the least log-odds of one are twice as low: scores that are
far behind are then the model's fault more probably than the pair's."""

AMBIGUOUS = 0.1
"""No F1 is stated if more than this part of the matches are close: how many are wrong, and how many are behind a rival,
is a guess then."""

FEW = 30
"""Best pairs from which on their probabilities are estimated."""

TIED = 0.1
"""Two partners of a record are equally good if their scores differ by at most this much."""

RIVALS = 0.1
"""A table has duplicates if more than this fraction of the matched records have two equally good partners in it."""

_EVERY = "every pair above the threshold"
_BOTH = "both tables have duplicates"
_DUPLICATES = "the {} table has duplicates: one partner for each of its records"


@dataclass(frozen=True)
class Decision:
    """The indices of the matches among the candidates, the threshold, the expected F1, and the rule in words.

    `single` says whether a record of the first table has at most one match, and whether one of the second has.
    """

    chosen: Ints
    threshold: float
    expected_f1: float | None
    rule: str
    single: tuple[bool, bool] = (False, False)


def assign(left: Ints, right: Ints, gain: Floats, one_left: bool = True, one_right: bool = True) -> Ints:
    """Return the indices of the pairs in the best assignment: no left or right twice, the sum of gains maximal.

    Only pairs of positive gain count. If only one side is restricted, each of its records takes its best partner.

    >>> assign(np.array([0, 0, 1]), np.array([5, 6, 5]), np.array([3.0, 2.0, 2.5])).tolist()
    [1, 2]
    """
    places = np.flatnonzero(gain > 0)
    if not one_left and not one_right:
        return places
    if not (one_left and one_right):
        side = left if one_left else right
        order = places[np.lexsort((places, -gain[places], side[places]))]
        first = np.append(True, side[order][1:] != side[order][:-1]) if len(order) else np.zeros(0, bool)
        return np.sort(order[first])
    rows, row = np.unique(left[places], return_inverse=True)
    columns, column = np.unique(right[places], return_inverse=True)
    order = np.argsort(row, kind="stable")
    starts = np.searchsorted(row[order], np.arange(len(rows) + 1)).astype(np.int64)
    won = auction(starts, column[order].astype(np.int64), gain[places][order], len(columns), STEP)
    return np.sort(places[order[won[won >= 0]]])


def second_best(
    left: Ints, right: Ints, scores: Floats, chosen: Ints, records: int, sides: tuple[bool, bool]
) -> tuple[Floats, Floats]:
    """Return for each chosen pair the two best scores of its rivals, the other pairs of its left or right record."""
    rest = np.ones(len(left), bool)
    rest[chosen] = False
    lowest = float(scores.min()) if len(scores) else 0.0
    found = np.full((len(chosen), 2), lowest)
    for side, counts in ((left, sides[0]), (right, sides[1])):
        if counts:
            order = np.lexsort((-scores[rest], side[rest]))
            owner, value = side[rest][order], scores[rest][order]
            first = np.append(True, owner[1:] != owner[:-1]) if len(owner) else np.zeros(0, bool)
            second = np.append(False, first[:-1]) & ~first if len(owner) else first
            best = np.full((records, 2), lowest)
            best[owner[first], 0] = value[first]
            best[owner[second], 1] = value[second]
            found = -np.sort(-np.concatenate([found, best[side[chosen]]], axis=1), axis=1)[:, :2]
    return found[:, 0], found[:, 1]


def with_lead(first: Floats, second: Floats) -> Floats:
    """Return scores plus their lead over the next best: large for a match, small for the best of the non-matches."""
    return 2 * first - np.minimum(first, second)


def split(
    first: Floats, second: Floats, third: Floats, seed: int = 1, most: float | None = None
) -> tuple[Floats, float]:
    """Return the probability that each record's best pair is a match, and the fraction of the records that have one.

    `first` are the best scores with their lead, `second` and `third` the next best scores. The score of a record's best
    non-match is known in either case: with a match, it is in second place; without, it leads the second by twice the
    lead of the second over the third, as the gaps between the highest of many scores shrink like 1, 1/2, 1/3, ...
    Which records have a match is estimated in turn with the score distributions of matches and non-matches, whose
    ratio increases with the score. The fraction that have one follows from the scores below the median of non-matches,
    where matches are rare, and from those above their 0.9 quantile, where non-matches are. If that is more than `most`,
    it is `most`.
    """
    second = np.minimum(first, second)
    third = np.minimum(second, third)
    mixed = np.random.default_rng(seed).permutation(len(first))
    alone = second + 2 * (2 * (second - third))[mixed]
    second = with_lead(second, third)
    ranges = int(np.clip(len(first) // 20, RANGES, 10 * RANGES))
    edges = np.unique(np.quantile(np.concatenate([first, second]), np.linspace(0, 1, ranges + 1)[1:-1]))
    size = len(edges) + 1
    one, two, none = (np.searchsorted(edges, scores) for scores in (first, second, alone))
    both = np.bincount(one, minlength=size) + np.bincount(two, minlength=size)
    matches = np.where(first > np.quantile(alone, HIGH), 0.99, 0.01)
    share, known = 0.5, False
    for _ in range(TURNS):
        true = np.bincount(one, matches, size) + 0.5 / size
        false = np.bincount(two, matches, size) + np.bincount(none, 1 - matches, size) + 0.5 / size
        ratio = rising(np.log(true / true.sum() * false.sum() / false), both + 1e-9)
        if known:
            after = chance(ratio[one] + shift_to(ratio[one], share * len(one)))
        else:
            share = _share(one, np.cumsum(false) / false.sum(), float(matches.mean()))
            after = chance(ratio[one] + np.log(share / (1 - share)))
        moved = float(np.abs(after - matches).max())
        matches = after
        if moved < STABLE:
            if known or most is None or share <= most:
                break
            share, known = float(np.clip(most, 1 / (2 * len(first)), 1)), True
            matches = np.where(first > np.quantile(first, 1 - share), 0.99, 0.01)
    return matches, share


def _share(places: Ints, below: Floats, mean: float) -> float:
    """Return the fraction of the records that have a match; `below` is the distribution function of non-matches."""
    middle, high = (int(np.searchsorted(below, part)) for part in (0.5, HIGH))
    low_half = 1 - (np.count_nonzero(places <= middle) + 0.5) / (len(places) * below[middle])
    above = (float((places > high).mean()) - (1 - below[high])) / below[high]
    return float(np.clip(max((low_half + mean) / 2, above), 1e-6, 1 - 1e-6))


def best_cut(probabilities: Floats, scores: Floats, missed: float = 0.0) -> tuple[float, float]:
    """Return the threshold that maximises the expected F1, and that F1; `missed` matches are not among the pairs."""
    order = np.lexsort((-scores, -probabilities))
    right = np.cumsum(probabilities[order])
    f1 = 2 * right / (np.arange(1, len(order) + 1) + probabilities.sum() + missed)
    last = int(np.argmax(f1))
    return float(scores[order[: last + 1]].min()), float(f1[last])


def clean_sides(
    left: Ints, right: Ints, scores: Floats, chosen: Ints, sure: NDArray[np.bool_], records: int
) -> tuple[bool, bool]:
    """Return whether each table is free of duplicates: matched records of the other have no second match in it."""
    found = []
    for sides in ((False, True), (True, False)):
        rivals, _ = second_best(left, right, scores, chosen, records, sides)
        tied = rivals[sure] >= scores[chosen][sure] - TIED
        found.append(not sure.any() or float(tied.mean()) <= RIVALS)
    return found[0], found[1]


@dataclass(frozen=True)
class _Ranked:
    """The pairs in first place, their scores with lead, and the scores in second and third place."""

    chosen: Ints
    first: Floats
    second: Floats
    third: Floats

    def matches(self, expected: float | None = None) -> Floats:
        """Return the probabilities that the pairs in first place are matches, of which at most `expected` are."""
        most = None if expected is None else expected / max(1, len(self.chosen))
        return split(self.first, self.second, self.third, most=most)[0]


def _one_to_one(left: Ints, right: Ints, scores: Floats, records: int) -> _Ranked:
    """Return the best assignment, and for each of its pairs the rival in the best assignment of all other pairs."""
    lowest = float(scores.min())
    chosen = assign(left, right, scores + 1e-9 - lowest)
    rest = np.delete(np.arange(len(left)), chosen)
    again = assign(left[rest], right[rest], scores[rest] + 1e-9 - lowest)
    rivals, _ = second_best(left, right, scores, chosen, records, (True, True))
    others, _ = second_best(left[rest], right[rest], scores[rest], again, records, (True, True))
    side = left if len(np.unique(left)) <= len(np.unique(right)) else right
    second, third = np.full(records, lowest), np.full(records, lowest)
    second[side[rest[again]]], third[side[rest[again]]] = scores[rest[again]], others
    first = with_lead(scores[chosen], rivals)
    return _Ranked(chosen, first, np.minimum(scores[chosen], second[side[chosen]]), third[side[chosen]])


def _one_each(left: Ints, right: Ints, scores: Floats, records: int, sides: tuple[bool, bool]) -> _Ranked:
    """Return the best partner of each record of one table, and the next best."""
    chosen = assign(left, right, scores + 1e-9 - float(scores.min()), *sides)
    second, third = second_best(left, right, scores, chosen, records, sides)
    return _Ranked(chosen, with_lead(scores[chosen], second), second, third)


def decide_pairs(
    left: Ints,
    right: Ints,
    scores: Floats,
    usable: NDArray[np.bool_],
    records: int,
    threshold: float | None = None,
    one_to_one: bool | None = None,
    lowest: float = -np.inf,
    expected: float | None = None,
    alike: bool = False,
) -> Decision:
    """Return the matches between two tables.

    One to one, unless `one_to_one` is False or the scores show that a table has duplicates, whose records may then
    share a partner. Without a threshold, pairs are accepted by their score and their lead over rivals so that the
    expected F1 is maximal, but none below `lowest`; the threshold is then the lowest score accepted. `expected` is the
    number of records of the smaller table that have a match, if it was estimated; without it, no F1 is stated. If both
    tables have duplicates, all pairs above the threshold are matches or, where scores are a likeness (`alike`), of
    which none means even odds, all partners that are as good as the best.
    """
    places = np.flatnonzero(usable)
    if not len(places):
        return Decision(places, threshold or 0.0, None, "no pair has enough evidence")
    a, b, value = left[places], right[places], scores[places]
    cut = 0.0 if threshold is None else threshold
    if one_to_one is False:
        return Decision(places[value >= cut], cut, None, _EVERY)
    ranked = _one_to_one(a, b, value, records)
    rule, clean = "one to one", (True, True)
    if one_to_one is None:
        best = value[ranked.chosen]
        high = HIGH if expected is None else float(np.clip(1 - expected / len(best), HIGH, 1))
        clean = clean_sides(a, b, value, ranked.chosen, best >= np.quantile(best, high), records)
    single = clean[1], clean[0]
    if not any(clean) and not alike:
        return Decision(places[value >= cut], cut, None, f"{_BOTH}: {_EVERY}")
    if any(clean) and not all(clean):
        rule = _DUPLICATES.format("first" if single[0] else "second")
        ranked = _one_each(a, b, value, records, single)
    taken, f1 = ranked.chosen[value[ranked.chosen] >= cut], None
    if threshold is None:
        taken, f1 = _best(ranked, a, b, value, records, single, lowest, expected)
        cut = float(value[taken].min()) if len(taken) else 0.0
    if not any(clean):
        rule = f"{_BOTH}: all partners as good as the best"
        best = np.full(records, np.inf)
        best[a[taken]] = best[b[taken]] = value[taken]
        taken = np.flatnonzero(value >= np.maximum(np.minimum(best[a], best[b]) - TIED, cut))
    return Decision(places[taken], cut, f1, rule, single)


def _best(
    ranked: _Ranked,
    left: Ints,
    right: Ints,
    scores: Floats,
    records: int,
    single: tuple[bool, bool],
    lowest: float,
    expected: float | None,
) -> tuple[Ints, float | None]:
    """Return the pairs in first place with which the expected F1 is maximal, and that F1 if it is no guess."""
    chosen, missed = ranked.chosen, 0.0
    probable = ranked.matches(expected if all(single) else None)
    if expected is not None:
        rivals, _ = second_best(left, right, scores, chosen, records, single)
        missed = float(probable[scores[chosen] - rivals <= CLOSE].sum())
        lowest *= 2 if expected >= MOSTLY * len(chosen) else 1
    cut, f1 = best_cut(probable, ranked.first, missed)
    stated = expected is not None and missed <= AMBIGUOUS * float(probable.sum())
    return chosen[(ranked.first >= cut) & (scores[chosen] >= lowest)], f1 if stated else None


def ranked_pairs(
    left: Ints, right: Ints, scores: Floats, usable: NDArray[np.bool_], records: int, single: tuple[bool, bool]
) -> tuple[Ints, Floats]:
    """Return the pairs that can be matches by a rule (`Decision.single`), best first, and what they are ranked by.

    Where a record has at most one match, that is the score with its lead over rivals.
    """
    places = np.flatnonzero(usable)
    ranked = scores[places]
    if any(single) and len(places):
        a, b = left[places], right[places]
        best = _one_to_one(a, b, ranked, records) if all(single) else _one_each(a, b, ranked, records, single)
        places, ranked = places[best.chosen], best.first
    order = np.argsort(-ranked, kind="stable")
    return places[order], ranked[order]


def match_probabilities(
    left: Ints,
    right: Ints,
    scores: Floats,
    usable: NDArray[np.bool_],
    records: int,
    single: tuple[bool, bool],
    expected: float | None = None,
) -> Floats:
    """Return the probability that each pair is a match where a record has at most one, by a rule (`Decision.single`).

    Of a record's best pairs it is estimated with the decision (`split`) from their scores and their lead over rivals;
    other pairs trail, and what they trail by is a negative lead; they have at most what the best pair leaves. NaN of
    fewer than FEW records.
    """
    found = np.zeros(len(left))
    places = np.flatnonzero(usable)
    if not len(places):
        return found
    a, b, value = left[places], right[places], scores[places]
    ranked = _one_to_one(a, b, value, records) if all(single) else _one_each(a, b, value, records, single)
    if len(ranked.chosen) < FEW:
        return np.full(len(left), np.nan)
    rivals = np.full(len(places), float(value.min()))
    for side, counts in ((a, single[0]), (b, single[1])):
        if counts:
            best, second = two_best(side, value, records)
            leads = best[side] == np.arange(len(places))
            rivals = np.maximum(rivals, np.where(leads, second[side], value[best[side]]))
    order = np.argsort(ranked.first, kind="stable")
    probable = ranked.matches(expected if all(single) else None)
    likely = np.interp(2 * value - rivals, ranked.first[order], probable[order], left=0.0)
    taken = np.zeros((2, records))
    for row, side, counts in zip(taken, (a, b), single, strict=True):
        if counts:
            row[side[ranked.chosen]] = probable
    likely = np.minimum(likely, 1 - np.maximum(taken[0][a], taken[1][b]))
    likely[ranked.chosen] = probable
    found[places] = likely
    return found


@dataclass(frozen=True)
class KnownPairs:
    """The candidates whose answer is known from labels: their places among the candidates, and the answers."""

    places: Ints
    match: NDArray[np.bool_]

    @property
    def both(self) -> bool:
        """Whether there are matches and other pairs."""
        return bool(self.match.any()) and not bool(self.match.all())


NOTHING_KNOWN = KnownPairs(np.zeros(0, np.int64), np.zeros(0, bool))


@dataclass(frozen=True)
class MatchRules:
    """How the candidates of one run are decided; `one_to_one` as given by the user."""

    records: RecordTable
    candidates: RecordPairs
    scorer: Scorer
    one_to_one: bool | None

    def decide(
        self, scored: ScoredRecords, threshold: float | None, known: KnownPairs = NOTHING_KNOWN
    ) -> tuple[Decision, Ints | None]:
        """Return the matches and, for one table, the cluster of each record. Labels count more than scores."""
        left, right, n = self.candidates.left, self.candidates.right, self.records.count
        cut = self.scorer.usual if threshold is None else threshold
        if not self.records.border:
            assert cut is not None
            return self._clusters(scored, cut, known)
        expected = None if scored.matches is None else scored.matches.matches
        lowest, alike = self.scorer.lowest, self.scorer.alike
        decision = decide_pairs(
            left, right, scored.value, scored.usable, n, cut, self.one_to_one, lowest, expected, alike
        )
        return self.corrected(decision, known), None

    def probabilities(self, scored: ScoredRecords, decision: Decision, known: KnownPairs) -> Floats:
        """Return the probability that each candidate is a match, NaN if the scores do not say it.

        Where a record may have several matches, that is what the model says; points and likeness do not.
        """
        expected = None if scored.matches is None else scored.matches.matches
        if any(decision.single):
            left, right, n = self.candidates.left, self.candidates.right, self.records.count
            found = match_probabilities(left, right, scored.value, scored.usable, n, decision.single, expected)
        else:
            found = np.where(scored.usable, scored.probable, 0.0)
        found[known.places] = known.match
        return found

    def corrected(self, found: Decision, known: KnownPairs) -> Decision:
        """Return the decision with labelled matches, and without pairs that labels exclude or that rival a match."""
        if not len(known.places):
            return found
        yes, no = known.places[known.match], known.places[~known.match]
        kept = np.setdiff1d(found.chosen, no)
        for side, single in zip((self.candidates.left, self.candidates.right), found.single, strict=True):
            if single:
                kept = kept[~np.isin(side[kept], side[yes]) | np.isin(kept, yes)]
        return Decision(np.union1d(kept, yes), found.threshold, found.expected_f1, found.rule, found.single)

    def _clusters(self, scored: ScoredRecords, cut: float, known: KnownPairs) -> tuple[Decision, Ints]:
        left, right = self.candidates.left, self.candidates.right
        value = np.where(scored.usable, scored.value, np.minimum(scored.value, cut - 1))
        value[known.places] = np.where(known.match, cut + CLIP, cut - CLIP)

        def compared(one: Ints, other: Ints) -> Floats:
            return self.scorer.others(one, other, scored).value

        groups = cluster(self.records.count, left, right, value, cut, compared)
        chosen = np.flatnonzero(groups[left] == groups[right])
        return Decision(chosen, cut, None, "clusters by average linkage"), groups
