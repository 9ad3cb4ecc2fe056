"""Whole tables of records, from files or from objects in memory: Arrow tables with their rows in order."""

from __future__ import annotations

import io
import os
from typing import Any

import pyarrow as pa

from likewise.errors import ColumnError, FormatError, InputError, ParameterError
from likewise.read.find import Files, Found, find
from likewise.read.open import read_all


def read_table(source: Any) -> tuple[pa.Table, str]:
    """Return the table in a file (CSV, TSV, Parquet, JSON lines, Arrow; compressed or not) or object, and its name.

    Every column of a CSV file is text. A row with too few or too many fields is an error that names the row.
    """
    if isinstance(source, str | os.PathLike):
        found = find(Files([source]))
        tables = [_of_file(file) for file in found]
        name = found[0].name if len(found) == 1 else str(source)
        table = tables[0] if len(tables) == 1 else pa.concat_tables(tables, promote_options="default")
    else:
        table, name = _of_object(source), type(source).__name__
    if table.num_rows == 0:
        raise InputError(f"{name}: the table has no rows; there is nothing to link")
    if len(set(table.column_names)) < table.num_columns:
        twice = next(column for column in table.column_names if table.column_names.count(column) > 1)
        raise ColumnError(f"{name}: two columns are called '{twice}'; rename one of them")
    return table, name


def _of_object(source: Any) -> pa.Table:
    if isinstance(source, pa.Table):
        return source
    if isinstance(source, pa.RecordBatch):
        return pa.Table.from_batches([source])
    try:
        if type(source).__module__.partition(".")[0] == "pandas":
            return pa.Table.from_pandas(source, preserve_index=False)
        if isinstance(source, list) and source and all(isinstance(row, dict) for row in source):
            return pa.Table.from_pylist(source)
        if isinstance(source, dict):
            return pa.table(source)
        if hasattr(source, "to_arrow"):
            return source.to_arrow()
        if hasattr(source, "__arrow_c_stream__"):
            return pa.table(source)
    except (pa.ArrowException, ValueError, TypeError, AttributeError) as error:
        raise FormatError(f"{type(source).__name__}: cannot be put in an Arrow table: {error}") from error
    rule = "a path, a table of pyarrow, pandas or polars, a dict of columns, or a list of dicts"
    raise ParameterError.of("link", "a or b", rule, type(source).__name__)


def _of_file(file: Found) -> pa.Table:
    if not file.is_table:
        raise FormatError(f"{file.name}: records are read from CSV, TSV, Parquet, JSON lines or Arrow files")
    try:
        if file.format in ("csv", "tsv"):
            return _of_delimited(file)
        data = pa.BufferReader(read_all(file))
        if file.format == "parquet":
            import pyarrow.parquet as parquet

            return parquet.read_table(data)
        if file.format == "jsonl":
            import pyarrow.json as json

            return json.read_json(data)
        return _of_ipc(data)
    except pa.ArrowException as error:
        raise FormatError(f"{file.name}: the file cannot be read: {error}") from error


def _of_ipc(data: Any) -> pa.Table:
    try:
        return pa.ipc.open_file(data).read_all()
    except pa.ArrowInvalid:
        data.seek(0)
        return pa.ipc.open_stream(data).read_all()


def _of_delimited(file: Found) -> pa.Table:
    import csv

    import pyarrow.csv as arrow

    delimiter = "\t" if file.format == "tsv" else ","
    data = read_all(file).removeprefix(b"\xef\xbb\xbf")
    try:
        head = next(csv.reader(io.StringIO(data[: 1 << 20].decode(errors="replace")), delimiter=delimiter), None)
    except csv.Error as error:
        raise FormatError(f"{file.name}: the first line cannot be read: {error}") from error
    if not head:
        raise FormatError(f"{file.name}: the file is empty; its first line must name the columns")
    names = [name.strip() for name in head]
    ragged: list[Any] = []

    def keep(row: Any) -> str:
        ragged.append(row)
        return "skip"

    table = arrow.read_csv(
        pa.BufferReader(data),
        read_options=arrow.ReadOptions(column_names=names, skip_rows=1, use_threads=True, block_size=1 << 24),
        parse_options=arrow.ParseOptions(delimiter=delimiter, newlines_in_values=True, invalid_row_handler=keep),
        convert_options=arrow.ConvertOptions(column_types=dict.fromkeys(names, pa.string()), strings_can_be_null=False),
    )
    if ragged:
        row = ragged[0]
        where = "a row" if row.number is None else f"row {row.number - 1}"
        text = row.text if len(row.text) < 80 else row.text[:77] + "..."
        raise FormatError(
            f"{file.name}: {where} has {row.actual_columns} fields instead of {row.expected_columns}: {text!r};"
            " quote fields that hold the separator"
        )
    return table
