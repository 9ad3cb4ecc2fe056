"""Parquet files as they are: a row is known by its file and its place in it, so that nothing has to be copied.

Only the digests of texts are written to the folder of the run. Each step reads the columns that it needs from the
input, which must remain as it is until the run ends.
"""

from __future__ import annotations

import os
from collections.abc import Iterator
from dataclasses import replace
from functools import partial
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from likewise.base.arrays import TextChunk
from likewise.errors import InputError
from likewise.io.read import ReadOptions
from likewise.io.read.columns import text_of
from likewise.spark import source, steps
from likewise.spark.node import ready
from likewise.spark.source import DIGEST, FILE, PART, PLACE, SIZE, TROUBLE, Deposit, Numbering, SparkInput, quoted
from likewise.spark.store import Checkpoints, HadoopFolder

INDEX = "_metadata.row_index"
NOTED = f"{PART} int, {PLACE} bigint, {SIZE} bigint, {DIGEST} binary, {TROUBLE} string"


def in_place(
    given: SparkInput, options: ReadOptions, checkpoints: Checkpoints, step: str, short: int
) -> Deposit | None:
    """Note the size and the digest of every text and number the rows; None if the input is not Parquet with plain text.

    Documents of fewer than `short` bytes are counted.
    """
    from pyspark.sql import functions as F

    frame = _placed(given, options)
    if frame is None:
        return None
    text = quoted(options.text)
    noted = checkpoints.frame(
        step, lambda: frame.select(PART, PLACE, text).mapInArrow(partial(_noted, options=options), NOTED)
    )
    sizes = (
        noted.groupBy(PART)
        .agg(
            F.count("*").alias("rows"),
            F.sum(SIZE).alias("bytes"),
            F.count(TROUBLE).alias("broken"),
            F.count_if(F.col(SIZE) < short).alias("short"),
        )
        .toArrow()
        .to_pydict()
    )
    if None in sizes[PART]:
        raise InputError(f"{given.kind}: a file came in while the input was read; leave it alone and run again")
    rows = dict(zip(sizes[PART], sizes["rows"], strict=True))
    begins, stretches, row = [], {}, 0
    for part, file in enumerate(given.files):
        if part in rows:
            begins.append((row, file))
            stretches[part] = np.zeros(1, np.int64), np.array([row], np.int64)
            row += rows[part]
    columns = tuple(name for name in given.frame.columns if not name.startswith(source.PREFIX))
    numbering = Numbering(row, sum(sizes["bytes"]), stretches)
    known = Deposit(frame, numbering, columns, given.kind, given.files, options.text, sum(sizes["short"]), noted)
    if sum(sizes["broken"]):
        source._raise_first(replace(known, frame=noted), begins)
    return known


def _placed(given: SparkInput, options: ReadOptions) -> Any:
    """Return the input with the number of each row's file, its place there and the size of its text; or None."""
    from pyspark.errors import AnalysisException
    from pyspark.sql import functions as F
    from pyspark.sql.types import StringType

    plain = isinstance(given.frame.schema[options.text].dataType, StringType) and not options.html
    if not given.files or not plain or options.on_error != "stop" or len(set(given.files)) < len(given.files):
        return None
    size = F.octet_length(quoted(options.text)).cast("bigint").alias(SIZE)
    try:
        frame = given.frame.select("*", F.col(INDEX).alias(PLACE), size)
    except AnalysisException:
        return None
    if len(given.files) == 1:
        return frame.withColumn(PART, F.lit(0))
    numbers = {source._path_of(uri): uri for uri in given.frame.inputFiles()}
    known = [
        (uri, part)
        for part, file in enumerate(given.files)
        for uri in {numbers[file], numbers[file].replace("file:///", "file:/", 1)}
    ]
    names = pa.table({FILE: [uri for uri, _ in known], PART: pa.array([part for _, part in known], pa.int32())})
    return frame.join(F.broadcast(given.frame.sparkSession.createDataFrame(names)), FILE, "left")


def _noted(batches: Iterator[Any], options: ReadOptions) -> Iterator[Any]:
    """Yield the size and the digest of every text, and what is wrong with it."""
    ready()
    for batch in batches:
        texts, trouble = text_of(batch.column(2), options, "the input")
        rows = batch.num_rows
        reasons = [trouble[row].reason if row in trouble else None for row in range(rows)] if trouble else [None] * rows
        if texts.null_count:
            texts = texts.fill_null("")
        digests = steps.full_digests(TextChunk.from_arrow(texts))
        columns = [
            batch.column(0),
            batch.column(1),
            pc.binary_length(texts).cast(pa.int64()),
            pa.FixedSizeBinaryArray.from_buffers(pa.binary(16), rows, [None, pa.py_buffer(digests)]).cast(pa.binary()),
            pa.array(reasons, pa.string()),
        ]
        yield pa.RecordBatch.from_arrays(columns, [PART, PLACE, SIZE, DIGEST, TROUBLE])


def check_unchanged(session: Any, given: SparkInput) -> None:
    """Raise if a file of the input is no longer what it was when the run began."""
    for path, facts in (given.identity or {}).items():
        try:
            if "://" in path:
                now = HadoopFolder(session, path).facts
            else:
                now = [os.stat(path).st_size, os.stat(path).st_mtime_ns]
        except Exception:
            now = []
        if now != facts and now != [facts[0], facts[1] // 1_000_000]:
            raise InputError(f"{path}: this file changed while the run was reading it; leave it alone and run again")
