"""The persistent index of vectors beside FAISS HNSW and hnswlib: the ten nearest of many, at recalls 0.95 and 0.99.

    python benchmarks/index_vectors.py                          a hundred thousand vectors
    python benchmarks/index_vectors.py --items 1000000          more of them
    python benchmarks/index_vectors.py --peers none             likewise alone

Vectors of 128 components, compared by L2, are points around centres whose number is a hundredth of theirs (nearest.py);
the queries are others around the same centres. Every tool runs in a fresh process, in its own environment, which is
made on first use, with two threads to build. Graphs are built with M 16 and 32 (efConstruction 100 and 200); of these,
and of many values of ef, the one with the most queries a second is taken that reaches the recall. likewise is asked for
the recall and chooses for itself; its answers come with exact distances and ids from a folder on disk, and its memory
is that of the process without the pages of that folder.
"""

from __future__ import annotations

import argparse
import json
import platform
import subprocess
from importlib.metadata import version
from pathlib import Path
from typing import Any

import numpy as np
import numpy.typing as npt
from rich.console import Console
from rich.table import Table as RichTable

from corpus import DATA
from nearest import made
from runs import HERE, Unavailable, last_line, pinned, python_of

Table = npt.NDArray[Any]
OUT = DATA / "out" / "index-vectors"
RESULTS = HERE / "results" / "index-vectors.json"
DIMENSIONS, K, QUERIES = 128, 10, 2000
RECALLS = (0.95, 0.99)
BLOCK = 1 << 16
console = Console(highlight=False, width=150)


def prepared(items: int) -> list[Path]:
    """The vectors, the queries, and the true neighbours of these."""
    OUT.mkdir(parents=True, exist_ok=True)
    paths = [OUT / f"{name}-{items}.npy" for name in ("table", "queries", "truth")]
    if not all(path.exists() for path in paths):
        every = made(items + QUERIES, DIMENSIONS, 4)
        table, queries = every[:items], every[items:]
        for path, array in zip(paths, (table, queries, nearest(table, queries)), strict=True):
            np.save(path, array)
    return paths


def nearest(table: Table, queries: Table) -> Table:
    """The rows of the nearest vectors of each query, by comparing all in double precision."""
    best, rows = np.empty((len(queries), 0)), np.empty((len(queries), 0), np.int64)
    asked = queries.astype(np.float64)
    for start in range(0, len(table), BLOCK):
        some = table[start : start + BLOCK].astype(np.float64)
        apart = (some * some).sum(axis=1)[None, :] - 2 * asked @ some.T
        near = np.argpartition(apart, K - 1, axis=1)[:, :K]
        best = np.concatenate([best, np.take_along_axis(apart, near, axis=1)], axis=1)
        rows = np.concatenate([rows, near + start], axis=1)
        order = np.argsort(best, axis=1, kind="stable")[:, :K]
        best, rows = np.take_along_axis(best, order, axis=1), np.take_along_axis(rows, order, axis=1)
    return rows


def run(tool: str, paths: list[Path]) -> list[dict[str, Any]]:
    """Run a tool in a fresh process; what it says, a line for each recall."""
    folder = OUT / tool
    folder.mkdir(parents=True, exist_ok=True)
    script = HERE / "peers" / "vectors_index_run.py"
    words = [python_of(tool), str(script), tool, *map(str, paths), "--out", str(folder)]
    for recall in RECALLS:
        words += ["--recall", str(recall)]
    done = subprocess.run(words, capture_output=True, text=True, check=False)
    if done.returncode:
        raise Unavailable(last_line(done.stderr))
    return [json.loads(line) for line in done.stdout.splitlines()]


def show(items: int, found: dict[str, list[dict[str, Any]]]) -> None:
    """Print a table."""
    table = RichTable(title=f"{items:,} vectors of {DIMENSIONS} components, {K} nearest")
    for name in ("tool", "recall asked", "recall", "a second, 1 thread", "2 threads", "p50", "p99", "build", "memory",
                 "bytes an item", "setting"):  # fmt: skip
        table.add_column(name, justify="left" if name in ("tool", "setting") else "right")
    for tool, lines in found.items():
        for one in lines:
            setting = f"M {one['M']}, ef {one['ef']}" if "M" in one else ""
            table.add_row(
                tool, f"{one['target']:g}", f"{one['recall']:.4f}", f"{one['one_thread']:,.0f}",
                f"{one['two_threads']:,.0f}", f"{one['p50_us']:,.0f} µs", f"{one['p99_us']:,.0f} µs",
                f"{one['build']:.1f} s", f"{one['memory_mb']:,.0f} MB", f"{one['stored'] / items:,.0f}", setting,
            )  # fmt: skip
    console.print(table)


def main() -> None:
    """Run all tools on all sizes."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--items", type=int, action="append")
    parser.add_argument("--peers", default="faiss,hnswlib", help="tools beside likewise, or none")
    parser.add_argument("--save", action="store_true", help="write results/index-vectors.json, where other sizes stay")
    asked = parser.parse_args()
    peers = [] if asked.peers == "none" else asked.peers.split(",")
    results: dict[str, Any] = {
        "likewise": version("likewise"),
        "machine": f"{platform.machine()}, Python {platform.python_version()}",
        "peers": {tool: pinned(tool) for tool in peers},
        "sizes": json.loads(RESULTS.read_text())["sizes"] if RESULTS.exists() else {},
    }
    for items in asked.items or [100_000]:
        paths = prepared(items)
        found: dict[str, list[dict[str, Any]]] = {}
        for tool in ("likewise", *peers):
            try:
                found[tool] = run(tool, paths)
            except Unavailable as error:
                console.print(f"{tool}: {error}")
            results["sizes"][str(items)] = found
            if asked.save:  # at once: what a long run has measured is not lost with it
                RESULTS.write_text(json.dumps(results, indent=1) + "\n")
        show(items, found)


if __name__ == "__main__":
    main()
