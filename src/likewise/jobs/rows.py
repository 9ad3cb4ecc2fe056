"""Tables of results: made as a whole, or some rows at a time so that they need not be in memory."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator
from importlib import import_module
from pathlib import Path
from typing import Any, ClassVar

import numpy as np
import pyarrow as pa
from numpy.typing import NDArray

from likewise.base import checks
from likewise.base.arrays import to_arrow
from likewise.base.extras import need
from likewise.io.write import ROWS, write_batches


class Tables:
    """A result whose tables, the attributes that `files` names, can be had as DataFrames."""

    files: ClassVar[dict[str, str]] = {}

    def to_pandas(self, name: str | None = None) -> Any:
        """Return the table of this name as a pandas DataFrame; without a name, the only one, or a dictionary of all."""
        return self._frames("to_pandas", name, "pandas", lambda table: table.to_pandas())

    def to_polars(self, name: str | None = None) -> Any:
        """Return the table of this name as a polars DataFrame; without a name, the only one, or a dictionary of all.

        polars reads Arrow's memory in place, without a copy.
        """
        return self._frames("to_polars", name, "polars", lambda table: import_module("polars").from_arrow(table))

    def _frames(self, owner: str, name: str | None, library: str, convert: Callable[[Any], Any]) -> Any:
        """Convert one table, None if this run has none of that name, or all that there are."""
        names = [*self._table_names()]
        if name is None and len(names) == 1:
            name = names[0]
        if name is not None:
            checks.choice(owner, "name", name, names)
        need(owner, library)
        tables = {one: self._arrow_table(one) for one in (names if name is None else [name])}
        frames = {one: None if table is None else convert(table) for one, table in tables.items()}
        return frames[name] if name is not None else {one: made for one, made in frames.items() if made is not None}

    def _table_names(self) -> Iterable[str]:
        """Return the attributes that have tables."""
        return self.files.values()

    def _arrow_table(self, name: str) -> Any:
        """Return one of the tables as an Arrow table."""
        return getattr(self, name)


class Rows:
    """A table that is made some rows at a time, so that it need not be in memory."""

    def __init__(self, length: int, columns: dict[str, Callable[[slice], Any]]) -> None:
        self._length = length
        self._columns = columns

    def __len__(self) -> int:
        return self._length

    def batches(self) -> Iterator[pa.RecordBatch]:
        """Yield the rows in batches of the size of a row group."""
        for start in range(0, self._length, ROWS):
            yield self._batch(slice(start, min(start + ROWS, self._length)))

    def _batch(self, part: slice) -> pa.RecordBatch:
        columns = [make(part) for make in self._columns.values()]
        return pa.RecordBatch.from_arrays([_array(column) for column in columns], list(self._columns))

    def table(self) -> pa.Table:
        """Return the whole table."""
        return pa.Table.from_batches(self.batches(), self._batch(slice(0, 0)).schema).combine_chunks()

    def write(self, path: Path) -> None:
        """Write the table, in the format of the extension of the path."""
        write_batches(self.batches(), self._batch(slice(0, 0)).schema, path)


def _array(column: Any) -> pa.Array:
    return column.combine_chunks() if isinstance(column, pa.ChunkedArray) else column


def pair_table(names_a: Any, names_b: Any, similarity: NDArray[np.float64]) -> Any:
    """Return a table of pairs."""
    return pa.table({"id_a": names_a, "id_b": names_b, "similarity": to_arrow(similarity)})


def distances_table(names_a: Any, names_b: Any, distance: Any) -> Any:
    """Return a table of pairs with their distances."""
    return pa.table({"id_a": names_a, "id_b": names_b, "distance": to_arrow(np.asarray(distance, np.float64))})


def estimate_table(names_a: Any, names_b: Any, similarity: NDArray[np.float64], error: NDArray[np.float64]) -> Any:
    """Return a table of pairs whose similarity is estimated."""
    numbers = {"estimated_similarity": to_arrow(similarity), "standard_error": to_arrow(error)}
    return pa.table({"id_a": names_a, "id_b": names_b, **numbers})
