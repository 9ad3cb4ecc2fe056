"""The decision which pairs are matches: one-to-one assignment and a threshold between two tables, clusters within one.

MMDS §3.8.3.
"""

from __future__ import annotations

from dataclasses import dataclass, replace

import numpy as np
from numpy.typing import NDArray

from likewise.apps.link.best_partners import (
    HIGH,
    MatchProbabilities,
    Ranked,
    best_cut,
    estimated_again,
    match_probabilities,
    one_each,
    second_best,
    single_pairs,
)
from likewise.apps.link.blocking import RecordPairs
from likewise.apps.link.entities import CLIP, cluster
from likewise.apps.link.fields import Floats
from likewise.apps.link.records import RecordTable
from likewise.apps.link.scored_records import ScoredRecords
from likewise.apps.link.scoring import Scorer
from likewise.base.arrays import Ints

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

NO_MODEL = "points, or one field, do not tell how many of the pairs that agree are matches"
_EVERY = "every pair above the threshold"
_BOTH = "both tables have duplicates"
_DUPLICATES = "the {} table has duplicates: one partner for each of its records"


@dataclass(frozen=True)
class Decision:
    """The indices of the matches among the candidates, the threshold, the expected F1, and the rule in words.

    `single` says whether a record of the first table has at most one match, and whether one of the second has; `ranked`
    are then its best pairs, if they were found for the decision.
    """

    chosen: Ints
    threshold: float
    expected_f1: float | None
    rule: str
    single: tuple[bool, bool] = (False, False)
    ranked: Ranked | None = None


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
    sides: tuple[bool, bool] | None = None,
    by_chance: Floats | None = None,
) -> Decision:
    """Return the matches between two tables.

    One to one, unless `one_to_one` is False or the scores show that a table has duplicates, whose records may then
    share a partner. Without a threshold, pairs are accepted by their score and their lead over rivals so that the
    expected F1 is maximal, but none below `lowest`; the threshold is then the lowest score accepted. `expected` is the
    number of records of the smaller table that have a match, if it was estimated; without it, no F1 is stated. If both
    tables have duplicates, all pairs above the threshold are matches or, where scores are a likeness (`alike`), of
    which none means even odds, all partners that are as good as the best. `sides` is what an earlier decision found of
    duplicates (`Decision.single`), which stays. `by_chance` are the strengths of best pairs where nobody has a match.
    """
    places = np.flatnonzero(usable)
    if not len(places):
        return Decision(places, threshold or 0.0, None, "no pair has enough evidence")
    a, b, value = left[places], right[places], scores[places]
    cut = 0.0 if threshold is None else threshold
    if one_to_one is False:
        return Decision(places[value >= cut], cut, None, _EVERY)
    ranked = single_pairs(a, b, value, records)
    rule, clean = "one to one", (True, True)
    if sides is not None:
        clean = sides[1], sides[0]
    elif one_to_one is None:
        best = value[ranked.chosen]
        high = HIGH if expected is None else float(np.clip(1 - expected / len(best), HIGH, 1))
        clean = clean_sides(a, b, value, ranked.chosen, best >= np.quantile(best, high), records)
    single = clean[1], clean[0]
    if not any(clean) and not alike:
        return Decision(places[value >= cut], cut, None, f"{_BOTH}: {_EVERY}")
    if all(clean):
        again = estimated_again(ranked, a, b, value, records, by_chance)
        ranked = replace(ranked, expected=expected, again=again, alike=alike)
    elif any(clean):
        rule = _DUPLICATES.format("first" if single[0] else "second")
        ranked = one_each(a, b, value, records, single)
    taken, f1 = ranked.chosen[value[ranked.chosen] >= cut], None
    if threshold is None:
        taken, f1 = _best(ranked, a, b, value, records, single, lowest, expected)
        cut = float(value[taken].min()) if len(taken) else 0.0
    if not any(clean):
        rule = f"{_BOTH}: all partners as good as the best"
        best = np.full(records, np.inf)
        best[a[taken]] = best[b[taken]] = value[taken]
        taken = np.flatnonzero(value >= np.maximum(np.minimum(best[a], best[b]) - TIED, cut))
    return Decision(places[taken], cut, f1, rule, single, ranked)


def _best(
    ranked: Ranked,
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
    probable = ranked.probable
    if expected is not None:
        rivals, _ = second_best(left, right, scores, chosen, records, single)
        missed = float(probable[scores[chosen] - rivals <= CLOSE].sum())
        lowest *= 2 if expected >= MOSTLY * len(chosen) else 1
    cut, f1 = best_cut(probable, ranked.first, missed)
    stated = expected is not None and missed <= AMBIGUOUS * float(probable.sum())
    return chosen[(ranked.first >= cut) & (scores[chosen] >= lowest)], f1 if stated else None


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
    """How the candidates of one run are decided; `one_to_one` as given by the user.

    single: that of an earlier decision, which stays. further: whether other pairs than the candidates can be compared.
    entities: of an earlier run, which stay together, as the first record of each.
    """

    records: RecordTable
    candidates: RecordPairs
    scorer: Scorer
    one_to_one: bool | None
    single: tuple[bool, bool] | None = None
    further: bool = True
    entities: Ints | None = None

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
        lowest, alike, by_chance = self.scorer.lowest, self.scorer.alike, scored.by_chance
        value, usable, only, sides = scored.value, scored.usable, self.one_to_one, self.single
        decision = decide_pairs(left, right, value, usable, n, cut, only, lowest, expected, alike, sides, by_chance)
        return self.corrected(decision, known), None

    def probabilities(self, scored: ScoredRecords, decision: Decision, known: KnownPairs) -> MatchProbabilities:
        """Return the probability that each candidate is a match, NaN if the scores do not say it.

        Where a record may have several matches, that is what the model says; points and likeness do not.
        """
        if any(decision.single) and decision.ranked is not None:
            left, right, n = self.candidates.left, self.candidates.right, self.records.count
            found = match_probabilities(left, right, scored.value, scored.usable, n, decision.single, decision.ranked)
        else:
            why = None if scored.is_probability else NO_MODEL
            found = MatchProbabilities(np.where(scored.usable, scored.probable, 0.0), why)
        found.value[known.places] = known.match
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
        return replace(found, chosen=np.union1d(kept, yes))

    def _clusters(self, scored: ScoredRecords, cut: float, known: KnownPairs) -> tuple[Decision, Ints]:
        left, right = self.candidates.left, self.candidates.right
        value = np.where(scored.usable, scored.value, np.minimum(scored.value, cut - 1))
        value[known.places] = np.where(known.match, cut + CLIP, cut - CLIP)

        def compared(one: Ints, other: Ints) -> Floats:
            return self.scorer.others(one, other, scored).value

        further = compared if self.further else None
        groups = cluster(self.records.count, left, right, value, cut, further, self.entities)
        chosen = np.flatnonzero(groups[left] == groups[right])
        return Decision(chosen, cut, None, "clusters by average linkage"), groups
