"""Tables of minutiae, from files or from objects in memory, with a name for each of their rows."""

from __future__ import annotations

import csv
import io
import os
from collections.abc import Callable
from typing import Any

import pyarrow as pa

from likewise.errors import FormatError, InputError, ParameterError
from likewise.read.find import Files, Found, find
from likewise.read.open import read_all

Where = Callable[[int], str]
"""Names a row: the file and its line, or the file and the number of the row from 0."""


def read_tables(source: Any, owner: str) -> list[tuple[pa.Table, Where]]:
    """Return the tables in files or an object, each with a function that names its rows."""
    if isinstance(source, str | os.PathLike):
        source = Files([source])
    if isinstance(source, Files):
        return [_of_file(file) for file in find(source)]
    name = type(source).__name__
    return [(_of_object(source, owner), lambda row: f"{name}: row {row}")]


def _of_object(source: Any, owner: str) -> pa.Table:
    try:
        if isinstance(source, pa.Table):
            return source
        if isinstance(source, pa.RecordBatch):
            return pa.Table.from_batches([source])
        if type(source).__module__.partition(".")[0] == "pandas":
            return pa.Table.from_pandas(source, preserve_index=False)
        if isinstance(source, list) and source and all(isinstance(row, dict) for row in source):
            return pa.Table.from_pylist(source)
        if isinstance(source, dict):
            return pa.table(source)
        if hasattr(source, "to_arrow"):
            return source.to_arrow()
    except (pa.ArrowException, ValueError, TypeError, AttributeError) as error:
        raise FormatError(f"{type(source).__name__}: cannot be put in an Arrow table: {error}") from error
    rule = "a path, a table of pyarrow, pandas or polars, a dict of columns, or a list of dicts"
    raise ParameterError.of(owner, "prints", rule, type(source).__name__)


def _of_file(file: Found) -> tuple[pa.Table, Where]:
    if not file.is_table:
        raise FormatError(f"{file.name}: minutiae are read from CSV, TSV, Parquet, JSON lines or Arrow files")
    data = read_all(file)
    try:
        if file.format in ("csv", "tsv"):
            return _of_delimited(file, data.removeprefix(b"\xef\xbb\xbf"))
        buffer = pa.BufferReader(data)
        if file.format == "parquet":
            import pyarrow.parquet as parquet

            table = parquet.read_table(buffer)
        elif file.format == "jsonl":
            import pyarrow.json as json

            table = json.read_json(buffer)
        else:
            table = _of_ipc(buffer)
    except pa.ArrowException as error:
        raise FormatError(f"{file.name}: the file cannot be read: {error}") from error
    return table, lambda row: f"{file.name}: row {row}"


def _of_ipc(data: Any) -> pa.Table:
    try:
        return pa.ipc.open_file(data).read_all()
    except pa.ArrowInvalid:
        data.seek(0)
        return pa.ipc.open_stream(data).read_all()


def _of_delimited(file: Found, data: bytes) -> tuple[pa.Table, Where]:
    """Read all columns as text. A row of another width is an error with its line."""
    import pyarrow.csv as arrow

    delimiter = "\t" if file.format == "tsv" else ","
    try:
        text = data.decode()
    except UnicodeDecodeError as error:
        line = data.count(b"\n", 0, error.start) + 1
        raise FormatError(f"{file.name}:{line}: this is not UTF-8; is it a table of minutiae?") from error

    def line_of(row: int) -> int:
        rows = csv.reader(io.StringIO(text, newline=""), delimiter=delimiter)
        filled = (rows.line_num for fields in rows if fields)
        return next((line for number, line in enumerate(filled) if number == row + 1), 0)

    head = next((row for row in csv.reader(io.StringIO(text[: 1 << 20]), delimiter=delimiter) if row), None)
    if head is None:
        raise InputError(f"{file.name}: the file is empty; its first line must name the columns")
    names = [name.strip() for name in head]
    ragged: list[Any] = []

    def keep(row: Any) -> str:
        ragged.append(row)
        return "skip"

    table = arrow.read_csv(
        pa.BufferReader(data),
        read_options=arrow.ReadOptions(column_names=names, skip_rows_after_names=1, use_threads=False),
        parse_options=arrow.ParseOptions(delimiter=delimiter, invalid_row_handler=keep),
        convert_options=arrow.ConvertOptions(column_types=dict.fromkeys(names, pa.string()), strings_can_be_null=False),
    )
    if ragged:
        row = ragged[0]
        place = file.name if row.number is None else f"{file.name}:{row.number}"
        widths = f"{row.actual_columns} fields where {row.expected_columns} are expected"
        raise FormatError(f"{place}: {widths}: {row.text[:60]!r}")
    return table, lambda row: f"{file.name}:{line_of(row)}"
