"""From candidate pairs to scores: a model learned from the data, the likeness of one text, or points (MMDS §3.8.2)."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import cached_property, partial
from typing import Any, Protocol

import numpy as np
import pyarrow as pa

from likewise.apps.link import synonyms
from likewise.apps.link.agreement import Agreement, FieldAgreement
from likewise.apps.link.chance_model import Households, households, learn_anchored, mostly_short, random_pairs
from likewise.apps.link.comparison import MANY, Compared, FieldComparer
from likewise.apps.link.evidence import most_evidence
from likewise.apps.link.fields import Field, Floats
from likewise.apps.link.model import (
    ROUNDS,
    MatchModel,
    chance,
    doubts,
    learn,
    misleading,
    nearest_first,
    odd,
    scores_of,
)
from likewise.apps.link.mutual_best import (
    SAMPLE,
    Emphasis,
    Partners,
    emphasised,
    first_smaller,
    likeness,
    neighbours,
)
from likewise.apps.link.points import FULL, score_pairs
from likewise.apps.link.records import RecordTable
from likewise.apps.link.scored_records import POINTS, LearnedScores, ScoredRecords
from likewise.apps.link.synonyms import Nicknames
from likewise.apps.link.terms import WeightedTerms
from likewise.base.arrays import Ints
from likewise.base.memory import UNLIMITED, Budget
from likewise.base.runlog import RunLog
from likewise.base.words import counted
from likewise.kernels import linking as kernels

LOWEST = -20.0 / POINTS
"""Least log-odds of a match, however far ahead of its rivals: odds of one to a hundred."""

PART = 0.25
"""Part of an emphasised likeness by which the least score of a match is lower: its points are no log-odds."""

GOOD = 0.6
"""Fraction of the points of identical records from which on two records are a match, without a threshold."""

FEW = 15
"""Nothing is learned from fewer candidates than this; they are scored in points."""

RIVAL = 1.0
"""Part of the distance to the best partner of the record of the larger table that is deducted from a likeness: that
record more probably belongs to the other."""

UNIT = 10.0
"""Points per unit of a likeness, of which identical values have UNIT: scores are 0 to 100 points."""

TAKEN = {
    "candidates": "fellegi-sunter",
    "random pairs": "fellegi-sunter, random pairs",
    "usual": "fellegi-sunter, nothing learned of matches",
}
"""Names of the ways to learn, in the order in which they are tried unless the fields are short."""

TEXTS = ("text", "tokens", "name", "address")
"""Kinds of fields that are scored by likeness if there is no other field."""

MOST_KEPT = 0.75
"""Part of the fields that are kept, at least, if misleading ones are left out; with more, the model is not believed."""

DOUBTFUL = "matches are doubtful: {}; check them, give labelled pairs, or choose the fields"
SHORT_WHY = "one table of short fields: chance agreement is counted in random pairs"
ONE_TEXT = "one text field: nothing else distinguishes matches from other pairs, so there is nothing to learn from"
NO_NICKNAMES = "nicknames have no effect: fields of several words are compared by the terms they share"
Comparison = Callable[[Ints, Ints, Callable[[], Compared]], Compared]
"""Called with pairs and the function that compares them; it returns what is known of them, or what that returns."""


@dataclass(frozen=True)
class ScoringTask:
    """The records whose candidates are scored, and how.

    terms: of the records, in small tables. weights: of fields, if they are given. remember: for the agreement of the
    candidates, which an interrupted run may have found already. learned: in an earlier run, instead of from these.
    """

    records: RecordTable
    terms: WeightedTerms | None = None
    weights: Mapping[str, float] | None = None
    one_to_one: bool | None = None
    nicknames: Nicknames = None
    threads: int = 1
    budget: Budget = UNLIMITED
    seed: int = 1
    remember: Comparison = lambda left, right, compare: compare()
    learned: LearnedScores | None = None

    @property
    def single(self) -> bool:
        """Whether there are two tables, of which a record may have at most one match."""
        return bool(self.records.border) and self.one_to_one is not False


class Scorer(Protocol):
    """Scores pairs of records: first the candidates, from which it may learn, then any others.

    `usual` is the threshold if none is given; None finds the one with the best expected F1. `lowest` is the least score
    of a match between two tables. `alike`: the scores are a likeness.
    """

    usual: float | None
    lowest: float
    alike: bool

    def first(self, left: Ints, right: Ints, log: RunLog) -> ScoredRecords:
        """Score the candidates."""

    def others(self, left: Ints, right: Ints, before: ScoredRecords) -> ScoredRecords:
        """Score further pairs in the same way."""


def scored_candidates(task: ScoringTask, left: Ints, right: Ints, log: RunLog) -> tuple[Scorer, ScoredRecords]:
    """Choose how to score the candidates, and score them.

    In points if weights are given or there is nothing to learn from; by the likeness of the one text of two tables;
    otherwise by a model.
    """
    scorer: Scorer
    fields = task.records.fields
    if task.weights is not None:
        log.method = {"asked": "points", "taken": "points", "why": "weights are given"}
        scorer = PointScorer(task, None if task.records.border else GOOD)
    elif task.learned is not None:
        scorer = ModelScorer(task)
    elif len(left) < FEW:
        verb = "is" if len(left) == 1 else "are"
        why = f"{counted(len(left), 'candidate')} {verb} too few to learn from: every field has 100 points"
        log.method = {"asked": "auto", "taken": "points", "why": why}
        log.notes.append(why)
        scorer = PointScorer(task, GOOD)
    elif task.single and task.terms is not None and len(fields) == 1 and fields[0].kind in TEXTS:
        log.method = {"asked": "auto", "taken": "likeness", "why": ONE_TEXT}
        scorer = LikenessScorer(task, task.terms)
    else:
        if task.nicknames is not None and all(one.long for one in fields if one.kind in synonyms.KINDS):
            log.notes.append(NO_NICKNAMES)
        scorer = ModelScorer(task)
    return scorer, scorer.first(left, right, log)


class PointScorer:
    """Scores in points: 100 per field, less a penalty for edits, times the weight of the field (MMDS §3.8.2).

    good: the fraction of the points of identical records that a match has without a threshold.
    """

    lowest = -np.inf
    alike = False

    def __init__(self, task: ScoringTask, good: float | None) -> None:
        self._fields, self._weights, self._nicknames = task.records.fields, task.weights or {}, task.nicknames
        whole = FULL * sum(self._weights.get(one.name, 1.0) for one in self._fields)
        self.usual = None if good is None else good * whole

    def first(self, left: Ints, right: Ints, log: RunLog) -> ScoredRecords:
        """Score the candidates."""
        with log.stage("compare_fields", len(left)):
            return self.others(left, right)

    def others(self, left: Ints, right: Ints, before: ScoredRecords | None = None) -> ScoredRecords:
        """Score further pairs."""
        kinds = {one.name: "text" if one.kind == "tokens" else one.kind for one in self._fields}
        columns = [{one.name: self._side(one, rows) for one in self._fields} for rows in (left, right)]
        total, points = score_pairs(columns[0], columns[1], kinds, self._weights, nicknames=self._nicknames)
        kept = {name: np.nan_to_num(some) * self._weights.get(name, 1.0) for name, some in points.items()}
        return ScoredRecords(total, np.ones(len(left), bool), 1.0, kept=kept)

    def _side(self, one: Field, rows: Ints) -> Any:
        codes = one.codes[rows]
        return one.texts.take(pa.array(codes, mask=codes < 0)).to_pylist()


class LikenessScorer:
    """Scores by the terms that the values of a single text share, weighted by rarity (TF-IDF): 0 to 100 points.

    With one field nothing else tells matches from other pairs, so that a model learned by EM would only restate the
    similarity, in steps and with ties. The likeness is continuous, and which pairs are matches follows from how far the
    best partner of a record is ahead of the next.
    """

    usual: float | None = None
    lowest = 0.0
    alike = True

    def __init__(self, task: ScoringTask, terms: WeightedTerms) -> None:
        self._task, self._records, self._terms = task, task.records, terms

    def first(self, left: Ints, right: Ints, log: RunLog) -> ScoredRecords:
        """Score the candidates; a record's distance to a better partner counts against a pair."""
        with log.stage("compare_fields", len(left)):
            side, other = (left, right) if first_smaller(self._records) else (right, left)
            scored = self._scored(self._less_rivals(self._alike(left, right), side, other))
        with log.stage("learn"):
            inside = neighbours(self._records, self._task.seed, self._task.threads, self._records.count)
            alike = self._alike(inside.left, inside.right)

            def strength(places: Ints, side: Ints, other: Ints) -> Floats:
                return self._scored(self._less_rivals(alike[places], side, other)).value

            return replace(scored, by_chance=inside.strengths(strength))

    def _alike(self, left: Ints, right: Ints) -> Floats:
        return likeness(self._records, self._records.fields, self._terms, left, right)

    def _less_rivals(self, alike: Floats, side: Ints, other: Ints) -> Floats:
        """Return likenesses less the distance to the best partner of the record of the larger table."""
        best = kernels.best_partners(side, other, alike, self._records.count)
        found: Floats = alike - RIVAL * (best[other] - alike)
        return found

    def others(self, left: Ints, right: Ints, before: ScoredRecords) -> ScoredRecords:
        """Score further pairs."""
        return self._scored(self._alike(left, right))

    def _scored(self, alike: Floats) -> ScoredRecords:
        value = np.maximum(alike, 0.0) * UNIT
        kept = {self._records.fields[0].name: value * UNIT}
        return ScoredRecords(value, np.ones(len(value), bool), UNIT, kept=kept)


class ModelScorer:
    """Scores learned from the data: the log-odds that pairs match (Fellegi and Sunter, by EM).

    `emphasis` is the text of two tables that counts more than in the model, if one does.
    """

    alike = False

    def __init__(self, task: ScoringTask) -> None:
        self._task, self._records = task, task.records
        self._strict = False
        self.emphasis: Emphasis | None = None
        self.usual = None if task.records.border else 0.0
        self.lowest = LOWEST

    @cached_property
    def _comparer(self) -> FieldComparer:
        task, records = self._task, self._records
        return FieldComparer(records.fields, task.terms, task.threads, task.nicknames, task.budget)

    def first(self, left: Ints, right: Ints, log: RunLog) -> ScoredRecords:
        """Learn from the candidates, and score them."""
        border, n, learned = self._records.border, self._records.count, self._task.learned
        self._strict = len(left) > MANY if learned is None else learned.strict
        with log.stage("compare_fields", len(left)) as tick:
            compare = partial(self._comparer.candidates, left, right, tick, self._strict)
            levels, alike = self._task.remember(left, right, compare)
            compared = self._comparer.kept(left, levels)
        if learned is not None:
            return self._usable(self._scored(learned.model, compared), left, right, learned.least_evidence)
        with log.stage("learn"):
            start = nearest_first(alike, left, right, n)
            del alike
            people = households(compared, start)
            short = not border and mostly_short(self._records.fields)
            random: list[FieldAgreement] = []
            why = SHORT_WHY if short else "no weights are given"
            for way in list(TAKEN)[1 if short else 0 :]:
                if way == "candidates":
                    model = self._from_candidates(compared, start, people, left, right)
                    scored = self._scored(model, compared)
                    scored = self._usable(scored, left, right, self._least_evidence(scored.value))
                else:
                    random = random or self._random()
                    model = self._from_random(compared, random, people, ROUNDS if way == "random pairs" else 0)
                    scored = self._scored(model, compared)
                log.method = {"asked": "auto", "taken": TAKEN[way], "why": why}
                if border:
                    return self._emphasised(scored, left, right, log)
                doubt = doubts(model, np.where(scored.usable, scored.value, -np.inf), left, right, n, self._task.seed)
                if doubt is None:
                    return scored
                why = f"what was learned from {way} is not plausible: {doubt}"
                log.notes.append(DOUBTFUL.format(doubt) if way == "usual" else why)
        return scored

    def _from_candidates(
        self, compared: Sequence[Agreement], start: Floats, people: Households, left: Ints, right: Ints
    ) -> MatchModel:
        """Return the model with chance agreement learned from the candidates; a few misleading fields are left out."""
        sides = (left, right) if self._task.single else None
        model = learn(compared, start, people.apart, self._task.seed, sides)
        wrong = misleading(model)
        if not wrong or 2 * len(wrong) >= len(self._records.fields):
            return model
        some = [one for one in compared if one.name not in wrong]
        return learn(some, start, people.apart, self._task.seed, sides)

    def _emphasised(self, scored: ScoredRecords, left: Ints, right: Ints, log: RunLog) -> ScoredRecords:
        """Return the scores with a text emphasised, if one deserves it, and the number of matches to be expected."""
        records, task = self._records, self._task
        if task.terms is None or not task.single or scored.model is None or not scored.usable.any():
            return scored
        inside = neighbours(records, task.seed, task.threads)
        compared = self._comparer.compare(inside.left, inside.right)
        scores = scored.model.scores([one for one in compared if one.name in scored.model.weights])
        partners = Partners(records, left[scored.usable], right[scored.usable], inside)
        self.emphasis, matches = emphasised(partners, scored.value[scored.usable], scores)
        scored = replace(scored, matches=matches)
        if self.emphasis is not None:
            name, weight = self.emphasis.name, self.emphasis.weight
            log.details["emphasised"] = {"field": name, "weight": weight}
            log.notes.append(f"{name} gets more weight than in the model: more matches are found that way")
            self.lowest = LOWEST - PART * weight
            more = self.emphasis.scores(records, left, right)
            scores = scores + self.emphasis.scores(records, inside.left, inside.right)
            scored = replace(scored, value=scored.value + more, added={name: more})
        if max(records.border, records.count - records.border) > SAMPLE:
            return scored
        if scored.least_evidence is not None:
            enough = most_evidence(records.fields, records.border, inside.left, inside.right) >= scored.least_evidence
            inside, scores = replace(inside, left=inside.left[enough], right=inside.right[enough]), scores[enough]
        return replace(scored, by_chance=inside.strengths(lambda places, side, other: scores[places]))

    def _random(self) -> list[FieldAgreement]:
        """Return random pairs; values in the wrong field are searched for in all of them, as chance puts them there."""
        left, right = random_pairs(self._records.count, self._records.border, self._task.seed)
        return self._comparer.compare(left, right, strict=False)

    def _from_random(
        self, compared: Sequence[Agreement], random: list[FieldAgreement], people: Households, rounds: int
    ) -> MatchModel:
        """Return the model with chance agreement counted in random pairs; a few misleading fields are left out."""
        n, task = self._records.count, self._task
        fields = self._records.fields
        while True:
            names = {one.name for one in fields}
            some = [one for one in compared if one.name in names]
            by_luck = [one for one in random if one.name in names]
            kinds = [kind for kind in people.kinds() if names.issuperset(kind)]
            model = learn_anchored(
                some, by_luck, fields, n * (n - 1) / 2, people.apart, kinds, rounds, task.seed, task.threads
            )
            wrong = {*misleading(model), *odd(model)}
            fields = [one for one in fields if one.name not in wrong]
            if not wrong or len(fields) < MOST_KEPT * len(self._records.fields):
                return model

    def _scored(self, model: MatchModel, compared: Sequence[Agreement]) -> ScoredRecords:
        """Return the scores of a model; all pairs are usable."""
        compared = [one for one in compared if one.name in model.weights]
        value = scores_of(model, compared, self._task.threads)
        return ScoredRecords(value, np.ones(len(value), bool), POINTS, model, compared, strict=self._strict)

    def _usable(self, scored: ScoredRecords, left: Ints, right: Ints, least: float | None) -> ScoredRecords:
        """Return the scores with those pairs usable that have the least evidence; None asks for none."""
        if least is None:
            return scored
        usable = most_evidence(self._records.fields, self._records.border, left, right) >= least
        return replace(scored, usable=usable, least_evidence=least)

    def others(self, left: Ints, right: Ints, before: ScoredRecords, as_candidates: bool = False) -> ScoredRecords:
        """Score further pairs with the model, or again some candidates, compared in the same way as all of them."""
        model, strict = before.model, self._strict if as_candidates else None
        assert model is not None
        compared = [one for one in self._comparer.compare(left, right, strict=strict) if one.name in model.weights]
        value = model.scores(compared)
        added: dict[str, Floats] = {}
        if self.emphasis is not None:
            added = {self.emphasis.name: self.emphasis.scores(self._records, left, right)}
            value += added[self.emphasis.name]
        return ScoredRecords(value, np.ones(len(left), bool), POINTS, model, compared, added=added)

    def _least_evidence(self, value: Floats) -> float | None:
        """Return the evidence that pairs need: full agreement would be rarer than a match is among all pairs.

        If chance agreement is counted in random pairs, it is in the prior how much is needed. One field needs none.
        """
        if len(self._records.fields) == 1:
            return None
        n, border = self._records.count, self._records.border
        pairs = border * (n - border) if border else n * (n - 1) / 2
        matches = float(chance(value).sum())
        matches = max(1.0, min(matches, min(border, n - border)) if border else matches)
        return float(np.log(pairs / matches))
