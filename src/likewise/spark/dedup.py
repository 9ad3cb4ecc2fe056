"""`dedup` on Spark: near-duplicates among more documents than one machine holds, and the answer of the local engine."""

from __future__ import annotations

import os
from collections.abc import Callable, Iterator
from contextlib import ExitStack
from dataclasses import replace
from functools import cached_property, partial
from typing import Any, cast

import numpy as np
import pyarrow as pa

from likewise.base.arrays import Hashes, Ints, to_arrow
from likewise.errors import ParameterError
from likewise.jobs.dedup import DedupRequest
from likewise.search.cluster import NONE, Keep, note_unlisted, removals
from likewise.search.matches import count_different
from likewise.search.plan import Executor, find
from likewise.search.prepare import NO_ROWS
from likewise.spark import corpus as corpora
from likewise.spark.against import AgainstTables, Opening, SparkAgainst
from likewise.spark.copies import LINK
from likewise.spark.corpus import Corpus, numbered
from likewise.spark.direct import PART, PLACE
from likewise.spark.exchange import KIND, SCHEMA, collected
from likewise.spark.executor import Found, GatheredExecutor, SpreadExecutor
from likewise.spark.folder import RunFolder
from likewise.spark.grouped_rows import RowsOfGroups
from likewise.spark.large_listing import LargeMatches
from likewise.spark.output import CLUSTERS, ROW, RowFiles, finish, laid, to_frame, write_arrow, write_frame
from likewise.spark.result import SparkDedup
from likewise.spark.run import ClusterRun, RankOrder, begun
from likewise.spark.session import quiet, session_of, spark_errors
from likewise.spark.source import quoted
from likewise.spark.spread import SpreadTables
from likewise.spark.state import KeptState
from likewise.spark.tables import DriverTables

OWNER = "dedup"


def dedup(request: DedupRequest, opened: Opening) -> SparkDedup:
    """Do what was asked for on a cluster. opened: returns an index to compare with, or None if it is a run."""
    if request.add:
        rule = "False with engine='spark'; add what was kept to the index afterwards"
        raise ParameterError.of(OWNER, "add", rule, request.add)
    if request.against and request.group is not None:
        raise ParameterError(f"The 'against' parameter of {OWNER} does not go with 'group' on Spark yet.")
    if not request.against:
        return _done(request, None)
    session = session_of(OWNER, request.sources, request.master)
    with ExitStack() as opening:
        with spark_errors(), quiet():
            earlier = opening.enter_context(SparkAgainst(session, list(request.against), opened))
            agreed = earlier.agreed(request)
            earlier.check_seen()
        return _done(agreed, earlier)


def _done(request: DedupRequest, earlier: SparkAgainst | None) -> SparkDedup:
    """Do what was asked for, with the settings of what is known."""
    with begun(request, earlier.identity if earlier else None, request.fresh) as run:
        corpus = run.corpus(earlier)
        grouped = None
        if request.group is not None:
            grouped = RowsOfGroups.of(run, corpus, request)
            run, corpus = grouped.run, grouped.corpus
        corpus = replace(corpus, large=len(corpus) >= corpora.LARGE)
        shingler = run.shingler(corpus)
        searching = request.search(request.resources)
        if earlier is not None:
            searching = replace(searching, ignore_common=None, common=earlier.common)
        ranks = RankOrder(corpus, request.policy)
        mixed = earlier.mixed if earlier is not None else None
        given = searching, mixed or shingler, ranks, run.checkpoints, run.scratch, run.log, request.policy
        executor = SpreadExecutor(corpus, *given) if corpus.large else GatheredExecutor(corpus, *given)
        found = find(cast(Executor[Found], executor))
        request.note_method(run.log)
        folders = None if earlier is None else earlier.places
        parameters = {**request.reported(shingler), "against": folders, "engine": "spark", **request.resources.used}
        tables = tables_of(run, corpus, found, request.policy, ranks, earlier)
        state = _state(run, corpus, found, executor.built) if request.state and grouped is None else None
        return Answer(run, corpus, tables, parameters, state, grouped=grouped).write()


def tables_of(
    run: ClusterRun,
    corpus: Corpus,
    found: Found,
    policy: Keep,
    ranks: RankOrder | None = None,
    earlier: SparkAgainst | None = None,
    kind: type[DriverTables] = DriverTables,
) -> DriverTables | SpreadTables:
    """Choose keepers, and return the tables: made on the driver or, of a large corpus, on the cluster."""
    note_unlisted(policy, run.log)
    if isinstance(found, LargeMatches):
        return SpreadTables(found, run.request.id, run.log, earlier)
    universe, matches = found
    order = RankOrder(corpus, policy) if ranks is None else ranks
    others = len(corpus) - corpus.earlier - int((universe.rows >= corpus.earlier).sum())
    run.log.counts["different"] = others + count_different(matches, universe.sides(corpus.sides))
    with run.log.stage("cluster"):
        pairs = matches.left, matches.right, matches.similarity
        none = policy.rule == NONE
        ranked = order(universe.rows)
        removal = removals(matches.groups, *pairs, ranked, matches.copies, matches.empty, none, matches.directed)
    if earlier is not None:
        return AgainstTables(run, corpus, universe, matches, removal, earlier)
    return kind(run, corpus, universe, matches, removal)


def _state(run: ClusterRun, corpus: Corpus, found: Found, built: dict[str, Any]) -> KeptState | None:
    """Return what later runs need; None if the input is no file that could be read again, or nothing lasts."""
    given = run.inputs[0]
    if given.identity is None or not run.checkpoints.lasting:
        return None
    about = {
        "threshold": run.request.threshold if corpus.across else None,
        "complete": run.log.details.get("crowds", {}).get("complete", True),
        "given": list(given.given),
        "inputs": given.identity,
        **built,
    }
    if isinstance(found, LargeMatches):
        copied, grouped = found.members.copied, found.members.grouped
        about["empty"] = grouped.empty.tolist()
        links = [one.frame.where(f"{KIND} = {LINK}") for one in (copied, grouped)]
        return KeptState(links[0], links[1], found.pairs.frame, about)
    universe, matches = found
    first = universe.rows[universe.groups.first]
    pairs = first[matches.left], first[matches.right], matches.similarity
    about["empty"] = universe.empty_rows.tolist()
    return KeptState.of(universe.copied, universe.grouped, pairs, about)


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
        grouped: RowsOfGroups | None = None,
    ) -> None:
        self.run = run
        self.corpus = corpus
        self.tables = tables
        self.parameters = parameters
        self.state = state
        self.command = command
        self.grouped = grouped
        self._layout: dict[int, tuple[Ints, Hashes]] | None = None

    def _clusters(self) -> Any:
        """Return the cluster of every document, by its row; those without any duplicate never come to the driver."""
        from pyspark.sql.types import LongType, StringType, StructField, StructType

        part = self.corpus.parts[-1]
        column, frame = self.run.request.id, part.frame
        kind = LongType() if column is None else frame.schema[column].dataType
        kind = StringType() if self.tables.as_text else kind
        kinds = {ROW: LongType(), **{name: LongType() if name == "size" else kind for name in CLUSTERS}}
        schema = StructType([StructField(name, one) for name, one in kinds.items()])
        known, broken = self.corpus.broadcast(self.tables.present), self.corpus.broadcast(part.broken)
        whole = frame.select(PART, PLACE, *([] if column is None else [quoted(column)])).mapInArrow(
            partial(_alone, numbering=self._numbering, known=known, broken=broken, as_text=self.tables.as_text), schema
        )
        if len(self.tables.present):
            whole = self._frame(self.tables.clusters()).unionAll(whole)
        return whole.orderBy(ROW).drop(ROW)

    def _frame(self, table: Any) -> Any:
        return to_frame(self.run.session, table) if isinstance(table, pa.Table) else table

    def _few(self, tables: Any) -> Ints | None:
        """Return the rows that the driver has, if they are those of one collection and few enough for a join."""
        alone = isinstance(tables, DriverTables) and len(self.corpus.parts) == 1
        return tables.universe.rows if alone and len(tables.universe.rows) <= corpora.MOST_JOINED else None

    def _kept(self) -> Any:
        """Return the surviving rows, all columns."""
        if self.grouped is not None:
            return self.grouped.kept(self.tables.gone)
        part = self.corpus.parts[-1]
        columns = [quoted(name) for name in part.columns]
        if (few := self._few(self.tables)) is not None and isinstance(self.tables, DriverTables):
            return self.corpus.apart(part.frame, few[self.tables.removal.rows], part.numbering).select(*columns)
        removed = self.corpus.broadcast(self.tables.gone)
        frame, schema = part.frame.select(PART, PLACE, *columns), part.frame.select(*columns).schema
        return frame.mapInArrow(partial(_kept, numbering=self._numbering, removed=removed), schema)

    def _save_state(self, folder: RunFolder) -> None:
        assert self.state is not None
        gone = self.tables.gone
        layout = self._layout
        if layout is None:
            known = self.corpus.broadcast(gone)
            frame = self.corpus.parts[-1].frame.select(PART, PLACE)
            laying = partial(_laid, numbering=self._numbering, removed=known)
            layout = collected(frame.mapInArrow(laying, SCHEMA).toArrow())
        self.run.log.details["state"] = self.state.save(folder, gone, self.corpus.parts[-1].broken, layout)

    @cached_property
    def _numbering(self) -> Any:
        """The numbers of the rows of this run, on every machine."""
        return self.corpus.broadcast(self.corpus.parts[-1].numbering)

    def _write(self, table: Any, place: RunFolder) -> None:
        if isinstance(table, pa.Table):
            write_arrow(table, place)
        else:
            write_frame(table, place)

    def _write_rows(self, place: RunFolder) -> None:
        """Write kept/, and the documents without any duplicate to the folder of clusters beside it."""
        part = self.corpus.parts[-1]
        clusters = f"{str(place.local).rpartition('/')[0]}/clusters.parquet"
        assert part.direct is not None
        assert place.local is not None
        for folder in (place.local, clusters):
            os.makedirs(folder)
        starts = {number: int(shifts[0]) for number, (_, shifts) in part.numbering.stretches.items()}
        files = RowFiles(
            place.local, clusters, starts, self.tables.gone, self.tables.clusters(), part.direct.schema, part.text,
            self.run.request.id, self.tables.as_text,
        )  # fmt: skip
        self._layout = files.write(part.direct)
        finish(place)

    def _write_clusters(self, place: RunFolder) -> None:
        """Complete the folder that `_write_rows` has filled."""
        finish(place)

    def write(self) -> SparkDedup:
        """Write the tables and run.json, and remove the steps."""
        run = self.run
        frames: dict[str, Callable[[RunFolder], None]] = {
            "kept": lambda place: write_frame(self._kept(), place),
            "removed.parquet": lambda place: self._write(self.tables.removed(), place),
            "pairs.parquet": lambda place: self._write(self.tables.pairs(), place),
            "clusters.parquet": lambda place: write_frame(self._clusters(), place),
        }
        direct = self.corpus.parts[-1].direct
        column = run.request.id
        own = direct is not None and isinstance(self.tables, DriverTables) and (column is None or direct.plain(column))
        if own and run.folder.local is not None:
            frames["kept"], frames["clusters.parquet"] = self._write_rows, self._write_clusters
        part = self.corpus.parts[-1]
        if self.grouped is not None:
            part = self.grouped.rows
            run.log.counts |= self.grouped.count(self.tables.gone)
        stats = partial(run.stats, self.command, self.parameters, [part])
        state = None if self.state is None else self._save_state
        return run.publish(part, frames, stats, SparkDedup, part.aside, state)


def _alone(batches: Iterator[Any], numbering: Any, known: Any, broken: Any, as_text: bool) -> Iterator[Any]:
    """Yield the documents that are clusters of their own."""
    for batch in batches:
        rows, rest = numbered(batch, numbering.value)
        alone = ~known.value.has(rows)
        if not alone.any():
            continue
        numbers = rows[alone] if broken.value is None else broken.value.others(rows[alone])
        ids = rest.column(0).filter(pa.array(alone)) if rest.num_columns else to_arrow(numbers)
        if as_text:
            ids = ids.cast(pa.string())
        sizes = to_arrow(np.ones(len(ids), np.int64))
        yield pa.RecordBatch.from_arrays([to_arrow(rows[alone]), ids, ids, sizes, ids], [ROW, *CLUSTERS])


def _kept(batches: Iterator[Any], numbering: Any, removed: Any) -> Iterator[Any]:
    """Yield the rows that are not removed."""
    for batch in batches:
        rows, rest = numbered(batch, numbering.value)
        yield rest.filter(pa.array(~removed.value.has(rows)))


def _laid(batches: Iterator[Any], numbering: Any, removed: Any) -> Iterator[Any]:
    """Yield where the kept rows of a task are in its file: stretches of rows that follow each other among those kept.

    The rows of a task are those of the task that writes kept/, because Spark cuts the same files in the same way; the
    number of the task is that of its file.
    """
    from pyspark import TaskContext

    parts = [NO_ROWS]
    for batch in batches:
        rows, _ = numbered(batch, numbering.value)
        parts.append(rows[~removed.value.has(rows)])
    yield from laid(TaskContext.get().partitionId(), np.concatenate(parts), removed.value)
