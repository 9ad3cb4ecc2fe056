"""The persistent index beside the LSH indexes of datasketch, gaoya and rensa: build time, size, latency, rate, recall.

    python benchmarks/index.py                                   a hundred thousand documents
    python benchmarks/index.py --items 1000000 --items 10000000  more of them, one size after the other
    python benchmarks/index.py --items 100000 --items 1000000 --items 10000000 --peers none \\
        --results benchmarks/results/index-growth.json           how it grows, in one run
    python benchmarks/index.py --peers gaoya,rensa               some of the peers, or none
    python benchmarks/index.py --entries                         also one LMDB entry per key, the way not taken
    python benchmarks/index.py --redis                           also on a Redis server, which it starts
    python benchmarks/index.py --containment                     also with the table of shingles, and quotations
    python benchmarks/index.py --checks                          only what comparing with checksums costs queries

The corpus is planted (planted.py): the queries are copies whose exact similarity to their original is known, and are
not in the index. Recall counts the planted pairs at the threshold or above; mistakes are answers of likewise with
another similarity than the planted one. Every tool gets the same bands and rows, runs in a fresh process in its own
environment, which is made on first use, and uses two cores as well as it can. Queries are texts: shingling and
sketching are part of the time; a batch is all queries, at most 10,000. "Bytes an item" is what likewise has stored,
what the process of a tool in memory has grown by, or what a Redis server holds. "Peak" is the memory of all processes
of a tool, without pages of files, which the system can take back, and with that of the Redis server. Rows of
the results that a run does not measure stay as they are.
"""

from __future__ import annotations

import argparse
import json
import os
import platform
import shutil
import socket
import subprocess
import time
import zlib
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from importlib.metadata import version
from pathlib import Path
from typing import Any
from unittest.mock import ANY

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
from rich.console import Console
from rich.table import Table

from corpus import DATA, ROWS_IN_GROUP
from planted import planted
from runs import HERE, Unavailable, pinned, python_of, watched

OUT = DATA / "out" / "index"
RESULTS = HERE / "results" / "index.json"
QUERIES = 10_000
PEERS = {
    "datasketch": "in memory; candidates that nothing verifies, without a similarity; saved by pickling it whole",
    "datasketch-redis": "candidates that nothing verifies, without a similarity; one request to the server per band",
    "gaoya": "in memory; similarities estimated from sketches; it cannot be saved",
    "rensa": "in memory; candidates that nothing verifies, without a similarity; saved by pickling it whole",
}
"""The peers, and what of the task they leave to their user."""

ORDER = ["likewise", "likewise, Redis", "likewise containment", "entries", *PEERS]
FIRST = ["tool", "items", "build", "bytes_per_item", "peak_mb", "p50_us", "p99_us", "batch_per_second", "recall",
         "recall_near", "answers", "date"]  # fmt: skip
"""What is listed first in a row."""

console = Console(highlight=False, width=150)


def prepared(items: int) -> tuple[Path, Path, dict[tuple[int, int], float]]:
    """The corpus, the queries, and the similarity of each planted pair of a query and a row of the index.

    The index holds the first `items` rows of a corpus that is a tenth larger; the queries are copies behind them.
    """
    corpus, pairs = planted(items + items // 10)
    table = pq.read_table(pairs)
    a, b = (table.column(name).to_numpy() for name in ("id_a", "id_b"))
    low, high = np.minimum(a, b), np.maximum(a, b)
    mine = np.flatnonzero((low < items) & (high >= items))
    rows = np.unique(high[mine])[:QUERIES]
    mine = mine[np.isin(high[mine], rows)]
    number = np.searchsorted(rows, high[mine])
    similarity = table.column("similarity").to_numpy()[mine]
    keys = zip(number.tolist(), low[mine].tolist(), strict=True)
    known = dict(zip(keys, similarity.tolist(), strict=True))
    OUT.mkdir(parents=True, exist_ok=True)
    pq.write_table(pa.table({"text": texts_of(corpus, rows)}), OUT / f"queries-{items}.parquet")
    return corpus, OUT / f"queries-{items}.parquet", known


def texts_of(corpus: Path, rows: Any) -> Any:
    """The texts of some rows of a corpus, in order; only the row groups that have them are read."""
    found = []
    with pq.ParquetFile(corpus) as file:
        for group in np.unique(rows // ROWS_IN_GROUP).tolist():
            start = group * ROWS_IN_GROUP
            here = rows[(rows >= start) & (rows < start + ROWS_IN_GROUP)] - start
            found.append(file.read_row_group(group, ["text"]).column("text").take(pa.array(here)).combine_chunks())
    return pa.chunked_array(found, pa.string())


def command(tool: str, corpus: Path, queries: Path, items: int, options: list[str]) -> list[str]:
    """The command that fills the index of a tool and asks it; its folder is made."""
    folder = OUT / tool
    folder.mkdir(parents=True, exist_ok=True)
    script = HERE / "peers" / f"{tool.removesuffix('-redis')}_index_run.py"
    words = [python_of(tool), str(script), str(corpus), str(queries), "--items", str(items), "--out", str(folder)]
    return [*words, *options]


def setting(peers: dict[str, str]) -> dict[str, Any]:
    """What was measured, and on what machine."""
    return {
        "likewise": version("likewise"),
        "machine": platform.machine(),
        "cores": os.cpu_count(),
        "peers": {tool: f"{pinned(tool)[0]}: {note}" for tool, note in peers.items()},
    }


def run(
    tool: str, corpus: Path, queries: Path, items: int, options: list[str], most: float | None = None
) -> dict[str, Any]:
    """Run a tool in a fresh process; what it says. It is ended after `most` seconds."""
    found, watch = watched(command(tool, corpus, queries, items, options), most)
    return found | {
        "build": found["phases"]["build"],
        "peak_mb": max(watch.anonymous_mb, found["anonymous_mb"]),
        "queries": pq.read_metadata(queries).num_rows,
        "peak_with_files_mb": max(watch.peak_mb, found["peak_mb"]),
    }


def scored(tool: str, known: dict[tuple[int, int], float], threshold: float) -> dict[str, float]:
    """The recall of the last run, its answers, and how many of them are wrong."""
    table = pq.read_table(OUT / tool / "answers.parquet")
    found = {(query, row): score for query, row, score in zip(*(c.to_pylist() for c in table.columns), strict=True)}
    true = [pair for pair, score in known.items() if score >= threshold]
    near = [pair for pair in true if known[pair] < threshold + 0.02]
    wrong = sum(score >= 0 and abs(known.get(pair, 0.0) - score) > 1e-9 for pair, score in found.items())
    return {
        "recall": sum(pair in found for pair in true) / max(1, len(true)),
        "recall_near": sum(pair in found for pair in near) / max(1, len(near)),
        "true_pairs": len(true),
        "near_pairs": len(near),
        "answers": len(found),
        "mistakes": wrong,
    }


def quotations(corpus: Path, items: int, bands: int, rows: int) -> dict[str, Any]:
    """Ask an index for the documents that contain a run of words: sizes, speed, and whether each is found."""
    chance = np.random.default_rng(1)
    rows_of = np.sort(chance.choice(items, 2000, replace=False))
    quoted = [" ".join(text.split()[20:40]) for text in texts_of(corpus, rows_of).to_pylist()]
    pq.write_table(pa.table({"text": quoted}), OUT / f"quotations-{items}.parquet")
    code = (
        "import sys, time, json, numpy as np, pyarrow.parquet as pq, likewise;"
        "index = likewise.Index.open(sys.argv[1]);"
        "texts = pq.read_table(sys.argv[2]).column('text').to_pylist();"
        "ask = lambda one: index.query(one, measure='containment', threshold=0.9);"
        "ask(texts[0]);\ntaken = []\n"
        "for text in texts:\n begun = time.perf_counter(); ask(text); taken.append(time.perf_counter() - begun)\n"
        "found = ask(texts);"
        "print(json.dumps({'p50_us': np.percentile(taken, 50) * 1e6, 'p99_us': np.percentile(taken, 99) * 1e6,"
        " 'pairs': list(zip(found['id_a'].to_pylist(), found['id_b'].to_pylist()))}))"
    )
    options = ["--bands", str(bands), "--rows", str(rows), "--containment"]
    built = run("likewise", corpus, OUT / f"quotations-{items}.parquet", items, options)
    words = [
        python_of("likewise"),
        "-c",
        code,
        str(OUT / "likewise" / "index"),
        str(OUT / f"quotations-{items}.parquet"),
    ]
    said = json.loads(subprocess.run(words, capture_output=True, text=True, check=True).stdout.splitlines()[-1])
    pairs = {tuple(pair) for pair in said.pop("pairs")}
    recall = sum((number, int(row)) in pairs for number, row in enumerate(rows_of)) / len(rows_of)
    return {**said, "recall": recall, "bytes_per_item": built["bytes_per_item"], "build": built["build"]}


@contextmanager
def redis_server() -> Iterator[tuple[int, Callable[[], dict[str, float]]]]:
    """Start a Redis server without persistence; yield its port, and a function that returns its memory."""
    import redis

    with socket.socket() as free:
        free.bind(("127.0.0.1", 0))
        port = free.getsockname()[1]
    words = ["redis-server", "--port", str(port), "--bind", "127.0.0.1", "--save", ""]
    server = subprocess.Popen(words, stdout=subprocess.DEVNULL)
    try:
        client = redis.Redis(port=port, retry=redis.retry.Retry(redis.backoff.ConstantBackoff(0.1), 50))
        client.ping()

        def memory() -> dict[str, float]:
            info = client.info("memory")
            return {"server_mb": info["used_memory"] / 1e6, "server_peak_mb": info["used_memory_peak"] / 1e6}

        yield port, memory
        client.close()
    finally:
        server.terminate()
        server.wait()


def on_redis(tool: str, corpus: Path, queries: Path, items: int, options: list[str], most: float) -> dict[str, Any]:
    """Run a tool with a Redis server of its own."""
    with redis_server() as (port, memory):
        url = f"redis://127.0.0.1:{port}/0?name=bench&grace=1"
        place = ["--url", url] if tool == "likewise" else ["--redis", str(port)]
        said = run(tool, corpus, queries, items, [*options, *place], most)
        used = memory()
    said["peak_mb"] += used["server_peak_mb"]
    return {**said, **used, "bytes_per_item": used["server_mb"] * 1e6 / items}


def checks(items: int, threshold: float) -> dict[str, Any]:
    """Return the seconds of queries of an index that was just opened, with and without comparing checksums."""
    import likewise
    from likewise.index import view

    corpus, queries, _ = prepared(items)
    folder = OUT / f"checks-{items}"
    shutil.rmtree(folder, ignore_errors=True)
    with likewise.Index.create(folder, threshold=threshold) as index:
        for part in pq.ParquetFile(corpus).iter_batches(20_000):
            index.add(None, part.column("text"))
        size = index.info()["bytes_used"]
    asked = pq.read_table(queries).column("text").to_pylist()[:QUERIES]
    found: dict[str, dict[str, list[float]]] = {}

    class Trusting:
        """Stands for zlib, and finds everything sound."""

        crc32 = staticmethod(lambda data: ANY)

    for turn in range(5):
        for name, module in (("checked", zlib), ("trusted", Trusting)):
            setattr(view, "zlib", module)  # noqa: B010
            begun = time.perf_counter()
            with likewise.Index.open(folder) as index:
                index.query(asked[:1])
                first = time.perf_counter()
                for text in asked[:200]:
                    index.query([text])
                single = time.perf_counter()
                index.query(asked)
                done = time.perf_counter()
            if turn:
                times = found.setdefault(name, {"open and first": [], "200 singly": [], "all together": []})
                for key, seconds in zip(times, (first - begun, single - first, done - single), strict=True):
                    times[key].append(round(seconds, 4))
    setattr(view, "zlib", zlib)  # noqa: B010
    shown = {name: {key: sorted(times)[len(times) // 2] for key, times in one.items()} for name, one in found.items()}
    return {"items": items, "bytes": size, "queries": len(asked), **shown}


def keep(rows: list[dict[str, Any]], where: Path) -> None:
    """Put rows in place of those of the same tool and number of items in the results."""
    before = json.loads(where.read_text())["rows"] if where.exists() else []
    every = {(row["items"], row["tool"]): row for row in [*before, *rows]}
    ordered = sorted(every.values(), key=lambda row: (row["items"], ORDER.index(row["tool"])))
    where.write_text(json.dumps({"about": setting(PEERS), "rows": ordered}, indent=1) + "\n")


def show(rows: list[dict[str, Any]]) -> None:
    """Print a table."""
    table = Table(
        "tool", "items", "build s", "bytes/item", "peak MB", "p50 µs", "p99 µs", "batch q/s", "recall", "at 0.8"
    )
    names = ("bytes_per_item", "peak_mb", "p50_us", "p99_us", "batch_per_second")
    for row in rows:
        cells = [row.get(name) for name in names]
        shares = [row["recall"], row.get("recall_near")]
        table.add_row(
            row["tool"],
            f"{row['items']:,}",
            f"{row['build']:.1f}",
            *("" if cell is None else f"{cell:,.0f}" for cell in cells),
            *("" if share is None else f"{share:.4f}" for share in shares),
        )
    console.print(table)
    for tool in dict.fromkeys(row["tool"] for row in rows):
        if tool in PEERS:
            console.print(f"{tool}: {PEERS[tool]}.")


def chosen(text: str) -> list[str]:
    """The peers that are named in an option."""
    names = [] if text == "none" else text.split(",")
    if unknown := [name for name in names if name not in PEERS]:
        raise argparse.ArgumentTypeError(f"{unknown[0]} is none of {', '.join(PEERS)}")
    return names


def main() -> None:
    """Measure, print a table, and write results/index.json."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--items", type=int, action="append")
    parser.add_argument("--threshold", type=float, default=0.8)
    parser.add_argument("--recall", type=float, default=0.99)
    parser.add_argument("--peers", type=chosen, default=list(PEERS), help=f"none, or some of {','.join(PEERS)}")
    parser.add_argument("--timeout", type=float, default=3600, help="the most seconds for one tool and one size")
    parser.add_argument(
        "--entries", action="store_true", help="also the way not taken: one LMDB entry per key and item"
    )
    parser.add_argument("--redis", action="store_true", help="also likewise on a redis-server of its own")
    parser.add_argument("--containment", action="store_true")
    parser.add_argument("--checks", action="store_true", help="only the cost of checksums")
    parser.add_argument("--results", type=Path, default=RESULTS)
    asked = parser.parse_args()
    if asked.checks:
        rows = [checks(items, asked.threshold) for items in asked.items or [100_000]]
        print(json.dumps(rows, indent=2))
        RESULTS.with_name("index-checks.json").write_text(json.dumps(rows, indent=2) + "\n")
        return
    import likewise

    results: list[dict[str, Any]] = []

    def add(said: dict[str, Any]) -> None:
        said["date"] = time.strftime("%Y-%m-%d")
        results.append({name: said[name] for name in FIRST if name in said} | said)
        keep(results[-1:], asked.results)  # at once: what a long run has measured is not lost with it

    for items in asked.items or [100_000]:
        banding = likewise.tune(asked.threshold, asked.recall, items=items)
        options = ["--threshold", str(asked.threshold), "--bands", str(banding.b), "--rows", str(banding.r)]
        corpus, queries, known = prepared(items)
        console.print(f"{items:,} documents, {banding}")
        for name in (
            "likewise", *(["likewise, Redis"] * asked.redis), *(["entries"] * asked.entries), *asked.peers
        ):  # fmt: skip
            tool = name.removesuffix(", Redis")
            measure = on_redis if "redis" in name.lower() else run
            try:
                said = measure(tool, corpus, queries, items, options, asked.timeout)
            except Unavailable as error:
                console.print(f"  {name}: {error}")
                continue
            about = {"tool": name, "items": items, "bands": banding.b, "rows": banding.r}
            add(about | said | scored(tool, known, asked.threshold))
        if asked.containment:
            said = quotations(corpus, items, banding.b, banding.r)
            add({"tool": "likewise containment", "items": items, **said})
    show(results)
    console.print(f"→ {asked.results}")


if __name__ == "__main__":
    main()
