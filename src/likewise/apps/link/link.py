"""`link`: from tables to matches. Read, block, compare, learn, decide (§3.8.1–3.8.3)."""

from __future__ import annotations

import os
import time
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from importlib.metadata import version
from typing import Any

import numpy as np
import pyarrow as pa

from likewise.apps.link.blocking import Candidates, block, completeness
from likewise.apps.link.comparing import Comparing
from likewise.apps.link.deciding import Decision, cluster, decide_pairs, keepers
from likewise.apps.link.fields import Floats, Ints, wanted
from likewise.apps.link.learning import weights_of
from likewise.apps.link.points import Tables
from likewise.apps.link.records import NOT_COMPARED, Records, labelled_pairs, records_of
from likewise.apps.link.scoring import POINTS, Learning, Scored, Scorer, Weighing
from likewise.apps.link.validation import Validation, validate
from likewise.base import checks
from likewise.base.arrays import to_arrow
from likewise.errors import ParameterError
from likewise.io.publish import publish

GOOD = 0.6
"""Part of the points of identical records from which on two are a match, if nothing else is said."""

FEW = 15
"""From fewer candidates than these nothing is learnt: they are scored by the points of the chapter."""

LOWEST = -20.0
"""No pair of less is a match, however far ahead of its rivals: odds of one to a hundred."""

Progress = Callable[[str], None]


@dataclass(frozen=True)
class Example:
    """A pair near the threshold: its score, whether it counts as a match, and the two records."""

    score: float
    match: bool
    a: dict[str, Any]
    b: dict[str, Any]


@dataclass(frozen=True)
class Linked:
    """The matches, and how they were found.

    `matches` has id_a, id_b, score, and the points of every field, which with the points of a pair as such
    (stats["points of a pair"]) add up to the score. `clusters`, for one table, has id, cluster (the id of its keeper)
    and size.
    """

    matches: pa.Table
    clusters: pa.Table | None
    stats: dict[str, Any]
    _near: list[tuple[float, bool, int, int]] = field(repr=False)
    _records: Records = field(repr=False)
    _pairs: tuple[Ints, Ints, Floats] = field(repr=False)

    @property
    def scored(self) -> pa.Table:
        """All pairs that were compared: id_a, id_b, score."""
        left, right, scores = self._pairs
        columns = {"id_a": self._records.names(left), "id_b": self._records.names(right)}
        return pa.table({**columns, "score": to_arrow(scores)})

    def validate(self, column: str, bins: int = 20) -> Validation:
        """Return the fraction of true matches by score, from a column that `link` was told to do without (§3.8.3)."""
        if column in self.stats["fields"]:
            raise ParameterError.of("validate", "column", NOT_COMPARED, column)
        left, right, scores = self._pairs
        sides = (self._records.values(column, left), self._records.values(column, right))
        return validate(scores.tolist(), sides, bins=bins)

    def examples(self, n: int = 3) -> list[Example]:
        """Return up to n pairs just above the threshold and n just below it, highest scores first."""
        above = [one for one in self._near if one[1]][:n]
        below = [one for one in self._near if not one[1]][:n]
        rows = [*above[::-1], *below]
        return [Example(s, match, self._records.row(i), self._records.row(j)) for s, match, i, j in rows]

    def save(self, directory: str | os.PathLike[str]) -> None:
        """Write matches.parquet, clusters.parquet (for one table) and run.json, all or nothing."""
        validation = dict.fromkeys(("validation.parquet", "validation.png"))
        tables = {"matches.parquet": self.matches, "clusters.parquet": self.clusters}
        publish(directory, {**tables, **validation}, self.stats)


def link(
    a: Any,
    b: Any = None,
    *,
    id: str | None = None,
    fields: Mapping[str, str | None] | Sequence[str] | None = None,
    weights: Mapping[str, float] | None = None,
    threshold: float | None = None,
    one_to_one: bool | None = None,
    truth: Any = None,
    training: Any = None,
    without: str | None = None,
    tables: Tables = None,
    threads: int | None = None,
    seed: int = 1,
    progress: Progress | None = None,
) -> Linked:
    """Find the records of `a` and `b`, or of `a` alone, that stand for the same thing.

    a, b: paths of CSV, TSV, Parquet, JSON-lines or Arrow files, or tables of pyarrow, pandas or polars.
    id: the column that names a record. Without it, a first column called id (or ..._id) whose values all differ, or
    else the row number.
    fields: the columns to compare, with or without a kind ("phone:phone"). Without it, all that both tables have.
    weights: of fields. The score is then that of the chapter: 100 points a field, less a penalty for edits, times the
    weight. Without weights, what agreement is worth is learnt from the data (Fellegi and Sunter, by EM): a score of 0
    is even odds, and ten points more make the odds ten times as good.
    threshold: the score from which on a pair is a match. Without it, where the expected F1 is greatest.
    one_to_one: True for two clean tables; None lets the scores tell.
    truth: pairs known to match (id_a, id_b), all of them, to measure precision and recall.
    training: labelled pairs (id_a, id_b, match) to learn from; without a third column all of them match.
    without: a column that both tables have and that is not compared, so that it can tell how good the scores are
    (`Linked.validate`).
    tables: words that stand for each other (`names.Table`), for all kinds or by kind, instead of the built-in ones.

    >>> people = {"name": ["Ann Lee", "Bo Diaz", "Cy Wu"], "born": ["1990-01-02", "1985-07-30", "1970-05-05"]}
    >>> others = {"name": ["Bo Diaz", "Ann Leigh", "Ed Poe"], "born": ["1985-07-30", "1990-01-02", "1969-12-01"]}
    >>> found = link(people, others)
    >>> sorted(zip(found.matches["id_a"].to_pylist(), found.matches["id_b"].to_pylist()))
    [(0, 1), (1, 0)]
    """
    _check(threshold, one_to_one, b, weights, training)
    threads = checks.threads("link", threads)
    tell = progress or (lambda stage: None)
    clock = _Clock()

    tell("reading")
    records = records_of(a, b, id, wanted(fields), threads, without)
    known = None if truth is None else labelled_pairs(truth, records, "truth")
    labels = None if training is None else labelled_pairs(training, records, "training")
    clock.lap("reading")

    tell("blocking")
    candidates, rows = block(records.fields, records.border, seed, threads)
    if labels is not None:
        candidates = _with(candidates, labels[0], records.count)
    clock.lap("blocking")

    tell("comparing")
    scorer: Scorer
    few = weights is None and labels is None and len(candidates) < FEW
    if few:
        candidates.notes.append(f"{len(candidates)} candidates are too few to learn from: every field has 100 points")
    if weights is None and not few:
        comparing = Comparing(records.fields, rows, threads, tables)
        scorer = Learning(records, comparing, labels, seed, one_to_one)
        usual, lowest = 0.0, LOWEST / POINTS
    else:
        scorer = Weighing(records.fields, weights or {}, tables)
        usual, lowest = GOOD * scorer.most, -np.inf
    scored = scorer.first(candidates.left, candidates.right)
    clock.lap("comparing and learning")

    tell("deciding")
    cut = None if threshold is None else threshold / scored.unit
    left, right, groups = candidates.left, candidates.right, None
    if few and cut is None:
        cut = usual
    if records.border:
        decision = decide_pairs(left, right, scored.value, scored.usable, records.count, cut, one_to_one, lowest)
        matches = _chosen(candidates, scored, decision.chosen)
    else:
        cut = usual if cut is None else cut
        value = np.where(scored.usable, scored.value, np.minimum(scored.value, cut - 1))
        groups = cluster(records.count, left, right, value, cut)
        chosen = np.flatnonzero(groups[left] == groups[right])
        decision = Decision(chosen, cut, None, "clusters by average linkage")
        matches = _within(candidates, scored, scorer, groups)
    clock.lap("deciding")

    stats = _stats(records, candidates, scored, decision, matches.pairs, known, clock)
    clusters = None if groups is None else _clusters(records, groups)
    compared = (left, right, scored.value * scored.unit)
    near = _near(candidates, scored, decision)
    return Linked(_table(records, matches, scored.unit), clusters, stats, near, records, compared)


def _check(threshold: object, one_to_one: object, b: object, weights: object, training: object) -> None:
    if threshold is not None and (isinstance(threshold, bool) or not isinstance(threshold, int | float)):
        raise ParameterError.of("link", "threshold", "a number", threshold)
    if one_to_one is not None and not isinstance(one_to_one, bool):
        raise ParameterError.of("link", "one_to_one", "True, False or None", one_to_one)
    if one_to_one and b is None:
        raise ParameterError(
            "The 'one_to_one' parameter of link is for two tables. Give the second one, or leave it out."
        )
    if weights is not None and training is not None:
        raise ParameterError("The 'weights' and 'training' parameters of link exclude each other. Give one of them.")


@dataclass
class _Clock:
    laps: dict[str, float] = field(default_factory=dict)
    last: float = field(default_factory=time.perf_counter)

    def lap(self, name: str) -> None:
        now = time.perf_counter()
        self.laps[name] = round(now - self.last, 3)
        self.last = now


def _with(candidates: Candidates, pairs: Ints, records: int) -> Candidates:
    keys = np.concatenate([candidates.left * records + candidates.right, pairs[:, 0] * records + pairs[:, 1]])
    keys = np.unique(keys)
    return Candidates(keys // records, keys % records, candidates.ways, candidates.notes)


@dataclass(frozen=True)
class _Matches:
    pairs: Ints
    scores: Floats
    points: dict[str, Floats]


def _chosen(candidates: Candidates, scored: Scored, chosen: Ints) -> _Matches:
    pairs = np.stack([candidates.left[chosen], candidates.right[chosen]], axis=1)
    return _Matches(pairs, scored.value[chosen], scored.points(chosen))


def _within(candidates: Candidates, scored: Scored, scorer: Scorer, groups: Ints) -> _Matches:
    """Return all pairs inside clusters, with scores; those that were no candidates are compared now."""
    same = np.flatnonzero(groups[candidates.left] == groups[candidates.right])
    known = _chosen(candidates, scored, same)
    order = np.argsort(groups, kind="stable")
    sizes = np.bincount(groups, minlength=len(groups))
    starts = (np.cumsum(sizes) - sizes)[sizes > 2]
    inside = [order[start : start + size] for start, size in zip(starts, sizes[sizes > 2], strict=True)]
    if not inside:
        return known
    every = np.concatenate([np.stack([one[i] for i in np.triu_indices(len(one), 1)], axis=1) for one in inside])
    n = len(groups)
    missed = np.setdiff1d(every[:, 0] * n + every[:, 1], known.pairs[:, 0] * n + known.pairs[:, 1])
    if not len(missed):
        return known
    others = scorer.others(missed // n, missed % n, scored)
    points = others.points(np.arange(len(missed)))
    return _Matches(
        np.concatenate([known.pairs, np.stack([missed // n, missed % n], axis=1)]),
        np.concatenate([known.scores, others.value]),
        {name: np.concatenate([some, points[name]]) for name, some in known.points.items()},
    )


def _table(records: Records, matches: _Matches, unit: float) -> pa.Table:
    first, second = matches.pairs[:, 0], matches.pairs[:, 1]
    order = np.lexsort((second, first, -matches.scores))
    columns = {"id_a": records.names(first[order]), "id_b": records.names(second[order])}
    columns["score"] = to_arrow(np.round(matches.scores[order] * unit, 4))
    for name, points in matches.points.items():
        columns[f"points_{name.replace(' ', '_')}"] = to_arrow(np.round(points[order], 4))
    return pa.table(columns)


def _clusters(records: Records, labels: Ints) -> pa.Table:
    filled = np.sum([one.codes >= 0 for one in records.fields], axis=0)
    keeper = keepers(labels, filled)
    sizes = np.bincount(labels, minlength=len(labels))[labels]
    members = np.flatnonzero(sizes > 1)
    members = members[np.lexsort((members, keeper[members]))]
    return pa.table(
        {
            "id": records.names(members),
            "cluster": records.names(keeper[members]),
            "size": to_arrow(sizes[members].astype(np.int64)),
        }
    )


def _near(candidates: Candidates, scored: Scored, decision: Decision) -> list[tuple[float, bool, int, int]]:
    chosen = np.zeros(len(candidates), bool)
    chosen[decision.chosen] = True
    above = decision.chosen[scored.value[decision.chosen] >= decision.threshold]
    above = above[np.argsort(scored.value[above], kind="stable")[:20]]
    below = np.flatnonzero(~chosen & (scored.value < decision.threshold))
    below = below[np.argsort(-scored.value[below], kind="stable")[:20]]
    rows = [*above.tolist(), *below.tolist()]
    left, right = candidates.left, candidates.right
    return [(float(scored.value[i] * scored.unit), bool(chosen[i]), int(left[i]), int(right[i])) for i in rows]


def _stats(
    records: Records,
    candidates: Candidates,
    scored: Scored,
    decision: Decision,
    pairs: Ints,
    known: Any,
    clock: _Clock,
) -> dict[str, Any]:
    border, n = records.border, records.count
    stats: dict[str, Any] = {
        "likewise": version("likewise"),
        "command": "link",
        "records": [border, n - border] if border else [n],
        "id": records.id,
        "fields": {one.name: one.kind for one in records.fields},
        "candidates": len(candidates),
        "candidates by": candidates.ways,
        "method": "points" if scored.model is None else "Fellegi-Sunter",
        "rule": decision.rule,
        "threshold": round(float(decision.threshold * scored.unit), 4),
        "matches": len(pairs),
        "notes": [*records.notes, *candidates.notes],
    }
    if scored.model is not None:
        stats["points of disagreement and agreement"] = weights_of(scored.model, scored.compared)
        stats["points of a pair"] = round(float(scored.model.prior * POINTS), 2)
        stats["rounds of EM"] = scored.model.rounds
    if decision.expected_f1 is not None:
        stats["expected f1"] = round(decision.expected_f1, 4)
    if known is not None:
        true = known[0][known[1]]
        right = len(np.intersect1d(pairs[:, 0] * n + pairs[:, 1], true[:, 0] * n + true[:, 1]))
        stats["completeness"] = round(completeness(candidates, true, n), 6)
        stats["precision"] = round(right / max(1, len(pairs)), 6)
        stats["recall"] = round(right / max(1, len(true)), 6)
        stats["f1"] = round(2 * right / max(1, len(pairs) + len(true)), 6)
    stats["seconds"] = dict(clock.laps)
    return stats
