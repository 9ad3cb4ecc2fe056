"""`pairs` on Spark: all similar pairs of documents or vectors, within one collection or across two."""

from __future__ import annotations

import time
from dataclasses import replace
from typing import Any, cast

import numpy as np

from likewise.base.arrays import Ints
from likewise.io.workspace import Workspace
from likewise.jobs.explain.run import RunItems
from likewise.jobs.finished_run import FinishedRun
from likewise.jobs.pairs import PairsRequest, WholeItems, joined_pairs, named_pairs
from likewise.jobs.result import Pairs
from likewise.jobs.rows import estimate_table, pair_table
from likewise.search.exact.listing import HeldPairs, PairList
from likewise.search.plan import Executor, find, prepare
from likewise.search.scored import no_pairs
from likewise.shingle import Shingler
from likewise.spark import corpus as corpora
from likewise.spark.corpus import Corpus
from likewise.spark.executor import Found, GatheredExecutor, SpreadExecutor
from likewise.spark.in_place import check_unchanged
from likewise.spark.large_listing import LargeMatches, PairListing, certify
from likewise.spark.result import ClusterRows, SparkPairs
from likewise.spark.rounds import Rounds
from likewise.spark.run import ClusterRun, begun
from likewise.spark.spread import removed_groups
from likewise.spark.store import WORK
from likewise.spark.tables import estimate_errors
from likewise.spark.universe import listed, named
from likewise.spark.vectors import vector_pairs

OWNER = "pairs"


def pairs(request: PairsRequest) -> Pairs:
    """Do what was asked for on a cluster; the pairs come to the driver, but for those of a large corpus."""
    if request.of_vectors:
        return vector_pairs(request)
    request.check_sets()
    below = request.below
    with begun(request) as run:
        log = run.log
        corpus = run.corpus()
        corpus = replace(corpus, large=request.measure == "jaccard" and len(corpus) >= corpora.LARGE)
        shingler = run.shingler(corpus)
        given = request.search(request.resources), shingler, _in_order, run.checkpoints, run.scratch, log
        if corpus.large:
            found = find(cast(Executor[Found], SpreadExecutor(corpus, *given)))
            if isinstance(found, LargeMatches):
                return _on_cluster(run, corpus, shingler, found)
            universe, matches = found
        else:
            executor = GatheredExecutor(corpus, *given)
            if request.measure != "jaccard":
                return _joined(run, corpus, executor)
            universe, matches = find(executor)
        if below is not None:
            kept = matches.similarity < below
            chosen = matches.left[kept], matches.right[kept], matches.similarity[kept]
            matches = replace(matches, left=chosen[0], right=chosen[1], similarity=chosen[2])
        copies = corpus.sides is None and below is None
        left, right, similarity = listed(corpus, universe, matches, request.k, copies, log)
        log.counts["pairs"] = len(left)
        names = named(corpus, universe, left, request.id), named(corpus, universe, right, request.id)
        if not request.estimate:
            return _finished(run, corpus, shingler, pair_table(*names, similarity))
        errors = estimate_errors(matches, left, right, similarity, log.details["estimate"]["slots"])
        return _finished(run, corpus, shingler, estimate_table(*names, similarity, errors))


def _in_order(rows: Ints) -> Ints:
    """Return the order in which rows are preferred, where no policy says so: their own."""
    return np.arange(len(rows))


def _on_cluster(run: ClusterRun, corpus: Corpus, shingler: Shingler, found: LargeMatches) -> Pairs:
    """Write the pairs of a large corpus to a folder that is there as long as this process."""
    request, log, members = run.request, run.log, found.members
    assert isinstance(request, PairsRequest)
    if len(found.drawn):
        with log.stage("certify"):
            certify(
                found,
                log,
                lambda some: removed_groups(found, Rounds(run.session, run.checkpoints)).join(some, "leader"),
            )
    with log.stage("tables"):
        listing = PairListing(found, log, request.k, request.below)
        first = members.ids(request.id)
        second = first if corpus.sides is None else members.ids(request.id, 1, "names-2")
        rows = ClusterRows(listing.table(first, second), log.counts["pairs"], request.spill)
    return _explained(run, SparkPairs(rows, _stats(run, corpus, shingler)))


def _joined(run: ClusterRun, corpus: Corpus, executor: GatheredExecutor) -> Pairs:
    """Join the sets of all documents on the driver, by another measure than Jaccard similarity."""
    request, log = run.request, run.log
    assert isinstance(request, PairsRequest)
    prepare(executor)
    request.note_method(log)
    sizes = [part.numbering.rows for part in corpus.parts]
    found: PairList = HeldPairs(*no_pairs())
    if all(sizes):
        with log.stage("fetch"):
            items = executor.documents(np.arange(len(corpus)))
        space = Workspace.temporary(run.scratch)
        try:
            found = joined_pairs(request, WholeItems(items, sizes[0] if len(sizes) == 2 else None), items, space, log)
        finally:
            space.finish()
    log.counts["pairs"] = len(found)
    table = named_pairs(found, corpus.names(request.id), corpus.names(request.id, len(sizes) - 1))
    return _finished(run, corpus, executor.shingler, table)


def _finished(run: ClusterRun, corpus: Corpus, shingler: Shingler, table: Any) -> Pairs:
    """Return the table of pairs as the result."""
    return _explained(run, Pairs(table, _stats(run, corpus, shingler)))


def _explained(run: ClusterRun, result: Pairs) -> Pairs:
    """Return a result that explains its pairs by reading the input again."""
    result.traced(RunItems(FinishedRun(run.scratch, result.stats, time.time_ns())))
    return result


def _stats(run: ClusterRun, corpus: Corpus, shingler: Shingler) -> dict[str, Any]:
    """Return the content of run.json, and remove the steps."""
    parameters = {**run.request.reported(shingler), "engine": "spark", **run.request.resources.used}
    for one, part in zip(run.inputs, corpus.parts, strict=True):
        check_unchanged(run.session, one, part)
    stats = run.stats(OWNER, parameters, list(corpus.parts))
    run.checkpoints.finish(run.folder / WORK)
    return stats
