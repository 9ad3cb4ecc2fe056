"""Spark MLlib's MinHashLSH: approxSimilarityJoin of a Parquet file with itself.

It gets the same shingles, five words, hashed to 2^20 columns, and as many hash tables as find a pair at the threshold
with the recall: its tables have one row each, so few suffice and its candidates are many. The join computes exact
distances of candidates. Memory of the driver, where all runs in local mode, is raised to what it needs.
"""

from __future__ import annotations

import argparse
import math
from pathlib import Path

from pyspark.ml.feature import HashingTF, MinHashLSH, NGram, RegexTokenizer
from pyspark.sql import SparkSession
from pyspark.sql import functions as F

COLUMNS = 1 << 20


def main() -> None:
    """Run once; write the pairs."""
    parser = argparse.ArgumentParser()
    parser.add_argument("corpus")
    parser.add_argument("--out", type=Path, required=True)
    parser.add_argument("--master", required=True)
    parser.add_argument("--threshold", type=float, required=True)
    parser.add_argument("--recall", type=float, required=True)
    parser.add_argument("--memory", default="6g")
    run = parser.parse_args()
    spark = SparkSession.builder.master(run.master).config("spark.driver.memory", run.memory).getOrCreate()
    spark.sparkContext.setLogLevel("ERROR")
    tables = math.ceil(math.log(1 - run.recall) / math.log(1 - run.threshold))
    frame = spark.read.parquet(run.corpus).select("id", "text")
    words = RegexTokenizer(inputCol="text", outputCol="words", pattern=r"\W+").transform(frame)
    shingles = NGram(n=5, inputCol="words", outputCol="shingles").transform(words)
    vectors = HashingTF(numFeatures=COLUMNS, binary=True, inputCol="shingles", outputCol="vector").transform(shingles)
    vectors = vectors.where(F.size("shingles") > 0).select("id", "vector").cache()
    model = MinHashLSH(inputCol="vector", outputCol="hashes", numHashTables=tables, seed=1).fit(vectors)
    joined = model.approxSimilarityJoin(vectors, vectors, 1 - run.threshold + 1e-9, "distance")
    pairs = joined.select(F.col("datasetA.id").alias("id_a"), F.col("datasetB.id").alias("id_b"))
    pairs.where("id_a < id_b").write.mode("overwrite").parquet(str(run.out / "pairs.parquet"))
    spark.stop()


if __name__ == "__main__":
    main()
