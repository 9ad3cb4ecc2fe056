"""The first row groups of a Parquet file, decoded while the modules and kernels of a command are still being loaded.

Loading keeps one core busy for more than half a second, as long as decoding a few hundred megabytes takes. This module
itself loads PyArrow only.
"""

from __future__ import annotations

import os
import threading
from contextlib import suppress
from typing import Any

from likewise.base import openfiles
from likewise.base.memory import free_memory

MOST, SHARE = 512 << 20, 16
"""Bytes, decompressed, that are decoded ahead, at most; and at most one part in so many of the free memory."""

BATCH, BATCH_ROWS = 16 << 20, 10_000
"""Bytes and rows that are decoded at a time, about."""


class ReadAhead:
    """Decodes the row groups of a file, one after the other, until the first of them is asked for."""

    def __init__(self, path: str, columns: list[str]) -> None:
        self.columns = columns
        self._path = path
        self._done: dict[int, threading.Event] = {}
        self._batches: dict[int, list[Any]] = {}
        self._lock = threading.Lock()
        self._asked = False

    def run(self) -> None:
        """Decode; whatever goes wrong here will go wrong again, and be told, when the file is read."""
        import pyarrow.parquet as pq

        left = min(MOST, free_memory() // SHARE)
        with (
            suppress(Exception),
            openfiles.reading(self._path),
            pq.ParquetFile(self._path, pre_buffer=False, buffer_size=1 << 20) as file,
        ):
            for group in range(file.metadata.num_row_groups):
                found = file.metadata.row_group(group)
                left -= found.total_byte_size
                with self._lock:
                    if self._asked or left < 0:
                        break
                    done = self._done[group] = threading.Event()
                try:
                    step = max(1, min(BATCH_ROWS, BATCH * found.num_rows // max(1, found.total_byte_size)))
                    self._decode(file, group, step, left)
                finally:
                    done.set()

    def _decode(self, file: Any, group: int, step: int, room: int) -> None:
        """Decode a row group, unless repeated values make it much larger than its footer says."""
        batches = []
        for batch in file.iter_batches(step, [group], self.columns, use_threads=False):
            batches.append(batch)
            room -= batch.nbytes
            if room < -MOST:
                return
        self._batches[group] = batches

    def take(self, group: int) -> list[Any] | None:
        """Return a row group that was decoded, or is about to be; None for others, of which none is begun any more."""
        with self._lock:
            self._asked = True
            done = self._done.pop(group, None)
        if done is None:
            return None
        done.wait()
        return self._batches.pop(group, None)


_begun: dict[tuple[int, ...], ReadAhead] = {}
"""By file, as it was then: the one that is read ahead."""


def begin(path: str, columns: list[str]) -> None:
    """Decode these columns of a Parquet file in a thread from now on; nothing happens if there is no such file."""
    try:
        key = _identity(path)
    except OSError:
        return
    import pyarrow.parquet  # noqa: F401 - here, or two threads would take turns to import it

    _begun[key] = ahead = ReadAhead(path, columns)
    threading.Thread(target=ahead.run, name="likewise-ahead").start()


def taken(path: str | os.PathLike[str], group: int, columns: list[str]) -> list[Any] | None:
    """Return the batches of a row group, if it was read ahead and the file did not change since."""
    if not _begun:
        return None
    ahead = _begun.get(_identity(path))
    if ahead is None:
        return None
    batches = ahead.take(group)
    return batches if ahead.columns == columns else None


def _identity(path: str | os.PathLike[str]) -> tuple[int, ...]:
    found = os.stat(path)
    return found.st_dev, found.st_ino, found.st_size, found.st_mtime_ns
