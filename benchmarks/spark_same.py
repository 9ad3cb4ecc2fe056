"""Is the answer of the Spark engine that of the local engine? One file in several partitionings, shuffled, two seeds.

    python benchmarks/spark_same.py FILE.parquet [--text text] [--id id]

For each of 1, 5 and 16 partitions of unequal size, in any order, and two seeds: `dedup` and `pairs` by both engines;
all rows of all tables, sorted, must be equal.
"""

from __future__ import annotations

import argparse
import os
import random
import sys
import time
from functools import reduce
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq

import likewise

TABLES = ("pairs", "removed", "clusters", "kept")


def settled(found: Any, like: pa.Table | None = None) -> pa.Table:
    """Return a table, Arrow or Spark, sorted by its first columns, which name its rows."""
    table = found.toArrow() if hasattr(found, "toArrow") else found
    table = table.sort_by([(name, "ascending") for name in table.column_names[:2]])
    return table if like is None else table.select(like.column_names).cast(like.schema)


def cut(rows: pa.Table, parts: int, seed: int) -> list[pa.Table]:
    """Return a table in parts of unequal sizes, in any order."""
    draw = random.Random(seed)
    cuts = sorted(draw.choices(range(rows.num_rows + 1), k=parts - 1))
    found = [rows.slice(start, stop - start) for start, stop in zip([0, *cuts], [*cuts, rows.num_rows], strict=True)]
    draw.shuffle(found)
    return found


def main() -> None:
    """Compare; end with an error if an answer differs."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("file", type=Path)
    parser.add_argument("--text", default="text")
    parser.add_argument("--id")
    parser.add_argument("--parts", type=int, nargs="+", default=[1, 5, 16])
    parser.add_argument("--seeds", type=int, nargs="+", default=[1, 2])
    asked = parser.parse_args()
    os.environ.setdefault("PYSPARK_PYTHON", sys.executable)
    from pyspark.sql import SparkSession

    spark = SparkSession.builder.master("local[2]").config("spark.ui.showConsoleProgress", "false").getOrCreate()
    spark.sparkContext.setLogLevel("ERROR")
    rows = pq.read_table(asked.file)
    wrong = 0
    for parts in asked.parts:
        for seed in asked.seeds:
            pieces = cut(rows, parts, seed)
            frame = reduce(lambda a, b: a.unionAll(b), [spark.createDataFrame(one).coalesce(1) for one in pieces])
            whole = pa.concat_tables(pieces)
            settings: dict[str, Any] = {"text": asked.text, "id": asked.id, "method": "lsh", "seed": seed}
            begun = time.perf_counter()
            local, found = likewise.dedup(whole, **settings), likewise.dedup(frame, **settings)
            differing = [
                name
                for name in TABLES
                if not settled(getattr(local, name)).equals(settled(getattr(found, name), getattr(local, name)))
            ]
            near, there = likewise.pairs(whole, **settings).table, likewise.pairs(frame, **settings).table
            if not settled(near).equals(settled(there, near)):
                differing.append("pairs of `pairs`")
            wrong += len(differing)
            told = f"differing: {', '.join(differing)}" if differing else "equal"
            counts = f"{local.stats['counts']['removed']:,} removed, {near.num_rows:,} pairs"
            print(
                f"{parts} partitions, seed {seed}: {told} ({counts}; {time.perf_counter() - begun:.0f} s)", flush=True
            )
    spark.stop()
    sys.exit(bool(wrong))


if __name__ == "__main__":
    main()
