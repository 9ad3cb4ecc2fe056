"""Documents of a group as one: a repository, a host or a book is compared, kept and removed as a whole.

The texts of a group are joined in the order of the input, with a blank line between them. They are put in a temporary
file while the rows are read, as the rows of a group may be anywhere in the input.
"""

from __future__ import annotations

import mmap
import os
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa

from likewise.base.arrays import Ints, TextChunk, to_arrow
from likewise.errors import ParameterError
from likewise.io.disk import disk_errors, temporary_file
from likewise.io.read.base import Flags, ReadOptions, Source, Tick, quiet
from likewise.io.read.columns import as_numbers
from likewise.io.read.open import check_row

BETWEEN = b"\n\n"
"""What stands between two documents of a group."""


class GroupedDocuments(Source):
    """The groups of another source, in the order of their first rows; the ids of its rows are the groups' names."""

    ids = "column"

    def __init__(self, rows: Source, options: ReadOptions) -> None:
        if rows.ids != "column":
            raise ParameterError(f"The 'group' parameter of {options.owner} names a column, and text files have none.")
        self.aside = []
        self.notes = rows.notes
        self._rows = rows
        self._options = options
        self._groups: Ints | None = None
        self._scores: dict[str, list[pa.Array]] = {}

    def batches(self, threads: int = 1) -> Iterator[pa.RecordBatch]:
        """Read all rows, then yield the groups."""
        self._scores = {}
        names = _GroupNames()
        groups, lengths = [np.zeros(0, np.int64)], [np.zeros(0, np.int64)]
        handle, path = temporary_file(self)
        with os.fdopen(handle, "wb") as out:
            for batch in self._rows.batches(threads):
                chunk = TextChunk.from_arrow(batch.column("text"))
                with disk_errors(path):
                    out.write(chunk.data[chunk.offsets[0] : chunk.offsets[-1]].data)
                lengths.append(np.diff(chunk.offsets))
                groups.append(names.numbers(batch.column("id")))
                for role in self._options.scores:
                    self._scores.setdefault(role, []).append(batch.column(role))
        self.aside = self._rows.aside
        self._groups = np.concatenate(groups)
        if len(names):
            yield from self._joined(path, np.concatenate(lengths), names.values())
        path.unlink()

    def _joined(self, path: Path, lengths: Ints, names: pa.Array) -> Iterator[pa.RecordBatch]:
        """Yield the groups, as many as make a batch."""
        groups, ends = self._row_groups(), np.cumsum(lengths)
        order = np.argsort(groups, kind="stable")
        bounds = np.searchsorted(groups[order], np.arange(len(names) + 1))
        sizes = np.add.reduceat(lengths[order], bounds[:-1]) + len(BETWEEN) * (np.diff(bounds) - 1)
        scores = {role: pa.chunked_array(parts) for role, parts in self._scores.items()}
        with open(path, "rb") as raw:
            stored = mmap.mmap(raw.fileno(), 0, access=mmap.ACCESS_READ) if ends[-1] else b""
            low = 0
            while low < len(names):
                check_row(f"{self._options.group} {names[low]}", int(sizes[low]), self._options.row_bytes)
                room = np.searchsorted(
                    np.cumsum(sizes[low : low + self._options.batch_rows]), self._options.batch_bytes
                )
                high = min(len(names), low + max(1, int(room)))
                texts = [
                    BETWEEN.join([stored[ends[row] - lengths[row] : ends[row]] for row in order[start:stop]])
                    for start, stop in zip(bounds[low:high], bounds[low + 1 : high + 1], strict=True)
                ]
                offsets = np.append(0, np.cumsum(sizes[low:high]))
                buffers = pa.py_buffer(offsets), pa.py_buffer(b"".join(texts))
                firsts = to_arrow(order[bounds[low:high]])
                columns = {"text": pa.LargeStringArray.from_buffers(high - low, *buffers)}
                columns["id"] = names[low:high]
                columns |= {role: score.take(firsts).combine_chunks() for role, score in scores.items()}
                yield pa.RecordBatch.from_arrays(list(columns.values()), list(columns))
                low = high

    def _row_groups(self) -> Ints:
        """Return the number of the group of each delivered row; a run that was resumed reads the rows again."""
        if self._groups is None:
            names = _GroupNames()
            parts = [names.numbers(batch.column("id")) for batch in self._rows.batches()]
            self._groups = np.concatenate([np.zeros(0, np.int64), *parts])
        return self._groups

    def _flags(self, keep: Flags) -> Flags:
        groups = self._row_groups()
        if len(keep) != int(groups.max(initial=-1)) + 1:
            raise ParameterError(f"There are {int(groups.max(initial=-1)) + 1} groups. Got {len(keep)} flags instead.")
        return keep[groups]

    def kept(self, keep: Flags) -> pa.Table:
        """Return the rows of the groups that are kept."""
        return self._rows.kept(self._flags(keep))

    def kept_batches(self, keep: Flags) -> Iterator[pa.RecordBatch]:
        """Yield the rows of the groups that are kept."""
        return self._rows.kept_batches(self._flags(keep))

    def write_kept(self, keep: Flags, directory: Path, threads: int = 1, tick: Tick = quiet) -> list[Path]:
        """Write the rows of the groups that are kept."""
        return self._rows.write_kept(self._flags(keep), directory, threads, tick)

    def finish_ids(self, ids: pa.ChunkedArray) -> pa.ChunkedArray:
        """Give the names of groups their final type."""
        return self._rows.finish_ids(ids)

    def finish_scores(self, scores: pa.ChunkedArray, role: str = "score") -> pa.ChunkedArray:
        """Return the best score of each group: the lowest where the keep policy takes the lowest, else the highest.

        Text that is numbers has the order of numbers, as in the keep policy.
        """
        rows = self._rows.finish_scores(pa.chunked_array(self._scores[role]), role)
        if pa.types.is_string(rows.type) or pa.types.is_large_string(rows.type):
            rows = as_numbers(rows)
        lowest = dict(zip(self._options.scores, self._options.lowest, strict=False)).get(role, False)
        best = "min" if lowest else "max"
        table = pa.table({"group": to_arrow(self._row_groups()), "score": rows})
        return table.group_by("group").aggregate([("score", best)]).sort_by("group").column(f"score_{best}")

    def describe(self) -> list[dict[str, Any]]:
        """Return what was read, for run.json."""
        return self._rows.describe()

    @property
    def total_bytes(self) -> int | None:
        """Size of the input on disk."""
        return self._rows.total_bytes

    @property
    def files(self) -> list[Path]:
        """The files that are read."""
        return self._rows.files

    @property
    def given(self) -> list[str]:
        """The paths, folders and globs that the user gave."""
        return self._rows.given

    def counts(self, keep: Flags) -> dict[str, int]:
        """Return the number of documents in all groups, and in those that are kept."""
        flags = self._flags(keep)
        return {"documents": len(flags), "documents_kept": int(flags.sum())}

    def state(self) -> dict[str, Any]:
        """Return the state of the source of the rows."""
        return self._rows.state()

    def restore(self, state: dict[str, Any]) -> None:
        """Restore the state that another process had after reading the same input."""
        self._rows.restore(state)
        self.aside = self._rows.aside

    def locate(self, row: int) -> tuple[str, int]:
        """Return the file or object that has the first row of a group, and its number there."""
        return self._rows.locate(int(np.flatnonzero(self._row_groups() == row)[0]))


class _GroupNames:
    """Names of groups, numbered as they first appear."""

    def __init__(self) -> None:
        self._known: dict[Any, int] = {}
        self._new: list[pa.Array] = []

    def __len__(self) -> int:
        return len(self._known)

    def numbers(self, names: pa.Array) -> Ints:
        """Return the number of each name."""
        encoded = names if pa.types.is_dictionary(names.type) else names.dictionary_encode()
        before = len(self._known)
        values = [self._known.setdefault(name, len(self._known)) for name in encoded.dictionary.to_pylist()]
        numbers = np.array(values, np.int64)
        fresh = np.flatnonzero(numbers >= before)
        if len(fresh):
            self._new.append(encoded.dictionary.take(to_arrow(fresh)))
        found: Ints = numbers[encoded.indices.to_numpy(zero_copy_only=False)]
        return found

    def values(self) -> pa.Array:
        """Return all names."""
        return pa.concat_arrays(self._new)
