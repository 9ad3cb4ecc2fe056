"""`pairs` on Spark: all similar pairs of documents or vectors, within one collection or across two."""

from __future__ import annotations

import time
from dataclasses import replace

import numpy as np

from likewise.base.runlog import run_json
from likewise.jobs.explain.run import RunItems
from likewise.jobs.finished_run import FinishedRun
from likewise.jobs.pairs import PairsRequest
from likewise.jobs.result import Pairs
from likewise.jobs.rows import estimate_table, pair_table
from likewise.search.plan import find
from likewise.spark.executor import GatheredExecutor
from likewise.spark.in_place import check_unchanged
from likewise.spark.run import begun
from likewise.spark.store import WORK
from likewise.spark.tables import estimate_errors
from likewise.spark.universe import listed, named
from likewise.spark.vectors import vector_pairs

OWNER = "pairs"


def pairs(request: PairsRequest) -> Pairs:
    """Do what was asked for on a cluster; the pairs come to the driver."""
    if request.of_vectors:
        return vector_pairs(request)
    request.check_sets()
    below = request.below
    with begun(request) as run:
        log = run.log
        corpus = run.corpus()
        shingler = run.shingler(corpus)
        searching = request.search(request.resources)
        executor = GatheredExecutor(
            corpus, searching, shingler, lambda rows: np.arange(len(rows)), run.checkpoints, run.scratch, log
        )
        universe, matches = find(executor)
        if below is not None:
            kept = matches.similarity < below
            chosen = matches.left[kept], matches.right[kept], matches.similarity[kept]
            matches = replace(matches, left=chosen[0], right=chosen[1], similarity=chosen[2])
        copies = corpus.sides is None and below is None
        left, right, similarity = listed(corpus, universe, matches, request.k, copies, log)
        log.counts["pairs"] = len(left)
        names = named(corpus, universe, left, request.id), named(corpus, universe, right, request.id)
        log.details["spark"] = run.described()
        parameters = {**request.reported(shingler), "engine": "spark", **request.resources.used}
        for one, part in zip(run.inputs, corpus.parts, strict=True):
            check_unchanged(run.session, one, part)
        stats = run_json(OWNER, parameters, list(corpus.parts), log)
        run.checkpoints.finish(run.folder / WORK)
        if request.estimate:
            errors = estimate_errors(matches, left, right, similarity, log.details["estimate"]["slots"])
            result = Pairs(estimate_table(*names, similarity, errors), stats)
        else:
            result = Pairs(pair_table(*names, similarity), stats)
        result.traced(RunItems(FinishedRun(run.scratch, stats, time.time_ns())))
        return result
