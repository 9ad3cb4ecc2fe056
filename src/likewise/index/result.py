"""The answers to the items of files, as a result with statistics."""

from __future__ import annotations

from typing import Any

import pyarrow as pa

from likewise.base.arrays import TextChunk, to_arrow
from likewise.base.runlog import RunLog, run_json
from likewise.index.index import Index
from likewise.index.scheme import Scheme
from likewise.io.ids import unique_ids
from likewise.io.read import Source
from likewise.jobs.result import Pairs
from likewise.search.vectors.load import Vectors

ROWS = 1 << 14
"""Vectors that are asked for in one call."""


def answered(index: Index, source: Source, log: RunLog, k: int | None, threshold: float | None, measure: str) -> Pairs:
    """Ask an index for the items that are similar to those of a source."""
    tables: list[Any] = []
    ids: list[Any] = []
    rows = 0
    with log.stage("query", source.total_rows or 0) as tick:
        for batch in source.batches(index.threads):
            chunk = TextChunk.from_arrow(batch.column("text"))
            found = index.query(batch.column("text"), k, threshold, measure)
            numbers = to_arrow(found.column("id_a").to_numpy() + rows)
            tables.append(found.set_column(0, "id_a", numbers))
            if "id" in batch.schema.names:
                ids.append(batch.column("id"))
            rows += len(chunk)
            tick(len(chunk))
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
    assert isinstance(index.scheme, Scheme)
    info = index.info()
    log.counts |= {"items": rows, "pairs": table.num_rows, "indexed": info["count"]}
    parameters = {
        "index": index.where,
        "k": k,
        "threshold": index.scheme.threshold if threshold is None else threshold,
        "measure": measure,
        "recall": info["recall"],
        "shingle": str(index.scheme.shingler),
        "threads": index.threads,
    }
    return Pairs(table, run_json("index", parameters, [source], log))


def nearest_answers(index: Index, given: Vectors, log: RunLog, k: int | None, within: float | None) -> Pairs:
    """Ask an index for the vectors that are near to those of files."""
    table, rows = given.table, len(given.table)
    tables: list[Any] = []
    with log.stage("query", rows) as tick:
        for start in range(0, max(1, rows), ROWS):
            part = table[start : start + ROWS]
            found = index.query(part, k, within=within)
            numbers = given.name(found.column("id_a").to_numpy() + start)
            tables.append(found.set_column(0, "id_a", numbers))
            tick(len(part))
    answers = pa.concat_tables(tables).combine_chunks()
    info = index.info()
    log.counts |= {"items": rows, "pairs": answers.num_rows, "indexed": info["count"]}
    parameters = {
        "index": index.where,
        "k": k,
        "within": info["within"] if within is None else within,
        "measure": info["measure"],
        "recall": info["recall"],
        "threads": index.threads,
    }
    return Pairs(answers, run_json("index", parameters, [given], log))
