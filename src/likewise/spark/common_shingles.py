"""Shingles that too many documents share: suspected on a sample, counted exactly in one map over all documents."""

from __future__ import annotations

from collections.abc import Iterator
from functools import partial
from typing import Any

import numpy as np
import pyarrow as pa

from likewise.base.arrays import Hashes, to_arrow
from likewise.base.runlog import RunLog
from likewise.kernels.hashtable import count_carriers
from likewise.search.common_shingles import SAMPLE, common_ones, described, suspected, value_table, without_counts
from likewise.search.prepare import SPELLED, lowest
from likewise.shingle import Shingler
from likewise.spark import steps
from likewise.spark.copies import FirstRows
from likewise.spark.corpus import Corpus, SampledItems, numbered
from likewise.spark.direct import TEXT
from likewise.spark.node import ready
from likewise.spark.rowset import RowSet
from likewise.spark.store import Checkpoints

COUNTS = "place bigint, carriers bigint"


def find_common(
    corpus: Corpus, shingler: Shingler, first: FirstRows, copies: RowSet, fraction: float, seed: int,
    checkpoints: Checkpoints, log: RunLog,
) -> Hashes:  # fmt: skip
    """Return the shingles in more than this fraction of the different documents, and log which they are."""
    order = lowest(seed, len(first), SAMPLE)
    chosen = first[np.sort(order)]
    texts = SampledItems(corpus, shingler).texts(chosen)
    suspects = suspected(without_counts(texts).sets(np.arange(len(chosen)), 1), len(first), fraction)
    table = value_table(suspects)

    def make() -> Any:
        known = corpus.broadcast((shingler, copies, table))
        counted = corpus.map_texts(partial(_counted, numbering=corpus.shared_numbering, known=known), COUNTS)
        return counted.groupBy("place").sum("carriers").toDF("place", "carriers")

    found = checkpoints.table("common", make)
    carriers = np.zeros(len(table), np.int64)
    carriers[np.asarray(found.column("place"), np.int64)] = np.asarray(found.column("carriers"), np.int64)
    common = common_ones(suspects, table, carriers, fraction * len(first))
    shown = np.searchsorted(chosen, first[np.sort(order[:SPELLED])])
    log.details["ignored"] = described(texts, shown, common, len(first))
    return common.values


def _counted(batches: Iterator[Any], numbering: Any, known: Any) -> Iterator[Any]:
    """Count the documents of a task that have each of the suspected shingles."""
    ready()
    shingler, copies, table = known.value
    carriers = np.zeros(len(table), np.int64)
    for batch in batches:
        rows, rest = numbered(batch, numbering.value)
        chosen = np.flatnonzero(~copies.has(rows))
        if len(chosen):
            items = steps.items_of(rest.column(rest.schema.get_field_index(TEXT)), shingler, None)
            sets = without_counts(items).sets(chosen, 1)
            count_carriers(sets.values, sets.offsets, table, carriers)
    places = np.flatnonzero(carriers)
    yield pa.RecordBatch.from_arrays([to_arrow(places), to_arrow(carriers[places])], ["place", "carriers"])
