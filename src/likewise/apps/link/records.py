"""The records of one or two tables as one list: their names, and the fields that can be compared."""

from __future__ import annotations

import os
import re
from collections.abc import Mapping
from dataclasses import dataclass
from functools import partial
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
from numpy.typing import NDArray

from likewise.apps.link.fields import Field, Ints, as_strings, make_field
from likewise.apps.link.tables import read_table
from likewise.base.arrays import to_arrow
from likewise.base.parallel import all_at_once
from likewise.errors import ColumnError, InputError, ParameterError

NOT_COMPARED = "a field that is not compared: one that was used cannot tell how good the score is"
ID_NAME = re.compile(r"(.*[ _-])?id", re.I)


@dataclass(frozen=True)
class Records:
    """The records of both tables, the second's from `border` on (0: one table); `id` is None for row numbers."""

    tables: list[pa.Table]
    border: int
    count: int
    id: str | None
    ids: list[pa.ChunkedArray]
    fields: list[Field]
    notes: list[str]

    def names(self, rows: Ints) -> Any:
        """Return the ids of records, which are all of the first table or all of the second."""
        if self.border and len(rows) and rows[0] >= self.border:
            return self.ids[1].take(pa.array(rows - self.border)).combine_chunks()
        return self.ids[0].take(pa.array(rows)).combine_chunks()

    def values(self, column: str, rows: Ints) -> list[Any]:
        """Return a column of records, which are all of the first table or all of the second, as it was given."""
        second = int(bool(self.border) and len(rows) > 0 and rows[0] >= self.border)
        taken = self.tables[second].column(column).take(pa.array(rows - self.border * second))
        return list(taken.to_pylist())

    def row(self, record: int) -> dict[str, Any]:
        """Return a record as it was given."""
        if self.border and record >= self.border:
            return dict(self.tables[1].slice(record - self.border, 1).to_pylist()[0])
        return dict(self.tables[0].slice(record, 1).to_pylist()[0])


def records_of(
    a: Any,
    b: Any,
    id: str | None,
    fields: Mapping[str, str | None] | None,
    threads: int = 1,
    without: str | None = None,
) -> Records:
    """Read the tables, find the ids, and make the fields; a field that says nothing is left out with a note."""
    sources = [a] if b is None else [a, b]
    read = [read_table(source) for source in sources]
    tables, wheres = [table for table, _ in read], [where for _, where in read]
    if b is None and tables[0].num_rows < 2:
        raise InputError(f"{wheres[0]}: one record cannot be linked with itself; give more, or a second table")
    name = id if id is not None else _guessed_id(tables)
    ids = [_ids(table, name, where) for table, where in zip(tables, wheres, strict=True)]
    notes: list[str] = []
    chosen = _chosen(tables, wheres, name, fields, notes, without)

    def make(column: str) -> Field:
        parts = [_plain(table.column(column)) for table in tables]
        if len(parts) > 1 and parts[0].type != parts[1].type:
            parts = [as_strings(part) for part in parts]
        chunks = [chunk for part in parts for chunk in part.chunks]
        return make_field(column, pa.chunked_array(chunks, parts[0].type), chosen[column])

    made = []
    for one in all_at_once([partial(make, column) for column in chosen], threads):
        if len(one.values) < 2:
            what = "the same" if one.values else "missing"
            notes.append(f"{one.name}: all values are {what}; left out")
        else:
            made.append(one)
    if not made:
        raise InputError(f"{wheres[0]}: no column tells records apart; all of them are constant or missing")
    border = tables[0].num_rows if b is not None else 0
    return Records(tables, border, sum(table.num_rows for table in tables), name, ids, made, notes)


def _plain(column: pa.ChunkedArray) -> pa.ChunkedArray:
    if pa.types.is_dictionary(column.type):
        column = column.cast(column.type.value_type)
    if pa.types.is_large_string(column.type) or pa.types.is_string_view(column.type):
        column = column.cast(pa.string())
    return column


def _guessed_id(tables: list[pa.Table]) -> str | None:
    names = [table.column_names[0] for table in tables if table.num_columns]
    same = len(names) == len(tables) and len(set(names)) == 1
    if not same or not ID_NAME.fullmatch(names[0].strip()):
        return None
    unique = all(pc.count_distinct(table.column(0), mode="all").as_py() == table.num_rows for table in tables)
    return names[0] if unique or names[0].strip().lower() == "id" else None


def _ids(table: pa.Table, name: str | None, where: str) -> pa.ChunkedArray:
    if name is None:
        return pa.chunked_array([to_arrow(np.arange(table.num_rows, dtype=np.int64))])
    if name not in table.column_names:
        raise ColumnError.of(where, name, table.column_names)
    column = _plain(table.column(name))
    if pa.types.is_string(column.type):
        column = pc.utf8_trim_whitespace(column)
    if column.null_count:
        row = pc.index(pc.is_null(column), True).as_py()
        raise InputError(f"{where}: row {row} has no id in column '{name}'; every record needs one")
    codes = column.combine_chunks().dictionary_encode()
    codes = codes.combine_chunks() if isinstance(codes, pa.ChunkedArray) else codes
    if len(codes.dictionary) < len(column):
        places = codes.indices.to_numpy(zero_copy_only=False)
        order = np.argsort(places, kind="stable")
        twice = int(np.flatnonzero(places[order][1:] == places[order][:-1])[0])
        first, second = order[twice], order[twice + 1]
        raise InputError(
            f"{where}: rows {first} and {second} have the same id {column[int(first)].as_py()!r} in column '{name}';"
            " ids must differ: name another column, or rename this one if it is a field like others"
        )
    return column


def _chosen(
    tables: list[pa.Table],
    wheres: list[str],
    name: str | None,
    fields: Mapping[str, str | None] | None,
    notes: list[str],
    without: str | None,
) -> dict[str, str | None]:
    if without is not None:
        for table, where in zip(tables, wheres, strict=True):
            if without not in table.column_names:
                raise ColumnError.of(where, without, table.column_names)
        if without in (fields or {}):
            raise ParameterError.of("link", "validate", NOT_COMPARED, without)
    if fields is not None:
        for field in fields:
            for table, where in zip(tables, wheres, strict=True):
                if field not in table.column_names:
                    raise ColumnError.of(where, field, table.column_names)
        return dict(fields)
    shared = [column for column in tables[0].column_names if all(column in t.column_names for t in tables)]
    shared = [column for column in shared if column not in (name, without)]
    if not shared:
        columns = "; ".join(f"{w}: {', '.join(t.column_names)}" for w, t in zip(wheres, tables, strict=True))
        raise ColumnError(f"there is no column to compare ({columns}); rename columns so that they agree")
    alone = sorted({column for table in tables for column in table.column_names} - set(shared) - {name, without})
    if alone:
        notes.append(f"only one table has {', '.join(alone)}; left out")
    return dict.fromkeys(shared)


def labelled_pairs(source: Any, records: Records, owner: str) -> tuple[Ints, NDArray[np.bool_]]:
    """Return pairs of records, lower number first, and whether each is said to match (all, without a third column).

    The source is a file or table with columns id_a and id_b (or the first two), or a list of pairs.
    """
    if isinstance(source, list | tuple | set | frozenset) and not isinstance(source, str | os.PathLike):
        rows = [tuple(pair) for pair in source]
        if any(len(pair) not in (2, 3) for pair in rows):
            raise ParameterError.of("link", owner, "pairs of ids, or triples with a label", source)
        columns = [[str(pair[place]).strip() for pair in rows] for place in range(2)]
        marks = [pair[2] if len(pair) > 2 else True for pair in rows]
    else:
        table, where = read_table(source)
        if table.num_columns < 2:
            raise ColumnError(f"{where}: pairs need two columns of ids; there is {', '.join(table.column_names)}")
        names = ["id_a", "id_b"] if {"id_a", "id_b"} <= set(table.column_names) else table.column_names[:2]
        columns = [[str(value).strip() for value in table.column(name).to_pylist()] for name in names]
        rest = [name for name in table.column_names if name not in names]
        label = next((name for name in rest if name.lower() in ("match", "label")), None)
        marks = table.column(label).to_pylist() if label else [True] * table.num_rows
    sides = []
    for place, column in enumerate(columns):
        second = place == 1 and records.border
        ids = records.ids[1 if second else 0].to_pylist()
        rows_of = {str(value): row + (records.border if second else 0) for row, value in enumerate(ids)}
        unknown = next((value for value in column if value not in rows_of), None)
        if unknown is not None:
            raise InputError(f"{owner}: there is no record with the id {unknown!r}")
        sides.append(np.array([rows_of[value] for value in column], np.int64))
    pairs = np.stack([np.minimum(*sides), np.maximum(*sides)], axis=1)
    labels = np.array([str(mark).strip().lower() in ("1", "true", "yes", "y", "match", "1.0") for mark in marks], bool)
    keys, first = np.unique(pairs[:, 0] * records.count + pairs[:, 1], return_index=True)
    return pairs[first][keys // records.count != keys % records.count], labels[first][
        keys // records.count != keys % records.count
    ]
