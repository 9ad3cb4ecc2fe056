"""Documents that do not fit in memory: compressed chunks in a file, each read when it is needed."""

from __future__ import annotations

from collections import deque
from collections.abc import Callable, Iterable
from concurrent.futures import Future, ThreadPoolExecutor
from dataclasses import dataclass
from pathlib import Path
from typing import IO, Any

import numpy as np
import pyarrow as pa

from likewise.base.arrays import Ints, TextChunk, as_bytes

CODEC = "lz4_raw"
"""Fast enough that a disk is the bottleneck, and text shrinks to about half."""


@dataclass(frozen=True)
class StoredChunk:
    """Documents in a file: where their bytes are, and the number of documents and of decompressed bytes."""

    path: Path
    start: int
    stop: int
    rows: int
    size: int

    def __len__(self) -> int:
        return self.rows

    def load(self) -> TextChunk:
        """Read and decompress the documents."""
        with open(self.path, "rb") as content:
            content.seek(self.start)
            packed = content.read(self.stop - self.start)
        data = as_bytes(pa.Codec(CODEC).decompress(packed, self.size))
        cut = 8 * (self.rows + 1)
        return TextChunk(data[cut:], data[:cut].view(np.int64).copy())


def stored_chunks(path: Path, table: Ints) -> list[StoredChunk]:
    """Return the chunks of a file from their table: stop, rows and size of each."""
    starts = [0, *table[:, 0].tolist()]
    return [StoredChunk(path, start, *row) for start, row in zip(starts, table.tolist(), strict=False)]


class Spill:
    """Writes chunks to a file, in order; threads compress some of them ahead."""

    def __init__(self, out: IO[bytes], threads: int) -> None:
        self._out = out
        self._pool = ThreadPoolExecutor(threads, thread_name_prefix="likewise-pack")
        self._waiting: deque[tuple[int, int, Future[Any]]] = deque()
        self._most = threads + 1
        self._rows: list[tuple[int, int, int]] = []
        self._place = 0

    def add(self, chunk: TextChunk) -> None:
        """Write a chunk."""
        size = 8 * (len(chunk) + 1) + int(chunk.offsets[-1] - chunk.offsets[0])
        self._waiting.append((len(chunk), size, self._pool.submit(_packed, chunk)))
        if len(self._waiting) > self._most:
            self._write()

    def finish(self) -> Ints:
        """Write the remaining chunks; return the table of all chunks."""
        while self._waiting:
            self._write()
        self.close()
        return np.array(self._rows, np.int64).reshape(-1, 3)

    def close(self) -> None:
        """Stop the threads."""
        self._pool.shutdown(cancel_futures=True)

    def _write(self) -> None:
        rows, size, future = self._waiting.popleft()
        packed = future.result()
        self._out.write(packed)
        self._place += len(packed)
        self._rows.append((self._place, rows, size))


def _packed(chunk: TextChunk) -> Any:
    first, last = int(chunk.offsets[0]), int(chunk.offsets[-1])
    raw = np.concatenate([(chunk.offsets - first).view(np.uint8), chunk.data[first:last]])
    return pa.Codec(CODEC).compress(pa.py_buffer(raw))


class TextBuilder:
    """Collects the documents of an input: in memory up to a limit, beyond it all of them in a file.

    each: bytes that count for each document beside those of its text.
    """

    def __init__(self, limit: int | None, begin: Callable[[], IO[bytes]], threads: int, each: int = 0) -> None:
        self.bytes = self._others = 0
        self._each = each
        self._limit = limit
        self._begin = begin
        self._threads = threads
        self._chunks: list[TextChunk] = []
        self._spill: Spill | None = None

    def add(self, chunk: TextChunk) -> None:
        """Add a chunk."""
        self.bytes += int(chunk.offsets[-1] - chunk.offsets[0])
        self._others += self._each * len(chunk)
        if self._spill is not None:
            self._spill.add(chunk)
            return
        self._chunks.append(chunk)
        if self._limit is not None and self.bytes + self._others > self._limit:
            self._spill = Spill(self._begin(), self._threads)
            self._spill_all()

    def _spill_all(self) -> None:
        assert self._spill is not None
        self._chunks.reverse()
        while self._chunks:
            self._spill.add(self._chunks.pop())
        pa.default_memory_pool().release_unused()

    def finish(self) -> tuple[Iterable[TextChunk], Ints | None]:
        """Return the chunks in memory, or the table of those in the file."""
        return self._chunks, self._spill.finish() if self._spill else None

    def close(self) -> None:
        """Stop the threads, if there are any."""
        if self._spill is not None:
            self._spill.close()
