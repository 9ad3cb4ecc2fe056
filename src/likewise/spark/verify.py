"""Candidate pairs to verified pairs: documents that candidates connect meet in one task, each sent there once.

A task gets whole components of the graph of candidates. A component that is too large for one task is cut into blocks;
a document then goes to each task that has a pair of it, and to no other. The driver decides that; for large corpora see
`meetings`.
"""

from __future__ import annotations

from functools import partial
from typing import Any

import numpy as np
import pyarrow as pa

from likewise.base.arrays import Ints
from likewise.base.random import mix
from likewise.search.scored import ScoredPairs, no_pairs, packed
from likewise.search.verify import blocks_of
from likewise.spark import exchange, travel
from likewise.spark.corpus import Corpus
from likewise.spark.exchange import Outbox, addresses, collected, shuffled
from likewise.spark.large_pairs import opened_pairs, sorted_pairs
from likewise.spark.store import Checkpoints
from likewise.spark.travel import (
    SCHEMA,
    Journeys,
    PairComparison,
    SlotComparison,
    mean_size,
    tasks_for,
    with_numbers,
)

BLOCKS = 4
"""Blocks of documents per task: components are packed more evenly into small ones."""


def verify(
    corpus: Corpus, left: Ints, right: Ints, comparison: PairComparison, checkpoints: Checkpoints, sketches: Any = None,
    step: str = "verify",
) -> ScoredPairs:  # fmt: skip
    """Return the pairs of rows that count, sorted, with their scores; signatures are in the sketches."""
    if not len(left):
        return no_pairs()

    def make() -> Any:
        rows = np.unique(np.concatenate([left, right]))
        parts = tasks_for(corpus, len(left), len(rows) * mean_size(corpus, comparison))
        targets = addresses(parts)
        of, journeys = _journeys(rows, left, right, parts)
        route = corpus.broadcast(Journeys(*journeys, targets))
        if isinstance(comparison, SlotComparison):
            sender = partial(travel.sent_slots, slots=comparison.slots, route=route)
            documents = sketches.select("rows", "units", "slots").mapInArrow(sender, SCHEMA)
        else:
            sender = partial(travel.sent_texts, numbering=corpus.shared_numbering, route=route)
            documents = corpus.map_texts(sender, SCHEMA, rows)
        pairs = corpus.session.createDataFrame(_pair_table(left, right, of, targets), SCHEMA)
        whole = shuffled(documents.unionAll(pairs), parts)
        return whole.mapInArrow(partial(travel.compared, task=corpus.broadcast(comparison)), exchange.SCHEMA)

    found = collected(checkpoints.table(step, make)).get(0, exchange.nothing())
    return sorted_pairs(opened_pairs(*found))


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
    """Return the pairs on their way to their tasks."""
    outbox = Outbox(targets, 0)
    sent = [*outbox.add(of, left, right.astype(np.uint64)), *outbox.sent()]
    return pa.Table.from_batches([with_numbers(one) for one in sent]).combine_chunks()
