"""Shuffles of arrays: what goes to one task travels as a few long values, not as one row of Spark per entry."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from typing import Any

import numpy as np
import pyarrow as pa
from numpy.typing import NDArray

from likewise.base.arrays import Hashes, Ints
from likewise.kernels.sorting import radix_argsort

TARGET, KIND, ROWS, WORDS = "target", "kind", "rows", "words"
SCHEMA = f"{TARGET} int, {KIND} int, {ROWS} binary, {WORDS} binary"
"""A parcel: the task it goes to, what it is, and two arrays of 64-bit numbers."""
PARCEL = 1 << 20
"""Entries of one array that travel in one value, at most: eight megabytes."""
HELD = 1 << 22
"""Entries that a task holds before it sends them: 64 megabytes."""
PER_TASK = 1 << 22
"""Entries that one task of a shuffle receives, about."""
TRIES = 64
"""Numbers per partition among which one is looked for that Spark assigns to it; all have one but for odds of e**-64."""


def partitions(session: Any, entries: int) -> int:
    """Return into how many parts to shuffle so many entries: three for each core, or more if they are many."""
    return int(min(1 << 20, max(3 * session.sparkContext.defaultParallelism, -(-entries // PER_TASK), 1)))


def addresses(session: Any, parts: int) -> NDArray[np.int32]:
    """Return for each of so many partitions a number that Spark's hash partitioning sends there, and nowhere else."""
    found = session.range(TRIES * parts).selectExpr("cast(id as int) as id", f"pmod(hash(cast(id as int)), {parts}) as part")
    table = found.toArrow()
    ids, places = np.asarray(table.column("id")), np.asarray(table.column("part"))
    wanted, first = np.unique(places, return_index=True)
    assert len(wanted) == parts
    return ids[first].astype(np.int32)


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


def nothing() -> tuple[Ints, Hashes]:
    """Return what `opened` has for a kind of which nothing came."""
    return np.zeros(0, np.int64), np.zeros(0, np.uint64)


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


def collected(frame: Any) -> dict[int, tuple[Ints, Hashes]]:
    """Bring parcels to the driver."""
    return opened(frame.select(KIND, ROWS, WORDS).toArrow().to_batches())
