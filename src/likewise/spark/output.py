"""Tables to the folder of a run: by Spark, or as files of Arrow where the folder is one that every machine mounts.

The rows of `DirectFiles` go from the input to kept/ and clusters.parquet/ in one job whose tasks read and write files
themselves. A task writes under a name of its own and renames at the end; a task that is repeated writes the same bytes.
"""

from __future__ import annotations

import os
from collections.abc import Iterator
from contextlib import ExitStack
from dataclasses import dataclass
from functools import partial
from typing import Any

import numpy as np
import pyarrow as pa

from likewise.base.arrays import Hashes, Ints, to_arrow
from likewise.errors import OutputError
from likewise.io.read.columns import choose
from likewise.io.write import ROWS
from likewise.spark.direct import DirectFiles, FileSplit, on_splits, read
from likewise.spark.exchange import SCHEMA, collected, parcel
from likewise.spark.rowset import RowSet
from likewise.spark.store import DONE, HadoopFolder

PER_FILE = 1 << 17
"""Rows of a table from the driver that one task writes, at most as many tasks as there are cores."""
HELD = 32 << 20
"""Bytes of rows that a task holds before it writes a row group."""
CLUSTERS = ("id", "cluster", "size", "keeper")


def write_frame(frame: Any, place: HadoopFolder) -> None:
    """Write a Spark DataFrame."""
    frame.write.mode("overwrite").option("compression", "zstd").parquet(place.path)


def to_frame(session: Any, table: pa.Table) -> Any:
    """Return a table of the driver as a DataFrame of about as many parts as it needs."""
    return session.createDataFrame(table).coalesce(max(1, -(-table.num_rows // PER_FILE)))


def write_arrow(table: pa.Table, place: HadoopFolder) -> None:
    """Write a table of the driver as a dataset."""
    if place.local is None:
        write_frame(to_frame(place.session, table), place)
        return
    place.remove()
    os.makedirs(place.local)
    add_file(table, place.local, "driver")
    finish(place)


def add_file(table: pa.Table, folder: str, name: str) -> None:
    """Write a table as one file of a dataset in a folder of this machine."""
    with _Sheet(folder, f"part-{name}.zstd.parquet", table.schema, [], os.getpid()) as sheet:
        for start in range(0, table.num_rows, ROWS):
            sheet.add(table.slice(start, ROWS))


def finish(place: HadoopFolder) -> None:
    """Mark a dataset as complete."""
    assert place.local is not None
    with open(os.path.join(place.local, DONE), "wb"):
        pass


class _Sheet:
    """A Parquet file that appears under its name when it is complete."""

    def __init__(self, folder: str, name: str, schema: pa.Schema, long: list[str], attempt: int) -> None:
        self._path = os.path.join(folder, name)
        self._hidden = os.path.join(folder, f".{name}.{attempt}.part")
        self._schema = schema
        self._short = [one.name for one in schema if one.name not in long and not pa.types.is_nested(one.type)]
        self._held: list[pa.Table] = []
        self._rows = self._bytes = 0

    def __enter__(self) -> _Sheet:
        import pyarrow.parquet as pq

        try:
            self._writer = pq.ParquetWriter(
                self._hidden, self._schema, compression="zstd", use_dictionary=self._short, write_statistics=self._short
            )
        except OSError as error:
            raise OutputError(f"{self._path}: cannot be written: {error}") from error
        return self

    def add(self, table: pa.Table) -> None:
        """Add rows; write those that are held if they are many."""
        if table.num_rows:
            self._held.append(table)
            self._rows += table.num_rows
            self._bytes += table.nbytes
            if self._rows >= ROWS or self._bytes >= HELD:
                self._flush()

    def _flush(self) -> None:
        if self._held:
            self._writer.write_table(pa.concat_tables(self._held), row_group_size=max(ROWS, self._rows))
            self._held, self._rows, self._bytes = [], 0, 0

    def __exit__(self, *error: object) -> None:
        try:
            if error[0] is None:
                self._flush()
            self._writer.close()
            if error[0] is None:
                os.replace(self._hidden, self._path)
        finally:
            if os.path.exists(self._hidden):
                os.unlink(self._hidden)


@dataclass(frozen=True)
class RowFiles:
    """What a task needs to write the rows of its split: kept ones to one folder, those without any duplicate as
    clusters of their own to another."""

    kept: str
    clusters: str
    starts: dict[int, int]
    gone: RowSet
    present: RowSet
    schema: pa.Schema
    text: str
    id: str | None
    as_text: bool

    @property
    def cluster_schema(self) -> pa.Schema:
        """The columns of `clusters`."""
        kind = pa.int64() if self.id is None else self.schema.field(self.id).type
        kind = pa.string() if self.as_text else kind
        return pa.schema([(name, pa.int64() if name == "size" else kind) for name in CLUSTERS])

    def write(self, direct: DirectFiles) -> dict[int, tuple[Ints, Hashes]]:
        """Write all rows; return for each file of kept/ which rows it has, as `KeptState.save` takes it."""
        known = direct.session.sparkContext.broadcast(self)
        frame = on_splits(direct.session, direct.splits, partial(_written, known=known), SCHEMA)
        return collected(frame.toArrow())


def _written(number: int, split: FileSplit, known: Any) -> Iterator[Any]:
    """Write the rows of a split; yield the place of the first kept one among all that are kept, and their number."""
    from pyspark import TaskContext

    plan: RowFiles = known.value
    attempt = TaskContext.get().taskAttemptId()
    name = f"part-{number:06d}.zstd.parquet"
    count = 0
    with ExitStack() as files:
        kept = files.enter_context(_Sheet(plan.kept, name, plan.schema, [plan.text], attempt))
        alone = files.enter_context(_Sheet(plan.clusters, name, plan.cluster_schema, [], attempt))
        for places, batch in read(split, plan.schema.names):
            rows = places + plan.starts[split.part]
            stays = ~plan.gone.has(rows)
            kept.add(choose(batch, stays).cast(plan.schema))
            count += int(stays.sum())
            single = ~plan.present.has(rows)
            ids = to_arrow(rows[single])
            if plan.id is not None:
                ids = batch.column(batch.schema.get_field_index(plan.id)).filter(pa.array(single))
            if plan.as_text:
                ids = ids.cast(pa.string())
            sizes = to_arrow(np.ones(len(ids), np.int64))
            alone.add(pa.table([ids, ids, sizes, ids], schema=plan.cluster_schema))
    if count:
        first = np.array([split.first + plan.starts[split.part]])
        yield from parcel(0, number, np.zeros(1, np.int64), (first - plan.gone.before(first)).view(np.uint64))
        yield from parcel(0, -1 - number, np.array([count]), np.zeros(1, np.uint64))


def laid(number: int, rows: Ints, gone: RowSet) -> Iterator[Any]:
    """Yield where the kept rows of a file are: stretches of rows that follow each other among those kept."""
    if len(rows):
        places = rows - gone.before(rows)
        begins = np.flatnonzero(np.diff(places, prepend=-2) != 1)
        yield from parcel(0, number, begins, places[begins].view(np.uint64))
        yield from parcel(0, -1 - number, np.array([len(rows)]), np.zeros(1, np.uint64))
