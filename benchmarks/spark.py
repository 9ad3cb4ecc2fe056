"""The price of Spark: one corpus by the local engine, by the Spark engine, and by MLlib's MinHashLSH.

    python benchmarks/spark.py                           a million documents, local[2]
    python benchmarks/spark.py --documents 20000         a small one
    python benchmarks/spark.py --skip-mllib              likewise only

The corpus is that of planted.py, whose similar pairs are known. Each run is a process of its own. MLlib gets the same
shingles, hashed to 2^20 columns, and as many hash tables as give the recall asked for at the threshold (its tables have
one row each, so few suffice and its candidates are many); approxSimilarityJoin then computes exact distances. Recall is
that of pairs at the threshold or above. Needs `pip install 'likewise[spark]'` and Java 17.
"""

from __future__ import annotations

import argparse
import json
import subprocess
import sys
import time
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow.compute as pc
import pyarrow.parquet as pq
from rich.console import Console
from rich.table import Table

from corpus import DATA
from planted import planted

OUT = DATA / "out" / "spark"
RESULTS = Path(__file__).parent / "results" / "spark.json"
THRESHOLD, RECALL = 0.8, 0.99
COLUMNS = 1 << 20
console = Console(highlight=False, width=140)


def mllib(corpus: Path, out: Path, master: str) -> None:
    """Find the similar pairs with MLlib, and write their ids."""
    from pyspark.ml.feature import HashingTF, MinHashLSH, NGram, RegexTokenizer
    from pyspark.sql import SparkSession
    from pyspark.sql import functions as F

    spark = SparkSession.builder.master(master).config("spark.driver.memory", "6g").getOrCreate()
    spark.sparkContext.setLogLevel("ERROR")
    tables = int(np.ceil(np.log(1 - RECALL) / np.log(1 - THRESHOLD)))
    frame = spark.read.parquet(str(corpus)).select("id", "text")
    words = RegexTokenizer(inputCol="text", outputCol="words", pattern=r"\W+").transform(frame)
    shingles = NGram(n=5, inputCol="words", outputCol="shingles").transform(words)
    vectors = HashingTF(numFeatures=COLUMNS, binary=True, inputCol="shingles", outputCol="vector").transform(shingles)
    vectors = vectors.where(F.size("shingles") > 0).select("id", "vector").cache()
    model = MinHashLSH(inputCol="vector", outputCol="hashes", numHashTables=tables, seed=1).fit(vectors)
    joined = model.approxSimilarityJoin(vectors, vectors, 1 - THRESHOLD + 1e-9, "distance")
    pairs = joined.select(F.col("datasetA.id").alias("id_a"), F.col("datasetB.id").alias("id_b"))
    pairs.where("id_a < id_b").write.mode("overwrite").parquet(str(out / "pairs.parquet"))
    spark.stop()


def made(documents: int) -> tuple[Path, Any]:
    """Make the corpus, unless it is there; return it and its similar pairs."""
    corpus, pairs = planted(documents)
    known = pq.read_table(pairs)
    return corpus, known.filter(pc.greater_equal(known.column("similarity"), THRESHOLD))


def words(table: Any) -> Any:
    """Return pairs of ids as one number each."""
    a, b = (np.asarray(table.column(name), np.int64) for name in table.column_names[:2])
    return np.minimum(a, b) << 32 | np.maximum(a, b)


def run(name: str, corpus: Path, known: Any, master: str) -> dict[str, Any]:
    """Run one of the three in a process of its own; return the seconds, and what it found."""
    out = OUT / name
    likewise = [sys.executable, "-m", "likewise", "dedup", str(corpus), "--id", "id", "--method", "lsh", "--fresh"]
    commands = {
        "local": [*likewise, "--out", str(out)],
        "spark": [*likewise, "--engine", "spark", "--master", master, "--out", str(out)],
        "mllib": [sys.executable, __file__, "--mllib", str(corpus), str(out), master],
    }
    begun = time.perf_counter()
    subprocess.run(commands[name], check=True, stdout=subprocess.DEVNULL)
    found: dict[str, Any] = {"seconds": round(time.perf_counter() - begun, 1)}
    pairs = pq.read_table(out / "pairs.parquet", columns=["id_a", "id_b"])
    found["pairs"] = pairs.num_rows
    found["recall"] = round(float(np.isin(words(known), words(pairs)).mean()), 5)
    if name == "spark":
        steps = json.loads((out / "run.json").read_text())["details"]["spark"]["steps"]
        kept = ("seconds", "shuffle_write_bytes", "spill_bytes")
        found["steps"] = {step: {key: one[key] for key in kept} for step, one in steps.items()}
        found["shuffle_bytes"] = sum(step["shuffle_write_bytes"] for step in steps.values())
    return found


def main() -> None:
    """Measure, print, and write the table."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--documents", type=int, default=1_000_000)
    parser.add_argument("--master", default="local[2]")
    parser.add_argument("--skip-mllib", action="store_true")
    parser.add_argument("--mllib", nargs=3, help=argparse.SUPPRESS)
    options = parser.parse_args()
    if options.mllib:
        mllib(Path(options.mllib[0]), Path(options.mllib[1]), options.mllib[2])
        return
    OUT.mkdir(parents=True, exist_ok=True)
    corpus, known = made(options.documents)
    names = ["local", "spark"] if options.skip_mllib else ["local", "spark", "mllib"]
    measured = {name: run(name, corpus, known, options.master) for name in names}
    table = Table("", "seconds", "pairs", "recall", "shuffled MB")
    for name, one in measured.items():
        shuffled = f"{one['shuffle_bytes'] / 1e6:,.1f}" if "shuffle_bytes" in one else ""
        table.add_row(name, f"{one['seconds']:,.1f}", f"{one['pairs']:,}", f"{one['recall']:.4f}", shuffled)
    console.print(table)
    facts = {"documents": options.documents, "master": options.master, **measured}
    RESULTS.write_text(json.dumps(facts, indent=2) + "\n")


if __name__ == "__main__":
    main()
