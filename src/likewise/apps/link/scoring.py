"""From candidate pairs to scores: a model learned from the data, or points per field (MMDS §3.8.2)."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field, replace
from functools import partial
from typing import Any, Protocol

import numpy as np
import pyarrow as pa
from numpy.typing import NDArray

from likewise.apps.link.agreement import MANY, Compared, FieldAgreement, FieldComparer
from likewise.apps.link.anchored import learn_anchored, mostly_short, random_pairs
from likewise.apps.link.emphasis import Emphasis, Partners, emphasised
from likewise.apps.link.fields import Field, Floats
from likewise.apps.link.households import Households, households
from likewise.apps.link.model import ROUNDS, MatchModel, chance, learn, nearest_first
from likewise.apps.link.mutual_best import ChancePartners, ExpectedMatches
from likewise.apps.link.neighbours import neighbours
from likewise.apps.link.plausibility import doubts, misleading
from likewise.apps.link.points import FULL, score_pairs
from likewise.apps.link.records import RecordTable
from likewise.apps.link.synonyms import Nicknames
from likewise.apps.link.terms import WeightedTerms
from likewise.base.arrays import Ints
from likewise.base.memory import UNLIMITED, Budget
from likewise.base.runlog import RunLog

POINTS = 10 / np.log(10)
"""Points per unit of log-odds: ten points more make the odds ten times as high."""

LOWEST = -20.0 / POINTS
"""Least log-odds of a match, however far ahead of its rivals: odds of one to a hundred."""

PART = 0.25
"""Part of an emphasised likeness by which the least score of a match is lower: its points are no log-odds."""

GOOD = 0.6
"""Fraction of the points of identical records from which on two records are a match, without a threshold."""

TAKEN = {
    "candidates": "fellegi-sunter",
    "random pairs": "fellegi-sunter, random pairs",
    "usual": "fellegi-sunter, nothing learned of matches",
}
"""Names of the ways to learn, in the order in which they are tried unless the fields are short."""

DOUBTFUL = "matches are doubtful: {}; check them, give labelled pairs, or choose the fields"
Comparison = Callable[[Ints, Ints, Callable[[], Compared]], Compared]
"""Called with pairs and the function that compares them; it returns what is known of them, or what that returns."""

SHORT_WHY = "one table of short fields: chance agreement is counted in random pairs"


@dataclass(frozen=True)
class ScoredRecords:
    """Scores of pairs, in log-odds with a model and in points without, and which pairs can be matches (`usable`).

    `unit` is the number of points per unit of the scores. The points of each field are in `kept` or follow from the
    agreement of the fields and the model; `added` are those of an emphasised text, by name. `matches` are those
    that can be expected, if their number was estimated.
    """

    value: Floats
    usable: NDArray[np.bool_]
    unit: float
    model: MatchModel | None = None
    compared: list[FieldAgreement] = field(default_factory=list)
    kept: dict[str, Floats] = field(default_factory=dict)
    added: dict[str, Floats] = field(default_factory=dict)
    matches: ExpectedMatches | None = None

    def points(self, chosen: Ints) -> dict[str, Floats]:
        """Return the points of each field for some of the pairs."""
        if self.model is None:
            return {name: points[chosen] for name, points in self.kept.items()}
        parts = self.model.parts([one.part(chosen) for one in self.compared])
        found = {name: part * POINTS for name, part in parts.items()}
        for name, more in self.added.items():
            found[name] = found[name] + more[chosen] * POINTS
        return found


class Scorer(Protocol):
    """Scores pairs of records: first the candidates, from which it may learn, then any others.

    `usual` is the threshold of matches within one table, `lowest` the least score of a match between two.
    """

    @property
    def usual(self) -> float:
        """The threshold if none is given."""

    @property
    def lowest(self) -> float:
        """The least score of a match."""

    def first(self, left: Ints, right: Ints, log: RunLog) -> ScoredRecords:
        """Score the candidates."""

    def others(self, left: Ints, right: Ints, before: ScoredRecords) -> ScoredRecords:
        """Score further pairs in the same way."""


class PointScorer:
    """Scores in points: 100 per field, less a penalty for edits, times the weight of the field (MMDS §3.8.2)."""

    def __init__(self, fields: list[Field], weights: Mapping[str, float], nicknames: Nicknames = None) -> None:
        self._fields, self._weights, self._nicknames = fields, weights, nicknames
        self.usual = GOOD * (FULL * sum(weights.get(one.name, 1.0) for one in fields))
        self.lowest = -np.inf

    def first(self, left: Ints, right: Ints, log: RunLog) -> ScoredRecords:
        """Score the candidates."""
        with log.stage("compare_fields", len(left)):
            return self._scored(left, right)

    def others(self, left: Ints, right: Ints, before: ScoredRecords) -> ScoredRecords:
        """Score further pairs."""
        return self._scored(left, right)

    def _scored(self, left: Ints, right: Ints) -> ScoredRecords:
        kinds = {one.name: "text" if one.kind == "tokens" else one.kind for one in self._fields}
        columns = [{one.name: self._side(one, rows) for one in self._fields} for rows in (left, right)]
        total, points = score_pairs(columns[0], columns[1], kinds, self._weights, nicknames=self._nicknames)
        kept = {name: np.nan_to_num(some) * self._weights.get(name, 1.0) for name, some in points.items()}
        return ScoredRecords(total, np.ones(len(left), bool), 1.0, kept=kept)

    def _side(self, one: Field, rows: Ints) -> Any:
        codes = one.codes[rows]
        return one.texts.take(pa.array(codes, mask=codes < 0)).to_pylist()


class ModelScorer:
    """Scores learned from the data: the log-odds that pairs match (Fellegi and Sunter, by EM).

    `compared` may know how the fields of the candidates agree, and otherwise calls the function that compares them.
    If the number of matches was estimated: `inside` are the pairs inside the tables by which, `mutual` says of each
    record whether its best partner is mutual, and `emphasis` is the text that counts more, if one does.
    """

    def __init__(
        self,
        records: RecordTable,
        rows: WeightedTerms | None,
        seed: int = 1,
        one_to_one: bool | None = None,
        nicknames: Nicknames = None,
        threads: int = 1,
        budget: Budget = UNLIMITED,
        compared: Comparison | None = None,
    ) -> None:
        self._budget = budget
        self._compared = compared
        self._records, self._rows, self._seed = records, rows, seed
        self._single = bool(records.border) and one_to_one is not False
        self._nicknames, self._threads = nicknames, threads
        self._comparer: FieldComparer | None = None
        self.emphasis: Emphasis | None = None
        self.inside: ChancePartners | None = None
        self.mutual: Ints | None = None
        self._strict = False
        self.usual = 0.0
        self.lowest = LOWEST

    def first(self, left: Ints, right: Ints, log: RunLog) -> ScoredRecords:
        """Learn from the candidates, and score them."""
        n = self._records.count
        self._strict = len(left) > MANY
        with log.stage("compare_fields", len(left)) as tick:
            self._comparer = FieldComparer(
                self._records.fields,
                self._rows,
                self._threads,
                self._nicknames,
                self._budget,
                self._records.border,
            )
            compare = partial(self._comparer.compare, left, right, tick)
            compared, evidence = compare() if self._compared is None else self._compared(left, right, compare)
        with log.stage("learn"):
            start = nearest_first(compared, left, right, n)
            people = households(compared, start)
            short = not self._records.border and mostly_short(self._records.fields)
            ways = ("random pairs", "usual") if short else ("candidates", "random pairs", "usual")
            random: list[FieldAgreement] = []
            why = SHORT_WHY if short else "no weights are given"
            for way in ways:
                if way == "candidates":
                    model = self._from_candidates(compared, start, people, left, right)
                    found = self._scored(model, compared, evidence, people)
                else:
                    random = random or self._random()
                    model = self._anchored(compared, random, people, ROUNDS if way == "random pairs" else 0)
                    found = self._scored(model, compared, None, people)
                log.method = {"asked": "auto", "taken": TAKEN[way], "why": why}
                if self._records.border:
                    return self._emphasised(found, left, right)
                doubt = doubts(model, np.where(found.usable, found.value, -np.inf), left, right, n, seed=self._seed)
                if doubt is None:
                    return found
                why = f"what was learned from {way} is not plausible: {doubt}"
                log.notes.append(DOUBTFUL.format(doubt) if way == "usual" else why)
        return found

    def _from_candidates(
        self, compared: list[FieldAgreement], start: Floats, people: Households, left: Ints, right: Ints
    ) -> MatchModel:
        """Return the model with chance agreement learned from the candidates; a few misleading fields are left out."""
        sides = (left, right) if self._single else None
        model = learn(compared, start, people.apart, self._seed, sides)
        wrong = misleading(model)
        if not wrong or 2 * len(wrong) >= len(self._records.fields):
            return model
        some = [one for one in compared if one.name not in wrong]
        return learn(some, start, people.apart, self._seed, sides)

    def _emphasised(self, found: ScoredRecords, left: Ints, right: Ints) -> ScoredRecords:
        """Return the scores with a text emphasised, if one deserves it, and the number of matches to be expected."""
        records = self._records
        if self._rows is None or not self._single or found.model is None or not found.usable.any():
            return found
        assert self._comparer is not None
        inside = neighbours(records, self._seed, self._threads)
        compared = self._comparer.compare(inside.left, inside.right)[0]
        scores = found.model.scores([one for one in compared if one.name in found.model.weights])
        kept = inside.clean(scores)
        partners = Partners(records, left[found.usable], right[found.usable], inside.part(kept))
        self.emphasis, matches, self.mutual = emphasised(partners, found.value[found.usable], scores[kept])
        self.inside = partners.inside
        if self.emphasis is None:
            return replace(found, matches=matches)
        self.lowest = LOWEST - PART * self.emphasis.weight
        more = self.emphasis.scores(records, left, right)
        return replace(found, value=found.value + more, added={self.emphasis.name: more}, matches=matches)

    def _random(self) -> list[FieldAgreement]:
        """Return random pairs; values in the wrong field are searched for in all of them, as chance puts them there."""
        assert self._comparer is not None
        left, right = random_pairs(self._records.count, self._records.border, self._seed)
        return self._comparer.compare(left, right, strict=False)[0]

    def _anchored(
        self, compared: list[FieldAgreement], random: list[FieldAgreement], people: Households, rounds: int
    ) -> MatchModel:
        """Return the model with chance agreement counted in random pairs."""
        n = self._records.count
        pairs = n * (n - 1) / 2
        return learn_anchored(
            compared,
            random,
            self._records.fields,
            pairs,
            people.apart,
            people.kinds(),
            rounds,
            self._seed,
            self._threads,
        )

    def _scored(
        self, model: MatchModel, compared: list[FieldAgreement], evidence: Floats | None, people: Households
    ) -> ScoredRecords:
        """Return the scores of a model; without evidence, it is in the prior how much of it is needed."""
        compared = [one for one in compared if one.name in model.weights]
        value = model.scores(compared)
        usable = np.ones(len(value), bool) if evidence is None else self._enough(value, evidence)
        if people.own:
            usable &= ~people.strangers(compared, chance(value))
        return ScoredRecords(value, usable, POINTS, model, compared)

    def others(self, left: Ints, right: Ints, before: ScoredRecords) -> ScoredRecords:
        """Score further pairs with the model."""
        assert before.model is not None
        assert self._comparer is not None
        found, _ = self._comparer.compare(left, right)
        compared = [one for one in found if one.name in before.model.weights]
        return self.with_model(before.model, compared, left, right)

    def with_model(self, model: MatchModel, compared: list[FieldAgreement], left: Ints, right: Ints) -> ScoredRecords:
        """Score pairs whose fields were compared, with what an emphasised text adds."""
        value = model.scores(compared)
        added: dict[str, Floats] = {}
        if self.emphasis is not None:
            added = {self.emphasis.name: self.emphasis.scores(self._records, left, right)}
            value += added[self.emphasis.name]
        return ScoredRecords(value, np.ones(len(left), bool), POINTS, model, compared, added=added)

    def agreement(self, left: Ints, right: Ints) -> list[FieldAgreement]:
        """Return how the fields of pairs agree, compared in the same way as those of the candidates."""
        assert self._comparer is not None
        return self._comparer.compare(left, right, strict=self._strict)[0]

    def _enough(self, value: Floats, evidence: Floats) -> NDArray[np.bool_]:
        """Return which pairs have enough evidence: full agreement would be rarer than a match is among all pairs."""
        if len(self._records.fields) == 1:
            return np.ones(len(value), bool)
        n, border = self._records.count, self._records.border
        pairs = border * (n - border) if border else n * (n - 1) / 2
        matches = float(chance(value).sum())
        matches = max(1.0, min(matches, min(border, n - border)) if border else matches)
        enough: NDArray[np.bool_] = evidence >= np.log(pairs / matches)
        return enough
