"""CSV and TSV: the first record names the columns, every value is a string.

Records end at line feeds outside quotes. Where all quotes are regular, these are found by counting quotes, and Arrow
reads the values; elsewhere a small scanner goes field by field, as Python's csv module does, which says neither where a
record ends in the file nor, of bytes that are not UTF-8, in which one they are.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator
from functools import cache

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.csv
from numpy.typing import NDArray

from likewise.errors import FormatError, TextError
from likewise.io.read.base import Flags, ReadOptions, Rows
from likewise.io.read.columns import REPLACE, SKIP, CleanBatch, Trouble, Types, check_columns, stack, utf8
from likewise.io.read.find import InputFile
from likewise.io.read.open import BOM
from likewise.io.read.records import PIECE, RecordBlock, RecordPart, Row, Split, split_in_pieces

OTHERS = ";\t|"
"""What separates fields of CSV files instead of commas: spreadsheets write semicolons where numbers have commas."""
QUOTED = re.compile(rb'"[^"]*"')
QUOTE, FEED, RETURN = b'"\n\r'
STEP = 1 << 22
"""Bytes searched for quotes and line ends at a time, which bounds the memory of the masks."""

Bytes = NDArray[np.uint8]


class Delimited(RecordPart):
    """One CSV or TSV file."""

    names: list[str]

    def __init__(self, file: InputFile, options: ReadOptions) -> None:
        super().__init__(file, options)
        self.delimiter = "\t" if file.format == "tsv" else ","

    def peek(self) -> Types:
        """Read the names of the columns."""
        next(self.blocks(1 << 16), None)
        check_columns(self.file.name, self.names, self.options)
        return Types()

    def head_size(self, data: bytes) -> int:
        """Return the length of byte order mark and column names."""
        start = len(BOM) if data.startswith(BOM) else 0
        if self.file.format != "tsv":
            self.delimiter = separator_of(data)
        for end, fields in self._scan(data, start):
            if fields == [b""]:
                continue
            try:
                self.names = [field.decode() for field in fields]
            except UnicodeDecodeError as error:
                raise FormatError(f"{self.file.name}: the names of the columns are not valid UTF-8") from error
            if any("\r" in name for name in self.names):
                raise FormatError(
                    f"{self.file.name}: the lines end with a carriage return only; let them end with a line feed"
                )
            return end
        raise FormatError(f"{self.file.name}: the file has no line with the names of the columns; add one")

    def _scan(self, data: bytes, start: int = 0) -> Iterator[tuple[int, list[bytes]]]:
        """Yield the end and the fields of each record; stop before one whose quotes are not closed."""
        fields: list[bytes] = []
        match, place = _fields(self.delimiter).match, start
        while place < len(data) or fields:
            found = match(data, place)
            if found is None or (found[1] is None and data[place : place + 1] == b'"'):
                return
            quoted, rest, stop = found.groups()
            if stop in (b"\n", b""):
                rest = rest.removesuffix(b"\r")
            fields.append(rest if quoted is None else quoted.replace(b'""', b'"') + rest)
            place = found.end()
            if stop in (b"\n", b""):
                yield place, fields
                fields = []

    def split(self, data: bytes, last: bool) -> Split:
        """Split at line feeds outside quotes; empty lines are not rows."""

        def piece(used: int) -> tuple[Split, int]:
            stop = data.rfind(b"\n", used, used + PIECE) + 1 or len(data)
            found = self._split(data[used:stop], last and stop == len(data))
            if not found.used and stop < len(data):  # a long record, or one with an open quote
                found = self._split(data[used:], last)
            return found, used + found.used

        return split_in_pieces(data, piece)

    def _split(self, data: bytes, last: bool) -> Split:
        if not data.strip(b"\r\n"):
            return Split(np.empty(0, np.int64), np.empty(0, np.int64), len(data))
        view = np.frombuffer(data, np.uint8)
        ends = regular_ends(view, ord(self.delimiter), last)
        plain = ends is not None
        if ends is None:
            ends = np.array([end for end, _ in self._scan(data)], np.int64)
            if not last and len(ends) and view[ends[-1] - 1] != FEED:
                ends = ends[:-1]
        used = int(ends[-1]) if len(ends) else 0
        if last and plain and data.count(b'"', used) % 2 == 0 and used < len(data):
            used = len(data)
            ends = np.append(ends, used)
        starts = np.concatenate((np.zeros(min(1, len(ends)), np.int64), ends[:-1]))
        size, first, final = ends - starts, view[starts], view[ends - 1]
        blank = (first == FEED) | ((first == RETURN) & ((size == 1) | ((size == 2) & (final == FEED))))
        return Split(starts[~blank], ends[~blank], used, plain)

    def row_start(self, data: bytes) -> int | None:
        """Return where the first record starts in data from the middle of a file.

        The data may begin within quotes or not: in only one of the two cases every quote is where it belongs.
        """
        comma = ord(self.delimiter)
        outside = regular_ends(np.frombuffer(data, np.uint8), comma, False)
        inside = regular_ends(np.frombuffer(b'"' + data, np.uint8), comma, False)
        if outside is not None and inside is not None:  # there are no quotes: do the lines look like records?
            lines = data[data.find(b"\n") + 1 : data.rfind(b"\n") + 1]
            if lines and self._arrow(lines, [0]) is not None:
                inside = None
            else:
                outside = None
        if outside is not None:
            return int(outside[0]) if len(outside) else len(data)
        if inside is not None:
            return int(inside[0]) - 1 if len(inside) else len(data)
        return None

    def parse(self, block: RecordBlock) -> CleanBatch:
        """Read a block with Arrow, or field by field if Arrow cannot."""
        if not block.rows:
            return CleanBatch(None, 0)
        options = self.options
        if block.split.plain:
            table = self._arrow(block.data, [self.names.index(name) for name in options.columns])
            if table is not None and table.num_rows == block.rows:
                roles = {"text": options.text, "id": options.id, **options.scores}
                columns = {role: self._of(table, name) for role, name in roles.items() if name is not None}
                if "id" not in columns or not pc.any(pc.equal(columns["id"], "")).as_py():
                    batch = pa.RecordBatch.from_arrays(list(columns.values()), list(columns))
                    return CleanBatch(batch, block.rows)
        return self.of_rows(block, map(self._row, self._records(block.data)))

    def _of(self, table: pa.Table, name: str) -> pa.Array:
        column = table.column(f"{self.names.index(name)}")
        return column.chunk(0) if column.num_chunks == 1 else column.combine_chunks()

    def _arrow(self, data: bytes | bytearray, wanted: list[int]) -> pa.Table | None:
        """Return the wanted columns, called by their number; None if Arrow finds anything unusual."""
        if data.startswith(BOM):
            return None
        names = [f"{i}" for i in range(len(self.names))]
        include = [names[i] for i in wanted]
        csv = pyarrow.csv
        try:
            return csv.read_csv(
                pa.BufferReader(data),
                csv.ReadOptions(use_threads=False, block_size=max(len(data) + 1, 64), column_names=names),
                csv.ParseOptions(delimiter=self.delimiter, newlines_in_values=True),
                csv.ConvertOptions(
                    include_columns=include,
                    column_types={name: pa.string() for name in include},
                    strings_can_be_null=False,
                ),
            )
        except (pa.ArrowException, OverflowError):
            return None

    def _records(self, data: bytes) -> Iterator[list[bytes]]:
        """Yield the fields of the records that are not empty lines."""
        start = 0
        for end, fields in self._scan(data):
            if fields != [b""] or data[start:end].strip(b"\r\n"):
                yield fields
            start = end

    def cut_row(self, data: bytes, cut: Callable[[bytes], bytes]) -> bytes:
        """Return a record with its text cut; its other fields stay as they are."""
        place = 0
        for name in self.names:
            found = _fields(self.delimiter).match(data, place)
            assert found is not None
            quoted, rest, stop = found.groups()
            if stop in (b"\n", b""):
                rest = rest.removesuffix(b"\r")
            if name == self.options.text:
                text = rest if quoted is None else quoted.replace(b'""', b'"') + rest
                text = cut(text.decode(errors=self.options.encoding_errors).encode())
                if quoted is not None or any(mark in text for mark in (self.delimiter.encode(), b'"', b"\n", b"\r")):
                    text = b'"' + text.replace(b'"', b'""') + b'"'
                return data[:place] + text + data[found.start(2) + len(rest) :]
            place = found.end()
        return data

    def _row(self, fields: list[bytes]) -> Row | Trouble:
        if len(fields) != len(self.names):
            return Trouble(FormatError, f"{len(fields)} fields where {len(self.names)} are expected")
        options, values = self.options, []
        for role, name in (("text", options.text), ("id", options.id), *options.scores.items()):
            value, trouble = (None, None) if name is None else utf8(fields[self.names.index(name)], options)
            if trouble is not None and role != "text":
                return Trouble(TextError, f"the {role} is not valid UTF-8", f"{REPLACE}, {SKIP}")
            if trouble is not None:
                return trouble
            values.append(value)
        return (
            Trouble(FormatError, "the id is empty") if values[1] == "" else Row(values[0], values[1], tuple(values[2:]))
        )

    def table(self, keep: Flags) -> pa.Table:
        """Return the kept records; every column holds strings."""
        return stack([self.table_of(b""), *map(self.table_of, self.kept_stretches(keep))])

    def table_of(self, data: bytes | bytearray) -> pa.Table:
        """Return records as a table of strings."""
        places = range(len(self.names))
        view = np.frombuffer(data, np.uint8)
        if len(data) and regular_ends(view, ord(self.delimiter), True) is not None:
            table = self._arrow(data, list(places))
            if table is not None:
                return pa.Table.from_arrays(table.columns, self.names)
        records = list(self._records(bytes(data)))
        columns = [[fields[place].decode(errors="replace") for fields in records] for place in places]
        return pa.Table.from_arrays([pa.array(column, pa.string()) for column in columns], self.names)


@cache
def _fields(delimiter: str) -> re.Pattern[bytes]:
    """Match one field: perhaps quoted text, then other text, then what ends it."""
    end = re.escape(delimiter.encode())
    return re.compile(rb'(?:"((?>[^"]*(?:""[^"]*)*))")?([^' + end + rb"\n]*)(" + end + rb"|\n|\Z)")


def separator_of(data: bytes) -> str:
    """Return what separates the fields of a CSV file: where the line with the names has no comma, what stands for it.

    >>> separator_of(b"id,text\\n"), separator_of(b'id;"a, b"\\n1;2,5'), separator_of(b"text\\na;b")
    (',', ';', ',')
    """
    line = data.removeprefix(BOM).lstrip(b"\r\n").partition(b"\n")[0]
    names = QUOTED.sub(b"", line)
    return "," if b"," in names else next((mark for mark in OTHERS if mark.encode() in names), ",")


def regular_ends(view: Bytes, delimiter: int, last: bool) -> Rows | None:
    """Return where the records end, or None if a quote or carriage return is out of place.

    Quotes are regular if each opening one follows a delimiter or a line end, and each closing one is followed
    by one; then a line feed ends a record if the number of quotes before it is even.
    """
    ends = [np.empty(0, np.int64)]
    final = len(view) - 1
    odd = 0
    for start in range(0, len(view), STEP):
        part = view[start : start + STEP]
        feeds = np.flatnonzero(part == FEED) + start
        quotes = np.flatnonzero(part == QUOTE) + start
        returns = np.flatnonzero(part == RETURN) + start
        if len(quotes) or odd:
            before = view[np.maximum(quotes[odd::2] - 1, 0)]
            after = view[np.minimum(quotes[1 - odd :: 2] + 1, final)]
            if not (_among(before, delimiter, FEED, QUOTE) and _among(after, delimiter, FEED, RETURN, QUOTE)):
                return None
            feeds = feeds[(np.searchsorted(quotes, feeds) + odd) % 2 == 0]
            returns = returns[(np.searchsorted(quotes, returns) + odd) % 2 == 0]
            odd = (odd + len(quotes)) % 2
        if len(returns):
            if returns[-1] == final:
                if last:
                    return None
                returns = returns[:-1]
            if not (view[returns + 1] == FEED).all():
                return None
        ends.append(feeds + 1)
    return np.concatenate(ends)


def _among(values: Bytes, *allowed: int) -> bool:
    return bool(np.isin(values, np.array(allowed, np.uint8)).all())
