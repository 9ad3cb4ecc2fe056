"""Arrow IPC (Feather): the file and the stream format, memory-mapped but for what came as a stream."""

from __future__ import annotations

import struct
from collections.abc import Iterator, Sequence
from contextlib import closing
from functools import cached_property, partial
from pathlib import Path
from time import process_time
from typing import Any

import pyarrow as pa

from likewise.errors import FormatError, InputError
from likewise.io.disk import atomic
from likewise.io.read.base import Aside, Flags, Tick, quiet
from likewise.io.read.columns import CleanBatch, Types, choose, clean, declared
from likewise.io.read.integrity import check_batch
from likewise.io.read.open import input_errors
from likewise.io.read.stretches import GROUPS, REWRITTEN, UNPACKED, Stretch
from likewise.io.read.tables import TablePart, Task

ABSURD = 1 << 26
"""Damaged batches with more rows than this, and than the file has bits, are not set aside row by row."""


class Ipc(TablePart):
    """One Arrow file or stream."""

    _schema: Any = None

    @cached_property
    def _is_file(self) -> bool:
        with input_errors(self.file), open(self._path, "rb") as raw:
            start = raw.read(6)
        if not start:
            raise FormatError(f"{self.file.name}: the file is empty, not Arrow; create or download it again")
        if start.startswith(b"FEA1"):
            raise FormatError(f"{self.file.name}: this is Feather version 1; write it again as version 2")
        return start == b"ARROW1"

    def peek(self) -> Types:
        """Read the schema only."""
        with input_errors(self.file), closing(self._mapped()) as mapped:
            self._schema = self._reader(mapped, None).schema
            return declared(self.file.name, self._schema, self.options)

    def _mapped(self) -> Any:
        # the pages of a mapped file count as memory of the process, and a stream may be larger than that
        return pa.OSFile(str(self._path)) if self.file.piped else pa.memory_map(str(self._path))

    def _reader(self, mapped: Any, fields: list[int] | None) -> Any:
        options = pa.ipc.IpcReadOptions(included_fields=fields)
        if self._is_file:
            return pa.ipc.open_file(mapped, options=options)
        return pa.ipc.open_stream(mapped, options=options)

    def _batches(self, fields: list[int] | None) -> Iterator[pa.RecordBatch | InputError]:
        """Yield the batches, not yet checked; in a file, one that cannot be read comes as the error it causes."""
        with input_errors(self.file):
            reader = self._reader(self._mapped(), fields)
            if not self._is_file:
                yield from reader
                return
            count = reader.num_record_batches
        for number in range(count):
            try:
                with input_errors(self.file):
                    batch = reader.get_batch(number)
            except InputError as error:
                yield error
            else:
                yield batch

    def _check(self, batch: pa.RecordBatch) -> None:
        """Check the columns that are needed, but for plain text, which is checked when it is cleaned."""
        check_batch(batch.select(self.options.columns), self.file.name, apart=[self.options.text])

    def tasks(self) -> Iterator[Task]:
        """Yield one task for each batch, or for each part of a large one."""
        # selecting columns saves decompression, but makes Arrow copy what it could map
        compressed = self._codec() is not None
        fields = [self._schema.get_field_index(name) for name in self.options.columns] if compressed else None
        first = 0
        for batch in self._batches(fields):
            if isinstance(batch, InputError):
                if not self.options.skip:
                    raise batch
                aside = Aside(self.file.name, first, self.reason(batch))
                yield partial(list, [CleanBatch(None, 0, aside=[aside])])
                continue
            try:
                with input_errors(self.file):
                    self._check(batch)
            except InputError as error:
                if not self.options.skip:
                    raise
                yield partial(list, [self._dropped(batch, first, error)])
                first += batch.num_rows
                continue
            step = batch.num_rows if self.options.skip else self.options.batch_rows
            for start in range(0, batch.num_rows, max(1, step)):
                yield partial(self._clean, batch.slice(start, step), first + start)
            first += batch.num_rows

    def _clean(self, batch: pa.RecordBatch, first: int) -> list[CleanBatch]:
        try:
            return [clean(batch, self.file.name, first, self.options, self.types)]
        except InputError as error:
            if not self.options.skip:
                raise
            return [self._dropped(batch, first, error)]

    def _dropped(self, batch: pa.RecordBatch, first: int, error: InputError) -> CleanBatch:
        """Set a batch aside as a whole."""
        rows = batch.num_rows
        if rows > max(ABSURD, 8 * self.file.bytes):
            raise FormatError(
                f"{self.file.name}: a batch says that it has {rows:,} rows; create or download the file again"
            )
        return self.dropped(first, rows, error)

    def _kept(self, keep: Flags) -> Iterator[pa.Table]:
        first = 0
        try:
            for batch in self._batches(None):
                if isinstance(batch, InputError):
                    if not self.options.skip:
                        raise batch
                    continue
                stop = first + batch.num_rows
                if stop > len(keep):
                    self.check_rows(stop, keep)
                if keep[first:stop].any():
                    check_batch(batch, self.file.name)
                    yield choose(self.cut_batch(batch, first), keep[first:stop])
                first = stop
        except FormatError:
            if not self.broken:
                raise
        self.check_rows(first, keep)

    def cut_batch(self, batch: pa.RecordBatch, first: int) -> pa.RecordBatch | pa.Table:
        """Return rows with their texts cut; an Arrow file has one dictionary for all batches, which cannot change."""
        if self.cuts is not None and pa.types.is_dictionary(batch.schema.field(self.options.text).type):
            raise InputError(
                f"{self.file.name}: the column '{self.options.text}' is dictionary-encoded, and nothing can be cut out "
                "of it in an Arrow file; write the file as Parquet first"
            )
        return super().cut_batch(batch, first)

    @property
    def known_types(self) -> pa.Schema:
        """The schema of the file."""
        return self._schema

    def kept_tables(self, keep: Flags) -> Iterator[pa.Table]:
        """Yield the kept rows, batch by batch."""
        return self._kept(keep)

    def table(self, keep: Flags) -> pa.Table:
        """Return the kept rows with the schema of the file."""
        return pa.concat_tables([self._schema.empty_table(), *self._kept(keep)])

    def write(self, keep: Flags, target: Path, tick: Tick = quiet, threads: int = 1) -> None:
        """Write the kept rows with the schema, the kind (file or stream) and the codec of the original."""
        options = pa.ipc.IpcWriteOptions(compression=self._codec())
        new = pa.ipc.new_file if self._is_file else pa.ipc.new_stream
        with (
            atomic(target, self.file.compression, parents=True) as out,
            new(out, self._schema, options=options) as writer,
        ):
            for table in self._kept(keep):
                writer.write_table(table)

    def row_groups(self) -> list[int]:
        """Return the number of rows of every batch, from their metadata."""
        with input_errors(self.file), closing(self._mapped()) as mapped:
            mapped.seek(8 if self._is_file else 0)
            messages = pa.ipc.MessageReader.open_stream(mapped)
            return [_message_rows(message) for message in messages if message.type == "record batch"]

    def look(self, shares: Sequence[float], size: int) -> Iterator[Stretch]:
        """Read the first rows of some batches, spread over a file; of a stream, of the first ones."""
        fields = [self._schema.get_field_index(name) for name in self.options.columns]
        with input_errors(self.file):
            reader = self._reader(self._mapped(), fields)
            batches = reader.num_record_batches if self._is_file else 0
        chosen = sorted({int(share * batches) for share in shares}) if batches else []
        if self._is_file:
            found: Iterator[Any] = map(reader.get_batch, chosen[:: max(1, -(-len(chosen) // GROUPS))])
        else:
            found = iter(reader)
        wanted = size * len(shares)
        room = wanted // min(GROUPS, len(chosen) or GROUPS)
        decompressed = 0
        while decompressed < UNPACKED * wanted:
            begun = process_time()
            with input_errors(self.file):
                batch = next(found, None)
            if batch is None:
                return
            size_of_all = batch.get_total_buffer_size()
            decompressed += size_of_all
            mean = max(1, size_of_all // max(1, batch.num_rows))
            some = batch.slice(0, max(1, room // mean))
            self._check(some)
            rows = max(1, some.num_rows)
            seconds = (process_time() - begun) * rows / max(1, batch.num_rows)  # all of it was decompressed
            begun = process_time()
            cleaned = clean(some, self.file.name, 0, self.options, self.types)
            yield Stretch.of(cleaned, rows * mean, seconds + process_time() - begun)

    def rewrite_cost(self) -> tuple[float, float]:
        """Encode some rows of the first batch."""
        batch = next((batch for batch in self._batches(None) if isinstance(batch, pa.RecordBatch)), None)
        if batch is None or not batch.num_rows:
            return 0.0, 0.0
        size = max(1, batch.get_total_buffer_size())
        table = pa.Table.from_batches([batch.slice(0, max(1, REWRITTEN * batch.num_rows // size))])
        check_batch(table, self.file.name)
        begun = process_time()
        out = pa.BufferOutputStream()
        with pa.ipc.new_file(out, table.schema, options=pa.ipc.IpcWriteOptions(compression=self._codec())) as writer:
            writer.write_table(table)
        return (process_time() - begun) / table.num_rows, out.getvalue().size / table.num_rows

    def _codec(self) -> str | None:
        with input_errors(self.file), closing(self._mapped()) as mapped:
            mapped.seek(8 if self._is_file else 0)
            for message in pa.ipc.MessageReader.open_stream(mapped):
                if message.type == "record batch":
                    return body_compression(message.metadata.to_pybytes())
        return None


def body_compression(message: bytes) -> str | None:
    """Return the codec of a record batch from its metadata, which Arrow reads but does not expose.

    The metadata are a flatbuffer: Message.header (slot 2) is a RecordBatch, its slot 3 a BodyCompression,
    whose slot 0 is the codec: 0 (or absent) is LZ4, 1 is ZSTD.
    """
    root = struct.unpack_from("<I", message, 0)[0]
    header = _slot(message, root, 2)
    body = header and _slot(message, header + _offset(message, header), 3)
    if not body:
        return None
    compression = body + _offset(message, body)
    codec = _slot(message, compression, 0)
    return "zstd" if codec and message[codec] == 1 else "lz4"


def _message_rows(message: Any) -> int:
    """Return the rows of a record batch from its metadata: slot 0 of the header, which is slot 2 of the message."""
    raw = message.metadata.to_pybytes()
    header = _slot(raw, int.from_bytes(raw[:4], "little"), 2)
    rows = _slot(raw, header + _offset(raw, header), 0)
    return int.from_bytes(raw[rows : rows + 8], "little") if rows else 0


def _offset(message: bytes, place: int) -> int:
    return int(struct.unpack_from("<I", message, place)[0])


def _slot(message: bytes, table: int, slot: int) -> int:
    """Return the offset of a field of a flatbuffer table; 0 if it is absent."""
    fields = table - struct.unpack_from("<i", message, table)[0]
    size = struct.unpack_from("<H", message, fields)[0]
    place = 4 + 2 * slot
    offset = struct.unpack_from("<H", message, fields + place)[0] if place < size else 0
    return table + offset if offset else 0
