"""Candidate pairs to verified pairs: documents that candidates connect meet in one task, each sent there once.

A task gets whole components of the graph of candidates. A component that is too large for one task is cut into blocks;
a document then goes to each task that has a pair of it, and to no other.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from functools import partial
from typing import Any

import numpy as np
import pyarrow as pa

from likewise.base.arrays import Hashes, Ints, to_arrow
from likewise.base.random import mix
from likewise.search.scored import ScoredPairs, no_pairs, packed
from likewise.search.verify import blocks_of
from likewise.shingle import Shingler
from likewise.spark import exchange, steps
from likewise.spark.corpus import ROW, Corpus, numbered
from likewise.spark.direct import TEXT
from likewise.spark.exchange import TARGET, addresses, collected, parcel, shuffled
from likewise.spark.node import ready
from likewise.spark.store import Checkpoints

LEFT, RIGHT = "left", "right"
PER_TASK = 32 << 20
"""Bytes of documents that a task compares, about; their sets take four times as much."""
BLOCKS = 4
"""Blocks of documents per task: components are packed more evenly into small ones."""


@dataclass(frozen=True)
class Journeys:
    """Which documents go where: rows ascend; a row with pairs in several tasks is there several times."""

    rows: Ints
    parts: Ints
    targets: Any


def verify(
    corpus: Corpus, left: Ints, right: Ints, shingler: Shingler, common: Hashes | None, threshold: float,
    checkpoints: Checkpoints,
) -> ScoredPairs:  # fmt: skip
    """Return the pairs of rows whose sets reach the threshold, sorted, with their exact similarity."""
    if not len(left):
        return no_pairs()

    def make() -> Any:
        rows = np.unique(np.concatenate([left, right]))
        mean = max(1, corpus.numbering.bytes // max(1, len(corpus)))
        parts = max(exchange.partitions(corpus.session, len(left)), -(-len(rows) * mean // PER_TASK))
        targets = addresses(parts)
        of, journeys = _journeys(rows, left, right, parts)
        known = corpus.broadcast(Journeys(*journeys, targets))
        schema = f"{TARGET} int, {ROW} bigint, {TEXT} string, {LEFT} binary, {RIGHT} binary"
        sender = partial(_sent, numbering=corpus.shared_numbering, known=known)
        documents = corpus.map_texts(sender, schema, rows)
        pairs = corpus.session.createDataFrame(_pair_table(left, right, of, targets), schema)
        task = corpus.broadcast((shingler, common, threshold))
        whole = shuffled(documents.unionAll(pairs), parts)
        return whole.mapInArrow(partial(_verified, task=task), exchange.SCHEMA)

    a, words = collected(checkpoints.table("verify", make)).get(0, exchange.nothing())
    b, similarity = words.reshape(-1, 2)[:, 0].astype(np.int64), words.reshape(-1, 2)[:, 1].copy().view(np.float64)
    order = np.lexsort((b, a))
    return a[order], b[order], similarity[order]


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


def _pair_table(left: Ints, right: Ints, of: Ints, targets: Any) -> pa.Table:
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
            TEXT: pa.nulls(len(spans), pa.string()),
            LEFT: pa.array([left[start:stop].tobytes() for start, stop in spans], pa.binary()),
            RIGHT: pa.array([right[start:stop].tobytes() for start, stop in spans], pa.binary()),
        }
    )


def _sent(batches: Iterator[Any], numbering: Any, known: Any) -> Iterator[Any]:
    """Send the documents of a task to those that compare them."""
    plan = known.value
    for batch in batches:
        rows, rest = numbered(batch, numbering.value)
        low, high = np.searchsorted(plan.rows, rows), np.searchsorted(plan.rows, rows, side="right")
        times = high - low
        total = int(times.sum())
        if not total:
            continue
        places = np.repeat(low - np.cumsum(times) + times, times) + np.arange(total)
        texts = rest.column(rest.schema.get_field_index(TEXT)).take(to_arrow(np.repeat(np.arange(len(rows)), times)))
        nothing = pa.nulls(total, pa.binary())
        columns = [
            pa.array(plan.targets[plan.parts[places]]),
            to_arrow(np.repeat(rows, times)),
            texts,
            nothing,
            nothing,
        ]
        yield pa.RecordBatch.from_arrays(columns, [TARGET, ROW, TEXT, LEFT, RIGHT])


def _verified(batches: Iterator[Any], task: Any) -> Iterator[Any]:
    """Compare the pairs that came to a task."""
    ready()
    shingler, common, threshold = task.value
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
    documents = pa.concat_arrays([array.cast(pa.large_string()) for array in texts]).take(to_arrow(order))
    a, b = (np.searchsorted(rows, np.concatenate(side)) for side in (left, right))
    by = np.argsort(packed(a, b), kind="stable")
    a, b, similarity = steps.compared(steps.items_of(documents, shingler, common), a[by], b[by], threshold)
    words = np.stack([rows[b].view(np.uint64), similarity.view(np.uint64)], axis=1)
    yield from parcel(0, 0, rows[a], words.ravel())
