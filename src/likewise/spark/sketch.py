"""Text to band keys in one map; the sample of the certificate is shown every document as it passes."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from functools import partial
from typing import Any

import numpy as np
import pyarrow as pa
from numpy.typing import NDArray

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
from likewise.spark.copies import EMPTY, FirstRows, RowLinks, linked, sent_digests
from likewise.spark.corpus import Corpus, SampledItems, numbered
from likewise.spark.direct import TEXT
from likewise.spark.exchange import SCHEMA as PARCEL
from likewise.spark.exchange import addresses, parcel, partitions, shuffled
from likewise.spark.node import ready
from likewise.spark.rowset import RowSet
from likewise.spark.store import Checkpoints

COUNTS = "place bigint, carriers bigint"


def find_common(
    corpus: Corpus, shingler: Shingler, first: FirstRows, copies: RowSet, fraction: float, seed: int,
    checkpoints: Checkpoints, log: RunLog, threads: int,
) -> Hashes:  # fmt: skip
    """Return the shingles in more than this fraction of the different documents, and log which they are."""
    order = lowest(seed, len(first), SAMPLE)
    chosen = first[np.sort(order)]
    texts = SampledItems(corpus, checkpoints, shingler).texts(chosen, threads)
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


COLUMNS = ["rows", "units", "keys", "slots", "sample", "found"]
SCHEMA = ", ".join(f"{name} binary" for name in COLUMNS)
"""The sketches of a batch: rows, fingerprints of sets, band keys, for estimates signatures; and neighbours of the
sample."""


@dataclass(frozen=True)
class SketchRecipe:
    """How documents are sketched; the sample is not shown those of earlier runs.

    written: what is sketched: the keys of the bands or, where similarities are estimated, single slots, of which those
    of the bands are made.
    """

    shingler: Shingler
    common: Hashes | None
    minhash: MinHash
    banding: Banding
    written: Banding
    probe: Probe
    earlier: int
    estimate: bool

    def keys_and_slots(self, sketched: Any) -> tuple[Any, Any]:
        """Return the band keys of documents, and their signatures, if these are kept."""
        if not self.estimate:
            return sketched, sketched[:0]
        return steps.banded_keys(sketched, self.banding), sketched


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
        arrays = rows, units, *recipe.keys_and_slots(keys), sample, found
        columns = [pa.array([np.ascontiguousarray(array).tobytes()], pa.binary()) for array in arrays]
        yield pa.RecordBatch.from_arrays(columns, COLUMNS)


def held(
    checkpoints: Checkpoints, column: str, dtype: type[np.generic], width: int, skipped: RowSet
) -> tuple[Ints, NDArray[Any]]:
    """Bring a column of sketches to the driver: rows, ascending, and what each of them has; some rows are skipped."""
    rows, values = [np.zeros(0, np.int64)], [np.zeros((0, width), dtype)]
    for batch in checkpoints.batches("sketch", ["rows", column]):
        for row, value in zip(*batch.columns, strict=True):
            numbers = np.frombuffer(row.as_buffer(), np.int64)
            chosen = ~skipped.has(numbers)
            rows.append(numbers[chosen])
            values.append(np.frombuffer(value.as_buffer(), dtype).reshape(-1, width)[chosen])
    numbers, found = np.concatenate(rows), np.concatenate(values)
    del values
    if (np.diff(numbers) > 0).all():
        return numbers, found
    order = np.argsort(numbers, kind="stable")
    return numbers[order], found[order]


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


def find_groups(corpus: Corpus, sketches: Any, checkpoints: Checkpoints) -> RowLinks:
    """Find the rows whose sets equal that of an earlier one, and the first rows that are empty, one a side."""
    if not corpus.large:
        return RowLinks.among(corpus, *held(checkpoints, "units", np.uint64, 2, RowSet(len(corpus))))

    def make() -> Any:
        parts = partitions(corpus.session, len(corpus))
        sender = partial(_units, split=corpus.split, targets=addresses(parts))
        return shuffled(sketches.select("rows", "units").mapInArrow(sender, PARCEL), parts).mapInArrow(linked, PARCEL)

    return RowLinks.of(corpus, "groups", make, checkpoints)


def _units(batches: Iterator[Any], split: int, targets: Any) -> Iterator[Any]:
    """Send the fingerprints of the sets of a task."""
    ready()
    rows, units = [], []
    for batch in batches:
        for row, unit in zip(batch.column(0), batch.column(1), strict=True):
            rows.append(np.frombuffer(row.as_buffer(), np.int64))
            units.append(np.frombuffer(unit.as_buffer(), np.uint64).reshape(-1, 2))
    if not rows:
        return
    numbers, digests = np.concatenate(rows), np.concatenate(units)
    empty = numbers[~(digests != 0).any(axis=1)]
    for side in (empty[empty < split], empty[empty >= split]):
        if len(side):
            lowest = np.array([side.min()])
            yield from parcel(int(targets[0]), EMPTY, lowest, lowest.view(np.uint64))
    yield from sent_digests(numbers, digests, split, targets)
