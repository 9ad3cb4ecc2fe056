"""Rows that have a duplicate, on the cluster: which are copies, which have equal sets, which of them is preferred.

These are tables of Spark, joined by Spark: it divides the work of a document with very many copies by itself.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from functools import cached_property, partial
from typing import Any

import numpy as np
import pyarrow as pa
from numpy.typing import NDArray

from likewise.base.arrays import Ints, to_arrow
from likewise.errors import ColumnError
from likewise.search.cluster import NONE, Keep
from likewise.spark.copies import LINK, RowLinks
from likewise.spark.corpus import ROW, Corpus, numbered
from likewise.spark.direct import PART, PLACE, TEXT
from likewise.spark.exchange import KIND, SCHEMA, opened, parcel, parcel_rows
from likewise.spark.rowset import RowSet
from likewise.spark.run import check_scores
from likewise.spark.source import quoted
from likewise.spark.store import Checkpoints

A, B, VALUE = "a", "b", "value"


def from_parcels(frame: Any, kind: int) -> Any:
    """Return the entries of parcels as rows of Spark: a and b."""
    return frame.where(f"{KIND} = {kind}").mapInArrow(_entries, f"{A} bigint, {B} bigint")


def _entries(batches: Iterator[Any]) -> Iterator[Any]:
    for batch in batches:
        for rows, words in opened([batch]).values():
            yield pa.RecordBatch.from_arrays([to_arrow(rows), to_arrow(words.view(np.int64))], [A, B])


def to_parcels(frame: Any, kind: int) -> Any:
    """Return a table with columns a and b as parcels of its entries."""
    return frame.select(A, B).mapInArrow(partial(_packed, kind=kind), SCHEMA)


def _packed(batches: Iterator[Any], kind: int) -> Iterator[Any]:
    parts = [(np.asarray(batch.column(0), np.int64), np.asarray(batch.column(1), np.int64)) for batch in batches]
    if parts:
        rows, others = (np.concatenate(side) for side in zip(*parts, strict=True))
        yield from parcel(0, kind, rows, others.view(np.uint64))


def row_set(frame: Any, total: int) -> RowSet:
    """Return the rows in the first column of a table as a set."""
    packed = frame.select(frame.columns[0]).withColumnRenamed(frame.columns[0], A)
    return RowSet(total, parcel_rows(packed.selectExpr(A, f"{A} as {B}").mapInArrow(partial(_packed, kind=0), SCHEMA)))


def values_of(
    corpus: Corpus, rows: RowSet, column: str, frame: Any = None, cast: bool = False, part: int = 0
) -> Any:  # fmt: skip
    """Return (row, value) of some rows: a column of a part of the corpus, or of a table like the whole of it."""
    from pyspark.sql.types import DoubleType, LongType, StructField, StructType

    chosen = corpus.part(part, quoted(column)) if frame is None else frame.select(PART, PLACE, quoted(column))
    kind = DoubleType() if cast else chosen.schema[column].dataType
    schema = StructType([StructField(ROW, LongType()), StructField(VALUE, kind)])
    known = corpus.broadcast(rows)
    sender = partial(_members, numbering=corpus.shared_numbering, known=known, cast=column if cast else "")
    return chosen.mapInArrow(sender, schema)


def positions_of(corpus: Corpus, rows: Any, part: int = 0, missing: Sequence[RowSet | None] | None = None) -> Any:
    """Return (row, value) of a table of rows, which are of one part: their numbers in its input.

    missing: the rows that are missing, of what the next set or the input has; by default those that were set aside.
    """
    known = corpus.broadcast([corpus.parts[part].broken] if missing is None else missing)
    start, stop = corpus.starts[part], corpus.starts[part] + corpus.parts[part].numbering.rows
    here = rows.where(f"{ROW} >= {start} and {ROW} < {stop}")
    return here.mapInArrow(partial(_positions, start=start, missing=known), f"{ROW} bigint, {VALUE} bigint")


def named(frame: Any, ids: Any | None, columns: dict[str, str]) -> Any:
    """Return a table with the ids of rows (row, value), under new names, in place of their numbers."""
    if ids is not None:
        for old in columns:
            frame = frame.join(ids.selectExpr(f"row as {old}", f"{VALUE} as _{old}"), old).drop(old)
            frame = frame.withColumnRenamed(f"_{old}", old)
    return frame.withColumnsRenamed(columns)


@dataclass(frozen=True)
class LargeMembers:
    """The rows of a corpus that have a copy, an equal set, or a pair.

    nodes: a table of the rows with a pair, each the first of those with an equal set; some are there several times.
    """

    corpus: Corpus
    policy: Keep
    copied: RowLinks
    grouped: RowLinks
    nodes: Any
    checkpoints: Checkpoints

    @classmethod
    def holding(
        cls, corpus: Corpus, policy: Keep, copied: RowLinks, grouped: RowLinks, nodes: Ints, checkpoints: Checkpoints
    ) -> LargeMembers:
        """Return the members of which the driver has the nodes."""
        frame = corpus.session.createDataFrame(pa.table({"leader": to_arrow(nodes)}))
        return cls(corpus, policy, copied, grouped, frame, checkpoints)

    def arrow(self, **columns: Any) -> Any:
        """Return arrays of the driver as a table of Spark."""
        return self.corpus.session.createDataFrame(pa.table({name: to_arrow(one) for name, one in columns.items()}))

    @cached_property
    def frame(self) -> Any:
        """(row, first, leader): the first row with the same bytes, and the first with the same set."""

        def make() -> Any:
            copies = _resolved(from_parcels(self.copied.frame, LINK)).toDF("row", "first")
            groups = _resolved(from_parcels(self.grouped.frame, LINK)).toDF("row", "leader")
            link = groups.toDF("first", "of")
            whole = copies.join(link, "first", "left").selectExpr("row", "first", "coalesce(of, first) as leader")
            whole = whole.unionByName(groups.selectExpr("row", "row as first", "leader"))
            heads = whole.select("leader").unionAll(self.nodes).distinct()
            return whole.unionByName(heads.selectExpr("leader as row", "leader as first", "leader"))

        return self.checkpoints.frame("members", make)

    @cached_property
    def rows(self) -> RowSet:
        """The rows, as a set."""
        return row_set(self.frame, len(self.corpus))

    def values(self, column: str, frame: Any = None, cast: bool = False, part: int = 0) -> Any:
        """Return (row, value) of the members: a column of a part of the corpus, or of a table like the whole of it."""
        return values_of(self.corpus, self.rows, column, frame, cast, part)

    def ids(self, column: str | None, part: int = 0, step: str = "names") -> Any:
        """Return (row, value) of the members in a part: their ids; None if they are the numbers of the rows."""
        if column is not None:
            return self.checkpoints.frame(step, lambda: self.values(column, part=part))
        if part == 0 and self.corpus.parts[0].broken is None:
            return None
        return positions_of(self.corpus, self.frame.select(ROW), part)

    @cached_property
    def ranked(self) -> Any:
        """(leader, best, size, rank): of rows with equal sets, the one that is preferred; their number; and a number
        that orders them as the policy does. Ranks are ordered, not dense: Spark numbers the parts of a sorted table."""
        from pyspark.sql import functions as F

        rule, total, earlier = self.policy.rule, len(self.corpus), self.corpus.earlier

        def make() -> Any:
            whole, order = self.frame.select("leader", "row"), []
            if rule in ("first", "last", NONE):
                last = f"if(row < {earlier}, row, {total - 1 + earlier} - row)"
                ranked = whole.withColumn("rank", F.expr(last) if rule == "last" else F.col("row"))
            else:
                if earlier:  # the documents of earlier runs are preferred to all others, in their order
                    order.append(F.when(F.col("row") < earlier, F.col("row")).asc_nulls_last())
                for place, one in enumerate(self.policy.rules):
                    if one.rule not in ("first", "last"):
                        name, scored = f"{VALUE}{place}", self._scored(one)
                        whole = whole.join(scored.withColumnRenamed(VALUE, name), "row", "left")
                        value = F.col(name)
                        if dict(scored.dtypes)[VALUE] in ("float", "double"):
                            value = F.when(~F.isnan(value), value)
                        down = one.rule in ("longest", "max")
                        order.append(value.desc_nulls_last() if down else value.asc_nulls_last())
                tie = F.col("row").desc() if self.policy.rules[-1].rule == "last" else F.col("row").asc()
                ranked = whole.orderBy(*order, tie).withColumn("rank", F.monotonically_increasing_id())
            found = ranked.groupBy("leader").agg(
                F.min(F.struct("rank", "row")).alias("top"), F.count("*").alias("size")
            )
            return found.select("leader", F.col("top.row").alias("best"), "size", F.col("top.rank").alias("rank"))

        return self.checkpoints.frame("ranks", make)

    def _scored(self, rule: Keep) -> Any:
        """Return (row, value) of the members: their lengths, or a column."""
        from pyspark.sql import functions as F

        if rule.column is None:
            lengths = self.corpus.texts.withColumn(VALUE, F.char_length(TEXT).cast("bigint"))
            return self.values(VALUE, lengths)
        new = 0 if self.corpus.across else len(self.corpus.parts) - 1
        return self.values(rule.column, cast=check_scores(self.corpus.parts[new], rule), part=new)

    def ranks(self, nodes: Ints) -> Ints:
        """Return the order of some nodes, which ascend: 0 for the most preferred."""
        found = self.ranked.join(self.arrow(leader=nodes), "leader").select("leader", "rank").toArrow()
        leaders, ranks = (np.asarray(found.column(name), np.int64) for name in ("leader", "rank"))
        order = np.argsort(ranks[np.argsort(leaders)])
        out = np.empty(len(nodes), np.int64)
        out[order] = np.arange(len(nodes))
        return out

    def of(self, rows: Ints) -> tuple[Ints, Ints, Ints]:
        """Return all rows that have an equal set with one of these: row, first, leader."""
        chosen = self.frame.join(self.arrow(row=rows), "row").select("leader").distinct()
        found = self.frame.join(chosen, "leader").select("row", "first", "leader").toArrow()
        row, first, leader = (np.asarray(found.column(name), np.int64) for name in ("row", "first", "leader"))
        return row, first, leader


def _resolved(links: Any) -> Any:
    """Return links (a, b) whose targets may be linked once more, to rows that are not."""
    again = links.toDF("c", "d")
    return links.join(again, links[B] == again["c"], "left").selectExpr(A, f"coalesce(d, {B}) as {B}")


def _positions(batches: Iterator[Any], start: int, missing: Any) -> Iterator[Any]:
    for batch in batches:
        rows = np.asarray(batch.column(0), np.int64) - start
        for one in missing.value:
            rows = rows if one is None else one.others(rows)
        yield pa.RecordBatch.from_arrays([batch.column(0), to_arrow(rows)], [ROW, VALUE])


def _members(batches: Iterator[Any], numbering: Any, known: Any, cast: str) -> Iterator[Any]:
    """Yield the number and the value of the rows that are members."""
    for batch in batches:
        rows, rest = numbered(batch, numbering.value)
        chosen: NDArray[np.bool_] = known.value.has(rows)
        values = rest.column(0).filter(pa.array(chosen))
        if cast:
            try:
                values = values.cast(pa.float64())
            except pa.ArrowInvalid as error:
                raise ColumnError(f"column '{cast}' of the keep policy mixes numbers and text: {error}") from error
        yield pa.RecordBatch.from_arrays([to_arrow(rows[chosen]), values], [ROW, VALUE])
