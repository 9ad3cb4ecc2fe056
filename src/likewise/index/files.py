"""Items of files for an index, and the answers to items of files: the same formats and options as those of `dedup`."""

from __future__ import annotations

from collections.abc import Iterator
from itertools import chain
from typing import Any

import pyarrow as pa

from likewise.base.arrays import to_arrow
from likewise.base.runlog import RunLog, Tick, run_json
from likewise.errors import IncompatibleError
from likewise.index.create import ROWS, TOGETHER, AnyScheme
from likewise.index.index import Index
from likewise.index.item_ids import as_ids, fitted_ids, kind_of_ids
from likewise.index.set_scheme import MinHashScheme
from likewise.io.ids import unique_ids
from likewise.io.read import ReadOptions, Source, open_source
from likewise.jobs.result import Pairs
from likewise.search.vectors.load import Vectors, vectors
from likewise.shingle import Tokens, Urls

ASKED = 1 << 14
"""Vectors that are asked for in one call."""
ROOM = 1 << 31
"""Bytes of vectors that are read into memory; more go to a temporary file, but for a .npy file, which is mapped."""


def open_items(scheme: AnyScheme, source: Any, where: str, **options: Any) -> Source:
    """Open files with items like those of an index."""
    if not isinstance(scheme, MinHashScheme) or scheme.shingler is None:
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
    for batch in chain(source.batches(threads), [None]):
        waiting += [] if batch is None else [batch]
        full = sum(one.nbytes for one in waiting) >= TOGETHER or sum(one.num_rows for one in waiting) >= ROWS
        if not waiting or not (full or batch is None):
            continue
        table = pa.Table.from_batches(waiting)
        ids = None
        if "id" in table.column_names:
            ids = fitted_ids(as_ids(table.column("id"), "index add"), kind)
            kind = kind or kind_of_ids(ids)
        yield ids, table.column("text").cast(pa.large_string())
        tick(table.num_rows)
        waiting = []


def answered(index: Index, source: Source, log: RunLog, k: int | None, threshold: float | None, measure: str) -> Pairs:
    """Ask an index for the items that are similar to those of a source."""
    tables: list[Any] = []
    ids: list[Any] = []
    rows = 0
    with log.stage("query", source.total_rows or 0) as tick:
        for batch in source.batches(index.threads):
            found = index.query(batch.column("text"), k, threshold, measure)
            tables.append(found.set_column(0, "id_a", to_arrow(found.column("id_a").to_numpy() + rows)))
            if "id" in batch.schema.names:
                ids.append(batch.column("id"))
            rows += batch.num_rows
            tick(batch.num_rows)
    if not tables:
        tables.append(index.query(pa.array([], pa.large_string()), k, threshold, measure))
    table = pa.concat_tables(tables).combine_chunks()
    names = None
    if ids:
        names = unique_ids(source.finish_ids(pa.chunked_array(ids)).combine_chunks(), "id", source.locate)
    elif (positions := source.positions()) is not None:
        names = to_arrow(positions)
    if names is not None:
        table = table.set_column(0, "id_a", names.take(table.column("id_a")))
    assert isinstance(index.scheme, MinHashScheme)
    limit = {"threshold": index.scheme.threshold if threshold is None else threshold, "measure": measure}
    return _result(index, source, table, rows, k, {**limit, "shingle": str(index.scheme.shingler)}, log)


def nearest_answers(index: Index, given: Vectors, log: RunLog, k: int | None, within: float | None) -> Pairs:
    """Ask an index for the vectors that are near to those of files."""
    tables: list[Any] = []
    with log.stage("query", len(given.table)) as tick:
        for start in range(0, max(1, len(given.table)), ASKED):
            part = given.table[start : start + ASKED]
            found = index.query(part, k, within=within)
            tables.append(found.set_column(0, "id_a", given.name(found.column("id_a").to_numpy() + start)))
            tick(len(part))
    header = index.scheme.header()
    limit = {"within": header["within"] if within is None else within, "measure": header["measure"]}
    return _result(index, given, pa.concat_tables(tables).combine_chunks(), len(given.table), k, limit, log)


def _result(
    index: Index, given: Any, table: Any, rows: int, k: int | None, limit: dict[str, Any], log: RunLog
) -> Pairs:
    """Return answers with what was asked, and how much."""
    log.counts |= {"items": rows, "pairs": table.num_rows, "indexed": len(index)}
    more = {"recall": index.scheme.recall, "threads": index.threads}
    return Pairs(table, run_json("index", {"index": index.where, "k": k, **limit, **more}, [given], log))
