"""Whole tables of records, from files or from objects in memory: Arrow tables with their rows in order."""

from __future__ import annotations

from typing import Any

import pyarrow as pa

from likewise.errors import InputError
from likewise.io.tables import check_once, read_tables


def read_table(source: Any) -> tuple[pa.Table, str]:
    """Return the table in a file (CSV, TSV, Parquet, JSON lines, Arrow; compressed or not) or object, and its name.

    Every column of a CSV file is text. A row with too few or too many fields is an error that names the row.
    """
    parts = read_tables(source, "link", "a or b", "records")
    table, name = parts[0]
    if len(parts) > 1:
        table, name = pa.concat_tables([part for part, _ in parts], promote_options="default"), str(source)
    if table.num_rows == 0:
        raise InputError(f"{name}: the table has no rows; there is nothing to link")
    check_once(name, table.column_names)
    return table, name
