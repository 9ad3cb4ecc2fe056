"""text-dedup's Spark script, text_dedup/minhash_spark.py of the package, as it was published but for two things.

Its numbers of partitions, thousands, are those of a large cluster and would slow it down on two cores: they are PARTS
here. And GraphFrames, whose Java part is not on PyPI, is replaced by a union-find on the driver, which is faster: the
script connects documents by it at the end. It answers with components, compares nothing, and writes the rest.
"""

from __future__ import annotations

import argparse
import importlib.util
import os
import re
import sys
import types
from pathlib import Path
from typing import Any

PARTS = 8
NUMBERS = [r'("spark.sql.shuffle.partitions", )"8192"', r'("spark.default.parallelism", )"100"']


class GraphFrame:
    """What the script needs of GraphFrames."""

    def __init__(self, vertices: Any, edges: Any) -> None:
        self._edges = edges

    def connectedComponents(self) -> Any:
        """Return (id, component) of every vertex: the lowest id that it is connected with."""
        import pyarrow as pa

        found = self._edges.toArrow()
        parent: dict[int, int] = {}

        def root(node: int) -> int:
            while parent.setdefault(node, node) != node:
                parent[node] = parent[parent[node]]
                node = parent[node]
            return node

        for a, b in zip(found.column(0).to_pylist(), found.column(1).to_pylist(), strict=True):
            low, high = sorted((root(a), root(b)))
            parent[high] = low
        ids = sorted(parent)
        return self._edges.sparkSession.createDataFrame(pa.table({"id": ids, "component": [root(one) for one in ids]}))


def main() -> None:
    """Run once; the components are in OUT/assignment.parquet."""
    parser = argparse.ArgumentParser()
    parser.add_argument("corpus")
    parser.add_argument("--out", type=Path, required=True)
    parser.add_argument("--master", required=True)
    parser.add_argument("--threshold", type=float, required=True)
    parser.add_argument("--bands", type=int, required=True)
    parser.add_argument("--rows", type=int, required=True)
    parser.add_argument("--memory", default="6g")
    run = parser.parse_args()
    stub: Any = types.ModuleType("graphframes")
    stub.GraphFrame = GraphFrame
    sys.modules["graphframes"] = stub
    found = importlib.util.find_spec("text_dedup")
    assert found is not None
    assert found.submodule_search_locations
    script = Path(found.submodule_search_locations[0]) / "minhash_spark.py"
    source = script.read_text()
    for pattern in NUMBERS:
        source, count = re.subn(pattern, rf'\1"{PARTS}"', source)
        assert count == 1, pattern
    source = source.replace("repartition(4096)", f"repartition({PARTS})").replace("max(256, ", f"max({PARTS}, ")
    from pyspark import SparkConf
    from pyspark.sql import SparkSession

    os.environ["PYSPARK_PYTHON"] = sys.executable
    conf = SparkConf().setMaster(run.master).set("spark.driver.memory", run.memory)
    SparkSession.builder.config(conf=conf).getOrCreate().sparkContext.setLogLevel("ERROR")
    sys.argv = [
        str(script), "--input", run.corpus, "--output", f"{run.out}/kept", "--column", "text", "--index", "id",
        "--threshold", str(run.threshold), "--num_perm", str(run.bands * run.rows), "--b", str(run.bands),
        "--r", str(run.rows), "--min_length", "1", "--checkpoint_dir", f"{run.out}/checkpoints", "--debug",
    ]  # fmt: skip
    import __main__

    exec(compile(source, str(script), "exec"), __main__.__dict__)


if __name__ == "__main__":
    main()
