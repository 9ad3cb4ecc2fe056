"""Purchases and ratings from files and objects: who has what, and how good it was."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from likewise.apps.recommend.shapes import Columns, Shape, choose_columns, positions, shape_of
from likewise.base.arrays import to_arrow
from likewise.errors import ColumnError, FormatError, InputError, ParameterError
from likewise.io.objects import table_of
from likewise.io.read.base import Aside
from likewise.io.read.columns import as_integers, decoded, is_list
from likewise.io.read.find import InputFile, files_of, find
from likewise.io.read.open import BOM, read_all
from likewise.io.tables import as_floats, check_once, of_delimited, of_file

OWNER = "tastes"
TWICE = ("last", "first", "error")
UNIT = "\x1f"
LOOKED_AT = 1 << 16
SKIP = "--on-error skip sets such rows aside"


@dataclass(frozen=True)
class Options:
    """Which columns to take, how text is laid out, and what to do with broken rows."""

    user: str | None = None
    item: str | None = None
    rating: str | None = None
    baskets: bool = False
    separator: str | None = None
    header: bool | None = None
    on_error: str = "stop"

    def __post_init__(self) -> None:
        if self.on_error not in ("stop", "skip"):
            raise ParameterError.of(OWNER, "on_error", "'stop' or 'skip'", self.on_error)
        if self.separator is not None and self.separator != "::" and len(self.separator.encode()) != 1:
            raise ParameterError.of(OWNER, "separator", "one ASCII character or '::'", self.separator)
        if self.baskets and self.named:
            raise ParameterError(
                "The 'baskets' parameter of tastes is for files without columns; leave out their names."
            )

    @property
    def named(self) -> bool:
        """True if the user has named a column."""
        return any(name is not None for name in (self.user, self.item, self.rating))


@dataclass
class Part:
    """The rows of one file: customer, item and perhaps rating, and the row of the file where that is not its number.

    users is None for baskets; then the rows are the customers.
    """

    name: str
    users: Any
    items: Any
    ratings: Any | None
    told: str
    rows: Any | None = None
    customers: int = 0
    aside: list[Aside] = field(default_factory=list)

    def row(self, place: int) -> int:
        """Return the row of the file in which this purchase stands."""
        return place if self.rows is None else int(self.rows[place])


def read_parts(source: Any, options: Options) -> list[Part]:
    """Read everything, file by file."""
    files = files_of(source)
    parts = [_of_object(source, options)] if files is None else [_of_file(file, options) for file in find(files)]
    if len({(part.users is None, part.ratings is None) for part in parts}) > 1:
        kinds = "; ".join(f"{part.name}: {part.told}" for part in parts[:3])
        raise InputError(f"the files are not laid out alike ({kinds}); read them apart")
    return [_checked(part, options) for part in parts]


def _of_file(file: InputFile, options: Options) -> Part:
    if file.format in ("parquet", "arrow", "jsonl"):
        if file.bytes == 0:
            raise FormatError(f"{file.name}: the file is empty; make or fetch it again")
        return _of_table(of_file(file), file.name, options)
    data = read_all(file).removeprefix(BOM)
    if not data.strip():
        raise FormatError(f"{file.name}: the file is empty; there is nobody in it")
    head = data[:LOOKED_AT]
    text = (head if len(head) == len(data) else head[: head.rfind(b"\n") + 1 or None]).decode(errors="replace")
    shape = shape_of(text, file.format, options.separator, options.header, options.named)
    if options.baskets:
        shape = Shape(options.separator, baskets=True)
    try:
        return _of_baskets(data, file.name, shape) if shape.baskets else _of_lines(data, file.name, shape, options)
    except pa.ArrowInvalid as error:
        raise FormatError(f"{file.name}: the file cannot be read: {error}") from error


def _of_lines(data: bytes, name: str, shape: Shape, options: Options) -> Part:
    """Read lines of fields; those that have no names are numbered from 1."""
    separator = shape.separator or ","
    if separator == "::":
        data, separator = data.replace(b"::", UNIT.encode()), UNIT
    table = of_delimited(data, name, separator, list(shape.names) if shape.names else None, quoted=separator in ",;|")
    if shape.names is None:
        return _of_table(table, name, options)
    user, item, rating = positions(len(shape.names), options.user, options.item, options.rating)
    columns = choose_columns(name, shape.names, user, item, rating)
    return _taken(table, name, columns, "no names of columns")


def _of_baskets(data: bytes, name: str, shape: Shape) -> Part:
    """Read one basket a line; its number, from 0, is the customer."""
    try:
        lines = pa.array([data.decode()], pa.large_string())
    except UnicodeDecodeError as error:
        row = data.count(b"\n", 0, error.start)
        raise FormatError(f"{name}: row {row} is not valid UTF-8; save the file as UTF-8") from error
    lines = pc.split_pattern_regex(lines, "\r?\n").flatten()
    if len(lines) and lines[-1].as_py() == "":
        lines = lines[:-1]
    split = pc.ascii_split_whitespace(lines) if shape.separator is None else pc.split_pattern(lines, shape.separator)
    told = f"one basket a line, items between {'blanks' if shape.separator is None else repr(shape.separator)}"
    return _exploded(None, split, name, told)


def _exploded(users: Any | None, lists: Any, name: str, told: str) -> Part:
    """Make a row of every item of the lists."""
    if isinstance(lists, pa.ChunkedArray):
        lists = pa.concat_arrays(lists.chunks) if lists.num_chunks else pa.array([], lists.type)
    rows = pc.list_parent_indices(lists).to_numpy(zero_copy_only=False).astype(np.int64)
    items = pc.list_flatten(lists)
    if pa.types.is_string(items.type) or pa.types.is_large_string(items.type):
        items = pc.utf8_trim_whitespace(items.cast(pa.string()))
        there = pc.fill_null(pc.not_equal(items, ""), True)
        rows, items = rows[there.to_numpy(zero_copy_only=False)], items.filter(there)
    taken = None if users is None else users.take(to_arrow(rows))
    return Part(name, taken, items, None, told, rows, len(lists))


def _of_table(table: pa.Table, name: str, options: Options) -> Part:
    check_once(name, table.column_names)
    columns = choose_columns(name, table.column_names, options.user, options.item, options.rating)
    return _taken(table, name, columns, "")


def _taken(table: pa.Table, name: str, columns: Columns, remark: str) -> Part:
    told = f"customer: {columns.user}, item: {columns.item}"
    told += f", rating: {columns.rating}" if columns.rating else ", no rating"
    told += f" ({remark})" if remark else ""
    users, items = (_plain(table.column(one), name, one) for one in (columns.user, columns.item))
    if is_list(items.type):
        if columns.rating:
            raise ColumnError(
                f"{name}: a column of lists ('{columns.item}') cannot be rated; it stands beside '{columns.rating}'"
            )
        return _exploded(users, items, name, told)
    ratings = _plain(table.column(columns.rating), name, columns.rating) if columns.rating else None
    return Part(name, users, items, ratings, told)


def _plain(column: pa.ChunkedArray, name: str, title: str) -> Any:
    """Return a column as one array without dictionaries; text without blanks around it."""
    chunks = [decoded(chunk) for chunk in column.chunks]
    array = pa.concat_arrays(chunks) if chunks else pa.array([], column.type)
    if pa.types.is_nested(array.type) and not is_list(array.type):
        raise ColumnError(f"{name}: the column '{title}' is {array.type}; numbers or text are needed")
    if pa.types.is_large_string(array.type) or pa.types.is_string_view(array.type):
        array = array.cast(pa.string())
    return pc.utf8_trim_whitespace(array) if pa.types.is_string(array.type) else array


def _of_object(source: Any, options: Options) -> Part:
    """Take a table, rows (customer, item[, rating]), or a mapping from customers to items or to ratings of items."""
    name = type(source).__name__
    if isinstance(source, Mapping):
        try:
            choose_columns(name, [str(key) for key in source], options.user, options.item, options.rating)
        except ColumnError:
            return _of_mapping(source, name)
    if isinstance(source, list | tuple) and source and all(isinstance(row, list | tuple) for row in source):
        width = len(source[0])
        if width not in (2, 3) or any(len(row) != width for row in source):
            raise ParameterError(
                f"Rows must be (customer, item) or (customer, item, rating), all alike. Got {source[0]!r} first."
            )
        columns = [_array([row[place] for row in source], name) for place in range(width)]
        return Part(name, columns[0], columns[1], columns[2] if width > 2 else None, "rows of customer, item")
    more = "a path, rows of customer and item, a mapping from customers to items"
    return _of_table(table_of(source, OWNER, "source", or_else=more), name, options)


def _of_mapping(source: Mapping[Any, Any], name: str) -> Part:
    rated = [isinstance(value, Mapping) for value in source.values()]
    if any(rated) and not all(rated):
        raise ParameterError(
            "A mapping of customers must lead to items for all of them, or to ratings for all of them."
        )
    if any(isinstance(value, str | bytes) or not hasattr(value, "__iter__") for value in source.values()):
        raise ParameterError(
            "A mapping of customers must lead to a list of items, or to a mapping from items to ratings."
        )
    users = [user for user, value in source.items() for _ in value]
    items = [item for value in source.values() for item in value]
    ratings = [rating for value in source.values() for rating in value.values()] if rated and all(rated) else None
    given = None if ratings is None else _array(ratings, name)
    return Part(name, _array(users, name), _array(items, name), given, "a mapping")


def _array(values: list[Any], name: str) -> Any:
    try:
        return pa.array(values)
    except (pa.ArrowInvalid, pa.ArrowTypeError) as error:
        raise FormatError(f"{name}: ids and ratings must be numbers or text, of one kind each: {error}") from error


def _checked(part: Part, options: Options) -> Part:
    """Find rows without customer or item and ratings that are no numbers; stop at the first, or leave them out."""
    trouble: dict[int, str] = {}
    for kind, column in (("customer", part.users), ("item", part.items)):
        if column is not None:
            for place in np.flatnonzero(_missing(column)).tolist():
                trouble.setdefault(place, f"the {kind} is missing")
    if part.ratings is not None:
        numbers = as_floats(part.ratings)
        for place in np.flatnonzero(~np.isfinite(numbers)).tolist():
            value = part.ratings[place].as_py()
            told = "the rating is missing" if value in (None, "") else f"the rating {value!r} is not a number"
            trouble.setdefault(place, told)
        part.ratings = numbers
    if not trouble:
        return part
    first = min(trouble)
    if options.on_error == "stop":
        raise FormatError(f"{part.name}: row {part.row(first)}: {trouble[first]}; {SKIP}")
    part.aside = [Aside(part.name, part.row(place), trouble[place]) for place in sorted(trouble)]
    keep = np.ones(len(part.items), bool)
    keep[sorted(trouble)] = False
    part.rows = (np.arange(len(keep)) if part.rows is None else part.rows)[keep]
    part.users = None if part.users is None else part.users.filter(pa.array(keep))
    part.items = part.items.filter(pa.array(keep))
    part.ratings = None if part.ratings is None else part.ratings[keep]
    return part


def _missing(column: Any) -> Any:
    missing = column.is_null(nan_is_null=True).to_numpy(zero_copy_only=False)
    if pa.types.is_string(column.type):
        missing = missing | pc.fill_null(pc.equal(column, ""), False).to_numpy(zero_copy_only=False)
    return missing


def encoded(columns: list[Any]) -> tuple[Any, Any]:
    """Number the ids of all files in the order in which they come; return the numbers and the ids.

    Text that is a whole number everywhere, written the usual way, becomes a number.
    """
    kinds = {column.type for column in columns if len(column)}
    if len(kinds) > 1:
        columns = [column.cast(pa.string()) for column in columns]
    columns = [column for column in columns if len(column)] or columns[:1]
    whole = pa.chunked_array(columns).combine_chunks()
    whole = pa.concat_arrays(whole.chunks) if isinstance(whole, pa.ChunkedArray) else whole
    numbered = whole.dictionary_encode()
    ids = numbered.dictionary
    if pa.types.is_string(ids.type):
        integers = as_integers(pa.chunked_array([ids]))
        ids = ids if integers is None else integers.combine_chunks()
        ids = pa.concat_arrays(ids.chunks) if isinstance(ids, pa.ChunkedArray) else ids
    return numbered.indices.to_numpy(zero_copy_only=False).astype(np.int64), ids
