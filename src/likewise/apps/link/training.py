"""Training on labelled pairs: the weight of each field, and the score from which on pairs are matches.

Training starts from the model that was learned without labels. Labels change the weight of each field, by
logistic regression that is regularised towards it, and they set the threshold (`MatchCurve`); the rule, one to one or
not, remains unless labels contradict it.
"""

from __future__ import annotations

from dataclasses import dataclass, replace

import numpy as np

from likewise.apps.link.blocking import RecordPairs
from likewise.apps.link.decision import Decision, ranked_pairs
from likewise.apps.link.fields import Floats
from likewise.apps.link.labels import LabelledPairs
from likewise.apps.link.match_curve import LinkQuality, MatchCurve
from likewise.apps.link.model import train
from likewise.apps.link.rules import KnownPairs, MatchRules
from likewise.apps.link.scoring import ScoredRecords
from likewise.base.arrays import Ints

PULL = 10.0
"""Strength with which the share of a field is drawn towards 1: that of ten or so labels for which the field decides. Of
1 and 10, the one that serves best with 30 labels on average (chosen by looking: benchmarks/link_labels.py)."""

FEW = 0.1
"""Part of the labelled matches that may be below the threshold where labels show that records have several partners,
but not how low their scores go."""

BEYOND = 20
"""Within one table, pairs that are ranked: this many times the matches found without labels, as nearly all others are
no matches, and many."""

LEAST_RANKED = 20_000
"""Pairs that are ranked in any case."""


@dataclass(frozen=True)
class Ranking:
    """The candidates that can be matches, best first (`order`), by `scores`, and the probability of a match along them.

    `curve` is None if there are no candidates. `both`: matches and others are among the labels that are ranked.
    """

    scored: ScoredRecords
    single: tuple[bool, bool]
    order: Ints
    scores: Floats
    curve: MatchCurve | None
    both: bool


@dataclass(frozen=True)
class Lesson:
    """What was learned from labels: scores and matches, and the quality of the matches before and after.

    The quality is None if the labels are all of one kind.
    """

    scored: ScoredRecords
    decision: Decision
    groups: Ints | None
    before: LinkQuality | None
    after: LinkQuality | None


class Teacher:
    """Learns from labels, again and again as there are more of them.

    threshold: given by the user; labels then teach the shares of fields only.
    """

    def __init__(
        self, rules: MatchRules, scored: ScoredRecords, threshold: float | None = None, one_to_one: bool | None = None
    ) -> None:
        self._rules, self._scored, self._threshold = rules, scored, threshold
        self._free = one_to_one is None
        self.before, self.groups_before = rules.decide(scored, threshold)
        self._first = self._ranked(scored, self.before.single)

    def places(self, labels: LabelledPairs) -> KnownPairs:
        """Return the places of labelled pairs, which are candidates."""
        n, candidates = self._rules.records.count, self._rules.candidates
        asked = labels.pairs[:, 0] * n + labels.pairs[:, 1]
        return KnownPairs(np.searchsorted(candidates.left * n + candidates.right, asked), labels.match)

    def ranked(self, known: KnownPairs) -> Ranking:
        """Learn weights from labels, and rank the candidates; no weights if labels are all of one kind."""
        scored = self._trained(known) if known.both else self._scored
        single = self._single(known)
        same = single == self.before.single and not known.both
        order, scores = self._first if same else self._ranked(scored, single)
        if not len(order):
            return Ranking(scored, single, order, scores, None, False)
        curve, both = _learned(order, scores, len(self.before.chosen), known, len(scored.value))
        return Ranking(scored, single, order, scores, curve, both)

    def taught(self, known: KnownPairs) -> Lesson:
        """Learn from labels, and decide; no threshold follows if those that are ranked are all of one kind."""
        ranking = self.ranked(known)
        scored, single, order, scores = ranking.scored, ranking.single, ranking.order, ranking.scores
        curve, both, found = ranking.curve, ranking.both, len(self.before.chosen)
        if curve is None:
            decision, groups = self._rules.decide(scored, self._threshold, known)
            return Lesson(scored, decision, groups, None, None)
        if self._threshold is not None or not both:
            decision, groups = self._rules.decide(scored, self._threshold, known)
            if single != self.before.single:
                usual = float(np.quantile(scored.value[known.places[known.match]], FEW))
                lowest = min(decision.threshold, usual) if self._threshold is None else self._threshold
                some = order[scored.value[order] >= lowest]
                decision, groups = self._first_ones(scored, some, scores, len(some), known, single)
            taken = len(decision.chosen)
        else:
            taken = curve.best()
            decision, groups = self._first_ones(scored, order, scores, taken, known, single)
        if not both:
            return Lesson(scored, decision, groups, None, None)
        before = _learned(*self._first, found, known, len(scored.value))[0].quality(found)
        return Lesson(scored, decision, groups, before, curve.quality(taken))

    def _first_ones(
        self,
        scored: ScoredRecords,
        order: Ints,
        scores: Floats,
        taken: int,
        known: KnownPairs,
        single: tuple[bool, bool],
    ) -> tuple[Decision, Ints | None]:
        """Return the decision that takes so many pairs of a ranking; within one table, the threshold that does."""
        if not self._rules.records.border:
            ends = scores[max(0, taken - 1)], scores[min(taken, len(scores) - 1)]
            return self._rules.decide(scored, float(np.mean(ends)) if taken else float(scores[0]) + 1.0, known)
        chosen = np.sort(order[:taken])
        lowest = float(scored.value[chosen].min()) if len(chosen) else float(scored.value.max())
        rule = self.before.rule if single == self.before.single else _rule(single)
        return self._rules.corrected(Decision(chosen, lowest, None, rule, single), known), None

    def matches(self, lesson: Lesson | None) -> Ints:
        """Return the candidates that are matches, after a lesson or before any."""
        decision, groups = (self.before, self.groups_before) if lesson is None else (lesson.decision, lesson.groups)
        candidates = self._rules.candidates
        if groups is None:
            return decision.chosen
        return np.flatnonzero(groups[candidates.left] == groups[candidates.right])

    def _trained(self, known: KnownPairs) -> ScoredRecords:
        scored = self._scored
        if scored.model is None:
            return scored
        added = np.sum([np.zeros(len(scored.value)), *scored.added.values()], axis=0)
        model = train(scored.compared, scored.model, known.places, known.match, PULL, added[known.places])
        return replace(scored, value=model.scores(scored.compared) + added, model=model)

    def _single(self, known: KnownPairs) -> tuple[bool, bool]:
        """Return on which sides a record has at most one match: not where labels show several."""
        if not self._free or not self._rules.records.border:
            return self.before.single
        yes = known.places[known.match]
        sides = (self._rules.candidates.left[yes], self._rules.candidates.right[yes])
        twice = [len(np.unique(side)) < len(side) for side in sides]
        return self.before.single[0] and not twice[0], self.before.single[1] and not twice[1]

    def _ranked(self, scored: ScoredRecords, single: tuple[bool, bool]) -> tuple[Ints, Floats]:
        candidates: RecordPairs = self._rules.candidates
        places, scores = ranked_pairs(
            candidates.left, candidates.right, scored.value, scored.usable, self._rules.records.count, single
        )
        if not all(single):
            most = max(LEAST_RANKED, BEYOND * len(self.before.chosen)) if not any(single) else len(places)
            places, scores = places[:most], scores[:most]
        return places, scores


def _learned(order: Ints, scores: Floats, found: int, known: KnownPairs, candidates: int) -> tuple[MatchCurve, bool]:
    """Return the curve of a ranking after labels, and whether matches and others are among the labels that are ranked.

    Labelled pairs that are not ranked, such as those with a better rival, say nothing about the curve.
    """
    curve = MatchCurve(scores, found)
    rank = np.full(candidates, -1, np.int64)
    rank[order] = np.arange(len(order))
    ranked = KnownPairs(known.places[rank[known.places] >= 0], known.match[rank[known.places] >= 0])
    curve.learn(rank[ranked.places], ranked.match)
    return curve, ranked.both


def _rule(single: tuple[bool, bool]) -> str:
    """Return the rule in words, where labels have shown that records have several partners."""
    if not any(single):
        return "labels show several partners: every pair above the threshold"
    return f"labels show several partners: one for each record of the {'first' if single[0] else 'second'} table"
