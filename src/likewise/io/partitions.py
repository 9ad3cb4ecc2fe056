"""Rows of numbers in groups, each of which is read by itself: in memory up to a limit, beyond it in a file."""

from __future__ import annotations

import os
from collections.abc import Iterator
from pathlib import Path
from typing import IO, Any

import numpy as np
from numpy.typing import NDArray

from likewise.base.arrays import Ints
from likewise.kernels.sorting import group_rows

Numbers = NDArray[Any]
TOGETHER = 8 << 20
"""Bytes that are put in the order of groups at once."""
BLOCK = 1 << 20
"""Bytes of a group in memory that are read at once, about: each block is a call or two of a kernel."""


class GroupedRows:
    """Rows of 64-bit numbers that are added some at a time and read group by group, in the order they came.

    path: of the file, if there are more bytes than `limit`. spilled: how many bytes are in it.
    """

    def __init__(self, kind: Any, columns: int, groups: int, limit: int, path: Path) -> None:
        self.spilled = 0
        self.rows = 0
        self._kind, self._columns, self._groups, self._limit, self._path = kind, columns, groups, limit, path
        self._new: list[tuple[Numbers, Ints]] = []
        self._held: list[tuple[Numbers, Ints]] = []
        self._new_bytes = self._held_bytes = 0
        self._file: IO[bytes] | None = None
        self._runs: list[Ints] = []

    def add(self, rows: Numbers, groups: Ints) -> None:
        """Add rows, each with the number of its group."""
        if len(rows):
            self._new.append((rows, groups))
            self.rows += len(rows)
            self._new_bytes += rows.nbytes + groups.nbytes
            if self._new_bytes > min(TOGETHER, self._limit):
                self.settle()

    def settle(self) -> None:
        """Put what was added in the order of groups; call it before the first group is read."""
        if not self._new:
            return
        rows, groups = (np.concatenate(parts) for parts in zip(*self._new, strict=True))
        out, bounds = np.empty_like(rows), np.empty(self._groups + 1, np.int64)
        group_rows(rows, groups, out, bounds)
        self._held.append((out, bounds))
        self._held_bytes += out.nbytes + bounds.nbytes
        self._new, self._new_bytes = [], 0
        if self._held_bytes > self._limit:
            self._spill()

    def _spill(self) -> None:
        """Write all that is held, group after group."""
        self._file = self._file or open(self._path, "w+b")  # noqa: SIM115 - until `close`
        places = [self.spilled]
        for group in range(self._groups):
            for rows, bounds in self._held:
                self.spilled += self._file.write(rows[bounds[group] : bounds[group + 1]].data)
            places.append(self.spilled)
        self._file.flush()
        self._runs.append(np.array(places, np.int64))
        self._held, self._held_bytes = [], 0

    def count(self, group: int) -> int:
        """Return how many rows a group has."""
        filed = sum(int(places[group + 1] - places[group]) for places in self._runs) // (8 * self._columns)
        return filed + sum(int(bounds[group + 1] - bounds[group]) for _, bounds in self._held)

    def blocks(self, group: int) -> Iterator[Numbers]:
        """Yield the rows of a group. Several threads may read at once, when nothing is added any more."""
        for places in self._runs:
            assert self._file is not None
            start, stop = int(places[group]), int(places[group + 1])
            if stop > start:
                found = np.frombuffer(os.pread(self._file.fileno(), stop - start, start), self._kind)
                yield found.reshape(-1, self._columns).copy()
        parts: list[Numbers] = []
        size = 0
        for rows, bounds in self._held:
            parts.append(rows[bounds[group] : bounds[group + 1]])
            size += parts[-1].nbytes
            if size >= BLOCK:
                yield np.concatenate(parts)
                parts, size = [], 0
        if size:
            yield np.concatenate(parts)

    def close(self) -> None:
        """Close the file."""
        if self._file is not None:
            self._file.close()
