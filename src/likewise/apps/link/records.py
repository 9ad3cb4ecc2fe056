"""The records of one or two tables as one list: their ids, and the fields that can be compared."""

from __future__ import annotations

import re
from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass, field, replace
from functools import partial
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from likewise.apps.link.columns import ComparedColumns, given_columns, paired_columns
from likewise.apps.link.fields import USUAL, Field, MissingValues, as_strings, make_field, without_values
from likewise.apps.link.repeated_fields import repeated
from likewise.apps.link.terms import content_keys, content_order
from likewise.apps.link.uninformative_fields import uninformative
from likewise.base.arrays import Ints, to_arrow
from likewise.base.parallel import all_at_once
from likewise.errors import ColumnError, InputError, ParameterError
from likewise.io.read.find import files_of
from likewise.io.tables import check_once, read_tables

NOT_COMPARED = "a column that is not compared, as the scores already depend on those that are"
MOST_MISSING = 0.1
"""No F1 is stated if more than this part of the values are missing."""

VIEWS = {pa.string_view(): pa.large_string(), pa.binary_view(): pa.large_binary()}
ID_NAME = re.compile(r"(.*[ _-])?id", re.I)
SAME, NONE = "all values are the same", "all values are missing"


@dataclass(frozen=True)
class RecordTable:
    """The records of both tables, those of the second from `border` on (0: one table); `id` is None for row numbers.

    Tables of files can be let go: they are read again from their `sources` when a row is asked for. `placeholders` are
    the values of fields that were found to mean none.
    """

    tables: list[pa.Table]
    wheres: list[str]
    border: int
    count: int
    id: str | None
    ids: list[pa.ChunkedArray]
    fields: list[Field]
    notes: list[str]
    inputs: list[dict[str, Any]] = field(default_factory=list)
    columns: list[ComparedColumns] = field(default_factory=list)
    sources: list[Any] = field(default_factory=list)
    placeholders: dict[str, list[str]] = field(default_factory=dict)

    @property
    def aside(self) -> list[Any]:
        """No rows are set aside: a broken row is an error."""
        return []

    def describe(self) -> list[dict[str, Any]]:
        """Return what was read, for run.json."""
        return self.inputs

    @property
    def counts(self) -> dict[str, int]:
        """The numbers of records, for run.json."""
        sides = {"records_a": self.border, "records_b": self.count - self.border} if self.border else {}
        return {"records": self.count, **sides}

    @property
    def details(self) -> dict[str, Any]:
        """What was found out about the tables, for run.json."""
        found: dict[str, Any] = {"id": self.id, "fields": {one.name: one.kind for one in self.fields}}
        if self.columns:
            shares = ({} if one.shared is None else {"shared": round(one.shared, 4)} for one in self.columns)
            pairs = zip(self.columns, shares, strict=True)
            found["columns"] = {one.name: {"b": one.other, **share} for one, share in pairs}
        return found

    @property
    def is_complete(self) -> bool:
        """Whether few values are missing: a match whose values are missing is not seen, and not missed either."""
        present = sum(one.present for one in self.fields)
        return present >= (1 - MOST_MISSING) * self.count * len(self.fields)

    def names(self, rows: Ints) -> Any:
        """Return the ids of records, which are all of the first table or all of the second."""
        if self.border and len(rows) and rows[0] >= self.border:
            return self.ids[1].take(pa.array(rows - self.border)).combine_chunks()
        return self.ids[0].take(pa.array(rows)).combine_chunks()

    def values(self, column: str, rows: Ints) -> list[Any]:
        """Return a column of records, all of the first table or all of the second, as it was read."""
        second = int(bool(self.border) and len(rows) > 0 and rows[0] >= self.border)
        taken = self.columns_of(column)[second].take(pa.array(rows - self.border * second))
        return list(taken.to_pylist())

    def let_go(self, sources: Sequence[Any], room: int) -> None:
        """Free the memory of tables that are larger than `room`, if all of them are in files."""
        if sum(table.nbytes for table in self.tables) > room and all(files_of(one) is not None for one in sources):
            self.tables.clear()
            self.sources.extend(sources)
            pa.default_memory_pool().release_unused()

    def read_again(self) -> None:
        """Read the tables again if they were let go."""
        if self.sources:
            self.tables.extend(read_table(source, "a")[0] for source in self.sources)
            if sum(table.num_rows for table in self.tables) != sum(map(len, self.ids)):
                self.tables.clear()
                raise InputError(f"{', '.join(self.wheres)}: the files have changed since they were linked; link again")
            self.sources.clear()

    def columns_of(self, column: str) -> list[pa.ChunkedArray]:
        """Return a column of each table, in the second under the name that it has there; raise if there is none."""
        self.read_again()
        found = next((one for one in self.columns if one.name == column), ComparedColumns(column, (column,), (column,)))
        for table, where, names in zip(self.tables, self.wheres, (found.a, found.b), strict=False):
            for name in names:
                if name not in table.column_names:
                    raise ColumnError.of(where, name, table.column_names)
        return [found.of(table, place > 0) for place, table in enumerate(self.tables)]

    def row(self, record: int) -> dict[str, Any]:
        """Return a record as it was read."""
        self.read_again()
        if self.border and record >= self.border:
            return dict(self.tables[1].slice(record - self.border, 1).to_pylist()[0])
        return dict(self.tables[0].slice(record, 1).to_pylist()[0])

    def check_column(self, column: str) -> None:
        """Raise if a table does not have the column."""
        self.columns_of(column)


def records_of(
    a: Any,
    b: Any = None,
    *,
    id: str | None = None,
    fields: Mapping[str, str | None] | None = None,
    threads: int = 1,
    validate: str | None = None,
    apart: Collection[str] = (),
    columns: Mapping[str, str | None] | None = None,
    all_fields: bool = False,
    missing: Sequence[str] = (),
) -> RecordTable:
    """Read the tables, find the ids, and make the fields; constant and empty fields are left out with a note.

    `validate` is a column that is not compared, and `apart` has columns that are compared only if `fields` names them.
    `columns` are the columns of b by those of a, where their names differ. Fields that repeat others are left out, too,
    and those that tell nothing unless `fields` names them; with `all_fields`, neither. `missing` are further
    values that mean none.
    """
    sources = {"a": a} if b is None else {"a": a, "b": b}
    read = [read_table(source, parameter) for parameter, source in sources.items()]
    tables, wheres = [table for table, _, _ in read], [where for _, where, _ in read]
    name = id if id is not None else _guessed_id(tables)
    ids = [ids_of(table, name, where) for table, where in zip(tables, wheres, strict=True)]
    border = tables[0].num_rows if b is not None else 0
    count = sum(table.num_rows for table in tables)
    made: list[Field] = []
    notes: list[str] = []
    records = RecordTable(
        tables, wheres, border, count, name, ids, made, notes, [entry for *_, inputs in read for entry in inputs]
    )
    records.columns.extend(given_columns(tables, wheres, columns or {}))
    alone = {name for name, other in (columns or {}).items() if not other}
    chosen = _chosen(records, fields, validate, apart, alone, MissingValues(tuple(missing)))
    absent = MissingValues(tuple(missing))

    def make(column: str) -> Field:
        parts = [plain_column(part) for part in records.columns_of(column)]
        if len(parts) > 1 and parts[0].type != parts[1].type:
            parts = [as_strings(part) for part in parts]
        chunks = [chunk for part in parts for chunk in part.chunks]
        made = make_field(column, pa.chunked_array(chunks, parts[0].type), chosen[column], absent)
        pa.default_memory_pool().release_unused()
        return made

    sizes = {column: sum(part.nbytes for part in records.columns_of(column)) for column in chosen}
    largest = sorted(chosen, key=lambda column: -sizes[column])
    by_name = dict(zip(largest, all_at_once([partial(make, column) for column in largest], threads), strict=True))
    fields_made = [by_name[column] for column in chosen]
    rows = [table.num_rows for table in tables]
    lonely = max(rows) == 1 or (min(rows) == 1 and all(len(one.texts) < 2 for one in fields_made))
    least = 1 if lonely else 2  # where a record stands alone, equal values are a match and no constant of the column
    made.extend(one for one in fields_made if len(one.texts) >= least)
    constant = [one for one in fields_made if len(one.texts) < least]
    notes.extend(_by_reason({one.name: SAME if len(one.texts) else NONE for one in constant}))
    notes.extend(f"{value}: no column that is compared has this value, given as missing" for value in absent.unused)
    if not all_fields:
        records.placeholders.update(_leave_out(made, border, threads, notes, named=fields is not None))
    if not made:
        raise InputError(f"{wheres[0]}: no column distinguishes records; all of them are constant or missing")
    return records


def _leave_out(made: list[Field], border: int, threads: int, notes: list[str], named: bool) -> dict[str, list[str]]:
    """Leave out the fields that repeat others or say nothing, and the values that mean none, each with a note.

    Of fields that the user names, only what repeats others is left out: nothing is lost with it. Return the values that
    mean none, by field.
    """
    placeholders: dict[str, list[str]] = {}
    seen = _in_order(made, border) if len(made) > 1 else []
    told = repeated(seen, border) if seen else {}
    notes.extend(_by_reason(told))
    made[:] = [one for one in made if one.name not in told]
    if len(made) > 1 and not named:
        judged = sorted(_in_order(made, border) if told else seen, key=lambda one: one.name)
        found = uninformative(judged, border, threads=threads)
        notes.extend(_by_reason(found.fields))
        made[:] = [one for one in made if one.name not in found.fields]
        for place, one in enumerate(made):
            values = found.values.get(one.name)
            if values is not None:
                placeholders[one.name] = [one.texts[int(value)].as_py() for value in values]
                listed = ", ".join(map(repr, placeholders[one.name]))
                notes.append(f"{one.name}: {listed} agrees by chance in records that share the rest; taken as missing")
                made[place] = without_values(one, values)
    return placeholders


def _in_order(fields: list[Field], border: int) -> list[Field]:
    """Return the fields of the records in the order of their content, those of the first table first."""
    records = len(fields[0].codes)
    order = content_order(content_keys(fields, records), border)
    return [replace(one, codes=one.codes[order]) for one in fields]


def _by_reason(left_out: Mapping[str, str]) -> list[str]:
    """Return a note for each reason, with the fields that it holds for."""
    fields: dict[str, list[str]] = {}
    for name, why in left_out.items():
        fields.setdefault(why, []).append(name)
    return [f"{', '.join(names)}: {why}; left out" for why, names in fields.items()]


def read_table(source: Any, parameter: str) -> tuple[pa.Table, str, list[dict[str, Any]]]:
    """Return the table in files (CSV, TSV, Parquet, JSON lines, Arrow) or in an object, its name, and what was read.

    Every column of a CSV file is text. A row with too few or too many fields is an error that names the row.
    """
    parts = [(_without_views(part), name) for part, name in read_tables(source, "link", parameter, "records")]
    kind = "object" if files_of(source) is None else "file"
    inputs = [{kind: name, "rows": part.num_rows} for part, name in parts]
    table, name = parts[0]
    if len(parts) > 1:
        table, name = pa.concat_tables([part for part, _ in parts], promote_options="default"), str(source)
    if table.num_rows == 0:
        raise InputError(f"{name}: the table has no rows")
    check_once(name, table.column_names)
    return table, name, inputs


def _without_views(table: pa.Table) -> pa.Table:
    """Return a table with plain texts and bytes in place of views of them, of which Arrow takes no rows."""
    kinds = [field.with_type(VIEWS.get(field.type, field.type)) for field in table.schema]
    return table.cast(pa.schema(kinds)) if kinds != list(table.schema) else table


def plain_column(column: pa.ChunkedArray) -> pa.ChunkedArray:
    """Return a column without a dictionary, of the usual type of texts."""
    if pa.types.is_dictionary(column.type):
        column = column.cast(column.type.value_type)
    if pa.types.is_large_string(column.type):
        column = column.cast(pa.string())
    return column


def _guessed_id(tables: list[pa.Table]) -> str | None:
    names = [table.column_names[0] for table in tables if table.num_columns]
    same = len(names) == len(tables) and len(set(names)) == 1
    if not same or not ID_NAME.fullmatch(names[0].strip()):
        return None
    unique = all(
        pc.count_distinct(plain_column(table.column(0)), mode="all").as_py() == table.num_rows for table in tables
    )
    return names[0] if unique or names[0].strip().lower() == "id" else None


def ids_of(table: pa.Table, name: str | None, where: str) -> pa.ChunkedArray:
    """Return the ids of records, row numbers if no column has them; raise if one is missing or not unique."""
    if name is None:
        return pa.chunked_array([to_arrow(np.arange(table.num_rows, dtype=np.int64))])
    if name not in table.column_names:
        raise ColumnError.of(where, name, table.column_names)
    column = plain_column(table.column(name))
    if pa.types.is_string(column.type):
        column = pc.utf8_trim_whitespace(column)
    if column.null_count:
        row = pc.index(pc.is_null(column), True).as_py()
        raise InputError(f"{where}: row {row} (counted from 0) has no id in column '{name}'; every record needs one")
    if pa.types.is_integer(column.type):
        ordered = np.sort(column.to_numpy())
        if (ordered[1:] != ordered[:-1]).all():
            return column
    codes = column.combine_chunks().dictionary_encode()
    codes = codes.combine_chunks() if isinstance(codes, pa.ChunkedArray) else codes
    if len(codes.dictionary) < len(column):
        places = codes.indices.to_numpy(zero_copy_only=False)
        order = np.argsort(places, kind="stable")
        twice = int(np.flatnonzero(places[order][1:] == places[order][:-1])[0])
        first, second = order[twice], order[twice + 1]
        raise InputError(
            f"{where}: rows {first} and {second} (counted from 0) have the same id {column[int(first)].as_py()!r} in "
            f"column '{name}'; ids must be unique: name another column with 'id', or rename this one if it is an "
            "ordinary field"
        )
    return column


def _chosen(
    records: RecordTable,
    fields: Mapping[str, str | None] | None,
    validate: str | None,
    others: Collection[str],
    alone: Collection[str],
    missing: MissingValues = USUAL,
) -> dict[str, str | None]:
    """Return the fields to compare and their kinds: those given, or all columns that both tables have.

    `alone` are the columns that have no counterpart, as the user says. Columns whose names differ in punctuation or
    whose content is the same are added to `records.columns`.
    """
    if validate is not None:
        records.check_column(validate)
        if validate in (fields or {}):
            raise ParameterError.of("link", "validate", NOT_COMPARED, validate)
    if fields is not None:
        for name in fields:
            records.check_column(name)
        return dict(fields)
    tables, apart = records.tables, {records.id, validate, *others}
    if len(tables) == 1:
        shared = [column for column in tables[0].column_names if column not in apart]
    else:
        shared, notes = paired_columns(tables, records.columns, apart, alone, missing)
        records.notes.extend(notes)
    if not shared:
        columns = "; ".join(f"{w}: {', '.join(t.column_names)}" for w, t in zip(records.wheres, tables, strict=True))
        hint = "".join(f"; {note}" for note in records.notes)
        raise ColumnError(
            f"there is no column to compare ({columns}); say which correspond, with --map (in Python columns=){hint}"
        )
    return dict.fromkeys(shared)
