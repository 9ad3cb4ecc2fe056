"""The ids of items: 64-bit integers or strings, one kind in an index, and each only once."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from likewise.base.arrays import Hashes, Ints, to_arrow
from likewise.base.tokens import hash_column
from likewise.errors import IncompatibleError, InputError, ParameterError

INT64, STRING = "int64", "string"
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


def check_unique(ids: Any, hashes: Hashes, owner: str) -> None:
    """Raise if an id is given twice."""
    order = np.argsort(hashes, kind="stable")
    same = hashes[order[1:]] == hashes[order[:-1]]
    if not same.any():
        return
    rows = np.unique(np.concatenate([order[1:][same], order[:-1][same]]))
    counts = pc.value_counts(ids.take(to_arrow(rows)))
    twice = counts.field("values").filter(pc.greater(counts.field("counts"), 1))
    if len(twice):
        raise InputError(f"{owner}: the id {twice[0].as_py()!r} is given twice; ids must be unique")


def hashes_of(ids: Any) -> Hashes:
    """Hash ids to 64 bits."""
    return hash_column(ids)


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
    offsets = values["id_offsets"].view(np.int64)
    starts, sizes = offsets[rows], offsets[rows + 1] - offsets[rows]
    ends = np.concatenate([[0], np.cumsum(sizes)]).astype(np.int64)
    picked = np.repeat(starts - ends[:-1], sizes) + np.arange(ends[-1])
    data = values["ids"][picked]
    return pa.LargeStringArray.from_buffers(len(rows), pa.py_buffer(ends), pa.py_buffer(np.ascontiguousarray(data)))
