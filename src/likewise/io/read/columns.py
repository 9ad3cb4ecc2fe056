"""From columns of any Arrow type to valid UTF-8 text, ids without nulls, and scores.

The types of `id` and of scores are decided once for the whole input, before the first batch: see `decide`.
"""

from __future__ import annotations

import json
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, field
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from likewise.base import openfiles
from likewise.base.arrays import END, flags_to_arrow
from likewise.errors import ColumnError, FormatError, InputError, TextError
from likewise.io.read.base import Aside, Flags, ReadOptions, Rows
from likewise.io.read.integrity import bytes_for_text, not_utf8

SKIP = "on_error='skip' sets such rows aside"
REPLACE = "encoding_errors='replace' puts U+FFFD in its place"

NULL_TEXT = "the text is null"
NULL_ID = "the id is null"


@dataclass(frozen=True)
class Types:
    """The types that `id` and the scores have, or will be delivered in; None, or not there, if not declared."""

    id: pa.DataType | None = None
    scores: dict[str, pa.DataType] = field(default_factory=dict)


@dataclass
class CleanBatch:
    """Some rows of one file after cleaning: those delivered and those set aside.

    `rows` counts all of them; `dropped` are the positions among them that are not delivered.
    """

    batch: pa.RecordBatch | None
    rows: int
    dropped: Rows = field(default_factory=lambda: np.empty(0, np.int64))
    aside: list[Aside] = field(default_factory=list)
    id_strings: bool = False


@dataclass(frozen=True)
class Trouble:
    """Why a row cannot be used: the exception class, the reason, and what to do."""

    kind: type[InputError]
    reason: str
    advice: str = SKIP

    def error(self, where: str) -> InputError:
        """Return the exception for the row at `where`."""
        return self.kind(f"{where}: {self.reason}; {self.advice}")


DEFAULT_TEXT = "text"
"""The column of the texts, unless the user names one."""


def check_columns(where: str, names: Sequence[str], options: ReadOptions) -> None:
    """Raise unless each requested column is there exactly once."""
    for name in options.columns:
        if name not in names:
            missing = ColumnError.of(where, name, list(names))
            raise (
                ColumnError(f"{missing}; name the one to read with text='COLUMN'") if name == DEFAULT_TEXT else missing
            )
        if list(names).count(name) > 1:
            raise ColumnError(f"{where}: there are several columns '{name}'; rename all but one")


def plain_type(kind: pa.DataType) -> pa.DataType:
    """Return the type without extension, dictionary, and with one of the several layouts of strings."""
    if isinstance(kind, pa.BaseExtensionType):
        return plain_type(kind.storage_type)
    if pa.types.is_dictionary(kind) or pa.types.is_run_end_encoded(kind):
        return plain_type(kind.value_type)
    if pa.types.is_string(kind) or pa.types.is_large_string(kind) or pa.types.is_string_view(kind):
        return pa.string()
    if pa.types.is_binary(kind) or pa.types.is_large_binary(kind) or pa.types.is_binary_view(kind):
        return pa.binary()
    return kind


def declared(where: str, schema: pa.Schema, options: ReadOptions) -> Types:
    """Return the types of id and score in a schema; raise if a column is missing or cannot be used."""
    check_columns(where, schema.names, options)
    text = plain_type(schema.field(options.text).type)
    listed = options.sets and is_list(text) and not pa.types.is_nested(text.value_type)
    if not listed and text not in (pa.string(), pa.binary(), pa.null()) and not pa.types.is_fixed_size_binary(text):
        shown = schema.field(options.text).type
        lists = is_list(text) and not pa.types.is_nested(text.value_type)
        advice = "shingle='tokens' compares lists; or name" if lists else "name"
        raise TextError(
            f"{where}: the column '{options.text}' is not text but {shown}; {advice} another with text='COLUMN'"
        )
    found: dict[str, pa.DataType] = {}
    for role, name in (("id", options.id), *options.scores.items()):
        if name is not None:
            kind = plain_type(schema.field(name).type)
            if pa.types.is_nested(kind):
                raise ColumnError(
                    f"{where}: the {role} column '{name}' is {kind}; numbers, strings or times are needed"
                )
            found[role] = kind
    return Types(found.pop("id", None), found)


def decide(kinds: Sequence[pa.DataType | None], numbers: bool) -> tuple[pa.DataType, bool]:
    """Return the common type of a column whose types in the files are `kinds` (None: not declared).

    The flag says whether the column is delivered as strings that may all turn out to be integers.
    With `numbers`, mixed numbers become float64 (for scores); without, they become strings (for ids).
    """
    known = {kind for kind in kinds if kind is not None}
    integers = all(pa.types.is_integer(kind) for kind in known)
    if len(known) == len(set(kinds)) == 1:
        return known.pop(), False
    if None in kinds:
        return pa.string(), integers or numbers
    if integers and pa.uint64() not in known:
        return pa.int64(), False
    if numbers and all(pa.types.is_integer(kind) or pa.types.is_floating(kind) for kind in known):
        return pa.float64(), False
    return pa.string(), integers


def as_integers(values: pa.ChunkedArray) -> pa.ChunkedArray | None:
    """Return strings as int64 if each is an integer in canonical form (no 007, no +5), else None."""
    try:
        numbers = values.cast(pa.int64())
    except pa.ArrowInvalid:
        return None
    return numbers if numbers.cast(values.type).equals(values) else None


def as_numbers(values: pa.ChunkedArray) -> pa.ChunkedArray:
    """Return strings as int64 or float64 if all are numbers (an empty one is null), else unchanged."""
    filled = pc.if_else(pc.equal(values, ""), pa.scalar(None, values.type), values)
    integers = as_integers(filled)
    if integers is not None:
        return integers
    try:
        return filled.cast(pa.float64())
    except pa.ArrowInvalid:
        return values


def decoded(array: pa.Array) -> pa.Array:
    """Return the array without extension type, dictionary or run-end encoding."""
    if isinstance(array.type, pa.BaseExtensionType):
        return decoded(array.storage)
    if pa.types.is_run_end_encoded(array.type):
        return decoded(pc.run_end_decode(array))
    if pa.types.is_dictionary(array.type):
        try:
            return decoded(array.dictionary_decode())
        except pa.ArrowInvalid:
            return array.dictionary.cast(pa.large_string()).take(array.indices)
    return array


def converted(array: pa.Array, kind: pa.DataType, where: str, name: str) -> pa.Array:
    """Return an id or score column in the type that was decided for the whole input."""
    array = decoded(array)
    if array.type == kind:
        return array
    try:
        return array.cast(kind)
    except (pa.ArrowInvalid, pa.ArrowNotImplementedError) as error:
        raise FormatError(f"{where}: the column '{name}' cannot be turned into {kind}: {error}") from error


def text_of(array: pa.Array, options: ReadOptions, where: str) -> tuple[pa.Array, dict[int, Trouble]]:
    """Return a text column as (large) strings, and the rows that are null or not UTF-8."""
    try:
        array.validate()
        array = decoded(array)
    except pa.ArrowInvalid as error:
        raise FormatError(f"{where}: the text column is damaged: {error}") from error
    if options.html:
        return texts_of_pages(array)
    if options.sets and is_list(array.type):
        array = spelled(array, where)
    kind = array.type
    if pa.types.is_null(kind) or pa.types.is_string_view(kind):
        array = array.cast(pa.string() if array.nbytes < 1 << 30 else pa.large_string())
    elif pa.types.is_binary_view(kind) or pa.types.is_fixed_size_binary(kind):
        array = array.cast(pa.binary() if array.nbytes < 1 << 30 else pa.large_binary())
    large = pa.types.is_large_string(array.type) or pa.types.is_large_binary(array.type)
    text, raw = (pa.large_string(), pa.large_binary()) if large else (pa.string(), pa.binary())
    trouble: dict[int, Trouble] = {}
    if array.null_count:
        nulls = np.flatnonzero(array.is_null().to_numpy(zero_copy_only=False))
        trouble = {int(row): Trouble(TextError, NULL_TEXT) for row in nulls}
    try:
        array = array.view(text)
        array.validate(full=True)
        return array, trouble
    except pa.ArrowInvalid:
        array = array.view(raw)
    try:
        array.validate(full=True)
    except pa.ArrowInvalid as error:
        raise FormatError(f"{where}: the text column is damaged: {error}") from error
    values = array.to_pylist()
    for row, value in enumerate(values):
        if value is None:
            continue
        values[row], problem = utf8(value, options)
        if problem is not None:
            trouble[row] = problem
    return pa.array(values, text), trouble


def texts_of_pages(array: pa.Array) -> tuple[pa.Array, dict[int, Trouble]]:
    """Return the text of every page of a column of HTML, strings or bytes, and the rows that are null."""
    from likewise.io.read.pages import page_text

    if not_utf8(array):  # a page says itself how it is encoded
        array = array.view(bytes_for_text(array.type))
    pages = array.to_pylist()
    trouble = {row: Trouble(TextError, NULL_TEXT) for row, page in enumerate(pages) if page is None}
    return pa.array([None if page is None else page_text(page) for page in pages], pa.large_string()), trouble


def is_list(kind: pa.DataType) -> bool:
    """Return True for types of lists."""
    return bool(pa.types.is_list(kind) or pa.types.is_large_list(kind) or pa.types.is_fixed_size_list(kind))


def spelled(array: pa.Array, where: str) -> pa.Array:
    """Return lists of tokens as text, each token followed by END."""
    lists = array.cast(pa.large_list(array.type.value_type))
    tokens = lists.flatten()
    if pa.types.is_dictionary(tokens.type):
        tokens = tokens.cast(tokens.type.value_type)
    tokens = tokens.cast(pa.large_string())
    if tokens.null_count:
        raise TextError(f"{where}: a token of a list is null; leave it out of the list")
    if pc.any(pc.match_substring(tokens, END)).as_py():
        raise TextError(f"{where}: a token holds the character U+001F, which likewise uses to separate tokens")
    ended = pc.binary_join_element_wise(tokens, pa.scalar("", pa.large_string()), pa.scalar(END, pa.large_string()))
    offsets = np.concatenate([[0], np.cumsum(pc.list_value_length(lists).fill_null(0).to_numpy(zero_copy_only=False))])
    whole = pa.LargeListArray.from_arrays(pa.array(offsets, pa.int64()), ended)
    return pc.if_else(lists.is_valid(), pc.binary_join(whole, pa.scalar("", pa.large_string())), None)


def utf8(value: bytes, options: ReadOptions) -> tuple[str | None, Trouble | None]:
    """Decode one document; with `replace`, invalid bytes become U+FFFD."""
    try:
        return value.decode(), None
    except UnicodeDecodeError as error:
        if options.encoding_errors == "replace":
            return value.decode(errors="replace"), None
        reason = f"not valid UTF-8 at byte {error.start} of the text"
        return None, Trouble(TextError, reason, f"{REPLACE}, {SKIP}")


def sift(
    file: str,
    columns: dict[str, pa.Array],
    trouble: dict[int, Trouble],
    options: ReadOptions,
    at: Callable[[int], tuple[int, str]],
) -> CleanBatch:
    """Make a batch of the columns; stop at the first row in trouble, or set all of them aside.

    `at` returns, for a position, the row or line number that the user sees and the words for where it is.
    """
    batch = pa.RecordBatch.from_arrays(list(columns.values()), list(columns))
    if not trouble:
        return CleanBatch(batch, batch.num_rows)
    rows = sorted(trouble)
    if not options.skip:
        raise trouble[rows[0]].error(at(rows[0])[1])
    dropped = np.array(rows, np.int64)
    good = np.ones(batch.num_rows, bool)
    good[dropped] = False
    aside = [Aside(file, at(row)[0], trouble[row].reason) for row in rows]
    return CleanBatch(batch.filter(flags_to_arrow(good)), batch.num_rows, dropped, aside)


def clean(batch: pa.RecordBatch, file: str, first: int, options: ReadOptions, types: Types) -> CleanBatch:
    """Clean a batch that has the original columns; `first` is the number of its first row within the file."""

    def at(row: int) -> tuple[int, str]:
        return first + row, f"{file}: row {first + row}"

    with openfiles.reading(file):
        text, trouble = text_of(batch.column(options.text), options, file)
        columns = {"text": text}
        kinds = {"id": types.id, **types.scores}
        for role, name in (("id", options.id), *options.scores.items()):
            if name is not None and kinds.get(role) is not None:
                columns[role] = converted(batch.column(name), kinds[role], file, name)
        if "id" in columns and columns["id"].null_count:
            for row in np.flatnonzero(columns["id"].is_null().to_numpy(zero_copy_only=False)):
                trouble.setdefault(int(row), Trouble(FormatError, NULL_ID))
        for role, values in list(columns.items())[1:]:
            for place in not_utf8(values):
                trouble.setdefault(place, Trouble(TextError, f"the {role} is not valid UTF-8"))
    return sift(file, columns, trouble, options, at)


def cut(batch: pa.RecordBatch, options: ReadOptions) -> Iterator[pa.RecordBatch]:
    """Cut a batch, without copying, into batches of at most the allowed rows and bytes."""
    rows, start = batch.num_rows, 0
    if rows == 0:
        return
    offsets = text_offsets(batch.column("text"))
    while start < rows:
        stop = int(np.searchsorted(offsets, offsets[start] + options.batch_bytes, side="right")) - 1
        stop = min(max(stop, start + 1), start + options.batch_rows, rows)
        yield batch if stop - start == rows else batch.slice(start, stop - start)
        start = stop


def text_offsets(array: pa.Array) -> Rows:
    """Return where each string starts (and the last one ends) in the buffer of the array."""
    width = np.int64 if pa.types.is_large_string(array.type) else np.int32
    buffer = array.buffers()[1]
    offsets = np.frombuffer(buffer, width, count=len(array) + 1, offset=array.offset * np.dtype(width).itemsize)
    return offsets.astype(np.int64)


def alone(array: pa.Array) -> pa.Array:
    """Copy an array, so that the larger one it is a slice of can be freed."""
    return pa.concat_arrays([array, array.slice(0, 0)])


def choose(batch: pa.RecordBatch | pa.Table, keep: Flags) -> pa.Table:
    """Return the rows whose flag is set; also for column types that Arrow cannot filter."""
    if keep.all():
        return batch if isinstance(batch, pa.Table) else pa.Table.from_batches([batch])
    table = batch if isinstance(batch, pa.Table) else pa.Table.from_batches([batch])
    try:
        return table.filter(flags_to_arrow(keep))
    except pa.ArrowNotImplementedError:
        slices = [table.slice(start, stop - start) for start, stop in runs(keep)]
        return pa.concat_tables(slices) if slices else table.slice(0, 0)


def runs(keep: Flags) -> list[tuple[int, int]]:
    """Return the runs of set flags as (start, stop).

    >>> runs(np.array([True, True, False, True]))
    [(0, 2), (3, 4)]
    """
    edges = np.flatnonzero(np.diff(np.concatenate(([False], keep, [False])).astype(np.int8)))
    return [(int(start), int(stop)) for start, stop in edges.reshape(-1, 2)]


def stack(tables: list[pa.Table]) -> pa.Table:
    """Concatenate tables; a column whose types are incompatible becomes strings."""
    if all(table.schema.equals(tables[0].schema) for table in tables):
        return pa.concat_tables(tables)
    try:
        return pa.concat_tables(tables, promote_options="permissive")
    except (pa.ArrowInvalid, pa.ArrowTypeError):
        pass
    try:
        return pa.concat_tables(_alike(tables), promote_options="permissive")
    except (pa.ArrowInvalid, pa.ArrowTypeError) as error:
        raise FormatError(f"the files cannot be combined in one table: {error}; write them to a folder") from error


def _alike(tables: list[pa.Table]) -> list[pa.Table]:
    kinds: dict[str, set[pa.DataType]] = {}
    for table in tables:
        for column in table.schema:
            kinds.setdefault(column.name, set()).add(column.type)
    mixed = {name for name, found in kinds.items() if len(found - {pa.null()}) > 1}
    return [_with_strings(table, mixed) for table in tables]


def _with_strings(table: pa.Table, names: set[str]) -> pa.Table:
    for place, name in enumerate(table.schema.names):
        if name in names:
            column = table.column(place)
            try:
                column = column.cast(pa.string())
            except (pa.ArrowInvalid, pa.ArrowNotImplementedError):
                column = as_strings(column.to_pylist())
            table = table.set_column(place, name, column)
    return table


def as_strings(values: list[Any]) -> pa.Array:
    """Return values of mixed types as strings: strings as they are, the others as JSON.

    >>> as_strings(["a", 1, None, [2]]).to_pylist()
    ['a', '1', None, '[2]']
    """
    texts = [
        value if value is None or isinstance(value, str) else json.dumps(value, ensure_ascii=False, default=str)
        for value in values
    ]
    return pa.array(
        [text and text.encode("utf-16", "surrogatepass").decode("utf-16", "replace") for text in texts],
        pa.string(),
    )
