"""Training on labelled pairs: the weight of each field, and the score from which on pairs are matches.

Training starts from the model that was learned without labels. Labels change the weight of each field, by
logistic regression that is regularised towards it, and they set the threshold (`MatchCurve`); the rule, one to one or
not, remains unless labels contradict it.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, replace
from typing import Any

import numpy as np

from likewise.apps.link.best_partners import ranked_pairs
from likewise.apps.link.blocking import RecordPairs
from likewise.apps.link.decision import Decision, KnownPairs, MatchRules
from likewise.apps.link.fields import Floats
from likewise.apps.link.further_copies import FurtherCopies
from likewise.apps.link.labels import Ask, LabelFile, LabelledPairs, LinkQuality, MatchCurve, Question
from likewise.apps.link.model import scores_of, train
from likewise.apps.link.records import RecordTable
from likewise.apps.link.scored_records import ScoredRecords
from likewise.base.arrays import Ints
from likewise.base.runlog import RunLog
from likewise.base.words import counted
from likewise.errors import ParameterError

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


FIRST = (0.2, 0.6, 0.9, 1.1, 1.5, 3.0)
"""Where the first questions are, as multiples of the number of matches found without labels: some of each kind, so that
precision and recall can be estimated."""

EVERY = 5
"""Answers after which the model is trained again; the probabilities along the ranking change with every answer."""


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

    @property
    def pairs(self) -> tuple[Ints, Ints]:
        """The records of the candidates."""
        return self._rules.candidates.left, self._rules.candidates.right

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

    def describe(self, log: RunLog, lesson: Lesson, known: KnownPairs, answered: int | None) -> None:
        """Note how many labels there are, and the quality and the number of matches before and after."""
        before, after = self.matches(None), self.matches(lesson)
        labels: dict[str, Any] = {"pairs": len(known.places), "matching": int(known.match.sum())}
        if answered is not None:
            labels["answered"] = answered
        if lesson.before is not None and lesson.after is not None:
            labels |= {"before": lesson.before.as_dict(), "after": lesson.after.as_dict()}
        labels |= {"added": len(np.setdiff1d(after, before)), "removed": len(np.setdiff1d(before, after))}
        log.details["labels"] = labels
        given = len(known.places)
        if log.method is not None and given:
            log.method["why"] += f"; {counted(given, 'labelled pair')} {'is' if given == 1 else 'are'} given"
        if given and not known.both:
            kind = "match" if known.match.all() else "do not match"
            log.notes.append(
                f"all labelled pairs {kind}: neither weights nor a threshold follow from them; label some that "
                f"{'do not' if known.match.all() else 'do'}"
            )

    def _trained(self, known: KnownPairs) -> ScoredRecords:
        scored = self._scored
        if scored.model is None:
            return scored
        added = np.sum([np.zeros(len(scored.value)), *scored.added.values()], axis=0)
        model = train(scored.compared, scored.model, known.places, known.match, PULL, added[known.places])
        return replace(scored, value=scores_of(model, scored.compared) + added, model=model)

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


class Asker:
    """Asks about candidates until there are enough answers, and learns from them in between."""

    def __init__(self, teacher: Teacher, whole: RecordTable, further: FurtherCopies, seed: int) -> None:
        self._teacher, self._whole, self._further = teacher, whole, further
        self._dice = np.random.default_rng(seed)

    def answered(self, known: KnownPairs, ask: Ask, most: int, file: LabelFile | None) -> KnownPairs:
        """Return the labels known so far and up to `most` that `ask` gives; each is written at once."""
        places, match = known.places.tolist(), known.match.tolist()
        for number, (place, score) in enumerate(self._questions(places, match, len(places) + most, most)):
            left, right = (int(self._further.kept[side[place]]) for side in self._teacher.pairs)
            id_a, id_b = (self._whole.names(np.array([row]))[0].as_py() for row in (left, right))
            names = tuple(one.name for one in self._whole.fields)
            question = Question(
                number + 1, most, id_a, id_b, self._whole.row(left), self._whole.row(right), score, names
            )
            try:
                answer = ask(question)
            except StopIteration:
                break
            if answer is None:
                continue
            if not isinstance(answer, bool | np.bool_):
                raise ParameterError.of("link", "ask", "a function that returns True, False or None", answer)
            places.append(place)
            match.append(bool(answer))
            if file is not None:
                file.add(id_a, id_b, bool(answer))
        return KnownPairs(np.array(places, np.int64), np.array(match, bool))

    def _questions(self, places: list[int], match: list[bool], enough: int, most: int) -> Iterator[tuple[int, float]]:
        """Yield candidates and their scores; the lists grow by the answers meanwhile."""
        known = KnownPairs(np.array(places, np.int64), np.array(match, bool))
        ranking = self._teacher.ranked(known)
        curve = ranking.curve
        if curve is None:
            return
        begun, asked = len(places), set(places)
        first = [] if begun >= len(FIRST) else list(FIRST)
        free = ~np.isin(ranking.order, places)
        while len(places) < enough and len(asked) < begun + 2 * most:
            place = self._stratum(first, free) if first else None
            if place is None:
                some = curve.ask(free)
                if not len(some):
                    return
                place = int(self._dice.choice(some))
            free[place] = False
            chosen = int(ranking.order[place])
            asked.add(chosen)
            before = len(places)
            yield chosen, float(ranking.scored.value[chosen] * ranking.scored.unit)
            if len(places) == before:
                continue
            curve.learn(np.array([place]), np.array([match[-1]]))
            if (len(places) - begun) % EVERY == 0 and not first:
                ranking = self._teacher.ranked(KnownPairs(np.array(places, np.int64), np.array(match, bool)))
                assert ranking.curve is not None
                curve = ranking.curve
                free = ~np.isin(ranking.order, list(asked))

    def _stratum(self, first: list[float], free: Any) -> int | None:
        """Return a pair of the next stratum of the start, None if it has none that is free."""
        found = max(1, len(self._teacher.before.chosen))
        middle = first.pop(0)
        low, high = sorted(min(len(free), int(found * middle * part)) for part in (0.8, 1.2))
        some = np.flatnonzero(free[low : high + 1]) + low
        return int(self._dice.choice(some)) if len(some) else None
