"""A look at some rows of an input without reading all of it, and what it costs to read and to write them.

Parquet and Arrow files say how many rows they have. Of lines and records, windows of the file are read and the rows
that *start* in a window are counted: every row starts exactly once, so long rows are not favoured. Of a compressed file
only the beginning can be seen.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from time import process_time
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq

from likewise.io.read.base import MIB
from likewise.io.read.columns import CleanBatch, text_offsets

REWRITTEN = 3 * MIB
"""Bytes of rows that are written again to measure the time: a few hundredths of a second."""

SLOW = {"bz2": 4, "xz": 16}
"""By how much less is looked at for codecs that decompress slowly."""

GROUPS = 16
"""Row groups or batches to look into: each costs a seek and the decoding of its first pages."""

DECODED = 3
"""Row groups are decoded from their first row on: this many times more bytes than are looked at."""

UNPACKED = 8
"""Arrow batches are decompressed as a whole: at most this many times more bytes than are looked at."""


@dataclass(frozen=True)
class Stretch:
    """Consecutive documents, their ids (None if these are row numbers), and what they were read from.

    `rows` includes broken rows; `stored` is the size of the window of the file in which they start; `seconds` is the
    time one core took to read them, and `drawn` the part of it that a single thread does for all others: decompressing
    and finding the rows.
    """

    text: pa.Array
    ids: pa.Array | None
    rows: int
    stored: float
    seconds: float
    drawn: float = 0.0

    @classmethod
    def of(cls, batch: CleanBatch, stored: float, seconds: float, drawn: float = 0.0) -> Stretch:
        """Return the stretch for rows that were read."""
        if batch.batch is None:
            return cls(pa.array([], pa.string()), None, batch.rows, stored, seconds, drawn)
        ids = _alone(batch.batch.column("id")) if "id" in batch.batch.schema.names else None
        return cls(_alone(batch.batch.column("text")), ids, batch.rows, stored, seconds, drawn)

    @property
    def text_bytes(self) -> int:
        """The bytes of text."""
        offsets = text_offsets(self.text) if len(self.text) else (0, 0)
        return int(offsets[-1] - offsets[0])


def _alone(array: pa.Array) -> pa.Array:
    """Copy an array, so that the larger one it is a slice of can be freed."""
    return pa.concat_arrays([array, array.slice(0, 0)])


def spread(sizes: Sequence[int], places: int) -> dict[int, list[float]]:
    """Put places at equal distances over things of these sizes: for each thing that is hit, where in it (0 to 1).

    >>> spread([1, 4], 5)
    {0: [0.0], 1: [0.0, 0.25, 0.5, 0.75]}
    """
    ends = np.cumsum(sizes)
    total = int(ends[-1]) if len(ends) else 0
    found: dict[int, list[float]] = {}
    for place in range(places if total else 0):
        at = place * total / places
        thing = int(np.searchsorted(ends, at, side="right"))
        found.setdefault(thing, []).append(1 - (int(ends[thing]) - at) / sizes[thing])
    return found


def parquet_cost(table: pa.Table, codecs: Any) -> tuple[float, float]:
    """Write a table as Parquet to memory; return the seconds and the bytes per row."""
    begun = process_time()
    out = pa.BufferOutputStream()
    with pq.ParquetWriter(out, table.schema, compression=codecs) as writer:
        writer.write_table(table)
    rows = max(1, table.num_rows)
    return (process_time() - begun) / rows, out.getvalue().size / rows
