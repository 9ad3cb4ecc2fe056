"""The ids of items: 64-bit integers or strings, one kind in an index, and each only once."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from likewise.base.arrays import Ints, to_arrow
from likewise.errors import IncompatibleError, InputError, ParameterError

INT64, STRING = "int64", "string"
LAST = 2**63 - 1
"""The highest id."""
KINDS = {INT64: "integers", STRING: "strings"}


def as_ids(ids: Any, owner: str) -> Any:
    """Return ids as an Arrow array of int64 or of large strings; raise if one is missing or of another type."""
    if isinstance(ids, str | bytes | int) or not hasattr(ids, "__iter__"):
        raise ParameterError.of(owner, "ids", "a list of integers or strings", ids)
    if not isinstance(ids, pa.Array | pa.ChunkedArray):
        if not isinstance(ids, np.ndarray):
            ids = list(ids)
        if isinstance(ids, list) and not ids:
            return pa.array([], pa.int64())
        try:
            ids = pa.array(ids, from_pandas=False)
        except (pa.ArrowInvalid, pa.ArrowTypeError, pa.ArrowNotImplementedError, OverflowError) as error:
            raise ParameterError.of(owner, "ids", "integers of 64 bits or strings, all of one kind", ids) from error
        except UnicodeEncodeError as error:
            raise ParameterError(f"{owner}: an id is not valid Unicode: {error}") from error
    if isinstance(ids, pa.ChunkedArray):
        ids = ids.combine_chunks() if ids.num_chunks != 1 else ids.chunk(0)
    if isinstance(ids, pa.ChunkedArray):
        ids = pa.concat_arrays(ids.chunks)
    if pa.types.is_dictionary(ids.type):
        ids = ids.cast(ids.type.value_type)
    if ids.null_count:
        row = int(np.argmax(np.asarray(ids.is_null())))
        raise InputError(f"{owner}: the id of item {row} is null; every item needs an id")
    if pa.types.is_integer(ids.type):
        try:
            return ids.cast(pa.int64())
        except pa.ArrowInvalid as error:
            raise InputError(f"{owner}: an id does not fit in 64 bits: {error}") from error
    if pa.types.is_string(ids.type) or pa.types.is_large_string(ids.type) or pa.types.is_string_view(ids.type):
        return ids.cast(pa.large_string())
    raise ParameterError(f"{owner}: ids must be integers or strings, not {ids.type}")


def kind_of_ids(ids: Any) -> str:
    """Return the name of the type of ids."""
    return INT64 if pa.types.is_integer(ids.type) else STRING


def check_kind(known: str | None, ids: Any, owner: str) -> str:
    """Return the kind of ids; raise if the index has others."""
    kind = kind_of_ids(ids)
    if known is not None and known != kind:
        raise IncompatibleError(f"{owner}: the ids of this index are {KINDS[known]}, and these are {KINDS[kind]}")
    return kind


def check_unique(ids: Any, owner: str) -> None:
    """Raise if an id is given twice."""
    counts = pc.value_counts(ids)
    twice = counts.field("values").filter(pc.greater(counts.field("counts"), 1))
    if len(twice):
        raise InputError(f"{owner}: the id {twice[0].as_py()!r} is given twice; ids must be unique")


def ids_to_values(ids: Any) -> dict[str, Any]:
    """Return ids as arrays to store."""
    if kind_of_ids(ids) == INT64:
        return {"ids": np.ascontiguousarray(ids.to_numpy(zero_copy_only=False), np.int64).view(np.uint8)}
    if not len(ids):
        return {"ids": np.zeros(0, np.uint8), "id_offsets": np.zeros(1, np.uint64)}
    _, offsets, data = ids.buffers()
    places = np.frombuffer(offsets, np.int64)[ids.offset : ids.offset + len(ids) + 1]
    whole = np.frombuffer(data, np.uint8) if data is not None and data.size else np.zeros(0, np.uint8)
    return {"ids": whole[places[0] : places[-1]], "id_offsets": (places - places[0]).astype(np.uint64)}


def ids_from_values(values: Mapping[str, Any], rows: Ints) -> Any:
    """Return the ids of some rows of a chunk as an Arrow array, copied."""
    if "id_offsets" not in values:
        return to_arrow(values["ids"].view(np.int64)[rows])
    data, offsets = np.ascontiguousarray(values["ids"]), values["id_offsets"]
    every = pa.LargeStringArray.from_buffers(len(offsets) - 1, pa.py_buffer(offsets), pa.py_buffer(data))
    return every.take(to_arrow(rows))


def id_from_values(values: Mapping[str, Any], row: int) -> int | str:
    """Return the id of a row of a chunk."""
    ids = values["ids"]
    if "id_offsets" not in values:
        return int(ids.view(np.int64)[row])
    begin, end = values["id_offsets"][row : row + 2].tolist()
    text: str = ids[begin:end].tobytes().decode()
    return text


def few_ids(ids: list[Any], kind: str | None) -> Any:
    """Return ids that Python has as an Arrow array."""
    if kind == INT64:
        return to_arrow(np.array(ids, np.int64))
    encoded = [one.encode() for one in ids]
    offsets = np.cumsum([0, *map(len, encoded)], dtype=np.int64)
    return pa.LargeStringArray.from_buffers(len(ids), pa.py_buffer(offsets), pa.py_buffer(b"".join(encoded)))


def new_ids(start: int, count: int) -> Any:
    """Return the ids of items that are given without."""
    if start + count >= LAST:
        raise InputError(f"Index.add: items cannot be numbered from {start:,} on: ids end at {LAST:,}; give them ids")
    return to_arrow(np.arange(start, start + count))


def fitted_ids(ids: Any, kind: str | None) -> Any:
    """Return ids as those of an index are, where they can be; strings of integers as integers if it has none yet.

    >>> fitted_ids(pa.array(["7", "12"], pa.large_string()), None).type
    DataType(int64)
    >>> fitted_ids(pa.array(["7", "012"], pa.large_string()), None).type
    DataType(large_string)
    """
    mine = kind_of_ids(ids)
    if mine == kind or (kind is None and mine == INT64):
        return ids
    if kind == STRING:
        return ids.cast(pa.large_string())
    canonical = np.asarray(pc.match_substring_regex(ids, r"\A(0|-?[1-9][0-9]{0,18})\z"))
    try:
        if canonical.all():
            return ids.cast(pa.int64())
    except pa.ArrowInvalid:
        canonical[:] = kind is None
    if kind is None:
        return ids
    strange = ids[int(np.argmin(canonical))].as_py()
    raise InputError(f"the id {strange!r} is not an integer, unlike the ids of this index")
