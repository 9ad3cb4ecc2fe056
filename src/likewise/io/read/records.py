"""Formats whose rows are stretches of bytes: lines of JSON, records of CSV, plain lines.

Such a file is read in blocks of whole rows. Each row that is kept is written again with the bytes it had.
"""

from __future__ import annotations

from abc import abstractmethod
from collections.abc import Iterator
from dataclasses import dataclass
from functools import partial
from pathlib import Path

import numpy as np

from likewise.errors import FormatError
from likewise.io.disk import atomic
from likewise.io.read.base import Flags, Rows, Tick, quiet
from likewise.io.read.columns import Piece, runs, texts_of_pages
from likewise.io.read.open import BLOCK, BOM, chunks
from likewise.io.read.tables import Part, Task


@dataclass(frozen=True)
class Split:
    """Where the rows of some bytes start and end (with their line end), and how many bytes they take up.

    `plain` means that the fast parser may be trusted with them.
    """

    starts: Rows
    ends: Rows
    used: int
    plain: bool = True


@dataclass(frozen=True)
class Block:
    """Bytes that hold whole rows; `line` is the number of their first line in the file, from 1."""

    data: bytes
    line: int
    split: Split

    @property
    def rows(self) -> int:
        """How many rows the block holds."""
        return len(self.split.starts)

    def line_of(self, row: int) -> int:
        """Return the line on which a row starts."""
        return self.line + self.data.count(b"\n", 0, int(self.split.starts[row]))

    def content_ends(self) -> Rows:
        """Return where the rows end without their line ends."""
        view = np.frombuffer(self.data, np.uint8)
        ends = self.split.ends - (view[self.split.ends - 1] == 10)
        returned = (ends > self.split.starts) & (view[ends - 1] == 13)
        return np.asarray(ends - returned, np.int64)


NOTHING = Split(np.empty(0, np.int64), np.empty(0, np.int64), 0)


def line_split(data: bytes, last: bool) -> Split:
    """Split at line feeds; what follows the last one is a row only at the end of the file."""
    view = np.frombuffer(data, np.uint8)
    ends = np.flatnonzero(view == 10) + 1
    used = int(ends[-1]) if len(ends) else 0
    if last and used < len(data):
        used = len(data)
        ends = np.append(ends, used)
    starts = np.concatenate((np.zeros(min(1, len(ends)), np.int64), ends[:-1]))
    return Split(starts, ends, used)


class Records(Part):
    """One file whose rows are stretches of bytes."""

    head = b""
    """What stands before the first row: a byte order mark, the line of column names."""

    @abstractmethod
    def split(self, data: bytes, last: bool) -> Split:
        """Find the rows in the data; with `last`, the data end the file."""

    @abstractmethod
    def parse(self, block: Block) -> Piece:
        """Read the rows of a block."""

    def head_size(self, data: bytes) -> int:
        """Return how many bytes stand before the first row; `data` holds at least the first row or all."""
        return len(BOM) if data.startswith(BOM) else 0

    def blocks(self, size: int = BLOCK) -> Iterator[Block]:
        """Yield the file in blocks of about `size` bytes, or of one row if that is longer."""
        held: list[bytes] = []
        length, wanted, line = 0, 0, 1
        headed = False
        broken: FormatError | None = None
        stream = chunks(self.file, size)
        while True:
            try:
                chunk = next(stream, b"")
            except FormatError as error:
                broken, chunk = error, b""
            held.append(chunk)
            length += len(chunk)
            if chunk and length < wanted:
                continue
            data = held[0] if len(held) == 1 else b"".join(held)
            last = not chunk and broken is None
            if not headed and (last or self.split(data, last).used):
                headed = True
                self.head = data[: self.head_size(data)]
                line += self.head.count(b"\n")
                data = data[len(self.head) :]
            split = self.split(data, last) if headed else NOTHING
            if split.used:
                yield Block(data[: split.used], line, split)
                line += data.count(b"\n", 0, split.used)
                data = data[split.used :]
            held, length = [data], len(data)
            wanted = 0 if split.used else 2 * length
            if broken is not None:
                raise broken
            if last:
                if data:
                    raise FormatError(f"{self.file.name}:{line}: a quoted field starts here and is never closed")
                return

    def pieces(self) -> Iterator[Task]:
        """Yield one task for each block."""
        for block in self.blocks():
            yield partial(self._pieces, block)

    def _pieces(self, block: Block) -> list[Piece]:
        return [self.piece(block)]

    def piece(self, block: Block) -> Piece:
        """Read the rows of a block; of pages, the text."""
        piece = self.parse(block)
        if self.options.html and piece.batch is not None:
            texts, _ = texts_of_pages(piece.batch.column("text"))
            piece.batch = piece.batch.set_column(0, "text", texts)
        return piece

    def kept_bytes(self, keep: Flags) -> Iterator[memoryview]:
        """Yield the bytes of the rows whose flag is set."""
        first = 0
        try:
            for block in self.blocks():
                flags = keep[first : first + block.rows]
                first += block.rows
                if len(flags) < block.rows:
                    break
                view = memoryview(block.data)
                for start, stop in runs(flags):
                    yield from self._stretch(view, block.split, start, stop)
        except FormatError:
            if not self.broken:
                raise
        self.check_rows(first, keep)

    @staticmethod
    def _stretch(view: memoryview, split: Split, start: int, stop: int) -> Iterator[memoryview]:
        """Yield rows start to stop, in one go unless there are blank lines between them."""
        gaps = np.flatnonzero(split.starts[start + 1 : stop] != split.ends[start : stop - 1]) + start + 1
        for low, high in zip([start, *gaps.tolist()], [*gaps.tolist(), stop], strict=True):
            yield view[int(split.starts[low]) : int(split.ends[high - 1])]

    def write(self, keep: Flags, target: Path, tick: Tick = quiet) -> None:
        """Write head and kept rows with the bytes they had."""
        with atomic(target, self.file.compression, parents=True) as out:
            rows = self.kept_bytes(keep)
            first = next(rows, memoryview(b""))
            out.write(self.head)
            out.write(first)
            for stretch in rows:
                out.write(stretch)
