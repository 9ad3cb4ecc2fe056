"""Documents that do not fit in memory: compressed chunks in a file, each read when it is needed."""

from __future__ import annotations

import time
from collections import deque
from collections.abc import Callable, Iterator
from concurrent.futures import Future, ThreadPoolExecutor
from dataclasses import dataclass
from itertools import pairwise
from pathlib import Path
from typing import IO, Any, NamedTuple

import numpy as np
import pyarrow as pa

from likewise.base.arrays import Hashes, Ints, TextChunk, Texts, as_bytes
from likewise.base.copies import chunk_digests

CODECS = ("lz4_raw", "zstd")
"""The first shrinks text to about half with little work, the second to a third with more: for a disk that cannot keep
pace."""
WINDOW = 64
"""Pieces after which it is judged again what is waited for, the disk or the cores."""
SLOW = 0.25
"""The share of the time that writing takes if the disk is slow: what is written is read three times."""
PIECE = 1 << 22
"""Bytes of text that are compressed together, if documents are not longer: who needs one document unpacks these."""


@dataclass(frozen=True)
class StoredChunk:
    """Documents in a file: where their bytes are, how many they are, of how many bytes when decompressed, by which of
    the codecs."""

    path: Path
    start: int
    stop: int
    rows: int
    size: int
    codec: int

    def __len__(self) -> int:
        return self.rows

    def load(self) -> TextChunk:
        """Read and decompress the documents."""
        with open(self.path, "rb") as content:
            content.seek(self.start)
            packed = content.read(self.stop - self.start)
        data = as_bytes(pa.Codec(CODECS[self.codec]).decompress(packed, self.size))
        cut = 8 * (self.rows + 1)
        return TextChunk(data[cut:], data[:cut].view(np.int64).copy())


class PackedTexts(NamedTuple):
    """What is known of the documents in a file: stop, rows, size and codec of each chunk, a digest of each document."""

    chunks: Ints
    digests: Hashes


def stored_texts(path: Path, chunks: Ints, digests: Callable[[], Hashes] | None = None) -> Texts:
    """Return the documents that are in a file. digests: returns what is known of them, if it may be asked for."""
    starts = [0, *chunks[:, 0].tolist()]
    rows = zip(starts, chunks.tolist(), strict=False)
    return Texts([StoredChunk(path, start, *row) for start, row in rows], digests=digests)


class Spill:
    """Writes chunks to a file, in order; threads compress some of them ahead, and more if the disk is waited for."""

    def __init__(self, out: IO[bytes], threads: int) -> None:
        self._out = out
        self._pool = ThreadPoolExecutor(threads, thread_name_prefix="likewise-pack")
        self._waiting: deque[tuple[int, int, int, Future[tuple[Any, Hashes]]]] = deque()
        self._most = threads + 1
        self._codec = 0
        self._begun, self._writing = time.perf_counter(), 0.0
        self._chunks: list[tuple[int, int, int, int]] = []
        self._digests = [np.zeros((0, 2), np.uint64)]
        self._place = 0

    def add(self, chunk: TextChunk) -> None:
        """Write a chunk, a large one in pieces."""
        for piece in _pieces(chunk):
            size = 8 * (len(piece) + 1) + int(piece.offsets[-1] - piece.offsets[0])
            packed = self._pool.submit(_packed, piece, self._codec)
            self._waiting.append((len(piece), size, self._codec, packed))
            if len(self._waiting) > self._most:
                self._write()

    def finish(self) -> PackedTexts:
        """Write the remaining chunks; return what is known of all."""
        while self._waiting:
            self._write()
        self.close()
        return PackedTexts(np.array(self._chunks, np.int64).reshape(-1, 4), np.concatenate(self._digests))

    def close(self) -> None:
        """Stop the threads."""
        self._pool.shutdown(cancel_futures=True)

    def _write(self) -> None:
        rows, size, codec, future = self._waiting.popleft()
        packed, digests = future.result()
        begun = time.perf_counter()
        self._out.write(packed)
        self._writing += time.perf_counter() - begun
        self._place += len(packed)
        self._chunks.append((self._place, rows, size, codec))
        self._digests.append(digests)
        if len(self._chunks) % WINDOW == 0:
            self._judge()

    def _judge(self) -> None:
        """Compress more from now on if much of the time was spent on writing, and less if not."""
        now = time.perf_counter()
        self._codec = int(self._writing > SLOW * (now - self._begun))
        self._begun, self._writing = now, 0.0


def _pieces(chunk: TextChunk) -> Iterator[TextChunk]:
    """Cut a chunk between documents, after about every `PIECE` bytes."""
    first, last = int(chunk.offsets[0]), int(chunk.offsets[-1])
    cuts = np.searchsorted(chunk.offsets[:-1], np.arange(first + PIECE, last, PIECE))
    for start, stop in pairwise(np.unique([0, *cuts, len(chunk)]).tolist()):
        yield TextChunk(chunk.data, chunk.offsets[start : stop + 1])


def _packed(chunk: TextChunk, codec: int) -> tuple[Any, Hashes]:
    first, last = int(chunk.offsets[0]), int(chunk.offsets[-1])
    raw = np.concatenate([(chunk.offsets - first).view(np.uint8), chunk.data[first:last]])
    return pa.Codec(CODECS[codec]).compress(pa.py_buffer(raw)), chunk_digests(chunk)


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

    @property
    def packing(self) -> bool:
        """Whether documents go to the file."""
        return self._spill is not None

    def finish(self) -> tuple[list[TextChunk], PackedTexts | None]:
        """Return the chunks in memory, or what is known of the documents in the file."""
        return self._chunks, self._spill.finish() if self._spill else None

    def close(self) -> None:
        """Stop the threads, if there are any."""
        if self._spill is not None:
            self._spill.close()
