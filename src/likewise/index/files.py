"""Items of an index from files: the same formats and options as those of `dedup`."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from likewise.base.runlog import Tick
from likewise.errors import IncompatibleError, InputError
from likewise.index.item_ids import INT64, STRING, as_ids, kind_of_ids
from likewise.index.scheme import Scheme
from likewise.index.view import AnyScheme
from likewise.io.read import ReadOptions, Source, open_source
from likewise.search.vectors.load import Vectors, vectors
from likewise.shingle import Tokens, Urls

TOGETHER = 1 << 26
"""Bytes of documents that are added in one transaction; the memory that adding takes is a few times that."""
ROWS = 1 << 17
ROOM = 1 << 31
"""Bytes of vectors that are read into memory; more go to a temporary file, but for a .npy file, which is mapped."""


def open_items(scheme: AnyScheme, source: Any, where: str, **options: Any) -> Source:
    """Open files with items like those of an index."""
    if not isinstance(scheme, Scheme) or scheme.shingler is None:
        raise IncompatibleError(f"{where} was made in Python, for sets; files are added to an index with a shingler")
    sets = isinstance(scheme.shingler, Tokens)
    lines = options.pop("lines", False) or sets or isinstance(scheme.shingler, Urls)
    return open_source(source, ReadOptions(lines=lines, sets=sets, **options))


def open_vectors(source: Any, column: str, id: str | None, owner: str) -> Vectors:
    """Read the vectors of files: .npy, or tables with a column of lists."""
    return vectors(source, column, id, ROOM, None, owner)


def vector_batches(given: Vectors, kind: str | None, tick: Tick) -> Iterator[tuple[Any, Any]]:
    """Yield the ids and the vectors of files, many at a time; ids are None if they are row numbers."""
    ids = None if given.ids is None else fitted_ids(as_ids(given.ids, "index add"), kind)
    for start in range(0, len(given.table), ROWS):
        part = given.table[start : start + ROWS]
        yield None if ids is None else ids.slice(start, len(part)), part
        tick(len(part))


def item_batches(source: Source, kind: str | None, threads: int, tick: Tick) -> Iterator[tuple[Any, Any]]:
    """Yield the ids and the documents of a source, many at a time; ids are None if they are row numbers.

    kind: the ids of the index, if it has any. Files without types, such as CSV, have strings as ids; they become
    integers if the index has integers, or if it is empty and all ids of the first batch are integers.
    """
    waiting: list[Any] = []
    size = 0
    for batch in source.batches(threads):
        waiting.append(batch)
        size += batch.nbytes
        if size >= TOGETHER or sum(one.num_rows for one in waiting) >= ROWS:
            ids, texts = _joined(waiting, kind)
            kind = kind or (None if ids is None else kind_of_ids(ids))
            yield ids, texts
            tick(len(texts))
            waiting, size = [], 0
    if waiting:
        ids, texts = _joined(waiting, kind)
        yield ids, texts
        tick(len(texts))


def _joined(batches: list[Any], kind: str | None) -> tuple[Any, Any]:
    table = pa.Table.from_batches(batches)
    texts = table.column("text").cast(pa.large_string())
    if "id" not in table.column_names:
        return None, texts
    return fitted_ids(as_ids(table.column("id"), "index add"), kind), texts


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
