"""`dedup` of vectors on Spark: the search of `pairs`, and keepers and tables by the driver, as of documents."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace
from functools import partial
from typing import Any

import numpy as np
import pyarrow as pa

from likewise.base.arrays import Ints, to_arrow
from likewise.errors import ParameterError
from likewise.jobs.dedup import OWNER, DedupRequest
from likewise.jobs.vector_dedup import check_vectors, distances
from likewise.jobs.vectors import aimed
from likewise.search.recall.certificate import Certificate
from likewise.search.scored import ScoredPairs, Scores
from likewise.search.vectors.measured import sampled_rows, tallied
from likewise.search.vectors.pairs import VectorAim, all_pairs
from likewise.spark.corpus import Corpus, numbered
from likewise.spark.dedup import Answer, tables_of
from likewise.spark.direct import TEXT
from likewise.spark.exchange import SCHEMA, collected, nothing, parcel
from likewise.spark.result import SparkDedup
from likewise.spark.run import ClusterRun, begun
from likewise.spark.tables import DriverTables
from likewise.spark.universe import Universe
from likewise.spark.vector_input import VectorForm, check_sources, open_vectors
from likewise.spark.vectors import found_on_cluster, read_on_cluster


class VectorTables(DriverTables):
    """Tables with a distance in place of the similarity."""

    def _similarities(self, left: Ints, right: Ints, similarity: Scores) -> dict[str, Any]:
        return {"distance": to_arrow(distances(similarity))}


def dedup_vectors(request: DedupRequest) -> SparkDedup:
    """Do what was asked for on a cluster."""
    settings = check_vectors(replace(request, fresh=False))
    if request.against:
        raise ParameterError(
            f"The 'against' parameter of {OWNER} does not go with measure={request.measure!r} on Spark yet."
        )
    check_sources(request.sources, OWNER)
    columns = replace(request, text=request.vector)
    with begun(columns, fresh=request.fresh, opening=partial(open_vectors, whole=True)) as run:
        corpus, form = read_on_cluster(run, settings, whole=True)
        log, policy = run.log, request.policy
        aim = aimed(settings, request.resources, form.outline(1))
        universe, pairs = found_on_cluster(run, corpus, form, aim)
        log.counts["verified"] = len(pairs[0])
        tables = log.details.get("tables")
        log.details["predicted_recall"] = 1.0 if tables is None else tables["recall"]
        sample = sampled_rows(len(corpus), request.certify, aim)
        if tables is not None and len(sample):
            with log.stage("certify"):
                log.certificate = _certified(run, corpus, form, aim, universe, pairs, sample).to_dict()
        matches = universe.matches(universe.group(pairs[0]), universe.group(pairs[1]), 0 - pairs[2])
        parameters = {**settings.to_dict(), "within": aim.within, "keep": str(policy), "certify": request.certify}
        del parameters["k"], parameters["beyond"]
        parameters |= {"against": None, "engine": "spark", **request.resources.used}
        found = tables_of(run, corpus, (universe, matches), policy, kind=VectorTables)
        return Answer(run, corpus, found, parameters, None).write()


def _certified(
    run: ClusterRun, corpus: Corpus, form: VectorForm, aim: VectorAim, universe: Universe, pairs: ScoredPairs,
    rows: Ints,
) -> Certificate:  # fmt: skip
    """Let tasks compare a sample with their vectors; see how many of the pairs within the distance were found."""
    copied = universe.copied
    asked, place = np.unique(copied.resolved(rows), return_inverse=True)
    sample = form.read(corpus.fetch(asked, [TEXT]).column(TEXT).combine_chunks()).table
    known = corpus.broadcast((form, replace(aim, threads=1, spill=None), sample, copied))
    near = corpus.map_texts(partial(_near, numbering=corpus.shared_numbering, known=known), SCHEMA)
    owners, words = collected(near.toArrow()).get(0, nothing())

    def sizes(others: Ints) -> Ints:
        if not len(universe.rows):
            return np.ones(len(others), np.int64)
        at = np.minimum(universe.place(others), len(universe.rows) - 1)
        several = universe.groups.sizes[universe.groups.of[at]]
        return np.where(universe.rows[at] == others, several, 1)

    neighbours = [(owners, words.view(np.int64))]
    return tallied(neighbours, asked, place, sizes, pairs, len(corpus))


def _near(batches: Iterator[Any], numbering: Any, known: Any) -> Iterator[Any]:
    """Yield the vectors of a task that are near one of a sample, but for copies."""
    form, aim, sample, copied = known.value
    for batch in batches:
        rows, rest = numbered(batch, numbering.value)
        chosen = np.flatnonzero(copied.resolved(rows) == rows)
        if not len(chosen):
            continue
        here = form.read(rest.column(rest.schema.get_field_index(TEXT)).take(pa.array(chosen))).table
        both = form.space(np.concatenate([sample, here]))
        (owner, other, _), _ = all_pairs(both, len(sample), aim, lambda _: None)
        yield from parcel(0, 0, owner.astype(np.int64), rows[chosen[other - len(sample)]].view(np.uint64))
