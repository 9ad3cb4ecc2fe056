"""Text to band keys in one map; the sample of the certificate is shown every document as it passes."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from functools import partial
from typing import Any

import numpy as np
import pyarrow as pa

from likewise.base.arrays import Hashes, Ints, to_arrow
from likewise.base.random import mix
from likewise.base.runlog import RunLog
from likewise.families.banding import Banding
from likewise.families.minhash import MinHash
from likewise.kernels.hashtable import count_carriers
from likewise.search.common_shingles import SAMPLE, common_ones, described, suspected, value_table, without_counts
from likewise.search.prepare import SPELLED, lowest
from likewise.search.recall.sample import Probe
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


SCHEMA = "rows binary, units binary, keys binary, sample binary, found binary"
"""The sketches of a batch: rows, fingerprints of sets, band keys; and neighbours of the sample."""


@dataclass(frozen=True)
class SketchRecipe:
    """How documents are sketched; the sample is not shown those of earlier runs.

    written: the keys that are written, those of the bands or, where similarities are estimated, of single slots.
    """

    shingler: Shingler
    common: Hashes | None
    minhash: MinHash
    banding: Banding
    written: Banding
    probe: Probe
    earlier: int


def sketch(corpus: Corpus, recipe: SketchRecipe, first: FirstRows, copies: RowSet, checkpoints: Checkpoints) -> Any:
    """Sketch every document that is not a copy."""

    def make() -> Any:
        known = corpus.broadcast((recipe, first, copies))
        return corpus.map_texts(partial(_sketched, numbering=corpus.shared_numbering, known=known), SCHEMA)

    return checkpoints.frame("sketch", make)


def _sketched(batches: Iterator[Any], numbering: Any, known: Any) -> Iterator[Any]:
    """Sketch the documents of a task."""
    ready()
    recipe, first, copies = known.value
    for batch in batches:
        rows, rest = numbered(batch, numbering.value)
        chosen = np.flatnonzero(~copies.has(rows))
        if not len(chosen):
            continue
        items = steps.items_of(rest.column(rest.schema.get_field_index(TEXT)), recipe.shingler, recipe.common)
        probe = recipe.probe if recipe.probe.sets else None
        units, keys, sample, found = steps.sketched(items, chosen, recipe.minhash, recipe.written, probe)
        rows = rows[chosen]
        found = rows[found]
        new = found >= recipe.earlier
        sample, found = sample[new], found[new]
        if recipe.probe.one_in > 1:
            counts = mix(first.place(found).astype(np.uint64)) % np.uint64(recipe.probe.one_in) == 0
            sample, found = sample[counts], found[counts]
        arrays = rows, units, keys, sample, found
        columns = [pa.array([np.ascontiguousarray(array).tobytes()], pa.binary()) for array in arrays]
        yield pa.RecordBatch.from_arrays(columns, ["rows", "units", "keys", "sample", "found"])


def neighbours(checkpoints: Checkpoints) -> tuple[Ints, Ints]:
    """Return (set of the sample, row) of every true neighbour of the sample, sorted."""
    table = checkpoints.columns("sketch", ["sample", "found"])
    parts = [
        np.concatenate(
            [np.zeros(0, np.int64), *(np.frombuffer(value.as_buffer(), np.int64) for value in table.column(name))]
        )
        for name in ("sample", "found")
    ]
    order = np.lexsort((parts[1], parts[0]))
    return parts[0][order], parts[1][order]
