"""Scores of pairs of records: what they mean in points, what they say of probability, and what was learned for them."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field, replace

import numpy as np
from numpy.typing import NDArray

from likewise.apps.link.agreement import ALL_TEXT, Agreement
from likewise.apps.link.fields import Floats
from likewise.apps.link.model import MatchModel, chance, weights_of
from likewise.apps.link.mutual_best import ExpectedMatches
from likewise.base.arrays import Ints
from likewise.base.runlog import RunLog

POINTS = 10 / np.log(10)
"""Points per unit of log-odds: ten points more make the odds ten times as high."""


@dataclass(frozen=True)
class ScoredRecords:
    """Scores of pairs, in log-odds with a model and in points without, and which pairs can be matches (`usable`).

    `unit` is the number of points per unit of the scores. The points of each field are in `kept` or follow from the
    agreement of the fields and the model; `added` are those of an emphasised text, by name. `matches` are those
    that can be expected, if their number was estimated, and `by_chance` the strengths of best partners that are none,
    if they were counted inside the tables. `least_evidence` is what a usable pair needs, `strict` whether
    few pairs were searched for values in the wrong field.
    """

    value: Floats
    usable: NDArray[np.bool_]
    unit: float
    model: MatchModel | None = None
    compared: Sequence[Agreement] = ()
    kept: dict[str, Floats] = field(default_factory=dict)
    added: dict[str, Floats] = field(default_factory=dict)
    matches: ExpectedMatches | None = None
    by_chance: Floats | None = None
    least_evidence: float | None = None
    strict: bool = False

    @property
    def is_probability(self) -> bool:
        """Whether the scores are log-odds: how often records that agree in one field match is learned from another."""
        return self.model is not None and len({*self.model.weights} - {ALL_TEXT}) > 1

    @property
    def probable(self) -> Floats:
        """The probabilities that pairs match by themselves, whatever their rivals; NaN if the scores do not say it."""
        return chance(self.value) if self.is_probability else np.full(len(self.value), np.nan)

    @property
    def slim(self) -> ScoredRecords:
        """The scores without the agreement of all candidates, which is large."""
        return replace(self, compared=(), kept={}, added={})

    def points(self, chosen: Ints) -> dict[str, Floats]:
        """Return the points of each field for some of the pairs."""
        if self.model is None:
            return {name: points[chosen] for name, points in self.kept.items()}
        parts = self.model.parts([one.part(chosen) for one in self.compared])
        more = {name: added[chosen] for name, added in self.added.items()}
        return {name: (part + more.get(name, 0.0)) * POINTS for name, part in parts.items()}

    def describe(self, log: RunLog) -> None:
        """Note what was learned: the points of each field, and how many candidates are related but no matches."""
        model = self.model
        if model is None:
            return
        log.details["points"] = {
            "all_text" if name == ALL_TEXT else name: {"disagree": low, "agree": high}
            for name, (low, high) in weights_of(model, self.compared).items()
        }
        log.details |= {"prior": round(float(model.prior * POINTS), 2), "em_rounds": model.rounds}
        matches = float(chance(self.value).sum()) if model.related else 0.0
        related = {", ".join(names): matches * float(np.exp(odds)) for names, odds in model.related.items()}
        if related:
            log.details["related"] = {names: round(count, 1) for names, count in related.items()}
        for names, count in related.items():
            log.notes.append(
                f"{names}: about {count:,.0f} candidates agree in everything else as matches do, and here no more "
                f"than by chance; they are treated as related, such as volumes of a set or people of a household"
            )


@dataclass(frozen=True)
class LearnedScores:
    """What an earlier run learned, by which further records are scored; see `ScoredRecords`."""

    model: MatchModel
    least_evidence: float | None
    strict: bool
