"""Parquet files that every machine reaches as files: tasks read them with Arrow, and no document passes through Java.

A row is known by its file and its place in it, as in `in_place`. A split is some row groups of a file that follow each
other; the task of a number reads the split of that number.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass, replace
from functools import partial
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from likewise.base.arrays import Ints, to_arrow
from likewise.spark.context import parallelism, share

PREFIX = "_likewise_"
PART, PLACE, SIZE, TEXT = f"{PREFIX}part", f"{PREFIX}place", f"{PREFIX}size", f"{PREFIX}text"
"""Columns that every batch of documents has: number of the file or partition, place in it, bytes, and the text."""
PLACES = 33
"""Bits for the place of a row in its partition, in one number with the partition, which has 31."""
MOST_FILES = 4096
"""Files whose footers the driver reads; of more files Spark reads the rows."""
SPLIT_BYTES = 64 << 20
"""Bytes of Parquet that one task reads, about."""
PER_CORE = 2
"""Tasks for each core, if the files are small: one that is late does not keep the others waiting for long."""
BATCH_ROWS = 4096
BATCH_BYTES = 16 << 20
"""Rows of a batch, and its bytes if the documents of a row group are of much the same length."""
READERS = 8
"""Threads of the driver that read footers, which is waiting for the most part."""


@dataclass(frozen=True)
class FileSplit:
    """Row groups of a file: where the first of their rows is, and how many rows each has."""

    part: int
    path: str
    first: int
    groups: tuple[int, ...]
    rows: tuple[int, ...]
    batch: int
    text: str


@dataclass(frozen=True)
class DirectFiles:
    """The splits of files, in the order of their rows."""

    session: Any
    splits: tuple[FileSplit, ...]
    schema: pa.Schema

    @classmethod
    def of(cls, session: Any, files: tuple[str, ...], columns: tuple[str, ...], text: str) -> DirectFiles | None:
        """Return the splits of files with these columns; None if some are no such files of a mounted file system, or if
        Spark knows more of them than they tell (columns of folders, types that differ)."""
        if not files or len(files) > MOST_FILES or any("://" in path for path in files):
            return None
        with ThreadPoolExecutor(READERS) as pool:
            try:
                footers = list(pool.map(_footer, files))
            except (OSError, pa.ArrowException):
                return None
        schema = footers[0][0]
        if tuple(schema.names) != columns or not _textual(schema.field(text).type):
            return None
        if any(not other.equals(schema) for other, _, _ in footers):
            return None
        total = sum(sum(sizes) for _, _, sizes in footers)
        cores = parallelism(session)
        most = max(1, min(SPLIT_BYTES, -(-total // (PER_CORE * cores))))
        found = [
            split
            for part, (path, (_, rows, sizes)) in enumerate(zip(files, footers, strict=True))
            for split in _splits(part, path, rows, sizes, most, text)
        ]
        return cls(session, tuple(found), schema) if found else None

    def moved(self, by: int) -> tuple[FileSplit, ...]:
        """Return the splits of files that have other numbers."""
        return tuple(replace(split, part=split.part + by) for split in self.splits)

    def plain(self, name: str) -> bool:
        """Tell whether a column has values that Spark and Arrow have the same types for: whole numbers or text."""
        kind = self.schema.field(name).type
        return bool(pa.types.is_signed_integer(kind) or pa.types.is_string(kind) or pa.types.is_large_string(kind))

    def repeated(self, name: str) -> tuple[Any, int] | None:
        """Return a value of a column that is null or in several rows, with their number; None if there is none."""
        values = pa.chunked_array([batch.column(0) for batch in self.batches([name])])
        if values.null_count:
            return None, values.null_count
        if pc.count_distinct(values).as_py() == len(values):
            return None
        counted = values.value_counts()
        place = int(np.argmax(np.asarray(counted.field("counts"), np.int64)))
        return counted.field("values")[place].as_py(), counted.field("counts")[place].as_py()

    def batches(self, columns: list[str]) -> Iterator[pa.RecordBatch]:
        """Yield columns of all rows in their order, read by the driver."""
        for split in self.splits:
            for _, batch in read(split, columns):
                yield batch


def _footer(path: str) -> tuple[pa.Schema, list[int], list[int]]:
    """Return the columns of a file, and the rows and bytes of its row groups."""
    import pyarrow.parquet as pq

    with pq.ParquetFile(path, coerce_int96_timestamp_unit="us") as file:
        found = file.metadata
        groups = [found.row_group(place) for place in range(found.num_row_groups)]
        sizes = [sum(one.column(place).total_compressed_size for place in range(found.num_columns)) for one in groups]
        return file.schema_arrow.remove_metadata(), [one.num_rows for one in groups], sizes


def _textual(kind: pa.DataType) -> bool:
    kind = kind.value_type if pa.types.is_dictionary(kind) else kind
    return bool(pa.types.is_string(kind) or pa.types.is_large_string(kind))


def _splits(part: int, path: str, rows: list[int], sizes: list[int], most: int, text: str) -> Iterator[FileSplit]:
    """Cut a file into runs of row groups of about `most` bytes."""
    ends = np.cumsum(sizes, dtype=np.int64)
    begins = np.cumsum([0, *rows])
    owner = (ends - np.array(sizes, np.int64) // 2) // most
    for number in np.unique(owner).tolist():
        groups = np.flatnonzero(owner == number)
        counts = tuple(rows[group] for group in groups.tolist())
        mean = max(1, sum(sizes[group] for group in groups.tolist()) // max(1, sum(counts)))
        batch = max(1, min(BATCH_ROWS, BATCH_BYTES // mean))
        if sum(counts):
            yield FileSplit(part, path, int(begins[groups[0]]), tuple(groups.tolist()), counts, batch, text)


def read(split: FileSplit, columns: list[str], wanted: Ints | None = None) -> Iterator[tuple[Ints, pa.RecordBatch]]:
    """Yield places and columns of the rows of a split; of `wanted`, places that ascend, only these if it is given."""
    import pyarrow.parquet as pq

    places = np.cumsum([split.first, *split.rows])
    groups = list(split.groups)
    if wanted is not None:
        held = np.diff(np.searchsorted(wanted, places)) > 0
        groups = [group for group, some in zip(groups, held.tolist(), strict=True) if some]
    with pq.ParquetFile(split.path, coerce_int96_timestamp_unit="us") as file:
        for group in groups:
            place = int(places[group - split.groups[0]])
            for batch in file.iter_batches(split.batch, [group], columns, use_threads=False):
                here = np.arange(place, place + batch.num_rows)
                place += batch.num_rows
                if wanted is None:
                    yield here, batch
                    continue
                low, high = np.searchsorted(wanted, [here[0], place])
                if low < high:
                    chosen = wanted[low:high]
                    yield chosen, batch.take(to_arrow(chosen - here[0]))


def on_splits(session: Any, splits: Iterable[FileSplit], function: Callable[..., Any], schema: Any) -> Any:
    """Return the frame of what `function` yields for the splits, one task for each: it gets the number of the task and
    its split."""
    known = tuple(splits)
    if not known:
        return session.createDataFrame([], schema)
    shared = share(session, known)
    numbers = session.range(0, len(known), 1, len(known))
    return numbers.mapInArrow(partial(_on_split, splits=shared, function=function), schema)


def _on_split(batches: Iterator[Any], splits: Any, function: Callable[..., Any]) -> Iterator[Any]:
    for batch in batches:
        for number in batch.column(0).to_pylist():
            yield from function(number, splits.value[number])


def documents(number: int, split: FileSplit, function: Callable[..., Any], wanted: Any = None) -> Iterator[Any]:
    """Yield what a function of batches yields for the documents of a split: file, place, size and text.

    wanted: a broadcast of the rows that matter, each with its file in the upper bits and its place in the others.
    """
    yield from function(split_documents(split, None if wanted is None else wanted.value))


def split_documents(split: FileSplit, wanted: Ints | None) -> Iterator[pa.RecordBatch]:
    """Yield the documents of a split, or those of `wanted`: file, place, size and text."""
    some = None
    if wanted is not None:
        low, high = np.searchsorted(wanted, [split.part << PLACES, (split.part + 1) << PLACES])
        some = wanted[low:high] - (split.part << PLACES)
        if not len(some):
            return
    for places, batch in read(split, [split.text], some):
        texts = batch.column(0).cast(pa.string())
        sizes = pc.binary_length(texts).cast(pa.int64())
        parts = pa.array(np.full(len(places), split.part, np.int32))
        yield pa.RecordBatch.from_arrays([parts, to_arrow(places), sizes, texts], [PART, PLACE, SIZE, TEXT])
