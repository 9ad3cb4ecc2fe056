"""Files of rows as one source: the same steps for every format.

A *part* is one file. It knows how to read its schema, how to read its rows batch by batch, how to look at some of them,
and how to write some of them again. What concerns several files is here: their order, the types of the ids, the rows
that were set aside.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Callable, Iterable, Iterator, Sequence
from copy import copy
from dataclasses import replace
from functools import cached_property, partial
from pathlib import Path
from typing import Any, Self

import numpy as np
import pyarrow as pa
from numpy.typing import NDArray

from likewise.base.arrays import Texts
from likewise.base.parallel import in_order, run_ahead
from likewise.errors import InputError
from likewise.io.read.base import Aside, FileSource, Flags, ReadOptions, Rows, Tick, check_flags, quiet
from likewise.io.read.columns import CleanBatch, Types, as_integers, as_numbers, cut, decide, stack
from likewise.io.read.cuts import TextCuts
from likewise.io.read.find import InputFile
from likewise.io.read.open import input_errors, unpacked
from likewise.io.read.stretches import Stretch

Task = Callable[[], Iterable[CleanBatch]]
"""Reads some rows; returns a list, or a generator for rows that need much memory."""


class TablePart(ABC):
    """One file of rows. Row numbers count all rows of the file, delivered or not."""

    seekable = False
    """Whether `kept_tables` passes over row groups of which no row is kept."""

    def __init__(self, file: InputFile, options: ReadOptions) -> None:
        self.file = file
        self.options = options
        self.types = Types()
        self.broken = False
        self.cuts: TextCuts | None = None
        self.held: tuple[Texts, int] | None = None  # texts, and which of them is the first of the file

    @cached_property
    def _path(self) -> Path:
        """The file, or a temporary one with its decompressed content."""
        with input_errors(self.file):
            return unpacked(self.file, self)

    @abstractmethod
    def peek(self) -> Types:
        """Return the types of id and score (None: not declared); raise if the file cannot be used."""

    @abstractmethod
    def tasks(self) -> Iterator[Task]:
        """Yield tasks that each read some rows; together, in order, they cover the file."""

    @abstractmethod
    def table(self, keep: Flags) -> pa.Table:
        """Return all columns of the rows whose flag is set."""

    def kept_tables(self, keep: Flags) -> Iterator[pa.Table]:
        """Yield what `table` returns, some rows at a time; where no types are declared, each with its own."""
        yield self.table(keep)

    @abstractmethod
    def write(self, keep: Flags, target: Path, tick: Tick = quiet, threads: int = 1) -> None:
        """Write the rows whose flag is set, in the same format: the same bytes with any number of threads."""

    @abstractmethod
    def look(self, shares: Sequence[float], size: int) -> Iterator[Stretch]:
        """Read rows of the file from these places (0 to 1) on, about `size` bytes at each."""

    @abstractmethod
    def rewrite_cost(self) -> tuple[float, float]:
        """Return the seconds one core takes to write one row again, and the bytes the row takes.

        Lines and records need not be parsed again, and the time includes reading them; for other formats it does not.
        """

    def finished(self) -> None:
        """Raise if what was read can no longer be trusted."""
        return

    @property
    def known_rows(self) -> int | None:
        """The number of rows, if the file declares it."""
        return None

    @property
    def known_types(self) -> pa.Schema | None:
        """The columns and their types, if the file declares them."""
        return None

    def row_groups(self) -> list[int] | None:
        """Return the number of rows of every row group or batch, if the file declares it."""
        return None

    def text_size(self) -> int | None:
        """Return about how many bytes of text the file has, if it declares that."""
        return None

    def lenient(self) -> Self:
        """Return the same file, for a look at it in which a broken row is no error."""
        twin = copy(self)
        twin.options = replace(self.options, on_error="skip")
        return twin

    def reason(self, error: InputError) -> str:
        """Return what an error says, without the name of the file."""
        return str(error).removeprefix(f"{self.file.name}: ")

    def dropped(self, first: int, rows: int, error: InputError) -> CleanBatch:
        """Set consecutive rows aside as a whole."""
        reason = f"rows {first} to {first + rows - 1}: {self.reason(error)}"
        return CleanBatch(None, rows, np.arange(rows), [Aside(self.file.name, first, reason)])

    def cut_batch(self, batch: pa.RecordBatch | pa.Table, first: int) -> pa.RecordBatch | pa.Table:
        """Return rows of the file, of which the first has the number `first`, with their texts cut."""
        cuts = None if self.cuts is None else self.cuts.between(first, first + batch.num_rows)
        if not cuts:
            return batch
        table = batch if isinstance(batch, pa.Table) else pa.Table.from_batches([batch])
        return cuts.cut_table(table, self.options.text, self.options.encoding_errors)

    def check_rows(self, rows: int, keep: Flags) -> None:
        """Raise if the file does not have the rows it had when it was read."""
        if rows != len(keep):
            raise InputError(
                f"{self.file.name}: the file had {len(keep)} rows when it was read and now has {rows};"
                " do not change it while likewise runs, and run again"
            )


class TableFiles(FileSource):
    """One or more files of rows, of any formats; `usable` are those that can be read."""

    def __init__(self, parts: list[TablePart], options: ReadOptions) -> None:
        self.options = options
        self.ids = "row" if options.id is None else "column"
        self.aside = []
        self._early: list[Aside] = []
        self._parts = parts
        self.inputs = [part.file for part in parts]
        self.usable = self._peeked()
        self._taken: list[_RowsRead] | None = None
        self._id_strings = False
        self._id_type: pa.DataType | None = None

    def _peeked(self) -> list[TablePart]:
        usable: list[tuple[TablePart, Types]] = []
        errors: list[InputError] = []
        for part in self._parts:
            try:
                usable.append((part, part.peek()))
            except InputError as error:
                if not self.options.skip:
                    raise
                errors.append(error)
                self._early.append(Aside(part.file.name, -1, part.reason(error)))
        if not usable:
            raise errors[0]
        found = [types for _, types in usable]
        identity, self._open_ids = None, False
        if self.options.id is not None:
            identity, self._open_ids = decide([types.id for types in found], numbers=False)
        scores = {
            role: decide([types.scores.get(role) for types in found], numbers=True) for role in self.options.scores
        }
        self._open_scores = {role: undeclared for role, (_, undeclared) in scores.items()}
        for part, _ in usable:
            part.types = Types(identity, {role: kind for role, (kind, _) in scores.items()})
        return [part for part, _ in usable]

    def _tasks(self) -> Iterator[Callable[[], tuple[int, Iterable[CleanBatch]]]]:
        for number, part in enumerate(self.usable):
            try:
                for task in part.tasks():
                    yield partial(_numbered, number, task)
            except InputError as error:
                if not self.options.skip:
                    raise
                part.broken = True
                rest = Aside(part.file.name, -1, part.reason(error))
                yield partial(_numbered, number, partial(list, [CleanBatch(None, 0, aside=[rest])]))

    def batches(self, threads: int = 1) -> Iterator[pa.RecordBatch]:
        """Yield the delivered rows of all files, in order."""
        self.aside = list(self._early)
        self._taken = None
        self._id_strings = False
        taken = [_RowsRead() for _ in self.usable]
        for number, batches in run_ahead(self._tasks(), threads):
            for batch in batches:
                taken[number].add(batch)
                self.aside.extend(batch.aside)
                self._id_strings |= batch.id_strings
                if batch.batch is not None:
                    yield from cut(batch.batch, self.options)
        for part in self.usable:
            part.finished()
        self._taken = taken

    def state(self) -> dict[str, Any]:
        """Return which rows of which files were delivered, and what was set aside."""
        return {
            "taken": [one.state() for one in self._taken or []],
            "aside": [vars(entry) for entry in self.aside],
            "broken": [part.broken for part in self.usable],
            "integer_ids": self._id_type == pa.int64(),
        }

    def restore(self, state: dict[str, Any]) -> None:
        """Restore the state that another process had after reading the same files."""
        self._taken = [_RowsRead.restored(one) for one in state["taken"]]
        self.aside = [Aside(**entry) for entry in state["aside"]]
        for part, broken in zip(self.usable, state["broken"], strict=True):
            part.broken = broken
        self._id_type = pa.int64() if state["integer_ids"] else None

    def positions(self) -> NDArray[np.int64] | None:
        """Return the row numbers of the delivered rows, counted over all files."""
        taken = self._taken or []
        if all(part.delivered == part.rows for part in taken):
            return None
        return np.flatnonzero(np.concatenate([part.spread(np.ones(part.delivered, bool)) for part in taken]))

    def locate(self, row: int) -> tuple[str, int]:
        """Return the name of the file that has a delivered row, and the row's number there."""
        for part, read in zip(self.usable, self._taken or [], strict=False):
            if row < read.delivered:
                return part.file.name, read.position(row)
            row -= read.delivered
        raise IndexError(row)

    def finish_ids(self, ids: pa.ChunkedArray) -> pa.ChunkedArray:
        """Turn the ids into int64 if no file declares their type and every one is an integer."""
        self._id_type = ids.type
        if self._open_ids and not self._id_strings:
            integers = as_integers(ids)
            if integers is not None:
                self._id_type = pa.int64()
                return integers
        return ids

    def finish_scores(self, scores: pa.ChunkedArray, role: str = "score") -> pa.ChunkedArray:
        """Turn scores whose type no file declares into numbers if all are."""
        return as_numbers(scores) if self._open_scores[role] else scores

    def _flags(self, keep: Flags) -> Iterator[tuple[TablePart, Flags]]:
        """Yield each file with one flag for each of its rows, delivered or not."""
        if self._taken is None:
            for _ in self.batches():
                pass
        taken = self._taken or []
        check_flags(keep, sum(one.delivered for one in taken), "the input")
        start = 0
        for part, one in zip(self.usable, taken, strict=True):
            yield part, one.spread(keep[start : start + one.delivered])
            start += one.delivered

    def cut_texts(self, cuts: TextCuts | None) -> None:
        """Leave these passages out of the texts that are returned and written from now on."""
        start = 0
        for part, one in zip(self.usable, self._taken or [], strict=True):
            here = None if cuts is None else cuts.between(start, start + one.delivered)
            if here:
                rows = np.flatnonzero(one.spread(np.ones(one.delivered, bool)))[here.rows]
                here = here.moved(rows)
            part.cuts = here or None
            start += one.delivered

    def hold_texts(self, texts: Texts | None) -> None:
        """Let files of which every row was delivered, and every text as it is there, not be read for their texts.

        Texts that do not fit in memory are packed for speed, files for size: those are read several times as fast.
        """
        same = not self.options.html and self.options.encoding_errors == "strict"
        start = 0
        for part, one in zip(self.usable, self._taken or [], strict=True):
            part.held = (texts, start) if texts and same and one.delivered == one.rows else None
            start += one.delivered

    def kept(self, keep: Flags) -> pa.Table:
        """Return all columns of the kept rows; the id column has the type the ids were given at the end."""
        return self._with_ids(stack([part.table(flags) for part, flags in self._flags(keep)]))

    def kept_batches(self, keep: Flags) -> Iterator[pa.RecordBatch]:
        """Yield what `kept` returns. Files that declare no types are read twice: the first time to find these."""
        parts = list(self._flags(keep))
        kinds: dict[pa.Schema, None] = {}
        for part, flags in parts:
            declared = part.known_types
            for table in part.kept_tables(flags) if declared is None else [declared.empty_table()]:
                kinds[self._with_ids(table).schema] = None
        if not kinds:
            return
        schema = stack([one.empty_table() for one in kinds]).schema
        for part, flags in parts:
            for table in part.kept_tables(flags):
                table = self._with_ids(table)
                if not table.schema.equals(schema):
                    table = stack([schema.empty_table(), table]).cast(schema)
                yield from table.to_batches()

    def _with_ids(self, table: pa.Table) -> pa.Table:
        """Return a table with ids of the type that they have in the end."""
        name = self.options.id
        if name is not None and self._id_type == pa.int64() and table.schema.field(name).type == pa.string():
            place = table.schema.get_field_index(name)
            table = table.set_column(place, name, table.column(name).cast(pa.int64()))
        return table

    def write_kept(self, keep: Flags, directory: Path, threads: int = 1, tick: Tick = quiet) -> list[Path]:
        """Write the kept rows of each file to a file of the same relative name, also when none is left."""
        parts = list(self._flags(keep))
        targets = [Path(directory) / part.file.relative for part, _ in parts]
        if len(parts) == 1:
            parts[0][0].write(parts[0][1], targets[0], tick, threads)
            parts[0][0].finished()
            return targets
        each = max(1, threads // len(parts))

        def write(task: tuple[tuple[TablePart, Flags], Path]) -> int:
            (part, flags), target = task
            part.write(flags, target, threads=each)
            part.finished()
            return len(flags)

        for done in in_order(write, zip(parts, targets, strict=True), threads):
            tick(done)
        return targets

    @property
    def seekable(self) -> bool:
        """Whether all files are, with texts as they are delivered."""
        raw = not self.options.html and self.options.encoding_errors == "strict"
        return raw and all(part.seekable and not part.cuts for part in self.usable)

    def some_texts(self, keep: Flags) -> Iterator[Any]:
        """Read the row groups that have any of these rows."""
        for batch in self.kept_batches(keep):
            for text in batch.column(self.options.text):
                yield text.as_py()

    @property
    def total_rows(self) -> int | None:
        """The number of rows of all files, if all of them declare it."""
        known = [part.known_rows for part in self.usable]
        return None if None in known else sum(rows for rows in known if rows is not None)

    def describe(self) -> list[dict[str, Any]]:
        """Return name, format and size of each file."""
        keys = ("name", "format", "compression", "bytes")
        return [{key.replace("name", "file"): getattr(file, key) for key in keys} for file in self.inputs]


class _RowsRead:
    """How many rows of a file were read, and which of them were not delivered."""

    def __init__(self) -> None:
        self.rows = 0
        self.delivered = 0
        self._dropped: list[Rows] = []

    def state(self) -> dict[str, Any]:
        dropped = np.concatenate(self._dropped).tolist() if self._dropped else []
        return {"rows": self.rows, "delivered": self.delivered, "dropped": dropped}

    @classmethod
    def restored(cls, state: dict[str, Any]) -> _RowsRead:
        taken = cls()
        taken.rows, taken.delivered = state["rows"], state["delivered"]
        if state["dropped"]:
            taken._dropped = [np.array(state["dropped"], np.int64)]
        return taken

    def add(self, batch: CleanBatch) -> None:
        if len(batch.dropped):
            self._dropped.append(batch.dropped + self.rows)
        self.rows += batch.rows
        self.delivered += batch.rows - len(batch.dropped)

    def position(self, row: int) -> int:
        """Return the number of a delivered row among all rows of the file."""
        return row if not self._dropped else int(np.flatnonzero(self.spread(np.ones(self.delivered, bool)))[row])

    def spread(self, keep: Flags) -> Flags:
        if not self._dropped:
            return keep
        flags = np.ones(self.rows, bool)
        flags[np.concatenate(self._dropped)] = False
        flags[flags] = keep
        return flags


def _numbered(number: int, task: Task) -> tuple[int, Iterable[CleanBatch]]:
    return number, task()
