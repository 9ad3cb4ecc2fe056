"""`link`: from tables to matches. Read, block, compare, learn, decide (MMDS §3.8.1–3.8.3)."""

from __future__ import annotations

import os
from collections.abc import Mapping, Sequence
from typing import Any

from likewise.apps.link.blocking import block, completeness
from likewise.apps.link.blocking_recall import estimated_blocking_recall
from likewise.apps.link.columns import check_columns
from likewise.apps.link.fields import wanted
from likewise.apps.link.further_copies import FurtherCopies
from likewise.apps.link.kept_steps import keeping
from likewise.apps.link.labels import labelled_pairs, quality
from likewise.apps.link.matched_pairs import chosen_pairs, pairs_within
from likewise.apps.link.pair_reason import LinkageTrace
from likewise.apps.link.parameters import check_asking, check_fields, check_parameters, named
from likewise.apps.link.questions import Ask, Asker, LabelFile, merged
from likewise.apps.link.records import records_of
from likewise.apps.link.report import count, count_scores, describe_labels, describe_validation, detail
from likewise.apps.link.result import (
    Links,
    clusters_table,
    matches_table,
    near_threshold,
    validated,
)
from likewise.apps.link.rules import NOTHING_KNOWN, MatchRules
from likewise.apps.link.scorer_choice import ScorerChoice
from likewise.apps.link.synonyms import Synonyms, chosen_synonyms
from likewise.apps.link.training import Lesson, Teacher
from likewise.apps.link.validation import BINS, Validation
from likewise.apps.link.weights import weights_table
from likewise.apps.link.window import Window, check_windows, labelled_within, within
from likewise.base import checks
from likewise.base.extras import installed
from likewise.base.runlog import Progress, RunLog, run_json
from likewise.errors import InputError, ParameterError
from likewise.io.read.find import notes_on
from likewise.jobs.settings import Resources


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
    ask: Ask | None = None,
    label: str | os.PathLike[str] | None = None,
    questions: int | None = None,
    nicknames: str | os.PathLike[str] | Sequence[Any] | Mapping[str, Synonyms] | Synonyms | None = None,
    threads: int | None = None,
    memory: str | int | None = None,
    seed: int = 1,
    progress: Progress | None = None,
    out: str | os.PathLike[str] | None = None,
    fresh: bool = False,
) -> Links:
    """Find the records of `a` and `b`, or of `a` alone, that are the same entity (entity resolution, record linkage).

    a, b: paths of CSV, TSV, Parquet, JSON-lines or Arrow files, or tables of pyarrow, pandas or polars.
    id: the column of ids. Without it, a first column called id (or ..._id) with unique values, or else row numbers.
    fields: the columns to compare, with or without a kind ("phone:phone"). Without it, all that both tables have.
    columns: for two tables: columns of b by the columns of a that hold the same under another name: {"cast": "actors"}.
    Several are one if joined by +, as in {"name": "first+last"}; None is no column. Other columns with different names
    are compared if they share enough words (notes say which).
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
    progress: called with (stage, done, total).
    out: a folder for the result. An interrupted run of files there is resumed; `fresh` starts over.

    >>> people = {"name": ["Ann Lee", "Bo Diaz", "Cy Wu"], "born": ["1990-01-02", "1985-07-30", "1970-05-05"]}
    >>> others = {"name": ["Bo Diaz", "Ann Leigh", "Ed Poe"], "born": ["1985-07-30", "1990-01-02", "1969-12-01"]}
    >>> found = link(people, others)
    >>> sorted(zip(found.matches["id_a"].to_pylist(), found.matches["id_b"].to_pylist()))
    [(0, 1), (1, 0)]
    """
    check_parameters(b, id, threshold, one_to_one, validate, true, weights, training)
    questions = check_asking(ask, label, questions, weights)
    asked, spans, mapped = wanted(fields), check_windows(window, b), check_columns(columns, b)
    resources, seed = Resources.of("link", threads, memory), checks.seed("link", seed)
    threads = resources.threads
    log = RunLog.of(progress)
    if out is None:
        checks.unused("link", {"fresh": (fresh, False)}, "without 'out'")
    folder = None if out is None else Links.checked_folder(out, a, b, truth, training, label, nicknames)
    depends = {
        "id": id, "fields": asked, "columns": mapped or None, "weights": None if weights is None else "given",
        "window": {name: list(ends) for name, ends in spans.items()} or None, "validate": validate,
        "nicknames": named(nicknames), "seed": seed,
    }  # fmt: skip

    with keeping(folder, [a, b, nicknames], depends, log, fresh) as kept:
        with log.stage("read"):
            words = chosen_synonyms("link", nicknames)
            records = records_of(a, b, id, asked, threads, validate, spans, mapped, weights is not None)
            windows = [Window.of(records, column, bounds) for column, bounds in spans.items()]
            log.notes += notes_on(a, b)
            weights = check_fields(records, words, weights)
            correct = None if truth is None else labelled_pairs(truth, records, "truth")
            labels = None if training is None else labelled_pairs(training, records, "training")
            if labels is not None and not len(labels.pairs):
                raise ParameterError.of("link", "training", "one or more pairs of different records", training)
            file = None if label is None else LabelFile(label)
            if file is not None:
                labels = merged(file.pairs(records), labels, records.count)

        parameters = {
            **depends, "weights": weights, "threshold": None if threshold is None else float(threshold),
            "one_to_one": one_to_one, "true": None if true is None else float(true),
            "truth": named(truth), "training": named(training), "label": named(label),
            "questions": None if ask is None else questions,
            "threads": threads, "memory": resources.budget.total,
        }  # fmt: skip

        further = FurtherCopies.of(records, [one.codes for one in windows])
        whole, records = records, further.without(records)
        near = [one.among(further.kept, records.border) for one in windows]
        labels = None if labels is None else labelled_within(further.mapped(labels), near)
        with log.stage("block", 2 * records.count) as tick:
            candidates, rows = kept.blocked(
                lambda: block(records.fields, records.border, seed, threads, budget=resources.budget, tick=tick)
            )
            candidates = within(candidates, near)
            if labels is not None:
                candidates = candidates.with_pairs(labels.pairs, records.count)
        left, right = candidates.left, candidates.right
        log.notes += [*records.notes, *(note for one in windows for note in one.note()), *candidates.notes]

        choice = ScorerChoice(records, rows, weights, one_to_one, words, resources, seed, kept.compared)
        scored = choice.first(left, right, log, labels is not None or ask is not None)
        rules = MatchRules(records, candidates, choice.scorer, choice.alike, choice.usual, one_to_one)
        lesson: Lesson | None = None
        known = NOTHING_KNOWN
        if labels is not None or ask is not None:
            with log.stage("label"):
                teacher = Teacher(rules, scored, None if threshold is None else threshold / scored.unit, one_to_one)
                known = NOTHING_KNOWN if labels is None else teacher.places(labels)
                given = len(known.places)
                if ask is not None:
                    asker = Asker(teacher, whole, further, seed)
                    known = asker.answered((left, right), known, ask, questions, file)
                lesson = teacher.taught(known)
                scored = lesson.scored
                describe_labels(log, teacher, lesson, known, len(known.places) - given, ask is not None)
        pairs = (further.kept[left], further.kept[right], scored.value * scored.unit)

        validation = None
        if validate is not None:
            with log.stage("validate"):
                validation = validated(whole, pairs, validate, BINS, seed, windows)
                threshold = threshold if true is None else _where_true(validation, true, validate)

        with log.stage("decide"):
            if lesson is not None and true is None:
                decision, groups = lesson.decision, lesson.groups
            else:
                decision, groups = rules.decide(scored, None if threshold is None else threshold / scored.unit, known)
            compact = groups
            if groups is None:
                matched = chosen_pairs(candidates, scored, decision.chosen)
            else:
                matched = pairs_within(candidates, scored, choice.scorer, groups)
                groups = further.clusters(groups)
            matched = further.matches(matched, *decision.single)

        with log.stage("tables"):
            matches = matches_table(whole, matched, scored.unit)
            clusters = None if groups is None else clusters_table(whole, groups)
        count(log, whole, candidates, matched, groups)
        detail(log, whole, candidates, scored, decision)
        count_scores(log, pairs[2], matched.scores * scored.unit)
        captured = estimated_blocking_recall(whole.fields, matched.pairs, seed)
        if captured is not None:
            log.details["completeness"] = captured
        if len(further.rest):
            log.details["abridged"] = {"groups": further.groups, "items": len(further.rest)}
        if correct is not None:
            part = completeness(candidates, further.mapped(correct).matches, records.count)
            log.details["truth"] = quality(matched.pairs, correct, whole.count, part)
        if validate is not None and validation is not None:
            describe_validation(log, validate, validation, installed("plot"))
        stats = run_json("link", parameters, [whole], log)
        examples = near_threshold(*pairs[:2], scored, decision)
        weighed = weights_table(scored, decision.chosen, seed)
        trace = LinkageTrace.of(whole, further, rules, scored, decision, compact, matched.pairs, known, windows)
        found = Links(matches, clusters, validation, stats, whole, pairs, examples, windows, weighed, trace)
        if folder is not None:
            found.write(folder, kept.space)
    return found


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
