"""What the runners of indexes share."""

from __future__ import annotations

import argparse
import ctypes
import gc
import json
import multiprocessing
import statistics
import sys
import time
from collections.abc import Callable, Iterable, Iterator, Sequence
from multiprocessing.pool import Pool
from pathlib import Path
from typing import Any, TypeVar

import pyarrow as pa
import pyarrow.parquet as pq

Answers = TypeVar("Answers")

ALONE = 3000
"""Queries that are timed one by one."""

TURN = 1000
"""Queries that are timed one by one in a turn."""

PATIENCE = 5
"""Seconds after which a batch of queries is not asked once more."""

BATCH = 50_000
"""Documents that are read, and given to a tool, at a time: an index that is larger than memory can be filled."""


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
    options.add_argument("--processes", type=int, default=2, help="of tools that have no threads of their own")
    options.add_argument("--turns", action="store_true", help="ask all again for each line of the standard input")
    return options


def to_fill(corpus: Path, items: int, size: int = BATCH) -> Iterator[tuple[int, Any]]:
    """Yield the documents of the index in batches, each with the number of its first row."""
    start, read = 0, 0
    held: list[Any] = []
    with pq.ParquetFile(corpus) as file:
        for part in file.iter_batches(batch_size=min(size, 10_000), columns=["text"]):
            held.append(part.column(0).slice(0, items - read))
            read += len(held[-1])
            while start < read and (read - start >= size or read == items):
                together = pa.concat_arrays(held)
                yield start, together.slice(0, size)
                held = [together.slice(size)]
                start = min(start + size, read)
            if read == items:
                return


def to_ask(queries: Path) -> list[str]:
    """The queries."""
    found: list[str] = pq.read_table(queries).column("text").to_pylist()
    return found


def workers(count: int, begin: Callable[..., None] | None = None, *arguments: Any) -> Pool:
    """Start processes that sketch for tools without threads: before there is an index, so that they do not share it."""
    return multiprocessing.get_context("fork").Pool(count, begin, arguments)


def parts(texts: Sequence[Any], size: int) -> Iterator[Sequence[Any]]:
    """Yield a list in parts."""
    for start in range(0, len(texts), size):
        yield texts[start : start + size]


def latencies(ask: Callable[[str], object], queries: Sequence[str]) -> dict[str, float]:
    """Ask one query after another; the median time and the 99th percentile, in microseconds."""
    taken = []
    for query in queries[:ALONE]:
        begun = time.perf_counter()
        ask(query)
        taken.append(time.perf_counter() - begun)
    cuts = statistics.quantiles(taken, n=100, method="inclusive")
    return {"p50_us": cuts[49] * 1e6, "p99_us": cuts[98] * 1e6, "single_per_second": len(taken) / sum(taken)}


def together(ask: Callable[[list[str]], Answers], queries: list[str]) -> tuple[Answers, float]:
    """Ask all queries at once; the answers, and queries a second, the best of three times if these are short."""
    best, begun = 0.0, time.perf_counter()
    for _ in range(3):
        start = time.perf_counter()
        answers = ask(queries)
        best = max(best, len(queries) / (time.perf_counter() - start))
        if time.perf_counter() - begun > PATIENCE:
            break
    return answers, best


def in_turns(
    run: argparse.Namespace, one: Callable[[str], object], ask: Callable[[list[str]], object], queries: list[str]
) -> None:
    """If this is asked for: say that the index is there, and for each line of the standard input ask it once more."""
    if not run.turns:
        return
    print("ready", flush=True)
    for _ in sys.stdin:
        start = time.perf_counter()
        ask(queries)
        taken = time.perf_counter() - start
        print(json.dumps({"batch_per_second": len(queries) / taken, **latencies(one, queries[:TURN])}), flush=True)


def memory() -> dict[str, float]:
    """The memory of this process now: all of it, and without pages of files, which the system can take back."""
    gc.collect()
    pa.default_memory_pool().release_unused()
    ctypes.CDLL(None).malloc_trim(0)  # what is free already is no part of an index
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


def grown(after: dict[str, float], before: float, items: int) -> dict[str, float]:
    """The memory of a process with its index, and by how much it has grown for each item."""
    return {**after, "bytes_per_item": (after["anonymous_mb"] - before) * 1e6 / items}


def save_rows(folder: Path, answers: Iterable[Iterable[int]]) -> None:
    """Write the rows that each query found, without a similarity."""
    save(folder, [(number, row, -1.0) for number, rows in enumerate(answers) for row in rows])
