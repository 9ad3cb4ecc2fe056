"""URLs, texts and links from files and objects: one URL per line, or columns of a table; invalid URLs are reported."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import dataclass, field
from typing import Any

import numpy as np
import pyarrow as pa

from likewise.apps.mirrors.addresses import Pages
from likewise.apps.mirrors.settings import OWNER
from likewise.base.arrays import Ints, to_arrow
from likewise.base.memory import MIB
from likewise.errors import FormatError, InputError
from likewise.io.read import Aside, Files, ReadOptions, Source, open_source
from likewise.io.read.find import files_of

SKIP = "correct it, or use on_error='skip' to set such rows aside"
BLANK = "it is blank"


@dataclass
class UrlReader:
    """Reads URLs, numbers their pages, and records what was set aside.

    rows: rows read, without blank lines. named: whether a column was read, not just text files or lists.
    """

    pages: Pages
    on_error: str = "stop"
    encoding_errors: str = "strict"
    threads: int = 1
    batch_bytes: int = 16 * MIB
    aside: list[Aside] = field(default_factory=list)
    inputs: list[dict[str, Any]] = field(default_factory=list)
    notes: list[str] = field(default_factory=list)
    rows: int = 0
    blank: int = 0
    named: bool = False

    def urls(self, source: Any, column: str, tick: Callable[[int], None]) -> Iterator[Ints]:
        """Yield the page numbers of a list of URLs, in input order."""
        for name, opened in self._opened(source, column, None):
            for row, batch in self._batches(opened):
                numbers, bad = self.pages.add(batch.column("text"))
                self._refuse(name, opened, row, bad, batch.column("text"))
                self.blank += int((numbers == -2).sum())
                self.rows += int((numbers > -2).sum())
                tick(batch.num_rows)
                yield numbers[numbers >= 0]

    def rows_of(self, source: Any, column: str, tick: Callable[[int], None]) -> Ints:
        """Return the page number of every row of a table with a column of URLs, -1 for a row that was set aside."""
        parts = [np.zeros(0, np.int64)]
        for name, opened in self._opened(source, column, column):
            numbers = [self._column(name, opened, row, batch, tick) for row, batch in self._batches(opened)]
            delivered = np.concatenate([np.zeros(0, np.int64), *numbers])
            positions = opened.positions()
            taken = opened.state().get("taken")  # what is set aside may be many rows: a damaged row group
            rows = opened.total_rows if taken is None else sum(one["rows"] for one in taken)
            whole = np.full(len(delivered) if rows is None else rows, -1, np.int64)
            whole[np.arange(len(delivered)) if positions is None else positions] = delivered
            parts.append(whole)
        return np.concatenate(parts)

    def texts(self, source: Any, column: str, text: str, tick: Callable[[int], None]) -> Iterator[tuple[Ints, Any]]:
        """Yield page numbers and the texts of these pages."""
        for name, opened in self._opened(source, text, column):
            for row, batch in self._batches(opened):
                numbers = self._column(name, opened, row, batch, tick)
                good = np.flatnonzero(numbers >= 0)
                yield numbers[good], batch.column("text").take(to_arrow(good))

    def _column(self, name: str | None, opened: Source, row: int, batch: Any, tick: Callable[[int], None]) -> Ints:
        """Return the page numbers of the URLs in the column `id` of a batch; blank ones are invalid."""
        column = _text(batch.column("id"))
        numbers, bad = self.pages.add(column)
        bad |= {int(i): BLANK for i in np.flatnonzero(numbers == -2)}
        self._refuse(name, opened, row, bad, column)
        self.rows += batch.num_rows
        tick(batch.num_rows)
        return np.maximum(numbers, -1)

    def links(self, source: Any, here: str, there: str, tick: Callable[[int], None]) -> Iterator[tuple[Ints, Ints]]:
        """Yield the page numbers of the sources and of the targets of links."""
        for name, opened in self._opened(source, here, there):
            for row, batch in self._batches(opened):
                columns = batch.column("text"), _text(batch.column("id"))
                (left, bad), (right, worse) = (self.pages.add(column) for column in columns)
                for numbers, reasons in ((left, bad), (right, worse)):
                    reasons |= {int(i): BLANK for i in np.flatnonzero(numbers == -2)}
                for reasons, column in ((bad, columns[0]), (worse, columns[1])):
                    self._refuse(name, opened, row, reasons, column)
                self.rows += batch.num_rows
                tick(batch.num_rows)
                good = (left >= 0) & (right >= 0)
                yield left[good], right[good]

    def _opened(self, source: Any, text: str, id: str | None) -> Iterator[tuple[str | None, Source]]:
        """Open files one by one, so that an error can name file and row; or open an object."""
        files = files_of(source)
        more: dict[str, Any] = {"on_error": self.on_error, "encoding_errors": self.encoding_errors, "lines": True}
        more |= {"owner": OWNER, "batch_bytes": self.batch_bytes}
        if files is None:
            if isinstance(source, list | tuple) and all(isinstance(one, str) for one in source):
                source = pa.array(source, pa.large_string())
            bare = isinstance(source, pa.Array | pa.ChunkedArray)
            self.named |= not bare
            opened = open_source(source, ReadOptions(text="text" if bare else text, id=id, **more))
            yield None, opened
            self._note(opened)
            return
        found = files.find()
        self.notes += [found.plain_note] if found.plain_note else []
        for file in found.files:
            if id is not None and not file.is_table:
                columns = f"'{text}' and '{id}'" if text != id else f"'{text}'"
                raise InputError(f"{file.name}: a table with columns {columns} is needed, such as CSV, TSV or Parquet")
            self.named |= file.is_table
            options = ReadOptions(text=text if file.is_table else "text", id=id, **more)
            opened = open_source(Files([file.path]), options)
            yield file.name if file.is_table else f"{file.name}\n", opened
            self._note(opened)

    def describe(self) -> list[dict[str, Any]]:
        """Return what was read, for run.json."""
        return self.inputs

    def _note(self, opened: Source) -> None:
        self.aside += opened.aside
        self.inputs += opened.describe()

    def _batches(self, opened: Source) -> Iterator[tuple[int, Any]]:
        row = 0
        for batch in opened.batches(self.threads):
            yield row, batch
            row += batch.num_rows

    def _refuse(self, name: str | None, opened: Source, first: int, bad: dict[int, str], column: Any) -> None:
        """Raise for the first invalid URL, or set all of them aside."""
        broken = len(opened.aside)
        for i, reason in sorted(bad.items()):
            row = first + i + broken  # earlier rows that could not be read at all
            shown = str(column[i].as_py())
            shown = shown if len(shown) <= 80 else f"{shown[:77]}…"
            lines = name is not None and name.endswith("\n")
            place = row + 1 if lines else row
            if self.on_error == "stop":
                where = f"row {row}" if name is None else f"{name[:-1]}:{place}" if lines else f"{name}: row {row}"
                raise FormatError(f"{where}: '{shown}' is not the URL of a page: {reason}; {SKIP}")
            self.aside.append(Aside((name or "rows").rstrip("\n"), place, f"'{shown}': {reason}"))


def _text(column: Any) -> Any:
    if pa.types.is_string(column.type) or pa.types.is_large_string(column.type):
        return column
    return column.cast(pa.large_string())
