"""Columns with other names: how many does `likewise link` pair by their content alone, rightly and wrongly?

    python benchmarks/link_columns.py --data FOLDER

FOLDER is that of link.py. The names of all columns are ignored; a table that is linked with itself is cut into two
halves at random. A pair of columns is right if they have the same name, or are one of OTHERS.
"""

from __future__ import annotations

import argparse
from pathlib import Path

import numpy as np
import pyarrow as pa
from rich.console import Console
from rich.table import Table

from record_sets import MADE, Collection, from_csv, made

OTHERS = {("starring", "actor name"), ("writer", "director name")}
"""Columns of films that hold the same under different names."""

console = Console(highlight=False, width=160)


def halves(collection: Collection) -> list[pa.Table]:
    """The two tables, or two halves of one."""
    tables = collection.tables()
    if len(tables) == 1:
        order = np.random.default_rng(1).permutation(tables[0].num_rows)
        tables = [tables[0].take(part) for part in np.array_split(order, 2)]
    return tables


def main() -> None:
    """Print a row for each collection, and the sums."""
    from likewise.apps.link.columns import alike_columns

    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--data", type=Path, required=True, help="a folder of collections as CSV")
    asked = parser.parse_args()
    table = Table("collection", "columns", "compared", "suggested", "not found", "wrong", "weakest compared")
    sums = np.zeros(5, np.int64)
    found = [one for one in from_csv(asked.data) if not one.name.startswith("names/") and "," not in one.name]
    for collection in [*found, *(made(name) for name in MADE)]:
        a, b = ({name: t.column(name) for name in t.column_names if name != "id"} for t in halves(collection))
        right = {(name, name) for name in a if name in b} | {(x, y) for x, y in OTHERS if x in a and y in b}
        pairs = alike_columns(a, b)
        good = [pair for pair in pairs if (pair.name, pair.other) in right]
        strong = [pair for pair in good if pair.strong]
        numbers = (len(right), len(strong), len(good) - len(strong), len(right) - len(good), len(pairs) - len(good))
        sums += numbers
        weakest = min((pair.shared or 0.0 for pair in strong), default=0.0)
        table.add_row(collection.name, *map(str, numbers), f"{weakest:.2f}")
    table.add_row("all", *map(str, sums.tolist()))
    console.print(table)


if __name__ == "__main__":
    main()
