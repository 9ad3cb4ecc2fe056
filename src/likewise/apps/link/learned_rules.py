"""What a run of one table decides by, in its folder: fields, model and threshold, for the records of later runs."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from likewise.apps.link.agreement import ALL_TEXT
from likewise.apps.link.fields import Field, MissingValues, make_field, without_values
from likewise.apps.link.model import MatchModel
from likewise.apps.link.pair_reason import LinkageTrace
from likewise.apps.link.scored_records import LearnedScores
from likewise.errors import IncompatibleError
from likewise.io.seals import read_sealed
from likewise.io.write import write_json

MODEL = "model.json"
AGAIN = "run link on all records again"
VERSION = 1
"""Version of the file: of the levels of agreement, and of how a score follows from them."""


@dataclass(frozen=True)
class FieldRule:
    """How the values of a column become a field: its kind, how many words they have, and values that mean none."""

    kind: str
    words: float
    placeholders: list[str]

    def made(self, name: str, column: pa.ChunkedArray, missing: Sequence[str]) -> Field:
        """Return the field of a column."""
        field = replace(make_field(name, column, self.kind, MissingValues(tuple(missing))), words=self.words)
        places = pc.index_in(pa.array(self.placeholders, pa.string()), field.texts).drop_null()
        return without_values(field, places.to_numpy().astype(np.int64)) if len(places) else field


@dataclass(frozen=True)
class LearnedRules:
    """The fields that are compared, what was learned of them (None: points by `weights`), and the threshold.

    The threshold is in units of the scores: log-odds, or points.
    """

    fields: dict[str, FieldRule]
    weights: dict[str, float] | None
    learned: LearnedScores | None
    threshold: float

    @classmethod
    def of(cls, trace: LinkageTrace, weights: Mapping[str, float] | None) -> LearnedRules:
        """Return the rules of a run that has ended."""
        records, scored = trace.records, trace.scored
        fields = {
            one.name: FieldRule(one.kind, one.words, records.placeholders.get(one.name, [])) for one in records.fields
        }
        if scored.model is None:
            return cls(fields, dict(weights or {}), None, float(trace.decision.threshold))
        learned = LearnedScores(scored.model, scored.least_evidence, scored.strict)
        return cls(fields, None, learned, float(trace.decision.threshold))

    @property
    def all_text(self) -> bool:
        """Whether the terms of whole records are compared."""
        return self.learned is not None and ALL_TEXT in self.learned.model.weights

    def write(self, path: Path) -> None:
        """Write them as JSON."""
        fields = {
            name: {"kind": one.kind, "words": one.words, "placeholders": one.placeholders}
            for name, one in self.fields.items()
        }
        whole: dict[str, Any] = {"version": VERSION, "fields": fields, "threshold": self.threshold}
        if self.learned is None:
            write_json({**whole, "weights": self.weights}, path)
            return
        model = self.learned.model
        whole["learned"] = {
            "levels": {name: logs.tolist() for name, logs in model.weights.items()},
            "rarity": {name: float(value) for name, value in model.rarity.items()},
            "prior": float(model.prior),
            "rounds": model.rounds,
            "shares": {name: float(value) for name, value in model.shares.items()},
            "related": [{"fields": list(names), "odds": float(odds)} for names, odds in model.related.items()],
            "least_evidence": self.learned.least_evidence,
            "strict": self.learned.strict,
        }
        write_json(whole, path)

    @classmethod
    def load(cls, path: Path) -> LearnedRules:
        """Read them; raise if that is not possible."""
        whole, _ = read_sealed(path, AGAIN)
        if whole.get("version") != VERSION:
            raise IncompatibleError(f"{path}: it was written by another version of likewise; {AGAIN}")
        return cls._of(whole)

    @classmethod
    def _of(cls, whole: dict[str, Any]) -> LearnedRules:
        fields = {
            name: FieldRule(str(one["kind"]), float(one["words"]), [str(value) for value in one["placeholders"]])
            for name, one in whole["fields"].items()
        }
        threshold = float(whole["threshold"])
        if "learned" not in whole:
            return cls(fields, _numbers(whole["weights"]), None, threshold)
        some = whole["learned"]
        levels = {name: np.array(logs, np.float64) for name, logs in some["levels"].items()}
        related = {tuple(one["fields"]): float(one["odds"]) for one in some["related"]}
        rarity, shares, least = _numbers(some["rarity"]), _numbers(some["shares"]), some["least_evidence"]
        model = MatchModel(levels, rarity, float(some["prior"]), int(some["rounds"]), shares, related)
        learned = LearnedScores(model, None if least is None else float(least), bool(some["strict"]))
        return cls(fields, None, learned, threshold)


def _numbers(values: Mapping[str, Any]) -> dict[str, float]:
    return {str(name): float(value) for name, value in values.items()}
