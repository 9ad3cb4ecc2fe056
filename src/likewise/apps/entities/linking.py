"""`link`: from tables to matches. Read, block, compare, learn, decide (§3.8.1–3.8.3)."""

from __future__ import annotations

import os
import time
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa

from likewise.apps.entities.blocking import Candidates, block, completeness
from likewise.apps.entities.comparing import Compared, compare
from likewise.apps.entities.deciding import Decision, cluster, decide_pairs, keepers
from likewise.apps.entities.fields import Field, Floats, Ints, wanted
from likewise.apps.entities.learning import Model, chance, learn, nearest_first, train, weights_of
from likewise.apps.entities.points import Tables, score_pairs
from likewise.apps.entities.records import Records, labelled_pairs, records_of
from likewise.apps.entities.terms import Hashed, Weighted, all_codes, hashed, joined
from likewise.arrays import to_arrow
from likewise.errors import ParameterError
from likewise.parallel import check_threads
from likewise.write import write_json, write_table

POINTS = 10 / np.log(10)
"""Points for each unit of log-odds: ten points make the odds ten times as good."""

LOWEST = -10.0
"""No pair of less is a match: odds of one to ten."""

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

    def examples(self, n: int = 3) -> list[Example]:
        """Return up to n pairs just above the threshold and n just below it, highest scores first."""
        above = [one for one in self._near if one[1]][:n]
        below = [one for one in self._near if not one[1]][:n]
        rows = [*above[::-1], *below]
        return [Example(s, match, self._records.row(i), self._records.row(j)) for s, match, i, j in rows]

    def save(self, directory: str | os.PathLike[str]) -> list[Path]:
        """Write matches.parquet, clusters.parquet (for one table) and link.json; return their paths."""
        folder = Path(directory)
        folder.mkdir(parents=True, exist_ok=True)
        paths = [folder / "matches.parquet"]
        write_table(self.matches, paths[0])
        if self.clusters is not None:
            paths.append(folder / "clusters.parquet")
            write_table(self.clusters, paths[-1])
        paths.append(folder / "link.json")
        write_json(self.stats, paths[-1])
        return paths


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
    tables: words that stand for each other (`names.Table`), for all kinds or by kind, instead of the built-in ones.

    >>> people = {"name": ["Ann Lee", "Bo Diaz", "Cy Wu"], "born": ["1990-01-02", "1985-07-30", "1970-05-05"]}
    >>> others = {"name": ["Bo Diaz", "Ann Leigh", "Ed Poe"], "born": ["1985-07-30", "1990-01-02", "1969-12-01"]}
    >>> found = link(people, others)
    >>> sorted(zip(found.matches["id_a"].to_pylist(), found.matches["id_b"].to_pylist()))
    [(0, 1), (1, 0)]
    """
    _check(threshold, one_to_one, b, weights, training)
    threads = check_threads("link", threads)
    tell = progress or (lambda stage: None)
    clock = _Clock()

    tell("reading")
    records = records_of(a, b, id, wanted(fields))
    known = None if truth is None else labelled_pairs(truth, records, "truth")
    labels = None if training is None else labelled_pairs(training, records, "training")
    clock.lap("reading")

    tell("blocking")
    codes = all_codes(records.fields)
    grams = joined([hashed(one.folded, True) for one in records.fields])
    words = joined([hashed(one.folded, False) for one in records.fields])
    candidates, rows = block(records.fields, records.border, codes, grams, seed)
    if labels is not None:
        candidates = _with(candidates, labels[0], len(codes))
    clock.lap("blocking")

    tell("comparing")
    space = _Space(records, codes, words, rows, threads, tables)
    scored = _scored(space, candidates, weights, labels, seed)
    clock.lap("comparing and learning")

    tell("deciding")
    cut = None if threshold is None else threshold / scored.unit
    if records.border:
        lowest = -np.inf if scored.model is None else LOWEST / POINTS
        decision = decide_pairs(
            candidates.left, candidates.right, scored.value, scored.usable, len(codes), cut, one_to_one, lowest
        )
        pairs, groups = candidates.left[decision.chosen], None
        pairs = np.stack([pairs, candidates.right[decision.chosen]], axis=1)
        parts = {name: points[decision.chosen] for name, points in scored.points.items()}
        totals = scored.value[decision.chosen]
    else:
        decision, groups = _one_table(records, candidates, scored, cut)
        pairs, totals, parts = _within(space, candidates, scored, groups)
    clock.lap("deciding")

    stats = _stats(records, candidates, scored, decision, pairs, known, clock)
    matches = _matches(records, pairs, totals * scored.unit, parts)
    clusters = None if groups is None else _clusters(records, groups)
    compared = (candidates.left, candidates.right, scored.value * scored.unit)
    return Linked(matches, clusters, stats, _near(candidates, scored, decision), records, compared)


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


@dataclass(frozen=True)
class _Space:
    """All that comparing pairs needs."""

    records: Records
    codes: Ints
    words: Hashed
    rows: Weighted | None
    threads: int
    tables: Tables

    def compare(self, left: Ints, right: Ints) -> tuple[list[Compared], Floats]:
        return compare(self.records.fields, self.codes, self.words, self.rows, left, right, self.threads, self.tables)


@dataclass(frozen=True)
class _Scored:
    """Scores of the candidates in natural logarithms (with a model) or in points (with weights), and of each field."""

    value: Floats
    usable: Any
    points: dict[str, Floats]
    unit: float
    model: Model | None
    compared: list[Compared]
    weights: Mapping[str, float] | None


def _scored(
    space: _Space, candidates: Candidates, weights: Mapping[str, float] | None, labels: Any, seed: int
) -> _Scored:
    left, right = candidates.left, candidates.right
    if weights is not None:
        value, points = _pointed(space.records.fields, left, right, weights, space.tables)
        return _Scored(value, np.ones(len(left), bool), points, 1.0, None, [], weights)
    compared, evidence = space.compare(left, right)
    model = learn(compared, nearest_first(compared, left, right, len(space.codes)), seed)
    if labels is not None:
        keys = left * len(space.codes) + right
        chosen = np.searchsorted(keys, labels[0][:, 0] * len(space.codes) + labels[0][:, 1])
        model = train(compared, model, chosen, labels[1])
    value = model.scores(compared)
    usable = _enough(space.records, value, evidence)
    points = {one.name: model.of(one) * POINTS for one in compared}
    return _Scored(value, usable, points, POINTS, model, compared, None)


def _enough(records: Records, value: Floats, evidence: Floats) -> Any:
    """Tell which pairs could be matches at all: what they have in common is rarer than matches are among all pairs."""
    if len(records.fields) == 1:
        return np.ones(len(value), bool)
    n, border = records.count, records.border
    pairs = border * (n - border) if border else n * (n - 1) / 2
    matches = float(chance(value).sum())
    matches = max(1.0, min(matches, min(border, n - border)) if border else matches)
    return evidence - np.log(pairs / matches) >= 0


def _pointed(
    fields: list[Field], left: Ints, right: Ints, weights: Mapping[str, float], tables: Tables
) -> tuple[Floats, dict[str, Floats]]:
    def side(one: Field, rows: Ints) -> Any:
        values = np.array([*one.values, None], object)
        return values[one.codes[rows]]

    kinds = {one.name: "text" if one.kind == "tokens" else one.kind for one in fields}
    columns = [{one.name: side(one, rows) for one in fields} for rows in (left, right)]
    total, points = score_pairs(columns[0], columns[1], kinds, weights, tables=tables)
    scaled = {name: np.nan_to_num(some) * weights.get(name, 1.0) for name, some in points.items()}
    return total, scaled


def _with(candidates: Candidates, pairs: Ints, records: int) -> Candidates:
    keys = np.concatenate([candidates.left * records + candidates.right, pairs[:, 0] * records + pairs[:, 1]])
    keys = np.unique(keys)
    return Candidates(keys // records, keys % records, candidates.ways, candidates.notes)


def _one_table(records: Records, candidates: Candidates, scored: _Scored, cut: float | None) -> tuple[Decision, Ints]:
    if cut is None:
        cut = (
            0.0
            if scored.model is not None
            else 100 * sum((scored.weights or {}).get(f.name, 1) for f in records.fields) * 0.6
        )
    value = np.where(scored.usable, scored.value, np.minimum(scored.value, cut - 1))
    labels = cluster(records.count, candidates.left, candidates.right, value, cut)
    chosen = np.flatnonzero(labels[candidates.left] == labels[candidates.right])
    return Decision(chosen, cut, None, "clusters by average linkage"), labels


def _within(
    space: _Space, candidates: Candidates, scored: _Scored, labels: Ints
) -> tuple[Ints, Floats, dict[str, Floats]]:
    """Return all pairs inside clusters, with scores; those that were no candidates are compared now."""
    left, right = candidates.left, candidates.right
    same = np.flatnonzero(labels[left] == labels[right])
    pairs = np.stack([left[same], right[same]], axis=1)
    order = np.argsort(labels, kind="stable")
    sizes = np.bincount(labels, minlength=len(labels))
    expected = int((sizes * (sizes - 1) // 2).sum())
    parts = {name: points[same] for name, points in scored.points.items()}
    if expected == len(same):
        return pairs, scored.value[same], parts
    starts = np.cumsum(sizes) - sizes
    every = [order[s : s + n] for s, n in zip(starts[sizes > 1], sizes[sizes > 1], strict=True)]
    all_pairs = np.concatenate([np.stack([g[i] for i in np.triu_indices(len(g), 1)], axis=1) for g in every])
    n = space.records.count
    missed = np.setdiff1d(all_pairs[:, 0] * n + all_pairs[:, 1], pairs[:, 0] * n + pairs[:, 1])
    more = np.stack([missed // n, missed % n], axis=1)
    if scored.model is None:
        value, points = _pointed(space.records.fields, more[:, 0], more[:, 1], scored.weights or {}, space.tables)
    else:
        compared, _ = space.compare(more[:, 0], more[:, 1])
        value = scored.model.scores(compared)
        points = {one.name: scored.model.of(one) * POINTS for one in compared}
    joined_parts = {name: np.concatenate([parts[name], points[name]]) for name in parts}
    return np.concatenate([pairs, more]), np.concatenate([scored.value[same], value]), joined_parts


def _matches(records: Records, pairs: Ints, scores: Floats, parts: dict[str, Floats]) -> pa.Table:
    order = np.lexsort((pairs[:, 1], pairs[:, 0], -scores))
    columns = {"id_a": records.names(pairs[order, 0]), "id_b": records.names(pairs[order, 1])}
    columns["score"] = to_arrow(np.round(scores[order], 4))
    for name, points in parts.items():
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


def _near(candidates: Candidates, scored: _Scored, decision: Decision) -> list[tuple[float, bool, int, int]]:
    chosen = np.zeros(len(candidates), bool)
    chosen[decision.chosen] = True
    above = decision.chosen[np.argsort(scored.value[decision.chosen], kind="stable")[:20]]
    below = np.flatnonzero(~chosen & (scored.value < decision.threshold))
    below = below[np.argsort(-scored.value[below], kind="stable")[:20]]
    rows = [*above.tolist(), *below.tolist()]
    left, right = candidates.left, candidates.right
    return [(float(scored.value[i] * scored.unit), bool(chosen[i]), int(left[i]), int(right[i])) for i in rows]


def _stats(
    records: Records,
    candidates: Candidates,
    scored: _Scored,
    decision: Decision,
    pairs: Ints,
    known: Any,
    clock: _Clock,
) -> dict[str, Any]:
    border, n = records.border, records.count
    stats: dict[str, Any] = {
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
