"""`dedup` on Spark: near-duplicates among more documents than one machine holds, and the answer of the local engine."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import ExitStack
from dataclasses import replace
from functools import partial
from typing import Any

import numpy as np
import pyarrow as pa

from likewise.base.arrays import Ints, strings, to_arrow
from likewise.base.runlog import run_json
from likewise.jobs.result import KINDS
from likewise.search.cluster import Keep, Removal, components, removals
from likewise.search.expand import listed_pairs
from likewise.search.matches import VerifiedPairs, count_different
from likewise.spark import corpus as corpora
from likewise.spark.corpus import Corpus, numbered
from likewise.spark.metrics import StepMetrics
from likewise.spark.result import SparkDedup, publish_frames
from likewise.spark.rowset import RowSet
from likewise.spark.run import ClusterRun, RankOrder, begun
from likewise.spark.search import ClusterSearch
from likewise.spark.source import PART, PLACE, quoted
from likewise.spark.spread import LargeMatches, SpreadTables
from likewise.spark.state import KeptState, pair_frame
from likewise.spark.store import WORK, HadoopFolder
from likewise.spark.universe import Universe

OWNER = "dedup"


def dedup(given: dict[str, Any]) -> SparkDedup:
    """Do what `likewise.dedup` was asked for with these parameters."""
    policy = Keep.parse(given["keep"])
    with begun(OWNER, given, policy) as run:
        corpus = run.corpus()
        corpus = replace(corpus, large=len(corpus) >= corpora.LARGE)
        shingler = run.shingler(corpus)
        settings, resources, log = run.settings, run.resources, run.log
        ranks = RankOrder(corpus, policy)
        search = ClusterSearch(
            corpus,
            settings.search(resources.threads, resources.budget),
            shingler,
            ranks,
            run.checkpoints,
            run.scratch,
            log,
            policy,
        )
        found = search.find()
        options = run.options
        parameters = {
            **settings.to_dict(shingler), "keep": str(policy), "text": options.text, "id": options.id,
            "on_error": options.on_error, "encoding_errors": options.encoding_errors, "lines": options.lines,
            "sets": options.sets, "html": options.html, "plain": options.plain, "hidden": options.hidden,
            "against": None, "engine": "spark", "threads": resources.threads, "memory": resources.budget.total,
        }  # fmt: skip
        state = _state(run, found) if given["state"] else None
        return Answer(run, corpus, tables_of(run, corpus, found, policy, ranks), parameters, state).write()


Found = tuple[Universe, VerifiedPairs] | LargeMatches


def tables_of(
    run: ClusterRun, corpus: Corpus, found: Found, policy: Keep, ranks: RankOrder | None = None
) -> DriverTables | SpreadTables:
    """Choose keepers, and return the tables: made on the driver or, of a large corpus, on the cluster."""
    if isinstance(found, LargeMatches):
        return SpreadTables(found, run.options.id, run.log)
    universe, matches = found
    order = RankOrder(corpus, policy) if ranks is None else ranks
    run.log.counts["different"] = len(corpus) - len(universe.rows) + count_different(matches)
    with run.log.stage("cluster"):
        pairs = matches.left, matches.right, matches.similarity
        removal = removals(matches.groups, *pairs, order(universe.rows), matches.copies, matches.empty)
    return DriverTables(run, corpus, universe, matches, removal)


def _state(run: ClusterRun, found: Found) -> KeptState | None:
    """Return what later runs need; None if the input is no file that could be read again, or nothing lasts."""
    given = run.inputs[0]
    if given.identity is None or not run.checkpoints.lasting:
        return None
    about = {
        "threshold": run.settings.threshold,
        "complete": run.log.details.get("crowds", {}).get("complete", True),
        "given": list(given.given),
        "inputs": given.identity,
    }
    if isinstance(found, LargeMatches):
        copied, grouped = found.members.copied, found.members.grouped
        about["empty"] = grouped.empty.tolist()
        return KeptState(copied.frame, grouped.frame, pair_frame(run.session, found.pairs), about)
    universe, matches = found
    first = universe.rows[universe.groups.first]
    pairs = first[matches.left], first[matches.right], matches.similarity
    about["empty"] = universe.empty_rows.tolist()
    return KeptState.of(run.session, universe.copied, universe.grouped, pairs, about)


class DriverTables:
    """The tables of a run whose rows with duplicates are on the driver."""

    def __init__(
        self, run: ClusterRun, corpus: Corpus, universe: Universe, matches: VerifiedPairs, removal: Removal
    ) -> None:
        self.run = run
        self.corpus = corpus
        self.universe = universe
        self.removal = removal
        log, rows = run.log, len(corpus)
        with log.stage("tables"):
            self._pairs = listed_pairs(matches, items=rows)
            self._labels = components(matches.groups, matches.left, matches.right)
            self._sizes = np.bincount(self._labels, minlength=len(universe.rows))
            self._ids = corpus.column(universe.rows, run.options.id) if run.options.id is not None else None
        log.counts["pairs"] = len(self._pairs[0])
        log.counts["identical"] = int(removal.identical.sum())
        log.counts["near"] = int((~removal.identical).sum())
        log.counts["removed"] = len(removal.rows)
        log.counts["kept"] = rows - len(removal.rows)
        log.counts["clusters"] = int((self._sizes > 1).sum())
        log.details["largest_cluster"] = max(int(self._sizes.max(initial=0)), min(1, rows))
        if self._pairs[3]:
            log.details["abridged"] = self._pairs[3]

    def _name(self, places: Ints) -> Any:
        """Return the ids of rows of the universe."""
        if self._ids is None:
            return to_arrow(self.universe.rows[places])
        return self._ids.take(to_arrow(places))

    def _frame(self, table: pa.Table) -> Any:
        """Return a table of the driver as a DataFrame of about as many parts as it needs."""
        parts = max(1, -(-table.num_rows // (1 << 20)))
        return self.run.session.createDataFrame(table).coalesce(parts)

    def pairs(self) -> Any:
        """Return the pairs."""
        left, right, similarity, _ = self._pairs
        named = {"id_a": self._name(left), "id_b": self._name(right), "similarity": to_arrow(similarity)}
        return self._frame(pa.table(named))

    def removed(self) -> Any:
        """Return the removed documents."""
        removal = self.removal
        return self._frame(
            pa.table(
                {
                    "id": self._name(removal.rows),
                    "kept_id": self._name(removal.keepers),
                    "similarity": to_arrow(removal.similarity),
                    "kind": strings(list(KINDS)).take(to_arrow(removal.identical.astype(np.int64))),
                }
            )
        )

    @property
    def gone(self) -> RowSet:
        """The rows that are removed."""
        return RowSet(len(self.corpus), [self.universe.rows[self.removal.rows]])

    @property
    def present(self) -> RowSet:
        """The rows that `clusters` has."""
        return RowSet(len(self.corpus), [self.universe.rows])

    def clusters(self) -> Any:
        """Return the clusters of all documents that have a duplicate."""
        places = np.arange(len(self.universe.rows))
        keepers = places.copy()
        keepers[self.removal.rows] = self.removal.keepers
        labels = self._labels
        return self._frame(
            pa.table(
                {
                    "id": self._name(places),
                    "cluster": self._name(labels),
                    "size": to_arrow(self._sizes[labels]),
                    "keeper": self._name(keepers),
                }
            )
        )


class Answer:
    """The result of a run, and what run.json says about it."""

    def __init__(
        self,
        run: ClusterRun,
        corpus: Corpus,
        tables: DriverTables | SpreadTables,
        parameters: dict[str, Any],
        state: KeptState | None,
        command: str = OWNER,
    ) -> None:
        self.run = run
        self.corpus = corpus
        self.tables = tables
        self.parameters = parameters
        self.state = state
        self.command = command

    def clusters(self) -> Any:
        """Return the cluster of every document; documents without any duplicate never come to the driver."""
        from pyspark.sql.types import LongType, StructField, StructType

        present = self.tables.present
        column, frame = self.run.options.id, self.corpus.parts[0].frame
        kind = LongType() if column is None else frame.schema[column].dataType
        schema = StructType(
            [
                StructField("id", kind),
                StructField("cluster", kind),
                StructField("size", LongType()),
                StructField("keeper", kind),
            ]
        )
        known = self.corpus.broadcast(present)
        alone = frame.select(PART, PLACE, *([] if column is None else [quoted(column)])).mapInArrow(
            partial(_alone, numbering=self.corpus.shared_numbering, known=known), schema
        )
        return self.tables.clusters().unionAll(alone) if len(present) else alone

    def kept(self) -> Any:
        """Return the surviving rows, all columns."""
        part = self.corpus.parts[0]
        removed = self.corpus.broadcast(self.tables.gone)
        columns = [quoted(name) for name in part.columns]
        frame, schema = part.frame.select(PART, PLACE, *columns), part.frame.select(*columns).schema
        return frame.mapInArrow(partial(_kept, numbering=self.corpus.shared_numbering, removed=removed), schema)

    def stats(self) -> dict[str, Any]:
        """Return the content of run.json."""
        run = self.run
        details = run.log.details
        details["spark"] = {
            "master": run.session.sparkContext.master,
            "version": run.session.version,
            "steps": run.checkpoints.metrics,
        }
        if run.checkpoints.resumed:
            details["resumed"] = run.checkpoints.resumed
        return run_json(self.command, self.parameters, list(self.corpus.parts), run.log)

    def _save_state(self, folder: HadoopFolder) -> None:
        assert self.state is not None
        self.run.log.details["state"] = self.state.save(folder)

    def write(self) -> SparkDedup:
        """Write the tables and run.json, and remove the steps."""
        run = self.run
        frames = {
            "kept": self.kept,
            "removed.parquet": self.tables.removed,
            "pairs.parquet": self.tables.pairs,
            "clusters.parquet": self.clusters,
        }
        found: dict[str, Any] = {}
        with ExitStack() as writing:
            writing.enter_context(run.log.stage("write"))
            measured = writing.enter_context(StepMetrics(run.session, "write", run.checkpoints.progress))

            def finished() -> dict[str, Any]:
                writing.close()
                run.checkpoints.metrics["write"] = measured.to_dict()
                found.update(self.stats())
                return found

            publish_frames(run.folder, frames, finished, None if self.state is None else self._save_state)
        run.checkpoints.finish(run.folder / WORK)
        return SparkDedup(run.folder, found)


def _alone(batches: Iterator[Any], numbering: Any, known: Any) -> Iterator[Any]:
    """Yield the documents that are clusters of their own."""
    for batch in batches:
        rows, rest = numbered(batch, numbering.value)
        alone = ~known.value.has(rows)
        if not alone.any():
            continue
        ids = rest.column(0).filter(pa.array(alone)) if rest.num_columns else to_arrow(rows[alone])
        sizes = to_arrow(np.ones(len(ids), np.int64))
        yield pa.RecordBatch.from_arrays([ids, ids, sizes, ids], ["id", "cluster", "size", "keeper"])


def _kept(batches: Iterator[Any], numbering: Any, removed: Any) -> Iterator[Any]:
    """Yield the rows that are not removed."""
    for batch in batches:
        rows, rest = numbered(batch, numbering.value)
        yield rest.filter(pa.array(~removed.value.has(rows)))
