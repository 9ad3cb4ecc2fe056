"""JSON lines: one object per line. Arrow's parser does the work, Python's has the last word.

A line is good if either parser accepts it, so the result does not depend on how lines are distributed over blocks.
"""

from __future__ import annotations

import json
from collections.abc import Callable
from dataclasses import replace
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.json

from likewise.base.arrays import END
from likewise.errors import ColumnError, FormatError, TextError
from likewise.io.read.base import Flags
from likewise.io.read.columns import NULL_ID, NULL_TEXT, REPLACE, SKIP, CleanBatch, Trouble, Types, as_strings, stack
from likewise.io.read.records import NOTHING, PIECE, RecordBlock, RecordPart, Row, Split, line_split, split_in_pieces

SAFE = float(1 << 53)
"""Integers below this are exact as float64."""
ONE_OBJECT = f"each line must hold one JSON object; {SKIP}"
SAMPLE = 1 << 16
"""Bytes at the beginning of a file from which the types of ids and scores are guessed."""


class JsonLines(RecordPart):
    """One file of JSON lines."""

    _kinds: dict[str, pa.DataType]

    def split(self, data: bytes, last: bool) -> Split:
        """Split at line feeds; blank lines are not rows."""

        def piece(used: int) -> tuple[Split, int]:
            stop = data.rfind(b"\n", used, used + PIECE) + 1 or data.find(b"\n", used) + 1 or len(data)
            lines = data[used:stop]
            if lines.endswith(b"\n") and not lines.strip():
                return replace(NOTHING, used=len(lines)), stop
            found = self._filled(lines, last and stop == len(data))
            return found, used + found.used

        return split_in_pieces(data, piece)

    @staticmethod
    def _filled(data: bytes, last: bool) -> Split:
        """Return the lines that are not blank."""
        found = line_split(data, last)
        view = np.frombuffer(data, np.uint8)
        suspect = view[found.starts] <= 32
        if not suspect.any():
            return found
        sizes = found.ends - found.starts
        returned = (sizes == 2) & (view[found.starts] == 13) & (view[found.ends - 1] == 10)
        blank = (view[found.starts] == 10) | returned
        for row in np.flatnonzero(suspect & ~blank).tolist():
            blank[row] = not data[found.starts[row] : found.ends[row]].strip()
        return Split(found.starts[~blank], found.ends[~blank], found.used)

    def peek(self) -> Types:
        """Look at the first lines: is the text there, are ids and scores numbers or strings?"""
        records: list[dict[str, Any]] = []
        block = next(self.blocks(SAMPLE), None)
        for start, end in [] if block is None else _spans(block)[:100]:
            try:
                record = json.loads(block.data[start:end].decode(errors="replace")) if block else None
            except (ValueError, RecursionError):
                continue
            if isinstance(record, dict):
                records.append(record)
        names = list(dict.fromkeys(name for record in records for name in record))
        for name in self.options.columns if names else []:
            if name not in names:
                raise ColumnError.of(self.file.name, name, names)
        self._kinds = {self.options.text: pa.string()}
        for column, number in (
            (self.options.id, pa.int64()),
            *((name, pa.float64()) for name in self.options.scores.values()),
        ):
            if column is not None:
                value = next((record[column] for record in records if record.get(column) is not None), None)
                self._kinds.setdefault(column, pa.string() if isinstance(value, str) else number)
        return Types()

    def parse(self, block: RecordBlock) -> CleanBatch:
        """Read a block with Arrow, or line by line if Arrow cannot."""
        if not block.rows:
            return CleanBatch(None, 0)
        ends = block.content_ends()
        view = np.frombuffer(block.data, np.uint8)
        # a `}` is never followed by a `{` inside JSON, so with these ends no object spans two lines
        if (view[block.split.starts] == ord("{")).all() and (view[ends - 1] == ord("}")).all():
            piece = self._fast(block.data, block.rows)
            if piece is not None:
                return piece
        return self.of_rows(block, (self._row(block.data[start:end]) for start, end in _spans(block)))

    def _fast(self, data: bytes | memoryview, rows: int) -> CleanBatch | None:
        """Return the rows as Arrow reads them; None if anything about them is unusual."""
        try:
            table = _arrow_json(data, pa.schema(list(self._kinds.items())), "ignore")
        except (pa.ArrowException, OverflowError):
            return None
        if table.num_rows != rows:
            return None
        columns = {"text": _one(table.column(self.options.text))}
        id_strings = False
        if self.options.id is not None:
            columns["id"] = _one(table.column(self.options.id))
            id_strings = pa.types.is_string(columns["id"].type)
        if any(column.null_count for column in columns.values()):
            return None
        for role, name in self.options.scores.items():
            score = _plain_numbers(_one(table.column(name)))
            if score is None:
                return None
            columns[role] = score
        for role in columns:
            columns[role] = columns[role].cast(pa.string())
            try:
                columns[role].validate(full=True)
            except pa.ArrowInvalid:
                return None
        batch = pa.RecordBatch.from_arrays(list(columns.values()), list(columns))
        return CleanBatch(batch, rows, id_strings=id_strings)

    def cut_row(self, data: bytes, cut: Callable[[bytes], bytes]) -> bytes:
        """Return a line with its text cut; the values of other keys, and all blanks, stay as they are."""
        line = data.decode(errors=self.options.encoding_errors)
        text, start, end = _value_at(line, self.options.text)
        written = json.dumps(cut(text.encode("utf-8", "surrogatepass")).decode(), ensure_ascii=False)
        return (line[:start] + written + line[end:]).encode()

    def _row(self, line: bytes) -> Row | Trouble:
        try:
            record = json.loads(line.rstrip().decode(errors=self.options.encoding_errors))
        except UnicodeDecodeError as error:
            reason = f"not valid UTF-8 at byte {error.start} of the line"
            return self._second_opinion(line) or Trouble(TextError, reason, f"{REPLACE}, {SKIP}")
        except RecursionError:
            return self._second_opinion(line) or Trouble(FormatError, "the JSON is nested too deeply")
        except ValueError as error:
            words = f"{error.msg} at column {error.colno}" if isinstance(error, json.JSONDecodeError) else f"{error}"
            return self._second_opinion(line) or Trouble(FormatError, f"not valid JSON: {words}", ONE_OBJECT)
        if not isinstance(record, dict):
            return Trouble(FormatError, f"the line is {_called(record)} and not an object", ONE_OBJECT)
        return self._row_of(record)

    def _second_opinion(self, line: bytes) -> Row | None:
        """Return the row as Arrow reads it; it ignores oddities in columns that are not needed."""
        line = line.strip()
        if not (line.startswith(b"{") and line.endswith(b"}")):
            return None
        piece = self._fast(line, 1)
        if piece is None or piece.batch is None:
            return None
        values = {role: piece.batch.column(role)[0].as_py() for role in piece.batch.schema.names}
        scores = tuple(values[role] for role in self.options.scores)
        return Row(values["text"], values.get("id"), scores, piece.id_strings)

    def _row_of(self, record: dict[str, Any]) -> Row | Trouble:
        options = self.options
        if options.text not in record:
            return Trouble(TextError, f"there is no '{options.text}'")
        text = record[options.text]
        if text is None:
            return Trouble(TextError, NULL_TEXT)
        if options.sets and isinstance(text, list):
            tokens = [str(token) if type(token) in (str, int, float) else None for token in text]
            if None in tokens or any(END in str(token) for token in tokens):
                return Trouble(TextError, "a token of the list is neither a string nor a number")
            text = "".join(f"{token}{END}" for token in tokens)
        if not isinstance(text, str):
            return Trouble(TextError, f"the text is {_called(text)}")
        if not _encodable(text):
            if options.encoding_errors == "strict":
                half = "the text has half of a surrogate pair (\\ud800 to \\udfff)"
                return Trouble(TextError, half, f"{REPLACE}, {SKIP}")
            text = text.encode("utf-16", "surrogatepass").decode("utf-16", "replace")
        identity: Any = None
        if options.id is not None:
            identity = record.get(options.id)
            if identity is None:
                return Trouble(FormatError, NULL_ID if options.id in record else f"there is no '{options.id}'")
            if isinstance(identity, bool) or not isinstance(identity, int | str):
                return Trouble(FormatError, f"the id is {_called(identity)} and not a string or an integer")
            if isinstance(identity, str) and not _encodable(identity):
                return Trouble(FormatError, "the id is not valid Unicode")
        scores: list[str | None] = []
        for name in options.scores.values():
            score = record.get(name)
            if isinstance(score, bool) or not isinstance(score, int | float | str | None):
                return Trouble(FormatError, f"the score is {_called(score)} and not a number or a string")
            if isinstance(score, str) and not _encodable(score):
                return Trouble(FormatError, "the score is not valid Unicode")
            if isinstance(score, float) and score.is_integer() and abs(score) < SAFE:
                score = int(score)
            scores.append(None if score is None else str(score))
        string = isinstance(identity, str)
        return Row(text, None if identity is None else str(identity), tuple(scores), string)

    def table(self, keep: Flags) -> pa.Table:
        """Return the kept lines as a table; Arrow infers the types, but strings stay strings."""
        tables = [pa.table({self.options.text: pa.array([], pa.string())})]
        tables += map(self.table_of, self.kept_stretches(keep))
        return stack(tables[-1:] if len(tables) == 2 else tables)

    def table_of(self, data: bytes | bytearray) -> pa.Table:
        """Return lines as a table."""
        return as_table(data)


def as_table(lines: bytes | bytearray) -> pa.Table:
    """Return JSON lines as a table with all their columns.

    >>> as_table(b'{"day": "2024-01-01", "n": 1}').to_pylist()
    [{'day': '2024-01-01', 'n': 1}]
    """
    try:
        table = _arrow_json(lines, None, "infer")
        kinds = [field.with_type(_no_times(field.type)) for field in table.schema]
        if kinds != list(table.schema):
            table = _arrow_json(lines, pa.schema(kinds), "infer")
        table.validate(full=True)
        return table
    except (pa.ArrowException, OverflowError):
        decoded = bytes(lines).decode(errors="replace")
    try:
        records = [json.loads(line) for line in decoded.split("\n") if line.strip()]
    except RecursionError as error:
        raise FormatError("the JSON is nested too deeply to become a table; write it to a folder") from error
    names = dict.fromkeys(name for record in records for name in record)
    columns = {name: [record.get(name) for record in records] for name in names}
    return pa.table({name: _column(values) for name, values in columns.items()})


def _column(values: list[Any]) -> pa.Array:
    try:
        return pa.array(values)
    except (pa.ArrowException, UnicodeEncodeError, OverflowError):
        return as_strings(values)


def _no_times(kind: pa.DataType) -> pa.DataType:
    """Return a type with strings for times: Arrow infers times for strings such as 2024-01-01."""
    if pa.types.is_timestamp(kind):
        return pa.string()
    if pa.types.is_list(kind):
        return pa.list_(_no_times(kind.value_type))
    if pa.types.is_struct(kind):
        return pa.struct([field.with_type(_no_times(field.type)) for field in kind])
    return kind


def _arrow_json(data: bytes | bytearray | memoryview, schema: pa.Schema | None, unexpected: str) -> pa.Table:
    return pyarrow.json.read_json(
        pa.BufferReader(data),
        read_options=pyarrow.json.ReadOptions(use_threads=False, block_size=len(data) + 1),
        parse_options=pyarrow.json.ParseOptions(explicit_schema=schema, unexpected_field_behavior=unexpected),
    )


def _plain_numbers(scores: pa.Array) -> pa.Array | None:
    """Return numbers as they will be written: integral ones as integers; None if they may have lost digits."""
    if not pa.types.is_floating(scores.type) or scores.null_count == len(scores):
        return scores
    values = scores.drop_null().to_numpy(zero_copy_only=False)
    if (np.abs(values[np.isfinite(values)]) >= SAFE).any():
        return None
    whole = np.isfinite(values).all() and (values == np.trunc(values)).all()
    return pc.cast(scores, pa.int64()) if whole else scores


def _one(column: pa.ChunkedArray) -> pa.Array:
    return column.chunk(0) if column.num_chunks == 1 else column.combine_chunks()


def _spans(block: RecordBlock) -> list[tuple[int, int]]:
    return list(zip(block.split.starts.tolist(), block.split.ends.tolist(), strict=True))


def _encodable(text: str) -> bool:
    try:
        text.encode()
    except UnicodeEncodeError:
        return False
    return True


def _value_at(line: str, name: str) -> tuple[str, int, int]:
    """Return the string of a key of a JSON object, and where it starts and ends; of a key that comes twice, the last.

    >>> _value_at('{"a": [1, {"b": 2}], "b" : "x"}', "b")
    ('x', 27, 30)
    """
    decoder = json.JSONDecoder()
    found, at = ("", 0, 0), line.index("{") + 1
    while True:
        key, at = decoder.raw_decode(line, _after_blanks(line, at))
        start = _after_blanks(line, line.index(":", at) + 1)
        value, at = decoder.raw_decode(line, start)
        if key == name:
            found = (value, start, at)
        at = _after_blanks(line, at)
        if line[at] != ",":
            return found
        at += 1


def _after_blanks(line: str, at: int) -> int:
    """Return where the next character is that JSON does not skip."""
    while line[at] in " \t\n\r":
        at += 1
    return at


def _called(value: object) -> str:
    kinds: tuple[type, ...] = (bool, int, float, str, list, dict)
    names = ("a boolean", "a number", "a number", "a string", "an array", "an object")
    return next((name for kind, name in zip(kinds, names, strict=True) if isinstance(value, kind)), "null")
