"""Tables of results: made as a whole, or some rows at a time so that they need not be in memory."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
from numpy.typing import NDArray

from likewise.base.arrays import to_arrow
from likewise.io.write import ROWS, write_batches


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
