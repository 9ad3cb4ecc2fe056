"""Whole tables of records, from files or from objects in memory: Arrow tables with their rows in order."""

from __future__ import annotations

import os
from typing import Any

import pyarrow as pa

from likewise.errors import ColumnError, FormatError, InputError, ParameterError
from likewise.read.find import Files, Found, find
from likewise.read.whole import of_file, of_object


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
        table, name = of_object(source), type(source).__name__
        if table is None:
            rule = "a path, a table of pyarrow, pandas or polars, a dict of columns, or a list of dicts"
            raise ParameterError.of("link", "a or b", rule, name)
    if table.num_rows == 0:
        raise InputError(f"{name}: the table has no rows; there is nothing to link")
    if len(set(table.column_names)) < table.num_columns:
        twice = next(column for column in table.column_names if table.column_names.count(column) > 1)
        raise ColumnError(f"{name}: two columns are called '{twice}'; rename one of them")
    return table, name


def _of_file(file: Found) -> pa.Table:
    if not file.is_table:
        raise FormatError(f"{file.name}: records are read from CSV, TSV, Parquet, JSON lines or Arrow files")
    table = of_file(file)
    if file.format == "csv" and table.num_columns == 1:
        other = next((mark for mark in (";", "\t", "|") if mark in table.column_names[0]), None)
        if other is not None:
            raise FormatError(f"{file.name}: columns are separated by {other!r}; use commas, or tabs in a .tsv file")
    return table
