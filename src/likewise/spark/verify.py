"""Candidate pairs to verified pairs: documents that candidates connect meet in one task, each sent there once.

A task gets whole components of the graph of candidates. A component that is too large for one task is cut into blocks;
a document then goes to each task that has a pair of it, and to no other.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from functools import partial
from typing import Any, Protocol

import numpy as np
import pyarrow as pa

from likewise.base.arrays import Hashes, Ints, to_arrow
from likewise.base.random import mix
from likewise.search.band_keys import HeldKeys
from likewise.search.estimate import estimated
from likewise.search.scored import ScoredPairs, no_pairs, packed
from likewise.search.verify import blocks_of
from likewise.shingle import Shingler
from likewise.spark import exchange, steps
from likewise.spark.corpus import ROW, Corpus, among, numbered
from likewise.spark.direct import TEXT
from likewise.spark.exchange import TARGET, addresses, collected, parcel, shuffled
from likewise.spark.node import ready
from likewise.spark.store import Checkpoints

LEFT, RIGHT = "left", "right"
PER_TASK = 32 << 20
"""Bytes of documents that a task compares, about; their sets take four times as much."""
BLOCKS = 4
"""Blocks of documents per task: components are packed more evenly into small ones."""
UNIT = 4
"""Words of 32 bits of the fingerprint of a set."""
SAME = 2.0
"""The score of two signatures of equal sets, which agree in all slots as those of nearly equal sets may."""


@dataclass(frozen=True)
class Journeys:
    """Which documents go where: rows ascend; a row with pairs in several tasks is there several times."""

    rows: Ints
    parts: Ints
    targets: Any


class PairComparison(Protocol):
    """What tasks do with documents that meet.

    kind: the type that Spark has for what travels of a document. size: its bytes; None if they differ.
    """

    kind: str

    @property
    def size(self) -> int | None:
        """The bytes of a document."""

    def scored(self, documents: Any, left: Ints, right: Ints) -> ScoredPairs:
        """Return the pairs of these documents, an Arrow array, that count, with their scores; pairs are sorted."""


@dataclass(frozen=True)
class TextComparison:
    """Texts compared by their sets of shingles."""

    shingler: Shingler
    common: Hashes | None
    threshold: float
    kind = "string"
    size = None

    def scored(self, documents: Any, left: Ints, right: Ints) -> ScoredPairs:
        """Return the pairs that reach the threshold."""
        return steps.compared(steps.items_of(documents, self.shingler, self.common), left, right, self.threshold)


@dataclass(frozen=True)
class SlotComparison:
    """Signatures compared by their slots, after the fingerprints of sets; equal sets get the score SAME."""

    slots: int
    threshold: float
    kind = "binary"

    @property
    def size(self) -> int:
        """The bytes of a fingerprint and a signature."""
        return 4 * (UNIT + self.slots)

    def scored(self, documents: Any, left: Ints, right: Ints) -> ScoredPairs:
        """Return the pairs that agree in so many slots as the threshold says."""
        whole = np.frombuffer(b"".join(documents.to_pylist()), np.uint32).reshape(len(documents), UNIT + self.slots)
        slots = HeldKeys(np.ascontiguousarray(whole[:, UNIT:]))
        a, b, similarity = estimated(slots, left, right, self.threshold, 1)
        same = (whole[a, :UNIT] == whole[b, :UNIT]).all(axis=1)
        return a, b, np.where(same, SAME, similarity)


def verify(
    corpus: Corpus, left: Ints, right: Ints, comparison: PairComparison, checkpoints: Checkpoints, sketches: Any = None,
    step: str = "verify",
) -> ScoredPairs:  # fmt: skip
    """Return the pairs of rows that count, sorted, with their scores; signatures are in the sketches."""
    if not len(left):
        return no_pairs()

    def make() -> Any:
        rows = np.unique(np.concatenate([left, right]))
        mean = comparison.size or max(1, corpus.numbering.bytes // max(1, len(corpus)))
        parts = max(exchange.partitions(corpus.session, len(left)), -(-len(rows) * mean // PER_TASK))
        targets = addresses(parts)
        of, journeys = _journeys(rows, left, right, parts)
        known = corpus.broadcast(Journeys(*journeys, targets))
        schema = f"{TARGET} int, {ROW} bigint, {TEXT} {comparison.kind}, {LEFT} binary, {RIGHT} binary"
        if isinstance(comparison, SlotComparison):
            sender = partial(_sent_slots, slots=comparison.slots, known=known)
            documents = sketches.select("rows", "units", "keys").mapInArrow(sender, schema)
        else:
            documents = corpus.map_texts(partial(_sent, numbering=corpus.shared_numbering, known=known), schema, rows)
        pairs = corpus.session.createDataFrame(_pair_table(left, right, of, targets, comparison.kind), schema)
        whole = shuffled(documents.unionAll(pairs), parts)
        return whole.mapInArrow(partial(_verified, task=corpus.broadcast(comparison)), exchange.SCHEMA)

    a, words = collected(checkpoints.table(step, make)).get(0, exchange.nothing())
    b, score = words.reshape(-1, 2)[:, 0].astype(np.int64), words.reshape(-1, 2)[:, 1].copy().view(np.float64)
    order = np.lexsort((b, a))
    return a[order], b[order], score[order]


def _journeys(rows: Ints, left: Ints, right: Ints, parts: int) -> tuple[Ints, tuple[Ints, Ints]]:
    """Return the task of every pair, and the rows that go to each task."""
    a, b = np.searchsorted(rows, left), np.searchsorted(rows, right)
    limit = max(1, len(rows) // (BLOCKS * parts))
    block = blocks_of(len(rows), a, b, np.ones(len(rows), np.int64), limit)
    low, high = np.minimum(block[a], block[b]), np.maximum(block[a], block[b])
    across = (mix((low.astype(np.uint64) << np.uint64(32)) | high.astype(np.uint64)) % np.uint64(parts)).astype(
        np.int64
    )
    of = np.where(low == high, low % parts, across)
    needed = np.unique(packed(np.concatenate([a, b]), np.concatenate([of, of])))
    return of, (rows[(needed >> np.uint64(32)).astype(np.int64)], (needed & np.uint64(0xFFFFFFFF)).astype(np.int64))


def _pair_table(left: Ints, right: Ints, of: Ints, targets: Any, kind: str) -> pa.Table:
    """Return the pairs as parcels for their tasks."""
    order = np.lexsort((right, left, of))
    left, right, of = left[order], right[order], of[order]
    cuts = np.union1d(np.flatnonzero(np.diff(of)) + 1, np.arange(exchange.PARCEL, len(of), exchange.PARCEL))
    starts, stops = [0, *cuts.tolist()], [*cuts.tolist(), len(of)]
    spans = list(zip(starts, stops, strict=True))
    return pa.table(
        {
            TARGET: pa.array([int(targets[of[start]]) for start, _ in spans], pa.int32()),
            ROW: pa.nulls(len(spans), pa.int64()),
            TEXT: pa.nulls(len(spans), pa.string() if kind == "string" else pa.binary()),
            LEFT: pa.array([left[start:stop].tobytes() for start, stop in spans], pa.binary()),
            RIGHT: pa.array([right[start:stop].tobytes() for start, stop in spans], pa.binary()),
        }
    )


def _sent(batches: Iterator[Any], numbering: Any, known: Any) -> Iterator[Any]:
    """Send the documents of a task to those that compare them."""
    for batch in batches:
        rows, rest = numbered(batch, numbering.value)
        yield from _on_their_way(rows, rest.column(rest.schema.get_field_index(TEXT)), known.value)


def _sent_slots(batches: Iterator[Any], slots: int, known: Any) -> Iterator[Any]:
    """Send the signatures of a task, each after the fingerprint of its set."""
    ready()
    for batch in batches:
        for row, unit, key in zip(*(batch.column(place) for place in range(3)), strict=True):
            rows = np.frombuffer(row.as_buffer(), np.int64)
            wanted = np.flatnonzero(among(rows, known.value.rows))
            if not len(wanted):
                continue
            units = np.frombuffer(unit.as_buffer(), np.uint32).reshape(-1, UNIT)[wanted]
            keys = np.frombuffer(key.as_buffer(), np.uint32).reshape(-1, slots)[wanted]
            values = pa.array([one.tobytes() for one in np.concatenate([units, keys], axis=1)], pa.binary())
            yield from _on_their_way(rows[wanted], values, known.value)


def _on_their_way(rows: Ints, values: Any, plan: Journeys) -> Iterator[Any]:
    """Yield what travels of these rows, once for each task that it goes to."""
    low, high = np.searchsorted(plan.rows, rows), np.searchsorted(plan.rows, rows, side="right")
    times = high - low
    total = int(times.sum())
    if not total:
        return
    places = np.repeat(low - np.cumsum(times) + times, times) + np.arange(total)
    nothing = pa.nulls(total, pa.binary())
    columns = [
        pa.array(plan.targets[plan.parts[places]]),
        to_arrow(np.repeat(rows, times)),
        values.take(to_arrow(np.repeat(np.arange(len(rows)), times))),
        nothing,
        nothing,
    ]
    yield pa.RecordBatch.from_arrays(columns, [TARGET, ROW, TEXT, LEFT, RIGHT])


def _verified(batches: Iterator[Any], task: Any) -> Iterator[Any]:
    """Compare the pairs that came to a task."""
    ready()
    comparison = task.value
    numbers, texts, left, right = [], [], [], []
    for batch in batches:
        named = {name: batch.column(batch.schema.get_field_index(name)) for name in (ROW, TEXT, LEFT, RIGHT)}
        documents = named[ROW].is_valid()
        numbers.append(np.asarray(named[ROW].filter(documents), np.int64))
        texts.append(named[TEXT].filter(documents))
        for a, b in zip(named[LEFT].drop_null(), named[RIGHT].drop_null(), strict=True):
            left.append(np.frombuffer(a.as_buffer(), np.int64))
            right.append(np.frombuffer(b.as_buffer(), np.int64))
    if not left:
        return
    rows = np.concatenate(numbers)
    order = np.argsort(rows, kind="stable")
    rows = rows[order]
    wide = pa.large_string() if comparison.kind == "string" else pa.large_binary()
    documents = pa.concat_arrays([array.cast(wide) for array in texts]).take(to_arrow(order))
    a, b = (np.searchsorted(rows, np.concatenate(side)) for side in (left, right))
    by = np.argsort(packed(a, b), kind="stable")
    a, b, score = comparison.scored(documents, a[by], b[by])
    words = np.stack([rows[b].view(np.uint64), score.view(np.uint64)], axis=1)
    yield from parcel(0, 0, rows[a], words.ravel())
