"""Formats whose rows are ranges of bytes: JSON lines, CSV records, plain lines.

They are read in blocks of whole rows. A kept row is written again with exactly its bytes.
"""

from __future__ import annotations

import tempfile
from abc import abstractmethod
from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass, replace
from functools import partial
from itertools import chain
from pathlib import Path
from time import process_time
from typing import IO, Any, NamedTuple

import numpy as np
import pyarrow as pa

from likewise.errors import FormatError, ParameterError
from likewise.io.disk import atomic
from likewise.io.read.base import Flags, Rows, Tick, quiet
from likewise.io.read.columns import CleanBatch, Trouble, runs, sift, texts_of_pages
from likewise.io.read.cuts import TextCuts
from likewise.io.read.open import BLOCK, BOM, check_growth, check_row, chunks, decompressed, input_errors
from likewise.io.read.stretches import REWRITTEN, SLOW, Stretch
from likewise.io.read.tables import TablePart, Task

PIECE = 1 << 20
"""Bytes in which rows are looked for at a time: the places of rows take memory, and a file may be all line ends."""
GLANCE = 1 << 14
"""Bytes read at a time to find the end of a row: more than most rows have."""


@dataclass(frozen=True)
class Split:
    """Where the rows of some bytes start and end (with their line end), and how many bytes they use.

    `plain` means that the fast parser can read them.
    """

    starts: Rows
    ends: Rows
    used: int
    plain: bool = True


@dataclass(frozen=True)
class RecordBlock:
    """Bytes of whole rows; `line` is the number of their first line in the file, from 1."""

    data: bytes
    line: int
    split: Split

    @property
    def rows(self) -> int:
        """The number of rows in the block."""
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
LARGEST = (1 << 31) - 2
"""Bytes that fit in an Arrow array with 32-bit offsets, and in one block of Arrow's parsers."""


class Row(NamedTuple):
    """The values that are needed from one row."""

    text: str | None
    id: str | None
    scores: tuple[str | None, ...]
    id_string: bool = False


def split_in_pieces(data: bytes, piece: Callable[[int], tuple[Split, int]]) -> Split:
    """Put together the splits of pieces of the data; `piece` returns that of the one at a place, and its end."""
    parts, used = [NOTHING], 0
    while used < len(data):
        found, end = piece(used)
        if not found.used:
            break
        parts.append(replace(found, starts=found.starts + used, ends=found.ends + used))
        used = end
    starts, ends = (np.concatenate([getattr(part, name) for part in parts]) for name in ("starts", "ends"))
    return Split(starts, ends, used, all(part.plain for part in parts))


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


class RecordPart(TablePart):
    """One file whose rows are ranges of bytes."""

    head = b""
    """The bytes before the first row: a byte order mark, the line of column names."""

    @abstractmethod
    def split(self, data: bytes, last: bool) -> Split:
        """Find the rows in the data; with `last`, the data end the file."""

    @abstractmethod
    def parse(self, block: RecordBlock) -> CleanBatch:
        """Read the rows of a block."""

    def head_size(self, data: bytes) -> int:
        """Return the number of bytes before the first row; `data` has at least the first row, or everything."""
        return len(BOM) if data.startswith(BOM) else 0

    def blocks(self, size: int | None = None) -> Iterator[RecordBlock]:
        """Yield the file in blocks of about `size` bytes, by default of a batch, or of one row if that is longer."""
        size = size or min(BLOCK, max(PIECE, self.options.batch_bytes))
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
            check_growth(self.file, length, "a row")
            check_row(f"{self.file.name}:{line}", length - size, self.options.row_bytes)
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
                yield RecordBlock(data[: split.used], line, split)
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

    def tasks(self) -> Iterator[Task]:
        """Yield one task for each block."""
        for block in self.blocks():
            yield partial(self._batches_of, block)

    def _batches_of(self, block: RecordBlock) -> list[CleanBatch]:
        return [self.read_block(block)]

    def read_block(self, block: RecordBlock) -> CleanBatch:
        """Read the rows of a block; of HTML pages, their text."""
        with input_errors(self.file):
            batch = self.parse(block)
            if self.options.html and batch.batch is not None:
                texts, _ = texts_of_pages(batch.batch.column("text"))
                batch.batch = batch.batch.set_column(0, "text", texts)
            return batch

    def line_of(self, block: RecordBlock, row: int) -> int:
        """Return the line on which a row of a block starts."""
        return block.line_of(row)

    def sifted(self, block: RecordBlock, columns: dict[str, pa.Array], trouble: dict[int, Trouble]) -> CleanBatch:
        """Make a batch of the columns of a block; stop at the first row in trouble, or set all of them aside."""

        def at(row: int) -> tuple[int, str]:
            line = self.line_of(block, row)
            return line, f"{self.file.name}:{line}"

        return sift(self.file.name, columns, trouble, self.options, at)

    def of_rows(self, block: RecordBlock, rows: Iterable[Row | Trouble]) -> CleanBatch:
        """Make a batch of the rows of a block, read one by one."""
        values: list[Row | None] = []
        trouble: dict[int, Trouble] = {}
        for place, row in enumerate(rows):
            values.append(None if isinstance(row, Trouble) else row)
            if isinstance(row, Trouble):
                trouble[place] = row
                if not self.options.skip:
                    break
        kind = pa.string() if len(block.data) < LARGEST else pa.large_string()
        columns = {"text": pa.array([row and row.text for row in values], kind)}
        if self.options.id is not None:
            columns["id"] = pa.array([row and row.id for row in values], pa.string())
        for place, role in enumerate(self.options.scores):
            columns[role] = pa.array([row and row.scores[place] for row in values], pa.string())
        batch = self.sifted(block, columns, trouble)
        batch.id_strings = any(row is not None and row.id_string for row in values)
        return batch

    @abstractmethod
    def table_of(self, data: bytes | bytearray) -> pa.Table:
        """Return the rows in these bytes as a table."""

    def kept_tables(self, keep: Flags) -> Iterator[pa.Table]:
        """Yield the rows whose flag is set, some at a time."""
        return map(self.table_of, self.kept_stretches(keep, BLOCK))

    def kept_stretches(self, keep: Flags, most: int = LARGEST // 2) -> Iterator[bytearray]:
        """Yield the bytes of the rows whose flag is set, by default as many at a time as Arrow's parsers take."""
        held = bytearray()
        for stretch in self.kept_bytes(keep):
            if held and len(held) + len(stretch) > most:
                yield held
                held = bytearray()
            held += stretch
        if held:
            yield held

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
                cuts = None if self.cuts is None else self.cuts.between(first - block.rows, first)
                for start, stop in runs(flags):
                    yield from self._cut_stretch(view, block.split, start, stop, cuts)
        except FormatError:
            if not self.broken:
                raise
        self.check_rows(first, keep)

    def _cut_stretch(
        self, view: memoryview, split: Split, start: int, stop: int, cuts: TextCuts | None
    ) -> Iterator[memoryview]:
        """Yield rows start to stop, those in `cuts` with their texts cut."""
        if cuts:
            low, high = np.searchsorted(cuts.rows, [start, stop]).tolist()
            for place, row in enumerate(cuts.rows[low:high].tolist(), low):
                yield from self._stretch(view, split, start, row)
                data = bytes(view[int(split.starts[row]) : int(split.ends[row])])
                yield memoryview(self.cut_row(data, partial(cuts.cut, place)))
                start = row + 1
        yield from self._stretch(view, split, start, stop)

    def cut_row(self, data: bytes, cut: Callable[[bytes], bytes]) -> bytes:
        """Return the bytes of a row, its line end included, with its text cut."""
        raise ParameterError(f"{self.file.name}: nothing can be cut out of {self.file.format} files")

    @staticmethod
    def _stretch(view: memoryview, split: Split, start: int, stop: int) -> Iterator[memoryview]:
        """Yield rows start to stop, in one go unless there are blank lines between them."""
        if start == stop:
            return
        gaps = np.flatnonzero(split.starts[start + 1 : stop] != split.ends[start : stop - 1]) + start + 1
        for low, high in zip([start, *gaps.tolist()], [*gaps.tolist(), stop], strict=True):
            yield view[int(split.starts[low]) : int(split.ends[high - 1])]

    def look(self, shares: Sequence[float], size: int) -> Iterator[Stretch]:
        """Read the rows that start in windows of the file; of a compressed file, the first ones."""
        compressed = self.file.compression is not None
        windows = self._beginning(size * len(shares)) if compressed else self._windows(shares, size)
        overhead = None
        while True:
            begun = process_time()
            window = next(windows, None)
            if window is None:
                return
            block, stored = window
            if not compressed:  # reading on from a window is quicker than finding where its rows are
                begun = process_time()
                self.split(block.data, False)
            drawn = process_time() - begun
            if overhead is None and block.rows:
                overhead = self._overhead(block)
            begun = process_time()
            batch = self.read_block(block)
            parsing = max(0.0, process_time() - begun - (overhead or 0.0))
            yield Stretch.of(batch, stored, drawn + parsing, drawn)

    def _overhead(self, block: RecordBlock) -> float:
        """Return the seconds to parse a single row: what a window costs as much as a much larger block."""
        starts, ends = block.split.starts[:1], block.split.ends[:1]
        split = replace(block.split, starts=starts * 0, ends=ends - starts)
        one = RecordBlock(block.data[int(starts[0]) : int(ends[0])], 1, split)
        seconds = []
        for _ in range(2):
            begun = process_time()
            self.read_block(one)
            seconds.append(process_time() - begun)
        return min(seconds)

    def rewrite_cost(self) -> tuple[float, float]:
        """Split and write the rows at the beginning of the file."""
        compression = self.file.compression
        size = REWRITTEN // SLOW.get(compression or "", 1)
        begun = process_time()
        block = next(self._beginning(size) if compression else self._windows([0.0], size))[0]
        decompressing = process_time() - begun if compression else 0.0
        with tempfile.TemporaryDirectory(prefix="likewise-") as place:
            target = Path(place) / "rows"
            with atomic(target, compression, durable=False) as out:
                begun = process_time()
                self.split(block.data, False)
                out.write(memoryview(block.data))
            rows = max(1, block.rows)
            return (decompressing + process_time() - begun) / rows, target.stat().st_size / rows

    def _windows(self, shares: Sequence[float], size: int) -> Iterator[tuple[RecordBlock, float]]:
        """Yield the rows that start in a window at each of these places, and the size of the window."""
        total, head = self.file.bytes, len(self.head)
        starts = [int(share * total) for share in shares]
        with input_errors(self.file), open(self.file.fetched(), "rb") as raw:
            for start, after in zip(starts, [*starts[1:], total], strict=True):
                end = min(start + size, after)
                begin = max(start, head)
                if begin == head:
                    raw.seek(begin)
                    yield self._rows_starting(raw, raw.read(max(0, end - begin))), end - start
                    continue
                raw.seek(begin - 1)
                data = raw.read(end - begin + 1)
                first = self.row_start(data)
                if first is not None:
                    yield self._rows_starting(raw, data[first:]), end - start

    def _rows_starting(self, raw: IO[bytes], data: bytes) -> RecordBlock:
        """Return the rows that start in the data; the last of them may end after it."""
        limit = len(data)
        while True:
            more = raw.read(max(GLANCE, len(data)))
            split = self.split(data, not more)
            if split.used >= limit or not more:
                break
            data += more
        inside = split.starts < limit
        starts, ends = split.starts[inside], split.ends[inside]
        used = int(ends[-1]) if len(ends) else 0
        return RecordBlock(data[:used], 1, replace(split, starts=starts, ends=ends, used=used))

    def row_start(self, data: bytes) -> int | None:
        """Return where the first row starts in data from the middle of a file: its end if none, None if ambiguous."""
        return data.find(b"\n") + 1 or len(data)

    def _beginning(self, size: int) -> Iterator[tuple[RecordBlock, float]]:
        """Yield the rows in the first `size` bytes of a compressed file, and the compressed bytes these take."""
        with input_errors(self.file), open(self.file.fetched(), "rb") as raw:
            parts: list[bytes] = []
            held = consumed = 0
            stream = decompressed(raw, self.file)
            while held < size and (more := next(stream, b"")):
                parts.append(more)
                held += len(more)
                consumed = raw.tell()
            whole = not next(stream, b"")
        data = b"".join(parts)
        split = self.split(data[len(self.head) :], whole)
        used = len(self.head) + split.used
        if split.used:
            stored = self.file.bytes if whole else consumed * used / len(data)
            yield RecordBlock(data[len(self.head) : used], 1, split), stored

    @property
    def packs_rows(self) -> bool:
        """Whether `put` compresses the rows, each by itself."""
        return False

    def write(self, keep: Flags, target: Path, tick: Tick = quiet, threads: int = 1) -> None:
        """Write head and kept rows with the bytes they had."""
        with atomic(target, None if self.packs_rows else self.file.compression, parents=True) as out:
            rows = self.kept_bytes(keep)
            first = next(rows, b"")  # by then the head is known
            for stretch in chain((self.head, first), rows):
                self.put(stretch, out)

    def put(self, rows: bytes | memoryview, out: Any) -> None:
        """Write the bytes of some rows."""
        out.write(rows)
