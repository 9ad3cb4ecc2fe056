"""Tables to the folder of a run: by Spark, or as files of Arrow where the folder is one that every machine mounts.

The rows of `DirectFiles` go from the input to kept/ and clusters.parquet/ in one job whose tasks read and write files
themselves. A task writes under a name of its own and renames at the end; a task that is repeated writes the same bytes.
"""

from __future__ import annotations

import os
from collections.abc import Iterator
from contextlib import ExitStack
from dataclasses import dataclass, replace
from functools import partial
from typing import Any

import numpy as np
import pyarrow as pa

from likewise.base.arrays import Hashes, Ints, to_arrow
from likewise.errors import OutputError
from likewise.io.read.columns import choose
from likewise.io.write import ROWS
from likewise.spark.context import share
from likewise.spark.direct import DirectFiles, FileSplit, on_splits, read
from likewise.spark.exchange import SCHEMA, collected, parcel
from likewise.spark.folder import RunFolder
from likewise.spark.rowset import RowSet
from likewise.spark.store import DONE

PER_FILE = 1 << 17
"""Rows of a table from the driver that one task writes, at most as many tasks as there are cores."""
HELD = 32 << 20
"""Bytes of rows that a task holds before it writes a row group."""
CLUSTERS = ("id", "cluster", "size", "keeper")
ROW, KNOWN = "row", "known"


def write_frame(frame: Any, place: RunFolder) -> None:
    """Write a Spark DataFrame."""
    frame.write.mode("overwrite").option("compression", "zstd").parquet(place.path)


def to_frame(session: Any, table: pa.Table) -> Any:
    """Return a table of the driver as a DataFrame of about as many parts as it needs."""
    return session.createDataFrame(table).coalesce(max(1, -(-table.num_rows // PER_FILE)))


def write_arrow(table: pa.Table, place: RunFolder) -> None:
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
    with Sheet(folder, file_name(name), table.schema, [], os.getpid()) as sheet:
        for start in range(0, table.num_rows, ROWS):
            sheet.add(table.slice(start, ROWS))


def file_name(name: str) -> str:
    """Return the name of a file of a dataset."""
    return f"part-{name}.zstd.parquet"


def finish(place: RunFolder) -> None:
    """Mark a dataset as complete."""
    assert place.local is not None
    with open(os.path.join(place.local, DONE), "wb"):
        pass


class Sheet:
    """A Parquet file that appears under its name when it is complete."""

    def __init__(self, folder: str, name: str, schema: pa.Schema, long: list[str], attempt: int) -> None:
        self._path = os.path.join(folder, name)
        self._hidden = os.path.join(folder, f".{name}.{attempt}.part")
        self._schema = schema
        self._short = [one.name for one in schema if one.name not in long and not pa.types.is_nested(one.type)]
        self._held: list[pa.Table] = []
        self._rows = self._bytes = 0

    def __enter__(self) -> Sheet:
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
    """What a task needs to write the rows of its split: kept ones to one folder, and the cluster of each to another.

    known: the clusters of rows that have a duplicate, with their numbers, ascending. All others are clusters of their
    own. A task gets it as a file, in the folder of clusters while they are written, and reads what it needs.
    """

    kept: str
    clusters: str
    starts: dict[int, int]
    gone: RowSet
    known: pa.Table
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
        rows, *others = self.known.columns
        add_file(
            pa.table(
                [rows, *(pa.table(others, self.cluster_schema.names).cast(self.cluster_schema)).columns],
                [ROW, *self.cluster_schema.names],
            ),
            self.clusters,
            KNOWN,
        )
        plan = share(direct.session, replace(self, known=self.known.slice(0, 0)))
        frame = on_splits(direct.session, direct.splits, partial(_written, plan=plan), SCHEMA)
        layout = collected(frame.toArrow())
        os.unlink(os.path.join(self.clusters, file_name(KNOWN)))
        return layout

    def read(self, first: int, stop: int) -> tuple[Ints, pa.Table]:
        """Return the clusters of rows in a range that have a duplicate, and the numbers of these rows."""
        import pyarrow.parquet as pq

        path, where = os.path.join(self.clusters, file_name(KNOWN)), [(ROW, ">=", first), (ROW, "<", stop)]
        found = pq.ParquetDataset(path, filters=where).read()
        return np.asarray(found.column(ROW), np.int64), found.drop_columns([ROW])

    def clustered(self, ids: Any, rows: Ints, known: Ints, clusters: pa.Table) -> pa.Table:
        """Return the clusters of these rows, in their order: those that are known, and each other one by itself."""
        low, high = np.searchsorted(known, [rows[0], rows[-1] + 1])
        here = known[low:high]
        alone = np.ones(len(rows), bool)
        alone[np.searchsorted(rows, here)] = False
        ids = ids.filter(pa.array(alone)).cast(self.cluster_schema.field("id").type)
        sizes = to_arrow(np.ones(len(ids), np.int64))
        own = pa.table([ids, ids, sizes, ids], schema=self.cluster_schema)
        if low == high:
            return own
        order = np.argsort(np.concatenate([rows[alone], here]), kind="stable")
        return pa.concat_tables([own, clusters.slice(low, high - low)]).take(to_arrow(order))


def _written(number: int, split: FileSplit, plan: Any) -> Iterator[Any]:
    """Write the rows of a split; yield the place of the first kept one among all that are kept, and their number."""
    from pyspark import TaskContext

    files: RowFiles = plan.value
    attempt = TaskContext.get().taskAttemptId()
    name = file_name(f"{number:06d}")
    first, count = split.first + files.starts[split.part], 0
    known = files.read(first, first + sum(split.rows))
    with ExitStack() as sheets:
        kept = sheets.enter_context(Sheet(files.kept, name, files.schema, [files.text], attempt))
        clusters = sheets.enter_context(Sheet(files.clusters, name, files.cluster_schema, [], attempt))
        for places, batch in read(split, files.schema.names):
            rows = places + files.starts[split.part]
            stays = ~files.gone.has(rows)
            kept.add(choose(batch, stays).cast(files.schema))
            count += int(stays.sum())
            column = None if files.id is None else batch.schema.get_field_index(files.id)
            clusters.add(files.clustered(to_arrow(rows) if column is None else batch.column(column), rows, *known))
    if count:
        start = np.array([first])
        yield from parcel(0, number, np.zeros(1, np.int64), (start - files.gone.before(start)).view(np.uint64))
        yield from parcel(0, -1 - number, np.array([count]), np.zeros(1, np.uint64))


def laid(number: int, rows: Ints, gone: RowSet) -> Iterator[Any]:
    """Yield where the kept rows of a file are: stretches of rows that follow each other among those kept."""
    if len(rows):
        places = rows - gone.before(rows)
        begins = np.flatnonzero(np.diff(places, prepend=-2) != 1)
        yield from parcel(0, number, begins, places[begins].view(np.uint64))
        yield from parcel(0, -1 - number, np.array([len(rows)]), np.zeros(1, np.uint64))
