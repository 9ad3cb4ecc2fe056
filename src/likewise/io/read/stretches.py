"""Stretches of an input: some of its documents, read to tell what there is in all, and how much of it is looked at."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
import pyarrow as pa

from likewise.io.read.base import MIB
from likewise.io.read.columns import CleanBatch, alone, text_offsets

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
        ids = alone(batch.batch.column("id")) if "id" in batch.batch.schema.names else None
        return cls(alone(batch.batch.column("text")), ids, batch.rows, stored, seconds, drawn)

    @property
    def text_bytes(self) -> int:
        """The bytes of text."""
        offsets = text_offsets(self.text) if len(self.text) else (0, 0)
        return int(offsets[-1] - offsets[0])


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
