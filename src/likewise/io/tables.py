"""Whole tables from files or objects: Arrow tables with all rows in order."""

from __future__ import annotations

import io
from collections.abc import Sequence
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
from numpy.typing import NDArray

from likewise.errors import ColumnError, FormatError
from likewise.io.objects import kind_of
from likewise.io.read.delimited import separator_of
from likewise.io.read.find import InputFile, files_of, find
from likewise.io.read.integrity import check_text
from likewise.io.read.open import BOM, input_errors, read_all
from likewise.io.streams import table_of

HEAD = 1 << 16
"""Bytes of a CSV file that are searched for the line with the names of the columns."""
BLOCK = 1 << 24
"""Bytes that one thread parses at a time; a longer row is an error of Arrow."""


def read_tables(source: Any, owner: str, parameter: str, what: str) -> list[tuple[pa.Table, str]]:
    """Return the tables in files or in an object, each with its name; `what` names the rows in messages."""
    files = files_of(source)
    if files is not None:
        return [(_of_table_file(file, what), file.name) for file in find(files)]
    return [(table_of(source, owner, parameter, or_else="a path, a list of paths"), kind_of(source))]


def check_once(where: str, names: Sequence[str], wanted: Sequence[str] | None = None) -> None:
    """Raise if two columns have the same name: any, or one of those in `wanted`."""
    twice = next((name for name in wanted or names if names.count(name) > 1), None)
    if twice is not None:
        raise ColumnError(f"{where}: two columns are called '{twice}'; rename one of them")


def of_file(file: InputFile) -> pa.Table:
    """Return the table in a Parquet, Arrow or JSON lines file, or in a CSV or TSV file whose first line names columns.

    Every column of a CSV or TSV file is text. A row with too few or too many fields is an error that names the row.
    """
    with input_errors(file):
        if file.format in ("csv", "tsv"):
            data = read_all(file)
            return of_delimited(data, file.name, "\t" if file.format == "tsv" else separator_of(data[:HEAD]))
        data = pa.BufferReader(read_all(file))
        if file.format == "parquet":
            import pyarrow.parquet as parquet

            table = parquet.read_table(data)
        elif file.format == "jsonl":
            import pyarrow.json as json

            table = json.read_json(data)
        else:
            table = _of_ipc(data)
        check_text(table, file.name)
        return table


def _of_table_file(file: InputFile, what: str) -> pa.Table:
    if not file.is_table or file.format == "warc":
        raise FormatError(f"{file.name}: {what} are read from CSV, TSV, Parquet, JSON lines or Arrow files")
    return of_file(file)


def _of_ipc(data: Any) -> pa.Table:
    try:
        return pa.ipc.open_file(data).read_all()
    except pa.ArrowInvalid:
        data.seek(0)
        return pa.ipc.open_stream(data).read_all()


def first_fields(data: bytes, name: str, delimiter: str, quoted: bool = True) -> list[str]:
    """Return the fields of the first line, without surrounding blanks."""
    import csv

    text = io.StringIO(data[: 1 << 20].decode(errors="replace"))
    reader = csv.reader(text, delimiter=delimiter, quoting=csv.QUOTE_MINIMAL if quoted else csv.QUOTE_NONE)
    try:
        head = next(reader, None)
    except csv.Error as error:
        raise FormatError(f"{name}: the first line cannot be read: {error}") from error
    return [field.strip() for field in head or []]


def of_delimited(
    data: bytes, name: str, delimiter: str, columns: list[str] | None = None, quoted: bool = True
) -> pa.Table:
    """Return delimited text as a table of strings; without `columns` the first line names them."""
    data = data.removeprefix(BOM)
    _check_utf8(data, name, headed=columns is None)
    names = columns or first_fields(data, name, delimiter, quoted)
    if not names:
        raise FormatError(f"{name}: the file is empty; its first line must name the columns")
    ragged: list[Any] = []
    try:
        table = _parsed(data, delimiter, names, 0 if columns else 1, quoted)
    except pa.ArrowInvalid:  # threads do not know the row number
        table = _parsed(data, delimiter, names, 0 if columns else 1, quoted, ragged)
    if ragged:
        row = ragged[0]
        text = row.text if len(row.text) < 80 else row.text[:77] + "..."
        raise FormatError(
            f"{name}: row {row.number - (1 if columns else 2)} has {row.actual_columns} fields instead of"
            f" {row.expected_columns}: {text!r}; quote fields that contain the separator"
        )
    if quoted and data.count(b'"') % 2:
        more = _parsed(data + b"\nx", delimiter, names, 0 if columns else 1, quoted, ragged)
        if not ragged and len(more) == len(table):  # what is added is within the quotes
            raise FormatError(f"{name}: row {len(table) - 1}: a quoted field starts here and is never closed")
    return table


def _check_utf8(data: bytes, name: str, headed: bool) -> None:
    """Raise an error that says where a file is not UTF-8."""
    if data[:2] in (b"\xff\xfe", b"\xfe\xff"):
        raise FormatError(f"{name}: the file is in UTF-16; save it as UTF-8")
    try:
        str(memoryview(data), "utf-8")
    except UnicodeDecodeError as error:
        line = data.count(b"\n", 0, error.start) + 1
        row = "the first line" if headed and line == 1 else f"row {line - 1 - headed}"
        start = data.rfind(b"\n", 0, error.start) + 1
        text = data[start : error.end].decode("latin-1")[-40:]
        raise FormatError(f"{name}: {row} is not UTF-8, at {text!r}; save the file as UTF-8") from error


def _parsed(
    data: bytes, delimiter: str, names: list[str], skip: int, quoted: bool, ragged: list[Any] | None = None
) -> pa.Table:
    """Parse delimited text; rows that have too few or too many fields are an error, or are put in `ragged` if given.

    Arrow's threads get no Python function to call: one that outlives the call would need the interpreter at its end.
    """
    import pyarrow.csv as arrow

    threads = ragged is None
    rows: list[Any] = [] if ragged is None else ragged

    def keep(row: Any) -> str:
        rows.append(row)
        return "skip"

    return arrow.read_csv(
        pa.BufferReader(data),
        read_options=arrow.ReadOptions(column_names=names, skip_rows=skip, use_threads=threads, block_size=BLOCK),
        parse_options=arrow.ParseOptions(
            delimiter=delimiter,
            quote_char='"' if quoted else False,
            newlines_in_values=quoted,
            invalid_row_handler=None if threads else keep,
        ),
        convert_options=arrow.ConvertOptions(column_types=dict.fromkeys(names, pa.string()), strings_can_be_null=False),
    )


def as_floats(values: pa.Array | pa.ChunkedArray) -> NDArray[np.float64]:
    """Return a column as float64; missing values and those that are not numbers become NaN.

    >>> as_floats(pa.array(["1", " 2.5", "", "many", None])).tolist()
    [1.0, 2.5, nan, nan, nan]
    """
    if pa.types.is_string(values.type) or pa.types.is_large_string(values.type):
        trimmed = pc.utf8_trim_whitespace(values)
        filled = pc.if_else(pc.equal(trimmed, ""), pa.scalar(None, values.type), trimmed)
        try:
            return np.asarray(filled.cast(pa.float64()), np.float64)
        except pa.ArrowInvalid:
            return np.array([_float(value) for value in trimmed.to_pylist()], np.float64)
    try:
        return np.asarray(values.cast(pa.float64(), safe=False), np.float64)
    except (pa.ArrowInvalid, pa.ArrowNotImplementedError):
        return np.full(len(values), np.nan)


def _float(value: str | None) -> float:
    try:
        return float(value or "nan")
    except ValueError:
        return float("nan")
