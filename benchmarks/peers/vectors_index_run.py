"""Run one index of vectors: `python vectors_index_run.py TOOL TABLE QUERIES TRUTH ...`, in the environment of the tool.

TABLE and QUERIES are .npy files of float32, TRUTH the rows of the true neighbours of each query. The index is built
with two threads. For each recall that is asked for it is searched with the cheapest setting that reaches it: queries
one by one, all at once with one thread, and with two. Prints a line of JSON for each recall.
"""

from __future__ import annotations

import argparse
import json
import shutil
import tempfile
import time
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import numpy as np
import numpy.typing as npt

Table = npt.NDArray[Any]
Settings = dict[str, Any]
K = 10
THREADS = 2
ALONE = 1000
"""Queries that are timed one by one."""
EFS = (10, 14, 20, 28, 40, 56, 80, 112, 160, 224, 320, 448, 640, 896, 1280, 1800, 2500)
"""Values of ef to choose from."""


class FaissGraph:
    """FAISS's IndexHNSWFlat."""

    def __init__(self, table: Table, settings: Settings) -> None:
        import faiss  # type: ignore[import-not-found]

        self.faiss = faiss
        faiss.omp_set_num_threads(THREADS)
        self.index = faiss.IndexHNSWFlat(table.shape[1], settings["M"])
        self.index.hnsw.efConstruction = settings["efConstruction"]
        self.index.add(table)

    def prepare(self, ef: int, threads: int) -> None:
        """Set what concerns searches."""
        self.index.hnsw.efSearch = ef
        self.faiss.omp_set_num_threads(threads)

    def search(self, queries: Table) -> Table:
        """Return the rows of the nearest vectors."""
        return np.asarray(self.index.search(queries, K)[1])

    def stored(self) -> int:
        """The bytes of the index."""
        return int(self.faiss.serialize_index(self.index).nbytes)


class Hnswlib:
    """hnswlib's Index."""

    def __init__(self, table: Table, settings: Settings) -> None:
        import hnswlib  # type: ignore[import-untyped]

        self.index = hnswlib.Index(space="l2", dim=table.shape[1])
        self.index.init_index(len(table), M=settings["M"], ef_construction=settings["efConstruction"])
        self.index.add_items(table, num_threads=THREADS)
        self.threads = 1

    def prepare(self, ef: int, threads: int) -> None:
        """Set what concerns searches."""
        self.index.set_ef(ef)
        self.threads = threads

    def search(self, queries: Table) -> Table:
        """Return the rows of the nearest vectors."""
        return np.asarray(self.index.knn_query(queries, K, num_threads=self.threads)[0].astype(np.int64))

    def stored(self) -> int:
        """The bytes of the index."""
        with tempfile.TemporaryDirectory() as folder:
            self.index.save_index(f"{folder}/index")
            return Path(f"{folder}/index").stat().st_size


def graphs(tool: str, table: Table, queries: Table, truth: Table, run: argparse.Namespace) -> Iterator[Settings]:
    """Yield the measurements of a graph for each recall: the settings with the most queries a second."""
    best: dict[float, Settings] = {}
    for m, construction in ((16, 100), (32, 200)):
        settings = {"M": m, "efConstruction": construction}
        before, begun = anonymous(), time.perf_counter()
        peer: Any = (FaissGraph if tool == "faiss" else Hnswlib)(table, settings)
        built = {"build": time.perf_counter() - begun, "memory_mb": anonymous() - before}
        left = sorted(run.recall)
        for ef in EFS:
            peer.prepare(ef, 1)
            if left and share(peer.search(queries), truth) >= left[0]:
                found = {**settings, "ef": ef, **built, "stored": peer.stored()}
                found |= measured(peer.search, queries, truth)
                peer.prepare(ef, THREADS)
                found["two_threads"] = rate(peer.search, queries)
                while left and found["recall"] >= left[0]:
                    target = left.pop(0)
                    if target not in best or best[target]["one_thread"] < found["one_thread"]:
                        best[target] = found
            if not left:
                break
        del peer
    for target, found in sorted(best.items()):
        yield {"target": target, **found}


def ours(table: Table, queries: Table, truth: Table, run: argparse.Namespace) -> Iterator[Settings]:
    """Yield the measurements of likewise.Index for each recall."""
    import likewise

    warm = Path(run.out) / "warm"
    shutil.rmtree(warm, ignore_errors=True)
    with likewise.Index.create(warm, measure="l2") as small:
        small.add(None, table[:6000])
        small.query(queries[:300], K)
    shutil.rmtree(warm)
    for target in sorted(run.recall):
        folder = Path(run.out) / f"index-{target}"
        shutil.rmtree(folder, ignore_errors=True)
        before, begun = anonymous(), time.perf_counter()
        with likewise.Index.create(folder, measure="l2", recall=target, threads=THREADS) as index:
            index.add(None, table)
            built = {"build": time.perf_counter() - begun}
            info = index.info()
            found = {"stored": info["bytes_used"], "segments": info["segments"]}
        begun = time.perf_counter()
        with likewise.Index.open(folder, threads=1) as index:
            index.query(queries[:1], K)
            found["open"] = time.perf_counter() - begun

            def search(some: Table, index: Any = index) -> Table:
                answers = index.query(some, K)
                return np.asarray(answers.column("id_b").to_numpy().reshape(len(some), K))

            found |= measured(search, queries, truth)
            found["memory_mb"] = max(0.0, anonymous() - before)
        with likewise.Index.open(folder, threads=THREADS) as index:

            def together(some: Table, index: Any = index) -> Table:
                return np.asarray(index.query(some, K).column("id_b").to_numpy())

            found["two_threads"] = rate(together, queries)
        shutil.rmtree(folder)
        yield {"target": target, **built, **found}


def measured(search: Callable[[Table], Table], queries: Table, truth: Table) -> Settings:
    """The recall, the queries a second, and the time of one query."""
    taken = []
    for at in range(min(ALONE, len(queries))):
        begun = time.perf_counter()
        search(queries[at : at + 1])
        taken.append(time.perf_counter() - begun)
    p50, p99 = np.percentile(taken, [50, 99]) * 1e6
    found = {"recall": share(search(queries), truth), "p50_us": float(p50), "p99_us": float(p99)}
    return {**found, "one_thread": rate(search, queries)}


def rate(search: Callable[[Table], Table], queries: Table) -> float:
    """Queries a second, asked together; the best of three times."""
    taken = []
    for _ in range(3):
        begun = time.perf_counter()
        search(queries)
        taken.append(time.perf_counter() - begun)
    return len(queries) / min(taken)


def share(found: Table, truth: Table) -> float:
    """The share of the true neighbours that were found."""
    return float(np.mean([len(np.intersect1d(a, b)) / truth.shape[1] for a, b in zip(found, truth, strict=True)]))


def anonymous() -> float:
    """The memory of this process in megabytes, without pages of files (Linux)."""
    lines = Path("/proc/self/status").read_text().splitlines()
    return sum(int(line.split()[1]) for line in lines if line.startswith("RssAnon:")) * 1024 / 1e6


def main() -> None:
    """Read, build, search, report."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("tool", choices=["likewise", "faiss", "hnswlib"])
    parser.add_argument("table", type=Path)
    parser.add_argument("queries", type=Path)
    parser.add_argument("truth", type=Path)
    parser.add_argument("--out", required=True)
    parser.add_argument("--recall", type=float, action="append", required=True)
    run = parser.parse_args()
    table, queries, truth = (np.load(path) for path in (run.table, run.queries, run.truth))
    asked = (table, queries, truth, run)
    for line in ours(*asked) if run.tool == "likewise" else graphs(run.tool, *asked):
        print(json.dumps(line), flush=True)


if __name__ == "__main__":
    main()
