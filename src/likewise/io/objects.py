"""Objects in memory to Arrow tables: one list of what is accepted, wherever likewise takes a table."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, NamedTuple

import pyarrow as pa

from likewise.base.checks import is_spark_frame
from likewise.errors import FormatError, ParameterError

TABLES = (
    "a pyarrow, pandas or polars table, a Hugging Face dataset, a dict of columns, a list of dicts,"
    " a stream of rows or batches, or any object that exports Arrow data"
)
"""The objects that `table_of` accepts, for error messages."""


class TableView(NamedTuple):
    """A table, and the row numbers through which it is seen (None: all rows in order)."""

    table: pa.Table
    order: pa.Array | None = None


def kind_of(source: object) -> str:
    """Return the type of an object as users write it.

    >>> kind_of(pa.table({})), kind_of([])
    ('pyarrow.Table', 'list')
    """
    kind = type(source)
    package = kind.__module__.partition(".")[0]
    return kind.__qualname__ if package == "builtins" else f"{package}.{kind.__qualname__}"


def view_of(
    source: Any, owner: str, parameter: str, *, column: str | None = None, index: bool = False, or_else: str = ""
) -> TableView:
    """Return an object in memory as an Arrow table, with the rows that a Hugging Face dataset selects not yet taken.

    The parameters are those of `table_of`, which also takes streams.
    """
    if is_spark_frame(source):
        raise ParameterError(
            f"The '{parameter}' parameter of {owner} is a Spark DataFrame, and this runs on one machine. Pass the"
            " toArrow() of the DataFrame if its rows fit here, or the files it was read from."
        )
    try:
        found = _view(source, column, index)
        if isinstance(found, pa.Array | pa.ChunkedArray) and column is not None:
            found = TableView(pa.table({column: found}))
    except (pa.ArrowException, UnicodeEncodeError, ValueError, TypeError, AttributeError) as error:
        words = " ".join(str(part) for part in error.args)
        raise FormatError(
            f"{kind_of(source)}: cannot be put in an Arrow table: {words}; drop or convert that column"
        ) from error
    if isinstance(found, TableView):
        return found
    rule = f"{or_else}, {TABLES}" if or_else else TABLES
    raise ParameterError(
        f"The '{parameter}' parameter of {owner} must be {rule}. Got {kind_of(source)} instead.{_advice(source)}"
    )


def _view(source: Any, column: str | None, index: bool) -> TableView | pa.Array | pa.ChunkedArray | None:
    """Return a table, a column, or None for an object that is neither."""
    if isinstance(source, pa.Table):
        return TableView(source)
    if isinstance(source, pa.RecordBatch):
        return TableView(pa.Table.from_batches([source]))
    if isinstance(source, pa.Array | pa.ChunkedArray):
        return source
    if hasattr(source, "_indices") and isinstance(getattr(getattr(source, "data", None), "table", None), pa.Table):
        return TableView(source.data.table, _selected(source._indices))
    if isinstance(source, dict):
        return None if any(_is_table(value) for value in source.values()) else TableView(pa.table(source))
    if isinstance(source, list | tuple):
        rows = bool(source) and all(isinstance(row, dict) for row in source)
        return TableView(_of_rows(source)) if rows else None
    if type(source).__module__.partition(".")[0] == "pandas":
        return _of_pandas(source, column, index)
    if hasattr(source, "to_arrow"):
        return _view(source.to_arrow(), column, index)
    if hasattr(source, "__arrow_c_stream__"):  # of a column: a stream of rows has been read by now
        return pa.chunked_array(source)
    if hasattr(source, "__arrow_c_array__"):
        array = pa.array(source)
        if pa.types.is_struct(array.type):
            return TableView(pa.Table.from_batches([pa.RecordBatch.from_struct_array(array)]))
        return array
    if hasattr(source, "__dataframe__"):
        from pyarrow.interchange import from_dataframe

        return TableView(from_dataframe(source))
    return None


def _of_pandas(source: Any, column: str | None, index: bool) -> TableView | None:
    if hasattr(source, "to_frame") and column is not None:  # a Series or an Index
        source = source.to_frame(name=column)
    if not hasattr(source, "columns"):
        return None
    return TableView(pa.Table.from_pandas(source, preserve_index=None if index else False))


def _of_rows(rows: Sequence[dict[Any, Any]]) -> pa.Table:
    """Return dicts as rows of a table; a key that a row does not have is null there."""
    names = dict.fromkeys(name for row in rows for name in row)
    return pa.table({name: pa.array([row.get(name) for row in rows]) for name in names})


def _selected(indices: Any) -> pa.Array | None:
    """Return the row numbers that a Hugging Face dataset selects from its table."""
    if indices is None:
        return None
    column = indices.column(0)
    return column.combine_chunks() if isinstance(column, pa.ChunkedArray) else column


def _is_table(value: object) -> bool:
    return hasattr(type(value), "column_names") or hasattr(type(value), "columns")


def _advice(source: Any) -> str:
    if isinstance(source, dict) and source:
        return f" Choose one of its values, such as source[{next(iter(source))!r}]."
    return ""
