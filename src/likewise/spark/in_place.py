"""Parquet files as they are: a row is known by its file and its place in it, so that nothing has to be copied.

Only the digests of texts are written to the folder of the run. Each step reads the columns that it needs from the
input, which must remain as it is until the run ends.
"""

from __future__ import annotations

import os
from collections.abc import Iterator
from dataclasses import replace
from functools import partial
from itertools import pairwise
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from likewise.base.arrays import Ints, TextChunk
from likewise.base.copies import chunk_digests
from likewise.errors import InputError
from likewise.io.read import ReadOptions
from likewise.io.read.columns import text_of
from likewise.spark.direct import PART, PLACE, PREFIX, SIZE, TEXT, DirectFiles, documents, on_splits
from likewise.spark.node import ready
from likewise.spark.source import (
    DIGEST,
    FILE,
    SIZES,
    TROUBLE,
    Deposit,
    Numbering,
    SparkInput,
    deposit,
    listed_files,
    path_of,
    quoted,
    raise_first,
)
from likewise.spark.store import Checkpoints

HIDDEN, INDEX = "_metadata", "row_index"
"""Where Spark has the place of a row in its file; of Parquet only."""
WRONG, COUNT, SHORT, BROKEN = "wrong", "count", "short", "broken"
NOTED = (
    f"{PART} int, {PLACE} bigint, {DIGEST} binary, {SIZES} binary, {COUNT} bigint, {SIZE} bigint, {SHORT} bigint, "
    f"{BROKEN} bigint, {WRONG} bigint, {TROUBLE} string"
)
"""What is noted of rows that follow each other in a file: where they begin, their digests of 16 bytes each, their sizes
in 8, how many they are, their bytes, how many are short or broken; the place of the first broken one, and what is wrong
with it."""


TYPES = pa.schema(
    [
        (PART, pa.int32()), (PLACE, pa.int64()), (DIGEST, pa.binary()), (SIZES, pa.binary()), (COUNT, pa.int64()),
        (SIZE, pa.int64()), (SHORT, pa.int64()), (BROKEN, pa.int64()), (WRONG, pa.int64()), (TROUBLE, pa.string()),
    ]
)  # fmt: skip


def deposited(
    given: SparkInput, options: ReadOptions, checkpoints: Checkpoints, step: str, short: int,
    layout: tuple[Ints, Ints] | None = None,
) -> Deposit:  # fmt: skip
    """Number the rows of an input, where it is if that can be, else as `deposit` does."""
    found = None if layout is not None else in_place(given, options, checkpoints, step, short)
    return deposit(given, options, checkpoints, step, short, layout) if found is None else found


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
    columns = tuple(name for name in given.frame.columns if not name.startswith(PREFIX))
    session = given.frame.sparkSession
    direct = DirectFiles.of(session, given.files, columns, options.text)
    noting = partial(_noted, options=options, short=short)

    def note() -> Any:
        if direct is None:
            text = F.col(quoted(options.text)).alias(TEXT)
            return frame.select(PART, PLACE, text).mapInArrow(noting, NOTED)
        return on_splits(session, direct.splits, partial(documents, function=noting), NOTED)

    noted = checkpoints.frame(step, note)
    sizes = checkpoints.sums(step, PART, [COUNT, SIZE, SHORT, BROKEN])
    if None in sizes[PART]:
        raise InputError(f"{given.kind}: a file came in while the input was read; leave it alone and run again")
    rows = dict(zip(sizes[PART], sizes[COUNT], strict=True))
    begins, stretches, row = [], {}, 0
    for part, file in enumerate(given.files):
        if part in rows:
            begins.append((row, file))
            stretches[part] = np.zeros(1, np.int64), np.array([row], np.int64)
            row += rows[part]
    numbering = Numbering(row, sum(sizes[SIZE]), stretches)
    known = Deposit(
        frame, numbering, columns, given.kind, given.files, options.text, sum(sizes[SHORT]), [], None, noted, direct,
        step,
    )  # fmt: skip
    if sum(sizes[BROKEN]):
        broken = noted.select(PART, F.col(WRONG).alias(PLACE), TROUBLE)
        raise_first(replace(known, frame=broken), begins)
    return known


def _placed(given: SparkInput, options: ReadOptions) -> Any:
    """Return the input with the number of each row's file, its place there and the size of its text; or None."""
    from pyspark.sql import functions as F
    from pyspark.sql.types import StringType

    plain = isinstance(given.frame.schema[options.text].dataType, StringType) and not options.html
    if not given.files or not plain or options.on_error != "stop" or len(set(given.files)) < len(given.files):
        return None
    if INDEX not in given.frame.select(HIDDEN).schema[HIDDEN].dataType.fieldNames():
        return None
    size = F.octet_length(quoted(options.text)).cast("bigint").alias(SIZE)
    frame = given.frame.select("*", F.col(f"{HIDDEN}.{INDEX}").alias(PLACE), size)
    if len(given.files) == 1:
        return frame.withColumn(PART, F.lit(0))
    numbers = {path_of(uri): uri for uri in given.frame.inputFiles()}
    known = [
        (uri, part)
        for part, file in enumerate(given.files)
        for uri in {numbers[file], numbers[file].replace("file:///", "file:/", 1)}
    ]
    names = pa.table({FILE: [uri for uri, _ in known], PART: pa.array([part for _, part in known], pa.int32())})
    return frame.join(F.broadcast(given.frame.sparkSession.createDataFrame(names)), FILE, "left")


def _noted(batches: Iterator[Any], options: ReadOptions, short: int) -> Iterator[Any]:
    """Note the digests of texts, and what is wrong with them, for each stretch of rows that follow each other."""
    ready()
    for batch in batches:
        texts, trouble = text_of(batch.column(batch.schema.get_field_index(TEXT)), options, "the input")
        if texts.null_count:
            texts = texts.fill_null("")
        sizes = np.asarray(pc.binary_length(texts), np.int64)
        digests = chunk_digests(TextChunk.from_arrow(texts))
        parts, places = batch.column(0), np.asarray(batch.column(1), np.int64)
        files = np.asarray(parts.fill_null(-1), np.int64)
        cuts = np.flatnonzero((np.diff(files) != 0) | (np.diff(places) != 1)) + 1
        bounds = [0, *cuts.tolist(), len(places)]
        for start, stop in pairwise(bounds):
            if start == stop:
                continue
            broken = sorted(row for row in trouble if start <= row < stop)
            values = {
                PART: parts[start].as_py(), PLACE: int(places[start]), DIGEST: digests[start:stop].tobytes(),
                SIZES: sizes[start:stop].tobytes(), COUNT: stop - start, SIZE: int(sizes[start:stop].sum()),
                SHORT: int((sizes[start:stop] < short).sum()), BROKEN: len(broken),
                WRONG: int(places[broken[0]]) if broken else None,
                TROUBLE: trouble[broken[0]].reason if broken else None,
            }  # fmt: skip
            yield pa.RecordBatch.from_pylist([values], TYPES)


def check_unchanged(session: Any, given: SparkInput, part: Deposit) -> None:
    """Raise if a file that was read where it is is no longer what it was when the run began."""
    if part.noted is None:
        return
    remote = any("://" in path for path in given.given)
    listed = listed_files(session, list(given.given)) if remote else {}
    for path, known in (given.identity or {}).items():
        if known != (listed.get(path) if remote else _facts(path)):
            raise InputError(f"{path}: this file changed while the run was reading it; leave it alone and run again")


def _facts(path: str) -> list[int] | None:
    try:
        found = os.stat(path)
    except OSError:
        return None
    return [found.st_size, found.st_mtime_ns]
