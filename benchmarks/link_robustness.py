"""Record linkage when the data are not as one would wish: how much F1 does `likewise link` lose?

    python benchmarks/link_robustness.py --data FOLDER
    python benchmarks/link_robustness.py --data FOLDER --sets "people500;names/*" --changes "1 in *;plain"

Every collection is linked as it is ("plain") and once for each change, without labels and settings: rows or columns in
another order, or columns with names that say nothing; columns more that repeat others, whole, joined, abbreviated or in
part; columns more that say nothing of who is who: random, constant, mostly empty, or about the source of a record
("service"); values missing; few records with a partner; first and last names swapped; letters of other alphabets. The
table has the F1 of each, and how much less that is than the plain one; "best" is the F1 that the best threshold would
reach (link_scores.py), with which a lost threshold is told from lost scores. FOLDER is that of link.py.
"""

from __future__ import annotations

import argparse
import json
import time
from collections.abc import Callable, Iterable
from dataclasses import asdict, dataclass
from fnmatch import fnmatchcase
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
from rich.console import Console
from rich.table import Table

from link_scores import best_threshold, quality, scored_pairs
from record_sets import MADE, Collection, answer, from_csv, made, pairs_of
from runs import HERE
from scores import components
from truth import Integers

SETS = (
    "schools;patentees;people500;register;discs;cora;restaurants;abt-buy;amazon-google;dblp-acm"
    ";names/Amphibian;names/Venue"
)
NAMES: dict[str, tuple[str, ...]] = {
    "people500": ("fname_c1", "lname_c1"),
    "register": ("given1", "surname1"),
    "dblp-acm": ("authors",),
}
"""The columns of first and last names; one column has them in one, separated by commas if there are several persons."""

SWAPPED = 0.1
"""Fraction of the records whose first and last names are swapped."""

MOSTLY = 0.95
"""Fraction of the values that a mostly empty column misses."""

COLOURS = ("red", "green", "blue", "grey", "black", "white", "brown", "pink")
CONSTANTS = ("yes", "EU", "2020-01-01", "active", "1", "import", "n", "ok", "main", "std")
UNKNOWN = 0.02
"""Fraction of the values that a constant column misses."""

SOURCES, SERVICES = 4, 10
"""Hidden sources of records, and columns that depend on them."""

HOURS = ("day", "half day", "evening", "weekend", "3-4 hours", "full time")
FILLED, LEFT_OUT, TYPICAL = 0.6, 0.1, 0.5
"""Of the columns of a source, the part that it fills; of its records, the part that miss a value all the same, and the
part that have the value that is typical of the source, not one by chance."""

LATIN = "abcdefghijklmnopqrstuvwxyz"
ALPHABETS = {
    "Cyrillic letters": "абцдефгхийклмнопярстувшжыз",
    "Greek letters": "αβξδεφγηιϳκλμνοπϙρστυϝωχψζ",
    "Chinese characters": "山水火木金土日月天地人大小上下中左右東西南北春夏秋冬",
}
console = Console(highlight=False, width=160)


@dataclass(frozen=True)
class Records:
    """Tables to link, the pairs that match, and the columns of names."""

    tables: list[pa.Table]
    truth: pa.Table
    names: tuple[str, ...] = ()

    @property
    def columns(self) -> list[str]:
        """The columns beside the ids."""
        return [name for name in self.tables[0].column_names if name != "id"]

    def with_tables(self, tables: Iterable[pa.Table]) -> Records:
        """The same truth with other tables."""
        return Records(list(tables), self.truth, self.names)

    def with_rows(self, kept: list[set[str]]) -> Records:
        """Some of the records, and the true pairs among them."""
        tables = [
            table.filter(pc.is_in(table["id"], pa.array(sorted(some), pa.string())))
            for table, some in zip(self.tables, kept, strict=True)
        ]
        among = (pc.is_in(self.truth[name], table["id"]) for name, table in (("id_a", tables[0]), ("id_b", tables[-1])))
        return Records(tables, self.truth.filter(pc.and_(*among)), self.names)


Change = Callable[[Records, np.random.Generator], Records | None]
"""Makes other records of some; None where that cannot be done."""


@dataclass(frozen=True)
class Outcome:
    """What became of a collection with a change; `failed` says why there are no numbers."""

    collection: str
    change: str
    records: str = ""
    pairs: int = 0
    precision: float | None = None
    recall: float | None = None
    f1: float | None = None
    drop: float | None = None
    best_f1: float | None = None
    completeness: float | None = None
    stated_f1: float | None = None
    seconds: float | None = None
    failed: str | None = None


def records_of(collection: Collection) -> Records:
    """The records of a collection, all values as text."""
    tables = [_as_text(table) for table in [*collection.tables(), collection.true_pairs().select(["id_a", "id_b"])]]
    return Records(tables[:-1], tables[-1], NAMES.get(collection.name, ()))


def _as_text(table: pa.Table) -> pa.Table:
    return table.cast(pa.schema([(name, pa.string()) for name in table.column_names]))


def plain(records: Records, chance: np.random.Generator) -> Records:
    """The records as they are."""
    return records


def permuted(records: Records, chance: np.random.Generator) -> Records | None:
    """The columns in another order, ids last."""
    names = records.columns
    if len(names) < 2:
        return None
    order = np.roll(chance.permutation(len(names)), 1).tolist()
    return records.with_tables(table.select([*(names[place] for place in order), "id"]) for table in records.tables)


def shuffled(records: Records, chance: np.random.Generator) -> Records:
    """The records of each table in another order."""
    return records.with_tables(table.take(pa.array(chance.permutation(table.num_rows))) for table in records.tables)


def renamed(records: Records, chance: np.random.Generator) -> Records:
    """Columns called c1, c2 and so on."""
    new = {name: f"c{place}" for place, name in enumerate(records.columns, 1)}
    return records.with_tables(
        table.rename_columns([new.get(name, name) for name in table.column_names]) for table in records.tables
    )


Values = list[str | None]


def informative(records: Records) -> list[str]:
    """The columns of all tables, those first that have many values, and many different ones."""

    def worth(name: str) -> int:
        values = [value for table in records.tables for value in table[name].to_pylist() if value is not None]
        return len(set(values)) * len(values)

    shared = [name for name in records.columns if all(name in table.column_names for table in records.tables)]
    return sorted(shared, key=worth, reverse=True)


def added(records: Records, name: str, columns: Iterable[Values]) -> Records:
    """The records with a column more, given the values of each table."""
    pairs = zip(records.tables, columns, strict=True)
    return records.with_tables(table.append_column(name, pa.array(values, pa.string())) for table, values in pairs)


def copied(count: int) -> Change:
    """A change that copies the most informative columns, so many at most."""

    def change(records: Records, chance: np.random.Generator) -> Records:
        for name in informative(records)[:count]:
            records = added(records, f"{name} again", [table[name].to_pylist() for table in records.tables])
        return records

    return change


def derived(made: Callable[..., str | None], count: int = 1) -> Change:
    """A change that makes a column of the most informative ones."""

    def change(records: Records, chance: np.random.Generator) -> Records | None:
        names = informative(records)[:count]
        if len(names) < count:
            return None
        rows = (zip(*(table[name].to_pylist() for name in names), strict=True) for table in records.tables)
        return added(records, "derived", ([made(*values) for values in some] for some in rows))

    return change


def joined(one: str | None, other: str | None) -> str | None:
    """Two values as one.

    >>> joined("Ann", "Lee"), joined(None, "Lee"), joined(None, None)
    ('Ann Lee', 'Lee', None)
    """
    return " ".join(filter(None, (one, other))) or None


def abbreviated(value: str | None) -> str | None:
    """The initials of several words, or the beginning of one.

    >>> abbreviated("Ann B. Lee"), abbreviated("Chicago"), abbreviated(None)
    ('ABL', 'Chi', None)
    """
    words = (value or "").split()
    return "".join(word[0] for word in words) if len(words) > 1 else words[0][:3] if words else None


def first_word(value: str | None) -> str | None:
    """The first word.

    >>> first_word("Ann B. Lee"), first_word(None)
    ('Ann', None)
    """
    return next(iter((value or "").split()), None)


def with_columns(*makers: Callable[[int, np.random.Generator], Values]) -> Change:
    """A change that adds columns that have nothing to do with the records."""

    def change(records: Records, chance: np.random.Generator) -> Records:
        for place, values in enumerate(makers, 1):
            records = added(records, f"added {place}", [values(table.num_rows, chance) for table in records.tables])
        return records

    return change


def numbers(count: int, chance: np.random.Generator) -> Values:
    """Numbers with two decimals."""
    return [f"{value:.2f}" for value in chance.uniform(0, 1_000, count).tolist()]


def colours(count: int, chance: np.random.Generator) -> Values:
    """One of eight words."""
    return [COLOURS[place] for place in chance.integers(0, len(COLOURS), count).tolist()]


def codes(count: int, chance: np.random.Generator) -> Values:
    """Eight letters, the same twice in hardly any of these tables."""
    return ["".join(LATIN[place] for place in row) for row in chance.integers(0, 16, (count, 8)).tolist()]


def constant(value: str) -> Callable[[int, np.random.Generator], Values]:
    """The same value, but for a few that are missing."""
    return lambda count, chance: [None if empty else value for empty in (chance.random(count) < UNKNOWN).tolist()]


def mostly_empty(count: int, chance: np.random.Generator) -> Values:
    """One of a thousand words, or mostly nothing."""
    drawn = zip(chance.integers(0, 1_000, count).tolist(), chance.random(count) < MOSTLY, strict=True)
    return [None if empty else _word(value) for value, empty in drawn]


def services(records: Records, chance: np.random.Generator) -> Records:
    """Columns about the source of a record, which is no column: it decides which are filled, and mostly with what."""
    sources = [chance.integers(0, SOURCES, table.num_rows) for table in records.tables]
    for place in range(SERVICES):
        fills = chance.random(SOURCES) < FILLED
        fills[0] |= not fills.any()
        columns: list[Values] = []
        for source in sources:
            other = np.where(chance.random(len(source)) < TYPICAL, 0, chance.integers(0, len(HOURS), len(source)))
            there = fills[source] & (chance.random(len(source)) >= LEFT_OUT)
            rows = zip(((source + other) % len(HOURS)).tolist(), there.tolist(), strict=True)
            columns.append([f"{HOURS[value]} {place}" if known else None for value, known in rows])
        records = added(records, f"service {place}", columns)
    return records


def _word(number: int) -> str:
    return "".join("bdfgklmnprstvz"[number // 5**place % 14] + "aeiou"[number // 14**place % 5] for place in range(3))


def missing(share: float) -> Change:
    """A change that empties this fraction of the values."""

    def change(records: Records, chance: np.random.Generator) -> Records:
        tables = []
        for table in records.tables:
            for name in records.columns:
                empty = pa.array(chance.random(table.num_rows) < share)
                column = pc.if_else(empty, pa.scalar(None, pa.string()), table[name])
                table = table.set_column(table.column_names.index(name), name, column)
            tables.append(table)
        return records.with_tables(tables)

    return change


def with_partner(share: float) -> Change:
    """A change after which at most this fraction of the records of each table have a partner.

    Of the entities some keep all their records. The others keep one, or, of two tables, those of one table in turn.
    """

    def change(records: Records, chance: np.random.Generator) -> Records | None:
        ids = [table["id"].to_pylist() for table in records.tables]
        entity = entities(records, ids)
        sizes = [np.bincount(one, minlength=int(max(map(np.max, entity))) + 1) for one in entity]
        has = sizes[0] > 1 if len(sizes) == 1 else (sizes[0] > 0) & (sizes[1] > 0)
        matched = chance.permutation(np.flatnonzero(has))
        if all(some[has].sum() <= share * some.sum() for some in sizes):
            return None
        for kept in range(len(matched) - 1, 0, -1):
            left = [some.copy() for some in sizes]
            whole, rest = matched[:kept], matched[kept:]
            if len(left) == 1:
                left[0][rest] = 1
            else:
                left[0][rest[::2]] = left[1][rest[1::2]] = 0
            if all(some[whole].sum() <= share * some.sum() for some in left):
                return records.with_rows([_first(*one) for one in zip(ids, entity, left, strict=True)])
        return None

    return change


def entities(records: Records, ids: list[list[str]]) -> list[Integers]:
    """The entity of each record of each table."""
    numbers = [{name: row for row, name in enumerate(some)} for some in ids]
    border = len(ids[0]) if len(ids) == 2 else 0
    first = np.array([numbers[0][name] for name in records.truth["id_a"].to_pylist()], np.int64)
    second = np.array([numbers[-1][name] for name in records.truth["id_b"].to_pylist()], np.int64) + border
    labels = components(first, second, sum(map(len, ids)))
    return [labels[:border], labels[border:]] if border else [labels]


def _first(ids: list[str], entity: Integers, most: Integers) -> set[str]:
    """The first records of each entity, so many at most."""
    left = most.tolist()
    found = set()
    for name, one in zip(ids, entity.tolist(), strict=True):
        if left[one]:
            left[one] -= 1
            found.add(name)
    return found


def swapped(records: Records, chance: np.random.Generator) -> Records | None:
    """First and last names swapped in some records of the last table."""
    if not records.names:
        return None
    *others, table = records.tables
    rows = chance.random(table.num_rows) < SWAPPED
    columns = [table[name].to_pylist() for name in records.names]
    if len(columns) == 2:
        new = [columns[1], columns[0]]
    else:
        new = [[None if value is None else ", ".join(map(_last_first, value.split(", "))) for value in columns[0]]]
    for name, before, after in zip(records.names, columns, new, strict=True):
        values = [b if row else a for a, b, row in zip(before, after, rows, strict=True)]
        table = table.set_column(table.column_names.index(name), name, pa.array(values, pa.string()))
    return records.with_tables([*others, table])


def _last_first(name: str) -> str:
    """Ann B. Lee becomes Lee Ann B."""
    *first, last = name.split(" ")
    return " ".join([last, *first])


def in_letters(letters: str) -> Change:
    """A change that writes each Latin letter as one letter of another alphabet."""
    replaced = dict(zip(LATIN, letters, strict=True))
    replaced |= {latin.upper(): letter.upper() for latin, letter in replaced.items()}
    table_of = str.maketrans(replaced)

    def change(records: Records, chance: np.random.Generator) -> Records:
        tables = []
        for table in records.tables:
            for name in records.columns:
                values = [None if value is None else value.translate(table_of) for value in table[name].to_pylist()]
                table = table.set_column(table.column_names.index(name), name, pa.array(values, pa.string()))
            tables.append(table)
        return records.with_tables(tables)

    return change


CHANGES: dict[str, Change] = {
    "plain": plain,
    "rows shuffled": shuffled,
    "columns permuted": permuted,
    "columns renamed": renamed,
    "column copied": copied(1),
    "three columns copied": copied(3),
    "two columns joined": derived(joined, 2),
    "column abbreviated": derived(abbreviated),
    "first word of a column": derived(first_word),
    "ten random columns": with_columns(*[numbers, colours, codes] * 3, numbers),
    "ten constant columns": with_columns(*map(constant, CONSTANTS)),
    "ten service columns": services,
    "mostly empty column": with_columns(mostly_empty),
    "20 % missing": missing(0.2),
    "half missing": missing(0.5),
    "1 in 5 with partner": with_partner(1 / 5),
    "1 in 20 with partner": with_partner(1 / 20),
    "names swapped": swapped,
    **{name: in_letters(letters) for name, letters in ALPHABETS.items()},
}


MORE = tuple(name for name in CHANGES if "column" in name and name not in ("columns permuted", "columns renamed"))
"""The changes that add columns."""


def measured(name: str, change: str, records: Records | None, plain_f1: float | None, threads: int) -> Outcome:
    """Link the records, and compare the matches with the truth."""
    from likewise import link
    from likewise.errors import LikewiseError

    if records is None:
        return Outcome(name, change, failed="does not apply")
    size = " + ".join(f"{table.num_rows:,}" for table in records.tables)
    begun = time.perf_counter()
    try:
        found = link(*records.tables, id="id", truth=records.truth, threads=threads)
    except LikewiseError as error:
        return Outcome(name, change, size, records.truth.num_rows, failed=str(error))
    seconds = time.perf_counter() - begun
    two = len(records.tables) == 2
    precision, recall, f1 = quality(answer(found.matches, found.clusters), pairs_of(records.truth, two))
    details: dict[str, Any] = found.stats["details"]
    best, _ = best_threshold(scored_pairs(found.scored, found.matches, records.truth, two), details["rule"])
    return Outcome(
        name, change, size, records.truth.num_rows, precision, recall, f1, None if plain_f1 is None else plain_f1 - f1,
        best.f1, details["truth"]["completeness"], details.get("expected_f1"), seconds,
    )  # fmt: skip


def show(rows: list[Outcome]) -> None:
    """Print a row for each change, and for each collection its F1, the loss, and the F1 at the best threshold."""
    sets = list(dict.fromkeys(row.collection for row in rows))
    table = Table("F1 (loss) best", *sets)
    for change in dict.fromkeys(row.change for row in rows):
        cells = []
        for name in sets:
            row = next((one for one in rows if (one.collection, one.change) == (name, change)), None)
            if row is None or row.f1 is None:
                cells.append("" if row is None else "—" if row.failed == "does not apply" else "failed")
            else:
                loss = "" if row.drop is None else f" ({row.drop:+.3f})"
                cells.append(f"{row.f1:.3f}{loss} {row.best_f1:.3f}")
        table.add_row(change, *cells)
    console.print(table)
    for row in rows:
        if row.failed and row.failed != "does not apply":
            console.print(f"{row.collection}, {row.change}: {row.failed}")


def show_losses(rows: list[Outcome]) -> None:
    """Print for each collection the change that costs most of those that leave all there was in place."""
    table = Table("collection", "plain", "largest loss", "by")
    for name in dict.fromkeys(row.collection for row in rows):
        mine = [row for row in rows if row.collection == name]
        worst = max((row for row in mine if row.drop is not None and row.change in MORE), key=_drop, default=None)
        plain_f1 = next((row.f1 for row in mine if row.change == "plain"), None)
        if worst is not None and plain_f1 is not None:
            table.add_row(name, f"{plain_f1:.3f}", f"{_drop(worst):.3f}", worst.change if _drop(worst) > 0 else "")
    if table.row_count:
        console.print(table)


def _drop(row: Outcome) -> float:
    return row.drop or 0.0


def write(out: Path, rows: list[Outcome], seed: int) -> None:
    """Write what is known so far, beside what earlier runs found out about other collections and these changes."""
    measured = {(row.collection, row.change) for row in rows}
    before = json.loads(out.read_text())["table"] if out.exists() else []
    kept = [row for row in before if row["change"] in CHANGES and (row["collection"], row["change"]) not in measured]
    out.write_text(json.dumps({"seed": seed, "table": kept + [asdict(row) for row in rows]}, indent=2) + "\n")


def main() -> None:
    """Measure all, print the table, write it as JSON."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--data", type=Path, required=True, help="a folder of collections as CSV")
    parser.add_argument("--sets", default=SETS, help="collections by name (%(default)s)")
    parser.add_argument("--changes", default="*", help="changes by name, such as plain;1 in * (all)")
    parser.add_argument("--seed", type=int, default=1, help="of the changes")
    parser.add_argument("--threads", type=int, default=1)
    parser.add_argument("--out", type=Path, default=HERE / "results" / "link-robustness.json")
    asked = parser.parse_args()

    def wanted(name: str, patterns: str) -> bool:
        return any(fnmatchcase(name, pattern) for pattern in patterns.split(";"))

    rows: list[Outcome] = []
    generated = [made(name) for name in MADE if wanted(name, asked.sets)]
    for collection in [one for one in from_csv(asked.data) if wanted(one.name, asked.sets)] + generated:
        records = records_of(collection)
        plain_f1 = None
        for name, change in CHANGES.items():
            if wanted(name, asked.changes):
                changed = change(records, np.random.default_rng([asked.seed, *name.encode()]))
                rows.append(measured(collection.name, name, changed, plain_f1, asked.threads))
                plain_f1 = rows[-1].f1 if name == "plain" else plain_f1
                f1 = rows[-1].failed or f"{rows[-1].f1:.3f}"
                console.print(f"{collection.name}, {name}: {f1}")
                write(asked.out, rows, asked.seed)
    show(rows)
    show_losses(rows)


if __name__ == "__main__":
    main()
