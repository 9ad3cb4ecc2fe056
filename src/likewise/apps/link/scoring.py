"""Scoring: from candidate pairs to scores, learnt from the data or by the points of the chapter (§3.8.2)."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any, Protocol

import numpy as np
from numpy.typing import NDArray

from likewise.apps.link.comparing import Compared, Comparing
from likewise.apps.link.fields import Field, Floats, Ints
from likewise.apps.link.learning import Model, chance, learn, nearest_first, train
from likewise.apps.link.people import persons
from likewise.apps.link.points import Tables, score_pairs
from likewise.apps.link.records import Records

POINTS = 10 / np.log(10)
"""Points for each unit of log-odds: ten points make the odds ten times as good."""

Labels = tuple[Ints, NDArray[np.bool_]]


@dataclass(frozen=True)
class Scored:
    """Scores of pairs, in natural logarithms with a model and in points without, and which pairs could be matches.

    `unit` makes points of a score. The points of each field are kept, or follow from the comparison by the model.
    """

    value: Floats
    usable: NDArray[np.bool_]
    unit: float
    model: Model | None = None
    compared: list[Compared] = field(default_factory=list)
    kept: dict[str, Floats] = field(default_factory=dict)

    def points(self, chosen: Ints) -> dict[str, Floats]:
        """Return the points of each field for some of the pairs."""
        if self.model is None:
            return {name: points[chosen] for name, points in self.kept.items()}
        return {one.name: self.model.of(one.part(chosen)) * POINTS for one in self.compared}


class Scorer(Protocol):
    """What gives pairs of records their scores: the candidates first, from which it may learn, then any others."""

    def first(self, left: Ints, right: Ints) -> Scored:
        """Score the candidates."""

    def others(self, left: Ints, right: Ints, before: Scored) -> Scored:
        """Score further pairs as the candidates were."""


class Weighing:
    """The score of the chapter: 100 points a field, less a penalty for edits, times the weight of the field."""

    def __init__(self, fields: list[Field], weights: Mapping[str, float], tables: Tables = None) -> None:
        self._fields, self._weights, self._tables = fields, weights, tables

    @property
    def most(self) -> float:
        """The points of identical records."""
        return 100 * sum(self._weights.get(one.name, 1.0) for one in self._fields)

    def first(self, left: Ints, right: Ints) -> Scored:
        """Score the candidates."""
        kinds = {one.name: "text" if one.kind == "tokens" else one.kind for one in self._fields}
        columns = [{one.name: self._side(one, rows) for one in self._fields} for rows in (left, right)]
        total, points = score_pairs(columns[0], columns[1], kinds, self._weights, tables=self._tables)
        kept = {name: np.nan_to_num(some) * self._weights.get(name, 1.0) for name, some in points.items()}
        return Scored(total, np.ones(len(left), bool), 1.0, kept=kept)

    def others(self, left: Ints, right: Ints, before: Scored) -> Scored:
        """Score further pairs."""
        return self.first(left, right)

    def _side(self, one: Field, rows: Ints) -> Any:
        values = np.array([*one.values, None], object)
        return values[one.codes[rows]]


class Learning:
    """Scores learnt from the data: the logarithms of the odds that pairs match (Fellegi and Sunter, by EM)."""

    def __init__(
        self,
        records: Records,
        comparing: Comparing,
        labels: Labels | None = None,
        seed: int = 1,
        one_to_one: bool | None = None,
    ) -> None:
        self._records, self._comparing, self._labels, self._seed = records, comparing, labels, seed
        self._single = bool(records.border) and one_to_one is not False

    def first(self, left: Ints, right: Ints) -> Scored:
        """Learn from the candidates, and score them. Labelled pairs must be among them."""
        n = self._records.count
        compared, evidence = self._comparing.compare(left, right)
        start = nearest_first(compared, left, right, n)
        people = persons(compared, start)
        model = learn(compared, start, people.apart, self._seed, (left, right) if self._single else None)
        if self._labels is not None:
            pairs, labels = self._labels
            chosen = np.searchsorted(left * n + right, pairs[:, 0] * n + pairs[:, 1])
            model = train(compared, model, chosen, labels)
        value = model.scores(compared)
        usable = self._enough(value, evidence)
        if people.own:
            usable &= ~people.strangers(compared, chance(value))
        return Scored(value, usable, POINTS, model, compared)

    def others(self, left: Ints, right: Ints, before: Scored) -> Scored:
        """Score further pairs with what was learnt."""
        assert before.model is not None
        compared, _ = self._comparing.compare(left, right)
        value = before.model.scores(compared)
        return Scored(value, np.ones(len(left), bool), POINTS, before.model, compared)

    def _enough(self, value: Floats, evidence: Floats) -> NDArray[np.bool_]:
        """Tell which pairs have enough in common: what is rarer than matches are among all pairs."""
        if len(self._records.fields) == 1:
            return np.ones(len(value), bool)
        n, border = self._records.count, self._records.border
        pairs = border * (n - border) if border else n * (n - 1) / 2
        matches = float(chance(value).sum())
        matches = max(1.0, min(matches, min(border, n - border)) if border else matches)
        enough: NDArray[np.bool_] = evidence >= np.log(pairs / matches)
        return enough
