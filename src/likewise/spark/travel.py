"""Documents and pairs on their way to the task that compares them, and what it does with them."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from itertools import pairwise
from typing import Any, Protocol

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
from numpy.typing import NDArray

from likewise.base.arrays import Hashes, Ints, to_arrow
from likewise.search.band_keys import HeldKeys
from likewise.search.estimate import estimated
from likewise.search.scored import ScoredPairs, packed
from likewise.shingle import Shingler
from likewise.spark import exchange, steps
from likewise.spark.corpus import Corpus, among, numbered
from likewise.spark.direct import TEXT
from likewise.spark.exchange import ROWS, TARGET, WORDS
from likewise.spark.large_pairs import SAME, pair_parcels
from likewise.spark.node import ready

UNIT = 4
"""Words of 32 bits of the fingerprint of a set."""


class PairComparison(Protocol):
    """What tasks do with documents that meet.

    kind: the type that Arrow has for what travels of a document. size: its bytes; None if they differ.
    """

    kind: pa.DataType

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
    kind = pa.large_string()
    size = None

    def scored(self, documents: Any, left: Ints, right: Ints) -> ScoredPairs:
        """Return the pairs that reach the threshold."""
        return steps.compared(steps.items_of(documents, self.shingler, self.common), left, right, self.threshold)


@dataclass(frozen=True)
class SlotComparison:
    """Signatures compared by their slots, after the fingerprints of sets; equal sets get the score SAME."""

    slots: int
    threshold: float
    kind = pa.large_binary()

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


DOCUMENTS, SIZES, TEXTS = "documents", "sizes", "texts"
COLUMNS = [TARGET, DOCUMENTS, SIZES, TEXTS, ROWS, WORDS]
SCHEMA = f"{TARGET} int, " + ", ".join(f"{name} binary" for name in COLUMNS[1:])
"""What travels: the task it goes to; the numbers of documents, their sizes, and the documents themselves end to end, so
that Java has no row for each; or else two arrays of numbers."""
AT_ONCE = 4 << 20
"""Bytes of documents that travel together, about."""
COPIED = 64 << 20
"""Bytes of documents that are sent in one go, about: one that goes to many tasks is copied for each of them."""
PER_TASK = 32 << 20
"""Bytes of documents that a task compares, about; their sets take four times as much."""


def mean_size(corpus: Corpus, comparison: PairComparison) -> int:
    """Return the bytes that travel of a document, on average."""
    return comparison.size or max(1, corpus.numbering.bytes // max(1, len(corpus)))


def tasks_for(corpus: Corpus, pairs: int, size: int) -> int:
    """Return how many tasks compare so many pairs of documents with so many bytes in all."""
    return max(exchange.partitions(corpus.session, pairs), -(-size // PER_TASK))


def with_documents(targets: NDArray[np.int32], rows: Ints, values: Any) -> Iterator[Any]:
    """Yield documents, an Arrow array, as what travels: those that go to one task together."""
    order = np.argsort(targets, kind="stable")
    targets, rows = targets[order], rows[order]
    taken = values.take(to_arrow(order)).cast(pa.large_binary())
    offsets = np.frombuffer(taken.buffers()[1], np.int64)[: len(rows) + 1]
    cuts = np.flatnonzero((np.diff(targets) != 0) | (np.diff(offsets[:-1] // AT_ONCE) != 0)) + 1
    for start, stop in pairwise([0, *cuts.tolist(), len(rows)]):
        size = int(offsets[stop] - offsets[start])
        arrays = (
            rows[start:stop].tobytes(),
            np.diff(offsets[start : stop + 1]).tobytes(),
            taken.buffers()[2].slice(int(offsets[start]), size).to_pybytes() if size else b"",
        )
        columns = [pa.array([targets[start]], pa.int32()), *(pa.array([one], pa.binary()) for one in arrays)]
        yield pa.RecordBatch.from_arrays([*columns, *(pa.nulls(1, pa.binary()) for _ in (ROWS, WORDS))], COLUMNS)


def with_numbers(parcels: Any) -> Any:
    """Return parcels as what travels."""
    nothing = [pa.nulls(len(parcels), pa.binary())] * 3
    return pa.RecordBatch.from_arrays([parcels.column(0), *nothing, *parcels.columns[2:]], COLUMNS)


@dataclass(frozen=True)
class Journeys:
    """Which documents go where: rows ascend; a row with pairs in several tasks is there several times."""

    rows: Ints
    parts: Ints
    targets: Any

    def wanted(self, rows: Ints) -> NDArray[np.bool_]:
        """Tell which rows go anywhere."""
        return among(rows, self.rows)

    def sent(self, rows: Ints, values: Any) -> Iterator[Any]:
        """Yield what travels of these rows, once for each task that it goes to."""
        low, high = np.searchsorted(self.rows, rows), np.searchsorted(self.rows, rows, side="right")
        times = high - low
        total = int(times.sum())
        if not total:
            return
        places = np.repeat(low - np.cumsum(times) + times, times) + np.arange(total)
        targets, chosen = self.targets[self.parts[places]], np.repeat(np.arange(len(rows)), times)
        sizes = np.asarray(pc.binary_length(values), np.int64)[chosen]
        cuts = np.flatnonzero(np.diff(np.cumsum(sizes) // COPIED)) + 1
        for start, stop in pairwise([0, *cuts.tolist(), total]):
            some = chosen[start:stop]
            yield from with_documents(targets[start:stop], rows[some], values.take(to_arrow(some)))


def sent_texts(batches: Iterator[Any], numbering: Any, route: Any) -> Iterator[Any]:
    """Send the texts of a task."""
    for batch in batches:
        rows, rest = numbered(batch, numbering.value)
        yield from route.value.sent(rows, rest.column(rest.schema.get_field_index(TEXT)))


def sent_slots(batches: Iterator[Any], slots: int, route: Any) -> Iterator[Any]:
    """Send the signatures of a task, each after the fingerprint of its set."""
    ready()
    for batch in batches:
        for row, unit, slot in zip(*(batch.column(place) for place in range(3)), strict=True):
            rows = np.frombuffer(row.as_buffer(), np.int64)
            wanted = np.flatnonzero(route.value.wanted(rows))
            if not len(wanted):
                continue
            units = np.frombuffer(unit.as_buffer(), np.uint32).reshape(-1, UNIT)[wanted]
            own = np.frombuffer(slot.as_buffer(), np.uint32).reshape(-1, slots)[wanted]
            values = pa.array([one.tobytes() for one in np.concatenate([units, own], axis=1)], pa.binary())
            yield from route.value.sent(rows[wanted], values)


@dataclass(frozen=True)
class Arrived:
    """What came to a task: documents, binary values, some at a time, with their numbers; and two arrays of numbers."""

    documents: list[tuple[Ints, Any]]
    left: Ints
    right: Ints

    @classmethod
    def of(cls, batches: Iterator[Any]) -> Arrived:
        """Take all that comes."""
        documents = []
        left, right = [np.zeros(0, np.int64)], [np.zeros(0, np.int64)]
        for batch in batches:
            named = [batch.column(batch.schema.get_field_index(name)).drop_null() for name in COLUMNS[1:]]
            for number, size, text in zip(*named[:3], strict=True):
                rows = np.frombuffer(number.as_buffer(), np.int64)
                offsets = np.concatenate([[0], np.cumsum(np.frombuffer(size.as_buffer(), np.int64))])
                buffers = [None, pa.py_buffer(offsets), text.as_buffer()]
                documents.append((rows, pa.Array.from_buffers(pa.large_binary(), len(rows), buffers)))
            for a, b in zip(*named[3:], strict=True):
                left.append(np.frombuffer(a.as_buffer(), np.int64))
                right.append(np.frombuffer(b.as_buffer(), np.int64))
        return cls(documents, np.concatenate(left), np.concatenate(right))


def compared(batches: Iterator[Any], task: Any) -> Iterator[Any]:
    """Compare the pairs that came to a task."""
    ready()
    comparison: PairComparison = task.value
    here = Arrived.of(batches)
    if not len(here.left):
        return
    rows = np.concatenate([numbers for numbers, _ in here.documents])
    order = np.argsort(rows, kind="stable")
    rows = rows[order]
    documents = pa.concat_arrays([values for _, values in here.documents]).take(to_arrow(order)).view(comparison.kind)
    a, b = np.searchsorted(rows, here.left), np.searchsorted(rows, here.right)
    by = np.argsort(packed(a, b), kind="stable")
    a, b, score = comparison.scored(documents, a[by], b[by])
    yield from pair_parcels(0, (rows[a], rows[b], score))
