"""What the runner of every tool shares: its arguments, its clock and the form of its answer.

A runner is `python NAME_run.py CORPUS --out FOLDER ...`, started in the tool's own environment. It writes
`FOLDER/pairs.parquet` (i < j, row numbers) or `FOLDER/clusters.parquet` (row, cluster), or both, or else
`FOLDER/flags.parquet` (the rows before which a similar one came), and prints one line of JSON: the seconds of each
phase, from the Parquet file to the answer in memory, and the peak memory.
"""

from __future__ import annotations

import argparse
import json
import multiprocessing
import re
import resource
import sys
import time
from collections.abc import Callable, Iterable, Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import TypeVar

import pyarrow as pa
import pyarrow.dataset  # what read_table would else import inside the clock
import pyarrow.parquet as pq

WORD = re.compile(r"\w+")
Result = TypeVar("Result")


class Arguments(argparse.Namespace):
    """The arguments of a runner, typed."""

    corpus: Path
    out: Path
    text: str
    k: int
    threshold: float
    bands: int
    rows: int
    processes: int
    seed: int


def parser() -> argparse.ArgumentParser:
    """The arguments every runner takes."""
    options = argparse.ArgumentParser()
    options.add_argument("corpus", type=Path)
    options.add_argument("--out", type=Path, required=True)
    options.add_argument("--text", default="text")
    options.add_argument("--k", type=int, default=5)
    options.add_argument("--threshold", type=float, default=0.8)
    options.add_argument("--bands", type=int, default=12)
    options.add_argument("--rows", type=int, default=5)
    options.add_argument("--processes", type=int, default=2)
    options.add_argument("--seed", type=int, default=1)
    return options


def arguments() -> Arguments:
    """The arguments of this run."""
    return parser().parse_args(namespace=Arguments())


class Phases:
    """A clock with named phases."""

    def __init__(self) -> None:
        self.seconds: dict[str, float] = {}

    @contextmanager
    def __call__(self, name: str) -> Iterator[None]:
        """Add the time spent inside to the phase."""
        start = time.perf_counter()
        yield
        self.seconds[name] = self.seconds.get(name, 0.0) + time.perf_counter() - start

    def report(self, **more: object) -> None:
        """Print the one line of JSON."""
        total = sum(self.seconds.values())
        print(json.dumps({"phases": self.seconds, "total": total, "peak_mb": peak_megabytes(), **more}))


def peak_megabytes() -> float:
    """The peak memory of this process.

    On Linux not from `ru_maxrss`, which a process inherits from the one that started it.
    """
    try:
        lines = Path("/proc/self/status").read_text().splitlines()
    except OSError:
        unit = 1 if sys.platform == "darwin" else 1024
        return resource.getrusage(resource.RUSAGE_SELF).ru_maxrss * unit / 1e6
    return sum(int(line.split()[1]) for line in lines if line.startswith("VmHWM:")) * 1024 / 1e6


def in_processes(work: Callable[[int], Result], starts: range, texts: pa.ChunkedArray, count: int) -> Iterator[Result]:
    """Do the work at every start, in order, in `count` processes that share the texts (see `shared_texts`)."""
    _shared.append(texts)
    if count == 1:
        yield from map(work, starts)
    else:
        with multiprocessing.get_context("fork").Pool(count) as pool:
            yield from pool.imap(work, starts)


_shared: list[pa.ChunkedArray] = []


def shared_texts(start: int, count: int) -> list[str]:
    """Some of the texts the processes share."""
    found: list[str] = _shared[0].slice(start, count).to_pylist()
    return found


def read_texts(corpus: Path, column: str) -> pa.ChunkedArray:
    """The texts of a corpus, all of them in memory."""
    return pq.read_table(corpus, columns=[column]).column(column)


def shingles(text: str, k: int) -> list[str]:
    """The word k-grams of a text, joined by blanks; a shorter text is its own single shingle."""
    words = WORD.findall(text.lower())
    if len(words) <= k:
        return [" ".join(words)] if words else []
    return list(map(" ".join, zip(*(words[start:] for start in range(k)), strict=False)))


def pairs_of(answers: Iterable[tuple[int, Sequence[int]]]) -> tuple[list[int], list[int]]:
    """From (row, rows found) to pairs i < j."""
    first: list[int] = []
    second: list[int] = []
    for row, found in answers:
        if len(found) > 1 or (found and found[0] != row):
            later = [other for other in found if other > row]
            first.extend([row] * len(later))
            second.extend(later)
    return first, second


def write_pairs(folder: Path, first: Sequence[int], second: Sequence[int]) -> None:
    """Write the pairs a tool found."""
    columns = {"i": pa.array(first, pa.int64()), "j": pa.array(second, pa.int64())}
    pq.write_table(pa.table(columns), folder / "pairs.parquet")


def write_flags(folder: Path, rows: Sequence[int]) -> None:
    """Write the rows of which a tool says only that a similar one came before."""
    pq.write_table(pa.table({"row": pa.array(rows, pa.int64())}), folder / "flags.parquet")


def write_clusters(folder: Path, rows: Sequence[int], clusters: Sequence[int]) -> None:
    """Write the cluster of each row that has company."""
    columns = {"row": pa.array(rows, pa.int64()), "cluster": pa.array(clusters, pa.int64())}
    pq.write_table(pa.table(columns), folder / "clusters.parquet")
