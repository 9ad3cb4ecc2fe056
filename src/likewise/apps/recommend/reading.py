"""Purchases and ratings from files and objects: how a file is laid out, and its rows of customer, item and rating."""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from likewise.base import checks
from likewise.base.arrays import to_arrow
from likewise.errors import ColumnError, FormatError, InputError, ParameterError
from likewise.io.read.base import Aside
from likewise.io.read.columns import as_integers, decoded, is_list
from likewise.io.read.find import InputFile, files_of, find
from likewise.io.read.open import BOM, read_all
from likewise.io.streams import table_of
from likewise.io.tables import as_floats, check_once, of_delimited, of_file

OWNER = "recommend"
NAMES = {
    "user": "user customer client member reader reviewer buyer person account visitor u household basket cart order "
    "invoice invoiceno transaction session",
    "item": "item product movie film book isbn song track artist game anime sku article stockcode asin business i "
    "title",
    "rating": "rating ratings stars star score vote grade overall",
}
ROLES = {role: names.split() for role, names in NAMES.items()}
"""Usual names of columns, the likeliest first; a trailing "id" is ignored."""
SEPARATORS = ("::", "\t", ",", ";", "|")
"""Separators to try, in this order; "::" is that of MovieLens' ratings.dat."""
NUMBER = re.compile(r"[+-]?(\d+(\.\d*)?|\.\d+)([eE][+-]?\d+)?")
LINES = 50
"""Lines from which the layout is guessed: enough to see that their number of fields is the same."""
TABLES = ("parquet", "arrow", "jsonl")
"""Formats whose files name their columns."""
TWICE = ("last", "first", "error")
UNIT = "\x1f"
"""Replaces "::", which is two characters where Arrow's CSV reader allows one."""
LOOKED_AT = 1 << 16
"""Bytes of a text file from which its layout is guessed."""
SKIP = "on_error='skip' sets such rows aside"


@dataclass(frozen=True)
class Columns:
    """The names of the columns with the customer, the item and, if there is one, the rating."""

    user: str
    item: str
    rating: str | None


@dataclass(frozen=True)
class Layout:
    """The separator of a text file, and the names of its columns if the first line does not have them.

    baskets: each line is a basket; its items are separated by `separator`, or by white space if that is None.
    """

    separator: str | None
    names: tuple[str, ...] | None = None
    baskets: bool = False


def plain_name(name: str) -> str:
    """Return the name of a column without case, punctuation, type suffix and trailing "id".

    >>> plain_name("User ID"), plain_name("movieId"), plain_name("item_id:token")
    ('user', 'movie', 'item')
    """
    return re.sub(r"[\W_]", "", name.partition(":")[0].lower()).removesuffix("id")


def choose_columns(where: str, there: Sequence[str], user: str | None, item: str | None, rating: str | None) -> Columns:
    """Return the columns that were asked for, and guess the others by name.

    >>> choose_columns("ratings.csv", ["movieId", "userId", "rating", "timestamp"], None, None, None)
    Columns(user='userId', item='movieId', rating='rating')
    """
    asked = {"user": user, "item": item, "rating": rating}
    found: dict[str, str | None] = {}
    for role, name in asked.items():
        if name is not None and name not in there:
            raise ColumnError.of(where, name, list(there))
        free = {plain_name(column): column for column in reversed(there) if column not in asked.values()}
        found[role] = name if name is not None else next((free[one] for one in ROLES[role] if one in free), None)
        if found[role] is None and role != "rating":
            kind = "customers" if role == "user" else "items"
            raise ColumnError(
                f"{where}: cannot tell which column has the {kind}; the columns are: {', '.join(there)};"
                f" name it with --{role}"
            )
    chosen = Columns(str(found["user"]), str(found["item"]), found["rating"])
    if len({chosen.user, chosen.item, chosen.rating}) < 3:
        raise ColumnError(f"{where}: customer, item and rating must be different columns, not {chosen}")
    return chosen


def numbered(count: int) -> tuple[str, ...]:
    """Return names for columns that have none: 1, 2, 3 …"""
    return tuple(str(number) for number in range(1, count + 1))


def positions(count: int, user: str | None, item: str | None, rating: str | None) -> tuple[str, str, str | None]:
    """Return the columns of a file without header: the first, the second, and the third if there is one."""
    taken = {user, item, rating}
    left = iter([name for name in numbered(count) if name not in taken] + ["1", "2"])
    return user or next(left), item or next(left), rating or ("3" if count > 2 and "3" not in {user, item} else None)


def layout_of(text: str, format: str, separator: str | None, header: bool | None, columns: bool) -> Layout:
    r"""Guess the layout from the first lines of a file; `columns`: some were named, so lines are not baskets.

    >>> layout_of("196\t242\t3\t881250949\n186\t302\t3\t891717742\n", "text", None, None, False)
    Layout(separator='\t', names=('1', '2', '3', '4'), baskets=False)
    >>> layout_of("userId,movieId,rating\n1,2,5.0\n", "csv", None, None, False)
    Layout(separator=',', names=None, baskets=False)
    >>> layout_of("milk bread\nbread tea eggs\n", "text", None, None, False)
    Layout(separator=None, names=None, baskets=True)
    """
    lines = [line for line in text.splitlines() if line.strip()][:LINES]
    if not lines:
        return Layout(separator, baskets=format == "text")
    first = {"csv": (",",), "tsv": ("\t",)}.get(format, ())
    for candidate in (separator,) if separator else dict.fromkeys(first + SEPARATORS):
        rows = [line.split(candidate) for line in lines]
        if len(rows[0]) < 2:
            continue
        named = any(plain_name(field) in names for field in rows[0] for names in ROLES.values())
        if format != "text" or columns or header is not None or _are_columns(rows, named):
            numbers = any(NUMBER.fullmatch(field.strip().strip('"')) for field in rows[0])
            there = header if header is not None else named or not numbers
            return Layout(candidate, None if there else numbered(len(rows[0])))
    if format != "text" or columns or header is not None:
        return Layout(separator or ("\t" if format == "tsv" else ","))
    return Layout(separator, baskets=True)


def _are_columns(rows: list[list[str]], named: bool) -> bool:
    """Return True for rows of columns: the same number of fields each, usual names or a number in the third."""
    if len({len(row) for row in rows}) > 1:
        return False
    roles = [role for role in ("user", "item") if any(plain_name(field) in ROLES[role] for field in rows[0])]
    if named and len(roles) == 2:
        return True
    return len(rows[0]) in (3, 4) and all(NUMBER.fullmatch(row[2].strip()) for row in rows)


@dataclass(frozen=True)
class RatingsOptions:
    """Which columns to read, how text is laid out, which of several ratings counts, and what to do with broken rows."""

    user: str | None = None
    item: str | None = None
    rating: str | None = None
    baskets: bool = False
    separator: str | None = None
    header: bool | None = None
    twice: str = "last"
    on_error: str = "stop"

    def __post_init__(self) -> None:
        checks.choice(OWNER, "twice", self.twice, TWICE)
        checks.choice(OWNER, "on_error", self.on_error, ("stop", "skip"))
        checks.flag(OWNER, "baskets", self.baskets)
        if self.header is not None:
            checks.flag(OWNER, "header", self.header)
        if self.separator is not None and self.separator != "::" and len(self.separator.encode()) != 1:
            raise ParameterError.of(OWNER, "separator", "one ASCII character or '::'", self.separator)
        if self.baskets:
            self.without("user", "item", "rating", "header", why="with baskets, which have no columns")

    @property
    def named(self) -> bool:
        """True if the user has named a column."""
        return any(name is not None for name in (self.user, self.item, self.rating))

    def without(self, *names: str, why: str) -> None:
        """Raise if one of these options was given, which has no effect."""
        checks.unused(OWNER, {name: (getattr(self, name), getattr(RatingsOptions, name)) for name in names}, why)


@dataclass
class RatingRows:
    """The rows of one file or object: customer, item and perhaps rating.

    rows: the row of the file in which each is, if that is not its number. users is None for baskets; then the rows are
    the customers. columns: which columns were read. input: the entry of run.json.
    """

    name: str
    users: Any
    items: Any
    ratings: Any | None
    columns: str
    rows: Any | None = None
    customers: int = 0
    aside: list[Aside] = field(default_factory=list)
    input: dict[str, Any] = field(default_factory=dict)

    def row(self, place: int) -> int:
        """Return the row of the file that has this purchase."""
        return place if self.rows is None else int(self.rows[place])


def read_parts(source: Any, options: RatingsOptions) -> list[RatingRows]:
    """Read everything, file by file."""
    files = files_of(source)
    if files is None:
        options.without("baskets", "separator", "header", why="for an object in memory")
        parts = [_of_object(source, options)]
        parts[0].input = {"object": parts[0].name, "rows": len(parts[0].items)}
    else:
        found = find(files)
        if all(file.format in TABLES for file in found):
            options.without("baskets", "separator", "header", why="for Parquet, Arrow and JSON lines files")
        parts = [_of_file(file, options) for file in found]
        for part, file in zip(parts, found, strict=True):
            described = {"file": file.name, "format": file.format, "compression": file.compression}
            part.input = {**described, "bytes": file.bytes}
    if len({(part.users is None, part.ratings is None) for part in parts}) > 1:
        kinds = "; ".join(f"{part.name}: {part.columns}" for part in parts[:3])
        raise InputError(f"the files are not laid out alike ({kinds}); read them one by one")
    return [_checked(part, options) for part in parts]


def _of_file(file: InputFile, options: RatingsOptions) -> RatingRows:
    if file.format in TABLES:
        if file.bytes == 0:
            raise FormatError(f"{file.name}: the file is empty; create or download it again")
        return _of_table(of_file(file), file.name, options)
    data = read_all(file).removeprefix(BOM)
    if not data.strip():
        raise FormatError(f"{file.name}: the file is empty; it has no purchases or ratings")
    head = data[:LOOKED_AT]
    text = (head if len(head) == len(data) else head[: head.rfind(b"\n") + 1 or None]).decode(errors="replace")
    layout = layout_of(text, file.format, options.separator, options.header, options.named)
    if options.baskets:
        layout = Layout(options.separator, baskets=True)
    try:
        return _of_baskets(data, file.name, layout) if layout.baskets else _of_lines(data, file.name, layout, options)
    except pa.ArrowInvalid as error:
        raise FormatError(f"{file.name}: the file cannot be read: {error}") from error


def _of_lines(data: bytes, name: str, layout: Layout, options: RatingsOptions) -> RatingRows:
    """Read delimited lines; columns without names are numbered from 1."""
    separator = layout.separator or ","
    if separator == "::":
        data, separator = data.replace(b"::", UNIT.encode()), UNIT
    table = of_delimited(data, name, separator, list(layout.names) if layout.names else None, quoted=separator in ",;|")
    if layout.names is None:
        return _of_table(table, name, options)
    user, item, rating = positions(len(layout.names), options.user, options.item, options.rating)
    columns = choose_columns(name, layout.names, user, item, rating)
    return _taken(table, name, columns, " (no header)")


def _of_baskets(data: bytes, name: str, layout: Layout) -> RatingRows:
    """Read one basket per line; the number of the line, from 0, is the customer."""
    try:
        lines = pa.array([data.decode()], pa.large_string())
    except UnicodeDecodeError as error:
        row = data.count(b"\n", 0, error.start)
        raise FormatError(f"{name}: row {row} is not valid UTF-8; save the file as UTF-8") from error
    lines = pc.split_pattern_regex(lines, "\r?\n").flatten()
    if len(lines) and lines[-1].as_py() == "":
        lines = lines[:-1]
    split = pc.ascii_split_whitespace(lines) if layout.separator is None else pc.split_pattern(lines, layout.separator)
    between = "white space" if layout.separator is None else repr(layout.separator)
    return _exploded(None, split, name, f"one basket per line, items separated by {between}")


def _exploded(users: Any | None, lists: Any, name: str, columns: str) -> RatingRows:
    """Return one row per item of the lists."""
    rows = pc.list_parent_indices(lists).to_numpy(zero_copy_only=False).astype(np.int64)
    items = pc.list_flatten(lists)
    if pa.types.is_string(items.type) or pa.types.is_large_string(items.type):
        items = pc.utf8_trim_whitespace(items.cast(pa.string()))
        there = pc.fill_null(pc.not_equal(items, ""), True)
        rows, items = rows[there.to_numpy(zero_copy_only=False)], items.filter(there)
    taken = None if users is None else users.take(to_arrow(rows))
    return RatingRows(name, taken, items, None, columns, rows, len(lists))


def _of_table(table: pa.Table, name: str, options: RatingsOptions) -> RatingRows:
    check_once(name, table.column_names)
    return _taken(table, name, choose_columns(name, table.column_names, options.user, options.item, options.rating))


def _taken(table: pa.Table, name: str, columns: Columns, remark: str = "") -> RatingRows:
    rated = f"rating: {columns.rating}" if columns.rating else "no rating"
    text = f"customer: {columns.user}, item: {columns.item}, {rated}{remark}"
    users, items = (_plain(table.column(one), name, one) for one in (columns.user, columns.item))
    if is_list(items.type):
        if columns.rating:
            trouble = f"'{columns.item}' has lists of items, which cannot be rated"
            raise ColumnError(f"{name}: {trouble}; drop '{columns.rating}'")
        return _exploded(users, items, name, text)
    ratings = _plain(table.column(columns.rating), name, columns.rating) if columns.rating else None
    return RatingRows(name, users, items, ratings, text)


def _plain(column: pa.ChunkedArray, name: str, title: str) -> Any:
    """Return a column as one array without dictionaries; text is stripped of surrounding white space."""
    chunks = [decoded(chunk) for chunk in column.chunks]
    array = pa.concat_arrays(chunks) if chunks else pa.array([], column.type)
    if pa.types.is_nested(array.type) and not is_list(array.type):
        raise ColumnError(f"{name}: the column '{title}' is {array.type}; numbers or text are needed")
    if pa.types.is_large_string(array.type) or pa.types.is_string_view(array.type):
        array = array.cast(pa.string())
    return pc.utf8_trim_whitespace(array) if pa.types.is_string(array.type) else array


def _of_object(source: Any, options: RatingsOptions) -> RatingRows:
    """Read a table, rows (customer, item[, rating]), or a mapping from customers to items or to ratings of items."""
    name = type(source).__name__
    if isinstance(source, Mapping):
        try:
            choose_columns(name, [str(key) for key in source], options.user, options.item, options.rating)
        except ColumnError:
            options.without("user", "item", "rating", why="for a mapping from customers to items")
            return _of_mapping(source, name)
    if isinstance(source, list | tuple) and source and all(isinstance(row, list | tuple) for row in source):
        options.without("user", "item", "rating", why="for rows of customer and item")
        width = len(source[0])
        if width not in (2, 3) or any(len(row) != width for row in source):
            raise ParameterError(
                f"Rows must be (customer, item) or (customer, item, rating), all alike. Got {source[0]!r} first."
            )
        columns = [_array([row[place] for row in source], name) for place in range(width)]
        return RatingRows(name, columns[0], columns[1], columns[2] if width > 2 else None, "rows of customer, item")
    more = "a path, rows of customer and item, a mapping from customers to items"
    return _of_table(table_of(source, OWNER, "source", or_else=more), name, options)


def _of_mapping(source: Mapping[Any, Any], name: str) -> RatingRows:
    rated = [isinstance(value, Mapping) for value in source.values()]
    if any(rated) and not all(rated):
        raise ParameterError(
            "A mapping must map every customer to a list of items, or every customer to a mapping of ratings."
        )
    if any(isinstance(value, str | bytes) or not hasattr(value, "__iter__") for value in source.values()):
        raise ParameterError("A mapping must map customers to lists of items, or to mappings from items to ratings.")
    users = [user for user, value in source.items() for _ in value]
    items = [item for value in source.values() for item in value]
    ratings = [rating for value in source.values() for rating in value.values()] if rated and all(rated) else None
    given = None if ratings is None else _array(ratings, name)
    return RatingRows(name, _array(users, name), _array(items, name), given, "a mapping")


def _array(values: list[Any], name: str) -> Any:
    try:
        return pa.array(values)
    except (pa.ArrowInvalid, pa.ArrowTypeError) as error:
        raise FormatError(f"{name}: ids and ratings must be numbers or text, of one kind each: {error}") from error


def _checked(part: RatingRows, options: RatingsOptions) -> RatingRows:
    """Find rows without customer or item and ratings that are not numbers; stop at the first, or set them aside."""
    trouble: dict[int, str] = {}
    for kind, column in (("customer", part.users), ("item", part.items)):
        if column is not None:
            for place in np.flatnonzero(_missing(column)).tolist():
                trouble.setdefault(place, f"the {kind} is missing")
    if part.ratings is not None:
        numbers = as_floats(part.ratings)
        for place in np.flatnonzero(~np.isfinite(numbers)).tolist():
            value = part.ratings[place].as_py()
            missing = value in (None, "")
            trouble.setdefault(place, "the rating is missing" if missing else f"the rating {value!r} is not a number")
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
    """Number the ids of all files in order of first appearance; return the numbers and the ids.

    If every text is a whole number in its usual spelling, the ids are integers.
    """
    columns = [column for column in columns if len(column)] or columns[:1]
    if len({column.type for column in columns}) > 1:
        columns = [column.cast(pa.string()) for column in columns]
    numbered = pa.concat_arrays(columns).dictionary_encode()
    ids = numbered.dictionary
    integers = as_integers(pa.chunked_array([ids])) if pa.types.is_string(ids.type) else None
    if integers is not None:
        ids = pa.concat_arrays(integers.chunks)
    return numbered.indices.to_numpy(zero_copy_only=False).astype(np.int64), ids
