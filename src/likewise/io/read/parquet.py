"""Parquet: row groups in parallel, only the requested columns, and large row groups batch by batch."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import replace
from functools import partial
from itertools import chain
from pathlib import Path
from time import process_time
from typing import Any, TypeVar

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq

from likewise.base.arrays import Chunk, TextChunk, flags_to_arrow
from likewise.base.parallel import run_ahead
from likewise.errors import FormatError, InputError
from likewise.io.ahead import taken
from likewise.io.disk import atomic
from likewise.io.mirror import MirroredObject
from likewise.io.read.base import MIB, Flags, Tick, quiet
from likewise.io.read.columns import CleanBatch, Types, choose, clean, declared
from likewise.io.read.integrity import check_batch, check_footer
from likewise.io.read.open import input_errors
from likewise.io.read.stretches import DECODED, GROUPS, REWRITTEN, Stretch
from likewise.io.read.tables import TablePart, Task
from likewise.io.row_groups import encode_rows, parquet_cost, write_row_groups

T = TypeVar("T")

WHOLE = 256 * MIB
"""Row groups up to this size (decompressed) are read at once, several at a time."""

SWOLLEN = 32 * MIB
"""A row group that decodes to more than twice its size on disk and this (repeated values) is not read at once."""

WRITTEN = 16 * MIB
"""Kept rows are collected up to about this size before they are written as a row group: many small ones keep all cores
at work to the end, and stay in their caches."""

AT_WORK = 256 * MIB
"""Memory that writing takes on each core: a row group of the input as it is decoded, its kept rows, and their pages."""

STEP = 1 << 14
"""Kept rows are read at most this many at a time."""

QUICK = 8
"""Where texts that are in memory are more than this many times as large as all else, the thread that hands out tasks
reads that, and hands out smaller tasks: the last ones keep all cores at work."""

LARGEST_ARRAY = 1 << 30
"""Bytes of text that are put into one array of strings, whose offsets have 32 bits."""

LOOKED_AT, LOOKED_AT_ROWS = 2 * MIB, 8192
"""For a look, row groups are decoded in batches of this much text and at most this many rows."""


AHEAD, AHEAD_BYTES = 4, 64 * MIB
"""Of a remote file, this many row groups are fetched before they are asked for, and about this many bytes."""


class Parquet(TablePart):
    """One Parquet file."""

    seekable = True
    _metadata: Any = None
    _schema: Any = None

    def _opened(self) -> Any:
        with input_errors(self.file):
            # a small read buffer keeps the compressed column chunk out of memory
            return pq.ParquetFile(self._content(), metadata=self._metadata, pre_buffer=False, buffer_size=MIB)

    @property
    def _sparse(self) -> MirroredObject | None:
        """The remote object of which only the needed column chunks are fetched."""
        return self.file.remote if self.file.compression is None else None

    def _content(self) -> Any:
        """Return what Arrow opens: a path, or a remote object, whose footer is fetched with it."""
        return self._path if self._sparse is None else self.file.content()

    def _fetch(self, group: int, columns: list[str] | None) -> None:
        """Fetch the column chunks of a row group that are needed, and begin with those of the next ones."""
        if self._sparse is None:
            return
        with input_errors(self.file):
            ahead = range(group, min(group + 1 + AHEAD, self._metadata.num_row_groups))
            ranges = [[_stored(chunk) for chunk in self._chunks(some, columns)] for some in ahead]
            waited = self._sparse.fetching(ranges[0])
            held = sum(end - start for start, end in ranges[0])
            for some in ranges[1:]:
                held += sum(end - start for start, end in some)
                if held > AHEAD_BYTES:
                    break
                self._sparse.fetching(some)
            self._sparse.wait(waited)

    def finished(self) -> None:
        """Raise if the file is a remote object that changed while it was read."""
        if self._sparse is not None:
            self._sparse.check()

    def _chunks(self, group: int, columns: list[str] | None) -> Iterator[Any]:
        metadata = self._metadata.row_group(group)
        for place in range(metadata.num_columns):
            chunk = metadata.column(place)
            path = chunk.path_in_schema
            if columns is None or path.split(".")[0] in columns or path in columns:
                yield chunk

    def peek(self) -> Types:
        """Read the footer only."""
        with self._opened() as opened, input_errors(self.file):
            self._metadata = opened.metadata
            self._schema = opened.schema_arrow
            check_footer(self._metadata, self.file.name)
            return declared(self.file.name, self._schema, self.options)

    def tasks(self) -> Iterator[Task]:
        """Yield one task for each row group, or for each batch of a large one."""
        first = 0
        for group in range(self._metadata.num_row_groups):
            rows = self._metadata.row_group(group).num_rows
            size = self._size(group, self.options.columns)
            # to set a broken row group aside as a whole, nothing of it may have been delivered
            if self.options.skip:
                yield partial(self._all_or_nothing, group, first, rows)
            elif size <= min(WHOLE, 16 * self.options.batch_bytes):
                yield partial(self._most, group, first, self._step(size, rows), 2 * size + SWOLLEN)
            else:
                for start, batch in self._batches(group, first, self._step(size, rows)):
                    yield partial(self._one, batch, start)
            first += rows

    def _one(self, batch: pa.RecordBatch, start: int) -> list[CleanBatch]:
        return [clean(batch, self.file.name, start, self.options, self.types)]

    def _most(self, group: int, first: int, step: int, limit: int) -> Iterable[CleanBatch]:
        """Return the row group; if it is much larger than its size on disk suggests, its end lazily."""
        columns = self.options.columns
        ahead = None if self._sparse else taken(self._path, group, columns)
        if ahead is None:
            batches = self._columns(group, first, step, columns)
        else:
            batches = self._checked(ahead, group, first, columns)
        cleaned = (clean(batch, self.file.name, start, self.options, self.types) for start, batch in batches)
        ready = []
        size = 0
        for one in cleaned:
            ready.append(one)
            size += 0 if one.batch is None else one.batch.nbytes
            if size > limit:
                return chain(ready, cleaned)
        return ready

    def _all_or_nothing(self, group: int, first: int, rows: int) -> list[CleanBatch]:
        try:
            batches = self._batches(group, first, self.options.batch_rows)
            return [clean(batch, self.file.name, start, self.options, self.types) for start, batch in batches]
        except InputError as error:
            return [self.dropped(first, rows, error)]

    def _size(self, group: int, columns: list[str] | None) -> int:
        with input_errors(self.file):
            return sum(max(0, chunk.total_uncompressed_size) for chunk in self._chunks(group, columns))

    def _step(self, size: int, rows: int) -> int:
        """Rows that make about one batch."""
        average = max(1, size // max(1, rows))
        return max(1, min(self.options.batch_rows, self.options.batch_bytes // average))

    def _batches(self, group: int, first: int, step: int, whole: bool = False) -> Iterator[tuple[int, pa.RecordBatch]]:
        """Yield batches of a row group, each with the number of its first row."""
        return self._columns(group, first, step, None if whole else self.options.columns)

    def _columns(
        self, group: int, first: int, step: int, columns: list[str] | None
    ) -> Iterator[tuple[int, pa.RecordBatch]]:
        self._fetch(group, columns)
        with self._opened() as opened, input_errors(self.file):
            yield from self._checked(
                opened.iter_batches(step, [group], columns, use_threads=False), group, first, columns
            )

    def _checked(
        self, batches: Iterable[pa.RecordBatch], group: int, first: int, columns: list[str] | None
    ) -> Iterator[tuple[int, pa.RecordBatch]]:
        """Yield the batches of a row group, each with the number of its first row; raise if they are not sound."""
        left = self._metadata.row_group(group).num_rows
        for batch in batches:
            check_batch(batch, self.file.name, apart=() if columns is None else (self.options.text,))
            yield first, batch
            first += batch.num_rows
            left -= batch.num_rows
        if left:
            raise FormatError(
                f"{self.file.name}: row group {group} ends {left:,} rows before its end; "
                "create or download the file again"
            )

    def _kept(self, keep: Flags, use: Callable[[pa.Table], T]) -> Iterator[Callable[[], list[T]]]:
        """Yield tasks that use the kept rows, about `WRITTEN` bytes at a time: one for a row group, several for a large
        one, or one whose texts are in memory, of which the rows are read here.
        """
        with input_errors(self.file):
            self.check_rows(pq.read_metadata(self._content()).num_rows, keep)
        first = 0
        for group, rows in enumerate(self.row_groups()):
            if keep[first : first + rows].any():
                tables, size, others = self._group_kept(group, first, keep), self._size(group, None), self._others()
                ready = others is not None and self.held is not None and self.held[0].in_memory
                quick = ready and self._size(group, others) * QUICK < size
                if size <= min(AT_WORK // 2, 16 * self.options.batch_bytes) and not quick:
                    yield partial(_used, use, tables)
                else:
                    for table in tables:
                        yield partial(_used, use, (table,))
                        del table
            first += rows

    def _group_kept(self, group: int, first: int, keep: Flags) -> Iterator[pa.Table]:
        """Yield the kept rows of a row group; where it is cut depends on the file alone."""
        rows = self._metadata.row_group(group).num_rows
        step = max(1, min(STEP, WRITTEN // 2 * rows // max(1, self._size(group, None))))
        held: list[pa.Table] = []
        others, load = self._others(), _loader()
        for start, batch in self._columns(group, first, step, others):
            end = start + batch.num_rows
            if others is None:
                held.append(choose(self.cut_batch(batch, start), keep[start:end]))
            else:
                held.append(self._with_texts(batch, keep, start, load))
            if end == first + rows or sum(table.nbytes for table in held) >= WRITTEN:
                whole, held = pa.concat_tables(held), []
                yield whole
                del whole

    def _others(self) -> list[str] | None:
        """Return the columns to read again: all but the texts, if these are at hand; None for all."""
        names, text = self._schema.names, self.options.text
        plain = self._schema.field(text).type in (pa.string(), pa.large_string())
        if self.held is None or not plain or any("." in name for name in names):
            return None
        return [name for name in names if name != text] if len(set(names)) == len(names) else None

    def _with_texts(
        self, others: pa.RecordBatch, keep: Flags, first: int, load: Callable[[Chunk], TextChunk]
    ) -> pa.Table:
        """Return the kept ones of these rows with the texts at hand, in one array as if they had been read."""
        assert self.held is not None
        texts, shift = self.held
        place, table = self._schema.get_field_index(self.options.text), pa.Table.from_batches([others])
        field, flags = self._schema.field(place), keep[first : first + others.num_rows]
        between = texts.between(shift + first, shift + first + others.num_rows)
        pieces = [load(chunk).to_arrow(low, high, field.type) for chunk, low, high in between]
        if self.cuts is not None and self.cuts.between(first, first + others.num_rows):
            whole = table.add_column(place, field, pa.chunked_array(pieces, field.type))
            return choose(self.cut_batch(whole, first), flags)
        parts = np.split(flags, np.cumsum([len(piece) for piece in pieces])[:-1])
        pieces = [piece.filter(flags_to_arrow(part)) for piece, part in zip(pieces, parts, strict=True)]
        if sum(piece.nbytes for piece in pieces) <= LARGEST_ARRAY:
            pieces = [pa.concat_arrays(pieces)]
        return choose(table, flags).add_column(place, field, pa.chunked_array(pieces, field.type))

    def table(self, keep: Flags) -> pa.Table:
        """Return the kept rows with the schema of the file."""
        return pa.concat_tables([self._schema.empty_table(), *self.kept_tables(keep)])

    def kept_tables(self, keep: Flags) -> Iterator[pa.Table]:
        """Yield the kept rows, about `WRITTEN` bytes at a time."""
        return chain.from_iterable(run_ahead(self._kept(keep, lambda table: table), 2))

    @property
    def known_types(self) -> pa.Schema:
        """The schema of the file."""
        return self._schema

    @property
    def known_rows(self) -> int:
        """The number of rows, from the footer."""
        return int(self._metadata.num_rows)

    def row_groups(self) -> list[int]:
        """Return the number of rows of every row group."""
        return [self._metadata.row_group(group).num_rows for group in range(self._metadata.num_row_groups)]

    def text_size(self) -> int:
        """Return about how many bytes of text the file has: its footer counts four more for each value."""
        sizes = (self._size(group, [self.options.text]) for group in range(self._metadata.num_row_groups))
        return sum(sizes) - 4 * self.known_rows

    def look(self, shares: Sequence[float], size: int) -> Iterator[Stretch]:
        """Read rows from some row groups, spread over the file."""
        firsts = np.cumsum([0, *self.row_groups()])
        chosen = shares[:: -(-len(shares) // GROUPS)] if firsts[-1] else ()
        hits = sorted({int(np.searchsorted(firsts, share * firsts[-1], side="right")) - 1 for share in chosen})
        for group in hits:
            needed = max(1, self._size(group, self.options.columns))
            share = min(1.0, DECODED * size * len(shares) / len(hits) / needed)
            yield from self._look_into(group, int(firsts[group]), share, -(-len(shares) // len(hits)), size)

    def _look_into(self, group: int, first: int, share: float, places: int, size: int) -> Iterator[Stretch]:
        """Decode a share of a row group, from its first row on, and yield stretches from `places` places in it."""
        rows = self._metadata.row_group(group).num_rows
        mean = max(1, self._size(group, [self.options.text]) // rows)
        step = max(1, min(rows, LOOKED_AT // mean, LOOKED_AT_ROWS))
        batches = max(1, -(-int(share * rows) // step))
        each = -(-places // batches)
        wanted = {place * batches // places for place in range(places)}
        decoding, decoded, room = 0.0, 0, DECODED * size * places
        taken: list[Stretch] = []
        begun = process_time()
        for number, (start, batch) in enumerate(self._batches(group, first, step)):
            decoding += process_time() - begun
            decoded += batch.num_rows
            room -= batch.nbytes
            for place in range(each) if number in wanted else ():
                at, after = (end * batch.num_rows // each for end in (place, place + 1))
                if at == after:
                    continue
                some = batch.slice(at, max(1, min(size * batch.num_rows // max(1, batch.nbytes), after - at)))
                begun = process_time()
                cleaned = clean(some, self.file.name, start + at, self.options, self.types)
                taken.append(Stretch.of(cleaned, cleaned.rows * mean, process_time() - begun))
            if number + 1 == batches or room < 0:  # repeated values take much more than the footer says
                break
            begun = process_time()
        for stretch in taken:
            yield replace(stretch, seconds=stretch.seconds + decoding * stretch.rows / decoded)

    def rewrite_cost(self) -> tuple[float, float]:
        """Encode some rows of the row group in the middle."""
        group = self._metadata.num_row_groups // 2
        rows = self._metadata.row_group(group).num_rows
        if not rows:
            return 0.0, 0.0
        mean = max(1, self._size(group, None) // rows)
        step = max(1, min(rows, REWRITTEN // mean, LOOKED_AT_ROWS))
        _, batch = next(self._batches(group, 0, step, whole=True))
        return parquet_cost(pa.Table.from_batches([batch]), self._codecs())

    def write(self, keep: Flags, target: Path, tick: Tick = quiet, threads: int = 1) -> None:
        """Write the kept rows with the schema, metadata and codecs of the file, row group by row group.

        As many row groups are encoded at once as the memory of the run allows.
        """
        codecs = self._codecs()
        encoded = self._kept(keep, partial(encode_rows, schema=self._schema, compression=codecs))
        together = self.options.together(threads, AT_WORK)
        with atomic(target, self.file.compression, parents=True) as out:
            for rows in write_row_groups(encoded, out, self._schema, codecs, together):
                tick(rows)

    def _codecs(self) -> dict[str, str] | str:
        if self._metadata.num_row_groups == 0:
            return "snappy"
        with input_errors(self.file):
            group = self._metadata.row_group(0)
            columns = (group.column(i) for i in range(group.num_columns))
            return {column.path_in_schema: _codec(column.compression) for column in columns}


def _used(use: Callable[[pa.Table], T], tables: Iterable[pa.Table]) -> list[T]:
    return [use(table) for table in tables]


def _loader() -> Callable[[Chunk], TextChunk]:
    """Return what loads chunks in order, each once although several portions of rows are in it."""
    last: list[tuple[Chunk, TextChunk]] = []

    def load(chunk: Chunk) -> TextChunk:
        if not last or last[0][0] is not chunk:
            last.clear()
            last.append((chunk, chunk.load()))
        return last[0][1]

    return load


def _stored(chunk: Any) -> tuple[int, int]:
    """Return where a column chunk begins and ends in its file."""
    starts = [chunk.data_page_offset]
    if chunk.has_dictionary_page and chunk.dictionary_page_offset:
        starts.append(chunk.dictionary_page_offset)
    return min(starts), min(starts) + max(0, chunk.total_compressed_size)


def _codec(name: str) -> str:
    return "none" if name == "UNCOMPRESSED" else name.lower()
