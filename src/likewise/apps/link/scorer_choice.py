"""Which scores separate matches best: points, a model learned from the data, or the likeness of texts."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace

import numpy as np

from likewise.apps.link import synonyms
from likewise.apps.link.emphasis import SURE, Partners
from likewise.apps.link.likeness import LikenessScorer, fits
from likewise.apps.link.records import RecordTable
from likewise.apps.link.report import explain_method
from likewise.apps.link.scoring import Comparison, ModelScorer, PointScorer, ScoredRecords, Scorer
from likewise.apps.link.several_texts import TELLING, TextsScorer
from likewise.apps.link.synonyms import Nicknames
from likewise.apps.link.terms import WeightedTerms
from likewise.base.arrays import Ints
from likewise.base.runlog import RunLog
from likewise.jobs.settings import Resources

FEW = 15
"""Nothing is learned from fewer candidates than this; they are scored in points."""


class ScorerChoice:
    """The way in which the candidates of one run are scored, and their scores.

    compared: as for `ModelScorer`. alike: the scores are a likeness. usual: the threshold if none is given; None finds
    the one with the best expected F1.
    """

    def __init__(
        self,
        records: RecordTable,
        rows: WeightedTerms | None,
        weights: Mapping[str, float] | None,
        one_to_one: bool | None,
        words: Nicknames,
        resources: Resources,
        seed: int,
        compared: Comparison | None = None,
    ) -> None:
        self._records, self._rows, self._weights, self._words = records, rows, weights, words
        self._one_to_one, self._resources, self._seed = one_to_one, resources, seed
        self._compared = compared
        self.alike = False
        self.usual: float | None = None
        self.scorer: Scorer = PointScorer(records.fields, weights or {}, words)

    def first(self, left: Ints, right: Ints, log: RunLog, labelled: bool) -> ScoredRecords:
        """Choose, and score the candidates; labels are learned from later, with a model if there are several fields."""
        records, rows = self._records, self._rows
        few = self._weights is None and len(left) < FEW
        learned = self._weights is None and not few
        single = learned and self._one_to_one is not False
        self.alike = single and fits(records, rows)
        explain_method(log, self._weights, len(left) if few else None, self.alike)
        if self.alike and rows is not None:
            self.scorer = LikenessScorer(records, rows)
        elif learned:
            fields = records.fields
            if self._words is not None and all(one.long for one in fields if one.kind in synonyms.KINDS):
                log.notes.append(
                    "nicknames have no effect: fields of several words are compared by the terms they share"
                )
            threads, budget = self._resources.threads, self._resources.budget
            model = ModelScorer(
                records, rows, self._seed, self._one_to_one, self._words, threads, budget, self._compared
            )
            scored = model.first(left, right, log)
            self.scorer, self.usual = model, None if records.border else model.usual
            other = self._by_texts(model, scored, left, right, log) if single and not labelled else None
            if other is None and model.emphasis is not None:
                name, weight = model.emphasis.name, model.emphasis.weight
                log.details["emphasised"] = {"field": name, "weight": weight}
                log.notes.append(f"{name} gets more weight than in the model: more matches are found that way")
            return scored if other is None else other
        self.usual = self.scorer.usual if few or not records.border else None
        return self.scorer.first(left, right, log)

    def _by_texts(
        self, model: ModelScorer, scored: ScoredRecords, left: Ints, right: Ints, log: RunLog
    ) -> ScoredRecords | None:
        """Return the scores by the likeness of texts if more matches can be expected of them than of the model."""
        if model.inside is None or scored.matches is None:
            return None
        texts = TextsScorer.of(self._records, left, right, self._seed)
        if texts is None:
            return None
        inside = model.inside
        partners = Partners(self._records, left, right, inside)
        found, flags = partners.matches(texts.alike(left, right), texts.alike(inside.left, inside.right))
        moved = int(np.count_nonzero(flags != model.mutual))
        if found.matches <= scored.matches.matches + SURE * scored.matches.error(moved):
            return None
        self.scorer, self.alike = texts, True
        log.method = {"asked": "auto", "taken": "likeness", "why": TELLING.format(texts.main)}
        return replace(texts.first(left, right, log), matches=found)
