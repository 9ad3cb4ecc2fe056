"""`link`: from tables to matches. Read, block, compare, score, decide, and write tables (MMDS §3.8.1–3.8.3)."""

from __future__ import annotations

import os
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from functools import partial
from typing import Any

from likewise.apps.link import synonyms
from likewise.apps.link.against import add_records
from likewise.apps.link.alarms import judge, told
from likewise.apps.link.blocking import RecordPairs, block, completeness, estimated_blocking_recall
from likewise.apps.link.checkpoints import LinkCheckpoints, checkpoints
from likewise.apps.link.decision import NOTHING_KNOWN, Decision, KnownPairs, MatchRules
from likewise.apps.link.entities import chosen_pairs, pairs_within
from likewise.apps.link.further_copies import FurtherCopies
from likewise.apps.link.labels import Ask, LabelFile, LabelledPairs, labelled_pairs, merged, quality
from likewise.apps.link.pair_reason import LinkageTrace
from likewise.apps.link.points import check_weights
from likewise.apps.link.records import RecordTable, records_of
from likewise.apps.link.request import LinkRequest, column_pairs, field_kinds, missing_values, window_ends
from likewise.apps.link.result import (
    Links,
    count_scores,
    result_tables,
    validated,
    weights_table,
)
from likewise.apps.link.scored_records import ScoredRecords
from likewise.apps.link.scoring import ScoringTask, scored_candidates
from likewise.apps.link.synonyms import Nicknames, Synonyms, chosen_synonyms
from likewise.apps.link.terms import WeightedTerms
from likewise.apps.link.training import Asker, Lesson, Teacher
from likewise.apps.link.validation import BINS, Validation
from likewise.apps.link.window import Window, labelled_within, within
from likewise.base import checks
from likewise.base.arrays import Ints
from likewise.base.extras import installed
from likewise.base.runlog import Progress, RunLog, run_json
from likewise.errors import InputError, ParameterError
from likewise.io.read.find import notes_on
from likewise.io.upload import to_store
from likewise.jobs.settings import Resources

TABLES = 16
"""Part of the memory in which tables stay as they were read; larger ones are read again for what is asked later."""


@to_store("out")
def link(
    a: Any,
    b: Any = None,
    *,
    against: str | os.PathLike[str] | Links | None = None,
    id: str | None = None,
    fields: Mapping[str, str | None] | Sequence[str] | None = None,
    columns: Mapping[str, str | None] | None = None,
    missing: Sequence[str] = (),
    weights: Mapping[str, float] | None = None,
    threshold: float | None = None,
    one_to_one: bool | None = None,
    window: Mapping[str, tuple[float, float]] | None = None,
    validate: str | None = None,
    true: float | None = None,
    truth: Any = None,
    training: Any = None,
    ask: Ask | None = None,
    label: str | os.PathLike[str] | None = None,
    questions: int | None = None,
    nicknames: str | os.PathLike[str] | Sequence[Any] | Mapping[str, Synonyms] | Synonyms | None = None,
    threads: int | None = None,
    memory: str | int | None = None,
    seed: int = 1,
    progress: Progress | None = None,
    out: str | os.PathLike[str] | None = None,
    scored: bool = False,
    fresh: bool = False,
) -> Links:
    """Find the records of `a` and `b`, or of `a` alone, that are the same entity (entity resolution, record linkage).

    a, b: paths of CSV, TSV, Parquet, JSON-lines or Arrow files, or tables of pyarrow, pandas or polars, or
        streams of rows or batches; "-" is JSON lines or Arrow on standard input.
    against: the result of an earlier run of one table, or its folder: the records of `a` are new, and join its entities
    or found new ones, by what it learned. Its tables are read again. `Links.added` and `Links.merged` say what changed.
    id: the column of ids. Without it, a first column called id (or ..._id) with unique values, or else row numbers.
    fields: the columns to compare, with or without a kind ("phone:phone"). Without it, all that both tables have.
    columns: for two tables: columns of b by the columns of a that hold the same under another name: {"cast": "actors"}.
    Several are one if joined by +, as in {"name": "first+last"}; None is no column. Other columns with different names
    are compared if they share enough words (notes say which).
    missing: further values that mean no value in every column that is compared, such as "0.0" or "1900-01-01", however
    they are written there.
    weights: by field. The score is then in points: 100 per field, less a penalty for edits, times the weight of the
    field, 1 by default (MMDS §3.8.2). Without weights, the weight of agreement is learned from the data (Fellegi–Sunter
    model, by EM): a score of 0 is even odds, and ten points more make the odds ten times as high.
    threshold: the least score of a match. Without it, the one that maximises the expected F1.
    one_to_one: for two tables: True if a record has at most one match, False if it may have many; None decides from
    the scores.
    window: for two tables: by column, how far the value in b, a date (days) or a number, may be after that in a, least
    and most: {"created": (0, 90)}. Other pairs, and records without a value, are no candidates, and random pairs in a
    validation are drawn from the window (MMDS §3.8.3). The column is compared only if `fields` names it.
    validate: a column that both tables have. It is not compared but used to estimate the fraction of true matches by
    score (`Links.validation`, MMDS §3.8.3).
    true: with `validate`, the threshold is the score above which at least this fraction are true matches.
    truth: all pairs that match (id_a, id_b), to measure precision and recall: a list, or a table with these columns.
    training: labelled pairs (id_a, id_b, match) to learn from; pairs of ids alone all match. They decide how much each
    field counts and the threshold, and no match contradicts them.
    ask: a function that is asked about the most informative pairs (`Question`). It returns True, False, or None
    to skip, and raises StopIteration to end. The gain from its answers is in stats["details"]["labels"].
    label: with `ask`, a CSV file (id_a, id_b, match) to which every answer is added at once. Answers that it has
    already are learned from, and not asked again.
    questions: with `ask`, the maximum number of questions, 30 by default.
    nicknames: files of synonyms, used beside the built-in English ones; or `Synonyms`, for all kinds of fields or by
    kind, used instead of them.
    threads, memory, seed: neither the number of threads nor the memory to use, such as "2GiB", changes the result.
    About 600 bytes per record stay in memory in any case; what else does not fit is in files, or made again.
    progress: called with (stage, done, total).
    scored: with `out`, also write all pairs that were compared, with their scores: `relink` then decides again with
    another threshold, without a second run.
    out: a folder for the result. An interrupted run of files there is resumed; `fresh` starts over.

    >>> people = {"name": ["Ann Lee", "Bo Diaz", "Cy Wu"], "born": ["1990-01-02", "1985-07-30", "1970-05-05"]}
    >>> others = {"name": ["Bo Diaz", "Ann Leigh", "Ed Poe"], "born": ["1985-07-30", "1990-01-02", "1969-12-01"]}
    >>> found = link(people, others)
    >>> sorted(zip(found.matches["id_a"].to_pylist(), found.matches["id_b"].to_pylist()))
    [(0, 1), (1, 0)]
    """
    request = LinkRequest(
        a=a,
        b=b,
        against=against,
        id=id,
        fields=field_kinds(fields),
        columns=column_pairs(columns),
        missing=missing_values(missing),
        weights=weights,
        threshold=threshold,
        one_to_one=one_to_one,
        window=window_ends(window),
        validate=validate,
        true=true,
        truth=truth,
        training=training,
        ask=ask,
        label=label,
        questions=questions,
        nicknames=nicknames,
        resources=Resources.of("link", threads, memory),
        seed=checks.seed("link", seed),
        out=None if out is None else checks.path("link", "out", out),
        scored=scored,
        fresh=fresh,
    )
    log = RunLog.of(progress)
    with checkpoints(request, log) as kept:
        linked = _whole(request, kept, log) if request.against is None else add_records(request, kept.space, log)
        if request.out is not None:
            linked.write(request.out, kept.space)
    return linked


def _whole(request: LinkRequest, kept: LinkCheckpoints, log: RunLog) -> Links:
    """Compare all records, and decide."""
    tables = _read(request, log)
    candidates, terms = _block(request, tables, kept, log)
    rules, learned = _score(request, tables, candidates, terms, kept, log)
    known, lesson = _label(request, tables, rules, learned, log)
    final = learned if lesson is None else lesson.scored
    validation = _validate(request, tables, candidates, final, log)
    decision, groups = _decide(request, tables, rules, final, known, lesson, validation, log)
    return _result(request, tables, rules, final, known, validation, decision, groups, log)


@dataclass(frozen=True)
class _Tables:
    """What was read: all `records`, and those that are `compared`, without further copies; their windows and labels.

    weights: of fields, if they were given. truth: of all records. file: to which answers are added.
    """

    records: RecordTable
    copies: FurtherCopies
    compared: RecordTable
    windows: list[Window]
    near: list[Window]
    synonyms: Nicknames
    weights: dict[str, float] | None
    truth: LabelledPairs | None
    labels: LabelledPairs | None
    file: LabelFile | None


def _read(request: LinkRequest, log: RunLog) -> _Tables:
    """Read the tables, and the labels of their records."""
    with log.stage("read"):
        words = chosen_synonyms("link", request.nicknames)
        records = records_of(
            request.a,
            request.b,
            id=request.id,
            fields=request.fields,
            threads=request.resources.threads,
            validate=request.validate,
            apart=request.window,
            columns=request.columns,
            all_fields=request.weights is not None,
            missing=request.missing,
        )
        windows = [Window.of(records, column, bounds) for column, bounds in request.window.items()]
        log.notes += notes_on(request.a, request.b)
        if words is not None and not any(one.kind in synonyms.KINDS for one in records.fields):
            why = f"without a field of kind {', '.join(synonyms.KINDS)}"
            checks.unused("link", {"nicknames": (words, None)}, why)
        weights = None
        if request.weights is not None:
            weights = check_weights("link", request.weights, [one.name for one in records.fields])
        truth = None if request.truth is None else labelled_pairs(request.truth, records, "truth")
        labels = None if request.training is None else labelled_pairs(request.training, records, "training")
        if labels is not None and not len(labels.pairs):
            raise ParameterError.of("link", "training", "one or more pairs of different records", request.training)
        file = None if request.label is None else LabelFile(request.label)
        if file is not None:
            labels = merged(file.pairs(records), labels, records.count)
    copies = FurtherCopies.of(records, [one.codes for one in windows])
    compared = copies.without(records)
    near = [one.among(copies.kept, compared.border) for one in windows]
    if request.validate is None and request.ask is None:
        sources = [request.a] if request.b is None else [request.a, request.b]
        records.let_go(sources, request.resources.budget.total // TABLES)
    labels = None if labels is None else labelled_within(copies.mapped(labels), near)
    log.notes += [*records.notes, *(note for one in windows for note in one.note())]
    log.counts |= records.counts
    log.details |= records.details
    if len(copies.rest):
        log.details["abridged"] = {"groups": copies.groups, "items": len(copies.rest)}
    return _Tables(records, copies, compared, windows, near, words, weights, truth, labels, file)


def _block(
    request: LinkRequest, tables: _Tables, kept: LinkCheckpoints, log: RunLog
) -> tuple[RecordPairs, WeightedTerms | None]:
    """Return the candidates, labelled pairs among them, and the terms of records if the tables are small enough."""
    compared, resources = tables.compared, request.resources
    with log.stage("block", 2 * compared.count) as tick:
        find = partial(block, compared.fields, compared.border, request.seed, resources.threads)
        candidates, terms = kept.blocked(partial(find, budget=resources.budget, tick=tick, space=kept.space))
        candidates = within(candidates, tables.near)
        if tables.labels is not None:
            candidates = candidates.with_pairs(tables.labels.pairs, compared.count)
    log.notes += candidates.notes
    log.counts["candidates"] = len(candidates)
    log.details["candidates_by"] = candidates.ways
    return candidates, terms


def _score(
    request: LinkRequest,
    tables: _Tables,
    candidates: RecordPairs,
    terms: WeightedTerms | None,
    kept: LinkCheckpoints,
    log: RunLog,
) -> tuple[MatchRules, ScoredRecords]:
    """Compare the candidates field by field, and score them: in points, by a model that is learned, or by likeness."""
    resources = request.resources
    task = ScoringTask(
        tables.compared,
        terms,
        tables.weights,
        request.one_to_one,
        tables.synonyms,
        resources.threads,
        resources.budget,
        request.seed,
        kept.compared,
    )
    scorer, scored = scored_candidates(task, candidates.left, candidates.right, log)
    return MatchRules(tables.compared, candidates, scorer, request.one_to_one), scored


def _label(
    request: LinkRequest, tables: _Tables, rules: MatchRules, scored: ScoredRecords, log: RunLog
) -> tuple[KnownPairs, Lesson | None]:
    """Learn from the labels, those given and those asked for; return them, and the lesson if there is one."""
    if tables.labels is None and request.ask is None:
        return NOTHING_KNOWN, None
    with log.stage("label"):
        threshold = None if request.threshold is None else request.threshold / scored.unit
        teacher = Teacher(rules, scored, threshold, request.one_to_one)
        known = NOTHING_KNOWN if tables.labels is None else teacher.places(tables.labels)
        given = len(known.places)
        if request.ask is not None:
            asker = Asker(teacher, tables.records, tables.copies, request.seed)
            known = asker.answered(known, request.ask, request.most_questions, tables.file)
        lesson = teacher.taught(known)
        teacher.describe(log, lesson, known, None if request.ask is None else len(known.places) - given)
    return known, lesson


def _validate(
    request: LinkRequest, tables: _Tables, candidates: RecordPairs, scored: ScoredRecords, log: RunLog
) -> Validation | None:
    """Estimate the fraction of true matches by score from a column that was not compared, if one is named."""
    if request.validate is None:
        return None
    with log.stage("validate"):
        pairs = tables.copies.pairs(candidates, scored)
        validation = validated(tables.records, pairs, request.validate, BINS, request.seed, tables.windows)
    log.details["validation"] = {
        "column": request.validate,
        "mean_of_true_matches": validation.true,
        "mean_of_random_pairs": validation.random,
        "confidence": validation.confidence,
    }
    if not installed("plot"):
        log.notes.append("validation.png is left out: plots need Matplotlib (pip install 'likewise[plot]')")
    return validation


def _decide(
    request: LinkRequest,
    tables: _Tables,
    rules: MatchRules,
    scored: ScoredRecords,
    known: KnownPairs,
    lesson: Lesson | None,
    validation: Validation | None,
    log: RunLog,
) -> tuple[Decision, Ints | None]:
    """Return which candidates match and, for one table, the cluster of each record that was compared."""
    with log.stage("decide"):
        if lesson is not None and request.true is None:
            decision, groups = lesson.decision, lesson.groups
        else:
            threshold = request.threshold
            if validation is not None and request.true is not None:
                threshold = _where_true(validation, request.true, str(request.validate))
            decision, groups = rules.decide(scored, None if threshold is None else threshold / scored.unit, known)
    scored.describe(log)
    log.details |= {"rule": decision.rule, "threshold": round(float(decision.threshold * scored.unit), 4)}
    if tables.records.border:
        log.details["single"] = list(decision.single)
    unknown = _why_no_f1(tables, scored, decision)
    if unknown is None and scored.matches is not None and decision.expected_f1 is not None:
        log.details["expected_f1"] = round(decision.expected_f1, 4)
        log.details["expected_f1_range"] = scored.matches.f1_range(decision.expected_f1)
    else:
        log.details["expected_f1_unknown"] = unknown
    return decision, groups


def _result(
    request: LinkRequest,
    tables: _Tables,
    rules: MatchRules,
    scored: ScoredRecords,
    known: KnownPairs,
    validation: Validation | None,
    decision: Decision,
    groups: Ints | None,
    log: RunLog,
) -> Links:
    """Return the tables of matches and clusters of all records, and what is known about them."""
    records, copies, candidates = tables.records, tables.copies, rules.candidates
    with log.stage("tables"):
        probable = told(rules.probabilities(scored, decision, known), log)
        if groups is None:
            matched = chosen_pairs(candidates, scored, probable, decision.chosen)
        else:
            matched = pairs_within(candidates, scored, probable, rules.scorer, groups)
        matched = copies.matches(matched, *decision.single)
        labels = None if groups is None else copies.clusters(groups)
        matches, clusters = result_tables(records, matched, labels, scored.unit, log)
    trace = LinkageTrace(
        records, copies, rules, scored.slim, decision, probable, groups, matched.pairs, known, tables.windows
    )
    count_scores(log, scored.value * scored.unit, matched.scores * scored.unit)
    log.details["completeness"] = estimated_blocking_recall(
        records.fields, matched.pairs, candidates.ways, request.seed
    )
    judge(matched, labels, log)
    if tables.truth is not None:
        part = completeness(candidates, copies.mapped(tables.truth).matches, rules.records.count)
        log.details["truth"] = quality(matched.pairs, tables.truth, records.count, part)
    weights = weights_table(scored, decision.chosen, request.seed)
    stats = run_json("link", request.parameters(tables.weights), [records], log)
    return Links(matches, clusters, validation, weights, stats, trace)


def _why_no_f1(tables: _Tables, scored: ScoredRecords, decision: Decision) -> str | None:
    """Return why no F1 is stated, None if one is."""
    if not tables.records.border:
        return "how many matches are missed cannot be seen within one table"
    if scored.model is None:
        return "points and likeness are no probabilities"
    if scored.matches is None:
        return "the number of matches is not estimated, as in large tables or where records may have several"
    if not tables.records.is_complete:
        return "too many values are missing"
    return "too many matches are hardly better than a rival" if decision.expected_f1 is None else None


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
