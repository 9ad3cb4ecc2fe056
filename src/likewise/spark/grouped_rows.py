"""`--group` on Spark: rows with the same name are joined to one document, compared, and kept or removed as a whole."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, replace
from functools import partial
from typing import Any

import pyarrow as pa

from likewise.base.arrays import to_arrow
from likewise.errors import InputError
from likewise.io.read.groups import BETWEEN
from likewise.jobs.dedup import DedupRequest
from likewise.spark.corpus import MOST_JOINED, Corpus, numbered
from likewise.spark.direct import PART, PLACE, PREFIX
from likewise.spark.rowset import RowSet
from likewise.spark.run import ClusterRun, check_scores, short_bytes
from likewise.spark.source import Deposit, SparkInput, deposit, quoted

DOCUMENTS, NUMBER, JOINED, NAME = (f"{PREFIX}{name}" for name in ("documents", "row", "joined", "name"))


@dataclass(frozen=True)
class RowsOfGroups:
    """The rows of a run whose documents are groups of them. corpus: the groups, in the order of their first rows."""

    run: ClusterRun
    rows: Deposit
    corpus: Corpus
    column: str

    @classmethod
    def of(cls, run: ClusterRun, rows: Corpus, request: DedupRequest) -> RowsOfGroups:
        """Join the texts of every group in the order of the rows, and write them to the folder of the run."""
        part, column = rows.parts[0], str(request.group)
        if part.frame.where(f"{quoted(column)} is null").select(PART).limit(1).count():
            raise InputError(f"{part.kind}: the group of column '{column}' is null; leave such rows out of the input")
        options = replace(request.options, text=JOINED, html=False, sets=False)
        given = SparkInput(_joined(rows, request), part.kind)
        whole = deposit(given, options, run.checkpoints, "items", short_bytes(request))
        run.log.counts["bytes"] = whole.numbering.bytes
        again = replace(request, id=column, group=None)
        return cls(replace(run, request=again), part, Corpus(rows.session, (whole,)), column)

    def gone(self, removed: RowSet) -> Any:
        """Return the names of the groups that are removed, and how many rows each has."""
        from pyspark.sql.types import LongType, StructField, StructType

        part = self.corpus.parts[0]
        frame = part.frame.select(PART, PLACE, quoted(self.column), DOCUMENTS)
        kind = part.frame.schema[self.column].dataType
        schema = StructType([StructField(NAME, kind), StructField(DOCUMENTS, LongType())])
        shared = self.corpus.broadcast(removed)
        return frame.mapInArrow(partial(_gone, numbering=self.corpus.shared_numbering, removed=shared), schema)

    def kept(self, removed: RowSet) -> Any:
        """Return the rows of the groups that are kept, all columns."""
        from pyspark.sql import functions as F

        gone = self.gone(removed).select(NAME)
        gone = F.broadcast(gone) if len(removed) <= MOST_JOINED else gone
        frame = self.rows.frame
        return frame.join(gone, frame[quoted(self.column)] == gone[NAME], "left_anti").select(
            *map(quoted, self.rows.columns)
        )

    def count(self, removed: RowSet) -> dict[str, int]:
        """Return the number of rows in all groups, and in those that are kept."""
        total = self.rows.numbering.rows
        lost = self.gone(removed).selectExpr(f"coalesce(sum({DOCUMENTS}), 0)").first()[0]
        return {"documents": total, "documents_kept": total - int(lost)}


def _joined(rows: Corpus, request: DedupRequest) -> Any:
    """Return the groups: name, text, the best of each score, and how many rows there are."""
    from pyspark.sql import functions as F
    from pyspark.sql.types import LongType, StructField, StructType

    part, column = rows.parts[0], str(request.group)
    scores = {str(rule.column): rule for rule in request.policy.rules if rule.column is not None}
    names = list(dict.fromkeys([column, *scores]))
    frame = part.frame.select(PART, PLACE, F.col(quoted(part.text)).alias(JOINED), *map(quoted, names))
    schema = StructType([StructField(NUMBER, LongType()), *frame.schema.fields[2:]])
    placed = frame.mapInArrow(partial(_placed, numbering=rows.shared_numbering), schema)
    texts = F.transform(F.array_sort(F.collect_list(F.struct(NUMBER, JOINED))), lambda one: one[JOINED])
    best = [F.count("*").alias(DOCUMENTS), F.array_join(texts, BETWEEN.decode()).alias(JOINED)]
    best.append(F.min(NUMBER).alias(NUMBER))
    for name, rule in scores.items():
        score = F.col(quoted(name))
        if check_scores(part, rule):
            score = score.cast("double")
        if dict(placed.withColumn(NAME, score).dtypes)[NAME] in ("float", "double"):
            score = F.when(~F.isnan(score), score)
        if name != column:
            best.append((F.min if rule.rule == "min" else F.max)(score).alias(name))
    return placed.groupBy(quoted(column)).agg(*best).orderBy(NUMBER).drop(NUMBER)


def _placed(batches: Iterator[Any], numbering: Any) -> Iterator[Any]:
    for batch in batches:
        rows, rest = numbered(batch, numbering.value)
        yield pa.RecordBatch.from_arrays([to_arrow(rows), *rest.columns], [NUMBER, *rest.schema.names])


def _gone(batches: Iterator[Any], numbering: Any, removed: Any) -> Iterator[Any]:
    for batch in batches:
        rows, rest = numbered(batch, numbering.value)
        yield rest.filter(pa.array(removed.value.has(rows))).rename_columns([NAME, DOCUMENTS])
