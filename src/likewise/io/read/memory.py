"""Documents in memory: lists of strings, and tables and columns of any library that exports Arrow data."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import replace
from functools import partial
from pathlib import Path
from time import process_time
from typing import Any

import numpy as np
import pyarrow as pa
from numpy.typing import NDArray

from likewise.base.arrays import flags_to_arrow
from likewise.base.parallel import run_ahead
from likewise.errors import TextError
from likewise.io.disk import atomic
from likewise.io.objects import kind_of, view_of
from likewise.io.read.base import Flags, ReadOptions, Source, Tick, check_flags, quiet
from likewise.io.read.columns import CleanBatch, choose, clean, cut, declared
from likewise.io.read.cuts import TextCuts, kept_cuts
from likewise.io.read.stretches import REWRITTEN, Stretch
from likewise.io.row_groups import EncodedRows, encode_rows, parquet_cost, write_row_groups

ROWS, CODEC = 1 << 16, "snappy"
"""Rows of a row group, and the codec, of the Parquet file in which kept rows are written."""
OR_ELSE = "a path, a glob, a folder, a list of them, a list of strings, an Arrow array or a Series of text"
"""What a collection of documents may be besides a table, for error messages."""


class InMemory(Source):
    """A table in memory, or the rows of it that a list of row numbers selects."""

    def __init__(self, table: pa.Table, kind: str, options: ReadOptions, order: Any = None) -> None:
        self.ids = "row" if options.id is None else "column"
        self.aside = []
        self.options = options
        self._table = table
        self._order = order
        self._kind = kind
        self._types = declared(kind, table.schema, options)
        self._good: Flags | None = None
        self._cuts: TextCuts | None = None

    @property
    def _rows(self) -> int:
        return self._table.num_rows if self._order is None else len(self._order)

    def _slices(self) -> Iterator[tuple[int, pa.RecordBatch]]:
        """Yield batches of the requested columns, each with its first row."""
        needed = self._table.select(self.options.columns)
        first = 0
        if self._order is None:
            for batch in needed.to_batches(max_chunksize=self.options.batch_rows):
                yield first, batch
                first += batch.num_rows
            return
        for first in range(0, len(self._order), self.options.batch_rows):
            taken = needed.take(self._order.slice(first, self.options.batch_rows))
            for batch in taken.to_batches():
                yield first, batch
                first += batch.num_rows

    def _clean(self, first: int, batch: pa.RecordBatch) -> CleanBatch:
        return clean(batch, self._kind, first, self.options, self._types)

    def batches(self, threads: int = 1) -> Iterator[pa.RecordBatch]:
        """Yield the rows, without copying if their type allows it."""
        self.aside = []
        self._good = None
        good = np.ones(self._rows, bool)
        start = 0
        tasks = (partial(self._clean, first, batch) for first, batch in self._slices())
        for cleaned in run_ahead(tasks, threads):
            good[cleaned.dropped + start] = False
            start += cleaned.rows
            self.aside.extend(cleaned.aside)
            if cleaned.batch is not None:
                yield from cut(cleaned.batch, self.options)
        self._good = good

    def positions(self) -> NDArray[np.int64] | None:
        """Return the row numbers of the delivered rows."""
        return None if self._good is None or self._good.all() else np.flatnonzero(self._good)

    def kept(self, keep: Flags) -> pa.Table:
        """Return all columns of the kept rows."""
        good = self._delivered(keep)
        flags = good.copy()
        flags[good] = keep
        table = (
            choose(self._table, flags)
            if self._order is None
            else self._table.take(self._order.filter(flags_to_arrow(flags)))
        )
        cuts = kept_cuts(self._cuts, keep)
        return table if cuts is None else cuts.cut_table(table, self.options.text, self.options.encoding_errors)

    def kept_batches(self, keep: Flags) -> Iterator[pa.RecordBatch]:
        """Yield the kept rows; only texts that are cut are made as a whole."""
        if self._cuts is not None:
            yield from self.kept(keep).to_batches(max_chunksize=ROWS)
            return
        good = self._delivered(keep)
        flags = good.copy()
        flags[good] = keep
        for start in range(0, self._rows, ROWS):
            table = self._some(self._table, start, ROWS) if flags[start : start + ROWS].any() else None
            yield from () if table is None else choose(table, flags[start : start + ROWS]).to_batches()

    def _delivered(self, keep: Flags) -> Flags:
        """Return which rows were delivered, after a check that there is a flag for each of them."""
        if self._good is None:
            for _ in self.batches():
                pass
        good = np.ones(0, bool) if self._good is None else self._good
        check_flags(keep, int(good.sum()), self._kind)
        return good

    def cut_texts(self, cuts: TextCuts | None) -> None:
        """Leave these passages out of the texts that are returned and written from now on."""
        self._cuts = cuts

    @property
    def total_rows(self) -> int:
        """The number of rows."""
        return self._rows

    def look(self, places: int, size: int) -> Iterator[Stretch]:
        """Read rows from `places` places on, `size` bytes in all; broken ones are no error."""
        rows, options = self._rows, replace(self.options, on_error="skip")
        needed = self._table.select(options.columns)
        mean = max(1, needed.nbytes // max(1, needed.num_rows))
        step = max(1, size // places // mean)
        firsts = sorted({place * rows // places for place in range(places)}) if rows else []
        for first, after in zip(firsts, [*firsts[1:], rows], strict=False):
            begun = process_time()
            for batch in self._some(needed, first, min(step, after - first)).to_batches():
                cleaned = clean(batch, self._kind, first, options, self._types)
                yield Stretch.of(cleaned, batch.num_rows * mean, process_time() - begun)

    def rewrite_cost(self) -> tuple[float, float]:
        """Return the seconds one core takes to write one row as Parquet, and the bytes the row takes."""
        needed = self._table.select(self.options.columns)
        mean = max(1, needed.nbytes // max(1, needed.num_rows))
        table = self._some(self._table, self._rows // 2, max(1, REWRITTEN // mean))
        return parquet_cost(table, "snappy") if table.num_rows else (0.0, 0.0)

    def _some(self, table: pa.Table, first: int, rows: int) -> pa.Table:
        order = self._order
        return (table.slice(first, rows) if order is None else table.take(order.slice(first, rows))).combine_chunks()

    def write_kept(self, keep: Flags, directory: Path, threads: int = 1, tick: Tick = quiet) -> list[Path]:
        """Write the kept rows to one Parquet file."""
        target = Path(directory) / "part-0.parquet"
        table = self.kept(keep)

        def encoded(start: int) -> list[EncodedRows]:
            return [encode_rows(table.slice(start, ROWS).combine_chunks(), table.schema, CODEC)]

        starts = range(0, table.num_rows, ROWS)
        together = self.options.together(threads, 3 * table.nbytes // max(1, len(starts)))
        with atomic(target, parents=True) as out:
            groups = (partial(encoded, start) for start in starts)
            for rows in write_row_groups(groups, out, table.schema, CODEC, together):
                tick(rows)
        return [target]

    def describe(self) -> list[dict[str, Any]]:
        """Return the kind of object and its number of rows."""
        return [{"object": self._kind, "rows": self._rows}]


def from_object(source: Any, options: ReadOptions) -> InMemory:
    """Return the source for an object that holds documents; raise ParameterError for any other object."""
    kind = kind_of(source)
    if isinstance(source, list | tuple) and not (source and all(isinstance(row, dict) for row in source)):
        return InMemory(pa.table({options.text: _documents(source, kind, options)}), f"{kind} of str", options)
    view = view_of(source, options.owner, "source", column=options.text, index=True, or_else=OR_ELSE)
    return InMemory(view.table, kind, options, view.order)


def _documents(values: Sequence[Any], kind: str, options: ReadOptions) -> pa.Array | pa.ChunkedArray:
    """Return a list of strings as an array; None becomes null, to be reported with its row."""
    strange = next((i for i, value in enumerate(values) if not isinstance(value, str | None)), None)
    if strange is not None:
        raise TextError(f"{kind} of str: row {strange}: {kind_of(values[strange])} is not a string; convert it first")
    try:
        return _chunked(values)
    except UnicodeEncodeError:
        pass
    if options.encoding_errors == "replace":
        fixed = [value and value.encode("utf-16", "surrogatepass").decode("utf-16", "replace") for value in values]
        return _chunked(fixed)
    # what cannot be encoded is kept as bytes that are not UTF-8, to be reported with its row
    return pa.chunked_array([pa.array([value and value.encode("utf-8", "surrogatepass") for value in values])])


def _chunked(values: Sequence[Any], step: int = 1 << 14) -> pa.ChunkedArray:
    pieces = (pa.array(values[start : start + step], pa.large_string()) for start in range(0, len(values), step))
    return pa.chunked_array(list(pieces), pa.large_string())
