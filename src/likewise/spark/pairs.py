"""`pairs` on Spark: all similar pairs of documents or vectors, within one collection or across two."""

from __future__ import annotations

import time
from dataclasses import replace
from typing import Any

import numpy as np

from likewise.base import checks
from likewise.base.runlog import run_json
from likewise.jobs.explain.run import RunItems
from likewise.jobs.finished_run import FinishedRun
from likewise.jobs.result import Pairs
from likewise.jobs.rows import estimate_table, pair_table
from likewise.search.vectors.spaces import SPACES
from likewise.spark.in_place import check_unchanged
from likewise.spark.listing import listed, named
from likewise.spark.run import begun
from likewise.spark.search import ClusterSearch
from likewise.spark.store import WORK
from likewise.spark.tables import estimate_errors
from likewise.spark.vectors import vector_pairs

OWNER = "pairs"


def pairs(given: dict[str, Any]) -> Pairs:
    """Do what `likewise.pairs` was asked for with these parameters; the pairs come to the driver."""
    if given["measure"] in SPACES:
        return vector_pairs(given)
    k, below = given["k"], given["below"]
    if k is not None:
        checks.whole(OWNER, "k", k)
    with begun(OWNER, given) as run:
        settings, resources, log = run.settings, run.resources, run.log
        if below is not None:
            rule = f"above the threshold, {settings.threshold:g}, and at most 1"
            checks.number(OWNER, "below", below, settings.threshold, 1, open_left=True, rule=rule)
        corpus = run.corpus()
        shingler = run.shingler(corpus)
        search = ClusterSearch(
            corpus,
            settings.search(resources.threads, resources.budget),
            shingler,
            lambda rows: np.arange(len(rows)),
            run.checkpoints,
            run.scratch,
            log,
        )
        found = search.find()
        assert isinstance(found, tuple)
        universe, matches = found
        if below is not None:
            kept = matches.similarity < below
            chosen = matches.left[kept], matches.right[kept], matches.similarity[kept]
            matches = replace(matches, left=chosen[0], right=chosen[1], similarity=chosen[2])
        copies = corpus.sides is None and below is None
        left, right, similarity = listed(corpus, universe, matches, k, copies, log)
        log.counts["pairs"] = len(left)
        names = named(corpus, universe, left, run.options.id), named(corpus, universe, right, run.options.id)
        log.details["spark"] = run.described()
        parameters = {
            "measure": "jaccard", **settings.to_dict(shingler), "below": below, "k": k, "text": run.options.text,
            "id": run.options.id, "on_error": run.options.on_error, "encoding_errors": run.options.encoding_errors,
            "html": run.options.html, "engine": "spark", "threads": resources.threads, "memory": resources.budget.total,
        }  # fmt: skip
        for one, part in zip(run.inputs, corpus.parts, strict=True):
            check_unchanged(run.session, one, part)
        stats = run_json(OWNER, parameters, list(corpus.parts), log)
        run.checkpoints.finish(run.folder / WORK)
        if settings.estimate:
            errors = estimate_errors(matches, left, right, similarity, log.details["estimate"]["slots"])
            result = Pairs(estimate_table(*names, similarity, errors), stats)
        else:
            result = Pairs(pair_table(*names, similarity), stats)
        result.traced(RunItems(FinishedRun(run.scratch, stats, time.time_ns())))
        return result
