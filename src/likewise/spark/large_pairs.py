"""The verified pairs of a large corpus: they stay on the cluster, and the driver asks for sums and for a few."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from functools import cached_property, partial
from typing import Any

import numpy as np
import pyarrow as pa

from likewise.base.arrays import Ints, to_arrow
from likewise.families.banding import Banding
from likewise.search.scored import ScoredPairs
from likewise.spark.exchange import KIND, ROWS, WORDS, collected, nothing, opened, parcel, parcel_frame
from likewise.spark.store import Checkpoints

A, B, SIMILARITY, SAME_SETS = "a", "b", "similarity", "same"
EDGES = f"{A} bigint, {B} bigint, {SIMILARITY} double, {SAME_SETS} boolean"
SAME = 2.0
"""The score of two signatures of equal sets, which agree in all slots as those of nearly equal sets may; also of two
empty documents, one of each collection."""


def pair_parcels(kind: int, pairs: ScoredPairs) -> Iterator[Any]:
    """Yield parcels of pairs: the rows of the first, and beside each the second and the bits of the similarity."""
    left, right, similarity = pairs
    words = np.stack([right.astype(np.int64).view(np.uint64), similarity.view(np.uint64)], axis=1)
    yield from parcel(0, kind, left, words.ravel())


def opened_pairs(left: Ints, words: Any) -> ScoredPairs:
    """Return the pairs of parcels."""
    return left, words[0::2].astype(np.int64), words[1::2].copy().view(np.float64)


def pairs_of_step(checkpoints: Checkpoints, step: str) -> ScoredPairs:
    """Bring the pairs that a step has found to the driver, sorted."""
    found = collected(checkpoints.columns(step, [KIND, ROWS, WORDS]))
    return sorted_pairs(opened_pairs(*found.get(0, nothing())))


def sorted_pairs(pairs: ScoredPairs) -> ScoredPairs:
    """Return pairs in the order of the first, then of the second."""
    left, right, similarity = pairs
    order = np.lexsort((right, left))
    return left[order], right[order], similarity[order]


@dataclass(frozen=True)
class LargePairs:
    """Parcels of pairs, each pair once."""

    frame: Any

    @classmethod
    def of(cls, session: Any, pairs: ScoredPairs) -> LargePairs:
        """Send pairs of the driver to the cluster."""
        return cls(parcel_frame(session, pair_parcels(0, pairs)))

    @cached_property
    def count(self) -> int:
        """The number of pairs."""
        return int(self.frame.selectExpr(f"coalesce(sum(length({ROWS})), 0)").first()[0]) // 8

    @property
    def edges(self) -> Any:
        """The pairs as rows of Spark: a, b, similarity, and whether their sets are known to be equal."""
        return self.frame.mapInArrow(_edges, EDGES)

    @property
    def rows(self) -> Any:
        """The rows of all pairs, some of them several times."""
        return self.frame.mapInArrow(_rows, "leader bigint")

    def with_pair(self, left: int, right: int) -> LargePairs:
        """Add a pair of two documents whose sets are equal."""
        one = np.array([left]), np.array([right]), np.array([SAME])
        return LargePairs(self.frame.unionByName(LargePairs.of(self.frame.sparkSession, one).frame))

    def reaching(self, threshold: float) -> LargePairs:
        """Return the pairs that reach a threshold."""
        return LargePairs(self.frame.mapInArrow(partial(_reaching, threshold=threshold), self.frame.schema))

    def among(self, rows: Ints) -> ScoredPairs:
        """Bring those pairs to the driver, sorted, of which both rows are among these."""
        from pyspark.sql import functions as F

        session = self.frame.sparkSession
        one, other = (F.broadcast(session.createDataFrame(pa.table({name: to_arrow(rows)}))) for name in (A, B))
        return _arrays(self.edges.join(one, A).join(other, B).select(A, B, SIMILARITY).toArrow())

    def expected_recall(self, banding: Banding) -> float | None:
        """Return the recall that the pairs imply, as `certificate.expected_recall` does."""
        sums = self.edges.select(SIMILARITY).mapInArrow(partial(_represented, banding=banding), "total double")
        return self.count / float(sums.selectExpr("sum(total)").first()[0]) if self.count else None


def _arrays(table: pa.Table) -> ScoredPairs:
    left, right = (np.asarray(table.column(name), np.int64) for name in (A, B))
    return sorted_pairs((left, right, np.asarray(table.column(SIMILARITY), np.float64)))


def _pairs(batches: Iterator[Any]) -> Iterator[ScoredPairs]:
    for batch in batches:
        for rows, words in opened([batch]).values():
            yield opened_pairs(rows, words)


def _edges(batches: Iterator[Any]) -> Iterator[Any]:
    for left, right, similarity in _pairs(batches):
        columns = [to_arrow(left), to_arrow(right), pa.array(np.minimum(similarity, 1.0)), pa.array(similarity == SAME)]
        yield pa.RecordBatch.from_arrays(columns, [A, B, SIMILARITY, SAME_SETS])


def _rows(batches: Iterator[Any]) -> Iterator[Any]:
    for left, right, _ in _pairs(batches):
        yield pa.RecordBatch.from_arrays([to_arrow(np.unique(np.concatenate([left, right])))], ["leader"])


def _reaching(batches: Iterator[Any], threshold: float) -> Iterator[Any]:
    for left, right, similarity in _pairs(batches):
        high = similarity >= threshold
        yield from pair_parcels(0, (left[high], right[high], similarity[high]))


def _represented(batches: Iterator[Any], banding: Banding) -> Iterator[Any]:
    """Yield how many true pairs those found stand for."""
    for batch in batches:
        total = (1 / banding.probability(np.asarray(batch.column(0), np.float64))).sum()
        yield pa.RecordBatch.from_arrays([pa.array([float(total)])], ["total"])
