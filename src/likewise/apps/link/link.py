"""`link`: from tables to matches. Read, block, compare, learn, decide (MMDS §3.8.1–3.8.3)."""

from __future__ import annotations

import os
from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np

from likewise.apps.link import synonyms
from likewise.apps.link.blocking import block, completeness
from likewise.apps.link.captured import estimated_completeness
from likewise.apps.link.columns import check_columns
from likewise.apps.link.decision import Decision, decide_alike, decide_pairs
from likewise.apps.link.entities import cluster
from likewise.apps.link.fields import Floats, wanted
from likewise.apps.link.further_copies import FurtherCopies
from likewise.apps.link.labels import labelled_pairs, quality
from likewise.apps.link.likeness import LikenessScorer, fits
from likewise.apps.link.matched import chosen_pairs, pairs_within
from likewise.apps.link.parameters import check_fields, check_parameters, named
from likewise.apps.link.records import records_of
from likewise.apps.link.report import count, describe_validation, detail, explain_method
from likewise.apps.link.result import (
    Links,
    can_plot,
    clusters_table,
    matches_table,
    near_threshold,
    validated,
)
from likewise.apps.link.scoring import ModelScorer, PointScorer, Scorer
from likewise.apps.link.several_texts import TELLING, TextsScorer
from likewise.apps.link.synonyms import Synonyms, chosen_synonyms
from likewise.apps.link.validation import BINS, Validation
from likewise.apps.link.window import Window, check_windows, labelled_within, within
from likewise.base import checks
from likewise.base.arrays import Ints
from likewise.base.runlog import Progress, RunLog, run_json
from likewise.errors import InputError, ParameterError
from likewise.io.read.find import notes_on
from likewise.jobs.settings import Resources

FEW = 15
"""Nothing is learnt from fewer candidates than this; they are scored in points."""


def link(
    a: Any,
    b: Any = None,
    *,
    id: str | None = None,
    fields: Mapping[str, str | None] | Sequence[str] | None = None,
    columns: Mapping[str, str | None] | None = None,
    weights: Mapping[str, float] | None = None,
    threshold: float | None = None,
    one_to_one: bool | None = None,
    window: Mapping[str, tuple[float, float]] | None = None,
    validate: str | None = None,
    true: float | None = None,
    truth: Any = None,
    training: Any = None,
    nicknames: str | os.PathLike[str] | Sequence[Any] | Mapping[str, Synonyms] | Synonyms | None = None,
    threads: int | None = None,
    memory: str | int | None = None,
    seed: int = 1,
    progress: Progress | None = None,
) -> Links:
    """Find the records of `a` and `b`, or of `a` alone, that are the same entity (entity resolution, record linkage).

    a, b: paths of CSV, TSV, Parquet, JSON-lines or Arrow files, or tables of pyarrow, pandas or polars.
    id: the column of ids. Without it, a first column called id (or ..._id) with unique values, or else row numbers.
    fields: the columns to compare, with or without a kind ("phone:phone"). Without it, all that both tables have.
    columns: for two tables: columns of b by the columns of a that hold the same under another name: {"cast": "actors"}.
    Several are one if joined by +, as in {"name": "first+last"}; None is no column. Other columns with different names
    are compared if they share enough words (notes say which).
    weights: by field. The score is then in points: 100 per field, less a penalty for edits, times the weight of the
    field, 1 by default (MMDS §3.8.2). Without weights, the weight of agreement is learnt from the data (Fellegi–Sunter
    model, by EM): a score of 0 is even odds, and ten points more make the odds ten times as high.
    threshold: the least score of a match. Without it, the one that maximises the expected F1.
    one_to_one: for two tables: True if a record has at most one match, False if it may have many; None decides from
    the scores.
    window: for two tables: by column, how far the value in b, a date (days) or a number, may be after that in a, least
    and most: {"created": (0, 90)}. Other pairs, and records without a value, are no candidates, and random pairs in a
    validation are drawn from the window (MMDS §3.8.3). The column is compared only if `fields` names it.
    validate: a column that both tables have. It is not compared but used to estimate the fraction of true matches by
    score (`Links.validation`, MMDS §3.8.3).
    true: with `validate`, the threshold is the score from which on at least this fraction are true matches.
    truth: all pairs that match (id_a, id_b), to measure precision and recall: a list, or a table with these columns.
    training: labelled pairs (id_a, id_b, match) to learn from; pairs of ids alone all match.
    nicknames: files of synonyms, used beside the built-in English ones; or `Synonyms`, for all kinds of fields or by
    kind, used instead of them.
    threads, memory, seed: neither the number of threads nor the memory to use, such as "2GiB", changes the result.
    progress: called with (stage, done, total).

    >>> people = {"name": ["Ann Lee", "Bo Diaz", "Cy Wu"], "born": ["1990-01-02", "1985-07-30", "1970-05-05"]}
    >>> others = {"name": ["Bo Diaz", "Ann Leigh", "Ed Poe"], "born": ["1985-07-30", "1990-01-02", "1969-12-01"]}
    >>> found = link(people, others)
    >>> sorted(zip(found.matches["id_a"].to_pylist(), found.matches["id_b"].to_pylist()))
    [(0, 1), (1, 0)]
    """
    check_parameters(b, id, threshold, one_to_one, validate, true, weights, training)
    asked, spans, mapped = wanted(fields), check_windows(window, b), check_columns(columns, b)
    resources, seed = Resources.of("link", threads, memory), checks.seed("link", seed)
    threads = resources.threads
    log = RunLog.of(progress)

    with log.stage("read"):
        words = chosen_synonyms("link", nicknames)
        records = records_of(a, b, id, asked, threads, validate, spans, mapped, weights is not None)
        windows = [Window.of(records, column, bounds) for column, bounds in spans.items()]
        log.notes += notes_on(a, b)
        weights = check_fields(records, words, weights)
        known = None if truth is None else labelled_pairs(truth, records, "truth")
        labels = None if training is None else labelled_pairs(training, records, "training")
        if labels is not None and not len(labels.pairs):
            raise ParameterError.of("link", "training", "one or more pairs of different records", training)

    parameters = {
        "id": id, "fields": asked, "columns": mapped or None, "weights": weights,
        "threshold": None if threshold is None else float(threshold),
        "one_to_one": one_to_one, "window": {name: list(ends) for name, ends in spans.items()} or None,
        "validate": validate, "true": None if true is None else float(true),
        "truth": named(truth), "training": named(training), "nicknames": named(nicknames), "seed": seed,
        "threads": threads, "memory": resources.budget.total,
    }  # fmt: skip

    further = FurtherCopies.of(records, [one.codes for one in windows])
    whole, records = records, further.without(records)
    near = [one.among(further.kept, records.border) for one in windows]
    labels = None if labels is None else labelled_within(further.mapped(labels), near)
    with log.stage("block", 2 * records.count) as tick:
        candidates, rows = block(records.fields, records.border, seed, threads, budget=resources.budget, tick=tick)
        candidates = within(candidates, near)
        if labels is not None:
            candidates = candidates.with_pairs(labels.pairs, records.count)
    left, right = candidates.left, candidates.right
    log.notes += [*records.notes, *(note for one in windows for note in one.note()), *candidates.notes]

    few = weights is None and labels is None and len(candidates) < FEW
    alike = weights is None and labels is None and one_to_one is not False and not few and fits(records, rows)
    explain_method(log, weights, labels, len(candidates) if few else None, alike)
    scorer: Scorer
    texts = None
    if weights is None and labels is None and one_to_one is not False and not few and not alike and rows is not None:
        texts = TextsScorer.of(records, left, right, seed)
    if texts is not None:
        scorer, alike = texts, True
        log.method = {"asked": "auto", "taken": "likeness", "why": TELLING.format(texts.main)}
    elif alike and rows is not None:
        scorer = LikenessScorer(records, rows)
    elif weights is None and not few:
        if words is not None and all(one.long for one in records.fields if one.kind in synonyms.KINDS):
            log.notes.append("nicknames have no effect: fields of several words are compared by the terms they share")
        scorer = ModelScorer(records, rows, labels, seed, one_to_one, words, threads, resources.budget)
    else:
        scorer = PointScorer(records.fields, weights or {}, words)
    scored = scorer.first(left, right, log)
    pairs = (further.kept[left], further.kept[right], scored.value * scored.unit)

    validation = None
    if validate is not None:
        with log.stage("validate"):
            validation = validated(whole, pairs, validate, BINS, seed, windows)
            threshold = threshold if true is None else _where_true(validation, true, validate)

    with log.stage("decide"):
        cut = None if threshold is None else threshold / scored.unit
        groups = None
        if alike:
            decision = decide_alike(left, right, scored.value, records.count, cut, one_to_one is True)
            matched = chosen_pairs(candidates, scored, decision.chosen)
        elif records.border:
            cut = scorer.usual if few and cut is None else cut
            decision = decide_pairs(
                left, right, scored.value, scored.usable, records.count, cut, one_to_one, scorer.lowest
            )
            matched = chosen_pairs(candidates, scored, decision.chosen)
        else:
            cut = scorer.usual if cut is None else cut
            value = np.where(scored.usable, scored.value, np.minimum(scored.value, cut - 1))

            def compared(one: Ints, other: Ints) -> Floats:
                return scorer.others(one, other, scored).value

            groups = cluster(records.count, left, right, value, cut, compared)
            chosen = np.flatnonzero(groups[left] == groups[right])
            decision = Decision(chosen, cut, None, "clusters by average linkage")
            matched = pairs_within(candidates, scored, scorer, groups)
            groups = further.clusters(groups)
        matched = further.matches(matched, *decision.single)

    with log.stage("tables"):
        matches = matches_table(whole, matched, scored.unit)
        clusters = None if groups is None else clusters_table(whole, groups)
    count(log, whole, candidates, matched, groups)
    detail(log, whole, candidates, scored, decision)
    captured = estimated_completeness(whole.fields, matched.pairs, seed)
    if captured is not None:
        log.details["completeness"] = captured
    if len(further.rest):
        log.details["abridged"] = {"groups": further.groups, "items": len(further.rest)}
    if known is not None:
        found = completeness(candidates, further.mapped(known).matches, records.count)
        log.details["truth"] = quality(matched.pairs, known, whole.count, found)
    if validate is not None and validation is not None:
        describe_validation(log, validate, validation, can_plot())
    stats = run_json("link", parameters, [whole], log)
    examples = near_threshold(*pairs[:2], scored, decision)
    return Links(matches, clusters, validation, stats, whole, pairs, examples, windows)


def _where_true(validation: Validation, true: float, column: str) -> float:
    """Return the score from which on this fraction of the pairs are true matches."""
    found = validation.threshold(true)
    if found is None:
        best = max(validation.table["fraction"].to_pylist(), default=0.0)
        raise InputError(
            f"{column}: at no score are {true:g} of the pairs true matches by this column; choose a lower fraction "
            f"(the best scores have {best:.2f}), or another column"
        )
    return found
