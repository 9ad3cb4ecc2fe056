"""Shuffles of arrays: what goes to one task travels as a few long values, not as one row of Spark per entry."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from typing import Any

import numpy as np
import pyarrow as pa
from numpy.typing import NDArray

from likewise.base.arrays import Hashes, Ints
from likewise.kernels.sorting import radix_argsort
from likewise.spark.context import parallelism

TARGET, KIND, ROWS, WORDS = "target", "kind", "rows", "words"
SCHEMA = f"{TARGET} int, {KIND} int, {ROWS} binary, {WORDS} binary"
"""A parcel: the task it goes to, what it is, and two arrays of 64-bit numbers."""
PARCELS = pa.schema([(TARGET, pa.int32()), (KIND, pa.int32()), (ROWS, pa.binary()), (WORDS, pa.binary())])
PARCEL = 1 << 20
"""Entries of one array that travel in one value, at most: eight megabytes."""
HELD = 1 << 22
"""Entries that a task holds before it sends them: 64 megabytes."""
PER_TASK = 1 << 22
"""Entries that one task of a shuffle receives, about."""
LEAST = 1 << 14
"""Entries that are worth a task of their own."""
TRIES = 64
"""Numbers per partition among which one is looked for that Spark assigns to it; all have one but for odds of e**-64."""


def partitions(session: Any, entries: int) -> int:
    """Return into how many parts to shuffle so many entries: three for each core, fewer of few and more of many."""
    usual = min(3 * parallelism(session), 1 + entries // LEAST)
    return int(min(1 << 20, max(usual, -(-entries // PER_TASK))))


def addresses(parts: int) -> NDArray[np.int32]:
    """Return for each of so many partitions a number that Spark's hash partitioning sends there, and nowhere else."""
    numbers = np.arange(TRIES * parts, dtype=np.uint32)
    places = spark_hash(numbers).astype(np.int64) % parts
    wanted, first = np.unique(places, return_index=True)
    assert len(wanted) == parts
    return numbers[first].astype(np.int32)


def spark_hash(numbers: NDArray[np.uint32]) -> NDArray[np.int32]:
    """Return Spark's hash of 32-bit integers: MurmurHash3 with the seed 42."""

    def turned(x: NDArray[np.uint32], by: int) -> NDArray[np.uint32]:
        return (x << np.uint32(by)) | (x >> np.uint32(32 - by))

    k = turned(numbers * np.uint32(0xCC9E2D51), 15) * np.uint32(0x1B873593)
    h = turned(k ^ np.uint32(42), 13) * np.uint32(5) + np.uint32(0xE6546B64)
    h ^= np.uint32(4)
    for shift, factor in ((16, 0x85EBCA6B), (13, 0xC2B2AE35)):
        h = (h ^ (h >> np.uint32(shift))) * np.uint32(factor)
    return (h ^ (h >> np.uint32(16))).view(np.int32)


def shuffled(frame: Any, parts: int) -> Any:
    """Send parcels to their tasks."""
    return frame.repartition(parts, TARGET)


def parcel(target: int, kind: int, rows: NDArray[Any], words: NDArray[Any]) -> Iterator[Any]:
    """Yield parcels of two arrays; if one is longer it has a whole number of entries for each of the other."""
    ratio = max(1, len(words) // max(1, len(rows)))
    step = max(1, PARCEL // ratio)
    for start in range(0, len(rows), step):
        part = rows[start : start + step], words[start * ratio : (start + step) * ratio]
        yield pa.RecordBatch.from_arrays(
            [
                pa.array([target], pa.int32()),
                pa.array([kind], pa.int32()),
                pa.array([np.ascontiguousarray(part[0]).tobytes()], pa.binary()),
                pa.array([np.ascontiguousarray(part[1]).tobytes()], pa.binary()),
            ],
            [TARGET, KIND, ROWS, WORDS],
        )


def opened(batches: Iterable[Any]) -> dict[int, tuple[Ints, Hashes]]:
    """Return the arrays of parcels, put end to end, for each kind."""
    found: dict[int, tuple[list[Any], list[Any]]] = {}
    for batch in batches:
        kinds, rows, words = (batch.column(batch.schema.get_field_index(name)) for name in (KIND, ROWS, WORDS))
        for kind, row, word in zip(kinds.to_pylist(), rows, words, strict=True):
            held = found.setdefault(kind, ([], []))
            held[0].append(np.frombuffer(row.as_buffer(), np.int64))
            held[1].append(np.frombuffer(word.as_buffer(), np.uint64))
    return {kind: (np.concatenate(held[0]), np.concatenate(held[1])) for kind, held in found.items()}


def parcel_rows(frame: Any) -> Iterator[Ints]:
    """Yield the first arrays of parcels, one parcel at a time: the driver never holds many."""
    for one in frame.select(ROWS).toLocalIterator():
        yield np.frombuffer(one[0], np.int64)


def nothing() -> tuple[Ints, Hashes]:
    """Return what `opened` has for a kind of which nothing came."""
    return np.zeros(0, np.int64), np.zeros(0, np.uint64)


def parcel_frame(session: Any, parts: Iterable[Any]) -> Any:
    """Return parcels of the driver as a frame."""
    table = parts if isinstance(parts, pa.Table) else pa.Table.from_batches(list(parts), PARCELS)
    return session.createDataFrame(table, SCHEMA)


class Outbox:
    """Entries on their way: a row and some words each, held until they are worth sending."""

    def __init__(self, targets: NDArray[np.int32], kind: int, width: int = 1) -> None:
        self._targets = targets
        self._kind = kind
        self._width = width
        self._held: list[tuple[Ints, Ints, Hashes]] = []
        self._count = 0

    def add(self, parts: Ints, rows: Ints, words: Hashes) -> Iterator[Any]:
        """Take entries for these parts; yield parcels if many are held."""
        self._held.append((parts, rows, words))
        self._count += len(rows)
        if self._count >= HELD:
            yield from self.sent()

    def sent(self) -> Iterator[Any]:
        """Yield the parcels of all entries that are held."""
        if not self._count:
            return
        parts, rows, words = (np.concatenate(column) for column in zip(*self._held, strict=True))
        self._held, self._count = [], 0
        order = radix_argsort(parts.astype(np.uint64), max(1, int(len(self._targets) - 1).bit_length()))
        parts, rows, words = parts[order], rows[order], words.reshape(-1, self._width)[order]
        cuts = np.flatnonzero(np.diff(parts)) + 1
        for start, stop in zip([0, *cuts.tolist()], [*cuts.tolist(), len(parts)], strict=True):
            yield from parcel(int(self._targets[parts[start]]), self._kind, rows[start:stop], words[start:stop].ravel())


def collected(table: pa.Table) -> dict[int, tuple[Ints, Hashes]]:
    """Open the parcels of a step that came to the driver."""
    return opened(table.to_batches())
