"""Run one join of vectors: `python faiss_run.py TOOL TABLE --measure M --within D ...`, in the environment of the tool.

TABLE is a .npy file, read into memory (with --mapped it is not: likewise maps it itself). A small join warms up; then
this prints a line, and the clock runs from the array to the pairs as arrays: training and filling an index, all
searches, and making pairs of what they return. The last line is JSON: the seconds, the number of pairs, the memory.
The pairs go to --out. With --queries so many vectors are searched for and the time of the search is scaled up.
With --tune the settings given are tried on some of the pairs that are to be found, and every line is one of them.
"""

from __future__ import annotations

import argparse
import contextlib
import json
import math
import threading
import time
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import numpy as np
import numpy.typing as npt

Table = npt.NDArray[Any]
Rows = npt.NDArray[np.int64]
Settings = dict[str, Any]
BLOCK = 4096
"""Queries in one go: enough for quick products of matrices, and no more than bounded memory."""
WARMING = 4000
TRIED = 5000
"""Pairs on which settings are tried; of fewer, rows are added to these."""
FEWEST = 1000
ROUNDING = 2.0**-20
"""How far a product of two vectors in single precision may be from the truth, for each unit of their length squared."""
MEMORY_SECONDS = 0.01


class Faiss:
    """One index over a table, and searches of the rows of that table in it."""

    def __init__(self, table: Table, measure: str, within: float) -> None:
        import faiss  # type: ignore[import-not-found]

        self.faiss = faiss
        self.table, self.measure, self.within = table, measure, within
        self.binary = measure == "hamming"
        self.bits = 8 * table.shape[1]
        self.metric = faiss.METRIC_INNER_PRODUCT if measure == "angle" else faiss.METRIC_L2
        self.slack = 0.0 if self.binary else ROUNDING * max(1.0, _longest(table))
        self.bound = math.cos(math.radians(within)) if measure == "angle" else within**2
        self.index: Any = None

    def empty(self, settings: Settings) -> None:
        """Make an index without vectors, trained if it needs that."""
        faiss, width = self.faiss, self.table.shape[1]
        kind = settings["index"]
        if kind == "flat":
            flat = faiss.IndexFlatIP if self.measure == "angle" else faiss.IndexFlatL2
            self.index = faiss.IndexBinaryFlat(self.bits) if self.binary else flat(width)
        elif kind == "hnsw":
            self.index = faiss.IndexHNSWFlat(width, settings["M"], self.metric)
            self.index.hnsw.efConstruction = settings["efConstruction"]
        elif kind == "ivf":
            if self.binary:
                self.coarse = faiss.IndexBinaryFlat(self.bits)
                self.index = faiss.IndexBinaryIVF(self.coarse, self.bits, settings["nlist"])
            else:
                self.coarse = faiss.IndexFlatIP(width) if self.measure == "angle" else faiss.IndexFlatL2(width)
                self.index = faiss.IndexIVFFlat(self.coarse, width, settings["nlist"], self.metric)
            self.index.train(self.table)
        elif kind == "multihash":
            self.index = faiss.IndexBinaryMultiHash(self.bits, settings["nhash"], settings["b"])
        else:
            self.index = faiss.IndexBinaryHash(self.bits, settings["b"])

    def adjust(self, settings: Settings) -> None:
        """Set what concerns searches only."""
        if settings["index"] == "hnsw":
            self.index.hnsw.efSearch = settings["efSearch"]
        if settings["index"] == "ivf":
            self.index.nprobe = settings["nprobe"]
        if settings["index"] in ("multihash", "hash"):
            self.index.nflip = settings["nflip"]

    def search(self, rows: Rows, k: int = 0) -> tuple[Rows, Rows]:
        """Return pairs of rows, the first of them one of these rows: all in reach, or those among the k nearest."""
        asked = self.table[rows[0] : rows[-1] + 1] if rows[-1] - rows[0] + 1 == len(rows) else self.table[rows]
        if self.binary:
            ends, _, found = self.index.range_search(asked, int(self.within) + 1)
            return np.repeat(rows, np.diff(ends.astype(np.int64))), found
        similar = self.measure == "angle"
        reach = self.bound - self.slack if similar else self.bound + self.slack
        if k:
            values, found = (part.ravel() for part in self.index.search(asked, k))
            left = np.repeat(rows, k)
            near = (found >= 0) & (values > reach if similar else values < reach)
            left, found, values = left[near], found[near], values[near]
        else:
            ends, values, found = self.index.range_search(asked, reach)
            left = np.repeat(rows, np.diff(ends.astype(np.int64)))
        doubtful = np.abs(values - self.bound) <= self.slack
        doubtful[doubtful] = ~self._within(left[doubtful], found[doubtful])
        return left[~doubtful], found[~doubtful]

    def _within(self, left: Rows, right: Rows) -> npt.NDArray[np.bool_]:
        """Tell exactly whether pairs are within the distance: for the few where rounding decides."""
        a, b = self.table[left].astype(np.float64), self.table[right].astype(np.float64)
        if self.measure == "l2":
            return np.asarray(((a - b) ** 2).sum(axis=1) <= self.bound)
        lengths = np.linalg.norm(a, axis=1) * np.linalg.norm(b, axis=1)
        return np.asarray((a * b).sum(axis=1) >= self.bound * lengths)

    def join(self, settings: Settings, queries: Rows | None) -> tuple[Rows, Rows, float, float]:
        """Return pairs, the seconds of making the index and those of all searches.

        A flat index is filled as the search goes on, so that a vector is compared with those before it only: half the
        work. Of some queries, the time of the others is added.
        """
        begun = time.perf_counter()
        n = len(self.table)
        halved = settings["index"] == "flat"
        self.empty(settings)
        self.adjust(settings)
        growing = halved and queries is None
        if not growing:
            self.index.add(self.table)
        built = time.perf_counter()
        parts = []
        for rows in _blocks(np.arange(n) if queries is None else queries):
            if growing:
                self.index.add(self.table[rows[0] : rows[-1] + 1])
            parts.append(self.search(rows, settings.get("k", 0)))
        left, right = different([part[0] for part in parts], [part[1] for part in parts])
        searching = time.perf_counter() - built
        return left, right, built - begun, searching * self.scale(settings, n if queries is None else len(queries))

    def scale(self, settings: Settings, queries: int) -> float:
        """By how much the search of so many is multiplied to be that of all."""
        n = len(self.table)
        return 1.0 if queries == n else n / queries / (2 if settings["index"] == "flat" else 1)


def _longest(table: Table) -> float:
    """The greatest square of a length."""
    return float(max((table[start : start + BLOCK] ** 2).sum(axis=1).max() for start in range(0, len(table), BLOCK)))


def _blocks(rows: Rows) -> Iterator[Rows]:
    return (rows[start : start + BLOCK] for start in range(0, len(rows), BLOCK))


def different(left: list[Rows], right: list[Rows]) -> tuple[Rows, Rows]:
    """All pairs once, the smaller row first; none of a row with itself."""
    a, b = np.concatenate(left).astype(np.int64), np.concatenate(right).astype(np.int64)
    keys = np.unique((np.minimum(a, b) << 32 | np.maximum(a, b))[a != b])
    return keys >> 32, keys & 0xFFFFFFFF


def tune(peer: Faiss, tried: list[Settings], truth: Path, asked: argparse.Namespace) -> None:
    """Print for each of the settings the seconds it would take and the share of some true pairs that it finds.

    The pairs are searched for from both their rows. Settings that differ in the search only share an index; of these,
    those after the first that finds enough, or takes too long, are not tried.
    """
    known = np.load(truth)
    chance = np.random.default_rng(5)
    n = len(peer.table)
    near = np.flatnonzero(known["distance"] <= asked.within)
    some = chance.permutation(near)[:TRIED]
    goal = known["left"][some] << 32 | known["right"][some]
    others = chance.permutation(n)[: max(0, FEWEST - len(some))]
    rows = np.unique(np.concatenate([known["left"][some], known["right"][some], others]))
    for one in tried:
        begun = time.perf_counter()
        peer.empty(one)
        peer.index.add(peer.table)
        built = time.perf_counter() - begun
        for step in one["ladder"]:
            settings = {**{name: value for name, value in one.items() if name != "ladder"}, **step}
            peer.adjust(settings)
            begun = time.perf_counter()
            parts = [peer.search(block, settings.get("k", 0)) for block in _blocks(rows)]
            searching = (time.perf_counter() - begun) * peer.scale(settings, len(rows))
            left, right = different([part[0] for part in parts], [part[1] for part in parts])
            recall = float(np.isin(goal, left << 32 | right).mean()) if len(goal) else 1.0
            line = {"settings": settings, "build": built, "search": searching, "recall": recall}
            print(json.dumps(line), flush=True)
            if recall >= asked.recall or built + searching > 4 * asked.patience:
                break


def ours(source: Any, asked: argparse.Namespace) -> tuple[Rows, Rows, float, float, Settings]:
    """`likewise.pairs`, to the columns of its table."""
    import likewise

    options = {"measure": asked.measure, "within": asked.within, "threads": asked.threads}
    ready(asked)
    begun = time.perf_counter()
    answer = likewise.pairs(source, method=asked.method, memory=asked.memory, **options)
    left, right = answer.table.column("id_a").to_numpy(), answer.table.column("id_b").to_numpy()
    spent = time.perf_counter() - begun
    stats = answer.stats
    told = {name: stats[name] for name in ("method", "seconds", "counts", "details", "notes")}
    return left, right, 0.0, spent, told


def warm(tool: str, table: Table, asked: argparse.Namespace) -> None:
    """Join a few vectors, so that kernels are compiled and threads are started."""
    few = table[:WARMING]
    if tool == "faiss":
        for one in json.loads(asked.settings)[:1]:
            small = {name: min(value, 16) if name == "nlist" else value for name, value in one.items()}
            step = small.pop("ladder", [{}])[0]
            Faiss(few, asked.measure, asked.within).join({**small, **step}, None)
        return
    import likewise

    for method in ("lsh", "exact", "auto"):
        try:
            answer = likewise.pairs(
                few, measure=asked.measure, within=asked.within, method=method, threads=asked.threads
            )
            answer.table.column("id_a").to_numpy()  # the first time, Arrow looks for pandas
        except likewise.ParameterError:  # there are no tables for this distance
            continue


class Memory:
    """The peak of the memory that is this process's own: mapped files are not counted (Linux)."""

    def __init__(self) -> None:
        self.before = self.peak = megabytes("RssAnon")
        self._ended = threading.Event()
        self._thread = threading.Thread(target=self._watch, daemon=True)
        self._thread.start()

    def _watch(self) -> None:
        while not self._ended.wait(MEMORY_SECONDS):
            self.peak = max(self.peak, megabytes("RssAnon"))

    def beyond(self) -> float:
        """How much more it was than at the beginning."""
        self._ended.set()
        self._thread.join()
        return max(self.peak, megabytes("RssAnon")) - self.before


def megabytes(field: str) -> float:
    """A line of the system's record of this process (Linux)."""
    lines = Path("/proc/self/status").read_text().splitlines()
    return sum(int(line.split()[1]) for line in lines if line.startswith(f"{field}:")) * 1024 / 1e6


def ready(asked: argparse.Namespace) -> None:
    """Let the peak of memory begin anew; say that the clock may start."""
    with contextlib.suppress(OSError):
        Path("/proc/self/clear_refs").write_text("5")
    asked.watch = Memory()
    print("ready", flush=True)


def arguments() -> argparse.Namespace:
    """The arguments of this run."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("tool", choices=["likewise", "faiss"])
    parser.add_argument("table", type=Path)
    parser.add_argument("--measure", choices=["angle", "l2", "hamming"], required=True)
    parser.add_argument("--within", type=float, required=True)
    parser.add_argument("--first", type=int, help="take so many rows only")
    parser.add_argument("--threads", type=int, default=2)
    parser.add_argument("--out", type=Path)
    parser.add_argument("--settings", default="[]", help="faiss: a JSON list of settings, one of them without --tune")
    parser.add_argument("--queries", type=int, help="faiss: search for so many vectors only")
    parser.add_argument("--tune", type=Path, help="faiss: true pairs, to try settings with")
    parser.add_argument("--recall", type=float, default=0.99, help="faiss: what is enough for --tune")
    parser.add_argument("--patience", type=float, default=900.0, help="faiss: seconds that are too many for --tune")
    parser.add_argument("--method", default="auto", help="likewise")
    parser.add_argument("--memory", help="likewise")
    parser.add_argument("--mapped", action="store_true", help="likewise: give it the path")
    return parser.parse_args()


def main() -> None:
    """Read, warm up, join, report."""
    asked = arguments()
    table = np.load(asked.table, mmap_mode="r" if asked.mapped else None)[: asked.first]
    more: Settings = {}
    if asked.tool == "faiss":
        import faiss

        faiss.omp_set_num_threads(asked.threads)
        faiss.InterruptCallback.clear_instance()  # with it, a range search of many in a graph ends the process
        table = np.ascontiguousarray(table.view(np.uint8) if asked.measure == "hamming" else table.astype(np.float32))
        warm("faiss", table, asked)
        peer = Faiss(table, asked.measure, asked.within)
        settings = json.loads(asked.settings)
        ready(asked)
        if asked.tune:
            tune(peer, settings, asked.tune, asked)
            return
        n = len(table)
        queries = None
        if asked.queries and asked.queries < n:
            queries = np.sort(np.random.default_rng(6).permutation(n)[: asked.queries])
        left, right, built, searching = peer.join(settings[0], queries)
        more = {"scaled": queries is not None}
    else:
        warm("likewise", table, asked)
        left, right, built, searching, more = ours(asked.table if asked.mapped else table, asked)
    beyond, peak = asked.watch.beyond(), megabytes("VmHWM")
    if asked.out:
        np.savez(asked.out, left=left, right=right)
    report = {"seconds": built + searching, "build": built, "search": searching, "pairs": len(left)}
    print(json.dumps({**report, "peak_mb": peak, "beyond_mb": beyond, "more": more}))


if __name__ == "__main__":
    main()
