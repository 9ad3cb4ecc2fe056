"""The rows of vectors, with whatever else they have, of which some are kept: arrays, .npy files, and files and tables
with a column of vectors. The vectors themselves are read in search/vectors/load.py, as numbers and not as text."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
from numpy.typing import NDArray

from likewise.errors import ParameterError
from likewise.io.disk import atomic
from likewise.io.read import PARTS
from likewise.io.read.base import FileSource, Flags, ReadOptions, Source, Tick, check_flags, quiet
from likewise.io.read.find import InputFile
from likewise.io.read.memory import InMemory
from likewise.io.read.open import mapped_array
from likewise.io.read.tables import TableFiles

STEP = 1 << 14
"""Rows of an array that are copied at a time."""


class ArrayRows(FileSource):
    """Arrays, in memory or in .npy files, with one vector per row."""

    ids = "row"

    def __init__(self, arrays: Sequence[NDArray[Any]], files: Sequence[InputFile] = (), kind: str = "") -> None:
        self.aside = []
        self.inputs = list(files)
        self._arrays = arrays
        self._kind = kind

    @classmethod
    def of_files(cls, files: Sequence[InputFile]) -> ArrayRows:
        """Map .npy files to memory."""
        return cls([mapped_array(file) for file in files], files)

    def batches(self, threads: int = 1) -> Iterator[pa.RecordBatch]:
        """Yield nothing: there is no text."""
        return iter(())

    def _flags(self, keep: Flags) -> Iterator[tuple[NDArray[Any], Flags]]:
        check_flags(keep, sum(map(len, self._arrays)), "the input")
        start = 0
        for array in self._arrays:
            yield array, keep[start : start + len(array)]
            start += len(array)

    def kept(self, keep: Flags) -> Any:
        """Return the kept rows as one array, of the shape that they were given in."""
        parts = [array[flags] for array, flags in self._flags(keep)]
        return parts[0] if len(parts) == 1 else np.concatenate(parts)

    def kept_batches(self, keep: Flags) -> Iterator[pa.RecordBatch]:
        """Raise: arrays have no columns."""
        raise ParameterError("Rows of arrays are no Arrow batches: use kept, which is an array.")

    def write_kept(self, keep: Flags, directory: Path, threads: int = 1, tick: Tick = quiet) -> list[Path]:
        """Write the kept rows of each array to a .npy file, of the type that they have."""
        names = [file.relative for file in self.inputs] or ["part-0.npy"]
        targets = [Path(directory) / name for name in names]
        for target, (array, flags) in zip(targets, self._flags(keep), strict=True):
            shape = (int(flags.sum()), *array.shape[1:])
            head = {"descr": np.lib.format.dtype_to_descr(array.dtype), "fortran_order": False, "shape": shape}
            with atomic(target, parents=True) as out:
                np.lib.format.write_array_header_1_0(out, head)
                for start in range(0, len(array), STEP):
                    rows = array[start : start + STEP][flags[start : start + STEP]]
                    out.write(rows.tobytes())
                    tick(len(rows))
        return targets

    def describe(self) -> list[dict[str, Any]]:
        """Return name and size of each file, or the kind of object."""
        if not self.inputs:
            return [{"object": self._kind, "rows": sum(map(len, self._arrays))}]
        about = zip(self.inputs, self._arrays, strict=True)
        return [{"file": one.name, "format": "npy", "rows": len(array), "bytes": one.bytes} for one, array in about]


class WholeTable(InMemory):
    """A table in memory, of which every row counts as read."""

    def __init__(self, table: pa.Table, kind: str, options: ReadOptions) -> None:
        super().__init__(table, kind, options)
        self._good = np.ones(table.num_rows, bool)


class VectorFiles(TableFiles):
    """Files of rows, so many in each, all of which count as read."""

    def __init__(self, files: Sequence[InputFile], rows: Sequence[int], options: ReadOptions) -> None:
        super().__init__([PARTS[file.format](file, options) for file in files], options)
        self._counts = rows
        taken = [{"rows": count, "delivered": count, "dropped": []} for count in rows]
        self.restore({"taken": taken, "aside": [], "broken": [False] * len(rows), "integer_ids": False})

    def describe(self) -> list[dict[str, Any]]:
        """Return name, format, size and rows of each file."""
        return [{**one, "rows": rows} for one, rows in zip(super().describe(), self._counts, strict=True)]


def opened_rows(files: Sequence[InputFile], rows: Sequence[int], vector: str, owner: str) -> Source:
    """Return the rows of files of vectors, of which each has so many."""
    if files[0].path.suffix.lower() == ".npy":
        return ArrayRows.of_files(files)
    return VectorFiles(files, rows, vector_options(vector, owner))


def vector_options(vector: str, owner: str) -> ReadOptions:
    """Return the options for rows with a column of vectors."""
    return ReadOptions(text=vector, sets=True, owner=owner)
