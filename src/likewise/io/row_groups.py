"""A Parquet file whose row groups are encoded apart, several at a time.

Arrow encodes the row groups of a file one after the other. Here each becomes a small file in memory; its pages go to
the end of the real file, and so does its entry of the footer, in which every position is moved by as much as the pages
were. The bytes are those that Arrow's own writer gives for the same row groups.
"""

from __future__ import annotations

import struct
from collections.abc import Callable, Iterable, Iterator, Mapping
from time import process_time
from typing import IO, Any, NamedTuple

import pyarrow as pa
import pyarrow.parquet as pq

from likewise.base.parallel import run_ahead

MAGIC = b"PAR1"
TAIL = 8
"""Bytes at the end of a file: the length of the footer, and the magic number."""

TRUE, FALSE, BYTE, I16, I32, I64, DOUBLE, BINARY, LIST, SET, STRUCT = 1, 2, 3, 4, 5, 6, 7, 8, 9, 10, 12
"""Types of values in Thrift's compact protocol, in which the footer is written."""

NUM_ROWS, ROW_GROUPS = 3, 4
"""Fields of the footer."""
COLUMNS, GROUP_OFFSET, ORDINAL = 1, 5, 7
"""Fields of a row group."""
CHUNK_METADATA = 3
CHUNK_OFFSETS = (2, 4, 6)
"""Fields of a column chunk: its metadata, where these are repeated (0: nowhere), and where its indexes of pages are."""
PAGE_OFFSETS = (9, 10, 11, 14)
"""Fields of the metadata of a column chunk: where its data, index and dictionary pages and its Bloom filter begin."""


class EncodedRows(NamedTuple):
    """Row groups as the pages and the footer of a file of their own."""

    pages: memoryview
    footer: bytes
    rows: int


def encode_rows(table: pa.Table, schema: pa.Schema, compression: Any) -> EncodedRows:
    """Encode a table as a row group (one for every million rows)."""
    out = pa.BufferOutputStream()
    with pq.ParquetWriter(out, schema, compression=compression) as writer:
        writer.write_table(table)
    return _opened(out.getvalue(), table.num_rows)


def write_row_groups(
    tasks: Iterator[Callable[[], Iterable[EncodedRows]]],
    out: IO[bytes],
    schema: pa.Schema,
    compression: Any,
    threads: int,
) -> Iterator[int]:
    """Write a file of the row groups that the tasks encode, in their order; yield the rows of each as it is written."""
    empty = pa.BufferOutputStream()
    pq.ParquetWriter(empty, schema, compression=compression).close()
    frame = _opened(empty.getvalue(), 0).footer
    out.write(MAGIC)
    position, rows = len(MAGIC), 0
    groups: list[bytes] = []
    for several in run_ahead(tasks, threads):
        for encoded in several:
            out.write(encoded.pages)
            groups += _moved_groups(encoded.footer, position - len(MAGIC), len(groups))
            position += len(encoded.pages)
            rows += encoded.rows
            yield encoded.rows
    footer = _rewritten(frame, 0, {NUM_ROWS: _always(_zigzag(rows)), ROW_GROUPS: _always(_list(groups))})
    out.write(footer + struct.pack("<I", len(footer)) + MAGIC)


def _opened(file: Any, rows: int) -> EncodedRows:
    """Divide a file into its pages and its footer."""
    view = memoryview(file)
    (length,) = struct.unpack("<I", view[-TAIL:-4])
    return EncodedRows(view[len(MAGIC) : -TAIL - length], bytes(view[-TAIL - length : -TAIL]), rows)


def _moved_groups(footer: bytes, by: int, first: int) -> Iterator[bytes]:
    """Yield the row groups of a footer, all positions moved; the first of them becomes the one of this number."""

    def moved(at: int) -> bytes:
        position = _signed(footer, at)
        return _zigzag(position + by if position else 0)  # a group without rows has no pages, and no position

    def metadata(at: int) -> bytes:
        return _rewritten(footer, at, dict.fromkeys(PAGE_OFFSETS, moved))

    def chunks(at: int) -> bytes:
        changed = {**dict.fromkeys(CHUNK_OFFSETS, moved), CHUNK_METADATA: metadata}
        return _list([_rewritten(footer, place, changed) for place in _members(footer, at)])

    (groups,) = (start for field, _, start, _ in _fields(footer, 0) if field == ROW_GROUPS)
    for number, at in enumerate(_members(footer, groups), first):
        yield _rewritten(footer, at, {COLUMNS: chunks, GROUP_OFFSET: moved, ORDINAL: _always(_zigzag(number))})


def _rewritten(data: bytes, at: int, changed: Mapping[int, Callable[[int], bytes]]) -> bytes:
    """Return a struct in which some fields have other values: what the functions return for where the old ones are."""
    parts: list[bytes] = []
    for field, header, start, stop in _fields(data, at):
        parts.append(data[header:start])
        parts.append(changed[field](start) if field in changed else data[start:stop])
    return b"".join([*parts, b"\0"])


def _always(value: bytes) -> Callable[[int], bytes]:
    return lambda _: value


def _fields(data: bytes, at: int) -> Iterator[tuple[int, int, int, int]]:
    """Yield the fields of a struct: the number, and where its header, its value and the next field begin."""
    field = 0
    while data[at]:
        header, kind = at, data[at] & 15
        if data[at] >> 4:
            field, at = field + (data[at] >> 4), at + 1
        else:
            field, at = _signed(data, at + 1), _after_number(data, at + 1)
        stop = at if kind in (TRUE, FALSE) else _after(data, at, kind)
        yield field, header, at, stop
        at = stop


def _after(data: bytes, at: int, kind: int) -> int:
    """Return where a value ends."""
    if kind in (I16, I32, I64):
        return _after_number(data, at)
    if kind == BINARY:
        return _after_number(data, at) + _number(data, at)
    if kind == STRUCT:
        return max((stop for *_, stop in _fields(data, at)), default=at) + 1
    if kind in (LIST, SET):
        count, inner, at = _list_head(data, at)
        for _ in range(count):
            at = _after(data, at, inner)
        return at
    return at + {TRUE: 1, FALSE: 1, BYTE: 1, DOUBLE: 8}[kind]


def _members(data: bytes, at: int) -> Iterator[int]:
    """Yield where the members of a list begin."""
    count, inner, at = _list_head(data, at)
    for _ in range(count):
        yield at
        at = _after(data, at, inner)


def _list_head(data: bytes, at: int) -> tuple[int, int, int]:
    """Return the length of a list, the type of its members, and where these begin."""
    count, inner, at = data[at] >> 4, data[at] & 15, at + 1
    return (count, inner, at) if count < 15 else (_number(data, at), inner, _after_number(data, at))


def _list(structs: list[bytes]) -> bytes:
    count = len(structs)
    head = bytes([count << 4 | STRUCT]) if count < 15 else bytes([15 << 4 | STRUCT]) + _varint(count)
    return head + b"".join(structs)


def _number(data: bytes, at: int) -> int:
    """Return a number of seven bits a byte, the lowest first; the last byte is below 128."""
    value = shift = 0
    while data[at] > 127:
        value |= (data[at] & 127) << shift
        at, shift = at + 1, shift + 7
    return value | data[at] << shift


def _after_number(data: bytes, at: int) -> int:
    while data[at] > 127:
        at += 1
    return at + 1


def _signed(data: bytes, at: int) -> int:
    value = _number(data, at)
    return value >> 1 ^ -(value & 1)


def _zigzag(value: int) -> bytes:
    return _varint(value << 1 ^ value >> 63)


def _varint(value: int) -> bytes:
    parts = bytearray()
    while value > 127:
        parts.append(value & 127 | 128)
        value >>= 7
    return bytes([*parts, value])


def parquet_cost(table: pa.Table, codecs: Any) -> tuple[float, float]:
    """Write a table as Parquet to memory; return the seconds and the bytes per row."""
    begun = process_time()
    out = pa.BufferOutputStream()
    with pq.ParquetWriter(out, table.schema, compression=codecs) as writer:
        writer.write_table(table)
    rows = max(1, table.num_rows)
    return (process_time() - begun) / rows, out.getvalue().size / rows
