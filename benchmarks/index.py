"""The persistent index beside datasketch's MinHashLSH in memory: build time, size, latency, throughput, recall.

    python benchmarks/index.py                                   a hundred thousand documents
    python benchmarks/index.py --items 1000000 --items 10000000  more of them, one size after the other
    python benchmarks/index.py --peers none                      likewise alone
    python benchmarks/index.py --entries                         also one LMDB entry per key, the way not taken
    python benchmarks/index.py --redis                           also on a Redis server, which it starts
    python benchmarks/index.py --containment                     also with the table of shingles, and quotations

The corpus is planted (planted.py): the queries are copies whose exact similarity to their original is known, and are
not in the index. Recall counts the planted pairs at the threshold or above; mistakes are answers of likewise with
another similarity than the planted one. Every tool gets the same bands and rows, and runs in a fresh process in its
own environment. Queries are texts: shingling and sketching are part of the time. datasketch's answers are candidates,
not verified; "bytes an item" is what its process has grown by, and for likewise what is stored.
"""

from __future__ import annotations

import argparse
import json
import os
import platform
import socket
import subprocess
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from importlib.metadata import version
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
from rich.console import Console
from rich.table import Table

from corpus import DATA
from planted import planted
from runs import HERE, Unavailable, last_line, python_of

OUT = DATA / "out" / "index"
QUERIES = 10_000
console = Console(highlight=False, width=150)


def prepared(items: int) -> tuple[Path, Path, dict[tuple[int, int], float]]:
    """The corpus, the queries, and the similarity of each planted pair of a query and a row of the index.

    The index holds the first `items` rows of a corpus that is a tenth larger; the queries are copies behind them.
    """
    corpus, pairs = planted(items + items // 10)
    table = pq.read_table(pairs)
    a, b = (table.column(name).to_numpy() for name in ("id_a", "id_b"))
    low, high = np.minimum(a, b), np.maximum(a, b)
    mine = (low < items) & (high >= items)
    rows = np.unique(high[mine])[:QUERIES]
    number = {int(row): place for place, row in enumerate(rows)}
    known = {
        (number[int(two)], int(one)): float(score)
        for one, two, score in zip(low[mine], high[mine], table.column("similarity").to_numpy()[mine], strict=True)
        if int(two) in number
    }
    OUT.mkdir(parents=True, exist_ok=True)
    texts = pq.read_table(corpus, columns=["text"]).column("text").take(pa.array(rows))
    pq.write_table(pa.table({"text": texts}), OUT / f"queries-{items}.parquet")
    return corpus, OUT / f"queries-{items}.parquet", known


def run(tool: str, corpus: Path, queries: Path, items: int, options: list[str]) -> dict[str, Any]:
    """Run a tool in a fresh process; what it says."""
    folder = OUT / tool
    folder.mkdir(parents=True, exist_ok=True)
    script = HERE / "peers" / f"{tool}_index_run.py"
    words = [python_of(tool), str(script), str(corpus), str(queries), "--items", str(items), "--out", str(folder)]
    done = subprocess.run([*words, *options], capture_output=True, text=True, check=False)
    if done.returncode:
        raise Unavailable(last_line(done.stderr))
    found: dict[str, Any] = json.loads(done.stdout.splitlines()[-1])
    return found


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
    texts = pq.read_table(corpus, columns=["text"]).column("text")
    chance = np.random.default_rng(1)
    chosen = np.sort(chance.choice(items, 2000, replace=False))
    quoted = [" ".join(text.split()[20:40]) for text in texts.take(pa.array(chosen)).to_pylist()]
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
    recall = sum((number, int(row)) in pairs for number, row in enumerate(chosen)) / len(chosen)
    return {**said, "recall": recall, "bytes_per_item": built["bytes_per_item"], "build": built["phases"]["build"]}


@contextmanager
def redis_server() -> Iterator[tuple[str, Callable[[], int]]]:
    """Start a Redis server without persistence; yield the URL of an index, and a function that returns its memory."""
    import redis

    with socket.socket() as free:
        free.bind(("127.0.0.1", 0))
        port = free.getsockname()[1]
    words = ["redis-server", "--port", str(port), "--bind", "127.0.0.1", "--save", ""]
    server = subprocess.Popen(words, stdout=subprocess.DEVNULL)
    try:
        client = redis.Redis(port=port, retry=redis.retry.Retry(redis.backoff.ConstantBackoff(0.1), 50))
        client.ping()
        yield f"redis://127.0.0.1:{port}/0?name=bench&grace=1", lambda: int(client.info("memory")["used_memory"])
        client.close()
    finally:
        server.terminate()
        server.wait()


def main() -> None:
    """Measure, print a table, and write results/index.json, or index-redis.json."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--items", type=int, action="append")
    parser.add_argument("--threshold", type=float, default=0.8)
    parser.add_argument("--recall", type=float, default=0.99)
    parser.add_argument("--peers", choices=["datasketch", "none"], default="datasketch")
    parser.add_argument(
        "--entries", action="store_true", help="also the way not taken: one LMDB entry per key and item"
    )
    parser.add_argument("--redis", action="store_true", help="also the shared store, on a redis-server of its own")
    parser.add_argument("--containment", action="store_true")
    asked = parser.parse_args()
    import likewise

    results: list[dict[str, Any]] = []
    for items in asked.items or [100_000]:
        banding = likewise.tune(asked.threshold, asked.recall, items=items)
        options = ["--threshold", str(asked.threshold), "--bands", str(banding.b), "--rows", str(banding.r)]
        corpus, queries, known = prepared(items)
        console.print(f"{items:,} documents, {banding}")
        peers = [*(["entries"] if asked.entries else []), *([] if asked.peers == "none" else [asked.peers])]
        for tool in ("likewise", *peers):
            try:
                said = run(tool, corpus, queries, items, options)
            except Unavailable as error:
                console.print(f"  {tool}: {error}")
                continue
            more = scored(tool, known, asked.threshold)
            results.append({"tool": tool, "items": items, "bands": banding.b, "rows": banding.r, **said, **more})
        if asked.redis:
            with redis_server() as (url, memory):
                said = run("likewise", corpus, queries, items, [*options, "--url", url])
                said["server_mb"] = memory() / 2**20
            said |= {"tool": "likewise, Redis", "items": items, "bands": banding.b, "rows": banding.r}
            results.append({**said, **scored("likewise", known, asked.threshold)})
        if asked.containment:
            said = quotations(corpus, items, banding.b, banding.r)
            results.append({"tool": "likewise containment", "items": items, **said})
    table = Table(
        "tool", "items", "build s", "bytes/item", "p50 µs", "p99 µs", "batch q/s", "RSS MB", "recall", "at 0.8"
    )
    for row in results:
        cells = [
            row["bytes_per_item"],
            row["p50_us"],
            row["p99_us"],
            row.get("batch_per_second"),
            row.get("resident_mb"),
        ]
        build = row["phases"]["build"] if "phases" in row else row["build"]
        shares = [row["recall"], row.get("recall_near")]
        table.add_row(
            row["tool"],
            f"{row['items']:,}",
            f"{build:.1f}",
            *("" if cell is None else f"{cell:,.0f}" for cell in cells),
            *("" if share is None else f"{share:.4f}" for share in shares),
        )
    console.print(table)
    about = {"likewise": version("likewise"), "machine": platform.machine(), "cores": os.cpu_count()}
    target = HERE / "results" / ("index-redis.json" if asked.redis else "index.json")
    target.write_text(json.dumps({"about": about, "rows": results}, indent=1) + "\n")
    console.print(f"→ {target}")


if __name__ == "__main__":
    main()
