"""Documents that another one may contain, and those that may contain them: what the driver joins by containment.

As `by_join` narrows its sets: most documents have too many shingles that no other document has. Shingles meet by their
values, of which a share is enough; a shingle that several documents of a task have is sent once. Documents that remain
come to the driver, and their shingles go to all tasks, which tell what other documents have enough of them.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from functools import partial
from typing import Any

import numpy as np
from numpy.typing import NDArray

from likewise.base.arrays import Hashes, Ints, Sets
from likewise.kernels.strings import SAMPLE_ODD, with_symbols
from likewise.search.by_join import enough_eighths
from likewise.search.common_shingles import value_table
from likewise.search.exact.bounds import Bounds
from likewise.search.exact.prefixes import Lengths
from likewise.search.items import TextItems
from likewise.shingle import Shingler
from likewise.spark import steps
from likewise.spark.corpus import Corpus, numbered
from likewise.spark.direct import TEXT
from likewise.spark.exchange import (
    HELD,
    SCHEMA,
    Outbox,
    addresses,
    collected,
    nothing,
    opened,
    parcel,
    parcel_rows,
    partitions,
    shuffled,
)
from likewise.spark.node import ready
from likewise.spark.rowset import RowSet
from likewise.spark.store import Checkpoints

ENTRY, OWN, ALONE, OUTER = range(50, 54)
"""Kinds of parcels: a shingle with its document; a document with how many shingles it has alone; a document that has
too many; a document with enough shingles of others."""
ROW_BITS, MOST = 40, (1 << 23) - 1
"""Bits of the number of a document, beside which stands how many shingles it may have alone, at most `MOST`."""
SEVERAL = np.int64(-1)
"""In place of a document: several have the shingle."""
MOST_SENT = 1 << 24
"""Shingles that are sent to every process of tasks, at most: a table of 256 MB."""
BYTES_A_SHINGLE = 6
"""Bytes of text for each shingle, which choose the number of tasks."""


@dataclass(frozen=True)
class ContainedSearch:
    """What tasks know: how sets are made, which rows are copies, and the threshold."""

    shingler: Shingler
    common: Hashes | None
    copies: RowSet
    bounds: Bounds

    def sets(self, rows: Ints, texts: Any) -> tuple[Ints, Sets]:
        """Return the sets of a batch, and their rows, but for copies."""
        chosen = np.flatnonzero(~self.copies.has(rows))
        items = steps.items_of(texts, self.shingler, self.common)
        return rows[chosen], items.sets(chosen, 1)

    def least(self, sets: Sets) -> Ints:
        """Return how many shingles of each set another one must have."""
        return Lengths.of(sets.sizes, self.bounds, False).shortest


def narrowed(corpus: Corpus, search: ContainedSearch, first: Any, fetch: Any, checkpoints: Checkpoints) -> Ints:
    """Return the rows to join: the first of equal documents that another may contain, or that may contain one of them.

    fetch: brings documents to the driver.
    """
    everyone: Ints = first[np.arange(len(first))]
    known = corpus.broadcast(search)
    parts = partitions(corpus.session, corpus.numbering.bytes // BYTES_A_SHINGLE)

    def make() -> Any:
        sending = partial(_sent, numbering=corpus.shared_numbering, known=known, targets=addresses(parts))
        met = shuffled(corpus.map_texts(sending, SCHEMA), parts)
        counted = met.mapInArrow(partial(_counted, targets=addresses(parts)), SCHEMA)
        return shuffled(counted, parts).mapInArrow(_alone, SCHEMA)

    alone = RowSet(len(corpus), parcel_rows(checkpoints.frame("alone", make)))
    inner = everyone[~alone.has(everyone)]
    if 2 * len(inner) > len(everyone):
        return everyone
    items: TextItems = fetch(inner)
    sets = items.sets(np.arange(len(inner)), 1)
    filled = sets.sizes > 0
    if not filled.any():
        return inner
    if len(sets.values) > MOST_SENT:
        return everyone
    table, fewest = corpus.broadcast(value_table(np.unique(sets.values))), int(search.least(sets)[filled].min())
    looking = partial(_outer, numbering=corpus.shared_numbering, known=known, table=table, fewest=fewest)
    outer = collected(checkpoints.table("outer", lambda: corpus.map_texts(looking, SCHEMA))).get(OUTER, nothing())[0]
    return np.union1d(inner, outer)


def _sets(batches: Iterator[Any], numbering: Any, known: Any) -> Iterator[tuple[Ints, Sets]]:
    ready()
    for batch in batches:
        rows, rest = numbered(batch, numbering.value)
        yield known.value.sets(rows, rest.column(rest.schema.get_field_index(TEXT)))


def _sent(batches: Iterator[Any], numbering: Any, known: Any, targets: Any) -> Iterator[Any]:
    """Send the shingles of a task, of a share of all values, to where these meet."""
    search: ContainedSearch = known.value
    most = np.uint64(enough_eighths(search.bounds))
    held: list[tuple[Hashes, Ints]] = []
    for rows, sets in _sets(batches, numbering, known):
        allowed = sets.sizes - search.least(sets)
        few = np.repeat(allowed < MOST, sets.sizes)
        owners = np.repeat(rows | (np.minimum(allowed, MOST) << ROW_BITS), sets.sizes)
        values = sets.values.astype(np.uint64)
        chosen: NDArray[np.bool_] = few & ((values * SAMPLE_ODD) >> np.uint64(61) < most)
        held.append((values[chosen], owners[chosen]))
        if sum(len(one) for one, _ in held) >= HELD:
            yield from _collapsed(held, targets)
            held = []
    if held:
        yield from _collapsed(held, targets)


def _collapsed(held: list[tuple[Hashes, Ints]], targets: Any) -> Iterator[Any]:
    """Send each of these shingles once."""
    values, owners = _singles(*(np.concatenate(side) for side in zip(*held, strict=True)))
    outbox = Outbox(targets, ENTRY)
    yield from outbox.add(steps.scattered(values, len(targets)), owners, values)
    yield from outbox.sent()


def _singles(values: Hashes, owners: Ints) -> tuple[Hashes, Ints]:
    """Return the different values, and the owner of each, or `SEVERAL`."""
    different, first, counts = np.unique(values, return_index=True, return_counts=True)
    return different, np.where(counts > 1, SEVERAL, owners[first])


def _counted(batches: Iterator[Any], targets: Any) -> Iterator[Any]:
    """Count the shingles that documents have alone, and send the numbers to where the documents meet."""
    owners, values = opened(batches).get(ENTRY, nothing())
    if not len(owners):
        return
    single = _singles(values, owners)[1]
    different, counts = np.unique(single[single != SEVERAL], return_counts=True)
    rows, allowed = different & ((1 << ROW_BITS) - 1), different >> ROW_BITS
    outbox = Outbox(targets, OWN, 2)
    words = np.stack([counts, allowed], axis=1).astype(np.uint64).ravel()
    yield from outbox.add(steps.scattered(rows.view(np.uint64), len(targets)), rows, words)
    yield from outbox.sent()


def _alone(batches: Iterator[Any]) -> Iterator[Any]:
    """Yield the documents that have too many shingles alone."""
    rows, words = opened(batches).get(OWN, nothing())
    if not len(rows):
        return
    numbers = words.reshape(-1, 2).astype(np.int64)
    different, first, of = np.unique(rows, return_index=True, return_inverse=True)
    gone = different[np.bincount(of, numbers[:, 0]) > numbers[first, 1]]
    yield from parcel(0, ALONE, gone, gone.view(np.uint64))


def _outer(batches: Iterator[Any], numbering: Any, known: Any, table: Any, fewest: int) -> Iterator[Any]:
    """Yield the documents that have so many shingles of a table."""
    for rows, sets in _sets(batches, numbering, known):
        out = np.zeros(len(rows), bool)
        with_symbols(sets.values, sets.offsets, np.arange(len(rows)), table.value, fewest, out)
        yield from parcel(0, OUTER, rows[out], rows[out].view(np.uint64))
