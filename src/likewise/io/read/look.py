"""Look at some rows of a file without reading all of it, and see how long reading and writing them takes.

Parquet and Arrow files say how many rows they have. Of lines and records, windows of the file are read and the rows
that *start* in a window are counted: every row starts somewhere, so long rows are not favoured. Of a compressed file
only the beginning can be seen.
"""

from __future__ import annotations

import tempfile
from collections.abc import Iterator, Sequence
from contextlib import closing
from dataclasses import dataclass, replace
from functools import singledispatch
from pathlib import Path
from time import process_time
from typing import IO, Any

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq

from likewise.io.disk import atomic
from likewise.io.read.base import MIB
from likewise.io.read.columns import Piece, clean, text_offsets
from likewise.io.read.delimited import Delimited, regular_ends
from likewise.io.read.ipc import Ipc, _offset, _slot
from likewise.io.read.open import _decompressed, input_errors
from likewise.io.read.parquet import Parquet
from likewise.io.read.records import Block, Records
from likewise.io.read.tables import Part

REWRITTEN = 3 * MIB
"""Bytes of rows that are written again to see how long it takes."""

SLOW = {"bz2": 4, "xz": 16}
"""Of what is slow to pack, so many times less is looked at."""

GROUPS = 16
"""Row groups or batches to look into."""

DECODED = 3
"""So many times more bytes of row groups are decoded than are needed, to get at rows within them."""

STEP, MOST_ROWS = 2 * MIB, 8192
"""They are decoded so many bytes of text at a time, and at most so many rows."""

GLANCE = 1 << 14
"""Bytes read at a time to find the end of a row."""

UNPACKED = 8
"""Of Arrow batches, which are unpacked as a whole, so many times more bytes may be read than are needed."""


@dataclass(frozen=True)
class Stretch:
    """Consecutive documents, the ids beside them (if they are not row numbers), and what they were read from.

    `rows` counts the broken ones too; `stored` is the size of the window of the file in which they start; `seconds` is
    the time one core took to read them, and `drawn` what of that one thread does for all: unpacking, finding rows.
    """

    text: pa.Array
    ids: pa.Array | None
    rows: int
    stored: float
    seconds: float
    drawn: float = 0.0

    @classmethod
    def of(cls, piece: Piece, stored: float, seconds: float, drawn: float = 0.0) -> Stretch:
        """Take what was read."""
        if piece.batch is None:
            return cls(pa.array([], pa.string()), None, piece.rows, stored, seconds, drawn)
        ids = _alone(piece.batch.column("id")) if "id" in piece.batch.schema.names else None
        return cls(_alone(piece.batch.column("text")), ids, piece.rows, stored, seconds, drawn)


def _alone(array: pa.Array) -> pa.Array:
    """Copy an array, so that what it was a slice of need not stay in memory."""
    return pa.concat_arrays([array, array.slice(0, 0)])


def careful(part: Part) -> Part:
    """Return the same file for a look at it, in which a broken row is no error."""
    twin = type(part)(part.file, replace(part.options, on_error="skip"))
    if isinstance(twin, Parquet | Ipc) and isinstance(part, Parquet | Ipc):
        twin.__dict__["_path"] = part._path  # what is compressed is not unpacked again
    twin.peek()
    twin.types = part.types
    return twin


def row_groups(part: Part) -> list[int] | None:
    """Return the number of rows of every row group or batch, if the file tells."""
    if isinstance(part, Parquet):
        return [part._metadata.row_group(group).num_rows for group in range(part._metadata.num_row_groups)]
    if isinstance(part, Ipc):
        with input_errors(part.file), closing(part._mapped()) as mapped:
            mapped.seek(8 if part._is_file else 0)
            messages = pa.ipc.MessageReader.open_stream(mapped)
            return [_message_rows(message) for message in messages if message.type == "record batch"]
    return None


def _message_rows(message: Any) -> int:
    """Return the rows of a record batch from its metadata: slot 0 of the header, which is slot 2 of the message."""
    raw = message.metadata.to_pybytes()
    header = _slot(raw, int.from_bytes(raw[:4], "little"), 2)
    rows = _slot(raw, header + _offset(raw, header), 0)
    return int.from_bytes(raw[rows : rows + 8], "little") if rows else 0


def footer_text(part: Parquet) -> int:
    """Return about how many bytes of text a Parquet file has: its footer counts four more for each value."""
    rows = int(part._metadata.num_rows)
    return sum(part._size(group, [part.options.text]) for group in range(part._metadata.num_row_groups)) - 4 * rows


@singledispatch
def look(part: Part, shares: Sequence[float], size: int) -> Iterator[Stretch]:
    """Read rows of a file from these places (0 to 1) on, about `size` bytes at each."""
    raise NotImplementedError(type(part).__name__)


@singledispatch
def rewrite(part: Part) -> tuple[float, float]:
    """Return the seconds one core takes to write one row again, and the bytes the row takes.

    Lines and records need not be parsed again, and the time to read them is in it; for other formats it is not.
    """
    raise NotImplementedError(type(part).__name__)


@look.register
def _(part: Parquet, shares: Sequence[float], size: int) -> Iterator[Stretch]:
    firsts = np.cumsum([0, *(row_groups(part) or [])])
    chosen = shares[:: -(-len(shares) // GROUPS)] if firsts[-1] else ()
    hits = sorted({int(np.searchsorted(firsts, share * firsts[-1], side="right")) - 1 for share in chosen})
    for group in hits:
        decoded = min(1.0, DECODED * size * len(shares) / len(hits) / max(1, part._size(group, part.options.columns)))
        yield from _of_group(part, group, int(firsts[group]), decoded, -(-len(shares) // len(hits)), size)


def _of_group(part: Parquet, group: int, first: int, share: float, places: int, size: int) -> Iterator[Stretch]:
    """Decode a share of a row group, from its first row on, and yield stretches from so many places in it."""
    rows = part._metadata.row_group(group).num_rows
    mean = max(1, part._size(group, [part.options.text]) // rows)
    step = max(1, min(rows, STEP // mean, MOST_ROWS))
    batches = max(1, -(-int(share * rows) // step))
    each = -(-places // batches)
    wanted = {place * batches // places for place in range(places)}
    decoding, decoded, room = 0.0, 0, DECODED * size * places
    taken: list[Stretch] = []
    begun = process_time()
    for number, (start, batch) in enumerate(part._batches(group, first, step)):
        decoding += process_time() - begun
        decoded += batch.num_rows
        room -= batch.nbytes
        for place in range(each) if number in wanted else ():
            at, after = (end * batch.num_rows // each for end in (place, place + 1))
            if at == after:
                continue
            some = batch.slice(at, max(1, min(size * batch.num_rows // max(1, batch.nbytes), after - at)))
            begun = process_time()
            piece = clean(some, part.file.name, start + at, part.options, part.types)
            taken.append(Stretch.of(piece, piece.rows * mean, process_time() - begun))
        if number + 1 == batches or room < 0:  # repeated values take much more than the footer says
            break
        begun = process_time()
    for stretch in taken:
        yield replace(stretch, seconds=stretch.seconds + decoding * stretch.rows / decoded)


def text_bytes(array: pa.Array) -> int:
    """Return the bytes of text in an array of strings."""
    offsets = text_offsets(array) if len(array) else (0, 0)
    return int(offsets[-1] - offsets[0])


@rewrite.register
def _(part: Parquet) -> tuple[float, float]:
    group = part._metadata.num_row_groups // 2
    rows = part._metadata.row_group(group).num_rows
    if not rows:
        return 0.0, 0.0
    mean = max(1, part._size(group, None) // rows)
    _, batch = next(part._batches(group, 0, max(1, min(rows, REWRITTEN // mean, MOST_ROWS)), whole=True))
    return encoded(pa.Table.from_batches([batch]), part._codecs())


def encoded(table: pa.Table, codecs: Any) -> tuple[float, float]:
    """Write a table as Parquet; return the seconds and the bytes that a row takes."""
    begun = process_time()
    out = pa.BufferOutputStream()
    with pq.ParquetWriter(out, table.schema, compression=codecs) as writer:
        writer.write_table(table)
    rows = max(1, table.num_rows)
    return (process_time() - begun) / rows, out.getvalue().size / rows


@look.register
def _(part: Ipc, shares: Sequence[float], size: int) -> Iterator[Stretch]:
    fields = [part._schema.get_field_index(name) for name in part.options.columns]
    with input_errors(part.file):
        reader = part._reader(part._mapped(), fields)
        batches = reader.num_record_batches if part._is_file else 0
    chosen = sorted({int(share * batches) for share in shares}) if batches else []
    if part._is_file:
        found: Iterator[Any] = map(reader.get_batch, chosen[:: max(1, -(-len(chosen) // GROUPS))])
    else:
        found = iter(reader)
    wanted = size * len(shares)
    room = wanted // min(GROUPS, len(chosen) or GROUPS)
    unpacked = 0
    while unpacked < UNPACKED * wanted:
        begun = process_time()
        with input_errors(part.file):
            batch = next(found, None)
        if batch is None:
            return
        unpacked += batch.nbytes
        mean = max(1, batch.nbytes // max(1, batch.num_rows))
        some = batch.slice(0, max(1, room // mean))
        rows = max(1, some.num_rows)
        seconds = (process_time() - begun) * rows / max(1, batch.num_rows)  # all of it was unpacked
        begun = process_time()
        piece = clean(some, part.file.name, 0, part.options, part.types)
        yield Stretch.of(piece, rows * mean, seconds + process_time() - begun)


@rewrite.register
def _(part: Ipc) -> tuple[float, float]:
    batch = next((batch for batch in part._batches(None) if isinstance(batch, pa.RecordBatch)), None)
    if batch is None or not batch.num_rows:
        return 0.0, 0.0
    table = pa.Table.from_batches([batch.slice(0, max(1, REWRITTEN * batch.num_rows // max(1, batch.nbytes)))])
    begun = process_time()
    out = pa.BufferOutputStream()
    with pa.ipc.new_file(out, table.schema, options=pa.ipc.IpcWriteOptions(compression=part._codec())) as writer:
        writer.write_table(table)
    return (process_time() - begun) / table.num_rows, out.getvalue().size / table.num_rows


@look.register
def _(part: Records, shares: Sequence[float], size: int) -> Iterator[Stretch]:
    windows = _beginning(part, size * len(shares)) if part.file.compression else _windows(part, shares, size)
    setting_up = None
    while True:
        begun = process_time()
        window = next(windows, None)
        if window is None:
            return
        block, stored = window
        if not part.file.compression:  # reading on from a window on is quicker than finding where its rows are
            begun = process_time()
            part.split(block.data, False)
        drawn = process_time() - begun
        if setting_up is None and block.rows:
            setting_up = _setting_up(part, block)
        begun = process_time()
        piece = part.piece(block)
        parsing = max(0.0, process_time() - begun - (setting_up or 0.0))
        yield Stretch.of(piece, stored, drawn + parsing, drawn)


def _setting_up(part: Records, block: Block) -> float:
    """Return the seconds it takes to parse a single row: a window has the same costs as a much larger block."""
    starts, ends = block.split.starts[:1], block.split.ends[:1]
    one = Block(
        block.data[int(starts[0]) : int(ends[0])], 1, replace(block.split, starts=starts * 0, ends=ends - starts)
    )
    seconds = []
    for _ in range(2):
        begun = process_time()
        part.piece(one)
        seconds.append(process_time() - begun)
    return min(seconds)


@rewrite.register
def _(part: Records) -> tuple[float, float]:
    packed = part.file.compression
    size = REWRITTEN // SLOW.get(packed or "", 1)
    begun = process_time()
    block = next(_beginning(part, size) if packed else _windows(part, [0.0], size))[0]
    unpacking = process_time() - begun if packed else 0.0
    with tempfile.TemporaryDirectory(prefix="likewise-") as place:
        target = Path(place) / "rows"
        with atomic(target, packed, durable=False) as out:
            begun = process_time()
            part.split(block.data, False)
            out.write(memoryview(block.data))
        rows = max(1, block.rows)
        return (unpacking + process_time() - begun) / rows, target.stat().st_size / rows


def _windows(part: Records, shares: Sequence[float], size: int) -> Iterator[tuple[Block, float]]:
    """Yield the rows that start in a window at each of these places, and the size of the window."""
    total, head = part.file.bytes, len(part.head)
    starts = [int(share * total) for share in shares]
    with input_errors(part.file), open(part.file.path, "rb") as raw:
        for start, after in zip(starts, [*starts[1:], total], strict=True):
            end = min(start + size, after)
            begin = max(start, head)
            if begin == head:
                raw.seek(begin)
                yield _rows_starting(part, raw, raw.read(max(0, end - begin))), end - start
                continue
            raw.seek(begin - 1)
            data = raw.read(end - begin + 1)
            first = _row_start(part, data)
            if first is not None:
                yield _rows_starting(part, raw, data[first:]), end - start


def _rows_starting(part: Records, raw: IO[bytes], data: bytes) -> Block:
    """Return the rows that start in the data; the last of them may end behind it."""
    limit = len(data)
    while True:
        more = raw.read(max(GLANCE, len(data)))
        split = part.split(data, not more)
        if split.used >= limit or not more:
            break
        data += more
    inside = split.starts < limit
    starts, ends = split.starts[inside], split.ends[inside]
    used = int(ends[-1]) if len(ends) else 0
    return Block(data[:used], 1, replace(split, starts=starts, ends=ends, used=used))


def _row_start(part: Records, data: bytes) -> int | None:
    """Return where the first row starts in data from the middle of a file, its end if none; None if nobody can tell."""
    if not isinstance(part, Delimited):
        return data.find(b"\n") + 1 or len(data)
    # the data may begin within quotes, or not: only one of the two lets every quote stand as it should
    comma = ord(part.delimiter)
    outside = regular_ends(np.frombuffer(data, np.uint8), comma, False)
    inside = regular_ends(np.frombuffer(b'"' + data, np.uint8), comma, False)
    if outside is not None and inside is not None:  # there are no quotes: do the lines look like records?
        lines = data[data.find(b"\n") + 1 : data.rfind(b"\n") + 1]
        if lines and part._arrow(lines, [0]) is not None:
            inside = None
        else:
            outside = None
    if outside is not None:
        return int(outside[0]) if len(outside) else len(data)
    if inside is not None:
        return int(inside[0]) - 1 if len(inside) else len(data)
    return None


def _beginning(part: Records, size: int) -> Iterator[tuple[Block, float]]:
    """Yield the rows in the first `size` bytes of a compressed file, and the packed bytes these took."""
    with input_errors(part.file), open(part.file.path, "rb") as raw:
        parts: list[bytes] = []
        held = packed = 0
        stream = _decompressed(raw, part.file)
        while held < size and (more := next(stream, b"")):
            parts.append(more)
            held += len(more)
            packed = raw.tell()
        whole = not next(stream, b"")
    data = b"".join(parts)
    split = part.split(data[len(part.head) :], whole)
    used = len(part.head) + split.used
    if split.used:
        yield Block(data[len(part.head) : used], 1, split), part.file.bytes if whole else packed * used / len(data)
