"""What a run of `link` says about itself in run.json: method, counts, details."""

from __future__ import annotations

from typing import Any

import numpy as np

from likewise.apps.link.agreement import ALL_TEXT
from likewise.apps.link.blocking import RecordPairs
from likewise.apps.link.decision import Decision
from likewise.apps.link.matched_pairs import MatchedPairs
from likewise.apps.link.model import chance, weights_of
from likewise.apps.link.mutual_best import ExpectedMatches
from likewise.apps.link.records import RecordTable
from likewise.apps.link.rules import KnownPairs
from likewise.apps.link.scoring import POINTS, ScoredRecords
from likewise.apps.link.training import Lesson, Teacher
from likewise.apps.link.validation import Floats, Validation
from likewise.base.arrays import Ints
from likewise.base.runlog import RunLog
from likewise.base.words import counted

MOST_MISSING = 0.1
"""No F1 is stated if more than this part of the values are missing."""

ERROR = 0.02
"""Standard deviation of the stated F1 from the true one beside chance, over the collections of benchmarks/link.py."""

WIDTH = 1.645
"""Standard deviations to either side of the F1: nine of ten are within."""


BARS = 40
"""Ranges of scores that are counted."""


def explain_method(log: RunLog, weights: Any, few: int | None, alike: bool = False) -> None:
    """Note which method scores the pairs, and why; `few` is the number of candidates if they are too few.

    `alike` if they are scored by their likeness.
    """
    if weights is not None:
        log.method = {"asked": "points", "taken": "points", "why": "weights are given"}
    elif few is not None:
        verb = "is" if few == 1 else "are"
        why = f"{counted(few, 'candidate')} {verb} too few to learn from: every field has 100 points"
        log.method = {"asked": "auto", "taken": "points", "why": why}
        log.notes.append(why)
    elif alike:
        why = "one text field: nothing else distinguishes matches from other pairs, so there is nothing to learn from"
        log.method = {"asked": "auto", "taken": "likeness", "why": why}
    else:
        log.method = {"asked": "auto", "taken": "fellegi-sunter", "why": "no weights are given"}


def count(
    log: RunLog, records: RecordTable, candidates: RecordPairs, matched: MatchedPairs, groups: Ints | None
) -> None:
    """Note the numbers of records, candidates, matches and clusters."""
    log.counts["records"] = records.count
    if records.border:
        log.counts |= {"records_a": records.border, "records_b": records.count - records.border}
    log.counts |= {"candidates": len(candidates), "matches": len(matched.pairs)}
    if groups is not None:
        sizes = np.bincount(groups)
        log.counts |= {"clusters": int((sizes > 1).sum()), "clustered": int(sizes[sizes > 1].sum())}


def detail(
    log: RunLog, records: RecordTable, candidates: RecordPairs, scored: ScoredRecords, decision: Decision
) -> None:
    """Note what was found out about the tables, what was learned, and how it was decided."""
    log.details |= {
        "id": records.id,
        "fields": {one.name: one.kind for one in records.fields},
        "columns": {
            one.name: {"b": one.other} | ({} if one.shared is None else {"shared": round(one.shared, 4)})
            for one in records.columns
        },
        "candidates_by": candidates.ways,
        "rule": decision.rule,
        "threshold": round(float(decision.threshold * scored.unit), 4),
    }
    if not records.columns:
        del log.details["columns"]
    if scored.model is not None:
        weights = weights_of(scored.model, scored.compared)
        log.details["points"] = {
            "all_text" if name == ALL_TEXT else name: {"disagree": low, "agree": high}
            for name, (low, high) in weights.items()
        }
        log.details["prior"] = round(float(scored.model.prior * POINTS), 2)
        log.details["em_rounds"] = scored.model.rounds
        _note_related(log, scored)
    if decision.expected_f1 is not None and scored.matches is not None and _complete(records):
        log.details["expected_f1"] = round(decision.expected_f1, 4)
        log.details["expected_f1_range"] = f1_range(decision.expected_f1, scored.matches)


def count_scores(log: RunLog, scores: Floats, matched: Floats) -> None:
    """Note how many candidates, and how many matches, have which scores."""
    known = scores[np.isfinite(scores)]
    if not len(known):
        return
    both = np.concatenate([known, matched])
    low, high = float(both.min()), float(both.max())
    edges = np.linspace(low, high if high > low else low + 1.0, BARS + 1)
    log.details["scores"] = {
        "edges": [round(float(edge), 4) for edge in edges],
        "candidates": np.histogram(known, edges)[0].tolist(),
        "matches": np.histogram(matched, edges)[0].tolist(),
    }


def _note_related(log: RunLog, scored: ScoredRecords) -> None:
    """Note how many candidates are expected to be related but no matches, by the fields that tell."""
    assert scored.model is not None
    matches = float(chance(scored.value).sum()) if scored.model.related else 0.0
    found = {", ".join(names): matches * float(np.exp(odds)) for names, odds in scored.model.related.items()}
    if found:
        log.details["related"] = {names: round(count, 1) for names, count in found.items()}
    for names, count in found.items():
        log.notes.append(
            f"{names}: about {count:,.0f} candidates agree in everything else as matches do, and here no more "
            f"than by chance; they are treated as related records, such as volumes of a set or people of a household"
        )


def _complete(records: RecordTable) -> bool:
    """Return whether few values are missing: a match whose values are missing is not seen, and not missed either."""
    present = sum(one.present for one in records.fields)
    return present >= (1 - MOST_MISSING) * records.count * len(records.fields)


def f1_range(expected: float, matches: ExpectedMatches) -> list[float]:
    """Return the lowest and the highest F1 in nine of ten cases."""
    part = matches.deviation / max(1.0, matches.matches)
    reach = WIDTH * float(np.hypot(part / 2, ERROR))
    return [round(max(0.0, expected - reach), 4), round(min(1.0, expected + reach), 4)]


def describe_validation(log: RunLog, column: str, validation: Validation, plotted: bool) -> None:
    """Note the means from which the fractions of true matches follow; the fractions are a table of their own."""
    log.details["validation"] = {
        "column": column,
        "mean_of_true_matches": validation.true,
        "mean_of_random_pairs": validation.random,
        "confidence": validation.confidence,
    }
    if not plotted:
        log.notes.append("validation.png is left out: plots need Matplotlib (pip install 'likewise[plot]')")


def describe_labels(
    log: RunLog, teacher: Teacher, lesson: Lesson, known: KnownPairs, answered: int, asked: bool
) -> None:
    """Note how many labels there are, and the quality and the number of matches before and after."""
    before, after = teacher.matches(None), teacher.matches(lesson)
    labels: dict[str, Any] = {"pairs": len(known.places), "matching": int(known.match.sum())}
    if asked:
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
