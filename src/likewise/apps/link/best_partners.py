"""Best partners: which pair of a record comes first, how far ahead of the next, and how probably it is a match."""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property

import numpy as np
from numpy.typing import NDArray

from likewise.apps.link.fields import Floats
from likewise.apps.link.model import chance, rising, shift_to
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

DRAWS, DRAWN = 8, 40_000
"""Random draws of what non-matches lead by, of which the mean counts, and best pairs of all draws, at most."""

LEAST = 1e-4
"""Probabilities count as at least this, and as at most 1 less this, where their odds are multiplied."""

STABLE = 1e-5
"""The estimation ends when no probability changes by this much."""

FEW = 30
"""Best pairs from which on their probabilities are estimated."""

APART = 0.1
"""Two estimates of a probability that differ by more are doubtful."""


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


@dataclass(frozen=True)
class Ranked:
    """The pairs in first place, their scores with lead, and the scores in second and third place.

    `expected` of them are matches at most, if that is known. `again` are the probabilities that they are, estimated
    from what best pairs are by chance, if that was counted; if scores are a likeness (`alike`), both estimates count.
    """

    chosen: Ints
    first: Floats
    second: Floats
    third: Floats
    expected: float | None = None
    again: Floats | None = None
    alike: bool = False

    @cached_property
    def once(self) -> Floats:
        """The probabilities that the pairs are matches, estimated from their scores and leads alone."""
        count = max(1, len(self.chosen))
        most = None if self.expected is None else self.expected / count
        draws = range(1, 1 + int(np.clip(DRAWN // count, 1, DRAWS)))
        found: Floats = np.mean([split(self.first, self.second, self.third, seed, most)[0] for seed in draws], axis=0)
        return found

    @cached_property
    def probable(self) -> Floats:
        """The probabilities that the pairs are matches; of two estimates the mean of the logarithms of their odds."""
        if self.again is None or not self.alike:
            return self.once
        both = (np.clip(one, LEAST, 1 - LEAST) for one in (self.once, self.again))
        return chance(np.mean([np.log(one / (1 - one)) for one in both], axis=0))


def single_pairs(left: Ints, right: Ints, scores: Floats, records: int) -> Ranked:
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
    return Ranked(chosen, first, np.minimum(scores[chosen], second[side[chosen]]), third[side[chosen]])


def one_each(left: Ints, right: Ints, scores: Floats, records: int, sides: tuple[bool, bool]) -> Ranked:
    """Return the best partner of each record of one table, and the next best."""
    chosen = assign(left, right, scores + 1e-9 - float(scores.min()), *sides)
    second, third = second_best(left, right, scores, chosen, records, sides)
    return Ranked(chosen, with_lead(scores[chosen], second), second, third)


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
        best = single_pairs(a, b, ranked, records) if all(single) else one_each(a, b, ranked, records, single)
        places, ranked = places[best.chosen], best.first
    order = np.argsort(-ranked, kind="stable")
    return places[order], ranked[order]


def estimated_again(
    ranked: Ranked, left: Ints, right: Ints, scores: Floats, records: int, by_chance: Floats | None
) -> Floats | None:
    """Return the probabilities of the best pairs, one to one, given the strengths of best pairs without a match.

    None if there are fewer than FEW, or if it is not known how strong those are.
    """
    if by_chance is None or len(ranked.chosen) < FEW:
        return None
    mine, best = min((strengths(side, scores, records) for side in (left, right)), key=lambda found: len(found[1]))
    rank = best[np.argsort(mine[best], kind="stable")]
    found: Floats = np.interp(mine[ranked.chosen], mine[rank], against_chance(mine[rank], by_chance))
    return found


def strengths(side: Ints, scores: Floats, records: int) -> tuple[Floats, Ints]:
    """Return the score of each pair plus its lead over the other pairs of its record of a side, and the best pairs.

    >>> found, best = strengths(np.array([0, 0, 1]), np.array([5.0, 2.0, 1.0]), 2)
    >>> found.tolist(), best.tolist()  # 0 leads by three, 1 trails by three, 2 has no rival but the lowest score
    ([8.0, -1.0, 1.0], [0, 2])
    """
    best, second = two_best(side, scores, records)
    leads = best[side] == np.arange(len(side))
    rivals = np.where(leads, np.maximum(second[side], scores.min()), scores[best[side]])
    return 2 * scores - rivals, best[best >= 0]


def against_chance(strength: Floats, by_chance: Floats) -> Floats:
    """Return the probability that best pairs are matches, given the strengths of best pairs where nobody has a match.

    The ratio of the two densities falls with the strength (isotonic regression). As many are no matches as are needed
    for those below the median of chance (Storey 2002).

    >>> against_chance(np.array([0.5, 1.5, 9.0, 9.5]), np.array([1.0, 2.0])).round(2).tolist()
    [0.0, 0.0, 1.0, 1.0]
    """
    sizes = [len(strength), len(by_chance)]
    order = np.argsort(np.concatenate([strength, by_chance]), kind="stable")
    part = -rising(np.repeat([0.0, -1.0], sizes)[order], np.repeat(1 / np.array(sizes), sizes)[order])
    without = min(1.0, 2 * float((strength <= np.median(by_chance)).mean()))
    found = np.empty(len(order))
    found[order] = 1 - np.minimum(1.0, without * part / np.maximum(1 - part, 1e-12))
    return found[: len(strength)]


def apart(one: Floats, other: Floats) -> float:
    """Return by how much the other differs at most, on average over the pairs of a tenth of the one with FEW."""
    tenths = np.minimum((10 * one).astype(np.int64), 9)
    counts = np.bincount(tenths, minlength=10)
    return float((np.abs(np.bincount(tenths, one - other, 10)) / np.maximum(counts, 1))[counts >= FEW].max(initial=0.0))


@dataclass(frozen=True)
class MatchProbabilities:
    """The probability that each pair is a match, NaN if it is not known; and why that is, or why it is doubtful.

    checked: whether it was estimated a second time.
    """

    value: Floats
    doubt: str | None = None
    checked: bool = False


def match_probabilities(
    left: Ints,
    right: Ints,
    scores: Floats,
    usable: NDArray[np.bool_],
    records: int,
    single: tuple[bool, bool],
    ranked: Ranked,
) -> MatchProbabilities:
    """Return the probability that each pair is a match where a record has at most one, by a rule (`Decision.single`).

    That of the best of the usable pairs is estimated with the decision (`ranked`); other pairs trail, and what they
    trail by is a negative lead; they share what the best pair leaves. NaN of fewer than FEW records. There is doubt if
    two estimates are more than APART.
    """
    found, doubt = np.zeros(len(left)), None
    places = np.flatnonzero(usable)
    if not len(places):
        return MatchProbabilities(found)
    if len(ranked.chosen) < FEW:
        return MatchProbabilities(np.full(len(left), np.nan), f"fewer than {FEW} records have a candidate")
    a, b, value = left[places], right[places], scores[places]
    every = [strengths(side, value, records) for side, counts in ((a, single[0]), (b, single[1])) if counts]
    strength = np.min([one for one, _ in every], axis=0)
    probable = ranked.probable
    if ranked.again is not None:
        far = apart(ranked.once, ranked.again)
        doubt = f"two ways to estimate it without labels differ by up to {far:.2f}" if far > APART else None
    order = np.argsort(ranked.first, kind="stable")
    likely = np.interp(strength, ranked.first[order], probable[order], left=0.0)
    likely[ranked.chosen] = 0.0
    part = np.ones(len(places))
    for side, counts in ((a, single[0]), (b, single[1])):
        if counts:
            rest = np.ones(records)
            rest[side[ranked.chosen]] -= probable
            wanted = np.maximum(np.bincount(side, likely, records), rest)
            part = np.minimum(part, np.divide(rest, wanted, where=wanted > 0, out=np.zeros(records))[side])
    likely *= part
    likely[ranked.chosen] = probable
    found[places] = likely
    return MatchProbabilities(found, doubt, ranked.again is not None)
