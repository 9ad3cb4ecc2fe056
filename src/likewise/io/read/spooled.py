"""Documents of a stream that was read, in a temporary Arrow file."""

from __future__ import annotations

from collections.abc import Iterator
from functools import partial
from pathlib import Path
from typing import Any

import pyarrow as pa

from likewise.io.disk import atomic
from likewise.io.read.base import Flags, ReadOptions, Tick, quiet
from likewise.io.read.find import InputFile
from likewise.io.read.ipc import Ipc
from likewise.io.read.memory import CODEC, ROWS
from likewise.io.read.parquet import WRITTEN
from likewise.io.read.tables import TableFiles, TablePart
from likewise.io.row_groups import EncodedRows, encode_rows, write_row_groups
from likewise.io.streams import Spool

IN_FLIGHT = 4
"""How many times its bytes a row group takes while it is encoded: rows, joined rows, pages, and what was freed last."""
SHARE = 3
"""Row groups may take the memory that texts had before, one in so many parts; results of the search have the rest."""


class SpooledPart(Ipc):
    """The file with the stream."""

    def cut_batch(self, batch: pa.RecordBatch, first: int) -> pa.RecordBatch | pa.Table:
        """Return rows with their texts cut; they are not written to an Arrow file, and may have any dictionaries."""
        return TablePart.cut_batch(self, batch, first)


class SpooledRows(TableFiles):
    """The rows of a stream; for the user they are an object in memory, but they need not fit there."""

    in_memory = False

    def __init__(self, spool: Spool, options: ReadOptions) -> None:
        size = spool.path.stat().st_size
        file = InputFile(spool.path, spool.kind, "part-0.parquet", spool.kind, "arrow", None, size, True)
        super().__init__([SpooledPart(file, options)], options)
        self._spool = spool

    @property
    def files(self) -> list[Path]:
        """No files of the user's."""
        return []

    @property
    def given(self) -> list[str]:
        """No paths that a later run could read again."""
        return []

    @property
    def total_bytes(self) -> None:
        """Not known, as of any object."""
        return

    @property
    def total_rows(self) -> int:
        """The number of rows."""
        return self._spool.rows

    def describe(self) -> list[dict[str, Any]]:
        """Return the kind of object and its number of rows."""
        return [{"object": self._spool.kind, "rows": self._spool.rows}]

    def write_kept(self, keep: Flags, directory: Path, threads: int = 1, tick: Tick = quiet) -> list[Path]:
        """Write the kept rows to one Parquet file."""
        target, schema = Path(directory) / "part-0.parquet", self._spool.schema
        groups = (partial(_encoded, batches, schema) for batches in _grouped(self.kept_batches(keep)))
        together = self.options.together(threads, SHARE * IN_FLIGHT * WRITTEN)
        with atomic(target, parents=True) as out:
            for rows in write_row_groups(groups, out, schema, CODEC, together):
                tick(rows)
        return [target]


def _encoded(batches: list[pa.RecordBatch], schema: pa.Schema) -> list[EncodedRows]:
    table = pa.Table.from_batches(batches, schema).combine_chunks()
    batches.clear()  # the task holds them until its result is written
    return [encode_rows(table, schema, CODEC)]


def _grouped(batches: Iterator[pa.RecordBatch]) -> Iterator[list[pa.RecordBatch]]:
    """Yield the batches of one row group after the other; where they are cut depends on the rows alone."""
    held: list[pa.RecordBatch] = []
    rows = size = 0
    for batch in batches:
        if held and (rows + batch.num_rows > ROWS or size + batch.nbytes > WRITTEN):
            yield held
            held, rows, size = [], 0, 0
        held.append(batch)
        rows, size = rows + batch.num_rows, size + batch.nbytes
    if held:
        yield held
