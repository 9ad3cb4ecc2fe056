"""`pairs` on Spark: all similar pairs of documents, within one collection or across two."""

from __future__ import annotations

import time
from dataclasses import replace
from typing import Any

import numpy as np

from likewise.base import checks
from likewise.base.arrays import Ints, to_arrow
from likewise.base.runlog import run_json
from likewise.jobs.finished import FinishedRun
from likewise.jobs.reopened import ReopenedRun
from likewise.jobs.result import Pairs
from likewise.jobs.rows import pair_table
from likewise.search.expand import listed_pairs, nearest_rows
from likewise.search.matches import VerifiedPairs
from likewise.spark.corpus import Corpus
from likewise.spark.in_place import check_unchanged
from likewise.spark.run import ClusterRun, begun
from likewise.spark.search import ClusterSearch
from likewise.spark.store import WORK
from likewise.spark.universe import Universe

OWNER = "pairs"


def pairs(given: dict[str, Any]) -> Pairs:
    """Do what `likewise.pairs` was asked for with these parameters; the pairs come to the driver."""
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
        left, right, similarity = _listed(corpus, universe, matches, k, below, run)
        log.counts["pairs"] = len(left)
        names = _named(corpus, universe, left, run.options.id), _named(corpus, universe, right, run.options.id)
        log.details["spark"] = {
            "master": run.session.sparkContext.master,
            "version": run.session.version,
            "steps": run.checkpoints.metrics,
        }
        parameters = {
            "measure": "jaccard", **settings.to_dict(shingler), "below": below, "k": k, "text": run.options.text,
            "id": run.options.id, "on_error": run.options.on_error, "encoding_errors": run.options.encoding_errors,
            "html": run.options.html, "engine": "spark", "threads": resources.threads, "memory": resources.budget.total,
        }  # fmt: skip
        for one, part in zip(run.inputs, corpus.parts, strict=True):
            check_unchanged(run.session, one, part)
        stats = run_json(OWNER, parameters, list(corpus.parts), log)
        run.checkpoints.finish(run.folder / WORK)
        result = Pairs(pair_table(*names, similarity), stats)
        result.traced(ReopenedRun(FinishedRun(run.scratch, stats, time.time_ns())))
        return result


def _listed(
    corpus: Corpus, universe: Universe, matches: VerifiedPairs, k: int | None, below: float | None, run: ClusterRun
) -> tuple[Ints, Ints, Any]:
    """List the pairs of rows: all of them, or the k best of each row. Copies are pairs unless `below` is given."""
    across = corpus.sides is not None
    if below is not None:
        kept = matches.similarity < below
        chosen = matches.left[kept], matches.right[kept], matches.similarity[kept]
        matches = replace(matches, left=chosen[0], right=chosen[1], similarity=chosen[2])
    copies = not across and below is None
    if k is None:
        left, right, similarity, abridged = listed_pairs(matches, within=copies, items=len(corpus))
        if abridged:
            run.log.details["abridged"] = abridged
        return left, right, similarity
    sides = universe.sides(corpus.sides)
    groups = matches.groups
    here = int(np.searchsorted(groups.first, sides.split)) if sides else len(groups)
    return nearest_rows(
        groups, matches.left, matches.right, matches.similarity, k, here, across=not copies, same=1.0, both=not across
    )


def _named(corpus: Corpus, universe: Universe, places: Ints, column: str | None) -> Any:
    """Return the ids of rows of the universe, all of them of one collection."""
    rows, split = universe.rows[places], corpus.split
    if column is None:
        second = bool(split and len(rows) and rows[0] >= split)
        return to_arrow(corpus.parts[second].positions(rows - split if second else rows))
    different, place = np.unique(rows, return_inverse=True)
    second = bool(split and len(rows) and rows[0] >= split)
    ids = corpus.column(different - split if second else different, column, int(second))
    return ids.take(to_arrow(place.astype(np.int64)))
