"""Exact or by hashing: what both take on many kinds of collections, and what `likewise.search.prepare` predicts.

    python benchmarks/methods.py                      results/methods.json
    python benchmarks/methods.py --only names         one of them

Documents (planted.py, newsgroups if they are there), titles of the documents, baskets and names (exact.py) are searched
with one thread by both methods at three thresholds. Seconds are those of the search, without reading. A choice is
right if the way that was predicted to be cheaper was; `loss` is what the choice took, divided by the better of both.
"""

from __future__ import annotations

import argparse
import json
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import numpy as np
from rich.console import Console
from rich.table import Table

import likewise
from corpus import DATA

HERE = Path(__file__).parent
STAGES = {"lsh": ("sketch", "candidates", "verify", "crowds", "certify"), "exact": ("sets", "join")}
THRESHOLDS = (0.9, 0.8, 0.5)


def collections() -> Iterator[tuple[str, Any, str]]:
    """Yield a name, a source and a shingler."""
    for documents in (20_000, 100_000):
        path = DATA / f"planted-{documents}.parquet"
        if path.exists():
            yield f"documents {documents}", path, "words:5"
    path = DATA / "planted-20000.parquet"
    if path.exists():
        yield "documents 20000 chars", path, "chars:9"
    path = DATA / "newsgroups.parquet"
    if path.exists():
        yield "newsgroups", path, "words:3"
    rng = np.random.default_rng(1)
    for name, size, universe, items in (("tags", 8, 20_000, 200_000), ("baskets", 12, 5_000, 100_000)):
        yield name, likewise.Sets.from_lists(list(zipf_sets(rng, items, size, universe))), "tokens"
    yield "long sets", likewise.Sets.from_lists(list(zipf_sets(rng, 30_000, 100, 100_000))), "tokens"
    syllables = ["ba", "lo", "mi", "ra", "tek", "js", "-", "node", "ly", "ur", "ox", "pi", "sta", "ver", "en"]
    names = ["".join(rng.choice(syllables, rng.integers(3, 9))) for _ in range(100_000)]
    yield "names", names, "chars:3"


def zipf_sets(rng: np.random.Generator, items: int, size: int, universe: int) -> Iterator[list[int]]:
    """Yield sets of about `size` tokens by Zipf's law, a twentieth of them near-copies of the one before."""
    weights = np.cumsum(1 / np.arange(1, universe + 1))
    last: list[int] = []
    for _ in range(items):
        drawn = np.searchsorted(weights, rng.random(max(1, rng.poisson(size))) * weights[-1]).tolist()
        last = [*last[1:], drawn[0]] if last and rng.random() < 0.05 else drawn
        yield list(set(last))


def measure(name: str, source: Any, shingle: str, threshold: float) -> dict[str, Any]:
    """Search by both methods, and predict."""
    found: dict[str, Any] = {"collection": name, "threshold": threshold, "seconds": {}}
    for method in ("exact", "lsh"):
        result = likewise.pairs(source, shingle=shingle, threshold=threshold, method=method, threads=1)
        stats = result.stats
        found["seconds"][method] = sum(stats["seconds"].get(stage, 0.0) for stage in STAGES[method])
        found[f"{method} pairs"] = len(result)
        if method == "exact":
            found["filters"] = stats["details"]["filters"]
        else:
            found["banding"], found["candidates"] = stats["details"]["banding"], stats["counts"]["candidates"]
    result = likewise.pairs(source, shingle=shingle, threshold=threshold, threads=1)
    stats = result.stats
    found["method"] = stats["method"]
    best = min(found["seconds"].values())
    found["loss"] = found["seconds"][stats["method"]["taken"]] / best
    return found


def main() -> None:
    """Measure, print, and store."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--only", default="", help="collections whose name holds this")
    parser.add_argument("--out", type=Path, default=HERE / "results" / "methods.json")
    asked = parser.parse_args()
    console = Console(width=120)
    likewise.pairs(["a b c d e f"] * 3, method="exact")
    likewise.pairs(["a b c d e f"] * 3, method="lsh")
    rows = []
    for name, source, shingle in collections():
        if asked.only not in name:
            continue
        for threshold in THRESHOLDS:
            rows.append(measure(name, source, shingle, threshold))
            seconds, told = rows[-1]["seconds"], rows[-1]["method"]["predicted_seconds"]
            console.print(
                f"{name} {threshold}: exact {seconds['exact']:.2f} s (predicted {told['exact']:g}), "
                f"lsh {seconds['lsh']:.2f} s (predicted {told['lsh']:g}); took {rows[-1]['method']['taken']}"
            )
    table = Table("collection", "threshold", "exact s", "lsh s", "predicted", "", "took", "loss", "pairs", "by lsh")
    for row in rows:
        told = row["method"]["predicted_seconds"]
        table.add_row(
            row["collection"],
            f"{row['threshold']:g}",
            f"{row['seconds']['exact']:.2f}",
            f"{row['seconds']['lsh']:.2f}",
            f"{told['exact']:g}",
            f"{told['lsh']:g}",
            row["method"]["taken"],
            f"{row['loss']:.2f}",
            f"{row['exact pairs']:,}",
            f"{row['lsh pairs']:,}",
        )
    console.print(table)
    asked.out.write_text(json.dumps({"runs": rows}, indent=1) + "\n")


if __name__ == "__main__":
    main()
