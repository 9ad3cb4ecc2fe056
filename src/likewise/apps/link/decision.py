"""The decision which pairs of two tables are matches: one-to-one assignment, and a threshold (MMDS §3.8.3)."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from likewise.apps.link.fields import Floats
from likewise.apps.link.model import chance, rising
from likewise.base.arrays import Ints
from likewise.kernels.graph import auction

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

HALVINGS = 40
"""Steps of the search for the log-odds with which a given fraction of the records have a match."""

CLOSE = 2.0
"""A match is close if it leads by at most this much (natural logarithm): odds of seven to one. As many matches are
taken to trail by that much, behind a rival that is not a match."""

MOSTLY = 0.5
"""If this part of the records is expected to have a match, the least log-odds of one are twice as low: scores that are
far behind are then the model's fault more probably than the pair's."""

AMBIGUOUS = 0.1
"""No F1 is stated if more than this part of the matches are close: how many are wrong, and how many are behind a rival,
is a guess then."""

TIED = 0.1
"""Two partners of a record are equally good if their scores differ by at most this much."""

RIVALS = 0.1
"""A table has duplicates if more than this fraction of the matched records have two equally good partners in it."""

_EVERY = "every pair above the threshold"
_BOTH = f"both tables have duplicates: {_EVERY}"
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
            after = chance(ratio[one] + _prior(ratio[one], share))
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


def _prior(ratio: Floats, share: float) -> float:
    """Return the log-odds to add so that this fraction of the records have a match."""
    low, high = -50.0 - float(ratio.max()), 50.0 - float(ratio.min())
    for _ in range(HALVINGS):
        middle = (low + high) / 2
        low, high = (low, middle) if float(chance(ratio + middle).mean()) > share else (middle, high)
    return (low + high) / 2


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


def decide_alike(
    left: Ints,
    right: Ints,
    scores: Floats,
    records: int,
    threshold: float | None = None,
    one_to_one: bool = False,
    expected: float | None = None,
) -> Decision:
    """Return the matches between two tables whose scores are a likeness, of which no value means even odds.

    As `decide_pairs`, but if both tables have duplicates, a record has all partners that are as good as its best. No F1
    is expected: a likeness does not say how probable a match is.
    """
    if not len(left):
        return Decision(np.zeros(0, np.int64), threshold or 0.0, None, "no candidates")
    ranked = _one_to_one(left, right, scores, records)
    clean, rule = (True, True), "one to one"
    if not one_to_one:
        best = scores[ranked.chosen]
        clean = clean_sides(left, right, scores, ranked.chosen, best >= np.quantile(best, HIGH), records)
    if clean in ((True, False), (False, True)):
        rule = _DUPLICATES.format("first" if clean[1] else "second")
        ranked = _one_each(left, right, scores, records, (clean[1], clean[0]))
    chosen = ranked.chosen
    if threshold is None:
        probable = ranked.matches(expected if clean == (True, True) else None)
        chosen = chosen[ranked.first >= best_cut(probable, ranked.first)[0]]
        threshold = float(scores[chosen].min()) if len(chosen) else 0.0
    chosen = chosen[scores[chosen] >= threshold]
    if clean == (False, False):
        rule = "both tables have duplicates: all partners as good as the best"
        best = np.full(records, np.inf)
        best[left[chosen]] = best[right[chosen]] = scores[chosen]
        chosen = np.flatnonzero(scores >= np.maximum(np.minimum(best[left], best[right]) - TIED, threshold))
    return Decision(chosen, threshold, None, rule, (clean[1], clean[0]))


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
) -> Decision:
    """Return the matches between two tables.

    One to one, unless `one_to_one` is False or the scores show that a table has duplicates, whose records may then
    share a partner. Without a threshold, pairs are accepted by their score and their lead over rivals so that the
    expected F1 is maximal, but none below `lowest`; the threshold is then the lowest score accepted. `expected` is the
    number of records of the smaller table that have a match, if it was estimated.
    """
    places = np.flatnonzero(usable)
    if not len(places):
        return Decision(places, threshold or 0.0, None, "no pair has enough evidence")
    a, b, value = left[places], right[places], scores[places]
    if one_to_one is False:
        cut = 0.0 if threshold is None else threshold
        return Decision(places[value >= cut], cut, None, _EVERY)
    ranked = _one_to_one(a, b, value, records)
    rule, clean = "one to one", (True, True)
    if one_to_one is None:
        best = value[ranked.chosen]
        high = HIGH if expected is None else float(np.clip(1 - expected / len(best), HIGH, 1))
        clean = clean_sides(a, b, value, ranked.chosen, best >= np.quantile(best, high), records)
    if clean == (False, False):
        cut = 0.0 if threshold is None else threshold
        return Decision(places[value >= cut], cut, None, _BOTH)
    if clean != (True, True):
        rule = _DUPLICATES.format("first" if clean[1] else "second")
        ranked = _one_each(a, b, value, records, (clean[1], clean[0]))
    single = clean[1], clean[0]
    chosen = ranked.chosen
    if threshold is not None:
        return Decision(places[chosen[value[chosen] >= threshold]], threshold, None, rule, single)
    probable = ranked.matches(expected if clean == (True, True) else None)
    missed = 0.0
    if expected is not None:
        rivals, _ = second_best(a, b, value, chosen, records, single)
        missed = float(probable[value[chosen] - rivals <= CLOSE].sum())
    cut, f1 = best_cut(probable, ranked.first, missed)
    if expected is not None and expected >= MOSTLY * len(chosen):
        lowest *= 2
    taken = chosen[(ranked.first >= cut) & (value[chosen] >= lowest)]
    known = expected is not None and missed <= AMBIGUOUS * float(probable.sum())
    least = float(value[taken].min()) if len(taken) else 0.0
    return Decision(places[taken], least, f1 if known else None, rule, single)


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
