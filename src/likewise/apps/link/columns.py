"""Which columns of two tables are compared: those of one name, those that are given, and those of the same content.

Two columns with different names hold the same if they have the same words equally often: `cast` and `actors`, `price`
and `cost`. How much they share is the number of words that both have, divided by the geometric mean of their numbers
of words. Columns are paired one to one, the most alike first. A column may also be the whole of several: a name of
given name and surname, a date of year, month and day.
"""

from __future__ import annotations

import re
from collections.abc import Collection, Mapping, Sequence, Set
from dataclasses import dataclass, replace

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from likewise.apps.link.fields import USUAL, YEARS, Field, MissingValues, as_strings, make_field
from likewise.apps.link.terms import hashed
from likewise.base.arrays import Hashes, Ints
from likewise.errors import ColumnError, ParameterError

STRONG = 0.25
"""Columns that share this part of their words are compared without being asked for. With other names, 46 of the 53
columns of nine data sets are found again with it, and none is paired wrongly (benchmarks/link_columns.py)."""

STRONG_IF_FEW = 0.6
"""The same if a column has few different words: months are days of the month in part."""

FEW = 100
"""Different words that are few."""

LEAST = 20
"""Values of a column, at least, from which its content is judged."""

WEAK = 0.15
"""Columns that share this part of their words are suggested."""

WHOLE = 1.2
"""A column is paired with two if it shares this many times as much with both together as with the one."""

MOST = 0.9
"""Part of the values of a column that are years, months or days if it is one of years, months or days."""

Words = tuple[Hashes, Ints]
"""The different words of a column, sorted, and how often each occurs."""


@dataclass(frozen=True)
class ComparedColumns:
    """The columns of each table that make one field.

    shared: the part of the words that they share, if they were found by their content.
    strong: whether that is enough to compare them without being asked to.
    """

    name: str
    a: tuple[str, ...]
    b: tuple[str, ...]
    shared: float | None = None
    strong: bool = True

    @property
    def other(self) -> str:
        """The columns of the second table, as they are given."""
        return "+".join(self.b)

    def of(self, table: pa.Table, second: bool) -> pa.ChunkedArray:
        """Return the values in one of the tables; several columns are joined."""
        names = self.b if second else self.a
        return table.column(names[0]) if len(names) == 1 else joined_columns([table.column(name) for name in names])


def parts_of(given: str, there: Sequence[str]) -> tuple[str, ...]:
    """Return the columns that are meant: one, or several that are joined by +; those that are not there, too.

    >>> parts_of("first+last", ["first", "last"]), parts_of("c++", ["c++"])
    (('first', 'last'), ('c++',))
    """
    return (given,) if given in there else tuple(part.strip() for part in given.split("+"))


def joined_columns(columns: Sequence[pa.ChunkedArray]) -> pa.ChunkedArray:
    """Return several columns as one: dates of years, months and days, otherwise the values with a space between them.

    >>> joined_columns([pa.chunked_array([["Ann", None]]), pa.chunked_array([["Lee", "Wu"]])]).to_pylist()
    ['Ann Lee', 'Wu']
    >>> joined_columns([pa.chunked_array([[v]]) for v in ("7", "1999", "30")]).to_pylist()
    ['1999-07-30']
    """
    texts = [pc.utf8_trim_whitespace(as_strings(column)) for column in columns]
    order = date_parts(texts)
    if order is not None:
        sizes = zip((texts[place] for place in order), (4, 2, 2), strict=True)
        padded = [pc.utf8_lpad(pc.if_else(pc.equal(part, ""), None, part), size, "0") for part, size in sizes]
        return pc.binary_join_element_wise(*padded, "-")
    whole = pc.binary_join_element_wise(*texts, " ", null_handling="skip")
    whole = pc.utf8_trim_whitespace(whole)
    return pc.if_else(pc.equal(whole, ""), None, whole)


def date_parts(texts: Sequence[pa.ChunkedArray]) -> list[int] | None:
    """Return which of three columns are years, months and days, or None.

    Where days are months as well, months come before days, as in most tables, if they come before them here.
    """
    if len(texts) != 3:
        return None
    ranges = (YEARS, (1, 12), (1, 31))
    fits = [[_within(text, *ends) for text in texts] for ends in ranges]
    for order in ([0, 1, 2], [2, 1, 0], [1, 0, 2], [2, 0, 1], [0, 2, 1], [1, 2, 0]):
        if all(fits[part][place] for part, place in enumerate(order)):
            return order
    return None


def _within(texts: pa.ChunkedArray, low: int, high: int) -> bool:
    """Return whether most values are whole numbers in a range."""
    there = texts.drop_null()
    there = there.filter(pc.not_equal(there, ""))
    digits = there.filter(pc.match_substring_regex(there, r"^\d{1,4}$"))
    if not len(there) or len(digits) < MOST * len(there):
        return False
    numbers = digits.cast(pa.int64())
    return bool(
        pc.sum(pc.and_(pc.greater_equal(numbers, low), pc.less_equal(numbers, high))).as_py() >= MOST * len(there)
    )


def plain_name(column: str) -> str:
    """Return a name without case, blanks and punctuation.

    >>> plain_name("Phone_Number") == plain_name("phone number")
    True
    """
    return re.sub(r"[\W_]+", "", column.casefold()) or column


def words_of(field: Field) -> Words:
    """Return the different words of the values of a field, sorted, and how often each occurs in the records."""
    found = hashed(field.texts, False)
    counts = np.repeat(field.counts, np.diff(found.offsets))
    words, places = np.unique(found.terms, return_inverse=True)
    return words, np.bincount(places, counts, len(words)).astype(np.int64)


def shared_words(one: Words, other: Words) -> float:
    """Return the number of words that two columns share, divided by the geometric mean of their numbers of words.

    >>> x, y = np.array([1, 2, 3], np.uint64), np.array([2, 3, 4], np.uint64)
    >>> shared_words((x, np.array([5, 5, 10])), (y, np.array([5, 5, 10])))
    0.5
    """
    _, places, others = np.intersect1d(one[0], other[0], assume_unique=True, return_indices=True)
    both = float(np.minimum(one[1][places], other[1][others]).sum())
    return both / max(1.0, float(np.sqrt(float(one[1].sum()) * float(other[1].sum()))))


def given_columns(
    tables: Sequence[pa.Table], wheres: Sequence[str], given: Mapping[str, str | None]
) -> list[ComparedColumns]:
    """Return the columns that the user says are the same; raise if one is not there, or is used twice."""
    found = []
    used: list[set[str]] = [set(), set()]
    for name, other in given.items():
        sides = [
            () if words is None else parts_of(words, table.column_names)
            for words, table in zip((name, other), tables, strict=True)
        ]
        for table, where, names, before in zip(tables, wheres, sides, used, strict=True):
            for one in names:
                if one not in table.column_names:
                    raise ColumnError.of(where, one, table.column_names)
                if one in before:
                    raise ParameterError.of("link", "columns", f"without a column twice ('{one}')", dict(given))
                before.add(one)
        if sides[1]:
            found.append(ComparedColumns(name, sides[0], sides[1]))
    return found


def paired_columns(
    tables: Sequence[pa.Table],
    known: list[ComparedColumns],
    apart: Set[str | None],
    alone: Collection[str],
    missing: MissingValues = USUAL,
) -> tuple[list[str], list[str]]:
    """Return the fields to compare in two tables, and notes; those found by name or content are added to `known`.

    Where nothing else can be compared, weak likeness suffices, and to the only column of each table a shared word.

    known: the columns that are given. apart: those that are not compared. alone: those of a without a counterpart.
    missing: values that mean none, which two columns do not share.
    """
    without = {part for name in alone for part in parts_of(name, tables[0].column_names)}
    left = [[name for name in table.column_names if name not in apart] for table in tables]
    left[0] = [name for name in left[0] if name not in without]
    for pair in known:
        left = [[name for name in side if name not in some] for side, some in zip(left, (pair.a, pair.b), strict=True)]
    given = [pair.name for pair in known if not apart & {pair.name, *pair.a, *pair.b}]
    same = [name for name in left[0] if name in left[1]]
    left = [[name for name in side if name not in same] for side in left]
    notes = []
    for name in list(left[0]):
        other = [one for one in left[1] if plain_name(one) == plain_name(name)]
        if len(other) == 1:
            known.append(ComparedColumns(name, (name,), (other[0],)))
            notes.append(f"compared '{name}' of a with '{other[0]}' of b: their names differ only in punctuation")
            left = [[one for one in left[0] if one != name], [one for one in left[1] if one != other[0]]]
    alternative = bool(given or same or known)
    if not alternative and len(left[0]) == len(left[1]) == 1 and _share_a_word(tables, left[0][0], left[1][0], missing):
        (name,), (only,) = left
        known.append(ComparedColumns(name, (name,), (only,)))
        notes.append(f"compared '{name}' of a with '{only}' of b: neither table has another column")
        left = [[], []]
    elif left[0] and left[1]:
        sides = [{name: table.column(name) for name in some} for table, some in zip(tables, left, strict=True)]
        alike = alike_columns(sides[0], sides[1], missing)
        alternative = alternative or any(pair.strong for pair in alike)
        for pair in alike:
            names = f"'{pair.name}' of a with '{pair.other}' of b: they share {pair.shared:.2f} of their words"
            if pair.strong or not alternative:
                known.append(pair)
                left = [[one for one in side if one not in (*pair.a, *pair.b)] for side in left]
                notes.append(
                    f"compared {names}; --map {pair.name}= leaves them out, --map {pair.name}=COLUMN changes it"
                )
            else:
                notes.append(f"not compared {names}; --map {pair.name}={pair.other} compares them")
    over = sorted({*left[0], *left[1]})
    if over:
        notes.append(f"only one table has {', '.join(over)}; left out")
    more = [pair.name for pair in known if pair.name not in given and not apart & {pair.name, *pair.a, *pair.b}]
    order = {name: place for place, name in enumerate(tables[0].column_names)}
    parts = {pair.name: pair.a[0] for pair in known}
    return sorted([*given, *same, *more], key=lambda name: order[parts.get(name, name)]), notes


def _share_a_word(tables: Sequence[pa.Table], name: str, other: str, missing: MissingValues) -> bool:
    sides = zip(tables, (name, other), strict=True)
    made = (make_field(one, table.column(one), missing=missing) for table, one in sides)
    return shared_words(*map(words_of, made)) > 0


class _Side:
    """The columns of one table that have no partner yet: their values, kinds and words."""

    def __init__(self, columns: Mapping[str, pa.ChunkedArray], missing: MissingValues) -> None:
        self._columns, self._missing = columns, missing
        made = (make_field(name, column, missing=missing) for name, column in columns.items())
        fields = [field for field in made if field.present >= LEAST]
        self.names = [field.name for field in fields]
        self.free = self.names
        self.dates = [field.name for field in fields if field.kind == "date"]
        self._words = {field.name: words_of(field) for field in fields}

    def words(self, names: Sequence[str]) -> Words:
        """Return the words of one column, or of several together."""
        if len(names) == 1:
            return self._words[names[0]]
        words, places = np.unique(np.concatenate([self._words[name][0] for name in names]), return_inverse=True)
        counts = np.concatenate([self._words[name][1] for name in names])
        return words, np.bincount(places, counts, len(words)).astype(np.int64)

    def take(self, names: Sequence[str]) -> None:
        """Give these columns a partner."""
        self.free = [name for name in self.free if name not in names]

    def split_dates(self) -> list[tuple[str, ...]]:
        """Return the columns beside each other that are years, months and days."""
        triples = zip(self.free, self.free[1:], self.free[2:], strict=False)
        return [some for some in triples if date_parts([as_strings(self._columns[name]) for name in some])]

    def date_words(self, names: Sequence[str]) -> Words:
        """Return the words of dates that are in three columns."""
        whole = joined_columns([self._columns[name] for name in names])
        return words_of(make_field("", whole, "date", self._missing))


def alike_columns(
    a: Mapping[str, pa.ChunkedArray], b: Mapping[str, pa.ChunkedArray], missing: MissingValues = USUAL
) -> list[ComparedColumns]:
    """Pair columns of two tables by their content, the most alike first; those that share less than WEAK are not."""
    sides = _Side(a, missing), _Side(b, missing)
    found = _dates(sides)
    rows, columns = (list(side.free) for side in sides)
    shares = np.array([[shared_words(sides[0].words([x]), sides[1].words([y])) for y in columns] for x in rows])
    while shares.size and shares.max() >= WEAK:
        row, column = np.unravel_index(int(shares.argmax()), shares.shape)
        found.append(ComparedColumns(rows[row], (rows[row],), (columns[column],), float(shares.max())))
        sides[0].take([rows[row]])
        sides[1].take([columns[column]])
        shares[row, :] = shares[:, column] = 0
    found = [_whole(pair, sides) for pair in found]
    return [replace(pair, strong=_is_strong(pair, sides)) for pair in found]


def _is_strong(pair: ComparedColumns, sides: tuple[_Side, _Side]) -> bool:
    few = min(len(side.words(names)[0]) for side, names in zip(sides, (pair.a, pair.b), strict=True)) < FEW
    return (pair.shared or 0.0) >= (STRONG_IF_FEW if few else STRONG)


def _dates(sides: tuple[_Side, _Side]) -> list[ComparedColumns]:
    """Return the columns of dates in one table whose year, month and day are columns of the other."""
    found = []
    for one, other in (sides, sides[::-1]):
        for name in one.dates:
            for parts in other.split_dates():
                shared = shared_words(one.words([name]), other.date_words(parts))
                if shared >= WEAK and name in one.free:
                    a, b = ((name,), parts) if one is sides[0] else (parts, (name,))
                    found.append(ComparedColumns("+".join(a), a, b, shared))
                    one.take([name])
                    other.take(parts)
    return found


def _whole(pair: ComparedColumns, sides: tuple[_Side, _Side]) -> ComparedColumns:
    """Return a pair, with columns added that have no partner if they and its own are the other column together."""
    if len(pair.a) > 1 or len(pair.b) > 1:
        return pair
    for place, side in enumerate(sides):
        for name in list(side.free):
            some = [list(pair.a), list(pair.b)]
            some[place] = [one for one in side.names if one in (*some[place], name)]
            shared = shared_words(sides[0].words(some[0]), sides[1].words(some[1]))
            if len(some[1 - place]) == 1 and shared >= WHOLE * (pair.shared or 0.0):
                side.take([name])
                pair = ComparedColumns("+".join(some[0]), tuple(some[0]), tuple(some[1]), shared)
    return pair
