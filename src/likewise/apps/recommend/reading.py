"""`read_ratings`: purchases and ratings from files and objects, as `Ratings`."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from likewise.apps.recommend.layout import Columns, Layout, choose_columns, layout_of, positions
from likewise.apps.recommend.ratings import OWNER, Ratings
from likewise.base import checks
from likewise.base.arrays import part_at, to_arrow
from likewise.errors import ColumnError, FormatError, InputError, ParameterError
from likewise.io.objects import table_of
from likewise.io.read.base import Aside
from likewise.io.read.columns import as_integers, decoded, is_list
from likewise.io.read.find import InputFile, files_of, find
from likewise.io.read.open import BOM, read_all
from likewise.io.tables import as_floats, check_once, of_delimited, of_file

TABLES = ("parquet", "arrow", "jsonl")
"""Formats whose files name their columns."""
TWICE = ("last", "first", "error")
UNIT = "\x1f"
"""Replaces "::", which is two characters where Arrow's CSV reader allows one."""
LOOKED_AT = 1 << 16
"""Bytes of a text file from which its layout is guessed."""
SKIP = "on_error='skip' sets such rows aside"


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


def _read_parts(source: Any, options: RatingsOptions) -> list[RatingRows]:
    """Read everything, file by file."""
    files = files_of(source)
    if files is None:
        options.without("baskets", "separator", "header", why="for an object in memory")
        parts = [_of_object(source, options)]
    else:
        found = find(files)
        if all(file.format in TABLES for file in found):
            options.without("baskets", "separator", "header", why="for Parquet, Arrow and JSON lines files")
        parts = [_of_file(file, options) for file in found]
    if len({(part.users is None, part.ratings is None) for part in parts}) > 1:
        kinds = "; ".join(f"{part.name}: {part.columns}" for part in parts[:3])
        raise InputError(f"the files are not laid out alike ({kinds}); read them one by one")
    return [_checked(part, options) for part in parts]


def _of_file(file: InputFile, options: RatingsOptions) -> RatingRows:
    part = _rows_of(file, options)
    part.input = {"file": file.name, "format": file.format, "compression": file.compression, "bytes": file.bytes}
    return part


def _rows_of(file: InputFile, options: RatingsOptions) -> RatingRows:
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
    return _taken(table, name, columns, "no header")


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
    if isinstance(lists, pa.ChunkedArray):
        lists = pa.concat_arrays(lists.chunks) if lists.num_chunks else pa.array([], lists.type)
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
    columns = choose_columns(name, table.column_names, options.user, options.item, options.rating)
    return _taken(table, name, columns, "")


def _taken(table: pa.Table, name: str, columns: Columns, remark: str) -> RatingRows:
    text = f"customer: {columns.user}, item: {columns.item}"
    text += f", rating: {columns.rating}" if columns.rating else ", no rating"
    text += f" ({remark})" if remark else ""
    users, items = (_plain(table.column(one), name, one) for one in (columns.user, columns.item))
    if is_list(items.type):
        if columns.rating:
            raise ColumnError(
                f"{name}: '{columns.item}' has lists of items, which cannot be rated; drop '{columns.rating}'"
            )
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
    part = _rows_of_object(source, options)
    part.input = {"object": part.name, "rows": len(part.items)}
    return part


def _rows_of_object(source: Any, options: RatingsOptions) -> RatingRows:
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


def read_ratings(
    source: Any,
    *,
    user: str | None = None,
    item: str | None = None,
    rating: str | None = None,
    baskets: bool = False,
    separator: str | None = None,
    header: bool | None = None,
    twice: str = "last",
    on_error: str = "stop",
) -> Ratings:
    """Read purchases or ratings.

    source: files, folders, globs (CSV, TSV, Parquet, JSON lines, Arrow; MovieLens' u.data and ratings.dat; one basket
        per line); a table of pandas, polars or pyarrow; rows (customer, item[, rating]); a mapping from customers to
        items, or to mappings from items to ratings.
    user, item, rating: the columns. By default they are guessed by name (userId, movie_id, stars …). A file without
        header has the customer first, the item second and the rating third, and its columns are "1", "2", "3" ….
    baskets: text files have one basket per line; by default this is guessed from the first lines.
    separator, header: between fields or items; whether the first line names the columns. Both are guessed by default.
    twice: which rating counts if a customer rated an item more than once: the "last" or the "first" of the input; or
        "error".
    on_error: "stop" at a row without customer, item or number, or "skip" it (counted and listed in `.aside`).

    >>> read_ratings({"ann": {"Dune": 5, "Emma": 1}, "bob": {"Dune": 4}})
    <Ratings: 2 customers, 2 items, 3 pairs>
    """
    return numbered_ratings(source, RatingsOptions(user, item, rating, baskets, separator, header, twice, on_error))


def numbered_ratings(source: Any, options: RatingsOptions) -> Ratings:
    """Read everything and number customers and items; of several rows of one customer and item one counts."""
    twice = options.twice
    parts = _read_parts(source, options)
    aside = [entry for part in parts for entry in part.aside]
    if not any(len(part.items) for part in parts):
        raise InputError(f"{parts[0].name}: there are no purchases or ratings in it ({parts[0].columns})")
    items, item_ids = encoded([part.items for part in parts])
    if parts[0].users is None:
        begins = np.cumsum([0, *(part.customers for part in parts)])
        users = np.concatenate([part.rows + begin for part, begin in zip(parts, begins, strict=False)])
        user_ids = to_arrow(np.arange(begins[-1]))
    else:
        users, user_ids = encoded([part.users for part in parts])
    if parts[0].ratings is None and twice == "first":
        options.without("twice", why="without ratings")
    values = None if parts[0].ratings is None else np.concatenate([part.ratings for part in parts])
    key = users * len(item_ids) + items
    order = np.argsort(key, kind="stable")
    ends = np.flatnonzero(np.append(np.diff(key[order]) != 0, True))
    times = np.diff(ends, prepend=-1)
    if twice == "error" and len(ends) < len(key):
        place = int(np.flatnonzero(times > 1)[0])
        first, second = order[ends[place] - times[place] + 1], order[ends[place] - times[place] + 2]
        whom, what = user_ids[int(users[first])].as_py(), item_ids[int(items[first])].as_py()
        raise InputError(
            f"{_where(parts, int(second))}: the customer {whom!r} has the item {what!r} twice, first in"
            f" {_where(parts, int(first))}; twice='last' or 'first' chooses one"
        )
    chosen = order[ends if twice == "last" else ends - times + 1]
    return Ratings(
        users[chosen], items[chosen], None if values is None else values[chosen], times.astype(np.int64), user_ids,
        item_ids, parts[0].columns, len(key), aside, [part.input for part in parts],
    )  # fmt: skip


def _where(parts: list[RatingRows], place: int) -> str:
    """Return the file and the row of a purchase."""
    number, inside = part_at([len(part.items) for part in parts], place)
    return f"{parts[number].name}: row {parts[number].row(inside)}"
