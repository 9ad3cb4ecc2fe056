"""How a file of purchases or ratings is laid out: the columns and their separator, or one basket per line."""

from __future__ import annotations

import re
from collections.abc import Sequence
from dataclasses import dataclass

from likewise.errors import ColumnError

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
LOOKED_AT = 50
"""Lines from which the layout is guessed: enough to see that their number of fields is the same."""


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


def known(name: str) -> bool:
    """Return True if this is a usual name of a column of customers, items or ratings."""
    return any(plain_name(name) in names for names in ROLES.values())


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
    lines = [line for line in text.splitlines() if line.strip()][:LOOKED_AT]
    if not lines:
        return Layout(separator, baskets=format == "text")
    for candidate in (separator,) if separator else _candidates(format):
        rows = [line.split(candidate) for line in lines]
        if len(rows[0]) < 2:
            continue
        named = any(known(field) for field in rows[0])
        if format != "text" or columns or header is not None or _are_columns(rows, named):
            numbers = any(NUMBER.fullmatch(field.strip().strip('"')) for field in rows[0])
            there = header if header is not None else named or not numbers
            return Layout(candidate, None if there else numbered(len(rows[0])))
    if format != "text" or columns or header is not None:
        return Layout(separator or ("\t" if format == "tsv" else ","))
    return Layout(separator, baskets=True)


def _candidates(format: str) -> tuple[str, ...]:
    first = {"csv": (",",), "tsv": ("\t",)}.get(format, ())
    return (*first, *(one for one in SEPARATORS if one not in first))


def _are_columns(rows: list[list[str]], named: bool) -> bool:
    """Return True for rows of columns: the same number of fields each, usual names or a number in the third."""
    if len({len(row) for row in rows}) > 1:
        return False
    roles = [role for role in ("user", "item") if any(plain_name(field) in ROLES[role] for field in rows[0])]
    if named and len(roles) == 2:
        return True
    return len(rows[0]) in (3, 4) and all(NUMBER.fullmatch(row[2].strip()) for row in rows)
