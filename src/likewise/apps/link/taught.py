"""What labelled pairs teach: how much each field counts, and from which score on pairs are matches.

The model that was learnt without labels is where the teaching begins. Labels change the share of each field, by
logistic regression that is drawn towards the model, and they set the threshold (`MatchCurve`); the rule, one to one or
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

BEYOND = 20
"""Within one table, pairs that are ranked: this many times the matches found without labels, as nearly all others are
no matches, and many."""

LEAST_RANKED = 20_000
"""Pairs that are ranked in any case."""


@dataclass(frozen=True)
class Lesson:
    """What was learnt from labels: scores and matches, and the quality of the matches before and after.

    `order` are the ranked candidates, best first, and `curve` the probability of a match along them; None if labels
    are all of one kind, from which no threshold follows.
    """

    scored: ScoredRecords
    decision: Decision
    groups: Ints | None
    order: Ints
    curve: MatchCurve | None
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

    def curve(self) -> tuple[Ints, MatchCurve]:
        """Return the ranking without labels, and its curve."""
        order, scores = self._first
        return order, MatchCurve(scores, len(self.before.chosen))

    def taught(self, known: KnownPairs) -> Lesson:
        """Learn from these labels; nothing but their own answers follows from labels that are all of one kind."""
        if not known.both or not len(self._first[0]):
            decision, groups = self._rules.decide(self._scored, self._threshold, known)
            return Lesson(self._scored, decision, groups, self._first[0], None, None, None)
        scored = self._trained(known)
        single = self._single(known)
        order, scores = self._ranked(scored, single)
        taken = len(self.before.chosen)
        curve = _learnt(order, scores, taken, known, len(scored.value))
        first, first_scores = self._first
        before = _learnt(first, first_scores, taken, known, len(scored.value)).quality(taken)
        if self._threshold is not None:
            decision, groups = self._rules.decide(scored, self._threshold, known)
            return Lesson(scored, decision, groups, order, curve, before, curve.quality(len(decision.chosen)))
        taken = curve.best()
        groups = None
        if self._rules.records.border:
            chosen = np.sort(order[:taken])
            lowest = float(scored.value[chosen].min()) if len(chosen) else float(scored.value.max())
            rule = self.before.rule if single == self.before.single else _rule(single)
            decision = self._rules.corrected(Decision(chosen, lowest, None, rule, single), known)
        else:
            ends = scores[max(0, taken - 1)], scores[min(taken, len(scores) - 1)]
            cut = float(np.mean(ends)) if taken else float(scores[0]) + 1.0
            decision, groups = self._rules.decide(scored, cut, known)
        after = curve.quality(taken)
        decision = replace(decision, expected_f1=after.f1[0])
        return Lesson(scored, decision, groups, order, curve, before, after)

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
        model = train(scored.compared, scored.model, known.places, known.match, PULL)
        return ScoredRecords(
            model.scores(scored.compared), scored.usable, scored.unit, model, scored.compared, scored.kept
        )

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


def _learnt(order: Ints, scores: Floats, found: int, known: KnownPairs, candidates: int) -> MatchCurve:
    """Return the curve of a ranking after labels; labelled pairs that are not ranked say nothing about it."""
    curve = MatchCurve(scores, found)
    rank = np.full(candidates, -1, np.int64)
    rank[order] = np.arange(len(order))
    there = rank[known.places] >= 0
    curve.learn(rank[known.places[there]], known.match[there])
    return curve


def _rule(single: tuple[bool, bool]) -> str:
    """Return the rule in words, where labels have shown that records have several partners."""
    if not any(single):
        return "labels show several partners: every pair above the threshold"
    return f"labels show several partners: one for each record of the {'first' if single[0] else 'second'} table"
