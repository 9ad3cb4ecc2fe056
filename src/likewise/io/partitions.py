"""Rows of numbers in groups, each of which is read by itself: in memory up to a limit, beyond it in a file."""

from __future__ import annotations

import os
from collections.abc import Iterator
from pathlib import Path
from typing import IO, Any

import numpy as np
from numpy.typing import NDArray

from likewise.base.arrays import Ints

Numbers = NDArray[Any]


class GroupedRows:
    """Rows of 64-bit numbers that are added some at a time and read group by group, in the order they came.

    path: of the file, if there are more bytes than `limit`. spilled: how many bytes are in it.
    """

    def __init__(self, kind: Any, columns: int, limit: int, path: Path) -> None:
        self.spilled = 0
        self.rows = 0
        self._kind, self._columns, self._limit, self._path = kind, columns, limit, path
        self._held: list[tuple[Numbers, Ints]] = []
        self._held_bytes = 0
        self._file: IO[bytes] | None = None
        self._runs: list[Ints] = []

    def add(self, rows: Numbers, bounds: Ints) -> None:
        """Add rows in the order of their groups: those of group g are rows[bounds[g]:bounds[g + 1]]."""
        self.rows += len(rows)
        if not len(rows):
            return
        self._held.append((rows, bounds))
        self._held_bytes += rows.nbytes + bounds.nbytes
        if self._held_bytes > self._limit:
            self._spill()

    def _spill(self) -> None:
        """Write all that is held, group after group."""
        self._file = self._file or open(self._path, "w+b")  # noqa: SIM115 - until `close`
        places = [self.spilled]
        for group in range(len(self._held[0][1]) - 1):
            for rows, bounds in self._held:
                self.spilled += self._file.write(rows[bounds[group] : bounds[group + 1]].data)
            places.append(self.spilled)
        self._file.flush()
        self._runs.append(np.array(places, np.int64))
        self._held, self._held_bytes = [], 0

    def blocks(self, group: int) -> Iterator[Numbers]:
        """Yield the rows of a group. Several threads may read at once, when nothing is added any more."""
        for places in self._runs:
            assert self._file is not None
            start, stop = int(places[group]), int(places[group + 1])
            if stop > start:
                found = np.frombuffer(os.pread(self._file.fileno(), stop - start, start), self._kind)
                yield found.reshape(-1, self._columns).copy()
        for rows, bounds in self._held:
            if bounds[group + 1] > bounds[group]:
                yield rows[bounds[group] : bounds[group + 1]]

    def close(self) -> None:
        """Close the file."""
        if self._file is not None:
            self._file.close()
