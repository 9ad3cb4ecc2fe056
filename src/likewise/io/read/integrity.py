"""Arrays read from files, checked before anything else touches them.

The readers of Arrow and Parquet files do not look at values: offsets, indices of dictionaries and UTF-8 may be damaged,
and code that trusts them reads memory that is not its own.
"""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any

import pyarrow as pa

from likewise.errors import FormatError


def check_batch(batch: pa.RecordBatch | pa.Table, where: str, apart: Iterable[str] = ()) -> None:
    """Raise an error that names the column if an array cannot be used; text that is not UTF-8 can.

    Columns in `apart` are left out, unless they need more than a look at their offsets when they are decoded.
    """
    for name, column in zip(batch.schema.names, batch.columns, strict=True):
        if name in apart and is_plain(column.type):
            continue
        for array in column.chunks if isinstance(column, pa.ChunkedArray) else (column,):
            try:
                check_array(array)
            except (pa.ArrowException, IndexError, ValueError) as error:
                raise damaged(where, name, error) from error


def check_footer(metadata: Any, where: str) -> None:
    """Raise an error if the footer of a Parquet file contradicts itself about its rows."""
    rows = [metadata.row_group(group).num_rows for group in range(metadata.num_row_groups)]
    if min(rows, default=0) < 0 or sum(rows) != metadata.num_rows:
        raise FormatError(
            f"{where}: the footer says {metadata.num_rows:,} rows, and its row groups {sum(rows):,}; "
            "create or download the file again"
        )


def check_text(table: pa.RecordBatch | pa.Table, where: str) -> None:
    """Raise an error that names the column if an array cannot be used or has text that is not UTF-8."""
    for name, column in zip(table.schema.names, table.columns, strict=True):
        try:
            column.validate(full=True)
        except pa.ArrowException as error:
            raise damaged(where, name, error) from error


def damaged(where: str, name: str, error: Exception) -> FormatError:
    """Return the error for a column."""
    words = " ".join(str(error).split())
    return FormatError(f"{where}: the column '{name}' is damaged: {words}; create or download the file again")


def is_plain(kind: pa.DataType) -> bool:
    """Return True for strings and bytes with offsets."""
    return kind in (pa.string(), pa.large_string(), pa.binary(), pa.large_binary())


def check_array(array: pa.Array) -> None:
    """Raise ArrowInvalid unless every value of the array is within its buffers; text need not be UTF-8."""
    try:
        array.validate(full=True)
    except pa.ArrowInvalid as error:
        if "UTF8" not in str(error):
            raise
    else:
        return
    if isinstance(array.type, pa.BaseExtensionType):
        check_array(array.storage)
    elif pa.types.is_dictionary(array.type):
        check_array(array.dictionary)
        array.indices.validate(full=True)
        positions = pa.array(range(0), pa.int64()) if not len(array.dictionary) else pa.nulls(len(array.dictionary))
        pa.DictionaryArray.from_arrays(array.indices, positions)  # checks that all indices are there
    else:
        array.view(bytes_for_text(array.type)).validate(full=True)


def bytes_for_text(kind: pa.DataType) -> pa.DataType:
    """Return the type with bytes wherever it has text.

    >>> bytes_for_text(pa.list_(pa.string()))
    ListType(list<item: binary>)
    """
    same = {pa.string(): pa.binary(), pa.large_string(): pa.large_binary(), pa.string_view(): pa.binary_view()}
    if kind in same:
        return same[kind]
    if pa.types.is_map(kind):
        return pa.map_(_inside(kind.key_field), _inside(kind.item_field), kind.keys_sorted)
    if pa.types.is_struct(kind):
        return pa.struct([_inside(kind.field(place)) for place in range(kind.num_fields)])
    if pa.types.is_fixed_size_list(kind):
        return pa.list_(_inside(kind.value_field), kind.list_size)
    if pa.types.is_large_list(kind):
        return pa.large_list(_inside(kind.value_field))
    return pa.list_(_inside(kind.value_field)) if pa.types.is_list(kind) else kind


def _inside(field: pa.Field) -> pa.Field:
    return field.with_type(bytes_for_text(field.type))


def not_utf8(array: pa.Array) -> list[int]:
    """Return the rows of an array whose text is not UTF-8: they could be read, but never shown or written."""
    if pa.types.is_string_view(array.type):
        array = array.view(pa.binary_view()).cast(pa.large_binary()).view(pa.large_string())
    if not (pa.types.is_string(array.type) or pa.types.is_large_string(array.type)):
        return []
    try:
        array.validate(full=True)
    except pa.ArrowInvalid:
        large = pa.types.is_large_string(array.type)
        values = array.view(pa.large_binary() if large else pa.binary()).to_pylist()
        return [row for row, value in enumerate(values) if value is not None and _is_broken(value)]
    return []


def _is_broken(value: bytes) -> bool:
    try:
        value.decode()
    except UnicodeDecodeError:
        return True
    return False
