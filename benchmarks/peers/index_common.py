"""What the runners of indexes share."""

from __future__ import annotations

import argparse
import time
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq

ALONE = 3000
"""Queries that are timed one by one."""


def parser() -> argparse.ArgumentParser:
    """The arguments of a runner."""
    options = argparse.ArgumentParser()
    options.add_argument("corpus", type=Path)
    options.add_argument("queries", type=Path)
    options.add_argument("--items", type=int, required=True)
    options.add_argument("--out", required=True)
    options.add_argument("--threshold", type=float, default=0.8)
    options.add_argument("--bands", type=int, required=True)
    options.add_argument("--rows", type=int, required=True)
    return options


def to_fill(corpus: Path, items: int) -> Any:
    """The documents of the index."""
    return pq.read_table(corpus, columns=["text"]).column("text").slice(0, items).combine_chunks()


def latencies(ask: Callable[[str], object], queries: Sequence[str]) -> dict[str, float]:
    """Ask one query after another; the median time and the 99th percentile, in microseconds."""
    taken = []
    for query in queries[:ALONE]:
        begun = time.perf_counter()
        ask(query)
        taken.append(time.perf_counter() - begun)
    p50, p99 = np.percentile(taken, [50, 99]) * 1e6
    return {"p50_us": float(p50), "p99_us": float(p99), "single_per_second": len(taken) / sum(taken)}


def memory() -> dict[str, float]:
    """The memory of this process now: all of it, and without pages of files, which the system can take back."""
    lines = Path("/proc/self/status").read_text().splitlines()
    found = {
        line.split(":")[0]: int(line.split()[1]) * 1024 / 1e6 for line in lines if line.startswith(("VmRSS", "Rss"))
    }
    return {"resident_mb": found["VmRSS"], "anonymous_mb": found["RssAnon"]}


def save(folder: Path, answers: Sequence[tuple[int, int, float]]) -> None:
    """Write the answers: query, row, similarity."""
    columns = list(zip(*answers, strict=True)) or [(), (), ()]
    table = pa.table(
        {
            "query": pa.array(columns[0], pa.int64()),
            "row": pa.array(columns[1], pa.int64()),
            "similarity": pa.array(columns[2], pa.float64()),
        }
    )
    pq.write_table(table, folder / "answers.parquet")
