"""Records added to an earlier result (`link --against`): the F1 beside that of a run of all records, and the seconds.

    python benchmarks/link_added.py --data FOLDER                      collections of one table, a tenth of them new
    python benchmarks/link_added.py --people 1000000 --new 10000       made people, in files

The records of a collection are shuffled; all but the new ones are linked, the new ones are added at once, or in five
parts one after the other, and all are linked at once. `loading` is reading the earlier result and its tables; `adding`
is everything after it until the result is written. FOLDER is that of link.py.
"""

from __future__ import annotations

import argparse
import json
import resource
import shutil
import tempfile
from dataclasses import asdict, dataclass
from pathlib import Path

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
from rich.console import Console
from rich.table import Table

import likewise
from link_scores import quality
from record_sets import MADE, Collection, answer, from_csv, made, made_people
from runs import HERE

PARTS = 5
SHARE = 0.1
SEED = 3
console = Console(soft_wrap=True)


@dataclass(frozen=True)
class Added:
    """What one collection showed: F1 of all at once, of new records at once and in parts; seconds of adding at once."""

    collection: str
    earlier: int
    new: int
    f1_all: float
    f1_added: float
    f1_in_parts: float | None
    joined: int
    merged: int
    seconds_all: float
    loading: float
    adding: float
    peak_mb: int


def measured(collection: Collection, new: int, threads: int | None, parts: int) -> Added:
    """Link the records at once, and bit by bit."""
    table = collection.tables()[0]
    table = table.take(pa.array(np.random.default_rng(SEED).permutation(table.num_rows)))
    new, truth = new or int(table.num_rows * SHARE), collection.truth()
    folder = Path(tempfile.mkdtemp(prefix="likewise-added-"))
    try:
        known = table.num_rows - new
        whole, before, after = (folder / f"{name}.parquet" for name in ("whole", "before", "after"))
        for path, some in ((whole, table), (before, table.slice(0, known)), (after, table.slice(known))):
            pq.write_table(some, path)
        likewise.link(str(before), out=folder / "earlier", threads=threads)
        found = likewise.link(str(after), against=folder / "earlier", out=folder / "added", threads=threads)
        peak = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss // 1024
        at_once = likewise.link(str(whole), threads=threads)
        f1_parts = None
        if parts:
            last = likewise.link(table.slice(0, known), threads=threads)
            for rows in np.array_split(np.arange(known, table.num_rows), parts):
                last = likewise.link(table.slice(int(rows[0]), len(rows)), against=last, threads=threads)
            f1_parts = quality(answer(last.matches, last.clusters), truth)[2]
        seconds, counts = found.stats["seconds"], found.stats["counts"]
        return Added(
            collection.name,
            known,
            new,
            quality(answer(at_once.matches, at_once.clusters), truth)[2],
            quality(answer(found.matches, found.clusters), truth)[2],
            f1_parts,
            counts["joined"],
            counts["merged"],
            at_once.stats["total_seconds"],
            seconds["read"],
            found.stats["total_seconds"] - seconds["read"],
            peak,
        )
    finally:
        shutil.rmtree(folder)


def show(rows: list[Added]) -> None:
    """Print the table."""
    table = Table(title="records added to an earlier result")
    for name in ("collection", "earlier", "new", "F1 all", "added", "in parts", "merged", "all s", "loading", "adding"):
        table.add_column(name, justify="left" if name == "collection" else "right")
    for row in rows:
        f1 = (row.f1_all, row.f1_added, row.f1_in_parts)
        seconds = (row.seconds_all, row.loading, row.adding)
        table.add_row(
            row.collection, f"{row.earlier:,}", f"{row.new:,}", *("" if one is None else f"{one:.4f}" for one in f1),
            f"{row.merged:,}", *(f"{one:.1f}" for one in seconds),
        )  # fmt: skip
    console.print(table)


def main() -> None:
    """Measure, print, and write JSON beside the rows of other collections."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--data", type=Path, help="a folder of collections as CSV")
    parser.add_argument("--people", type=int, default=0, help="made people, the new ones among them")
    parser.add_argument("--new", type=int, default=0, help="new records (a tenth)")
    parser.add_argument("--only", help="collections by name, separated by semicolons")
    parser.add_argument("--threads", type=int)
    parser.add_argument("--out", type=Path, default=HERE / "results" / "link-added.json")
    asked = parser.parse_args()
    found = [made_people(asked.people)] if asked.people else [one for one in from_csv(asked.data) if not one.two]
    found += [] if asked.people else [made(name) for name in MADE]
    wanted = asked.only.split(";") if asked.only else None
    rows = []
    for collection in found:
        if not collection.two and (wanted is None or collection.name in wanted):
            rows.append(measured(collection, asked.new, asked.threads, 0 if asked.people else PARTS))
            console.print(rows[-1])
    show(rows)
    before = json.loads(asked.out.read_text())["table"] if asked.out.exists() else []
    measured_now = {(row.collection, row.earlier) for row in rows}
    kept = [row for row in before if (row["collection"], row["earlier"]) not in measured_now]
    asked.out.write_text(json.dumps({"table": kept + [asdict(row) for row in rows]}, indent=2) + "\n")


if __name__ == "__main__":
    main()
