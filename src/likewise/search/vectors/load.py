"""Arrays, .npy files and columns of lists in files and tables → one table of numbers, and ids."""

from __future__ import annotations

import json
import math
import os
from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass, field
from functools import partial
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
from numpy.typing import NDArray

from likewise.base.arrays import Ints
from likewise.errors import ColumnError, FormatError, InputError, ParameterError
from likewise.io.ids import names, unique_ids
from likewise.io.objects import kind_of
from likewise.io.read.find import Files, InputFile, find
from likewise.io.read.integrity import check_batch, check_footer, check_text
from likewise.io.read.open import input_errors, mapped_array, read_all
from likewise.io.streams import table_of
from likewise.io.tables import check_once
from likewise.search.vectors.spaces import SPACES, Bits, Space, empty_table

OR_ELSE = "an array of numbers with one row per vector, a .npy, Parquet, Arrow or JSON lines file, a list of paths"
BATCH = 1 << 14
"""Rows that are read or copied at a time."""


@dataclass(frozen=True)
class Vectors:
    """A table of vectors, the ids of its rows (None: their numbers), what was read, and what a keep policy needs."""

    table: NDArray[Any]
    ids: Any | None
    inputs: list[dict[str, Any]]
    scores: list[Any] = field(default_factory=list)

    @property
    def aside(self) -> list[Any]:
        """Nothing: a vector that cannot be read is an error."""
        return []

    def describe(self) -> list[dict[str, Any]]:
        """Return what was read, for run.json."""
        return self.inputs

    def name(self, rows: Ints) -> Any:
        """Return the ids of these rows as an Arrow array."""
        return names(self.ids, rows)

    def title(self, row: int) -> str:
        """Return the file or object that has a row, and its number there."""
        for entry in self.inputs:
            if row < entry["rows"]:
                return f"{entry.get('file') or entry['object']}: row {row} (counted from 0)"
            row -= entry["rows"]
        raise IndexError(row)


def vectors(
    source: Any,
    column: str,
    id: str | None,
    room: int,
    spill: Path | None,
    owner: str = "pairs",
    scores: tuple[str, ...] = (),
) -> Vectors:
    """Read vectors; more than `room` bytes that are not mapped from a file go to a temporary file.

    scores: columns by which rows are preferred, to be read too.
    """
    wanted = _Columns(column, id, scores)
    if isinstance(source, str | os.PathLike | Files) or (
        isinstance(source, list | tuple) and source and all(isinstance(one, str | os.PathLike) for one in source)
    ):
        paths = source.paths if isinstance(source, Files) else source if isinstance(source, list | tuple) else [source]
        return _from_files(find(source if isinstance(source, Files) else Files(paths)), wanted, room, spill)
    if isinstance(source, np.ma.MaskedArray):
        raise ParameterError(f"{owner} cannot compare masked arrays: fill the masked numbers, or remove those vectors.")
    if isinstance(source, np.ndarray):
        wanted.check_none("an array")
        return Vectors(_checked(source, "the array"), None, _object("numpy.ndarray", len(source)))
    if isinstance(source, list | tuple) and not (source and isinstance(source[0], dict)):
        wanted.check_none("a list")
        return Vectors(_listed(source), None, _object(type(source).__name__, len(source)))
    table = table_of(source, owner, "source", column=column, index=True, or_else=OR_ELSE, folder=spill)
    where = kind_of(source)
    part = _VectorSource(where, table.schema.names, table.num_rows, lambda: iter(table.to_batches(BATCH)))
    return _gathered([part], _object(where, table.num_rows), wanted, room, spill)


def _object(kind: str, rows: int) -> list[dict[str, Any]]:
    """Describe an object in memory, for run.json."""
    return [{"object": kind, "rows": rows}]


def _file(one: InputFile, kind: str, rows: int) -> dict[str, Any]:
    """Describe a file, for run.json."""
    return {"file": one.name, "format": kind, "compression": one.compression, "rows": rows, "bytes": one.bytes}


def space_of(measure: str, parts: list[Vectors], room: int, spill: Path | None) -> Space:
    """Return the vectors of one or two collections, one after the other, with their distance."""
    tables = [part.table for part in parts]
    filled = [table for table in tables if len(table)]
    if len(filled) < len(tables):  # what has no rows has no width, either
        bits = measure == "hamming"
        like = filled[0] if filled else np.zeros((0, 1), np.uint8 if bits else np.float32)
        tables = [table if len(table) else np.zeros((0, *like.shape[1:]), like.dtype) for table in tables]
    if measure == "hamming":
        packed = [_packed(table) for table in tables]
        widths = {width for _, width in packed}
        _same_width(widths)
        return Bits(_joined([words for words, _ in packed], room, spill), widths.pop())
    _same_width({1 if table.ndim == 1 else table.shape[1] for table in tables})
    for table in tables:
        if table.ndim == 1:
            raise ParameterError(f"vectors of one component need an array of shape ({len(table)}, 1)")
        if table.dtype.kind == "b":
            raise ParameterError("bool vectors are compared with measure='hamming'; convert them for other measures")
    made: Space = SPACES[measure](_joined(tables, room, spill))
    return made


def _same_width(widths: set[int]) -> None:
    if len(widths) > 1:
        raise ParameterError(f"the two collections have vectors of {min(widths)} and of {max(widths)} components")


def _joined(tables: list[NDArray[Any]], room: int, spill: Path | None) -> NDArray[Any]:
    """Concatenate tables of equal width."""
    if len(tables) == 1:
        return tables[0]
    out = empty_table((sum(map(len, tables)), *tables[0].shape[1:]), np.result_type(*tables), room, spill)
    start = 0
    for table in tables:
        for first in range(0, len(table), BATCH):
            part = table[first : first + BATCH]
            out[start : start + len(part)] = part
            start += len(part)
    return out


def _packed(table: NDArray[Any]) -> tuple[NDArray[np.uint64], int]:
    """Return rows of bits as 64-bit words, and the number of bits of a row."""
    if table.ndim == 1:
        table = table[:, None]
    if table.dtype.kind == "b":
        width = table.shape[1]
        table = np.packbits(table, axis=1, bitorder="little")
    elif table.dtype.kind == "u":
        width = 8 * table.dtype.itemsize * table.shape[1]
        table = np.ascontiguousarray(table).view(np.uint8)
    else:
        raise ParameterError(
            "measure='hamming' compares bits: give an array of bool, or of unsigned integers that hold packed bits, "
            f"not {table.dtype}"
        )
    if table.shape[1] % 8:
        table = np.pad(table, ((0, 0), (0, -table.shape[1] % 8)))
    return np.ascontiguousarray(table).view(np.uint64), width


def _flattened(array: NDArray[Any]) -> NDArray[Any]:
    """Return a stack of images, (n, height, width) or (n, height, width, channels), as one vector per image."""
    images = array.ndim in (3, 4) and all(array.shape[1:])
    return array.reshape(len(array), math.prod(array.shape[1:])) if images else array


def _checked(array: NDArray[Any], where: str) -> NDArray[Any]:
    array = _flattened(array)
    if array.ndim not in (1, 2) or array.dtype.kind not in "fiub" or (array.ndim == 1 and array.dtype.kind != "u"):
        raise InputError(
            f"{where} is of shape {array.shape} and type {array.dtype}; "
            "a table of numbers with one row per vector, or a stack of images, is needed"
        )
    if array.ndim == 2 and not array.shape[1]:
        raise InputError(f"{where} has vectors of no components")
    if array.dtype.itemsize > 8 or not array.dtype.isnative:
        array = array.astype(np.float64 if array.dtype.kind == "f" else array.dtype.newbyteorder("="))
    return array


def _listed(rows: list[Any] | tuple[Any, ...]) -> NDArray[Any]:
    try:
        array = np.asarray(rows)
    except ValueError:
        array = np.zeros((0, 0))
    if not rows:
        return np.zeros((0, 1), np.float32)
    array = _flattened(array)
    if array.ndim == 2 and array.dtype.kind in "fiub" and array.size:
        return array
    sizes = [len(row) if hasattr(row, "__len__") else -1 for row in rows]
    odd = next((i for i, size in enumerate(sizes) if size != sizes[0] or size < 1), 0)
    fault = f"has {sizes[odd]} components, not {sizes[0]}" if sizes[odd] > 0 and odd else "is not a list of numbers"
    raise InputError(f"vector {odd} (counted from 0) {fault}")


@dataclass(frozen=True)
class _Columns:
    """The columns that are read: vectors, ids, and scores."""

    vector: str
    id: str | None
    scores: tuple[str, ...]

    @property
    def all(self) -> list[str]:
        """Each name once, that of the vectors first."""
        return list(dict.fromkeys([self.vector, *([] if self.id is None else [self.id]), *self.scores]))

    def check_none(self, what: str) -> None:
        """Raise if a column is wanted of something that has none."""
        if self.id is not None or self.scores:
            need = "'id' needs" if self.id is not None else f"'keep' with the column '{self.scores[0]}' needs"
            raise ParameterError(f"{what} has no columns: {need} a table")


@dataclass(frozen=True)
class _VectorSource:
    """One file or table: its name, the names of its columns, its rows, and a function that yields its batches."""

    name: str
    columns: list[str]
    rows: int
    batches: Any


def _from_files(files: list[InputFile], wanted: _Columns, room: int, spill: Path | None) -> Vectors:
    arrays = [one for one in files if one.path.suffix.lower() == ".npy"]
    if arrays and len(arrays) < len(files):
        raise InputError(f"the input mixes arrays ({arrays[0].name}) and tables; convert them to one format")
    if not arrays:
        parts = [_opened(one, wanted) for one in files]
        inputs = [_file(one, one.format, part.rows) for one, part in zip(files, parts, strict=True)]
        return _gathered(parts, inputs, wanted, room, spill)
    wanted.check_none(arrays[0].name)
    tables = []
    for one in arrays:
        tables.append(_checked(mapped_array(one), one.name))
    inputs = [_file(one, "npy", len(table)) for one, table in zip(arrays, tables, strict=True)]
    if len(tables) == 1:
        return Vectors(tables[0], None, inputs)
    shapes = {table.shape[1:] for table in tables}
    if len(shapes) > 1:
        widths = ", ".join(f"{one.name} {table.shape}" for one, table in zip(arrays, tables, strict=True))
        raise InputError(f"the arrays have different widths: {widths}")
    return Vectors(_joined(tables, room, spill), None, inputs)


def _opened(one: InputFile, columns: _Columns) -> _VectorSource:
    """Open a file of rows."""
    wanted = columns.all
    with input_errors(one):
        if one.format == "parquet":
            import pyarrow.parquet as pq

            file = pq.ParquetFile(one.content(), memory_map=True)
            check_footer(file.metadata, one.name)
            read = partial(file.iter_batches, BATCH, columns=wanted)
            return _VectorSource(
                one.name, file.schema_arrow.names, file.metadata.num_rows, partial(_sound, one, read, wanted)
            )
        table = None
        if one.format == "arrow":
            import pyarrow.feather as feather

            table = feather.read_table(one.fetched(), memory_map=True)
            table.validate()
        elif one.format == "jsonl":
            table = _json_lines(one, columns)
        if table is not None:
            read = partial(table.to_batches, BATCH)
            return _VectorSource(one.name, table.schema.names, table.num_rows, partial(_sound, one, read, wanted))
    raise FormatError(f"{one.name}: vectors are read from .npy, Parquet, Arrow and JSON lines files")


def _sound(one: InputFile, read: Callable[[], Iterable[Any]], wanted: list[str]) -> Iterator[Any]:
    """Yield the wanted columns of a file in batches, checked before anything else looks at them."""
    with input_errors(one):
        for batch in read():
            batch = batch.select(wanted)
            check_batch(batch, one.name)
            check_text(batch.select(wanted[1:]), one.name)
            yield batch
        if one.remote is not None:
            one.remote.check()


def _json_lines(one: InputFile, wanted: _Columns) -> pa.Table:
    """Read lines of JSON objects; numbers become double precision. A score that a line does not have is null."""
    columns: dict[str, list[Any]] = {name: [] for name in wanted.all}
    known: set[str] = set()
    for number, line in enumerate(read_all(one).split(b"\n")):
        if not line.strip():
            continue
        try:
            row = json.loads(line)
            known.update(row)
            for name, values in columns.items():
                values.append(row[name] if name in (wanted.vector, wanted.id) else row.get(name))
        except KeyError as error:
            raise ColumnError.of(f"{one.name}: line {number + 1}", str(error.args[0]), list(row)) from error
        except (ValueError, TypeError, RecursionError) as error:
            raise FormatError(f"{one.name}: line {number + 1} is not a JSON object: {error}") from error
    missing = next((name for name in columns if name not in known and known), None)
    if missing is not None:
        raise ColumnError.of(one.name, missing, sorted(known))
    try:
        return pa.table(columns)
    except (pa.ArrowException, ValueError, OverflowError) as error:
        names = ", ".join(columns)
        raise FormatError(f"{one.name}: the columns {names} do not hold one type each: {error}") from error


def _gathered(
    parts: list[_VectorSource], inputs: list[dict[str, Any]], wanted: _Columns, room: int, spill: Path | None
) -> Vectors:
    """Copy the columns of all parts into one table."""
    out: NDArray[Any] | None = None
    column, id = wanted.vector, wanted.id
    ids, scores = [], dict[str, list[Any]]((name, []) for name in wanted.scores)
    total, start = sum(part.rows for part in parts), 0
    for part in parts:
        for name in wanted.all:
            if name not in part.columns:
                raise ColumnError.of(part.name, name, part.columns)
        check_once(part.name, part.columns, wanted.all)
        try:
            first = 0
            for batch in part.batches():
                if not batch.num_rows:
                    continue
                rows = column_rows(batch.column(batch.schema.get_field_index(column)), part.name, first, column)
                if out is None:
                    out = empty_table((total, rows.shape[1]), rows.dtype, room, spill)
                if rows.shape[1] != out.shape[1]:
                    raise InputError(
                        f"{part.name}: row {first} has a vector of {rows.shape[1]} components; those before it have "
                        f"{out.shape[1]}"
                    )
                if not np.can_cast(rows.dtype, out.dtype):
                    raise InputError(f"{part.name}: the vectors are of {rows.dtype}, those of other files {out.dtype}")
                out[start : start + len(rows)] = rows
                start, first = start + len(rows), first + len(rows)
                if id is not None:
                    ids.append(batch.column(batch.schema.get_field_index(id)))
                for name, values in scores.items():
                    values.append(batch.column(batch.schema.get_field_index(name)))
        except pa.ArrowException as error:
            raise FormatError(f"{part.name}: cannot be read: {error}") from error
        if first != part.rows:
            raise FormatError(
                f"{part.name}: {part.rows:,} rows are declared, but {first:,} are there; download it again"
            )
    named = None
    if id is not None:
        named = _names(ids, id, parts)
    table = np.zeros((0, 1), np.float32) if out is None else out
    return Vectors(table, named, inputs, [_one_type(values, name) for name, values in scores.items()])


def _one_type(parts: list[Any], column: str) -> Any:
    """Return the batches of a column as one array; numbers of different types become double precision."""
    kinds = {one.type for one in parts if not pa.types.is_null(one.type)} or {pa.null()}
    if len(kinds) > 1 and all(pa.types.is_integer(kind) or pa.types.is_floating(kind) for kind in kinds):
        kinds = {pa.float64()}
    if len(kinds) > 1:
        types = ", ".join(sorted(map(str, kinds)))
        raise InputError(f"the column '{column}' has different types in different files: {types}")
    kind = kinds.pop()
    return pa.chunked_array([one.cast(kind) for one in parts], kind).combine_chunks()


def _names(ids: list[Any], column: str, parts: list[_VectorSource]) -> Any:
    """Return the ids of all batches as one array; raise if two are equal."""
    where = parts[0].name

    def locate(row: int) -> tuple[str, int]:
        for part in parts:
            if row < part.rows:
                return part.name, row
            row -= part.rows
        raise IndexError(row)

    kinds = {one.type.value_type if pa.types.is_dictionary(one.type) else one.type for one in ids}
    if any(pa.types.is_nested(kind) for kind in kinds):
        raise ColumnError(f"{where}: the id column '{column}' is {kinds.pop()}; numbers, strings or times are needed")
    if len(kinds) > 1:
        types = ", ".join(sorted(map(str, kinds)))
        raise InputError(f"the id column '{column}' has different types in different files: {types}")
    named = pa.concat_arrays([one.cast(next(iter(kinds))) for one in ids]) if ids else pa.array([], pa.string())
    if named.null_count:
        row = int(np.argmax(np.asarray(named.is_null())))
        where, row = locate(row)
        raise InputError(f"{where}: row {row} (counted from 0): the id of column '{column}' is null")
    return unique_ids(named, column, locate)


def column_rows(array: Any, where: str, first: int, column: str) -> NDArray[Any]:
    """Return a column of lists of numbers, or of bytes, as a table."""
    kind = array.type
    if array.null_count:
        row = first + int(np.argmax(np.asarray(array.is_null())))
        raise InputError(f"{where}: row {row} (counted from 0): the vector is null; remove it")
    if pa.types.is_fixed_size_binary(kind):
        data = np.frombuffer(array.buffers()[1], np.uint8)
        return data.reshape(-1, kind.byte_width)[array.offset : array.offset + len(array)]
    if pa.types.is_fixed_size_list(kind):
        width = kind.list_size
        values = array.flatten()
    elif pa.types.is_list(kind) or pa.types.is_large_list(kind):
        sizes = np.asarray(array.value_lengths())
        width = int(sizes[0]) if len(sizes) else 1
        if len(sizes) and (sizes != width).any():
            odd = int(np.argmax(sizes != width))
            raise InputError(f"{where}: row {first + odd} has a vector of {sizes[odd]} components, not {width}")
        values = array.flatten()
    else:
        raise InputError(f"{where}: the column '{column}' is {kind}; lists of numbers are needed")
    if not (pa.types.is_integer(values.type) or pa.types.is_floating(values.type) or pa.types.is_boolean(values.type)):
        raise InputError(f"{where}: the column '{column}' holds lists of {values.type}; numbers are needed")
    if values.null_count:
        row = first + int(np.argmax(np.asarray(values.is_null()))) // max(1, width)
        raise InputError(f"{where}: row {row} (counted from 0): a component of the vector is null")
    if not width:
        raise InputError(f"{where}: row {first} has a vector of no components")
    return np.asarray(values.to_numpy(zero_copy_only=False)).reshape(-1, width)
